//! The skeleton of a JPEG file, looked at before it is decoded: the decoder takes a file that ends early for a grey picture.

/// Files have about ten; each costs a pass over all pixels.
const MAX_SCANS: usize = 100;

/// What is wrong with a JPEG file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It ends before its end marker.
    Truncated,
    /// It asks for more passes over the picture than any does.
    TooManyScans,
}

/// Goes from marker to marker up to the end marker; gives the height and the width of the frame, if there is one.
pub(super) fn walk(bytes: &[u8]) -> Result<Option<(u32, u32)>, Fault> {
    let (mut at, mut n_scans, mut size) = (2, 0, None);
    loop {
        let marker = next_marker(bytes, &mut at).ok_or(Fault::Truncated)?;
        match marker {
            END => return Ok(size),
            // Without content: the start, restarts and one reserved.
            0x01 | 0xd0..=0xd8 => continue,
            _ => {}
        }
        let length = usize::from(number(bytes, at).ok_or(Fault::Truncated)?);
        if is_frame(marker) && size.is_none() {
            size = number(bytes, at + 3).zip(number(bytes, at + 5)).map(|(height, width)| (height.into(), width.into()));
        }
        at += length.max(2);
        if marker == SCAN {
            n_scans += 1;
            if n_scans > MAX_SCANS {
                return Err(Fault::TooManyScans);
            }
        }
    }
}

const END: u8 = 0xd9;
const SCAN: u8 = 0xda;

/// Frames of all kinds; three numbers among theirs mean something else.
fn is_frame(marker: u8) -> bool {
    (0xc0..=0xcf).contains(&marker) && ![0xc4, 0xc8, 0xcc].contains(&marker)
}

/// The next marker from `at` on, which then stands behind it. Pixels and rubbish before it are passed over: within pixels 0xff is followed
/// by 0, or by a restart.
fn next_marker(bytes: &[u8], at: &mut usize) -> Option<u8> {
    loop {
        *at += bytes.get(*at..)?.iter().position(|&byte| byte == 0xff)? + 1;
        match *bytes.get(*at)? {
            0x00 | 0xff => {}
            marker => {
                *at += 1;
                return Some(marker);
            }
        }
    }
}

/// Two bytes, the high one first.
fn number(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|&two| u16::from_be_bytes(two))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start, a comment holding an end marker, a frame of 3 × 5, a scan whose pixels hold 0xff, and the end.
    const WHOLE: [u8; 34] = [
        0xff, 0xd8, 0xff, 0xfe, 0, 4, 0xff, 0xd9, 0xff, 0xc0, 0, 11, 8, 0, 3, 0, 5, 1, 1, 0x11, 0, 0xff, 0xda, 0, 3, 9, 7, 0xff, 0, 0xff,
        0xd0, 7, 0xff, 0xd9,
    ];

    #[test]
    fn the_end_is_found_behind_the_pixels_alone() {
        assert_eq!(walk(&WHOLE), Ok(Some((3, 5))));
        for n_bytes in 0..WHOLE.len() {
            assert_eq!(walk(&WHOLE[..n_bytes]), Err(Fault::Truncated), "{n_bytes} bytes");
        }
    }

    #[test]
    fn a_hundred_scans_are_enough() {
        let mut bytes = WHOLE[..21].to_vec();
        bytes.extend([0xff, SCAN, 0, 2].repeat(MAX_SCANS));
        let (mut enough, mut many) = (bytes.clone(), bytes);
        enough.extend([0xff, END]);
        many.extend([0xff, SCAN, 0, 2, 0xff, END]);
        assert_eq!(walk(&enough), Ok(Some((3, 5))));
        assert_eq!(walk(&many), Err(Fault::TooManyScans));
    }
}
