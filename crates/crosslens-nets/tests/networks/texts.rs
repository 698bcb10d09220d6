//! Runs on text: vocabularies, held-out sentences, early stopping, averages, and going on after a stop.

use std::path::Path;

use crosslens_analysis::corpus::CorpusSpec;
use crosslens_nets::network::{Family, Feeding, Inputs, NetworkConfig, NormPlace, StepVectors, TransformerConfig};
use crosslens_nets::tasks::{CorpusConfig, Split, TaskConfig};
use crosslens_nets::text::{HELD_OUT_FILE, Units};
use crosslens_nets::train::{Ending, Event, Metrics, OptimizerConfig, Run, RunConfig, RunFolder, TrainingConfig, Wish};

const NOUNS: [(&str, &str); 4] = [("cat", "le chat"), ("dog", "le chien"), ("mouse", "la souris"), ("cow", "la vache")];
const VERBS: [(&str, &str); 4] = [("sees", "voit"), ("eats", "mange"), ("hears", "entend"), ("wants", "veut")];

/// 64 sentences such as "The cat sees the dog." and "Le chat voit le chien."
fn corpus(folder: &Path) -> CorpusSpec {
    let mut text = String::new();
    for (subject, sujet) in NOUNS {
        for (verb, verbe) in VERBS {
            for (object, objet) in NOUNS {
                let sujet = sujet.replacen('l', "L", 1);
                text.push_str(&format!("The {subject} {verb} the {object}.\t{sujet} {verbe} {objet}.\n"));
            }
        }
    }
    let path = folder.join("pairs.tsv");
    std::fs::write(&path, text).expect("a file");
    CorpusSpec::Tsv(path)
}

fn config(corpus: CorpusSpec, units: Units, training: TrainingConfig) -> RunConfig {
    RunConfig {
        seed: 3,
        version: None,
        task: TaskConfig::Corpus(CorpusConfig { held_out: Some(8), units, vocabulary: 60, ..CorpusConfig::of(corpus) }),
        network: NetworkConfig { hidden: 24, inputs: Inputs::Embedding { size: 16 }, ..NetworkConfig::of(Family::Luong) },
        training: TrainingConfig { batch: 8, evaluate_samples: 8, evaluate_feeding: Feeding::Forced, learning_rate: 1e-2, ..training },
        optimizer: OptimizerConfig::default(),
    }
}

fn start(config: &RunConfig, folder: &Path) -> Run {
    Run::prepare(config.clone(), RunFolder::at(folder)).expect("a configuration that makes sense")
}

fn again(config: &RunConfig, folder: &Path) -> Run {
    Run::prepare_again(config.clone(), RunFolder::at(folder)).expect("a run that can go on")
}

fn result(folder: &Path) -> (Vec<u8>, Vec<Metrics>) {
    let mut metrics = RunFolder::at(folder).read_metrics().expect("metrics");
    metrics.iter_mut().for_each(|line| line.seconds = 0.0);
    (std::fs::read(folder.join("model.safetensors")).expect("a model"), metrics)
}

fn go_on(_: Event<'_>) -> Wish {
    Wish::GoOn
}

#[test]
fn a_run_on_text_learns_and_shows_what_it_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let training = TrainingConfig { steps: 300, evaluate_every: 100, show: 2, ..TrainingConfig::default() };
    for units in Units::ALL {
        let config = config(corpus(folder.path()), units, training);
        let run = start(&config, &folder.path().join(units.name()));
        assert!(run.task().notes().iter().any(|note| note.contains("56 pairs")), "{:?}", run.task().notes());
        let mut shown = Vec::new();
        let mut look = |event: Event<'_>| {
            if let Event::Wrote { target, written, .. } = event {
                shown.push((target.to_owned(), written.to_owned()));
            }
            Wish::GoOn
        };
        let trained = run.start(2, &mut look).expect("a run that ends");
        assert!(trained.metrics.expect("an evaluation").loss < 0.2, "{units:?}: {trained:?}");
        assert_eq!(shown.len(), 6);
        assert!(shown[4..].iter().all(|(target, written)| target == written), "{units:?}: {shown:?}");

        // Opened without the corpus, the folder has what it was not trained on.
        std::fs::remove_file(folder.path().join("pairs.tsv")).expect("it was there");
        let opened = RunFolder::at(folder.path().join(units.name()));
        let task = opened.read_config().expect("run.toml").task.open(opened.read_text().expect("files")).expect("a task");
        assert_eq!(task.source_vocabulary(), run.task().source_vocabulary());
        assert!((0..8).all(|index| task.pair(Split::Test, 0, index) == run.task().pair(Split::Test, 0, index)));
    }
}

