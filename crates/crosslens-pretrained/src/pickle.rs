//! Where the tensors of a `pytorch_model.bin` lie: a pickled dictionary and, stored as they are, the numbers, in a zip archive or, as
//! PyTorch wrote them before version 1.6, one after the other.
//!
//! A pickle is a program. Of its instructions only those are followed that put a dictionary of tensors together, and what it would call is
//! noted, never called. Every object has one place in a list, so that a pickle that names an object a thousand times, or puts one into the
//! other a million deep, costs no more than its bytes. What is copied out of it for each tensor, a name and a shape, is short, and what the
//! tensors hold together is bounded by the file: they may share numbers, as a model's words do, but not over and over.

mod archive;
mod legacy;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use safetensors::Dtype;

use archive::Archive;
use legacy::Legacy;

/// Longest pickle that is read: one of two thousand tensors has a third of a million bytes.
const MAX_PICKLE_BYTES: u64 = 4 << 20;

/// Longest name of a tensor or a storage that is read: those of published models have a tenth of it.
const MAX_NAME_BYTES: usize = 1024;
/// Most dimensions of a tensor that is read: the patches of pictures have four, nothing in a checkpoint more than five. PyTorch allows 64.
const MAX_DIMENSIONS: usize = 8;
/// How many times the file's size all tensors may have together: one table of words may have four names, and be most of the file.
const MAX_SHARED: u64 = 8;

/// A tensor in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pickled {
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: Dtype,
    /// Where in the file its numbers begin, row by row.
    pub(crate) first: u64,
}

impl Pickled {
    fn n_bytes(&self) -> u64 {
        self.shape.iter().product::<usize>() as u64 * (self.dtype.bitsize() / 8) as u64
    }
}

/// Why a file is not read: what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PickleError {
    /// It is neither of the two forms, or damaged.
    Damaged(String),
    /// A tensor of numbers that are no weights.
    Dtype { name: String, found: String },
}

impl From<String> for PickleError {
    fn from(what: String) -> Self {
        Self::Damaged(what)
    }
}

/// First byte and size in bytes of what lies in a file.
type Place = (u64, u64);

/// Finds the tensors of a file by name.
pub(crate) fn tensors(file: &File) -> Result<BTreeMap<String, Pickled>, PickleError> {
    let tensors = if Legacy::is_in(file)? {
        let legacy = Legacy::open(file)?;
        placed(&Machine::run(legacy.pickle())?.0, |storage| legacy.place(storage))?
    } else {
        let archive = Archive::open(file)?;
        placed(&Machine::run(&archive.pickle()?)?.0, |storage| archive.place(&format!("data/{storage}")))?
    };
    let length = file.metadata().map_err(|error| format!("it cannot be unpickled: {error}"))?.len();
    let together = tensors.values().fold(0u64, |together, tensor| together.saturating_add(tensor.n_bytes()));
    if together > length.saturating_mul(MAX_SHARED) {
        let what = format!("its tensors have {together} bytes together, more than {MAX_SHARED} times what the file has");
        return Err(format!("{what}: too many share their numbers; save it with a copy for each").into());
    }
    Ok(tensors)
}

/// The tensors that a pickle made, and where they are by where their storages are.
fn placed(machine: &Machine<'_>, storage: impl Fn(&str) -> Option<Place>) -> Result<BTreeMap<String, Pickled>, PickleError> {
    let tensors = machine.tensors()?.into_iter();
    tensors.map(|(name, tensor)| Ok((name.to_owned(), tensor.placed(name, storage(tensor.storage))?))).collect()
}

/// A name that is not too long to be copied.
fn short(name: &str) -> Result<&str, PickleError> {
    let n_bytes = name.len();
    if n_bytes > MAX_NAME_BYTES {
        return Err(format!("it has a name of {n_bytes} bytes for a tensor or its storage; at most {MAX_NAME_BYTES} are read").into());
    }
    Ok(name)
}

