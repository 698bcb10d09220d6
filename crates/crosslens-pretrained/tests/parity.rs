//! Against transformers: `tests/golden/make_pretrained.py` built these models at random and wrote down what they do.
//!
//! `CROSSLENS_TEST_DEVICE` names the device that makes the products, as `--device` does: `cargo xtask test` runs everything here on `candle`
//! as well, and who has a GPU may on `cuda` or `metal`, with the feature of that name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crosslens_analysis::explain::{Live, Options, explain};
use crosslens_analysis::{AttentionRow, Fed, Intervene, Pair, Recordable, Recorded, Signal, SiteKind, Token, Untouched};
use crosslens_pretrained::speech::{SpeechTokens, Task};
use crosslens_pretrained::{
    Decoding, Device, DeviceKind, EarlyStopping, Model, PretrainedError, Source, Subject, TokenNames, Wanted, Written,
};
use safetensors::SafeTensors;

/// Every model that was built.
fn cases() -> Vec<String> {
    let folders = std::fs::read_dir(folder("")).expect("golden models are committed").flatten().map(|entry| entry.path());
    let mut cases: Vec<String> = folders
        .filter(|path| path.join("golden.safetensors").exists() && path.join("config.json").exists())
        .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    cases.sort();
    for family in ["t5", "mt5", "umt5", "bart", "marian", "mbart", "pegasus", "m2m_100", "whisper"] {
        assert!(cases.iter().any(|case| case.starts_with(family)), "no golden model of the family {family}");
    }
    cases
}

fn folder(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case)
}

/// Where products are made: one for all tests, so that none of them misses its trouble.
fn device() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(|| {
        let name = std::env::var("CROSSLENS_TEST_DEVICE").unwrap_or_else(|_| "cpu".to_owned());
        name.parse().unwrap_or_else(|error| panic!("CROSSLENS_TEST_DEVICE: {error}"))
    })
}

fn open(folder: &Path) -> Result<Model, PretrainedError> {
    Model::open_on(folder, device())
}

/// What a device refuses is made on the CPU, where it is right as well: that it made the products has to be asked.
#[test]
fn the_device_makes_the_products() {
    let golden = Golden::of("t5");
    let (pairs, fed) = golden.pairs();
    let of_device = |device: &Device| {
        let model = Model::open_on(&folder("t5"), device).expect("a model");
        let rows = pairs.iter().zip(&fed).map(|(pair, fed)| model.logits_of(pair, fed).expect("logits"));
        rows.flatten().collect::<Vec<f32>>()
    };
    let (found, plain) = (of_device(device()), of_device(&Device::default()));
    assert_eq!(device().trouble(), None);
    let is_other = device().kind() != DeviceKind::Cpu;
    // Another's arithmetic, bit for bit: where candle adds up products of few rows in lanes.
    if cfg!(target_arch = "x86_64") || !is_other {
        assert_eq!(found != plain, is_other);
    }
}

/// What was written down of one model.
struct Golden {
    bytes: Vec<u8>,
}

impl Golden {
    fn of(case: &str) -> Self {
        Self { bytes: std::fs::read(folder(case).join("golden.safetensors")).expect("golden values are committed") }
    }

