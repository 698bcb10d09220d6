//! The form before PyTorch 1.6: five pickles (a magic number, a version, the machine that wrote it, the dictionary, the names of storages),
//! then each storage in the order of these names, a count of eight bytes and so many numbers.

use std::collections::HashMap;
use std::fs::File;

use super::{MAX_PICKLE_BYTES, Machine, Object, PickleError, Place, dtype, other_numbers, read_at, short};

/// What a file begins with: the magic number 0x1950a86a20f9469cfc6c, pickled.
const MAGIC: [u8; 15] = [0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, b'.'];
/// The version of the form, the only one there was.
const VERSION: i64 = 1001;

/// A file: its dictionary, and where each storage lies.
pub(super) struct Legacy {
    /// The first pickles, at most so many bytes as are read of them.
    head: Vec<u8>,
    /// Where in these the dictionary begins.
    first: usize,
    storages: HashMap<String, Place>,
}

impl Legacy {
    /// Whether a file begins with a pickle, where an archive begins with `PK`.
    pub(super) fn is_in(file: &File) -> Result<bool, PickleError> {
        Ok(read_at(file, 0, 1)?.first() == MAGIC.first())
    }

    pub(super) fn open(file: &File) -> Result<Self, PickleError> {
        let length = file.metadata().map_err(|error| format!("it cannot be unpickled: {error}"))?.len();
        let head = read_at(file, 0, MAX_PICKLE_BYTES)?;
        if !head.starts_with(&MAGIC) {
            return Err("it cannot be unpickled: it begins with a pickle, but not with the magic number of PyTorch".to_owned().into());
        }
        let mut place = MAGIC.len();
        check_version(&head, &mut place)?;
        check_order(&head, &mut place)?;
        let first = place;
        let dictionary = next(&head, &mut place)?;
        let named = named(&dictionary)?;
        let order = next(&head, &mut place)?;
        let mut storages = HashMap::new();
        let mut at = place as u64;
        for storage in names(&order)? {
            let cannot = |what: String| PickleError::Damaged(format!("it cannot be unpickled: storage `{storage}` {what}"));
            let &(n_numbers, width) = named.get(short(storage)?).ok_or_else(|| cannot("belongs to no tensor".into()))?;
            let count = read_at(file, at, 8)?.try_into().map(u64::from_le_bytes).map_err(|_| cannot("is not there: truncated?".into()))?;
            if count != n_numbers {
                return Err(cannot(format!("has {count} numbers where {n_numbers} are announced")));
            }
            let end = count.checked_mul(width).and_then(|size| size.checked_add(at + 8)).filter(|&end| end <= length);
            let end = end.ok_or_else(|| cannot(format!("claims {count} numbers, more than the file has: truncated?")))?;
            if storages.insert(storage.to_owned(), (at + 8, end - at - 8)).is_some() {
                return Err(cannot("is listed twice".into()));
            }
            at = end;
        }
        if at != length {
            return Err(format!("it cannot be unpickled: it has {length} bytes where its storages end at {at}").into());
        }
        Ok(Self { head, first, storages })
    }

    /// The dictionary, and what comes after it.
    pub(super) fn pickle(&self) -> &[u8] {
        &self.head[self.first..]
    }

    /// Where a storage lies.
    pub(super) fn place(&self, storage: &str) -> Option<Place> {
        self.storages.get(storage).copied()
    }
}

/// Follows the pickle at a place, and moves on behind it.
fn next<'p>(head: &'p [u8], place: &mut usize) -> Result<Machine<'p>, PickleError> {
    let (machine, n_bytes) = Machine::run(&head[*place..]).map_err(|error| match error {
        PickleError::Damaged(what) if head.len() as u64 == MAX_PICKLE_BYTES => {
            format!("{what}; its pickles may have {MAX_PICKLE_BYTES} bytes").into()
        }
        error => error,
    })?;
    *place += n_bytes;
    Ok(machine)
}