/// At most so many bytes from a place on.
fn read_at(mut file: &File, first: u64, most: u64) -> Result<Vec<u8>, PickleError> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(first)).and_then(|_| file.take(most).read_to_end(&mut bytes));
    read.map_err(|error| format!("it cannot be unpickled: {error}"))?;
    Ok(bytes)
}

/// The numbers of a class of storages.
fn dtype(kind: &str) -> Option<Dtype> {
    Some(match kind {
        "FloatStorage" => Dtype::F32,
        "DoubleStorage" => Dtype::F64,
        "HalfStorage" => Dtype::F16,
        "BFloat16Storage" => Dtype::BF16,
        // Masks and counted positions, which some folders keep and no model reads.
        "LongStorage" => Dtype::I64,
        "IntStorage" => Dtype::I32,
        "ByteStorage" => Dtype::U8,
        "BoolStorage" => Dtype::BOOL,
        _ => return None,
    })
}

/// Whether numbers lie row by row; the stride of a single place or of none does not matter.
fn is_in_rows(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1usize;
    shape.len() == strides.len()
        && (shape.contains(&0)
            || shape.iter().zip(strides).rev().all(|(&size, &stride)| {
                let fits = size == 1 || stride == expected;
                expected = expected.saturating_mul(size);
                fits
            }))
}

/// What a pickle says of a tensor.
struct Tensor<'p> {
    storage: &'p str,
    /// The class of its storage.
    kind: &'p str,
    /// In numbers.
    offset: u64,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl Tensor<'_> {
    /// Where its numbers begin; they must lie within its storage, and that within the file.
    fn placed(&self, name: &str, place: Option<Place>) -> Result<Pickled, PickleError> {
        let Self { storage, kind, offset, shape, strides } = self;
        let damaged = |what: String| PickleError::Damaged(format!("tensor `{name}`: {what}"));
        let dtype = dtype(kind).ok_or_else(|| other_numbers(name, kind))?;
        if !is_in_rows(shape, strides) {
            return Err(damaged(format!("its shape {shape:?} is stored with strides {strides:?}; save it contiguous")));
        }
        let (first, size) = place.ok_or_else(|| damaged(format!("its storage `{storage}` is missing")))?;
        let width = (dtype.bitsize() / 8) as u64;
        let count = shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size as u64));
        let end = count.and_then(|count| count.checked_add(*offset)?.checked_mul(width));
        if end.is_none_or(|end| end > size) {
            return Err(damaged(format!(
                "it claims the shape {shape:?} from the number {offset} on, more than its storage of {size} bytes holds"
            )));
        }
        Ok(Pickled { shape: shape.clone(), dtype, first: first + offset * width })
    }
}

/// What is said of numbers that are no weights.
fn other_numbers(name: &str, kind: &str) -> PickleError {
    PickleError::Dtype { name: name.to_owned(), found: kind.trim_end_matches("Storage").to_uppercase() }
}

/// The place of an object.
type Id = usize;

/// What a pickle makes.
#[derive(Debug)]
enum Object<'p> {
    Text(&'p str),
    Int(i64),
    Flag(bool),
    /// A module and a name in it.
    Global(&'p str, &'p str),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// What a function would be called with.
    Called(Id, Id),
    /// Something outside the pickle.
    Outside(Id),
    /// Anything that a tensor does not need.
    Other,
}

/// Follows a pickle.
struct Machine<'p> {
    objects: Vec<Object<'p>>,
    /// Objects in hand; none is a mark.
    stack: Vec<Option<Id>>,
    memo: HashMap<u32, Id>,
}

/// What is left of a pickle.
struct Rest<'p> {
    bytes: &'p [u8],
    place: usize,
}

