//! What `cargo xtask test` and `cargo xtask check` do, step by step, and what each step proves.

use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Result, bail};

use crate::args::TestOptions;
use crate::cargo::CargoCall;
use crate::metadata::Workspace;
use crate::python::{self, Wanted};
use crate::tools::{self, Chromium, Component};
use crate::{crate_table, direction, licences, pages, published};

/// How a step ended that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// Not done, for the reason given.
    Skipped(String),
}

/// Whether a call of cargo can be made at all.
enum Readiness {
    Ready,
    /// It cannot, for the reason given.
    Lacking(String),
}

/// One thing to prove.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// What a user types to repeat this step alone.
    pub(crate) command: String,
    pub(crate) action: Box<dyn Fn() -> Result<Outcome>>,
}

/// Everything, in the order in which a mistake is cheapest to find.
pub(crate) fn of_test(options: TestOptions) -> Result<Vec<Step>> {
    let workspace = Rc::new(Workspace::load()?);
    Ok(vec![
        room(&workspace),
        format(&workspace, options.offline),
        lints(&workspace, options.offline),
        without_pictures(&workspace, options.offline),
        with_devices(&workspace, options.offline),
        browser(&workspace, options.offline),
        published_network(&workspace, options.offline),
        tests(&workspace, options),
        devices(&workspace, options.offline),
        python(&workspace, Wanted { offline: options.offline, heavy: options.heavy }),
        doc_tests(&workspace, options.offline),
        documentation(&workspace, options.offline),
        dependency_direction(&workspace),
        fresh_crate_table(&workspace),
        leading_pages(&workspace),
        permitted_licences(&workspace, options.offline),
    ])
}

/// The quick part, for use while editing.
pub(crate) fn of_check() -> Result<Vec<Step>> {
    let workspace = Rc::new(Workspace::load()?);
    Ok(vec![
        format(&workspace, false),
        lints(&workspace, false),
        dependency_direction(&workspace),
        fresh_crate_table(&workspace),
        leading_pages(&workspace),
    ])
}

/// Proves that every file looks as rustfmt would write it.
fn format(workspace: &Rc<Workspace>, offline: bool) -> Step {
    cargo_step("format", workspace, CargoCall::new("fmt --all --check"), move || needs(Component::Rustfmt, offline))
}

/// Proves that no target of any crate, tests, examples and benchmarks included, has a warning.
fn lints(workspace: &Rc<Workspace>, offline: bool) -> Step {
    let call = CargoCall::new(&format!("clippy --workspace --all-targets {} -- -D warnings", offline_flag(offline)));
    cargo_step("clippy", workspace, call, move || needs(Component::Clippy, offline))
}

/// Proves that the program, and every crate below it, builds without PDF and PNG, its one feature, and without a warning.
fn without_pictures(workspace: &Rc<Workspace>, offline: bool) -> Step {
    let call = CargoCall::new(&format!("clippy -p crosslens --no-default-features {} -- -D warnings", offline_flag(offline)));
    cargo_step("no pictures", workspace, call, move || needs(Component::Clippy, offline))
}

/// Proves that what is compiled for devices alone builds everywhere it is passed on to, without a warning: with candle, which every machine
/// can build.
fn with_devices(workspace: &Rc<Workspace>, offline: bool) -> Step {
    let features = "crosslens/candle,crosslens-py/candle";
    let call = CargoCall::new(&format!(
        "clippy -p crosslens -p crosslens-pretrained -p crosslens-py --features {features} --all-targets {} -- -D warnings",
        offline_flag(offline)
    ));
    cargo_step("with devices", workspace, call, move || needs(Component::Clippy, offline))
}

/// Gets the browsers that some tests need; without Chromium they are skipped, and this step says so.
fn browser(workspace: &Rc<Workspace>, offline: bool) -> Step {
    own_step("browser", workspace, "apt-get install chromium firefox-esr fonts-droid-fallback", move |_| {
        Ok(Chromium::ensure(offline)?.map_or(Outcome::Passed, Outcome::Skipped))
    })
}

/// Gets the weights of a network that others trained and published; without them some tests are skipped, and this step says so.
fn published_network(workspace: &Rc<Workspace>, offline: bool) -> Step {
    let command = format!("pip install --no-deps --target FOLDER {}", published::PACKAGE);
    own_step("e2k", workspace, &command, move |workspace| published::ensure(&workspace.root, offline))
}

/// Gigabytes that all tests, lints and the Python package take in the target folder.
const ROOM_GIGABYTES: f64 = 10.0;

/// Refuses to begin where the linker would die of a full disk half an hour later.
fn room(workspace: &Rc<Workspace>) -> Step {
    own_step("room", workspace, "df -h target", |workspace| {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.root.join("target"), PathBuf::from);
        match tools::free_gigabytes(&target) {
            Some(free) if free < ROOM_GIGABYTES && !target.join("debug").exists() => bail!(
                "the tests take some {ROOM_GIGABYTES:.0} GB in `{}`, where {free:.1} are free: make room, or name another folder in CARGO_TARGET_DIR",
                target.display()
            ),
            _ => Ok(Outcome::Passed),
        }
    })
}

