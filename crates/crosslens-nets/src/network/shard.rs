//! A fixed part of a batch, worked through by one thread.

use crosslens_analysis::{Pair, Token};
use crosslens_kernels::{Matrix, MatrixMut, Packed, Real, Write, add, product};

use super::attention::{AttentionTrace, Sides};
use super::decoder::{DecoderInput, DecoderTrace};
use super::dropout::Dropout;
use super::encoder::{self, EncoderTrace};
use super::engine::{Feeding, Shared};
use super::hook::{Hook, ShardHook};
use super::packing::Packing;
use super::prepared::Context;
use super::readout::{ReadoutGradients, ReadoutTrace};
use super::{Outcome, Recurrent};

/// All buffers of a shard; they grow to the largest shard seen and stay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shard<F> {
    pub(crate) source: Packing,
    pub(crate) target: Packing,
    source_tokens: Vec<Token>,
    reversed_tokens: Vec<Token>,
    pub(crate) encoder: Vec<EncoderTrace<F>>,
    pub(crate) attention: AttentionTrace<F>,
    pub(crate) decoder: DecoderTrace<F>,
    pub(crate) readout: ReadoutTrace<F>,
    /// By layer, `[rank of the target, n]`: what a bidirectional encoder hands over.
    bridges: Vec<Vec<F>>,
    d_bridge: Vec<F>,
    /// Sentence-major.
    pub(crate) targets: Vec<Token>,
    pub(crate) predicted: Vec<Token>,
    scratch: Packed<F>,
}

/// What to do with a shard.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a, F> {
    pub(crate) pairs: &'a [Pair],
    /// Number in the batch of the first pair.
    pub(crate) first_sentence: usize,
    pub(crate) feeding: Feeding,
    pub(crate) dropout: Option<Dropout>,
    /// One over the number of target steps of the whole batch, where a gradient is wanted.
    pub(crate) gradient_weight: Option<F>,
    /// Share of the target's probability spread over all words, where a gradient is wanted.
    pub(crate) label_smoothing: F,
    /// Never together with a gradient: the backward pass knows nothing of it.
    pub(crate) hook: Option<&'a dyn Hook<F>>,
}

impl<'a, F> Job<'a, F> {
    pub(crate) fn shard_hook(&self) -> Option<ShardHook<'a, F>> {
        self.hook.map(|hook| ShardHook { hook, first_sentence: self.first_sentence })
    }
}

impl<F: Real> Shard<F> {
    /// Forward, loss and, if asked for, backward: `gradient` becomes that of the parameters, but for those behind tables, then of all tables.
    pub(crate) fn run(
        &mut self,
        network: &Recurrent,
        shared: &Shared<F>,
        context: Context<'_, F>,
        job: Job<'_, F>,
        gradient: &mut Vec<F>,
    ) -> Outcome {
        let dropout = job.dropout.map(|dropout| (dropout, job.first_sentence));
        self.arrange(network, job);
        self.encode(network, shared, context, dropout);
        self.hand_over(network, context);

        self.read_keys(network, context);

        let sides = Sides::paired(&self.source, &self.target);
        let (table, local, hook) = (&shared.tables[network.decoder_table()], &shared.target_tokens, job.shard_hook());
        let input = DecoderInput { sides, context, table, local, dropout, hook };
        if let (Some(attention), Some(hook)) = (&network.decoder.attention, hook) {
            attention.replace_values(&mut self.attention, sides, context, hook);
        }
        match job.feeding {
            Feeding::Forced => network.decoder.forward_known(&mut self.decoder, &mut self.attention, input),
            Feeding::Free => network.decoder.forward_free(&mut self.decoder, &mut self.attention, input),
        }

        if job.gradient_weight.is_some() {
            gradient.resize(context.layout.len() + shared.table_len(), F::ZERO);
            gradient[context.layout.len()..].fill(F::ZERO);
            context.layout.added_to().for_each(|range| gradient[range].fill(F::ZERO));
        }
        let gradients = job.gradient_weight.map(|row_weight| ReadoutGradients {
            d_input: &mut self.decoder.d_readout_input,
            gradient,
            scratch: &mut self.scratch,
            row_weight,
            smoothing: job.label_smoothing,
        });
        let readout = &network.decoder.readout;
        let loss = readout.loss(&mut self.readout, &self.decoder.readout_input, &self.targets, &mut self.predicted, context, gradients);
        if job.gradient_weight.is_some() {
            self.backward(network, shared, context, dropout, gradient);
        }
        judge(loss, &self.target, &self.targets, &self.predicted)
    }

    /// Reads sources alone, to write for them step by step: the target becomes one step for each.
    pub(crate) fn read_sources(&mut self, network: &Recurrent, shared: &Shared<F>, context: Context<'_, F>, sources: &[&[Token]]) {
        self.arrange_sources(sources.len(), |sentence| sources[sentence]);
        self.target.arrange(sources.iter().map(|_| 1));
        self.encode(network, shared, context, None);
        self.hand_over(network, context);
        self.read_keys(network, context);
    }

