//! Loads of tiles that meet the sums of products element by element: a residual, a tile that is scaled and added.
//!
//! Such a tile is wanted where the sums lie. If it is loaded to there it needs no conversion, for which the epilogue of a
//! product would keep shared memory that tiles of its factors could have.

use crate::gpu::uses::Uses;
use crate::gpu::{Product, shape_of};
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::Op;
use std::collections::HashMap;

/// The loads of a kernel whose tiles nothing but ops on [`sums`] of a product want, by the product.
pub(super) fn beside_sums(kernel: &Kernel, sums: &HashMap<ValueId, OpId>) -> HashMap<OpId, OpId> {
    let results = |op: OpId| kernel.op(op).results.iter().map(move |&result| (result, op));
    let definitions = kernel.walk().into_iter().flat_map(results).collect();
    let finder = Finder { kernel, uses: Uses::of(kernel), sums, definitions };
    kernel.walk().into_iter().flat_map(|op| finder.loads(kernel.op(op))).collect()
}

/// The tiles that are sums of a product, or made of them element by element, by the product.
pub(super) fn sums(kernel: &Kernel, products: &HashMap<OpId, Product>) -> HashMap<ValueId, OpId> {
    let mut sums = HashMap::new();
    for op in kernel.walk() {
        let data = kernel.op(op);
        let known = |values: &[ValueId]| values.iter().find_map(|value| sums.get(value).copied());
        let product = match &data.op {
            Op::Mma => products.contains_key(&op).then_some(op),
            leaf if leaf.is_leaf() => known(&data.operands),
            _ => None,
        };
        if let Some(product) = product {
            sums.extend(data.results.iter().map(|&result| (result, product)));
        }
        // The walk comes to a loop before it comes to what the loop yields.
        if data.op == Op::Yield {
            let yielded: Vec<Option<OpId>> =
                data.operands.iter().map(|value| sums.get(value).copied()).collect();
            let results = results_of_loop(kernel, op);
            sums.extend(results.into_iter().zip(yielded).filter_map(|(result, sum)| Some((result, sum?))));
        }
    }
    sums
}

/// What a `for` whose region ends with this `yield` gives; nothing of other ops.
fn results_of_loop(kernel: &Kernel, end: OpId) -> Vec<ValueId> {
    let region = kernel.region_of(end);
    let ends_here = |op: &OpId| kernel.op(*op).op == Op::For && Some(kernel.op(*op).regions[0]) == region;
    let found = kernel.walk().into_iter().find(ends_here);
    found.map_or_else(Vec::new, |op| kernel.op(op).results.clone())
}

struct Finder<'k> {
    kernel: &'k Kernel,
    uses: Uses,
    sums: &'k HashMap<ValueId, OpId>,
    definitions: HashMap<ValueId, OpId>,
}

impl Finder<'_> {
    /// The loads that an op joins with sums, or a loop begins its sums with.
    fn loads(&self, data: &OpData) -> Vec<(OpId, OpId)> {
        let sum = |value: &ValueId| self.sums.get(value).copied();
        let joined: Vec<(ValueId, OpId)> = match &data.op {
            Op::For => {
                let first = data.operands[2..].iter().copied();
                first.zip(&data.results).filter_map(|(first, result)| Some((first, sum(result)?))).collect()
            }
            leaf if leaf.is_leaf() => {
                let product = data.operands.iter().find_map(sum);
                let others = data.operands.iter().filter(|operand| sum(operand).is_none());
                others.filter_map(|&other| Some((other, product?))).collect()
            }
            _ => Vec::new(),
        };
        joined.into_iter().filter_map(|(tile, product)| Some((self.load_of(tile)?, product))).collect()
    }

    /// The load that a tile is made of by leaf ops of one tile, of which it is the only use.
    fn load_of(&self, tile: ValueId) -> Option<OpId> {
        self.uses.only(tile)?;
        let op = *self.definitions.get(&tile)?;
        let data = self.kernel.op(op);
        if data.op.is_load() {
            return Some(op);
        }
        let mut tiles = data.operands.iter().filter(|&&operand| shape_of(self.kernel, operand).is_some());
        match (data.op.is_leaf() || matches!(data.op, Op::Reshape(_)), tiles.next(), tiles.next()) {
            (true, Some(&only), None) => self.load_of(only),
            _ => None,
        }
    }
}
