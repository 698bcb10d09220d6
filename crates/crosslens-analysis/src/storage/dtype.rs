//! The types of numbers in files, all little-endian.

/// A type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

/// Name in safetensors headers, name in npy headers, bytes.
const TABLE: [(Dtype, &str, &str, usize); 13] = [
    (Dtype::Bool, "BOOL", "|b1", 1),
    (Dtype::U8, "U8", "|u1", 1),
    (Dtype::I8, "I8", "|i1", 1),
    (Dtype::U16, "U16", "<u2", 2),
    (Dtype::I16, "I16", "<i2", 2),
    (Dtype::U32, "U32", "<u4", 4),
    (Dtype::I32, "I32", "<i4", 4),
    (Dtype::U64, "U64", "<u8", 8),
    (Dtype::I64, "I64", "<i8", 8),
    (Dtype::F16, "F16", "<f2", 2),
    // NumPy has no such type.
    (Dtype::Bf16, "BF16", "", 2),
    (Dtype::F32, "F32", "<f4", 4),
    (Dtype::F64, "F64", "<f8", 8),
];

impl Dtype {
    /// Types that hold real numbers.
    pub(crate) const FLOATS: [Self; 4] = [Self::F16, Self::Bf16, Self::F32, Self::F64];
    /// Types that hold whole numbers.
    pub(crate) const INTEGERS: [Self; 8] = [Self::U8, Self::I8, Self::U16, Self::I16, Self::U32, Self::I32, Self::U64, Self::I64];

    pub(crate) fn from_safetensors(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    pub(crate) fn from_npy(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| !row.2.is_empty() && row.2 == name).map(|row| row.0)
    }

    /// Its name in safetensors headers and messages.
    pub(crate) fn name(self) -> &'static str {
        self.row().1
    }

    /// Bytes of one number.
    pub(crate) fn n_bytes(self) -> usize {
        self.row().3
    }

    fn row(self) -> &'static (Self, &'static str, &'static str, usize) {
        &TABLE[self as usize]
    }
}

/// A number that can be read from any type that holds its value.
pub(crate) trait Number: Sized {
    /// The number in `bytes`, which are as many as the type has; none where it does not fit.
    fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Self>;

    /// Adds all numbers in `bytes`.
    fn decode_into(dtype: Dtype, bytes: &[u8], numbers: &mut Vec<Self>) -> Option<()> {
        decode_each(dtype, bytes, numbers)
    }
}

fn decode_each<N: Number>(dtype: Dtype, bytes: &[u8], numbers: &mut Vec<N>) -> Option<()> {
    for number in bytes.chunks_exact(dtype.n_bytes()) {
        numbers.push(N::decode(dtype, number)?);
    }
    Some(())
}

impl Number for i128 {
    fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Self> {
        let mut wide = [0; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match dtype {
            Dtype::Bool => Some((bits != 0).into()),
            Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => Some(bits.into()),
            Dtype::I8 => Some((bits as i8).into()),
            Dtype::I16 => Some((bits as i16).into()),
            Dtype::I32 => Some((bits as i32).into()),
            Dtype::I64 => Some((bits as i64).into()),
            Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64 => None,
        }
    }
}

impl Number for u8 {
    fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Self> {
        i128::decode(dtype, bytes)?.try_into().ok()
    }
}

impl Number for u32 {
    fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Self> {
        i128::decode(dtype, bytes)?.try_into().ok()
    }
}

impl Number for u64 {
    fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Self> {
        i128::decode(dtype, bytes)?.try_into().ok()
    }
}

impl Number for f64 {
    fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Self> {
        match dtype {
            Dtype::F16 => Some(half(u16::from_le_bytes(bytes.try_into().ok()?))),
            Dtype::Bf16 => Some(f32::from_bits(u32::from(u16::from_le_bytes(bytes.try_into().ok()?)) << 16).into()),
            Dtype::F32 => Some(f32::from_le_bytes(bytes.try_into().ok()?).into()),
            Dtype::F64 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
            _ => Some(i128::decode(dtype, bytes)? as f64),
        }
    }
}

impl Number for f32 {
    /// Rounds what is more precise; beyond its range it becomes infinite, which is refused later.
    fn decode(dtype: Dtype, bytes: &[u8]) -> Option<Self> {
        Some(f64::decode(dtype, bytes)? as f32)
    }

    fn decode_into(dtype: Dtype, bytes: &[u8], numbers: &mut Vec<Self>) -> Option<()> {
        if dtype == Dtype::F32 {
            // What nearly all files hold, without a look at the type of each number.
            let (chunks, _) = bytes.as_chunks::<4>();
            numbers.extend(chunks.iter().map(|number| f32::from_le_bytes(*number)));
            return Some(());
        }
        decode_each(dtype, bytes, numbers)
    }
}

/// The value of a half-precision number: `(−1)^s · 2^(e−15) · (1 + m/1024)`, or `(−1)^s · 2^−14 · m/1024` for `e = 0`.
fn half(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    let size = match exponent {
        0 => mantissa * 2f64.powi(-14),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + mantissa) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_stands_at_its_place_in_the_table() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, place);
            assert_eq!(Dtype::from_safetensors(row.1), Some(row.0));
        }
        assert_eq!(Dtype::from_npy("<f4"), Some(Dtype::F32));
        assert_eq!(Dtype::from_npy(">f4"), None);
        assert_eq!(Dtype::from_npy(""), None);
    }

    /// 0x3c00 = 1, 0xc000 = −2, 0x0001 = 2⁻²⁴ (the smallest), 0x7bff = 65504 (the largest).
    #[test]
    fn half_precision_is_read_as_it_is_defined() {
        assert_eq!([0x3c00, 0xc000, 0x0001, 0x7bff].map(half), [1.0, -2.0, 2f64.powi(-24), 65504.0]);
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }

    #[test]
    fn whole_numbers_are_read_only_where_they_fit() {
        assert_eq!(u32::decode(Dtype::I64, &7i64.to_le_bytes()), Some(7));
        assert_eq!(u32::decode(Dtype::I64, &(-1i64).to_le_bytes()), None);
        assert_eq!(u32::decode(Dtype::U64, &(1u64 << 40).to_le_bytes()), None);
        assert_eq!(u32::decode(Dtype::I8, &[0xff]), None);
        assert_eq!(u32::decode(Dtype::F32, &1f32.to_le_bytes()), None);
    }
}
