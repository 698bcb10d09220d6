//! How many sentences are in hand at a time.

use crate::{Description, Side};

/// As many as texts allow.
pub(crate) const MOST: u64 = 64;
/// What their states and attention may take, unless one sentence alone takes more.
const BYTES: usize = 512 << 20;

/// How many sentences are taken in hand at a time where the longest have so many steps: 64, fewer where states and attention of so many
/// would take more than 512 MB, at least one.
///
/// ```text
/// one sentence = Σ over streams steps·d·4 + Σ over sites queries·keys·4 bytes
/// ```
pub fn batch_size(description: &Description, n_source: usize, n_target: usize) -> u64 {
    let steps = |stream: usize| if description.streams[stream].side == Side::Source { n_source } else { n_target };
    let states = description.streams.iter().enumerate().map(|(stream, one)| steps(stream).saturating_mul(one.d));
    let cells = description.sites.iter().map(|site| steps(site.query).saturating_mul(steps(site.key)));
    let numbers = states.chain(cells).fold(0, usize::saturating_add);
    let n_bytes = numbers.saturating_mul(size_of::<f32>()).max(1);
    ((BYTES / n_bytes) as u64).clamp(1, MOST)
}
