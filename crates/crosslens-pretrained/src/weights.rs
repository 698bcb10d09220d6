//! The tensors of a checkpoint by name, read one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use half::{bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use sha2::{Digest, Sha256};

use crate::device::Place;
use crate::drawn::draw;
use crate::fields::Fields;
use crate::layers::Table;
use crate::pickle::{self, PickleError};
use crate::{Device, PretrainedError};

/// Largest header of a safetensors file that is read.
const MAX_HEADER_BYTES: u64 = 32 << 20;
/// Bytes that are read and converted at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Numbers of two tensors that are compared at a time.
const COMPARED: usize = 1 << 18;

const SAFETENSORS: &str = "model.safetensors";
const SAFETENSORS_INDEX: &str = "model.safetensors.index.json";
const PICKLE: &str = "pytorch_model.bin";
const PICKLE_INDEX: &str = "pytorch_model.bin.index.json";

/// The tensors of a folder's checkpoint.
///
/// Only names and shapes are kept; numbers are read when they are asked for, so that weights do not lie in memory twice.
#[derive(Clone)]
pub(crate) struct Weights {
    folder: PathBuf,
    files: Arc<Vec<Stored>>,
    entries: Arc<BTreeMap<String, Entry>>,
    taken: BTreeSet<String>,
    /// Numbers are drawn with this seed instead of being read: an untrained model of the same shape.
    seed: Option<u64>,
    /// Where the maps that are read keep their numbers.
    pub(crate) place: Place,
    /// Taken when it is first asked for: that reads every number.
    hash: OnceLock<String>,
}

/// A file of weights, safetensors or pickled: in both, numbers are stored as they are.
struct Stored {
    path: PathBuf,
    /// Read by one at a time: there is one place to read from.
    file: Mutex<File>,
}

struct Entry {
    file: usize,
    shape: Vec<usize>,
    /// The type of its numbers and its first byte.
    place: (Dtype, u64),
}

impl Weights {
    /// Opens `model.safetensors` or its shards, else `pytorch_model.bin` or its shards.
    pub(crate) fn open(folder: &Path, device: &Device) -> Result<Self, PretrainedError> {
        let place = Place::open(device)?;
        let mut weights = Opening { folder, files: Vec::new(), entries: BTreeMap::new() };
        if folder.join(SAFETENSORS).exists() {
            weights.add_safetensors(&folder.join(SAFETENSORS))?;
        } else if folder.join(SAFETENSORS_INDEX).exists() {
            for path in shards(folder, SAFETENSORS_INDEX)? {
                weights.add_safetensors(&path)?;
            }
        } else if folder.join(PICKLE).exists() {
            weights.add_pickle(&folder.join(PICKLE))?;
        } else if folder.join(PICKLE_INDEX).exists() {
            for path in shards(folder, PICKLE_INDEX)? {
                weights.add_pickle(&path)?;
            }
        } else {
            let what = "holds no weights: there is no model.safetensors, no pytorch_model.bin and no index of shards of either in it";
            return Err(PretrainedError::NotAModel { path: folder.to_owned(), what });
        }
        let Opening { files, entries, .. } = weights;
        let (files, entries) = (Arc::new(files), Arc::new(entries));
        Ok(Self { folder: folder.to_owned(), files, entries, taken: BTreeSet::new(), seed: None, place, hash: OnceLock::new() })
    }

