//! The seeds of the fuzz targets, through the same functions.

use std::path::{Path, PathBuf};

use crosslens_analysis::corpus::CorpusError;
use crosslens_analysis::{Recording, SiteKind};
use proptest::prelude::*;
use zip::CompressionMethod::{Deflated, Stored};

use crate::fixtures::{DumpFile, Dumped, Small, StatsFile, edit_header_text, f32s, i64s, read, read_all, small_dump, small_dumped, write};

#[expect(unreachable_pub, reason = "public in the crate of the fuzz targets")]
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

/// What a target of a corpus is.
type CorpusTarget = fn(&[u8]) -> Option<Result<usize, CorpusError>>;

/// Those there are, by name.
const CORPORA: [(&str, CorpusTarget); 5] = [
    ("corpus_tsv", targets::corpus_tsv),
    ("corpus_jsonl", targets::corpus_jsonl),
    ("corpus_po", targets::corpus_po),
    ("corpus_mo", targets::corpus_mo),
    ("corpus_aligned", targets::corpus_aligned),
];

fn seeds(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target)
}

/// Every seed of a target by name, sorted.
fn files(target: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(seeds(target)).expect("a folder of seeds");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a seed").path()).collect();
    files.sort();
    files
}

/// What a target came to, with its error in words.
fn said<E: std::fmt::Display>(result: Option<Result<usize, E>>) -> Option<Result<usize, String>> {
    result.map(|result| result.map_err(|error| error.to_string()))
}

/// Seeds whose name begins with `good` are read, the others refused; none panics.
#[test]
fn seeds_are_read_or_refused() {
    let npz = files("npz").into_iter().map(|file| (said(targets::npz(&read(&file))), file));
    let recordings =
        files("recording_manifest_and_shard").into_iter().map(|file| (said(targets::recording_manifest_and_shard(&read(&file))), file));
    let stats = files("stats").into_iter().map(|file| (said(targets::stats(&read(&file))), file));
    let corpora =
        CORPORA.into_iter().flat_map(|(name, target)| files(name).into_iter().map(move |file| (said(target(&read(&file))), file)));
    let results: Vec<_> = npz.chain(recordings).chain(stats).chain(corpora).collect();
    assert!(results.len() >= 46, "{} seeds", results.len());
    for (result, file) in results {
        let is_good = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("good"));
        assert_eq!(matches!(result, Some(Ok(n)) if n > 0), is_good, "{}: {result:?}", file.display());
    }
}

#[test]
fn seeds_are_small() {
    let all = files("npz").into_iter().chain(files("recording_manifest_and_shard")).chain(files("stats"));
    let all = all.chain(CORPORA.into_iter().flat_map(|(name, _)| files(name)));
    assert!(all.map(|file| read(&file).len()).sum::<usize>() < 50_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A seed with some of its bytes changed, its end cut off or another seed behind it: read or refused, never a panic.
    #[test]
    fn no_corpus_makes_its_reader_panic(
        which in 0..CORPORA.len(),
        seed: prop::sample::Index,
        other: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        end: prop::sample::Index,
        is_joined: bool,
    ) {
        let (name, target) = CORPORA[which];
        let files = files(name);
        let mut bytes = read(&files[seed.index(files.len())]);
        if is_joined {
            bytes.extend(read(&files[other.index(files.len())]));
        }
        for (place, byte) in changes.into_iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        target(&bytes);
        bytes.truncate(end.index(bytes.len() + 1));
        target(&bytes);
    }

    /// Bytes that nobody made.
    #[test]
    fn no_bytes_make_a_reader_of_corpora_panic(bytes: Vec<u8>) {
        CORPORA.iter().for_each(|(_, target)| drop(target(&bytes)));
    }
}

/// Made by the program in `docs/format.md` with NumPy 2.4.6.
#[test]
fn what_numpy_wrote_is_read() {
    let path = seeds("npz").join("good-numpy.npz");
    let sentences = read_all(&path).expect("a dump");
    assert_eq!(sentences.iter().map(|sentence| &sentence.source[..]).collect::<Vec<_>>(), [&[5, 6, 7, 1][..], &[8, 1]]);
    assert_eq!(sentences.iter().map(|sentence| &sentence.fed[..]).collect::<Vec<_>>(), [&[2, 3, 4][..], &[2, 4]]);
    // numpy.random.default_rng(0).normal() is 0.12573022.
    assert_eq!(sentences[0].states[0][0], 0.125_730_22);
    assert_eq!(sentences[1].states.iter().map(Vec::len).collect::<Vec<_>>(), [16, 16]);
    assert_eq!(Recording::open(&path).expect("a dump").description().source.count, 9);
}

/// Of a side that attends to itself; `about` as `docs/format.md` writes it, with NumPy 2.4.6.
#[test]
fn what_numpy_wrote_of_itself_is_read() {
    let recording = Recording::open(seeds("npz").join("good-numpy-about.npz")).expect("a dump");
    let description = recording.description();
    let [site] = &description.sites[..] else { panic!("{:?}", description.sites) };
    assert_eq!((site.kind, site.layer, site.head), (SiteKind::EncoderSelf, 3, 5));
    let sentences = recording.read(0..2).expect("two sentences");
    let names: Vec<_> = sentences[0].source.iter().map(|&token| description.source.name(token)).collect();
    assert_eq!((names, description.source.end), (vec!["a".into(), "cat".into(), "</s>".into()], Some(0)));
    assert_eq!((&sentences[1].source[..], &sentences[1].fed[..]), (&[2, 0][..], &[2, 0][..]));
}

/// A recording of one shard, to be broken.
fn one_shard() -> Small {
    let small = Small::new();
    small.edit_manifest(|manifest| {
        manifest["sentences"] = 2.into();
        manifest["shards"] = vec![manifest["shards"][0].clone()].into();
    });
    small
}

/// One input of `recording_manifest_and_shard`.
fn bundle(small: &Small) -> Vec<u8> {
    let [manifest, maps, shard] = ["recording.json", "maps.safetensors", "shard-00000.safetensors"].map(|name| read(&small.file(name)));
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).expect("a small file").to_le_bytes();
    [&length(&manifest)[..], &length(&maps), &manifest, &maps, &shard].concat()
}

