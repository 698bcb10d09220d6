//! Whether what a source word adds to a key looks like the readout of a target word.

use super::cosine;
use super::report::ResemblanceReport;
use crate::{Linear, Token};

/// Cosines of one word's input component with the readouts of all target words.
#[derive(Clone, Debug, PartialEq)]
pub struct Resemblance {
    /// The source word.
    pub word: Token,
    /// By target word.
    pub cosines: Vec<f64>,
}

/// The cosines of `χ(w)`, behind the value map if there is one, with the context readouts of all target words.
///
/// The map's bias is no part of `χ`, so it is left out.
pub fn resemblances(inputs: &[(Token, Vec<f64>)], value: Option<&Linear>, readouts: &[Vec<f64>]) -> Vec<Resemblance> {
    let of = |input: &[f64]| {
        let carried = value.map_or_else(|| input.to_vec(), |value| mapped(input, value));
        readouts.iter().map(|readout| cosine(&carried, readout)).collect()
    };
    inputs.iter().map(|(word, input)| Resemblance { word: *word, cosines: of(input) }).collect()
}

fn mapped(input: &[f64], map: &Linear) -> Vec<f64> {
    let mut output = vec![0.0; map.d_out];
    for (&x, row) in input.iter().zip(map.weights.chunks_exact(map.d_out.max(1))) {
        output.iter_mut().zip(row).for_each(|(output, &weight)| *output += x * f64::from(weight));
    }
    output
}

impl Resemblance {
    /// The target words it resembles most and next; the lower number among equals. `None` with fewer than two target words.
    pub fn report(&self, source_name: &str, target_name: impl Fn(Token) -> String) -> Option<ResemblanceReport> {
        let mut order: Vec<usize> = (0..self.cosines.len()).collect();
        order.sort_by(|&a, &b| self.cosines[b].total_cmp(&self.cosines[a]));
        let &[best, next, ..] = order.as_slice() else { return None };
        Some(ResemblanceReport {
            source: source_name.to_owned(),
            source_token: self.word,
            best: target_name(best as Token),
            best_token: best as Token,
            cosine: self.cosines[best],
            next: target_name(next as Token),
            next_cosine: self.cosines[next],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// χ = (3, 4); the map swaps and doubles: (8, 6), of cosine .8 with the first axis and .6 with the second.
    #[test]
    fn a_value_map_comes_before_the_readout() {
        let value = Linear { d_in: 2, d_out: 2, weights: vec![0., 2., 2., 0.], bias: vec![100., 0.] };
        let axes = [vec![1., 0.], vec![0., 1.]];
        let plain = resemblances(&[(7, vec![3., 4.])], None, &axes);
        assert_eq!(plain[0].cosines, [0.6, 0.8]);
        let carried = resemblances(&[(7, vec![3., 4.])], Some(&value), &axes);
        assert_eq!(carried[0].cosines, [0.8, 0.6]);
        let report = carried[0].report("seven", |token| format!("t{token}")).expect("two target words");
        assert_eq!((report.best.as_str(), report.cosine, report.next.as_str(), report.next_cosine), ("t0", 0.8, "t1", 0.6));
    }
}
