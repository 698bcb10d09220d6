//! Joins ES modules into one script.
//!
//! Each module becomes a function that runs at once and returns what the module exports; an import becomes an assignment from an earlier
//! one. That takes modules written in a plain way, which is checked, not guessed: an import stands on one line, names what it takes and
//! comes from an earlier file; an export stands before `function`, `async function`, `class` or `const`; nothing ends a script element.

use std::collections::BTreeMap;

use super::files::{MODULES, Module};

/// Why modules cannot be joined.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BundleError {
    #[error("{file}:{line}: `{text}` is not written as the joiner reads it")]
    Line { file: &'static str, line: usize, text: String },
    #[error("{file}:{line}: `{name}` is not exported by an earlier {from}")]
    Unknown { file: &'static str, line: usize, name: String, from: String },
    #[error("{file} contains `{text}`, which would end its element")]
    Ends { file: &'static str, text: &'static str },
}

/// The viewer as one script.
pub(super) fn script() -> String {
    join(MODULES).expect("the viewer's own modules join: tested")
}

/// Joins modules, each after those it imports from.
pub(super) fn join(modules: &[Module]) -> Result<String, BundleError> {
    let mut exported: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut script = String::from("\"use strict\";\n(() => {\n");
    for module in modules {
        let mut exports = Vec::new();
        script += &format!("const {} = (() => {{\n", variable(module.name));
        for (number, line) in module.text.lines().enumerate() {
            let (file, number) = (module.name, number + 1);
            let bad = || BundleError::Line { file, line: number, text: line.to_owned() };
            if line.starts_with("import") {
                let (names, from) = import(line).ok_or_else(bad)?;
                for name in &names {
                    let is_known = exported.get(from).is_some_and(|exports| exports.iter().any(|export| export == name));
                    if !is_known {
                        return Err(BundleError::Unknown { file, line: number, name: (*name).to_owned(), from: from.to_owned() });
                    }
                }
                script += &format!("const {{ {} }} = {};\n", names.join(", "), variable(from));
            } else if let Some(rest) = line.strip_prefix("export") {
                exports.push(export(rest).ok_or_else(bad)?.to_owned());
                script += rest.trim_start();
                script.push('\n');
            } else {
                script += line;
                script.push('\n');
            }
        }
        for text in ["</script", "<!--"] {
            if module.text.to_ascii_lowercase().contains(text) {
                return Err(BundleError::Ends { file: module.name, text });
            }
        }
        script += &format!("return {{ {} }};\n}})();\n", exports.join(", "));
        exported.insert(module.name, exports);
    }
    script += "})();\n";
    Ok(script)
}

/// `source.js` → `module_source`.
fn variable(file: &str) -> String {
    format!("module_{}", file.trim_end_matches(".js").replace('-', "_"))
}

/// `import { a, b } from "./x.js";` → names and file.
fn import(line: &str) -> Option<(Vec<&str>, &str)> {
    let (names, from) = line.strip_prefix("import {")?.split_once("} from \"./")?;
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    names.iter().all(|name| is_name(name)).then_some((names, from.strip_suffix("\";")?))
}

/// The name behind `export`.
fn export(rest: &str) -> Option<&str> {
    let kinds = [" async function ", " function ", " class ", " const "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Module = Module { name: "a.js", text: "export const one = 1;\nexport async function two() {}\nconst hidden = 3;\n" };

    fn with(text: &'static str) -> Result<String, BundleError> {
        join(&[A, Module { name: "b.js", text }])
    }

    #[test]
    fn imports_become_assignments_and_exports_results() {
        let script = with("import { one, two } from \"./a.js\";\nexport class Three {}\n").expect("joined");
        assert!(script.contains("const one = 1;\nasync function two() {}\nconst hidden = 3;\nreturn { one, two };"), "{script}");
        assert!(
            script.contains("const module_b = (() => {\nconst { one, two } = module_a;\nclass Three {}\nreturn { Three };"),
            "{script}"
        );
    }

    #[test]
    fn what_cannot_be_joined_is_named() {
        let line = |text: &'static str| matches!(with(text), Err(BundleError::Line { file: "b.js", line: 1, .. }));
        assert!(line("import a from \"./a.js\";\n"));
        assert!(line("import { one as uno } from \"./a.js\";\n"));
        assert!(line("export default 1;\n"));
        assert!(line("export let x = 1;\n"));
        assert!(matches!(with("import { hidden } from \"./a.js\";\n"), Err(BundleError::Unknown { .. })));
        assert!(matches!(with("import { x } from \"./later.js\";\n"), Err(BundleError::Unknown { .. })));
        assert!(matches!(with("const x = \"</SCRIPT>\";\n"), Err(BundleError::Ends { .. })));
    }
}
