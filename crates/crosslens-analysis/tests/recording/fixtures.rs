//! Recordings and dumps to test with, and tools to break them.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};

use crosslens_analysis::{
    Consumed, Description, Existing, GridBias, Linear, Readout, Recorded, Recording, RecordingError, RecordingWriter, RelativeBias,
    ScoreMap, Side, Site, SiteKind, Stats, Stream, Visible, Words,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::allocation::largest_of;

/// More than any small broken file may make a reader ask for at once.
pub(crate) const LARGE: usize = 1 << 20;

/// Numbers drawn from a seed (splitmix64).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Any finite numbers, zeros and subnormal ones among them.
    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        let any = |bits: u64| Some(f32::from_bits(bits as u32)).filter(|x| x.is_finite()).unwrap_or(-0.0);
        (0..n).map(|_| any(self.next())).collect()
    }

    fn tokens(&mut self, n: usize, count: u32) -> Vec<u32> {
        (0..n).map(|_| self.below(count as usize) as u32).collect()
    }

    pub(crate) fn linear(&mut self, d_in: usize, d_out: usize, has_bias: bool) -> Linear {
        Linear { d_in, d_out, weights: self.floats(d_in * d_out), bias: self.floats(if has_bias { d_out } else { 0 }) }
    }

    fn words(&mut self) -> Words {
        let count = 1 + self.below(9) as u32;
        let names = (0..self.below(count as usize + 1)).map(|number| format!("wörd \"{number}\"\n")).collect();
        Words { count, names, start: self.flip().then(|| count - 1), end: self.flip().then(|| count - 1) }
    }

    fn site(&mut self, streams: &[Stream]) -> Site {
        let (query, key) = (self.below(streams.len()), self.below(streams.len()));
        let kind = match (streams[query].side, streams[key].side) {
            (Side::Target, Side::Source) => SiteKind::Cross,
            (Side::Source, Side::Source) => SiteKind::EncoderSelf,
            (Side::Target, Side::Target) => SiteKind::DecoderSelf,
            (Side::Source, Side::Target) => return self.site(streams),
        };
        let (d_query, d_key, d_head) = (streams[query].d, streams[key].d, 1 + self.below(3));
        let scale = self.floats(1)[0];
        let map = match self.below(5) {
            0 if d_query == d_key => ScoreMap::Dot { scale: 1.0 },
            1 if d_query == d_key => ScoreMap::Dot { scale },
            2 => ScoreMap::Bilinear { query: self.linear(d_query, d_key, false) },
            3 => ScoreMap::Additive {
                query: self.linear(d_query, d_head, false),
                key: {
                    let has_bias = self.flip();
                    self.linear(d_key, d_head, has_bias)
                },
                vector: self.floats(d_head),
            },
            _ => {
                let has_bias = self.flip();
                let n_distances = 1 + self.below(4);
                let position_bias = match self.below(4) {
                    0 => Some(RelativeBias { lowest: -3, values: self.floats(n_distances) }.into()),
                    1 => Some(GridBias { rows: 1, columns: 2, values: self.floats(6) }.into()),
                    _ => None,
                };
                ScoreMap::Projected {
                    query: self.linear(d_query, d_head, has_bias),
                    key: self.linear(d_key, d_head, true),
                    scale,
                    position_bias,
                }
            }
        };
        let visible = if self.flip() { Visible::All } else { Visible::Causal };
        let has_bias = self.flip();
        let value = self.flip().then(|| self.linear(d_key, 2, has_bias));
        Site { kind, layer: self.below(3), head: self.below(3), query, key, map, visible, value }
    }

    /// Any description.
    pub(crate) fn description(&mut self) -> Description {
        let sides = [Side::Source, Side::Target, Side::Target];
        let streams: Vec<Stream> = ["encoder", "decoder", "a \"näme\"/.."]
            .into_iter()
            .zip(sides)
            .take(1 + self.below(3))
            .map(|(name, side)| {
                let consumed = if self.flip() { Consumed::Current } else { Consumed::Previous };
                Stream { name: name.to_owned(), side, consumed, d: 1 + self.below(3) }
            })
            .collect();
        let sites = (0..self.below(5)).map(|_| self.site(&streams)).collect();
        let readout = self.flip().then(|| Readout { map: self.linear(5, 4, true), d_state: 2, d_context: 3 });
        let (source, target) = (self.words(), self.words());
        Description { model: "any\tmodel".into(), model_hash: format!("{:x}", self.next()), source, target, streams, sites, readout }
    }

    /// Any sentence of a description.
    pub(crate) fn sentence(&mut self, description: &Description) -> Recorded {
        let (n_source, n_target) = (1 + self.below(4), 1 + self.below(4));
        let steps = |stream: usize| if description.streams[stream].side == Side::Source { n_source } else { n_target };
        let states = (0..description.streams.len()).map(|stream| self.floats(steps(stream) * description.streams[stream].d)).collect();
        let mut attention = Vec::new();
        if self.flip() {
            attention = description.sites.iter().map(|site| self.floats(steps(site.query) * steps(site.key))).collect();
        }
        let n_predicted = if self.flip() { n_target } else { 0 };
        Recorded {
            number: self.next(),
            source: self.tokens(n_source, description.source.count),
            signal: None,
            fed: self.tokens(n_target, description.target.count),
            predicted: self.tokens(n_predicted, description.target.count),
            target: self.flip().then(|| self.tokens(n_target, description.target.count)),
            loss: self.flip().then(|| self.below(1000) as f64 / 7.0),
            states,
            attention,
        }
    }
}

