//! From moments, components and a model to the report.

use super::report::*;
use super::{Half, Moments, Path, Pca, PcaError, angle, principal_angles, resemblances, to_f64, word_readouts};
use crate::{Components, Description, Readout, Recordable, Side, SiteKind, Sums, Token, Words};

/// Axes whose shares are given.
const N_SHARES: usize = 10;
/// Most tokens that are placed.
const MAX_PLACED: usize = 256;
/// Most words whose readouts are compared with each other.
const MAX_READOUTS: usize = 128;
/// Most words and columns whose cosines are written out one by one.
const MAX_LISTED: usize = 64;
/// Most words read again and again.
const MAX_CONSTANT: usize = 16;
/// Share of a path's variance that its subspace holds.
const PATH_SHARE: f64 = 0.95;

/// What the geometry is computed from; lists are by stream.
pub(crate) struct Seen<'a> {
    pub(crate) description: &'a Description,
    pub(crate) moments: &'a [Result<Moments, PcaError>],
    pub(crate) components: &'a [Components<f32>],
    pub(crate) residuals: &'a [Vec<Residual>],
    pub(crate) sums: &'a [Sums],
    pub(crate) model: Option<&'a dyn Recordable>,
}

/// What a state has beyond its step and its token.
#[derive(Clone, Debug)]
pub(crate) struct Residual {
    step: usize,
    token: Token,
    /// `h − μ[t] − χ[w]`.
    state: Vec<f32>,
}

impl Residual {
    /// Adds a sentence's residuals until there are enough to draw; `states` is `[step, d]`.
    pub(crate) fn collect(tokens: &[Token], states: &[f32], components: &Components<f32>, all: &mut Vec<Self>) {
        let states = states.chunks_exact(components.d().max(1));
        for (step, (&token, state)) in tokens.iter().zip(states).enumerate().take(MAX_PLACED.saturating_sub(all.len())) {
            let parts = components.temporal(step).iter().zip(components.input(token));
            all.push(Self { step, token, state: state.iter().zip(parts).map(|(h, (mu, chi))| h - mu - chi).collect() });
        }
    }

    /// Adds those of other sentences until there are enough to draw.
    pub(crate) fn extend(all: &mut Vec<Self>, others: &[Self]) {
        let n = MAX_PLACED.saturating_sub(all.len()).min(others.len());
        all.extend_from_slice(&others[..n]);
    }
}

/// Axes that some streams share.
struct Frame {
    pca: Pca,
    streams: Vec<usize>,
}

pub(crate) fn describe(seen: &Seen<'_>) -> GeometryReport {
    let mut notes = Vec::new();
    let frames = frames(seen, &mut notes);
    let mut report = GeometryReport {
        frames: frames.iter().map(|frame| frame.report(seen.description)).collect(),
        streams: (0..seen.components.len()).map(|stream| stream_geometry(seen, stream, &frames)).collect(),
        readout: seen.description.readout.as_ref().map(|readout| readout_geometry(seen, readout, &frames, &mut notes)),
        plane: seen.description.readout.as_ref().and_then(|readout| plane(seen, readout)),
        cosines: cosines(seen, &mut notes),
        subspaces: subspaces(seen),
        null_input: Vec::new(),
        constant_words: Vec::new(),
        notes: Vec::new(),
    };
    if seen.description.readout.is_none() {
        notes.push("the readout is not one linear map: its angles are not given".into());
    }
    match seen.model {
        Some(model) => probe(seen, model, &frames, &mut report, &mut notes),
        None => notes.push("the model cannot be run: it was not probed".into()),
    }
    report.notes = notes;
    report
}

/// One frame for each width there is.
fn frames(seen: &Seen<'_>, notes: &mut Vec<String>) -> Vec<Frame> {
    let mut joined: Vec<(Moments, Vec<usize>)> = Vec::new();
    for (stream, moments) in seen.moments.iter().enumerate() {
        let moments = match moments {
            Ok(moments) => moments,
            Err(error) => {
                notes.push(format!("{}: {error}", seen.description.streams[stream].name));
                continue;
            }
        };
        // Merging fails where widths differ; then the stream has a frame of its own.
        match joined.iter_mut().find_map(|(sum, streams)| sum.merge(moments).is_ok().then_some(streams)) {
            Some(streams) => streams.push(stream),
            None => joined.push((moments.clone(), vec![stream])),
        }
    }
    let mut frames = Vec::new();
    for (moments, streams) in joined {
        match moments.pca() {
            Ok(pca) => frames.push(Frame { pca, streams }),
            Err(error) => notes.push(format!("{}: {error}", seen.description.streams[streams[0]].name)),
        }
    }
    frames
}

impl Frame {
    fn report(&self, description: &Description) -> FrameReport {
        FrameReport {
            streams: self.streams.iter().map(|&stream| description.streams[stream].name.clone()).collect(),
            shares: self.pca.shares(N_SHARES),
            participation_ratio: self.pca.participation_ratio(),
            origin: self.pca.place(&vec![0.0; self.pca.mean().len()]),
        }
    }

