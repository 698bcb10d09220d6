//! The page that shows reports: one HTML file that needs no network.
//!
//! The viewer's files lie in `viewer/` as plain ES modules. A browser loads no module from disk, so they are joined into one inline
//! script (`bundle.rs`); the page's Content-Security-Policy names that script and the style sheet by their hashes and forbids everything
//! else, any request included. Reports and sentences are blocks of compressed text that the page unpacks as it needs them. The colours are
//! those of figures: the page's index hands them over.

mod blocks;
mod bundle;
mod files;
mod scene;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::explain::Samples;
use crate::figure::{Colours, Theme};
use crate::replace_file;
use crate::report::Report;
use crate::timeline::{Timeline, TrainingPoint};
use blocks::packed;

pub use blocks::{average_bytes, sample_bytes, sample_header, value_norms};
pub use files::{File, files};
pub use scene::codes_json;

/// Why a page cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// The system says no.
    #[error("cannot write `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// A page to be written.
///
/// ```
/// # use crosslens_analysis::page::Page;
/// let html = Page::new().title("nothing yet").html();
/// assert!(html.starts_with("<!doctype html>"));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Page {
    title: Option<String>,
    /// Where a live server answers, relative to the page.
    api: Option<String>,
    /// What a reproduction found, compressed.
    claims: Option<String>,
    entries: Vec<Entry>,
}

/// One report in a page, compressed.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    report: serde_json::Value,
    samples: Vec<serde_json::Value>,
    codes: serde_json::Value,
    /// Whether some sentence can be heard.
    has_sound: bool,
    training: Vec<TrainingPoint>,
    timeline: Option<Timeline>,
    averages: String,
    /// By sentence.
    blocks: Vec<String>,
}

impl Page {
    /// Without a report.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the browser's tab says.
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Adds a report with its sentences; the first is the one that opens.
    pub fn report(mut self, name: impl Into<String>, report: &Report, samples: &Samples) -> Self {
        self.entries.push(Entry {
            name: name.into(),
            report: serde_json::to_value(report).expect("a report has string keys"),
            samples: samples.sentences.iter().map(|sample| sample_header(samples, sample)).collect(),
            codes: codes_json(samples),
            has_sound: scene::has_sound(samples),
            training: Vec::new(),
            timeline: None,
            averages: packed(&average_bytes(samples)),
            blocks: samples.sentences.iter().map(|sample| packed(&sample_bytes(samples, sample))).collect(),
        });
        self
    }

    /// Adds the training curves of the last report added.
    pub fn training(mut self, points: &[TrainingPoint]) -> Self {
        if let Some(entry) = self.entries.last_mut() {
            entry.training = points.to_vec();
        }
        self
    }

    /// Adds what explanations found at the checkpoints of the last report added.
    pub fn timeline(mut self, timeline: &Timeline) -> Self {
        if let Some(entry) = self.entries.last_mut() {
            entry.timeline = Some(timeline.clone());
        }
        self
    }

    /// Adds the claims of a reproduction, as `reproduce.json` has them; they open first.
    pub fn claims(self, claims: &serde_json::Value) -> Self {
        Self { claims: Some(packed(claims.to_string().as_bytes())), ..self }
    }

    /// Makes it the page of a server whose JSON API answers below `api`, such as `api/`; requests may go there and nowhere else.
    pub fn live(self, api: impl Into<String>) -> Self {
        Self { api: Some(api.into()), ..self }
    }

    /// The whole page.
    pub fn html(&self) -> String {
        let mut html = Vec::new();
        self.write_to(&mut html).expect("memory takes everything");
        String::from_utf8(html).expect("text all of it")
    }

    /// Writes the page to a file, whole or not at all; returns its size in bytes.
    pub fn write(&self, path: &Path) -> Result<u64, PageError> {
        let mut size = 0;
        let write = |file: &mut dyn Write| {
            let mut counted = Counted { file, size: 0 };
            self.write_to(&mut counted)?;
            size = counted.size;
            Ok(())
        };
        replace_file(path, write).map_err(|source| PageError::Io { path: path.to_owned(), source })?;
        Ok(size)
    }

