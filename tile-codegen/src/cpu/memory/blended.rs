//! Stores of what a mask leaves of a row, where it was read: as whole vectors.
//!
//! LLVM 22 makes a masked store of a selection between what a place holds and something else (llvm/llvm-project#145176). On
//! AVX2 that is `vmaskmovps`, microcode on AMD's processors before Zen 4 (llvm/llvm-project#213195, mended in LLVM 23).
//! Which loops become vectors is known in the optimised module, so the selections are found there. A fence that is no
//! instruction keeps the code generator from seeing through them.

use crate::emit::Ir;
use crate::emit::fences::{Fence, found, given_by, value};
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, InstructionOpcode};

/// Has the vectors that stores take from selections computed before they are stored, in an optimised module.
pub(in crate::cpu) fn select_before_stores(ir: &Ir<'_>) {
    for store in found(ir, |opcode| opcode == InstructionOpcode::Store) {
        let stored = value(store, 0);
        if let Some(floats) = floats_of(ir, stored).filter(|_| keeps_what_was_read(stored)) {
            ir.builder.position_before(&store);
            let fenced = Fence::Own.set(ir, as_type(ir, stored, floats.into()));
            assert!(store.set_operand(0, as_type(ir, fenced, stored.get_type())), "a store has a value");
        }
    }
}

fn as_type<'c>(ir: &Ir<'c>, value: BasicValueEnum<'c>, ty: BasicTypeEnum<'c>) -> BasicValueEnum<'c> {
    ir.builder.build_bit_cast(value, ty, "").expect("the builder stands before a store")
}

/// The vector of floats that is as wide, lane by lane, as one that AVX2 can store by a mask.
fn floats_of<'c>(ir: &Ir<'c>, stored: BasicValueEnum<'c>) -> Option<VectorType<'c>> {
    let BasicTypeEnum::VectorType(vector) = stored.get_type() else { return None };
    let bits = match vector.get_element_type() {
        BasicTypeEnum::FloatType(float) => float.get_bit_width(),
        BasicTypeEnum::IntType(int) => int.get_bit_width(),
        _ => return None,
    };
    match bits {
        32 => Some(ir.context.f32_type().vec_type(vector.get_size())),
        64 => Some(ir.context.f64_type().vec_type(vector.get_size())),
        _ => None,
    }
}

/// Whether a value is a selection of which one side was loaded.
fn keeps_what_was_read(stored: BasicValueEnum<'_>) -> bool {
    given_by(stored, InstructionOpcode::Select).is_some_and(|select| {
        [1, 2].into_iter().any(|side| given_by(value(select, side), InstructionOpcode::Load).is_some())
    })
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// Scores of a row, of which those behind an end are hidden where they were computed.
    fn hidden(dtype: &str) -> Instance {
        let source = format!(
            "kernel @hidden(%q: tensor<64 x 64 x {dtype}>, %k: tensor<64 x 256 x {dtype}>, %end: i32, %y: mut tensor<64 x 256 x {dtype}>) {{
  %vq = partition %q [64, 64] : partition<64 x 64 x {dtype}, [64, 64]>
  %vk = partition %k [64, 256] : partition<64 x 256 x {dtype}, [64, 256]>
  %vy = partition %y [64, 256] : mut partition<64 x 256 x {dtype}, [64, 256]>
  %i, %j = block_index %vy : index, index
  %tq = load %vq[%i, %j] : tile<64 x 64 x {dtype}>
  %tk = load %vk[%i, %j] : tile<64 x 256 x {dtype}>
  %zero = constant 0.0 : {dtype}
  %zeros = splat %zero : tile<64 x 256 x {dtype}>
  %scores = mma %tq, %tk, %zeros : tile<64 x 256 x {dtype}>
  %ends = splat %end : tile<1 x 256 x i32>
  %columns = iota 1 : tile<1 x 256 x i32>
  %seen = lt %columns, %ends : tile<1 x 256 x bool>
  %all = broadcast %seen : tile<64 x 256 x bool>
  %kept = select %all, %scores, %zeros : tile<64 x 256 x {dtype}>
  %most = reduce max %kept axis 1 : tile<64 x 1 x {dtype}>
  %mosts = broadcast %most : tile<64 x 256 x {dtype}>
  %r = sub %kept, %mosts : tile<64 x 256 x {dtype}>
  store %vy, %r
}}
"
        );
        Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn what_a_mask_leaves_is_stored_whole_with_avx2() {
        for dtype in ["f32", "f64"] {
            let assembly = assembly(&hidden(dtype), "x86-64-v3");
            let masked =
                assembly.lines().filter(|line| line.contains("vmaskmov") && line.trim_end().ends_with(')'));
            assert_eq!(masked.collect::<Vec<_>>(), Vec::<&str>::new(), "{dtype}: stores by a mask");
            assert!(assembly.contains("vblendv"), "{dtype}:\n{assembly}");
        }
    }
}