/// Proves the behaviour: unit, property, golden and command-line tests; the slow ones if asked for.
fn tests(workspace: &Rc<Workspace>, options: TestOptions) -> Step {
    let offline = offline_flag(options.offline);
    // Offline a missing browser stays missing; else the step before has got it.
    let with_browser = |call: CargoCall| if options.offline && !Chromium::is_there() { call.env(Chromium::OFF, "1") } else { call };
    let has_nextest = tools::has_nextest();
    let call = if has_nextest {
        let ignored = if options.slow { "--run-ignored all" } else { "" };
        CargoCall::new(&format!("nextest run --workspace {offline} {ignored}"))
    } else {
        let ignored = if options.slow { "-- --include-ignored" } else { "" };
        CargoCall::new(&format!("test --workspace --lib --bins --tests --examples {offline} {ignored}"))
    };
    let call = with_browser(call);
    own_step("tests", workspace, &call.to_string(), move |workspace| {
        if !has_nextest {
            println!("cargo-nextest is not installed: running `cargo test` instead, the same tests one crate after another");
        }
        // The step before may have got them just now.
        let weights = published::folder()?;
        let call = if weights.is_dir() { call.clone().env(published::NAMED, weights.to_string_lossy()) } else { call.clone() };
        call.run(&workspace.root).map(passed)
    })
}

/// Proves that what goes to a device of candle's comes back right: the models that are held against transformers once more, their products
/// made by candle, on the one device that every machine has.
fn devices(workspace: &Rc<Workspace>, offline: bool) -> Step {
    let call = CargoCall::new(&format!("test -p crosslens-pretrained --features candle --lib --test parity {}", offline_flag(offline)));
    cargo_step("devices", workspace, call.env("CROSSLENS_TEST_DEVICE", "candle"), ready)
}

/// Proves the Python package: tests, types and stubs, in environments kept in the user's cache folder.
pub(crate) fn python(workspace: &Rc<Workspace>, wanted: Wanted) -> Step {
    own_step("python", workspace, "cargo xtask python", move |workspace| python::check(&workspace.root, wanted))
}

/// Proves that the examples in the documentation compile and hold. Those marked `ignore` are not slow but unfit to run.
fn doc_tests(workspace: &Rc<Workspace>, offline: bool) -> Step {
    cargo_step("doc tests", workspace, CargoCall::new(&format!("test --doc --workspace {}", offline_flag(offline))), ready)
}

/// Proves that the documentation builds and that no link in it is broken.
fn documentation(workspace: &Rc<Workspace>, offline: bool) -> Step {
    let call = CargoCall::new(&format!("doc --workspace --no-deps {}", offline_flag(offline)));
    cargo_step("documentation", workspace, call.env("RUSTDOCFLAGS", "-D warnings"), ready)
}

/// Proves that crates depend on each other as the architecture says.
fn dependency_direction(workspace: &Rc<Workspace>) -> Step {
    own_step("direction", workspace, "cargo xtask direction", |workspace| direction::check(workspace).map(passed))
}

/// Proves that the crate table in the documentation is the one the manifests give.
fn fresh_crate_table(workspace: &Rc<Workspace>) -> Step {
    own_step("crate table", workspace, "cargo xtask crates --check", |workspace| crate_table::check(workspace).map(passed))
}

/// Proves that the pages people read link to and name nothing that is not there.
fn leading_pages(workspace: &Rc<Workspace>) -> Step {
    own_step("pages", workspace, "cargo xtask pages", |workspace| pages::check(&workspace.root).map(passed))
}

/// Proves that every dependency may be used and comes from crates.io; `cargo deny` looks deeper where it is installed.
fn permitted_licences(workspace: &Rc<Workspace>, offline: bool) -> Step {
    own_step("licences", workspace, "cargo xtask licences", move |workspace| licences::check(workspace, offline))
}

/// A step that is one call of cargo, made if `prepare` finds that it can be.
fn cargo_step(name: &'static str, workspace: &Rc<Workspace>, call: CargoCall, prepare: impl Fn() -> Result<Readiness> + 'static) -> Step {
    let (workspace, command) = (Rc::clone(workspace), call.to_string());
    let action = move || match prepare()? {
        Readiness::Ready => call.run(&workspace.root).map(passed),
        Readiness::Lacking(reason) => Ok(Outcome::Skipped(reason)),
    };
    Step { name, command, action: Box::new(action) }
}

/// A step that is a check of our own on the workspace.
fn own_step(name: &'static str, workspace: &Rc<Workspace>, command: &str, check: impl Fn(&Workspace) -> Result<Outcome> + 'static) -> Step {
    let workspace = Rc::clone(workspace);
    Step { name, command: command.to_owned(), action: Box::new(move || check(&workspace)) }
}

fn passed((): ()) -> Outcome {
    Outcome::Passed
}

fn ready() -> Result<Readiness> {
    Ok(Readiness::Ready)
}

fn needs(component: Component, offline: bool) -> Result<Readiness> {
    Ok(match component.ensure(offline)? {
        true => Readiness::Ready,
        false => Readiness::Lacking(format!("{} is not installed and --offline installs nothing", component.name())),
    })
}

fn offline_flag(offline: bool) -> &'static str {
    if offline { "--offline" } else { "" }
}