/// Two streams, one projected head, five words.
pub(crate) fn small_description() -> Description {
    let mut draw = Draw(1);
    let words = Words { count: 5, names: vec!["a".into(), "b".into()], start: None, end: Some(4) };
    let stream = |name: &str, side| Stream { name: name.into(), side, consumed: Consumed::Current, d: 2 };
    let map = ScoreMap::Projected { query: draw.linear(2, 3, true), key: draw.linear(2, 3, false), scale: 0.5, position_bias: None };
    Description {
        model: "small".into(),
        model_hash: "00ff".into(),
        source: words.clone(),
        target: words,
        streams: vec![stream("encoder", Side::Source), stream("decoder", Side::Target)],
        sites: vec![Site { kind: SiteKind::Cross, layer: 0, head: 0, query: 1, key: 0, map, visible: Visible::All, value: None }],
        readout: None,
    }
}

/// Sentence `number`: two source tokens, one target token, everything known.
pub(crate) fn small_sentence(number: u64) -> Recorded {
    let x = number as f32;
    Recorded {
        number,
        source: vec![number as u32 % 4, 4],
        signal: None,
        fed: vec![3],
        predicted: vec![4],
        target: Some(vec![4]),
        loss: Some(0.25),
        states: vec![vec![x, 1.0, 2.0, 3.0], vec![4.0, x]],
        attention: vec![vec![0.75, 0.25]],
    }
}

/// A recording of four small sentences in two shards, to be broken.
pub(crate) struct Small {
    pub(crate) folder: TempDir,
}

impl Small {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let writer = RecordingWriter::create(folder.path().join("recording"), &small_description(), Existing::Refuse);
        let mut writer = writer.expect("a new recording").with_shard_bytes(100);
        writer.add(&(0..4).map(small_sentence).collect::<Vec<_>>()).expect("sentences that fit");
        writer.finish().expect("a written recording");
        let small = Self { folder };
        assert!(small.file("shard-00001.safetensors").exists());
        small
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("recording")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Changes the manifest.
    pub(crate) fn edit_manifest(&self, edit: impl FnOnce(&mut Value)) {
        let path = self.file("recording.json");
        let mut manifest: Value = serde_json::from_slice(&read(&path)).expect("a manifest");
        edit(&mut manifest);
        write(&path, manifest.to_string().as_bytes());
    }

    /// Changes the header of a safetensors file and leaves its numbers.
    pub(crate) fn edit_header(&self, name: &str, edit: impl FnOnce(&mut Value)) {
        edit_header(&self.file(name), edit);
    }

    /// Changes the numbers of one array.
    pub(crate) fn edit_numbers(&self, name: &str, array: &str, edit: impl FnOnce(&mut [u8])) {
        edit_numbers(&self.file(name), array, edit);
    }

    /// Asserts that the recording is refused with an error that names this file and holds these words.
    pub(crate) fn refused(&self, file: &str, words: &[&str]) {
        refused(&self.path(), &self.file(file), words);
    }
}

/// Opens a recording and reads all of it.
pub(crate) fn read_all(path: &Path) -> Result<Vec<Recorded>, RecordingError> {
    let recording = Recording::open(path)?;
    recording.read(0..recording.len())
}

