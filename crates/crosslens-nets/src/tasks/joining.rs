use super::Lengths;

/// The lengths within which phrases are joined into a sentence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// A sentence grows until its target has so many tokens.
    pub(super) min_out_len: usize,
    /// A phrase is taken only while it fits below this.
    pub(super) max_out_len: usize,
    /// A sentence with a longer source is rejected.
    pub(super) max_in_len: usize,
}

impl Bounds {
    /// Whether a phrase of `n_actions` may follow a target of `n_steps`: `n_steps + n_actions + 1 ≤ max_out_len`, where the 1 is
    /// the period and counts even without periods.
    pub(super) fn fits(&self, n_steps: usize, n_actions: usize) -> bool {
        n_steps + n_actions < self.max_out_len
    }
}

/// The lengths that `n_choices` equally likely choices share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Tokens it adds to the source, period included.
    pub(super) source: usize,
    /// Tokens it adds to the target, period included.
    pub(super) target: usize,
    /// Actions, period apart.
    pub(super) n_actions: usize,
    /// How many choices are of this shape.
    pub(super) n_choices: usize,
}

/// What joining phrases at random leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// The chance that a sentence is accepted.
    pub(super) accepted: f64,
    /// The longest accepted source and target, end token apart; none where no sentence can be accepted at all.
    pub(super) longest: Option<Lengths>,
    /// The shortest accepted source.
    pub(super) shortest_source: Option<usize>,
}

/// Follows every way of joining at once.
///
/// ```text
/// p[o][i]   the chance that a growing sentence has o target and i source tokens at some time; p[0][0] = 1
/// p[o + shape.target][i + shape.source] += p[o][i] · n_choices(shape) / Σ n_choices(fitting)      for o < min_out_len
/// accepted  Σ p[o][i] over o ≥ min_out_len, i ≤ max_in_len
/// ```
/// Sentences that no phrase fits any more, or whose source has grown too long, are lost. Lengths that can be reached are kept
/// apart from those that cannot even where their chance rounds to 0.
pub(super) fn outcome(bounds: Bounds, shapes: &[Shape]) -> Outcome {
    let mut chances: Vec<Vec<Option<f64>>> = vec![Vec::new(); bounds.max_out_len + 1];
    chances[0].push(Some(1.0));
    for n_target in 0..bounds.min_out_len {
        let row = std::mem::take(&mut chances[n_target]);
        let fitting = || shapes.iter().filter(|shape| bounds.fits(n_target, shape.n_actions));
        let n_choices: usize = fitting().map(|shape| shape.n_choices).sum();
        for shape in fitting() {
            let share = shape.n_choices as f64 / n_choices as f64;
            let next = &mut chances[n_target + shape.target];
            for (n_source, chance) in row.iter().enumerate().filter_map(|(n_source, chance)| Some((n_source, (*chance)?))) {
                let n_source = n_source + shape.source;
                if n_source <= bounds.max_in_len {
                    next.resize(next.len().max(n_source + 1), None);
                    *next[n_source].get_or_insert(0.0) += chance * share;
                }
            }
        }
    }

    let mut outcome = Outcome { accepted: 0.0, longest: None, shortest_source: None };
    for (target, row) in chances.iter().enumerate() {
        for (source, chance) in row.iter().enumerate().filter_map(|(source, chance)| Some((source, (*chance)?))) {
            outcome.accepted += chance;
            let longest = outcome.longest.get_or_insert(Lengths { source, target });
            *longest = Lengths { source: longest.source.max(source), target: longest.target.max(target) };
            outcome.shortest_source = Some(outcome.shortest_source.map_or(source, |shortest| shortest.min(source)));
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `run` (1 → 1) and `turn left` (2 → 1), without periods.
    const SHAPES: [Shape; 2] =
        [Shape { source: 1, target: 1, n_actions: 1, n_choices: 1 }, Shape { source: 2, target: 1, n_actions: 1, n_choices: 3 }];

    /// Two phrases make the target, the source has 2, 3 or 4 words with chances 1/16, 6/16 and 9/16.
    #[test]
    fn chances_multiply_along_a_sentence() {
        let outcome = outcome(Bounds { min_out_len: 2, max_out_len: 3, max_in_len: 3 }, &SHAPES);
        assert_eq!(outcome.accepted, 7.0 / 16.0);
        assert_eq!(outcome.longest, Some(Lengths { source: 3, target: 2 }));
        assert_eq!(outcome.shortest_source, Some(2));
    }

    /// After 1 action of 2 there is room for no further phrase: 1 + 1 + 1 > 2.
    #[test]
    fn a_sentence_that_no_phrase_fits_any_more_is_lost() {
        let outcome = outcome(Bounds { min_out_len: 2, max_out_len: 2, max_in_len: 9 }, &SHAPES);
        assert_eq!((outcome.accepted, outcome.longest), (0.0, None));
    }

    /// The longest source needs `turn left` 900 times: its chance, 10⁻⁹⁰⁰⁰ or so, rounds to 0.
    #[test]
    fn a_length_with_a_vanishing_chance_still_counts() {
        let shapes = [Shape { n_choices: 10_000_000_000, ..SHAPES[0] }, Shape { n_choices: 1, ..SHAPES[1] }];
        let outcome = outcome(Bounds { min_out_len: 900, max_out_len: 901, max_in_len: usize::MAX }, &shapes);
        assert_eq!(outcome.longest, Some(Lengths { source: 1_800, target: 900 }));
    }
}
