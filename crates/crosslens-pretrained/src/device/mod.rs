//! Where the products of a model's weights are made: by our kernels, or by candle on a device of its own.
//!
//! A device takes the rows that go through a map, multiplies them by weights that it keeps, and gives them back. Everything else, norms,
//! softmax and what watches attention, stays on the CPU, so that whatever explains a model never needs to know of devices.

#[cfg(feature = "candle")]
mod candle;
#[cfg(not(feature = "candle"))]
mod without;

#[cfg(feature = "candle")]
pub(crate) use candle::{Held, Place};
#[cfg(not(feature = "candle"))]
pub(crate) use without::{Held, Place};

use std::str::FromStr;
use std::sync::{Arc, OnceLock};

/// A device as a user names it: `cpu`, `candle`, `cuda`, `cuda:1`, `metal`.
///
/// Clones know of each other's trouble: a product that a device refuses in the middle of the work is made by our kernels instead, and
/// [`Device::trouble`] says why.
#[derive(Clone, Debug, Default)]
pub struct Device {
    kind: DeviceKind,
    trouble: Arc<OnceLock<String>>,
}

/// What makes products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceKind {
    /// Our kernels: a sentence gives the same bits in any batch and on any number of threads.
    #[default]
    Cpu,
    /// Candle on the CPU: slower than our kernels, to see that what goes to a device comes back right.
    Candle,
    /// A processor of NVIDIA's, by its number.
    Cuda(usize),
    /// A processor of Apple's, by its number.
    Metal(usize),
}

/// Why a device cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No such name.
    #[error("there is no device `{name}`; known are cpu, candle, cuda and metal, the last two with a number or without: cuda:1")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// It was not compiled in.
    #[error("this build has no device `{device}`: build with `--features {feature}` to have it, or leave it out to compute on the CPU")]
    NotBuilt {
        /// What was asked for.
        device: DeviceKind,
        /// The feature of Cargo's that brings it.
        feature: &'static str,
    },
    /// The system has none, or it refuses to work.
    #[error("the device `{device}` cannot be used: {why}; `cpu` works everywhere")]
    Unusable {
        /// What was asked for.
        device: DeviceKind,
        /// Its own words.
        why: String,
    },
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cpu => formatter.write_str("cpu"),
            Self::Candle => formatter.write_str("candle"),
            Self::Cuda(number) => write!(formatter, "cuda:{number}"),
            Self::Metal(number) => write!(formatter, "metal:{number}"),
        }
    }
}

impl FromStr for DeviceKind {
    type Err = DeviceError;

    fn from_str(name: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Unknown { name: name.to_owned() };
        let (kind, number) = match name.split_once(':') {
            // `+1` is a number to Rust, and none to people.
            Some((kind, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                (kind, Some(number.parse().map_err(|_| unknown())?))
            }
            Some(_) => return Err(unknown()),
            None => (name, None),
        };
        match (kind, number) {
            ("cpu", None) => Ok(Self::Cpu),
            ("candle", None) => Ok(Self::Candle),
            ("cuda", number) => Ok(Self::Cuda(number.unwrap_or(0))),
            ("metal", number) => Ok(Self::Metal(number.unwrap_or(0))),
            _ => Err(unknown()),
        }
    }
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(name: &str) -> Result<Self, DeviceError> {
        name.parse().map(|kind: DeviceKind| kind.into())
    }
}

impl From<DeviceKind> for Device {
    fn from(kind: DeviceKind) -> Self {
        Self { kind, ..Self::default() }
    }
}

/// Devices are the same if the same processor is meant, whatever became of it.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for Device {}

impl Device {
    /// What makes products.
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// Why a product was made on the CPU after all, in the device's words; nothing where none was.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for kind in [DeviceKind::Cpu, DeviceKind::Candle, DeviceKind::Cuda(0), DeviceKind::Cuda(12), DeviceKind::Metal(3)] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("cuda".parse(), Ok(DeviceKind::Cuda(0)));
        assert_eq!("metal".parse(), Ok(DeviceKind::Metal(0)));
    }

    #[test]
    fn other_names_are_refused() {
        for name in
            ["", "gpu", "CUDA", "cpu:0", "candle:1", "cuda:", "cuda:-1", "cuda:+1", "cuda:x", "cuda:99999999999999999999", "cuda:1:2"]
        {
            assert_eq!(name.parse::<DeviceKind>(), Err(DeviceError::Unknown { name: name.to_owned() }), "{name}");
        }
    }
}
