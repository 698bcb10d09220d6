//! Makes the golden files of the tests anew, with the programs and the versions they were made with.
//!
//! Every `crates/*/tests/golden/make*.py` is such a program; `requirements.txt` beside it pins what it needs. All run in one virtual
//! environment under `target/`, made when it is first needed and again when the versions change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs the programs whose file name holds one of `wanted`, or all; then says what changed.
pub(crate) fn make(root: &Path, wanted: &[String]) -> Result<()> {
    let programs = chosen(programs(root)?, wanted)?;
    let python = environment(root, &pins(&programs)?)?;
    for program in &programs {
        println!("golden: {}", shown(root, program));
        let folder = program.parent().context("a program lies in a folder")?;
        run(Command::new(&python).arg(program).current_dir(folder))?;
    }
    changed(root)
}

/// All programs, by crate and name.
fn programs(root: &Path) -> Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    for folder in folders(&root.join("crates"))? {
        let golden = folder.join("tests/golden");
        if golden.is_dir() {
            programs.extend(files(&golden)?.into_iter().filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("make") && name.ends_with(".py")
            }));
        }
    }
    programs.sort();
    Ok(programs)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read `{}`", folder.display());
    let entries = std::fs::read_dir(folder).with_context(cannot)?;
    entries.map(|entry| Ok(entry.with_context(cannot)?.path())).collect()
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_file()).collect())
}

/// Those that were asked for.
fn chosen(programs: Vec<PathBuf>, wanted: &[String]) -> Result<Vec<PathBuf>> {
    let stem = |program: &PathBuf| program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let names: Vec<String> = programs.iter().map(stem).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| !names.contains(wanted)) {
        bail!("there is no golden program `{unknown}`; there are {}", names.join(", "));
    }
    Ok(programs.into_iter().filter(|program| wanted.is_empty() || wanted.contains(&stem(program))).collect())
}

/// The versions that the programs ask for, by package; two of one package cannot be had at once.
fn pins(programs: &[PathBuf]) -> Result<BTreeMap<String, String>> {
    let mut pins: BTreeMap<String, String> = BTreeMap::new();
    for program in programs {
        let list = program.with_file_name("requirements.txt");
        let text = std::fs::read_to_string(&list).with_context(|| format!("cannot read `{}`", list.display()))?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let Some((package, version)) = line.split_once("==") else {
                bail!("`{}`: `{line}` pins no version; write `package==version`", list.display());
            };
            match pins.insert(package.to_owned(), version.to_owned()) {
                Some(other) if other != version => {
                    bail!("`{}`: {package} is pinned to {version} here and to {other} elsewhere", list.display())
                }
                _ => {}
            }
        }
    }
    Ok(pins)
}

/// A virtual environment with these versions; its Python.
fn environment(root: &Path, pins: &BTreeMap<String, String>) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let (folder, list) = (target.join("golden-venv"), target.join("golden-venv/installed.txt"));
    let python = folder.join("bin/python");
    let wanted: String = pins.iter().map(|(package, version)| format!("{package}=={version}\n")).collect();
    let installed = std::fs::read_to_string(&list).unwrap_or_default();
    if python.exists() && wanted.lines().all(|line| installed.lines().any(|other| other == line)) {
        return Ok(python);
    }
    let system = std::env::var("CROSSLENS_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    println!("golden: a virtual environment in {}", folder.display());
    run(Command::new(&system).args(["-m", "venv"]).arg(&folder))?;
    if !pins.is_empty() {
        let packages = wanted.lines();
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages))?;
    }
    // What was there before stays, in other versions where these ask for them.
    let name = |line: &str| line.split("==").next().unwrap_or_default().to_owned();
    let kept = installed.lines().filter(|line| !pins.contains_key(&name(line))).map(|line| format!("{line}\n"));
    std::fs::write(&list, kept.collect::<String>() + &wanted).with_context(|| format!("cannot write `{}`", list.display()))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("`{}` cannot be started", command.get_program().display()))?;
    if !status.success() {
        bail!("`{}` failed: {status}", command.get_program().display());
    }
    Ok(())
}

/// What git sees of it.
fn changed(root: &Path) -> Result<()> {
    let git = |arguments: &[&str]| -> Result<String> {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).args(["--", ":(glob)crates/*/tests/golden/**"]).output();
        Ok(String::from_utf8_lossy(&output.context("`git` cannot be started")?.stdout).trim_end().to_owned())
    };
    let (differences, news) = (git(&["diff", "--stat"])?, git(&["ls-files", "--others", "--exclude-standard"])?);
    if differences.is_empty() && news.is_empty() {
        println!("golden: nothing changed");
    }
    [differences, news].iter().filter(|text| !text.is_empty()).for_each(|text| println!("{text}"));
    Ok(())
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
    }

    #[test]
    fn every_program_has_pins_that_agree_with_the_others() {
        let programs = programs(&root()).expect("programs");
        assert!(programs.len() >= 6, "{programs:?}");
        let pins = pins(&programs).expect("pins");
        assert!(pins.contains_key("torch") && pins.contains_key("sentencepiece"), "{pins:?}");
        let (package, version) = crate::published::PACKAGE.split_once("==").expect("a pin");
        assert_eq!(pins[package], version, "golden values and tests are of the same weights");
    }

    #[test]
    fn programs_are_chosen_by_name() {
        let programs = programs(&root()).expect("programs");
        let chosen = |wanted: &[&str]| chosen(programs.clone(), &wanted.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(chosen(&[]).expect("all").len(), programs.len());
        assert!(chosen(&["make_align"]).expect("one")[0].ends_with("crosslens-analysis/tests/golden/make_align.py"));
        let error = chosen(&["make_nothing"]).expect_err("none").to_string();
        assert!(error.contains("`make_nothing`") && error.contains("make_align"), "{error}");
    }
}
