//! What the executor reports: what went wrong, which thread did it, and where in the user's Rust.

use super::flight::Flights;
use super::shadow::Conflict;
use std::fmt;
use tile_ir::Loc;
use tile_ir::tensor_map::MapError;

/// The most blocks of a grid (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
pub(super) const MOST_BLOCKS: u64 = (1 << 31) - 1;

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// An argument for which a driver would have no tensor map, so that no block runs.
    #[error(transparent)]
    TensorMap(#[from] MapError),
    /// Blocks that aren't whole clusters, of which a launch has no others.
    #[error(
        "{blocks} blocks aren't whole clusters: {cluster} of the kernel's blocks run together, so run a multiple of that"
    )]
    Clusters {
        /// The blocks that were asked for.
        blocks: u64,
        /// Blocks of a cluster.
        cluster: u32,
    },
    /// More blocks than a grid has.
    #[error(
        "{blocks} blocks are more than a grid has, which is {MOST_BLOCKS}; run the kernel on parts of its tensors"
    )]
    Grid {
        /// The blocks that were asked for.
        blocks: u64,
    },
    /// No stacks for the threads of a cluster.
    #[error(
        "the host has no stacks for {threads} threads more ({reason}); simulate fewer launches at a time, or on Linux raise \
         `vm.max_map_count`"
    )]
    Stacks {
        /// The threads.
        threads: usize,
        /// The system's words.
        reason: String,
    },
    /// What a thread did.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Something that a GPU may punish or not, and that the executor always reports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block {block}, thread {thread}{}: {problem}", At(*place))]
pub struct Fault {
    /// The block's number in the grid.
    pub block: u64,
    /// The thread's number in the block.
    pub thread: u32,
    /// The op that did it.
    pub place: Loc,
    /// What it did.
    pub problem: Problem,
}

/// A kind of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Shared memory of the block.
    Shared,
    /// The tensor of this argument.
    Tensor(String),
}

/// An earlier access, by a thread of the same block or by another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The thread; `None` for what runs beside the threads, such as a copy.
    pub thread: Option<u32>,
    /// The block, where it isn't the one that faults.
    pub block: Option<u64>,
    /// Whether it wrote.
    pub wrote: bool,
    /// Its op.
    pub place: Loc,
}

/// An asynchronous operation in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The instruction.
    pub name: String,
    /// Whether it writes the bytes in question.
    pub writes: bool,
    /// The thread that issued it.
    pub thread: u32,
    /// Its block, where it isn't the one that faults.
    pub block: Option<u64>,
    /// Its op.
    pub place: Loc,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Two threads access a byte, one of them writes it, and nothing orders them.
    Race {
        /// The memory.
        memory: Memory,
        /// Bytes from its start.
        offset: usize,
        /// Whether the access that faults writes.
        writes: bool,
        /// What came before.
        earlier: Earlier,
    },
    /// A read of shared memory that nobody wrote.
    Uninitialized {
        /// Bytes from the start of shared memory.
        offset: usize,
    },
    /// An access outside shared memory.
    OutsideShared {
        /// Bytes from the start of shared memory.
        offset: i64,
        /// Bytes that it accesses.
        bytes: usize,
        /// Shared memory of the block.
        available: usize,
    },
    /// An access outside every argument.
    OutsideArguments {
        /// Bytes that it accesses.
        bytes: usize,
        /// The argument that lies nearest, how far it begins from there in bytes, and how long it is.
        nearest: Option<(String, i64, usize)>,
    },
    /// An access of what lies between the elements of a tensor that isn't dense, or before them.
    BetweenElements {
        /// The argument.
        argument: String,
        /// Bytes from its start.
        offset: usize,
        /// Bytes that it accesses.
        bytes: usize,
    },
    /// A write to a tensor that the kernel only reads.
    WritesInput {
        /// The argument.
        argument: String,
    },
    /// An address that isn't a multiple of what the instruction relies on.
    Misaligned {
        /// What it relies on, in bytes.
        alignment: u64,
        /// The bytes by which the address misses it.
        excess: u64,
    },
    /// The lanes of a warp disagree on a value that is the same for all.
    NotUniform {
        /// The value of the warp's first lane.
        first: u64,
        /// The lane's.
        other: u64,
    },
    /// An access of bytes that an asynchronous operation still works on.
    InFlight {
        /// The memory.
        memory: Memory,
        /// Bytes from its start.
        offset: usize,
        /// Whether the access that faults writes.
        writes: bool,
        /// The operation.
        operation: Operation,
    },
    /// An asynchronous operation on what a thread wrote, with no proxy fence in between.
    Unfenced {
        /// The memory.
        memory: Memory,
        /// Bytes from its start.
        offset: usize,
        /// Whether the operation writes.
        writes: bool,
        /// The write.
        earlier: Earlier,
    },
    /// A release of what a thread did before, while copies that it asked for may still write tensors: a fence orders none of
    /// these (PTX ISA, "Memory Consistency Model", "Asynchronous operations").
    Unreleased {
        /// The copy.
        name: String,
    },
    /// An instruction used as its manual forbids.
    Misuse(String),
    /// A thread that goes round and round while nobody does anything it could wait for.
    Spins,
    /// A block that waits for what no block will write: every one that has begun and not ended waits so.
    Waits {
        /// The tensor in which it looks.
        argument: String,
        /// Bytes from its start.
        offset: usize,
        /// The blocks that wait.
        waiting: Vec<u64>,
        /// The first block that hasn't begun, where there isn't room for more that wait at once.
        not_begun: Option<u64>,
    },
    /// Nobody can run: a list of what threads wait for.
    Stuck(String),
}

