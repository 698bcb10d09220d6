//! The Crosslens side of the benchmarks: speaks the protocol of the peers' programs, and takes turns between them (`interleave`).

mod analysis;
mod heads_cost;
mod interleave;
mod pretrained;
mod protocol;
mod serve_load;
mod train;
mod translation;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// One Adam step of an attention encoder-decoder.
    Train(train::Arguments),
    /// Components and nine-term shares of 2,000 sentence pairs.
    Analysis(analysis::Arguments),
    /// Every cross-attention matrix of 64 sentence pairs under a pretrained model.
    Pretrained(pretrained::Arguments),
    /// Training on, or greedy decoding of, sentences of a translation network: target words a second.
    Translation(translation::Arguments),
    /// The passes of `crosslens heads` over many sentences, beside a bare forward pass.
    HeadsCost(heads_cost::Arguments),
    /// Takes turns between programs that speak the same protocol, and prints their speeds and ratios.
    Interleave(interleave::Arguments),
    /// Live explanations asked of a running `crosslens serve`, many at once.
    ServeLoad(serve_load::Arguments),
}

fn main() -> std::io::Result<()> {
    match Arguments::parse().benchmark {
        Benchmark::Train(arguments) => train::run(&arguments),
        Benchmark::Analysis(arguments) => analysis::run(&arguments),
        Benchmark::Pretrained(arguments) => pretrained::run(&arguments),
        Benchmark::Translation(arguments) => translation::run(&arguments),
        Benchmark::HeadsCost(arguments) => heads_cost::run(&arguments),
        Benchmark::Interleave(arguments) => interleave::run(&arguments),
        Benchmark::ServeLoad(arguments) => serve_load::run(&arguments),
    }
}