    fn arrange_sources<'a>(&mut self, n_sentences: usize, source: impl Fn(usize) -> &'a [Token]) {
        self.source.arrange((0..n_sentences).map(|sentence| source(sentence).len()));
        self.source.tokens(&mut self.source_tokens, source);
        self.reversed_tokens.clear();
        self.reversed_tokens.extend(self.source.reversed.iter().map(|&row| self.source_tokens[row]));
    }

    /// The states that are asked, from the encoder's outputs.
    fn read_keys(&mut self, network: &Recurrent, context: Context<'_, F>) {
        let Some(attention) = &network.decoder.attention else { return };
        attention.reserve(&mut self.attention, Sides::paired(&self.source, &self.target));
        let d_key = network.config.d_key();
        let top = network.encoder.len() - 1;
        let outputs = self.encoder[top].outputs(&network.encoder[top]);
        for (row, state) in outputs.chunks_exact(d_key).enumerate() {
            self.attention.key_states[self.source.to_sentence[row] * d_key..][..d_key].copy_from_slice(state);
        }
        attention.read_keys(&mut self.attention, context);
    }

    fn arrange(&mut self, network: &Recurrent, job: Job<'_, F>) {
        let pairs = job.pairs;
        self.arrange_sources(pairs.len(), |sentence| &pairs[sentence].source);
        self.target.arrange(pairs.iter().map(|pair| pair.target.len()));
        self.targets.clear();
        pairs.iter().for_each(|pair| self.targets.extend_from_slice(&pair.target));

        let start = network.target_space.n_words as Token;
        self.decoder.fed.clear();
        for row in 0..self.target.n_rows() {
            let place = self.target.to_sentence[row];
            self.decoder.fed.push(if self.target.step_of[row] == 0 { start } else { self.targets[place - 1] });
        }
        if let Some(hook) = job.shard_hook() {
            self.feed_given(hook);
        }
    }

    fn feed_given(&mut self, hook: ShardHook<'_, F>) {
        for (sentence, &rank) in self.target.ranks.iter().enumerate() {
            for (step, &token) in hook.fed(sentence).unwrap_or_default().iter().enumerate() {
                self.decoder.fed[self.target.rows(step).start + rank] = token;
            }
        }
    }

    fn encode(&mut self, network: &Recurrent, shared: &Shared<F>, context: Context<'_, F>, dropout: Option<(Dropout, usize)>) {
        self.encoder.resize_with(network.encoder.len(), EncoderTrace::default);
        for (layer, trace) in network.encoder.iter().zip(&mut self.encoder) {
            trace.reserve(layer, &self.source);
            for (direction, layer) in layer.directions() {
                layer.start_from_initial(&mut trace.directions[direction], context.layout, context.weights);
            }
        }
        let Self { source, source_tokens, reversed_tokens, .. } = self;
        let width = network.encoder[0].forward.width();
        encoder::forward(&network.encoder, &mut self.encoder, source, context, dropout, |direction, gates, rows| {
            let tokens = if direction == 0 { &source_tokens[rows.clone()] } else { &reversed_tokens[rows.clone()] };
            shared.tables[direction].read(gates, width, &shared.source_tokens, tokens, &source.step_of[rows]);
        });
        network.decoder.reserve(&mut self.decoder, &self.target, dropout);
    }

    /// The decoder's start states from the encoder's last ones.
    fn hand_over(&mut self, network: &Recurrent, context: Context<'_, F>) {
        if !network.is_recurrent() {
            return;
        }
        let n = network.config.hidden;
        self.bridges.resize_with(network.decoder.layers.len(), Vec::new);
        for (number, trace) in self.decoder.layers.iter_mut().enumerate() {
            let Some(bridge) = network.bridges.get(number) else {
                let from = &self.encoder[number].directions[0];
                for (rank, &sentence) in self.target.sentences.iter().enumerate() {
                    let row = self.source.last[self.source.ranks[sentence]];
                    trace.start[rank * n..][..n].copy_from_slice(&from.hidden[row * n..][..n]);
                    if let Some(cells) = network.encoder[number].forward.cells(from) {
                        trace.start_cell[rank * n..][..n].copy_from_slice(&cells[row * n..][..n]);
                    }
                }
                continue;
            };
            let from = &self.encoder[number].directions[1].hidden;
            let input = &mut self.bridges[number];
            input.clear();
            for &sentence in &self.target.sentences {
                let row = self.source.last[self.source.ranks[sentence]];
                input.extend_from_slice(&from[row * n..][..n]);
            }
            let m = self.target.n_sentences();
            let map = &context.prepared.get(bridge.map).forward;
            product(MatrixMut::new(&mut trace.start, m, n), Matrix::new(input, m, n), map, Write::Over);
            trace.start.iter_mut().for_each(|x| *x = x.tanh_fast());
        }
    }

    fn backward(
        &mut self,
        network: &Recurrent,
        shared: &Shared<F>,
        context: Context<'_, F>,
        dropout: Option<(Dropout, usize)>,
        gradient: &mut [F],
    ) {
        let Self { source, target, encoder, attention, decoder, scratch, .. } = self;
        let sides = Sides::paired(source, target);
        let table = network.decoder_table();
        let input = DecoderInput { sides, context, table: &shared.tables[table], local: &shared.target_tokens, dropout, hook: None };
        let (parameters, tables) = gradient.split_at_mut(context.layout.len());
        let width = network.decoder.layers[0].width();
        let (decoder_table, local) = (&shared.tables[table], &shared.target_tokens);
        let table_gradient = &mut tables[shared.table_range(table)];
        let fed = std::mem::take(&mut decoder.fed);
        network.decoder.backward(decoder, attention, input, parameters, scratch, |gates, rows| {
            decoder_table.add_gradient(table_gradient, gates, width, local, &fed[rows.clone()], &target.step_of[rows]);
        });
        decoder.fed = fed;
        if let Some(mechanism) = &network.decoder.attention {
            mechanism.finish(attention, context, parameters, scratch);
            let d_key = network.config.d_key();
            let top = network.encoder.len() - 1;
            let d_outputs = encoder[top].d_outputs_mut(&network.encoder[top]);
            for (row, d_output) in d_outputs.chunks_exact_mut(d_key).enumerate() {
                add(d_output, &attention.d_key_states[source.to_sentence[row] * d_key..][..d_key]);
            }
        }
        self.hand_back(network, context, parameters);

        let Self { source, encoder, scratch, source_tokens, reversed_tokens, .. } = self;
        let (width, local) = (network.encoder[0].forward.width(), &shared.source_tokens);
        encoder::backward(&network.encoder, encoder, source, context, dropout.is_some(), parameters, scratch, |direction, gates, rows| {
            let tokens = if direction == 0 { &source_tokens[rows.clone()] } else { &reversed_tokens[rows.clone()] };
            let table_gradient = &mut tables[shared.table_range(direction)];
            shared.tables[direction].add_gradient(table_gradient, gates, width, local, tokens, &source.step_of[rows]);
        });
    }

    /// Back through [`Shard::hand_over`].
    fn hand_back(&mut self, network: &Recurrent, context: Context<'_, F>, gradient: &mut [F]) {
        if !network.is_recurrent() {
            return;
        }
        let n = network.config.hidden;
        for (number, trace) in self.decoder.layers.iter_mut().enumerate() {
            let Some(bridge) = network.bridges.get(number) else {
                let to = &mut self.encoder[number].directions[0];
                for (rank, &sentence) in self.target.sentences.iter().enumerate() {
                    let source_rank = self.source.ranks[sentence];
                    let row = self.source.last[source_rank];
                    add(&mut to.d_hidden[row * n..][..n], &trace.d_start[rank * n..][..n]);
                    add(&mut to.d_start_cell[source_rank * n..][..n], &trace.d_start_cell[rank * n..][..n]);
                }
                continue;
            };
            for (d, &start) in trace.d_start.iter_mut().zip(&trace.start) {
                *d *= F::ONE - start * start;
            }
            bridge.add_gradient(&self.bridges[number], &trace.d_start, context.layout, gradient, &mut self.scratch);
            let m = self.target.n_sentences();
            self.d_bridge.resize(m * n, F::ZERO);
            let map = &context.prepared.get(bridge.map).backward;
            product(MatrixMut::new(&mut self.d_bridge, m, n), Matrix::new(&trace.d_start, m, n), map, Write::Over);
            let to = &mut self.encoder[number].directions[1].d_hidden;
            for (d_state, &sentence) in self.d_bridge.chunks_exact(n).zip(&self.target.sentences) {
                let row = self.source.last[self.source.ranks[sentence]];
                add(&mut to[row * n..][..n], d_state);
            }
        }
    }
}

/// What the sentences of a shard came to; `loss` is the sum over all their steps.
pub(crate) fn judge(loss: f64, packing: &Packing, targets: &[Token], predicted: &[Token]) -> Outcome {
    let mut outcome = Outcome { loss: loss / packing.n_rows() as f64, ..Outcome::default() };
    for sentence in 0..packing.n_sentences() {
        let rows = packing.sentence_rows(sentence);
        let right = rows.clone().filter(|&row| targets[row] == predicted[row]).count();
        outcome.words += rows.len();
        outcome.right_words += right;
        outcome.phrases += 1;
        outcome.right_phrases += usize::from(right == rows.len());
    }
    outcome
}