    fn arrays(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).expect("golden values are whole")
    }

    fn floats(&self, name: &str) -> (Vec<usize>, Vec<f32>) {
        let arrays = self.arrays();
        let array = arrays.tensor(name).unwrap_or_else(|_| panic!("golden values have no {name}"));
        let numbers = array.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        (array.shape().to_vec(), numbers)
    }

    fn tokens(&self, name: &str) -> Vec<Vec<Token>> {
        let arrays = self.arrays();
        let array = arrays.tensor(name).unwrap_or_else(|_| panic!("golden values have no {name}"));
        let numbers: Vec<Token> = array.data().as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes) as Token).collect();
        let width = array.shape().last().copied().unwrap_or(1);
        if array.shape().len() == 1 { vec![numbers] } else { numbers.chunks(width).map(<[Token]>::to_vec).collect() }
    }

    fn has(&self, name: &str) -> bool {
        self.arrays().tensor(name).is_ok()
    }

    /// Pairs and what the decoder reads, without padding. The target is what comes after what is read; its last word does not matter.
    ///
    /// Where there are `features`, they are the source, and the codes of its steps are made up.
    fn pairs(&self) -> (Vec<Pair>, Vec<Vec<Token>>) {
        let lengths = |name: &str| self.tokens(name).remove(0).into_iter().map(|length| length as usize);
        let cut = |rows: &str, of: &str| self.tokens(rows).into_iter().zip(lengths(of)).map(|(row, n)| row[..n].to_vec()).collect();
        let fed: Vec<Vec<Token>> = cut("target_in", "target_lengths");
        let targets = fed.iter().map(|fed| [&fed[1..], &[3]].concat());
        if !self.has("features") {
            let sources: Vec<Vec<Token>> = cut("source", "source_lengths");
            return (sources.into_iter().zip(targets).map(|(source, target)| Pair::new(source, target)).collect(), fed);
        }
        let (shape, values) = self.floats("features");
        let signals = values.chunks(shape[1..].iter().product()).map(|values| Signal::new(values.to_vec()));
        let codes = lengths("source_lengths").map(|n_steps| (0..n_steps).map(|step| step as Token % N_CODES).collect());
        let pairs = codes.zip(targets).zip(signals).map(|((source, target), signal)| Pair { source, target, signal: Some(signal) });
        (pairs.collect(), fed)
    }

    /// What a model of speech reads before it writes, the start token left out.
    fn prefix(&self) -> Vec<Token> {
        if self.has("prompt") { self.tokens("prompt").remove(0)[1..].to_vec() } else { Vec::new() }
    }

    /// Names for the codes of signals; tokens need none.
    fn names(&self) -> TokenNames {
        let codes = if self.has("features") { (0..N_CODES).map(|code| format!("code {code}")).collect() } else { Vec::new() };
        TokenNames { source: codes, ..TokenNames::default() }
    }
}

/// Codes of the steps of signals.
const N_CODES: Token = 4;

fn all_kinds() -> Wanted {
    Wanted { kinds: SiteKind::ALL.to_vec(), states: true, answers: true }
}

fn record(case: &str, wanted: Wanted) -> (Golden, Subject, Vec<Recorded>) {
    let golden = Golden::of(case);
    let model = open(&folder(case)).unwrap_or_else(|error| panic!("{case}: {error}"));
    let subject = Subject::new(Arc::new(model), golden.names(), wanted, 1).expect("a subject");
    let (pairs, fed) = golden.pairs();
    let recorded = subject.record(&pairs, Fed::Given(&fed)).unwrap_or_else(|error| panic!("{case}: {error}"));
    (golden, subject, recorded)
}

/// To 3e-5: of the model with the sharpest attention, Whisper's, transformers in `f32` is 1.1e-5 from itself in `f64`, and so are we (1.1e-5
/// on a matrix unit, 1.4e-5 in registers); the two errors may add up.
#[test]
fn every_attention_is_that_of_transformers() {
    for case in &cases() {
        let (golden, subject, recorded) = record(case, all_kinds());
        let mut worst = 0.0f32;
        for (number, site) in subject.description().sites.iter().enumerate() {
            let name = match site.kind {
                SiteKind::Cross => "cross",
                SiteKind::EncoderSelf => "encoder",
                SiteKind::DecoderSelf => "decoder",
            };
            let (shape, values) = golden.floats(&format!("{name}.{}", site.layer));
            let [_, heads, rows, columns] = shape[..] else { panic!("shape of {name}") };
            for (sentence, recorded) in recorded.iter().enumerate() {
                let attention = &recorded.attention[number];
                let n_queries = if site.kind == SiteKind::EncoderSelf { recorded.source.len() } else { recorded.fed.len() };
                let n_keys = attention.len() / n_queries;
                for query in 0..n_queries {
                    for key in 0..n_keys {
                        let expected = values[((sentence * heads + site.head) * rows + query) * columns + key];
                        worst = worst.max((attention[query * n_keys + key] - expected).abs());
                    }
                }
            }
        }
        assert!(worst < 3e-5, "{case}: {worst}");
    }
}

