//! Where kernels run.

use crate::cuda;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A device: the reference, this machine's processor, or an NVIDIA GPU. Cheap to clone.
///
/// ```
/// use tile_runtime::Device;
/// assert_eq!(Device::reference().name(), "reference");
/// assert!(Device::named("cuda:x").unwrap_err().to_string().contains("cpu, reference, cuda:0"));
/// ```
#[derive(Clone, Debug)]
pub struct Device(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Reference,
    Cpu,
    Cuda(Arc<cuda::Context>),
}

/// The environment variable that chooses [`Device::best`].
pub const DEVICE_VARIABLE: &str = "TILE_DEVICE";

impl Device {
    /// The device that `TILE_DEVICE` names (`cpu`, `reference`, `cuda:1`); without it the first NVIDIA GPU,
    /// or this machine's processor where there is none.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if `TILE_DEVICE` names a device that isn't there.
    pub fn best() -> Result<Device> {
        match std::env::var(DEVICE_VARIABLE) {
            Ok(name) => Device::named(&name),
            Err(_) => Ok(Device::cuda(0).unwrap_or_else(|_| Device::cpu())),
        }
    }

    /// The device with this name.
    ///
    /// # Errors
    /// [`Error::NoDevice`] for an unknown name, or a device that isn't there.
    pub fn named(name: &str) -> Result<Device> {
        let no = |reason: &str| Error::NoDevice { device: name.to_owned(), reason: reason.to_owned() };
        match name.split_once(':') {
            None if name == "cpu" => Ok(Device::cpu()),
            None if name == "reference" => Ok(Device::reference()),
            None if name == "cuda" => Device::cuda(0),
            Some(("cuda", ordinal)) if ordinal.parse::<usize>().is_ok() => {
                Device::cuda(ordinal.parse().map_err(|_| no("its number is too large"))?)
            }
            Some(("hip", _)) => Err(no(
                "AMD code objects are built, but this version can't launch them; use `cpu` or `cuda:0`",
            )),
            _ => Err(no("the names are cpu, reference, cuda:0, cuda:1, …")),
        }
    }

    /// This machine's processor.
    pub fn cpu() -> Device {
        Device(Kind::Cpu)
    }

    /// The kernel's body as ordinary Rust, block by block on the calling thread: the meaning of every kernel,
    /// and the place for breakpoints.
    pub fn reference() -> Device {
        Device(Kind::Reference)
    }

    /// An NVIDIA GPU by number.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where there is no driver or no such GPU.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        cuda::Context::new(ordinal).map(|context| Device(Kind::Cuda(context)))
    }

    /// A number that no other device has.
    pub(crate) fn number(&self) -> usize {
        match &self.0 {
            Kind::Reference => 0,
            Kind::Cpu => 1,
            Kind::Cuda(context) => 2 + context.ordinal(),
        }
    }

    /// The name that [`Device::named`] takes.
    pub fn name(&self) -> String {
        match &self.0 {
            Kind::Reference => "reference".to_owned(),
            Kind::Cpu => "cpu".to_owned(),
            Kind::Cuda(context) => format!("cuda:{}", context.ordinal()),
        }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.number() == other.number()
    }
}

impl Eq for Device {}

impl fmt::Display for Device {
    /// Name and hardware: `cpu (Intel Xeon, 2 threads)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Reference => f.write_str("reference"),
            Kind::Cpu => write!(f, "cpu ({}, {} threads)", processor_name(), crate::cpu::threads()),
            Kind::Cuda(context) => write!(f, "cuda:{} ({})", context.ordinal(), context.name()),
        }
    }
}

fn processor_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("model name"));
    line.and_then(|line| line.split_once(": "))
        .map_or(std::env::consts::ARCH, |(_, name)| name.trim())
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_bad_ones_are_explained() {
        for name in ["cpu", "reference"] {
            assert_eq!(Device::named(name).unwrap().name(), name);
        }
        let message = |name: &str| Device::named(name).unwrap_err().to_string();
        assert_eq!(
            message("gpu"),
            "device `gpu` isn't available: the names are cpu, reference, cuda:0, cuda:1, …"
        );
        assert!(message("hip:0").contains("can't launch"), "{}", message("hip:0"));
        assert_eq!(
            message("cuda:-1"),
            "device `cuda:-1` isn't available: the names are cpu, reference, cuda:0, cuda:1, …"
        );
    }

    #[test]
    fn a_missing_gpu_is_an_error_and_not_a_panic() {
        let error = Device::cuda(4096).unwrap_err().to_string();
        assert!(error.starts_with("device `cuda:4096` isn't available"), "{error}");
    }
}
