//! What must hold for every description and every sentence, whether it is written, read or imported.

use std::path::Path;

use super::{RecordingError, name};
use crate::{Description, GridBias, Linear, PositionBias, Readout, Recorded, ScoreMap, Side, Site, SiteKind, Token, Words};

/// Fails unless a description fits together: sites name streams of their side, and maps have the shapes those streams ask for.
pub(super) fn description(path: &Path, description: &Description) -> Result<(), RecordingError> {
    words(path, "source", &description.source)?;
    words(path, "target", &description.target)?;
    streams(path, description)?;
    for place in 0..description.sites.len() {
        site(path, description, place)?;
    }
    description.readout.as_ref().map_or(Ok(()), |map| readout(path, map))
}

fn words(path: &Path, side: &str, words: &Words) -> Result<(), RecordingError> {
    let contradiction = |what: String| RecordingError::Description { path: path.to_owned(), what };
    if words.names.len() > words.count as usize {
        return Err(contradiction(format!("{} names for {} words of the {side}", words.names.len(), words.count)));
    }
    match words.end {
        Some(end) if end >= words.count => Err(contradiction(format!("the {side} ends in token {end} of {} words", words.count))),
        _ => Ok(()),
    }
}

fn streams(path: &Path, description: &Description) -> Result<(), RecordingError> {
    let contradiction = |what: String| RecordingError::Description { path: path.to_owned(), what };
    let mut names = std::collections::BTreeSet::new();
    for stream in &description.streams {
        if stream.name.is_empty() {
            return Err(contradiction("a stream has no name".into()));
        }
        if stream.d == 0 {
            return Err(contradiction(format!("the states of `{}` have no dimension", stream.name)));
        }
        if !names.insert(&stream.name) {
            return Err(RecordingError::Duplicate { path: path.to_owned(), name: stream.name.clone() });
        }
    }
    Ok(())
}

/// The sides of keys and queries.
pub(super) fn sides(kind: SiteKind) -> (Side, Side) {
    match kind {
        SiteKind::Cross => (Side::Source, Side::Target),
        SiteKind::EncoderSelf => (Side::Source, Side::Source),
        SiteKind::DecoderSelf => (Side::Target, Side::Target),
    }
}

fn site(path: &Path, description: &Description, place: usize) -> Result<(), RecordingError> {
    let Site { kind, query, key, map, value, .. } = &description.sites[place];
    let stream = |stream: usize| {
        let streams = description.streams.len();
        let unknown = || RecordingError::UnknownStream { path: path.to_owned(), site: place, stream, streams };
        description.streams.get(stream).ok_or_else(unknown)
    };
    let (query, key) = (stream(*query)?, stream(*key)?);
    if (key.side, query.side) != sides(*kind) {
        let what = format!("site {place} is of kind `{}`, but `{}` asks `{}`", kind.name(), query.name, key.name);
        return Err(RecordingError::Description { path: path.to_owned(), what });
    }

    let misfit =
        |map: &str, what: String| RecordingError::Map { path: path.to_owned(), map: format!("the {map} map of site {place}"), what };
    score_map(map, query.d, key.d).map_err(|what| misfit("score", what))?;
    let Some(value) = value else { return Ok(()) };
    linear(value).and_then(|()| reads(value, key.d)).map_err(|what| misfit("value", what))
}

/// Says what does not fit between a score map and the dimensions of the states it reads.
fn score_map(map: &ScoreMap, d_query: usize, d_key: usize) -> Result<(), String> {
    match map {
        ScoreMap::Dot { scale } => {
            finite(&[*scale])?;
            same("dimensions of query and key", d_query, d_key)
        }
        ScoreMap::Bilinear { query } => {
            linear(query)?;
            reads(query, d_query)?;
            same("dimensions written and those of the key", query.d_out, d_key)?;
            without_bias(query)
        }
        ScoreMap::Projected { query, key, scale, position_bias } => {
            finite(&[*scale])?;
            two_maps(query, key, d_query, d_key)?;
            match position_bias {
                Some(PositionBias::Distance(bias)) if bias.values.is_empty() => Err("its position bias is empty".into()),
                Some(PositionBias::Grid(GridBias { rows, columns, values }))
                    if GridBias::n_values(*rows, *columns) != Some(values.len()) =>
                {
                    Err(format!("its position bias has {} values, not those of {rows} rows and {columns} columns", values.len()))
                }
                Some(bias) => finite(bias.values()),
                None => Ok(()),
            }
        }
        ScoreMap::Additive { query, key, vector } => {
            two_maps(query, key, d_query, d_key)?;
            without_bias(query)?;
            same("dimensions written and those of the vector", query.d_out, vector.len())?;
            finite(vector)
        }
    }
}

fn two_maps(query: &Linear, key: &Linear, d_query: usize, d_key: usize) -> Result<(), String> {
    linear(query)?;
    linear(key)?;
    reads(query, d_query)?;
    reads(key, d_key)?;
    same("dimensions written for query and key", query.d_out, key.d_out)
}

