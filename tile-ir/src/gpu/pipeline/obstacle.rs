//! What keeps warpgroups from products, or a left factor from a ring: the one table of reasons, in the words in which they
//! are told, each with what to write instead where there is something.

use super::WARPGROUP;
use super::factor::{Factor, FactorId};
use super::shared_tile::MOST_ROWS;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId};
use crate::loc::Loc;
use crate::ops::Op;
use crate::tensor_map::MOST_AXES;
use std::collections::HashMap;
use std::fmt;
use tile_layout::linear::MatrixShape;

/// What to write instead of a right factor that isn't copied.
const LEFT_INSTEAD: &str =
    "compute the transposed product, and load its right factor: registers may have the left one";

/// An op as messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Named {
    name: &'static str,
    loc: Loc,
}

impl Named {
    pub(super) fn of(kernel: &Kernel, op: OpId) -> Named {
        let data = kernel.op(op);
        Named { name: data.op.spelling(), loc: data.loc }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named { name, loc } = self;
        if loc.is_known() { write!(f, "`{name}` in line {}", loc.line) } else { write!(f, "`{name}`") }
    }
}

/// Why a tile doesn't lie in a ring, and so, of a right factor, why warpgroups don't do the product. Tensors are named as
/// [`Kernel::tensor_name`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Obstacle {
    /// The kernel has a `while`.
    While(Loc),
    /// The product stands in no loop.
    NoLoop,
    /// It stands in a branch of a loop.
    Branch(Loc),
    /// It is one of many.
    Stacked,
    /// The target has no warpgroup's instruction for its factors.
    Formats([DType; 2]),
    /// Its sums have another format than the instruction's.
    Sums { is: DType, wanted: DType },
    /// Its rows, columns or depth aren't multiples of these.
    Extents(MatrixShape),
    /// Its sums have so many rows and columns, which aren't powers of two.
    Halves { rows: u64, columns: u64 },
    /// The factor is computed, in the loop or before it, and the left one, too, if something is said to do that.
    Computed { by: Named, left: Option<Named> },
    /// Its axes are other ones than those of what was loaded.
    Reshaped(Named),
    /// It is carried from turn to turn.
    Carried,
    /// It is loaded before the loop, and there is no room for it.
    LoadedBefore(String),
    /// Its elements follow each other in a direction from which warpgroups don't take them.
    Across { tensor: String, elem: DType },
    /// An op uses the tile besides.
    UsedBesides { tensor: String, by: Named },
    /// A product that warpgroups don't do reads the tile, too.
    ReadByAnother { tensor: String, loc: Loc },
    /// The kernel writes the tensor.
    Written(String),
    /// What lies outside of the tensor isn't zero.
    Pad(String),
    /// The tensor was selected from a stack, and isn't a part of that as tensor maps say it.
    Selected(String),
    /// Rows of its tiles have so many bytes.
    RowBytes { tensor: String, bytes: u64 },
    /// Its tiles have so many rows.
    Rows { tensor: String, rows: u64 },
    /// A view of it has margins.
    Windows(String),
    /// Neighbours of its tiles don't lie next to each other.
    Apart(String),
    /// A view of it repeats elements, or goes backwards.
    Repeated(String),
    /// Its rows aren't known to begin at multiples of 16 bytes.
    Unaligned(String),
    /// It has more axes than a tensor map.
    ManyAxes(String),
    /// The threads that copy it don't know which tile, because they can't do this.
    Unknown { tensor: String, by: Named },
    /// The thread that has tensor cores multiply doesn't know the turns of the loop, because it can't do this.
    Turns(Named),
    /// A block has another number of threads than warpgroups, of which so many have rows.
    Threads { threads: u64, groups: u64 },
    /// Two stages of the loop's tiles don't fit.
    Room { stage: u64, available: u64 },
    /// Registers hold its left factor, and threads can't bring it to shared memory from there. If a tensor is named, it is a tile
    /// of that for which there is no room.
    LeftHeld { loaded: Option<String>, limit: BringingLimit },
    /// Another product of the kernel isn't done so.
    Beside(Loc),
    /// So many columns of tensor memory have no room for the sums of the kernel's products.
    TensorMemory { needed: u64, available: u64 },
}

/// What threads can't bring from registers to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum BringingLimit {
    /// Elements of this format.
    Format(DType),
    /// Tiles of so many rows and such a depth.
    Extents { rows: u64, depth: u64 },
    /// So many columns a warpgroup.
    Columns { is: u64, most: u64 },
}

impl fmt::Display for BringingLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BringingLimit::Format(elem) => {
                write!(f, "threads bring elements of 16 bits, and not {elem}")
            }
            BringingLimit::Extents { rows, depth } => write!(
                f,
                "threads bring {MOST_ROWS} rows at most and a depth that is a power of two, and it has {rows} rows and a \
                 depth of {depth}"
            ),
            BringingLimit::Columns { is, most } => {
                write!(f, "a warpgroup brings {most} columns at most, and it has {is}")
            }
        }
    }
}

