//! Which head should one look at: every head of a model in one line each, with what drives it.
//!
//! The rules stand in `docs/heads.md`; they are read off the shares alone, so that heads can be compared within a model. Whether a head
//! does what its label says is told by the causal columns beside it, and by the verdict.

use serde::{Deserialize, Serialize};

use crate::report::{Causal, Report, SiteReport};

/// A part drives a head from this share of the scores' variance along the keys.
const DRIVES: f64 = 0.5;

/// How far from 1 the shares of scores that vary may sum.
const WHOLE: f64 = 0.01;

/// What a head's scores are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadLabel {
    /// Where both tokens stand, the bias of distances included.
    Positional,
    /// Which tokens they are, on both sides.
    TokenMatching,
    /// The same for every query: some keys draw attention whoever asks.
    Sink,
    /// What the states hold besides position and token, on either side.
    Residual,
    /// None of these alone.
    Mixed,
    /// The terms do not add up, or the scores do not vary.
    Unknown,
}

impl HeadLabel {
    /// All labels, in the order of the rules.
    pub const ALL: [Self; 6] = [Self::Sink, Self::Positional, Self::TokenMatching, Self::Residual, Self::Mixed, Self::Unknown];

    /// As files and tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Positional => "positional",
            Self::TokenMatching => "token-matching",
            Self::Sink => "sink",
            Self::Residual => "residual",
            Self::Mixed => "mixed",
            Self::Unknown => "unknown",
        }
    }

    /// The attention of the report that is rebuilt from what the label names.
    pub fn rebuilt_from(self) -> &'static str {
        match self {
            Self::Positional => "temporal",
            Self::TokenMatching => "input",
            Self::Residual => "residual",
            // What draws attention whoever asks may be a token as well as a place.
            Self::Sink | Self::Mixed | Self::Unknown => "temporal+input",
        }
    }

    fn of(shares: &HeadShares) -> Self {
        // Shares of scores that do not vary are no numbers.
        if !shares.parts().iter().all(|share| share.is_finite()) {
            return Self::Unknown;
        }
        let rules = [
            (shares.sink, Self::Sink),
            (shares.positional, Self::Positional),
            (shares.token, Self::TokenMatching),
            (shares.residual, Self::Residual),
        ];
        rules.iter().find(|(share, _)| *share >= DRIVES).map_or(Self::Mixed, |(_, label)| *label)
    }
}

/// Centred shares that the rules look at. What is not among them pairs a position with a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadShares {
    /// Position with position and the bias of distances, less what is the same for every query.
    pub positional: f64,
    /// Token with token.
    pub token: f64,
    /// The same for every query: the mean of the queries' temporal part with anything.
    pub sink: f64,
    /// All terms with a residual, on either side.
    pub residual: f64,
}

impl HeadShares {
    /// From the nine centred shares, row by row, that of the bias of positions, and what of the first row comes from the mean query.
    pub(crate) fn of(centred: &[f64; 9], position_bias: f64, query_mean: &[f64]) -> Self {
        Self {
            positional: centred[0] - query_mean.first().copied().unwrap_or(0.0) + position_bias,
            token: centred[4],
            sink: query_mean.iter().sum(),
            residual: centred[6..].iter().sum::<f64>() + centred[2] + centred[5],
        }
    }

    /// Positional, token, sink, residual.
    pub(crate) fn parts(&self) -> [f64; 4] {
        [self.positional, self.token, self.sink, self.residual]
    }
}

/// 95 % intervals of what the rules look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadIntervals {
    /// Of [`HeadShares::positional`].
    pub positional: [f64; 2],
    /// Of [`HeadShares::token`].
    pub token: [f64; 2],
    /// Of [`HeadShares::sink`].
    pub sink: [f64; 2],
    /// Of [`HeadShares::residual`].
    pub residual: [f64; 2],
}

/// What it does to the model to change one head.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeadEffect {
    /// Loss of the target, nats a token, with nothing changed.
    pub loss: f64,
    /// More of it where the head's attention is rebuilt from what its label names.
    pub rebuilt: f64,
    /// … where it is uniform.
    pub uniform: f64,
    /// … where it is the average of all sentences.
    pub average: f64,
}

/// One head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// `cross`, `encoder-self` or `decoder-self`.
    pub kind: String,
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
    /// What drives it.
    pub label: HeadLabel,
    /// By what the label was chosen.
    pub shares: HeadShares,
    /// 95 % intervals of these; null if not asked for, or where there are no shares.
    #[serde(default)]
    pub share_intervals: Option<HeadIntervals>,
    /// 95 % intervals of the centred shares, piece by piece; null if not asked for.
    pub intervals: Option<Vec<[f64; 2]>>,
    /// Entropy of a row over that of a uniform one.
    pub entropy: f64,
    /// Share of steps in which attention rebuilt from what the label names picks the same key.
    pub agreement: f64,
    /// How much of its attention runs along one diagonal; null without content.
    pub diagonal: Option<f64>,
    /// How much of its attention lies on one path that never goes back and does not stand still; only where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotone: Option<f64>,
    /// What the model loses; null where it was not run again.
    pub effect: Option<HeadEffect>,
    /// The verdict's label.
    pub verdict: String,
}

