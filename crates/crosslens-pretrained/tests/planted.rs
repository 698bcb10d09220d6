//! Heads whose work is known because they were built by hand: the labels must find it.
//!
//! A BART with one layer on each side. Words are rows of a Hadamard matrix in dimensions 0…15, positions such rows in dimensions 16…31, and
//! everything but cross-attention writes nothing, so that a state is `√2.5·(word, position, 0)` and the dot product of two words or two
//! positions is 0 unless they are the same.
//!
//! ```text
//! head 0   W_Q and W_K read the position                    looks where it stands
//! head 1   W_Q and W_K read the word                        looks for the word it just read
//! head 2   W_Q = 0, b_Q the first position                  always looks at the first key
//! head 3   W_Q = 0, b_Q the end token, W_K reads the word   always looks at the end, wherever that stands
//! head 4   W_Q = W_K = 0                                    looks everywhere alike
//! ```
//!
//! Only head 0 writes: the word it sees, so that the model copies its source; or only head 1, which then writes another word for each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crosslens_analysis::explain::{Live, Options, explain};
use crosslens_analysis::heads::{Head, HeadChange, HeadLabel};
use crosslens_analysis::report::Report;
use crosslens_analysis::{Fed, Pair, Token};
use crosslens_pretrained::{Model, Subject, TokenNames, Wanted};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;

/// Words, and as many dimensions for them.
const WORDS: usize = 16;
const HEADS: usize = 5;
const D: usize = HEADS * WORDS;
const FEED: usize = 4;
/// Both begins what the decoder reads and ends a sentence.
const END: Token = 2;
const POSITIONS: usize = WORDS - 1;

/// A row of Sylvester's Hadamard matrix: orthogonal to all others; of row 0 every number is 1.
fn hadamard(row: usize) -> impl Iterator<Item = f32> {
    (0..WORDS).map(move |column| if (row & column).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 })
}

/// A matrix `[rows, columns]` of zeros with some numbers set.
fn matrix(rows: usize, columns: usize, set: impl IntoIterator<Item = (usize, usize, f32)>) -> (Vec<usize>, Vec<f32>) {
    let mut numbers = vec![0.0; rows * columns];
    set.into_iter().for_each(|(row, column, number)| numbers[row * columns + column] = number);
    (vec![rows, columns], numbers)
}

/// The part of a projection that copies dimensions `from…` into a head.
fn reads(head: usize, from: usize, times: f32) -> impl Iterator<Item = (usize, usize, f32)> {
    (0..WORDS).map(move |i| (head * WORDS + i, from + i, times))
}

fn vector(set: impl IntoIterator<Item = (usize, f32)>) -> (Vec<usize>, Vec<f32>) {
    let (_, numbers) = matrix(1, D, set.into_iter().map(|(place, number)| (0, place, number)));
    (vec![D], numbers)
}

/// Which head writes, and what for the word it sees.
#[derive(Clone, Copy)]
enum Writes {
    /// The one that looks by position: this word.
    Copied,
    /// The one that looks by word: the word whose number differs in the last bit, since row `w ^ 1` of the matrix is row `w` times row 1.
    Another,
}

