//! Where kernels run.

use crate::error::{Error, Result};
use crate::gpu::{self, MemoryLimits, MemoryUse, VENDORS};
use crate::simulated::{self, Simulated};
use crate::{cpu, host, machine};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// A device: the reference, this machine's processor, a GPU, or one that this machine simulates. Cheap to clone.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::Device;
/// assert_eq!(Device::reference().name(), "reference");
/// assert!(Device::named("cuda:x").unwrap_err().to_string().contains("cpu, reference, cuda:0, cuda:1, hip:0"));
/// ```
///
/// A name is parsed as numbers are, also by what reads a program's arguments, and a device is a key of a map. Clippy's
/// `mutable_key_type` objects to that, because what it knows of a GPU's memory changes; a device's equality and hash don't.
///
/// ```
/// # use tile_runtime as tile;
/// use std::collections::HashMap;
/// use tile::Device;
/// let device: Device = "cpu".parse()?;
/// let batches = HashMap::from([(device, 32)]);
/// assert_eq!(batches[&Device::cpu()], 32);
/// # Ok::<(), tile::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Reference,
    Cpu,
    Gpu(Arc<gpu::Context>),
    Simulated(Simulated),
}

/// The environment variable that chooses [`Device::best`].
const DEVICE_VARIABLE: &str = "TILE_DEVICE";

impl Device {
    /// The device that `TILE_DEVICE` names (`cpu`, `reference`, `cuda:1`, `hip:0`, `simulated:sm_90a`); without it the
    /// first NVIDIA GPU that can be used, else the first such GPU of AMD's, else this machine's processor. Those that no
    /// target's code runs on can't.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if `TILE_DEVICE` names a device that isn't there.
    pub fn best() -> Result<Device> {
        match std::env::var_os(DEVICE_VARIABLE) {
            Some(name) => Device::asked_for(&name.to_string_lossy()),
            None => Ok(Device::each_gpu().next().unwrap_or_else(Device::cpu)),
        }
    }

    /// The device that the environment names.
    fn asked_for(name: &str) -> Result<Device> {
        Device::named(name).map_err(|error| match error {
            Error::NoDevice { device, reason } => {
                Error::NoDevice { device, reason: format!("{reason}; {DEVICE_VARIABLE} asks for it") }
            }
            error => error,
        })
    }

    /// Every device that works here: the reference, the processor, and the GPUs.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::Device;
    /// let names: Vec<String> = Device::all().iter().map(Device::name).collect();
    /// assert_eq!(names[..2], ["reference", "cpu"]);
    /// ```
    pub fn all() -> Vec<Device> {
        [Device::reference(), Device::cpu()].into_iter().chain(Device::gpus()).collect()
    }

    /// The GPUs of all vendors that work here, each vendor's in its driver's order. Launches on several run at once:
    /// [`Launch::launch`](crate::Launch::launch) waits for none.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// /// The parts of rows that several devices get.
    /// fn scatter(x: &Tensor<f32>, devices: &[Device]) -> tile::Result<Vec<Tensor<f32>>> {
    ///     let (rows, count) = (x.shape()[0], devices.len());
    ///     let parts = (0..count).map(|part| x.slice(rows * part / count..rows * (part + 1) / count));
    ///     parts.zip(devices).map(|(part, device)| part?.copy_to(device)).collect()
    /// }
    /// let mut devices = Device::gpus();
    /// if devices.is_empty() {
    ///     devices.push(Device::cpu());
    /// }
    /// let x = Tensor::zeros(&Device::cpu(), [1000, 4])?;
    /// assert_eq!(scatter(&x, &devices)?.iter().map(|part| part.shape()[0]).sum::<usize>(), 1000);
    /// # Ok::<(), tile_runtime::Error>(())
    /// ```
    pub fn gpus() -> Vec<Device> {
        Device::each_gpu().collect()
    }

    /// [`Device::gpus`], each opened when it is asked for.
    fn each_gpu() -> impl Iterator<Item = Device> {
        VENDORS.iter().flat_map(|vendor| vendor.devices()).map(|context| Device(Kind::Gpu(context)))
    }

    /// Whether it is a GPU: neither the processor nor what runs there, as the reference and simulated devices do.
    pub fn is_gpu(&self) -> bool {
        matches!(self.0, Kind::Gpu(_))
    }

