//! Models of another program: the package e2k's own code (`tests/golden/make_e2k.py`) against ours, and the laws of every subject.
//!
//! Tolerance `1e-5·max(1, |b|)`: the golden values are float64, ours single precision. The package's own float32 differs from them by as
//! much as the files say under `float32_error`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crosslens_analysis::explain::{Live, Options, explain};
use crosslens_analysis::{
    Answer, AttentionRow, Estimator, Fed, Intervene, Pair, RecordError, Recordable, Recorded, Side, Token, Untouched,
};
use crosslens_nets::imported::{Given, Imported, ImportedSubject, Mapping, SHIPPED};
use serde::Deserialize;
use sha2::{Digest, Sha256};

const TOLERANCE: f64 = 1e-5;
/// The folder of the package's files, for the test on its own models.
const PACKAGE: &str = "CROSSLENS_E2K";

#[derive(Deserialize)]
struct Golden {
    models: Vec<GoldenModel>,
}

#[derive(Deserialize)]
struct GoldenModel {
    name: String,
    heads: usize,
    most_steps: usize,
    float32_error: f64,
    sha256: Option<String>,
    words: Vec<GoldenWord>,
}

#[derive(Deserialize)]
struct GoldenWord {
    text: String,
    source: Vec<Token>,
    written: Vec<Token>,
    logits: Vec<Vec<f64>>,
    attention: Vec<Vec<Vec<f64>>>,
}

pub(crate) fn golden_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/imported").join(name)
}

fn golden(name: &str) -> Vec<GoldenModel> {
    let text = std::fs::read_to_string(golden_file(name)).expect("golden values");
    serde_json::from_str::<Golden>(&text).expect("golden values in JSON").models
}

/// The shipped mapping for so many heads.
pub(crate) fn mapping(heads: usize) -> Mapping {
    Mapping { heads: Given::Here(heads), ..SHIPPED[0].mapping() }
}

/// The tiny model with two heads.
fn tiny() -> Imported {
    Imported::read(&golden_file("tiny.safetensors"), &mapping(2)).expect("the tiny model")
}

fn subject(model: &Imported, n_threads: usize) -> ImportedSubject {
    model.subject(n_threads).expect("threads")
}

/// Sentences of different lengths with what the model writes.
fn pairs(model: &Imported, texts: &[&str]) -> Vec<Pair> {
    let sources: Vec<Vec<Token>> = texts.iter().map(|text| model.source(text).expect("letters")).collect();
    let targets = subject(model, 1).write(&sources, model.most_steps()).expect("letters");
    sources.into_iter().zip(targets).map(|(source, target)| Pair::new(source, target)).collect()
}

/// Enough for more than one shard, in no order of length.
fn many() -> Vec<String> {
    let letters = "the quick brown fox jumps over a lazy dog's tail and it naps";
    (0..41).map(|i| letters[(7 * i) % 23..][..1 + (11 * i) % 17].to_owned()).collect()
}

fn compare(what: &str, ours: &[f32], golden: impl IntoIterator<Item = f64>) {
    let golden: Vec<f64> = golden.into_iter().collect();
    assert_eq!(ours.len(), golden.len(), "{what}: length");
    for (place, (&ours, &golden)) in ours.iter().zip(&golden).enumerate() {
        let error = (f64::from(ours) - golden).abs();
        assert!(error <= TOLERANCE * golden.abs().max(1.0), "{what}[{place}] is {ours:e}, golden {golden:e}, error {error:e}");
    }
}

fn agrees_with_the_package(model: &Imported, golden: &GoldenModel) {
    assert_eq!((model.most_steps(), model.description().sites.len()), (golden.most_steps, golden.heads), "{}", golden.name);
    assert!(golden.float32_error < 1e-3, "{}: golden values that mean little", golden.name);
    let subject = subject(model, 1);
    for word in &golden.words {
        let what = format!("{}, {} heads, `{}`", golden.name, golden.heads, word.text);
        assert_eq!(model.source(&word.text).expect("letters"), word.source, "{what}: source");
        let written = subject.write(std::slice::from_ref(&word.source), golden.most_steps).expect("tokens");
        assert_eq!(written, std::slice::from_ref(&word.written), "{what}: written");
        let pair = Pair::new(word.source.clone(), word.written.clone());
        let seen = subject.observe(&[pair], Fed::Own).expect("tokens").remove(0);
        assert_eq!(seen.predicted, word.written, "{what}: predicted");
        compare(&format!("{what}: logits"), &seen.logits, word.logits.iter().flatten().copied());
        compare(&format!("{what}: attention"), &seen.attention, word.attention.iter().flatten().flatten().copied());
    }
}

