//! The contract between generated code and the runtime: argument order, binding of run-time sizes, grid.
//!
//! # Calling convention
//!
//! A compiled kernel receives **slots**, 8 bytes each: first one per argument in order (the address of a
//! tensor's first element, or a scalar in the low bytes), then one `u64` per run-time size in the order of
//! [`KernelAbi::sizes`], then, of a persistent kernel, the number of tiles that are handled and the number of blocks
//! that share them, then the address of the [log](mod@crate::log) if [`KernelAbi::logs`]. Tensors are dense and
//! row-major, so extents say everything about their layout. Code relies on [`KernelAbi::checks`]: views whose elements
//! lie inside, loads and stores without masks. A mutable tensor overlaps no other argument; code is optimised on that.
//!
//! * On a GPU each slot is one kernel parameter and each block runs one tile; the grid is one-dimensional. Code
//!   with [tensor maps](crate::tensor_map) has a parameter of 128 bytes, aligned to 64, for each of them, in their
//!   order. They precede that of the log, which is the last one because optimisation may leave nothing of it.
//! * On the CPU the entry is a [`CpuEntry`], which runs a range of blocks on one thread.
//!
//! Blocks are numbered row-major over the grid, which is the index space of the outputs or the kernel's own: the
//! last axis counts fastest. The blocks of a persistent kernel are numbered along one axis.

use crate::analysis::{Bound as IndexBound, Facts, Ranges, bounds};
use crate::condition::Condition;
use crate::dim::{Dim, DimError};
use crate::dtype::DType;
use crate::grid::Grid;
use crate::kernel::{Kernel, ValueId};
use crate::ops::Op;
use crate::specialize::Instance;
use crate::types::Type;
use crate::view::{Requirement, Source};
use std::collections::BTreeMap;

/// The native entry point of a kernel on the CPU: slots, first block, end block (exclusive), scratch memory
/// of [`Launch::scratch_bytes`] bytes, aligned to 64.
pub type CpuEntry = unsafe extern "C" fn(slots: *const u64, first: u64, end: u64, scratch: *mut u8);

/// How many blocks share the tiles of a persistent kernel in the evaluators.
pub const REFERENCE_BLOCKS: usize = 4;

/// The most blocks that may share tiles: what grids of every device have room for.
const MOST_BLOCKS: usize = i32::MAX as usize;

/// What a launch says of how blocks share the tiles of a persistent kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub space: Vec<usize>,
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
        /// Whether the kernel writes it.
        mutable: bool,
        /// Whether it is accessed atomically, by any block.
        atomic: bool,
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
    },
    /// What a load or store without a mask needs, unless the grid is empty.
    Bound {
        /// The tensor that is read or written, as a message names it.
        tensor: String,
        /// The condition.
        bound: IndexBound,
    },
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
}

/// Arguments that don't fit a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// A tensor of the wrong rank.
    #[error(
        "argument `{argument}` has rank {actual} (shape {shape:?}), but `{kernel}` declares rank {expected}"
    )]
    Rank {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Its rank.
        actual: usize,
        /// The declared rank.
        expected: usize,
    },
    /// One run-time size with two values.
    #[error(
        "`{size}` of kernel `{kernel}` is {first} (axis {first_axis} of `{first_argument}`) and {second} (axis \
         {second_axis} of `{second_argument}`); axes that share a name must have equal extents"
    )]
    Conflict {
        /// The kernel.
        kernel: Box<str>,
        /// The run-time size.
        size: Box<str>,
        /// The argument that bound it first.
        first_argument: Box<str>,
        /// The axis that bound it first.
        first_axis: usize,
        /// Its extent.
        first: usize,
        /// The argument that disagrees.
        second_argument: Box<str>,
        /// The axis that disagrees.
        second_axis: usize,
        /// Its extent.
        second: usize,
    },
    /// An axis whose extent the kernel fixes.
    #[error("axis {axis} of `{argument}` is {actual}, but `{kernel}` declares {expected} (`{declared}`)")]
    Extent {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
        /// The axis.
        axis: usize,
        /// Its extent.
        actual: usize,
        /// The declared extent's value.
        expected: usize,
        /// The declared extent as written.
        declared: String,
    },
    /// Outputs that need different grids.
    #[error(
        "the outputs of `{kernel}` need different grids: `{first_argument}` has {first:?} tiles and \
         `{second_argument}` has {second:?}; choose tile extents that give equal counts"
    )]
    Grid {
        /// The kernel.
        kernel: String,
        /// An output.
        first_argument: Box<str>,
        /// Its tiles per axis.
        first: Vec<usize>,
        /// Another output.
        second_argument: Box<str>,
        /// Its tiles per axis.
        second: Vec<usize>,
    },
    /// Sizes that a view, or a load or store without a mask, doesn't fit.
    #[error("kernel `{kernel}`: {problem}")]
    Check {
        /// The kernel.
        kernel: String,
        /// What doesn't fit, with argument, axis and sizes.
        problem: String,
    },
    /// A condition that the run-time sizes break.
    #[error("kernel `{kernel}` needs `{condition}`{place}, which is `{bound}` here, but {values}")]
    Condition {
        /// The kernel.
        kernel: Box<str>,
        /// The condition as written.
        condition: Box<str>,
        /// Its file and line in parentheses, where they are known.
        place: Box<str>,
        /// The condition with the kernel's parameters bound.
        bound: Box<str>,
        /// The run-time sizes, each with the argument that bound it.
        values: Box<str>,
    },
    /// A word on blocks or tiles that makes no sense.
    #[error("kernel `{kernel}`: {problem}")]
    Sharing {
        /// The kernel.
        kernel: String,
        /// Why, and what to do.
        problem: String,
    },
    /// An extent that has no value.
    #[error("an extent of kernel `{kernel}` can't be computed: {source}")]
    Dim {
        /// The kernel.
        kernel: String,
        /// Why.
        source: DimError,
    },
}

