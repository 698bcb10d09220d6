//! Tables and heatmaps of an explanation, for a terminal.

use crosslens_lab::analysis::explain::{Sample, Samples};
use crosslens_lab::analysis::geometry::{GeometryReport, PathReport, ReadoutGeometry};
use crosslens_lab::analysis::report::{
    ClaimReport, ControlCorpus, CorpusReport, Intervals, Rebuilt, Report, SharesReport, SiteReport, StreamReport,
};
use crosslens_lab::analysis::{Description, Part, Stream, Subset};

/// From no weight to all of it.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Widest matrix that is drawn.
const MAX_KEYS: usize = 24;
/// Longest one.
const MAX_QUERIES: usize = 24;
/// Most steps and tokens named that were seen too rarely.
const MAX_THIN: usize = 5;
/// Most words whose nearest readout is shown.
const MAX_RESEMBLANCES: usize = 6;

/// The whole explanation as lines.
pub(crate) fn report(report: &Report, samples: &Samples, description: &Description, measure: &str) -> Vec<String> {
    let mut lines = vec![heading(report)];
    for stream in &report.streams {
        let variance = &stream.variance;
        let mut line = format!(
            "{:<8} states: {:.0} % of the variance is time alone, {:.0} % token alone, {:.0} % either, {:.0} % the rest",
            stream.name,
            100.0 * variance.time,
            100.0 * variance.token,
            100.0 * variance.shared,
            100.0 * variance.rest
        );
        line += &thin(stream);
        lines.push(line);
    }
    if report.sites.is_empty() {
        lines.push(String::new());
        lines.push("this network has no attention; its states are all there is to explain".into());
    }
    lines.extend(report.claim.as_ref().map(claim_line));
    for (number, site) in report.sites.iter().enumerate() {
        lines.push(String::new());
        lines.extend(site_lines(site, measure, report.corpus.control.as_ref()));
        if let Some(sample) = samples.sentences.first() {
            lines.push(String::new());
            lines.extend(heatmaps(number, site, sample, description));
        }
    }
    if let Some(geometry) = &report.geometry {
        lines.push(String::new());
        lines.extend(geometry_lines(geometry));
    }
    lines
}

fn geometry_lines(geometry: &GeometryReport) -> Vec<String> {
    let mut lines = vec!["geometry".to_owned()];
    for stream in &geometry.streams {
        if let Some(ratio) = stream.participation_ratio {
            let held = |n: usize| 100.0 * stream.shares.iter().take(n).sum::<f64>();
            lines.push(format!(
                "  {:<8} states: 3 axes hold {:.0} % of the variance, 10 hold {:.0} %; participation ratio {ratio:.1}",
                stream.name,
                held(3),
                held(10)
            ));
        }
    }
    for spaces in &geometry.subspaces {
        let angles: Vec<String> = spaces.angles.iter().map(|angle| format!("{angle:.0}°")).collect();
        lines.push(format!(
            "  temporal paths of {} ({} dimensions) and {} ({}): principal angles {}",
            spaces.query,
            spaces.query_dimensions,
            spaces.key,
            spaces.key_dimensions,
            angles.join(" ")
        ));
    }
    lines.extend(geometry.readout.iter().flat_map(readout_lines));
    for cosines in &geometry.cosines {
        let words = cosines.words.iter().take(MAX_RESEMBLANCES);
        let words: Vec<String> = words
            .map(|word| format!("{} → {} {:.2} (next {} {:.2})", word.source, word.best, word.cosine, word.next, word.next_cosine))
            .collect();
        lines.push(format!("  input components are most like the readouts of: {}", words.join(", ")));
    }
    let alike = |path: &PathReport| {
        let steps = path.step_correlation.map_or_else(String::new, |correlation| format!(", steps in order: correlation {correlation:.2}"));
        format!("cosine {:.2} with its temporal path{steps}", path.cosine)
    };
    lines.extend(geometry.null_input.iter().map(|path| format!("  without input the {}: {}", path.stream, alike(path))));
    if let Some(lowest) = geometry.constant_words.iter().min_by(|a, b| a.cosine.total_cmp(&b.cosine)) {
        let word = lowest.word.as_deref().unwrap_or_default();
        lines.push(format!("  over one word again and again the {}, lowest for `{word}`: {}", lowest.stream, alike(lowest)));
    }
    lines.extend(geometry.notes.iter().map(|note| format!("  {note}")));
    lines
}