impl BringingLimit {
    /// What to write instead of a factor that is computed.
    fn advice(&self) -> &'static str {
        match self {
            BringingLimit::Format(_) => "multiply what was loaded",
            BringingLimit::Extents { .. } => "choose such tiles",
            BringingLimit::Columns { .. } => "choose tiles of less depth",
        }
    }
}

impl Obstacle {
    /// That an op uses what a load gives besides.
    pub(super) fn used_by(kernel: &Kernel, user: OpId, load: OpId) -> Obstacle {
        let tensor = kernel.tensor_name(kernel.op(load).load().expect("a load").view);
        match kernel.op(user) {
            OpData { op: Op::Mma, loc, .. } => Obstacle::ReadByAnother { tensor, loc: *loc },
            _ => Obstacle::UsedBesides { tensor, by: Named::of(kernel, user) },
        }
    }

    /// Whether what keeps a right factor from a ring keeps no threads from bringing it to shared memory, and no other copy is
    /// better for it either.
    fn leaves_to_consumers(&self) -> bool {
        matches!(
            self,
            Obstacle::NoLoop
                | Obstacle::Branch(_)
                | Obstacle::Computed { .. }
                | Obstacle::Carried
                | Obstacle::Reshaped(_)
                | Obstacle::UsedBesides { .. }
                | Obstacle::ReadByAnother { .. }
        )
    }

    /// Whether other sizes wouldn't have it.
    pub(in super::super) fn is_of_sizes(&self) -> bool {
        matches!(self, Obstacle::Unaligned(_))
    }

