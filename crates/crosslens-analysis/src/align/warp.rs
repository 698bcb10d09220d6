//! The cheapest monotone way through a table of costs: dynamic time warping.

/// Why a table of costs has no path.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WarpError {
    /// As many costs as cells were expected.
    #[error("a table of {n_rows} × {n_columns} cells has {n_costs} costs")]
    Shape {
        /// Rows.
        n_rows: usize,
        /// Columns.
        n_columns: usize,
        /// Numbers given.
        n_costs: usize,
    },
    /// A cost that is infinite or not a number.
    #[error("the cost of row {row} and column {column} is {cost}; costs are finite")]
    Cost {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// What stands there.
        cost: f32,
    },
}

/// A cell of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpCell {
    /// Its row.
    pub row: usize,
    /// Its column.
    pub column: usize,
}

/// A way from the first cell of a table to the last that never goes back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WarpPath {
    /// Its cells in order; each is one row, one column, or both further than the one before.
    pub cells: Vec<WarpCell>,
    /// The sum of their costs.
    pub cost: f64,
}

impl WarpPath {
    /// Where the path enters each row: as many columns as the table has rows, never decreasing.
    pub fn first_columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        for cell in &self.cells {
            if cell.row == columns.len() {
                columns.push(cell.column);
            }
        }
        columns
    }
}

/// The cheapest path through `cost [row, column]`:
///
/// ```text
/// reached[r, c] = cost[r, c] + min(reached[r−1, c−1], reached[r−1, c], reached[r, c−1])
/// ```
/// in f64, so that no sum of finite costs overflows. Among equals the step to the next column comes first, then the one to both, then the
/// one to the next row. Whisper's programs decide alike but for one case: where the last two tie below the first, they take the first,
/// which is dearer, and give a path that is not the cheapest.
///
/// Takes time and one byte for each cell. Empty for an empty table.
///
/// ```
/// use crosslens_analysis::align::warp;
///
/// let path = warp(&[0.0, 0.0, 9.0, 9.0, 9.0, 0.0], 2, 3)?;
/// assert_eq!((path.cost, path.first_columns()), (0.0, vec![0, 2]));
/// # Ok::<(), crosslens_analysis::align::WarpError>(())
/// ```
pub fn warp(cost: &[f32], n_rows: usize, n_columns: usize) -> Result<WarpPath, WarpError> {
    if n_rows.checked_mul(n_columns) != Some(cost.len()) {
        return Err(WarpError::Shape { n_rows, n_columns, n_costs: cost.len() });
    }
    if let Some(at) = cost.iter().position(|cost| !cost.is_finite()) {
        return Err(WarpError::Cost { row: at / n_columns, column: at % n_columns, cost: cost[at] });
    }
    if cost.is_empty() {
        return Ok(WarpPath::default());
    }

    let mut trace = vec![Step::Both; cost.len()];
    let mut reached = vec![f64::INFINITY; n_columns];
    for (row, (costs, steps)) in cost.chunks_exact(n_columns).zip(trace.chunks_exact_mut(n_columns)).enumerate() {
        // What was reached left of and above the cell; outside the table nothing is, but for the corner before the first cell.
        let (mut left, mut corner) = (f64::INFINITY, if row == 0 { 0.0 } else { f64::INFINITY });
        for ((reached, step), &cost) in reached.iter_mut().zip(steps).zip(costs) {
            let above = *reached;
            let (before, came) = cheapest(left, corner, above);
            (*reached, *step) = (before + f64::from(cost), came);
            (left, corner) = (*reached, above);
        }
    }
    Ok(WarpPath { cells: walk_back(&trace, n_rows, n_columns), cost: reached[n_columns - 1] })
}

fn cheapest(left: f64, corner: f64, above: f64) -> (f64, Step) {
    if left <= corner && left <= above && left < f64::INFINITY {
        (left, Step::Column)
    } else if corner <= above {
        (corner, Step::Both)
    } else {
        (above, Step::Row)
    }
}

/// The cells of the path, from the last cell's trace on.
fn walk_back(trace: &[Step], n_rows: usize, n_columns: usize) -> Vec<WarpCell> {
    let (mut row, mut column) = (n_rows - 1, n_columns - 1);
    let mut cells = vec![WarpCell { row, column }];
    while (row, column) != (0, 0) {
        match trace[row * n_columns + column] {
            Step::Both => (row, column) = (row - 1, column - 1),
            Step::Row => row -= 1,
            Step::Column => column -= 1,
        }
        cells.push(WarpCell { row, column });
    }
    cells.reverse();
    cells
}

