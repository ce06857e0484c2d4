//! Stores of tiles to the same place of their tensors share one loop, which stands where the last of the stores does. What
//! only this loop reads is computed in it ([`super::consumer`]), so that a kernel of elementwise ops makes one pass over
//! its tiles: an optimizer's step reads gradient, parameter and moments from their tensors and writes three of them back.
//!
//! Between the stores that share a loop there are only ops on elements and loads of tensors that none of the stores writes.
//! A load of a tile that its block also writes ([`Fusion::is_replaced`]) is read in the loop if nothing but the loop writes
//! there.

use super::Fusion;
use super::consumer::Consumer;
use tile_ir::kernel::{OpData, OpId};
use tile_ir::types::PartitionType;
use tile_ir::view::Source;
use tile_ir::{Instance, Op, RegionId, Type, ValueId};

/// The loops of an instance's stores.
#[derive(Default)]
pub(super) struct Together {
    /// The stores of each loop, in order.
    loops: Vec<Vec<OpId>>,
}

impl Together {
    /// Finds the loops of an instance, whose uses have been collected.
    pub(super) fn of(fusion: &Fusion<'_>) -> Together {
        let mut together = Together::default();
        together.collect(fusion, fusion.instance.body());
        together
    }

    fn collect(&mut self, fusion: &Fusion<'_>, region: RegionId) {
        let instance = fusion.instance;
        let mut open: Vec<OpId> = Vec::new();
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            data.regions.iter().for_each(|&inner| self.collect(fusion, inner));
            if data.op.is_store() {
                if !open.iter().all(|&store| fusion.may_share_loop(instance.op(store), data)) {
                    self.loops.push(std::mem::take(&mut open));
                }
                open.push(op);
            } else if !open.iter().all(|&store| comes_between(instance, instance.op(store), data)) {
                self.loops.push(std::mem::take(&mut open));
            }
        }
        self.loops.extend(Some(open).filter(|open| !open.is_empty()));
    }

    /// The number of the loop that does a store.
    pub(super) fn number(&self, store: OpId) -> Option<usize> {
        self.loops.iter().position(|stores| stores.contains(&store))
    }
}

/// The argument that a load or a store reaches.
fn argument(instance: &Instance, access: &OpData) -> ValueId {
    Source::reached_by(instance, access).expect("loads and stores reach tensors").argument
}

/// Whether an op may stand between a store and the loop that does it.
fn comes_between(instance: &Instance, store: &OpData, data: &OpData) -> bool {
    match &data.op {
        op if op.is_load() => argument(instance, data) != argument(instance, store),
        Op::Partition(_) | Op::View(_) | Op::Splat(_) | Op::Iota { .. } | Op::Broadcast(_) => true,
        op => op.is_leaf(),
    }
}

