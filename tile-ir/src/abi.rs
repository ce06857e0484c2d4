//! The contract between generated code and the runtime: argument order, binding of run-time sizes, grid.
//!
//! # Calling convention
//!
//! A compiled kernel receives **slots**, 8 bytes each: first one per argument in order (the address of a
//! tensor's first element, or a scalar in the low bytes), then one `u64` per run-time size in the order of
//! [`KernelAbi::sizes`], then, of a persistent kernel, the number of tiles that are handled and the number of blocks
//! that share them, then the address of the [log](mod@crate::log) if [`KernelAbi::logs`]. Tensors are dense and
//! row-major, so extents say everything about their layout, unless the instance is made for
//! [others](crate::view::argument): of these the slot is an address at or before the element that lies first, and
//! strides are among the sizes. Code relies on [`KernelAbi::checks`]: views whose elements lie inside, loads and stores
//! without masks. A mutable tensor overlaps no other argument; code is optimised on that.
//!
//! * On a GPU each slot is one kernel parameter and each block runs one tile; the grid is one-dimensional. Code
//!   with [tensor maps](crate::tensor_map) has a parameter of 128 bytes, aligned to 64, for each of them, in their
//!   order. They precede that of the log, which is the last one because optimisation may leave nothing of it.
//! * On the CPU the entry is a [`CpuEntry`], which runs a range of blocks on one thread.
//!
//! Blocks are numbered row-major over the grid, which is the index space of the outputs or the kernel's own: the
//! last axis counts fastest. The blocks of a persistent kernel are numbered along one axis.

mod bind;
mod error;

pub use error::BindError;

use crate::analysis::{Bound, Facts, Ranges, bounds};
use crate::condition::Condition;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::grid::Grid;
use crate::kernel::{Kernel, ValueId};
use crate::loc::Loc;
use crate::ops::{Effect, Op};
use crate::specialize::Instance;
use crate::types::Type;
use crate::view::argument::LayoutSize;
use crate::view::{ArgumentLayout, Requirement, Source, Strided};
use smallvec::SmallVec;
use std::collections::HashSet;

/// The native entry point of a kernel on the CPU: slots, first block, end block (exclusive), scratch memory
/// of [`Launch::scratch_bytes`] bytes, aligned to 64, whether an earlier range of the same launch has left that as it is:
/// blocks find there what those before them have packed; and whether no other thread runs blocks of the launch meanwhile:
/// what is atomic for their sake needn't be.
pub type CpuEntry = unsafe extern "C" fn(
    slots: *const u64,
    first: u64,
    end: u64,
    scratch: *mut u8,
    goes_on: bool,
    is_alone: bool,
);

/// How many blocks share the tiles of a persistent kernel in the evaluators.
pub const REFERENCE_BLOCKS: usize = 4;

/// Numbers along the axes of a grid. Those of a launch are made anew each time: few need no allocation.
pub type GridExtents = SmallVec<[usize; 6]>;

/// Values of the run-time sizes of a launch, likewise.
pub type SizeSlots = SmallVec<[u64; 8]>;

/// What a launch says of how blocks share the tiles of a persistent kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sharing {
    /// How many blocks there are; without this, as many as the device runs at once.
    pub blocks: Option<usize>,
    /// That only so many tiles are handled, the first ones in their order.
    pub first_tiles: Option<usize>,
}

/// How blocks share the tiles of a persistent kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Tiles along each axis of the outputs.
    pub space: GridExtents,
    /// How many tiles are handled: the first ones in their order.
    pub tiles: usize,
}

/// What a kernel takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A tensor in device memory.
    Tensor {
        /// The Rust argument's name.
        name: String,
        /// Element format.
        dtype: DType,
        /// Extents, outermost axis first.
        extents: Vec<Dim>,
        /// How its elements lie, where the instance isn't made for dense and aligned ones.
        layout: Option<Strided>,
        /// Whether the kernel writes it.
        mutable: bool,
        /// Whether it is accessed atomically, by any block.
        atomic: bool,
        /// Whether the kernel loads from it.
        loaded: bool,
    },
    /// A number.
    Scalar {
        /// The Rust argument's name.
        name: String,
        /// Its format.
        dtype: DType,
    },
}

impl Argument {
    /// The Rust argument's name.
    pub fn name(&self) -> &str {
        match self {
            Argument::Tensor { name, .. } | Argument::Scalar { name, .. } => name,
        }
    }
}