/// The states the decoder asks, behind the encoder's last norm; those of Whisper are seen through its attention.
#[test]
fn the_encoder_s_states_are_those_of_transformers() {
    for case in cases().iter().filter(|case| !case.starts_with("whisper")) {
        let (golden, subject, recorded) = record(case, all_kinds());
        let stream = subject.description().streams.iter().position(|stream| stream.name == "encoder").expect("the states that are asked");
        let (shape, values) = golden.floats("encoder_states");
        let [_, rows, d] = shape[..] else { panic!("shape of the states") };
        let mut worst = 0.0f32;
        for (recorded, expected) in recorded.iter().zip(values.chunks_exact(rows * d)) {
            assert_eq!(recorded.states[stream].len(), recorded.source.len() * d, "{case}");
            worst = recorded.states[stream].iter().zip(expected).fold(worst, |worst, (a, b)| worst.max((a - b).abs()));
        }
        assert!(worst < 1e-4, "{case}: {worst}");
    }
}

#[test]
fn every_logit_is_that_of_transformers() {
    for case in &cases() {
        let golden = Golden::of(case);
        let model = open(&folder(case)).unwrap_or_else(|error| panic!("{case}: {error}"));
        let (pairs, fed) = golden.pairs();
        let (shape, values) = golden.floats("logits");
        let [_, rows, words] = shape[..] else { panic!("shape of logits") };
        let mut worst = 0.0f32;
        for (sentence, (pair, fed)) in pairs.iter().zip(&fed).enumerate() {
            let logits = model.logits_of(pair, fed).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!(logits.len(), fed.len() * words);
            for (place, logit) in logits.iter().enumerate() {
                worst = worst.max((logit - values[sentence * rows * words + place]).abs());
            }
        }
        assert!(worst < 1e-4, "{case}: {worst}");
    }
}

#[test]
fn what_is_written_is_what_transformers_writes() {
    for case in &cases() {
        let golden = Golden::of(case);
        let model = open(&folder(case)).unwrap_or_else(|error| panic!("{case}: {error}"));
        let (pairs, _) = golden.pairs();
        let greedy = {
            let mut how = Decoding { prefix: golden.prefix(), ..Decoding::greedy(&model) };
            how.rules.max_tokens = 12;
            how
        };
        let beam = |length_penalty, early_stopping| {
            let mut how = greedy.clone();
            (how.rules.n_beams, how.rules.length_penalty, how.rules.early_stopping) = (4, length_penalty, early_stopping);
            how
        };
        let ways = [("greedy", greedy.clone()), ("beam", beam(1.0, EarlyStopping::No)), ("beam_lp2", beam(2.0, EarlyStopping::Yes))];
        for (name, how) in ways {
            check_written(&golden, name, &pairs, &model, |source| model.write(source, &how).expect("a text"));
        }
    }
}

/// Searches that go on as long as anything better can come: some find what a search that stops at the likely best does not.
#[test]
fn a_search_that_never_stops_early_finds_what_transformers_finds() {
    #[derive(serde::Deserialize)]
    struct Never {
        searches: Vec<Search>,
    }
    #[derive(serde::Deserialize)]
    struct Search {
        case: String,
        length_penalty: f64,
        changes: bool,
        tokens: Vec<Vec<Token>>,
        scores: Vec<f64>,
    }
    let text = std::fs::read_to_string(folder("never.json")).expect("golden values");
    let never: Never = serde_json::from_str(&text).expect("searches");
    let mut n_changed = 0;
    for search in never.searches {
        let (golden, model) = (Golden::of(&search.case), open(&folder(&search.case)).expect("a model"));
        let mut how = Decoding { prefix: golden.prefix(), ..Decoding::greedy(&model) };
        (how.rules.n_beams, how.rules.max_tokens, how.rules.length_penalty) = (4, 12, search.length_penalty);
        let mut is_changed = false;
        for ((pair, expected), score) in golden.pairs().0.iter().zip(&search.tokens).zip(&search.scores) {
            how.rules.early_stopping = EarlyStopping::Never;
            let written = &model.write(pair, &how).expect("a text")[0];
            let n = written.tokens.len();
            assert_eq!(written.tokens, expected[1..=n], "{}, {}", search.case, search.length_penalty);
            assert!(expected[n + 1..].iter().all(|&token| Some(token) == model.generation().pad), "{}", search.case);
            assert!((written.score - score).abs() < 1e-4 * score.abs().max(1.0), "{}, {}", search.case, search.length_penalty);
            how.rules.early_stopping = EarlyStopping::No;
            is_changed |= model.write(pair, &how).expect("a text")[0].tokens != written.tokens;
        }
        assert_eq!(is_changed, search.changes, "{}, {}", search.case, search.length_penalty);
        n_changed += usize::from(is_changed);
    }
    assert!(n_changed >= 3, "{n_changed} searches tell the two apart");
}

