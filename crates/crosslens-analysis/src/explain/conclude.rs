//! From what the passes came to, the report.

use std::collections::BTreeMap;

use super::bootstrap::interval;
use super::causal::Checks;
use super::claim::claim;
use super::passes::{FirstTotals, Fitted, MAX_ERROR, SecondTotals, SiteTotals, Totals, sum};
use super::samples::Samples;
use super::verdict::verdict;
use super::{Explained, Options, Rank};
use crate::components::{FEW, WordVariance};
use crate::geometry::{Seen, describe};
use crate::heads::HeadShares;
use crate::report::*;
use crate::{
    AverageAttention, Components, Description, Fit, Recordable, Recorded, ShareTally, Shrinkage, Side, Site, Sums, TopShare, TopShares,
};

/// Steps and tokens listed that were seen too rarely.
const THIN: usize = 20;
/// Words listed whose states lie far apart.
const WIDEST: usize = 10;

/// From what both passes came to, the report.
pub(super) fn conclude(
    description: &Description,
    given: Option<&[Sums]>,
    options: &Options,
    first: FirstTotals,
    fitted: &Fitted,
    second: SecondTotals,
    model: Option<&dyn Recordable>,
) -> Explained {
    let components = &fitted.components;
    let totals = options.keep_totals.then(|| Box::new(Totals { first: first.clone(), second: second.clone() }));
    let streams: Vec<StreamReport> = fitted
        .fits
        .iter()
        .enumerate()
        .map(|(number, (fit, variance))| StreamReport {
            name: description.streams[number].name.clone(),
            d: description.streams[number].d,
            variance: VarianceReport { time: variance.time, token: variance.token, shared: variance.shared, rest: variance.rest },
            counts: counts(given.map_or(&first.fitted[number], |given| &given[number]), fit),
            shrinkage: fit.shrinkage,
            condition: fit.condition,
            word_variance_ratio: second.word_variance[number].ratio(&first.explained()[number], &components[number]),
            word_variance: word_variance(description, number, &second.word_variance[number], &first.explained()[number], components),
            thin: thin(description, number, given.map_or(&first.fitted[number], |given| &given[number])),
        })
        .collect();
    let task = TaskReport {
        word_accuracy: second.has_targets.then(|| second.outcome.word_accuracy()),
        phrase_accuracy: second.has_targets.then(|| second.outcome.phrase_accuracy()),
        loss: second.loss(),
        can_rerun: model.is_some() || second.checks.sentences > 0,
    };
    let checks = (second.checks.sentences > 0).then_some(&second.checks);
    let sites: Vec<_> = (0..second.sites.len()).map(|site| site_report(description, site, &second, checks, &streams, &task)).collect();
    let distances = second.samples.iter().map(|sample| sample.distances(description, &first.averages)).collect();
    let mut samples = Samples::new(description, second.samples, first.averages.iter().map(AverageAttention::matrix).collect());
    samples.distances = distances;
    let geometry = first.moments.as_ref().map(|moments| {
        let sums = given.unwrap_or(&first.fitted);
        describe(&Seen { description, moments, components, residuals: &second.residuals, sums, model })
    });
    let report = Report {
        schema: REPORT_SCHEMA.into(),
        model: ModelReport { description: description.model.clone(), hash: description.model_hash.clone(), path: None },
        corpus: CorpusReport {
            pairs: second.n_sentences,
            fitted_pairs: given.map_or(first.n_fitted, n_summed),
            held_out: is_held_out(&first, given, options),
            source: String::new(),
            control: None,
            codes: None,
            warnings: Vec::new(),
        },
        task,
        components: ComponentsReport { estimator: options.estimator.name().into(), shrunk: options.shrinkage != Shrinkage::None },
        streams,
        claim: claim(&sites),
        sites,
        rerun: checks.map(|_| options.rerun.name().into()),
        unchanged: checks.map(|checks| checks.plain.report()),
        values: checks.map(|checks| checks.values.iter().map(|(name, _, tally)| ((*name).into(), tally.report())).collect()),
        readout: checks.map(|checks| checks.halves.iter().map(|(name, tally)| ((*name).into(), tally.report())).collect()),
        geometry,
        ranking: options.rank.map(|by| ranking(by, description, second.ranked)),
        samples: None,
    };
    Explained { report, samples, totals }
}

/// Sentences that sums were made of: each has a first step.
fn n_summed(sums: &[Sums]) -> u64 {
    sums.iter().filter_map(|sums| sums.step_counts().first().copied()).max().unwrap_or(0)
}

