//! The one loop in which all uses of a tile end. What only that loop reads is computed in it, whatever the number of uses:
//! an element that several of them need at an index is computed once.
//!
//! There are two kinds of such loops, which differ in the index at which they read. The loop of stores
//! ([`super::together`]) reads every tile at the index that it stores. The loop of an op that joins pieces reads a tile at
//! an index for each way to it through parts, as with the halves of pairs; LLVM merges the reads of what these have in common.
//! A tile to which many ways lead is stored: parts of sums of parts would be computed twice as often with each step.

use super::super::elements::splits_axes;
use super::super::movement::is_one_loop;
use super::super::region::extents;
use super::{Fusion, MOST_LOOPS, Use, is_tile};
use std::collections::{HashMap, HashSet};
use tile_ir::kernel::{OpData, OpId};
use tile_ir::ops::Movement;
use tile_ir::{Op, ValueId};

/// The most indices at which a loop that joins pieces computes an element of a tile.
const MOST_WAYS: usize = 16;

/// How a loop that joins pieces comes to elements of a tile: from which piece, and through which ops that read at another index
/// than their own.
type Ways = HashSet<Vec<(OpId, usize)>>;

/// A loop that computes what it alone reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Consumer {
    /// Of the op that joins pieces which take turns in memory.
    Pieces(OpId),
    /// Of stores, by its number in [`super::together::Together`].
    Stores(usize),
}

impl<'a> Fusion<'a> {
    /// Finds the tiles that one loop alone reads, and computes. In reverse order, so that what becomes of a tile is known
    /// before the tile.
    pub(super) fn find_consumers(&mut self) {
        let instance = self.instance;
        let mut ways = HashMap::new();
        for op in instance.walk().into_iter().rev() {
            let data = instance.op(op);
            let &[tile] = data.results.as_slice() else { continue };
            let consumer = self.only_consumer(tile).filter(|_| is_tile(instance, tile));
            let is_computed = |&consumer: &Consumer| data.op.is_load() || self.passes_on(consumer, data);
            let Some(consumer) = consumer.filter(is_computed) else { continue };
            let to_tile = self.ways_to(tile, &ways);
            if to_tile.len() <= MOST_WAYS {
                ways.insert(tile, to_tile);
                self.consumers.insert(tile, consumer);
            }
        }
    }

    /// How the one loop that reads a tile comes to it, where those are known of what it computes from the tile. In the loop of
    /// stores every tile is read at one index, without any.
    fn ways_to(&self, tile: ValueId, known: &HashMap<ValueId, Ways>) -> Ways {
        let ways = self.uses[&tile].iter().flat_map(|of| {
            let data = self.instance.op(of.op);
            let onwards = data.results.first().and_then(|result| known.get(result));
            match onwards {
                None if data.op.is_store() => Vec::new(),
                None => vec![vec![(of.op, of.operand)]],
                Some(ways) if data.op.is_leaf() => ways.iter().cloned().collect(),
                Some(ways) => ways.iter().map(|way| [way.as_slice(), &[(of.op, 0)]].concat()).collect(),
            }
        });
        ways.collect()
    }

    /// The loop that all uses of a tile end up in, if it is one.
    fn only_consumer(&self, tile: ValueId) -> Option<Consumer> {
        let uses = self.uses.get(&tile)?;
        let consumer = |u: &Use| self.consumer(u).filter(|_| self.home.get(&tile) == Some(&u.region));
        let first = consumer(uses.first()?)?;
        let is_few = match first {
            Consumer::Pieces(_) => uses.len() <= MOST_LOOPS,
            Consumer::Stores(_) => true,
        };
        (is_few && uses.iter().all(|u| consumer(u) == Some(first))).then_some(first)
    }

    /// The loop that a use stands in, or ends up in.
    fn consumer(&self, of: &Use) -> Option<Consumer> {
        let data = self.instance.op(of.op);
        if data.op.is_store() {
            return self.together.number(of.op).filter(|_| of.operand == 1).map(Consumer::Stores);
        }
        if is_one_loop(self.instance, data) {
            return Some(Consumer::Pieces(of.op));
        }
        let &consumer = self.consumers.get(data.results.first()?)?;
        self.passes_on(consumer, data).then_some(consumer)
    }

    /// Whether the loop computes an element of what an op gives from one of each operand: at the same place, in that of
    /// stores, and in that of pieces at one that takes no division to find.
    fn passes_on(&self, consumer: Consumer, data: &OpData) -> bool {
        match (consumer, &data.op) {
            (Consumer::Pieces(_), Op::Movement(movement)) => matches!(movement, Movement::Extract { .. }),
            (Consumer::Pieces(_), Op::Reshape(_)) => self.splits_axes(data),
            (_, op) => op.is_leaf(),
        }
    }