/// Searches by the settings that stand in files, of texts that are begun as well.
#[derive(serde::Deserialize)]
struct FileSearch {
    about: String,
    case: String,
    generation: Option<serde_json::Value>,
    config: serde_json::Map<String, serde_json::Value>,
    prefix: Vec<Token>,
    tokens: Vec<Vec<Token>>,
    scores: Vec<f64>,
}

/// What is found with these settings in the files of a folder is what transformers finds; at least so many searches show it.
fn check_searches(about: &str, least: usize) {
    #[derive(serde::Deserialize)]
    struct Searches {
        searches: Vec<FileSearch>,
    }
    let text = std::fs::read_to_string(folder("searches.json")).expect("golden values");
    let all: Searches = serde_json::from_str(&text).expect("searches");
    let mut n_tried = 0;
    for search in all.searches.into_iter().filter(|search| search.about == about) {
        let FileSearch { case, generation, config, prefix, tokens, scores, .. } = search;
        let shown = format!("{case}, {generation:?}, {config:?}, from {prefix:?}");
        let copy = copied(&case);
        let path = |name: &str| copy.path().join(name);
        let text = std::fs::read_to_string(path("config.json")).expect("a configuration");
        let mut whole: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).expect("JSON");
        whole.extend(config);
        std::fs::write(path("config.json"), serde_json::to_string(&whole).expect("JSON")).expect("a configuration");
        match generation {
            Some(settings) => std::fs::write(path("generation_config.json"), settings.to_string()).expect("settings"),
            None => drop(std::fs::remove_file(path("generation_config.json"))),
        }
        let (golden, model) = (Golden::of(&case), open(copy.path()).unwrap_or_else(|error| panic!("{shown}: {error}")));
        let how = Decoding { prefix, ..Decoding::of(&model) };
        for (number, (pair, expected)) in golden.pairs().0.iter().zip(&tokens).enumerate() {
            let written = model.write(pair, &how).expect("a text").remove(0);
            assert_eq!(written.tokens, *expected, "{shown}");
            if let Some(score) = scores.get(number) {
                assert!((written.score - score).abs() < 1e-4 * score.abs().max(1.0), "{shown}: {} and {score}", written.score);
            }
        }
        n_tried += 1;
    }
    assert!(n_tried >= least, "{n_tried} searches show {about}");
}

/// `max_length` counts what was given, `max_new_tokens` does not; the end is forced where either of them runs out.
#[test]
fn a_limit_counts_what_was_given_where_transformers_counts_it() {
    check_searches("limit", 8);
}

/// What tells a model of speech what to write is added to its length: with a `max_length` of 10 transformers 5.22.2 writes these ten tokens
/// after a prompt of four.
#[test]
fn a_prompt_of_speech_does_not_count_into_its_length() {
    let copy = copied("whisper");
    let path = copy.path().join("generation_config.json");
    let text = std::fs::read_to_string(&path).expect("settings");
    let mut settings: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    settings.extend([("max_length".to_owned(), 10.into()), ("suppress_tokens".to_owned(), vec![100].into())]);
    std::fs::write(path, serde_json::to_string(&settings).expect("JSON")).expect("settings");
    let (golden, model) = (Golden::of("whisper"), open(copy.path()).expect("a model"));
    let how = Decoding { prefix: golden.prefix(), ..Decoding::of(&model) };
    let written = model.write(&golden.pairs().0[0], &how).expect("a text").remove(0);
    assert_eq!(written.tokens, [103, 106, 110, 131, 77, 77, 77, 77, 77, 129, 77, 77, 77]);
}

/// Beside generation_config.json nothing in config.json counts; no family brings tokens that no file names.
#[test]
fn settings_come_from_the_file_that_transformers_reads() {
    check_searches("files", 7);
}

/// Any of several tokens ends a text, is forced where the length runs out, and is forbidden before the least length.
#[test]
fn several_tokens_may_end_a_text() {
    check_searches("ends", 25);
}

/// A beginning of several tokens counts for repeats, lengths and what is forced as it does in transformers.
#[test]
fn rules_know_a_forced_prefix_as_transformers_does() {
    check_searches("prefix", 40);
}

