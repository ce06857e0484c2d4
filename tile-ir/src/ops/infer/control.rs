//! Type rules of loops and branches, as far as operands decide them.

use super::{Inferred, TypeError, count, has_value, memory};
use crate::dim::Dim;
use crate::ops::Op;
use crate::tile_order::TileOrder;
use crate::types::Type;

pub(super) fn for_loop(operands: &[Type]) -> Inferred<Vec<Type>> {
    let [start, end, carried @ ..] = operands else {
        return Err(TypeError::new("`for` takes a start, an end and carried values"));
    };
    for (i, bound) in [start, end].into_iter().enumerate() {
        if bound != &Type::INDEX {
            return Err(TypeError::new(format!("a loop bound is `usize`, not {bound}")).at(i));
        }
    }
    carries(carried, 2)
}

pub(super) fn while_loop(operands: &[Type]) -> Inferred<Vec<Type>> {
    let [first, carried @ ..] = operands else {
        return Err(TypeError::new("`while` takes a condition and carried values"));
    };
    condition(&Op::While, first)?;
    carries(carried, 1)
}

pub(super) fn tiles(op: &Op, order: &TileOrder<Dim>, operands: &[Type]) -> Inferred<Vec<Type>> {
    let [view, carried @ ..] = operands else {
        return Err(TypeError::new("`tiles` takes a mutable partition view and carried values"));
    };
    memory::mutable_partition(op, view)?;
    if let TileOrder::Grouped(rows) = order {
        if !rows.is_static() {
            return Err(TypeError::new(format!(
                "the height `{rows:#}` of a group is known only at run time"
            ))
            .help("it is a literal or a const parameter of the kernel"));
        }
        has_value("the height of a group", rows)?;
        if rows.as_const().is_some_and(|rows| rows <= 0) {
            return Err(TypeError::new(format!("the height `{rows:#}` of a group is not positive")));
        }
    }
    let rank = view.as_partition().map_or(0, |view| view.grid().len());
    if let TileOrder::Falling(axis) = order
        && *axis >= rank
    {
        return Err(TypeError::new(format!("axis {axis} is out of range: the tiles have {rank} axes"))
            .help(format!("axes are numbered from 0 to {}", rank.saturating_sub(1))));
    }
    carries(carried, 1)
}

/// The types of carried values, the first of which is operand `first`.
fn carries(carried: &[Type], first: usize) -> Inferred<Vec<Type>> {
    for (i, value) in carried.iter().enumerate() {
        if !value.is_data() {
            return Err(TypeError::new(format!("a loop can't carry {value:#}")).at(i + first));
        }
    }
    Ok(carried.to_vec())
}

pub(super) fn branch(op: &Op, operands: &[Type]) -> Inferred<()> {
    count(op, operands, 1)?;
    condition(op, &operands[0])
}

fn condition(op: &Op, ty: &Type) -> Inferred<()> {
    if *ty == Type::BOOL {
        return Ok(());
    }
    Err(TypeError::new(format!("the condition of `{}` is {ty:#}, not a bool", op.name())).at(0))
}
