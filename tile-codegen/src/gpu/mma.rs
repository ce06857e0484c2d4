//! `mma`: both operands go to shared memory, and each thread adds products to its own slots of the
//! accumulator, in a loop along K.
//!
//! With fewer columns than threads a thread's slots lie in one column, so one element of `b` serves all of
//! them, and `a` is read along K in vectors that the whole warp shares. f16 accumulators are kept in f32 over
//! the loop and rounded once.

use super::distribution::{Coordinate, Distribution, Slot, extents};
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::{Buffer, Request};
use crate::emit::Value;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{IntValue, PointerValue};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::{DType, Instance, OpId};

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
    /// The accumulator's format.
    dtype: DType,
}

/// The shared memory that the op needs: both operands.
pub(super) fn requests(instance: &Instance, distribution: Distribution, data: &OpData) -> Vec<Request> {
    let operands = data.operands[..2].iter();
    operands
        .map(|&value| Request {
            dtype: instance.ty(value).elem().known().expect("an instance has no dtype parameters"),
            elements: distribution.padded(extents(instance, value).iter().product()),
        })
        .collect()
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn mma(&mut self, op: OpId, data: &OpData) {
        let [a, b, accumulator] = data.operands[..] else {
            unreachable!("verified: `mma` has three operands")
        };
        let result = data.results[0];
        let buffers = self.plan.buffers(op);
        let (shape, dtype) = (self.shape(result), self.dtype(result));
        let [.., m, n] = shape[..] else { unreachable!("verified: `mma` has matrices") };
        let k = *self.shape(a).last().expect("verified: `mma` has matrices");
        let step = [STEP, 2, 1].into_iter().find(|&step| k.is_multiple_of(step)).unwrap_or(1);
        let product = Product { a: buffers[0], b: buffers[1], m, n, k, step, dtype };
        self.reserve(&buffers);
        for (&operand, &buffer) in [a, b].iter().zip(&buffers) {
            self.share(buffer, self.tile(operand), self.elements(operand), self.dtype(operand));
        }
        self.sync();
        self.pending.read(product.a);
        self.pending.read(product.b);
        let accumulator = self.tile(accumulator).clone();
        let fragment = self.accumulate(&product, &shape, &accumulator);
        self.set_tile(result, fragment);
    }

    fn accumulate(&self, product: &Product, shape: &[u64], accumulator: &Fragment<'c>) -> Fragment<'c> {
        let (ir, dtype) = (self.ir, product.dtype);
        let (mapping, elements) = (self.mapping(shape), shape.iter().product());
        let flat = self.flatten(accumulator.clone(), elements, dtype);
        let round = |sum: Value<'c>| match sum {
            Value::FloatValue(sum) => ir.round_to(sum, dtype).into(),
            sum => sum,
        };
        match self.unflatten(&mut flat.into_iter(), elements) {
            Fragment::Registers(initial) => {
                let slots = 0..initial.len() as u64;
                let place =
                    |slot| self.row_and_column(product, shape, mapping.coordinates(ir, Slot::Fixed(slot)));
                let places: Vec<_> = slots.map(place).collect();
                let sums = self.sum_along_k(product, &places, &initial);
                Fragment::Registers(sums.into_iter().map(round).collect())
            }
            array => self.map(elements, dtype, |slot| {
                let places = [self.row_and_column(product, shape, mapping.coordinates(ir, slot))];
                round(self.sum_along_k(product, &places, &[self.get(&array, dtype, slot)])[0])
            }),
        }
    }

    /// A slot's row among those of all matrices of `a`, and its column with the first element of its matrix of `b`.
    fn row_and_column(
        &self,
        product: &Product,
        shape: &[u64],
        index: Vec<Coordinate<'c>>,
    ) -> [Coordinate<'c>; 2] {
        let [batch @ .., row, column] = index.as_slice() else {
            unreachable!("verified: `mma` has matrices")
        };
        let none = Coordinate { varying: None, fixed: 0 };
        let matrix =
            batch.iter().zip(shape).fold(none, |matrix, (&i, &extent)| self.after(matrix, extent, i));
        [self.after(matrix, product.m, *row), self.after(matrix, product.k * product.n, *column)]
    }

    /// `outer·extent + inner`.
    fn after(&self, outer: Coordinate<'c>, extent: u64, inner: Coordinate<'c>) -> Coordinate<'c> {
        let scaled = outer.varying.map(|outer| self.ir.mul(outer, self.i32(extent)));
        let varying = match (scaled, inner.varying) {
            (Some(outer), Some(inner)) => Some(self.ir.add(outer, inner)),
            (outer, inner) => outer.or(inner),
        };
        Coordinate { varying, fixed: outer.fixed * extent + inner.fixed }
    }

    fn sum_along_k(
        &self,
        product: &Product,
        places: &[[Coordinate<'c>; 2]],
        initial: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let bounds = (self.i32(0), self.i32(product.k), self.i32(product.step));
        self.ir.for_loop(bounds, initial, |k, sums| {
            // Rows of `a` and columns of `b` that several slots share are read once.
            let (mut rows, mut columns) = (HashMap::new(), HashMap::new());
            let key = |place: Coordinate<'c>| (place.varying, place.fixed);
            places
                .iter()
                .zip(sums)
                .map(|(place, &sum)| {
                    let a = rows.entry(key(place[0])).or_insert_with(|| self.row(product, place[0], k));
                    let b = columns.entry(key(place[1])).or_insert_with(|| self.column(product, place[1], k));
                    a.iter().zip(b.iter()).fold(sum, |sum, (&a, &b)| self.multiply_add(a, b, sum))
                })
                .collect()
        })
    }

    /// Elements `[row, k..k + step]` of `a`, read as one vector.
    fn row(&self, product: &Product, row: Coordinate<'c>, k: IntValue<'c>) -> Vec<Value<'c>> {
        let (ir, dtype) = (self.ir, product.a.dtype);
        let mut index = k;
        if let Some(varying) = row.varying {
            index = ir.add(index, ir.mul(varying, self.i32(product.k)));
        }
        let element = ir.storage_type(dtype);
        let address = self.shared_pointer(product.a, index);
        let address = ir.element(element, address, self.i32(row.fixed * product.k));
        let bytes = product.step * dtype.bytes() as u64;
        // Buffers are aligned, and `row · K + k` is a multiple of the step.
        let stored = match element {
            BasicTypeEnum::IntType(ty) if bytes <= 8 => {
                self.load_packed(address, ty.get_bit_width(), product.step)
            }
            element => self.load_vector(address, element, product.step),
        };
        let widened = |value| self.widened(ir.value_from_storage(value, dtype), product, dtype);
        stored.into_iter().map(widened).collect()
    }

    /// Small integers, read as one word: LLVM would split a vector of them into single loads.
    fn load_packed(&self, address: PointerValue<'c>, bits: u32, count: u64) -> Vec<Value<'c>> {
        let ir = self.ir;
        let ty = ir.int_type(bits * count as u32);
        let word = ir.load(ty.into(), address).into_int_value();
        let part = |i: u64| ir.lshr(word, ty.const_int(i * u64::from(bits), false));
        (0..count).map(|i| ir.resize(part(i), bits, false).into()).collect()
    }

    fn load_vector(
        &self,
        address: PointerValue<'c>,
        element: BasicTypeEnum<'c>,
        count: u64,
    ) -> Vec<Value<'c>> {
        let ir = self.ir;
        let ty: BasicTypeEnum<'c> = match element {
            BasicTypeEnum::FloatType(ty) => ty.vec_type(count as u32).into(),
            BasicTypeEnum::IntType(ty) => ty.vec_type(count as u32).into(),
            _ => unreachable!("elements are integers or floats"),
        };
        let vector = ir.load(ty, address).into_vector_value();
        let element = |i: u64| ir.builder.build_extract_element(vector, self.i32(i), "");
        (0..count).map(|i| element(i).expect("the builder is positioned")).collect()
    }

    /// Elements `[k..k + step, column]` of `b`.
    fn column(&self, product: &Product, column: Coordinate<'c>, k: IntValue<'c>) -> Vec<Value<'c>> {
        let (ir, dtype) = (self.ir, product.b.dtype);
        let mut index = ir.mul(k, self.i32(product.n));
        if let Some(varying) = column.varying {
            index = ir.add(index, varying);
        }
        let base = self.shared_pointer(product.b, index);
        let element = ir.storage_type(dtype);
        (0..product.step)
            .map(|i| {
                let address = ir.element(element, base, self.i32(i * product.n + column.fixed));
                self.widened(ir.load_value(address, dtype), product, dtype)
            })
            .collect()
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