/// A copy of a golden folder.
fn copied(case: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(folder(case)).expect("a folder").flatten() {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("a copy");
    }
    copy
}

/// What is written for each pair is the array `name`, and its score that of `name.scores` if there are any.
fn check_written(golden: &Golden, name: &str, pairs: &[Pair], model: &Model, write: impl Fn(Source<'_>) -> Vec<Written>) {
    let case = model.folder().display();
    let scores = golden.has(&format!("{name}.scores")).then(|| golden.floats(&format!("{name}.scores")).1);
    for (number, (pair, expected)) in pairs.iter().zip(golden.tokens(name)).enumerate() {
        let written = write(pair.into());
        let n = written[0].tokens.len();
        assert_eq!(written[0].tokens, expected[1..=n], "{case}, {name}");
        // transformers fills up with the padding token, or with the end token where that is 0.
        let fills = |token| Some(token) == model.generation().pad || model.generation().ends.contains(&token);
        assert!(expected[n + 1..].iter().all(|&token| fills(token)), "{case}, {name}");
        if let Some(scores) = &scores {
            assert!((written[0].score - f64::from(scores[number])).abs() < 1e-4, "{case}, {name}");
        }
    }
}

#[test]
fn the_best_of_a_beam_are_those_of_transformers() {
    for case in &cases() {
        let golden = Golden::of(case);
        let model = open(&folder(case)).unwrap_or_else(|error| panic!("{case}: {error}"));
        let mut how = Decoding { prefix: golden.prefix(), ..Decoding::greedy(&model) };
        (how.n_best, how.rules.n_beams, how.rules.length_penalty, how.rules.max_tokens) = (3, 4, 1.0, 12);
        let written = model.write(&golden.pairs().0[0], &how).expect("texts");
        let (expected, scores) = (golden.tokens("nbest"), golden.floats("nbest.scores").1);
        assert_eq!(written.len(), 3, "{case}");
        // Asked for several texts, transformers' Whisper gives its best as often.
        let n = if model.reads_signals() { 1 } else { 3 };
        for ((written, expected), score) in written.iter().zip(expected).zip(scores).take(n) {
            assert_eq!(written.tokens, expected[1..=written.tokens.len()], "{case}");
            assert!((written.score - f64::from(score)).abs() < 1e-4, "{case}");
        }
    }
}

/// Tokens that are forced, forbidden at the beginning or at all, words that are never completed, repeats.
#[test]
fn the_rules_of_generation_are_kept() {
    let mut n_tried = 0;
    for case in &cases() {
        for name in ["forced", "limited"] {
            let rules = folder(case).join(format!("generation_config.{name}.json"));
            if !rules.exists() {
                continue;
            }
            n_tried += 1;
            let copy = copied(case);
            std::fs::copy(&rules, copy.path().join("generation_config.json")).expect("a copy");
            let (golden, model) = (Golden::of(case), open(copy.path()).expect("a model"));
            let mut how = Decoding::of(&model);
            how.rules.max_tokens = 12;
            let scores = format!("{name}.scores");
            let scores = if golden.has(&scores) { golden.floats(&scores).1 } else { Vec::new() };
            for (sentence, (pair, expected)) in golden.pairs().0.iter().zip(golden.tokens(name)).enumerate() {
                let written = model.write(pair, &how).expect("a text").remove(0);
                // After its end a row is filled.
                let is_end = |token: &Token| model.generation().ends.contains(token);
                let end = expected[1..].iter().position(is_end).map_or(expected.len(), |end| end + 2);
                assert_eq!(written.tokens, expected[1..end], "{case}, {name}");
                if let Some(&score) = scores.get(sentence) {
                    assert!((written.score as f32 - score).abs() < 1e-4, "{case}, {name}: {} and {score}", written.score);
                }
            }
        }
    }
    assert!(n_tried >= 8, "{n_tried} rule files");
}

/// A text that is begun as transformers began it goes on as transformers went on, wherever it is taken up.
#[test]
fn a_forced_prefix_goes_on_as_transformers_does() {
    let mut n_tried = 0;
    for case in &cases() {
        let (golden, model) = (Golden::of(case), open(&folder(case)).unwrap_or_else(|error| panic!("{case}: {error}")));
        let n_given = golden.prefix().len();
        for (pair, row) in golden.pairs().0.iter().zip(golden.tokens("greedy")) {
            let row = &row[1..];
            let is_end = |token: &Token| model.generation().ends.contains(token);
            let n = row.iter().position(is_end).map_or(row.len(), |end| end + 1);
            for n_begun in n_given + 1..n {
                let mut how = Decoding { prefix: row[..n_begun].to_vec(), ..Decoding::greedy(&model) };
                (how.rules.max_tokens, how.rules.prefix_counts) = (12 + n_given, true);
                // The first token after the prompt is written already.
                how.rules.suppressed_first.clear();
                assert_eq!(model.write(pair, &how).expect("a text")[0].tokens, row[..n], "{case}, from {n_begun}");
                n_tried += 1;
            }
        }
    }
    assert!(n_tried > 50, "{n_tried} beginnings");
}

/// This T5 has no rules: after a beginning that it would not choose, each token is the likeliest by its logits on all that was written.
#[test]
fn what_follows_a_forced_prefix_is_the_likeliest_after_it() {
    let (golden, model) = (Golden::of("t5"), open(&folder("t5")).expect("a model"));
    let prefix = [9, 9, 31];
    for pair in &golden.pairs().0 {
        let mut how = Decoding { prefix: prefix.to_vec(), ..Decoding::greedy(&model) };
        how.rules.max_tokens = 6;
        let written = model.write(pair, &how).expect("a text").remove(0).tokens;
        assert!(written.starts_with(&prefix) && written.len() > prefix.len(), "{written:?}");
        let fed: Vec<Token> = std::iter::once(model.generation().start).chain(written.iter().copied()).take(written.len()).collect();
        let logits = model.logits_of(pair, &fed).expect("logits");
        let rows = logits.chunks_exact(logits.len() / fed.len());
        for (row, &token) in rows.zip(&written).skip(prefix.len()) {
            let likeliest = row.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(word, _)| word as Token);
            assert_eq!(likeliest, Some(token), "{written:?}");
        }
    }
}

