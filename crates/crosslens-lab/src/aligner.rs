//! Models by path that link words, whoever trained them.

use std::path::Path;

use crosslens_analysis::align::{Gold, Row};
use crosslens_analysis::{Pair, Recordable, Side, SiteKind, Token, Vocabulary};
use crosslens_nets::imported::Imported;
use crosslens_nets::tasks::{END_WORD, Split, Task as _, TaskConfig};
use crosslens_nets::train::RunFolder;
use crosslens_pretrained::{Subject, TokenNames, Wanted};

use crate::aligning::{AlignHeads, AlignOptions, Encoded, EncodedSide, align, check_gold, rate};
use crate::{
    AlignError, Aligned, AttendError, Attention, Choices, ImportedModel, OpenError, PretrainedModel, PretrainedModelError, RatedHead,
    TrainedModel,
};

/// A source and its target.
pub type SourceAndTarget = (String, String);

/// Whose attention links words.
pub enum Aligner {
    /// A network trained here.
    Run(Box<TrainedModel>),
    /// A model of another program that reads texts.
    Imported(Box<ImportedModel>),
}

impl Aligner {
    /// Opens the folder of a run, one of Hugging Face's, or a model that a mapping says how to read.
    pub fn open(path: &Path, choices: &Choices) -> Result<Self, OpenError> {
        if RunFolder::at(path).holds_run() {
            return Ok(Self::Run(Box::new(TrainedModel::open(path)?)));
        }
        Ok(Self::Imported(Box::new(ImportedModel::open_with(path, choices, Attention::Cross)?)))
    }

    /// Links the words of sentence pairs by attention, the decoder fed with the target.
    pub fn align(
        &self,
        pairs: &[SourceAndTarget],
        gold: Option<&[Gold]>,
        options: &AlignOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Aligned, AlignError> {
        align(self.subject(options.n_threads)?.as_ref(), &self.encode_all(pairs)?, gold, options, progress)
    }

    /// Every head, that with the lowest alignment error rate against the links of all these pairs first.
    pub fn rate(
        &self,
        pairs: &[SourceAndTarget],
        gold: &[Gold],
        n_threads: usize,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<RatedHead>, AlignError> {
        let encoded = self.encode_all(pairs)?;
        check_gold(gold, &encoded)?;
        let options = AlignOptions { heads: AlignHeads::Auto, row: Row::Predicting, threshold: None, keeps_weights: false, n_threads };
        let mut told = |done| progress(done, pairs.len() as u64);
        rate(self.subject(n_threads)?.as_ref(), &encoded, Some(gold), &options, |_| true, &mut told)
    }

    /// Words of a text, of which links speak: what blanks separate; characters where a mapped model reads these.
    pub fn n_words(&self, side: Side, text: &str) -> usize {
        if let Self::Imported(model) = self
            && let ImportedModel::Mapped(model) = &**model
        {
            return model.table(side).split(text).len();
        }
        text.split_whitespace().count()
    }

    /// Sentences with their true links; only a network of the task `translation` has some.
    pub fn linked_sentences(&self, seed: u64, n_sentences: u64) -> Option<(Vec<SourceAndTarget>, Vec<Gold>)> {
        match self {
            Self::Run(model) => model.linked_sentences(seed, n_sentences),
            Self::Imported(_) => None,
        }
    }

    fn subject(&self, n_threads: usize) -> Result<Box<dyn Recordable>, AlignError> {
        Ok(match self {
            Self::Run(model) => Box::new(model.subject(n_threads).map_err(AlignError::Threads)?),
            Self::Imported(model) => match &**model {
                ImportedModel::Mapped(model) => Box::new(model.subject(n_threads).map_err(AlignError::Threads)?),
                ImportedModel::Pretrained(model) => {
                    let wanted = Wanted { kinds: vec![SiteKind::Cross], states: false, answers: false };
                    let subject = Subject::new(model.model().clone(), TokenNames::default(), wanted, n_threads);
                    Box::new(subject.map_err(PretrainedModelError::from)?)
                }
            },
        })
    }

    fn encode_all(&self, pairs: &[SourceAndTarget]) -> Result<Vec<Encoded>, AlignError> {
        let encode = |(number, pair): (usize, &SourceAndTarget)| match self {
            Self::Run(model) => model.encode_for_alignment(number + 1, pair),
            Self::Imported(model) => match &**model {
                ImportedModel::Mapped(mapped) => encode_by_table(model, mapped, number + 1, pair),
                ImportedModel::Pretrained(model) => model.encode_for_alignment(number + 1, pair),
            },
        };
        pairs.iter().enumerate().map(encode).collect()
    }
}

/// A pair as a mapped model reads it: a word is a token, what stands around a text aside.
fn encode_by_table(
    model: &ImportedModel,
    mapped: &Imported,
    number: usize,
    (source, target): &SourceAndTarget,
) -> Result<Encoded, AlignError> {
    let of = |source| AlignError::Unread { number, source: Box::new(source) };
    let side = |side: Side, tokens: &[Token]| {
        let table = mapped.table(side);
        let is_text = |token: Token| token != table.start() && token != table.end();
        let name = |&token: &Token| table.words().word(token).unwrap_or_default().to_owned();
        let mut n_words = 0..;
        let word = |&token: &Token| is_text(token).then(|| n_words.next()).flatten();
        EncodedSide::new(tokens.iter().map(name).collect(), tokens.iter().map(word).collect())
    };
    let (source, target) = (model.source(source).map_err(of)?, model.target(target).map_err(of)?);
    let (read, written) = (side(Side::Source, &source)?, side(Side::Target, &target)?);
    Ok(Encoded { pair: Pair::new(source, target), source: read, target: written })
}

impl PretrainedModel {
    fn encode_for_alignment(&self, number: usize, (source, target): &SourceAndTarget) -> Result<Encoded, AlignError> {
        let of = |source| AlignError::Sentence { number, source };
        let (source, target) = (self.source(source).map_err(of)?, self.target(target).map_err(of)?);
        let tokens = |ids: &[u32]| ids.iter().map(|&id| id as Token).collect();
        Ok(Encoded {
            pair: Pair::new(tokens(&source.ids), tokens(&target.ids)),
            source: EncodedSide::new(source.tokens, source.words)?,
            target: EncodedSide::new(target.tokens, target.words)?,
        })
    }
}

impl TrainedModel {
    /// Sentences of the miniature grammar with their true links; `None` for any other task.
    fn linked_sentences(&self, seed: u64, n_sentences: u64) -> Option<(Vec<SourceAndTarget>, Vec<Gold>)> {
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
    fn encode_for_alignment(&self, number: usize, (source, target): &SourceAndTarget) -> Result<Encoded, AlignError> {
        let of = |source| AlignError::Unread { number, source: Box::new(source) };
        let side = |text: &str, is_source: bool| -> Result<(Vec<Token>, EncodedSide), AlignError> {
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
            Ok((tokens, EncodedSide::new(pieces, words)?))
        };
        if source.trim().is_empty() || target.trim().is_empty() {
            return Err(of(AttendError::Empty { side: if source.trim().is_empty() { "source" } else { "target" } }));
        }
        let ((read, source), (written, target)) = (side(source, true)?, side(target, false)?);
        Ok(Encoded { pair: Pair::new(read, written), source, target })
    }
}