fn readout_lines(readout: &ReadoutGeometry) -> Vec<String> {
    let halves = [("state", &readout.state), ("context", &readout.context)];
    let mut lines = Vec::new();
    for (name, half) in halves {
        let Some((half, angles)) = half.as_ref().and_then(|half| Some((half, half.angles.as_ref()?))) else { continue };
        let centred = half.centred_angles.as_ref();
        let centred =
            centred.map_or_else(String::new, |angles| format!("; {:.0}° to {:.0}° about their mean", angles.lowest, angles.highest));
        let farthest = readout.simplex_angle.map_or_else(String::new, |angle| format!(" (farthest apart: {angle:.0}°)"));
        lines.push(format!("  {name:<7} readouts of words: {:.0}° to {:.0}° apart{centred}{farthest}", angles.lowest, angles.highest));
    }
    lines
}

fn heading(report: &Report) -> String {
    let task = match (report.task.phrase_accuracy, report.task.word_accuracy) {
        (Some(phrases), Some(words)) => format!("; {:.1} % of phrases and {:.1} % of words right", 100.0 * phrases, 100.0 * words),
        _ => String::new(),
    };
    let CorpusReport { pairs, fitted_pairs, held_out, .. } = &report.corpus;
    let fitted = if *held_out == Some(true) { format!(", fitted on {fitted_pairs} others") } else { String::new() };
    format!("{}, explained on {pairs} sentences{fitted}{task}", report.model.description)
}

/// How many steps and tokens were seen too rarely, and the rarest of them; nothing where there are none.
fn thin(stream: &StreamReport) -> String {
    let counts = &stream.counts;
    if counts.few_tokens + counts.few_steps == 0 {
        return String::new();
    }
    let tokens = stream.thin.tokens.iter().map(|token| format!("`{}`", token.word));
    let rarest: Vec<String> = tokens.chain(stream.thin.steps.iter().map(|step| format!("step {}", step.step))).take(MAX_THIN).collect();
    let rarest = if rarest.is_empty() { String::new() } else { format!(": {}", rarest.join(", ")) };
    let more = if counts.few_tokens + counts.few_steps > MAX_THIN { ", …" } else { "" };
    format!(" ({} tokens and {} steps seen fewer than five times{rarest}{more})", counts.few_tokens, counts.few_steps)
}

/// On how many sentences, and on which they were fitted.
fn explained_on(control: Option<&ControlCorpus>) -> String {
    control.map_or_else(String::new, |control| {
        let fitted = if control.held_out { format!("{} others", control.fitted_pairs) } else { "the same".into() };
        format!(", on {} sentences, fitted on {fitted}", control.pairs)
    })
}

/// How well the average attention stands for a sentence, against position.
fn claim_line(claim: &ClaimReport) -> String {
    format!(
        "from uniform to a sentence's own attention the average goes {:.1} % of the way, position alone {:.1} %: a difference of {:.1}",
        100.0 * claim.average,
        100.0 * claim.temporal,
        100.0 * claim.difference + 0.0
    )
}

fn site_lines(site: &SiteReport, measure: &str, control_corpus: Option<&ControlCorpus>) -> Vec<String> {
    let mut lines = vec![
        format!("{} attention, layer {}, head {} ({}): {}", site.kind, site.layer, site.head, site.map, site.verdict.label.to_uppercase()),
        format!("  {}", site.verdict.text),
    ];
    if let Some(shares) = &site.shares {
        lines.push(String::new());
        lines.extend(share_lines(shares, site.intervals.as_ref(), measure, &Sides::of(&site.kind)));
        if let Some(control) = &site.control {
            lines.push(format!("  with untrained weights: {}{}", corner(control, measure), explained_on(control_corpus)));
        }
    }
    lines.push(String::new());
    lines.push(format!("  {:<22} {:>12} {:>12} {:>12} {:>8}", "attention rebuilt from", "same maximum", "distance", "words right", "loss"));
    let names =
        ["temporal", "temporal+bias", "input", "residual", "temporal+input", "temporal+input+bias", "no-temporal", "uniform", "average"];
    let chosen = site.rebuilt.keys().map(String::as_str).filter(|name| !names.contains(name));
    for name in names.into_iter().chain(chosen) {
        if let Some(rebuilt) = site.rebuilt.get(name) {
            lines.push(rebuilt_line(name, rebuilt));
        }
    }
    if let Some(diagonal) = &site.diagonal {
        let last = if diagonal.direction == "forward" { "" } else { "last − " };
        let place = match Sides::of(&site.kind) {
            Sides { key, query } if key != query => format!("{key} step = {last}{query} step"),
            _ => format!("{last}their own step"),
        };
        lines.push(String::new());
        lines.push(format!(
            "  {:.1} % of the steps before the end look at {place} {} {}",
            100.0 * diagonal.share,
            if diagonal.offset < 0 { '−' } else { '+' },
            diagonal.offset.abs()
        ));
    }
    let attention = site.error.attention.map_or_else(|| "was not recorded".into(), |error| format!("is theirs within {error:.0e}"));
    lines.push(format!(
        "  errors: the terms add up to the score within {:.0e} of it; the model's own attention {attention}",
        site.error.score
    ));
    lines
}