/// What a launch must pass to an instance of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelAbi {
    /// The kernel's name.
    pub kernel: String,
    /// Arguments in order.
    pub arguments: Vec<Argument>,
    /// Run-time sizes in the order of their slots.
    pub sizes: Vec<String>,
    /// The arguments that are numbers and sizes: the position of each, and its place in [`KernelAbi::sizes`], which may be that of
    /// an extent.
    pub size_arguments: Vec<(usize, usize)>,
    /// The sizes that say how tensors lie which aren't dense and aligned, in the order of their slots. They are the last
    /// ones: each with the number of its tensor, counted without scalars.
    pub layout_sizes: Vec<(usize, LayoutSize)>,
    /// Whether the kernel prints or asserts. What optimisation leaves of it may not, which ignores the slot.
    pub logs: bool,
    /// Whether blocks share tiles, so that a launch says how.
    pub persistent: bool,
    /// The index spaces of the mutable partition views, each with the argument that it cuts. All must agree. A
    /// kernel with a grid of its own has that alone.
    pub grids: Vec<(String, Vec<Dim>)>,
    /// What else must hold for the sizes.
    pub checks: Vec<Check>,
    /// What the kernel's author demands of the run-time sizes.
    pub conditions: Vec<Condition>,
    /// The source file, for messages.
    pub file: String,
}

/// A condition on the sizes of a launch, which the kernel's code relies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// What the view of a tensor needs.
    View {
        /// The tensor that is moved, as a message names it.
        tensor: String,
        /// The condition.
        requirement: Requirement,
        /// The movement's place in the user's Rust.
        loc: Loc,
    },
    /// What a load or store without a mask needs, unless the grid is empty.
    Access {
        /// The tensor that is read or written, as a message names it.
        tensor: String,
        /// The condition.
        bound: Bound,
        /// The place of the load or store in the user's Rust; of several that need the same, the first's.
        loc: Loc,
    },
}

impl Check {
    /// Whether it is this bound of this tensor, wherever it is asked for.
    fn is_access(&self, tensor: &str, bound: &Bound) -> bool {
        matches!(self, Check::Access { tensor: name, bound: other, .. } if name == tensor && other == bound)
    }
}

/// What a compiled instance needs to be launched, besides its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Threads per block; 1 on a CPU.
    pub threads: u32,
    /// Dynamic shared memory per block, in bytes; 0 on a CPU and where the code declares its own.
    pub shared_bytes: u32,
    /// Scratch memory per CPU thread, in bytes.
    pub scratch_bytes: u64,
    /// Whether blocks go on to further places of the grid, so that no more are needed than run at once.
    pub shares_grid: bool,
    /// Blocks that run together as a cluster, of which a launch has whole ones; 1 where each is alone.
    pub cluster: u32,
    /// Blocks that have each place of the grid together, one or a cluster: a launch has so many for each.
    pub blocks_per_tile: u32,
}

/// The run-time sizes and the grid of one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchSizes {
    /// Values of [`KernelAbi::sizes`], in that order.
    pub sizes: SizeSlots,
    /// Blocks per axis of the grid.
    pub grid: GridExtents,
    /// How the blocks share tiles, in a persistent kernel.
    pub shared: Option<Shared>,
}

impl LaunchSizes {
    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        blocks_of(&self.grid)
    }

    /// The number of tiles that the blocks handle: of a kernel that isn't persistent each block has one.
    pub fn tiles(&self) -> usize {
        self.shared.as_ref().map_or_else(|| self.blocks(), |shared| shared.tiles)
    }

    /// The slots after those of the arguments and before that of the log.
    pub fn slots(&self) -> impl Iterator<Item = u64> {
        let shared = self.shared.iter().flat_map(|shared| [shared.tiles as u64, self.blocks() as u64]);
        self.sizes.iter().copied().chain(shared)
    }
}

/// The number of blocks of a grid. One without blocks may have other extents whose product no number holds.
pub(crate) fn blocks_of(grid: &[usize]) -> usize {
    if grid.contains(&0) { 0 } else { grid.iter().product() }
}

impl KernelAbi {
    /// The contract of a kernel whose compile-time parameters are bound.
    pub fn of(instance: &Instance) -> KernelAbi {
        let kernel: &Kernel = instance;
        let sizes = kernel.sizes();
        let slot_of =
            |(position, name): (usize, &str)| Some((position, sizes.iter().position(|size| size == name)?));
        let size_arguments = kernel.size_arguments().filter_map(slot_of).collect();
        KernelAbi {
            kernel: kernel.name.clone(),
            arguments: kernel.params().iter().map(|&param| argument(kernel, param)).collect(),
            sizes,
            size_arguments,
            layout_sizes: layout_sizes(kernel),
            logs: kernel.walk().into_iter().any(|op| kernel.op(op).op.is_message()),
            persistent: kernel.is_persistent(),
            grids: grids(kernel),
            checks: instance.checks().to_vec(),
            conditions: kernel.conditions.clone(),
            file: kernel.file.clone(),
        }
    }

    /// The sizes that say how a tensor lies, counted without scalars, with their names.
    pub(crate) fn layout_sizes_of(&self, tensor: usize) -> impl Iterator<Item = (LayoutSize, &str)> + Clone {
        let names = &self.sizes[self.sizes.len() - self.layout_sizes.len()..];
        let own = self.layout_sizes.iter().zip(names).filter(move |((number, _), _)| *number == tensor);
        own.map(|((_, size), name)| (*size, name.as_str()))
    }

