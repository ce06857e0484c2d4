//! Tensors that a kernel only updates, such as the bins of a histogram, are updated in memory of the thread's own, and what a
//! range of blocks amounts to there goes to the tensor at its end: **privatization**. An addition in memory takes a cycle
//! or two, an atomic one ten times as long, and hundreds where two threads want the same line.
//!
//! Such updates are relaxed, so that they have no order, and the kernel looks at nothing that other blocks change meanwhile:
//! of integers nobody can tell. Sums of floats are rounded elsewhere, as they are whenever other blocks come between.
//! Whether it pays is decided for each range, by its blocks and the tensor's elements; a thread that is alone updates the
//! tensor itself ([`super::company`]).

use super::company::is_of_the_launch;
use super::{heeds_others, joined, site_of};
use crate::cpu::region::extents;
use crate::emit::atomic::Site;
use crate::emit::{Ir, LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::ops::{Atomic, AtomicKind, ReduceOp};
use tile_ir::view::Source;
use tile_ir::{DType, Dim, Instance, Op, Type, ValueId};

/// Memory for the elements of all such tensors of a kernel: a part of any second cache.
const MOST_BYTES: u64 = 128 << 10;

/// Updates for each element that pay for setting it up and joining it with the tensor's.
const LEAST_UPDATES: i64 = 2;

/// A tensor that is only updated.
struct Updated {
    argument: ValueId,
    dtype: DType,
    extents: Vec<Dim>,
    atomic: Atomic,
    join: ReduceOp,
    /// Updates of a block; of those in loops, in one turn.
    updates: i64,
}

/// The tensors of an instance that are only updated.
pub(in crate::cpu) struct Privatized {
    tensors: Vec<Updated>,
}

impl Privatized {
    /// Finds them. There are none in a kernel that looks at what other blocks change, or orders what it does for them.
    pub(in crate::cpu) fn of(instance: &Instance) -> Privatized {
        let ops: Vec<&OpData> = instance.walk().into_iter().map(|op| instance.op(op)).collect();
        let mut privatized = Privatized { tensors: Vec::new() };
        if heeds_others(instance) {
            return privatized;
        }
        let accesses =
            ops.iter().filter_map(|&data| Some((data, Source::reached_by(instance, data)?.argument)));
        let mut others: Vec<ValueId> = Vec::new();
        for (data, argument) in accesses {
            let is_added =
                Updated::of(instance, data, argument).is_some_and(|updated| privatized.add(updated));
            others.extend((!is_added).then_some(argument));
        }
        privatized.tensors.retain(|updated| !others.contains(&updated.argument));
        privatized
    }

    /// Adds updates to those that are known of their tensor, if all are of one kind.
    fn add(&mut self, updated: Updated) -> bool {
        let Some(known) = self.tensors.iter_mut().find(|known| known.argument == updated.argument) else {
            self.tensors.push(updated);
            return true;
        };
        known.updates += updated.updates;
        known.atomic.kind == updated.atomic.kind
    }

    /// Bytes of a thread's own elements.
    pub(in crate::cpu) fn bytes(&self) -> u64 {
        (0..self.tensors.len()).map(|number| self.bytes_of(number)).sum()
    }

    /// Those of one tensor: an equal part of the room, or what all its elements take, if that is known and less.
    fn bytes_of(&self, number: usize) -> u64 {
        let updated = &self.tensors[number];
        let room = MOST_BYTES / self.tensors.len() as u64 / 64 * 64;
        let elements = updated.extents.iter().map(|dim| dim.as_const().map(|extent| extent as u64));
        let known = elements.product::<Option<u64>>().map(|elements| elements * updated.dtype.bytes() as u64);
        known.map_or(room, |bytes| bytes.next_multiple_of(64).min(room))
    }
}

impl Updated {
    /// The tensor of an operation, if that is an update that has no order, of all of a dense tensor.
    fn of(instance: &Instance, data: &OpData, argument: ValueId) -> Option<Updated> {
        let Op::Atomic(atomic) = data.op else { return None };
        let join = joined(atomic.kind).filter(|_| is_of_the_launch(&atomic))?;
        let Type::Tensor(tensor) = instance.ty(data.operands[0]) else { return None };
        let dtype = tensor.elem.known()?;
        let is_whole = tensor.layout.is_none() && Source::reached_by(instance, data)?.selections.is_empty();
        let updates = match instance.ty(data.operands[1]).as_tile() {
            Some(tile) => extents(&tile.shape).iter().product(),
            None => 1,
        };
        let extents = tensor.extents.clone();
        is_whole.then_some(Updated { argument, dtype, extents, atomic, join, updates })
    }
}

/// A range of blocks that begins.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Range<'c> {
    /// Whether no other thread runs blocks of the launch meanwhile.
    pub(in crate::cpu) is_alone: IntValue<'c>,
    pub(in crate::cpu) blocks: IntValue<'c>,
    /// [`Privatized::bytes`] of the thread's own.
    pub(in crate::cpu) own_memory: PointerValue<'c>,
}

