//! Words that belong together, by what a model looks at.

use crosslens_analysis::align::{
    AlignmentTally, Gold, Links, Row, SoftAlignment, SoftAlignmentError, SoftText, WordError, WordOf, nematus_block,
};
use crosslens_analysis::explain::batch_size;
use crosslens_analysis::{Description, Fed, Pair, RecordError, Recordable};

use crate::{AttendError, PretrainedModelError};

/// Which heads' attention is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlignHeads {
    /// The one that agrees best with the links of the even sentences, counted from 0, or without such links the one along whose best
    /// [monotone path](SoftAlignment::moving_path) most of its weight lies.
    Auto,
    /// The mean of these, each a layer and a head.
    These(Vec<(usize, usize)>),
}

/// How words are linked.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignOptions {
    /// Whose attention is taken.
    pub heads: AlignHeads,
    /// Which row belongs to a target token.
    pub row: Row,
    /// Links every source word with more weight than this; without, each target word with the source word of most weight.
    pub threshold: Option<f64>,
    /// Whether the weights between tokens are kept beside the links: of a large corpus they take much memory.
    pub keeps_weights: bool,
    /// Threads; 0 for one per core.
    pub n_threads: usize,
}

/// Why words cannot be linked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlignError {
    /// A sentence that the model cannot read.
    #[error("sentence {number}: {source}")]
    Sentence {
        /// From 1.
        number: usize,
        /// The reason.
        source: PretrainedModelError,
    },
    /// A sentence with words that a network trained here, or a mapped one, does not know.
    #[error("sentence {number}: {source}")]
    Unread {
        /// From 1.
        number: usize,
        /// The reason.
        source: Box<AttendError>,
    },
    /// A network without attention.
    #[error("this network has no attention to link words by")]
    NoAttention,
    /// Threads cannot be started.
    #[error("threads cannot be started")]
    Threads(#[source] std::io::Error),
    /// A head that the model does not have.
    #[error("the model has no head {head} in layer {layer} of its cross-attention, whose heads are {first} to {last}")]
    NoSuchHead {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
        /// Its first head, as `layer.head`.
        first: String,
        /// Its last.
        last: String,
    },
    /// Not as many links as sentences.
    #[error("links of {gold} sentences are given for {sentences}")]
    OtherGold {
        /// Lines of links.
        gold: usize,
        /// Sentences.
        sentences: usize,
    },
    /// The model cannot be run.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The model cannot be prepared.
    #[error(transparent)]
    Model(#[from] PretrainedModelError),
    /// Attention that is none.
    #[error(transparent)]
    Soft(#[from] SoftAlignmentError),
    /// Words that fit no attention.
    #[error(transparent)]
    Words(#[from] WordError),
}

/// One sentence, aligned.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignedSentence {
    /// Between words.
    pub links: Links,
    /// Between tokens, where they are kept.
    pub weights: Option<TokenWeights>,
}

/// What the tokens of one sentence have to do with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenWeights {
    /// `[target, source]`.
    pub soft: SoftAlignment,
    /// Source tokens.
    pub source: Vec<String>,
    /// Target tokens.
    pub target: Vec<String>,
    /// Whether the last of the source's and of the target's tokens ends the sentence, and stands for no text.
    pub has_end: [bool; 2],
}

impl TokenWeights {
    /// The weights as [Nematus writes them](nematus_block), which gives every sentence an end: one that has none gets an end
    /// of no weight.
    pub fn soft_text(&self, number: usize) -> Result<String, SoftAlignmentError> {
        let [source, target] = [(&self.source, self.has_end[0]), (&self.target, self.has_end[1])]
            .map(|(tokens, has_end)| &tokens[..tokens.len() - usize::from(has_end)]);
        let (n_rows, n_columns) = (target.len() + 1, source.len() + 1);
        let padded = |row: usize| {
            let weights = if row < self.soft.n_targets() { self.soft.row(row) } else { &[] };
            weights.iter().copied().chain(std::iter::repeat(0.0)).take(n_columns)
        };
        let alignment = SoftAlignment::new(n_rows, n_columns, (0..n_rows).flat_map(padded))?;
        nematus_block(number, 0.0, &SoftText { source, target, alignment: &alignment })
    }
}

/// How well one head's attention aligns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatedHead {
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
    /// Against given links; empty without.
    pub tally: AlignmentTally,
    /// Share of its weight along the best monotone path, what a source token gets anyway left out.
    pub monotone: f64,
}

/// A corpus, aligned.
#[derive(Clone, Debug, PartialEq)]
pub struct Aligned {
    /// Whose attention was taken.
    pub heads: Vec<(usize, usize)>,
    /// All heads, where one was chosen among them; best first.
    pub rated: Vec<RatedHead>,
    /// By sentence.
    pub sentences: Vec<AlignedSentence>,
    /// Against given links: of all sentences, or where a head was chosen by those of the even ones, of the odd ones.
    pub tally: Option<AlignmentTally>,
    /// Whether the head was chosen by the links of the even sentences.
    chosen_by_even: bool,
}

