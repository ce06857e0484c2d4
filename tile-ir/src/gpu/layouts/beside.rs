//! Loads of tiles that meet the sums of products element by element: a residual, a tile that is scaled and added.
//!
//! Such a tile is wanted where the sums lie. If it is loaded to there it needs no conversion, for which the epilogue of a
//! product would keep shared memory that tiles of its factors could have.

use crate::analysis::uses::Uses;
use crate::gpu::{Product, shape_of};
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{Carried, Op};
use std::collections::HashMap;

/// The loads of a kernel whose tiles nothing but ops on [`sums`] of a product want, by the product.
pub(super) fn beside_sums(kernel: &Kernel, sums: &HashMap<ValueId, OpId>) -> HashMap<OpId, OpId> {
    let finder = Finder { kernel, uses: Uses::of(kernel), sums, definitions: kernel.definitions() };
    kernel.walk().into_iter().flat_map(|op| finder.loads(kernel.op(op))).collect()
}

/// The tiles that are sums of a product, or made of them element by element, by the product.
pub(super) fn sums(kernel: &Kernel, products: &HashMap<OpId, Product>) -> HashMap<ValueId, OpId> {
    let mut sums = HashMap::new();
    sums_in(kernel, kernel.body(), products, &mut sums);
    sums
}

/// Adds the sums of a region, of loops in it after those of their bodies.
fn sums_in(
    kernel: &Kernel,
    region: RegionId,
    products: &HashMap<OpId, Product>,
    sums: &mut HashMap<ValueId, OpId>,
) {
    for &op in &kernel.region(region).ops {
        let data = kernel.op(op);
        data.regions.iter().for_each(|&inner| sums_in(kernel, inner, products, sums));
        let sum = |value: &ValueId| sums.get(value).copied();
        let found: Vec<Option<OpId>> = match &data.op {
            Op::Mma | Op::MmaScaled => vec![products.contains_key(&op).then_some(op)],
            leaf if leaf.is_leaf() => vec![data.operands.iter().find_map(sum)],
            Op::For => {
                let end =
                    kernel.region(data.regions[0]).ops.last().expect("verified: a loop's region yields");
                kernel.op(*end).operands.iter().map(sum).collect()
            }
            _ => Vec::new(),
        };
        let found = data.results.iter().zip(found);
        sums.extend(found.filter_map(|(&result, product)| Some((result, product?))));
    }
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
                let first = data.operands[Carried::FOR.initial..].iter().copied();
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