#[test]
fn the_tiny_model_does_what_the_package_does_with_it() {
    let models = golden("tiny.json");
    assert_eq!(models.iter().map(|model| model.heads).collect::<Vec<_>>(), [2, 4]);
    for golden in models {
        let model = Imported::read(&golden_file("tiny.safetensors"), &mapping(golden.heads)).expect("the tiny model");
        agrees_with_the_package(&model, &golden);
    }
}

#[test]
fn the_packages_own_models_do_what_the_package_does_with_them() {
    let Some(folder) = std::env::var_os(PACKAGE) else {
        // Not `eprintln!`, which a passing test keeps to itself.
        let skipped = format!("SKIPPED: the test on e2k's own weights. {PACKAGE} is not set; CONTRIBUTING.md says how to get them\n");
        std::io::stderr().write_all(skipped.as_bytes()).expect("standard error");
        return;
    };
    for golden in golden("e2k.json") {
        let path = Path::new(&folder).join("models").join(format!("{}.safetensors", golden.name));
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(Some(hash), golden.sha256, "{} is of another version than the golden values", path.display());
        assert!(Imported::is_at(&path));
        agrees_with_the_package(&Imported::open(&path).expect("a model of the package"), &golden);
    }
}

#[test]
fn a_model_is_found_by_its_folder_its_mapping_or_its_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    assert!(!Imported::is_at(folder) && !Imported::is_at(&folder.join("nothing.toml")));
    let weights = folder.join("mine.safetensors");
    std::fs::copy(golden_file("tiny.safetensors"), &weights).expect("a copy");
    let mapping = SHIPPED[0].text.replace("model-c2k.safetensors", "mine.safetensors").replace("\"e2k\"", "\"mine\"");
    std::fs::write(folder.join("import.toml"), &mapping).expect("a mapping");
    let models = [folder.to_owned(), folder.join("import.toml"), weights].map(|path| {
        assert!(Imported::is_at(&path), "{}", path.display());
        Imported::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    assert_eq!(models.each_ref().map(Imported::name), ["mine", "mine", "e2k"]);
    let [hash, ..] = models.each_ref().map(|model| model.description().model_hash.clone());
    assert!(models.iter().all(|model| model.description().model_hash == hash));
}

#[test]
fn texts_are_split_as_the_table_asks_and_nothing_is_left_out() {
    let model = tiny();
    assert_eq!(model.source("aB").expect("letters"), [1, 3, 4, 2], "start, lower-cased letters, end");
    assert_eq!(model.target("アー").expect("katakana"), [3, 14, 2]);
    assert_eq!(model.source("naïve").expect_err("no such letter").word, "ï");
    assert_eq!(model.target("a").expect_err("no katakana").word, "a");
    assert_eq!(model.table(Side::Source).words().word(3), Some("a"));
}

/// The last bits of a row do not depend on the rows beside it, nor on threads.
#[test]
fn a_word_alone_is_the_word_in_a_batch() {
    let model = tiny();
    let texts = many();
    let pairs = pairs(&model, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let together = subject(&model, 3).record(&pairs, Fed::Own).expect("letters");
    let alone = subject(&model, 1);
    for (number, (pair, together)) in pairs.iter().zip(&together).enumerate() {
        let alone = alone.record(std::slice::from_ref(pair), Fed::Own).expect("letters").remove(0);
        assert_eq!(&Recorded { number: number as u64, ..alone }, together, "{}", texts[number]);
    }
}

#[test]
fn nine_terms_add_up_to_the_scores_of_every_head() {
    for heads in [2, 4] {
        let model = Imported::read(&golden_file("tiny.safetensors"), &mapping(heads)).expect("the tiny model");
        let texts = many();
        let pairs = pairs(&model, &texts.iter().map(String::as_str).collect::<Vec<_>>());
        let subject = subject(&model, 1);
        for estimator in [Estimator::Paper, Estimator::Joint] {
            let corpus =
                Live { model: &subject, pair: &|number| pairs[number as usize].clone(), n_pairs: pairs.len() as u64, fed: Fed::Own };
            let options = Options { estimator, n_threads: 1, ..Options::default() };
            let report = explain(&corpus, None, &options, &mut |_| ()).expect("it can be explained").report;
            assert_eq!(report.sites.len(), heads);
            for site in &report.sites {
                let attention = site.error.attention.expect("the model's own attention was recorded");
                assert!(site.error.score < 1e-5 && attention < 1e-5, "head {}: {:?}", site.head, site.error);
            }
        }
    }
}

fn told(pairs: &[Pair], subject: &ImportedSubject, how: &dyn Intervene) -> Vec<Answer> {
    subject.run(pairs, Fed::Target, how).expect("letters")
}

fn loss(answers: &[Answer]) -> f64 {
    answers.iter().map(|answer| answer.loss).sum()
}

/// A row that was about to be used.
struct Seen {
    /// Pair, site, query.
    place: (usize, usize, usize),
    query_state: Vec<f32>,
    key_states: Vec<f32>,
    weights: Vec<f32>,
}

/// Keeps all of them.
#[derive(Default)]
struct Watch(Mutex<Vec<Seen>>);

impl Intervene for Watch {
    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        let AttentionRow { site, pair, query, query_state, key_states } = row;
        let (query_state, key_states) = (query_state.to_vec(), key_states.to_vec());
        self.0.lock().expect("no panic").push(Seen { place: (pair, site, query), query_state, key_states, weights: weights.to_vec() });
    }
}

#[test]
fn an_intervention_sees_every_row_of_every_head_with_its_states() {
    let model = tiny();
    let texts = many();
    let pairs = pairs(&model, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let subject = subject(&model, 2);
    let recorded = subject.record(&pairs, Fed::Target).expect("letters");
    let watch = Watch::default();
    told(&pairs, &subject, &watch);
    let mut seen = watch.0.into_inner().expect("no panic");
    seen.sort_by_key(|row| row.place);
    let mut rows = seen.iter();
    for (number, sentence) in recorded.iter().enumerate() {
        let n_keys = sentence.source.len();
        for (site, attention) in sentence.attention.iter().enumerate() {
            for (query, (weights, state)) in attention.chunks_exact(n_keys).zip(sentence.states[1].chunks_exact(8)).enumerate() {
                let row = rows.next().expect("a row for every query");
                assert_eq!(row.place, (number, site, query));
                assert_eq!((&row.weights[..], &row.query_state[..], &row.key_states), (weights, state, &sentence.states[0]));
                assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }
    }
    assert!(rows.next().is_none(), "no row twice");
}

/// All weight on the first key, at one head or all.
struct First(Option<usize>);

impl Intervene for First {
    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        if self.0.is_none_or(|site| site == row.site) {
            weights.fill(0.0);
            weights[0] = 1.0;
        }
    }
}

/// The same state at every key; and the weights of [`First`], if asked for.
struct Alike {
    weights: bool,
}

impl Intervene for Alike {
    fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
        if self.weights {
            First(None).weights(row, weights);
        }
    }

    fn values(&self, _site: usize, _pair: usize, states: &mut [f32]) {
        states.fill(0.25);
    }
}

/// The readout sees nothing.
struct Blank;

impl Intervene for Blank {
    fn readout(&self, _pair: usize, _query: usize, state: &mut [f32], context: &mut [f32]) {
        assert!(context.is_empty(), "attention has gone into the state");
        state.fill(0.0);
    }
}

#[test]
fn an_intervention_does_what_it_says() {
    let model = tiny();
    let pairs = pairs(&model, &["hello", "rhythm", "it's", "a"]);
    let subject = subject(&model, 1);
    let plain = told(&pairs, &subject, &Untouched);
    let recorded = subject.record(&pairs, Fed::Target).expect("letters");
    assert_eq!(plain.iter().map(|answer| &answer.predicted).collect::<Vec<_>>(), recorded.iter().map(|r| &r.predicted).collect::<Vec<_>>());

    let each: Vec<f64> = (0..2).map(|head| loss(&told(&pairs, &subject, &First(Some(head))))).collect();
    assert!(each.iter().all(|changed| (changed - loss(&plain)).abs() > 1e-3), "every head reaches the readout: {each:?}");
    let alike = [false, true].map(|weights| loss(&told(&pairs, &subject, &Alike { weights })));
    assert!((alike[0] - alike[1]).abs() < 1e-5, "where all values are alike, attention has nothing to choose: {alike:?}");
    assert!((alike[0] - loss(&plain)).abs() > 1e-3, "values reach the readout");

    let readout = model.description().readout.as_ref().expect("a linear readout");
    let (likeliest, _) = readout.map.bias.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).expect("words");
    let blank = told(&pairs, &subject, &Blank);
    assert!(blank.iter().flat_map(|answer| &answer.predicted).all(|&token| token == likeliest as Token), "only the bias is left");
}

