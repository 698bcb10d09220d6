//! The heads that follow the sound, and when they look where.

use crosslens_analysis::timing::{AttentionShape, TimingError, TokenTimes, TokenTiming, token_times};
use crosslens_analysis::{SiteKind, Token};
use serde_json::Value;

use super::{STEP_SECS, SpeechError};
use crate::decode::TakenIn;
use crate::fields::Fields;
use crate::layers::{At, Need, Pace, Watch};
use crate::model::Model;

/// Heads of a decoder that look at the sound of the word they write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignmentHeads {
    /// Layer and head.
    pub heads: Vec<(usize, usize)>,
    /// Whether somebody or `generation_config.json` names them; else they are all of the upper half of the layers.
    pub are_named: bool,
}

impl AlignmentHeads {
    /// Those that `alignment_heads` of `generation_config.json` names.
    pub fn of(model: &Model) -> Result<Self, SpeechError> {
        let path = model.folder().join("generation_config.json");
        let own = if path.exists() { Fields::read(&path)? } else { Fields::none(&path) };
        let n_heads = n_heads(model);
        let wrong = |what: String| SpeechError::Heads { path: path.clone(), what };
        let head = |value: &Value| match value.as_array().map(Vec::as_slice) {
            Some([layer, head]) => Some((usize::try_from(layer.as_u64()?).ok()?, usize::try_from(head.as_u64()?).ok()?)),
            _ => None,
        };
        let mut heads = Vec::new();
        match own.get("alignment_heads") {
            None => {}
            Some(Value::Array(named)) => {
                for value in named {
                    let (layer, head) = head(value).ok_or_else(|| wrong(format!("holds {value}; a layer and a head are meant")))?;
                    let count = n_heads.get(layer).copied().unwrap_or(0);
                    if head >= count {
                        return Err(wrong(format!("names layer {layer}, head {head}, which the model does not have")));
                    }
                    if !heads.contains(&(layer, head)) {
                        heads.push((layer, head));
                    }
                }
            }
            Some(value) => return Err(wrong(format!("is {value}; pairs of a layer and a head are meant"))),
        }
        let are_named = !heads.is_empty();
        if !are_named {
            let upper = n_heads.len() / 2..n_heads.len();
            heads = upper.flat_map(|layer| (0..n_heads[layer]).map(move |head| (layer, head))).collect();
        }
        Ok(Self { heads, are_named })
    }

    /// These, if the model has them.
    pub fn given(model: &Model, given: &[(usize, usize)]) -> Result<Self, SpeechError> {
        let n_heads = n_heads(model);
        let mut heads = Vec::new();
        for &(layer, head) in given {
            if head >= n_heads.get(layer).copied().unwrap_or(0) {
                return Err(SpeechError::NoSuchHead { layer, head, n_layers: n_heads.len() });
            }
            if !heads.contains(&(layer, head)) {
                heads.push((layer, head));
            }
        }
        Ok(Self { heads, are_named: true })
    }

    /// When the tokens of a text were said, and when the last of them ended: `text.len() + 1` times that never go back, fewer where the
    /// text is as long as the decoder can read.
    ///
    /// The decoder reads the prompt and the text once more; the row of attention that writes a token says where it looks. `n_real` steps of
    /// the encoder are sound.
    pub(super) fn times(
        &self,
        taken_in: &TakenIn<'_>,
        model: &Model,
        (prompt, text): (&[Token], &[Token]),
        n_real: usize,
    ) -> Result<Vec<f64>, SpeechError> {
        // A text that filled all positions has no room for one more token of the prompt.
        let room = model.decoder.positions.as_ref().map_or(usize::MAX, |positions| positions.len().saturating_sub(prompt.len()));
        let text = &text[..text.len().min(room)];
        let fed = [prompt, text].concat();
        model.check_fed(&fed)?;
        let mut seen = Seen { wanted: &self.heads, weights: vec![Vec::new(); self.heads.len()] };
        model.decode(&taken_in.encoded, &[fed.as_slice()], Pace::Sentences, Need::Weights, &mut seen);
        let n_frames = taken_in.encoded.states.len() / model.encoder.d();
        let rows: Vec<usize> = (fed.len() - text.len() - 1..fed.len()).collect();
        Ok(row_times(&seen.weights, n_frames, &rows, n_real)?.starts())
    }
}

/// By layer of the decoder.
fn n_heads(model: &Model) -> Vec<usize> {
    model.decoder.layers.iter().map(|layer| layer.cross.as_ref().map_or(0, |(_, cross)| cross.n_heads)).collect()
}

/// When tokens were said, by the attention of heads that follow the sound, `[row, frame]` each: `rows` wrote the tokens, and the last of
/// them what came after. `n_real` frames are sound.
///
/// Rows that wrote no text, such as a prompt and timestamps, say nothing of the sound and are left out by the caller.
pub fn row_times<H: AsRef<[f32]>>(heads: &[H], n_frames: usize, rows: &[usize], n_real: usize) -> Result<TokenTimes, TimingError> {
    let of_rows = |head: &H| -> Vec<f32> {
        let row = |&row: &usize| head.as_ref().get(row * n_frames..(row + 1) * n_frames);
        rows.iter().filter_map(row).flatten().copied().collect()
    };
    let heads: Vec<Vec<f32>> = heads.iter().map(of_rows).collect();
    let how = TokenTiming { seconds_a_frame: STEP_SECS, ..TokenTiming::default() };
    token_times(&heads, AttentionShape { n_tokens: rows.len(), n_frames, n_real: n_real.clamp(1, n_frames.max(1)) }, &how)
}

/// Keeps the attention of some heads, `[token, step]` each.
struct Seen<'a> {
    wanted: &'a [(usize, usize)],
    weights: Vec<Vec<f32>>,
}

impl Watch for Seen<'_> {
    fn looks_at(&self, at: At) -> bool {
        at.kind == SiteKind::Cross
    }

    fn weights(&mut self, at: At, head: usize, _: usize, _: [&[f32]; 2], weights: &mut [f32]) {
        if let Some(place) = self.wanted.iter().position(|wanted| *wanted == (at.layer, head)) {
            self.weights[place] = weights.to_vec();
        }
    }
}