/// The run-time sizes and the grid of one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Values of [`KernelAbi::sizes`], in that order.
    pub sizes: Vec<u64>,
    /// Blocks per axis of the grid.
    pub grid: Vec<usize>,
    /// How the blocks share tiles, in a persistent kernel.
    pub shared: Option<Shared>,
}

impl Bound {
    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.grid.iter().product()
    }

    /// The slots after those of the arguments and before that of the log.
    pub fn slots(&self) -> impl Iterator<Item = u64> {
        let shared = self.shared.iter().flat_map(|shared| [shared.tiles as u64, self.blocks() as u64]);
        self.sizes.iter().copied().chain(shared)
    }
}

impl KernelAbi {
    /// The contract of a kernel whose compile-time parameters are bound.
    pub fn of(instance: &Instance) -> KernelAbi {
        let kernel: &Kernel = instance;
        KernelAbi {
            kernel: kernel.name.clone(),
            arguments: kernel.params().iter().map(|&param| argument(kernel, param)).collect(),
            sizes: kernel.sizes(),
            logs: kernel.walk().into_iter().any(|op| kernel.op(op).op.is_message()),
            persistent: kernel.is_persistent(),
            grids: grids(kernel),
            checks: instance.checks().to_vec(),
            conditions: kernel.conditions.clone(),
            file: kernel.file.clone(),
        }
    }

    /// Binds run-time sizes from the shapes of the tensor arguments (in order; scalars are skipped) and
    /// computes the grid. The tiles of a persistent kernel are shared as in the evaluators.
    ///
    /// # Errors
    /// [`BindError`] where ranks, extents or grids disagree.
    pub fn bind(&self, shapes: &[&[usize]]) -> Result<Bound, BindError> {
        let values = self.bind_sizes(shapes)?;
        self.check_declared(shapes, &values)?;
        self.check_views(&values)?;
        self.check_conditions(&values)?;
        let grid = self.bind_grid(&values)?;
        if grid.iter().all(|&tiles| tiles > 0) {
            self.check_bounds(&values)?;
        }
        let sizes = self.sizes.iter().map(|name| values[name.as_str()].2 as u64).collect();
        let all = grid.iter().product();
        let shared = self.persistent.then(|| Shared { space: grid.clone(), tiles: all });
        self.share(Bound { sizes, grid, shared }, Sharing::default(), REFERENCE_BLOCKS)
    }

