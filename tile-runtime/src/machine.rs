//! What is known of this machine's processor, and the numbers of processors that the cost model asks for.

mod memory;

pub(crate) use memory::usable_bytes;

use crate::gpu;
use std::sync::OnceLock;
use tile_ir::TargetDesc;
use tile_ir::cost::{CpuMachine, GpuMachine};
use tile_ir::target::Rates;

/// Bytes of memory per second that one thread gets, and all of them together, where nobody says: those of a server's
/// core and of half of its channels.
const MEMORY: [f64; 2] = [12e9, 100e9];

/// Bytes of the last cache before memory, where nobody says: more than most processors have.
const LAST_LEVEL: u64 = 64 << 20;

/// Elements of f32 in a vector where no level is known.
const LANES: u64 = 4;

/// This machine's processor, of which so many threads run blocks.
pub(crate) fn cpu(threads: usize) -> CpuMachine {
    static MACHINE: OnceLock<CpuMachine> = OnceLock::new();
    let machine = *MACHINE.get_or_init(|| {
        let lanes = crate::cpu::levels::best().map_or(LANES, |level| level.lanes);
        let default = CpuMachine { lanes, ..CpuMachine::default() };
        let [l1_bytes, l2_bytes] = [(Cache::FirstData, default.l1_bytes), (Cache::Second, default.l2_bytes)]
            .map(|(cache, otherwise)| cache_bytes(cache).unwrap_or(otherwise));
        CpuMachine { l1_bytes, l2_bytes, ..default }
    });
    let memory = (MEMORY[0] * threads as f64).min(MEMORY[1]);
    CpuMachine { threads: threads as u64, memory, ..machine }
}

/// Caches that the first core uses, by Linux's numbers; that of instructions is between the first and the second.
#[derive(Clone, Copy)]
pub(crate) enum Cache {
    FirstData = 0,
    Second = 2,
    Third = 3,
}

/// Bytes of the largest cache of the first core, which others may share.
pub(crate) fn last_level_cache_bytes() -> u64 {
    let caches = [Cache::FirstData, Cache::Second, Cache::Third];
    caches.into_iter().filter_map(cache_bytes).max().unwrap_or(LAST_LEVEL)
}

/// Bytes of a cache.
pub(crate) fn cache_bytes(cache: Cache) -> Option<u64> {
    let file = format!("/sys/devices/system/cpu/cpu0/cache/index{}/size", cache as usize);
    let size = std::fs::read_to_string(file).ok()?;
    size.trim().strip_suffix('K')?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

/// The processor's name; its architecture's where the system doesn't say it.
pub(crate) fn processor_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("model name"));
    line.and_then(|line| line.split_once(": "))
        .map_or(std::env::consts::ARCH, |(_, name)| name.trim())
        .to_owned()
}

/// The highest clock of the first core, in hertz.
pub(crate) fn clock() -> Option<f64> {
    let file = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq";
    let kilohertz: f64 = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    Some(kilohertz * 1e3)
}

/// Bytes of memory by Linux's name of the number, such as `MemTotal`.
pub(crate) fn memory_bytes(name: &str) -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

/// A GPU that runs a target's code; without one, the largest that does.
pub(crate) fn gpu(target: &TargetDesc, context: Option<&gpu::Context>) -> GpuMachine {
    let rates = Rates::of(target.name).expect("every GPU target has rates");
    let description = context.map(gpu::Context::description);
    GpuMachine::new(
        rates,
        description.map(|gpu| gpu.multiprocessors),
        description.and_then(|gpu| gpu.memory_rate),
    )
}