fn rebuilt_line(name: &str, rebuilt: &Rebuilt) -> String {
    let (words, loss) = match &rebuilt.causal {
        Some(causal) => (format!("{:.1} %", 100.0 * causal.word_accuracy), format!("{:.3}", causal.loss)),
        None => ("-".into(), "-".into()),
    };
    let name = match name {
        "temporal" => "position alone",
        "temporal+bias" => "position and bias",
        "input" => "token alone",
        "residual" => "the rest alone",
        "temporal+input" => "position and token",
        "temporal+input+bias" => "position, bias, token",
        "no-temporal" => "all but position",
        other => other,
    };
    format!("  {name:<22} {:>10.1} % {:>12.3} {words:>12} {loss:>8}", 100.0 * rebuilt.argmax, rebuilt.tv)
}

/// What a site's keys and queries are steps of.
struct Sides {
    key: &'static str,
    query: &'static str,
}

impl Sides {
    /// Of attention of this kind, as reports name it.
    fn of(kind: &str) -> Self {
        match kind {
            "encoder-self" => Self { key: "source", query: "source" },
            "decoder-self" => Self { key: "target", query: "target" },
            _ => Self { key: "source", query: "target" },
        }
    }
}

/// What a table of shares shows.
fn title(measure: &str, sides: &Sides) -> String {
    match measure {
        "centred" => format!("share of the score's variance along the {}, %", sides.key),
        "top1" => "share at the highest score, %".into(),
        top => format!("share at the {} highest scores, %", top.trim_start_matches("top")),
    }
}

fn share_lines(shares: &SharesReport, intervals: Option<&Intervals>, measure: &str, sides: &Sides) -> Vec<String> {
    let names = Part::ALL.map(Part::name);
    let resampled = intervals.map_or_else(String::new, |intervals| format!(", with 95 % intervals of {} resamples", intervals.resamples));
    let mut lines = vec![format!("  {}{resampled}", title(measure, sides))];
    // Low and high of the piece at this place.
    let between = |measure: &str, place: usize| intervals.and_then(|intervals| intervals.shares.get(measure)?.get(place)).copied();
    let width = if intervals.is_some() { 21 } else { 10 };
    let row = |name: &str, first: usize, row: &[f64; 3]| {
        let cells = row.iter().enumerate().map(|(place, &share)| format!(" {:>width$}", cell(share, between(measure, first + place))));
        format!("  {name:<10}{}", cells.collect::<String>())
    };
    let head = |corner: &str| format!("  {corner:<10} {:>width$} {:>width$} {:>width$}", names[0], names[1], names[2]);
    if let Some(parts) = shares.parts.get(measure) {
        lines.push(head(""));
        lines.extend([row("query", 0, &parts.query), row("key", 3, &parts.key)]);
        return lines;
    }
    if let Some(table) = shares.tables.get(measure) {
        lines.push(format!("{}   ← part of the key", head("query ↓")));
        lines.extend(names.into_iter().zip(table).enumerate().map(|(place, (name, shares))| row(name, 3 * place, shares)));
    }
    let mean: f64 = shares.query_mean.iter().sum();
    if measure == "centred" && mean.abs() > 0.01 {
        lines.push(format!("  of the first row {:.1} is the same at every {} step", 100.0 * mean, sides.query));
    }
    let bias = match measure {
        "centred" if shares.position_bias != 0.0 => Some((shares.position_bias, between("position_bias", 0))),
        top => shares.position_bias_top.get(top).map(|&share| (share, intervals.and_then(|all| all.position_bias_top.get(top)).copied())),
    };
    lines.extend(bias.map(|(share, interval)| format!("  {:<10} {:>width$}", "bias", cell(share, interval))));
    lines
}