/// Writes the seeds, but for what NumPy wrote, if `CROSSLENS_WRITE_SEEDS` is set. Not an ignored test: those run together with the others.
#[test]
fn write_seeds_where_that_is_asked_for() {
    if std::env::var_os("CROSSLENS_WRITE_SEEDS").is_none() {
        return;
    }
    let shard = "shard-00000.safetensors";
    let save = |name: &str, bytes: &[u8]| write(&seeds("recording_manifest_and_shard").join(name), bytes);
    let whole = bundle(&one_shard());
    save("good", &whole);
    save("truncated", &whole[..whole.len() - 9]);
    let broken = |name: &str, breaking: &dyn Fn(&Small)| {
        let small = one_shard();
        breaking(&small);
        save(name, &bundle(&small));
    };
    let in_header = |small: &Small, old: &str, new: &str| edit_header_text(&small.file(shard), |text| text.replacen(old, new, 1));
    broken("lengths-that-lie", &|small| small.edit_numbers(shard, "source_lengths", |bytes| bytes[0] = 9));
    broken("nan", &|small| small.edit_numbers(shard, "states.encoder", |bytes| bytes.fill(0xff)));
    broken("unknown-token", &|small| small.edit_numbers(shard, "source", |bytes| bytes[..4].copy_from_slice(&5u32.to_le_bytes())));
    broken("huge-shape", &|small| in_header(small, "[4,2]", "[4611686018427387904,2]"));
    broken("wrong-dtype", &|small| in_header(small, r#""source":{"dtype":"U32""#, r#""source":{"dtype":"F32""#));
    broken("overlapping-offsets", &|small| in_header(small, "[48,56]", "[56,64]"));
    broken("newer-schema", &|small| small.edit_manifest(|manifest| manifest["schema"] = "crosslens-recording/2".into()));
    broken("path-traversal", &|small| small.edit_manifest(|manifest| manifest["shards"][0]["file"] = "../shard-00000.safetensors".into()));
    broken("zero-sentences", &|small| {
        small.edit_manifest(|manifest| {
            manifest["sentences"] = 0.into();
            manifest["shards"] = serde_json::Value::Array(Vec::new());
        });
    });

    write_seeds_of_stats();
    let save = |name: &str, dump: &DumpFile| write(&seeds("npz").join(name), &read(&dump.path()));
    save("good-stored.npz", &DumpFile::npz(&small_dump(), Stored));
    let mut arrays = small_dump();
    arrays.push(i64s("predicted_tokens", &[2, 2], &[1, 0, 2, 3]));
    arrays.push(f32s("query_weights", &[1, 2, 1], &[1.0, 2.0]));
    arrays.push(f32s("key_weights", &[1, 2, 1], &[1.0, 2.0]));
    arrays.push(f32s("attention", &[2, 1, 2, 2], &[0.5; 8]));
    let projected = DumpFile::npz(&arrays, Deflated);
    assert_eq!(read_all(&projected.path()).expect("a dump").len(), small_dumped().len());
    save("good-projected.npz", &projected);
    let bytes = read(&projected.path());
    save("truncated.npz", &DumpFile::of("dump.npz", &bytes[..bytes.len() - 30]));
    let huge = Dumped { shape: vec![1 << 60, 4], ..small_dump()[2].clone() };
    save("huge-shape.npz", &DumpFile::npz(&[huge], Stored));
    save("no-npy.npz", &DumpFile::zip(&[("key_states.npy".into(), b"{'descr'".to_vec())], Deflated));
}

fn write_seeds_of_stats() {
    let save = |name: &str, bytes: &[u8]| write(&seeds("stats").join(name), bytes);
    let whole = read(&StatsFile::new().path());
    save("good", &whole);
    save("truncated", &whole[..whole.len() - 9]);
    let broken = |name: &str, breaking: &dyn Fn(&StatsFile)| {
        let file = StatsFile::new();
        breaking(&file);
        save(name, &read(&file.path()));
    };
    broken("lengths-that-lie", &|file| file.edit_numbers("streams.0.c_lengths", |bytes| bytes[0] = 9));
    broken("counts-that-lie", &|file| file.edit_numbers("streams.1.m", |bytes| bytes.fill(0xff)));
    broken("nan", &|file| file.edit_numbers("streams.0.by_token", |bytes| bytes.fill(0xff)));
    broken("huge-shape", &|file| edit_header_text(&file.path(), |text| text.replacen("[5,2]", "[4611686018427387904,2]", 1)));
}
