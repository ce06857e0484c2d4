//! `grid = [m.div_ceil(BM), 4]` of `#[tile_kernel(…)]`, extents of names that the signature binds, and `grid = tiles`. A
//! number among the arguments that a grid names, `blocks: usize`, is one of the kernel's sizes.

use crate::attribute::GridOption;
use crate::diagnostic::Diagnostics;
use crate::extent::{self, Kind, Names};
use std::collections::BTreeSet;
use syn::{FnArg, ItemFn, Pat, parse_quote};
use tile_ir::{Grid, Kernel, Type, ValueId};

/// What an expression of a grid is.
const EXTENT: Kind = Kind {
    name: "an extent of a grid",
    examples: "an extent is a run-time size of the signature such as `m`, an argument `blocks: usize`, a const parameter, a \
               number",
    names: "name an axis of an argument, as `n` in `&Tensor<f32, n>`, an argument `blocks: usize`, or a const parameter of \
            the kernel",
};

/// Gives a kernel the grid that the attribute asks for.
pub(crate) fn declare(kernel: &mut Kernel, grid: &GridOption, names: &Names) -> Result<(), Diagnostics> {
    let grid = lower(grid, names)?;
    let mut named = BTreeSet::new();
    grid.dims().iter().for_each(|dim| dim.collect_names(&mut BTreeSet::new(), &mut named));
    let is_named = |param: &ValueId| {
        let data = kernel.value(*param);
        data.ty == Type::INDEX && data.name.as_ref().is_some_and(|name| named.contains(name))
    };
    let numbers: Vec<ValueId> = kernel.params().iter().copied().filter(is_named).collect();
    kernel.given_sizes.extend(numbers);
    kernel.grid = Some(grid);
    Ok(())
}

fn lower(grid: &GridOption, names: &Names) -> Result<Grid, Diagnostics> {
    let GridOption::Extents(grid) = grid else { return Ok(Grid::Tiles) };
    let (mut extents, mut errors) = (Vec::new(), Vec::new());
    for expression in &grid.elems {
        match extent::lower(expression, names, &EXTENT) {
            Ok(extent) => extents.push(extent),
            Err(error) => errors.push(*error),
        }
    }
    if errors.is_empty() { Ok(Grid::Extents(extents)) } else { Err(Diagnostics::new(errors)) }
}

/// Mentions in the body the arguments that are sizes, which rustc would take for unused where it doesn't.
pub(crate) fn use_arguments(function: &mut ItemFn, kernel: &Kernel) {
    let is_named = |ident: &syn::Ident| kernel.size_arguments().any(|(_, name)| ident == name);
    let named = function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(pattern) if is_named(&pattern.ident) => Some(pattern.ident.clone()),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    });
    let uses: Vec<syn::Stmt> = named.map(|ident| parse_quote!(let _ = #ident;)).collect();
    function.block.stmts.splice(0..0, uses);
}
