//! Where a token stands, added to what it is.

use crosslens_analysis::Token;

use super::Table;
use crate::PretrainedError;
use crate::weights::Weights;

/// Vectors of positions; models whose attention knows distances have none.
pub(crate) struct Positions {
    table: Table,
    /// Row of the first position.
    first: usize,
    /// The token that stands nowhere, where there is one: it gets no vector and is not counted.
    padding: Option<Token>,
}

impl Positions {
    /// These, from the first row on.
    pub(crate) fn of(table: Table) -> Self {
        Self { table, first: 0, padding: None }
    }

    /// Learned ones, beginning in row `first` of the tensor.
    pub(crate) fn learned(weights: &mut Weights, name: &str, n: usize, first: usize, d: usize) -> Result<Self, PretrainedError> {
        Ok(Self { table: weights.table(name, n + first, d)?, first, padding: None })
    }

    /// `sin(p/10000^(2i/d))` in the first half of a vector and the cosines in the second: not interleaved.
    pub(crate) fn sinusoids(n: usize, d: usize) -> Self {
        let half = d.div_ceil(2);
        let mut numbers = Vec::with_capacity(n * d);
        for position in 0..n {
            let angle = |pair: usize| position as f64 / 10_000f64.powf((2 * pair) as f64 / d as f64);
            numbers.extend((0..half).map(|pair| angle(pair).sin() as f32));
            numbers.extend((0..d - half).map(|pair| angle(pair).cos() as f32));
        }
        Self { table: Table::owned(numbers, n, d), first: 0, padding: None }
    }

    /// Those of fairseq, whose frequencies reach 1/10000 itself and whose count begins after the padding token's number:
    /// `sin((padding + 1 + p)·10000^(−i/(h−1)))` in the first `h = ⌊d/2⌋` numbers, then as many cosines, then 0 where `d` is odd. In
    /// single precision throughout, as the models were trained with. `d` is 4 or more.
    pub(crate) fn fairseq_sinusoids(n: usize, d: usize, padding: Token) -> Self {
        let half = d / 2;
        let step = (10_000f64.ln() / (half - 1) as f64) as f32;
        let frequencies: Vec<f32> = (0..half).map(|pair| (pair as f32 * -step).exp()).collect();
        let mut numbers = Vec::with_capacity(n * d);
        for position in 0..n {
            let angle = |frequency: &f32| (padding as f32 + 1.0 + position as f32) * frequency;
            numbers.extend(frequencies.iter().map(|frequency| angle(frequency).sin()));
            numbers.extend(frequencies.iter().map(|frequency| angle(frequency).cos()));
            numbers.resize((position + 1) * d, 0.0);
        }
        Self { table: Table::owned(numbers, n, d), first: 0, padding: Some(padding) }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.table.rows() - self.first
    }

    /// Adds the vectors of positions `from…` to the rows of one sentence of these tokens; of a signal, which has none, to all of its rows.
    pub(crate) fn add(&self, from: usize, tokens: &[Token], rows: &mut [f32]) {
        let mut vectors = Vec::with_capacity(rows.len());
        match self.padding.filter(|padding| tokens.contains(padding)) {
            None => self.table.append(self.first + from, self.first + from + rows.len() / self.table.d(), &mut vectors),
            Some(padding) => {
                let mut row = self.first + from;
                for &token in tokens {
                    if token == padding {
                        vectors.resize(vectors.len() + self.table.d(), 0.0);
                    } else {
                        self.table.append(row, row + 1, &mut vectors);
                        row += 1;
                    }
                }
            }
        }
        crosslens_kernels::add(rows, &vectors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// d = 5: two frequencies, 1 and 1/10000, then nothing. The padding token is 1, so that the count begins at 2.
    #[test]
    fn fairseq_counts_from_the_padding_token_and_skips_it() {
        let positions = Positions::fairseq_sinusoids(4, 5, 1);
        let vector = |place: f32| [place.sin(), (place * 1e-4).sin(), place.cos(), (place * 1e-4).cos(), 0.0];
        let mut rows = vec![0.0; 15];
        positions.add(1, &[7, 1, 7], &mut rows);
        let expected = [vector(3.0), [0.0; 5], vector(4.0)].concat();
        assert!(rows.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{rows:?} {expected:?}");
        assert_eq!(positions.len(), 4);
    }
}