/// Writes the folder; `[0, 1]` are the heads that look by position and by word, or the other way round.
fn plant(folder: &Path, [positional, matching]: [usize; 2], writes: Writes) {
    let mut tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)> = BTreeMap::new();
    let words = (0..WORDS).flat_map(|word| hadamard(word).enumerate().map(move |(i, number)| (word, i, number)));
    tensors.insert("model.shared.weight".into(), matrix(WORDS, D, words));
    for side in ["encoder", "decoder"] {
        let rows = (0..POSITIONS).flat_map(|at| hadamard(at + 1).enumerate().map(move |(i, number)| (at + 2, WORDS + i, number)));
        tensors.insert(format!("model.{side}.embed_positions.weight"), matrix(POSITIONS + 2, D, rows));
        let layer = format!("model.{side}.layers.0");
        let mut norms = vec![format!("model.{side}.layernorm_embedding")];
        norms.extend(["self_attn", "final"].map(|name| format!("{layer}.{name}_layer_norm")));
        let mut attentions = vec![format!("{layer}.self_attn")];
        if side == "decoder" {
            norms.push(format!("{layer}.encoder_attn_layer_norm"));
            attentions.push(format!("{layer}.encoder_attn"));
        }
        for norm in norms {
            tensors.insert(format!("{norm}.weight"), vector((0..D).map(|i| (i, 1.0))));
            tensors.insert(format!("{norm}.bias"), vector([]));
        }
        for attention in attentions {
            for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                tensors.insert(format!("{attention}.{part}.weight"), matrix(D, D, []));
                tensors.insert(format!("{attention}.{part}.bias"), vector([]));
            }
        }
        tensors.insert(format!("{layer}.fc1.weight"), matrix(FEED, D, []));
        tensors.insert(format!("{layer}.fc1.bias"), (vec![FEED], vec![0.0; FEED]));
        tensors.insert(format!("{layer}.fc2.weight"), matrix(D, FEED, []));
        tensors.insert(format!("{layer}.fc2.bias"), vector([]));
    }
    let mut set = |part: &str, value| tensors.insert(format!("model.decoder.layers.0.encoder_attn.{part}"), value);
    set("q_proj.weight", matrix(D, D, reads(positional, WORDS, 1.0).chain(reads(matching, 0, 1.0))));
    let keys = reads(positional, WORDS, 1.0).chain(reads(matching, 0, 1.0)).chain(reads(2, WORDS, 1.0)).chain(reads(3, 0, 1.0));
    set("k_proj.weight", matrix(D, D, keys));
    let constant = |head: usize, row: usize| hadamard(row).enumerate().map(move |(i, number)| (head * WORDS + i, 2.0 * number));
    set("q_proj.bias", vector(constant(2, 1).chain(constant(3, END as usize))));
    set("v_proj.weight", matrix(D, D, (0..HEADS).flat_map(|head| reads(head, 0, 1.0))));
    let (writer, signs) = match writes {
        Writes::Copied => (positional, hadamard(0)),
        Writes::Another => (matching, hadamard(1)),
    };
    let written = reads(writer, 0, 3.0).zip(signs).map(|((value, word, times), sign)| (word, value, sign * times));
    set("out_proj.weight", matrix(D, D, written));

    let bytes = |numbers: &[f32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let stored: Vec<_> = tensors.iter().map(|(name, (shape, numbers))| (name, shape, bytes(numbers))).collect();
    let views = stored.iter().map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).expect("a tensor")));
    std::fs::write(folder.join("model.safetensors"), safetensors::serialize(views, None).expect("tensors")).expect("writable");
    let config = json!({
        "model_type": "bart", "vocab_size": WORDS, "d_model": D, "max_position_embeddings": POSITIONS, "activation_function": "relu",
        "encoder_layers": 1, "encoder_attention_heads": HEADS, "encoder_ffn_dim": FEED,
        "decoder_layers": 1, "decoder_attention_heads": HEADS, "decoder_ffn_dim": FEED,
        "pad_token_id": 1, "eos_token_id": END, "decoder_start_token_id": END,
    });
    std::fs::write(folder.join("config.json"), config.to_string()).expect("writable");
}

/// Words in any order, none twice, copied.
fn pairs(n: usize) -> Vec<Pair> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let words: Vec<Token> = (END + 1..WORDS as Token).collect();
    let mut pair = || {
        let mut source = words.clone();
        source.shuffle(&mut random);
        source.truncate(random.random_range(9..=words.len()));
        source.push(END);
        Pair::new(source.clone(), source)
    };
    (0..n).map(|_| pair()).collect()
}

/// A planted model that copies, opened.
fn planted(places: [usize; 2]) -> Subject {
    planted_to(places, Writes::Copied)
}

