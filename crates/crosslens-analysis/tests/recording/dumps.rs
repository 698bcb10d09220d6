//! Dumps of other frameworks are read as they are documented.

use crosslens_analysis::explain::{Options, explain};
use crosslens_analysis::{Mismatch, Recorded, Recording, RelativeBias, ScoreMap, Side, SiteKind, Stats, Visible, Words};
use zip::CompressionMethod::{Deflated, Stored};

use crate::fixtures::{
    DumpFile, Dumped, about, boolean, edit_header_text, f32s, f64s, i64s, npy, read_all, small_dump, small_dumped, small_self_dump,
};

fn map_of(arrays: &[Dumped]) -> Vec<ScoreMap> {
    let dump = DumpFile::safetensors(&[small_dump(), arrays.to_vec()].concat());
    let recording = Recording::open(dump.path()).expect("a dump");
    recording.description().sites.iter().map(|site| site.map.clone()).collect()
}

#[test]
fn all_containers_say_the_same_and_padding_says_nothing() {
    for dump in [DumpFile::npz(&small_dump(), Stored), DumpFile::npz(&small_dump(), Deflated), DumpFile::safetensors(&small_dump())] {
        let recording = Recording::open(dump.path()).expect("a dump");
        assert_eq!(recording.len(), 2);
        assert_eq!(recording.read(0..2).expect("two sentences"), small_dumped());
        assert_eq!(recording.read(1..2).expect("one sentence"), small_dumped()[1..]);

        let description = recording.description();
        assert_eq!((description.source.count, description.target.count), (6, 7));
        let streams: Vec<_> = description.streams.iter().map(|stream| (stream.name.as_str(), stream.side, stream.d)).collect();
        assert_eq!(streams, [("key", Side::Source, 2), ("query", Side::Target, 2)]);
        let [site] = &description.sites[..] else { panic!("{:?}", description.sites) };
        assert_eq!((site.kind, site.query, site.key, &site.map), (SiteKind::Cross, 1, 0, &ScoreMap::Dot { scale: 1.0 }));
    }
}

#[test]
fn targets_predictions_and_attention_lose_their_padding() {
    let nan = f32::NAN;
    let mut arrays = small_dump();
    arrays.push(i64s("target_tokens", &[2, 2], &[1, -1, 2, 3]));
    arrays.push(i64s("predicted_tokens", &[2, 2], &[9, -1, 8, 7]));
    arrays.push(f32s("attention", &[2, 1, 2, 2], &[0.25, 0.75, nan, nan, 1.0, nan, 1.0, nan]));
    for dump in [DumpFile::npz(&arrays, Deflated), DumpFile::safetensors(&arrays)] {
        let [first, second] = small_dumped();
        let first = Recorded { predicted: vec![9], target: Some(vec![1]), attention: vec![vec![0.25, 0.75]], ..first };
        let second = Recorded { predicted: vec![8, 7], target: Some(vec![2, 3]), attention: vec![vec![1.0, 1.0]], ..second };
        assert_eq!(read_all(&dump.path()).expect("a dump"), [first, second]);
        assert_eq!(Recording::open(dump.path()).expect("a dump").description().target.count, 10);
    }
}

#[test]
fn other_types_of_numbers_are_converted() {
    let numbers = [1., 2., 3., 4., 5., 6., f64::NAN, f64::NAN];
    let halves = [0x4700u16, 0x4800, 0x7e00, 0x7e00, 0x4880, 0x4900, 0x4980, 0x4a00];
    let mut arrays = small_dump();
    arrays[0] = f64s("key_states", &[2, 2, 2], &numbers);
    arrays[1] = Dumped { descr: "<f2", bytes: halves.iter().flat_map(|x| x.to_le_bytes()).collect(), ..arrays[1].clone() };
    arrays[4] = Dumped { descr: "|u1", bytes: vec![2, 1], ..arrays[4].clone() };
    assert_eq!(read_all(&DumpFile::npz(&arrays, Deflated).path()).expect("a dump"), small_dumped());
}

#[test]
fn a_transposed_array_of_numpy_is_turned_back() {
    let mut files: Vec<_> = small_dump().iter().map(|array| (format!("{}.npy", array.name), npy(array, false))).collect();
    // [[3, 5], [4, −100]] by columns.
    files[2].1 = npy(&i64s("key_tokens", &[2, 2], &[3, 4, 5, -100]), true);
    assert_eq!(read_all(&DumpFile::zip(&files, Deflated).path()).expect("a dump"), small_dumped());
}

