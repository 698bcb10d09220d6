//! Numbers that begin where a line of the cache does.

use std::ops::{Deref, DerefMut};

use crate::Real;

/// Bytes of a line of the cache, and of the widest register.
pub(crate) const LINE: usize = 64;

/// Numbers whose first begins a line of the cache, so that registers are filled from one line each, not from two: rows for [`dots_of`].
///
/// ```
/// let mut rows = crosslens_kernels::Aligned::<f32>::zeros(100);
/// rows[99] = 1.0;
/// assert_eq!(rows.clone()[99], 1.0);
/// assert_eq!(rows.as_ptr().align_offset(64), 0);
/// ```
///
/// [`dots_of`]: crate::dots_of
#[derive(Debug, Default)]
pub struct Aligned<F> {
    values: Vec<F>,
    from: usize,
    len: usize,
}

impl<F: Real> Aligned<F> {
    /// That many zeros.
    pub fn zeros(len: usize) -> Self {
        let spare = LINE / size_of::<F>() - 1;
        let values = vec![F::ZERO; len + spare];
        // A machine that cannot tell (it may answer `usize::MAX`) gives numbers that are right and not aligned.
        let from = values.as_ptr().align_offset(LINE).min(spare);
        Self { values, from, len }
    }

    /// Numbers it has room for, those before the first among them.
    pub fn capacity(&self) -> usize {
        self.values.capacity()
    }

    /// Becomes as long as that, zeros behind what it holds; room grows by doubling, as a `Vec`'s does.
    pub fn grow(&mut self, len: usize) {
        let old = self.len;
        assert!(len >= old, "it grows");
        if self.from + len > self.values.len() {
            let mut grown = Self::zeros(len.max(2 * old));
            grown[..old].copy_from_slice(self);
            *self = grown;
        }
        self.len = len;
        self[old..].fill(F::ZERO);
    }

    /// Becomes as long as that; what it holds then is not said.
    pub fn reshape(&mut self, len: usize) {
        if self.from + len > self.values.len() {
            *self = Self::zeros(len);
        }
        self.len = len;
    }
}

impl<F> Deref for Aligned<F> {
    type Target = [F];

    fn deref(&self) -> &[F] {
        &self.values[self.from..][..self.len]
    }
}

impl<F> DerefMut for Aligned<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        &mut self.values[self.from..][..self.len]
    }
}

/// A copy lies elsewhere, and begins a line there.
impl<F: Clone> Clone for Aligned<F> {
    fn clone(&self) -> Self {
        let mut values: Vec<F> = Vec::with_capacity(self.values.len());
        let from = values.as_ptr().align_offset(LINE).min(self.values.len() - self.len);
        values.extend_from_slice(&self.values[..from]);
        values.extend_from_slice(self);
        Self { values, from, len: self.len }
    }
}

impl<F: PartialEq> PartialEq for Aligned<F> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl<F: Real> From<&[F]> for Aligned<F> {
    fn from(values: &[F]) -> Self {
        let mut aligned = Self::zeros(values.len());
        aligned.copy_from_slice(values);
        aligned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_begins_a_line_and_so_do_copies() {
        for len in [0, 1, 15, 16, 17, 1000, 100_000] {
            let mut values = Aligned::<f64>::zeros(len);
            values.iter_mut().enumerate().for_each(|(place, value)| *value = place as f64);
            assert_eq!(values.clone(), values);
            for values in [values.clone(), values] {
                assert!((len..len + LINE).contains(&values.capacity()));
                assert_eq!((values.len(), values.as_ptr().align_offset(LINE)), (len, 0));
                assert!(values.iter().enumerate().all(|(place, &value)| value == place as f64));
            }
        }
    }

    #[test]
    fn what_grows_keeps_what_it_holds_and_moves_seldom() {
        let (mut values, mut n_moves) = (Aligned::<f64>::default(), 0);
        for len in 1..=1000 {
            let before = values.as_ptr();
            values.grow(len);
            n_moves += usize::from(values.as_ptr() != before);
            assert_eq!((values[len - 1], values.as_ptr().align_offset(LINE)), (0.0, 0));
            values[len - 1] = len as f64;
        }
        assert!(values.iter().zip(1..).all(|(&value, place)| value == f64::from(place)));
        assert!(n_moves <= 12, "{n_moves} moves");
        values.reshape(1);
        values.grow(3);
        assert_eq!(values[..], [1.0, 0.0, 0.0], "what it held before is not there again");
    }

    #[test]
    fn it_grows_and_shrinks_and_stays_aligned() {
        let mut values = Aligned::<f32>::default();
        for len in [3, 40, 7, 0, 41] {
            values.reshape(len);
            assert_eq!((values.len(), values.as_ptr().align_offset(LINE)), (len, 0));
        }
    }
}
