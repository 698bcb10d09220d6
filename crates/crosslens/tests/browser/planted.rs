//! Corpora in memory with as many heads and tokens as a test wants.

use std::ops::Range;

use crosslens_lab::analysis::explain::{Corpus, CorpusError, Explained, Options, explain};
use crosslens_lab::analysis::{
    Consumed, Description, Linear, PositionBias, Recordable, Recorded, RelativeBias, ScoreMap, Side, Site, SiteKind, Stream, Token,
    Visible, Words,
};

/// Dimensions of each of the three parts of a state: position, token, noise.
const PART: usize = 4;
const D: usize = 3 * PART;

/// Sentences in memory; there is no model to run again.
pub(crate) struct Planted {
    description: Description,
    sentences: Vec<Recorded>,
}

/// What to plant.
pub(crate) struct Plan {
    pub(crate) n_layers: usize,
    pub(crate) n_heads: usize,
    pub(crate) n_sentences: u64,
    /// Source and target tokens of every sentence.
    pub(crate) lengths: (usize, usize),
    /// Names of the tokens of both sides; the last one ends sentences.
    pub(crate) names: [Vec<&'static str>; 2],
}

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 ^ (self.0 >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f32 / (1u32 << 24) as f32
    }

    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.uniform()).sum::<f32>() - 6.0
    }
}

impl Corpus for Planted {
    fn description(&self) -> &Description {
        &self.description
    }

    fn n_sentences(&self) -> u64 {
        self.sentences.len() as u64
    }

    fn read(&self, sentences: Range<u64>) -> Result<Vec<Recorded>, CorpusError> {
        Ok(self.sentences[sentences.start as usize..sentences.end as usize].to_vec())
    }

    fn model(&self) -> Option<&dyn Recordable> {
        None
    }
}

impl Planted {
    /// Heads of four kinds in turn: by position, by token, by both, by noise; and one more of each other kind of attention.
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut random = Random(7);
        let cross = (0..plan.n_layers).flat_map(|layer| (0..plan.n_heads).map(move |head| (layer, head)));
        let mut sites: Vec<Site> = cross.map(|(layer, head)| site(SiteKind::Cross, layer, head, gains(layer, head), None)).collect();
        if plan.n_layers == 1 {
            let bias = RelativeBias { lowest: -2, values: vec![0.0, 1.0, 2.0, 1.0, 0.0] };
            sites.push(site(SiteKind::DecoderSelf, 0, 0, [1.0, 0.5, 0.2], Some(bias.into())));
            let linear = |gain: f32| Linear { d_in: D, d_out: D, weights: scaled_identity([gain; 3]), bias: Vec::new() };
            let map = ScoreMap::Additive { query: linear(0.8), key: linear(-0.8), vector: vec![1.0; D] };
            sites.push(Site { map, ..site(SiteKind::EncoderSelf, 0, 0, [1.0; 3], None) });
        }
        let words = |side: usize, start: bool| {
            let names: Vec<String> =
                plan.names[side].iter().map(|name| (*name).to_owned()).chain(start.then(|| "<s>".to_owned())).collect();
            let end = plan.names[side].len() as Token - 1;
            Words { count: names.len() as u32, names, start: start.then_some(end + 1), end: Some(end) }
        };
        let stream = |name: &str, side| Stream { name: name.into(), side, consumed: Consumed::Current, d: D };
        let description = Description {
            model: "planted".into(),
            model_hash: "none".into(),
            source: words(0, false),
            target: words(1, true),
            streams: vec![stream("encoder", Side::Source), stream("decoder", Side::Target)],
            sites,
            readout: None,
        };
        let codes: Vec<Vec<f32>> =
            (0..=plan.names[0].len().max(plan.names[1].len() + 1)).map(|_| (0..PART).map(|_| random.normal()).collect()).collect();
        let mut planted = Self { description, sentences: Vec::new() };
        for number in 0..plan.n_sentences {
            let (n_source, n_target) = plan.lengths;
            let mut tokens = |n: usize, n_words: usize| -> Vec<Token> {
                let drawn = (1..n).map(|_| (random.uniform() * (n_words - 1) as f32) as Token).collect::<Vec<_>>();
                drawn.into_iter().chain([n_words as Token - 1]).collect()
            };
            let (source, target) = (tokens(n_source, plan.names[0].len()), tokens(n_target, plan.names[1].len()));
            let fed: Vec<Token> = std::iter::once(plan.names[1].len() as Token).chain(target.iter().copied()).take(n_target).collect();
            let mut states = |tokens: &[Token]| -> Vec<f32> {
                let state = |(step, &token): (usize, &Token)| {
                    let turn = |speed: f32| [(step as f32 / speed).cos(), (step as f32 / speed).sin()];
                    let position = [turn(3.0), turn(1.4)].concat();
                    let noise: Vec<f32> = (0..PART).map(|_| random.normal()).collect();
                    [position, codes[token as usize].clone(), noise].concat()
                };
                tokens.iter().enumerate().flat_map(state).collect()
            };
            let states = vec![states(&source), states(&fed)];
            let sentence = Recorded {
                number,
                source,
                signal: None,
                fed,
                predicted: target.clone(),
                target: Some(target),
                loss: Some(0.25),
                states,
                attention: Vec::new(),
            };
            planted.sentences.push(sentence);
        }
        planted
    }

    /// Leaves the first heads only.
    pub(crate) fn keep_sites(&mut self, n: usize) {
        self.description.sites.truncate(n);
    }

    pub(crate) fn explain(&self, n_samples: usize) -> Explained {
        let options = Options { samples: n_samples, geometry: true, ..Options::default() };
        explain(self, None, &options, &mut |_| ()).expect("an explanation")
    }
}