/// A step of a path, by what it goes on to.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Step {
    Both,
    Row,
    Column,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// ```text
    /// 1 9 9
    /// 1 9 9      down, down and right at once, right: 1 + 1 + 1 + 1
    /// 1 1 1
    /// ```
    #[test]
    fn the_cheapest_path_is_found() {
        let path = warp(&[1., 9., 9., 1., 9., 9., 1., 1., 1.], 3, 3).expect("nine costs");
        let cells: Vec<(usize, usize)> = path.cells.iter().map(|cell| (cell.row, cell.column)).collect();
        assert_eq!(cells, [(0, 0), (1, 0), (2, 1), (2, 2)]);
        assert_eq!((path.cost, path.first_columns()), (4.0, vec![0, 0, 1]));
    }

    /// In a table of zeros every path is as cheap: seen from the end, columns first.
    #[test]
    fn among_equals_the_next_column_comes_first() {
        let path = warp(&[0.0; 6], 2, 3).expect("six costs");
        assert_eq!(path.first_columns(), [0, 0]);
        assert_eq!(path.cells.len(), 4);
    }

    /// ```text
    /// 0 0      before the last cell: left 0 + 3 = 3, corner 0, above 0 + 0 = 0
    /// 3 1
    /// ```
    #[test]
    fn a_tie_below_the_next_column_is_not_passed_over() {
        let path = warp(&[0., 0., 3., 1.], 2, 2).expect("four costs");
        assert_eq!((path.cost, path.cells.len()), (1.0, 2));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        assert_eq!(warp(&[0.0; 5], 2, 3), Err(WarpError::Shape { n_rows: 2, n_columns: 3, n_costs: 5 }));
        assert!(matches!(warp(&[], usize::MAX, usize::MAX), Err(WarpError::Shape { .. })));
        let error = warp(&[0., 0., 0., f32::NAN], 2, 2).expect_err("no number").to_string();
        assert_eq!(error, "the cost of row 1 and column 1 is NaN; costs are finite");
        assert!(warp(&[0., f32::NEG_INFINITY], 1, 2).is_err());
        for (n_rows, n_columns) in [(0, 3), (3, 0), (0, 0)] {
            assert_eq!(warp(&[], n_rows, n_columns), Ok(WarpPath::default()));
        }
    }

    #[test]
    fn the_largest_costs_do_not_overflow() {
        let path = warp(&[f32::MAX; 12], 3, 4).expect("finite costs");
        assert_eq!(path.cost, 4.0 * f64::from(f32::MAX));
    }

    /// The least cost of any path from a cell to the last, by trying all.
    fn least(cost: &[f32], n_columns: usize, row: usize, column: usize) -> f64 {
        let n_rows = cost.len() / n_columns;
        let ways = [(row + 1, column + 1), (row + 1, column), (row, column + 1)];
        let rest = ways.into_iter().filter(|&(row, column)| row < n_rows && column < n_columns);
        let rest = rest.map(|(row, column)| least(cost, n_columns, row, column)).reduce(f64::min);
        f64::from(cost[row * n_columns + column]) + rest.unwrap_or(0.0)
    }

    /// Tables of whole numbers, whose sums are exact and often tie, or of any.
    fn tables() -> impl Strategy<Value = (Vec<f32>, usize, usize)> {
        let cost = prop_oneof![(-3i8..=3).prop_map(f32::from), -10.0f32..10.0];
        (1usize..=6, 1usize..=6).prop_flat_map(move |(n_rows, n_columns)| {
            (proptest::collection::vec(cost.clone(), n_rows * n_columns), Just(n_rows), Just(n_columns))
        })
    }

    proptest! {
        #[test]
        fn no_path_is_cheaper((cost, n_rows, n_columns) in tables()) {
            let path = warp(&cost, n_rows, n_columns).expect("finite costs");
            prop_assert!((path.cost - least(&cost, n_columns, 0, 0)).abs() < 1e-9);
            let along: f64 = path.cells.iter().map(|cell| f64::from(cost[cell.row * n_columns + cell.column])).sum();
            prop_assert!((path.cost - along).abs() < 1e-9);
        }

        #[test]
        fn a_path_goes_from_corner_to_corner_by_single_steps((cost, n_rows, n_columns) in tables()) {
            let path = warp(&cost, n_rows, n_columns).expect("finite costs");
            prop_assert_eq!(path.cells[0], WarpCell { row: 0, column: 0 });
            prop_assert_eq!(path.cells[path.cells.len() - 1], WarpCell { row: n_rows - 1, column: n_columns - 1 });
            for step in path.cells.windows(2) {
                let moved = (step[1].row - step[0].row, step[1].column - step[0].column);
                prop_assert!([(1, 0), (0, 1), (1, 1)].contains(&moved));
            }
            let entered = path.first_columns();
            prop_assert_eq!(entered.len(), n_rows);
            prop_assert!(entered.is_sorted());
        }
    }
}
