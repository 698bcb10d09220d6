//! Pages to be opened.

use std::path::{Path, PathBuf};

use crosslens_lab::Shown;
use crosslens_lab::analysis::explain::Explained;
use crosslens_lab::analysis::page::Page;
use crosslens_lab::analysis::timeline::{Timeline, TimelinePoint};

use super::common::{TINY, succeed};
use super::planted::{Plan, Planted, pieces_of_words};

/// Trains the tiny network into `run`.
pub(crate) fn tiny(folder: &Path) {
    succeed(folder, &["train", TINY, "--out", "run", "--quiet"]);
}

/// The tiny network trained a little further again and again, explained each time; its page, and what was found.
pub(crate) fn with_timeline(folder: &Path) -> (PathBuf, Timeline) {
    let mut points = Vec::new();
    succeed(folder, &["train", TINY, "--out", "run", "--quiet", "--steps", "10"]);
    for step in [10, 40, 80, 150, 400] {
        if step > 10 {
            succeed(folder, &["train", "run", "--resume", "--quiet", "--steps", &step.to_string()]);
        }
        succeed(folder, &["explain", "run", "--samples", "100", "--causal", "0", "--save", "point.json", "--json"]);
        let found = Explained::load(&folder.join("point.json"), 0).expect("the report just saved");
        points.push(TimelinePoint::of(step, &found.report, Some(&found.samples)));
    }
    let timeline = Timeline::new(points);
    timeline.save(&crosslens_lab::train::RunFolder::at(folder.join("run")).timeline_file()).expect("writable");
    succeed(folder, &["report", "run", "-o", "page.html", "--sentences", "300", "--samples", "6"]);
    (folder.join("page.html"), timeline)
}

/// A page of planted heads.
pub(crate) fn planted(folder: &Path, plan: &Plan, n_samples: usize) -> (PathBuf, Explained) {
    let explained = Planted::of(plan).explain(n_samples);
    let shown = Shown { name: "planted".into(), explained, training: Vec::new(), timeline: None };
    let path = folder.join("planted.html");
    shown.on(Page::new()).write(&path).expect("writable");
    (path, shown.explained)
}

/// A page of a single head that goes by position, with so many source and target tokens.
pub(crate) fn one_head(folder: &Path, lengths: (usize, usize), n_samples: usize) -> (PathBuf, Explained) {
    let mut corpus = Planted::of(&Plan { n_layers: 1, n_heads: 1, n_sentences: 30, lengths, names: pieces_of_words() });
    corpus.keep_sites(1);
    let shown = Shown { name: "one".into(), explained: corpus.explain(n_samples), training: Vec::new(), timeline: None };
    let path = folder.join("one.html");
    shown.on(Page::new()).write(&path).expect("writable");
    (path, shown.explained)
}

/// Twelve layers of twelve heads.
pub(crate) fn many_heads(n_sentences: u64, length: usize) -> Plan {
    Plan { n_layers: 12, n_heads: 12, n_sentences, lengths: (length, length), names: pieces_of_words() }
}