impl<'a> Fusion<'a> {
    /// Whether two stores of a region are of elements that ops on elements give, to the same places of dense tensors.
    fn may_share_loop(&self, first: &OpData, second: &OpData) -> bool {
        let partition = |data: &OpData| -> Option<&'a PartitionType> {
            let cut = self.instance.ty(self.definition(data.operands[0])?.operands[0]);
            // Of what a number selects, the one may exist and the other not.
            let is_selected = !Source::reached_by(self.instance, data)?.selections.is_empty();
            let is_direct = !is_selected && matches!(cut, Type::Tensor(tensor) if tensor.layout.is_none());
            let is_computed = self.definition(data.operands[1])?.op.is_leaf();
            self.instance.ty(data.operands[0]).as_partition().filter(|_| is_direct && is_computed)
        };
        let (Some(a), Some(b)) = (partition(first), partition(second)) else { return false };
        first.op == second.op
            && first.tile_index() == second.tile_index()
            && argument(self.instance, first) != argument(self.instance, second)
            && a.tensor.extents == b.tensor.extents
            && (&a.tile, &a.steps, &a.spanned) == (&b.tile, &b.steps, &b.spanned)
    }

    /// Whether a load is of the tile that the loop which alone reads it stores, and nothing else is ever stored to that tensor.
    pub(super) fn is_replaced(&self, load: &OpData) -> bool {
        let instance = self.instance;
        let consumer = load.results.first().and_then(|tile| self.consumers.get(tile));
        let Some(&Consumer::Stores(number)) = consumer else { return false };
        let mut stores = self.together.loops[number].iter().map(|&store| instance.op(store));
        let is_own =
            |store: &OpData| store.operands[0] == load.operands[0] && store.tile_index() == load.tile_index();
        let tensor = argument(instance, load);
        let writes = |data: &&OpData| {
            let is_written = |source: Source| data.op.effect().writes() && source.argument == tensor;
            Source::reached_by(instance, data).is_some_and(is_written)
        };
        let ops = instance.walk().into_iter().map(|op| instance.op(op));
        stores.any(is_own) && ops.filter(writes).count() == 1
    }

    /// The stores whose loop stands where this op does: of a store that shares the loop of a later one none, of other ops the
    /// op alone.
    pub(in super::super) fn done_with(&self, data: &'a OpData) -> Vec<&'a OpData> {
        let is_it = |store: &OpId| std::ptr::eq(self.instance.op(*store), data);
        match self.together.loops.iter().find(|stores| stores.iter().any(is_it)) {
            None => vec![data],
            Some(stores) if stores.last().is_some_and(is_it) => {
                stores.iter().map(|&store| self.instance.op(store)).collect()
            }
            Some(_) => Vec::new(),
        }
    }

    /// The tiles that are read from tensors to compute these for a place, at that place alone: not what a flip, say, reads
    /// elsewhere.
    pub(in super::super) fn read_in_place(&self, tiles: &[ValueId]) -> Vec<ValueId> {
        let in_place = self.computed_from(tiles, |data| data.op.is_leaf());
        let others = in_place.iter().filter(|data| !data.op.is_leaf() && !data.op.is_load());
        let operands: Vec<ValueId> = others.flat_map(|data| data.operands.iter().copied()).collect();
        let elsewhere = self.computed_from(&operands, |_| true);
        let is_in_place = |data: &&&OpData| !elsewhere.iter().any(|other| std::ptr::eq(*other, **data));
        let loads = in_place.iter().filter(|data| data.op.is_load()).filter(is_in_place);
        loads.map(|load| load.results[0]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::Machine;
    use crate::options::Cpu;
    use crate::system::System;
    use inkwell::context::Context;

    /// How many tiles are stored in scratch memory, and how many stores each loop does, of tiles `%x1` that is read only and
    /// `%p1` and `%q1` that are written.
    fn loops(body: &str) -> (usize, Vec<usize>) {
        let instance = Instance::parse(&source(body), &[]).unwrap();
        let fusion = Fusion::of(&instance);
        let ops = instance.region(instance.body()).ops.iter().map(|&op| instance.op(op));
        let stores = ops.filter(|data| data.op.is_store());
        let numbers = stores.map(|store| fusion.done_with(store).len()).filter(|&number| number > 0);
        (fusion.stored.len(), numbers.collect())
    }

    fn source(body: &str) -> String {
        format!(
            "kernel @k(%x: tensor<n x f32>, %p: mut tensor<n x f32>, %q: mut tensor<n x f32>) {{
  %vx = partition %x [256] : partition<n x f32, [256]>
  %vp = partition %p [256] : mut partition<n x f32, [256]>
  %vq = partition %q [256] : mut partition<n x f32, [256]>
  %i = block_index %vp : index
  %zero = constant 0.0 : f32
  %x1 = load_masked %vx[%i] pad %zero : tile<256 x f32>
  %p1 = load_masked %vp pad %zero : tile<256 x f32>
  %q1 = load_masked %vq pad %zero : tile<256 x f32>
{body}}}
"
        )
    }

    const PRODUCTS: &str = "  %s = add %x1, %p1 : tile<256 x f32>
  %c = mul %s, %s : tile<256 x f32>
  %d = mul %c, %q1 : tile<256 x f32>
";

    #[test]
    fn stores_share_a_loop_and_what_they_need_is_computed_in_it() {
        let both = format!("{PRODUCTS}  store_masked %vp, %c\n  store_masked %vq, %d\n");
        assert_eq!(loops(&both), (0, vec![2]));
        let between = format!(
            "{PRODUCTS}  store_masked %vp, %c\n  %e = exp %d : tile<256 x f32>\n  store_masked %vq, %e\n"
        );
        assert_eq!(loops(&between), (0, vec![2]));
    }

    #[test]
    fn what_is_read_back_in_between_has_been_stored() {
        let again = "  store_masked %vp, %c
  %p2 = load_masked %vp pad %zero : tile<256 x f32>
  %e = mul %p2, %d : tile<256 x f32>
  store_masked %vq, %e
";
        let (stored, numbers) = loops(&format!("{PRODUCTS}{again}"));
        assert_eq!(numbers, [1, 1]);
        assert!(stored > 0, "`%d` is needed when `%p` has been written");
    }

    #[test]
    fn a_tile_that_is_written_twice_is_not_read_in_the_loop_of_either_store() {
        let twice =
            format!("{PRODUCTS}  store_masked %vp, %c\n  store_masked %vp, %s\n  store_masked %vq, %d\n");
        let (stored, numbers) = loops(&twice);
        assert_eq!(numbers, [1, 2]);
        assert!(stored > 0);
    }

    #[test]
    fn a_sum_of_a_row_needs_the_row_before() {
        let summed = format!(
            "{PRODUCTS}  %r = reduce sum %c axis 0 : tile<1 x f32>
  %all = broadcast %r : tile<256 x f32>
  %e = mul %d, %all : tile<256 x f32>
  store_masked %vp, %e
  store_masked %vq, %d
"
        );
        let (stored, numbers) = loops(&summed);
        assert_eq!(numbers, [2]);
        assert!(stored > 0, "`%c` is read by two loops");
    }

    /// If it went through each way to a tile there were 2⁶⁴.
    #[test]
    fn what_many_ops_need_is_gone_through_once() {
        let mut body =
            "  %u = add %x1, %p1 : tile<256 x f32>\n  %t0 = add %u, %q1 : tile<256 x f32>\n".to_owned();
        for i in 0..64 {
            body += &format!("  %t{} = mul %t{i}, %t{i} : tile<256 x f32>\n", i + 1);
        }
        body += "  store_masked %vp, %t64\n  store_masked %vq, %t63\n";
        assert_eq!(loops(&body), (0, vec![2]));
        let instance = Instance::parse(&source(&body), &[]).unwrap();
        let (context, machine) = (Context::create(), Machine::cpu(Cpu::Host, System::host()).unwrap());
        let (module, _) = crate::cpu::emit(&context, &instance, &machine, "k").unwrap();
        let text = module.print_to_string().to_string();
        assert!(text.matches(" fmul ").count() < 64 * 8, "each of some loops multiplies once");
    }
}
