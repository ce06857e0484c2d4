//! Canonical forms: ops that do nothing are gone, what can be said in several ways is said in one.
//!
//! A list of small rules, [`RULES`], each about one op and what it is computed from, and each exact in every format:
//! integers wrap, floats keep −0 and NaN. (Of a NaN only that it is one: `x * 1` is `x`, though arithmetic makes a
//! signalling NaN quiet.) Rules about loops and branches are in [`control`].
//!
//! A rule may show a constant and a constant may let a rule apply, so rounds of folding and rules go on until nothing
//! changes, [`ROUNDS`] times at most.

mod arithmetic;
mod casts;
mod control;
mod known;
mod movements;
#[cfg(test)]
mod tests;

use super::fold;
use crate::analysis::{Divisors, Facts, Ranges};
use crate::array::Array;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{BinaryOp, Literal, Op};
use crate::types::{Elem, Type};
use std::collections::HashMap;

/// How often all rules are tried at most.
const ROUNDS: usize = 8;

/// How many rules are applied to one op in a round.
const PER_OP: usize = 16;

/// A rule about an op with one result.
pub(super) struct Rule {
    /// What it says, for tests.
    name: &'static str,
    /// What the op is, said in another way.
    rewrite: fn(&Site<'_>) -> Option<Rewrite>,
}

/// Every rule, in the order in which they are tried: what is known of a value before what its op looks like.
const RULES: &[&[Rule]] = &[known::RULES, arithmetic::RULES, casts::RULES, movements::RULES];

/// What an op's result is.
pub(super) enum Rewrite {
    /// A value that exists.
    Value(ValueId),
    /// This number, everywhere.
    Number(Literal),
    /// What another op gives.
    Op(Op, Vec<Operand>),
}

/// An operand of a new op.
pub(super) enum Operand {
    /// A value that exists.
    Value(ValueId),
    /// A number, of the result's type.
    Number(Literal),
}

impl From<ValueId> for Operand {
    fn from(value: ValueId) -> Operand {
        Operand::Value(value)
    }
}

/// An op, and what a rule may look at.
pub(super) struct Site<'k> {
    kernel: &'k Kernel,
    analyses: &'k Analyses,
    op: OpId,
}

/// What is known of a kernel when a round begins. It stays true of values while ops are rewritten.
struct Analyses {
    ranges: Ranges,
    divisors: Divisors,
    /// Where values are defined.
    definitions: HashMap<ValueId, OpId>,
}

impl Analyses {
    fn of(kernel: &Kernel) -> Analyses {
        let ranges = Ranges::under(kernel, Facts::of(kernel));
        let divisors = Divisors::within(kernel, &ranges);
        let results = |op: OpId| kernel.op(op).results.iter().map(move |&result| (result, op));
        let definitions = kernel.walk().into_iter().flat_map(results).collect();
        Analyses { ranges, divisors, definitions }
    }
}

impl<'k> Site<'k> {
    fn data(&self) -> &'k OpData {
        self.kernel.op(self.op)
    }

    fn operand(&self, i: usize) -> ValueId {
        self.data().operands[i]
    }

    fn result(&self) -> ValueId {
        self.data().results[0]
    }

    /// The op that gives a value.
    fn definition(&self, value: ValueId) -> Option<&'k OpData> {
        self.analyses.definitions.get(&value).map(|&op| self.kernel.op(op))
    }

    /// The format of a value.
    fn dtype(&self, value: ValueId) -> Option<DType> {
        self.kernel.ty(value).elem().known()
    }

    /// The number that a scalar, or every element of a tile, is, as its format holds it.
    fn number(&self, value: ValueId) -> Option<Literal> {
        let data = self.definition(value)?;
        match &data.op {
            Op::Constant { value: number, elem } => Some(Array::scalar(elem.known()?, *number).get(0)),
            Op::Splat(_) => self.number(data.operands[0]),
            _ => None,
        }
    }

    fn int(&self, value: ValueId) -> Option<i128> {
        match self.number(value)? {
            Literal::Int(number) => Some(number),
            Literal::Float(_) => None,
        }
    }

    /// The op and operands of a binary op.
    fn binary(&self) -> Option<(BinaryOp, ValueId, ValueId)> {
        match (&self.data().op, self.data().operands.as_slice()) {
            (Op::Binary(op), &[a, b]) => Some((*op, a, b)),
            _ => None,
        }
    }
}

/// Applies the rules until none does.
pub(crate) fn run(kernel: &mut Kernel) {
    canonicalize(kernel, &mut |_| {});
}

