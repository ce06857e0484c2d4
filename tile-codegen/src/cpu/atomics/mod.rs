//! Atomic operations: an element at a time, in row-major order. Other blocks run on other threads, so these are
//! instructions that are atomic, with the order that was asked for.
//!
//! Relaxed stores are the exception. Processors store each aligned element of a vector at once, whatever they do with the
//! vector ("Intel 64 and IA-32 Architectures Software Developer's Manual", volume 3, 10.1.1; "Arm Architecture Reference
//! Manual for A-profile", B2.2.1), so where indices name parts of rows ([`Lines::row_of`]) a row is stored as any other.
//!
//! Relaxed updates that processors do by exchanging what they have computed, and whose results nobody uses, exchange as many
//! elements of such a row at once as an instruction takes: it costs about what one element does. Updates of one element by a
//! whole tile are one ([`one_place`]), and those of tensors that are only updated may go elsewhere first
//! ([`privatized`]).
//!
//! An element is looked at before it is compared and exchanged: where it differs that was the whole operation, at a tenth of
//! an exchange's time.

pub(super) mod masked_places;
pub(super) mod one_place;
pub(super) mod privatized;

use crate::cpu::elements::{IndexRange, each_index, is_short};
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::memory::gathered::{Gathered, OpenRow};
use crate::cpu::region::Emitter;
use crate::emit::Value;
use crate::emit::atomic::Site;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use one_place::Together;
use tile_ir::analysis::{Divisors, Line, Lines};
use tile_ir::kernel::OpData;
use tile_ir::ops::{Atomic, AtomicKind, Order, ReduceOp};
use tile_ir::{DType, Instance, ValueId};

/// Whether an atomic operation is a relaxed store, whose rows may be stored as a whole.
pub(in crate::cpu) fn is_plain_store(atomic: &Atomic) -> bool {
    atomic.kind == AtomicKind::Store && atomic.order == Order::Relaxed
}

/// Whether an update is a loop that compares and exchanges, on every processor.
fn is_exchanged(atomic: &Atomic, dtype: DType) -> bool {
    let has_instruction = !dtype.is_float() && !matches!(atomic.kind, AtomicKind::Min | AtomicKind::Max);
    atomic.kind.binary().is_some() && atomic.order == Order::Relaxed && !has_instruction
}

/// The reduction by which several updates of an element become one, whose value is what theirs amount to.
pub(in crate::cpu) fn joined(kind: AtomicKind) -> Option<ReduceOp> {
    Some(match kind {
        AtomicKind::Add | AtomicKind::Sub => ReduceOp::Sum,
        AtomicKind::Min => ReduceOp::Min,
        AtomicKind::Max => ReduceOp::Max,
        AtomicKind::And => ReduceOp::And,
        AtomicKind::Or => ReduceOp::Or,
        AtomicKind::Xor => ReduceOp::Xor,
        AtomicKind::Swap | AtomicKind::CompareExchange | AtomicKind::Load | AtomicKind::Store => return None,
    })
}

/// Whether any op reads what this one gives.
pub(in crate::cpu) fn is_used(instance: &Instance, data: &OpData) -> bool {
    let reads = |op| instance.op(op).operands.iter().any(|operand| data.results.contains(operand));
    instance.walk().into_iter().any(reads)
}

/// Every scope is the system's here.
pub(in crate::cpu) fn site_of(atomic: Atomic) -> Site {
    Site { kind: atomic.kind, order: atomic.order, scope: "", direct: true }
}

/// How an operation goes along a row that exists.
#[derive(Clone, Copy)]
enum Along {
    /// It is stored as any row.
    Stored,
    /// So many neighbours are exchanged at once, where they lie in one aligned word.
    Exchanged(i64),
}

/// An atomic operation, and what it is given.
pub(in crate::cpu) struct Access<'a, 'c> {
    data: &'a OpData,
    pub(in crate::cpu) atomic: Atomic,
    pub(in crate::cpu) tensor: Gathered<'c>,
    /// Tiles of the indices that name an element, one for each axis of the tensor.
    pub(in crate::cpu) indices: &'a [ValueId],
    /// Tiles of what is stored, added, or compared and exchanged.
    pub(in crate::cpu) values: &'a [ValueId],
    pub(in crate::cpu) mask: Option<ValueId>,
}

