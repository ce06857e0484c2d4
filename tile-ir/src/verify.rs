//! The verifier, and the type that proves it ran.
//!
//! # Invariants
//!
//! 1. Every operand is defined before its use, in the same region or in one that encloses it.
//! 2. Every op has the result types that [`crate::ops::result_types_under`] infers from its operands and the conditions.
//! 3. `for` has one region, whose parameters are an `index` counter and the carried types, and whose last op
//!    yields the carried types; that of `while` has the carried types as parameters and yields a `bool` and
//!    them; `if` has two regions without parameters that yield its result types.
//!    `yield` is the last op of a region and stands nowhere else; a kernel's body has none. A fold has one
//!    region, whose parameters are its elements' formats twice, which yields them once, and which has leaf ops
//!    of scalars only.
//! 4. Arguments are named tensors and scalars; one that not every instance has depends on a `bool` or a number among the
//!    parameters. A `mut` tensor has at most one partition view, and where passes were further ones of which accesses say
//!    every axis' index; a kernel has a grid or a mutable view, not both; partition views are made at the top level of the body.
//! 5. Every name in an extent or a condition is a compile-time parameter or a run-time size, and every run-time size is the
//!    whole extent of some argument's axis, so that a launch binds it. Tile extents are static and positive.
//! 6. Every index of an unmasked load or store has a range, and no range is outside for every size: see
//!    [`crate::analysis`].
//! 7. No two ops that print or assert have one site.
//! 8. A loop over tiles stands at the top level of the body, and a kernel has at most one. Only inside of it a
//!    persistent kernel's ops mean the tile that the block owns. Its region has the carried types as parameters
//!    and yields them.
//! 9. A tile of known shape has at most [`MAX_TILE_ELEMENTS`] elements.
//! 10. At most [`MAX_NESTING`] regions stand in each other.
//! 11. Extents have at most [`Dim::MAX_LENGTH`](crate::Dim::MAX_LENGTH) terms and factors.

mod bounds;
mod grid;
mod names;
mod regions;
#[cfg(test)]
mod tests;
mod tiles;
mod types;
mod views;

pub use grid::MAX_GRID_AXES;
pub use regions::MAX_NESTING;
pub use types::MAX_TILE_ELEMENTS;

use crate::analysis::Facts;
use crate::condition::Comparison;
use crate::error::Error;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::loc::Loc;
use crate::ops::{Op, TypeError};
use crate::text;
use crate::types::Type;
use std::collections::HashSet;
use tiles::TileLoops;

/// A kernel that keeps every invariant of this module. Only [`verify`] makes one.
#[derive(Clone, Debug)]
pub struct VerifiedKernel(Kernel);

impl VerifiedKernel {
    /// Reads a kernel's [`text`] and verifies it.
    ///
    /// ```
    /// let kernel = tile_ir::VerifiedKernel::parse("\
    /// kernel @first(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
    ///   %vx = partition %x [4] : partition<n x f32, [4]>
    ///   %vy = partition %y [4] : mut partition<n x f32, [4]>
    ///   %t = load %vx[%i] : tile<4 x f32>
    /// }");
    /// assert_eq!(kernel.unwrap_err().to_string(), "4:17: `%i` is not defined");
    /// ```
    ///
    /// # Errors
    /// [`Error::Parse`] where the text isn't IR, [`Error::Verify`] with every invariant that it breaks.
    pub fn parse(source: &str) -> Result<VerifiedKernel, Error> {
        Ok(verify(text::parse(source)?)?)
    }

    /// Gives the kernel up for change; it must be verified again.
    pub fn into_inner(self) -> Kernel {
        self.0
    }
}

impl std::ops::Deref for VerifiedKernel {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0
    }
}

impl std::fmt::Display for VerifiedKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A broken invariant, at the user's line where the IR knows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct VerifyError {
    /// What is wrong, with the shapes or formats involved.
    pub message: String,
    /// Where.
    pub loc: Loc,
    /// The operand to point at, where it is one operand's fault.
    pub operand: Option<usize>,
    /// What to do, where that is known.
    pub help: Option<String>,
}

/// Checks every invariant and collects every violation.
///
/// # Errors
/// All [`VerifyError`]s found, in order of appearance.
pub fn verify(kernel: Kernel) -> Result<VerifiedKernel, Vec<VerifyError>> {
    checked(kernel, true)
}

/// Checks what a pass leaves of a verified kernel. That unmasked loads and stores stay inside was decided before: a
/// pass may remove the comparison that showed it. Nor is what it leaves read as text.
pub(crate) fn verify_rewritten(kernel: Kernel) -> Result<VerifiedKernel, Vec<VerifyError>> {
    checked(kernel, false)
}

