//! The time of a launch on a GPU.
//!
//! A block's work is divided by the rate of what does each kind of it; the slowest sets the pace of a multiprocessor
//! that has enough blocks. What a single block can't do faster than, however few there are, is its way to memory and
//! back: once at its begin and end, and once in as many turns of a loop as are copied ahead. The multiprocessor with
//! the most blocks ends last (whole waves of blocks and the last, partial one), and memory gives no more bytes a
//! second than it can. It gives whole sectors, so that elements that lie apart take as long as all around them.
//!
//! That products are limited by what their factors take of shared memory's bandwidth is the model of arXiv 2402.13499's
//! measurements of `wgmma`; DeepGEMM chooses its tiles by the same two ratios and by waves.

use super::plan::{Plan, Unit};
use super::{Limit, NoRoom, Prediction, operations, width};
use crate::counts::{Operation, Totals};
use crate::target::Rates;

/// What begins and ends a block, in ways to memory: its first tiles, and its last ones back.
const WAYS_OF_A_BLOCK: f64 = 1.5;

/// Bytes of memory that go over the chip together: a sector of a cache's line, on GPUs of both vendors at least.
const SECTOR: u64 = 32;

/// The share of memory's bandwidth that kernels reach (copies on an H200: 4.3 of 4.8 TB/s).
const MEMORY_SHARE: f64 = 0.9;

/// A GPU's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuMachine {
    /// Its rates.
    pub rates: Rates,
}

impl GpuMachine {
    /// The processor of a target's row, with numbers of the device's own where it says them.
    pub fn new(rates: &Rates, multiprocessors: Option<u32>, memory: Option<f64>) -> GpuMachine {
        GpuMachine {
            rates: Rates {
                multiprocessors: multiprocessors.unwrap_or(rates.multiprocessors).max(1),
                memory: memory.unwrap_or(rates.memory),
                ..*rates
            },
        }
    }

    /// How many blocks a multiprocessor runs at once.
    fn resident(&self, plan: &Plan) -> u64 {
        let Rates { threads, registers, shared_memory, shared_reserve, .. } = self.rates;
        let by_threads = u64::from(threads) / plan.threads.max(1);
        let by_registers = u64::from(registers) / (plan.threads * plan.registers).max(1);
        let by_shared = u64::from(shared_memory) / (plan.shared_bytes + u64::from(shared_reserve)).max(1);
        by_threads.min(by_registers).min(by_shared).max(1)
    }

    /// Clocks that one multiprocessor would take for all work of each kind.
    fn clocks(&self, totals: &Totals, plan: &Plan) -> [(Limit, f64); 5] {
        let Rates { lanes, special, f64_share, l2_bytes, shared_bytes, warp_share, .. } = self.rates;
        let (mut matrix, mut arithmetic, mut functions, mut shared) = (0.0, 0.0, 0.0, 0.0);
        for (shape, &count) in &totals.products {
            let products = count as f64 * shape.multiply_adds() as f64;
            let product = plan.product(shape);
            shared += product.map_or(0.0, |product| product.shared as f64 * count as f64) / shared_bytes;
            let (rate, share) = match product.map(|product| product.unit) {
                Some(Unit::Warpgroup(factor)) => (self.rates.matrix_rate(factor), 1.0),
                Some(Unit::Warp(factor)) => (self.rates.matrix_rate(factor), warp_share),
                Some(Unit::Lanes) | None => (None, 1.0),
            };
            match rate {
                Some(rate) => matrix += products / (rate * share),
                None => arithmetic += products * width(shape.factor, f64_share) / lanes,
            }
        }
        for (&(operation, dtype), &count) in &totals.operations {
            let count = count as f64 * width(dtype, f64_share);
            match operation {
                Operation::Special => functions += count / special,
                Operation::MultiplyAdd | Operation::Arithmetic | Operation::Other => {
                    arithmetic += count / lanes;
                }
            }
        }
        let cache = totals.touched(SECTOR) as f64 / l2_bytes;
        [
            (Limit::Matrix, matrix),
            (Limit::Shared, shared),
            (Limit::Cache, cache),
            (Limit::Arithmetic, arithmetic),
            (Limit::Special, functions),
        ]
    }

    pub(super) fn predict(&self, totals: &Totals, plan: &Plan) -> Result<Prediction, NoRoom> {
        let Rates { target, multiprocessors, clock, memory, latency, .. } = self.rates;
        if plan.shared_bytes > plan.shared_available {
            let (needed, available) = (plan.shared_bytes, plan.shared_available);
            return Err(NoRoom { needed, available, target });
        }
        let tiles = totals.tiles.max(1);
        let blocks = tiles * plan.blocks_per_tile;
        let by_rate = self.clocks(totals, plan).into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let (busiest, all) = by_rate.expect("there are kinds of work");
        let pace = all / blocks as f64;
        let ways = WAYS_OF_A_BLOCK * latency;
        let turns = totals.loading_turns as f64 / tiles as f64 * latency / plan.stages as f64;
        let alone = ways + pace.max(turns);

        let most = blocks.div_ceil(u64::from(multiprocessors));
        let resident = self.resident(plan);
        let (throughput, paths) = (most as f64 * pace + ways, most.div_ceil(resident) as f64 * alone);
        let waits = paths > throughput && pace < ways.max(turns);
        let on_chip = throughput.max(paths) / clock;
        let by_memory = totals.compulsory_lines(SECTOR) as f64 / (memory * MEMORY_SHARE);
        let limit = match (by_memory > on_chip, waits) {
            (true, _) => Limit::Memory,
            (false, true) => Limit::Latency,
            (false, false) => busiest,
        };
        let at_once = resident * u64::from(multiprocessors);
        let waves = (totals.tiles * plan.blocks_per_tile) as f64 / at_once as f64;
        let (seconds, operations) = (on_chip.max(by_memory), operations(totals));
        Ok(Prediction { seconds, limit, on_chip, operations, at_once, waves })
    }
}
