//! What a device is: numbers that people compare and that tables show.

use crate::columns::aligned;
use crate::device::{Device, Kind};
use crate::error::Result;
use crate::gpu::Context;
use crate::{cpu, machine, quantity};
use tile_ir::TargetDesc;

/// What a device is, from [`Device::properties`]. What nobody says is `None`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Properties {
    /// The name that [`Device::named`] takes.
    pub device: String,
    /// The processor's name.
    pub name: String,
    /// A GPU's UUID, as `nvidia-smi -L`, NVML, Kubernetes and `rocminfo` write it behind `GPU-`, or behind `MIG-` for an
    /// instance of a GPU in parts: `5a21c80f-ee01-4b7d-9012-3456789abc01`, of AMD's `b7da1a2c8e5f0913`.
    pub uuid: Option<String>,
    /// Domain, bus, device and function of a GPU on the PCI bus, as in `/sys/bus/pci/devices`: `0000:3b:00.0`, which
    /// `nvidia-smi` writes as `00000000:3B:00.0`.
    pub pci_bus: Option<String>,
    /// The target that makes most of it, as build scripts name it, or a processor's level: `sm_90a`, `gfx942`, `x86-64-v4`,
    /// `armv8-a`.
    pub architecture: String,
    /// Multiprocessors or compute units of a GPU; threads that run blocks on a processor.
    pub multiprocessors: usize,
    /// Threads of a warp or wave; elements of f32 in a processor's vector.
    pub width: usize,
    /// The highest clock, in hertz.
    pub clock: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Bytes of it that nobody uses, in this process or another.
    pub memory_free: Option<u64>,
    /// Bytes that memory gives or takes per second, at most.
    pub memory_rate: Option<f64>,
    /// Bytes of shared memory of a block, at most.
    pub shared_bytes: Option<u64>,
    /// Bytes of the first cache for data, of one core.
    pub l1_bytes: Option<u64>,
    /// Bytes of the second cache, of a GPU or of one core.
    pub l2_bytes: Option<u64>,
    /// Bytes of the last cache of a processor.
    pub l3_bytes: Option<u64>,
    /// The version of the driver's interface: `CUDA 12.8`, `HIP 6.3`.
    pub driver: Option<String>,
}