impl Aligned {
    /// Whether quality is measured on a sentence, counted from 0: one whose links chose the head says nothing of it.
    pub fn is_judged(&self, number: usize) -> bool {
        !(self.chosen_by_even && is_even(number))
    }
}

/// A pair, encoded.
pub(crate) struct Encoded {
    pub(crate) pair: Pair,
    pub(crate) source: EncodedSide,
    pub(crate) target: EncodedSide,
}

/// One side of it.
pub(crate) struct EncodedSide {
    pub(crate) tokens: Vec<String>,
    /// To which word each belongs; none for tokens that stand for no text.
    pub(crate) words: WordOf,
    /// Whether the last token ends the sentence, and stands for no text.
    pub(crate) has_end: bool,
}

impl EncodedSide {
    pub(crate) fn new(tokens: Vec<String>, words: Vec<Option<usize>>) -> Result<Self, AlignError> {
        let has_end = words.last().is_some_and(Option::is_none);
        Ok(Self { tokens, words: WordOf::new(words)?, has_end })
    }
}

/// Links the words of encoded sentences by what `subject` looks at.
pub(crate) fn align(
    subject: &dyn Recordable,
    encoded: &[Encoded],
    gold: Option<&[Gold]>,
    options: &AlignOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Aligned, AlignError> {
    gold.map_or(Ok(()), |gold| check_gold(gold, encoded))?;
    let places = places(subject)?;
    let n_passes = if options.heads == AlignHeads::Auto && places.len() > 1 { 2 } else { 1 };
    let all = encoded.len() as u64 * n_passes;

    let (heads, rated, only_odd) = match &options.heads {
        AlignHeads::These(heads) => (heads.clone(), Vec::new(), false),
        // Of one head there is nothing to choose.
        AlignHeads::Auto if places.len() == 1 => (places.clone(), Vec::new(), false),
        AlignHeads::Auto => {
            // Quality is measured on the odd ones.
            let rated = rate(subject, encoded, gold, options, is_even, &mut |done| progress(done, all))?;
            (vec![(rated[0].layer, rated[0].head)], rated, gold.is_some())
        }
    };
    let find = |&(layer, head): &(usize, usize)| {
        places.iter().position(|place| *place == (layer, head)).ok_or_else(|| no_such_head(&places, layer, head))
    };
    let sites = heads.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let mut sentences = Vec::with_capacity(encoded.len());
    let mut tally = gold.map(|_| AlignmentTally::default());
    for_each_attention(subject, encoded, |number, attention| {
        let mut mean = vec![0.0; attention[sites[0]].len()];
        for &site in &sites {
            mean.iter_mut().zip(&attention[site]).for_each(|(sum, &weight)| *sum += f64::from(weight) / sites.len() as f64);
        }
        let (soft, links) = link(&encoded[number], &mean, options)?;
        if let (Some(tally), Some(gold)) = (&mut tally, gold)
            && !(only_odd && is_even(number))
        {
            tally.add(&links, &gold[number]);
        }
        let weights = options.keeps_weights.then(|| {
            let Encoded { source, target, .. } = &encoded[number];
            let has_end = [source.has_end, target.has_end];
            TokenWeights { soft: soft.by(options.row), source: source.tokens.clone(), target: target.tokens.clone(), has_end }
        });
        sentences.push(AlignedSentence { links, weights });
        progress(all - encoded.len() as u64 + number as u64 + 1, all);
        Ok(())
    })?;
    Ok(Aligned { heads, rated, sentences, tally, chosen_by_even: only_odd })
}

fn no_such_head(places: &[(usize, usize)], layer: usize, head: usize) -> AlignError {
    let name = |place: Option<&(usize, usize)>| place.map(|(layer, head)| format!("{layer}.{head}")).unwrap_or_default();
    AlignError::NoSuchHead { layer, head, first: name(places.first()), last: name(places.last()) }
}

fn is_even(number: usize) -> bool {
    number.is_multiple_of(2)
}

/// The heads, each a layer and a head.
fn places(subject: &dyn Recordable) -> Result<Vec<(usize, usize)>, AlignError> {
    let places: Vec<_> = subject.description().sites.iter().map(|site| (site.layer, site.head)).collect();
    if places.is_empty() { Err(AlignError::NoAttention) } else { Ok(places) }
}

pub(crate) fn check_gold(gold: &[Gold], encoded: &[Encoded]) -> Result<(), AlignError> {
    if gold.len() == encoded.len() {
        return Ok(());
    }
    Err(AlignError::OtherGold { gold: gold.len(), sentences: encoded.len() })
}

/// Sentences that are run at a time: of long ones few, since every head's attention of all of them is there at once.
fn n_in_hand(description: &Description, encoded: &[Encoded]) -> usize {
    let longest = |of: fn(&Pair) -> usize| encoded.iter().map(|sentence| of(&sentence.pair)).max().unwrap_or(0);
    batch_size(description, longest(|pair| pair.source.len()), longest(|pair| pair.target.len())) as usize
}

/// Hands over the attention of each sentence, by site.
fn for_each_attention(
    subject: &dyn Recordable,
    encoded: &[Encoded],
    mut take: impl FnMut(usize, &[Vec<f32>]) -> Result<(), AlignError>,
) -> Result<(), AlignError> {
    let size = n_in_hand(subject.description(), encoded);
    for (batch, sentences) in encoded.chunks(size).enumerate() {
        let pairs: Vec<Pair> = sentences.iter().map(|sentence| sentence.pair.clone()).collect();
        for (place, recorded) in subject.record(&pairs, Fed::Target)?.iter().enumerate() {
            take(batch * size + place, &recorded.attention)?;
        }
    }
    Ok(())
}

fn link(sentence: &Encoded, weights: &[f64], options: &AlignOptions) -> Result<(SoftAlignment, Links), AlignError> {
    let (n_targets, n_sources) = (sentence.pair.target.len(), sentence.pair.source.len());
    let soft = SoftAlignment::new(n_targets, n_sources, weights.iter().copied())?;
    let words = soft.joined(&sentence.target.words, &sentence.source.words, options.row)?;
    let links = options.threshold.map_or_else(|| words.argmax_links(), |threshold| words.links_above(threshold));
    Ok((soft, links))
}

/// Rates every head, best first: by the links of the sentences that `is_judged_by`, counted from 0, or without links by the path.
pub(crate) fn rate(
    subject: &dyn Recordable,
    encoded: &[Encoded],
    gold: Option<&[Gold]>,
    options: &AlignOptions,
    is_judged_by: fn(usize) -> bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<RatedHead>, AlignError> {
    let rated = |(layer, head)| RatedHead { layer, head, tally: AlignmentTally::default(), monotone: 0.0 };
    let mut rated: Vec<RatedHead> = places(subject)?.into_iter().map(rated).collect();
    let mut paths = vec![(0.0, 0.0); rated.len()];
    for_each_attention(subject, encoded, |number, attention| {
        for ((rated, path), attention) in rated.iter_mut().zip(&mut paths).zip(attention) {
            let weights: Vec<f64> = attention.iter().map(|&weight| weight.into()).collect();
            let (soft, links) = link(&encoded[number], &weights, options)?;
            let along = soft.moving_path();
            *path = (path.0 + along.weight, path.1 + along.total);
            if let Some(gold) = gold
                && is_judged_by(number)
            {
                rated.tally.add(&links, &gold[number]);
            }
        }
        progress(number as u64 + 1);
        Ok(())
    })?;
    for (rated, (weight, total)) in rated.iter_mut().zip(paths) {
        rated.monotone = weight / f64::max(total, f64::MIN_POSITIVE);
    }
    rated.sort_by(|a, b| match gold {
        Some(_) => a.tally.aer().unwrap_or(1.0).total_cmp(&b.tally.aer().unwrap_or(1.0)),
        None => b.monotone.total_cmp(&a.monotone),
    });
    Ok(rated)
}

#[cfg(test)]
mod tests {
    use crosslens_analysis::{ScoreMap, Side, Site, SiteKind, Stream, Visible, Words};

    use super::*;

    fn sentence(n_source: usize, n_target: usize) -> Encoded {
        let side = || EncodedSide { tokens: Vec::new(), words: WordOf::new(Vec::new()).expect("no words"), has_end: false };
        Encoded { pair: Pair::new(vec![0; n_source], vec![0; n_target]), source: side(), target: side() }
    }

    /// The attention of 64 pairs of 1000 tokens at 96 heads would take 25 GB, of which one sentence has 384 MB.
    #[test]
    fn of_long_sentences_few_are_in_hand() {
        let stream = |side| Stream { name: "some".into(), side, consumed: crosslens_analysis::Consumed::Current, d: 1 };
        let site = Site {
            kind: SiteKind::Cross,
            layer: 0,
            head: 0,
            query: 1,
            key: 0,
            map: ScoreMap::Dot { scale: 1.0 },
            visible: Visible::All,
            value: None,
        };
        let description = Description {
            model: String::new(),
            model_hash: String::new(),
            source: Words::default(),
            target: Words::default(),
            streams: vec![stream(Side::Source), stream(Side::Target)],
            sites: vec![site; 96],
            readout: None,
        };
        assert_eq!(n_in_hand(&description, &[sentence(20, 20), sentence(1000, 1000)]), 1);
        assert_eq!(n_in_hand(&description, &[sentence(20, 20)]), 64);
    }
}
