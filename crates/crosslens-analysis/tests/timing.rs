//! Paths and word times against transformers' Whisper, by `tests/golden/make_timing.py`.

use crosslens_analysis::align::warp;
use crosslens_analysis::timing::{AttentionShape, TokenTiming, token_times};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/timing.json")).expect("it is JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn size(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a number")).expect("a small one")
}

/// A table of numbers, row by row, and its sizes.
fn table(value: &Value) -> (Vec<f32>, usize, usize) {
    let rows = list(value);
    let numbers = rows.iter().flat_map(list).map(|number| number.as_f64().expect("a number") as f32);
    (numbers.collect(), rows.len(), list(&rows[0]).len())
}

#[test]
fn paths_are_those_of_whisper() {
    let golden = golden();
    assert_eq!(list(&golden["paths"]).len(), 60);
    for case in list(&golden["paths"]) {
        let (cost, n_rows, n_columns) = table(&case["cost"]);
        let path = warp(&cost, n_rows, n_columns).expect("finite costs");
        let cells: Vec<[usize; 2]> = path.cells.iter().map(|cell| [cell.row, cell.column]).collect();
        let expected: Vec<[usize; 2]> = list(&case["cells"]).iter().map(|cell| [size(&cell[0]), size(&cell[1])]).collect();
        assert_eq!(cells, expected, "{case}");
    }
}

#[test]
fn token_times_are_those_of_whisper() {
    let golden = golden();
    assert_eq!(list(&golden["times"]).len(), 7);
    for (number, case) in list(&golden["times"]).iter().enumerate() {
        let heads: Vec<(Vec<f32>, usize, usize)> = list(&case["attention"]).iter().map(table).collect();
        let shape = AttentionShape { n_tokens: heads[0].1, n_frames: heads[0].2, n_real: size(&case["n_real"]) };
        let heads: Vec<Vec<f32>> = heads.into_iter().map(|head| head.0).collect();
        let how = TokenTiming { median_width: size(&case["width"]), ..TokenTiming::default() };
        let times = token_times(&heads, shape, &how).expect("fitting rows");
        let expected: Vec<usize> = list(&case["frames"]).iter().map(size).collect();
        assert_eq!(times.first_frames, expected, "case {number}");
        assert!(times.starts().iter().zip(&expected).all(|(start, &frame)| (start - 0.02 * frame as f64).abs() < 1e-12));
    }
}
