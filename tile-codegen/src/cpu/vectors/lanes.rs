//! Loops over the lanes of one vector, which LLVM's vectoriser turns into straight-line vector code. That way elements are
//! computed by vectors of as many lanes as the emitter chooses, and the vector can be stored or joined as a whole.
//!
//! The lanes are in an array on the stack, which LLVM promotes to a register.

use crate::cpu::region::Emitter;
use crate::emit::LoopHint;
use inkwell::IntPredicate;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{IntValue, PointerValue};

/// Alignment of an array of lanes: that of the widest vector.
const ALIGNMENT: u32 = 64;

impl<'a, 'c> Emitter<'a, 'c> {
    /// Emits what is done in each lane of a vector.
    pub(in crate::cpu) fn each_lane(&mut self, lanes: i64, body: impl FnOnce(&mut Self, IntValue<'c>)) {
        let ir = self.ir;
        let range = (ir.i64(0), ir.i64(lanes), ir.i64(1));
        ir.each(range, LoopHint::Lanes(lanes as u32), |lane| body(self, lane));
    }

    /// Emits what is done in the lanes below `end`, by instructions with masks where the processor has them.
    pub(in crate::cpu) fn each_lane_below(
        &mut self,
        lanes: i64,
        end: IntValue<'c>,
        body: impl FnOnce(&mut Self, IntValue<'c>),
    ) {
        let ir = self.ir;
        // Of a number that is known LLVM makes what is best.
        if self.processor.masks && !end.is_const() {
            return self.each_lane(lanes, |emitter, lane| {
                ir.if_then(ir.icmp(IntPredicate::ULT, lane, end), || body(emitter, lane));
            });
        }
        ir.each((ir.i64(0), end, ir.i64(1)), LoopHint::Rolled, |lane| body(self, lane));
    }

    /// Stack space for lanes, in the entry block, so that it is allocated once.
    pub(in crate::cpu) fn lane_array(&self, ty: BasicTypeEnum<'c>, lanes: i64) -> PointerValue<'c> {
        let ir = self.ir;
        let here = ir.builder.get_insert_block().expect("the builder is positioned");
        let entry = ir.function().get_first_basic_block().expect("a function has an entry");
        let first = entry.get_first_instruction().expect("the entry loads the arguments");
        ir.builder.position_before(&first);
        let array = ir.builder.build_alloca(ty.array_type(lanes as u32), "lanes");
        let array = array.expect("the builder is positioned");
        let aligned = array.as_instruction().map(|alloca| alloca.set_alignment(ALIGNMENT));
        aligned.expect("an alloca is an instruction").expect("a power of two");
        ir.builder.position_at_end(here);
        array
    }
}
