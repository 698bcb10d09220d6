//! crosslens-bench.

fn main() {}
