//! One test for each way a SentencePiece model can be broken.

use crate::fixtures::{Folder, character_map, field, model_bytes};

const NORMAL: u8 = 1;
const UNKNOWN: u8 = 2;
const CONTROL: u8 = 3;
const BYTE: u8 = 6;

fn piece(text: &[u8], score: f32, kind: u8) -> Vec<u8> {
    field(1, &[&field(1, text)[..], &[0x15], &score.to_le_bytes(), &[0x18, kind]].concat())
}

/// A small model that is whole: `</s>`, `<unk>`, `▁` and `a`.
fn small() -> Vec<Vec<u8>> {
    vec![piece(b"</s>", 0.0, CONTROL), piece(b"<unk>", 0.0, UNKNOWN), piece("▁".as_bytes(), -1.0, NORMAL), piece(b"a", -2.0, NORMAL)]
}

fn refused(bytes: &[u8], words: &[&str]) {
    Folder::new().with("spiece.model", bytes).refused("spiece.model", words);
}

fn refused_with(part: Vec<u8>, words: &[&str]) {
    refused(&[small().concat(), part].concat(), words);
}

#[test]
fn the_small_model_is_whole() {
    let tokenizer = Folder::new().with("spiece.model", small().concat()).tokenizer();
    let encoded = tokenizer.encode_source("a b").expect("ids");
    assert_eq!((encoded.ids, encoded.tokens.join(" ")), (vec![2, 3, 2, 1, 0], "▁ a ▁ b </s>".to_owned()));
}

#[test]
fn empty_file() {
    refused(b"", &["no pieces"]);
}

#[test]
fn file_of_something_else() {
    refused(b"version https://git-lfs.github.com/spec/v1\n", &["no usable SentencePiece model"]);
    refused(b"<!DOCTYPE html><html></html>", &["no usable SentencePiece model"]);
}

#[test]
fn truncated_model() {
    let whole = model_bytes("unigram-nmt_nfkc");
    for length in [1, 2, 100, whole.len() / 2, whole.len() - 1] {
        refused(&whole[..length], &["cut short or damaged"]);
    }
}

#[test]
fn length_beyond_the_file() {
    refused_with(vec![0x0a, 100, b'a'], &["claims 100 bytes where 1 are left"]);
}

#[test]
fn length_of_two_to_the_sixty() {
    let huge = [0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10];
    refused_with(huge.to_vec(), &["claims 1152921504606846976 bytes where 0 are left"]);
    // The same inside a piece, and inside the map of characters.
    refused_with(field(1, &huge), &["claims 1152921504606846976 bytes"]);
    refused_with(field(3, &field(2, &[0xff, 0xff, 0xff, 0xff, 0])), &["map of characters is cut short"]);
}

#[test]
fn number_without_an_end() {
    refused_with(vec![0xff; 11], &["begins no valid number"]);
}

#[test]
fn group_of_the_wire_format() {
    refused_with(vec![0x0b], &["wire type 3"]);
}

#[test]
fn empty_vocabulary() {
    refused(&field(2, &[0x18, 1]), &["no pieces"]);
}

#[test]
fn no_unknown_piece() {
    let mut pieces = small();
    pieces.remove(1);
    refused(&pieces.concat(), &["no piece stands for unknown text"]);
}

#[test]
fn two_unknown_pieces() {
    refused_with(piece(b"<unk2>", 0.0, UNKNOWN), &["pieces 1 and 4 both stand for unknown text"]);
}

#[test]
fn score_that_is_no_number() {
    refused_with(piece(b"b", f32::NAN, NORMAL), &["piece 4 has the score NaN"]);
    refused_with(piece(b"b", f32::INFINITY, NORMAL), &["piece 4 has the score inf"]);
}

#[test]
fn piece_that_is_empty() {
    refused_with(piece(b"", 0.0, NORMAL), &["piece 4 is empty"]);
}

#[test]
fn piece_that_is_not_utf8() {
    refused_with(piece(b"\xff", 0.0, NORMAL), &["piece 4 is not UTF-8"]);
}

#[test]
fn piece_with_a_nul() {
    refused_with(piece(b"a\0b", 0.0, NORMAL), &["piece 4 holds a NUL"]);
}

#[test]
fn piece_of_nine_thousand_bytes() {
    refused_with(piece(&[b'a'; 9000], 0.0, NORMAL), &["piece 4 is longer than 8,000 bytes"]);
}

#[test]
fn piece_that_is_there_twice() {
    refused_with(piece(b"a", -3.0, NORMAL), &["`a` is there twice"]);
    refused_with(piece(b"</s>", 0.0, CONTROL), &["`</s>` is there twice"]);
}

#[test]
fn piece_of_an_unknown_kind() {
    refused_with(piece(b"b", 0.0, 9), &["piece 4 is of the unknown kind 9"]);
}

#[test]
fn bytes_that_are_not_all_there() {
    let falls_back = field(2, &[0x98, 0x02, 1]);
    refused_with([falls_back.clone(), piece(b"<0x00>", 0.0, BYTE)].concat(), &["no piece for the byte 1"]);
    refused_with([falls_back, piece(b"<0x0g>", 0.0, BYTE)].concat(), &["piece 4 is marked as a byte"]);
}

#[test]
fn word_model() {
    refused_with(field(2, &[0x18, 3]), &["model type 3", "unigram (1) and BPE (2)"]);
}

#[test]
fn no_end_of_sentence() {
    let mut pieces = small();
    pieces.remove(0);
    refused(&pieces.concat(), &["lacks the token `</s>`"]);
}

fn refused_with_map(map: &[u8], words: &[&str]) {
    refused_with(field(3, &field(2, map)), words);
}

#[test]
fn character_map_that_is_cut_short() {
    let whole = character_map("nmt_nfkc");
    for length in [1, 3, 100, 10_000] {
        refused_with_map(&whole[..length], &["map of characters is cut short"]);
    }
}

#[test]
fn character_map_without_units() {
    refused_with_map(&[0, 0, 0, 0, b'a', 0], &["points outside itself"]);
}

#[test]
fn character_map_of_half_a_unit() {
    refused_with_map(&[3, 0, 0, 0, 1, 2, 3, b'a'], &["no whole number of units"]);
}

#[test]
fn character_map_whose_root_points_outside() {
    let mut map = character_map("nmt_nfkc");
    map[4..8].copy_from_slice(&(0x001f_ffff_u32 << 10).to_le_bytes());
    refused_with_map(&map, &["points outside itself"]);
}

/// Without their end, the last replacements lie outside the texts.
#[test]
fn character_map_whose_values_point_outside() {
    let map = character_map("nmt_nfkc");
    let n_bytes = u32::from_le_bytes([map[0], map[1], map[2], map[3]]) as usize;
    refused_with_map(&map[..4 + n_bytes + 100], &["points outside itself"]);
}

#[test]
fn character_map_of_other_text() {
    let mut map = character_map("nmt_nfkc");
    map.extend([0xff, 0]);
    refused_with_map(&map, &["not UTF-8"]);
}

/// One rule, and a text of a thousand bytes for one: a line would grow a thousandfold.
#[test]
fn character_map_that_blows_text_up() {
    let mut map = character_map("nmt_nfkc");
    let n_bytes = u32::from_le_bytes([map[0], map[1], map[2], map[3]]) as usize;
    map[4 + n_bytes..].fill(b'a');
    refused_with_map(&map, &["replacement of more than 256 bytes"]);
}

#[test]
fn character_map_of_seventeen_mebibytes() {
    refused_with_map(&vec![0; 17 << 20], &["larger than 16 MiB"]);
}