#[test]
fn what_was_read_can_be_read_again() {
    let model = tiny();
    let pairs = pairs(&model, &["hello", "zzzz", "New York"]);
    let subject = subject(&model, 1);
    let own = subject.record(&pairs, Fed::Own).expect("letters");
    for (sentence, pair) in own.iter().zip(&pairs) {
        assert_eq!(sentence.predicted, pair.target, "what it writes by itself");
        assert_eq!((sentence.fed[0], &sentence.fed[1..]), (1, &pair.target[..pair.target.len() - 1]));
    }
    let fed: Vec<Vec<Token>> = own.iter().map(|sentence| sentence.fed.clone()).collect();
    assert_eq!(subject.record(&pairs, Fed::Given(&fed)).expect("letters"), own);
    assert_eq!(subject.record(&pairs, Fed::Target).expect("letters"), own, "its target is its own output");
}

#[test]
fn the_control_has_the_shape_and_not_the_weights() {
    let model = tiny();
    let pairs = pairs(&model, &["hello", "a"]);
    let subject = subject(&model, 1);
    let [one, same, other] = [7, 7, 8].map(|seed| subject.untrained(seed).expect("a control"));
    let hash = |subject: &dyn Recordable| subject.description().model_hash.clone();
    assert_eq!(hash(one.as_ref()), hash(same.as_ref()));
    assert!(hash(one.as_ref()) != hash(other.as_ref()) && hash(one.as_ref()) != hash(&subject));
    assert_eq!(one.description().streams, subject.description().streams);
    let record = |subject: &dyn Recordable| subject.record(&pairs, Fed::Target).expect("letters");
    assert_eq!(record(one.as_ref()), record(same.as_ref()));
    assert_ne!(record(one.as_ref()), record(&subject));
}

