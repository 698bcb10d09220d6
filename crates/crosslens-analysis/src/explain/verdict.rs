//! What drives a site, in words, from stated rules.

use crate::report::{Causal, CountsReport, ErrorReport, SiteReport, TaskReport, Verdict};

/// A model that gets fewer words right than this does not do its task.
const DOES_ITS_TASK: f64 = 0.95;
/// Attention is used if uniform attention loses at least this share of the words.
const MATTERS: f64 = 0.02;
/// A part drives a site from this share of the score's variance along the keys.
const DRIVES: f64 = 0.6;
/// … and if attention rebuilt from it alone keeps this share of the words that were right.
const KEEPS: f64 = 0.9;
/// … of which it must win back this much of what uniform attention loses: where that loses little, nearly anything keeps most words.
const WINS_BACK: f64 = 0.5;
/// Smaller shares are not worth a word.
const WORTH_SAYING: f64 = 0.01;

fn say(label: &str, text: String) -> Verdict {
    Verdict { label: label.into(), text }
}

/// In percent, never `-0 %`.
fn percent(share: f64) -> String {
    format!("{:.0} %", (100.0 * share).round() + 0.0)
}

/// Judges a site: the model must do its task, the shares must point one way, and running the model again must agree.
///
/// Without a target the model is judged by what it wrote: it does its task if its own words cost it less than under uniform attention.
///
/// `rerun` is what the model does when it is run again with nothing changed, on the sentences of the causal checks.
pub(super) fn verdict(site: &SiteReport, task: &TaskReport, rerun: Option<&Causal>) -> Verdict {
    if site.error.worst() > super::passes::MAX_ERROR {
        return say("not exact", format!("{}; no shares are given", what_is_not_exact(&site.error)));
    }
    let no_step_twice = |counts: &CountsReport| counts.steps > 0 && counts.states <= counts.steps as u64;
    if no_step_twice(&site.counts.query) || no_step_twice(&site.counts.key) {
        return say("not measured", "no step was seen twice, so that its position explains every state: more sentences would tell".into());
    }
    let Some(evidence) = Evidence::of(site) else {
        return say("not measured", "there are no shares to judge by".into());
    };
    let tendency = evidence.tendency();
    if !task.can_rerun {
        return say("not rerun", format!("{tendency}; the model is not at hand to be run again"));
    }
    match task.word_accuracy {
        None if rerun.is_some() && !beats_uniform(site, rerun) => {
            return say("task not assessed", format!("{tendency}; there is no target, and uniform attention costs the model nothing"));
        }
        Some(accuracy) if accuracy < DOES_ITS_TASK => {
            return say(
                "task not done",
                format!("the model gets {} of the words right, so its attention is not judged; {tendency}", percent(accuracy)),
            );
        }
        _ => {}
    }
    match rerun.and_then(|rerun| Kept::of(site, rerun.word_accuracy)) {
        None => say("not rerun", format!("{tendency}; no causal check was run")),
        Some(kept) => judged(&evidence, &kept),
    }
}

/// Which of the two errors is too large: that of the split, or that of the scores themselves.
fn what_is_not_exact(error: &ErrorReport) -> String {
    // No number is no small number.
    if error.score.is_nan() || error.score > super::passes::MAX_ERROR {
        return format!("the terms do not add up to the model's scores (error {:.1e})", error.score);
    }
    let attention = error.attention.unwrap_or(0.0);
    format!("the terms add up to the scores, but the model's own attention is not their softmax (error {attention:.1e})")
}

/// Whether what the model wrote is likelier to it than under uniform attention.
fn beats_uniform(site: &SiteReport, rerun: Option<&Causal>) -> bool {
    let uniform = site.rebuilt.get("uniform").and_then(|rebuilt| rebuilt.causal.as_ref());
    rerun.zip(uniform).is_some_and(|(rerun, uniform)| rerun.loss < uniform.loss)
}

/// What the shares say.
struct Evidence<'a> {
    site: &'a SiteReport,
    /// Centred share of what both sides owe to their steps.
    temporal: f64,
    /// Of that, what the query's mean gives: the same at every query step, it makes a head salient, not positional.
    mean: f64,
    bias: f64,
    input: f64,
}

impl<'a> Evidence<'a> {
    fn of(site: &'a SiteReport) -> Option<Self> {
        let shares = site.shares.as_ref()?;
        let ([temporal, input, _], mean) = shares.totals();
        Some(Self { site, temporal, mean, bias: shares.position_bias, input })
    }

    /// All that is a matter of position, the bias of positions included.
    fn by_position(&self) -> f64 {
        self.temporal + self.bias
    }

