//! A build without candle: products are made by our kernels alone.

use std::convert::Infallible;

use super::{Device, DeviceError, DeviceKind};

/// Where weights are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place;

/// Weights that a device keeps: there are none.
pub(crate) struct Held(Infallible);

impl Place {
    /// Fails unless the CPU is meant.
    pub(crate) fn open(device: &Device) -> Result<Self, DeviceError> {
        let feature = match device.kind() {
            DeviceKind::Cpu => return Ok(Self),
            DeviceKind::Candle => "candle",
            DeviceKind::Cuda(_) => "cuda",
            DeviceKind::Metal(_) => "metal",
        };
        Err(DeviceError::NotBuilt { device: device.kind(), feature })
    }

    /// Keeps nothing.
    pub(crate) fn hold(&self, _matrix: &[f32], _d_in: usize, _d_out: usize) -> Option<Held> {
        None
    }
}

impl Held {
    pub(crate) fn multiply(&self, _rows: &[f32], _result: &mut [f32]) -> bool {
        match self.0 {}
    }
}
