//! The verifier, and the type that proves it ran.
//!
//! # Invariants
//!
//! 1. Every operand is defined before its use, in the same region or in one that encloses it.
//! 2. Every op has the result types that [`crate::ops::result_types`] infers from its operands.
//! 3. `for` has one region, whose parameters are an `index` counter and the carried types, and whose last op
//!    yields the carried types; that of `while` has the carried types as parameters and yields a `bool` and
//!    them; `if` has two regions without parameters that yield its result types.
//!    `yield` is the last op of a region and stands nowhere else; a kernel's body has none. A fold has one
//!    region, whose parameters are its elements' formats twice, which yields them once, and which has leaf ops
//!    of scalars only.
//! 4. Arguments are named tensors and scalars. A `mut` tensor has at most one partition view; a kernel has a
//!    grid or a mutable view, not both; partition views are made at the top level of the body.
//! 5. Every name in an extent or a condition is a compile-time parameter or a run-time size, and every run-time size is the
//!    whole extent of some argument's axis, so that a launch binds it. Tile extents are static and positive.
//! 6. Every index of an unmasked load or store has a range, and no range is outside for every size: see
//!    [`crate::analysis`].
//! 7. No two ops that print or assert have one site.
//! 8. A loop over tiles stands at the top level of the body, and a kernel has at most one. Only inside of it a
//!    persistent kernel's ops mean the tile that the block owns. Its region has the carried types as parameters
//!    and yields them.
//! 9. A tile of known shape has at most [`MAX_TILE_ELEMENTS`] elements.

mod tiles;

use crate::analysis::{Ranges, Unbounded, bounds};
use crate::dim::Dim;
use crate::kernel::{GenericKind, Kernel, OpId, RegionId, ValueId};
use crate::loc::Loc;
use crate::ops::{Op, TypeError, result_types};
use crate::schedule::TileOrder;
use crate::types::{Elem, Type};
use crate::view::Source;
use std::collections::{BTreeSet, HashSet};
use tiles::TileLoops;

/// The largest tile, in elements.
pub const MAX_TILE_ELEMENTS: i64 = 1 << 24;

/// The most axes of a grid.
pub const MAX_GRID_AXES: usize = 6;

/// A kernel that keeps every invariant of this module. Only [`verify`] makes one.
#[derive(Clone, Debug)]
pub struct VerifiedKernel(Kernel);

impl VerifiedKernel {
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
/// pass may remove the comparison that showed it.
pub(crate) fn verify_rewritten(kernel: Kernel) -> Result<VerifiedKernel, Vec<VerifyError>> {
    checked(kernel, false)
}

fn checked(kernel: Kernel, bounds: bool) -> Result<VerifiedKernel, Vec<VerifyError>> {
    let mut verifier = Verifier {
        kernel: &kernel,
        defined: HashSet::new(),
        sites: HashSet::new(),
        viewed: HashSet::new(),
        atomic: HashSet::new(),
        tiles: TileLoops::of(&kernel),
        errors: Vec::new(),
    };
    verifier.run();
    if bounds && verifier.errors.is_empty() {
        verifier.bounds();
    }
    let errors = verifier.errors;
    if errors.is_empty() { Ok(VerifiedKernel(kernel)) } else { Err(errors) }
}

struct Verifier<'k> {
    kernel: &'k Kernel,
    /// Values in scope.
    defined: HashSet<ValueId>,
    /// Sites of messages.
    sites: HashSet<u32>,
    /// Mutable tensors that have a view.
    viewed: HashSet<ValueId>,
    /// Mutable tensors that any block changes atomically.
    atomic: HashSet<ValueId>,
    /// Where the verifier is, seen from the loop over tiles.
    tiles: TileLoops,
    errors: Vec<VerifyError>,
}

