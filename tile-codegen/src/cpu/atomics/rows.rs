//! Atomic operations along rows of memory.
//!
//! Relaxed loads and stores are those of any row. Processors load and store each aligned element of a vector at once, whatever
//! they do with the vector ("Intel 64 and IA-32 Architectures Software Developer's Manual", volume 3, 10.1.1; "Arm
//! Architecture Reference Manual for A-profile", B2.2.1), so where indices name parts of rows ([`Lines::row_of`]) a row is
//! loaded and stored as any other. Not loaded in a kernel with a `while`, which may wait for what others store: LLVM would
//! read it once for all turns.
//!
//! Relaxed updates that processors do by exchanging what they have computed, and whose results nobody uses, exchange as many
//! elements of such a row at once as an instruction takes: it costs about what one element does. A thread that is alone changes a row as any other tile.

use super::{Access, site_of};
use crate::cpu::elements::{IndexRange, each_index, is_short};
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::memory::gathered::OpenRow;
use crate::cpu::region::Emitter;
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::analysis::{Divisors, Line, Lines};
use tile_ir::kernel::OpData;
use tile_ir::ops::{Atomic, AtomicKind, BinaryOp, Order};
use tile_ir::{DType, Op};

/// Whether an atomic operation is a relaxed store, whose rows may be stored as a whole.
pub(in crate::cpu) fn is_plain_store(atomic: &Atomic) -> bool {
    atomic.kind == AtomicKind::Store && atomic.order == Order::Relaxed
}

/// Whether an update is a loop that compares and exchanges, on every processor.
fn is_exchanged(atomic: &Atomic, dtype: DType) -> bool {
    let has_instruction = !dtype.is_float() && !matches!(atomic.kind, AtomicKind::Min | AtomicKind::Max);
    atomic.kind.binary().is_some() && atomic.order == Order::Relaxed && !has_instruction
}

/// How an operation goes along a row that exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    /// It is loaded as any row.
    Loaded,
    /// It is stored as any row.
    Stored,
    /// So many neighbours are exchanged at once, where they lie in one aligned word.
    Exchanged(i64),
    /// It is loaded, changed and stored.
    Alone(BinaryOp),
}

/// Parts of rows that an operation's indices name along the last axis of their tiles.
#[derive(Clone, Copy)]
pub(super) struct NamedRows {
    /// The tensor's axis.
    axis: usize,
    /// Whether a row's elements differ in being masked.
    is_masked_within: bool,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// How an operation goes along rows, if it needn't go from element to element.
    /// Words are exchanged where one mask holds for all of a row.
    pub(super) fn way_along(&self, access: &Access<'a, 'c>, rows: NamedRows) -> Option<Along> {
        match access.atomic.kind {
            AtomicKind::Store => return is_plain_store(&access.atomic).then_some(Along::Stored),
            AtomicKind::Load => {
                let is_plain = access.atomic.order == Order::Relaxed && !self.may_wait();
                return is_plain.then_some(Along::Loaded);
            }
            _ => {}
        }
        if access.is_alone {
            return access.atomic.kind.binary().filter(|_| !access.is_used).map(Along::Alone);
        }
        let dtype = self.dtype(*access.values.first()?);
        let together = self.processor.exchanged_bytes / dtype.bytes() as i64;
        let divides = self.shape(access.indices[0]).last().is_some_and(|width| width % together == 0);
        let is_exchanged = is_exchanged(&access.atomic, dtype) && !access.is_used;
        let pays = together > 1 && divides && is_exchanged && !rows.is_masked_within;
        pays.then_some(Along::Exchanged(together))
    }

    /// Whether the kernel may wait for what other blocks do.
    fn may_wait(&self) -> bool {
        self.instance.walk().into_iter().any(|op| self.instance.op(op).op == Op::While)
    }

    /// The parts of rows that the indices name, if they name any that are long enough.
    pub(super) fn named_rows(&self, access: &Access<'a, 'c>) -> Option<NamedRows> {
        let shape = self.shape(access.indices[0]);
        let last = shape.len().checked_sub(1).filter(|&last| !is_short(shape[last]))?;
        let divisors = Divisors::of(self.instance);
        let mut lines = Lines::of(self.instance, &divisors);
        let is_masked_within = access.mask.is_some_and(|mask| lines.along(mask, last) != Line::Constant);
        let axis = lines.row_of(access.indices, last)?.tensor_axis;
        Some(NamedRows { axis, is_masked_within })
    }