    /// The device with this name.
    ///
    /// # Errors
    /// [`Error::NoDevice`] for an unknown name, or a device that isn't there.
    pub fn named(name: &str) -> Result<Device> {
        let no = |reason: &str| Error::NoDevice { device: name.to_owned(), reason: reason.to_owned() };
        match (name, name.strip_prefix(simulated::PREFIX)) {
            ("cpu", _) => Ok(Device::cpu()),
            ("reference", _) => Ok(Device::reference()),
            (_, Some(target)) => Device::simulated(target),
            _ => {
                let (api, ordinal) = name.split_once(':').unwrap_or((name, "0"));
                let vendor = VENDORS.iter().find(|vendor| vendor.api == api);
                let gpu = vendor.zip(ordinal.parse().ok());
                let (vendor, ordinal) = gpu.ok_or_else(|| {
                    no("the names are cpu, reference, cuda:0, cuda:1, hip:0, …, simulated:sm_90a, …")
                })?;
                vendor.device(ordinal).map(|context| Device(Kind::Gpu(context)))
            }
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
        Device::named(&format!("cuda:{ordinal}"))
    }

    /// An AMD GPU by number.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where there is no HIP runtime (ROCm 6.0 or later) or no such GPU.
    pub fn hip(ordinal: usize) -> Result<Device> {
        Device::named(&format!("hip:{ordinal}"))
    }

    /// A GPU that this machine simulates, by the target whose code it gets: `sm_80`, `sm_90a`, `gfx942`, …
    ///
    /// A launch compiles the kernel as for that GPU and runs it thread by thread: warps synchronise in their collectives,
    /// blocks in their barriers, and asynchronous copies and tensor cores do their work as late as the rules allow.
    /// Mistakes that a GPU may tolerate, so that a test on one may never see them, are [`Error::Simulation`] with the line
    /// of the kernel: races between threads, out-of-bounds accesses, reads of what was never written, missing waits and
    /// fences, misalignment, deadlock, also of blocks that wait for each other. It is far slower than a processor, so tensors should be small; no GPU, driver or
    /// toolkit is needed. With `TILE_DEVICE=simulated:gfx942` a program's tests that use [`Device::best`] run so, unchanged.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::Device;
    /// # #[cfg(feature = "jit")] {
    /// let device = Device::simulated("sm_90a")?;
    /// assert_eq!((device.name(), device.properties()?.width), ("simulated:sm_90a".to_owned(), 32));
    /// # }
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoDevice`] for a name that is no GPU target's, and without the feature `jit`.
    pub fn simulated(target: &str) -> Result<Device> {
        Ok(Device(Kind::Simulated(Simulated::of(target)?)))
    }

    /// How the memory that tensors have of the device is used. The processor, the reference and simulated devices share the
    /// host's.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] and [`Error::Driver`].
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Tensor};
    /// let device = Device::cpu();
    /// let before = device.memory()?;
    /// let x = Tensor::<f32>::zeros(&device, [1024])?;
    /// assert!(device.memory()?.peak >= 4096);
    /// assert!(device.memory()?.allocations > before.allocations);
    /// # Ok::<(), tile::Error>(())
    /// ```
    pub fn memory(&self) -> Result<MemoryUse> {
        match &self.0 {
            Kind::Gpu(context) => context.memory(),
            _ => Ok(host::usage()),
        }
    }

    /// Gives back the memory that a GPU keeps for later tensors, after the work that is enqueued. When memory runs out,
    /// that happens by itself.
    ///
    /// # Errors
    /// As [`Device::memory`].
    pub fn trim(&self) -> Result<()> {
        match &self.0 {
            Kind::Gpu(context) => context.trim(),
            _ => Ok(()),
        }
    }

    /// Limits how much of a GPU's memory this process uses and keeps, in the place of what was said before or by the
    /// environment. What is in use stays, even if it is more.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for devices whose memory is the host's; as [`Device::memory`] else.
    ///
    /// ```no_run
    /// # use tile_runtime as tile;
    /// use tile::{Device, MemoryLimits};
    /// let device = Device::cuda(0)?;
    /// // No more than 8 GiB for tensors, and of what they leave nothing beyond 1 GiB is kept.
    /// device.limit_memory(MemoryLimits { in_use: 8 << 30, held: 1 << 30 })?;
    /// # Ok::<(), tile::Error>(())
    /// ```
    pub fn limit_memory(&self, limits: MemoryLimits) -> Result<()> {
        match &self.0 {
            Kind::Gpu(context) => context.limit_memory(limits),
            _ => Err(Error::Unsupported {
                device: self.name(),
                action: "limiting the memory".to_owned(),
                reason: "it is the host's, of which the system lets a process have so much; limit it there, by a container \
                         or `ulimit -v`"
                    .to_owned(),
            }),
        }
    }

    /// A number that no other device has.
    pub(crate) fn number(&self) -> usize {
        match &self.0 {
            Kind::Reference => 0,
            Kind::Cpu => 1,
            Kind::Gpu(context) => context.number(),
            Kind::Simulated(gpu) => gpu.number(),
        }
    }

    /// How many threads run its blocks, if it is the processor; 0 for other devices.
    pub(crate) fn threads(&self) -> usize {
        if let Kind::Cpu = self.0 { cpu::threads() } else { 0 }
    }

    /// The name that [`Device::named`] takes.
    pub fn name(&self) -> String {
        match &self.0 {
            Kind::Reference => "reference".to_owned(),
            Kind::Cpu => "cpu".to_owned(),
            Kind::Gpu(context) => context.name().to_owned(),
            Kind::Simulated(gpu) => gpu.name(),
        }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.number() == other.number()
    }
}

impl Eq for Device {}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number().hash(state);
    }
}

