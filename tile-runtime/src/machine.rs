//! The numbers of this machine's processors that the cost model asks for.

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

/// Elements of f32 in a vector, by instruction set.
const LANES: [(&str, u64); 2] = [("x86-64-v4", 16), ("x86-64-v3", 8)];

/// This machine's processor, of which so many threads run blocks.
pub(crate) fn cpu(threads: usize) -> CpuMachine {
    static MACHINE: OnceLock<CpuMachine> = OnceLock::new();
    let level = crate::cpu::supported_levels().first();
    let machine = *MACHINE.get_or_init(|| {
        let lanes = LANES.iter().find(|(name, _)| Some(name) == level).map_or(4, |&(_, lanes)| lanes);
        let default = CpuMachine { lanes, ..CpuMachine::default() };
        let [l1_bytes, l2_bytes] = [(0, default.l1_bytes), (2, default.l2_bytes)]
            .map(|(index, otherwise)| cache_bytes(index).unwrap_or(otherwise));
        CpuMachine { l1_bytes, l2_bytes, ..default }
    });
    let memory = (MEMORY[0] * threads as f64).min(MEMORY[1]);
    CpuMachine { threads: threads as u64, memory, ..machine }
}

/// Bytes of the largest cache of the first core, which others may share.
pub(crate) fn last_level_cache_bytes() -> u64 {
    (0..5).filter_map(cache_bytes).max().unwrap_or(LAST_LEVEL)
}

/// Bytes of a cache of the first core, as Linux numbers them: data, instructions, the second one.
fn cache_bytes(index: usize) -> Option<u64> {
    let file = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
    let size = std::fs::read_to_string(file).ok()?;
    size.trim().strip_suffix('K')?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

/// A GPU that runs a target's code.
pub(crate) fn gpu(target: &TargetDesc, context: &gpu::Context) -> GpuMachine {
    let rates = Rates::of(target.name).expect("every GPU target has rates");
    let description = context.description();
    GpuMachine::new(rates, Some(description.multiprocessors), description.memory_rate)
}