fn planted_to(places: [usize; 2], writes: Writes) -> Subject {
    let folder = tempfile::tempdir().expect("a folder");
    plant(folder.path(), places, writes);
    let model = Arc::new(Model::open(folder.path()).expect("a model"));
    Subject::new(model, TokenNames::default(), Wanted::cross(), 1).expect("a subject")
}

/// Its heads, explained.
fn explained(subject: &Subject) -> Vec<Head> {
    let pairs = pairs(60);
    let corpus = Live { model: subject, pair: &|number| pairs[number as usize].clone(), n_pairs: 60, fed: Fed::Target };
    let options = Options { held_out: true, causal: 60, samples: 0, monotone: true, n_threads: 1, ..Options::default() };
    Head::all(&explain(&corpus, None, &options, &mut |_| {}).expect("an explanation").report)
}

/// Sentences whose predictions nobody asked for are explained like the others, bit for bit; what is said of the task is of the rest, and
/// a warning says of how many.
#[test]
fn sentences_that_are_not_answered_are_explained_all_the_same() {
    let subject = planted([0, 1]);
    let pairs = pairs(200);
    let report = |answered: u64| {
        let corpus = Live { model: &subject, pair: &|number| pairs[number as usize].clone(), n_pairs: 200, fed: Fed::Target };
        let options = Options { held_out: true, causal: 10, samples: 0, n_threads: 1, answered, ..Options::default() };
        explain(&corpus, None, &options, &mut |_| {}).expect("an explanation").report
    };
    let (all, some) = (report(u64::MAX), report(10));
    assert!(all.corpus.warnings.is_empty() && all.corpus.pairs == 100);
    let [warning] = &some.corpus.warnings[..] else { panic!("{:?}", some.corpus.warnings) };
    let answered: u64 = warning.split(' ').find_map(|word| word.parse().ok()).expect("how many");
    assert!((10..100).contains(&answered) && warning.contains("of the 100 sentences"), "{warning}");
    let of_heads =
        |report: &Report| report.sites.iter().map(|site| (site.shares.clone(), site.rebuilt.clone(), site.error)).collect::<Vec<_>>();
    assert_eq!(of_heads(&some), of_heads(&all));
    assert!(some.task.word_accuracy.is_some_and(|accuracy| accuracy > 0.95), "{:?}", some.task);
}

/// Heads that took each other's work come first, under their new names; the others are as they were.
#[test]
fn heads_that_changed_their_nature_are_found() {
    let changes = HeadChange::all(&explained(&planted([0, 1])), &explained(&planted([1, 0]))).expect("the same heads");
    let names: Vec<(usize, HeadLabel, HeadLabel)> =
        changes.iter().map(|change| (change.before.head, change.before.label, change.after.label)).collect();
    let (position, word) = (HeadLabel::Positional, HeadLabel::TokenMatching);
    let mut first = names[..2].to_vec();
    first.sort_by_key(|(head, ..)| *head);
    assert_eq!(first, [(0, position, word), (1, word, position)], "{names:?}");
    assert!(changes[..2].iter().all(|change| change.is_another() && change.moved > 0.5), "{changes:#?}");
    assert!(changes[2..].iter().all(|change| !change.is_another() && change.moved < 1e-3), "{changes:#?}");
}