impl Head {
    /// From what the report says of its site.
    pub fn of(site: &SiteReport, plain: Option<&Causal>) -> Self {
        let shares = head_shares(site);
        let label = shares.as_ref().map_or(HeadLabel::Unknown, HeadLabel::of);
        let name = label.rebuilt_from();
        let with_bias = format!("{name}+bias");
        let name = if site.rebuilt.contains_key(&with_bias) { with_bias.as_str() } else { name };
        let more = |name: &str| Some(site.rebuilt.get(name)?.causal.as_ref()?.loss - plain?.loss);
        let effect = || Some(HeadEffect { loss: plain?.loss, rebuilt: more(name)?, uniform: more("uniform")?, average: more("average")? });
        Self {
            kind: site.kind.clone(),
            layer: site.layer,
            head: site.head,
            label,
            shares: shares.unwrap_or_default(),
            share_intervals: shares.and_then(|_| head_intervals(site)),
            intervals: site.intervals.as_ref().and_then(|intervals| intervals.shares.get("centred").cloned()),
            entropy: site.entropy,
            agreement: site.rebuilt.get(name).map_or(0.0, |rebuilt| rebuilt.argmax),
            diagonal: site.diagonal.as_ref().map(|diagonal| diagonal.share),
            monotone: site.monotone,
            effect: effect(),
            verdict: site.verdict.label.clone(),
        }
    }

    /// The interval of the share that decided the label: the one it names, of a mixed head the largest.
    pub fn deciding_interval(&self) -> Option<[f64; 2]> {
        let HeadIntervals { positional, token, sink, residual } = self.share_intervals?;
        match self.label {
            HeadLabel::Positional => Some(positional),
            HeadLabel::TokenMatching => Some(token),
            HeadLabel::Sink => Some(sink),
            HeadLabel::Residual => Some(residual),
            HeadLabel::Unknown => None,
            HeadLabel::Mixed => {
                let by_share = self.shares.parts().into_iter().zip([positional, token, sink, residual]);
                by_share.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, interval)| interval)
            }
        }
    }

    /// All heads of a report.
    pub fn all(report: &Report) -> Vec<Self> {
        let plain = report.unchanged.as_ref();
        report.sites.iter().map(|site| Self::of(site, plain)).collect()
    }
}

/// `None` where there are no shares, where scores do not vary, or where they are additive, without pairs of parts.
fn head_shares(site: &SiteReport) -> Option<HeadShares> {
    let shares = site.shares.as_ref()?;
    let table = shares.tables.get("centred")?;
    // Shares sum to 1 by construction, unless no score varies: then all of them are 0.
    let total = table.iter().flatten().sum::<f64>() + shares.position_bias;
    let [[a, b, c], [d, e, f], [g, h, i]] = *table;
    ((total - 1.0).abs() < WHOLE).then(|| HeadShares::of(&[a, b, c, d, e, f, g, h, i], shares.position_bias, &shares.query_mean))
}

fn head_intervals(site: &SiteReport) -> Option<HeadIntervals> {
    match site.intervals.as_ref()?.shares.get("head_shares")?[..] {
        [positional, token, sink, residual] => Some(HeadIntervals { positional, token, sink, residual }),
        _ => None,
    }
}

/// One head in two models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeadChange {
    /// In the first.
    pub before: Head,
    /// In the second.
    pub after: Head,
    /// Half of the sum of what the four shares moved by.
    pub moved: f64,
}

impl HeadChange {
    /// The heads of two models, those that changed most first; `None` unless both have the same heads.
    pub fn all(before: &[Head], after: &[Head]) -> Option<Vec<Self>> {
        let place = |head: &Head| (head.kind.clone(), head.layer, head.head);
        if !before.iter().map(place).eq(after.iter().map(place)) {
            return None;
        }
        let change = |(before, after): (&Head, &Head)| {
            let differences = before.shares.parts().into_iter().zip(after.shares.parts()).map(|(a, b)| (a - b).abs());
            Self { before: before.clone(), after: after.clone(), moved: differences.sum::<f64>() / 2.0 }
        };
        let mut changes: Vec<Self> = before.iter().zip(after).map(change).collect();
        changes.sort_by(|a, b| b.is_another().cmp(&a.is_another()).then(b.moved.total_cmp(&a.moved)));
        Some(changes)
    }

    /// Whether the label is another.
    pub fn is_another(&self) -> bool {
        self.before.label != self.after.label
    }
}

/// The `alignment_heads` of a generation configuration: `[[layer, head], …]` of these heads.
pub fn alignment_heads<'h>(heads: impl IntoIterator<Item = &'h Head>) -> serde_json::Value {
    heads.into_iter().map(|head| serde_json::json!([head.layer, head.head])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_the_rules_in_their_order() {
        let of = |positional, token, sink, residual| HeadLabel::of(&HeadShares { positional, token, sink, residual });
        assert_eq!(of(0.9, 0.05, 0.0, 0.05), HeadLabel::Positional);
        assert_eq!(of(0.1, 0.8, 0.0, 0.1), HeadLabel::TokenMatching);
        assert_eq!(of(0.3, 0.0, 0.7, 0.0), HeadLabel::Sink);
        assert_eq!(of(0.2, 0.2, 0.0, 0.6), HeadLabel::Residual);
        assert_eq!(of(0.4, 0.4, 0.0, 0.2), HeadLabel::Mixed);
        // A part can explain more than all of it where another works against it.
        assert_eq!(of(-0.2, 0.6, 0.6, 0.0), HeadLabel::Sink);
        assert_eq!(of(f64::NAN, 0.0, 0.0, 0.0), HeadLabel::Unknown);
    }

    /// Nine shares that sum to 1 with a bias of 0.05; of the first row 0.1 and 0.02 come from the mean query.
    #[test]
    fn shares_are_summed_from_the_terms() {
        let shares = HeadShares::of(&[0.3, 0.1, 0.05, 0.0, 0.2, 0.05, 0.1, 0.05, 0.1], 0.05, &[0.1, 0.02, 0.0]);
        let expected = [0.25, 0.2, 0.12, 0.35];
        assert!(shares.parts().iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12), "{shares:?}");
    }
}
