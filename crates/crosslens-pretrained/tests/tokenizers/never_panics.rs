//! Arbitrary bytes and arbitrary text: answers or errors, never a panic.

use std::hint::black_box;

use crosslens_pretrained::text::SentencePiece;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::fixtures::{LIBRARY, MODELS, RELATIVES, library, marian, model, model_bytes, speaking, t5};

/// Text that tokenizers stumble over: any characters, marks and names of pieces, spaces of every kind.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => any::<String>(),
        2 => "[ \t\u{a0}\u{3000}\u{200b}▁]{1,4}",
        2 => "[a-zé語가]{1,5}",
        1 => "(<unk>|</s>|<pad>|<sep>|<0x41>|>>fra<<|<extra_id_0>|<mask>|__en__|eng_Latn|<unk_2>|\\[NAME\\]){1,2}",
        1 => "[\u{0}-\u{1f}\u{300}-\u{310}]{1,6}",
    ];
    proptest::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn random_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        SentencePiece::from_bytes(&bytes).ok();
    }
}

/// A few bytes of a whole model changed, anywhere or in its map of characters, which is most of it.
#[test]
fn damaged_models_are_refused_or_work() {
    let wholes = ["unigram-nmt_nfkc", "bpe-nmt_nfkc-unused", "unigram-bytes"].map(model_bytes);
    proptest!(ProptestConfig::with_cases(64), |(which in 0..3_usize, changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..20), text in texts())| {
        let mut bytes = wholes[which].clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(model) = SentencePiece::from_bytes(&bytes) {
            let ids: Vec<u32> = model.encode(&text).iter().map(|piece| piece.id).collect();
            prop_assert!(ids.iter().all(|&id| (id as usize) < model.n_pieces()));
            black_box(model.decode_ids(&ids));
        }
    });
}

#[test]
fn any_text_can_be_cut_by_every_model() {
    let models = MODELS.map(model);
    proptest!(|(text in texts(), ids in proptest::collection::vec(0..1000_u32, 0..20))| {
        for model in &models {
            let pieces = model.encode(&text);
            prop_assert!(pieces.iter().all(|piece| (piece.id as usize) < model.n_pieces() && piece.begin <= text.len()));
            prop_assert!(pieces.is_sorted_by_key(|piece| piece.begin));
            black_box(model.decode_ids(&ids));
        }
    });
}

#[test]
fn any_text_can_be_encoded_by_every_tokenizer() {
    let mut tokenizers = vec![marian("marian").tokenizer(), marian("marian-separate").tokenizer(), t5().tokenizer()];
    tokenizers.extend(LIBRARY.map(|name| library(name).tokenizer()));
    tokenizers.extend(RELATIVES.map(speaking));
    proptest!(|(text in texts(), ids in proptest::collection::vec(any::<u32>(), 0..10))| {
        let n_words = text.split_whitespace().count();
        for tokenizer in &tokenizers {
            for encoded in [tokenizer.encode_source(&text), tokenizer.encode_target(&text)] {
                let encoded = encoded.expect("tokens");
                prop_assert_eq!([encoded.ids.len(); 2], [encoded.tokens.len(), encoded.words.len()]);
                prop_assert!(encoded.words.iter().flatten().all(|&word| word < n_words));
                tokenizer.decode(&encoded.ids).expect("text");
                let words = tokenizer.target_words(&encoded.ids).expect("a mark of spaces");
                prop_assert_eq!(words.len(), encoded.ids.len());
            }
            tokenizer.decode(&ids).expect("text");
        }
    });
}

/// A line of a hundred thousand characters takes no longer than a hundred thousand times a character: not a second, where squares
/// would take minutes.
#[test]
fn long_lines_end() {
    for name in MODELS {
        let model = model(name);
        for line in ["ab ".repeat(100_000), "a".repeat(300_000), "\u{301}".repeat(100_000), " ".repeat(300_000), "☃".repeat(100_000)] {
            black_box(model.encode(&line));
        }
    }
}
