//! Words that belong together, by what a model looks at.

use crosslens_analysis::align::{AlignmentTally, Gold, Links, Row, SoftAlignment, SoftAlignmentError, WordError, WordOf};
use crosslens_analysis::{Fed, Pair, RecordError, Recordable, SiteKind, Token, Vocabulary};
use crosslens_nets::tasks::{END_WORD, Split, Task as _, TaskConfig};
use crosslens_pretrained::{Subject, TokenNames, Wanted};

use crate::{AttendError, PretrainedModel, PretrainedModelError, TrainedModel};

/// Sentences that are run at a time.
const BATCH: usize = 64;

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
    /// Links every source word with this much weight or more; without, each target word with the source word of most weight.
    pub threshold: Option<f64>,
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
    /// A sentence that a network trained here cannot read.
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
    #[error("the model has no head {head} in layer {layer} of its cross-attention")]
    NoSuchHead {
        /// The layer.
        layer: usize,
        /// The head.
        head: usize,
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
    /// Between tokens, `[target, source]`.
    pub soft: SoftAlignment,
    /// Source tokens.
    pub source: Vec<String>,
    /// Target tokens.
    pub target: Vec<String>,
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
        !self.chosen_by_even || number % 2 == 1
    }
}

/// A pair, encoded.
struct Encoded {
    pair: Pair,
    source: Vec<String>,
    target: Vec<String>,
    source_words: WordOf,
    target_words: WordOf,
}