/// A share in per cent, with its interval where there is one.
fn cell(share: f64, interval: Option<[f64; 2]>) -> String {
    let percent = 100.0 * share;
    interval.map_or_else(|| format!("{percent:.1}"), |[low, high]| format!("{percent:.1} ({:.1} to {:.1})", 100.0 * low, 100.0 * high))
}

/// The temporal corner of a table, in words.
fn corner(shares: &SharesReport, measure: &str) -> String {
    match (shares.tables.get(measure), shares.parts.get(measure)) {
        (Some(table), _) => format!("temporal × temporal {:.1} %", 100.0 * table[0][0]),
        (_, Some(parts)) => format!("temporal {:.1} %", 100.0 * (parts.query[0] + parts.key[0])),
        _ => "nothing".into(),
    }
}

/// The attention of one sentence, and what each part alone would attend to.
fn heatmaps(number: usize, site: &SiteReport, sample: &Sample, description: &Description) -> Vec<String> {
    let kind = &description.sites[number];
    let (query, key) = (&description.streams[kind.query], &description.streams[kind.key]);
    let tokens = |stream: &Stream| sample.sentence.tokens(stream, description.words(stream.side)).into_owned();
    let (query_tokens, key_tokens) = (tokens(query), tokens(key));
    let (n_queries, n_keys) = (query_tokens.len(), key_tokens.len());
    if n_keys == 0 || n_queries == 0 {
        return Vec::new();
    }
    let is_additive = site.map == "additive";
    let pieces = &sample.pieces[number];
    let rebuilt = |subset: Subset| -> Vec<f32> {
        let mut weights = vec![0.0; n_queries * n_keys];
        for query in 0..n_queries {
            let n_visible = kind.visible.n_keys(query, n_keys);
            let row = &mut weights[query * n_keys..][..n_visible];
            for piece in (0..pieces.len() / (n_queries * n_keys)).filter(|&piece| subset.holds(piece)) {
                let scores = &pieces[(piece * n_queries + query) * n_keys..][..n_visible];
                row.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
            }
            softmax(row);
        }
        weights
    };
    let mut maps = vec![("attention", sample.attention[number].clone())];
    for (name, part) in [("position", Part::Temporal), ("token", Part::Input), ("rest", Part::Residual)] {
        maps.push((name, rebuilt(Subset::made_of(&[part], is_additive))));
    }
    let shown = (n_queries.min(MAX_QUERIES), n_keys.min(MAX_KEYS));
    let text: Vec<_> = key_tokens.iter().take(shown.1).map(|&token| description.words(key.side).name(token)).collect();
    let sides = Sides::of(&site.kind);
    let mut lines = vec![format!("  one sentence, and what each part alone would attend to; {}: {}", sides.key, text.join(" "))];
    let width = shown.1.max(9);
    let titles: Vec<String> = maps.iter().map(|(name, _)| format!("{name:<width$}")).collect();
    lines.push(format!("  {:>10}  {}", if sides.query == "source" { "source" } else { "fed" }, titles.join("  ")));
    for (step, &token) in query_tokens.iter().enumerate().take(shown.0) {
        let rows: Vec<String> = maps
            .iter()
            .map(|(_, weights)| {
                let row: String = weights[step * n_keys..][..shown.1].iter().map(|&weight| shade(weight)).collect();
                format!("{row:<width$}")
            })
            .collect();
        let name: String = description.words(query.side).name(token).chars().take(10).collect();
        lines.push(format!("  {name:>10}  {}", rows.join("  ")));
    }
    if shown != (n_queries, n_keys) {
        lines.push(format!("  (the first {} × {} of {n_queries} × {n_keys} steps)", shown.0, shown.1));
    }
    lines
}

/// By the root of the weight, so that a diffuse row is seen to be one.
fn shade(weight: f32) -> char {
    let place = (weight.clamp(0.0, 1.0).sqrt() * SHADES.len() as f32) as usize;
    SHADES[place.min(SHADES.len() - 1)]
}

fn softmax(row: &mut [f32]) {
    let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = (*x - highest).exp();
        sum += *x;
    }
    row.iter_mut().for_each(|x| *x /= sum);
}
