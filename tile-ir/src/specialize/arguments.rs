//! The arguments of an instance: which of those are there that not every instance has, and how tensors lie.

use super::{Binding, Bindings, SpecializeError};
use crate::kernel::{Kernel, OpId, Presence, ValueId};
use crate::ops::Op;
use crate::passes;
use crate::types::{PartitionType, Type};
use crate::verify::VerifyError;
use crate::view::{ArgumentLayout, Source};
use std::collections::HashSet;

/// Whether an instance is one of these.
pub(super) fn holds(presence: &Presence, bindings: &Bindings) -> bool {
    let bound = bindings.iter().find(|(name, _)| *name == presence.parameter);
    bound.is_some_and(|&(_, value)| match value {
        Binding::Bool(value) => usize::from(value) > presence.above,
        Binding::Const(value) => value > presence.above,
        Binding::Elem(_) => false,
    })
}

/// Removes the arguments that an instance doesn't have, with the views of them that nobody uses.
pub(super) fn drop_absent(kernel: &mut Kernel, bindings: &Bindings) -> Result<(), SpecializeError> {
    let optional = std::mem::take(&mut kernel.optional);
    let absent: Vec<(ValueId, Presence)> =
        optional.into_iter().filter(|(_, presence)| !holds(presence, bindings)).collect();
    if absent.is_empty() {
        return Ok(());
    }
    passes::remove_unused(kernel);
    remove_outputs(kernel, &absent);
    let used = |(param, presence): &(ValueId, Presence)| {
        let user =
            kernel.walk().into_iter().map(|op| kernel.op(op)).find(|op| op.operands.contains(param))?;
        let name = kernel.value(*param).name.as_deref().unwrap_or("an argument");
        let message =
            format!("`{name}` is used where `{presence}` doesn't hold, and there it is no argument");
        Some(VerifyError { message, loc: user.loc, operand: None, help: None })
    };
    let errors: Vec<VerifyError> = absent.iter().filter_map(used).collect();
    if !errors.is_empty() {
        return Err(SpecializeError::Invalid { kernel: kernel.name.clone(), errors });
    }
    let body = kernel.body();
    kernel.region_mut(body).params.retain(|param| absent.iter().all(|(absent, _)| absent != param));
    Ok(())
}

/// Removes the views of absent outputs that nobody uses: one that is there declares the grid, used or not.
fn remove_outputs(kernel: &mut Kernel, absent: &[(ValueId, Presence)]) {
    let used: HashSet<ValueId> =
        kernel.walk().into_iter().flat_map(|op| kernel.op(op).operands.clone()).collect();
    let is_needless = |&op: &OpId| {
        let data = kernel.op(op);
        let is_absent = |view: ValueId| {
            let argument = Source::of(kernel, view).argument;
            absent.iter().any(|&(absent, _)| absent == argument)
        };
        matches!(data.op, Op::Partition(_)) && !used.contains(&data.results[0]) && is_absent(data.operands[0])
    };
    let body = kernel.body();
    let needless: Vec<OpId> = kernel.region(body).ops.iter().copied().filter(is_needless).collect();
    kernel.region_mut(body).ops.retain(|op| !needless.contains(op));
    passes::remove_unused(kernel);
}

/// Gives arguments their layouts, and the views of them theirs. Those follow anew from the movements also where all arguments
/// are dense: with numbers for its parameters a view may be one that has less to say, such as a dense tensor with a margin of 0,
/// in steps of 1, or with one axis of two that has extent 1.
pub(super) fn lay_out(
    kernel: &mut Kernel,
    layouts: &[(usize, ArgumentLayout)],
) -> Result<(), SpecializeError> {
    let refused = |kernel: &Kernel, argument: ValueId, problem: String| SpecializeError::Layout {
        kernel: kernel.name.clone(),
        argument: kernel.value(argument).name.clone().unwrap_or_default(),
        problem,
    };
    for (number, layout) in layouts {
        let Some(&param) = kernel.params().get(*number) else { continue };
        let name = kernel.value(param).name.clone().unwrap_or_default();
        let laid_out = match kernel.ty(param) {
            Type::Tensor(tensor) => layout.apply(&name, tensor),
            _ => None,
        };
        let Some(laid_out) = laid_out else {
            let problem = "it has other axes than are declared, or elements that repeat and are written";
            return Err(refused(kernel, param, problem.to_owned()));
        };
        kernel.set_type(param, Type::Tensor(laid_out));
    }
    for op in kernel.walk() {
        let data = kernel.op(op);
        let (Some(&operand), Some(&result)) = (data.operands.first(), data.results.first()) else { continue };
        let Type::Tensor(tensor) = kernel.ty(operand) else { continue };
        let ty = match (&data.op, kernel.ty(result)) {
            (Op::View(movement), _) => match movement.apply(tensor) {
                Ok((moved, _)) => Type::Tensor(moved),
                // That is the parameters' fault, of which the verifier speaks.
                Err(_) if layouts.is_empty() => continue,
                Err(error) => {
                    return Err(refused(kernel, Source::of(kernel, operand).argument, error.message));
                }
            },
            (Op::Partition(_), Type::Partition(cut)) => {
                Type::Partition(PartitionType { tensor: tensor.clone(), ..cut.clone() })
            }
            _ => continue,
        };
        kernel.set_type(result, ty);
    }
    Ok(())
}
