//! What is said of arguments that don't fit a kernel.

use crate::dim::DimError;

/// Arguments that don't fit a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A tensor of the wrong rank.
    #[error(
        "argument `{argument}` has rank {actual} (shape {shape:?}), but `{kernel}` declares rank {expected}; pass a \
         view of it that has that rank: `unsqueeze`, `squeeze`, `flatten` and `reshape` make one; for one that is written, call \
         them on `view_mut()`"
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
    /// An argument that is a run-time size, with another value than the axes of its name.
    #[error(
        "`{size}` of kernel `{kernel}` is {extent} (axis {axis} of `{argument}`) and {number} (an argument); what shares a \
         name must be equal"
    )]
    Number {
        /// The kernel.
        kernel: Box<str>,
        /// The run-time size.
        size: Box<str>,
        /// The tensor that bound it.
        argument: Box<str>,
        /// Its axis.
        axis: usize,
        /// Its extent.
        extent: usize,
        /// The number that is passed.
        number: u64,
    },
    /// An argument that is a run-time size, and larger than these may be.
    #[error("`{size}` of kernel `{kernel}` is {number}, and sizes end at {}", i64::MAX)]
    TooLarge {
        /// The kernel.
        kernel: Box<str>,
        /// The run-time size.
        size: Box<str>,
        /// The number that is passed.
        number: u64,
    },
    /// An axis of more elements than positions can be counted.
    #[error(
        "axis {axis} of `{argument}` of kernel `{kernel}` has {actual} elements, and positions end at {}; pass a part of it",
        i64::MAX
    )]
    TooLong {
        /// The kernel.
        kernel: Box<str>,
        /// The argument.
        argument: Box<str>,
        /// The axis.
        axis: usize,
        /// Its extent.
        actual: usize,
    },
    /// An axis whose extent the kernel fixes.
    #[error(
        "axis {axis} of `{argument}` is {actual}, but `{kernel}` declares {expected} (`{declared}`{values})"
    )]
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
        /// The sizes that it is made of, each with the argument that bound it, after `, where`; empty where there are none.
        values: Box<str>,
    },
    /// Outputs that need different grids.
    #[error(
        "the outputs of `{kernel}` need different grids, and a block owns one tile of each: `{first_argument}` has {first:?} \
         tiles and `{second_argument}` has {second:?}; choose tile extents that give equal counts, or, where outputs have \
         sizes of their own, launch the kernel once for each, or pad the shorter axes to the longer ones in front of \
         `partition_view_mut`: `y.pad([(0, m.max(n) - m)])`, where stores beyond `m` write nothing"
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
    /// A grid of more blocks than a number has room for.
    #[error(
        "the grid of kernel `{kernel}` is {grid:?}, more blocks than can be counted; launch it on parts of its tensors"
    )]
    Blocks {
        /// The kernel.
        kernel: Box<str>,
        /// Blocks per axis.
        grid: Vec<usize>,
    },
    /// Sizes that a view, or a load or store without a mask, doesn't fit.
    #[error("kernel `{kernel}`{place}: {problem}")]
    Check {
        /// The kernel.
        kernel: Box<str>,
        /// `, at` with file and line of what needs it, where they are known.
        place: Box<str>,
        /// What doesn't fit, with argument, axis and sizes, and what to do.
        problem: Box<str>,
    },
    /// A condition that the run-time sizes break.
    #[error("kernel `{kernel}` needs `{condition}`{place}{}, but {values}", said_otherwise(.condition, .bound))]
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
    #[error("{extent} of kernel `{kernel}` can't be computed: {problem}{values}")]
    Dim {
        /// The kernel.
        kernel: Box<str>,
        /// Which it is, as far as that is known: an axis of an argument or of the grid.
        extent: Box<str>,
        /// Why.
        problem: DimError,
        /// The sizes that it is made of, each with the argument that bound it, after `, where`; empty where there are none.
        values: Box<str>,
    },
}

/// What a condition is of a kernel with its parameters, unless it is as it was written.
fn said_otherwise(condition: &str, bound: &str) -> String {
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    if dense(condition) == dense(bound) { String::new() } else { format!(", which is `{bound}` here") }
}
