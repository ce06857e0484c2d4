//! `grid = [m.div_ceil(BM), 4]` of `#[tile_kernel(…)]`, extents of names that the signature binds, and `grid = tiles`.

use crate::attribute::GridOption;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::extent::{OPERATIONS, operation};
use crate::span::Spanned;
use std::collections::HashMap;
use syn::{Expr, Lit};
use tile_ir::{Dim, Grid};

/// The names that an extent may have.
pub(crate) type Names = HashMap<String, Dim>;

/// The grid that the attribute asks for.
pub(crate) fn lower(grid: &GridOption, names: &Names) -> Result<Grid, Diagnostics> {
    let GridOption::Extents(grid) = grid else { return Ok(Grid::Tiles) };
    let (mut extents, mut errors) = (Vec::new(), Vec::new());
    for expression in &grid.elems {
        match extent(expression, names) {
            Ok(extent) => extents.push(extent),
            Err(error) => errors.push(*error),
        }
    }
    if errors.is_empty() { Ok(Grid::Extents(extents)) } else { Err(Diagnostics::new(errors)) }
}

fn refused(place: &impl Spanned) -> Box<Diagnostic> {
    let help = format!(
        "an extent is a run-time size of the signature such as `m`, a const parameter, a number, or {OPERATIONS} of these"
    );
    Box::new(Diagnostic::new(place.span(), "this isn't an extent of a grid").help(help))
}

fn extent(expression: &Expr, names: &Names) -> Result<Dim, Box<Diagnostic>> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => int.base10_parse::<i64>().map(Dim::from).map_err(|_| refused(expression)),
            _ => Err(refused(expression)),
        },
        Expr::Path(path) => {
            let ident = path.path.get_ident().ok_or_else(|| refused(expression))?;
            names.get(&ident.to_string()).cloned().ok_or_else(|| {
                let help = "name an axis of an argument, as `n` in `&Tensor<f32, n>`, or a const parameter of the kernel";
                let message = format!("`{ident}` is no extent of the signature");
                Box::new(Diagnostic::new(expression.span(), message).help(help))
            })
        }
        Expr::Paren(inner) => extent(&inner.expr, names),
        _ => {
            let (left, function, right) = operation(expression).ok_or_else(|| refused(expression))?;
            let (left, right) = (extent(left, names)?, extent(right, names)?);
            function(&left, &right).ok_or_else(|| refused(expression))
        }
    }
}