/// The loss on sentences that were not trained on, after 10 and after 150 updates. Of Transformers every place of norms and every kind of
/// positions.
#[test]
fn every_family_learns_from_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let recurrent = Family::ALL.into_iter().filter(|&family| family != Family::Transformer);
    let recurrent =
        recurrent.map(|family| NetworkConfig { hidden: 24, inputs: Inputs::Embedding { size: 16 }, ..NetworkConfig::of(family) });
    let transformers = [NormPlace::Pre, NormPlace::Post].into_iter().flat_map(|norm| {
        [StepVectors::default(), StepVectors::Learned { size: 16 }].map(|positions| {
            let transformer = TransformerConfig { norm, positions, ..TransformerConfig::default() };
            NetworkConfig { hidden: 24, heads: 2, transformer: Some(transformer), ..NetworkConfig::of(Family::Transformer) }
        })
    });
    for (number, network) in recurrent.chain(transformers).enumerate() {
        let training = TrainingConfig { steps: 150, evaluate_every: 10, ..TrainingConfig::default() };
        let mut config = config(corpus(folder.path()), Units::Words, training);
        if network.family == Family::Transformer {
            config.training.learning_rate = 3e-3;
        }
        config.network = network.clone();
        let path = folder.path().join(number.to_string());
        start(&config, &path).start(2, &mut go_on).expect("a run that ends");
        let losses: Vec<f64> = result(&path).1.iter().map(|line| line.loss).collect();
        let (first, last) = (losses[0], losses[losses.len() - 1]);
        assert!(losses.len() == 15 && last < 0.7 * first, "{network:?}: {losses:?}");
    }
}

/// The previous evaluation's weights are there until the checkpoint that no longer wants them is written.
#[test]
fn weights_are_forgotten_only_after_the_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let training = TrainingConfig { steps: 40, evaluate_every: 10, average: 2, ..TrainingConfig::default() };
    let config = config(corpus(folder.path()), Units::Words, training);
    let run = folder.path().join("run");
    let kept = || {
        let entries = std::fs::read_dir(run.join("kept")).expect("weights are kept").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let stop_at = |step: u64| {
        move |event: Event<'_>| if matches!(event, Event::Updated { step: made, .. } if made == step) { Wish::Stop } else { Wish::GoOn }
    };
    start(&config, &run).start(1, &mut stop_at(25)).expect("a run that stops");
    let before = kept();
    assert_eq!(before.len(), 2, "{before:?}");
    // A folder in the place of the checkpoint cannot be replaced by a file, as on a full disk.
    std::fs::rename(run.join("checkpoint.safetensors"), run.join("aside")).expect("it was there");
    std::fs::copy(run.join("aside"), run.join("checkpoint.safetensors")).expect("a copy");
    let mut block = |event: Event<'_>| {
        if matches!(event, Event::Updated { step: 30, .. }) {
            std::fs::remove_file(run.join("checkpoint.safetensors")).expect("it was there");
            std::fs::create_dir(run.join("checkpoint.safetensors")).expect("a folder");
        }
        Wish::GoOn
    };
    again(&config, &run).resume(1, &mut block).map(|_| ()).expect_err("no checkpoint can be written");
    assert!(before.iter().all(|name| kept().contains(name)), "{before:?} became {:?}", kept());
    std::fs::remove_dir(run.join("checkpoint.safetensors")).expect("it was there");
    std::fs::rename(run.join("aside"), run.join("checkpoint.safetensors")).expect("it was there");
    again(&config, &run).resume(1, &mut go_on).expect("a run that ends");
    let whole = folder.path().join("whole");
    start(&config, &whole).start(1, &mut go_on).expect("a run that ends");
    assert!(result(&run) == result(&whole), "the run ends as one that was never stopped");
}