/// Asserts that a path is refused, without a panic or much memory, with an error that names `file` and holds these words.
pub(crate) fn refused(path: &Path, file: &Path, words: &[&str]) {
    let (result, largest) = largest_of(|| read_all(path));
    let error = result.expect_err("a broken file");
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message += &format!(": {error}");
        cause = error.source();
    }
    let file = file.display().to_string();
    for word in words.iter().copied().chain([file.as_str()]) {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
    assert!(!message.ends_with('.'), "{message}");
    assert!(largest < LARGE, "{largest} bytes at once for: {message}");
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file that is there")
}

pub(crate) fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("a file that can be written");
}

/// Cuts the last bytes off a file.
pub(crate) fn cut(path: &Path, n_bytes: usize) {
    let bytes = read(path);
    write(path, &bytes[..bytes.len() - n_bytes]);
}

fn header(bytes: &[u8]) -> (String, usize) {
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    (String::from_utf8(bytes[8..8 + length].to_vec()).expect("text"), 8 + length)
}

pub(crate) fn edit_header_text(path: &Path, edit: impl FnOnce(String) -> String) {
    let bytes = read(path);
    let (text, data) = header(&bytes);
    let text = edit(text);
    write(path, &[&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &bytes[data..]].concat());
}

/// Changes the header of a safetensors file and leaves its numbers.
fn edit_header(path: &Path, edit: impl FnOnce(&mut Value)) {
    edit_header_text(path, |text| {
        let mut header: Value = serde_json::from_str(&text).expect("a header");
        edit(&mut header);
        header.to_string()
    });
}

/// Changes the numbers of one array.
fn edit_numbers(path: &Path, array: &str, edit: impl FnOnce(&mut [u8])) {
    let mut bytes = read(path);
    let (text, data) = header(&bytes);
    let header: Value = serde_json::from_str(&text).expect("a header");
    let place = |end: usize| data + header[array]["data_offsets"][end].as_u64().expect("an offset") as usize;
    edit(&mut bytes[place(0)..place(1)]);
    write(path, &bytes);
}

/// The sums of four sentences of the small model: the encoder reads `number 4`, the decoder `3 3`.
pub(crate) fn small_stats() -> Stats {
    let mut stats = Stats::new(&small_description());
    for number in 0..4 {
        let x = number as f32;
        stats.streams[0].sums.add(&[number, 4], &[x, 1.0, 2.0, -0.0]);
        stats.streams[1].sums.add(&[3, 3], &[4.0, x, 0.5, x]);
    }
    stats
}

/// Those sums in a file, to be broken.
pub(crate) struct StatsFile {
    folder: TempDir,
}

impl StatsFile {
    pub(crate) fn new() -> Self {
        let file = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        small_stats().save(&file.path()).expect("a written file");
        file
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("small.stats.safetensors")
    }

    pub(crate) fn edit_header(&self, edit: impl FnOnce(&mut Value)) {
        edit_header(&self.path(), edit);
    }

    pub(crate) fn edit_numbers(&self, array: &str, edit: impl FnOnce(&mut [u8])) {
        edit_numbers(&self.path(), array, edit);
    }
}

/// One array of a dump.
#[derive(Clone, Debug)]
pub(crate) struct Dumped {
    pub(crate) name: &'static str,
    /// As in npy headers.
    pub(crate) descr: &'static str,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn f32s(name: &'static str, shape: &[u64], numbers: &[f32]) -> Dumped {
    Dumped { name, descr: "<f4", shape: shape.to_vec(), bytes: numbers.iter().flat_map(|x| x.to_le_bytes()).collect() }
}

pub(crate) fn f64s(name: &'static str, shape: &[u64], numbers: &[f64]) -> Dumped {
    Dumped { name, descr: "<f8", shape: shape.to_vec(), bytes: numbers.iter().flat_map(|x| x.to_le_bytes()).collect() }
}

pub(crate) fn i64s(name: &'static str, shape: &[u64], numbers: &[i64]) -> Dumped {
    Dumped { name, descr: "<i8", shape: shape.to_vec(), bytes: numbers.iter().flat_map(|x| x.to_le_bytes()).collect() }
}

/// A truth value as NumPy writes it.
pub(crate) fn boolean(name: &'static str, value: bool) -> Dumped {
    Dumped { name, descr: "|b1", shape: Vec::new(), bytes: vec![value.into()] }
}

/// What a dump says of itself.
pub(crate) fn about(json: &str) -> Dumped {
    Dumped { name: "about", descr: "|u1", shape: vec![json.len() as u64], bytes: json.as_bytes().to_vec() }
}