#[test]
fn a_scale_makes_the_dot_product_a_scaled_one() {
    for scale in [f64s("scale", &[], &[0.5]), f32s("scale", &[1], &[0.5])] {
        assert_eq!(map_of(&[scale]), [ScoreMap::Dot { scale: 0.5 }]);
    }
    assert_eq!(map_of(&[i64s("scale", &[], &[2])]), [ScoreMap::Dot { scale: 2.0 }]);
}

/// Two heads of one dimension: each takes its own slice.
#[test]
fn projected_heads_are_sites() {
    let maps = map_of(&[
        f32s("query_weights", &[2, 2, 1], &[1., 2., 3., 4.]),
        f32s("query_bias", &[2, 1], &[5., 6.]),
        f64s("key_weights", &[2, 2, 1], &[7., 8., 9., 10.]),
    ]);
    assert_eq!(maps.len(), 2);
    let ScoreMap::Projected { query, key, scale, position_bias: None } = &maps[1] else { panic!("{:?}", maps[1]) };
    assert_eq!((&query.weights[..], &query.bias[..], &key.weights[..], &key.bias[..]), (&[3., 4.][..], &[6.][..], &[9., 10.][..], &[][..]));
    assert_eq!((query.d_in, query.d_out, *scale), (2, 1, 1.0));
}

#[test]
fn attention_of_several_heads_goes_to_their_sites() {
    let mut arrays = small_dump();
    arrays.push(f32s("query_weights", &[2, 2, 1], &[1., 2., 3., 4.]));
    arrays.push(f32s("key_weights", &[2, 2, 1], &[1., 2., 3., 4.]));
    arrays.push(f32s("attention", &[2, 2, 2, 2], &(0..16).map(|x| x as f32).collect::<Vec<_>>()));
    let sentences = read_all(&DumpFile::npz(&arrays, Stored).path()).expect("a dump");
    assert_eq!(sentences[0].attention, [[0., 1.], [4., 5.]]);
    assert_eq!(sentences[1].attention, [[8., 10.], [12., 14.]]);
}

#[test]
fn additive_arrays_make_an_additive_score() {
    let maps = map_of(&[
        f32s("additive_query", &[2, 3], &[1., 2., 3., 4., 5., 6.]),
        f32s("additive_key", &[2, 3], &[0.; 6]),
        f32s("additive_bias", &[3], &[7., 8., 9.]),
        f32s("additive_vector", &[3], &[1., 1., 1.]),
    ]);
    let [ScoreMap::Additive { query, key, vector }] = &maps[..] else { panic!("{maps:?}") };
    assert_eq!((query.d_out, &query.bias[..], &key.bias[..], vector.len()), (3, &[][..], &[7., 8., 9.][..], 3));
}

#[test]
fn losses_and_causal_sight_may_come_along() {
    let mut arrays = small_dump();
    arrays.push(f64s("losses", &[2], &[0.75, f64::NAN]));
    arrays.push(i64s("causal", &[], &[1]));
    for dump in [DumpFile::npz(&arrays, Deflated), DumpFile::safetensors(&arrays)] {
        let recording = Recording::open(dump.path()).expect("a dump");
        assert_eq!(recording.description().sites[0].visible, Visible::Causal);
        let losses: Vec<_> = recording.read(0..2).expect("two sentences").iter().map(|sentence| sentence.loss).collect();
        assert_eq!(losses, [Some(0.75), None]);
        assert_eq!(recording.read(1..2).expect("one sentence")[0].loss, None);
    }
    arrays.truncate(small_dump().len());
    arrays.push(f64s("losses", &[2], &[f64::INFINITY, 0.5]));
    DumpFile::safetensors(&arrays).refused(&["sentence 0: `losses` holds a number that is not finite"]);
    arrays.pop();
    arrays.push(i64s("causal", &[1], &[0]));
    let recording = Recording::open(DumpFile::npz(&arrays, Stored).path()).expect("a dump");
    assert_eq!(recording.description().sites[0].visible, Visible::All);
}

