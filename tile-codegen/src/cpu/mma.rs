//! `mma` as register blocks: `ROWS × 2` vectors of the accumulator stay in registers over the whole of K.
//!
//! Operands are already in scratch memory and in cache, so they are not packed. Products and sums are fused
//! where the target can; an f16 accumulator is kept in f32 and rounded at the end. Batches are matrix by matrix.

use super::buffer::Buffer;
use super::elements::count;
use super::region::Emitter;
use crate::emit::Value;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValue, IntValue, VectorValue};
use tile_ir::kernel::OpData;
use tile_ir::{DType, ValueId};

/// Extents and operands of one `mma`.
struct Product<'c> {
    a: Buffer<'c>,
    b: Buffer<'c>,
    c: Buffer<'c>,
    m: i64,
    n: i64,
    k: i64,
    /// The first elements of the matrices, in elements of each buffer.
    first: [IntValue<'c>; 3],
}

/// The block of the accumulator that registers hold.
struct Block {
    rows: i64,
    vectors: i64,
    lanes: i64,
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(super) fn mma(&mut self, data: &'a OpData) {
        let [a, b, accumulator] = data.operands[..] else {
            unreachable!("verified: `mma` has three operands")
        };
        let result = data.results[0];
        let c = self.stored(result);
        let in_place = self.buffer(accumulator).is_some_and(|buffer| super::Buffers::same(&buffer, &c));
        if !in_place {
            self.with_streams(data, &[], &mut |emitter, _| emitter.copy_tile(accumulator, result));
        }
        let shape = self.shape(result);
        let [batch @ .., m, n] = shape.as_slice() else { unreachable!("verified: `mma` has matrices") };
        let k = *self.shape(a).last().expect("verified: `mma` has matrices");
        let (m, n, ir) = (*m, *n, self.ir);
        let (a, b) = (self.stored(a), self.stored(b));
        count(ir, ir.i64(batch.iter().product()), batch.iter().product(), |matrix| {
            let first = [m * k, k * n, m * n].map(|elements| ir.mul(matrix, ir.i64(elements)));
            self.blocks(&Product { a, b, c, m, n, k, first });
        });
        self.round_result(result, &c);
    }

    /// Covers the result with register blocks: full ones first, then narrower ones for the edges.
    fn blocks(&mut self, product: &Product<'c>) {
        let wide = if product.c.dtype.bits() == 64 { 2 } else { 1 };
        let lanes = i64::from(self.lanes) / wide;
        let mut column = 0;
        for (vectors, lanes) in [(2, lanes), (1, lanes), (1, 1)] {
            let width = vectors * lanes;
            let end = column + (product.n - column) / width * width;
            if end > column {
                self.column_blocks(product, vectors, lanes, column, end);
            }
            column = end;
        }
    }

    fn column_blocks(&mut self, product: &Product<'c>, vectors: i64, lanes: i64, start: i64, end: i64) {
        // 8 × 2 vectors of 32 registers with AVX-512; 4 × 2 of 16 otherwise.
        let most = if self.lanes == 16 { 8 } else { 4 };
        let mut row = 0;
        for rows in [most, 4, 2, 1] {
            let last = row + (product.m - row) / rows * rows;
            if last > row {
                let block = Block { rows, vectors, lanes };
                self.block_range(product, &block, (row, last), (start, end));
            }
            row = last;
        }
    }

    fn block_range(&mut self, product: &Product<'c>, block: &Block, rows: (i64, i64), columns: (i64, i64)) {
        let ir = self.ir;
        let width = block.vectors * block.lanes;
        let this = &*self;
        ir.for_loop((ir.i64(columns.0), ir.i64(columns.1), ir.i64(width)), &[], |j, _| {
            ir.for_loop((ir.i64(rows.0), ir.i64(rows.1), ir.i64(block.rows)), &[], |i, _| {
                this.register_block(product, block, i, j);
                Vec::new()
            });
            Vec::new()
        });
    }

    fn register_block(&self, product: &Product<'c>, block: &Block, i: IntValue<'c>, j: IntValue<'c>) {
        let ir = self.ir;
        let at = |row: i64, vector: i64| {
            let first = ir.add(ir.mul(ir.add(i, ir.i64(row)), ir.i64(product.n)), j);
            ir.add(ir.add(product.first[2], first), ir.i64(vector * block.lanes))
        };
        let positions: Vec<IntValue<'c>> = (0..block.rows)
            .flat_map(|row| (0..block.vectors).map(move |v| (row, v)))
            .map(|(r, v)| at(r, v))
            .collect();
        let ty = self.vector(product.c.dtype, block.lanes);
        let initial: Vec<Value<'c>> =
            positions.iter().map(|&position| self.buffers.load_as(&product.c, ty.into(), position)).collect();
        let sums = ir.for_loop((ir.i64(0), ir.i64(product.k), ir.i64(1)), &initial, |p, sums| {
            self.outer_product(product, block, (i, j, p), sums)
        });
        for (&position, sum) in positions.iter().zip(sums) {
            self.buffers.store_as(&product.c, position, sum);
        }
    }

