//! Type rules of constants and of ops on elements: operands of one type.

use super::{Inferred, TypeError, check_domain, count, display_shape, element};
use crate::dtype::DType;
use crate::ops::{Domain, Literal, Op};
use crate::types::{Elem, Type};

pub(super) fn constant(value: &Literal, elem: &Elem, operands: &[Type]) -> Inferred<Vec<Type>> {
    if !operands.is_empty() {
        return Err(TypeError::new("`constant` takes no operands"));
    }
    is_of_format(value, elem)?;
    Ok(vec![Type::Scalar(elem.clone())])
}

/// Whether a number can be one of a format.
fn is_of_format(value: &Literal, elem: &Elem) -> Inferred<()> {
    match (value, elem.known()) {
        (Literal::Float(_), Some(dtype)) if !dtype.is_float() => {
            Err(TypeError::new(format!("a float literal can't be {dtype}")))
        }
        (Literal::Int(value), Some(dtype)) if dtype.is_float() => {
            Err(TypeError::new(format!("the integer literal {value} can't be {dtype}"))
                .help(format!("write `{value}.0`")))
        }
        (Literal::Int(value), Some(dtype)) if !fits(*value, dtype) => {
            Err(TypeError::new(format!("{value} doesn't fit {dtype}")))
        }
        _ => Ok(()),
    }
}

pub(super) fn lookup(op: &Op, table: &[Literal], elem: &Elem, operands: &[Type]) -> Inferred<Type> {
    let operand = one_type(op, Domain::Int, operands, 1)?;
    if table.is_empty() {
        return Err(TypeError::new("the table has no numbers"));
    }
    if elem.known() == Some(DType::F8E8M0FNU) {
        let message = "what isn't in the table is 0, which f8e8m0fnu doesn't have";
        return Err(TypeError::new(message).help("look exponents up as u8, and convert the powers of two"));
    }
    table.iter().try_for_each(|number| is_of_format(number, elem))?;
    of_format(&operand, elem)
}

fn fits(value: i128, dtype: DType) -> bool {
    let bits = dtype.bits();
    match dtype {
        DType::Bool => (0..=1).contains(&value),
        _ if dtype.is_signed() => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&value),
        _ => (0..1i128 << bits).contains(&value),
    }
}

/// All operands are data of one type in the domain; gives that type.
pub(super) fn one_type(op: &Op, domain: Domain, operands: &[Type], expected: usize) -> Inferred<Type> {
    count(op, operands, expected)?;
    for (i, operand) in operands.iter().enumerate() {
        if !operand.is_data() {
            return Err(TypeError::new(format!(
                "`{}` needs a scalar or tile, not {operand:#}",
                op.spelling()
            ))
            .at(i));
        }
        check_domain(op, domain, operand.elem(), i)?;
    }
    for operand in &operands[1..] {
        same_type(op, &operands[0], operand)?;
    }
    Ok(operands[0].clone())
}

fn same_type(op: &Op, left: &Type, right: &Type) -> Inferred<()> {
    if left.elem() != right.elem() {
        return Err(TypeError::new(format!(
            "`{}` mixes element types {} and {}",
            op.spelling(),
            left.elem(),
            right.elem()
        ))
        .help("convert one side with `.cast()`"));
    }
    match (left, right) {
        (Type::Tile(a), Type::Tile(b)) if a.shape != b.shape => Err(TypeError::new(format!(
            "`{}` mixes shapes {} and {}",
            op.spelling(),
            display_shape(&a.shape),
            display_shape(&b.shape)
        ))),
        _ if left != right => Err(TypeError::new(format!("`{}` mixes {left} and {right}", op.spelling()))),
        _ => Ok(()),
    }
}

pub(super) fn select(op: &Op, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 3)?;
    let condition = &operands[0];
    if !condition.is_data() || condition.elem() != &Elem::Known(DType::Bool) {
        return Err(TypeError::new(format!("the condition of `select` is {condition}, not bool")).at(0));
    }
    let value = one_type(&Op::Select, Domain::Any, &operands[1..], 2)?;
    same_type(op, &condition.with_elem(value.elem().clone()), &value)?;
    Ok(value)
}

pub(super) fn cast_with(op: &Op, elem: &Elem, operands: &[Type]) -> Inferred<Type> {
    let operand = one_type(op, Domain::Float, operands, 1)
        .map_err(|error| error.help("integers are converted with `.cast()`, which rounds to nearest even"))?;
    match elem.known() {
        Some(DType::Bool) => {
            Err(TypeError::new("`cast_with` doesn't round to bool").help("compare with zero"))
        }
        _ => of_format(&operand, elem),
    }
}

pub(super) fn saturating_cast(op: &Op, elem: &Elem, operands: &[Type]) -> Inferred<Type> {
    let operand = one_type(op, Domain::Float, operands, 1)
        .map_err(|error| error.help("integers are converted with `.cast()`; `.clamp(low, high)` first"))?;
    match elem.known() {
        Some(dtype) if !Domain::Float.accepts(dtype) => {
            Err(TypeError::new(format!("`saturating_cast` gives a float, not {dtype}"))
                .help("`.cast()` to an integer saturates already"))
        }
        _ => of_format(&operand, elem),
    }
}

/// The type in another format, which a tile may not hold.
pub(super) fn of_format(ty: &Type, elem: &Elem) -> Inferred<Type> {
    if ty.as_tile().is_some() {
        element(elem)?;
    }
    Ok(ty.with_elem(elem.clone()))
}

pub(super) fn bitcast(op: &Op, elem: &Elem, operands: &[Type]) -> Inferred<Type> {
    let operand = one_type(op, Domain::NumberOrScale, operands, 1)?;
    let (Some(from), Some(to)) = (operand.elem().known(), elem.known()) else {
        return Ok(operand.with_elem(elem.clone()));
    };
    if to == DType::Bool {
        return Err(TypeError::new("not every byte is a bool").help("compare with zero"));
    }
    if from.bits() != to.bits() {
        let message =
            format!("`bitcast` keeps the bits, but {from} has {} and {to} has {}", from.bits(), to.bits());
        return Err(TypeError::new(message).at(0).help("convert the number with `.cast()`"));
    }
    of_format(&operand, elem)
}
