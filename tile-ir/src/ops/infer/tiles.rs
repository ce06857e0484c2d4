//! Type rules of ops that make tiles, move their elements or join them.

use super::{
    Inferred, TypeError, check_axis, check_domain, count, display_shape, element, static_shape, tile_operand,
};
use crate::analysis::Facts;
use crate::analysis::facts::gcd;
use crate::dim::{Atom, Dim};
use crate::ops::{Domain, Op, ReduceOp};
use crate::types::{Elem, Type};

pub(super) fn splat(op: &Op, shape: &[Dim], operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let Type::Scalar(elem) = &operands[0] else {
        return Err(TypeError::new(format!("`splat` needs a scalar, not {}", operands[0])).at(0));
    };
    static_shape(op, shape)?;
    element(elem)?;
    Ok(Type::tile(shape.iter().cloned(), elem.clone()))
}

pub(super) fn item(op: &Op, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    // An extent that is a parameter is judged when the kernel is specialised.
    if tile.shape.iter().any(|dim| dim.as_const().is_some_and(|extent| extent != 1)) {
        let message =
            format!("`item` needs a tile of one element, not of shape {}", display_shape(&tile.shape));
        return Err(TypeError::new(message).at(0).help(
            "reduce every axis first, as in `x.sum(0).sum(1).item()`: a scalar is one value for the whole block",
        ));
    }
    Ok(Type::Scalar(tile.elem.clone()))
}

pub(super) fn iota(op: &Op, shape: &[Dim], axis: usize, elem: &Elem, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 0)?;
    static_shape(op, shape)?;
    element(elem)?;
    check_domain(op, Domain::Number, elem, 0)?;
    check_axis(op, axis, shape.len())?;
    Ok(Type::tile(shape.iter().cloned(), elem.clone()))
}

pub(super) fn broadcast(op: &Op, shape: &[Dim], operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    static_shape(op, shape)?;
    let fits = tile.shape.len() == shape.len()
        && tile.shape.iter().zip(shape).all(|(from, to)| from == to || from.as_const() == Some(1));
    if !fits {
        return Err(TypeError::new(format!(
            "shape {} can't be broadcast to {}",
            display_shape(&tile.shape),
            display_shape(shape)
        ))
        .at(0)
        .help("axes must be equal or have extent 1"));
    }
    Ok(Type::tile(shape.iter().cloned(), tile.elem.clone()))
}

pub(super) fn reshape(op: &Op, shape: &[Dim], operands: &[Type], facts: &Facts) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    static_shape(op, shape)?;
    let product = |dims: &[Dim]| dims.iter().cloned().fold(Dim::from(1), |a, b| a * b);
    if facts.apply(&product(&tile.shape)) != facts.apply(&product(shape)) {
        let error = TypeError::new(format!(
            "{} has {:#} elements and can't be reshaped to {}, which has {:#}",
            display_shape(&tile.shape),
            product(&tile.shape),
            display_shape(shape),
            product(shape)
        ))
        .at(0);
        let remainder =
            rounded(tile.shape.iter().chain(shape)).map(|(dividend, divisor)| dividend.rem(&divisor));
        return Err(match remainder {
            Some(remainder) => error.help(format!(
                "a quotient may be rounded; say that it isn't, `#[tile_kernel(where({remainder:#} == 0))]`, or make the \
                 smaller extent the parameter, so that the larger one is a product: `const HALF: usize` and `2 * HALF`"
            )),
            None => error,
        });
    }
    Ok(Type::tile(shape.iter().cloned(), tile.elem.clone()))
}

/// What is divided first in these extents, and by what that should be a multiple of: `B / 2 * 2` isn't `B`, which may be
/// odd, and where `B / 8` is among them, too, even numbers aren't enough.
fn rounded<'d>(dims: impl Iterator<Item = &'d Dim>) -> Option<(Dim, Dim)> {
    let atoms = dims.flat_map(Dim::terms).flat_map(|(factors, _)| factors);
    let mut quotients = atoms.filter_map(|atom| match atom {
        Atom::FloorDiv(dividend, divisor) | Atom::CeilDiv(dividend, divisor) => Some((dividend, divisor)),
        _ => None,
    });
    let (dividend, first) = quotients.next()?;
    let others = quotients.filter(|(other, _)| *other == dividend);
    let divisor =
        others.fold((**first).clone(), |all, (_, divisor)| common_multiple(&all, divisor).unwrap_or(all));
    Some(((**dividend).clone(), divisor))
}

/// The least common multiple of two numbers.
fn common_multiple(a: &Dim, b: &Dim) -> Option<Dim> {
    let [a, b] = [a, b].map(|dim| dim.as_const().and_then(|number| u64::try_from(number).ok()));
    let (a, b) = (a?, b?);
    let multiple = a.checked_div(gcd(a, b))?.checked_mul(b)?;
    i64::try_from(multiple).ok().map(Dim::from)
}

pub(super) fn permute(op: &Op, permutation: &[usize], operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..tile.shape.len()) {
        return Err(TypeError::new(format!(
            "{permutation:?} is not a permutation of the axes of {}",
            display_shape(&tile.shape)
        )));
    }
    Ok(Type::tile(permutation.iter().map(|&axis| tile.shape[axis].clone()), tile.elem.clone()))
}

pub(super) fn reduce(op: &Op, reduction: ReduceOp, axis: usize, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    check_domain(op, reduction.domain(), &tile.elem, 0).map_err(|error| match reduction {
        ReduceOp::Maximum => error.help("only floats have NaN to propagate: write `x.max(axis)`"),
        ReduceOp::Minimum => error.help("only floats have NaN to propagate: write `x.min(axis)`"),
        _ => error,
    })?;
    check_axis(op, axis, tile.shape.len())?;
    let mut shape = tile.shape.clone();
    shape[axis] = Dim::from(1);
    Ok(Type::tile(shape, tile.elem.clone()))
}