/// Whether sums given are of other sentences than those explained; `None` where that is not known. The sums of the same sentences have
/// the same counts, and the same squares but for rounding.
fn is_held_out(first: &FirstTotals, given: Option<&[Sums]>, options: &Options) -> Option<bool> {
    let Some(given) = given else { return Some(options.held_out) };
    let are_same = |(given, own): (&Sums, &Sums)| {
        given.step_counts() == own.step_counts()
            && given.token_counts() == own.token_counts()
            && (given.squares() - own.squares()).abs() <= 1e-9 * own.squares()
    };
    given.iter().zip(first.explained()).all(are_same).then_some(false)
}

fn site_report(
    description: &Description,
    number: usize,
    second: &SecondTotals,
    checks: Option<&Checks>,
    streams: &[StreamReport],
    task: &TaskReport,
) -> SiteReport {
    let (site, totals) = (&description.sites[number], &second.sites[number]);
    // JSON knows no infinity.
    let error = ErrorReport {
        score: (totals.error / totals.highest.max(f64::MIN_POSITIVE)).min(f64::MAX),
        attention: totals.attention_error.map(|error| error.min(f64::MAX)),
    };
    let total = sum(&totals.by_step).filter(|_| error.worst() <= MAX_ERROR);
    let mut rebuilt = BTreeMap::new();
    // Terms that do not add up rebuild nothing.
    for (place, variant) in totals.variants.iter().enumerate().filter(|(_, variant)| total.is_some() || variant.kind.needs_no_terms()) {
        let [all, content] = totals.closeness[place].map(|tally| tally.mean());
        let causal = checks.map(|checks| checks.variants[number][place].report());
        let content = ContentCloseness { tv: content.total_variation, kl: content.kl, argmax: content.argmax };
        rebuilt.insert(variant.name.clone(), Rebuilt { tv: all.total_variation, kl: all.kl, argmax: all.argmax, content, causal });
    }
    let tv = |name: &str| rebuilt.get(name).map_or(0.0, |rebuilt: &Rebuilt| rebuilt.tv);
    // Where attention is uniform, rounding is all there would be to compare.
    let tv_over_uniform = if tv("uniform") > 1e-6 { tv("average") / tv("uniform") } else { 0.0 };
    let average_attention = AverageReport { tv: tv("average"), tv_over_uniform };
    let sides = |of: fn(&StreamReport) -> VarianceReport| Sides { key: of(&streams[site.key]), query: of(&streams[site.query]) };
    let mut report = SiteReport {
        kind: site.kind.name().into(),
        layer: site.layer,
        head: site.head,
        map: site.map.name().into(),
        variance: sides(|stream| stream.variance),
        counts: Sides { key: streams[site.key].counts, query: streams[site.query].counts },
        error,
        shares: total.as_ref().map(|total| shares_report(total, site)),
        control: None,
        by_step: total.as_ref().map(|_| by_step(&totals.by_step, site)),
        intervals: total.as_ref().and_then(|_| intervals(totals, site)),
        average_attention,
        entropy: totals.entropy.0 / totals.entropy.1.max(1) as f64,
        diagonal: totals.offsets.most().map(|(direction, offset, share)| DiagonalReport {
            direction: direction.name().into(),
            offset,
            share,
        }),
        monotone: totals.path.map(|(weight, total)| weight / total.max(f64::MIN_POSITIVE)),
        rebuilt,
        verdict: Verdict { label: String::new(), text: String::new() },
    };
    report.verdict = verdict(&report, task, checks.map(|checks| checks.plain.report()).as_ref());
    report
}

/// The name of the centred shares.
const CENTRED: &str = "centred";

/// Every measure of a tally by name, each a list by piece.
fn measures(tally: &ShareTally) -> Vec<(String, Vec<f64>)> {
    let top = top_measures(tally).into_iter().map(|(name, share)| (name, share.pieces));
    [(CENTRED.to_owned(), tally.centred())].into_iter().chain(top).collect()
}

/// The measures at the highest scores, by name.
fn top_measures(tally: &ShareTally) -> Vec<(String, TopShare)> {
    let named = |top: TopShares| {
        let name = format!("top{}", top.k);
        [(format!("{name}_signed"), top.signed), (format!("{name}_centred"), top.centred), (name, top.absolute)]
    };
    tally.top().into_iter().flat_map(named).collect()
}