fn readout(path: &Path, readout: &Readout) -> Result<(), RecordingError> {
    let misfit = |what| RecordingError::Map { path: path.to_owned(), map: "the readout".into(), what };
    linear(&readout.map).map_err(misfit)?;
    match readout.d_state.checked_add(readout.d_context) {
        Some(d) if d <= readout.map.d_in => Ok(()),
        _ => Err(misfit(format!(
            "it reads {} dimensions, not {} of the state and {} of the context",
            readout.map.d_in, readout.d_state, readout.d_context
        ))),
    }
}

/// A map that is as large as it says.
fn linear(map: &Linear) -> Result<(), String> {
    if map.d_in == 0 || map.d_out == 0 {
        return Err(format!("it maps {} dimensions to {}", map.d_in, map.d_out));
    }
    if map.d_in.checked_mul(map.d_out) != Some(map.weights.len()) {
        return Err(format!("{} weights for {} dimensions to {}", map.weights.len(), map.d_in, map.d_out));
    }
    if !map.bias.is_empty() {
        same("dimensions written and those of the bias", map.d_out, map.bias.len())?;
    }
    finite(&map.weights)?;
    finite(&map.bias)
}

fn reads(map: &Linear, d: usize) -> Result<(), String> {
    same("dimensions read and those of the states", map.d_in, d)
}

fn without_bias(map: &Linear) -> Result<(), String> {
    if map.bias.is_empty() { Ok(()) } else { Err("it has a bias where there is none".into()) }
}

fn same(what: &str, a: usize, b: usize) -> Result<(), String> {
    if a == b { Ok(()) } else { Err(format!("{what} differ, {a} and {b}")) }
}

fn finite(numbers: &[f32]) -> Result<(), String> {
    if is_finite(numbers) { Ok(()) } else { Err("it holds a number that is not finite".into()) }
}

fn is_finite(numbers: &[f32]) -> bool {
    numbers.iter().all(|number| number.is_finite())
}

/// Fails unless a sentence fits its description; `number` is its place in the recording.
pub(super) fn sentence(path: &Path, description: &Description, number: u64, sentence: &Recorded) -> Result<(), RecordingError> {
    let check = Sentence { path, number };
    check.tokens(Side::Source, &sentence.source, &description.source)?;
    check.tokens(Side::Target, &sentence.fed, &description.target)?;
    let written = [("predicted", Some(&sentence.predicted).filter(|tokens| !tokens.is_empty())), ("target", sentence.target.as_ref())];
    for (name, tokens) in written {
        let Some(tokens) = tokens else { continue };
        check.length(name, tokens.len(), sentence.fed.len())?;
        check.tokens(Side::Target, tokens, &description.target)?;
    }

    // Losses that are not known are kept as NaN; an infinite one could not be reported.
    if sentence.loss.is_some_and(f64::is_infinite) {
        return Err(RecordingError::NotFinite { path: path.to_owned(), sentence: number, name: name::LOSSES.to_owned() });
    }
    check.length("states", sentence.states.len(), description.streams.len())?;
    for (stream, states) in description.streams.iter().zip(&sentence.states) {
        let name = name::states(&stream.name);
        check.length(&name, states.len(), sentence.n_steps(stream.side).saturating_mul(stream.d))?;
        check.finite(&name, states)?;
    }
    if !is_kept(sentence) {
        return Ok(());
    }
    check.length("attention", sentence.attention.len(), description.sites.len())?;
    for (place, (site, weights)) in description.sites.iter().zip(&sentence.attention).enumerate() {
        let steps = |stream: usize| sentence.n_steps(description.streams[stream].side);
        let name = name::attention(place);
        check.length(&name, weights.len(), steps(site.query).saturating_mul(steps(site.key)))?;
        check.finite(&name, weights)?;
    }
    Ok(())
}

/// Whether a sentence has its attention: sentences have steps, so that kept weights are never empty.
pub(super) fn is_kept(sentence: &Recorded) -> bool {
    sentence.attention.iter().any(|weights| !weights.is_empty())
}

struct Sentence<'a> {
    path: &'a Path,
    number: u64,
}

impl Sentence<'_> {
    fn tokens(&self, side: Side, tokens: &[Token], words: &Words) -> Result<(), RecordingError> {
        let (path, sentence) = (self.path.to_owned(), self.number);
        if tokens.is_empty() {
            return Err(RecordingError::EmptySentence { path, sentence, side });
        }
        match tokens.iter().find(|token| **token >= words.count) {
            Some(token) => Err(RecordingError::UnknownToken { path, sentence, side, token: *token, count: words.count }),
            None => Ok(()),
        }
    }

    fn length(&self, what: &str, found: usize, expected: usize) -> Result<(), RecordingError> {
        if found == expected {
            return Ok(());
        }
        let (path, what) = (self.path.to_owned(), format!("`{what}`"));
        Err(RecordingError::Length { path, sentence: self.number, what, found: found as u64, expected: expected as u64 })
    }

    fn finite(&self, name: &str, numbers: &[f32]) -> Result<(), RecordingError> {
        if is_finite(numbers) {
            return Ok(());
        }
        Err(RecordingError::NotFinite { path: self.path.to_owned(), sentence: self.number, name: name.to_owned() })
    }
}