impl FromStr for Device {
    type Err = Error;

    /// As [`Device::named`].
    fn from_str(name: &str) -> Result<Device> {
        Device::named(name)
    }
}

impl fmt::Display for Device {
    /// Name and hardware: `cpu (Intel Xeon, 2 threads)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Reference => f.write_str("reference"),
            Kind::Cpu => write!(f, "cpu ({}, {} threads)", machine::processor_name(), cpu::threads()),
            Kind::Gpu(context) => write!(f, "{context:?}"),
            Kind::Simulated(gpu) => write!(f, "{gpu:?}"),
        }
    }
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
            "device `gpu` isn't available: the names are cpu, reference, cuda:0, cuda:1, hip:0, …, simulated:sm_90a, …"
        );
        assert_eq!(
            message("cuda:-1"),
            "device `cuda:-1` isn't available: the names are cpu, reference, cuda:0, cuda:1, hip:0, …, simulated:sm_90a, …"
        );
    }

    #[test]
    fn a_name_is_parsed_and_a_device_is_a_key() {
        // What clap asks of a value that it parses.
        fn is_parsed<
            T: FromStr<Err: Into<Box<dyn std::error::Error + Send + Sync>>> + Clone + Send + Sync,
        >() {
        }
        is_parsed::<Device>();
        assert_eq!("reference".parse::<Device>().unwrap(), Device::reference());
        assert_eq!(
            "gpu".parse::<Device>().unwrap_err().to_string(),
            Device::named("gpu").unwrap_err().to_string()
        );
        let names =
            [Device::cpu(), Device::reference(), Device::cpu()].map(|device| (device.clone(), device.name()));
        #[allow(clippy::mutable_key_type, reason = "what is compared and hashed is a number that stays")]
        let names = std::collections::HashMap::from(names);
        assert_eq!((names.len(), &*names[&Device::cpu()]), (2, "cpu"));
    }

    #[test]
    fn a_device_that_the_environment_names_wrongly_is_said_to_be_named_there() {
        assert_eq!(Device::asked_for("reference").unwrap(), Device::reference());
        assert_eq!(
            Device::asked_for("").unwrap_err().to_string(),
            "device `` isn't available: the names are cpu, reference, cuda:0, cuda:1, hip:0, …, simulated:sm_90a, …; TILE_DEVICE asks for it"
        );
    }

    #[test]
    fn a_missing_gpu_is_an_error_and_not_a_panic() {
        for name in ["cuda:4096", "hip:4096"] {
            let error = Device::named(name).unwrap_err().to_string();
            assert!(error.starts_with(&format!("device `{name}` isn't available: ")), "{error}");
        }
    }
}