    fn places(&self, path: &Path) -> Vec<[f64; 3]> {
        path.states.iter().map(|state| self.pca.place(state)).collect()
    }
}

fn frame_of(frames: &[Frame], stream: usize) -> Option<usize> {
    frames.iter().position(|frame| frame.streams.contains(&stream))
}

fn stream_geometry(seen: &Seen<'_>, stream: usize, frames: &[Frame]) -> StreamGeometry {
    let frame = frame_of(frames, stream);
    let mut geometry = StreamGeometry {
        name: seen.description.streams[stream].name.clone(),
        shares: Vec::new(),
        participation_ratio: None,
        frame,
        mean: [0.0; 3],
        path: Vec::new(),
        inputs: Vec::new(),
        residuals: Vec::new(),
    };
    let Some(frame) = frame.map(|frame| &frames[frame]) else { return geometry };
    // A frame of one stream has that stream's own components.
    let own = match &seen.moments[stream] {
        Ok(moments) if frame.streams.len() > 1 => moments.pca().ok(),
        _ => Some(frame.pca.clone()),
    };
    if let Some(own) = own {
        geometry.shares = own.shares(N_SHARES);
        geometry.participation_ratio = Some(own.participation_ratio());
    }
    let components = &seen.components[stream];
    let words = seen.description.words(seen.description.streams[stream].side);
    geometry.path = frame.places(&Path::temporal(components));
    geometry.mean = frame.pca.place(&to_f64(components.mean()));
    for residual in &seen.residuals[stream] {
        let state = components.mean().iter().zip(&residual.state).map(|(&mean, &rest)| f64::from(mean) + f64::from(rest));
        let at = frame.pca.place(&state.collect::<Vec<_>>());
        geometry.residuals.push(PlacedResidual {
            step: residual.step,
            token: residual.token,
            name: words.name(residual.token).into_owned(),
            at,
        });
    }
    for token in most_frequent(&seen.sums[stream], MAX_PLACED, |_| true) {
        let state: Vec<f64> =
            components.mean().iter().zip(components.input(token)).map(|(&mean, &input)| f64::from(mean) + f64::from(input)).collect();
        geometry.inputs.push(PlacedToken { token, name: words.name(token).into_owned(), at: frame.pca.place(&state) });
    }
    geometry
}

fn is_content(words: &Words, token: Token) -> bool {
    token < words.count && words.start != Some(token) && words.end != Some(token)
}

fn most_frequent(sums: &Sums, most: usize, wanted: impl Fn(Token) -> bool) -> Vec<Token> {
    let mut counts = sums.token_counts();
    counts.retain(|&(token, _)| wanted(token));
    counts.sort_by_key(|&(token, count)| (std::cmp::Reverse(count), token));
    counts.into_iter().take(most).map(|(token, _)| token).collect()
}

fn readout_geometry(seen: &Seen<'_>, readout: &Readout, frames: &[Frame], notes: &mut Vec<String>) -> ReadoutGeometry {
    let target = &seen.description.target;
    let content: Vec<Token> = (0..readout.map.d_out as Token).filter(|&word| is_content(target, word)).collect();
    let words = &content[..content.len().min(MAX_READOUTS)];
    if words.len() < content.len() {
        notes.push(format!("readouts: the first {} of {} words are compared", words.len(), content.len()));
    }
    let (state, context) = (word_readouts(readout, Half::State, words), word_readouts(readout, Half::Context, words));
    let has_both = readout.d_state == readout.d_context && readout.d_state > 0;
    let key = seen.description.sites.iter().find(|site| site.kind == SiteKind::Cross && site.value.is_none()).map(|site| site.key);
    let frame =
        key.and_then(|key| frame_of(frames, key)).map(|frame| &frames[frame].pca).filter(|pca| pca.mean().len() == readout.d_context);
    ReadoutGeometry {
        words: words.iter().map(|&word| target.name(word).into_owned()).collect(),
        simplex_angle: (words.len() > 1).then(|| (-1.0 / (words.len() as f64 - 1.0)).acos().to_degrees()),
        state: HalfReport::of(&state),
        context: HalfReport::of(&context),
        between_halves: has_both.then(|| state.iter().zip(&context).map(|(state, context)| angle(state, context)).collect()),
        arrows: frame.map(|pca| context.iter().map(|readout| pca.along(readout)).collect()),
    }
}

/// Nothing for fewer than two words.
fn plane(seen: &Seen<'_>, readout: &Readout) -> Option<PlaneReport> {
    let description = seen.description;
    let site = description.sites.iter().find(|site| site.kind == SiteKind::Cross && site.value.is_none())?;
    let stream = &description.streams[site.key];
    let content = (0..readout.map.d_out as Token).filter(|&word| is_content(&description.target, word));
    let words: Vec<Token> = content.take(MAX_READOUTS).collect();
    if words.len() < 2 || stream.d != readout.d_context {
        return None;
    }
    let readouts = word_readouts(readout, Half::Context, &words);
    let pca = Pca::of(&readouts).ok()?;
    let input = |token: Token| -> PlacedToken {
        let component: Vec<f64> = seen.components[site.key].input(token).iter().map(|&x| f64::from(x)).collect();
        PlacedToken { token, name: description.words(stream.side).name(token).into_owned(), at: pca.along(&component) }
    };
    Some(PlaneReport {
        stream: stream.name.clone(),
        shares: pca.shares(3),
        inputs: most_frequent(&seen.sums[site.key], MAX_PLACED, |_| true).into_iter().map(input).collect(),
        readouts: readouts.iter().map(|readout| pca.place(readout)).collect(),
    })
}