impl PretrainedModel {
    /// Links the words of sentence pairs by attention, the decoder fed with the target.
    pub fn align(
        &self,
        pairs: &[(String, String)],
        gold: Option<&[Gold]>,
        options: &AlignOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Aligned, AlignError> {
        let encoded: Vec<Encoded> = pairs.iter().enumerate().map(|(number, pair)| self.encode(number, pair)).collect::<Result<_, _>>()?;
        let wanted = Wanted { kinds: vec![SiteKind::Cross], states: false, answers: false };
        let subject =
            Subject::new(self.model().clone(), TokenNames::default(), wanted, options.n_threads).map_err(PretrainedModelError::from)?;
        align(&subject, &encoded, gold, options, progress)
    }

    fn encode(&self, number: usize, (source, target): &(String, String)) -> Result<Encoded, AlignError> {
        let number = number + 1;
        let of = |source| AlignError::Sentence { number, source };
        let (source, target) = (self.source(source).map_err(of)?, self.target(target).map_err(of)?);
        let tokens = |ids: &[u32]| ids.iter().map(|&id| id as Token).collect();
        Ok(Encoded {
            pair: Pair::new(tokens(&source.ids), tokens(&target.ids)),
            source: source.tokens,
            target: target.tokens,
            source_words: WordOf::new(source.words)?,
            target_words: WordOf::new(target.words)?,
        })
    }
}

/// A source and its target.
type TextPair = (String, String);

impl TrainedModel {
    /// Links the words of sentence pairs by the attention of a network trained here, the decoder fed with the target.
    pub fn align(
        &self,
        pairs: &[(String, String)],
        gold: Option<&[Gold]>,
        options: &AlignOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Aligned, AlignError> {
        let subject = self.subject(options.n_threads).map_err(AlignError::Threads)?;
        if subject.description().sites.is_empty() {
            return Err(AlignError::NoAttention);
        }
        let encoded: Vec<Encoded> =
            pairs.iter().enumerate().map(|(number, pair)| self.encode_for_alignment(number, pair)).collect::<Result<_, _>>()?;
        align(&subject, &encoded, gold, options, progress)
    }

    /// Sentences of the miniature grammar with their true links; `None` for any other task.
    pub fn linked_sentences(&self, seed: u64, n_sentences: u64) -> Option<(Vec<TextPair>, Vec<Gold>)> {
        let TaskConfig::Translation(config) = &self.config.task else { return None };
        let task = config.build().ok()?;
        let (source, target) = (self.task.source_vocabulary(), self.task.target_vocabulary());
        let sentence = |index| {
            let Pair { source: from, target: to, .. } = task.pair(Split::Test, seed, index);
            let words = |vocabulary: &Vocabulary, tokens: &[Token]| {
                let end = vocabulary.token(END_WORD);
                vocabulary.text(&tokens.iter().copied().filter(|&token| Some(token) != end).collect::<Vec<_>>())
            };
            ((words(source, &from), words(target, &to)), task.alignment(Split::Test, seed, index))
        };
        Some((0..n_sentences).map(sentence).unzip())
    }

    /// Words of the text are those that blanks separate, so that they are the words of given links.
    fn encode_for_alignment(&self, number: usize, (source, target): &(String, String)) -> Result<Encoded, AlignError> {
        let number = number + 1;
        let of = |source| AlignError::Unread { number, source: Box::new(source) };
        let side = |text: &str, is_source: bool| -> Result<(Vec<Token>, Vec<String>, WordOf), AlignError> {
            let (mut tokens, mut pieces, mut words) = (Vec::new(), Vec::new(), Vec::new());
            let n_words = text.split_whitespace().count();
            for (place, word) in text.split_whitespace().enumerate() {
                let read = if is_source { self.read_source(word) } else { self.read_target(word) };
                let (word_tokens, word_pieces) = read.map_err(of)?;
                // Each word is read with an end; only that of the last is one.
                let has_end = word_pieces.last().is_some_and(|piece| piece == END_WORD);
                let kept = word_tokens.len() - usize::from(has_end && place + 1 < n_words);
                for (token, piece) in word_tokens.into_iter().zip(word_pieces).take(kept) {
                    words.push((piece != END_WORD).then_some(place));
                    tokens.push(token);
                    pieces.push(piece);
                }
            }
            Ok((tokens, pieces, WordOf::new(words)?))
        };
        if source.trim().is_empty() || target.trim().is_empty() {
            return Err(of(AttendError::Empty { side: if source.trim().is_empty() { "source" } else { "target" } }));
        }
        let (source_tokens, source, source_words) = side(source, true)?;
        let (target_tokens, target, target_words) = side(target, false)?;
        Ok(Encoded { pair: Pair::new(source_tokens, target_tokens), source, target, source_words, target_words })
    }
}

/// Links the words of encoded sentences by what `subject` looks at.
fn align(
    subject: &dyn Recordable,
    encoded: &[Encoded],
    gold: Option<&[Gold]>,
    options: &AlignOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Aligned, AlignError> {
    if let Some(gold) = gold.filter(|gold| gold.len() != encoded.len()) {
        return Err(AlignError::OtherGold { gold: gold.len(), sentences: encoded.len() });
    }
    let places: Vec<(usize, usize)> = subject.description().sites.iter().map(|site| (site.layer, site.head)).collect();
    let n_passes = if options.heads == AlignHeads::Auto && places.len() > 1 { 2 } else { 1 };
    let all = encoded.len() as u64 * n_passes;

    let (heads, rated, only_odd) = match &options.heads {
        AlignHeads::These(heads) => (heads.clone(), Vec::new(), false),
        // Of one head there is nothing to choose.
        AlignHeads::Auto if places.len() == 1 => (places.clone(), Vec::new(), false),
        AlignHeads::Auto => {
            let rated = rate(subject, encoded, gold, options, &places, &mut |done| progress(done, all))?;
            (vec![(rated[0].layer, rated[0].head)], rated, gold.is_some())
        }
    };
    let find = |&(layer, head): &(usize, usize)| {
        places.iter().position(|place| *place == (layer, head)).ok_or(AlignError::NoSuchHead { layer, head })
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
            && (!only_odd || number % 2 == 1)
        {
            tally.add(&links, &gold[number]);
        }
        let Encoded { source, target, .. } = &encoded[number];
        sentences.push(AlignedSentence { links, soft, source: source.clone(), target: target.clone() });
        progress(all - encoded.len() as u64 + number as u64 + 1, all);
        Ok(())
    })?;
    Ok(Aligned { heads, rated, sentences, tally, chosen_by_even: only_odd })
}

/// Hands over the attention of each sentence, by site.
fn for_each_attention(
    subject: &dyn Recordable,
    encoded: &[Encoded],
    mut take: impl FnMut(usize, &[Vec<f32>]) -> Result<(), AlignError>,
) -> Result<(), AlignError> {
    for (batch, sentences) in encoded.chunks(BATCH).enumerate() {
        let pairs: Vec<Pair> = sentences.iter().map(|sentence| sentence.pair.clone()).collect();
        for (place, recorded) in subject.record(&pairs, Fed::Target)?.iter().enumerate() {
            take(batch * BATCH + place, &recorded.attention)?;
        }
    }
    Ok(())
}

fn link(sentence: &Encoded, weights: &[f64], options: &AlignOptions) -> Result<(SoftAlignment, Links), AlignError> {
    let (n_targets, n_sources) = (sentence.pair.target.len(), sentence.pair.source.len());
    let soft = SoftAlignment::new(n_targets, n_sources, weights.iter().copied())?;
    let words = soft.joined(&sentence.target_words, &sentence.source_words, options.row)?;
    let links = options.threshold.map_or_else(|| words.argmax_links(), |threshold| words.links_above(threshold));
    Ok((soft, links))
}

/// Rates every head, best first.
fn rate(
    subject: &dyn Recordable,
    encoded: &[Encoded],
    gold: Option<&[Gold]>,
    options: &AlignOptions,
    places: &[(usize, usize)],
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<RatedHead>, AlignError> {
    let rated = |&(layer, head): &(usize, usize)| RatedHead { layer, head, tally: AlignmentTally::default(), monotone: 0.0 };
    let mut rated: Vec<RatedHead> = places.iter().map(rated).collect();
    let mut paths = vec![(0.0, 0.0); rated.len()];
    for_each_attention(subject, encoded, |number, attention| {
        for ((rated, path), attention) in rated.iter_mut().zip(&mut paths).zip(attention) {
            let weights: Vec<f64> = attention.iter().map(|&weight| weight.into()).collect();
            let (soft, links) = link(&encoded[number], &weights, options)?;
            let along = soft.moving_path();
            *path = (path.0 + along.weight, path.1 + along.total);
            if let Some(gold) = gold
                && number % 2 == 0
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