/// Where a range updates a tensor that is only updated.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Own<'c> {
    /// Elements that nobody else comes to: the tensor's where the thread is alone, or of its own.
    pub(in crate::cpu) first: PointerValue<'c>,
    /// Whether updates go there.
    pub(in crate::cpu) is_used: IntValue<'c>,
    /// How many there are in the thread's own memory: none if they don't go there.
    private: IntValue<'c>,
}

/// By tensor argument.
pub(in crate::cpu) type Owns<'c> = HashMap<ValueId, Own<'c>>;

impl Privatized {
    /// Decides for a range which tensors it updates in memory of its own, and sets that up.
    pub(in crate::cpu) fn begin<'c>(
        &self,
        ir: &Ir<'c>,
        range: Range<'c>,
        arguments: &HashMap<ValueId, Value<'c>>,
        sizes: &HashMap<String, IntValue<'c>>,
    ) -> Owns<'c> {
        let mut offset = 0;
        let own = self.tensors.iter().enumerate().map(|(number, updated)| {
            let memory = ir.bytes_further(range.own_memory, ir.i64(offset));
            let bytes = self.bytes_of(number) as i64;
            offset += bytes;
            let each = updated.extents.iter().map(|dim| ir.dim(dim, &|name| sizes[name]));
            let count = each.reduce(|a, b| ir.mul(a, b)).expect("verified: a tensor has rank 1 or more");
            let has_room = ir.icmp(IntPredicate::ULE, count, ir.i64(bytes / updated.dtype.bytes() as i64));
            let updates = ir.mul(range.blocks, ir.i64(updated.updates));
            let pays = ir.icmp(IntPredicate::UGE, updates, ir.mul(count, ir.i64(LEAST_UPDATES)));
            let is_private = ir.all([has_room, pays, ir.xor(range.is_alone, ir.bool(true))]);
            let tensor = arguments[&updated.argument];
            let own = Own {
                first: ir.select(range.is_alone, tensor, memory.into()).into_pointer_value(),
                is_used: ir.or(range.is_alone, is_private),
                private: ir.select_int(is_private, count, ir.i64(0)),
            };
            let neutral = updated.neutral(ir);
            own.each(ir, |i| ir.store(ir.element(neutral.get_type().into(), memory, i), neutral.into()));
            (updated.argument, own)
        });
        own.collect()
    }

    /// Joins what the range amounts to in its own memory with the tensors.
    pub(in crate::cpu) fn end<'c>(
        &self,
        ir: &Ir<'c>,
        owns: &Owns<'c>,
        arguments: &HashMap<ValueId, Value<'c>>,
    ) {
        for updated in &self.tensors {
            let own = owns[&updated.argument];
            let neutral = updated.neutral(ir);
            let ty = neutral.get_type().into();
            let base = arguments[&updated.argument].into_pointer_value();
            own.each(ir, |i| {
                let word = ir.load(ty, ir.element(ty, own.first, i)).into_int_value();
                ir.if_then(ir.icmp(IntPredicate::NE, word, neutral), || {
                    let value = ir.number(word, updated.dtype);
                    ir.atomic(updated.joining(), updated.dtype, ir.element(ty, base, i), &[value]);
                });
            });
        }
    }
}

