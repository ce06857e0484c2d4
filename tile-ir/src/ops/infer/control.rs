//! Type rules of loops and branches, as far as operands decide them.

use super::{Inferred, TypeError, count};
use crate::ops::Op;
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
    for (i, value) in carried.iter().enumerate() {
        if !value.is_data() {
            return Err(TypeError::new(format!("a loop can't carry {value}")).at(i + 2));
        }
    }
    Ok(carried.to_vec())
}

pub(super) fn branch(op: &Op, operands: &[Type]) -> Inferred<()> {
    count(op, operands, 1)?;
    if operands[0] != Type::BOOL {
        return Err(TypeError::new(format!("the condition of `if` is {}, not a bool", operands[0])).at(0));
    }
    Ok(())
}
