//! How long a launch takes, as far as that can be told from what it does and how fast a processor does it.
//!
//! [`predict`] is a function of counts ([`Totals`]), of how a block is scheduled ([`Plan`]), and of a processor's
//! numbers ([`Machine`]), and of nothing else: no clock is read and nothing is tried. It is there to compare instances
//! of one kernel for one launch. Times are those of a processor that does every kind of work at its own rate at the
//! same time, so they are lower bounds rather than forecasts; their order is what counts.

mod cpu;
mod gpu;
mod plan;

pub use cpu::CpuMachine;
pub use gpu::GpuMachine;
pub use plan::{Plan, ProductPlan, Unit};

use crate::counts::Totals;
use crate::dtype::DType;
use std::cmp::Ordering;
use std::fmt;

/// A processor's numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Machine {
    /// The host processor.
    Cpu(CpuMachine),
    /// A GPU.
    Gpu(GpuMachine),
}

/// What a launch waits for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Matrix instructions.
    Matrix,
    /// Multiply-adds and other arithmetic of vectors or lanes.
    Arithmetic,
    /// Exponentials, quotients and the like.
    Special,
    /// Shared memory, which products read their factors from.
    Shared,
    /// The cache that all blocks share.
    Cache,
    /// Memory.
    Memory,
    /// The way to memory and back, where a block has nothing to do meanwhile.
    Latency,
    /// What every block costs, whatever it does.
    Blocks,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Limit::Matrix => "matrix units",
            Limit::Arithmetic => "arithmetic",
            Limit::Special => "special functions",
            Limit::Shared => "shared memory",
            Limit::Cache => "cache",
            Limit::Memory => "memory",
            Limit::Latency => "latency",
            Limit::Blocks => "cost of blocks",
        })
    }
}

/// What the model says of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Seconds.
    pub seconds: f64,
    /// What takes them.
    pub limit: Limit,
    /// Seconds without the time of memory, which instances of one kernel share.
    pub on_chip: f64,
    /// Operations, also of elements that masks leave out.
    pub operations: f64,
    /// Blocks that run at once on the whole processor.
    pub at_once: u64,
    /// How often the processor is filled with blocks: the last time perhaps not whole.
    pub waves: f64,
}

impl Prediction {
    /// By time; where memory takes the same, by the operations that are done meanwhile, which cost power, and then by
    /// how long the rest would take without it.
    pub fn compare(&self, other: &Prediction) -> Ordering {
        let by_time = self.seconds.total_cmp(&other.seconds);
        let by_operations = coarse(self.operations).total_cmp(&coarse(other.operations));
        by_time.then(by_operations).then(self.on_chip.total_cmp(&other.on_chip))
    }
}

/// A block that a processor has no room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block needs {needed} bytes of shared memory, and {target} has {available}")]
pub struct NoRoom {
    /// Bytes that it needs.
    pub needed: u64,
    /// Bytes that there are.
    pub available: u64,
    /// The target.
    pub target: &'static str,
}

/// How long a launch takes that does this. `plan` says how a GPU's block is scheduled.
///
/// ```
/// use tile_ir::cost::{self, CpuMachine, Limit, Machine};
/// use tile_ir::counts::{Spread, TensorTotal, Totals};
/// // A gigabyte is read, and nothing is computed.
/// let name = String::from("x");
/// let spread = Spread::new(4, [(1 << 28, 1)]);
/// let x = TensorTotal { name, bytes: 1 << 30, read: 1 << 30, written: 0, spread };
/// let totals = Totals { tiles: 1 << 14, tensors: vec![x], ..Totals::default() };
/// let slow = Machine::Cpu(CpuMachine { memory: 10e9, ..CpuMachine::default() });
/// let fast = Machine::Cpu(CpuMachine { memory: 20e9, ..CpuMachine::default() });
/// let (slow, fast) = (cost::predict(&totals, None, &slow)?, cost::predict(&totals, None, &fast)?);
/// assert_eq!(slow.limit, Limit::Memory);
/// assert!((slow.seconds / fast.seconds - 2.0).abs() < 1e-9);
/// # Ok::<(), cost::NoRoom>(())
/// ```
///
/// # Errors
/// [`NoRoom`] where a block doesn't fit.
///
/// # Panics
/// If a GPU is given no plan.
pub fn predict(totals: &Totals, plan: Option<&Plan>, machine: &Machine) -> Result<Prediction, NoRoom> {
    match machine {
        Machine::Cpu(machine) => Ok(machine.predict(totals)),
        Machine::Gpu(machine) => machine.predict(totals, plan.expect("a GPU's block is scheduled")),
    }
}

/// Operations of all kinds, a product that is added to a sum as one.
fn operations(totals: &Totals) -> f64 {
    let products = totals.products.iter().map(|(shape, &count)| shape.multiply_adds() as f64 * count as f64);
    let others = totals.operations.values().map(|&count| count as f64);
    products.chain(others).sum()
}

/// Operations without the last few in 256 of them: those on scalars, which smaller blocks do more often, are no reason for
/// larger ones.
fn coarse(operations: f64) -> f64 {
    const KEPT_BITS: u32 = 8;
    let cut = f64::MANTISSA_DIGITS - 1 - KEPT_BITS;
    f64::from_bits(operations.to_bits() >> cut << cut)
}

/// As how many elements of 32 bits one of a format counts, in time.
fn width(dtype: DType, f64_share: f64) -> f64 {
    match dtype {
        DType::F64 => 1.0 / f64_share,
        // Half as many in a vector of a CPU, and two registers of a GPU's thread.
        DType::I64 | DType::U64 => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests;
