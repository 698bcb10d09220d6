//! Sentences that come from outside, in parts, give what the corpus gives as a whole.

use std::path::{Path, PathBuf};

use crosslens_analysis::explain::{
    ExplainError, Explained, FirstTotals, OWN_AVERAGES, Options, SharesError, Streamed, Totals, TotalsError,
};
use crosslens_analysis::{Description, Recorded, Stats, Sums};
use serde_json::Value;

use super::planted::{Plan, Planted, Sizes, dot, every_map};

fn planted() -> Planted {
    let sizes = Sizes { time: 1.0, token: 1.0, rest: 0.5 };
    Planted::of(&Plan { seed: 5, n_sentences: 90, lengths: 2..7, n_words: 9, sizes }, every_map(5))
}

fn options() -> Options {
    Options { bootstrap: 5, step_intervals: true, samples: 2, keep_totals: true, ..Options::default() }
}

/// Both passes over parts of the corpus, each part carried over as text and bytes, as between machines.
fn spread(planted: &Planted, options: &Options, parts: &[&[Recorded]]) -> Explained {
    let streamed = Streamed { description: &planted.description, options };
    let through_a_file = |stats: Stats| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.stats.safetensors");
        stats.save(&file).expect("written");
        Stats::load(&file).expect("read")
    };
    let carried = |totals: &FirstTotals| {
        let stats = through_a_file(totals.stats(&planted.description));
        let held_out = totals.held_out_stats(&planted.description).map(through_a_file);
        FirstTotals::from_parts(&planted.description, stats, held_out, &totals.averages_json()).expect("whole")
    };
    let mut first = streamed.first(&mut std::iter::empty()).expect("nothing yet");
    for part in parts {
        let totals = streamed.first(&mut part.chunks(7).map(<[Recorded]>::to_vec)).expect("sums");
        first.merge(&carried(&totals)).expect("the same streams");
    }
    let mut second = streamed.second(&first, None, &mut std::iter::empty()).expect("nothing yet");
    for part in parts {
        let totals = streamed.second(&first, None, &mut part.chunks(5).map(<[Recorded]>::to_vec)).expect("shares");
        second.merge(&streamed.second_from_json(&totals.to_json()).expect("whole")).expect("the same sites");
    }
    streamed.conclude(first, None, second).expect("an explanation")
}

/// Every number of two reports, in their order.
fn numbers(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Number(number) => found.extend(number.as_f64()),
        Value::Array(values) => values.iter().for_each(|value| numbers(value, found)),
        Value::Object(values) => values.values().for_each(|value| numbers(value, found)),
        _ => {}
    }
}

fn assert_alike(left: &Explained, right: &Explained, tolerance: f64) {
    let all = |explained: &Explained| {
        let mut found = Vec::new();
        numbers(&serde_json::to_value(&explained.report).expect("a report is JSON"), &mut found);
        found
    };
    let (left, right) = (all(left), all(right));
    assert_eq!(left.len(), right.len());
    for (a, b) in left.iter().zip(&right) {
        assert!((a - b).abs() <= tolerance * (1.0 + a.abs()), "{a} and {b}");
    }
}

#[test]
fn a_corpus_in_parts_is_explained_as_the_whole() {
    let (planted, options) = (planted(), options());
    let whole = planted.explain(&options);
    let (one, rest) = planted.sentences.split_at(40);
    let (two, three) = rest.split_at(1);
    // Sums in another order move components, which are kept in f32, by their rounding.
    assert_alike(&spread(&planted, &options, &[one, two, three]), &whole, 2e-6);
    assert_alike(&spread(&planted, &options, &[&planted.sentences]), &whole, 1e-12);
}

#[test]
fn halves_of_a_corpus_in_parts_are_those_of_the_whole() {
    let (planted, options) = (planted(), Options { held_out: true, ..options() });
    let (one, rest) = planted.sentences.split_at(40);
    assert_alike(&spread(&planted, &options, &[one, rest]), &planted.explain(&options), 2e-6);
}