    /// One step along K: a column of `a` times a row of `b`, added to the sums.
    fn outer_product(
        &self,
        product: &Product<'c>,
        block: &Block,
        (i, j, p): (IntValue<'c>, IntValue<'c>, IntValue<'c>),
        sums: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let ir = self.ir;
        let row_of_b = ir.add(product.first[1], ir.add(ir.mul(p, ir.i64(product.n)), j));
        let b: Vec<VectorValue<'c>> = (0..block.vectors)
            .map(|v| {
                let position = ir.add(row_of_b, ir.i64(v * block.lanes));
                let ty = self.vector(product.b.dtype, block.lanes);
                let loaded = self.buffers.load_as(&product.b, ty.into(), position).into_vector_value();
                self.widened(loaded, product.b.dtype, product, block.lanes)
            })
            .collect();
        let mut next = Vec::with_capacity(sums.len());
        for row in 0..block.rows {
            let position = ir.add(ir.mul(ir.add(i, ir.i64(row)), ir.i64(product.k)), p);
            let position = ir.add(product.first[0], position);
            let element = self.buffers.load(&product.a, position);
            let a = self.widened(self.repeat(element, block.lanes), product.a.dtype, product, block.lanes);
            for (vector, &b) in b.iter().enumerate() {
                let sum = sums[row as usize * block.vectors as usize + vector].into_vector_value();
                next.push(self.multiply_add(a, b, sum).into());
            }
        }
        next
    }

    fn vector(&self, dtype: DType, lanes: i64) -> VectorType<'c> {
        match self.buffers.element_type(dtype) {
            BasicTypeEnum::FloatType(ty) => ty.vec_type(lanes as u32),
            BasicTypeEnum::IntType(ty) => ty.vec_type(lanes as u32),
            _ => unreachable!("elements are integers or floats"),
        }
    }

    /// Integers in the accumulator's width; floats are in its compute type already.
    fn widened(
        &self,
        value: VectorValue<'c>,
        from: DType,
        product: &Product<'c>,
        lanes: i64,
    ) -> VectorValue<'c> {
        if from.is_float() || from.bits() == product.c.dtype.bits() {
            return value;
        }
        let ty = self.vector(product.c.dtype, lanes);
        let builder = &self.ir.builder;
        let extended = if from.is_signed() {
            builder.build_int_s_extend(value, ty, "")
        } else {
            builder.build_int_z_extend(value, ty, "")
        };
        extended.expect("the builder is positioned")
    }

    fn repeat(&self, element: Value<'c>, lanes: i64) -> VectorValue<'c> {
        let ir = self.ir;
        let ty = match element.get_type() {
            BasicTypeEnum::FloatType(ty) => ty.vec_type(lanes as u32),
            BasicTypeEnum::IntType(ty) => ty.vec_type(lanes as u32),
            _ => unreachable!("elements are integers or floats"),
        };
        let zero = ir.context.i32_type().const_zero();
        let positioned = "the builder is positioned";
        let one = ir.builder.build_insert_element(ty.get_poison(), element, zero, "").expect(positioned);
        let mask = ir.context.i32_type().vec_type(lanes as u32).const_zero();
        ir.builder.build_shuffle_vector(one, ty.get_poison(), mask, "").expect(positioned)
    }

    fn multiply_add(&self, a: VectorValue<'c>, b: VectorValue<'c>, sum: VectorValue<'c>) -> VectorValue<'c> {
        let ir = self.ir;
        let positioned = "the builder is positioned";
        if matches!(sum.get_type().get_element_type(), BasicTypeEnum::IntType(_)) {
            let product = ir.builder.build_int_mul(a, b, "").expect(positioned);
            return ir.builder.build_int_add(sum, product, "").expect(positioned);
        }
        if ir.features.fma {
            let operands = [a.as_basic_value_enum(), b.as_basic_value_enum(), sum.as_basic_value_enum()];
            let fused = ir.intrinsic("llvm.fma", &[sum.get_type().into()], &operands);
            return fused.expect("fma has a result").into_vector_value();
        }
        let product = ir.builder.build_float_mul(a, b, "").expect(positioned);
        ir.builder.build_float_add(sum, product, "").expect(positioned)
    }

    fn round_result(&mut self, result: ValueId, c: &Buffer<'c>) {
        if !c.dtype.is_narrow_float() {
            return;
        }
        let shape = self.shape(result);
        self.fill(c, &shape, |emitter, index| {
            let position = emitter.position(index, &shape);
            let sum = emitter.buffers.load(c, position).into_float_value();
            emitter.ir.round_to(sum, c.dtype).into()
        });
    }
}
