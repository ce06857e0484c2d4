//! Computes ops on constant scalars, with the evaluator's own functions, takes branches that are known and
//! removes loops whose first condition is false, and assertions that hold.

use super::{dce, replace_uses};
use crate::array::{Array, Elements};
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{Literal, Op, result_types};
use crate::types::Type;
use std::collections::HashMap;

/// Folds in order of appearance, so that folded operands are seen.
pub(super) fn run(kernel: &mut Kernel) {
    Fold::default().run(kernel);
}

/// Takes the branches that parameters decide which were bound just now, and removes what only others used. Other ops
/// stay as they are. The kernel needn't verify: only what can't differ from what a generic kernel says is computed.
pub(crate) fn take_known_branches(kernel: &mut Kernel) {
    let mut fold = Fold { decides_only: true, ..Fold::default() };
    fold.run(kernel);
    if fold.has_taken {
        dce::run(kernel);
    }
}

/// Whether IR text has such a scalar: of all NaN it has one.
fn is_written(scalar: &Array) -> bool {
    match scalar.get(0) {
        Literal::Float(value) if value.is_nan() => value.to_bits() == f64::NAN.to_bits(),
        _ => true,
    }
}

#[derive(Default)]
struct Fold {
    /// Whether nothing but what decides branches is computed, and no op is replaced by its value.
    decides_only: bool,
    /// Whether a branch was taken.
    has_taken: bool,
    constants: HashMap<ValueId, Array>,
    /// Results of branches that were taken and of loops that don't run.
    replacement: HashMap<ValueId, ValueId>,
}

impl Fold {
    fn run(&mut self, kernel: &mut Kernel) {
        let body = kernel.body();
        self.region(kernel, body);
        replace_uses(kernel, &self.replacement);
    }

    fn region(&mut self, kernel: &mut Kernel, region: RegionId) {
        let mut ops = Vec::new();
        for op in kernel.region(region).ops.clone() {
            if self.holds(kernel, op) {
                continue;
            }
            if self.never_runs(kernel, op) {
                let data = kernel.op(op);
                self.replacement.extend(data.results.iter().copied().zip(data.operands[1..].iter().copied()));
                continue;
            }
            match self.known_branch(kernel, op) {
                Some(chosen) => ops.extend(self.splice(kernel, op, chosen)),
                None => {
                    self.op(kernel, op);
                    ops.push(op);
                }
            }
        }
        kernel.region_mut(region).ops = ops;
    }

    fn op(&mut self, kernel: &mut Kernel, op: OpId) {
        let data = kernel.op(op).clone();
        for &inner in &data.regions {
            self.region(kernel, inner);
        }
        let Some(value) = self.evaluate(kernel, &data) else { return };
        if !self.decides_only {
            let folded = kernel.op_mut(op);
            folded.op = Op::Constant { value: value.get(0), elem: value.dtype().into() };
            folded.operands.clear();
        }
        self.constants.insert(data.results[0], value);
    }

    /// The value of an op of one scalar result whose operands are constants.
    fn evaluate(&self, kernel: &Kernel, data: &OpData) -> Option<Array> {
        let &[result] = data.results.as_slice() else { return None };
        let Type::Scalar(elem) = kernel.ty(result) else { return None };
        let dtype = elem.known()?;
        if self.decides_only {
            // Indices and truths decide. A type parameter may stand for a `bool` of which an op computes nothing.
            let types =
                || data.operands.iter().map(|&operand| kernel.ty(operand).clone()).collect::<Vec<_>>();
            if !matches!(dtype, DType::Index | DType::Bool) || result_types(&data.op, &types()).is_err() {
                return None;
            }
        }
        let operand = |i: usize| self.constant(data.operands[i]);
        Some(match &data.op {
            Op::Constant { value, .. } => Array::scalar(dtype, *value),
            // A negative extent reads as 0, as in the evaluator.
            Op::Extent(dim) => Array::scalar(DType::Index, Literal::Int(i128::from(dim.as_const()?.max(0)))),
            Op::Unary(op) => operand(0)?.unary(*op),
            Op::Binary(op) => operand(0)?.binary(*op, operand(1)?),
            Op::Compare(predicate) => operand(0)?.compare(*predicate, operand(1)?),
            Op::Classify(classification) => operand(0)?.classify(*classification),
            Op::Select => Array::select(operand(0)?, operand(1)?, operand(2)?),
            Op::Cast(_) => operand(0)?.cast(dtype),
            Op::CastWith(_, rounding) => operand(0)?.cast_with(dtype, *rounding),
            Op::SaturatingCast(_) => operand(0)?.saturating_cast(dtype),
            Op::Bitcast(_) => Some(operand(0)?.bitcast(dtype)).filter(is_written)?,
            Op::Lookup { table, .. } => operand(0)?.lookup(dtype, table),
            Op::MulAdd => Array::mul_add(operand(0)?, operand(1)?, operand(2)?),
            _ => return None,
        })
    }

    /// The region of an `if` whose condition is constant.
    fn known_branch(&self, kernel: &Kernel, op: OpId) -> Option<RegionId> {
        let data = kernel.op(op);
        if data.op != Op::If {
            return None;
        }
        self.truth(data.operands[0]).map(|holds| data.regions[usize::from(!holds)])
    }

    /// Whether an op is a `while` that stops before it starts.
    fn never_runs(&self, kernel: &Kernel, op: OpId) -> bool {
        let data = kernel.op(op);
        data.op == Op::While && self.truth(data.operands[0]) == Some(false)
    }

    /// Whether an op is an assertion of what is constantly true.
    fn holds(&self, kernel: &Kernel, op: OpId) -> bool {
        let data = kernel.op(op);
        matches!(data.op, Op::Assert { .. }) && self.truth(data.operands[0]) == Some(true)
    }

    /// A condition that is constant.
    fn truth(&self, condition: ValueId) -> Option<bool> {
        match self.constant(condition)?.elements() {
            Elements::Int(values) => Some(values[0] != 0),
            Elements::Float(_) => None,
        }
    }

    /// The number that a value is, or what has taken its place: of a branch in a branch in several steps.
    fn constant(&self, mut value: ValueId) -> Option<&Array> {
        while let Some(&other) = self.replacement.get(&value) {
            value = other;
        }
        self.constants.get(&value)
    }

    /// The ops of a branch, which take the place of its `if`.
    fn splice(&mut self, kernel: &mut Kernel, op: OpId, chosen: RegionId) -> Vec<OpId> {
        self.has_taken = true;
        self.region(kernel, chosen);
        let mut ops = kernel.region(chosen).ops.clone();
        let last = ops.pop().expect("verified: a branch ends with `yield`");
        let results = kernel.op(op).results.clone();
        let yielded = kernel.op(last).operands.clone();
        self.replacement.extend(results.into_iter().zip(yielded));
        ops
    }
}