    /// The slot of the number of tiles, before that of the number of blocks.
    pub fn shared_slot(&self) -> usize {
        self.arguments.len() + self.sizes.len()
    }

    /// The slot of the log.
    pub fn log_slot(&self) -> usize {
        self.shared_slot() + if self.persistent { 2 } else { 0 }
    }
}

/// What holds for some sizes only. A kernel that doesn't bound an index isn't verified.
pub(crate) fn checks(kernel: &Kernel) -> Vec<Check> {
    let ranges = Ranges::of(kernel);
    let known = Ranges::under(kernel, Facts::of(kernel));
    let mut checks = Vec::new();
    for op in kernel.walk() {
        let data = kernel.op(op);
        match (&data.op, data.operands.first().map(|&operand| (operand, kernel.ty(operand)))) {
            (Op::View(movement), Some((operand, Type::Tensor(tensor)))) => {
                let tensor =
                    movement.apply(tensor).map_or_else(|_| Vec::new(), |(_, requirements)| requirements);
                let (name, loc) = (kernel.tensor_name(operand), data.loc);
                checks.extend(tensor.into_iter().map(|requirement| Check::View {
                    tensor: name.clone(),
                    requirement,
                    loc,
                }));
            }
            (Op::Load { .. } | Op::Store, Some((view, _))) => {
                let name = kernel.tensor_name(view);
                let bounds = |ranges: &Ranges| bounds::bounds(kernel, ranges, op);
                let found = bounds(&ranges).expect("verified: every index has a range");
                // A form of the unknowns may be too large where that of the sizes isn't.
                let known = bounds(&known).unwrap_or_else(|_| found.clone());
                // What the conditions of the kernel don't decide is checked with its sizes.
                let pairs = found.into_iter().zip(known);
                let open = pairs.filter(|(_, known)| known.decide() != Some(true)).map(|(bound, _)| bound);
                for bound in open {
                    if !checks.iter().any(|check| check.is_access(&name, &bound)) {
                        checks.push(Check::Access { tensor: name.clone(), bound, loc: data.loc });
                    }
                }
            }
            _ => {}
        }
    }
    checks
}

/// Whether an op of this effect comes to the elements of an argument.
fn is_reached(kernel: &Kernel, param: ValueId, by: Effect) -> bool {
    kernel
        .walk()
        .into_iter()
        .map(|op| kernel.op(op))
        .filter(|data| data.op.effect() == by)
        .any(|data| Source::reached_by(kernel, data).is_some_and(|source| source.argument == param))
}

fn layout_sizes(kernel: &Kernel) -> Vec<(usize, LayoutSize)> {
    let tensors = kernel.tensors().enumerate();
    let laid_out = tensors.filter_map(|(number, (param, ty))| Some((number, kernel.layout_of(param, ty)?)));
    let of = |(number, (name, layout)): (usize, (&str, ArgumentLayout))| {
        layout.sizes(name).map(|(_, size)| (number, size)).collect::<Vec<_>>()
    };
    laid_out.flat_map(of).collect()
}

fn argument(kernel: &Kernel, param: ValueId) -> Argument {
    let data = kernel.value(param);
    let name = data.name.clone().expect("parameters are named");
    let dtype = data.ty.elem().known().expect("an instance has no dtype parameters");
    match &data.ty {
        Type::Tensor(tensor) => {
            let atomic = is_reached(kernel, param, Effect::ReadsAndWrites);
            let loaded = is_reached(kernel, param, Effect::Reads);
            let (extents, layout) = (tensor.extents.clone(), tensor.layout.as_deref().cloned());
            Argument::Tensor { name, dtype, extents, layout, mutable: tensor.mutable, atomic, loaded }
        }
        _ => Argument::Scalar { name, dtype },
    }
}

fn grids(kernel: &Kernel) -> Vec<(String, Vec<Dim>)> {
    if let Some(Grid::Extents(extents)) = &kernel.grid {
        return vec![(String::from("grid"), extents.clone())];
    }
    let (mut grids, mut viewed) = (Vec::new(), HashSet::new());
    for op in kernel.walk() {
        let data = kernel.op(op);
        if !matches!(data.op, Op::Partition(_)) {
            continue;
        }
        let view = kernel.ty(data.results[0]).as_partition().expect("verified: a partition gives a view");
        if view.tensor.mutable {
            let argument = Source::of(kernel, data.operands[0]).argument;
            // A pass may have made a further view, of whose tiles accesses say the index.
            if !viewed.insert(argument) && view.is_spanned() {
                continue;
            }
            let name = kernel.value(argument).name.clone().expect("parameters are named");
            grids.push((name, view.grid()));
        }
    }
    grids
}