    /// The launch with the blocks of a persistent kernel as `sharing` says; where it says nothing, no more than the
    /// device runs `at_once`. Of no tiles there is no block.
    ///
    /// # Errors
    /// [`BindError::Sharing`] where something is said of a kernel that isn't persistent, or of no blocks.
    pub fn share(&self, mut bound: Bound, sharing: Sharing, at_once: usize) -> Result<Bound, BindError> {
        let wrong = |problem: &str| {
            Err(BindError::Sharing { kernel: self.kernel.clone(), problem: problem.to_owned() })
        };
        let Some(shared) = &mut bound.shared else {
            return match sharing {
                Sharing { blocks: None, first_tiles: None } => Ok(bound),
                Sharing { blocks: Some(_), .. } => wrong(
                    "`blocks` says how many blocks share the tiles of `tiles_persistent`, over which this kernel has \
                     no loop; its grid has one block per tile",
                ),
                Sharing { .. } => wrong(
                    "`first_tiles` counts the tiles of `tiles_persistent`, over which this kernel has no loop",
                ),
            };
        };
        if sharing.blocks == Some(0) {
            return wrong("`blocks(0)` leaves nobody to handle its tiles; give one block or more");
        }
        if sharing.blocks.is_some_and(|blocks| blocks > MOST_BLOCKS) {
            return wrong("`blocks` is at most 2³¹ − 1, and more blocks than tiles have nothing to do");
        }
        let all = shared.space.iter().product();
        shared.tiles = sharing.first_tiles.map_or(all, |tiles| tiles.min(all));
        let blocks = sharing.blocks.unwrap_or(at_once.clamp(1, shared.tiles.max(1)));
        bound.grid = vec![if shared.tiles == 0 { 0 } else { blocks }];
        Ok(bound)
    }

    /// The slot of the number of tiles, before that of the number of blocks.
    pub fn shared_slot(&self) -> usize {
        self.arguments.len() + self.sizes.len()
    }

    /// The slot of the log.
    pub fn log_slot(&self) -> usize {
        self.shared_slot() + if self.persistent { 2 } else { 0 }
    }

