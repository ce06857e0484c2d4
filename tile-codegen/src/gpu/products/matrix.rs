//! `mma` by matrix instructions: the fragments of the operands are cut into what one instruction takes, and their sums
//! are added up along K.
//!
//! What is read from shared memory for one step along K is asked for before the products of the step before it, where
//! the target lets code say so: otherwise each product waits for its own reads.

use crate::emit::Value;
use crate::gpu::exchange::convert::Staged;
use crate::gpu::fragment::Fragment;
use crate::gpu::products::scales::{Scale, given};
use crate::gpu::region::Emitter;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValue, CallSiteValue, InstructionOpcode};
use std::collections::BTreeSet;
use tile_ir::gpu::Product;
use tile_ir::kernel::{FastAccumulation, OpData};
use tile_ir::target::{Fragments, MatrixInstruction, Passing, Trailing};
use tile_ir::{DType, ValueId};
use tile_layout::linear::{Dim, Operand};

/// A factor of a product.
enum Factor<'a, 'c> {
    Held(Fragment<'c>),
    /// In shared memory.
    Staged(Staged<'a, 'c>),
}

/// The parts of a tile that one instruction takes each: where each begins, for thread 0, and its first slot.
pub(in crate::gpu) struct Parts {
    pub(in crate::gpu) starts: Vec<(Vec<u64>, u64)>,
    /// Slots of a part.
    pub(in crate::gpu) held: u64,
}

impl Parts {
    /// The first slot of the part that begins at a position.
    pub(in crate::gpu) fn at(&self, position: &[u64]) -> u64 {
        let part = self.starts.iter().find(|(start, _)| start == position);
        part.expect("a product's operands are cut alike").1
    }
}

impl Factor<'_, '_> {
    /// How many reads of shared memory it took so far.
    fn reads(&self) -> usize {
        match self {
            Factor::Held(_) => 0,
            Factor::Staged(staged) => staged.reads(),
        }
    }
}

/// A step of a product along K: how often it reads shared memory, and how many instructions multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct Step {
    pub(in crate::gpu) reads: usize,
    pub(in crate::gpu) products: usize,
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(in crate::gpu) fn matrix_product(&mut self, data: &OpData, product: &Product) {
        let instruction = &product.instruction;
        let ([a, b, accumulator], result) =
            ([0, 1, 2].map(|operand| data.operands[operand]), data.results[0]);
        let mut sums = self.tile(accumulator).values(self.slots(accumulator));
        let rows = self.parts(a, instruction, Operand::A);
        let columns = self.parts(b, instruction, Operand::B);
        let results = self.parts(result, instruction, Operand::Accumulator);
        let (mut left, mut right) = (self.factor(a), self.factor(b));
        let scales = self.scales(data, product);
        let depths: BTreeSet<u64> =
            rows.starts.iter().filter_map(|(start, _)| start.last().copied()).collect();
        // One slice along K after the other, so that few parts of the factors are at hand at a time.
        let mut steps = Vec::new();
        for k in depths {
            let (read_before, mut products) = (left.reads() + right.reads(), 0);
            for (start, row) in rows.starts.iter().filter(|(start, _)| start.last() == Some(&k)) {
                let matrix_and_row = &start[..start.len() - 1];
                let own = self.part(&mut left, *row, rows.held);
                let own = self.passed(instruction, Operand::A, own);
                for (at, first) in results.starts.iter().filter(|(at, _)| at.starts_with(matrix_and_row)) {
                    let [batch @ .., _, n] = at.as_slice() else {
                        unreachable!("verified: `mma` has matrices")
                    };
                    let column = [batch, &[k, *n]].concat();
                    let other = self.part(&mut right, columns.at(&column), columns.held);
                    let other = self.passed(instruction, Operand::B, other);
                    let scaled_by = scales.as_ref().map(|[a, b]| [a.of_part(start), b.of_part(&column)]);
                    let sum = *first as usize..(first + results.held) as usize;
                    let next = self.add_products(instruction, [&own, &other], &sums[sum.clone()], scaled_by);
                    sums[sum].copy_from_slice(&next);
                    products += 1;
                }
            }
            steps.push(Step { reads: left.reads() + right.reads() - read_before, products });
        }
        self.dialect.read_a_step_ahead(self.ir, &steps);
        self.set_sums(result, sums);
    }

