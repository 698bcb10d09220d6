//! Networks for text, asked while they run, and run folders whose vocabularies were changed.

use std::path::Path;

use crosslens_lab::analysis::corpus::CorpusSpec;
use crosslens_lab::analysis::explain::Samples;
use crosslens_lab::analysis::{Estimator, Subset, Token};
use crosslens_lab::network::{Family, Feeding, Inputs, NetworkConfig};
use crosslens_lab::tasks::{CorpusConfig, TaskConfig};
use crosslens_lab::text::{UNKNOWN_WORD, Units};
use crosslens_lab::train::{Event, OptimizerConfig, Run, RunConfig, RunFolder, TrainingConfig, Wish};
use crosslens_lab::{Asked, Feeds, LiveError, LiveModel, MAX_ATTENTION_BYTES, Spelled, TrainedModel, WordsOf, Writing};

const NOUNS: [(&str, &str); 4] = [("cat", "le chat"), ("dog", "le chien"), ("mouse", "la souris"), ("cow", "la vache")];
const VERBS: [(&str, &str); 4] = [("sees", "voit"), ("eats", "mange"), ("hears", "entend"), ("wants", "veut")];

/// A run of a few updates on 64 sentences such as "The cat sees the dog." and "le chat voit le chien."
fn train(folder: &Path, units: Units, vocabulary: usize) -> TrainedModel {
    let mut text = String::new();
    for (subject, sujet) in NOUNS {
        for (verb, verbe) in VERBS {
            for (object, objet) in NOUNS {
                text.push_str(&format!("The {subject} {verb} the {object}.\t{sujet} {verbe} {objet}.\n"));
            }
        }
    }
    let corpus = folder.join("pairs.tsv");
    std::fs::write(&corpus, text).expect("a file");
    let corpus = CorpusConfig { held_out: Some(8), units, vocabulary, lowercase: true, ..CorpusConfig::of(CorpusSpec::Tsv(corpus)) };
    let config = RunConfig {
        seed: 3,
        version: None,
        task: TaskConfig::Corpus(corpus),
        network: NetworkConfig { hidden: 16, inputs: Inputs::Embedding { size: 8 }, ..NetworkConfig::of(Family::Luong) },
        training: TrainingConfig {
            steps: 30,
            batch: 8,
            evaluate_every: 30,
            evaluate_samples: 8,
            evaluate_feeding: Feeding::Forced,
            learning_rate: 1e-2,
            ..TrainingConfig::default()
        },
        optimizer: OptimizerConfig::default(),
    };
    let run = folder.join(format!("{}-{vocabulary}", units.name()));
    Run::prepare(config, RunFolder::at(&run)).expect("a sound configuration").start(1, &mut |_: Event<'_>| Wish::GoOn).expect("a run");
    TrainedModel::open(&run).expect("the model it saved")
}

/// With twelve pieces to write with, a network has no name for most: a word is copied whole, once for all unknown pieces that look at it.
/// Pieces of a unigram model hold every letter, so that it has none to replace.
#[test]
fn unknown_pieces_are_replaced_by_whole_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = train(folder.path(), Units::Bpe, 12);
    let write = |replace_unknown| {
        let how = Writing { replace_unknown, most_tokens: 12, n_threads: 1, ..Writing::default() };
        let texts = ["The cat sees the Žebra.".to_owned()];
        model.translate(&texts, &how, &mut |_| ()).expect("it writes").remove(0).remove(0)
    };
    let (plain, replaced) = (write(false), write(true));
    let source = ["the", "cat", "sees", "the", "žebra", "."].map(|word| format!("▁{word}"));
    let mut n_copied = 0;
    for (plain, replaced) in plain.tokens.iter().zip(&replaced.tokens) {
        if plain == UNKNOWN_WORD && replaced != UNKNOWN_WORD {
            assert!(source.contains(replaced), "{replaced}");
            n_copied += 1;
        } else {
            assert_eq!(plain, replaced);
        }
    }
    assert!(n_copied > 0, "{:?}", plain.tokens);
    let words: Vec<&str> = replaced.text.split(' ').collect();
    assert!(words.windows(2).all(|two| two[0] != two[1]), "{}", replaced.text);
}

/// Six words and the end, 7 tokens, may become 24; of each beam there are two, one as it grows and one put together.
#[test]
fn a_text_whose_attention_may_take_too_much_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = train(folder.path(), Units::Words, 40);
    let text = "The cat sees the dog.";
    let how = Writing { keep_attention: true, n_threads: 1, ..Writing::default() };
    assert_eq!(model.attention_bytes(text, &how), 4 * 7 * 24 * 2);
    assert_eq!(model.attention_bytes(text, &Writing { beams: 3, most_tokens: 5, ..how }), 4 * 7 * 5 * 6);
    assert_eq!(model.attention_bytes(text, &Writing { keep_attention: false, ..how }), 0);
    let texts = ["The cow eats.", text].map(str::to_owned);
    let too_long = Writing { most_tokens: (MAX_ATTENTION_BYTES / 8).div_ceil(6), ..how };
    let error = model.translate(&texts, &too_long, &mut |_| panic!("it writes")).expect_err("7 tokens are too many, 5 are not");
    assert_eq!(error.about_text().map(|(number, _)| number), Some(1), "{error}");
}

fn typed(source: &str, target: Option<&str>) -> Asked {
    let spelled = |text: &str| Spelled::Text(text.to_owned());
    Asked::Typed { source: spelled(source), target: target.map(spelled) }
}