#[test]
fn planted_heads_are_labelled_as_they_were_planted() {
    let heads = explained(&planted([0, 1]));

    let labels: Vec<HeadLabel> = heads.iter().map(|head| head.label).collect();
    let planted = [HeadLabel::Positional, HeadLabel::TokenMatching, HeadLabel::Sink, HeadLabel::Sink, HeadLabel::Unknown];
    assert_eq!(labels, planted, "{heads:#?}");
    let shares = [heads[0].shares.positional, heads[1].shares.token, heads[2].shares.sink, heads[3].shares.sink];
    assert!(shares.iter().all(|share| *share > 0.75), "{shares:?}");
    // What the label names is enough to find the same key.
    for head in &heads[..4] {
        assert!(head.agreement > 0.9, "{head:#?}");
    }
    // Both that look along the source lie on a way that never goes back; what stands still is none, though it never goes back either.
    let ways = heads.iter().map(|head| head.monotone.expect("asked for")).collect::<Vec<f64>>();
    assert!(ways[..2].iter().all(|way| *way > 0.7) && ways[2..].iter().all(|way| *way < 0.05), "{ways:?}");
    assert!(heads[4].entropy > 0.999, "{:#?}", heads[4]);

    // Head 0 alone does something: the model copies through it, and what its label names is enough for that too.
    let effect = |head: usize| heads[head].effect.expect("the model was run again");
    assert!(effect(0).loss < 0.1 && effect(0).rebuilt.abs() < 0.05 && effect(0).uniform > 1.0, "{:?}", effect(0));
    for head in 1..HEADS {
        let effect = effect(head);
        assert!([effect.rebuilt, effect.uniform, effect.average].iter().all(|more| more.abs() < 1e-6), "head {head}: {effect:?}");
    }
}

/// A head that looks for words is not replaced by where it looks on average, one that looks by position is: where it looks is the same in
/// every sentence. Here the decoder reads the words of the source in any order, and what it writes for each follows from the word alone.
#[test]
fn where_a_head_looks_on_average_replaces_it_only_if_places_drive_it() {
    let by_place = explained(&planted([0, 1]))[0].effect.expect("the model was run again");
    assert!(by_place.average.abs() < 0.05 && by_place.uniform > 1.0, "{by_place:?}");

    let subject = planted_to([0, 1], Writes::Another);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut fed = Vec::new();
    // Without word 3, whose partner ends the sentence.
    let pairs: Vec<Pair> = pairs(60)
        .into_iter()
        .map(|pair| {
            let mut words: Vec<Token> = pair.source.iter().copied().filter(|&word| word > END + 1).collect();
            let source = [&words[..], &[END]].concat();
            words.shuffle(&mut random);
            words.insert(0, END);
            fed.push(words.clone());
            Pair::new(source, words.iter().map(|word| word ^ 1).collect())
        })
        .collect();
    let corpus = Live { model: &subject, pair: &|number| pairs[number as usize].clone(), n_pairs: 60, fed: Fed::Given(&fed) };
    let options = Options { held_out: true, causal: 60, samples: 0, n_threads: 1, ..Options::default() };
    let heads = Head::all(&explain(&corpus, None, &options, &mut |_| {}).expect("an explanation").report);
    assert_eq!(heads[1].label, HeadLabel::TokenMatching, "{:#?}", heads[1]);
    let by_word = heads[1].effect.expect("the model was run again");
    assert!(by_word.loss < 0.1 && by_word.average > 1.0 && by_word.uniform > 1.0, "{by_word:?}");
    assert!(by_word.rebuilt < 0.3 * by_word.average, "{by_word:?}");
}

/// What a head looks at, seen directly: the labels above are about these rows.
#[test]
fn planted_heads_look_where_they_were_told() {
    use crosslens_analysis::Recordable;
    let subject = planted([0, 1]);
    let pairs = pairs(3);
    for recorded in subject.record(&pairs, Fed::Target).expect("a recording") {
        let n = recorded.source.len();
        assert_eq!(recorded.predicted, recorded.source, "it copies");
        for (step, fed) in recorded.fed.iter().enumerate() {
            let look = |head: usize, key: usize| recorded.attention[head][step * n + key];
            let place = |token: Token| recorded.source.iter().position(|&other| other == token).expect("a word of the source");
            assert!(look(0, step) > 0.99 && look(1, place(*fed)) > 0.99 && look(2, 0) > 0.99 && look(3, n - 1) > 0.99);
            assert!((0..n).all(|key| (look(4, key) - 1.0 / n as f32).abs() < 1e-6));
        }
    }
}
