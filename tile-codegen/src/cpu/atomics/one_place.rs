//! Updates of one element by all elements of a tile, such as of the counter that gives each of those which are kept its place:
//! one atomic instruction by what the values amount to. What was there before each value follows from what was there before
//! all of them, since the updates of an op follow each other in row-major order.
//!
//! Of integers alone: floats would be rounded elsewhere.

use super::{Access, joined, site_of};
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::region::Emitter;
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::ValueId;
use tile_ir::analysis::{Divisors, Line, Lines};
use tile_ir::ops::ReduceOp;

/// Updates of one element by all elements of a tile.
pub(in crate::cpu) struct Together<'o, 'a, 'c> {
    access: &'o Access<'a, 'c>,
    /// What joins the values.
    join: ReduceOp,
}

impl<'o, 'a, 'c> Together<'o, 'a, 'c> {
    /// Those of an operation, if all its indices name one element.
    pub(in crate::cpu) fn of(emitter: &Emitter<'a, 'c>, access: &'o Access<'a, 'c>) -> Option<Self> {
        let join = joined(access.atomic.kind).filter(|_| access.tensor.dtype.is_int())?;
        let shape = emitter.shape(access.indices[0]);
        let divisors = Divisors::of(emitter.instance);
        let mut lines = Lines::of(emitter.instance, &divisors);
        let mut is_one =
            |&tile: &ValueId| (0..shape.len()).all(|axis| lines.along(tile, axis) == Line::Constant);
        let has_several = shape.iter().any(|&extent| extent > 1);
        let meet = has_several && access.indices.iter().all(&mut is_one);
        meet.then_some(Together { access, join })
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Does them; what was there before each is stored if there is a result.
    pub(in crate::cpu) fn update_together(
        &mut self,
        together: &Together<'_, 'a, 'c>,
        result: Option<&Buffer<'c>>,
    ) {
        let (ir, access) = (self.ir, together.access);
        let (site, dtype) = (site_of(access.atomic), access.tensor.dtype);
        let first = vec![ir.i64(0); self.shape(access.indices[0]).len()];
        let (address, exists) = self.named_element(&access.tensor, access.indices, &first);
        let (total, is_any) = self.total_of(together);
        let update = || vec![ir.atomic(site, dtype, address, &[total]).expect("an update")];
        let nothing = || vec![ir.compute_type(dtype).const_zero()];
        let before = ir.if_else(ir.and(exists, is_any), update, nothing)[0];
        if let Some(result) = result {
            self.store_before_each(access, before, exists, result);
        }
    }

    /// What the values amount to, and whether there are any.
    fn total_of(&mut self, together: &Together<'_, 'a, 'c>) -> (Value<'c>, IntValue<'c>) {
        let (ir, &Together { access, join }) = (self.ir, together);
        let dtype = access.tensor.dtype;
        let neutral = ir.literal(join.identity(dtype), dtype);
        let byte = ir.int_type(8);
        let (total, is_any) = (self.lane_array(neutral.get_type(), 1), self.lane_array(byte.into(), 1));
        ir.store(total, neutral);
        ir.store(is_any, byte.const_zero().into());
        let shape = self.shape(access.indices[0]);
        self.nest(&shape, &mut |emitter, index| {
            let is_on = emitter.is_on(access, index);
            let value = ir.select(is_on, emitter.element(access.values[0], index), neutral);
            let before = ir.load(neutral.get_type(), total);
            ir.store(total, ir.binary(join.combine(), dtype, before, value));
            let before = ir.load(byte.into(), is_any).into_int_value();
            ir.store(is_any, ir.or(before, ir.zext_or_trunc(is_on, 8)).into());
        });
        let is_any = ir.load(byte.into(), is_any).into_int_value();
        (ir.load(neutral.get_type(), total), ir.icmp(IntPredicate::NE, is_any, byte.const_zero()))
    }

    /// Stores what was there before each value, of which the first found `before`: zero where nothing was done, and everywhere
    /// unless the element `exists`.
    fn store_before_each(
        &mut self,
        access: &Access<'a, 'c>,
        before: Value<'c>,
        exists: IntValue<'c>,
        result: &Buffer<'c>,
    ) {
        let ir = self.ir;
        let op = access.atomic.kind.binary().expect("what is joined is computed");
        let (ty, dtype) = (before.get_type(), access.tensor.dtype);
        let next = self.lane_array(ty, 1);
        ir.store(next, before);
        let shape = self.shape(access.indices[0]);
        self.nest(&shape, &mut |emitter, index| {
            let is_on = ir.and(exists, emitter.is_on(access, index));
            let before = ir.load(ty, next);
            let after = ir.binary(op, dtype, before, emitter.element(access.values[0], index));
            ir.store(next, ir.select(is_on, after, before));
            let position = emitter.position(index, &shape);
            emitter.buffers.store(result, position, ir.select(is_on, before, ty.const_zero()));
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// The places that a counter, or each of several, gives four elements.
    fn places(index: &str, dtype: &str) -> String {
        let (one, format) = if dtype == "f32" { ("1.0", "f32") } else { ("1", "u32") };
        let source = format!(
            "kernel @k(%counter: mut tensor<c x {format}>, %y: mut tensor<n x {format}>) {{
  %vy = partition %y [4] : mut partition<n x {format}, [4]>
  %i = block_index %vy : index
  %zero = constant 0 : i32
  %first = splat %zero : tile<4 x i32>
  %each = iota 0 : tile<4 x i32>
  %one = constant {one} : {format}
  %ones = splat %one : tile<4 x {format}>
  %old = atomic add acq_rel device %counter[{index}], %ones : tile<4 x {format}>
  store_masked %vy, %old
}}
"
        );
        assembly(&Instance::parse(&source, &[]).unwrap(), "x86-64-v3")
    }

    #[test]
    fn one_instruction_updates_what_a_tile_has_in_common() {
        let count = |code: &str| code.matches("lock").count();
        let together = places("%first", "u32");
        assert_eq!(count(&together), 1, "{together}");
        assert_eq!(count(&places("%each", "u32")), 4);
        assert_eq!(count(&places("%first", "f32")), 4, "sums of floats are rounded one after the other");
    }
}
