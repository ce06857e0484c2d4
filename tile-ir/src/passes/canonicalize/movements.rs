//! Rules about ops that move the elements of tiles.

use super::{Rewrite, Rule, Site};
use crate::dim::Dim;
use crate::kernel::{OpData, ValueId};
use crate::ops::{Movement, Op};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "movement of one number", rewrite: of_splat },
    Rule { name: "movement that moves nothing", rewrite: moves_nothing },
    Rule { name: "permute of a permute", rewrite: permute_of_permute },
    Rule { name: "reshape of a reshape", rewrite: reshape_of_reshape },
    Rule { name: "broadcast of a broadcast", rewrite: broadcast_of_broadcast },
    Rule { name: "flip of a flip", rewrite: flip_of_flip },
];

fn shape<'k>(site: &Site<'k>, value: ValueId) -> Option<&'k [Dim]> {
    site.kernel.ty(value).as_tile().map(|tile| tile.shape.as_slice())
}

/// Whether an op's result has elements of its operands alone, in other places.
fn moves(op: &Op) -> bool {
    matches!(op, Op::Permute(_) | Op::Reshape(_) | Op::Broadcast(_) | Op::Movement(_))
}

/// The scalar that a value is, everywhere.
fn scalar(site: &Site<'_>, value: ValueId) -> Option<ValueId> {
    match (site.definition(value), shape(site, value)) {
        (_, None) => Some(value),
        (Some(OpData { op: Op::Splat(_), operands, .. }), _) => operands.first().copied(),
        _ => None,
    }
}

/// What is made of one scalar alone is that scalar everywhere.
fn of_splat(site: &Site<'_>) -> Option<Rewrite> {
    let (data, shape) = (site.data(), shape(site, site.result())?);
    let (&first, others) = data.operands.split_first().filter(|_| moves(&data.op))?;
    let first = scalar(site, first)?;
    let alike = |&other: &ValueId| {
        let other = scalar(site, other)?;
        let equal = || site.number(first).is_some_and(|number| site.number(other) == Some(number));
        (other == first || equal()).then_some(())
    };
    others.iter().try_for_each(alike)?;
    Some(Rewrite::Op(Op::Splat(shape.to_vec()), vec![first.into()]))
}

/// Identity permutations, reshapes to the same shape, turns by nothing.
fn moves_nothing(site: &Site<'_>) -> Option<Rewrite> {
    let data = site.data();
    let (&tile, same) = data.operands.first().zip(shape(site, site.result()))?;
    let same = shape(site, tile)? == same;
    let is = |dim: &Dim, number: i64| dim.as_const() == Some(number);
    let still = match &data.op {
        Op::Permute(order) => order.iter().enumerate().all(|(axis, &from)| axis == from),
        Op::Reshape(_) | Op::Broadcast(_) => same,
        Op::Movement(movement) => match movement {
            // Windows, joins and repetitions of the whole: what has the shape of the first operand is the first.
            Movement::Extract { .. }
            | Movement::Pad { .. }
            | Movement::Cat { .. }
            | Movement::Repeat { .. } => same,
            Movement::Flip { axis } => is(&shape(site, tile)?[*axis], 1),
            Movement::Roll { axis, by } => by.as_const()? % shape(site, tile)?[*axis].as_const()?.max(1) == 0,
            Movement::Shift { by, .. } => is(by, 0),
            Movement::Insert { .. } => {
                let part = data.operands[1];
                return (shape(site, part)? == shape(site, tile)?).then_some(Rewrite::Value(part));
            }
        },
        _ => return None,
    };
    still.then_some(Rewrite::Value(tile))
}

/// The op that gives the operand.
fn inner<'k>(site: &Site<'k>) -> Option<&'k OpData> {
    site.definition(*site.data().operands.first()?)
}

fn permute_of_permute(site: &Site<'_>) -> Option<Rewrite> {
    let (Op::Permute(outer), data) = (&site.data().op, inner(site)?) else { return None };
    let Op::Permute(first) = &data.op else { return None };
    let order = outer.iter().map(|&axis| first[axis]).collect();
    Some(Rewrite::Op(Op::Permute(order), vec![data.operands[0].into()]))
}

fn reshape_of_reshape(site: &Site<'_>) -> Option<Rewrite> {
    let (Op::Reshape(shape), data) = (&site.data().op, inner(site)?) else { return None };
    let reshapes = matches!(data.op, Op::Reshape(_));
    reshapes.then(|| Rewrite::Op(Op::Reshape(shape.clone()), vec![data.operands[0].into()]))
}

fn broadcast_of_broadcast(site: &Site<'_>) -> Option<Rewrite> {
    let (Op::Broadcast(shape), data) = (&site.data().op, inner(site)?) else { return None };
    let broadcasts = matches!(data.op, Op::Broadcast(_));
    broadcasts.then(|| Rewrite::Op(Op::Broadcast(shape.clone()), vec![data.operands[0].into()]))
}

fn flip_of_flip(site: &Site<'_>) -> Option<Rewrite> {
    let (Op::Movement(Movement::Flip { .. }), data) = (&site.data().op, inner(site)?) else { return None };
    (data.op == site.data().op).then(|| Rewrite::Value(data.operands[0]))
}
