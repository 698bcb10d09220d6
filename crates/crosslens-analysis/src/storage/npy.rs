//! The npy format: one array with a header that is a Python dictionary.
//!
//! ```text
//! \x93NUMPY  major minor  header length (u16, from version 2 on u32)  {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n  numbers
//! ```

use super::arrays::{Array, Place};
use super::dtype::Dtype;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Largest header that is read; NumPy's own are below 200 bytes for arrays of plain numbers.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Most axes an array may have, as in NumPy.
const MAX_AXES: usize = 64;

/// Why an npy file cannot be read.
#[derive(Debug, PartialEq)]
pub(crate) enum Trouble {
    /// It does not follow the format.
    Damaged(String),
    /// Its numbers have a type that is not read.
    Dtype(String),
}

/// The header of an array.
#[derive(Debug, PartialEq)]
struct Header {
    descr: String,
    is_fortran: bool,
    shape: Vec<u64>,
}

/// Reads an array from the bytes of a whole file, keeping its numbers.
pub(crate) fn read(mut bytes: Vec<u8>) -> Result<Array, Trouble> {
    let (text, data) = split(&bytes)?;
    let header = Parser { text }.header()?;
    let dtype = Dtype::from_npy(&header.descr).ok_or(Trouble::Dtype(header.descr))?;
    let n_bytes = (bytes.len() - data) as u64;
    if Array::n_bytes(dtype, &header.shape) != Some(n_bytes) {
        return Err(Trouble::Damaged(format!("{n_bytes} bytes, which is not what its shape {:?} asks for", header.shape)));
    }
    bytes.drain(..data);
    if header.is_fortran {
        bytes = row_major(&header.shape, dtype.n_bytes(), &bytes);
    }
    Ok(Array { dtype, shape: header.shape, place: Place::Memory(bytes) })
}

/// The bytes of a whole file. The numbers begin at a multiple of 64 bytes, as NumPy has it.
pub(crate) fn write(descr: &str, shape: &[usize], numbers: &[u8]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
    // Magic, version and length take ten bytes, the end of the line one.
    header.push_str(&" ".repeat((header.len() + 11).wrapping_neg() % 64));
    header.push('\n');
    // A shape of 64 axes of 20 digits is far below the 65535 bytes of version 1.
    let length = (header.len() as u16).to_le_bytes();
    [MAGIC, &[1, 0], &length, header.as_bytes(), numbers].concat()
}

/// The header's text, and where the numbers begin.
fn split(bytes: &[u8]) -> Result<(&str, usize), Trouble> {
    let cut = || Trouble::Damaged("a header that is cut short".into());
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| Trouble::Damaged("no npy file".into()))?;
    let (start, length) = match rest {
        [1, _, low, high, ..] => (10, usize::from(u16::from_le_bytes([*low, *high]))),
        [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        [version, ..] if *version > 3 => return Err(Trouble::Damaged(format!("an npy file of version {version}"))),
        _ => return Err(cut()),
    };
    if length > MAX_HEADER_BYTES {
        return Err(Trouble::Damaged(format!("a header of {length} bytes, at most {MAX_HEADER_BYTES} are read")));
    }
    let header = bytes.get(start..start + length).ok_or_else(cut)?;
    let text = std::str::from_utf8(header).map_err(|_| Trouble::Damaged("a header that is no text".into()))?;
    Ok((text, start + length))
}

/// Reads the part of Python that headers are written in.
struct Parser<'a> {
    text: &'a str,
}

