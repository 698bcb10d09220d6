//! crosslens.

fn main() {}
