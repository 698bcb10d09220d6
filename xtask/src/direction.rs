//! Which crate may depend on which: the architecture as a table, compared with the manifests.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::metadata::{Dependency, Package, Workspace};

/// What one crate of the workspace may and may not depend on.
struct Rule {
    name: &'static str,
    /// The crates of the workspace it may use.
    may_use: &'static [&'static str],
    /// The foreign crates it must not name in its manifest; `candle*` stands for every name that starts so.
    must_not_know: &'static [&'static str],
}

/// The architecture, lowest layer first. A new crate of the workspace gets its line here.
#[rustfmt::skip]
const RULES: &[Rule] = &[
    Rule {
        name: "crosslens-kernels",
        may_use: &[],
        must_not_know: &["candle*", "clap", "indicatif", "tokio", "axum", "http*", "hyper*", "tungstenite", "pyo3"],
    },
    Rule {
        name: "crosslens-analysis",
        may_use: &["crosslens-kernels"],
        must_not_know: &["candle*", "clap", "indicatif", "tokio", "axum", "http*", "hyper*", "tungstenite", "pyo3"],
    },
    Rule {
        name: "crosslens-nets",
        may_use: &["crosslens-analysis", "crosslens-kernels"],
        must_not_know: &["candle*", "clap", "indicatif", "tokio", "axum", "http*", "hyper*", "tungstenite", "pyo3"],
    },
    Rule {
        name: "crosslens-pretrained",
        may_use: &["crosslens-analysis", "crosslens-kernels"],
        must_not_know: &["clap", "indicatif", "tokio", "axum", "http*", "hyper*", "tungstenite", "pyo3"],
    },
    Rule {
        name: "crosslens-lab",
        may_use: &["crosslens-nets", "crosslens-pretrained", "crosslens-analysis", "crosslens-kernels"],
        must_not_know: &["clap", "indicatif", "tokio", "axum", "http*", "hyper*", "tungstenite", "pyo3"],
    },
    Rule {
        name: "crosslens-server",
        may_use: &["crosslens-lab", "crosslens-analysis"],
        must_not_know: &["clap", "indicatif"],
    },
    Rule {
        name: "crosslens",
        may_use: &["crosslens-server", "crosslens-lab", "crosslens-analysis"],
        must_not_know: &[],
    },
    Rule {
        name: "crosslens-py",
        may_use: &["crosslens-lab", "crosslens-analysis"],
        must_not_know: &["clap", "indicatif", "tokio", "axum", "http*", "hyper*", "tungstenite"],
    },
    Rule {
        name: "crosslens-bench",
        may_use: &["crosslens-lab", "crosslens-nets", "crosslens-pretrained", "crosslens-analysis", "crosslens-kernels"],
        must_not_know: &[],
    },
    Rule {
        name: "xtask",
        may_use: &[],
        must_not_know: &[],
    },
];

/// Fails with every manifest line that breaks the table.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let violations = violations(&workspace.packages);
    if !violations.is_empty() {
        bail!("{}\n(the table is RULES in xtask/src/direction.rs)", violations.join("\n"));
    }
    println!("{} crates depend on each other in the permitted direction only", workspace.packages.len());
    Ok(())
}

/// The crate's place among the layers, lowest first; unknown crates come last.
pub(crate) fn layer(name: &str) -> usize {
    RULES.iter().position(|rule| rule.name == name).unwrap_or(RULES.len())
}

fn violations(packages: &[Package]) -> Vec<String> {
    let members: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut violations = Vec::new();
    for package in packages {
        match rule_of(&package.name) {
            Some(rule) => violations.extend(package.dependencies.iter().filter_map(|dependency| complaint(rule, dependency, &members))),
            None => violations.push(format!("`{}` is not in the table of permitted dependencies: add a line for it", package.name)),
        }
    }
    violations
}

/// What is wrong with one dependency of the rule's crate, if anything.
fn complaint(rule: &Rule, dependency: &Dependency, members: &BTreeSet<&str>) -> Option<String> {
    let (user, used) = (rule.name, dependency.name.as_str());

    if !members.contains(used) {
        let is_forbidden = !dependency.is_dev && rule.must_not_know.iter().any(|pattern| matches(pattern, used));
        return is_forbidden.then(|| format!("`{user}` must not know `{used}`"));
    }
    if dependency.is_dev {
        return is_above(used, user).then(|| format!("`{user}` must not depend on `{used}` even in its tests: that crate is above it"));
    }
    (!rule.may_use.contains(&used)).then(|| match rule.may_use {
        [] => format!("`{user}` must not depend on `{used}`: it may use no crate of the workspace"),
        may_use => format!("`{user}` must not depend on `{used}`: it may use {}", may_use.join(", ")),
    })
}

