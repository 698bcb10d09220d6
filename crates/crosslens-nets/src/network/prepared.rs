//! What all shards of a batch share: the weights packed for products, both ways round.

use std::ops::Range;

use crosslens_kernels::{Matrix, Packed, Real, Threads};

use super::layout::{Layout, TensorId};

/// A packed matrix of a [`Prepared`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapId(usize);

/// Which part of which parameter to pack.
#[derive(Clone, Debug)]
enum Piece {
    Columns(TensorId, Range<usize>),
    /// The first so many rows, turned into columns.
    Turned(TensorId, usize),
}

impl Piece {
    fn of<'w, F: Real>(&self, layout: &Layout, weights: &'w [F]) -> Matrix<'w, F> {
        let matrix = |tensor: TensorId| {
            let (rows, columns) = layout.shape(tensor);
            Matrix::new(&weights[layout.range(tensor)], rows, columns)
        };
        match self {
            Self::Columns(tensor, columns) => matrix(*tensor).column_range(columns.start, columns.end),
            Self::Turned(tensor, rows) => matrix(*tensor).row_range(0, *rows).transposed(),
        }
    }
}

/// The list of matrices that products need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maps {
    pieces: Vec<Piece>,
}

impl Maps {
    /// The whole matrix.
    pub(crate) fn whole(&mut self, layout: &Layout, tensor: TensorId) -> MapId {
        self.columns(tensor, 0..layout.shape(tensor).1)
    }

    /// Some columns of it.
    pub(crate) fn columns(&mut self, tensor: TensorId, columns: Range<usize>) -> MapId {
        self.pieces.push(Piece::Columns(tensor, columns));
        MapId(self.pieces.len() - 1)
    }

    /// Its first so many rows, as columns.
    pub(crate) fn turned(&mut self, tensor: TensorId, rows: usize) -> MapId {
        self.pieces.push(Piece::Turned(tensor, rows));
        MapId(self.pieces.len() - 1)
    }
}

/// One linear map, packed to be applied (`x·W`) and to pass gradients back (`dy·Wᵀ`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Map<F> {
    pub(crate) forward: Packed<F>,
    pub(crate) backward: Packed<F>,
}

/// All maps for the weights at hand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared<F> {
    maps: Vec<Map<F>>,
}

impl<F: Real> Prepared<F> {
    /// Packs the weights; `with_backward` also the transposed maps.
    pub(crate) fn refresh(&mut self, maps: &Maps, layout: &Layout, weights: &[F], with_backward: bool, threads: &Threads) {
        self.maps.resize_with(maps.pieces.len(), || Map { forward: Packed::new(), backward: Packed::new() });
        threads.for_each(&mut self.maps, |number, map| {
            let matrix = maps.pieces[number].of(layout, weights);
            let Map { forward, backward } = map;
            // Side by side: of a network with many words the readout is larger than all other maps together.
            if with_backward {
                threads.both(|| forward.pack(matrix), || backward.pack(matrix.transposed()));
            } else {
                forward.pack(matrix);
            }
        });
    }

    pub(crate) fn get(&self, id: MapId) -> &Map<F> {
        &self.maps[id.0]
    }
}

/// The weights of a pass, as they are and packed.
#[derive(Debug)]
pub(crate) struct Context<'a, F> {
    pub(crate) layout: &'a Layout,
    pub(crate) weights: &'a [F],
    pub(crate) prepared: &'a Prepared<F>,
}

impl<F> Clone for Context<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Context<'_, F> {}