/// How much a head makes of position, token and noise.
fn gains(layer: usize, head: usize) -> [f32; 3] {
    let sharp = 1.5 + ((3 * layer + 5 * head) % 7) as f32 / 3.0;
    match (layer + head) % 4 {
        0 => [sharp, 0.1, 0.1],
        1 => [0.2, sharp / 1.6, 0.1],
        2 => [sharp / 1.5, sharp / 2.4, 0.3],
        _ => [0.3, 0.2, sharp / 2.0],
    }
}

/// `[D, D]` with one number for each part.
fn scaled_identity(gains: [f32; 3]) -> Vec<f32> {
    (0..D * D).map(|place| if place / D == place % D { gains[place / D / PART] } else { 0.0 }).collect()
}

fn site(kind: SiteKind, layer: usize, head: usize, gains: [f32; 3], position_bias: Option<PositionBias>) -> Site {
    let linear = || Linear { d_in: D, d_out: D, weights: scaled_identity(gains), bias: Vec::new() };
    let (query, key, visible) = match kind {
        SiteKind::Cross => (1, 0, Visible::All),
        SiteKind::EncoderSelf => (0, 0, Visible::All),
        SiteKind::DecoderSelf => (1, 1, Visible::Causal),
    };
    let map = ScoreMap::Projected { query: linear(), key: linear(), scale: 1.0, position_bias };
    Site { kind, layer, head, query, key, map, visible, value: None }
}

/// Pieces of words of two languages, as a tokenizer leaves them.
pub(crate) fn pieces_of_words() -> [Vec<&'static str>; 2] {
    [
        vec![
            "▁the", "▁cat", "▁sat", "▁on", "▁a", "▁mat", "▁un", "believ", "able", "▁story", "▁was", "▁told", "▁by", "▁moon", "light",
            "</s>",
        ],
        vec![
            "▁die",
            "▁Katze",
            "▁saß",
            "▁auf",
            "▁einer",
            "▁Matte",
            "▁un",
            "glaub",
            "liche",
            "▁Geschichte",
            "▁wurde",
            "▁im",
            "▁Mond",
            "licht",
            "▁erzählt",
            "</s>",
        ],
    ]
}

/// Names that are markup, run from right to left, or are not Latin.
pub(crate) fn strange_names() -> [Vec<&'static str>; 2] {
    [
        vec![
            "<img src=x onerror=alert(1)>",
            "</script><script>alert(2)</script>",
            "שלום",
            "مرحبا",
            "猫",
            "日本語",
            "&amp;",
            "=1+1",
            "",
            "👩‍👩‍👧‍👦",
            "\u{202e}evil",
            "<eos>",
        ],
        vec![
            "\"quoted\"",
            "<b>bold</b>",
            "नमस्ते",
            "ไทย",
            "漢字",
            "a,b",
            "’",
            "{{x}}",
            "${y}",
            "very-long-token-that-goes-on-and-on-and-on-and-on",
            "<eos>",
        ],
    ]
}