impl Updated {
    /// The bits of what changes nothing.
    fn neutral<'c>(&self, ir: &Ir<'c>) -> IntValue<'c> {
        ir.word(ir.literal(self.join.identity(self.dtype), self.dtype), self.dtype)
    }

    /// The operation that joins what several updates amount to: of what was subtracted, that is the negative sum.
    fn joining(&self) -> Site {
        let kind = if self.atomic.kind == AtomicKind::Sub { AtomicKind::Add } else { self.atomic.kind };
        site_of(Atomic { kind, ..self.atomic })
    }
}

impl<'c> Own<'c> {
    /// Emits what is done with each element in the thread's own memory.
    fn each(&self, ir: &Ir<'c>, body: impl FnOnce(IntValue<'c>)) {
        ir.each((ir.i64(0), self.private, ir.i64(1)), LoopHint::Rolled, body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::compiled::assembly;

    /// Updates of bins, and what stands behind them.
    fn bins(dtype: &str, update: &str, rest: &str) -> Instance {
        let one = if dtype == "f32" { "1.0" } else { "1" };
        let source = format!(
            "kernel @k(%x: tensor<n x i32>, %grid: mut tensor<n x {dtype}>, %y: mut tensor<b x {dtype}>) {{
  %vx = partition %x [256] : partition<n x i32, [256]>
  %vg = partition %grid [256] : mut partition<n x {dtype}, [256]>
  %i = block_index %vg : index
  %none = constant -1 : i32
  %t = load_masked %vx[%i] pad %none : tile<256 x i32>
  %one = constant {one} : {dtype}
  %ones = splat %one : tile<256 x {dtype}>
  %old = atomic {update} device %y[%t], %ones : tile<256 x {dtype}>
{rest}}}
"
        );
        Instance::parse(&source, &[]).unwrap()
    }

    #[test]
    fn tensors_are_privatized_that_nobody_looks_at() {
        let found =
            |dtype: &str, update: &str, rest: &str| Privatized::of(&bins(dtype, update, rest)).tensors.len();
        for update in ["add", "sub", "min", "max", "and", "or", "xor"] {
            assert_eq!(found("u32", &format!("{update} relaxed"), ""), 1, "{update}");
        }
        assert_eq!(found("u32", "swap relaxed", ""), 0, "the last one stays");
        assert_eq!(found("f32", "add relaxed", ""), 1);
        assert_eq!(found("u32", "add release", ""), 0, "it says that what stands before it is done");
        assert_eq!(found("u32", "add relaxed", "  store_masked %vg, %old\n"), 0, "its result is used");
        let again = "  %again = atomic add relaxed device %y[%t], %ones : tile<256 x u32>\n";
        assert_eq!(found("u32", "add relaxed", again), 1);
        assert_eq!(found("u32", "max relaxed", again), 0, "the largest of sums depends on the order");
        let seen =
            "  %seen = atomic load relaxed device %y[%t] : tile<256 x u32>\n  store_masked %vg, %seen\n";
        assert_eq!(found("u32", "add relaxed", seen), 0, "it is read");
    }

    /// One atomic instruction is for ranges for which it doesn't pay, the other for joining.
    #[test]
    fn updates_are_additions_in_memory() {
        let code = assembly(&bins("u32", "add relaxed", ""), "x86-64-v3");
        assert_eq!(code.matches("lock").count(), 2, "{code}");
        assert!(code.contains("\tincl\t("), "{code}");
        let room = Privatized::of(&bins("u32", "add relaxed", "")).bytes();
        assert_eq!(room, MOST_BYTES, "how many bins there are is known at run time");
    }
}
