//! Packed `a` is kept for the blocks that come next.
//!
//! Blocks of one row of the grid come one after the other and multiply the same rows of `a` by different columns of `b`. So
//! everything that a loop packs of `a` is kept side by side in scratch memory, as far as there is room, and the entry
//! records the scalars that the loads depended on. If they are the same for the next block, it packs `b` alone.
//!
//! Each multiplication has its factor in a **slot**. The last slot is shared by all multiplications for which there is no
//! room or whose factor the next block doesn't use; it stays in the second cache.

use super::super::fuse::Fusion;
use super::super::region::Emitter;
use super::Words;
use super::ahead::Next;
use super::factor::{behind_transposition, streamed_load};
use super::lasting::is_there_by_either;
use super::left::TensorA;
use super::plan::Plan;
use crate::cpu::memory::buffer::Buffer;
use crate::emit::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::cpu::KEPT_LEFT_BYTES;
use tile_ir::kernel::{LoadOperands, OpData};
use tile_ir::view::Source;
use tile_ir::{Instance, RegionId, ValueId};

/// A loop's `a` that is kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeptLeft {
    /// The scalars that decide what is packed, besides the loop's range and the rows that are needed.
    given: Vec<ValueId>,
    /// Multiplications whose factors are kept.
    slots: i64,
}

impl KeptLeft {
    /// What may be kept of a loop's product, so many bytes of each multiplication.
    pub(super) fn of(
        instance: &Instance,
        fusion: &Fusion<'_>,
        looped: &OpData,
        product: &OpData,
        bytes: u64,
    ) -> Option<KeptLeft> {
        let slots = KEPT_LEFT_BYTES / bytes.max(1);
        let body = looped.regions[0];
        let mut given =
            Given { fusion, body, counter: *instance.region(body).params.first()?, scalars: Vec::new() };
        let [(a, _), (b, b_is_transposed)] =
            [0, 1].map(|i| behind_transposition(fusion, product.operands[i]));
        given.add_load(instance, streamed_load(fusion, a)?, None)?;
        // How deep a turn is depends on where `b` ends along K as well, and on whether there is such a matrix in its stack.
        if let Some(load) = streamed_load(fusion, b) {
            given.add_load(instance, load, Some(usize::from(!b_is_transposed)))?;
        }
        (slots > 0).then_some(KeptLeft { given: given.scalars, slots: slots as i64 })
    }

    /// Words of memory that say what is kept.
    pub(super) fn words(&self) -> usize {
        1 + self.given.len() + RANGE
    }

    /// Slots, with the one for what isn't kept.
    pub(super) fn all_slots(&self) -> i64 {
        self.slots + 1
    }

    /// Whether the factors of the multiplication of this number are kept.
    fn has_slot<'c>(&self, ir: &Ir<'c>, number: IntValue<'c>) -> IntValue<'c> {
        ir.icmp(IntPredicate::ULT, number, ir.i64(self.slots))
    }
}

/// Whether a load at the same place gives another block the same: not of what the kernel writes, nor where elements that
/// don't exist are computed.
pub(super) fn gives_the_same_again(instance: &Instance, fusion: &Fusion<'_>, load: LoadOperands<'_>) -> bool {
    let is_written = instance.ty(load.view).as_partition().is_none_or(|view| view.tensor.mutable);
    !is_written && load.pad.is_none_or(|pad| fusion.is_constant(pad))
}

/// Scalars that loads of a loop's body are given.
struct Given<'f, 'a> {
    fusion: &'f Fusion<'a>,
    body: RegionId,
    counter: ValueId,
    scalars: Vec<ValueId>,
}

impl Given<'_, '_> {
    /// Adds what decides which elements a load gives, but for its index at an axis of its matrix that doesn't matter.
    fn add_load(&mut self, instance: &Instance, load: &OpData, but: Option<usize>) -> Option<()> {
        let selections = Source::reached_by(instance, load)?.selections;
        let selected = selections.into_iter().map(|selection| selection.index);
        let load = load.load()?;
        let but = match but {
            Some(axis) => Some(axis + load.index.len().checked_sub(2)?),
            None => None,
        };
        if !gives_the_same_again(instance, self.fusion, load) {
            return None;
        }
        let index = load.index.iter().enumerate().filter(|&(axis, _)| Some(axis) != but);
        selected.chain(index.map(|(_, &value)| value)).try_for_each(|value| self.add(value))
    }

