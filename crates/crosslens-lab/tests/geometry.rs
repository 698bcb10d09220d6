//! The geometry of a network trained here.

use crosslens_lab::analysis::explain::Options;
use crosslens_lab::recipes::RECIPES;
use crosslens_lab::train::{Event, Run, RunFolder, Wish};
use crosslens_lab::{Sentences, TrainedModel};

fn trained(name: &str) -> TrainedModel {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = RECIPES.iter().find(|recipe| recipe.name == name).expect("a shipped recipe").config();
    config.seed = 1;
    let run = Run::prepare(config, RunFolder::at(folder.path())).expect("a shipped configuration");
    run.start(0, &mut |_: Event<'_>| Wish::GoOn).expect("a run that ends");
    TrainedModel::open(folder.path()).expect("the model it saved")
}

/// Seen on two seeds: cosine .988 to .993, lowest cosine on the diagonal .57.
#[test]
fn an_attention_only_network_walks_by_itself_and_carries_words_in_its_input_components() {
    let model = trained("reverse-ao");
    let sentences = Sentences::Task { seed: 5, n_samples: 200 };
    let options = Options { geometry: true, causal: 0, ..Options::default() };
    let report = model.explain(&sentences, None, &options, None, &mut |_| {}).expect("an explanation").report;
    let geometry = report.geometry.as_ref().expect("it was asked for");

    let encoder = geometry.null_input.iter().find(|path| path.stream == "encoder").expect("the encoder was probed");
    assert!(encoder.cosine > 0.9, "{}", encoder.cosine);
    assert!(encoder.step_correlation.expect("it moves") > 0.9, "{:?}", encoder.step_correlation);
    assert_eq!(geometry.constant_words.len(), 3);
    assert!(geometry.constant_words.iter().all(|path| path.cosine > 0.9));

    let cosines = &geometry.cosines[0];
    assert_eq!(cosines.words.len(), 3);
    for word in &cosines.words {
        assert_eq!(word.best_token, word.source_token, "the task gives a word and its translation the same number");
        assert!(word.cosine > 0.4 && word.next_cosine < word.cosine, "{word:?}");
    }

    assert_eq!(geometry.frames.len(), 1, "both sides are equally wide");
    for stream in &geometry.streams {
        assert_eq!((stream.frame, stream.path.len(), stream.shares.len()), (Some(0), 12, 10));
        assert!(stream.shares.iter().sum::<f64>() <= 1.0 + 1e-9);
        assert!(stream.participation_ratio.is_some_and(|ratio| (1.0..=128.0).contains(&ratio)));
    }
    let readout = geometry.readout.as_ref().expect("it is one linear map");
    let context = readout.context.as_ref().expect("words are read from the context alone");
    assert!(readout.state.is_none() && context.angles.as_ref().is_some_and(|angles| angles.lowest > 60.0), "{readout:?}");
    let subspaces = &geometry.subspaces[0];
    assert_eq!(subspaces.angles.len(), subspaces.query_dimensions.min(subspaces.key_dimensions));
    assert!(geometry.notes.is_empty(), "{:?}", geometry.notes);
}