/// Two sentences of 2 and 1 tokens, whose keys and queries are the same tokens.
pub(crate) fn small_self_dump() -> Vec<Dumped> {
    let nan = f32::NAN;
    vec![
        f32s("key_states", &[2, 2, 2], &[1., 2., 3., 4., 5., 6., nan, nan]),
        f32s("query_states", &[2, 3, 2], &[7., 8., 9., 10., nan, nan, 11., 12., nan, nan, nan, nan]),
        i64s("key_tokens", &[2, 2], &[3, 1, 2, -100]),
        i64s("query_tokens", &[2, 3], &[3, 1, -100, 2, -100, -100]),
        i64s("key_lengths", &[2], &[2, 1]),
        i64s("query_lengths", &[2], &[2, 1]),
    ]
}

/// Two sentences of 2 and 1 keys, 1 and 2 queries. Padding holds what must not be looked at.
pub(crate) fn small_dump() -> Vec<Dumped> {
    let nan = f32::NAN;
    vec![
        f32s("key_states", &[2, 2, 2], &[1., 2., 3., 4., 5., 6., nan, f32::INFINITY]),
        f32s("query_states", &[2, 2, 2], &[7., 8., nan, nan, 9., 10., 11., 12.]),
        i64s("key_tokens", &[2, 2], &[3, 5, 4, -100]),
        i64s("query_tokens", &[2, 2], &[1, i64::MAX, 2, 6]),
        i64s("key_lengths", &[2], &[2, 1]),
        i64s("query_lengths", &[2], &[1, 2]),
    ]
}

/// What `small_dump` says.
pub(crate) fn small_dumped() -> [Recorded; 2] {
    let first = Recorded { source: vec![3, 5], fed: vec![1], states: vec![vec![1., 2., 3., 4.], vec![7., 8.]], ..Recorded::default() };
    let second = Recorded { source: vec![4], fed: vec![2, 6], states: vec![vec![5., 6.], vec![9., 10., 11., 12.]], ..Recorded::default() };
    [first, Recorded { number: 1, ..second }]
}

/// The bytes of an npy file.
pub(crate) fn npy(array: &Dumped, is_fortran: bool) -> Vec<u8> {
    let shape: String = array.shape.iter().map(|size| format!("{size}, ")).collect();
    let order = if is_fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': ({shape}), }}\n", array.descr);
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &array.bytes].concat()
}

/// A dump in a folder of its own.
pub(crate) struct DumpFile {
    folder: TempDir,
    name: &'static str,
}

impl DumpFile {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    /// A file with any content.
    pub(crate) fn of(name: &'static str, bytes: &[u8]) -> Self {
        let dump = Self { folder: tempfile::tempdir().expect("a temporary folder"), name };
        write(&dump.path(), bytes);
        dump
    }

    /// A `.npz` file, deflated as by `savez_compressed` or stored as by `savez`.
    pub(crate) fn npz(arrays: &[Dumped], method: zip::CompressionMethod) -> Self {
        let files: Vec<_> = arrays.iter().map(|array| (format!("{}.npy", array.name), npy(array, false))).collect();
        Self::zip(&files, method)
    }

    pub(crate) fn zip(files: &[(String, Vec<u8>)], method: zip::CompressionMethod) -> Self {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in files {
            let options = zip::write::SimpleFileOptions::default().compression_method(method);
            archive.start_file(name, options).expect("a new file");
            archive.write_all(bytes).expect("memory");
        }
        Self::of("dump.npz", &archive.finish().expect("memory").into_inner())
    }

    /// A `.safetensors` file.
    pub(crate) fn safetensors(arrays: &[Dumped]) -> Self {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for array in arrays {
            let dtype = match array.descr {
                "<f4" => "F32",
                "<f8" => "F64",
                "<i8" => "I64",
                "|u1" => "U8",
                "|b1" => "BOOL",
                other => other,
            };
            let offsets = [data.len(), data.len() + array.bytes.len()];
            header.insert(array.name.into(), serde_json::json!({ "dtype": dtype, "shape": array.shape, "data_offsets": offsets }));
            data.extend(&array.bytes);
        }
        let header = Value::Object(header).to_string();
        Self::of("dump.safetensors", &[&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat())
    }

    pub(crate) fn refused(&self, words: &[&str]) {
        refused(&self.path(), &self.path(), words);
    }
}
