//! What drives a site, in words, from stated rules.

use crate::report::{SiteReport, TaskReport, Verdict};

/// A model that gets fewer words right than this does not do its task.
const DOES_ITS_TASK: f64 = 0.95;
/// Attention is used if uniform attention loses at least this share of the words.
const MATTERS: f64 = 0.02;
/// A part drives a site from this share of the score's variance along the source.
const DRIVES: f64 = 0.6;
/// … and if attention rebuilt from it alone keeps this share of the words that were right.
const KEEPS: f64 = 0.9;

/// Judges a site: the model must do its task, the shares must point one way, and running the model again must agree.
pub(super) fn verdict(site: &SiteReport, task: &TaskReport) -> Verdict {
    let say = |label: &str, text: String| Verdict { label: label.into(), text };
    if site.error.score > super::passes::MAX_ERROR || site.error.attention.is_some_and(|error| error > super::passes::MAX_ERROR) {
        return say(
            "not exact",
            format!("the terms do not add up to the model's own scores (error {:.1e}); no shares are given", site.error.worst()),
        );
    }
    let Some((shares, mean)) = site.shares.as_ref().map(|shares| shares.totals()) else {
        return say("not measured", "there are no shares to judge by".into());
    };
    // What is the same at every step makes a head salient, not positional.
    let temporal = shares[0] - mean + site.shares.as_ref().map_or(0.0, |shares| shares.position_bias);
    let input = shares[1];
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let of = |name: &str| site.rebuilt.get(name);
    let argmax = |name: &str| of(name).map_or(0.0, |rebuilt| rebuilt.argmax);
    let tendency = format!(
        "{} of the score's variance along the source is temporal × temporal; rebuilt from position alone it picks the same source token in {} of steps",
        percent(temporal),
        percent(argmax("temporal"))
    );
    if !task.can_rerun {
        return say("not rerun", format!("{tendency}; the model is not at hand to be run again"));
    }
    let Some(accuracy) = task.word_accuracy else {
        return say("task not assessed", format!("{tendency}; there is no target to judge the model by"));
    };
    if accuracy < DOES_ITS_TASK {
        return say(
            "task not done",
            format!("the model gets {} of the words right, so its attention is not judged; {tendency}", percent(accuracy)),
        );
    }
    let kept = |name: &str| of(name).and_then(|rebuilt| rebuilt.causal.as_ref()).map(|causal| causal.word_accuracy / accuracy.max(1e-12));
    let (Some(uniform), Some(by_time), Some(by_both), Some(without)) =
        (kept("uniform"), kept("temporal"), kept("temporal+input"), kept("no-temporal"))
    else {
        return say("not rerun", format!("{tendency}; no causal check was run"));
    };
    if uniform > 1.0 - MATTERS {
        return say(
            "unused",
            format!("uniform attention keeps {} of the words that were right: the model does not need this head", percent(uniform)),
        );
    }
    if temporal >= DRIVES && by_time >= KEEPS {
        return say("positional", format!("{tendency} and keeps {} of the words that were right", percent(by_time)));
    }
    if temporal < 1.0 - DRIVES && without >= KEEPS {
        let text = format!(
            "{} of the score's variance along the source comes from tokens and the rest, {} from input × input alone; without the temporal term {} of the words that were right stay right",
            percent(1.0 - temporal),
            percent(input),
            percent(without)
        );
        return say("content", text);
    }
    if by_both >= KEEPS {
        let text = format!(
            "{} of the score's variance along the source is temporal × temporal, but position alone keeps only {} of the words that were right; position and token together keep {}",
            percent(temporal),
            percent(by_time),
            percent(by_both)
        );
        return say("position and token", text);
    }
    let text = format!(
        "{} of the score's variance along the source is temporal × temporal; position alone keeps {} of the words that were right, position and token {}: what the states remember is needed too",
        percent(temporal),
        percent(by_time),
        percent(by_both)
    );
    say("mixed", text)
}