    /// The same tensors with numbers drawn at random.
    pub(crate) fn drawn(&self, seed: u64) -> Self {
        Self { seed: Some(seed), taken: BTreeSet::new(), hash: OnceLock::new(), ..self.clone() }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The first of these names that is there, else the first of them.
    pub(crate) fn first_of<'n>(&self, names: &[&'n str]) -> &'n str {
        names.iter().find(|name| self.has(name)).unwrap_or(&names[0])
    }

    /// Tells models apart: from the names, shapes and numbers of all tensors.
    pub(crate) fn hash(&self) -> Result<String, PretrainedError> {
        if let Some(hash) = self.hash.get() {
            return Ok(hash.clone());
        }
        let mut hash = Sha256::new();
        hash.update(format!("{:?}", self.seed));
        for (name, entry) in self.entries.iter() {
            hash.update(format!("{name}{:?}", entry.shape));
            if is_weight(entry.place.0) {
                let mut folded = Folded::default();
                self.files[entry.file].for_each_chunk(name, entry.place, entry.shape.iter().product(), |chunk| folded.take(chunk))?;
                folded.0.iter().for_each(|lane| hash.update(lane.to_le_bytes()));
            }
        }
        let hash = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(self.hash.get_or_init(|| hash).clone())
    }

    /// Whether any tensor's name begins so.
    pub(crate) fn has_below(&self, prefix: &str) -> bool {
        self.entries.range(prefix.to_owned()..).next().is_some_and(|(name, _)| name.starts_with(prefix))
    }

    /// The words of one side of a model whose sides share the table `shared`: a copy of its own that says the same is passed over, one that
    /// differs is read, as transformers does, which ties nothing that is stored twice with different values.
    pub(crate) fn copy_of(&mut self, shared: &str, words: &Arc<Table>, name: &str) -> Result<Arc<Table>, PretrainedError> {
        if name == shared || !self.has(name) {
            return Ok(words.clone());
        }
        // Drawn words are shared.
        if self.seed.is_some() || self.says_the_same(shared, name, &[words.rows(), words.d()])? {
            self.pass_over(name);
            return Ok(words.clone());
        }
        Ok(Arc::new(self.table(name, words.rows(), words.d())?))
    }

    /// Whether two tensors of one shape have the same numbers. They are read a piece at a time, not mapped: most rows of a table of words are
    /// never needed.
    fn says_the_same(&self, first: &str, second: &str, shape: &[usize]) -> Result<bool, PretrainedError> {
        let [(first_entry, first_file), (second_entry, second_file)] = [self.find(first, shape)?, self.find(second, shape)?];
        // Pickled files name one storage twice.
        if (first_entry.file, first_entry.place) == (second_entry.file, second_entry.place) {
            return Ok(true);
        }
        let count: usize = shape.iter().product();
        for from in (0..count).step_by(COMPARED) {
            let piece = |name: &str, entry: &Entry, stored: &Stored| {
                let (dtype, start) = entry.place;
                let mut numbers = Vec::new();
                let start = start + (from * dtype.bitsize() / 8) as u64;
                stored.for_each_chunk(name, (dtype, start), COMPARED.min(count - from), |chunk| numbers.extend_from_slice(chunk))?;
                Ok::<_, PretrainedError>(numbers)
            };
            if piece(first, first_entry, first_file)? != piece(second, second_entry, second_file)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Passes over a tensor that says nothing new, where it is there.
    pub(crate) fn pass_over(&mut self, name: &str) {
        if self.has(name) {
            self.taken.insert(name.to_owned());
        }
    }

    /// Fails if a tensor was never asked for.
    pub(crate) fn refuse_rest(&self) -> Result<(), PretrainedError> {
        match self.entries.keys().find(|name| !self.taken.contains(*name)) {
            Some(name) => Err(PretrainedError::ExtraTensor { path: self.folder.clone(), name: name.clone() }),
            None => Ok(()),
        }
    }

    /// All numbers of a tensor of this shape, as `f32`, row by row.
    pub(crate) fn read(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, PretrainedError> {
        let (entry, stored) = self.find(name, shape)?;
        let numbers = match self.seed {
            Some(seed) => draw(seed, name, shape),
            None => {
                let mut numbers = Vec::with_capacity(shape.iter().product());
                stored.for_each_chunk(name, entry.place, shape.iter().product(), |chunk| numbers.extend_from_slice(chunk))?;
                numbers
            }
        };
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(PretrainedError::NotFinite { path: stored.path.clone(), name: name.to_owned() });
        }
        self.taken.insert(name.to_owned());
        Ok(numbers)
    }

    /// The numbers `[d_out, d_in]` of a matrix that is stored as `[d_in, d_out]`.
    pub(crate) fn read_turned(&mut self, name: &str, [d_out, d_in]: [usize; 2]) -> Result<Vec<f32>, PretrainedError> {
        if let Some(seed) = self.seed {
            self.find(name, &[d_in, d_out])?;
            self.taken.insert(name.to_owned());
            return Ok(draw(seed, name, &[d_out, d_in]));
        }
        let stored = self.read(name, &[d_in, d_out])?;
        Ok((0..d_out).flat_map(|output| (0..d_in).map(move |input| input * d_out + output)).map(|place| stored[place]).collect())
    }

    /// A tensor `[rows, d]` whose rows are looked up: mapped where its file allows.
    pub(crate) fn table(&mut self, name: &str, rows: usize, d: usize) -> Result<Table, PretrainedError> {
        let (entry, stored) = self.find(name, &[rows, d])?;
        let (dtype, first) = entry.place;
        if self.seed.is_none() && dtype != Dtype::F64 {
            let mut finite = true;
            stored.for_each_chunk(name, (dtype, first), rows * d, |chunk| finite &= chunk.iter().all(|number| number.is_finite()))?;
            if !finite {
                return Err(PretrainedError::NotFinite { path: stored.path.clone(), name: name.to_owned() });
            }
            let io = |source| PretrainedError::Io { action: "map", path: stored.path.clone(), source };
            let table = Table::map(&stored.file(), first, dtype, rows, d).map_err(io)?;
            self.taken.insert(name.to_owned());
            return Ok(table);
        }
        Ok(Table::owned(self.read(name, &[rows, d])?, rows, d))
    }

    fn find(&self, name: &str, shape: &[usize]) -> Result<(&Entry, &Stored), PretrainedError> {
        let missing = || PretrainedError::MissingTensor { path: self.folder.clone(), name: name.to_owned() };
        let entry = self.entries.get(name).ok_or_else(missing)?;
        let stored = &self.files[entry.file];
        if entry.shape != shape {
            let (found, expected) = (entry.shape.clone(), shape.to_vec());
            return Err(PretrainedError::Shape { path: stored.path.clone(), name: name.to_owned(), found, expected });
        }
        Ok((entry, stored))
    }
}

/// The shards an index names, each a plain file name beside it.
fn shards(folder: &Path, index: &str) -> Result<BTreeSet<PathBuf>, PretrainedError> {
    let fields = Fields::read(&folder.join(index))?;
    let map = fields.get("weight_map").and_then(|map| map.as_object());
    let map = map.ok_or_else(|| fields.wrong("weight_map", "is missing; it names the shard of each tensor"))?;
    let mut paths = BTreeSet::new();
    for (tensor, file) in map {
        let name = file.as_str().unwrap_or_default();
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(fields.wrong("weight_map", format!("puts `{tensor}` into {file}; the name of a file in the same folder is meant")));
        }
        paths.insert(folder.join(name));
    }
    Ok(paths)
}