    /// The reason, and what to write instead if there is something.
    fn told(&self) -> (String, Option<&'static str>) {
        let in_line =
            |loc: &Loc| if loc.is_known() { format!(" in line {}", loc.line) } else { String::new() };
        let with = |problem: String, advice| (problem, Some(advice));
        match self {
            Obstacle::While(loc) => with(
                format!("the threads that copy tiles take no part in the `while`{}", in_line(loc)),
                "count turns with `for`",
            ),
            Obstacle::NoLoop => with(
                "it stands in no loop, for whose next turns tiles would be copied".to_owned(),
                "multiply in a loop over the depth, which loads the factors",
            ),
            Obstacle::Branch(loc) => with(
                format!("it stands in the branch{} of its loop", in_line(loc)),
                "multiply outside of that",
            ),
            Obstacle::Stacked => {
                with("its factors are stacks of matrices".to_owned(), "multiply tiles of two axes")
            }
            Obstacle::Formats([a, b]) => with(
                format!("they take no factors of {a} with {b}"),
                "they take those of f16, bf16, i8, u8, and of 8-bit floats of either format",
            ),
            Obstacle::Sums { is, wanted } => with(
                format!("they sum in {wanted}, and its sums are {is}"),
                "change the format of the sums after the loop",
            ),
            Obstacle::Extents(MatrixShape { m, n, k }) => with(
                format!(
                    "they take multiples of {m} rows, of {n} columns up to 256, and of a depth of {k}, and its tiles \
                     are others"
                ),
                "choose such tiles where there is enough work for them",
            ),
            Obstacle::Halves { rows, columns } => with(
                format!(
                    "threads share its sums by halves, and {rows}×{columns} of them aren't powers of two"
                ),
                "choose tiles that are",
            ),
            Obstacle::Computed { by, left } => {
                let computed =
                    format!("its right factor is computed, by {by}, and they take that from copied tiles");
                match left {
                    None => with(computed, LEFT_INSTEAD),
                    Some(left) => with(
                        format!("{computed}; the left one is, too, by {left}"),
                        "have another kernel store one of them, so that it is loaded",
                    ),
                }
            }
            Obstacle::Carried => {
                with("its right factor is carried from turn to turn".to_owned(), LEFT_INSTEAD)
            }
            Obstacle::LoadedBefore(tensor) => with(
                format!(
                    "its right factor, a tile of {tensor}, is loaded before the loop, and shared memory has no room \
                         for it"
                ),
                LEFT_INSTEAD,
            ),
            Obstacle::Reshaped(by) => with(
                format!("{by} joins or splits axes of its right factor after the load"),
                "give the tensor these axes in place of its tiles",
            ),
            Obstacle::Across { tensor, elem } => with(
                format!(
                    "they take factors of {elem} along the depth of the product, and {tensor} has them across it"
                ),
                "pass that transposed",
            ),
            Obstacle::UsedBesides { tensor, by } => with(
                format!("{by} uses the tile of {tensor}, too, and no thread holds a tile that was copied"),
                "do that in a loop of its own",
            ),
            Obstacle::ReadByAnother { tensor, loc } => (
                format!(
                    "the product{} takes the tile of {tensor}, too, and isn't done by them",
                    in_line(loc)
                ),
                None,
            ),
            Obstacle::Written(tensor) => with(
                format!("the kernel writes {tensor}, and a copy may come before that"),
                "read another tensor than is written",
            ),
            Obstacle::Pad(tensor) => with(
                format!("what lies outside of {tensor} isn't zero, as copies have it"),
                "load zeros there",
            ),
            Obstacle::Selected(tensor) => with(
                format!("{tensor} was selected from a stack, and moved in a way in which the stack can't be"),
                "repeat nothing of what was selected",
            ),
            Obstacle::RowBytes { tensor, bytes } => with(
                format!(
                    "rows of tiles of {tensor} have {bytes} bytes, and those of copied ones multiples of 32"
                ),
                "choose such tiles",
            ),
            Obstacle::Rows { tensor, rows } => with(
                format!(
                    "tiles of {tensor} have {rows} rows, and copied ones multiples of 8 up to {MOST_ROWS}"
                ),
                "choose such tiles",
            ),
            Obstacle::Windows(tensor) => with(
                format!("{tensor} has margins, which no tensor map has"),
                "pass a tensor that has them, or gather its rows as the left factor",
            ),
            Obstacle::Apart(tensor) => with(
                format!("elements of tiles of {tensor} don't lie next to each other in memory"),
                "cut tiles that are long along the axis whose elements do",
            ),
            Obstacle::Repeated(tensor) => with(
                format!("{tensor} repeats elements or goes backwards"),
                "do that with its tiles, or when they are stored",
            ),
            Obstacle::Unaligned(tensor) => with(
                format!("rows of {tensor} don't all begin at multiples of 16 bytes"),
                "pass rows of such lengths",
            ),
            Obstacle::ManyAxes(tensor) => with(
                format!("{tensor} has more axes than the {MOST_AXES} of a tensor map"),
                "flatten those that lie next to each other",
            ),
            Obstacle::Unknown { tensor, by } => with(
                format!(
                    "the threads that copy {tensor} don't know which of its tiles, where {by} decides that"
                ),
                "of tiles they know those of one element of a tensor that isn't written",
            ),
            Obstacle::Turns(by) => with(
                format!(
                    "the thread that has it multiplied doesn't know how many turns its loop has, where {by} decides that"
                ),
                "of tiles it knows those of one element of a tensor that isn't written",
            ),
            Obstacle::Threads { threads, groups } => with(
                format!(
                    "a block has {threads} threads, and its products rows for {} of {WARPGROUP}",
                    if *groups == 1 { "1 warpgroup" } else { "1 or 2 warpgroups" }
                ),
                "say no number of `threads`, or 128 for each of these",
            ),
            Obstacle::Room { stage, available } => with(
                format!(
                    "the tiles of a turn take {stage} of the {available} bytes of shared memory that are left for them, \
                     and two turns have to fit"
                ),
                "choose smaller tiles",
            ),
            Obstacle::LeftHeld { loaded: None, limit } => {
                with(format!("its left factor lies in registers, from where {limit}"), limit.advice())
            }
            Obstacle::LeftHeld { loaded: Some(tensor), limit } => with(
                format!(
                    "shared memory has no room for its left factor, a tile of {tensor}, so that this lies in registers, from \
                     where {limit}"
                ),
                "choose smaller tiles",
            ),
            Obstacle::Beside(loc) => {
                (format!("another product of the kernel{} isn't done by them", in_line(loc)), None)
            }
            Obstacle::TensorMemory { needed, available } => with(
                format!(
                    "the sums of the kernel's products take {needed} columns of tensor memory, which has {available}"
                ),
                "choose smaller tiles",
            ),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (problem, advice) = self.told();
        f.write_str(&problem)?;
        advice.map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

/// What keeps factors from rings: of a right factor, what keeps warpgroups from the product. The first obstacle counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Obstacles(HashMap<FactorId, Obstacle>);

impl Obstacles {
    pub(super) fn add(&mut self, factor: FactorId, obstacle: Obstacle) {
        self.0.entry(factor).or_insert(obstacle);
    }

    /// Adds one that all these factors have.
    pub(super) fn add_all<'f>(&mut self, factors: impl IntoIterator<Item = &'f Factor>, obstacle: &Obstacle) {
        factors.into_iter().for_each(|factor| self.add(factor.id, obstacle.clone()));
    }

    pub(super) fn of(&self, factor: FactorId) -> Option<&Obstacle> {
        self.0.get(&factor)
    }

    /// Whether a product's right factor lies in no ring, and consumers are as good at bringing it to shared memory.
    pub(super) fn leave_to_consumers(&self, product: OpId) -> bool {
        self.of(FactorId::right(product)).is_some_and(Obstacle::leaves_to_consumers)
    }
}

#[cfg(test)]
mod tests;
