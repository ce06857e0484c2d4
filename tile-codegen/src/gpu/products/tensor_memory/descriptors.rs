//! How `tcgen05.mma` is told of its operands: the words that say what it multiplies, and where factors lie in shared memory.
//!
//! Knows nothing of who issues it.

use crate::gpu::products::warpgroup::Described;
use tile_ir::DType;
use tile_ir::gpu::pipeline::{Major, SharedTile, TENSOR_ROWS};
use tile_ir::target::MatrixInstruction;
use tile_ir::tensor_map::Swizzle;

/// The number by which LLVM knows what kind of factors an instruction has.
pub(super) fn kind_of(instruction: &MatrixInstruction) -> u64 {
    match instruction.factors[0] {
        DType::F16 | DType::BF16 => 0,
        DType::F8E4M3FN | DType::F8E5M2 => 2,
        DType::I8 | DType::U8 => 3,
        other => unreachable!("the table gives `tcgen05.mma` no factors of {other}"),
    }
}

/// The instruction descriptor of a product of 128 rows (PTX ISA, "Instruction descriptor" of `tcgen05`).
pub(super) fn instruction_word(instruction: &MatrixInstruction, columns: u64, majors: [Major; 2]) -> u32 {
    // Numbers among the formats of each kind.
    let format = |dtype: DType| match dtype {
        DType::F16 | DType::F8E4M3FN | DType::U8 => 0,
        DType::BF16 | DType::F8E5M2 | DType::I8 => 1,
        other => unreachable!("the table gives `tcgen05.mma` no factors of {other}"),
    };
    let sum = match instruction.sum {
        DType::F32 => 1,
        DType::I32 => 2,
        other => unreachable!("the table gives `tcgen05.mma` no sums of {other}"),
    };
    let [a, b] = instruction.factors.map(format);
    let [across_a, across_b] = majors.map(|major| u32::from(major == Major::Other));
    let (rows, columns) = (TENSOR_ROWS as u32 / 16, columns as u32 / 8);
    sum << 4 | a << 7 | b << 10 | across_a << 15 | across_b << 16 | columns << 17 | rows << 24
}

/// All of a shared memory descriptor but the address (PTX ISA, "Shared memory descriptor" of `tcgen05`): offsets as those of
/// warpgroups' products have, a constant, and the swizzle.
pub(super) fn layout_of(tile: &SharedTile, major: Major) -> u64 {
    const CONSTANT: u64 = 1 << 46;
    let mode: u64 = match tile.swizzle {
        Swizzle::None => 0,
        Swizzle::Bytes128 => 2,
        Swizzle::Bytes64 => 4,
        Swizzle::Bytes32 => 6,
    };
    Described::offsets(tile, major) | CONSTANT | mode << 61
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use tile_ir::TargetDesc;

    #[test]
    fn the_instruction_word_says_formats_and_extents() {
        let instruction = |name: &str| {
            let table = TargetDesc::named("sm_100a").unwrap().warpgroup_matrix;
            table.iter().find(|it| it.intrinsic == name).unwrap()
        };
        let along = [Major::Depth; 2];
        // Sums of f32, factors of bf16, 256 columns by eights, 128 rows by sixteens.
        assert_eq!(instruction_word(instruction("f32.bf16.bf16"), 256, along), 0x0840_0490);
        let across = [Major::Depth, Major::Other];
        assert_eq!(instruction_word(instruction("f32.f16.f16"), 128, across), 0x0821_0010);
        assert_eq!(instruction_word(instruction("s32.s8.s8"), 64, along), 0x0810_04a0);
        assert_eq!(instruction_word(instruction("f32.e4m3.e5m2"), 32, along), 0x0808_0410);
        assert_eq!(
            ["f32.f16.f16", "f32.e4m3.e4m3", "s32.u8.u8"].map(|it| kind_of(instruction(it))),
            [0, 2, 3]
        );
    }

    /// Products of one kind and one word are of the same formats: every row has a word of its own.
    #[test]
    fn every_row_of_the_table_has_a_word_of_its_own() {
        let mut said = HashMap::new();
        for it in TargetDesc::named("sm_100a").unwrap().warpgroup_matrix {
            let word = (kind_of(it), instruction_word(it, 64, [Major::Depth; 2]));
            assert_eq!(said.insert(word, it.intrinsic), None, "{}", it.intrinsic);
        }
    }
}
