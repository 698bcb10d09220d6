//! SentencePiece models against the C++ library: every piece of every line, and back.

use crosslens_pretrained::text::SentencePiece;
use serde::Deserialize;

use crate::fixtures::{MODELS, golden_json, model, none_of};

#[derive(Deserialize)]
struct Golden {
    /// Ids, texts of unknown pieces, decoded text if it is not the plain one.
    cases: Vec<(Vec<u32>, Vec<String>, Option<String>)>,
    /// Ids in any order, decoded.
    random: Vec<(Vec<u32>, String)>,
}

fn expected_pieces(model: &SentencePiece, ids: &[u32], unknown: &[String]) -> Vec<String> {
    let mut unknown = unknown.iter();
    let piece = |&id: &u32| if id == model.unknown_id() { unknown.next().map(String::as_str) } else { model.piece(id) };
    ids.iter().map(piece).map(|piece| piece.expect("a piece").to_owned()).collect()
}

/// Pieces put together, as most are decoded.
fn plain(model: &SentencePiece, ids: &[u32]) -> String {
    let surface = |&id: &u32| if id == model.unknown_id() { " \u{2047} " } else { model.piece(id).expect("a piece") };
    let text = ids.iter().map(surface).collect::<String>().replace('\u{2581}', " ");
    let takes_space = ids.first().is_some_and(|&id| id != model.unknown_id());
    text.strip_prefix(' ').filter(|_| takes_space).map(str::to_owned).unwrap_or(text)
}

#[test]
fn every_line_is_cut_as_the_library_cuts_it() {
    let lines: Vec<String> = golden_json("lines");
    for name in MODELS {
        let (golden, model): (Golden, _) = (golden_json(name), model(name));
        assert_eq!(lines.len(), golden.cases.len());
        let mut differences = Vec::new();
        for (line, (ids, unknown, _)) in lines.iter().zip(&golden.cases) {
            let ours = model.encode(line);
            let our_ids: Vec<u32> = ours.iter().map(|piece| piece.id).collect();
            let our_texts: Vec<&str> = ours.iter().map(|piece| piece.text.as_str()).collect();
            let texts = expected_pieces(&model, ids, unknown);
            if our_ids != *ids || our_texts != texts {
                differences.push(format!("{line:?}\n  ours   {our_texts:?}\n  golden {texts:?}"));
            }
        }
        none_of(name, lines.len(), &differences);
    }
}

#[test]
fn ids_are_decoded_as_the_library_decodes_them() {
    for name in MODELS {
        let (golden, model): (Golden, _) = (golden_json(name), model(name));
        let mut differences = Vec::new();
        let of_lines = golden.cases.iter().map(|(ids, _, decoded)| (ids, decoded.clone().unwrap_or_else(|| plain(&model, ids))));
        for (ids, expected) in of_lines.chain(golden.random.iter().map(|(ids, decoded)| (ids, decoded.clone()))) {
            let ours = model.decode_ids(ids);
            if ours != expected {
                differences.push(format!("{ids:?}\n  ours   {ours:?}\n  golden {expected:?}"));
            }
        }
        none_of(name, golden.cases.len(), &differences);
    }
}

/// What the models are there for is in the golden lines: unknown text, bytes, user-defined and unused pieces.
#[test]
fn the_lines_reach_every_path() {
    let unknown_runs = |name: &str| golden_json::<Golden>(name).cases.iter().map(|case| case.1.len()).sum::<usize>();
    assert!(unknown_runs("unigram-nmt_nfkc") > 100 && unknown_runs("bpe-identity") > 100);
    assert_eq!(unknown_runs("unigram-bytes") + unknown_runs("bpe-bytes"), 0);
    let uses = |name: &str, piece: &str| {
        let id = model(name).id_of(piece);
        golden_json::<Golden>(name).cases.iter().filter(|case| case.0.contains(&id)).count()
    };
    assert!(uses("bpe-identity", "<sep>") > 3 && uses("unigram-nfkc_cf", "[NAME]") > 3);
    assert!(uses("unigram-bytes", "<0xE2>") > 3 && uses("bpe-bytes", "<0xF0>") > 3);
    let not_plain = |name: &str| golden_json::<Golden>(name).cases.iter().filter(|case| case.2.is_some()).count();
    assert!(not_plain("unigram-bytes") > 100 && not_plain("bpe-bytes") > 100);
    assert!(not_plain("unigram-suffix") > 20, "nothing is replaced after decoding");
    let broken = golden_json::<Golden>("bpe-bytes").random.iter().filter(|case| case.1.contains('\u{fffd}')).count();
    assert!(broken > 20, "bytes that make no character: {broken}");
    let differ = |name: &str| {
        let [all, fewer] = [golden_json::<Golden>(name), golden_json::<Golden>(&format!("{name}-unused"))];
        all.cases.iter().zip(&fewer.cases).filter(|(all, fewer)| all.0 != fewer.0).count()
    };
    assert!(differ("unigram-nmt_nfkc") > 100 && differ("bpe-nmt_nfkc") > 100);
}