impl Problem {
    /// What stands against an access of a byte by a thread of a block.
    pub(super) fn of_conflict(
        conflict: Conflict,
        memory: Memory,
        offset: usize,
        writes: bool,
        flights: &Flights,
        block: u32,
    ) -> Problem {
        match conflict {
            Conflict::Race(earlier) => Problem::Race { memory, offset, writes, earlier },
            Conflict::Unwritten => Problem::Uninitialized { offset },
            Conflict::Proxy(earlier) => Problem::Unfenced { memory, offset, writes, earlier },
            Conflict::Flight { number, writer } => {
                let operation = flights.of(number).describe(writer, block);
                Problem::InFlight { memory, offset, writes, operation }
            }
        }
    }
}

/// What an access does.
fn verb(writes: bool) -> &'static str {
    if writes { "writes" } else { "reads" }
}

/// A place, where it is known.
struct At(Loc);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_known() { write!(f, " at {}", self.0) } else { Ok(()) }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Memory::Shared => f.write_str("shared memory"),
            Memory::Tensor(name) => write!(f, "`{name}`"),
        }
    }
}

impl fmt::Display for Earlier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.block, self.thread) {
            (Some(block), Some(thread)) => write!(f, "thread {thread} of block {block}")?,
            (Some(block), None) => write!(f, "an asynchronous operation of block {block}")?,
            (None, Some(thread)) => write!(f, "thread {thread}")?,
            (None, None) => f.write_str("an asynchronous operation")?,
        }
        write!(f, " {}{}", if self.wrote { "wrote" } else { "read" }, At(self.place))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Race { memory, offset, writes, earlier } => {
                let access = verb(*writes);
                let missing = if earlier.block.is_some() { "order" } else { "barrier" };
                write!(
                    f,
                    "{access} byte {offset} of {memory}, which {earlier}, with no {missing} between them"
                )
            }
            Problem::Uninitialized { offset } => {
                write!(f, "reads byte {offset} of shared memory, which nobody wrote")
            }
            Problem::OutsideShared { offset, bytes, available } => {
                write!(f, "accesses {bytes} bytes at byte {offset} of shared memory, which has {available}")
            }
            Problem::OutsideArguments { bytes, nearest: None } => {
                write!(f, "accesses {bytes} bytes of global memory, but the kernel has no tensor")
            }
            Problem::OutsideArguments { bytes, nearest: Some((argument, offset, length)) } => {
                write!(f, "accesses {bytes} bytes at byte {offset} of `{argument}`, which has {length}")
            }
            Problem::BetweenElements { argument, offset, bytes } => {
                write!(
                    f,
                    "accesses {bytes} bytes at byte {offset} of `{argument}`, not all of which are its elements'"
                )
            }
            Problem::WritesInput { argument } => {
                write!(f, "writes `{argument}`, which the kernel only reads")
            }
            Problem::Misaligned { alignment, excess } => {
                write!(f, "relies on an alignment of {alignment} bytes, but the address is {excess} past one")
            }
            Problem::NotUniform { first, other } => write!(
                f,
                "has {other:#x} where the first lane of its warp has {first:#x}, but all lanes must agree"
            ),
            Problem::InFlight { memory, offset, writes, operation } => {
                let (access, still) = (verb(*writes), verb(operation.writes));
                let Operation { name, thread, place, .. } = operation;
                let (place, block) = (At(*place), operation.block);
                let block = block.map_or_else(String::new, |block| format!(" of block {block}"));
                write!(
                    f,
                    "{access} byte {offset} of {memory}, which `{name}` of thread {thread}{block}{place} still {still}"
                )
            }
            Problem::Unfenced { memory, offset, writes, earlier } => {
                let access = verb(*writes);
                write!(
                    f,
                    "{access} byte {offset} of {memory} through the asynchronous proxy, which {earlier}, with no proxy \
                     fence between them"
                )
            }
            Problem::Unreleased { name } => write!(
                f,
                "`{name}` may still write when its thread releases what it did, as no wait for these writes comes before"
            ),
            Problem::Misuse(what) => f.write_str(what),
            Problem::Spins => f.write_str("goes round and round, and nobody does what it may wait for"),
            Problem::Waits { argument, offset, waiting, not_begun } => {
                write!(f, "waits for ever: byte {offset} of `{argument}` stays as it is, because ")?;
                write_waiting(f, waiting, *not_begun)?;
                f.write_str("; let a block store what others wait for before it waits itself")
            }
            Problem::Stuck(waiting) => write!(f, "no thread can go on: {waiting}"),
        }
    }
}

/// Why nothing comes of waiting.
fn write_waiting(f: &mut fmt::Formatter<'_>, waiting: &[u64], not_begun: Option<u64>) -> fmt::Result {
    match waiting {
        [_] => f.write_str("all other blocks that have begun have ended")?,
        [one, other] => write!(f, "blocks {one} and {other} both wait")?,
        [first, .., last] if *last - first + 1 == waiting.len() as u64 => {
            write!(f, "blocks {first} to {last} all wait")?;
        }
        _ => write!(f, "{} blocks all wait", waiting.len())?,
    }
    not_begun
        .map_or(Ok(()), |block| write!(f, ", and blocks from {block} on begin only when one of these ends"))
}