    /// Goes from row to row: along those that exist as a whole in their way, element by element elsewhere.
    pub(super) fn each_whole_row(
        &mut self,
        access: &Access<'a, 'c>,
        rows: NamedRows,
        way: Along,
        result: Option<&Buffer<'c>>,
        gathers: &[&'a OpData],
    ) {
        let (ir, tensor) = (self.ir, &access.tensor);
        let shape = self.shape(access.indices[0]);
        let (&width, outer) = shape.split_last().expect("a row lies along an axis");
        let range = IndexRange::up_to(ir, ir.i64(width));
        self.each_row(outer, &mut |emitter, row| {
            let (open, exists) = emitter.named_row(tensor, access.indices, rows.axis, row, range);
            let mask = access.mask.filter(|_| !rows.is_masked_within);
            let mask = mask.map(|mask| emitter.element(mask, &[row, &[ir.i64(0)]].concat()).into_int_value());
            let is_aligned = match way {
                Along::Exchanged(together) => Some(emitter.lies_in_words(open, tensor.dtype, together)),
                Along::Loaded | Along::Stored | Along::Alone(_) => None,
            };
            let is_whole = ir.all([exists].into_iter().chain(mask).chain(is_aligned));
            emitter.with_gathered_rows(gathers, row, range, &mut |emitter| {
                ir.on_each_side(is_whole, |is_whole| match way {
                    Along::Exchanged(together) if is_whole => {
                        emitter.exchange_row(access, open, row, [width, together]);
                    }
                    _ => each_index(ir, ir.i64(width), width, |place| {
                        let index = [row, &[place]].concat();
                        let is_on = match is_whole && !rows.is_masked_within {
                            true => None,
                            false => access.mask.map(|mask| emitter.element(mask, &index).into_int_value()),
                        };
                        ir.if_then(is_on.unwrap_or_else(|| ir.bool(true)), || {
                            let old = match is_whole {
                                true => emitter.element_of_row(access, way, open, &index),
                                false => emitter.atomic_element(access, &index),
                            };
                            emitter.keep(result, &shape, &index, old);
                        });
                    }),
                });
            });
        });
    }

    /// Loads, changes or stores a place of a row as that of any row; gives what was there, of a load.
    fn element_of_row(
        &mut self,
        access: &Access<'a, 'c>,
        way: Along,
        row: OpenRow<'c>,
        index: &[IntValue<'c>],
    ) -> Option<Value<'c>> {
        let tensor = &access.tensor;
        let &place = index.last().expect("a row lies along an axis");
        if way == Along::Loaded {
            return Some(self.load_in_row(tensor, row, place));
        }
        let value = self.element(access.values[0], index);
        let left = match way {
            Along::Alone(op) => {
                let before = self.load_in_row(tensor, row, place);
                self.ir.binary(op, tensor.dtype, before, value)
            }
            _ => value,
        };
        self.store_in_row(tensor, row, place, left);
        None
    }

    /// Exchanges a row of this width, so many neighbours at once.
    fn exchange_row(
        &mut self,
        access: &Access<'a, 'c>,
        open: OpenRow<'c>,
        row: &[IntValue<'c>],
        [width, together]: [i64; 2],
    ) {
        let (ir, tensor) = (self.ir, &access.tensor);
        let words = width / together;
        each_index(ir, ir.i64(words), words, |word| {
            let first = ir.mul(word, ir.i64(together));
            let place = |i| ir.add(first, ir.i64(i));
            let value = |i| self.element(access.values[0], &[row, &[place(i)]].concat());
            let values: Vec<Value<'c>> = (0..together).map(value).collect();
            let address = self.address_in_row(tensor, open, first);
            ir.exchange_together(site_of(access.atomic), tensor.dtype, address, &values);
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

    /// A row is loaded by vectors, and what a mask has of it is stored by vectors.
    #[test]
    fn relaxed_loads_and_stores_are_those_of_rows() {
        let source =
            "kernel @k(%x: tensor<m x n x f32>, %grid: mut tensor<m x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [1, 64] : partition<m x n x f32, [1, 64]>
  %vg = partition %grid [1] : mut partition<m x f32, [1]>
  %i = block_index %vg : index
  %none = constant 0 : index
  %zero = constant 0.0 : f32
  %t = load_masked %vx[%i, %none] pad %zero : tile<1 x 64 x f32>
  %row = cast %i : i32
  %rows = splat %row : tile<1 x 64 x i32>
  %columns = iota 1 : tile<1 x 64 x i32>
  %old = atomic load relaxed device %y[%rows, %columns] : tile<1 x 64 x f32>
  %zeros = splat %zero : tile<1 x 64 x f32>
  %mask = lt %t, %zeros : tile<1 x 64 x bool>
  %sum = add %old, %t : tile<1 x 64 x f32>
  atomic store relaxed device %y[%rows, %columns], %sum mask %mask
}
";
        let code = assembly(&Instance::parse(source, &[]).unwrap(), "x86-64-v3");
        assert!(code.contains("vmovups\t%ymm"), "{code}");
        assert!(code.contains("vmaskmovps\t%ymm"), "{code}");
    }
}