#[test]
fn a_second_pass_over_other_sentences_is_refused() {
    let planted = planted();
    for options in [options(), Options { held_out: true, ..options() }] {
        let streamed = Streamed { description: &planted.description, options: &options };
        let first = streamed.first(&mut std::iter::once(planted.sentences.clone())).expect("sums");
        let conclude = |sentences: Vec<Recorded>| {
            let second = streamed.second(&first, None, &mut std::iter::once(sentences)).expect("shares");
            streamed.conclude(first.clone(), None, second)
        };
        let changed = |change: &dyn Fn(&mut Vec<Recorded>)| {
            let mut sentences = planted.sentences.clone();
            change(&mut sentences);
            sentences
        };
        // The order in which sentences come is nothing to what is summed; which number each has is.
        assert!(conclude(changed(&|sentences| sentences.reverse())).is_ok());
        let renumbered = changed(&|sentences| {
            sentences.reverse();
            (0..).zip(sentences).for_each(|(number, sentence)| sentence.number = number);
        });
        let other_word = changed(&|sentences| sentences[3].source[0] = (sentences[3].source[0] + 1) % 9);
        for (sentences, n_second) in [(renumbered, 90), (other_word, 90), (planted.sentences[..80].to_vec(), 80)] {
            match conclude(sentences) {
                Err(ExplainError::OtherSentences { first: 90, second }) => assert_eq!(second, n_second),
                other => panic!("{:?}", other.map(|explained| explained.report.corpus)),
            }
        }
    }
}

/// How much each axis explains, of every frame.
fn axes(explained: &Explained) -> Vec<f64> {
    let geometry = explained.report.geometry.as_ref().expect("it was asked for");
    geometry.frames.iter().flat_map(|frame| frame.shares.clone()).collect()
}

#[test]
fn the_geometry_of_parts_adds_up() {
    let (planted, options) = (planted(), Options { geometry: true, ..options() });
    let streamed = Streamed { description: &planted.description, options: &options };
    let (one, rest) = planted.sentences.split_at(40);
    let mut first = streamed.first(&mut std::iter::once(one.to_vec())).expect("sums");
    first.merge(&streamed.first(&mut std::iter::once(rest.to_vec())).expect("sums")).expect("the same streams");
    let second = streamed.second(&first, None, &mut std::iter::once(planted.sentences.clone())).expect("shares");
    let (parts, whole) = (axes(&streamed.conclude(first, None, second).expect("an explanation")), axes(&planted.explain(&options)));
    assert!(!whole.is_empty() && parts.len() == whole.len());
    assert!(parts.iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-9), "{parts:?} and {whole:?}");

    let plain = Options { geometry: false, ..options.clone() };
    let without = Streamed { options: &plain, ..streamed };
    let mut asked = streamed.first(&mut std::iter::empty()).expect("nothing yet");
    let differ = TotalsError::Differ { what: "whether the geometry is asked for" };
    assert_eq!(asked.merge(&without.first(&mut std::iter::empty()).expect("nothing yet")), Err(differ));
}

