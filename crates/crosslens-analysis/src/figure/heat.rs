//! A matrix as coloured cells, its tokens on two sides, and the bar that says what colours mean.

use super::colours::Colour;
use super::saved::Matrix;
use super::svg::{Stroke, Svg, Text};
use super::text::{few_digits, shown, widest, width};

/// Size of a token's letters.
pub(crate) const TOKEN: f64 = 7.0;
/// Size of small print.
pub(crate) const SMALL: f64 = 6.0;
/// Cells smaller than this have no gap between them.
const GAP_FROM: f64 = 5.0;
/// Sine and cosine of the slant of column tokens.
const SLANT: f64 = 0.707;

/// Where a matrix lies: its upper left corner and the size of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    pub(crate) at: [f64; 2],
    pub(crate) cell: [f64; 2],
}

impl Cells {
    /// Width and height of so many rows and columns.
    pub(crate) fn size(&self, n_rows: usize, n_columns: usize) -> [f64; 2] {
        [self.cell[0] * n_columns as f64, self.cell[1] * n_rows as f64]
    }

    /// Draws a matrix. Cells of the colour of zero are the ground they stand on.
    pub(crate) fn draw(&self, svg: &mut Svg, matrix: &Matrix, colour: impl Fn(f64) -> Colour) {
        let size = self.size(matrix.n_rows, matrix.n_columns);
        let ground = colour(0.0);
        svg.rect(self.at, size, ground);
        let gap = if self.cell[0].min(self.cell[1]) >= GAP_FROM { 0.5 } else { 0.0 };
        for row in 0..matrix.n_rows {
            let y = self.at[1] + row as f64 * self.cell[1];
            let mut column = 0;
            while column < matrix.n_columns {
                let fill = colour(matrix.at(row, column));
                // Neighbours of one colour are one cell where there are no gaps.
                let mut n_cells = 1;
                while gap == 0.0 && column + n_cells < matrix.n_columns && colour(matrix.at(row, column + n_cells)) == fill {
                    n_cells += 1;
                }
                if fill != ground {
                    let x = self.at[0] + column as f64 * self.cell[0];
                    svg.rect([x + gap / 2.0, y + gap / 2.0], [self.cell[0] * n_cells as f64 - gap, self.cell[1] - gap], fill);
                }
                column += n_cells;
            }
        }
        let frame = Stroke::new(svg.colours().faint(), 0.5);
        svg.frame(self.at, size, frame);
    }
}

/// Tokens of one axis, as they will be shown.
pub(crate) fn labels(tokens: &[String]) -> Vec<String> {
    tokens.iter().map(|token| shown(token)).collect()
}

/// Letters that fit a cell, none larger than [`TOKEN`] and none too small to read; only every so many are shown then.
fn fitting(cell: f64) -> (f64, usize) {
    const LEAST: f64 = 4.0;
    let size = (cell * 0.95).clamp(LEAST, TOKEN);
    (size, (size / cell).ceil().max(1.0) as usize)
}

/// Whether column tokens stand upright over cells of this width; else they slant.
fn is_upright(labels: &[String], cell: f64) -> bool {
    let (size, every) = fitting(cell);
    every == 1 && widest(labels, size) <= cell * 0.96
}

/// How much room column tokens take above a matrix, and to the right of its last column.
pub(crate) fn column_room(labels: &[String], cell: f64) -> [f64; 2] {
    let (size, _) = fitting(cell);
    if is_upright(labels, cell) {
        return [0.0, size + 2.0];
    }
    let (last, n) = (SLANT * widest(labels, size), labels.len() as f64);
    // Only what juts out beyond the matrix counts.
    let beyond = labels.iter().enumerate().map(|(place, label)| (place as f64 + 0.7 - n) * cell + SLANT * width(label, size));
    [beyond.fold(0.0, f64::max), last + size * 0.75 + 2.0]
}

/// Column tokens above a matrix.
pub(crate) fn draw_columns(svg: &mut Svg, cells: &Cells, labels: &[String]) {
    let (size, every) = fitting(cells.cell[0]);
    let upright = is_upright(labels, cells.cell[0]);
    for (column, label) in labels.iter().enumerate().step_by(every) {
        let middle = cells.at[0] + (column as f64 + 0.5) * cells.cell[0];
        if upright {
            svg.text([middle, cells.at[1] - 3.0], label, Text::new(size).middle());
        } else {
            svg.text([middle + 0.25 * size, cells.at[1] - 2.5], label, Text::new(size).turned(-45.0));
        }
    }
}