/// Bit for bit on the CPU. A device adds up in an order that depends on the number of rows: there attention is the same to 2e-5.
fn assert_same(found: &Recorded, expected: &Recorded, case: &str) {
    if device().kind() == DeviceKind::Cpu {
        return assert_eq!(found, expected, "{case}");
    }
    assert_eq!(device().trouble(), None);
    let far = |found: &[Vec<f32>], expected: &[Vec<f32>]| {
        assert!(found.iter().map(Vec::len).eq(expected.iter().map(Vec::len)), "{case}: shapes");
        found.iter().flatten().zip(expected.iter().flatten()).map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f32::max)
    };
    assert_eq!((&found.source, &found.fed, found.number), (&expected.source, &expected.fed, expected.number), "{case}");
    let (states, attention) = (far(&found.states, &expected.states), far(&found.attention, &expected.attention));
    assert!(states < 5e-5 && attention < 2e-5, "{case}: {states}, {attention}");
}

/// Products do not mix rows, so that company changes no bit.
#[test]
fn a_sentence_alone_is_the_same_as_in_a_batch_and_on_any_threads() {
    for case in &cases() {
        let (golden, subject, recorded) = record(case, all_kinds());
        let (pairs, fed) = golden.pairs();
        for n_threads in [2, 3] {
            let again = Subject::new(subject.model().clone(), golden.names(), all_kinds(), n_threads).expect("a subject");
            let again = again.record(&pairs, Fed::Given(&fed)).expect("a recording");
            assert_eq!(again.len(), recorded.len(), "{case}");
            again.iter().zip(&recorded).for_each(|(again, recorded)| assert_same(again, recorded, case));
        }
        for (number, recorded) in recorded.iter().enumerate() {
            let alone = subject.record(&pairs[number..=number], Fed::Given(&fed[number..=number])).expect("a recording").remove(0);
            assert_same(&Recorded { number: number as u64, ..alone }, recorded, case);
        }
    }
}