    fn tensors(&self) -> impl Iterator<Item = (&str, &[Dim])> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Tensor { name, extents, .. } => Some((name.as_str(), extents.as_slice())),
            Argument::Scalar { .. } => None,
        })
    }

    fn bind_sizes<'a>(&'a self, shapes: &[&[usize]]) -> Result<SizeValues<'a>, BindError> {
        let mut values = SizeValues::new();
        for ((argument, extents), shape) in self.tensors().zip(shapes) {
            if extents.len() != shape.len() {
                return Err(BindError::Rank {
                    kernel: self.kernel.clone(),
                    argument: argument.to_owned(),
                    shape: shape.to_vec(),
                    actual: shape.len(),
                    expected: extents.len(),
                });
            }
            for (axis, (extent, &actual)) in extents.iter().zip(*shape).enumerate() {
                let Some(size) = extent.as_size() else { continue };
                let &mut (first_argument, first_axis, first) =
                    values.entry(size).or_insert((argument, axis, actual));
                if first != actual {
                    return Err(BindError::Conflict {
                        kernel: self.kernel.as_str().into(),
                        size: size.into(),
                        first_argument: first_argument.into(),
                        first_axis,
                        first,
                        second_argument: argument.into(),
                        second_axis: axis,
                        second: actual,
                    });
                }
            }
        }
        Ok(values)
    }

    fn check_declared(&self, shapes: &[&[usize]], values: &SizeValues<'_>) -> Result<(), BindError> {
        for ((argument, extents), shape) in self.tensors().zip(shapes) {
            for (axis, (extent, &actual)) in extents.iter().zip(*shape).enumerate() {
                let expected = self.evaluate(extent, values)?;
                if expected != actual {
                    return Err(BindError::Extent {
                        kernel: self.kernel.clone(),
                        argument: argument.to_owned(),
                        axis,
                        actual,
                        expected,
                        declared: extent.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    fn check_conditions(&self, values: &SizeValues<'_>) -> Result<(), BindError> {
        let lookup = |name: &str| values.get(name).and_then(|&(_, _, value)| i64::try_from(value).ok());
        for condition in &self.conditions {
            let holds = condition
                .holds(&lookup)
                .map_err(|source| BindError::Dim { kernel: self.kernel.clone(), source })?;
            if !holds {
                return Err(self.broken(condition, values));
            }
        }
        Ok(())
    }

    fn broken(&self, condition: &Condition, values: &SizeValues<'_>) -> BindError {
        let sizes = condition.names().1;
        let values = sizes.iter().filter_map(|size| {
            let (argument, axis, value) = values.get(size.as_str())?;
            Some(format!("{size} = {value} (axis {axis} of `{argument}`)"))
        });
        let Condition { left, predicate, right, source, .. } = condition;
        BindError::Condition {
            kernel: self.kernel.as_str().into(),
            condition: source.as_str().into(),
            place: condition.place(&self.file).into(),
            bound: format!("{left} {} {right}", predicate.symbol()).into(),
            values: values.collect::<Vec<_>>().join(", ").into(),
        }
    }

    fn bind_grid(&self, values: &SizeValues<'_>) -> Result<Vec<usize>, BindError> {
        let mut agreed: Option<(&str, Vec<usize>)> = None;
        for (argument, space) in &self.grids {
            let grid = space.iter().map(|dim| self.evaluate(dim, values)).collect::<Result<Vec<_>, _>>()?;
            match &agreed {
                None => agreed = Some((argument, grid)),
                Some((_, first)) if *first == grid => {}
                Some((first_argument, first)) => {
                    return Err(BindError::Grid {
                        kernel: self.kernel.clone(),
                        first_argument: (*first_argument).into(),
                        first: first.clone(),
                        second_argument: argument.as_str().into(),
                        second: grid,
                    });
                }
            }
        }
        Ok(agreed.expect("verified: a kernel has a grid or a mutable partition view").1)
    }

    fn check_views(&self, values: &SizeValues<'_>) -> Result<(), BindError> {
        self.checks.iter().try_for_each(|check| match check {
            Check::View { tensor, requirement } => {
                self.holds(requirement.violation(tensor, &|name| size(values, name)))
            }
            Check::Bound { .. } => Ok(()),
        })
    }

    fn check_bounds(&self, values: &SizeValues<'_>) -> Result<(), BindError> {
        self.checks.iter().try_for_each(|check| match check {
            Check::View { .. } => Ok(()),
            Check::Bound { tensor, bound } => self.holds(bound.violation(tensor, &|name| size(values, name))),
        })
    }

    fn holds(&self, violation: Result<Option<String>, DimError>) -> Result<(), BindError> {
        let kernel = self.kernel.clone();
        match violation {
            Ok(None) => Ok(()),
            Ok(Some(problem)) => Err(BindError::Check { kernel, problem }),
            Err(source) => Err(BindError::Dim { kernel, source }),
        }
    }

    fn evaluate(&self, dim: &Dim, values: &SizeValues<'_>) -> Result<usize, BindError> {
        dim.evaluate(&|name| size(values, name))
            .map_err(|source| BindError::Dim { kernel: self.kernel.clone(), source })
    }
}

/// Run-time size → the argument and axis that bound it, and its value.
type SizeValues<'a> = BTreeMap<&'a str, (&'a str, usize, usize)>;

fn size(values: &SizeValues<'_>, name: &str) -> Option<i64> {
    values.get(name).and_then(|&(_, _, value)| i64::try_from(value).ok())
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
                let name = kernel.tensor_name(operand);
                checks.extend(
                    tensor.into_iter().map(|requirement| Check::View { tensor: name.clone(), requirement }),
                );
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
                for check in open.map(|bound| Check::Bound { tensor: name.clone(), bound }) {
                    if !checks.contains(&check) {
                        checks.push(check);
                    }
                }
            }
            _ => {}
        }
    }
    checks
}

fn is_atomic(kernel: &Kernel, param: ValueId) -> bool {
    kernel.walk().into_iter().any(|op| {
        let data = kernel.op(op);
        matches!(data.op, Op::Atomic(_)) && Source::of(kernel, data.operands[0]).argument == param
    })
}

fn argument(kernel: &Kernel, param: ValueId) -> Argument {
    let data = kernel.value(param);
    let name = data.name.clone().expect("parameters are named");
    let dtype = data.ty.elem().known().expect("an instance has no dtype parameters");
    match &data.ty {
        Type::Tensor(tensor) => {
            let atomic = is_atomic(kernel, param);
            Argument::Tensor { name, dtype, extents: tensor.extents.clone(), mutable: tensor.mutable, atomic }
        }
        _ => Argument::Scalar { name, dtype },
    }
}

fn grids(kernel: &Kernel) -> Vec<(String, Vec<Dim>)> {
    if let Some(Grid::Extents(extents)) = &kernel.grid {
        return vec![(String::from("grid"), extents.clone())];
    }
    let mut grids = Vec::new();
    for op in kernel.walk() {
        let data = kernel.op(op);
        if !matches!(data.op, Op::Partition(_)) {
            continue;
        }
        let view = kernel.ty(data.results[0]).as_partition().expect("verified: a partition gives a view");
        if view.tensor.mutable {
            let argument = Source::of(kernel, data.operands[0]).argument;
            let name = kernel.value(argument).name.clone().expect("parameters are named");
            grids.push((name, view.index_space()));
        }
    }
    grids
}