impl<'p> Rest<'p> {
    fn take(&mut self, n: usize) -> Result<&'p [u8], PickleError> {
        let end = self.place.checked_add(n).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| format!("its pickle ends within an instruction at byte {}", self.place))?;
        let taken = &self.bytes[self.place..end];
        self.place = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, PickleError> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self, n_bytes: usize) -> Result<u64, PickleError> {
        Ok(self.take(n_bytes)?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn text(&mut self, n_bytes: usize) -> Result<&'p str, PickleError> {
        let place = self.place;
        std::str::from_utf8(self.take(n_bytes)?).map_err(|_| format!("the text at byte {place} of its pickle is not UTF-8").into())
    }

    fn line(&mut self) -> Result<&'p str, PickleError> {
        let length = self.bytes[self.place..].iter().position(|&byte| byte == b'\n');
        let length = length.ok_or_else(|| format!("a line of its pickle, from byte {} on, does not end", self.place))?;
        let line = self.text(length)?;
        self.byte()?;
        Ok(line)
    }
}

impl<'p> Machine<'p> {
    /// Follows a pickle to its end; what it made is the object in hand then. Says how many bytes that took.
    fn run(pickle: &'p [u8]) -> Result<(Self, usize), PickleError> {
        let mut machine = Self { objects: Vec::new(), stack: Vec::new(), memo: HashMap::new() };
        let mut rest = Rest { bytes: pickle, place: 0 };
        loop {
            let place = rest.place;
            match rest.byte()? {
                b'.' => return Ok((machine, rest.place)),
                instruction => machine.step(instruction, place, &mut rest)?,
            }
        }
    }