/// Layers take some rows of a batch at a time, and where they cut it changes nothing either: here there are more than any of them takes.
#[test]
fn a_sentence_is_the_same_among_more_rows_than_a_layer_takes_at_a_time() {
    for case in &cases() {
        let (golden, subject, recorded) = record(case, all_kinds());
        let (pairs, fed) = golden.pairs();
        let n_times = 240usize.div_ceil(pairs.iter().map(|pair| pair.target.len()).sum());
        let many_pairs: Vec<Pair> = std::iter::repeat_n(&pairs, n_times).flatten().cloned().collect();
        let many_fed: Vec<Vec<Token>> = std::iter::repeat_n(&fed, n_times).flatten().cloned().collect();
        let many = subject.record(&many_pairs, Fed::Given(&many_fed)).expect("a recording");
        assert_eq!(many.len(), n_times * recorded.len(), "{case}");
        for (number, (sentence, once)) in many.into_iter().zip(recorded.iter().cycle()).enumerate() {
            assert_same(&sentence, &Recorded { number: number as u64, ..once.clone() }, case);
        }
    }
}

#[test]
fn terms_add_up_to_the_model_s_own_scores_at_every_site() {
    for case in &cases() {
        let (golden, subject, _) = record(case, all_kinds());
        let (pairs, _) = golden.pairs();
        let corpus = Live { model: &subject, pair: &|number| pairs[number as usize].clone(), n_pairs: 3, fed: Fed::Target };
        let options = Options { causal: 0, samples: 0, ..Options::default() };
        let report = explain(&corpus, None, &options, &mut |_| {}).expect("an explanation").report;
        assert_eq!(report.sites.len(), subject.description().sites.len());
        for site in &report.sites {
            let error = site.error.score.max(site.error.attention.expect("attention was recorded"));
            assert!(error < 1e-5, "{case}, {} {}.{}: {error}", site.kind, site.layer, site.head);
            assert!(site.shares.is_some());
        }
    }
}

/// What is left out where only attention is wanted changes nothing of it.
#[test]
fn attention_alone_is_the_same_attention() {
    for case in ["t5", "bart", "whisper"] {
        let (_, _, all) = record(case, Wanted::cross());
        let (_, _, some) = record(case, Wanted { kinds: vec![SiteKind::Cross], states: false, answers: false });
        for (all, some) in all.iter().zip(&some) {
            assert_eq!(all.attention, some.attention);
            assert!(some.predicted.is_empty() && some.states.iter().all(Vec::is_empty));
        }
    }
}

/// Sums need no predictions: a recording for them has the same states and attention, and the readout is not computed.
#[test]
fn states_for_sums_are_those_of_a_whole_recording() {
    for case in ["t5", "bart", "whisper"] {
        let (golden, subject, whole) = record(case, all_kinds());
        let (pairs, fed) = golden.pairs();
        let states = subject.record_states(&pairs, Fed::Given(&fed)).expect("a recording");
        assert_eq!(states.len(), whole.len(), "{case}");
        for (states, whole) in states.iter().zip(&whole) {
            assert!(states.predicted.is_empty() && states.loss.is_none() && !whole.predicted.is_empty(), "{case}");
            assert!(states.states == whole.states && states.attention == whole.attention, "{case}");
            assert_eq!((&states.fed, &states.source), (&whole.fed, &whole.source), "{case}");
        }
    }
}

/// An intervention at one site runs from there on only; that must not show.
#[test]
fn running_again_from_the_middle_equals_running_all() {
    struct Uniform(usize, bool);
    impl Intervene for Uniform {
        fn site(&self) -> Option<usize> {
            self.1.then_some(self.0)
        }
        fn weights(&self, row: AttentionRow<'_>, weights: &mut [f32]) {
            if row.site == self.0 {
                weights.fill(1.0 / weights.len() as f32);
            }
        }
    }
    for case in ["t5", "bart", "marian", "mbart", "pegasus", "m2m_100", "whisper"] {
        let (golden, subject, recorded) = record(case, all_kinds());
        let (pairs, fed) = golden.pairs();
        let run = |how: &dyn Intervene| subject.run(&pairs, Fed::Given(&fed), how).expect("answers");
        let plain = run(&Untouched);
        let predicted: Vec<_> = recorded.iter().map(|sentence| sentence.predicted.clone()).collect();
        assert_eq!(plain.iter().map(|answer| answer.predicted.clone()).collect::<Vec<_>>(), predicted);
        let mut n_changed = 0;
        for site in 0..subject.description().sites.len() {
            let from_there = run(&Uniform(site, true));
            assert_eq!(from_there, run(&Uniform(site, false)), "{case}, site {site}");
            n_changed += usize::from(from_there != plain);
        }
        assert!(n_changed > subject.description().sites.len() / 2, "{case}: uniform attention changed {n_changed} sites");
    }
}