struct Opening<'a> {
    folder: &'a Path,
    files: Vec<Stored>,
    entries: BTreeMap<String, Entry>,
}

impl Opening<'_> {
    fn add(&mut self, path: &Path, name: String, entry: Entry) -> Result<(), PretrainedError> {
        let what = format!("tensor `{name}` stands in another shard too");
        match self.entries.insert(name, entry) {
            None => Ok(()),
            Some(_) => Err(PretrainedError::Damaged { path: path.to_owned(), what }),
        }
    }

    fn add_safetensors(&mut self, path: &Path) -> Result<(), PretrainedError> {
        let io = |source| PretrainedError::Io { action: "read", path: path.to_owned(), source };
        let damaged = |what: String| PretrainedError::Damaged { path: path.to_owned(), what };
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(damaged("it is not a file".into()));
        }
        let mut file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut head = vec![0; 8];
        file.read_exact(&mut head).map_err(|_| damaged("it is too short for a safetensors file".into()))?;
        let header = u64::from_le_bytes([head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7]]);
        if header > MAX_HEADER_BYTES || header + 8 > length {
            return Err(damaged(format!("its header claims {header} bytes; it is no safetensors file, or truncated")));
        }
        head.resize(8 + header as usize, 0);
        file.read_exact(&mut head[8..]).map_err(io)?;
        let metadata: Metadata = serde_json::from_slice(&head[8..]).map_err(|error| damaged(format!("its header is damaged: {error}")))?;
        let data = 8 + header;
        if data + metadata.data_len() as u64 != length {
            let expected = data + metadata.data_len() as u64;
            return Err(damaged(format!("it has {length} bytes where its header asks for {expected}: truncated?")));
        }
        for name in metadata.offset_keys() {
            let Some(info) = metadata.info(&name) else { continue };
            let entry = Entry { file: self.files.len(), shape: info.shape.clone(), place: (info.dtype, data + info.data_offsets.0 as u64) };
            self.add(path, name, entry)?;
        }
        self.files.push(Stored { path: path.to_owned(), file: Mutex::new(file) });
        Ok(())
    }

    fn add_pickle(&mut self, path: &Path) -> Result<(), PretrainedError> {
        let damaged = |what: String| PretrainedError::Damaged { path: path.to_owned(), what };
        if !path.is_file() {
            return Err(damaged(format!("it is not a file in `{}`", self.folder.display())));
        }
        let file = File::open(path).map_err(|source| PretrainedError::Io { action: "read", path: path.to_owned(), source })?;
        let tensors = pickle::tensors(&file).map_err(|error| match error {
            PickleError::Damaged(what) => damaged(what),
            PickleError::Dtype { name, found } => PretrainedError::Dtype { path: path.to_owned(), name, found },
        })?;
        for (name, tensor) in tensors {
            self.add(path, name, Entry { file: self.files.len(), shape: tensor.shape, place: (tensor.dtype, tensor.first) })?;
        }
        self.files.push(Stored { path: path.to_owned(), file: Mutex::new(file) });
        Ok(())
    }
}