impl<'a> Parser<'a> {
    fn header(&mut self) -> Result<Header, Trouble> {
        let (mut descr, mut is_fortran, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.eat("}") {
            let key = self.string()?;
            self.expect(":")?;
            let is_new = match key {
                "descr" => descr.replace(self.descr()?).is_none(),
                "fortran_order" => is_fortran.replace(self.boolean()?).is_none(),
                "shape" => shape.replace(self.shape()?).is_none(),
                _ => return Err(self.trouble("an unknown key")),
            };
            if !is_new {
                return Err(self.trouble("a key twice"));
            }
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        if !self.text.trim_start().is_empty() {
            return Err(self.trouble("something after its end"));
        }
        match (descr, is_fortran, shape) {
            (Some(descr), Some(is_fortran), Some(shape)) => Ok(Header { descr, is_fortran, shape }),
            _ => Err(self.trouble("not all of `descr`, `fortran_order` and `shape`")),
        }
    }

    fn trouble(&self, what: &str) -> Trouble {
        Trouble::Damaged(format!("a header with {what}"))
    }

    fn eat(&mut self, word: &str) -> bool {
        let rest = self.text.trim_start().strip_prefix(word);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn expect(&mut self, word: &str) -> Result<(), Trouble> {
        if self.eat(word) { Ok(()) } else { Err(self.trouble(&format!("no `{word}` where one belongs"))) }
    }

    fn string(&mut self) -> Result<&'a str, Trouble> {
        let quote = if self.eat("'") { '\'' } else { self.expect("\"").map(|()| '"')? };
        let (string, rest) = self.text.split_once(quote).ok_or_else(|| self.trouble("a string without an end"))?;
        self.text = rest;
        Ok(string)
    }

    /// The type; a list of fields is one that is not read.
    fn descr(&mut self) -> Result<String, Trouble> {
        if self.text.trim_start().starts_with('[') { Err(Trouble::Dtype("record".into())) } else { Ok(self.string()?.to_owned()) }
    }

    fn boolean(&mut self) -> Result<bool, Trouble> {
        if self.eat("True") { Ok(true) } else { self.expect("False").map(|()| false) }
    }

    fn shape(&mut self) -> Result<Vec<u64>, Trouble> {
        self.expect("(")?;
        let mut shape = Vec::new();
        while !self.eat(")") {
            if shape.len() == MAX_AXES {
                return Err(self.trouble("too many axes"));
            }
            shape.push(self.number()?);
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<u64, Trouble> {
        let text = self.text.trim_start();
        let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
        self.text = &text[end..];
        text[..end].parse().map_err(|_| self.trouble("a size that is no number"))
    }
}

/// Turns an array whose first axis is fastest into one whose last axis is.
fn row_major(shape: &[u64], n_bytes: usize, bytes: &[u8]) -> Vec<u8> {
    // As many bytes as the shape asks for are here, so that every size and product fits.
    let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
    let strides: Vec<usize> = shape.iter().scan(1, |stride, size| Some(std::mem::replace(stride, *stride * size))).collect();
    let mut rows = Vec::with_capacity(bytes.len());
    let mut place = vec![0; shape.len()];
    for _ in 0..bytes.len() / n_bytes {
        let from: usize = place.iter().zip(&strides).map(|(place, stride)| place * stride).sum();
        rows.extend_from_slice(&bytes[from * n_bytes..(from + 1) * n_bytes]);
        for axis in (0..shape.len()).rev() {
            place[axis] += 1;
            if place[axis] < shape[axis] {
                break;
            }
            place[axis] = 0;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Result<Header, Trouble> {
        Parser { text }.header()
    }

    #[test]
    fn a_header_of_numpy_is_read() {
        let expected = Header { descr: "<f4".into(), is_fortran: false, shape: vec![3, 2] };
        assert_eq!(header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }      \n"), Ok(expected));
        assert_eq!(header("{'descr': '<f8', 'fortran_order': True, 'shape': (5,)}").map(|header| header.shape), Ok(vec![5]));
        assert_eq!(header("{'shape': (), 'descr': '|u1', 'fortran_order': False}").map(|header| header.shape), Ok(vec![]));
    }

    /// NumPy reads shapes as Python does: `(3, 2, )`, `(5, )` and `()` are tuples.
    #[test]
    fn what_is_written_is_read() {
        for (shape, n_bytes) in [(&[3usize, 2][..], 24), (&[5], 20), (&[], 4), (&[0, 7], 0)] {
            let bytes = write("<f4", shape, &vec![7; n_bytes]);
            assert_eq!((bytes.len() - n_bytes) % 64, 0);
            let array = read(bytes).expect("an array");
            let sizes: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
            assert_eq!((array.dtype, array.shape), (Dtype::F32, sizes));
            assert!(matches!(array.place, Place::Memory(numbers) if numbers == vec![7; n_bytes]));
        }
    }

    #[test]
    fn a_header_that_is_none_is_refused() {
        for text in [
            "",
            "{",
            "{}",
            "{'descr': '<f4'}",
            "{'descr: 3}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -2)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
        ] {
            assert!(matches!(header(text), Err(Trouble::Damaged(_))), "{text}");
        }
        let record = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}";
        assert_eq!(header(record), Err(Trouble::Dtype("record".into())));
    }

    /// `[[1, 2, 3], [4, 5, 6]]` lies as 1 4 2 5 3 6 where the first axis is fastest.
    #[test]
    fn columns_become_rows() {
        assert_eq!(row_major(&[2, 3], 1, &[1, 4, 2, 5, 3, 6]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(row_major(&[2, 0], 1, &[]), [0; 0]);
        // [i, j, k] = 4 i + 2 j + k lies at i + 2 j + 4 k.
        assert_eq!(row_major(&[2, 2, 2], 1, &[0, 4, 2, 6, 1, 5, 3, 7]), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