impl Device {
    /// What the device is.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::Device;
    /// let cpu = Device::cpu().properties()?;
    /// assert!(cpu.multiprocessors >= 1);
    /// println!("{cpu:?}");
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`] and [`crate::Error::Driver`].
    pub fn properties(&self) -> Result<Properties> {
        match &self.0 {
            Kind::Reference => Ok(Properties {
                architecture: "Rust".to_owned(),
                multiprocessors: 1,
                width: 1,
                ..processor(self.name())
            }),
            Kind::Cpu => Ok(processor(self.name())),
            Kind::Gpu(context) => gpu(self.name(), context),
            Kind::Simulated(gpu) => Ok(simulated(self.name(), gpu.target())),
        }
    }
}

fn processor(device: String) -> Properties {
    let threads = cpu::threads();
    let model = machine::cpu(threads);
    let [memory, memory_free] = ["MemTotal", "MemAvailable"].map(machine::memory_bytes);
    Properties {
        device,
        name: machine::processor_name(),
        uuid: None,
        pci_bus: None,
        architecture: cpu::levels::best().map_or(std::env::consts::ARCH, |level| level.name).to_owned(),
        multiprocessors: threads,
        width: model.lanes as usize,
        clock: machine::clock(),
        memory,
        memory_free,
        memory_rate: None,
        shared_bytes: None,
        l1_bytes: machine::cache_bytes(machine::Cache::FirstData),
        l2_bytes: machine::cache_bytes(machine::Cache::Second),
        l3_bytes: machine::cache_bytes(machine::Cache::Third),
        driver: None,
    }
}

/// A GPU that the processor simulates: its memory is the host's, and it has the clock of nothing.
fn simulated(device: String, target: &TargetDesc) -> Properties {
    Properties {
        architecture: target.name.to_owned(),
        multiprocessors: 1,
        width: target.warp as usize,
        clock: None,
        shared_bytes: Some(target.shared_bytes as u64),
        l1_bytes: None,
        l2_bytes: None,
        l3_bytes: None,
        ..processor(device)
    }
}

fn gpu(device: String, context: &Context) -> Result<Properties> {
    let description = context.description();
    let (memory_free, memory) = context.memory_bytes()?;
    Ok(Properties {
        device,
        name: description.name.clone(),
        uuid: description.uuid.clone(),
        pci_bus: description.pci_bus.clone(),
        architecture: context.target().map_or_else(String::new, |target| target.name.to_owned()),
        multiprocessors: context.multiprocessors(),
        width: description.warp as usize,
        clock: description.clock,
        memory: Some(memory),
        memory_free: Some(memory_free),
        memory_rate: description.memory_rate,
        shared_bytes: Some(description.shared_bytes),
        l1_bytes: None,
        l2_bytes: Some(description.l2_bytes),
        l3_bytes: None,
        driver: Some(description.driver.clone()),
    })
}

/// A column of the table: its head, and what it says of a device.
type Column = (&'static str, fn(&Properties) -> String);

const COLUMNS: [Column; 11] = [
    ("device", |it| it.device.clone()),
    ("processor", |it| it.name.clone()),
    ("PCI bus", |it| it.pci_bus.clone().unwrap_or_else(unknown)),
    ("code", |it| it.architecture.clone()),
    ("units × width", |it| format!("{} × {}", it.multiprocessors, it.width)),
    ("clock", |it| it.clock.map_or_else(unknown, quantity::frequency)),
    ("memory", |it| it.memory.map_or_else(unknown, quantity::memory)),
    ("free", |it| it.memory_free.map_or_else(unknown, quantity::memory)),
    ("memory rate", |it| it.memory_rate.map_or_else(unknown, quantity::byte_rate)),
    ("shared, caches", caches),
    ("driver", |it| it.driver.clone().unwrap_or_else(unknown)),
];

fn unknown() -> String {
    "–".to_owned()
}

fn caches(it: &Properties) -> String {
    let sizes = [it.shared_bytes, it.l1_bytes, it.l2_bytes, it.l3_bytes];
    let texts: Vec<String> = sizes.into_iter().flatten().map(quantity::memory).collect();
    if texts.is_empty() { unknown() } else { texts.join(", ") }
}

/// Devices as a table with a line for each: `cargo xtask devices` prints it.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Device, properties};
/// let rows = [Device::cpu().properties()?];
/// assert!(properties::table(&rows).starts_with("device"));
/// # Ok::<(), tile::Error>(())
/// ```
pub fn table(devices: &[Properties]) -> String {
    let head = COLUMNS.iter().map(|(head, _)| (*head).to_owned()).collect();
    let row = |it: &Properties| COLUMNS.iter().map(|(_, text)| text(it)).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(devices.iter().map(row)).collect();
    aligned(&rows, |_| false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_what_is_known_of_each_device() {
        let gpu = Properties {
            device: "cuda:0".to_owned(),
            name: "NVIDIA H200".to_owned(),
            uuid: Some("5a21c80f-ee01-4b7d-9012-3456789abc01".to_owned()),
            pci_bus: Some("0000:3b:00.0".to_owned()),
            architecture: "sm_90a".to_owned(),
            multiprocessors: 132,
            width: 32,
            clock: Some(1.98e9),
            memory: Some(150_050_504_704),
            memory_free: Some(149_250_000_000),
            memory_rate: Some(4.916e12),
            shared_bytes: Some(227 << 10),
            l1_bytes: None,
            l2_bytes: Some(60 << 20),
            l3_bytes: None,
            driver: Some("CUDA 12.8".to_owned()),
        };
        let cpu = Properties {
            device: "cpu".to_owned(),
            name: "Intel Xeon".to_owned(),
            uuid: None,
            pci_bus: None,
            architecture: "x86-64-v4".to_owned(),
            multiprocessors: 2,
            width: 16,
            clock: None,
            memory: Some(24 << 30),
            memory_free: Some(1 << 30),
            memory_rate: None,
            shared_bytes: None,
            l1_bytes: Some(48 << 10),
            l2_bytes: Some(2 << 20),
            l3_bytes: None,
            driver: None,
        };
        let expected = "\
device  processor    PCI bus       code       units × width  clock     memory   free     memory rate  shared, caches   driver
cuda:0  NVIDIA H200  0000:3b:00.0  sm_90a     132 × 32       1.98 GHz  140 GiB  139 GiB  4.92 TB/s    227 KiB, 60 MiB  CUDA 12.8
cpu     Intel Xeon   –             x86-64-v4  2 × 16         –         24 GiB   1 GiB    –            48 KiB, 2 MiB    –
";
        assert_eq!(table(&[gpu, cpu]), expected);
    }

    #[test]
    fn every_device_that_is_there_has_properties() {
        for device in Device::all() {
            let properties = device.properties().unwrap();
            assert_eq!(properties.device, device.name());
            assert!(properties.multiprocessors > 0 && properties.width > 0, "{properties:?}");
            assert!(properties.memory >= properties.memory_free, "{properties:?}");
        }
    }
}