fn rule_of(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// Whether the table lets `upper` reach `lower`, directly or through others.
fn is_above(upper: &str, lower: &str) -> bool {
    rule_of(upper).is_some_and(|rule| rule.may_use.iter().any(|&used| used == lower || is_above(used, lower)))
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate with the given dependencies; a name after `dev:` is a dev-dependency.
    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|line| match line.strip_prefix("dev:") {
                Some(name) => Dependency { name: name.to_owned(), is_dev: true },
                None => Dependency { name: (*line).to_owned(), is_dev: false },
            })
            .collect();
        Package { name: name.to_owned(), dependencies, ..Package::default() }
    }

    /// The violations of a workspace that has all crates of the table, one of them with these dependencies.
    fn violations_of(name: &str, dependencies: &[&str]) -> Vec<String> {
        let others = RULES.iter().filter(|rule| rule.name != name).map(|rule| package(rule.name, &[]));
        violations(&others.chain([package(name, dependencies)]).collect::<Vec<_>>())
    }

    #[test]
    fn downward_dependencies_are_allowed() {
        assert!(violations_of("crosslens-nets", &["crosslens-analysis", "crosslens-kernels", "serde"]).is_empty());
        assert!(violations_of("crosslens", &["crosslens-server", "crosslens-lab", "clap", "tokio"]).is_empty());
        assert!(violations_of("crosslens-pretrained", &["candle-core", "crosslens-analysis"]).is_empty());
    }

    #[test]
    fn upward_and_sideways_dependencies_are_not() {
        assert_eq!(
            violations_of("crosslens-analysis", &["crosslens-nets"]),
            ["`crosslens-analysis` must not depend on `crosslens-nets`: it may use crosslens-kernels"]
        );
        assert_eq!(
            violations_of("crosslens-kernels", &["crosslens-analysis"]),
            ["`crosslens-kernels` must not depend on `crosslens-analysis`: it may use no crate of the workspace"]
        );
        assert_eq!(violations_of("crosslens-nets", &["crosslens-pretrained"]).len(), 1);
        assert_eq!(violations_of("crosslens-bench", &["crosslens", "crosslens-server", "crosslens-py"]).len(), 3);
    }

    #[test]
    fn an_unknown_crate_must_be_added_to_the_table() {
        assert_eq!(
            violations(&[package("crosslens-new", &[])]),
            ["`crosslens-new` is not in the table of permitted dependencies: add a line for it"]
        );
    }

    #[test]
    fn foreign_crates_can_be_forbidden_by_name_and_by_prefix() {
        assert_eq!(violations_of("crosslens-lab", &["tokio", "serde"]), ["`crosslens-lab` must not know `tokio`"]);
        assert_eq!(violations_of("crosslens-nets", &["candle-core"]), ["`crosslens-nets` must not know `candle-core`"]);
        assert!(violations_of("crosslens-nets", &["tokio-less"]).is_empty());
    }

    /// What the server and its tests speak HTTP with.
    #[test]
    fn below_the_server_nobody_speaks_http() {
        for user in ["crosslens-kernels", "crosslens-analysis", "crosslens-nets", "crosslens-pretrained", "crosslens-lab", "crosslens-py"] {
            for used in ["hyper", "hyper-util", "http-body-util", "tungstenite", "tokio"] {
                assert_eq!(violations_of(user, &[used]), [format!("`{user}` must not know `{used}`")]);
            }
        }
        assert!(violations_of("crosslens-server", &["hyper", "hyper-util", "http-body-util", "tokio"]).is_empty());
    }

    #[test]
    fn tests_may_reach_sideways_but_not_upward() {
        assert!(violations_of("crosslens-nets", &["dev:crosslens-pretrained", "dev:tokio"]).is_empty());
        assert_eq!(
            violations_of("crosslens-kernels", &["dev:crosslens-lab"]),
            ["`crosslens-kernels` must not depend on `crosslens-lab` even in its tests: that crate is above it"]
        );
    }

    /// `is_above` follows `may_use` without a visited set, so the table must have no cycle: each rule uses earlier ones only.
    #[test]
    fn the_table_goes_from_the_lowest_layer_up() {
        for (place, rule) in RULES.iter().enumerate() {
            for used in rule.may_use {
                assert!(layer(used) < place, "{} stands before {used}", rule.name);
            }
        }
    }
}