    /// Whose tokens the keys are.
    fn keys(&self) -> &'static str {
        if self.site.kind == "decoder-self" { "target" } else { "source" }
    }

    /// How much of the scores position makes.
    fn share(&self) -> String {
        let term = if self.site.map == "additive" { "temporal" } else { "temporal × temporal" };
        let mut text = format!("{} of the score's variance along the {} is {term}", percent(self.temporal), self.keys());
        if self.mean.abs() >= WORTH_SAYING {
            text += &format!(" ({} the same at every step)", percent(self.mean));
        }
        if self.bias.abs() >= WORTH_SAYING {
            text += &format!(" and {} the bias of positions", percent(self.bias));
        }
        text
    }

    fn tendency(&self) -> String {
        let same = self.site.rebuilt.get(with_bias(self.site, "temporal", "temporal+bias")).map_or(0.0, |rebuilt| rebuilt.argmax);
        let keys = self.keys();
        format!("{}; rebuilt from position alone it picks the same {keys} token in {} of steps", self.share(), percent(same))
    }
}

/// A rebuilt attention, with the bias of positions where the site has one.
fn with_bias<'n>(site: &SiteReport, without: &'n str, with: &'n str) -> &'n str {
    if site.rebuilt.contains_key(with) { with } else { without }
}

/// Shares of the words that were right which stay right.
struct Kept {
    uniform: f64,
    by_time: f64,
    by_both: f64,
    without_time: f64,
}

impl Kept {
    fn of(site: &SiteReport, accuracy: f64) -> Option<Self> {
        let kept = |name: &str| {
            let causal: Option<&Causal> = site.rebuilt.get(name)?.causal.as_ref();
            Some(causal?.word_accuracy / accuracy.max(1e-12))
        };
        Some(Self {
            uniform: kept("uniform")?,
            by_time: kept(with_bias(site, "temporal", "temporal+bias"))?,
            by_both: kept(with_bias(site, "temporal+input", "temporal+input+bias"))?,
            without_time: kept("no-temporal")?,
        })
    }

    /// Whether attention that keeps so many words does the work of the true one.
    fn is_enough(&self, kept: f64) -> bool {
        kept >= KEEPS && kept - self.uniform >= WINS_BACK * (1.0 - self.uniform)
    }
}