    fn factor(&mut self, tile: ValueId) -> Factor<'a, 'c> {
        match self.staged(tile) {
            Some(staged) => Factor::Staged(staged),
            None => Factor::Held(self.tile(tile).clone()),
        }
    }

    fn part(&self, factor: &mut Factor<'a, 'c>, first: u64, count: u64) -> Vec<Value<'c>> {
        let slots = first..first + count;
        match factor {
            Factor::Held(fragment) => slots.map(|slot| fragment.get(slot)).collect(),
            Factor::Staged(staged) => slots.map(|slot| staged.get(self, slot)).collect(),
        }
    }

    pub(in crate::gpu) fn parts(
        &self,
        tile: ValueId,
        instruction: &MatrixInstruction,
        operand: Operand,
    ) -> Parts {
        let distribution = self.scheduled.distribution(tile);
        let held = 1 << instruction.fragment(operand).input_bits(Dim::Register);
        let starts = (0..distribution.slots()).step_by(held as usize);
        Parts { starts: starts.map(|slot| (distribution.place(slot, 0), slot)).collect(), held }
    }

    /// A lane's elements of a factor as the instruction takes them.
    pub(in crate::gpu) fn passed(
        &self,
        instruction: &MatrixInstruction,
        operand: Operand,
        values: Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let (ir, dtype) = (self.ir, instruction.factor(operand));
        let half = ir.context.f16_type();
        let signed = ir.bool(dtype.is_signed());
        match instruction.passing {
            Passing::Words => ir.words(&values, dtype),
            Passing::Tf32Words => {
                values.iter().map(|value| ir.bits(value.into_float_value()).into()).collect()
            }
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
            Passing::WordVector => vec![ir.word_vector(&values, dtype)],
            Passing::SignedWords => vec![signed.into(), ir.word_vector(&values, dtype)],
        }
    }

    /// Sums and what one instruction adds to them, by additions of their own where it keeps few bits of what it adds: then the
    /// products begin at zero. They cost a register for each of one instruction's sums.
    fn add_products(
        &self,
        instruction: &MatrixInstruction,
        factors: [&[Value<'c>]; 2],
        sums: &[Value<'c>],
        scaled_by: Option<[Scale<'c>; 2]>,
    ) -> Vec<Value<'c>> {
        if !instruction.coarse || self.instance.fast_accumulation == FastAccumulation::Yes {
            return self.multiply(instruction, factors, sums, scaled_by);
        }
        let zeros = vec![self.ir.compute_type(instruction.sum).const_zero(); sums.len()];
        let products = self.multiply(instruction, factors, &zeros, scaled_by);
        let add = |(&sum, product): (&Value<'c>, Value<'c>)| {
            self.ir.fadd(sum.into_float_value(), product.into_float_value()).into()
        };
        sums.iter().zip(products).map(add).collect()
    }

    fn multiply(
        &self,
        instruction: &MatrixInstruction,
        [a, b]: [&[Value<'c>]; 2],
        sums: &[Value<'c>],
        scaled_by: Option<[Scale<'c>; 2]>,
    ) -> Vec<Value<'c>> {
        let ir = self.ir;
        let in_vectors = !matches!(instruction.passing, Passing::Words | Passing::Pairs | Passing::Tf32Words);
        let sums_type = ir.compute_type(instruction.sum);
        let hidden = [a, b].map(|words| self.hidden_from_assembler(instruction, words));
        let [a, b] = [&hidden[0][..], &hidden[1][..]];
        let mut operands = if instruction.exchanged { [b, a].concat() } else { [a, b].concat() };
        if in_vectors {
            operands.push(ir.gathered(sums, instruction.sum, sums_type));
        } else {
            operands.extend(sums);
        }
        match instruction.trailing {
            Trailing::Nothing => {}
            Trailing::Modifiers => operands.extend([Value::from(self.i32(0)); 3]),
            Trailing::NoClamp => operands.push(ir.bool(false).into()),
            Trailing::Formats => {
                let formats = instruction.factors.map(format_number);
                operands.extend(formats.map(|format| Value::from(self.i32(format))));
                let scales = scaled_by.map(|scales| self.mfma_scales(given(instruction, scales)));
                operands.extend(scales.unwrap_or([self.i32(0).into(); 4]));
            }
            Trailing::Scales => {
                let scales = scaled_by.expect("an instruction that scales does a product that is scaled");
                operands.extend(self.mma_sync_scales(given(instruction, scales)));
            }
        }
        let overloads = self.overloads(instruction, a, operands[2 * a.len()]);
        let result = ir.intrinsic(instruction.intrinsic, &overloads, &operands);
        let result = result.expect("a matrix instruction has a result");
        ir.parts(result, sums.len() as u32)
    }

    /// Words of a factor of which NVIDIA's assembler doesn't know what they are.
    ///
    /// Where a GPU has no `mma.sync` of 8-bit floats (`sm_90a`), `ptxas` unpacks them for one of f16. Of words that it knows
    /// it gives the upper half anything: versions 13.0 and 13.5 do, and an H200 has multiplied by it. So each word that isn't
    /// read from memory is changed by a number that is 0 in every launch, whose grids have one axis, but for all that the
    /// assembler can tell.
    fn hidden_from_assembler(&self, instruction: &MatrixInstruction, words: &[Value<'c>]) -> Vec<Value<'c>> {
        let is_unpacked = instruction.intrinsic.starts_with("llvm.nvvm.mma.m16n8")
            && instruction.factors.iter().all(|factor| factor.is_float8());
        if !is_unpacked || words.iter().all(|&word| is_read(word)) {
            return words.to_vec();
        }
        let ir = self.ir;
        let zero = ir.intrinsic("llvm.nvvm.read.ptx.sreg.ctaid.y", &[], &[]);
        let zero = zero.expect("a register has a value").into_int_value();
        let hidden = |&word: &Value<'c>| match is_read(word) {
            true => word,
            false => ir.xor(word.into_int_value(), zero).into(),
        };
        words.iter().map(hidden).collect()
    }

    /// The types that the name of an instruction's intrinsic is completed by.
    fn overloads(
        &self,
        instruction: &MatrixInstruction,
        factor: &[Value<'c>],
        sums: Value<'c>,
    ) -> Vec<BasicTypeEnum<'c>> {
        let own = factor[factor.len() - 1].get_type();
        match (instruction.fragments, instruction.trailing) {
            (Fragments::Wmma(_), _) => vec![sums.get_type(), own],
            (_, Trailing::Formats) => vec![own; 2],
            _ => Vec::new(),
        }
    }
}

/// Whether a word is as memory had it.
fn is_read(word: Value<'_>) -> bool {
    use InstructionOpcode::{BitCast, Call, ExtractElement, ExtractValue, Load};
    let Some(made) = word.as_instruction_value() else { return false };
    match made.get_opcode() {
        Load => true,
        Call => {
            let callee = CallSiteValue::try_from(made).ok().and_then(|call| call.get_called_fn_value());
            callee.is_some_and(|callee| callee.get_name().to_bytes().starts_with(b"llvm.nvvm.ldmatrix."))
        }
        BitCast | ExtractElement | ExtractValue => {
            made.get_operand(0).and_then(|operand| operand.value()).is_some_and(is_read)
        }
        _ => false,
    }
}

/// What `V_MFMA_F32_*_F8F6F4` calls a format (CDNA4 ISA, "Matrix Arithmetic Instructions": `CBSZ` and `BLGP`).
fn format_number(dtype: DType) -> u64 {
    match dtype {
        DType::F8E4M3FN => 0,
        DType::F8E5M2 => 1,
        _ => unreachable!("{dtype} is no format that the table gives to the instruction"),
    }
}
