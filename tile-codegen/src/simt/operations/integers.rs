//! Arithmetic of integers. NVIDIA's: PTX ISA, "mul".

use crate::simt::instruction::{Operation, Then};

pub(super) fn nvidia(name: &str) -> Option<Operation> {
    match name {
        "mulhi.ui" => Operation::alone(|_, call| {
            let product = u64::from(call.number(0)) * u64::from(call.number(1));
            call.give_word(0, product >> 32);
            Ok(Then::GoOn)
        }),
        _ => None,
    }
}