/// Applies the rules until none does, and names those that did.
fn canonicalize(kernel: &mut Kernel, applied: &mut dyn FnMut(&'static str)) {
    for _ in 0..ROUNDS {
        fold::run(kernel);
        let mut round =
            Round { analyses: Analyses::of(kernel), replacement: HashMap::new(), applied, changed: false };
        let body = kernel.body();
        round.region(kernel, body);
        let Round { replacement, changed, .. } = round;
        super::replace_uses(kernel, &replacement);
        if !(control::run(kernel, applied) || changed) {
            break;
        }
    }
}

struct Round<'a> {
    analyses: Analyses,
    replacement: HashMap<ValueId, ValueId>,
    applied: &'a mut dyn FnMut(&'static str),
    changed: bool,
}

impl Round<'_> {
    fn region(&mut self, kernel: &mut Kernel, region: RegionId) {
        let mut ops = Vec::new();
        for op in kernel.region(region).ops.clone() {
            for operand in &mut kernel.op_mut(op).operands {
                while let Some(&other) = self.replacement.get(operand) {
                    *operand = other;
                }
            }
            for inner in kernel.op(op).regions.clone() {
                self.region(kernel, inner);
            }
            self.op(kernel, op, &mut ops);
            ops.push(op);
        }
        kernel.region_mut(region).ops = ops;
    }

    /// Rewrites an op; what it needs now is put before it.
    fn op(&mut self, kernel: &mut Kernel, op: OpId, before: &mut Vec<OpId>) {
        for _ in 0..PER_OP {
            let data = kernel.op(op);
            if data.results.len() != 1 || !data.regions.is_empty() || data.op.has_effect() {
                return;
            }
            let site = Site { kernel, analyses: &self.analyses, op };
            let found = RULES.iter().copied().flatten().find_map(|rule| Some((rule, (rule.rewrite)(&site)?)));
            let Some((rule, rewrite)) = found else { return };
            (self.applied)(rule.name);
            self.changed = true;
            match rewrite {
                Rewrite::Value(value) => {
                    self.replacement.insert(kernel.op(op).results[0], value);
                    return;
                }
                Rewrite::Number(number) => self.becomes_number(kernel, op, number, before),
                Rewrite::Op(new, operands) => {
                    let operands = operands
                        .into_iter()
                        .map(|operand| match operand {
                            Operand::Value(value) => value,
                            Operand::Number(number) => self.constant(kernel, op, number, before),
                        })
                        .collect();
                    let data = kernel.op_mut(op);
                    (data.op, data.operands) = (new, operands);
                }
            }
        }
    }

    fn becomes_number(&mut self, kernel: &mut Kernel, op: OpId, number: Literal, before: &mut Vec<OpId>) {
        let ty = kernel.ty(kernel.op(op).results[0]).clone();
        let (new, operands) = match &ty {
            Type::Tile(tile) => {
                let scalar = Type::Scalar(tile.elem.clone());
                (Op::Splat(tile.shape.clone()), vec![self.scalar(kernel, op, scalar, number, before)])
            }
            ty => (Op::Constant { value: number, elem: ty.elem().clone() }, Vec::new()),
        };
        let data = kernel.op_mut(op);
        (data.op, data.operands) = (new, operands);
    }

    /// A number of the type of an op's result.
    fn constant(
        &mut self,
        kernel: &mut Kernel,
        op: OpId,
        number: Literal,
        before: &mut Vec<OpId>,
    ) -> ValueId {
        let ty = kernel.ty(kernel.op(op).results[0]).clone();
        let Type::Tile(tile) = &ty else { return self.scalar(kernel, op, ty, number, before) };
        let scalar = self.scalar(kernel, op, Type::Scalar(tile.elem.clone()), number, before);
        self.insert(kernel, op, Op::Splat(tile.shape.clone()), vec![scalar], ty.clone(), before)
    }

    fn scalar(
        &mut self,
        kernel: &mut Kernel,
        op: OpId,
        ty: Type,
        number: Literal,
        before: &mut Vec<OpId>,
    ) -> ValueId {
        let elem: Elem = ty.elem().clone();
        self.insert(kernel, op, Op::Constant { value: number, elem }, Vec::new(), ty, before)
    }

    /// A new op before another one, which it is part of.
    fn insert(
        &mut self,
        kernel: &mut Kernel,
        op: OpId,
        new: Op,
        operands: Vec<ValueId>,
        ty: Type,
        before: &mut Vec<OpId>,
    ) -> ValueId {
        let result = kernel.new_value(ty, None);
        let loc = kernel.op(op).loc;
        let id = kernel.new_op(OpData { op: new, operands, results: vec![result], regions: Vec::new(), loc });
        self.analyses.definitions.insert(result, id);
        before.push(id);
        result
    }
}
