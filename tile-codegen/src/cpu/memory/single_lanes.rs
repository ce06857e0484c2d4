//! Masked stores that write one lane, as stores of an element.
//!
//! LLVM 22 makes a masked store of narrowed elements one that narrows them itself, and then, where the mask has a single
//! lane, a store of that lane's element as wide as it was before: it writes over what lies behind the row, and beyond a
//! tensor's end (llvm/llvm-project#179489, mended in LLVM 23). Which lanes a mask has is often known to LLVM's passes only,
//! so these stores are found in the optimised module.

use crate::emit::Ir;
use inkwell::types::BasicType;
use inkwell::values::{BasicValueEnum, CallSiteValue, InstructionValue, VectorValue};

/// Replaces the stores of one lane in an optimised module.
pub(in crate::cpu) fn store_elements(ir: &Ir<'_>) {
    let stores: Vec<InstructionValue<'_>> =
        ir.instructions().filter(|&instruction| is_masked_store(instruction)).collect();
    for store in stores {
        store_element(ir, store);
    }
}

fn is_masked_store(instruction: InstructionValue<'_>) -> bool {
    let callee = CallSiteValue::try_from(instruction).ok().and_then(|call| call.get_called_fn_value());
    callee.is_some_and(|callee| callee.get_name().to_bytes().starts_with(b"llvm.masked.store."))
}

/// Puts the store of an element in place of a masked store, if that writes one lane.
fn store_element<'c>(ir: &Ir<'c>, store: InstructionValue<'c>) {
    ir.builder.position_before(&store);
    let operand = |i| store.get_operand(i).expect("a masked store has a vector, an address and a mask");
    let [vector, to, mask] = [0, 1, 2].map(|i| operand(i).expect_value("an argument is a value"));
    let Some(lane) = single_lane(ir, mask.into_vector_value()) else { return };
    let vector = vector.into_vector_value();
    let element = lane_of(ir, vector, lane);
    let bytes = element.get_type().size_of().expect("elements have a size");
    let place = ir.bytes_further(to.into_pointer_value(), ir.mul(bytes, ir.i64(lane.into())));
    // Processors that have masked stores have unaligned ones.
    ir.store_at(place, element, Some(1));
    store.erase_from_basic_block();
}

/// The only lane that a mask has, if it is a constant of which that is so.
fn single_lane<'c>(ir: &Ir<'c>, mask: VectorValue<'c>) -> Option<u32> {
    if !mask.is_const() {
        return None;
    }
    let has = |lane| lane_of(ir, mask, lane).into_int_value().get_zero_extended_constant();
    let lanes: Vec<u64> = (0..mask.get_type().get_size()).map(has).collect::<Option<_>>()?;
    let mut set = (0..).zip(lanes).filter(|&(_, is_set)| is_set != 0).map(|(lane, _)| lane);
    set.next().filter(|_| set.next().is_none())
}

/// What a vector has in a lane; of a constant, the builder gives a constant.
fn lane_of<'c>(ir: &Ir<'c>, vector: VectorValue<'c>, lane: u32) -> BasicValueEnum<'c> {
    let lane = ir.i64(lane.into());
    ir.builder.build_extract_element(vector, lane, "").expect("the builder stands before a store")
}
