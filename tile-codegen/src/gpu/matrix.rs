//! `mma` by matrix instructions: the fragments of the operands are cut into what one instruction takes, and their sums
//! are added up along K.

use super::fragment::Fragment;
use super::region::Emitter;
use crate::emit::Value;
use inkwell::types::{BasicType, BasicTypeEnum};
use std::collections::BTreeMap;
use tile_ir::gpu::Product;
use tile_ir::kernel::OpData;
use tile_ir::target::{MatrixInstruction, Passing, Trailing};
use tile_ir::{DType, ValueId};
use tile_layout::linear::{Dim, Operand};

/// Where a part of a tile begins, for thread 0; and the first of its slots.
type Parts = BTreeMap<Vec<u64>, u64>;

impl<'c> Emitter<'_, 'c> {
    pub(super) fn matrix_product(&mut self, data: &OpData, product: &Product) {
        let instruction = &product.instruction;
        let ([a, b, accumulator], result) = (
            [0, 1, 2].map(|operand| data.operands[operand]),
            data.results[0],
        );
        let (dtype, held) = (self.dtype(result), registers(instruction, Operand::Accumulator));
        let mut sums = self.tile(accumulator).values(self.slots(accumulator));
        let rows = self.parts(a, registers(instruction, Operand::A));
        let columns = self.parts(b, registers(instruction, Operand::B));
        let results = self.parts(result, held);
        let factor = |tile: ValueId, first: u64, operand| {
            let slots = first..first + registers(instruction, operand);
            slots.map(|slot| self.tile(tile).get(slot)).collect::<Vec<_>>()
        };
        for (at, &row) in &rows {
            let [batch @ .., m, k] = at.as_slice() else { unreachable!("verified: `mma` has matrices") };
            let own = self.passed(instruction, factor(a, row, Operand::A));
            let of_row = results.iter().filter(|(at, _)| at.starts_with(&[batch, &[*m]].concat()));
            for (at, &first) in of_row {
                let n = at[at.len() - 1];
                let column = columns[&[batch, &[*k, n]].concat()];
                let other = self.passed(instruction, factor(b, column, Operand::B));
                let sum = first as usize..(first + held) as usize;
                let next = self.multiply(instruction, &own, &other, &sums[sum.clone()]);
                sums[sum].copy_from_slice(&next);
            }
        }
        let round = |sum: Value<'c>| match sum {
            Value::FloatValue(sum) => self.ir.round_to(sum, dtype).into(),
            sum => sum,
        };
        self.set_tile(result, Fragment::Slots(sums.into_iter().map(round).collect()));
    }

    /// The parts of a tile that one instruction takes, of so many slots each.
    fn parts(&self, tile: ValueId, held: u64) -> Parts {
        let distribution = self.scheduled.distribution(tile);
        (0..distribution.slots()).step_by(held as usize).map(|slot| (distribution.place(slot, 0), slot)).collect()
    }

    /// A lane's elements of a factor as the instruction takes them.
    fn passed(&self, instruction: &MatrixInstruction, values: Vec<Value<'c>>) -> Vec<Value<'c>> {
        let (ir, dtype) = (self.ir, instruction.factor);
        let half = ir.context.f16_type();
        let signed = ir.bool(dtype.is_signed());
        match instruction.passing {
            Passing::Words => ir.words(&values, dtype),
            Passing::Pairs => {
                let pair = half.vec_type(2).as_basic_type_enum();
                ir.words(&values, dtype).into_iter().map(|word| ir.reinterpret(word, pair)).collect()
            }
            Passing::Vector | Passing::IntegerVector => {
                let element: BasicTypeEnum<'c> = match (instruction.passing, dtype) {
                    (Passing::IntegerVector, _) => ir.storage_type(dtype),
                    (_, DType::F16) => half.into(),
                    (_, DType::BF16) => ir.context.bf16_type().into(),
                    _ => ir.storage_type(dtype),
                };
                vec![ir.gathered(&values, dtype, element)]
            }
            Passing::Packed => vec![ir.packed_words(&values, dtype)],
            Passing::SignedPacked => vec![signed.into(), ir.packed_words(&values, dtype)],
        }
    }

    fn multiply(
        &self,
        instruction: &MatrixInstruction,
        a: &[Value<'c>],
        b: &[Value<'c>],
        sums: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let ir = self.ir;
        let in_vectors = !matches!(instruction.passing, Passing::Words | Passing::Pairs);
        let sums_type = ir.compute_type(instruction.sum);
        let mut operands = [a, b].concat();
        if in_vectors {
            operands.push(ir.gathered(sums, instruction.sum, sums_type));
        } else {
            operands.extend(sums);
        }
        match instruction.trailing {
            Trailing::Nothing => {}
            Trailing::Modifiers => operands.extend([Value::from(self.i32(0)); 3]),
            Trailing::NoClamp => operands.push(ir.bool(false).into()),
        }
        let overloads = self.overloads(instruction, a, operands[2 * a.len()]);
        let result = ir.intrinsic(instruction.intrinsic, &overloads, &operands);
        let result = result.expect("a matrix instruction has a result");
        ir.parts(result, sums.len() as u32)
    }

    /// The types that the name of an instruction's intrinsic is completed by.
    fn overloads(
        &self,
        instruction: &MatrixInstruction,
        factor: &[Value<'c>],
        sums: Value<'c>,
    ) -> Vec<BasicTypeEnum<'c>> {
        if instruction.intrinsic.starts_with("llvm.amdgcn.wmma") {
            vec![sums.get_type(), factor[factor.len() - 1].get_type()]
        } else {
            Vec::new()
        }
    }
}

/// How many elements of an operand a lane has.
fn registers(instruction: &MatrixInstruction, operand: Operand) -> u64 {
    1 << instruction.fragment(operand).input_bits(Dim::Register)
}