    /// What it loads besides itself; what a server will be asked is not known, so its page may play sounds.
    fn loads(&self) -> &'static str {
        if self.api.is_some() {
            LIVE
        } else if self.entries.iter().any(|entry| entry.has_sound) {
            "; media-src data:"
        } else {
            ""
        }
    }

    /// Head, first report, script, then everything that can wait: the page shows itself before the rest is read.
    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let (style, script) = (format!("\n{}", files::STYLE), format!("\n{}", bundle::script()));
        let (before, rest) = files::INDEX.split_once(files::STYLE_LINK).expect("index.html links its style: tested");
        let (body, after) = rest.split_once(files::SCRIPT_LINK).expect("index.html loads its script: tested");
        let title = self.title.as_deref().unwrap_or("Crosslens");
        let policy = policy(&hash(&script), &hash(&style), self.loads());
        let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
        out.write_all(
            before.replace(files::POLICY_PLACE, &policy).replace("<title>Crosslens", &format!("<title>{}", escaped(title))).as_bytes(),
        )?;
        write!(out, "<style>{style}</style>{body}")?;
        let reports: Vec<_> = self.entries.iter().map(Entry::summary).collect();
        write_block(out, "index", "application/json", &index_text(title, self.api.as_deref(), self.claims.is_some(), &reports))?;
        if let Some(claims) = &self.claims {
            write_block(out, "claims", "application/octet-stream", claims)?;
        }
        for (number, entry) in self.entries.iter().enumerate().take(1) {
            entry.write_report(out, number)?;
        }
        writeln!(out, "<script>{script}</script>")?;
        for (number, entry) in self.entries.iter().enumerate() {
            if number > 0 {
                entry.write_report(out, number)?;
            }
            entry.write_samples(out, number)?;
        }
        out.write_all(after.as_bytes())
    }
}

impl Entry {
    fn summary(&self) -> serde_json::Value {
        json!({ "name": self.name, "model": self.report["model"]["description"], "n_sites": self.report["sites"].as_array().map_or(0, Vec::len), "n_samples": self.samples.len() })
    }

    fn write_report(&self, out: &mut dyn Write, number: usize) -> io::Result<()> {
        let whole = report_json(&self.name, self.report.clone(), &self.samples, &self.codes, &self.training, self.timeline.as_ref());
        write_block(out, &format!("report-{number}"), blocks::KIND, &packed(whole.to_string().as_bytes()))
    }

    fn write_samples(&self, out: &mut dyn Write, number: usize) -> io::Result<()> {
        write_block(out, &format!("averages-{number}"), blocks::KIND, &self.averages)?;
        for (sample, block) in self.blocks.iter().enumerate() {
            write_block(out, &format!("sample-{number}-{sample}"), blocks::KIND, block)?;
        }
        Ok(())
    }
}

/// What a page or a server says of a report: the JSON of the block `report-{r}`; `samples` are headers ([`sample_header`]), `codes` what codes
/// of the source stand for ([`codes_json`]).
pub fn report_json(
    name: &str,
    report: serde_json::Value,
    samples: &[serde_json::Value],
    codes: &serde_json::Value,
    training: &[TrainingPoint],
    timeline: Option<&Timeline>,
) -> serde_json::Value {
    json!({ "name": name, "report": report, "samples": samples, "codes": codes, "training": training, "timeline": timeline })
}

/// A piece of data; the browser keeps it as text and runs nothing.
fn write_block(out: &mut dyn Write, id: &str, kind: &str, text: &str) -> io::Result<()> {
    writeln!(out, "<script type=\"{kind}\" id=\"crosslens-{id}\">{text}</script>")
}

/// What the block `index` says, as JSON in which nothing ends the element it stands in.
fn index_text(title: &str, api: Option<&str>, has_claims: bool, reports: &[serde_json::Value]) -> String {
    let [light, dark] = [Theme::Light, Theme::Dark].map(|theme| Colours::of(theme).scheme());
    let colours = json!({ "light": light, "dark": dark });
    let index = json!({ "title": title, "api": api, "claims": has_claims, "colours": colours, "reports": reports });
    index.to_string().replace('<', "\\u003c")
}

/// The block `index` of a page that asks a server, at an address such as `api/`, for everything else.
pub fn live_index(title: &str, api: &str) -> String {
    index_text(title, Some(api), false, &[])
}

/// What the page of a server loads besides itself: answers of the server, and the sounds in them.
const LIVE: &str = "; media-src data:; connect-src 'self'";

/// What a page may load, and no more: `script` and `style` are where these come from, as a Content-Security-Policy names it.
fn policy(script: &str, style: &str, more: &str) -> String {
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data: blob:{more}; base-uri 'none'; form-action 'none'"
    )
}

/// The Content-Security-Policy of a server's page, whose files come from the server itself.
pub fn live_policy() -> String {
    policy("self", "self", LIVE)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A text's hash as a Content-Security-Policy names it.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

struct Counted<'a> {
    file: &'a mut dyn Write,
    size: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.size += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests;