/// Row tokens that end at `x`, beside a matrix.
pub(crate) fn draw_rows(svg: &mut Svg, cells: &Cells, x: f64, labels: &[String], colour: Option<Colour>) {
    let (size, every) = fitting(cells.cell[1]);
    for (row, label) in labels.iter().enumerate().step_by(every) {
        let y = cells.at[1] + (row as f64 + 0.5) * cells.cell[1] + 0.35 * size;
        svg.text([x, y], label, Text { colour, ..Text::new(size).end() });
    }
}

/// How wide row tokens are beside cells of this height.
pub(crate) fn row_room(labels: &[String], cell: f64) -> f64 {
    widest(labels, fitting(cell).0)
}

/// What a colour bar says: its two ends, and what is measured.
pub(crate) struct Bar<'a> {
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    pub(crate) says: &'a str,
}

impl Bar<'_> {
    /// Width with its numbers and words.
    pub(crate) const ROOM: f64 = 32.0;

    /// Draws the bar upright from `at`, `height` tall, the highest value on top.
    pub(crate) fn draw(&self, svg: &mut Svg, at: [f64; 2], height: f64, colour: impl Fn(f64) -> Colour) {
        const WIDTH: f64 = 6.0;
        const STEPS: usize = 48;
        let step = height / STEPS as f64;
        for place in 0..STEPS {
            let value = self.highest + (self.lowest - self.highest) * (place as f64 + 0.5) / STEPS as f64;
            // A little taller than its place, so that no line shows between two.
            let overlap = if place + 1 < STEPS { 0.3 } else { 0.0 };
            svg.rect([at[0], at[1] + step * place as f64], [WIDTH, step + overlap], colour(value));
        }
        let muted = svg.colours().muted();
        svg.frame(at, [WIDTH, height], Stroke::new(svg.colours().faint(), 0.5));
        let mut ends = vec![(self.highest, 0.0), (self.lowest, 1.0)];
        if self.lowest < 0.0 {
            ends.push((0.0, 0.5));
        }
        for (value, place) in ends {
            let y = at[1] + height * place + SMALL * [0.7, 0.35, 0.0][(2.0 * place) as usize];
            svg.text([at[0] + WIDTH + 2.5, y], &few_digits(value), Text::new(SMALL).colour(muted));
        }
        let numbers = [self.lowest, 0.0, self.highest].map(few_digits);
        let x = at[0] + WIDTH + 4.0 + if self.lowest < 0.0 { widest(&numbers, SMALL) } else { 0.0 };
        svg.text([x, at[1] + height / 2.0], self.says, Text::new(SMALL).middle().colour(muted).turned(90.0));
    }
}

/// The end of a scale from zero that shows these values: 1 unless all are far below, then 1, 2 or 5 of a power of ten.
pub(crate) fn top_of_scale(values: &[f32]) -> f64 {
    let highest = values.iter().map(|&value| f64::from(value)).fold(0.0, f64::max);
    if highest > 0.5 || highest <= 0.0 { 1.0 } else { round_up(highest) }
}

/// The next 1, 2 or 5 of a power of ten; 1 for what is no positive number.
pub(crate) fn round_up(value: f64) -> f64 {
    next_of(&[1.0, 2.0, 5.0], value)
}

/// The next number of one digit and a half; 1 for what is no positive number.
pub(crate) fn round_up_finely(value: f64) -> f64 {
    next_of(&[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0], value)
}

/// The next of these steps of a power of ten.
fn next_of(steps: &[f64], value: f64) -> f64 {
    if !(value.is_finite() && value > 1e-30) {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    steps.iter().map(|step| step * power).find(|&end| end >= value * (1.0 - 1e-6)).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_in_round_numbers() {
        for (highest, end) in [(0.9, 1.0), (0.5, 0.5), (0.21, 0.5), (0.2, 0.2), (0.013, 0.02), (0.0, 1.0)] {
            assert!((top_of_scale(&[0.0, highest as f32]) - end).abs() < 1e-7, "{highest}");
        }
        assert_eq!((round_up(7.0), round_up(f64::NAN), round_up(-2.0)), (10.0, 1.0, 1.0));
    }

    #[test]
    fn long_tokens_slant_and_short_ones_stand() {
        let short = vec!["a".to_owned(), "b".to_owned()];
        let long = vec!["encyclopaedia".to_owned(), "b".to_owned()];
        assert_eq!(column_room(&short, 12.0)[0], 0.0);
        assert!(column_room(&long, 12.0)[1] > column_room(&short, 12.0)[1]);
    }
}
