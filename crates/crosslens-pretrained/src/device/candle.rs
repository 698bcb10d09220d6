//! Products by candle.

use std::panic::{AssertUnwindSafe, catch_unwind};

use candle_core::Tensor;

use super::{Device, DeviceError, DeviceKind};

/// Where weights are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    device: Device,
    /// Nothing where products are made by our kernels.
    opened: Option<candle_core::Device>,
}

/// Weights that a device keeps, `Wᵀ` `[d_in, d_out]`.
pub(crate) struct Held {
    place: Place,
    turned: Tensor,
}

impl Place {
    /// Fails unless the device is there.
    pub(crate) fn open(device: &Device) -> Result<Self, DeviceError> {
        let kind = device.kind();
        let not_built = |feature| Err(DeviceError::NotBuilt { device: kind, feature });
        let opened = match kind {
            DeviceKind::Cpu => None,
            DeviceKind::Candle => Some(candle_core::Device::Cpu),
            DeviceKind::Cuda(_) if !cfg!(feature = "cuda") => return not_built("cuda"),
            DeviceKind::Metal(_) if !cfg!(feature = "metal") => return not_built("metal"),
            DeviceKind::Cuda(number) => Some(asked(|| candle_core::Device::new_cuda(number)).map_err(|why| unusable(kind, why))?),
            DeviceKind::Metal(number) => Some(asked(|| candle_core::Device::new_metal(number)).map_err(|why| unusable(kind, why))?),
        };
        Ok(Self { device: device.clone(), opened })
    }

    /// Takes `W` `[d_out, d_in]` to the device; nothing where products are made by our kernels, or where the device has no room, which its
    /// trouble then tells.
    pub(crate) fn hold(&self, matrix: &[f32], d_in: usize, d_out: usize) -> Option<Held> {
        let opened = self.opened.as_ref()?;
        match asked(|| Tensor::from_slice(matrix, (d_out, d_in), opened)?.t()) {
            Ok(turned) => Some(Held { place: self.clone(), turned }),
            Err(why) => {
                self.device.trouble.get_or_init(|| why);
                None
            }
        }
    }
}

impl Held {
    /// `[rows, d_in]` to `[rows, d_out]` in place of what stood in `result`; false if the device refused, which its trouble then tells.
    pub(crate) fn multiply(&self, rows: &[f32], result: &mut [f32]) -> bool {
        if rows.is_empty() {
            return true;
        }
        let n_rows = rows.len() / self.turned.dims()[0];
        let multiplied = asked(|| {
            let rows = Tensor::from_slice(rows, (n_rows, self.turned.dims()[0]), self.turned.device())?;
            rows.matmul(&self.turned)?.flatten_all()?.to_vec1::<f32>()
        });
        match multiplied {
            Ok(numbers) if numbers.len() == result.len() => result.copy_from_slice(&numbers),
            Ok(numbers) => return self.refused(format!("it gave {} numbers where {} were to be", numbers.len(), result.len())),
            Err(why) => return self.refused(why),
        }
        true
    }

    fn refused(&self, why: String) -> bool {
        self.place.device.trouble.get_or_init(|| why);
        false
    }
}

fn unusable(device: DeviceKind, why: String) -> DeviceError {
    DeviceError::Unusable { device, why }
}

/// What candle answers. Its libraries panic where a driver is missing: that too is an answer.
fn asked<T>(question: impl FnOnce() -> candle_core::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(question)) {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            Err(words.unwrap_or("its library gave up").to_owned())
        }
    }
}
