//! Additions of pairs to global memory by one instruction of AMD's (CDNA 3 and RDNA 4 ISA manuals,
//! `GLOBAL_ATOMIC_PK_ADD_F16`, `GLOBAL_ATOMIC_PK_ADD_BF16`). LLVM has them as updates of vectors, which the host that runs
//! the same code has no instruction for. So the emitter calls a declaration (`memory/scattered.rs`), which the executor
//! binds and the first step towards the back end replaces.

use super::declared::replace_calls;
use crate::emit::Ir;
use crate::gpu::memory::scattered::ADD;
use inkwell::types::VectorType;
use inkwell::values::{BasicValueEnum, InstructionValue};

/// The scopes that an update in one instruction has on AMD's GPUs.
const SCOPES: [&str; 2] = ["workgroup", "agent"];

/// Puts the update of a pair in place of every call of a declaration for AMD's GPUs.
pub(in crate::gpu) fn expand(ir: &Ir<'_>) {
    let formats =
        [("bf16x2", ir.context.bf16_type().vec_type(2)), ("f16x2", ir.context.f16_type().vec_type(2))];
    let known = |name: &str| {
        let (scope, format) = name.strip_prefix(ADD)?.split_once('.')?;
        let scope = SCOPES.into_iter().find(|known| *known == scope)?;
        formats.iter().find(|(known, _)| *known == format).map(|&(_, pair)| (scope, pair))
    };
    replace_calls(ir, known, |call, &(scope, pair)| update(ir, call, pair, scope));
}

fn update<'c>(ir: &Ir<'c>, call: InstructionValue<'c>, pair: VectorType<'c>, scope: &str) {
    let operand = |i: u32| -> BasicValueEnum<'c> {
        call.get_operand(i)
            .expect("the declaration has two parameters")
            .expect_value("an argument is a value")
    };
    let value = ir.reinterpret(operand(1), pair.into());
    ir.add_pair(operand(0).into_pointer_value(), value, scope);
}