/// What the bias of positions has of every measure, by name; nothing where the site has none.
fn biases(tally: &ShareTally, site: &Site) -> BTreeMap<String, f64> {
    if site.map.position_bias().is_none() {
        return BTreeMap::new();
    }
    let top = top_measures(tally).into_iter().map(|(name, share)| (name, share.bias));
    [(CENTRED.to_owned(), tally.centred_bias())].into_iter().chain(top).collect()
}

/// The same at the highest scores alone.
fn biases_at_top(tally: &ShareTally, site: &Site) -> BTreeMap<String, f64> {
    let mut biases = biases(tally, site);
    biases.remove(CENTRED);
    biases
}

fn shares_report(tally: &ShareTally, site: &Site) -> SharesReport {
    let mut report = SharesReport {
        tables: BTreeMap::new(),
        parts: BTreeMap::new(),
        position_bias: tally.centred_bias(),
        position_bias_top: biases_at_top(tally, site),
        query_mean: tally.query_mean(),
    };
    for (name, shares) in measures(tally) {
        if site.map.is_additive() {
            let side = |from: usize| [shares[from], shares[from + 1], shares[from + 2]];
            report.parts.insert(name, Sides { query: side(0), key: side(3) });
        } else {
            let row = |row: usize| [shares[3 * row], shares[3 * row + 1], shares[3 * row + 2]];
            report.tables.insert(name, [row(0), row(1), row(2)]);
        }
    }
    report
}

fn by_step(steps: &[ShareTally], site: &Site) -> ByStep {
    let mut by_measure: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    let mut position_bias: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for step in steps {
        for (name, shares) in measures(step) {
            by_measure.entry(name).or_default().push(shares);
        }
        for (name, share) in biases(step, site) {
            position_bias.entry(name).or_default().push(share);
        }
    }
    let query_mean = steps.iter().map(ShareTally::query_mean).collect();
    ByStep { rows: steps.iter().map(ShareTally::rows).collect(), measures: by_measure, position_bias, query_mean }
}

/// `None` where no resample was asked for or none drew a sentence.
fn intervals(totals: &SiteTotals, site: &Site) -> Option<Intervals> {
    let mut samples: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    // With a handful of sentences a resample may draw none of them, and says nothing.
    let drawn: Vec<_> = totals.resampled.iter().filter(|(shares, _)| shares.rows() > 0.0).collect();
    if drawn.is_empty() {
        return None;
    }
    for (shares, _) in &drawn {
        let (bias, query_mean) = (shares.centred_bias(), shares.query_mean());
        // Of additive scores there are no pairs of parts, and no label.
        let labelled =
            <[f64; 9]>::try_from(shares.centred()).ok().map(|centred| HeadShares::of(&centred, bias, &query_mean).parts().to_vec());
        let apart = [("position_bias", Some(vec![bias])), ("query_mean", Some(query_mean)), ("head_shares", labelled)];
        let apart = apart.into_iter().filter_map(|(name, values)| Some((name.to_owned(), values?)));
        for (name, values) in measures(shares).into_iter().chain(apart) {
            samples.entry(name).or_default().push(values);
        }
    }
    let biases: Vec<_> = drawn.iter().map(|(shares, _)| biases_at_top(shares, site)).collect();
    let of_bias = |name: &String| interval(&mut biases.iter().map(|biases| biases[name]).collect::<Vec<_>>());
    let position_bias_top = biases[0].keys().map(|name| (name.clone(), of_bias(name))).collect();
    let mut rebuilt = BTreeMap::new();
    for (place, variant) in totals.variants.iter().enumerate() {
        let means: Vec<_> = drawn.iter().map(|(_, closeness)| closeness[place].mean()).collect();
        let of = |of: fn(&crate::Closeness) -> f64| interval(&mut means.iter().map(of).collect::<Vec<_>>());
        rebuilt.insert(variant.name.clone(), [of(|c| c.total_variation), of(|c| c.kl), of(|c| c.argmax)]);
    }
    let shares = samples.iter().map(|(name, rows)| (name.clone(), columns(rows))).collect();
    Some(Intervals { resamples: drawn.len(), shares, position_bias_top, rebuilt, by_step: step_intervals(totals, site) })
}

/// The interval of each column; none without a row.
fn columns(rows: &[Vec<f64>]) -> Vec<[f64; 2]> {
    (0..rows.first().map_or(0, Vec::len)).map(|column| interval(&mut rows.iter().map(|row| row[column]).collect::<Vec<_>>())).collect()
}