    /// Adds a scalar; `None` for one that the body computes.
    fn add(&mut self, scalar: ValueId) -> Option<()> {
        if scalar == self.counter || self.fusion.is_constant(scalar) || self.scalars.contains(&scalar) {
            return Some(());
        }
        let is_outside = self.fusion.home(scalar) != Some(self.body);
        is_outside.then(|| self.scalars.push(scalar))
    }
}

/// What an entry knows of a product's kept factors.
pub(super) struct KeptRecord<'c> {
    /// Whether anything is kept.
    is_there: PointerValue<'c>,
    /// What it was packed for.
    given: Vec<PointerValue<'c>>,
}

impl<'c> KeptRecord<'c> {
    /// That of so many [words](KeptLeft::words).
    pub(super) fn of(ir: &Ir<'c>, kept: &KeptLeft, words: &Words<'c>) -> KeptRecord<'c> {
        let word = |number: usize| words.at(ir, ir.i64(number as i64));
        KeptRecord { is_there: word(0), given: (1..kept.words()).map(word).collect() }
    }
}

/// Scalars that are remembered besides those of loads: the loop's range and the rows.
const RANGE: usize = 3;

/// What a block has to do with the `a` that others pack.
#[derive(Clone, Copy)]
pub(super) struct Keeping<'c> {
    /// Whether an earlier block has packed what this one would.
    is_kept: IntValue<'c>,
    /// Whether the next block would pack the same.
    stays: IntValue<'c>,
}

impl<'c> Keeping<'c> {
    /// Whether what is packed is, or will be, of use to another block. Whoever reads `a` elsewhere must go by this as well:
    /// what is wanted counts as packed for the next block, and for the launch's next range.
    pub(super) fn is_wanted(&self, ir: &Ir<'c>) -> IntValue<'c> {
        ir.or(self.is_kept, self.stays)
    }

    /// Whether `a` of the multiplication that comes next, the one of this number, is packed by then.
    pub(super) fn is_there_next(
        &self,
        ir: &Ir<'c>,
        plan: &Plan,
        next: &Next<'c>,
        number: IntValue<'c>,
    ) -> IntValue<'c> {
        let kept = plan.kept_a.as_ref().expect("asked only of what is kept");
        ir.and(ir.select_int(next.is_here, self.is_kept, self.stays), kept.has_slot(ir, number))
    }
}

