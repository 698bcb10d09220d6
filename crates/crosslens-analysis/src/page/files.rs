//! The viewer's files, in the program itself.

/// One module of the viewer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Module {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        &[$(Module { name: $name, text: include_str!(concat!("../../viewer/", $name)) }),*]
    };
}

/// Every module, each after those it imports from.
pub(super) const MODULES: &[Module] = modules![
    "dom.js",
    "colours.js",
    "attention.js",
    "safetensors.js",
    "source.js",
    "state.js",
    "heatmap.js",
    "download.js",
    "pen.js",
    "parts.js",
    "live.js",
    "samples.js",
    "sound.js",
    "picture.js",
    "scene.js",
    "atlas.js",
    "head.js",
    "components.js",
    "training.js",
    "compare.js",
    "claims.js",
    "main.js",
];

pub(super) const INDEX: &str = include_str!("../../viewer/index.html");
pub(super) const STYLE: &str = include_str!("../../viewer/style.css");
/// Lines of `index.html` that the writer replaces.
pub(super) const STYLE_LINK: &str = "<link rel=\"stylesheet\" href=\"style.css\">";
pub(super) const SCRIPT_LINK: &str = "<script type=\"module\" src=\"main.js\"></script>";
pub(super) const POLICY_PLACE: &str = "<!-- Content-Security-Policy -->";

/// One file of the viewer, for those who serve it as it is.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Its media type.
    pub media_type: &'static str,
}

/// `index.html`, `style.css` and every module, as they are.
pub fn files() -> Vec<File> {
    let module = |module: &Module| File { name: module.name, text: module.text, media_type: "text/javascript" };
    let page = [
        File { name: "index.html", text: INDEX, media_type: "text/html; charset=utf-8" },
        File { name: "style.css", text: STYLE, media_type: "text/css" },
    ];
    page.into_iter().chain(MODULES.iter().map(module)).collect()
}
