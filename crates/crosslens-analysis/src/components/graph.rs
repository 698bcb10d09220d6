//! Which steps and tokens hang together: the split into steps and tokens is only defined within a connected piece.

use super::Sums;

/// Observations of a token at a step below which they hold two pieces together only weakly.
pub(crate) const FEW: u64 = 5;

/// The connected pieces of the graph that joins a token and a step wherever the token stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// The piece of each step.
    pub steps: Vec<usize>,
    /// How many pieces there are.
    pub n_pieces: usize,
    /// Observations that alone, fewer than five at one place, hold otherwise separate steps together: the split between those steps hangs
    /// on them.
    pub weak_links: u64,
}

impl Connections {
    pub(super) fn of(sums: &Sums) -> Self {
        let steps = pieces(sums, 1);
        let strong = pieces(sums, FEW);
        let mut weak_links = 0;
        for token in &sums.tokens {
            // The token's observations outside its largest strong piece join that piece to others.
            let mut counts: Vec<(usize, u64)> = Vec::new();
            for &(step, times) in &token.steps {
                let piece = strong[step as usize];
                match counts.iter_mut().find(|(known, _)| *known == piece) {
                    Some((_, count)) => *count += times,
                    None => counts.push((piece, times)),
                }
            }
            let most = counts.iter().map(|&(_, count)| count).max().unwrap_or(0);
            weak_links += counts.iter().map(|&(_, count)| count).sum::<u64>() - most;
        }
        let n_pieces = steps.iter().max().map_or(0, |&last| last + 1);
        Self { steps, n_pieces, weak_links }
    }
}

/// Numbers the pieces of steps, joined by tokens seen at least `least` times at each, in the order of their first step.
fn pieces(sums: &Sums, least: u64) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..sums.n_steps()).collect();
    for token in &sums.tokens {
        let mut joined = token.steps.iter().filter(|&&(_, times)| times >= least).map(|&(step, _)| step as usize);
        if let Some(first) = joined.next() {
            for step in joined {
                let (a, b) = (root(&mut parents, first), root(&mut parents, step));
                parents[a.max(b)] = a.min(b);
            }
        }
    }
    let mut numbers = vec![usize::MAX; parents.len()];
    let mut next = 0;
    (0..parents.len())
        .map(|step| {
            let root = root(&mut parents, step);
            if numbers[root] == usize::MAX {
                numbers[root] = next;
                next += 1;
            }
            numbers[root]
        })
        .collect()
}

fn root(parents: &mut [usize], mut step: usize) -> usize {
    while parents[step] != step {
        parents[step] = parents[parents[step]];
        step = parents[step];
    }
    step
}
