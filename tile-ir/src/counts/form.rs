//! Integer scalars of a kernel as forms of its sizes, of block indices and of loop counters.
//!
//! A form has the value of the scalar where arithmetic on indices doesn't wrap, which what a launch checks of indices
//! relies on, too. What comes from data has none.

use crate::dim::Dim;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::{BinaryOp, Literal, Op};
use crate::types::Type;
use std::collections::HashMap;

/// An integer that a launch decides.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// An extent.
    Known(Dim),
    /// A variable by its number: the axes of the grid come first, then loop counters.
    Variable(usize),
    /// Two forms combined.
    Binary(BinaryOp, Box<(Form, Form)>),
    /// What data decides.
    Unknown,
}

/// What values are.
#[derive(Debug, Default)]
pub(super) struct Forms {
    known: HashMap<ValueId, Form>,
    definitions: HashMap<ValueId, OpId>,
}

impl Forms {
    pub(super) fn of(kernel: &Kernel) -> Forms {
        let results = |op| kernel.op(op).results.iter().map(move |&result| (result, op));
        Forms { known: HashMap::new(), definitions: kernel.walk().into_iter().flat_map(results).collect() }
    }

    /// Says what a value is that no op of integers gives.
    pub(super) fn define(&mut self, value: ValueId, form: Form) {
        self.known.insert(value, form);
    }

    /// What a scalar is.
    pub(super) fn get(&mut self, kernel: &Kernel, value: ValueId) -> Form {
        if let Some(form) = self.known.get(&value) {
            return form.clone();
        }
        let form = match self.definitions.get(&value) {
            Some(&op) => self.computed(kernel, op),
            None => Form::Unknown,
        };
        self.known.insert(value, form.clone());
        form
    }

    fn computed(&mut self, kernel: &Kernel, op: OpId) -> Form {
        let data = kernel.op(op);
        match &data.op {
            Op::Extent(dim) => Form::Known(dim.clone()),
            Op::Constant { value: Literal::Int(value), .. } => {
                i64::try_from(*value).map_or(Form::Unknown, |value| Form::Known(Dim::from(value)))
            }
            Op::Binary(binary) => {
                let [a, b] = [0, 1].map(|operand| self.get(kernel, data.operands[operand]));
                match (a, b) {
                    (Form::Unknown, _) | (_, Form::Unknown) => Form::Unknown,
                    // What `evaluate` has no value of, or that of another format.
                    _ if compute(*binary, 1, 1).is_none() || is_signed(kernel, data.operands[0], *binary) => {
                        Form::Unknown
                    }
                    (a, b) => Form::Binary(*binary, Box::new((a, b))),
                }
            }
            Op::Cast(_) => self.get(kernel, data.operands[0]),
            _ => Form::Unknown,
        }
    }
}

impl Form {
    /// Whether it depends on a variable.
    pub(super) fn mentions(&self, variable: usize) -> bool {
        match self {
            Form::Variable(other) => *other == variable,
            Form::Binary(_, operands) => operands.0.mentions(variable) || operands.1.mentions(variable),
            Form::Known(_) | Form::Unknown => false,
        }
    }

    /// Whether it is a variable plus what doesn't depend on it.
    pub(super) fn shifts(&self, variable: usize) -> bool {
        match self {
            Form::Variable(other) => *other == variable,
            Form::Binary(BinaryOp::Add, operands) => {
                let (a, b) = &**operands;
                a.shifts(variable) && !b.mentions(variable) || b.shifts(variable) && !a.mentions(variable)
            }
            Form::Binary(BinaryOp::Sub, operands) => {
                operands.0.shifts(variable) && !operands.1.mentions(variable)
            }
            _ => false,
        }
    }

    /// Its value; `None` where a name or a variable has none, or the number doesn't fit.
    pub(super) fn evaluate(
        &self,
        sizes: &dyn Fn(&str) -> Option<i64>,
        variables: &[Option<i64>],
    ) -> Option<i64> {
        match self {
            Form::Known(dim) => dim.evaluate_signed(sizes).ok(),
            Form::Variable(variable) => variables[*variable],
            Form::Unknown => None,
            Form::Binary(op, operands) => {
                let a = operands.0.evaluate(sizes, variables)?;
                let b = operands.1.evaluate(sizes, variables)?;
                compute(*op, a, b)
            }
        }
    }
}

/// Whether a difference that stops at 0 in [`compute`] is of a format that goes on below.
fn is_signed(kernel: &Kernel, operand: ValueId, op: BinaryOp) -> bool {
    op == BinaryOp::SaturatingSub && *kernel.ty(operand) != Type::INDEX
}

/// What an op makes of two numbers; `None` where it has no form, or the result doesn't fit.
fn compute(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::SaturatingSub => Some(a.saturating_sub(b).max(0)),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div => Some(a.checked_div(b).unwrap_or(0)),
        BinaryOp::Rem => Some(a.checked_rem(b).unwrap_or(a)),
        BinaryOp::RemEuclid => Some(a.checked_rem_euclid(b).unwrap_or(a)),
        BinaryOp::DivCeil if a >= 0 && b > 0 => Some((a - 1).div_euclid(b) + 1),
        BinaryOp::DivFloor if a >= 0 && b > 0 => Some(a / b),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::And => Some(a & b),
        BinaryOp::Or => Some(a | b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::Shl if (0..63).contains(&b) => a.checked_mul(1 << b),
        BinaryOp::Shr if (0..64).contains(&b) => Some(a >> b),
        _ => None,
    }
}