/// The tokens of the only sentence by name: source and what the decoder read.
fn names(samples: &Samples) -> [Vec<String>; 2] {
    let sentence = &samples.sentences[0].sentence;
    let of = |names: &crosslens_lab::analysis::explain::TokenNames, tokens: &[Token]| {
        tokens.iter().map(|&token| names.name(token).into_owned()).collect()
    };
    [of(&samples.source, &sentence.source), of(&samples.target, &sentence.fed)]
}

/// The words that groups of pieces make, without what marks the blank before them.
fn joined(pieces: &[String], words: &[usize]) -> Vec<String> {
    assert_eq!(pieces.len(), words.len());
    let mut all = vec![String::new(); words.last().map_or(0, |&word| word + 1)];
    pieces.iter().zip(words).for_each(|(piece, &word)| all[word].push_str(piece.trim_start_matches('▁')));
    all
}

#[test]
fn what_is_typed_is_read_as_the_run_reads_text() {
    let folder = tempfile::tempdir().expect("a folder");
    for units in Units::ALL {
        let model = train(folder.path(), units, 40);
        let expected = model.read_source("The  COW sees the mouse.").expect("it is read").1;
        let live = LiveModel::of_run(model, 5, 8, 40, &mut |_| ()).expect("it is fitted");
        assert!(live.words().is_none(), "it reads any text");
        let explain = |asked: &Asked, feeds| live.explain(asked, feeds, Estimator::Paper, None).map(|answer| answer.samples);

        let asked = typed("The  COW sees the mouse.", Some("la vache voit la souris."));
        let samples = explain(&asked, Feeds::Target).expect("an explanation");
        let [source, fed] = names(&samples);
        assert_eq!(source, expected, "{units:?}");
        match live.word_of(&samples) {
            None => assert_eq!((units, source.join(" ")), (Units::Words, "the cow sees the mouse . <eos>".to_owned())),
            Some(WordsOf { source: source_words, fed: fed_words, predicted }) => {
                assert!(source.len() > 6, "{units:?} of 40 pieces cut some words: {source:?}");
                assert_eq!(joined(&source, &source_words), ["the", "cow", "sees", "the", "mouse.", "<eos>"]);
                assert_eq!(joined(&fed, &fed_words)[1..], ["la", "vache", "voit", "la", "souris."], "after the start");
                assert_eq!(predicted.len(), samples.sentences[0].sentence.predicted.len());
            }
        }

        // Alone, as the page asks first; and its own pieces again, as the page sends them back.
        let alone = explain(&typed("the cat eats the dog.", None), Feeds::Own).expect("an explanation");
        assert!(alone.sentences[0].sentence.target.is_none());
        let again = Asked::Typed { source: Spelled::Words(source), target: None };
        live.rerun(&again, Feeds::Own, Estimator::Paper, 0, Subset::from_mask(0x1ff, true)).expect("it is decoded again");

        assert!(matches!(explain(&typed(" ", None), Feeds::Own), Err(LiveError::Empty { side: "source" })));
        assert!(matches!(explain(&typed("a", Some("\t")), Feeds::Own), Err(LiveError::Empty { side: "target" })));
        let long = typed(&"cat ".repeat(41), None);
        assert!(matches!(explain(&long, Feeds::Own), Err(LiveError::TooLong { side: "source", most: 40, .. })));
        // Letters nobody has seen are the unknown word, not an error.
        explain(&typed("猫 sees the cow", None), Feeds::Own).expect("an explanation");
    }
}

/// Each file of a run with vocabularies of another size: refused with the file, the reason and the cure.
#[test]
fn a_vocabulary_that_does_not_fit_the_checkpoint_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for units in [Units::Bpe, Units::Unigram] {
        let of = |vocabulary: usize| folder.path().join(format!("{}-{vocabulary}", units.name()));
        train(folder.path(), units, 40);
        train(folder.path(), units, 60);
        let refusal = |path: &Path| TrainedModel::open(path).map(|_| ()).expect_err("it does not fit").to_string();

        for (run, other) in [(of(40), of(60)), (of(60), of(40))] {
            let own = std::fs::read(run.join("tokenizer.json")).expect("a file");
            std::fs::write(run.join("tokenizer.json"), std::fs::read(other.join("tokenizer.json")).expect("a file")).expect("written");
            let message = refusal(&run);
            assert!(message.contains("tokenizer.json") && message.contains("the network was trained with"), "{message}");
            assert!(message.contains("put the run's own back"), "{message}");

            // Of a run that did not count its pieces: fewer merges lack some of its words.
            let settings = std::fs::read_to_string(run.join("text.json")).expect("a file");
            let mut old: serde_json::Value = serde_json::from_str(&settings).expect("JSON");
            old.as_object_mut().expect("an object").remove("pieces").expect("a count");
            if run == of(60) && units == Units::Bpe {
                std::fs::write(run.join("text.json"), old.to_string()).expect("written");
                let message = refusal(&run);
                assert!(message.contains("tokenizer.json") && message.contains("it lacks `"), "{message}");
            }
            std::fs::write(run.join("tokenizer.json"), own).expect("written");
            std::fs::write(run.join("text.json"), old.to_string()).expect("written");
            TrainedModel::open(&run).expect("its own fits, counted or not");
            std::fs::write(run.join("text.json"), settings).expect("written");
        }

        // All of another run's words: the weights are not of that shape. (As many unigrams as before may be in use, and fit.)
        if units == Units::Bpe {
            for name in ["vocab.json", "tokenizer.json", "text.json"] {
                std::fs::copy(of(60).join(name), of(40).join(name)).expect("written");
            }
            let message = refusal(&of(40));
            assert!(message.contains("model.safetensors") && message.contains("shape"), "{message}");
        }
    }
}