#[test]
fn explanations_under_given_sums_merge() {
    let (planted, options) = (planted(), options());
    let streamed = Streamed { description: &planted.description, options: &options };
    let all = streamed.first(&mut std::iter::once(planted.sentences.clone())).expect("sums");
    let given = all.stats(&planted.description).sums_for(&planted.description).expect("the same model");
    let explain = |sentences: &[Recorded]| {
        let first = streamed.first(&mut std::iter::once(sentences.to_vec())).expect("sums");
        (first, sentences.to_vec())
    };
    let parts: Vec<_> = planted.sentences.chunks(31).map(explain).collect();
    // Closeness to the average attention needs the average of all: each part is split under its own, which is what merging adds up.
    let explained: Vec<Explained> = parts
        .into_iter()
        .map(|(first, sentences)| {
            let second = streamed.second(&first, Some(&given), &mut std::iter::once(sentences)).expect("shares");
            streamed.conclude(first, Some(&given), second).expect("an explanation")
        })
        .collect();
    let mut merged = explained[0].clone();
    for other in &explained[1..] {
        merged = merged.merge(other, &planted.description, &given, &options).expect("the same components");
    }
    let second = streamed.second(&all, Some(&given), &mut std::iter::once(planted.sentences.clone())).expect("shares");
    let whole = streamed.conclude(all, Some(&given), second).expect("an explanation");
    assert_eq!(merged.report.corpus.pairs, 90);
    assert_eq!((merged.report.corpus.warnings, whole.report.corpus.warnings.len()), (vec![OWN_AVERAGES.to_owned()], 0));
    for (merged, whole) in merged.report.sites.iter().zip(&whole.report.sites) {
        let (merged, whole) = (merged.shares.as_ref().expect("shares"), whole.shares.as_ref().expect("shares"));
        for (name, table) in &whole.tables {
            for (a, b) in merged.tables[name].iter().flatten().zip(table.iter().flatten()) {
                assert!((a - b).abs() < 1e-12, "{name}: {a} and {b}");
            }
        }
    }
}

/// Six parts are not nine terms, though all else that is counted is as much; nor are the five highest scores the three.
#[test]
fn totals_of_another_kind_of_score_are_refused() {
    let options = options();
    let sentences = |map: usize| Planted::of(&Plan::default(), vec![every_map(5).remove(map)]);
    let (additive, dots) = (sentences(5), sentences(0));
    let text = |planted: &Planted, options: &Options| {
        let streamed = Streamed { description: &planted.description, options };
        let first = streamed.first(&mut std::iter::once(planted.sentences.clone())).expect("sums");
        streamed.second(&first, None, &mut std::iter::once(planted.sentences.clone())).expect("shares").to_json()
    };
    let read = |planted: &Planted, text: &str| {
        Streamed { description: &planted.description, options: &options }.second_from_json(text).map(|_| ())
    };
    let differ = Err(TotalsError::Differ { what: "what was counted" });
    assert_eq!(read(&dots, &text(&dots, &options)), Ok(()));
    assert_eq!(read(&dots, &text(&additive, &options)), differ);
    assert_eq!(read(&additive, &text(&dots, &options)), differ);
    assert_eq!(read(&dots, &text(&dots, &Options { k: 5, ..options.clone() })), differ);
}

#[test]
fn totals_of_other_things_do_not_merge() {
    let (planted, options) = (planted(), options());
    let streamed = Streamed { description: &planted.description, options: &options };
    let sizes = Sizes { time: 1.0, token: 1.0, rest: 0.5 };
    let other = Planted::of(&Plan { seed: 5, n_sentences: 9, lengths: 2..7, n_words: 9, sizes }, vec![dot()]);
    let others = Streamed { description: &other.description, options: &options };
    let first = |streamed: &Streamed<'_>, planted: &Planted| streamed.first(&mut std::iter::once(planted.sentences.clone())).expect("sums");
    let (mut ours, theirs) = (first(&streamed, &planted), first(&others, &other));
    assert_eq!(ours.merge(&theirs), Err(TotalsError::Differ { what: "streams or sites" }));
    let second = others.second(&theirs, None, &mut std::iter::once(other.sentences.clone())).expect("shares");
    assert!(matches!(streamed.second_from_json(&second.to_json()), Err(TotalsError::Differ { .. })));
    let text = second.to_json();
    assert!(matches!(others.second_from_json(&text[..text.len() / 2]), Err(TotalsError::Unreadable { .. })));
    let hostile = text.replace("\"n_pieces\":9", "\"n_pieces\":99");
    assert!(matches!(others.second_from_json(&hostile), Err(TotalsError::Differ { .. })), "sums that are not there are not looked up");
    assert!(
        streamed
            .conclude(ours, None, streamed.second(&first(&streamed, &planted), None, &mut std::iter::empty()).expect("nothing"))
            .is_err()
    );
}