    /// Whether one loop alone reads a tile, and computes it.
    pub(super) fn has_one_consumer(&self, tile: ValueId) -> bool {
        self.consumers.contains_key(&tile)
    }

    fn splits_axes(&self, data: &OpData) -> bool {
        let shape = |tile| self.shape_of(tile).map(extents).unwrap_or_default();
        splits_axes(&shape(data.operands[0]), &shape(data.results[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::Instance;
    use tile_ir::ops::BinaryOp;

    /// How many tiles the loop that joins what is made of pairs computes, where these lines make `%f` of the first halves,
    /// `%a`.
    fn computed_where_pairs_are_joined(factor: &str) -> usize {
        let source = format!(
            "kernel @k(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{
  %vx = partition %x [256] : partition<n x f32, [256]>
  %vy = partition %y [256] : mut partition<n x f32, [256]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
  %x1 = load_masked %vx[%i] pad %zero : tile<256 x f32>
  %pairs = reshape %x1 : tile<128 x 2 x f32>
  %a = extract %pairs [0, 0] : tile<128 x 1 x f32>
  %b = extract %pairs [0, 1] : tile<128 x 1 x f32>
{factor}
  %s = add %f, %b : tile<128 x 1 x f32>
  %d = sub %a, %b : tile<128 x 1 x f32>
  %turned = cat %d, %s axis 1 : tile<128 x 2 x f32>
  %flat = reshape %turned : tile<256 x f32>
  store_masked %vy, %flat
}}
"
        );
        let instance = Instance::parse(&source, &[]).unwrap();
        let fusion = Fusion::of(&instance);
        assert!(fusion.consumers.keys().all(|&tile| !fusion.is_stored(tile)));
        fusion.consumers.len()
    }

    #[test]
    fn what_joined_pieces_are_made_of_is_computed_where_they_are_joined() {
        let number = computed_where_pairs_are_joined("  %f = neg %a : tile<128 x 1 x f32>");
        assert_eq!(number, 7, "the load, pairs, their halves, `%f`, `%s` and `%d`");
    }

    #[test]
    fn halves_of_rows_are_joined_in_one_loop() {
        let source = "kernel @k(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [256] : partition<n x f32, [256]>
  %vy = partition %y [256] : mut partition<n x f32, [256]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
  %x1 = load_masked %vx[%i] pad %zero : tile<256 x f32>
  %a = extract %x1 [0] : tile<128 x f32>
  %b = extract %x1 [128] : tile<128 x f32>
  %s = add %a, %b : tile<128 x f32>
  %d = sub %a, %b : tile<128 x f32>
  %turned = cat %d, %s axis 0 : tile<256 x f32>
  store_masked %vy, %turned
}
";
        let instance = Instance::parse(source, &[]).unwrap();
        let fusion = Fusion::of(&instance);
        assert_eq!(fusion.consumers.len(), 5, "the load, its halves, `%s` and `%d`");
    }

    /// Each step reads two parts of what the step before gives, so that twice as many ways lead to it.
    #[test]
    fn what_is_read_in_many_ways_is_stored() {
        let steps: String = (1..=40)
            .map(|step| {
                let (before, extent) = (step - 1, 128 - step);
                format!(
                    "  %a{step} = extract %t{before} [0] : tile<{extent} x f32>
  %b{step} = extract %t{before} [1] : tile<{extent} x f32>
  %t{step} = add %a{step}, %b{step} : tile<{extent} x f32>
"
                )
            })
            .collect();
        let source = format!(
            "kernel @k(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{
  %vx = partition %x [128] : partition<n x f32, [128]>
  %vy = partition %y [176] : mut partition<n x f32, [176]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
  %t0 = load_masked %vx[%i] pad %zero : tile<128 x f32>
{steps}  %n = neg %t40 : tile<88 x f32>
  %c = cat %t40, %n axis 0 : tile<176 x f32>
  store_masked %vy, %c
}}
"
        );
        let instance = Instance::parse(&source, &[]).unwrap();
        let fusion = Fusion::of(&instance);
        let steps =
            instance.walk().into_iter().map(|op| instance.op(op)).filter(|data| data.operands.len() == 2);
        let sums = steps.filter(|data| data.op == Op::Binary(BinaryOp::Add)).map(|data| data.results[0]);
        let stored: Vec<usize> =
            sums.zip(1..).filter(|&(tile, _)| fusion.is_stored(tile)).map(|(_, step)| step).collect();
        // Two ways lead to the last, one of them by its negative, and twice as many to each before it.
        assert_eq!(stored, (1..=36).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_reduction_reads_too_is_stored() {
        let factor = "  %all = reduce sum %a axis 0 : tile<1 x 1 x f32>
  %f = broadcast %all : tile<128 x 1 x f32>";
        assert_eq!(computed_where_pairs_are_joined(factor), 3, "`%b`, `%s` and `%d`");
    }
}