/// The verdict on a model that does its task and was run again.
fn judged(evidence: &Evidence<'_>, kept: &Kept) -> Verdict {
    let (share, uniform) = (evidence.share(), percent(kept.uniform));
    let (by_time, by_both) = (percent(kept.by_time), percent(kept.by_both));
    if kept.uniform > 1.0 - MATTERS {
        return say("unused", format!("uniform attention keeps {uniform} of the words that were right: the model does not need this head"));
    }
    let by_position_alone = kept.is_enough(kept.by_time);
    if by_position_alone {
        let text = format!("{} and keeps {by_time} of the words that were right", evidence.tendency());
        if evidence.by_position() - evidence.mean >= DRIVES {
            return say("positional", text);
        }
        if evidence.by_position() >= DRIVES {
            return say("salient", format!("{text}: it looks at the same places whatever the step"));
        }
    }
    if evidence.by_position() < 1.0 - DRIVES && kept.is_enough(kept.without_time) {
        let text = format!(
            "{} of the score's variance along the {} comes from tokens and the rest, {} from input {}alone; without the temporal {} {} of the words that were right stay right",
            percent(1.0 - evidence.by_position()),
            evidence.keys(),
            percent(evidence.input),
            if evidence.site.map == "additive" { "" } else { "× input " },
            if evidence.site.map == "additive" { "parts" } else { "term" },
            percent(kept.without_time)
        );
        return say("content", text);
    }
    if by_position_alone {
        return say(
            "mixed",
            format!("{share}, yet position alone keeps {by_time} of the words that were right: shares and causal check differ"),
        );
    }
    // Words that uniform attention keeps as well prove nothing.
    let beside = if kept.by_time.max(kept.by_both) >= KEEPS { format!(", where uniform attention keeps {uniform}") } else { String::new() };
    if kept.is_enough(kept.by_both) {
        let text = format!(
            "{share}, but position alone keeps only {by_time} of the words that were right{beside}; position and token together keep {by_both}"
        );
        return say("position and token", text);
    }
    let text = format!(
        "{share}; position alone keeps {by_time} of the words that were right, position and token {by_both}{beside}: what the states remember is needed too"
    );
    say("mixed", text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::{AverageReport, ContentCloseness, Rebuilt, SharesReport, Sides};

    /// A site with one centred table and words right under each rebuilt attention.
    fn site(table: [[f64; 3]; 3], query_mean: f64, words: &[(&str, f64)]) -> SiteReport {
        let rebuilt = |&(name, word_accuracy): &(&str, f64)| {
            let causal = Some(Causal { word_accuracy, ..Causal::default() });
            (name.to_owned(), Rebuilt { tv: 0.1, kl: 0.1, argmax: 0.5, content: ContentCloseness::default(), causal })
        };
        SiteReport {
            kind: "cross".into(),
            layer: 0,
            head: 0,
            map: "dot".into(),
            variance: Sides::default(),
            counts: Sides::default(),
            error: ErrorReport::default(),
            shares: Some(SharesReport {
                tables: BTreeMap::from([("centred".into(), table)]),
                parts: BTreeMap::new(),
                position_bias: 0.0,
                position_bias_top: BTreeMap::new(),
                query_mean: vec![query_mean, 0.0, 0.0],
            }),
            rebuilt: words.iter().map(rebuilt).collect(),
            control: None,
            by_step: None,
            intervals: None,
            average_attention: AverageReport::default(),
            entropy: 0.0,
            monotone: None,
            diagonal: None,
            verdict: Verdict { label: String::new(), text: String::new() },
        }
    }

    fn words(temporal: f64, both: f64, without: f64) -> Vec<(&'static str, f64)> {
        vec![("uniform", 0.4), ("temporal", temporal), ("temporal+input", both), ("no-temporal", without)]
    }

    const DONE: TaskReport = TaskReport { word_accuracy: Some(1.0), phrase_accuracy: Some(1.0), loss: None, can_rerun: true };

    fn right(word_accuracy: f64) -> Causal {
        Causal { word_accuracy, ..Causal::default() }
    }

    fn corner(temporal: f64, input: f64) -> [[f64; 3]; 3] {
        [[temporal, 0.0, 0.0], [0.0, input, 0.0], [0.0, 0.0, 1.0 - temporal - input]]
    }

    fn label(site: &SiteReport) -> String {
        verdict(site, &DONE, Some(&right(1.0))).label
    }

    #[test]
    fn each_label_has_its_evidence() {
        assert_eq!(label(&site(corner(0.9, 0.05), 0.0, &words(0.99, 0.99, 0.4))), "positional");
        assert_eq!(label(&site(corner(0.1, 0.8), 0.0, &words(0.4, 0.99, 0.95))), "content");
        assert_eq!(label(&site(corner(0.6, 0.3), 0.0, &words(0.5, 0.95, 0.4))), "position and token");
        assert_eq!(label(&site(corner(0.6, 0.1), 0.0, &words(0.5, 0.6, 0.4))), "mixed");
        let unused = [("uniform", 0.99), ("temporal", 1.0), ("temporal+input", 1.0), ("no-temporal", 1.0)];
        assert_eq!(label(&site(corner(0.9, 0.05), 0.0, &unused)), "unused");
    }

    /// Uniform attention keeps 95 % of the words: a head whose position alone keeps 96 % has won back a fifth of what that loses.
    #[test]
    fn what_uniform_attention_keeps_as_well_proves_nothing() {
        let words = |temporal: f64, both: f64| [("uniform", 0.95), ("temporal", temporal), ("temporal+input", both), ("no-temporal", 0.96)];
        let positional = corner(0.9, 0.05);
        assert_eq!(label(&site(positional, 0.0, &words(0.98, 0.98))), "positional");
        assert_eq!(label(&site(positional, 0.0, &words(0.96, 0.96))), "mixed");
        assert_eq!(label(&site(corner(0.1, 0.8), 0.0, &words(0.96, 0.96))), "mixed");
        let verdict = verdict(&site(positional, 0.0, &words(0.96, 0.98)), &DONE, Some(&right(1.0)));
        assert_eq!(verdict.label, "position and token");
        assert!(verdict.text.contains("only 96 %") && verdict.text.contains("uniform attention keeps 95 %"), "{}", verdict.text);
    }

    /// A constant query looks at the same places at every step: all of its temporal share is the mean's.
    #[test]
    fn a_constant_query_is_salient_not_positional() {
        let verdict = verdict(&site(corner(0.95, 0.0), 0.93, &words(1.0, 1.0, 0.3)), &DONE, Some(&right(1.0)));
        assert_eq!(verdict.label, "salient");
        assert!(verdict.text.contains("95 %") && verdict.text.contains("93 % the same at every step"), "{}", verdict.text);
    }

    /// Position alone suffices though the shares do not point to it: neither positional nor "only" so much.
    #[test]
    fn shares_and_causal_check_must_agree() {
        let verdict = verdict(&site(corner(0.5, 0.4), 0.0, &words(0.97, 0.99, 0.5)), &DONE, Some(&right(1.0)));
        assert_eq!(verdict.label, "mixed");
        assert!(!verdict.text.contains("only"), "{}", verdict.text);
    }

    /// The bias of positions is position too: attention rebuilt with it is what counts.
    #[test]
    fn a_bias_of_positions_counts_as_position() {
        let mut biased = words(0.3, 0.3, 0.3);
        biased.extend([("temporal+bias", 0.99), ("temporal+input+bias", 0.99)]);
        let mut site = site(corner(0.1, 0.1), 0.0, &biased);
        site.shares.as_mut().expect("given").position_bias = 0.7;
        let verdict = verdict(&site, &DONE, Some(&right(1.0)));
        assert_eq!(verdict.label, "positional");
        assert!(verdict.text.contains("70 % the bias of positions"), "{}", verdict.text);
    }

    /// The checks may run on fewer sentences than were explained: what is kept is measured against those.
    #[test]
    fn what_is_kept_is_kept_of_the_words_right_on_the_sentences_run_again() {
        let site = site(corner(0.9, 0.05), 0.0, &words(0.88, 0.88, 0.4));
        assert_eq!(verdict(&site, &DONE, Some(&right(0.96))).label, "positional");
        assert_eq!(verdict(&site, &DONE, Some(&right(1.0))).label, "mixed");
        assert_eq!(verdict(&site, &DONE, None).label, "not rerun");
    }

    /// Without a target, what the model wrote must be likelier to it than under uniform attention.
    #[test]
    fn a_model_without_target_is_judged_by_its_own_words() {
        let untold = TaskReport { word_accuracy: None, phrase_accuracy: None, ..DONE };
        let mut site = site(corner(0.9, 0.05), 0.0, &words(0.99, 0.99, 0.4));
        let rerun = Causal { loss: 0.2, ..right(1.0) };
        let mut with_uniform = |loss: f64| {
            site.rebuilt.get_mut("uniform").and_then(|uniform| uniform.causal.as_mut()).expect("given").loss = loss;
            verdict(&site, &untold, Some(&rerun)).label
        };
        assert_eq!(with_uniform(0.9), "positional");
        assert_eq!(with_uniform(0.2), "task not assessed");
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut site = site(corner(0.9, 0.05), -0.001, &words(0.99, 0.99, 0.4));
        let poor = TaskReport { word_accuracy: Some(0.5), ..DONE };
        assert_eq!(verdict(&site, &poor, Some(&right(0.5))).label, "task not done");
        assert_eq!(verdict(&site, &TaskReport { word_accuracy: None, ..DONE }, Some(&right(0.5))).label, "task not assessed");
        assert_eq!(verdict(&site, &TaskReport { can_rerun: false, ..DONE }, None).label, "not rerun");
        let untold = verdict(&site, &TaskReport { word_accuracy: None, ..DONE }, None);
        assert_eq!(untold.label, "not rerun");
        assert!(untold.text.ends_with("no causal check was run") && !untold.text.contains("uniform"), "{}", untold.text);
        site.error.attention = Some(f64::NAN);
        assert_eq!(label(&site), "not exact");
        site.error.attention = None;
        for (states, expected) in [(7, "not measured"), (8, "positional")] {
            site.counts.key = CountsReport { states, steps: 7, ..CountsReport::default() };
            assert_eq!(label(&site), expected, "{states} states of 7 steps");
        }
        site.shares = None;
        assert_eq!(label(&site), "not measured");
        assert_eq!(percent(-0.001), "0 %");
    }

    /// Terms that do not add up are one fault, scores that are not the model's another.
    #[test]
    fn it_is_said_which_error_is_too_large() {
        let mut site = site(corner(0.9, 0.05), 0.0, &words(0.99, 0.99, 0.4));
        let mut text = |score: f64, attention: Option<f64>| {
            site.error = ErrorReport { score, attention };
            let verdict = verdict(&site, &DONE, Some(&right(1.0)));
            assert_eq!(verdict.label, "not exact");
            verdict.text
        };
        assert_eq!(text(2e-3, Some(0.0)), "the terms do not add up to the model's scores (error 2.0e-3); no shares are given");
        assert_eq!(text(2e-3, Some(0.5)), "the terms do not add up to the model's scores (error 2.0e-3); no shares are given");
        assert_eq!(
            text(1e-7, Some(2e-4)),
            "the terms add up to the scores, but the model's own attention is not their softmax (error 2.0e-4); no shares are given"
        );
        assert!(text(f64::NAN, None).starts_with("the terms do not add up"));
    }
}
