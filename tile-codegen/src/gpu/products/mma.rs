//! `mma` by multiply-adds: both operands go to shared memory, and each thread adds products to its own slots of the
//! accumulator, in a loop along K.
//!
//! A thread's slots are a block of rows and columns, so that each element that it reads of `a` serves all its columns
//! and each of `b` all its rows. `a` is read in vectors along K, `b` in vectors along its rows. f16 accumulators are
//! kept in f32 over the loop and rounded once.

use crate::emit::Value;
use crate::gpu::coordinates::Coordinate;
use crate::gpu::region::Emitter;
use inkwell::values::IntValue;
use std::collections::HashMap;
use tile_ir::gpu::{Buffer, WIDEST};
use tile_ir::kernel::OpData;
use tile_ir::{DType, OpId, ValueId};

/// Elements along K that one step takes, where K is a multiple.
const STEP: u64 = 4;

/// Operands and extents of one `mma`.
struct Product {
    a: Buffer,
    b: Buffer,
    m: u64,
    n: u64,
    k: u64,
    step: u64,
    /// Neighbouring columns that a thread has.
    width: u64,
    /// The accumulator's format.
    dtype: DType,
}

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn mma(&mut self, op: OpId, data: &OpData) {
        let [a, b, accumulator] = data.operands[..] else {
            unreachable!("verified: `mma` has three operands")
        };
        let result = data.results[0];
        let buffers = self.share_all(op, &[a, b]);
        let (shape, dtype) = (self.shape(result), self.dtype(result));
        let [.., m, n] = shape[..] else { unreachable!("verified: `mma` has matrices") };
        let k = *self.shape(a).last().expect("verified: `mma` has matrices");
        let step = [STEP, 2, 1].into_iter().find(|&step| k.is_multiple_of(step)).unwrap_or(1);
        let most = (WIDEST / self.dtype(b).bytes() as u64).min(1 << n.trailing_zeros());
        let width = self.scheduled.distribution(result).neighbours(shape.len() - 1).min(most);
        let product = Product { a: buffers[0], b: buffers[1], m, n, k, step, width, dtype };
        let initial = self.tile(accumulator).values(self.slots(accumulator));
        let sums = self.sum_along_k(&product, result, &initial);
        self.set_sums(result, sums);
    }

    /// For every slot, its row among those of all matrices of `a`; and for each group of neighbours its column with the
    /// first element of its matrix of `b`. Padding stands for what comes first.
    fn product_places(&self, product: &Product, result: ValueId) -> Vec<[Coordinate<'c>; 2]> {
        let (ir, mapping) = (self.ir, self.mapping(result));
        let shape = mapping.distribution().shape().to_vec();
        let place = |slot: u64| {
            let index = mapping.coordinates(ir, slot);
            let [batch @ .., row, column] = index.as_slice() else {
                unreachable!("verified: `mma` has matrices")
            };
            let none = Coordinate { varying: None, fixed: 0 };
            let matrix =
                batch.iter().zip(&shape).fold(none, |matrix, (&i, &extent)| matrix.then(ir, extent, i));
            let places = [matrix.then(ir, product.m, *row), matrix.then(ir, product.k * product.n, *column)];
            match mapping.is_element(ir, slot) {
                None => places,
                Some(_) => places.map(|place| {
                    let varying = mapping.or_zero(ir, slot, place.value(ir));
                    Coordinate { varying: Some(varying), fixed: 0 }
                }),
            }
        };
        (0..mapping.slots()).map(place).collect()
    }

    fn sum_along_k(&self, product: &Product, result: ValueId, initial: &[Value<'c>]) -> Vec<Value<'c>> {
        let places = self.product_places(product, result);
        let bounds = (self.i32(0), self.i32(product.k), self.i32(product.step));
        self.ir.for_loop(bounds, initial, |k, sums| {
            // Rows of `a` and columns of `b` that several slots share are read once.
            let (mut rows, mut columns) = (HashMap::new(), HashMap::new());
            let sum = |(slot, &sum): (usize, &Value<'c>)| {
                let first = slot - slot % product.width as usize;
                let (row, column) = (places[slot][0], places[first][1]);
                let a = rows.entry(row).or_insert_with(|| self.row(product, row, k));
                let b = columns.entry(column).or_insert_with(|| self.columns(product, column, k));
                let terms = a.iter().zip(b.iter().map(|columns| columns[slot - first]));
                terms.fold(sum, |sum, (&a, b)| self.multiply_add(a, b, sum))
            };
            sums.iter().enumerate().map(sum).collect()
        })
    }

    /// Elements `[row, k..k + step]` of `a`. Buffers are aligned, and `row · K + k` is a multiple of the step.
    fn row(&self, product: &Product, row: Coordinate<'c>, k: IntValue<'c>) -> Vec<Value<'c>> {
        let dtype = product.a.dtype;
        let counted = Coordinate { varying: Some(k), fixed: 0 };
        let address = self.shared_place(product.a, row.then(self.ir, product.k, counted));
        let most = (WIDEST / dtype.bytes() as u64).min(product.step);
        let part = |i: u64| {
            let address = self.ir.element(self.ir.storage_type(dtype), address, self.i32(i * most));
            self.ir.load_group(address, dtype, most)
        };
        let values = (0..product.step / most).flat_map(part);
        values.map(|value| self.widened(value, product, dtype)).collect()
    }

    /// Elements `[k..k + step, column..column + width]` of `b`, row by row.
    fn columns(&self, product: &Product, column: Coordinate<'c>, k: IntValue<'c>) -> Vec<Vec<Value<'c>>> {
        let (ir, dtype) = (self.ir, product.b.dtype);
        let first = Coordinate { varying: Some(k), fixed: 0 }.then(ir, product.n, column);
        let row = |i: u64| {
            let place = Coordinate { fixed: first.fixed + i * product.n, ..first };
            let values = ir.load_group(self.shared_place(product.b, place), dtype, product.width);
            values.into_iter().map(|value| self.widened(value, product, dtype)).collect()
        };
        (0..product.step).map(row).collect()
    }

    /// Integers in the accumulator's width; floats are in the accumulator's compute type already.
    fn widened(&self, value: Value<'c>, product: &Product, dtype: DType) -> Value<'c> {
        match value {
            Value::IntValue(value) => self.ir.resize(value, product.dtype.bits(), dtype.is_signed()).into(),
            value => value,
        }
    }

    fn multiply_add(&self, a: Value<'c>, b: Value<'c>, sum: Value<'c>) -> Value<'c> {
        let ir = self.ir;
        match (a, b, sum) {
            (Value::IntValue(a), Value::IntValue(b), Value::IntValue(sum)) => {
                ir.add(sum, ir.mul(a, b)).into()
            }
            _ => ir.mul_add(a.into_float_value(), b.into_float_value(), sum.into_float_value()).into(),
        }
    }
}
