//! Causal checks with attention rebuilt from the recorded states, and from those of the changed run.

use super::common::{SOURCE_WORDS, TARGET_WORDS, network, pairs, weights};
use crosslens_analysis::explain::{Live, Options, Rerun, explain};
use crosslens_analysis::report::Report;
use crosslens_analysis::{Fed, Pair, Vocabulary};
use crosslens_nets::Subject;
use crosslens_nets::network::{Family, NetworkConfig};

fn explained(family: Family, rerun: Rerun) -> Report {
    let config = NetworkConfig { hidden: 8, ..NetworkConfig::of(family) };
    let network = network(&config);
    let weights = weights(&network, 5).into_iter().map(|weight| weight as f32).collect();
    let words = |n: usize| Vocabulary::new((0..n).map(|word| format!("w{word}"))).expect("different words");
    let subject = Subject::new(network, weights, &words(SOURCE_WORDS), &words(TARGET_WORDS), 1).expect("threads");
    let pairs: Vec<Pair> = pairs(40, 5, 3);
    let corpus = Live { model: &subject, pair: &|number| pairs[number as usize].clone(), n_pairs: pairs.len() as u64, fed: Fed::Target };
    explain(&corpus, None, &Options { rerun, n_threads: 1, ..Options::default() }, &mut |_| ()).expect("it can be explained").report
}

/// The decoder of an attention-only network reads nothing that attention gave: its states do not move.
#[test]
fn live_states_are_the_recorded_ones_where_attention_does_not_reach_the_decoder() {
    let (recorded, live) = (explained(Family::Ao, Rerun::Recorded), explained(Family::Ao, Rerun::Live));
    assert_eq!((recorded.rerun.as_deref(), live.rerun.as_deref()), (Some("recorded"), Some("live")));
    for (name, rebuilt) in &recorded.sites[0].rebuilt {
        let (one, other) = (rebuilt.causal.as_ref().expect("run again"), live.sites[0].rebuilt[name].causal.as_ref().expect("run again"));
        assert!((one.loss - other.loss).abs() < 1e-6, "{name}: {} and {}", one.loss, other.loss);
    }
}

/// Bahdanau's context enters the next state: attention rebuilt from what has moved differs, uniform attention does not.
#[test]
fn live_states_move_where_attention_feeds_the_decoder() {
    let (recorded, live) = (explained(Family::Bahdanau, Rerun::Recorded), explained(Family::Bahdanau, Rerun::Live));
    let loss = |report: &Report, name: &str| report.sites[0].rebuilt[name].causal.as_ref().expect("run again").loss;
    assert_ne!(loss(&recorded, "residual"), loss(&live, "residual"));
    assert_eq!(loss(&recorded, "uniform"), loss(&live, "uniform"));
}
