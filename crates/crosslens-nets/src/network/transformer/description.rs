//! What a Transformer is, in the words of an explanation: its streams of states and its attention heads.
//!
//! Streams are `encoder`, the states that all attention across asks, `cross.L`, the states that ask them in layer L, and `encoder.L` and
//! `decoder.L`, the states that ask themselves: what the score maps read, normed where norms stand before attention.

use crosslens_analysis::{self as analysis, Consumed, ScoreMap, Side, Site, SiteKind, Stream};

use super::Transformer;
use super::affine::Affine;
use super::attention::Attention;
use crate::network::description::Numbers;

impl Transformer {
    /// In the order of [`Transformer::sites`]: across, the encoder's own, the decoder's own.
    pub(crate) fn streams(&self) -> Vec<Stream> {
        let stream = |name: String, side| Stream { name, side, consumed: Consumed::Current, d: self.config.hidden };
        let (n_encoder, n_decoder) = (self.encoder.layers.len(), self.decoder.layers.len());
        let across = (0..n_decoder).map(|layer| stream(format!("cross.{layer}"), Side::Target));
        let of_encoder = (0..n_encoder).map(|layer| stream(format!("encoder.{layer}"), Side::Source));
        let of_decoder = (0..n_decoder).map(|layer| stream(format!("decoder.{layer}"), Side::Target));
        std::iter::once(stream("encoder".into(), Side::Source)).chain(across).chain(of_encoder).chain(of_decoder).collect()
    }

    /// Every head of every layer.
    pub(crate) fn sites(&self, numbers: Numbers<'_>) -> Vec<Site> {
        let (n_encoder, n_decoder) = (self.encoder.layers.len(), self.decoder.layers.len());
        let mut sites = Vec::new();
        let mut add = |kind, layer: usize, attention: &Attention, [query, key]: [usize; 2]| {
            debug_assert_eq!(sites.len(), attention.first_site, "sites are numbered as they are listed");
            sites.extend((0..attention.heads).map(|head| site(kind, layer, head, attention, [query, key], numbers)));
        };
        for (layer, parts) in self.decoder.layers.iter().enumerate() {
            add(SiteKind::Cross, layer, &parts.cross, [1 + layer, 0]);
        }
        for (layer, parts) in self.encoder.layers.iter().enumerate() {
            add(SiteKind::EncoderSelf, layer, &parts.attention, [1 + n_decoder + layer; 2]);
        }
        for (layer, parts) in self.decoder.layers.iter().enumerate() {
            add(SiteKind::DecoderSelf, layer, &parts.attention, [1 + n_decoder + n_encoder + layer; 2]);
        }
        sites
    }
}

fn site(kind: SiteKind, layer: usize, head: usize, attention: &Attention, [query, key]: [usize; 2], numbers: Numbers<'_>) -> Site {
    let map = |affine: &Affine| {
        let d_head = numbers.vector(Some(affine.bias)).len() / attention.heads;
        let bias = numbers.vector(Some(affine.bias))[head * d_head..][..d_head].to_vec();
        analysis::Linear { bias, ..numbers.columns_of_head(&affine.linear, head, attention.heads) }
    };
    Site {
        kind,
        layer,
        head,
        query,
        key,
        map: ScoreMap::Projected { query: map(&attention.query), key: map(&attention.key), scale: attention.scale(), position_bias: None },
        visible: attention.visible,
        value: Some(map(&attention.value)),
    }
}