/// Workers that draw their weights anew run models of the same shape.
#[test]
fn totals_of_another_model_of_the_same_shape_are_refused() {
    let (planted, options) = (planted(), Options { held_out: true, ..options() });
    let mut other = planted.description.clone();
    other.model_hash = "another".into();
    let streamed = Streamed { description: &planted.description, options: &options };
    let first = streamed.first(&mut std::iter::once(planted.sentences.clone())).expect("sums");
    let read = |of: &Description, held_out: &Description| {
        let (stats, held_out) = (first.stats(of), first.held_out_stats(held_out));
        FirstTotals::from_parts(&planted.description, stats, held_out, &first.averages_json()).map(|_| ())
    };
    let differ = Err(TotalsError::Model { left: planted.description.model_hash.clone(), right: "another".into() });
    assert_eq!(read(&planted.description, &planted.description), Ok(()));
    assert_eq!(read(&other, &planted.description), differ);
    assert_eq!(read(&planted.description, &other), differ);
}

/// Three parts of a corpus, explained under the sums of the whole: what was counted in files, and all put together in memory.
struct Kept {
    planted: Planted,
    given: Vec<Sums>,
    merged: Explained,
    folder: tempfile::TempDir,
    paths: Vec<PathBuf>,
}

impl Kept {
    fn new(options: &Options) -> Self {
        let planted = planted();
        let streamed = Streamed { description: &planted.description, options };
        let all = streamed.first(&mut std::iter::once(planted.sentences.clone())).expect("sums");
        let given = all.stats(&planted.description).sums_for(&planted.description).expect("the same model");
        let folder = tempfile::tempdir().expect("a folder");
        let (mut merged, mut paths): (Option<Explained>, Vec<PathBuf>) = (None, Vec::new());
        for part in planted.sentences.chunks(31) {
            let first = streamed.first(&mut std::iter::once(part.to_vec())).expect("sums");
            let second = streamed.second(&first, Some(&given), &mut std::iter::once(part.to_vec())).expect("shares");
            let one = streamed.conclude(first, Some(&given), second).expect("an explanation");
            let path = folder.path().join(format!("{}.shares.jsonl", paths.len()));
            one.totals.as_ref().expect("they are kept").save(&planted.description, &given, options, &path).expect("written");
            paths.push(path);
            merged = Some(match merged {
                None => one,
                Some(all) => all.merge(&one, &planted.description, &given, options).expect("the same components"),
            });
        }
        Self { merged: merged.expect("three parts"), planted, given, folder, paths }
    }

    fn load(&self, options: &Options, paths: &[PathBuf]) -> Result<Totals, SharesError> {
        Totals::load_merged(&self.planted.description, &self.given, options, paths)
    }

    /// Asserts that the first file, changed by `edit`, is refused with these words and its path.
    fn refused(&self, edit: impl Fn(&str) -> String, words: &str) {
        let text = std::fs::read_to_string(&self.paths[0]).expect("a file");
        std::fs::write(&self.paths[0], edit(&text)).expect("writable");
        let message = self.load(&options(), &self.paths).expect_err("a broken file").to_string();
        assert!(message.contains(words) && message.contains(&self.paths[0].display().to_string()), "`{words}` is not in: {message}");
        std::fs::write(&self.paths[0], text).expect("writable");
    }
}

#[test]
fn parts_kept_in_files_are_put_together() {
    let options = options();
    let kept = Kept::new(&options);
    let Totals { first, second } = kept.load(&options, &kept.paths).expect("three parts");
    let streamed = Streamed { description: &kept.planted.description, options: &options };
    let together = streamed.conclude(first, Some(&kept.given), second).expect("an explanation");
    assert_eq!(together.report.corpus.pairs, 90);
    assert_alike(&together, &kept.merged, 1e-12);
}

