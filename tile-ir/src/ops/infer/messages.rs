//! Type rules of what a kernel says to the host.

use super::{Inferred, TypeError};
use crate::dtype::DType;
use crate::message::Message;
use crate::ops::Op;
use crate::types::Type;

pub(super) fn print(op: &Op, message: &Message, operands: &[Type]) -> Inferred<()> {
    arguments(op, message, operands, 0)
}

pub(super) fn assert(op: &Op, message: &Message, operands: &[Type]) -> Inferred<()> {
    let Some(condition) = operands.first() else {
        return Err(TypeError::new(format!("`{}` takes a condition", op.spelling())));
    };
    if !condition.is_data() || condition.elem().known() != Some(DType::Bool) {
        let message =
            format!("the condition of `{}` is {condition}, not a bool or a tile of bool", op.spelling());
        return Err(TypeError::new(message).at(0).help("compare: `x >= 0.0`"));
    }
    arguments(op, message, operands, 1)
}

/// The message's arguments, the first of which is operand `first`.
fn arguments(op: &Op, message: &Message, operands: &[Type], first: usize) -> Inferred<()> {
    if let Some(i) = (first..operands.len()).find(|&i| !operands[i].is_data()) {
        let message = format!("`{}` shows scalars and tiles, not {}", op.spelling(), operands[i]);
        return Err(TypeError::new(message).at(i));
    }
    let (given, asked) = (operands.len() - first, message.arguments());
    if given < asked {
        let message =
            format!("the message of `{}` names argument {}, but there are {given}", op.name(), asked - 1);
        return Err(TypeError::new(message));
    }
    Ok(())
}