/// `None` where they were not asked for.
fn step_intervals(totals: &SiteTotals, site: &Site) -> Option<StepIntervals> {
    let resampled = &totals.resampled_by_step;
    let none = totals.by_step.first().filter(|_| !resampled.is_empty())?.empty();
    let mut intervals =
        StepIntervals { resamples: Vec::new(), measures: BTreeMap::new(), position_bias: BTreeMap::new(), query_mean: Vec::new() };
    for step in 0..totals.by_step.len() {
        let drawn: Vec<&ShareTally> = resampled.iter().filter_map(|steps| steps.get(step)).filter(|shares| shares.rows() > 0.0).collect();
        intervals.resamples.push(drawn.len());
        let by_name = |of: &dyn Fn(&ShareTally) -> BTreeMap<String, Vec<f64>>| {
            let drawn: Vec<_> = drawn.iter().map(|shares| of(shares)).collect();
            let interval = |name: String| {
                let rows: Vec<Vec<f64>> = drawn.iter().map(|shares| shares[&name].clone()).collect();
                (name, columns(&rows))
            };
            of(&none).into_keys().map(interval).collect::<Vec<_>>()
        };
        for (name, of_step) in by_name(&|shares| measures(shares).into_iter().collect()) {
            intervals.measures.entry(name).or_default().push(of_step);
        }
        for (name, of_step) in by_name(&|shares| biases(shares, site).into_iter().map(|(name, share)| (name, vec![share])).collect()) {
            intervals.position_bias.entry(name).or_default().push(of_step);
        }
        intervals.query_mean.push(columns(&drawn.iter().map(|shares| shares.query_mean()).collect::<Vec<_>>()));
    }
    Some(intervals)
}

fn counts(sums: &Sums, fit: &Fit<f32>) -> CountsReport {
    let (few_steps, few_tokens) = fit.components.few();
    CountsReport {
        states: sums.n_states(),
        steps: sums.n_steps(),
        tokens: sums.n_tokens(),
        few_steps,
        few_tokens,
        pieces: fit.connections.n_pieces,
        weak_links: fit.connections.weak_links,
    }
}

/// The two means over words, and the words that lie widest apart.
fn word_variance(
    description: &Description,
    stream: usize,
    squares: &WordVariance,
    sums: &Sums,
    components: &[Components<f32>],
) -> Option<WordVarianceReport> {
    let names = description.words(description.streams[stream].side);
    let mut words = squares.by_word(sums, &components[stream]);
    let [before, after] = squares.means(sums, &components[stream])?;
    let n_words = words.len();
    words.sort_by(|a, b| b.before.total_cmp(&a.before).then(a.token.cmp(&b.token)));
    let widest = words.iter().take(WIDEST).map(|word| WordReport {
        word: names.name(word.token).into_owned(),
        count: word.count,
        before: word.before,
        after: word.after,
    });
    Some(WordVarianceReport { before, after, words: n_words, widest: widest.collect() })
}

/// Steps and tokens seen too rarely for their components to say much, the rarest first.
fn thin(description: &Description, stream: usize, sums: &Sums) -> ThinReport {
    let names = description.words(description.streams[stream].side);
    let counts = sums.step_counts().iter().enumerate();
    let mut steps: Vec<ThinStep> = counts.filter(|&(_, &count)| count < FEW).map(|(step, &count)| ThinStep { step, count }).collect();
    steps.sort_by_key(|step| step.count);
    steps.truncate(THIN);
    let mut tokens: Vec<_> = sums.token_counts().into_iter().filter(|&(_, count)| count < FEW).collect();
    tokens.sort_by_key(|&(_, count)| count);
    let tokens = tokens.into_iter().take(THIN).map(|(token, count)| ThinToken { word: names.name(token).into_owned(), count });
    ThinReport { steps, tokens: tokens.collect() }
}

fn ranking(by: Rank, description: &Description, ranked: Vec<(f64, Recorded)>) -> Ranking {
    let text = |side: Side, tokens: &[crate::Token]| {
        let words = description.words(side);
        tokens.iter().map(|&token| words.name(token)).collect::<Vec<_>>().join(" ")
    };
    let sentences = ranked.into_iter().map(|(value, sentence)| Ranked {
        number: sentence.number,
        value,
        source: text(Side::Source, &sentence.source),
        predicted: text(Side::Target, &sentence.predicted),
        target: sentence.target.as_deref().map(|target| text(Side::Target, target)),
    });
    Ranking { by: by.name().into(), sentences: sentences.collect() }
}
