//! How much memory a batch will need, before any is taken.

use super::{Body, Family, Network, NetworkConfig, shard_count};

/// Bytes of one number.
const NUMBER: u128 = 4;
/// What one unit of a recurrent layer keeps for one step beside its gates: states, inputs, masks and their gradients.
const PER_UNIT: u128 = 7;
/// What attention keeps for one unit of one step: keys, queries, values, contexts and their gradients.
const PER_ATTENDED_UNIT: u128 = 5;

impl Network {
    /// About how many bytes a training pass over `n_sentences` of at most so many steps holds, weights and gradients left out.
    ///
    /// ```text
    /// recurrent     (7 + g)·n·L·(D·S + T) + 5·n·(D·S + T) + h·S·T       without attention the first term alone
    /// Transformer   L_e·(S·(12·n + 2·f) + h·S²) + L_d·(T·(22·n + 2·f) + 2·n·S + h·(T² + S·T)) + (S + T)·(6·n + 2·f)
    /// ```
    /// numbers a sentence: `S` source and `T` target steps, `n` units, `L` layers, `g` gates of a cell, `D` directions of the encoder, `f` the
    /// width inside feed-forward sublayers, `h` heads. Of a Transformer layer the queries, keys, values and contexts of each attention are
    /// kept, four rows around each sublayer, and the keys and values it searches with; what the way back needs is there once for all layers.
    pub fn batch_bytes(&self, n_sentences: usize, source_steps: usize, target_steps: usize) -> u128 {
        let (source, target) = (source_steps as u128, target_steps as u128);
        let NetworkConfig { family, cell, layers, hidden, heads, bidirectional, transformer, .. } = &self.config;
        let (layers, n, heads) = (*layers as u128, *hidden as u128, *heads as u128);
        let numbers = if *family == Family::Transformer {
            let own = transformer.unwrap_or_default();
            let inner = 2 * own.d_inner(*hidden) as u128;
            let decoder_layers = own.decoder_layers.map_or(layers, |layers| layers as u128);
            let encoder = source * (12 * n + inner) + heads * source * source;
            let decoder = target * (22 * n + inner) + 2 * n * source + heads * target * (target + source);
            layers * encoder + decoder_layers * decoder + (source + target) * (6 * n + inner)
        } else {
            let units = n * ((1 + u128::from(*bidirectional)) * source + target);
            let attention = if *family == Family::Ved { 0 } else { PER_ATTENDED_UNIT * units + heads * source * target };
            (PER_UNIT + cell.n_gates() as u128) * layers * units + attention
        };
        n_sentences as u128 * numbers * NUMBER
    }

    /// About how many bytes training with batches of `n_sentences` holds besides, for weights and gradients.
    ///
    /// ```text
    /// P·(6 + s) + W·(2 + s) + 6·P
    /// ```
    /// numbers: of all `P` parameters the weights, two moments, the gradient and the weights packed both ways round, and in each of the `s`
    /// shards of a batch a gradient of its own; the same of the `W` numbers of a recurrent network's tables of tokens; while a checkpoint is
    /// written, weights and moments twice more.
    pub fn weight_bytes(&self, n_sentences: usize, source_steps: usize, target_steps: usize) -> u128 {
        let (parameters, shards) = (self.layout.len() as u128, shard_count(n_sentences) as u128);
        let tables = match &self.body {
            Body::Recurrent(network) => {
                let occurring = |steps: usize| n_sentences.saturating_mul(steps);
                let source = network.decoder_table() * network.source_space.most_local(occurring(source_steps));
                let target = network.target_space.most_local(occurring(target_steps));
                (self.config.hidden * self.config.cell.n_gates()) as u128 * (source + target) as u128
            }
            Body::Transformer(_) => 0,
        };
        (parameters * (12 + shards) + tables * (2 + shards)) * NUMBER
    }
}