fn check_version(head: &[u8], place: &mut usize) -> Result<(), PickleError> {
    match next(head, place)?.made()? {
        Object::Int(VERSION) => Ok(()),
        Object::Int(other) => Err(format!("it cannot be unpickled: its form is of version {other}, and only {VERSION} is known").into()),
        _ => Err("it cannot be unpickled: it does not say of which version its form is".to_owned().into()),
    }
}

fn check_order(head: &[u8], place: &mut usize) -> Result<(), PickleError> {
    let machine = next(head, place)?;
    let Object::Dict(entries) = machine.made()? else {
        return Err("it cannot be unpickled: it does not say what machine wrote it".to_owned().into());
    };
    let is_big = |&(name, value): &(usize, usize)| {
        matches!((&machine.objects[name], &machine.objects[value]), (Object::Text("little_endian"), Object::Flag(false)))
    };
    if entries.iter().any(is_big) { Err("its numbers are not little-endian".to_owned().into()) } else { Ok(()) }
}

/// By storage how many numbers it has, and of how many bytes.
fn named<'p>(dictionary: &Machine<'p>) -> Result<HashMap<&'p str, (u64, u64)>, PickleError> {
    let mut named = HashMap::new();
    for storage in dictionary.outside() {
        let (kind, name, n_numbers) = described(dictionary, storage)
            .ok_or_else(|| "it cannot be unpickled: a storage is not described as PyTorch describes one".to_owned())?;
        let name = short(name)?;
        let dtype = dtype(kind).ok_or_else(|| other_numbers(name, kind))?;
        let storage = (n_numbers, (dtype.bitsize() / 8) as u64);
        if named.insert(name, storage).is_some_and(|other| other != storage) {
            return Err(format!("it cannot be unpickled: storage `{name}` is described in two ways").into());
        }
    }
    Ok(named)
}

/// `("storage", class, name, device, numbers, None)`: its class, name and numbers. Instead of `None`, PyTorch before 0.4 had storages within
/// storages, which are not read.
fn described<'p>(machine: &Machine<'p>, storage: usize) -> Option<(&'p str, &'p str, u64)> {
    let &[_, class, name, _, n_numbers, view] = machine.items(storage)? else { return None };
    let (Object::Global(_, kind), Object::Text(name), Object::Other) =
        (&machine.objects[class], &machine.objects[name], &machine.objects[view])
    else {
        return None;
    };
    Some((*kind, *name, u64::try_from(machine.int(n_numbers)?).ok()?))
}