fn cosines(seen: &Seen<'_>, notes: &mut Vec<String>) -> Vec<CosinesReport> {
    let description = seen.description;
    let Some(readout) = description.readout.as_ref().filter(|readout| readout.d_context > 0) else { return Vec::new() };
    let cross = || description.sites.iter().enumerate().filter(|(_, site)| site.kind == SiteKind::Cross);
    if cross().count() > 1 {
        notes.push(
            "cosines with readouts: several heads are mixed before the readout, their input components are not compared with it".into(),
        );
        return Vec::new();
    }
    let all: Vec<Token> = (0..readout.map.d_out as Token).collect();
    let readouts = word_readouts(readout, Half::Context, &all);
    let mut reports = Vec::new();
    for (number, site) in cross() {
        let (components, stream) = (&seen.components[site.key], &description.streams[site.key]);
        if site.value.as_ref().map_or(stream.d, |value| value.d_out) != readout.d_context {
            notes.push("cosines with readouts: values and context are not equally wide".into());
            continue;
        }
        let words = description.words(stream.side);
        let sources = most_frequent(&seen.sums[site.key], MAX_READOUTS, |token| is_content(words, token));
        let inputs: Vec<(Token, Vec<f64>)> = sources.iter().map(|&token| (token, to_f64(components.input(token)))).collect();
        let found = resemblances(&inputs, site.value.as_ref(), &readouts);
        let name = |token| description.target.name(token).into_owned();
        let is_listed = found.len() <= MAX_LISTED && all.len() <= MAX_LISTED;
        reports.push(CosinesReport {
            site: number,
            words: found.iter().filter_map(|resemblance| resemblance.report(&words.name(resemblance.word), name)).collect(),
            table: is_listed.then(|| found.iter().map(|resemblance| resemblance.cosines.clone()).collect()),
        });
    }
    reports
}

fn subspaces(seen: &Seen<'_>) -> Vec<SubspacesReport> {
    let streams = &seen.description.streams;
    let mut pairs: Vec<(usize, usize)> = seen.description.sites.iter().map(|site| (site.query, site.key)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.retain(|&(query, key)| query != key && streams[query].d == streams[key].d);
    let span = |stream: usize| {
        let pca = Pca::of(&Path::temporal(&seen.components[stream]).states).ok()?;
        Some(pca.axes()[..pca.n_axes(PATH_SHARE)].to_vec())
    };
    let report = |&(query, key): &(usize, usize)| {
        let (query_span, key_span) = (span(query)?, span(key)?);
        Some(SubspacesReport {
            query: streams[query].name.clone(),
            key: streams[key].name.clone(),
            query_dimensions: query_span.len(),
            key_dimensions: key_span.len(),
            angles: principal_angles(&query_span, &key_span),
        })
    };
    pairs.iter().filter_map(report).collect()
}

fn probe(seen: &Seen<'_>, model: &dyn Recordable, frames: &[Frame], report: &mut GeometryReport, notes: &mut Vec<String>) {
    let description = seen.description;
    let temporal: Vec<Path> = seen.components.iter().map(Path::temporal).collect();
    let of_source = |stream: &usize| description.streams[*stream].side == Side::Source;
    let sources: Vec<usize> = (0..description.streams.len()).filter(of_source).collect();
    let n_steps = sources.iter().map(|&stream| temporal[stream].states.len()).max().unwrap_or(0);
    let compared = |stream: usize, word: Option<&str>, path: &Path| {
        let steps = path.states.len().min(temporal[stream].states.len());
        let path = path.first(steps);
        PathReport {
            stream: description.streams[stream].name.clone(),
            word: word.map(str::to_owned),
            steps,
            cosine: path.centred_cosine(&temporal[stream]),
            step_correlation: path.step_correlation(&temporal[stream]),
            path: frame_of(frames, stream).map_or_else(Vec::new, |frame| frames[frame].places(&path)),
        }
    };
    match super::probes::null_input(model, n_steps) {
        Some(paths) => report.null_input = paths.iter().enumerate().map(|(stream, path)| compared(stream, None, path)).collect(),
        None => notes.push("the model cannot be run without input".into()),
    }
    let Some(&stream) = sources.first() else { return };
    let words = most_frequent(&seen.sums[stream], MAX_CONSTANT, |token| is_content(&description.source, token));
    match super::probes::constant_words(model, &words, n_steps) {
        Ok(paths) => {
            for (&word, paths) in words.iter().zip(&paths) {
                let name = description.source.name(word);
                report.constant_words.extend(sources.iter().map(|&stream| compared(stream, Some(&name), &paths[stream])));
            }
        }
        Err(error) => notes.push(format!("sources of one word again and again cannot be run: {error}")),
    }
}
