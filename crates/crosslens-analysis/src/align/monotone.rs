//! How far an alignment goes forward only: a rating of heads that needs no gold.

use super::{Link, SoftAlignment};

/// Steps from a target token to the next, and those of them that do not go back in the source. Adds up over sentences.
///
/// ```text
/// share = |{t : argmax_s w[t, s] ≥ argmax_s w[t−1, s]}| / (rows − 1)        rows of zeros left out
/// ```
/// Attention that always looks at one place goes nowhere, and never back: a share near 1 says little without the
/// [path](SoftAlignment::monotone_path).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Monotonicity {
    /// Steps between rows.
    pub n_steps: u64,
    /// Those that stay or go forward.
    pub n_not_back: u64,
}

impl Monotonicity {
    /// Adds what was counted elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.n_steps += other.n_steps;
        self.n_not_back += other.n_not_back;
    }

    /// Share of the steps that do not go back; none without a step.
    pub fn share(&self) -> Option<f64> {
        (self.n_steps > 0).then(|| self.n_not_back as f64 / self.n_steps as f64)
    }
}

/// The heaviest way from the first tokens of both sides to the last ones that never goes back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MonotonePath {
    /// Its cells in order; each is one target token, one source token, or both further than the one before.
    pub cells: Vec<Link>,
    /// The sum of their weights.
    pub weight: f64,
    /// The sum of all weights of the alignment, so that paths of sentences add up.
    pub total: f64,
}

impl MonotonePath {
    /// Share of all weight that lies on the path: 1 for an alignment that is one; none where all weights are 0.
    pub fn share(&self) -> Option<f64> {
        (self.total > 0.0).then(|| self.weight / self.total)
    }
}

impl SoftAlignment {
    /// Counts the steps that do not go back.
    pub fn monotonicity(&self) -> Monotonicity {
        let places: Vec<usize> = self.argmax().flatten().collect();
        let n_not_back = places.windows(2).filter(|step| step[1] >= step[0]).count();
        Monotonicity { n_steps: places.len().saturating_sub(1) as u64, n_not_back: n_not_back as u64 }
    }

    /// The heaviest monotone path, by dynamic programming (dynamic time warping of the negative weights):
    ///
    /// ```text
    /// best[t, s] = w[t, s] + max(best[t−1, s−1], best[t−1, s], best[t, s−1])
    /// ```
    /// Weights are not negative, so a path only leaves out a corner, by a diagonal step, that has no weight. Among equals the diagonal
    /// step comes first, then the one to the next target token. Empty for an empty alignment.
    pub fn monotone_path(&self) -> MonotonePath {
        let (n_targets, n_sources) = (self.n_targets(), self.n_sources());
        if n_targets == 0 || n_sources == 0 {
            return MonotonePath::default();
        }
        let mut best = vec![0.0; n_targets * n_sources];
        let mut came = vec![Step::Both; n_targets * n_sources];
        for (target, row) in self.rows().enumerate() {
            for (source, &weight) in row.iter().enumerate() {
                let at = target * n_sources + source;
                let before = |step: Step, far_enough: bool| far_enough.then(|| (best[at - step.back(n_sources)], step));
                let ways =
                    [before(Step::Both, target > 0 && source > 0), before(Step::Target, target > 0), before(Step::Source, source > 0)];
                let way = ways.into_iter().flatten().reduce(|best, way| if way.0 > best.0 { way } else { best });
                let (reached, step) = way.unwrap_or((0.0, Step::Both));
                best[at] = reached + weight;
                came[at] = step;
            }
        }

        let weight = best[best.len() - 1];
        let mut at = best.len() - 1;
        let mut cells = vec![Link { source: at % n_sources, target: at / n_sources }];
        while at > 0 {
            at -= came[at].back(n_sources);
            cells.push(Link { source: at % n_sources, target: at / n_sources });
        }
        cells.reverse();
        MonotonePath { cells, weight, total: self.rows().flatten().sum() }
    }
}

impl SoftAlignment {
    /// The heaviest monotone path of what each source token gets beyond what it gets anyway:
    ///
    /// ```text
    /// v[t, s] = max(0, w[t, s] − mean_t w[t, s])        share = Σ v along the path / Σ w
    /// ```
    /// Attention that always looks at one place lies on a monotone path with all its weight, and says nothing of which words belong
    /// together; here it has a share of 0. A diagonal of n tokens has `1 − 1/n`.
    pub fn moving_path(&self) -> MonotonePath {
        let (n_targets, n_sources) = (self.n_targets(), self.n_sources());
        let mut means = vec![0.0; n_sources];
        for row in self.rows() {
            means.iter_mut().zip(row).for_each(|(mean, weight)| *mean += weight / n_targets as f64);
        }
        let beyond = self.rows().flat_map(|row| row.iter().zip(&means).map(|(weight, mean)| f64::max(0.0, weight - mean)));
        match Self::new(n_targets, n_sources, beyond.collect::<Vec<f64>>()) {
            Ok(beyond) => MonotonePath { total: self.rows().flatten().sum(), ..beyond.monotone_path() },
            // As many numbers as there were, none of them below 0.
            Err(_) => MonotonePath::default(),
        }
    }
}

/// A step of a path, by the sides that move.
#[derive(Clone, Copy)]
enum Step {
    Both,
    Target,
    Source,
}

