//! Where pretrained models compute, as the command line says.

use std::sync::OnceLock;

use crosslens_lab::Device;

use crate::failure::Failure;
use crate::output;

/// The device of this command, to be asked at its end whether it did its work.
static CHOSEN: OnceLock<Device> = OnceLock::new();

// A doc comment here would become the help of every command that takes it.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct OnDevice {
    /// Of pretrained models: where the products of their weights are made: cpu, or, in builds with that feature, cuda or metal (cuda:1
    /// for the second processor). Default: cpu.
    #[arg(long, value_name = "DEVICE")]
    device: Option<Device>,
}

impl OnDevice {
    /// The device; the CPU where none is named.
    pub(crate) fn device(&self) -> Device {
        let device = self.device.clone().unwrap_or_default();
        CHOSEN.get_or_init(|| device.clone());
        device
    }

    /// Fails if one is named for a network trained here or a recording.
    pub(crate) fn refuse(&self) -> Result<(), Failure> {
        if self.device.is_none() {
            return Ok(());
        }
        let message = "--device is for pretrained models";
        Err(Failure::usage(message).hint("leave it out: networks trained here compute on the CPU, and recordings are not run"))
    }
}

/// Says where a device left products to the CPU: what was found is right, and took longer.
pub(crate) fn tell_trouble() {
    if let Some((device, why)) = CHOSEN.get().and_then(|device| device.trouble().map(|why| (device, why))) {
        output::note(&format!("note: the device `{}` refused some products, which were made on the CPU instead: {why}", device.kind()));
    }
}