    fn step(&mut self, instruction: u8, place: usize, rest: &mut Rest<'p>) -> Result<(), PickleError> {
        match instruction {
            // The protocol.
            0x80 => drop(rest.byte()?),
            b'c' => {
                let (module, name) = (rest.line()?, rest.line()?);
                self.make(Object::Global(module, name));
            }
            b'X' => {
                let length = rest.number(4)?;
                let text = rest.text(length as usize)?;
                self.make(Object::Text(text));
            }
            b'K' => {
                let number = rest.number(1)?;
                self.make(Object::Int(number as i64));
            }
            b'M' => {
                let number = rest.number(2)?;
                self.make(Object::Int(number as i64));
            }
            b'J' => {
                let number = rest.number(4)? as u32;
                self.make(Object::Int(i64::from(number.cast_signed())));
            }
            0x8a => {
                let n_bytes = usize::from(rest.byte()?);
                let bytes = rest.take(n_bytes)?;
                self.make(long(bytes).map_or(Object::Other, Object::Int));
            }
            b'G' => {
                rest.take(8)?;
                self.make(Object::Other);
            }
            b'N' => self.make(Object::Other),
            0x88 | 0x89 => self.make(Object::Flag(instruction == 0x88)),
            b']' => self.make(Object::List(Vec::new())),
            b'}' => self.make(Object::Dict(Vec::new())),
            b')' => self.make(Object::Tuple(Vec::new())),
            b'(' => self.stack.push(None),
            b't' => {
                let items = self.take_to_mark()?;
                self.make(Object::Tuple(items));
            }
            0x85..=0x87 => {
                let mut items = (0..instruction - 0x84).map(|_| self.pop()).collect::<Result<Vec<Id>, _>>()?;
                items.reverse();
                self.make(Object::Tuple(items));
            }
            b'Q' => {
                let what = self.pop()?;
                self.make(Object::Outside(what));
            }
            b'R' | 0x81 => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                let is_dictionary = matches!(self.objects[function], Object::Global("collections", "OrderedDict"));
                self.make(if is_dictionary { Object::Dict(Vec::new()) } else { Object::Called(function, arguments) });
            }
            // Attributes of an object: nothing that a tensor needs.
            b'b' => drop(self.pop()?),
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.take_to_mark()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.put(vec![key, value])?;
            }
            b'u' => {
                let items = self.take_to_mark()?;
                self.put(items)?;
            }
            b'q' => {
                let key = rest.number(1)?;
                self.remember(key as u32)?;
            }
            b'r' => {
                let key = rest.number(4)?;
                self.remember(key as u32)?;
            }
            b'h' => {
                let key = rest.number(1)?;
                self.recall(key as u32)?;
            }
            b'j' => {
                let key = rest.number(4)?;
                self.recall(key as u32)?;
            }
            other => return Err(format!("the instruction {other:#04x} at byte {place} of its pickle is none that weights need").into()),
        }
        Ok(())
    }

    fn make(&mut self, object: Object<'p>) {
        self.stack.push(Some(self.objects.len()));
        self.objects.push(object);
    }

    fn pop(&mut self) -> Result<Id, PickleError> {
        self.stack.pop().flatten().ok_or_else(|| "its pickle takes what it has not made".to_owned().into())
    }

    fn last(&self) -> Result<Id, PickleError> {
        self.stack.last().copied().flatten().ok_or_else(|| "its pickle uses what it has not made".to_owned().into())
    }

    /// Everything since the last mark.
    fn take_to_mark(&mut self) -> Result<Vec<Id>, PickleError> {
        let mark = self.stack.iter().rposition(Option::is_none).ok_or_else(|| "its pickle lacks a mark".to_owned())?;
        let items = self.stack.drain(mark..).flatten().collect();
        Ok(items)
    }

    /// Keys and values in turn into the dictionary in hand; into anything else nothing is put.
    fn put(&mut self, items: Vec<Id>) -> Result<(), PickleError> {
        let last = self.last()?;
        if let Object::Dict(entries) = &mut self.objects[last] {
            entries.extend(items.as_chunks::<2>().0.iter().map(|&[key, value]| (key, value)));
        }
        Ok(())
    }

    /// Into the list in hand; into anything else nothing is put.
    fn append(&mut self, items: Vec<Id>) -> Result<(), PickleError> {
        let last = self.last()?;
        if let Object::List(all) = &mut self.objects[last] {
            all.extend(items);
        }
        Ok(())
    }

    fn remember(&mut self, key: u32) -> Result<(), PickleError> {
        let last = self.last()?;
        self.memo.insert(key, last);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Result<(), PickleError> {
        let id = *self.memo.get(&key).ok_or_else(|| format!("its pickle recalls {key}, which it never kept"))?;
        self.stack.push(Some(id));
        Ok(())
    }

    /// The tensors of the dictionary that was made; what else is in it is left out. Of one name the last counts.
    fn tensors(&self) -> Result<BTreeMap<&'p str, Tensor<'p>>, PickleError> {
        let Object::Dict(entries) = self.made()? else {
            return Err("its pickle makes no dictionary of tensors".to_owned().into());
        };
        let mut tensors = BTreeMap::new();
        for &(name, value) in entries {
            let (Object::Text(name), Some(arguments)) = (&self.objects[name], self.rebuilt(value)) else { continue };
            let name = short(name)?;
            let tensor = self.tensor(name, arguments)?;
            let tensor = tensor.ok_or_else(|| format!("tensor `{name}` is not described as PyTorch describes one"))?;
            tensors.insert(name, tensor);
        }
        Ok(tensors)
    }

    /// What a tensor would be rebuilt from; a parameter is a tensor with a wrapping.
    fn rebuilt(&self, value: Id) -> Option<Id> {
        let Object::Called(function, arguments) = self.objects[value] else { return None };
        match self.objects[function] {
            Object::Global("torch._utils", "_rebuild_tensor_v2") => Some(arguments),
            Object::Global("torch._utils", "_rebuild_parameter") => match self.objects[*self.items(arguments)?.first()?] {
                Object::Called(_, arguments) => Some(arguments),
                _ => None,
            },
            Object::Global("torch._tensor", "_rebuild_from_type_v2") => self.items(arguments)?.get(2).copied(),
            _ => None,
        }
    }

    /// `(storage, offset, shape, strides, …)`; a storage is `("storage", class, key, device, numbers)`. Nothing where it is not so.
    fn tensor(&self, name: &str, arguments: Id) -> Result<Option<Tensor<'p>>, PickleError> {
        let Some(&[storage, offset, shape, strides, ..]) = self.items(arguments) else { return Ok(None) };
        for list in [shape, strides] {
            let n = self.items(list).map_or(0, <[Id]>::len);
            if n > MAX_DIMENSIONS {
                return Err(format!("tensor `{name}` has {n} dimensions; at most {MAX_DIMENSIONS} are read").into());
            }
        }
        let described = || {
            let Object::Outside(storage) = self.objects[storage] else { return None };
            let &[_, class, key, ..] = self.items(storage)? else { return None };
            let (Object::Global(_, kind), Object::Text(storage)) = (&self.objects[class], &self.objects[key]) else { return None };
            let sizes = |list: Id| self.items(list)?.iter().map(|&size| usize::try_from(self.int(size)?).ok()).collect::<Option<Vec<_>>>();
            let offset = u64::try_from(self.int(offset)?).ok()?;
            Some(Tensor { storage, kind, offset, shape: sizes(shape)?, strides: sizes(strides)? })
        };
        let tensor = described();
        tensor.as_ref().map_or(Ok(""), |tensor| short(tensor.storage))?;
        Ok(tensor)
    }

    /// What was made at last.
    fn made(&self) -> Result<&Object<'p>, PickleError> {
        Ok(&self.objects[self.last()?])
    }

    /// Everything outside the pickle that it names.
    fn outside(&self) -> impl Iterator<Item = Id> {
        self.objects.iter().filter_map(|object| match object {
            Object::Outside(what) => Some(*what),
            _ => None,
        })
    }

    fn items(&self, tuple: Id) -> Option<&[Id]> {
        match &self.objects[tuple] {
            Object::Tuple(items) => Some(items),
            _ => None,
        }
    }

    fn int(&self, id: Id) -> Option<i64> {
        match self.objects[id] {
            Object::Int(number) => Some(number),
            _ => None,
        }
    }
}