/// Whether numbers of this type are weights; others are masks and positions that nobody reads.
fn is_weight(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64)
}

impl Stored {
    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads `count` numbers from the byte `first` on and hands them over in chunks.
    fn for_each_chunk(
        &self,
        name: &str,
        (dtype, first): (Dtype, u64),
        count: usize,
        mut take: impl FnMut(&[f32]),
    ) -> Result<(), PretrainedError> {
        let n_bytes = match dtype {
            Dtype::F16 | Dtype::BF16 => 2,
            Dtype::F32 => 4,
            Dtype::F64 => 8,
            _ => return Err(PretrainedError::Dtype { path: self.path.clone(), name: name.to_owned(), found: format!("{dtype:?}") }),
        };
        let io = |source| PretrainedError::Io { action: "read", path: self.path.clone(), source };
        let mut file = self.file();
        file.seek(SeekFrom::Start(first)).map_err(io)?;
        let (mut bytes, mut numbers) = (vec![0; CHUNK_BYTES.min(count * n_bytes)], Vec::new());
        let mut left = count;
        while left > 0 {
            let n = left.min(CHUNK_BYTES / n_bytes);
            file.read_exact(&mut bytes[..n * n_bytes]).map_err(io)?;
            numbers.clear();
            convert(dtype, &bytes[..n * n_bytes], &mut numbers);
            take(&numbers);
            left -= n;
        }
        Ok(())
    }
}

/// Numbers folded to a few bytes: no secret, but what differs in one number differs here. Four lanes, so that a processor keeps up with
/// the disk.
#[derive(Default)]
struct Folded([u64; 4]);

impl Folded {
    fn take(&mut self, numbers: &[f32]) {
        let fold = |lane: u64, number: f32| (lane.rotate_left(5) ^ u64::from(number.to_bits())).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (blocks, rest) = numbers.as_chunks::<4>();
        for block in blocks {
            self.0.iter_mut().zip(block).for_each(|(lane, &number)| *lane = fold(*lane, number));
        }
        self.0.iter_mut().zip(rest).for_each(|(lane, &number)| *lane = fold(*lane, number));
    }
}

/// Adds the numbers in `bytes`.
pub(crate) fn convert(dtype: Dtype, bytes: &[u8], numbers: &mut Vec<f32>) {
    match dtype {
        Dtype::F16 => numbers.extend(bytes.as_chunks().0.iter().map(|number| f16::from_le_bytes(*number).to_f32())),
        Dtype::BF16 => numbers.extend(bytes.as_chunks().0.iter().map(|number| bf16::from_le_bytes(*number).to_f32())),
        Dtype::F64 => numbers.extend(bytes.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number) as f32)),
        _ => numbers.extend(bytes.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number))),
    }
}