fn checked(kernel: Kernel, is_written: bool) -> Result<VerifiedKernel, Vec<VerifyError>> {
    let mut verifier = Verifier {
        kernel: &kernel,
        is_written,
        defined: HashSet::new(),
        sites: HashSet::new(),
        viewed: HashSet::new(),
        first_output: None,
        atomic: HashSet::new(),
        tiles: TileLoops::of(&kernel),
        nesting: 0,
        facts: Facts::of(&kernel),
        bound: kernel.sizes().into_iter().collect(),
        errors: Vec::new(),
    };
    verifier.run();
    if is_written && verifier.errors.is_empty() {
        verifier.bounds();
    }
    let errors = verifier.errors;
    if errors.is_empty() { Ok(VerifiedKernel(kernel)) } else { Err(errors) }
}

struct Verifier<'k> {
    kernel: &'k Kernel,
    /// Whether it is as somebody wrote it, and not what a pass leaves.
    is_written: bool,
    /// Values in scope.
    defined: HashSet<ValueId>,
    /// Sites of messages.
    sites: HashSet<u32>,
    /// Mutable tensors that have a view.
    viewed: HashSet<ValueId>,
    /// The first mutable tensor that has a view, and along how many axes its tiles lie.
    first_output: Option<(ValueId, usize)>,
    /// Mutable tensors that any block changes atomically.
    atomic: HashSet<ValueId>,
    /// Where the verifier is, seen from the loop over tiles.
    tiles: TileLoops,
    /// How many regions stand in each other where the verifier is.
    nesting: usize,
    /// What the conditions say.
    facts: Facts,
    /// The run-time sizes that the arguments bind.
    bound: HashSet<String>,
    errors: Vec<VerifyError>,
}

impl Verifier<'_> {
    fn error(&mut self, loc: Loc, message: impl Into<String>) {
        self.errors.push(VerifyError { message: message.into(), loc, operand: None, help: None });
    }

    fn error_with_help(&mut self, loc: Loc, message: impl Into<String>, help: impl Into<String>) {
        let help = Some(help.into());
        self.errors.push(VerifyError { message: message.into(), loc, operand: None, help });
    }

    /// What an op's rule, an extent or a hint is refused for, at the line that has it.
    fn type_error(&mut self, loc: Loc, TypeError { message, operand, help }: TypeError) {
        self.errors.push(VerifyError { message, loc, operand, help });
    }

    fn run(&mut self) {
        self.generics();
        for &param in self.kernel.params() {
            self.argument(param);
        }
        self.parameters_of_presences();
        self.schedule_hints();
        for condition in &self.kernel.conditions {
            condition.formula.each(&mut |Comparison { left, right, .. }| {
                self.dim_is_bound(left, condition.loc);
                self.dim_is_bound(right, condition.loc);
            });
        }
        self.grid();
        self.region(self.kernel.body(), None);
        if self.viewed.is_empty() && !self.kernel.has_own_grid() {
            self.no_output();
        }
        self.grid_of_every_instance();
    }

    fn op(&mut self, op: OpId, top_level: bool) {
        let data = self.kernel.op(op);
        self.operands_are_defined(op);
        self.result_types(op);
        self.attribute_names(op);
        self.own_tile(op);
        match data.op {
            Op::Partition(_) => self.partition(op, top_level),
            Op::ReduceWith { .. } | Op::ScanWith { .. } => self.fold_region(op),
            Op::For | Op::While => self.loop_region(op),
            Op::Tiles(_) => self.tile_loop(op, top_level),
            Op::BlockId { axis } | Op::BlockCount { axis } => self.grid_axis(op, axis),
            Op::Atomic(_) => self.atomic_tensor(op),
            Op::View(_) if !top_level => self.inner_view(op),
            Op::If => self.branch_regions(op),
            Op::Print { site, .. } | Op::Assert { site, .. } if !self.sites.insert(site) => {
                self.error(data.loc, format!("two messages have the site {site}"));
            }
            _ if !data.regions.is_empty() => {
                self.error(data.loc, format!("`{}` has no regions", data.op.name()));
            }
            _ => {}
        }
        for &result in &data.results {
            if !self.defined.insert(result) {
                self.error(data.loc, "a value is defined twice");
            }
        }
    }

    fn operands_are_defined(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        for &operand in &data.operands {
            if !self.defined.contains(&operand) {
                let name = self.kernel.value(operand).name.as_deref().unwrap_or("a value");
                self.error(
                    data.loc,
                    format!("`{name}` is used by `{}` before it is defined", data.op.name()),
                );
            }
        }
    }
}

fn list(types: &[&Type]) -> String {
    types.iter().map(|ty| ty.to_string()).collect::<Vec<_>>().join(", ")
}
