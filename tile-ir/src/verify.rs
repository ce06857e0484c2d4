//! The verifier, and the type that proves it ran.
//!
//! # Invariants
//!
//! 1. Every operand is defined before its use, in the same region or in one that encloses it.
//! 2. Every op has the result types that [`crate::ops::result_types`] infers from its operands.
//! 3. `for` has one region, whose parameters are an `index` counter and the carried types, and whose last op
//!    yields the carried types; that of `while` has the carried types as parameters and yields a `bool` and
//!    them; `if` has two regions without parameters that yield its result types. `yield` is the last op of a region and stands nowhere else; a kernel's body has none.
//! 4. Arguments are named tensors and scalars. A `mut` tensor has at most one partition view, a kernel at
//!    least one mutable view; partition views are made at the top level of the body.
//! 5. Every name in an extent or a condition is a compile-time parameter or a run-time size, and every run-time size is the
//!    whole extent of some argument's axis, so that a launch binds it. Tile extents are static and positive.
//! 6. A tile of known shape has at most [`MAX_TILE_ELEMENTS`] elements.

use crate::dim::Dim;
use crate::kernel::{GenericKind, Kernel, OpId, RegionId, ValueId};
use crate::loc::Loc;
use crate::ops::{Op, result_types};
use crate::types::{Elem, Type};
use std::collections::{BTreeSet, HashSet};

/// The largest tile, in elements.
pub const MAX_TILE_ELEMENTS: i64 = 1 << 24;

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
    /// What to do, where that is known.
    pub help: Option<String>,
}

/// Checks every invariant and collects every violation.
///
/// # Errors
/// All [`VerifyError`]s found, in order of appearance.
pub fn verify(kernel: Kernel) -> Result<VerifiedKernel, Vec<VerifyError>> {
    let mut verifier =
        Verifier { kernel: &kernel, defined: HashSet::new(), viewed: HashSet::new(), errors: Vec::new() };
    verifier.run();
    let errors = verifier.errors;
    if errors.is_empty() { Ok(VerifiedKernel(kernel)) } else { Err(errors) }
}

struct Verifier<'k> {
    kernel: &'k Kernel,
    /// Values in scope.
    defined: HashSet<ValueId>,
    /// Mutable tensors that have a view.
    viewed: HashSet<ValueId>,
    errors: Vec<VerifyError>,
}

impl Verifier<'_> {
    fn error(&mut self, loc: Loc, message: impl Into<String>) {
        self.errors.push(VerifyError { message: message.into(), loc, help: None });
    }

    fn error_with_help(&mut self, loc: Loc, message: impl Into<String>, help: &str) {
        self.errors.push(VerifyError { message: message.into(), loc, help: Some(help.to_owned()) });
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
        self.region(self.kernel.body(), None);
        if self.viewed.is_empty() {
            self.error_with_help(
                Loc::UNKNOWN,
                format!("kernel `{}` has no output", self.kernel.name),
                "make a view of a `&mut Tensor` argument with `partition_view_mut`: it declares the grid",
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
                self.error(self.kernel.op(op).loc, "`yield` may only end a region of `for`, `while` or `if`");
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
        let condition = (owner.op == Op::While).then_some(&Type::BOOL);
        let results = owner.results.iter().map(|&value| self.kernel.ty(value));
        let expected: Vec<&Type> = condition.into_iter().chain(results).collect();
        if yielded != expected {
            let message = format!(
                "a region of `{}` yields ({}), but {} ({})",
                owner.op.name(),
                list(&yielded),
                if condition.is_some() { "it must yield" } else { "its results are" },
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
        match data.op {
            Op::Partition(_) => self.partition(op, top_level),
            Op::For | Op::While => self.loop_region(op),
            Op::If if data.regions.len() != 2 => self.error(data.loc, "`if` has two regions"),
            Op::If => {
                for &region in &data.regions {
                    if !self.kernel.region(region).params.is_empty() {
                        self.error(data.loc, "a region of `if` has no parameters");
                    }
                    self.region(region, Some(op));
                }
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
                self.errors.push(VerifyError { message: error.message, loc: data.loc, help: error.help });
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
        for &result in &data.results {
            self.names_are_bound(self.kernel.ty(result), data.loc);
        }
    }

    fn names_are_bound(&mut self, ty: &Type, loc: Loc) {
        let (dims, elem) = match ty {
            Type::Scalar(elem) => (Vec::new(), elem),
            Type::Tile(tile) => (tile.shape.iter().collect(), &tile.elem),
            Type::Tensor(tensor) => (tensor.extents.iter().collect(), &tensor.elem),
            Type::Partition(view) => {
                (view.tensor.extents.iter().chain(&view.tile).collect(), &view.tensor.elem)
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
        if mutable && !self.viewed.insert(tensor) {
            let name = self.kernel.value(tensor).name.as_deref().unwrap_or("an argument");
            self.error_with_help(
                data.loc,
                format!("`{name}` has two mutable partition views; a block owns one tile of it"),
                "use one view; `reshape` and `permute` give its tiles other shapes",
            );
        }
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
            ("%a = mma %t, %t, %t : tile<B x f32>", "`mma` needs tiles of rank 2, not [B]"),
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
            ("yield %t", "`yield` may only end a region of `for`, `while` or `if`"),
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