impl Step {
    /// How far back in a table of rows it came from.
    fn back(self, n_sources: usize) -> usize {
        match self {
            Self::Both => n_sources + 1,
            Self::Target => n_sources,
            Self::Source => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::soft::tests::alignments;
    use super::*;

    fn one_hot(places: &[usize], n_sources: usize) -> SoftAlignment {
        let weights = places.iter().flat_map(|&place| (0..n_sources).map(move |source| f64::from(u8::from(source == place))));
        SoftAlignment::new(places.len(), n_sources, weights).expect("as many as cells")
    }

    /// 0 → 2 → 1 → 1 → 3: of four steps one goes back.
    #[test]
    fn steps_back_are_counted() {
        let found = one_hot(&[0, 2, 1, 1, 3], 4).monotonicity();
        assert_eq!(found, Monotonicity { n_steps: 4, n_not_back: 3 });
        assert_eq!(found.share(), Some(0.75));
        assert_eq!(one_hot(&[1], 4).monotonicity().share(), None);
    }

    #[test]
    fn rows_of_zeros_are_passed_over() {
        let soft = SoftAlignment::new(3, 2, [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]).expect("six weights");
        assert_eq!(soft.monotonicity(), Monotonicity { n_steps: 1, n_not_back: 0 });
    }

    /// ```text
    /// .6 .3 .1
    /// .1 .2 .7      right, down, right, down: .6 + .3 + .2 + .7 + .5 = 2.3 of 3
    /// .4 .1 .5
    /// ```
    #[test]
    fn the_heaviest_path_is_found() {
        let soft = SoftAlignment::new(3, 3, [0.6, 0.3, 0.1, 0.1, 0.2, 0.7, 0.4, 0.1, 0.5]).expect("nine weights");
        let path = soft.monotone_path();
        let cells: Vec<(usize, usize)> = path.cells.iter().map(|cell| (cell.source, cell.target)).collect();
        assert_eq!(cells, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]);
        assert!((path.weight - 2.3).abs() < 1e-12);
        assert!((path.share().expect("there is weight") - 2.3 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_diagonal_lies_on_a_path_and_its_mirror_image_does_not() {
        let n = 6;
        let forward: Vec<usize> = (0..n).collect();
        let back: Vec<usize> = (0..n).rev().collect();
        let path = one_hot(&forward, n).monotone_path();
        assert_eq!((path.share(), path.cells.len()), (Some(1.0), n));
        assert_eq!(one_hot(&back, n).monotone_path().share(), Some(1.0 / n as f64));
        assert_eq!(one_hot(&back, n).monotonicity().share(), Some(0.0));
    }

    /// Of n tokens in order each gets 1 from its row and 1/n on average.
    #[test]
    fn a_path_that_stays_does_not_move() {
        let n = 5;
        let forward: Vec<usize> = (0..n).collect();
        let share = |places: &[usize]| one_hot(places, n).moving_path().share().expect("there is weight");
        assert!((share(&forward) - (1.0 - 1.0 / n as f64)).abs() < 1e-12);
        assert_eq!(one_hot(&[2; 5], n).monotone_path().share(), Some(1.0), "all its weight is on a path");
        assert!(share(&[2; 5]).abs() < 1e-12);
        // One cell of the way back is on a path.
        assert!((share(&[4, 3, 2, 1, 0]) - (1.0 - 1.0 / n as f64) / n as f64).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_an_empty_path() {
        for (n_targets, n_sources) in [(0, 3), (3, 0), (0, 0)] {
            let path = SoftAlignment::new(n_targets, n_sources, [0.0; 0]).expect("no weights").monotone_path();
            assert_eq!(path, MonotonePath::default());
            assert_eq!(path.share(), None);
        }
    }

    /// The largest weight of any path from a cell to the last, by trying all.
    fn heaviest(soft: &SoftAlignment, target: usize, source: usize) -> f64 {
        let ways = [(target + 1, source + 1), (target + 1, source), (target, source + 1)];
        let rest = ways.into_iter().filter(|&(target, source)| target < soft.n_targets() && source < soft.n_sources());
        soft.row(target)[source] + rest.map(|(target, source)| heaviest(soft, target, source)).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn no_path_is_heavier(soft in alignments()) {
            let path = soft.monotone_path();
            prop_assert!((path.weight - heaviest(&soft, 0, 0)).abs() < 1e-12);
            let along: f64 = path.cells.iter().map(|cell| soft.row(cell.target)[cell.source]).sum();
            prop_assert!((path.weight - along).abs() < 1e-12);
        }

        #[test]
        fn a_path_goes_from_corner_to_corner_by_single_steps(soft in alignments()) {
            let cells = soft.monotone_path().cells;
            prop_assert_eq!(cells[0], Link { source: 0, target: 0 });
            prop_assert_eq!(cells[cells.len() - 1], Link { source: soft.n_sources() - 1, target: soft.n_targets() - 1 });
            for step in cells.windows(2) {
                let moved = (step[1].source - step[0].source, step[1].target - step[0].target);
                prop_assert!([(1, 0), (0, 1), (1, 1)].contains(&moved));
            }
        }

        #[test]
        fn sides_do_not_matter_to_the_weight_of_a_path(soft in alignments()) {
            let (n_targets, n_sources) = (soft.n_targets(), soft.n_sources());
            let weights = (0..n_sources).flat_map(|source| soft.rows().map(move |row| row[source]).collect::<Vec<_>>());
            let turned = SoftAlignment::new(n_sources, n_targets, weights).expect("as many weights");
            prop_assert!((turned.monotone_path().weight - soft.monotone_path().weight).abs() < 1e-12);
        }
    }
}