#[test]
fn kept_parts_made_otherwise_are_not_put_together() {
    let options = options();
    let mut kept = Kept::new(&options);
    let other = |result: Result<Totals, SharesError>| match result {
        Err(SharesError::Other { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(other(kept.load(&Options { k: 5, ..options.clone() }, &kept.paths)), "the options");
    assert_eq!(other(kept.load(&Options { bootstrap: 6, ..options.clone() }, &kept.paths)), "the options");
    assert!(matches!(kept.load(&options, &[]), Err(SharesError::None)));

    // Sums of another part lie beside the first.
    let beside = |path: &Path| path.with_extension("sums.safetensors");
    let own = std::fs::read(beside(&kept.paths[0])).expect("sums");
    std::fs::copy(beside(&kept.paths[1]), beside(&kept.paths[0])).expect("writable");
    assert_eq!(other(kept.load(&options, &kept.paths)), "the sums beside it");
    std::fs::write(beside(&kept.paths[0]), own).expect("writable");
    assert!(kept.load(&options, &kept.paths).is_ok());

    kept.planted.description.model_hash = "another".into();
    assert_eq!(other(kept.load(&options, &kept.paths)), "the model");
    kept.planted.description.model_hash = "none".into();
    kept.given.swap(0, 1);
    assert_eq!(other(kept.load(&options, &kept.paths)), "components of the sums");
    std::fs::remove_file(beside(&kept.paths[2])).expect("sums");
    assert!(matches!(kept.load(&options, &[kept.folder.path().join("2.shares.jsonl")]), Err(SharesError::Sums(_))));
}

/// Sums of parts called `part.1` and `part.2` would both be `part.sums.safetensors`.
#[test]
fn totals_are_kept_under_names_that_tell_their_sums_apart() {
    let options = options();
    let kept = Kept::new(&options);
    let totals = kept.load(&options, &kept.paths[..1]).expect("a part");
    for name in ["part.1", "part.jsonl", "part.shares.json", "shares.jsonl"] {
        let path = kept.folder.path().join(name);
        let saved = totals.save(&kept.planted.description, &kept.given, &options, &path);
        assert!(matches!(saved, Err(SharesError::Name { .. })), "{name}");
        assert!(matches!(kept.load(&options, &[path]), Err(SharesError::Name { .. })), "{name}");
    }
    assert_eq!(std::fs::read_dir(kept.folder.path()).expect("a folder").count(), 6, "nothing was written");
}

#[test]
fn a_copy_of_a_part_does_not_count_twice() {
    let options = options();
    let kept = Kept::new(&options);
    let copy = kept.folder.path().join("copy.shares.jsonl");
    std::fs::copy(&kept.paths[0], &copy).expect("writable");
    std::fs::copy(kept.paths[0].with_extension("sums.safetensors"), copy.with_extension("sums.safetensors")).expect("writable");
    match kept.load(&options, &[&kept.paths[..], std::slice::from_ref(&copy)].concat()) {
        Err(SharesError::Twice { path, other }) => assert_eq!((path, &other), (copy, &kept.paths[0])),
        other => panic!("{other:?}"),
    }
}

#[test]
fn broken_files_of_totals_are_refused_with_their_path() {
    let kept = Kept::new(&options());
    kept.refused(|text| text[..text.len() / 2].to_owned(), "no totals of an explanation");
    kept.refused(|text| text.lines().next().expect("a line").to_owned(), "not three lines");
    kept.refused(|text| format!("{text}{{}}\n"), "not three lines");
    kept.refused(|_| String::new(), "not three lines");
    kept.refused(|text| text.replacen("crosslens-shares/2", "crosslens-shares/1", 1), "the schema crosslens-shares/1");
    kept.refused(|text| text.replacen("\"schema\"", "\"shema\"", 1), "unknown field `shema`");
    kept.refused(|text| text.replacen("\"n_sentences\":31", "\"n_sentences\":18446744073709551615", 1), "more than 2^53");
    kept.refused(|text| text.replace("\"n_pieces\":9", "\"n_pieces\":99"), "what was counted");
    assert!(kept.load(&options(), &kept.paths).is_ok(), "all is as it was");
}