impl Verifier<'_> {
    fn error(&mut self, loc: Loc, message: impl Into<String>) {
        self.errors.push(VerifyError { message: message.into(), loc, operand: None, help: None });
    }

    fn error_with_help(&mut self, loc: Loc, message: impl Into<String>, help: &str) {
        let help = Some(help.to_owned());
        self.errors.push(VerifyError { message: message.into(), loc, operand: None, help });
    }

    fn run(&mut self) {
        self.generics();
        for &param in self.kernel.params() {
            self.argument(param);
        }
        for condition in &self.kernel.conditions {
            self.dim_is_bound(&condition.left, condition.loc);
            self.dim_is_bound(&condition.right, condition.loc);
        }
        self.grid();
        self.region(self.kernel.body(), None);
        if self.viewed.is_empty() && self.kernel.grid.is_none() {
            self.no_output();
        }
    }

    /// Every unmasked load and store must be one whose bounds hold, or can be checked at a launch.
    fn bounds(&mut self) {
        let unmasked = |op: &Op| matches!(op, Op::Load { .. } | Op::Store);
        let ops: Vec<OpId> =
            self.kernel.walk().into_iter().filter(|&op| unmasked(&self.kernel.op(op).op)).collect();
        if ops.is_empty() {
            return;
        }
        let ranges = Ranges::of(self.kernel);
        for op in ops {
            let data = self.kernel.op(op);
            let masked = if data.op == Op::Store { "store_masked" } else { "load_masked" };
            let problem = match bounds::bounds(self.kernel, &ranges, op) {
                Err(Unbounded { operand, message }) => Some((operand, message)),
                Ok(bounds) => bounds.iter().find(|bound| bound.decide() == Some(false)).map(|bound| {
                    let tensor = self.kernel.tensor_name(data.operands[0]);
                    let violation = bound.violation(&tensor, &|_| None);
                    (None, violation.ok().flatten().unwrap_or_default())
                }),
            };
            if let Some((operand, message)) = problem {
                let bounded = match operand {
                    Some(_) if self.tiles.first.is_some() => {
                        "; the index of the loop's tile, loop counters, sizes, constants and arithmetic on them are \
                         bounded, the number of the block is not"
                    }
                    Some(_) => {
                        "; block indices, loop counters, sizes, constants and arithmetic on them are bounded"
                    }
                    None => "",
                };
                let help = Some(format!("use `{masked}`, which is defined for every index{bounded}"));
                self.errors.push(VerifyError { message, loc: data.loc, operand, help });
            }
        }
    }

    fn no_output(&mut self) {
        if let Some(&argument) = self.atomic.iter().next() {
            let name = self.kernel.value(argument).name.as_deref().unwrap_or("an argument");
            return self.error_with_help(
                Loc::UNKNOWN,
                format!(
                    "kernel `{}` has no grid: `{name}` is accessed atomically, so it has no tiles that blocks own",
                    self.kernel.name
                ),
                "write `#[tile_kernel(grid = [blocks])]`, with sizes of the signature and const parameters",
            );
        }
        let unused = self.kernel.tensors().find(|(_, tensor)| tensor.mutable);
        let name = unused.and_then(|(argument, _)| self.kernel.value(argument).name.as_deref());
        let reason =
            name.map_or(String::new(), |name| format!(": `{name}` is `&mut`, but nothing is written to it"));
        let help = match name {
            Some(name) => format!(
                "make a view of it, `let mut {name} = {name}.partition_view_mut([…]);`, whose tiles are the grid"
            ),
            None => "make a view of a `&mut Tensor` argument with `partition_view_mut`: it declares the grid"
                .to_owned(),
        };
        let message = format!("kernel `{}` has no output{reason}", self.kernel.name);
        self.error_with_help(Loc::UNKNOWN, message, &help);
    }

    fn grid(&mut self) {
        let Some(grid) = &self.kernel.grid else { return };
        let dims = grid.dims();
        if dims.is_empty() || dims.len() > MAX_GRID_AXES {
            let message = format!("a grid has 1 to {MAX_GRID_AXES} axes, not {}", dims.len());
            self.error_with_help(Loc::UNKNOWN, message, "write `grid = [blocks]`, or more axes");
        }
        for dim in dims {
            self.dim_is_bound(dim, Loc::UNKNOWN);
            if let Some(extent) = dim.as_const().filter(|&extent| extent < 0) {
                let message = format!("the grid extent `{dim}` is {extent}");
                self.error_with_help(Loc::UNKNOWN, message, "an extent of a grid is 0 or more");
            }
        }
    }

    /// A block's place in the grid is asked for along an axis that the grid has.
    fn grid_axis(&mut self, op: OpId, axis: usize) {
        let data = self.kernel.op(op);
        let rank = match self.tiles.first {
            Some(_) => 1,
            None => self.kernel.grid_space().map_or(0, |space| space.len()),
        };
        if rank > 0 && axis >= rank {
            let message =
                format!("axis {axis} of `{}` is out of range: the grid has rank {rank}", data.op.name());
            self.error_with_help(
                data.loc,
                message,
                match self.tiles.first {
                    Some(_) => "blocks that share tiles have one axis; `tile.index()` is where the tile is",
                    None => "the grid is the outputs' tiles, or what `grid = […]` says",
                },
            );
        }
    }

    fn generics(&mut self) {
        let mut names = BTreeSet::new();
        for generic in &self.kernel.generics {
            if !names.insert(&generic.name) {
                self.error(Loc::UNKNOWN, format!("parameter `{}` is declared twice", generic.name));
            }
        }
    }

    fn argument(&mut self, param: ValueId) {
        let data = self.kernel.value(param);
        self.defined.insert(param);
        if data.name.is_none() {
            self.error(Loc::UNKNOWN, "an argument has no name");
        }
        match &data.ty {
            Type::Scalar(_) => {}
            Type::Tensor(tensor) if tensor.extents.is_empty() => {
                self.error(Loc::UNKNOWN, "a tensor argument has rank 0");
            }
            Type::Tensor(tensor) if tensor.layout.is_some() => {
                self.error(Loc::UNKNOWN, "a tensor argument is dense; `view` gives it other layouts");
            }
            Type::Tensor(_) => {}
            other => self.error(Loc::UNKNOWN, format!("an argument can't be {other}")),
        }
        self.names_are_bound(&data.ty, Loc::UNKNOWN);
    }

    fn region(&mut self, region: RegionId, owner: Option<OpId>) {
        let data = self.kernel.region(region);
        let scope = self.defined.clone();
        self.defined.extend(&data.params);
        for (i, &op) in data.ops.iter().enumerate() {
            self.op(op, owner.is_none());
            let last = i + 1 == data.ops.len();
            if self.kernel.op(op).op == Op::Yield && (!last || owner.is_none()) {
                self.error(self.kernel.op(op).loc, "`yield` may only end a region");
            }
        }
        if let Some(owner) = owner {
            self.region_yields(region, owner);
        }
        self.defined = scope;
    }

    fn region_yields(&mut self, region: RegionId, owner: OpId) {
        let owner = self.kernel.op(owner);
        let last = self.kernel.region(region).ops.last().map(|&op| self.kernel.op(op));
        let Some(last) = last.filter(|last| last.op == Op::Yield) else {
            return self
                .error(owner.loc, format!("a region of `{}` doesn't end with `yield`", owner.op.name()));
        };
        let yielded: Vec<&Type> = last.operands.iter().map(|&value| self.kernel.ty(value)).collect();
        let fold = owner.op.is_fold();
        let results = owner.results.iter().map(|&value| self.kernel.ty(value));
        let results = results.map(|ty| if fold { Type::Scalar(ty.elem().clone()) } else { ty.clone() });
        let condition = (owner.op == Op::While).then_some(Type::BOOL);
        let expected: Vec<Type> = condition.into_iter().chain(results).collect();
        let expected: Vec<&Type> = expected.iter().collect();
        if yielded != expected {
            let message = format!(
                "a region of `{}` yields ({}), but {} ({})",
                owner.op.name(),
                list(&yielded),
                if fold || owner.op == Op::While { "it must yield" } else { "its results are" },
                list(&expected)
            );
            self.error(last.loc, message);
        }
    }

    fn op(&mut self, op: OpId, top_level: bool) {
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
            Op::View(_) if !top_level => self.error_with_help(
                data.loc,
                "a view of a tensor is made at the top level of a kernel, not in a loop or branch",
                "move it before the loop or branch",
            ),
            Op::If if data.regions.len() != 2 => self.error(data.loc, "`if` has two regions"),
            Op::If => {
                for &region in &data.regions {
                    if !self.kernel.region(region).params.is_empty() {
                        self.error(data.loc, "a region of `if` has no parameters");
                    }
                    self.region(region, Some(op));
                }
            }
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

    fn result_types(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let operands: Vec<Type> = data.operands.iter().map(|&value| self.kernel.ty(value).clone()).collect();
        let results: Vec<&Type> = data.results.iter().map(|&value| self.kernel.ty(value)).collect();
        match result_types(&data.op, &operands) {
            Err(error) => {
                let TypeError { message, operand, help } = error;
                self.errors.push(VerifyError { message, loc: data.loc, operand, help });
            }
            Ok(_) if data.op == Op::If => {
                if let Some(result) = results.iter().find(|ty| !ty.is_data()) {
                    self.error(data.loc, format!("`if` can't give {result}"));
                }
            }
            Ok(inferred) if inferred.iter().ne(results.iter().copied()) => {
                let inferred: Vec<&Type> = inferred.iter().collect();
                let message =
                    format!("`{}` gives ({}), not ({})", data.op.name(), list(&inferred), list(&results));
                self.error(data.loc, message);
            }
            Ok(_) => {}
        }
        for result in results {
            self.tile_size(result, data.loc);
        }
    }

    fn tile_size(&mut self, ty: &Type, loc: Loc) {
        let Some(tile) = ty.as_tile() else { return };
        let extents = tile.shape.iter().map(Dim::as_const).collect::<Option<Vec<_>>>();
        let count = extents.map(|extents| extents.iter().try_fold(1i64, |a, &b| a.checked_mul(b)));
        if count.is_some_and(|count| count.is_none_or(|count| count > MAX_TILE_ELEMENTS)) {
            self.error_with_help(
                loc,
                format!("{tile} has more than {MAX_TILE_ELEMENTS} elements"),
                "use a smaller tile and a loop",
            );
        }
    }

    fn attribute_names(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        if let Op::Extent(dim) = &data.op {
            self.dim_is_bound(dim, data.loc);
        }
        if let Op::Partition(cut) = &data.op {
            cut.hints.latency.iter().for_each(|dim| self.dim_is_bound(dim, data.loc));
        }
        if let Op::Tiles(TileOrder::Grouped(rows)) = &data.op {
            self.dim_is_bound(rows, data.loc);
        }
        if let Op::Movement(movement) = &data.op {
            movement.dims().into_iter().for_each(|dim| self.dim_is_bound(dim, data.loc));
        }
        for &result in &data.results {
            self.names_are_bound(self.kernel.ty(result), data.loc);
        }
    }

    fn names_are_bound(&mut self, ty: &Type, loc: Loc) {
        let (dims, elem) = match ty {
            Type::Scalar(elem) => (Vec::new(), elem),
            Type::Tile(tile) => (tile.shape.iter().collect(), &tile.elem),
            Type::Tensor(tensor) => (tensor.dims().collect(), &tensor.elem),
            Type::Partition(view) => {
                (view.tensor.dims().chain(&view.tile).chain(&view.steps).collect(), &view.tensor.elem)
            }
        };
        for dim in dims {
            self.dim_is_bound(dim, loc);
        }
        if let Elem::Param(name) = elem {
            let declared =
                self.kernel.generics.iter().any(|g| g.name == *name && g.kind != GenericKind::Const);
            if !declared {
                self.error(loc, format!("`{name}` is not an element type parameter of the kernel"));
            }
        }
    }

    fn dim_is_bound(&mut self, dim: &Dim, loc: Loc) {
        let (mut params, mut sizes) = (BTreeSet::new(), BTreeSet::new());
        dim.collect_names(&mut params, &mut sizes);
        for param in params {
            let declared =
                self.kernel.generics.iter().any(|g| g.name == param && g.kind == GenericKind::Const);
            if !declared {
                self.error(loc, format!("`{param}` is not a const parameter of the kernel"));
            }
        }
        let bound = self.kernel.sizes();
        for size in sizes {
            if !bound.contains(&size) {
                self.error_with_help(
                    loc,
                    format!("nothing binds the run-time size `{size}`"),
                    "a run-time size must be the whole extent of some argument's axis",
                );
            }
        }
    }

    fn partition(&mut self, op: OpId, top_level: bool) {
        let data = self.kernel.op(op);
        if !top_level {
            self.error_with_help(
                data.loc,
                "a partition view is made at the top level of a kernel, not in a loop or branch",
                "move it before the loop or branch",
            );
        }
        let Some(&tensor) = data.operands.first() else { return };
        let mutable = matches!(self.kernel.ty(tensor), Type::Tensor(tensor) if tensor.mutable);
        let argument = Source::of(self.kernel, tensor).argument;
        let name = self.kernel.value(argument).name.as_deref().unwrap_or("an argument");
        if mutable && self.kernel.grid.is_some() {
            self.error_with_help(
                data.loc,
                format!("the kernel has a grid of its own, so no block owns a tile of `{name}`"),
                "leave `grid = […]` out: the tiles of a `partition_view_mut` are the grid",
            );
        }
        if mutable && self.atomic.contains(&argument) {
            self.viewed_twice(argument, data.loc);
        }
        if mutable && !self.viewed.insert(argument) {
            self.error_with_help(
                data.loc,
                format!("`{name}` has two mutable partition views; a block owns one tile of it"),
                "use one view; `reshape` and `permute` give its tiles other shapes",
            );
        }
    }

    fn atomic_tensor(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let Some(&tensor) = data.operands.first() else { return };
        let argument = Source::of(self.kernel, tensor).argument;
        self.atomic.insert(argument);
        if self.viewed.contains(&argument) {
            self.viewed_twice(argument, data.loc);
        }
    }

    fn viewed_twice(&mut self, argument: ValueId, loc: Loc) {
        let name = self.kernel.value(argument).name.as_deref().unwrap_or("an argument");
        self.error_with_help(
            loc,
            format!(
                "`{name}` has an atomic view and a partition view: any block may change what one block owns"
            ),
            "make all accesses atomic, or pass two tensors",
        );
    }

    fn loop_region(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let name = data.op.name();
        let &[region] = data.regions.as_slice() else {
            return self.error(data.loc, format!("`{name}` has one region"));
        };
        let params: Vec<&Type> =
            self.kernel.region(region).params.iter().map(|&param| self.kernel.ty(param)).collect();
        let counter = (data.op == Op::For).then_some(&Type::INDEX);
        let carried = data.operands.iter().skip(if counter.is_some() { 2 } else { 1 });
        let expected: Vec<&Type> =
            counter.into_iter().chain(carried.map(|&value| self.kernel.ty(value))).collect();
        if params != expected {
            let message = format!(
                "the region of `{name}` takes ({}), but is given ({})",
                list(&params),
                list(&expected)
            );
            self.error(data.loc, message);
        }
        self.region(region, Some(op));
    }

    fn fold_region(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let &[region] = data.regions.as_slice() else {
            return self.error(data.loc, format!("`{}` has one region", data.op.name()));
        };
        let tiles = || data.operands.iter().take(data.operands.len() / 2);
        let expected: Vec<Type> =
            tiles().chain(tiles()).map(|&tile| Type::Scalar(self.kernel.ty(tile).elem().clone())).collect();
        let params = self.kernel.region(region).params.iter().map(|&param| self.kernel.ty(param));
        let params: Vec<&Type> = params.collect();
        if params.iter().copied().ne(&expected) {
            let expected: Vec<&Type> = expected.iter().collect();
            let message = format!(
                "the region of `{}` takes ({}), but is given ({})",
                data.op.name(),
                list(&params),
                list(&expected)
            );
            self.error(data.loc, message);
        }
        self.region(region, Some(op));
        for &inner in &self.kernel.region(region).ops {
            self.folds_scalars(data.op.name(), inner);
        }
    }

    fn folds_scalars(&mut self, owner: &str, inner: OpId) {
        let data = self.kernel.op(inner);
        if !data.op.is_leaf() && data.op != Op::Yield {
            let message =
                format!("`{}` stands in a region of `{owner}`, which has leaf ops only", data.op.name());
            return self.error(data.loc, message);
        }
        let mut values = data.operands.iter().chain(&data.results);
        if let Some(&tile) = values.find(|&&value| !matches!(self.kernel.ty(value), Type::Scalar(_))) {
            let message =
                format!("a region of `{owner}` computes with scalars, not with {}", self.kernel.ty(tile));
            self.error(data.loc, message);
        }
    }
}