#[test]
fn causal_sight_may_be_true_or_false() {
    for (value, visible) in [(true, Visible::Causal), (false, Visible::All)] {
        let arrays = [small_dump(), vec![boolean("causal", value)]].concat();
        for dump in [DumpFile::npz(&arrays, Deflated), DumpFile::safetensors(&arrays)] {
            assert_eq!(Recording::open(dump.path()).expect("a dump").description().sites[0].visible, visible);
        }
    }
    let mut arrays = small_dump();
    arrays[4] = Dumped { name: "key_lengths", descr: "|b1", shape: vec![2], bytes: vec![1, 1] };
    DumpFile::safetensors(&arrays).refused(&["`key_lengths`", "BOOL"]);
}

/// Parts of one corpus, dumped one by one, belong together whatever tokens occur in them; those of another model do not.
#[test]
fn sums_of_dumps_merge_where_they_are_of_one_model() {
    let weights = |first: f32| vec![f32s("query_weights", &[1, 2, 1], &[first, 2.]), f32s("key_weights", &[1, 2, 1], &[3., 4.])];
    let named = |end: u32| vec![about(&format!(r#"{{"layer": 1, "query": {{"end": {end}}}}}"#))];
    let other_tokens = |mut arrays: Vec<Dumped>| {
        arrays[2] = i64s("key_tokens", &[2, 2], &[8, 9, 8, 9]);
        arrays
    };
    let stats = |arrays: Vec<Dumped>| {
        let dump = DumpFile::npz(&arrays, Stored);
        let recording = Recording::open(dump.path()).expect("a dump");
        Stats::of(&recording, 1, &mut |_| ()).expect("two sentences")
    };
    let one = stats([small_dump(), weights(1.), named(9)].concat());
    let mut merged = one.clone();
    merged.merge(&stats([other_tokens(small_dump()), weights(1.), named(9)].concat())).expect("another part of the same model");
    assert_eq!((merged.streams[0].sums.n_states(), merged.model_hash.len()), (6, 16));
    let others = [
        [small_dump(), weights(1.5), named(9)].concat(),
        [small_dump(), weights(1.), named(8)].concat(),
        [small_dump(), weights(1.)].concat(),
        [small_dump(), weights(1.), named(9), vec![boolean("causal", true)]].concat(),
        [small_dump(), weights(1.), named(9), vec![f64s("scale", &[], &[0.5])]].concat(),
        small_dump(),
    ];
    for other in others {
        assert!(matches!(one.clone().merge(&stats(other)), Err(Mismatch::Model { .. })));
    }
    // Sums of before said nothing of the model.
    let unknown = Stats { model_hash: String::new(), ..one.clone() };
    assert!(one.clone().merge(&unknown).is_ok());
}

/// Two heads, three distances from −1: each head has its own row.
#[test]
fn a_bias_of_positions_belongs_to_projected_heads() {
    let weights = [f32s("query_weights", &[2, 2, 1], &[1.; 4]), f32s("key_weights", &[2, 2, 1], &[1.; 4])];
    let values = f32s("position_bias", &[2, 3], &[1., 2., 3., 4., 5., 6.]);
    let lowest = i64s("position_bias_lowest", &[], &[-1]);
    let maps = map_of(&[&weights[..], &[values.clone(), lowest.clone()]].concat());
    let bias = |head: usize| maps[head].position_bias().cloned().expect("a bias");
    assert_eq!(bias(0), RelativeBias { lowest: -1, values: vec![1., 2., 3.] }.into());
    assert_eq!((bias(1).at(1, 0), bias(1).at(1, 1), bias(1).at(0, 1), bias(1).at(0, 9)), (4., 5., 6., 6.));

    let refused = |arrays: &[Dumped], words: &[&str]| DumpFile::safetensors(&[small_dump(), arrays.to_vec()].concat()).refused(words);
    refused(&[&weights[..], std::slice::from_ref(&values)].concat(), &["no array `position_bias_lowest`"]);
    refused(&[&weights[..], std::slice::from_ref(&lowest)].concat(), &["no array `position_bias`"]);
    refused(&[values, lowest], &["no array `query_weights`"]);
}

/// Two heads of layer 3, six words on one side and seven on the other.
const ABOUT: &str = r#"{"kind": "cross", "layer": 3, "heads": [7, 2], "key": {"names": ["<eos>", "a", "b", "c", "d", "é \u00e8"], "end": 0},
    "query": {"names": ["</s>", "<s>", "A", "B", "C", "D", "E"], "start": 1, "end": 0}}"#;

fn assert_is_about(dump: &DumpFile) {
    let recording = Recording::open(dump.path()).expect("a dump");
    let description = recording.description();
    let sites: Vec<_> = description.sites.iter().map(|site| (site.kind, site.layer, site.head)).collect();
    assert_eq!(sites, [(SiteKind::Cross, 3, 7), (SiteKind::Cross, 3, 2)]);
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(description.source, Words { count: 6, names: names(&["<eos>", "a", "b", "c", "d", "é è"]), start: None, end: Some(0) });
    assert_eq!(
        description.target,
        Words { count: 7, names: names(&["</s>", "<s>", "A", "B", "C", "D", "E"]), start: Some(1), end: Some(0) }
    );
    let read = recording.read(0..2).expect("two sentences");
    assert_eq!(read, small_dumped());
    assert_eq!(description.target.name(read[1].fed[1]), "E");
}

#[test]
fn a_dump_may_say_where_its_heads_are_and_what_its_tokens_are_called() {
    let mut arrays = small_dump();
    arrays.push(f32s("query_weights", &[2, 2, 1], &[1., 2., 3., 4.]));
    arrays.push(f32s("key_weights", &[2, 2, 1], &[1., 2., 3., 4.]));
    let in_metadata = DumpFile::safetensors(&arrays);
    let text = serde_json::to_string(ABOUT).expect("text");
    edit_header_text(&in_metadata.path(), |header| header.replacen('{', &format!("{{\"__metadata__\":{{\"about\":{text}}},"), 1));
    assert_is_about(&in_metadata);
    arrays.push(about(ABOUT));
    assert_is_about(&DumpFile::npz(&arrays, Deflated));
    assert_is_about(&DumpFile::safetensors(&arrays));
}

#[test]
fn a_dump_that_says_little_of_itself_is_as_one_that_says_nothing() {
    let plain = Recording::open(DumpFile::npz(&small_dump(), Stored).path()).expect("a dump").description().clone();
    for text in ["{}", r#"{"kind": "cross", "layer": 0, "heads": [0], "key": {}, "query": {"names": []}}"#] {
        let mut arrays = small_dump();
        arrays.push(about(text));
        assert_eq!(Recording::open(DumpFile::npz(&arrays, Stored).path()).expect("a dump").description(), &plain, "{text}");
    }
    // A token that never occurs is a word all the same.
    let mut arrays = small_dump();
    arrays.push(about(r#"{"query": {"end": 9}}"#));
    let recording = Recording::open(DumpFile::npz(&arrays, Stored).path()).expect("a dump");
    assert_eq!((recording.description().target.count, recording.description().target.end), (10, Some(9)));
}

/// Both streams are of the side that asks itself; the other side has the same tokens and names.
#[test]
fn a_side_that_attends_to_itself_is_read_and_explained() {
    for (kind, name, side) in [(SiteKind::EncoderSelf, "encoder-self", Side::Source), (SiteKind::DecoderSelf, "decoder-self", Side::Target)]
    {
        let mut arrays = small_self_dump();
        arrays.push(about(&format!(r#"{{"kind": "{name}", "layer": 1, "query": {{"names": ["w", "x", "y", "z"]}}}}"#)));
        for dump in [DumpFile::npz(&arrays, Deflated), DumpFile::safetensors(&arrays)] {
            let recording = Recording::open(dump.path()).expect("a dump");
            let description = recording.description();
            assert_eq!(description.streams.iter().map(|stream| stream.side).collect::<Vec<_>>(), [side, side]);
            assert_eq!((description.sites[0].kind, description.sites[0].layer), (kind, 1));
            assert_eq!((&description.source, description.target.count), (&description.target, 4));
            let sentences = recording.read(0..2).expect("two sentences");
            assert_eq!(sentences.iter().map(|sentence| &sentence.source[..]).collect::<Vec<_>>(), [&[3, 1][..], &[2]]);
            assert_eq!(sentences.iter().map(|sentence| &sentence.fed[..]).collect::<Vec<_>>(), [&[3, 1][..], &[2]]);
            assert_eq!(sentences[1].states, [[5., 6.], [11., 12.]]);
            let report = explain(&recording, None, &Options { n_threads: 1, ..Options::default() }, &mut |_| ()).expect("a report").report;
            assert_eq!((report.sites[0].kind.as_str(), report.sites[0].layer), (name, 1));
            assert!(report.sites[0].shares.is_some());
        }
    }
}
