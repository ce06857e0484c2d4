//! The arguments of an instance: which of the optional ones are there, and how tensors lie.

use super::{Binding, Bindings, SpecializeError};
use crate::kernel::{Kernel, ValueId};
use crate::ops::Op;
use crate::passes;
use crate::types::{PartitionType, Type};
use crate::verify::VerifyError;
use crate::view::{ArgumentLayout, Source};

/// Removes the optional arguments that aren't given, with the views of them that nobody uses.
pub(super) fn drop_absent(kernel: &mut Kernel, bindings: &Bindings) -> Result<(), SpecializeError> {
    let is_given = |parameter: &String| bindings.contains(&(parameter.clone(), Binding::Bool(true)));
    let optional = std::mem::take(&mut kernel.optional);
    let absent: Vec<(ValueId, String)> =
        optional.into_iter().filter(|(_, parameter)| !is_given(parameter)).collect();
    if absent.is_empty() {
        return Ok(());
    }
    passes::remove_unused(kernel);
    let used = |(param, parameter): &(ValueId, String)| {
        let user =
            kernel.walk().into_iter().map(|op| kernel.op(op)).find(|op| op.operands.contains(param))?;
        let name = kernel.value(*param).name.as_deref().unwrap_or("an argument");
        let message =
            format!("`{name}` is used where `{parameter}` doesn't hold, and there it is no argument");
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

/// Gives arguments their layouts, and the views of them theirs.
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
    for op in if layouts.is_empty() { Vec::new() } else { kernel.walk() } {
        let data = kernel.op(op);
        let (Some(&operand), Some(&result)) = (data.operands.first(), data.results.first()) else { continue };
        let Type::Tensor(tensor) = kernel.ty(operand) else { continue };
        let ty = match (&data.op, kernel.ty(result)) {
            (Op::View(movement), _) => {
                let (moved, _) = movement.apply(tensor).map_err(|error| {
                    refused(kernel, Source::of(kernel, operand).argument, error.message.clone())
                })?;
                Type::Tensor(moved)
            }
            (Op::Partition(_), Type::Partition(cut)) => {
                Type::Partition(PartitionType { tensor: tensor.clone(), ..cut.clone() })
            }
            _ => continue,
        };
        kernel.set_type(result, ty);
    }
    Ok(())
}