fn list(types: &[&Type]) -> String {
    types.iter().map(|ty| ty.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// A kernel around the given lines, with a view `%v` of the output and a tile `%t`.
    fn errors(lines: &str) -> Vec<String> {
        let text = format!(
            "kernel @k<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{\n%v = partition %y [B] : mut \
             partition<n x f32, [B]>\n%0 = constant 0.0 : f32\n%t = splat %0 : tile<B x f32>\n{lines}\n}}"
        );
        let kernel = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        verify(kernel).err().unwrap_or_default().into_iter().map(|error| error.message).collect()
    }

    #[test]
    fn a_good_kernel_passes() {
        assert_eq!(errors("store_masked %v, %t"), Vec::<String>::new());
    }

    #[test]
    fn every_invariant_has_its_message() {
        let cases = [
            ("%a = add %t, %0 : tile<B x f32>", "`+` mixes tile<B x f32> and f32"),
            ("%a = neg %t : tile<B x f16>", "`neg` gives (tile<B x f32>), not (tile<B x f16>)"),
            ("%a = not %t : tile<B x f32>", "`!` needs an integer or bool, not f32"),
            (
                "%a = splat %0 : tile<n x f32>",
                "the extent `n` of a tile made by `splat` is known only at run time",
            ),
            ("%a = splat %0 : tile<0 x f32>", "the tile extent `0` is not positive"),
            (
                "%a = splat %0 : tile<8192 x 8192 x f32>",
                "tile<8192 x 8192 x f32> has more than 16777216 elements",
            ),
            ("%a = broadcast %t : tile<4 x f32>", "shape [B] can't be broadcast to [4]"),
            (
                "%a = reshape %t : tile<B x 2 x f32>",
                "[B] has B elements and can't be reshaped to [B, 2], which has 2*B",
            ),
            ("%a = permute %t [1] : tile<B x f32>", "[1] is not a permutation of the axes of [B]"),
            (
                "%a = reduce sum %t axis 1 : tile<1 x f32>",
                "axis 1 of `sum` is out of range: the tile has rank 1",
            ),
            ("%a = mma %t, %t, %t : tile<B x f32>", "`mma` needs tiles of rank 2 or more, not [B]"),
            (
                "%w = partition %x [B, B] : partition<n x f32, [B, B]>",
                "tile [B, B] has rank 2, but the tensor [n] has rank 1",
            ),
            (
                "%w = partition %y [B] : mut partition<n x f32, [B]>",
                "`y` has two mutable partition views; a block owns one tile of it",
            ),
            ("%a = extent q : index", "nothing binds the run-time size `q`"),
            ("%a = constant 300 : u8", "300 doesn't fit u8"),
            ("if %0 {\n}", "the condition of `if` is f32, not a bool"),
            ("for %p = %0 to %0 {\n}", "a loop bound is `usize`, not f32"),
            ("yield %t", "`yield` may only end a region"),
            ("while %0 {\nyield %0\n}", "the condition of `while` is f32, not a bool"),
            (
                "%c = constant true : bool\n%a = while %c carry (%s = %t) : tile<B x f32> {\nyield %t\n}",
                "a region of `while` yields (tile<B x f32>), but it must yield (bool, tile<B x f32>)",
            ),
            (
                "%c = constant true : bool\nwhile %c {\n}",
                "a region of `while` yields (), but it must yield (bool)",
            ),
            (
                "%p = splat %0 : tile<1 x 3 x f32>\n%a = item %p : f32",
                "`item` needs a tile of one element, not of shape [1, 3]",
            ),
            ("%a = item %0 : f32", "`item` needs a tile, not f32"),
            (
                "%e = extent n : index\n%a = for %p = %e to %e carry (%s = %t) : tile<B x f32> {\nyield %0\n}",
                "a region of `for` yields (f32), but its results are (tile<B x f32>)",
            ),
            (
                "%e = extent n : index\nfor %p = %e to %e {\n%w = partition %x [B] : partition<n x f32, [B]>\n}",
                "a partition view is made at the top level of a kernel, not in a loop or branch",
            ),
            (
                "%a = reduce_with %t from %0 axis 0 with (%p, %q) : tile<1 x f32> {\nyield %t\n}",
                "a region of `reduce_with` yields (tile<B x f32>), but it must yield (f32)",
            ),
            (
                "%a = reduce_with %t from %0 axis 0 with (%p, %q) : tile<1 x f32> {\n\
                 %u = neg %t : tile<B x f32>\nyield %p\n}",
                "a region of `reduce_with` computes with scalars, not with tile<B x f32>",
            ),
            (
                "%a = scan_with %t from %0 axis 0 with (%p, %q) : tile<B x f32> {\nstore_masked %v, %t\nyield %p\n}",
                "`store_masked` stands in a region of `scan_with`, which has leaf ops only",
            ),
            (
                "%e = extent n : index\n%a = scan_with %t from %e axis 0 with (%p, %q) : tile<B x f32> {\nyield %p\n}",
                "`scan` of a tile of f32 starts from index",
            ),
            (
                "%a, %b = reduce_with %t, %0 from %0, %0 axis 0 with (%p, %q, %r, %s) : tile<1 x f32>, tile<1 x f32> {\n\
                 yield %p, %q\n}",
                "`reduce` needs a tile, not f32",
            ),
            ("%a = scan any %t axis 0 : tile<B x f32>", "`any` has no scan"),
            (
                "%a = scan sum %t axis 1 : tile<B x f32>",
                "axis 1 of `cumsum` is out of range: the tile has rank 1",
            ),
            ("%a = histogram %t : tile<4 x i32>", "`histogram` needs an integer, not f32"),
            (
                "%c = splat %0 : tile<4 x f32>\n%a, %b = sort %c axis 0 : tile<5 x f32>, tile<5 x i32>",
                "the first 5 elements are taken along axis 0 of [4], which has 4",
            ),
            ("store_masked %v, %0", "`store_masked` needs a tile, not f32"),
            ("%h = cast %t : tile<B x f16>\nstore_masked %v, %h", "a tile of f16 is stored to a view of f32"),
        ];
        for (lines, expected) in cases {
            let found = errors(lines);
            assert_eq!(found.first().map(String::as_str), Some(expected), "{lines}: {found:?}");
        }
    }

    #[test]
    fn a_kernel_needs_an_output() {
        let errors = verify(parse("kernel @k(%x: tensor<n x f32>) {\n}").unwrap()).unwrap_err();
        assert_eq!(errors[0].message, "kernel `k` has no output");
    }

    #[test]
    fn values_of_an_inner_region_stay_inside() {
        let found = errors(
            "%e = extent n : index\nfor %p = %e to %e {\n%u = neg %t : tile<B x f32>\n}\nstore_masked %v, %u",
        );
        assert_eq!(found, ["`u` is used by `store_masked` before it is defined"]);
    }
}