/// Nothing is copied or compared for a change that there is not: a run under it is a bare forward pass with its loss.
#[test]
fn a_change_of_nothing_is_never_asked() {
    struct Nothing;
    impl Intervene for Nothing {
        fn changes(&self) -> bool {
            false
        }
        fn weights(&self, _: AttentionRow<'_>, _: &mut [f32]) {
            panic!("weights were shown")
        }
        fn values(&self, _: usize, _: usize, _: &mut [f32]) {
            panic!("states were copied")
        }
    }
    struct Idle;
    impl Intervene for Idle {}
    for case in ["t5", "bart", "marian", "whisper"] {
        let (golden, subject, recorded) = record(case, all_kinds());
        let (pairs, fed) = golden.pairs();
        for fed in [Fed::Given(&fed), Fed::Own] {
            let run = |how: &dyn Intervene| subject.run(&pairs, fed, how).expect("answers");
            let bare = run(&Nothing);
            assert_eq!(bare, run(&Idle), "{case}");
            if fed != Fed::Own {
                let losses = recorded.iter().map(|sentence| sentence.loss);
                assert!(bare.iter().map(|answer| Some(answer.loss)).eq(losses), "{case}");
            }
        }
    }
}

#[test]
fn untrained_weights_have_the_same_shape_and_other_numbers() {
    let (golden, subject, recorded) = record("t5", Wanted::cross());
    let untrained = subject.untrained(7).expect("a control");
    let (pairs, fed) = golden.pairs();
    let other = untrained.record(&pairs, Fed::Given(&fed)).expect("a recording");
    assert_eq!(other[0].attention[0].len(), recorded[0].attention[0].len());
    assert_ne!(other[0].attention, recorded[0].attention);
    assert_ne!(untrained.description().model_hash, subject.description().model_hash);
}

/// The models of speech among them, with their tokens.
fn speech_cases() -> Vec<(Golden, Model, SpeechTokens)> {
    let cases = cases().into_iter().filter(|case| Golden::of(case).has("timestamps.prompt"));
    let opened = |case: String| {
        let model = open(&folder(&case)).unwrap_or_else(|error| panic!("{case}: {error}"));
        let tokens = SpeechTokens::of(&model, None).unwrap_or_else(|error| panic!("{case}: {error}"));
        (Golden::of(&case), model, tokens)
    };
    cases.map(opened).collect()
}

#[test]
fn timestamps_are_written_as_transformers_writes_them() {
    let cases = speech_cases();
    assert_eq!(cases.len(), 2, "one model of many languages, one of English");
    for (golden, model, tokens) in &cases {
        let language = tokens.is_multilingual().then_some("de");
        let prompt = |with_times| tokens.prompt(language, Task::Transcribe, with_times).expect("a prompt");
        assert_eq!([prompt(false), prompt(true)], [golden.tokens("prompt").remove(0), golden.tokens("timestamps.prompt").remove(0)]);
        let mut how = Decoding { prefix: prompt(true)[1..].to_vec(), ..Decoding::greedy(model) };
        (how.rules.max_tokens, how.rules.timestamps) = (12, tokens.timestamps());
        let (pairs, _) = golden.pairs();
        check_written(golden, "timestamps.greedy", &pairs, model, |source| model.write(source, &how).expect("a text"));
        (how.rules.n_beams, how.rules.length_penalty) = (4, 1.0);
        check_written(golden, "timestamps.beam", &pairs, model, |source| model.write(source, &how).expect("a text"));
    }
}

#[test]
fn languages_are_as_likely_as_transformers_finds_them() {
    for (golden, model, tokens) in speech_cases() {
        let names: Vec<&str> = tokens.languages().map(|(name, _)| name).collect();
        assert_eq!(names.is_empty(), !golden.has("languages"));
        for (number, pair) in golden.pairs().0.iter().enumerate() {
            let found = model.detect_language(pair.signal.as_ref().expect("a sound"), &tokens).expect("languages");
            assert!(found.is_sorted_by(|(_, a), (_, b)| a >= b) && found.len() == names.len());
            for (name, probability) in found {
                let place = names.iter().position(|known| *known == name).expect("a known language");
                let expected = golden.floats("languages").1[number * names.len() + place];
                assert!((probability - f64::from(expected)).abs() < 1e-5, "{name}: {probability} {expected}");
            }
        }
    }
}