/// A number of up to eight bytes, the last of which has the sign.
fn long(bytes: &[u8]) -> Option<i64> {
    let (&last, n) = (bytes.last()?, bytes.len());
    let mut all = if last & 0x80 == 0 { [0; 8] } else { [0xff; 8] };
    all.get_mut(..n)?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(all))
}

#[cfg(test)]
mod tests {
    use zip::CompressionMethod;

    use super::*;

    /// Pieces of a pickle, as PyTorch writes them.
    pub(super) fn text(text: &str) -> Vec<u8> {
        [b"X".as_slice(), &u32::try_from(text.len()).expect("short").to_le_bytes(), text.as_bytes()].concat()
    }

    pub(super) fn global(module: &str, name: &str) -> Vec<u8> {
        format!("c{module}\n{name}\n").into_bytes()
    }

    pub(super) fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
        [b"(".as_slice(), &items.concat(), b"t"].concat()
    }

    pub(super) fn int(number: i32) -> Vec<u8> {
        [b"J".as_slice(), &number.to_le_bytes()].concat()
    }

    pub(super) fn ints(numbers: &[i32]) -> Vec<u8> {
        tuple(&numbers.iter().map(|&number| int(number)).collect::<Vec<_>>())
    }

    fn tensor(offset: i32, shape: &[i32], strides: &[i32]) -> Vec<u8> {
        let storage = tuple(&[text("storage"), global("torch", "FloatStorage"), text("0"), text("cpu"), int(6)]);
        let arguments = tuple(&[[storage, b"Q".to_vec()].concat(), int(offset), ints(shape), ints(strides), b"\x89".to_vec()]);
        [global("torch._utils", "_rebuild_tensor_v2"), arguments, b"R".to_vec()].concat()
    }

    pub(super) fn dictionary(name: &str, value: &[u8]) -> Vec<u8> {
        let empty = [global("collections", "OrderedDict"), b")Rq\x00".to_vec()].concat();
        [b"\x80\x02".as_slice(), &empty, b"(", &text(name), value, b"u}", &text("_metadata"), b"h\x00sb."].concat()
    }

    /// An archive whose one storage has six numbers of 32 bits.
    fn archive(pickle: &[u8], method: CompressionMethod) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        let mut zip = zip::ZipWriter::new(&mut file);
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        for (name, bytes) in [("archive/data.pkl", pickle), ("archive/byteorder", b"little"), ("archive/data/0", &[0; 24])] {
            zip.start_file(name, options).expect("an entry");
            std::io::Write::write_all(&mut zip, bytes).expect("written");
        }
        zip.finish().expect("an archive");
        file
    }

    fn read(pickle: &[u8]) -> Result<BTreeMap<String, Pickled>, String> {
        tensors(&archive(pickle, CompressionMethod::Stored)).map_err(|error| format!("{error:?}"))
    }

    #[track_caller]
    fn refused(pickle: &[u8], why: &str) {
        let error = read(pickle).expect_err(why);
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn a_tensor_is_found_where_its_numbers_lie() {
        let found = read(&dictionary("w", &tensor(2, &[2, 2], &[2, 1]))).expect("a dictionary");
        let first = read(&dictionary("w", &tensor(0, &[2, 2], &[2, 1]))).expect("a dictionary");
        read(&dictionary("w", &tensor(0, &[6, 1, 1], &[1, 7, 9]))).expect("strides of single places do not matter");
        assert_eq!((&found["w"].shape[..], found["w"].dtype), ([2, 2].as_slice(), Dtype::F32));
        assert_eq!(found["w"].first, first["w"].first + 8, "two numbers further");
    }

    #[test]
    fn parameters_are_tensors() {
        let wrapped = tuple(&[tensor(0, &[6], &[1]), b"\x88".to_vec(), b"N".to_vec()]);
        let parameter = [global("torch._utils", "_rebuild_parameter"), wrapped, b"R".to_vec()].concat();
        assert_eq!(read(&dictionary("w", &parameter)).expect("a dictionary")["w"].shape, [6]);
    }

    #[test]
    fn what_is_no_tensor_is_left_out() {
        let called = [global("os", "system"), tuple(&[text("true")]), b"R".to_vec()].concat();
        assert!(read(&dictionary("w", &called)).expect("noted, never called").is_empty());
        assert!(read(&dictionary("w", b"K\x01")).expect("a dictionary").is_empty());
    }

    #[test]
    fn numbers_beyond_the_storage_are_refused() {
        for (offset, shape, strides) in
            [(0, &[7][..], &[1][..]), (6, &[1], &[1]), (1, &[2, 3], &[3, 1]), (0, &[i32::MAX, i32::MAX, i32::MAX], &[0, 0, 0])]
        {
            let error = read(&dictionary("w", &tensor(offset, shape, strides))).expect_err("too large");
            assert!(error.contains("tensor `w`"), "{error}");
        }
        refused(&dictionary("w", &tensor(0, &[7], &[1])), "more than its storage of 24 bytes holds");
        refused(&dictionary("w", &tensor(-1, &[1], &[1])), "not described");
        refused(&dictionary("w", &tensor(0, &[-1], &[1])), "not described");
        refused(&dictionary("w", &tensor(0, &[2, 3], &[1, 2])), "save it contiguous");
    }

    /// PyTorch would write 64 dimensions; nobody's weights have nine.
    #[test]
    fn more_dimensions_than_weights_have_are_refused() {
        read(&dictionary("w", &tensor(0, &[6, 1, 1, 1, 1, 1, 1, 1], &[1; 8]))).expect("eight");
        refused(&dictionary("w", &tensor(0, &[6, 1, 1, 1, 1, 1, 1, 1, 1], &[1; 9])), "tensor `w` has 9 dimensions; at most 8 are read");
        refused(&dictionary("w", &tensor(0, &[6], &[1; 9])), "tensor `w` has 9 dimensions");
    }

    #[test]
    fn long_names_are_refused() {
        let whole = tensor(0, &[6], &[1]);
        read(&dictionary(&"n".repeat(MAX_NAME_BYTES), &whole)).expect("a long name, but not too long");
        refused(&dictionary(&"n".repeat(MAX_NAME_BYTES + 1), &whole), "a name of 1025 bytes");
        let place = whole.windows(6).position(|window| window == b"X\x01\0\0\x000").expect("the storage's name");
        let long = [&whole[..place], &text(&"0".repeat(MAX_NAME_BYTES + 1)), &whole[place + 6..]].concat();
        refused(&dictionary("w", &long), "a name of 1025 bytes");
    }

    #[test]
    fn storages_of_other_numbers_and_missing_ones_are_refused() {
        let other = |what: &str, by: &str| {
            let pickle = dictionary("w", &tensor(0, &[6], &[1]));
            let place = pickle.windows(what.len()).position(|window| window == what.as_bytes()).expect("it is there");
            [&pickle[..place], by.as_bytes(), &pickle[place + what.len()..]].concat()
        };
        refused(&other("FloatStorage", "CharStorage"), "Dtype { name: \"w\", found: \"CHAR\" }");
        refused(&other("FloatStorage", "LongStorage"), "more than its storage of 24 bytes holds");
        refused(&other("X\u{1}\0\0\x000", "X\u{1}\0\0\0z"), "its storage `z` is missing");
    }

    /// Short tuples, marks that are not there, texts that claim more than there is, endless lines, unknown instructions.
    #[test]
    fn broken_pickles_are_refused() {
        let called = |arguments: &[u8]| dictionary("w", &[&global("torch._utils", "_rebuild_tensor_v2"), arguments, b"R"].concat());
        refused(&called(b")"), "not described");
        refused(&called(b"K\x01\x85"), "not described");
        refused(&called(b"N"), "not described");
        refused(b"\x80\x02t.", "lacks a mark");
        refused(b"R.", "has not made");
        refused(b"(R.", "has not made");
        refused(b"h\x07.", "recalls 7");
        refused(b"q\x07.", "has not made");
        refused(b"X\xff\xff\xff\x7fabc", "ends within an instruction");
        refused(b"X\x01\x00\x00\x00\xff.", "not UTF-8");
        refused(b"cos", "does not end");
        refused(b"\x8a\xff", "ends within an instruction");
        refused(b"N.", "no dictionary");
        refused(b".", "has not made");
        refused(b"", "ends within an instruction");
        refused(b"i", "the instruction 0x69 at byte 0");
        refused(&b"(".repeat(1 << 20), "ends within an instruction");
    }

    /// Each of a million tuples holds the one before, or twice the one before: nothing is copied and nothing is followed in depth.
    #[test]
    fn deep_and_doubled_objects_cost_no_more_than_their_bytes() {
        refused(&[b")".to_vec(), b"\x85".repeat(1 << 20), b".".to_vec()].concat(), "no dictionary");
        refused(&[b")".to_vec(), b"q\x00h\x00\x86".repeat(1 << 18), b".".to_vec()].concat(), "no dictionary");
        let endless = dictionary("w", b"h\x00");
        assert!(read(&endless).expect("a dictionary in itself").is_empty());
    }

    #[test]
    fn archives_that_pack_or_hide_things_are_refused() {
        let pickle = dictionary("w", &tensor(0, &[6], &[1]));
        let packed = tensors(&archive(&pickle, CompressionMethod::Deflated)).expect_err("packed");
        assert!(format!("{packed:?}").contains("is packed or locked"), "{packed:?}");
        refused(&vec![b'('; MAX_PICKLE_BYTES as usize + 1], "at most 4194304 are read");
    }

    #[test]
    fn long_numbers_have_a_sign() {
        let numbers = [(&[][..], None), (&[0xff][..], Some(-1)), (&[0x00, 0x01], Some(256)), (&[0; 8], Some(0)), (&[0; 9], None)];
        for (bytes, number) in numbers {
            assert_eq!(long(bytes), number, "{bytes:?}");
        }
    }
}