/// What is packed of `a` for one multiplication.
pub(super) struct PackedA<'c> {
    pub(super) buffer: Buffer<'c>,
    /// Whether nothing needs to be packed: it is there already, or `a` is read in its tensor.
    pub(super) is_there: Option<IntValue<'c>>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Whether an earlier block has packed what a loop would pack of `a`, and whether the next one would, whose scalars are
    /// given as far as they are known; the others are taken to stay as they are. From now on it has been packed, if one of
    /// these holds. `None` where nothing is kept.
    pub(super) fn keeping(
        &self,
        product: &OpData,
        plan: &Plan,
        range: [IntValue<'c>; RANGE],
        next: &[(ValueId, Value<'c>)],
    ) -> Option<Keeping<'c>> {
        let (ir, kept) = (self.ir, plan.kept_a.as_ref()?);
        let KeptRecord { is_there, given } = &self.entry.memories.kept[&product.results[0]];
        let i64 = ir.context.i64_type();
        let there = ir.load(i64.into(), *is_there).into_int_value();
        let now = kept.given.iter().map(|&value| self.index(value)).chain(range);
        let is_kept =
            now.zip(given).fold(ir.icmp(IntPredicate::NE, there, ir.i64(0)), |same, (now, &then)| {
                let before = ir.load(i64.into(), then).into_int_value();
                ir.store(then, now.into());
                ir.and(same, ir.icmp(IntPredicate::EQ, before, now))
            });
        let given = next.iter().filter(|(scalar, _)| kept.given.contains(scalar));
        let same = |&(scalar, then): &(ValueId, Value<'c>)| {
            ir.icmp(IntPredicate::EQ, self.index(scalar), then.into_int_value())
        };
        let same = ir.all(given.map(same));
        // The last block of a range has none behind it; of a persistent kernel's tiles nobody knows.
        let stays = if next.is_empty() { same } else { ir.and(same, self.differs(next)) };
        let keeping = Keeping { is_kept, stays };
        ir.store(*is_there, ir.zext_or_trunc(keeping.is_wanted(ir), 64).into());
        Some(keeping)
    }

    /// Where the multiplication of this number has its packed `a`; `None` where that is read where it is.
    pub(super) fn packed_a(
        &self,
        product: &OpData,
        plan: &Plan,
        keeping: Option<Keeping<'c>>,
        number: IntValue<'c>,
        in_tensor: Option<&TensorA<'c>>,
    ) -> Option<PackedA<'c>> {
        let (ir, buffer) = (self.ir, self.buffers.packed(product.results[0], 0, plan.packed)?);
        let is_read = in_tensor.map(|tensor| tensor.is_read);
        let (Some(kept), Some(keeping)) = (&plan.kept_a, keeping) else {
            return Some(PackedA { buffer, is_there: is_read });
        };
        let shared = ir.i64(kept.slots);
        let slot = ir.select_int(keeping.is_wanted(ir), ir.lesser(number, shared), shared);
        let buffer = self.buffers.further(&buffer, ir.mul(slot, ir.i64(plan.slot())));
        let is_there = ir.and(keeping.is_kept, kept.has_slot(ir, number));
        Some(PackedA { buffer, is_there: is_there_by_either(ir, is_read, Some(is_there)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::compiled::machine;

    /// What is kept of a product of tiles of 16×16 whose loop reads `a` at `index`, by how many scalars it goes and in how
    /// many slots.
    fn kept(index: &str, in_body: &str) -> Option<(usize, i64)> {
        let source = format!(
            "kernel @k(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>) {{
  %va = partition %a [16, 16] : partition<m x k x f32, [16, 16]>
  %vb = partition %b [16, 16] : partition<k x n x f32, [16, 16]>
  %vc = partition %c [16, 16] : mut partition<m x n x f32, [16, 16]>
  %i, %j = block_index %vc : index, index
  %0 = constant 0 : index
  %end = extent ceil_div(k, 16) : index
  %zero = constant 0.0 : f32
  %start = splat %zero : tile<16 x 16 x f32>
  %sum = for %p = %0 to %end carry (%acc = %start) : tile<16 x 16 x f32> {{
{in_body}    %ta = load_masked %va[{index}] pad %zero : tile<16 x 16 x f32>
    %tb = load_masked %vb[%p, %j] pad %zero : tile<16 x 16 x f32>
    %next = mma %ta, %tb, %acc : tile<16 x 16 x f32>
    yield %next
  }}
  store_masked %vc, %sum
}}
"
        );
        let instance = Instance::parse(&source, &[]).unwrap();
        let fusion = Fusion::of(&instance);
        let products = super::super::Products::of(&instance, &fusion, &machine("x86-64-v4"));
        products.remembered()[0].left.map(|kept| (kept.given.len(), kept.slots))
    }

    /// A slot has 16 rows of 256 elements, each with a vector of 16 that keeps it apart from the next, and as many as the
    /// loop is deep behind them.
    const SLOTS: i64 = (KEPT_LEFT_BYTES / ((16 * (256 + 16) + 256) * 4)) as i64;

    #[test]
    fn what_is_kept_goes_by_the_block_but_not_by_the_loop() {
        assert_eq!(kept("%i, %p", ""), Some((1, SLOTS)));
        assert_eq!(kept("%0, %p", ""), Some((0, SLOTS)));
        assert_eq!(kept("%i, %j", ""), Some((2, SLOTS)));
    }

    #[test]
    fn nothing_is_kept_where_the_loop_computes_what_it_reads() {
        assert_eq!(kept("%q, %p", "    %q = add %p, %i : index\n"), None);
    }
}
