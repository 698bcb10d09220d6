//! Pieces of words, learnt from a corpus by the `tokenizers` library and kept as `tokenizer.json`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tokenizers::decoders::metaspace::Metaspace;
use tokenizers::models::bpe::{BPE, BpeTrainerBuilder};
use tokenizers::models::unigram::{Unigram, UnigramTrainerBuilder};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::{AddedToken, ModelWrapper, Tokenizer};

use super::{TextError, UNKNOWN_WORD};

/// How pieces are learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Learning {
    /// By merging what stands together most often.
    Bpe,
    /// By leaving out what is missed least.
    Unigram,
}

/// The sign that stands for the blank before a word.
pub(super) const BLANK: char = '▁';

/// Learns about `n_pieces` pieces from the texts of both sides.
pub(super) fn learn<'a>(
    learning: Learning,
    n_pieces: usize,
    texts: impl Iterator<Item = Cow<'a, str>> + Send,
) -> Result<Tokenizer, TextError> {
    let failed = |error: tokenizers::Error| TextError::Tokenizer { reason: error.to_string() };
    let unknown = AddedToken::from(UNKNOWN_WORD, true);
    let blanks = Metaspace::new(BLANK, PrependScheme::Always, true);
    let bare = |model: ModelWrapper| -> Result<Tokenizer, TextError> {
        let mut tokenizer = Tokenizer::new(model);
        tokenizer.with_normalizer(Some(NFC)).map_err(failed)?;
        tokenizer.with_pre_tokenizer(Some(blanks.clone())).with_decoder(Some(blanks.clone()));
        Ok(tokenizer)
    };
    let mut tokenizer = match learning {
        Learning::Bpe => {
            let model = BPE::builder().unk_token(UNKNOWN_WORD.into()).build().map_err(failed)?;
            let mut trainer = tokenizers::models::TrainerWrapper::BpeTrainer(
                BpeTrainerBuilder::new().vocab_size(n_pieces).show_progress(false).special_tokens(vec![unknown]).build(),
            );
            let mut tokenizer = bare(ModelWrapper::BPE(model))?;
            tokenizer.train(&mut trainer, texts).map_err(failed)?;
            tokenizer
        }
        Learning::Unigram => {
            let trainer = UnigramTrainerBuilder::default()
                .vocab_size(n_pieces as u32)
                .show_progress(false)
                .special_tokens(vec![unknown])
                .unk_token(Some(UNKNOWN_WORD.into()))
                .build()
                .map_err(|error| TextError::Tokenizer { reason: error.to_string() })?;
            let mut trainer = tokenizers::models::TrainerWrapper::UnigramTrainer(trainer);
            let mut tokenizer = bare(ModelWrapper::Unigram(Unigram::default()))?;
            tokenizer.train(&mut trainer, texts).map_err(failed)?;
            tokenizer
        }
    };
    tokenizer.with_truncation(None).map_err(failed)?.with_padding(None);
    Ok(tokenizer)
}
