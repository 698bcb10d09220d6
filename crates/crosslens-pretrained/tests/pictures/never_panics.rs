//! Whatever the bytes are: an error or a picture within the limits, and never more memory than a picture of the largest size takes.

use crosslens_pretrained::picture::Picture;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::allocation::most_held;
use crate::fixtures::{bytes, names, processor_in};

/// 64 million pixels of 16 bytes: decoders of whole pictures keep several forms of them, and some room is left.
const MAX_BYTES: usize = 16 * 64_000_000;

fn check(file: &[u8]) -> Result<(), TestCaseError> {
    let (result, most) = most_held(|| Picture::read(file, "file"));
    prop_assert!(most <= MAX_BYTES, "{most} bytes");
    if let Ok(picture) = result {
        prop_assert_eq!(picture.rgb().len(), picture.height() * picture.width() * 3);
        prop_assert!(picture.height() * picture.width() > 0);
    }
    Ok(())
}

/// What a byte at a place becomes.
fn changes() -> impl Strategy<Value = Vec<(Index, u8)>> {
    vec((any::<Index>(), any::<u8>()), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes(file in vec(any::<u8>(), 0..300)) {
        check(&file)?;
    }

    #[test]
    fn arbitrary_bytes_behind_a_signature(kind in 0_usize..5, rest in vec(any::<u8>(), 0..300)) {
        let signatures: [&[u8]; 5] = [
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x09\0\0\0\x09\x08\x02\0\0\0",
            b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0",
            b"RIFF\xff\0\0\0WEBPVP8 ",
            b"RIFF\xff\0\0\0WEBPVP8L",
            b"RIFF\xff\0\0\0WEBPVP8X",
        ];
        check(&[signatures[kind], &rest].concat())?;
    }

    #[test]
    fn changed_files(name in select(names()), changes in changes(), kept in any::<Index>(), is_cut: bool) {
        let mut file = bytes(&name);
        changes.iter().for_each(|(place, value)| {
            let place = place.index(file.len());
            file[place] = *value;
        });
        if is_cut {
            file.truncate(kept.index(file.len()));
        }
        check(&file)?;
    }

    #[test]
    fn changed_beginnings(name in select(names()), changes in changes()) {
        let mut file = bytes(&name);
        let n_first = file.len().min(40);
        changes.iter().for_each(|(place, value)| file[place.index(n_first)] = *value);
        check(&file)?;
    }

    #[test]
    fn arbitrary_settings(size in "[0-9\"{}:,a-z_ ]{0,20}", mean in "[0-9.eE,\\[\\]-]{0,20}", resample: i64) {
        let config = format!(
            "{{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {size}, \"image_mean\": {mean}, \"resample\": {resample}}}"
        );
        if let Ok(processor) = processor_in("preprocessor_config.json", &config) {
            let picture = Picture::read(&bytes("dot.png"), "dot").expect("a picture");
            prop_assert!(processor.apply(&picture).is_ok());
        }
    }
}
