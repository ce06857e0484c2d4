//! What LLVM is told about loops and stores by metadata: how to optimise a loop (`!llvm.loop`), and that a store's line is
//! not read again soon (`!nontemporal`).
//!
//! Element loops of a tile have constant trip counts, and LLVM unrolls those up to some hundred completely
//! before it tries to vectorise them. That costs tens of milliseconds per kernel and gives slower code.

use super::ir::Ir;
use inkwell::llvm_sys::core::{LLVMMDNodeInContext2, LLVMMetadataAsValue, LLVMValueAsMetadata};
use inkwell::llvm_sys::debuginfo::{LLVMMetadataReplaceAllUsesWith, LLVMTemporaryMDNode};
use inkwell::llvm_sys::prelude::LLVMMetadataRef;
use inkwell::values::{AsValueRef, BasicMetadataValueEnum, InstructionValue, MetadataValue};

/// How a loop should be optimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopHint {
    /// As LLVM thinks best.
    Free,
    /// Vectorised where that is possible, never unrolled.
    Rolled,
    /// Straight code, however long, so that the loop around it can be vectorised.
    Unrolled,
    /// As it is: neither vectorised nor unrolled, because it runs seldom.
    AsItIs,
    /// Each iteration is one lane of a vector of so many, as many as there are iterations; the loop becomes straight code.
    ///
    /// That a width is asked for lets LLVM take additions of floats in another order where several iterations make one lane.
    /// With one for each it adds the lanes to what was before in their own order, as kernels ask.
    Lanes(u32),
}

impl<'c> Ir<'c> {
    /// Puts the hint on the branch that closes a loop.
    pub(crate) fn hint(&self, latch: InstructionValue<'c>, hint: LoopHint) {
        let property = |name: &str, value: Option<u32>| {
            let mut operands: Vec<BasicMetadataValueEnum<'c>> =
                vec![self.context.metadata_string(name).into()];
            let number = |v: u32| self.context.i32_type().const_int(u64::from(v), false);
            operands.extend(value.map(|v| BasicMetadataValueEnum::from(number(v))));
            self.context.metadata_node(&operands)
        };
        let in_vectors_of = |lanes| {
            vec![
                property("llvm.loop.unroll.disable", None),
                property("llvm.loop.vectorize.width", Some(lanes)),
                property("llvm.loop.interleave.count", Some(1)),
            ]
        };
        let properties = match hint {
            LoopHint::Free => return,
            LoopHint::Unrolled => vec![property("llvm.loop.unroll.full", None)],
            LoopHint::Rolled => vec![property("llvm.loop.unroll.disable", None)],
            LoopHint::AsItIs => in_vectors_of(1),
            LoopHint::Lanes(lanes) => in_vectors_of(lanes),
        };
        let kind = self.context.get_kind_id("llvm.loop");
        latch.set_metadata(self.loop_node(&properties), kind).expect("a branch takes loop metadata");
    }

    /// Makes a store go past the caches.
    pub(crate) fn mark_streaming(&self, store: InstructionValue<'c>) {
        let one = self.context.i32_type().const_int(1, false);
        let node = self.context.metadata_node(&[one.into()]);
        let kind = self.context.get_kind_id("nontemporal");
        store.set_metadata(node, kind).expect("a store takes this metadata");
    }

    /// A loop's identity and properties: a node that is its own first operand, so that no two are merged.
    fn loop_node(&self, properties: &[MetadataValue<'c>]) -> MetadataValue<'c> {
        // SAFETY: every node belongs to this context and outlives the calls; the temporary is freed by its
        // replacement and not used afterwards.
        unsafe {
            let context = self.context.raw();
            let itself = LLVMTemporaryMDNode(context, std::ptr::null_mut(), 0);
            let mut operands: Vec<LLVMMetadataRef> = vec![itself];
            operands.extend(properties.iter().map(|property| LLVMValueAsMetadata(property.as_value_ref())));
            let node = LLVMMDNodeInContext2(context, operands.as_mut_ptr(), operands.len());
            LLVMMetadataReplaceAllUsesWith(itself, node);
            MetadataValue::new(LLVMMetadataAsValue(context, node))
        }
    }
}