/// Target tokens: 0 `<pad>`, 1 `<sos>`, 2 `<eos>`, 3 `ア`, 4 `イ`.
#[test]
fn tokens_become_a_text_up_to_the_end() {
    let model = tiny();
    let target = model.table(Side::Target);
    assert_eq!(target.text(&[3, 0, 4, 1, 3, 2, 4]), "アイア");
    assert_eq!((target.text(&[2]), target.text(&[])), (String::new(), String::new()));
    assert_eq!(target.tokens(&target.text(&[4, 4, 3])), Ok(vec![4, 4, 3]));
    assert_eq!(model.table(Side::Source).split("It ï"), ["i", "t", " ", "ï"]);
}

#[test]
fn tokens_the_model_does_not_know_are_refused() {
    let subject = subject(&tiny(), 1);
    let refused = |source: &[Token], target: &[Token], fed: Fed<'_>| {
        subject.run(&[Pair::new(source.to_vec(), target.to_vec())], fed, &Untouched).expect_err("it cannot be run")
    };
    assert!(matches!(refused(&[1, 31, 2], &[2], Fed::Own), RecordError::UnknownToken { side: "source", token: 31, count: 31, .. }));
    assert!(matches!(refused(&[1, 2], &[15], Fed::Own), RecordError::UnknownToken { side: "target", token: 15, count: 15, .. }));
    assert!(matches!(refused(&[], &[2], Fed::Own), RecordError::Empty { side: "source", .. }));
    assert!(matches!(refused(&[1, 2], &[], Fed::Own), RecordError::Empty { side: "target", .. }));
    assert!(matches!(refused(&[1, 2], &[2], Fed::Given(&[vec![99]])), RecordError::UnknownToken { token: 99, .. }));
}