impl<'a, 'c> Access<'a, 'c> {
    fn of(data: &'a OpData, atomic: Atomic, tensor: Gathered<'c>) -> Self {
        let (indices, rest) = data.operands[1..].split_at(tensor.extents.len());
        let (values, mask) = rest.split_at(atomic.kind.values());
        Access { data, atomic, tensor, indices, values, mask: mask.first().copied() }
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(in crate::cpu) fn atomic(&mut self, data: &'a OpData, atomic: Atomic) {
        let access = Access::of(data, atomic, self.gathered(data));
        let (loads, gathers) = (self.fusion.streams_of(data), self.fusion.gathers_of(data));
        let result = data.results.first().filter(|_| is_used(self.instance, data));
        let result = result.map(|&result| self.stored(result));
        self.with_streams(&loads, &[], &mut |emitter, _| match Together::of(emitter, &access) {
            Some(together) => emitter.update_together(&together, result.as_ref()),
            None => emitter.update_own_or(&access, &mut |emitter| {
                emitter.by_rows_or_elements(&access, result.as_ref(), &gathers);
            }),
        });
    }

    /// Goes along rows where that pays, else from element to element.
    fn by_rows_or_elements(
        &mut self,
        access: &Access<'a, 'c>,
        result: Option<&Buffer<'c>>,
        gathers: &[&'a OpData],
    ) {
        let row = self.way_along(access).zip(self.named_axis(access));
        match row {
            Some((way, axis)) => self.each_whole_row(access, way, axis, gathers),
            None => self.each_element(access, result),
        }
    }

    fn each_element(&mut self, access: &Access<'a, 'c>, result: Option<&Buffer<'c>>) {
        let shape = self.shape(access.indices[0]);
        if let (Some(buffer), Some(_)) = (result, access.mask) {
            let zero = self.ir.compute_type(access.tensor.dtype).const_zero();
            self.fill(buffer, &shape, |_, _| zero);
        }
        self.each_place(access.mask, &shape, &mut |emitter, index| {
            let old = emitter.atomic_element(access, index);
            if let (Some(buffer), Some(old)) = (result, old) {
                let at = emitter.position(index, &shape);
                emitter.buffers.store(buffer, at, old);
            }
        });
    }

    /// How an operation goes along rows, if it needn't go from element to element.
    fn way_along(&self, access: &Access<'a, 'c>) -> Option<Along> {
        if is_plain_store(&access.atomic) {
            return Some(Along::Stored);
        }
        let dtype = self.dtype(*access.values.first()?);
        let together = self.processor.exchanged_bytes / dtype.bytes() as i64;
        let divides = self.shape(access.indices[0]).last().is_some_and(|width| width % together == 0);
        let is_exchanged = is_exchanged(&access.atomic, dtype) && !is_used(self.instance, access.data);
        let pays = together > 1 && divides && is_exchanged;
        pays.then_some(Along::Exchanged(together))
    }

    /// The tensor's axis along which the indices name parts of rows, if one mask holds for all of a row.
    fn named_axis(&self, access: &Access<'a, 'c>) -> Option<usize> {
        let shape = self.shape(access.indices[0]);
        let last = shape.len().checked_sub(1).filter(|&last| !is_short(shape[last]))?;
        let divisors = Divisors::of(self.instance);
        let mut lines = Lines::of(self.instance, &divisors);
        let is_masked_by_rows = access.mask.is_none_or(|mask| lines.along(mask, last) == Line::Constant);
        lines.row_of(access.indices, last).filter(|_| is_masked_by_rows).map(|row| row.tensor_axis)
    }

    /// Goes from row to row, which lie along this axis of the tensor: along those that exist as a whole in this way, element by
    /// element elsewhere.
    fn each_whole_row(&mut self, access: &Access<'a, 'c>, way: Along, axis: usize, gathers: &[&'a OpData]) {
        let (ir, tensor) = (self.ir, &access.tensor);
        let shape = self.shape(access.indices[0]);
        let (&width, rows) = shape.split_last().expect("a row lies along an axis");
        let range = IndexRange::up_to(ir, ir.i64(width));
        self.each_row(rows, &mut |emitter, row| {
            let (open, exists) = emitter.named_row(tensor, access.indices, axis, row, range);
            let mask = access.mask.map(|mask| emitter.element(mask, &[row, &[ir.i64(0)]].concat()));
            let is_aligned = match way {
                Along::Stored => None,
                Along::Exchanged(together) => Some(emitter.lies_in_words(open, tensor.dtype, together)),
            };
            let mask = mask.map(|mask| mask.into_int_value());
            let is_whole = ir.all([exists].into_iter().chain(mask).chain(is_aligned));
            emitter.with_gathered_rows(gathers, row, range, &mut |emitter| {
                ir.on_each_side(is_whole, |is_whole| match way {
                    Along::Exchanged(together) if is_whole => {
                        let words = width / together;
                        each_index(ir, ir.i64(words), words, |word| {
                            let first = ir.mul(word, ir.i64(together));
                            let place = |i| ir.add(first, ir.i64(i));
                            let value = |i| emitter.element(access.values[0], &[row, &[place(i)]].concat());
                            let values: Vec<Value<'c>> = (0..together).map(value).collect();
                            let address = emitter.address_in_row(tensor, open, first);
                            ir.exchange_together(site_of(access.atomic), tensor.dtype, address, &values);
                        });
                    }
                    Along::Stored | Along::Exchanged(_) => {
                        each_index(ir, ir.i64(width), width, |place| {
                            let index = [row, &[place]].concat();
                            if is_whole {
                                let element = emitter.element(access.values[0], &index);
                                emitter.store_in_row(tensor, open, place, element);
                            } else {
                                let is_on = emitter.is_on(access, &index);
                                ir.if_then(is_on, || {
                                    emitter.atomic_element(access, &index);
                                });
                            }
                        });
                    }
                });
            });
        });
    }

    /// Whether a row's elements follow each other from the beginning of a word of so many.
    fn lies_in_words(&self, row: OpenRow<'c>, dtype: DType, together: i64) -> IntValue<'c> {
        let ir = self.ir;
        let is = |a: IntValue<'c>, b: i64| ir.icmp(IntPredicate::EQ, a, ir.i64(b));
        let last_byte = together * dtype.bytes() as i64 - 1;
        let within = ir.and(ir.address(row.first), ir.i64(last_byte));
        ir.and(is(row.stride, 1), is(within, 0))
    }

    /// Does it to the element that the indices name at this place of their tiles, which the mask has; gives what was there, or
    /// zero where nothing was done, if the operation gives anything.
    fn atomic_element(&mut self, access: &Access<'a, 'c>, index: &[IntValue<'c>]) -> Option<Value<'c>> {
        let (ir, kind) = (self.ir, access.atomic.kind);
        let (site, dtype) = (site_of(access.atomic), access.tensor.dtype);
        let values: Vec<Value<'c>> = access.values.iter().map(|&tile| self.element(tile, index)).collect();
        let (address, exists) = self.named_element(&access.tensor, access.indices, index);
        let zero = ir.compute_type(dtype).const_zero();
        let nothing = || if kind.has_result() { vec![zero] } else { Vec::new() };
        let act = || match kind {
            AtomicKind::CompareExchange => vec![ir.look_and_exchange(site, dtype, address, &values)],
            _ => ir.atomic(site, dtype, address, &values).into_iter().collect(),
        };
        ir.if_else(exists, act, nothing).first().copied()
    }

    /// Whether the mask has this place of the tiles.
    pub(in crate::cpu) fn is_on(&mut self, access: &Access<'a, 'c>, index: &[IntValue<'c>]) -> IntValue<'c> {
        match access.mask {
            Some(mask) => self.element(mask, index).into_int_value(),
            None => self.ir.bool(true),
        }
    }

    /// The address of the element that indices name at a place of their tiles, and whether it exists.
    pub(in crate::cpu) fn named_element(
        &mut self,
        tensor: &Gathered<'c>,
        indices: &[ValueId],
        index: &[IntValue<'c>],
    ) -> (PointerValue<'c>, IntValue<'c>) {
        let ir = self.ir;
        let indices: Vec<(Value<'c>, DType)> =
            indices.iter().map(|&tile| (self.element(tile, index), self.dtype(tile))).collect();
        let (position, exists) = ir.gather_place(&tensor.place, &tensor.extents, &indices);
        (ir.offset(ir.storage_type(tensor.dtype), tensor.base, position), exists)
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// The code of an addition to the row that a block's number names, and of what is done with its result.
    fn added(dtype: &str, order: &str, rest: &str) -> String {
        let source = format!(
            "kernel @k(%x: tensor<m x n x {dtype}>, %grid: mut tensor<m x {dtype}>, %y: mut tensor<m x n x {dtype}>) {{
  %vx = partition %x [1, 64] : partition<m x n x {dtype}, [1, 64]>
  %vg = partition %grid [1] : mut partition<m x {dtype}, [1]>
  %i = block_index %vg : index
  %none = constant 0 : index
  %zero = constant 0.0 : {dtype}
  %t = load_masked %vx[%i, %none] pad %zero : tile<1 x 64 x {dtype}>
  %row = cast %i : i32
  %rows = splat %row : tile<1 x 64 x i32>
  %columns = iota 1 : tile<1 x 64 x i32>
  %old = atomic add {order} device %y[%rows, %columns], %t : tile<1 x 64 x {dtype}>
{rest}}}
"
        );
        assembly(&Instance::parse(&source, &[]).unwrap(), "x86-64-v3")
    }

    /// Whole words where nobody asks what was there and in which order; no level calls a library for them.
    #[test]
    fn sums_of_rows_exchange_words_of_several_elements() {
        let used = "  %s = reduce sum %old axis 1 : tile<1 x 1 x f32>
  %f = reshape %s : tile<1 x f32>
  store_masked %vg, %f
";
        for (dtype, order, rest, is_wide) in [
            ("f32", "relaxed", "", true),
            ("bf16", "relaxed", "", true),
            ("f32", "acq_rel", "", false),
            ("f32", "relaxed", used, false),
        ] {
            let code = added(dtype, order, rest);
            assert_eq!(code.contains("cmpxchg16b"), is_wide, "{dtype} {order}: {code}");
            assert!(!code.contains("call"), "{dtype} {order}: {code}");
        }
    }
    /// A mask's places are found by counting zeros, and an element that differs isn't exchanged.
    #[test]
    fn exchanges_behind_masks_look_first() {
        let source = "kernel @k(%slots: mut tensor<c x i32>, %x: tensor<n x i32>, %y: mut tensor<n x i32>) {
  %vx = partition %x [64] : partition<n x i32, [64]>
  %vy = partition %y [64] : mut partition<n x i32, [64]>
  %i = block_index %vy : index
  %none = constant -1 : i32
  %t = load_masked %vx[%i] pad %none : tile<64 x i32>
  %empty = splat %none : tile<64 x i32>
  %on = gt %t, %empty : tile<64 x bool>
  %old = atomic compare_exchange relaxed device %slots[%t], %empty, %t mask %on : tile<64 x i32>
  store_masked %vy, %old
}
";
        let code = assembly(&Instance::parse(source, &[]).unwrap(), "x86-64-v3");
        assert!(code.contains("tzcnt"), "{code}");
        let before: Vec<&str> = code.split("lock").next().unwrap_or_default().lines().rev().take(8).collect();
        let looks = |line: &&str| line.contains("cmpl\t$-1") || line.contains("movl\t(");
        assert!(before.iter().any(looks) && before.iter().any(|line| line.contains("\tj")), "{code}");
    }
}
