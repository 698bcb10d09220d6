/// A matrix inside a slice: element `(i, j)` is `data[i · row_stride + j · column_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, F> {
    data: &'a [F],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, F: Copy> Matrix<'a, F> {
    /// Rows one after the other, without gaps. Panics if `data` is shorter than `rows · columns`.
    #[inline]
    pub fn new(data: &'a [F], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    /// Contiguous rows that start `row_stride` apart. Panics if `data` is too short.
    #[inline]
    pub fn strided(data: &'a [F], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(fits(data.len(), rows, columns, row_stride), "{rows} × {columns} rows {row_stride} apart exceed {} elements", data.len());
        Self { data, rows, columns, row_stride, column_stride: 1 }
    }

    /// The same elements with rows and columns exchanged.
    #[inline]
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }

    /// Rows `from..to` of a matrix whose rows are contiguous or not.
    #[inline]
    #[must_use]
    pub fn row_range(self, from: usize, to: usize) -> Self {
        assert!(from <= to && to <= self.rows, "rows {from}..{to} of {}", self.rows);
        let start = if from == to { 0 } else { from * self.row_stride };
        Self { data: &self.data[start..], rows: to - from, ..self }
    }

    /// Columns `from..to`.
    #[inline]
    #[must_use]
    pub fn column_range(self, from: usize, to: usize) -> Self {
        assert!(from <= to && to <= self.columns, "columns {from}..{to} of {}", self.columns);
        let start = if from == to || self.rows == 0 { 0 } else { from * self.column_stride };
        Self { data: &self.data[start..], columns: to - from, ..self }
    }

    /// Number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[inline]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row, as a slice. Panics if rows are not contiguous.
    #[inline]
    pub fn row(&self, row: usize) -> &'a [F] {
        assert!(self.column_stride == 1 && row < self.rows, "row {row} of {} is not contiguous or not there", self.rows);
        &self.data[row * self.row_stride..][..self.columns]
    }

    /// One element.
    #[inline]
    pub fn get(&self, row: usize, column: usize) -> F {
        debug_assert!(row < self.rows && column < self.columns);
        self.data[row * self.row_stride + column * self.column_stride]
    }

    #[inline]
    pub(crate) fn parts(&self) -> (*const F, usize, usize) {
        (self.data.as_ptr(), self.row_stride, self.column_stride)
    }

    #[inline]
    pub(crate) fn has_contiguous_rows(&self) -> bool {
        self.column_stride == 1
    }
}

/// A matrix that is written to: contiguous rows that start `row_stride` apart.
#[derive(Debug)]
pub struct MatrixMut<'a, F> {
    data: &'a mut [F],
    rows: usize,
    columns: usize,
    row_stride: usize,
}

impl<'a, F: Copy> MatrixMut<'a, F> {
    /// Rows one after the other, without gaps. Panics if `data` is shorter than `rows · columns`.
    #[inline]
    pub fn new(data: &'a mut [F], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    /// Contiguous rows that start `row_stride` apart. Panics if `data` is too short.
    #[inline]
    pub fn strided(data: &'a mut [F], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(fits(data.len(), rows, columns, row_stride), "{rows} × {columns} rows {row_stride} apart exceed {} elements", data.len());
        Self { data, rows, columns, row_stride }
    }

    /// Number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[inline]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row.
    #[inline]
    pub fn row_mut(&mut self, row: usize) -> &mut [F] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        &mut self.data[row * self.row_stride..][..self.columns]
    }

    #[inline]
    pub(crate) fn parts_mut(&mut self) -> (*mut F, usize) {
        (self.data.as_mut_ptr(), self.row_stride)
    }
}

fn fits(len: usize, rows: usize, columns: usize, row_stride: usize) -> bool {
    if rows == 0 || columns == 0 {
        return true;
    }
    let end = (rows - 1).checked_mul(row_stride).and_then(|start| start.checked_add(columns));
    (rows == 1 || row_stride >= columns) && end.is_some_and(|end| end <= len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_must_fit_its_slice_even_if_the_sum_overflows() {
        assert!(fits(6, 2, 3, 3) && !fits(5, 2, 3, 3));
        assert!(fits(0, 0, 3, 3) && fits(0, 3, 0, 0));
        assert!(!fits(6, 2, 3, 2), "rows that overlap");
        assert!(!fits(1, 2, 1, usize::MAX) && !fits(1, usize::MAX, 2, 3));
    }
}