#[test]
fn stopping_changes_nothing_where_weights_are_averaged_and_the_best_is_sought() {
    let folder = tempfile::tempdir().expect("a folder");
    for (patience, average) in [(0, 3), (2, 0), (3, 2)] {
        let training =
            TrainingConfig { steps: 400, evaluate_every: 10, patience, average, label_smoothing: 0.1, ..TrainingConfig::default() };
        let mut config = config(corpus(folder.path()), Units::Bpe, training);
        if patience == 0 {
            config.training.steps = 60;
        }
        let name = |what: &str| folder.path().join(format!("{what}-{patience}-{average}"));
        let whole = start(&config, &name("whole")).start(1, &mut go_on).expect("a run that ends");
        assert_eq!(whole.ending, Ending::Finished);
        assert!(patience == 0 || whole.steps < 400, "the loss rises again on 56 sentences: {whole:?}");
        let stop_at = |step: u64| {
            move |event: Event<'_>| if matches!(event, Event::Updated { step: made, .. } if made == step) { Wish::Stop } else { Wish::GoOn }
        };
        start(&config, &name("stopped")).start(2, &mut stop_at(15)).expect("a run that stops");
        for step in [20, 41] {
            again(&config, &name("stopped")).resume(1, &mut stop_at(step)).expect("a run that stops again");
        }
        let ended = again(&config, &name("stopped")).resume(3, &mut go_on).expect("a run that ends");
        assert_eq!(result(&name("stopped")), result(&name("whole")), "patience {patience}, average {average}");
        assert_eq!(ended.metrics.map(|line| line.loss), whole.metrics.map(|line| line.loss));

        let metrics = result(&name("whole")).1;
        let lowest = metrics.iter().map(|line| line.loss).fold(f64::INFINITY, f64::min);
        if (patience, average) == (2, 0) {
            assert_eq!(whole.metrics.expect("an evaluation").loss, lowest, "the model is the best of its evaluations");
        }
        let n_kept = std::fs::read_dir(name("whole").join("kept")).expect("weights are kept").count() as u64;
        assert!(n_kept <= average.max(1) + patience, "{n_kept} weights are kept");
    }
}

#[test]
fn another_vocabulary_a_missing_file_and_a_changed_corpus_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let training = TrainingConfig { steps: 2, evaluate_every: 2, ..TrainingConfig::default() };
    let config = config(corpus(folder.path()), Units::Words, training);
    let run = folder.path().join("run");
    start(&config, &run).start(1, &mut go_on).expect("a run that ends");
    let refusal = || Run::prepare_again(config.clone(), RunFolder::at(&run)).map(|_| ()).expect_err("it cannot go on").to_string();

    let held_out = std::fs::read_to_string(run.join(HELD_OUT_FILE)).expect("sentences");
    std::fs::write(run.join(HELD_OUT_FILE), "no tab\n").expect("a file");
    assert!(refusal().contains("heldout.tsv") && refusal().contains("line 1"), "{}", refusal());
    std::fs::write(run.join(HELD_OUT_FILE), held_out).expect("a file");

    let words = std::fs::read_to_string(run.join("vocab.json")).expect("words");
    std::fs::write(run.join("vocab.json"), words.replacen("<unk>", "<unknown>", 1)).expect("a file");
    assert!(refusal().contains("vocab.json"), "{}", refusal());
    // As many words, of another run: the network would read them as its own.
    std::fs::write(run.join("vocab.json"), words.replacen("\"chat\"", "\"tahc\"", 1)).expect("a file");
    assert!(words.contains("\"chat\"") && refusal().contains("vocab.json") && refusal().contains("other words"), "{}", refusal());
    let settings = std::fs::read_to_string(run.join("text.json")).expect("settings");
    let older: String = settings.lines().filter(|line| !line.contains("\"words\": \"")).collect::<Vec<_>>().join("\n");
    std::fs::write(run.join("text.json"), older.replace("\",\n}", "\"\n}")).expect("a file");
    Run::prepare_again(config.clone(), RunFolder::at(&run)).map(|_| ()).expect("older runs did not keep what their words were");
    std::fs::write(run.join("text.json"), settings).expect("a file");
    std::fs::write(run.join("vocab.json"), words).expect("a file");

    let CorpusSpec::Tsv(path) = corpus(folder.path()) else { panic!("a file of lines") };
    std::fs::write(&path, std::fs::read_to_string(&path).expect("pairs") + "One more.\tUn de plus.\n").expect("a file");
    assert!(refusal().contains("not the corpus the run began with"), "{}", refusal());
    std::fs::remove_file(path).expect("it was there");
    assert!(refusal().contains("pairs.tsv"), "{}", refusal());
}