/// Storages in the order they lie in.
fn names<'p>(order: &Machine<'p>) -> Result<Vec<&'p str>, PickleError> {
    let name = |&item: &usize| match &order.objects[item] {
        Object::Text(name) => Some(*name),
        _ => None,
    };
    let list = match order.made()? {
        Object::List(items) => items.iter().map(name).collect(),
        _ => None,
    };
    list.ok_or_else(|| "it cannot be unpickled: it does not list its storages".to_owned().into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write as _;

    use safetensors::Dtype;

    use super::super::tests::{dictionary, global, int, ints, text, tuple};
    use super::super::{Pickled, tensors};
    use super::*;

    /// What a test changes in a file of two storages, of six and of two numbers.
    struct Written {
        magic: Vec<u8>,
        version: Vec<u8>,
        little_endian: &'static [u8],
        view: &'static [u8],
        listed: Vec<&'static str>,
        counts: [u64; 2],
    }

    impl Default for Written {
        fn default() -> Self {
            let version = [b"\x80\x02M".as_slice(), &1001u16.to_le_bytes(), b"."].concat();
            Self { magic: MAGIC.to_vec(), version, little_endian: b"\x88", view: b"N", listed: vec!["20", "10"], counts: [2, 6] }
        }
    }

    impl Written {
        fn bytes(&self) -> Vec<u8> {
            let tensor = |name: &str, count: i32, shape: &[i32], strides: &[i32]| {
                let storage =
                    tuple(&[text("storage"), global("torch", "FloatStorage"), text(name), text("cpu"), int(count), self.view.to_vec()]);
                let arguments = tuple(&[[storage, b"Q".to_vec()].concat(), int(0), ints(shape), ints(strides), b"\x89".to_vec()]);
                [global("torch._utils", "_rebuild_tensor_v2"), arguments, b"R".to_vec()].concat()
            };
            let system = [b"\x80\x02}(".as_slice(), &text("little_endian"), self.little_endian, b"u."].concat();
            let both = [tensor("10", 6, &[2, 3], &[3, 1]), text("b"), tensor("20", 2, &[2], &[1])].concat();
            let names: Vec<u8> = self.listed.iter().flat_map(|name| text(name)).collect();
            let names = [b"\x80\x02](".as_slice(), &names, b"e."].concat();
            let numbers = |from: usize, n: usize| (from..from + n).flat_map(|number| (number as f32).to_le_bytes()).collect::<Vec<u8>>();
            let storages = [&self.counts[0].to_le_bytes()[..], &numbers(100, 2), &self.counts[1].to_le_bytes(), &numbers(0, 6)].concat();
            [self.magic.clone(), self.version.clone(), system, dictionary("w", &both), names, storages].concat()
        }

        #[track_caller]
        fn refused(&self, why: &str) {
            refused(&self.bytes(), why);
        }
    }

    fn read(bytes: &[u8]) -> Result<BTreeMap<String, Pickled>, String> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        tensors(&file).map_err(|error| format!("{error:?}"))
    }

    #[track_caller]
    fn refused(bytes: &[u8], why: &str) {
        let error = read(bytes).expect_err(why);
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn tensors_are_found_where_their_numbers_lie() {
        let bytes = Written::default().bytes();
        let found = read(&bytes).expect("a dictionary");
        let number = |place: u64| bytes[place as usize..][..4].try_into().map(f32::from_le_bytes).expect("four bytes");
        assert_eq!((&found["w"].shape[..], found["w"].dtype, number(found["w"].first + 20)), ([2, 3].as_slice(), Dtype::F32, 5.0));
        assert_eq!((&found["b"].shape[..], number(found["b"].first)), ([2].as_slice(), 100.0), "in the order of the list");
    }

    #[test]
    fn a_file_cut_anywhere_is_refused() {
        let bytes = Written::default().bytes();
        for length in 1..bytes.len() {
            read(&bytes[..length]).expect_err("cut");
        }
        refused(&bytes[..bytes.len() - 1], "more than the file has: truncated?");
        refused(&bytes[..bytes.len() - 28], "storage `10` is not there: truncated?");
        refused(&[&bytes[..], &[0]].concat(), "where its storages end at");
    }

    #[test]
    fn lying_counts_are_refused() {
        Written { counts: [2, 7], ..Written::default() }.refused("storage `10` has 7 numbers where 6 are announced");
        Written { counts: [u64::MAX, 6], ..Written::default() }.refused("storage `20` has 18446744073709551615 numbers");
        Written { listed: vec!["10", "20"], ..Written::default() }.refused("storage `10` has 2 numbers where 6 are announced");
        Written { listed: vec!["20", "z"], ..Written::default() }.refused("storage `z` belongs to no tensor");
        Written { listed: vec!["20"], ..Written::default() }.refused("where its storages end at");
    }

    /// A name of a megabyte that a million storages have would be hashed for each.
    #[test]
    fn long_names_and_names_listed_twice_are_refused() {
        let long: &'static str = "z".repeat(1025).leak();
        Written { listed: vec!["20", long], ..Written::default() }.refused("a name of 1025 bytes");
        Written { listed: vec!["20", "20"], counts: [2, 2], ..Written::default() }.refused("storage `20` is listed twice");
    }

    #[test]
    fn other_beginnings_are_refused() {
        let mut magic = MAGIC.to_vec();
        magic[5] ^= 1;
        Written { magic, ..Written::default() }.refused("not with the magic number of PyTorch");
        Written { version: b"\x80\x02M\xea\x03.".to_vec(), ..Written::default() }.refused("version 1002, and only 1001 is known");
        Written { little_endian: b"\x89", ..Written::default() }.refused("not little-endian");
        Written { view: b")", ..Written::default() }.refused("not described as PyTorch describes one");
    }
}
