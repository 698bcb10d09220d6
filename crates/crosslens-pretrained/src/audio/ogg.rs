//! Whether an Ogg file was cut off: its length stands in its last page, wherever that is, so that only the end itself can tell.

use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom};

/// A page has a head of 27 bytes, up to 255 lengths and as many segments of up to 255 bytes.
const MOST_PAGE_BYTES: u64 = 27 + 255 + 255 * 255;
/// The flag of a page that ends a stream.
const ENDS: u8 = 4;

/// Whether the last page of an Ogg file is not whole, or not the end of a stream. Of other files false. Leaves the file at its beginning.
pub(super) fn is_cut(file: &mut File) -> Result<bool> {
    let mut mark = Vec::new();
    file.by_ref().take(4).read_to_end(&mut mark)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_PAGE_BYTES)))?;
    let mut end = Vec::new();
    file.take(MOST_PAGE_BYTES).read_to_end(&mut end)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(mark == b"OggS" && !ends_whole(&end))
}

/// Whether these last bytes have a whole page in them that ends a stream, and no page after it.
fn ends_whole(bytes: &[u8]) -> bool {
    let Some(first) = bytes.windows(5).rposition(|window| window == b"OggS\0") else { return false };
    let page = &bytes[first..];
    let Some(&[flags, .., n_segments]) = page.get(5..27) else { return false };
    let Some(lengths) = page.get(27..27 + usize::from(n_segments)) else { return false };
    let whole = 27 + lengths.len() + lengths.iter().map(|&length| usize::from(length)).sum::<usize>();
    flags & ENDS != 0 && page.len() >= whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_last_page_ends_a_stream() {
        let page = |flags: u8| [b"OggS\0", &[flags][..], &[0; 20], &[2, 3, 1], &[9; 4]].concat();
        let (middle, last) = (page(0), page(ENDS));
        let both = [middle.clone(), last.clone()].concat();
        assert!(ends_whole(&last) && ends_whole(&both) && ends_whole(&[&both[..], b"tag"].concat()));
        assert!(!ends_whole(&middle) && !ends_whole(&[last.clone(), middle].concat()) && !ends_whole(b"OggS"));
        assert!((1..last.len()).all(|end| !ends_whole(&last[..end])));
    }
}
