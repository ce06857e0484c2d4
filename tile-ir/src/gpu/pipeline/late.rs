//! Products that are done a turn later than the numbers that they multiply.
//!
//! A turn one of whose right factors consumers bring to shared memory, and wait for each other, has none. Nor has one with
//! loops that multiply: a producer copies what the first product reads behind what these do, and waits for their turns,
//! which come after that product if it is done ahead.
//!
//! A turn that multiplies, computes with what comes of that, and multiplies again keeps matrix units and threads busy
//! by turns: each waits for the other. Nothing but the second product's own sums needs that product, so it can go on in
//! the turn after: its instructions are issued just after those of the next turn's first product, which is done ahead
//! for that, and go on while the threads compute. After the last turn the last one is done alone. Only when products
//! are done changes, no result.
//!
//! Another product of the turn whose sums nothing else needs goes on as well: it is issued just after the next product,
//! which the turn waits for, and goes on while that computes what the late one multiplies.
//!
//! What else a late product's sums go through in a turn is done with it. So is what it needs alone that changes the format or the
//! place of elements and nothing more: done early, that would be held in registers of its own for longer. What the
//! first product needs of its turn is done ahead with it.

use super::super::{LaidOut, Way, dtype_of};
use super::Pipelines;
use super::factor::{carries_sums, products_within};
use crate::analysis::uses::Uses;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{Carried, Op};
use std::collections::HashSet;

/// The most 32-bit registers of a thread for the sums of both products and their left factors. A consumer has 232 at
/// least; rows' sums, addresses and what is computed meanwhile need the others: causal attention with 192 for these just fits.
const MOST_WORDS: u64 = 200;

/// A product that is done a turn later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// The product of the loop just after whose instructions it is issued, a turn later.
    pub beside: OpId,
    /// What that needs of its turn, in order: done ahead of it, with it.
    pub ahead: Vec<OpId>,
    /// What the rest of the turn needs of what is done ahead.
    pub given: Vec<ValueId>,
    /// The late product.
    pub product: OpId,
    /// What the loop carries of its sums.
    pub sums: ValueId,
    /// What is done with it and before it, in order: what its sums go through, and what it alone needs.
    pub ops: Vec<OpId>,
    /// What these need of their own turn.
    pub values: Vec<ValueId>,
    /// The product of its own turn that goes on to the end of that, if there is one.
    pub overtaken: Option<Overtaken>,
}

/// A product whose sums only the next turn's needs. It is issued just after another one, though it stands before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaken {
    /// The product.
    pub product: OpId,
    /// The next product, which the turn waits for.
    pub by: OpId,
}

/// The body of a loop.
struct Body<'k> {
    kernel: &'k Kernel,
    uses: Uses,
    ops: &'k [OpId],
    /// What the loop carries, in a turn and after it.
    carried: Vec<(ValueId, ValueId)>,
    end: OpId,
}

impl Late {
    /// The late product of a loop with this body, if one pays and fits in registers.
    pub(super) fn of(laid_out: &LaidOut, pipelines: &Pipelines, region: RegionId) -> Option<Late> {
        let body = Body::of(&laid_out.instance, region)?;
        let is_brought = |op| pipelines.brought_right_for(op).is_some();
        let has_ring = |op| pipelines.factors(op).is_some();
        if laid_out.instance.walk_in(region).into_iter().any(is_brought)
            || products_within(&laid_out.instance, region).any(has_ring)
        {
            return None;
        }
        let is_product = |op: &OpId| pipelines.factors(*op).is_some();
        let product = body.ops.iter().copied().rfind(is_product)?;
        let is_movement = |op| is_movement(laid_out, op);
        let ops = body.ops_with(product, &is_movement)?;
        let in_ring = |value: ValueId| pipelines.holds(value);
        let values = body.values_for(product, &ops, &in_ring);
        let left = body.kernel.op(product).operands[0];
        let is_early = |op: &OpId| *op != product && is_product(op) && !ops.contains(op);
        let leads_to_it = |op: &OpId| {
            let reached = body.reached(*op, false);
            reached.contains(&left) || values.iter().any(|value| reached.contains(value))
        };
        let beside = body.ops.iter().copied().find(|op| is_early(op) && leads_to_it(op))?;
        let is_copied = |op| pipelines.replace(body.kernel.op(op));
        let ahead = body.ahead_of(beside, &is_copied, &is_movement)?;
        let given = body.given(beside, &ahead);
        let words = |products: &[OpId]| -> u64 {
            products.iter().map(|&product| words(laid_out, pipelines, product)).sum()
        };
        let result = body.kernel.op(product).results[0];
        let sums = body.carried.iter().find(|(_, yielded)| *yielded == result)?.0;
        let is_own = |op: &OpId| is_product(op) && ![product, beside].contains(op) && !ops.contains(op);
        let own: Vec<OpId> = body.ops.iter().copied().filter(is_own).collect();
        let pairs = own.windows(2).map(|pair| Overtaken { product: pair[0], by: pair[1] });
        let overtaken = pairs
            .filter(|pair| carries_sums(body.kernel, &body.uses, region, pair.product))
            .find(|pair| words(&[beside, product, pair.product, pair.by]) <= MOST_WORDS);
        let late = Late { beside, ahead, given, product, sums, ops, values, overtaken };
        (words(&[beside, product]) <= MOST_WORDS).then_some(late)
    }

    /// Orders ops as they are done, of the body of its loop.
    pub(super) fn order(&self, body: &[OpId], ops: &mut [OpId]) {
        let place = |op: OpId| body.iter().position(|&other| other == op);
        ops.sort_by_key(|&op| match self.overtaken {
            _ if op == self.beside => (None, false),
            Some(Overtaken { product, by }) if op == product => (place(by), true),
            _ => (place(op), false),
        });
    }

    /// Whether an op is done with it.
    pub fn does(&self, op: OpId) -> bool {
        self.product == op || self.ops.contains(&op)
    }

    /// Whether an op is done ahead of its turn.
    pub fn is_ahead(&self, op: OpId) -> bool {
        self.beside == op || self.ahead.contains(&op)
    }
}

impl<'k> Body<'k> {
    fn of(kernel: &'k Kernel, region: RegionId) -> Option<Body<'k>> {
        let region = kernel.region(region);
        let (&end, ops) = region.ops.split_last()?;
        let params = region.params.iter().skip(Carried::FOR.param).copied();
        let carried = params.zip(kernel.op(end).operands.iter().copied()).collect();
        Some(Body { kernel, uses: Uses::of(kernel), ops, carried, end })
    }

    fn uses(&self, op: OpId, values: &HashSet<ValueId>) -> bool {
        let data = self.kernel.op(op);
        let inside = data.regions.iter().flat_map(|&region| self.kernel.walk_in(region));
        let all = std::iter::once(op).chain(inside);
        all.into_iter().any(|op| self.kernel.op(op).operands.iter().any(|operand| values.contains(operand)))
    }

    /// What depends on an op's results, in its turn or in later ones too.
    fn reached(&self, op: OpId, in_later_turns: bool) -> HashSet<ValueId> {
        let mut reached: HashSet<ValueId> = self.kernel.op(op).results.iter().copied().collect();
        loop {
            let before = reached.len();
            for &op in self.ops {
                if self.uses(op, &reached) {
                    reached.extend(&self.kernel.op(op).results);
                }
            }
            let next = self.carried.iter().filter(|(_, yielded)| in_later_turns && reached.contains(yielded));
            let next: Vec<ValueId> = next.map(|&(param, _)| param).collect();
            reached.extend(next);
            if reached.len() == before {
                return reached;
            }
        }
    }

    /// What is done with a late product, in order; `None` where more depends on it than its sums of the next turn.
    fn ops_with(&self, product: OpId, is_movement: &dyn Fn(OpId) -> bool) -> Option<Vec<OpId>> {
        let reached = self.reached(product, true);
        let result = self.kernel.op(product).results[0];
        let yielded: Vec<ValueId> = self
            .carried
            .iter()
            .map(|&(_, yielded)| yielded)
            .filter(|value| reached.contains(value))
            .collect();
        let depends = |op: &OpId| self.kernel.op(*op).results.iter().any(|result| reached.contains(result));
        let mut late: HashSet<OpId> =
            self.ops.iter().copied().filter(|op| *op != product && depends(op)).collect();
        let is_plain = |&op: &OpId| self.kernel.op(op).op.is_leaf() || is_movement(op);
        let [left, right, _] = self.kernel.op(product).operands[..] else { return None };
        if yielded != [result]
            || self.uses.only(result) != Some(self.end)
            || [left, right].iter().any(|factor| reached.contains(factor))
            || !late.iter().all(is_plain)
        {
            return None;
        }
        for &op in self.ops.iter().rev() {
            let results = &self.kernel.op(op).results;
            let is_for_it = |&user: &OpId| user == product || late.contains(&user);
            if is_movement(op)
                && results.iter().all(|&result| self.uses.of_value(result).iter().all(is_for_it))
            {
                late.insert(op);
            }
        }
        Some(self.ops.iter().copied().filter(|op| late.contains(op)).collect())
    }

    /// What a product needs of its turn that isn't copied, in order; `None` where that is more than arithmetic.
    fn ahead_of(
        &self,
        product: OpId,
        is_copied: &dyn Fn(OpId) -> bool,
        is_movement: &dyn Fn(OpId) -> bool,
    ) -> Option<Vec<OpId>> {
        let mut needed: HashSet<ValueId> = self.kernel.op(product).operands.iter().copied().collect();
        let mut ahead = Vec::new();
        for &op in self.ops.iter().rev().filter(|&&op| !is_copied(op)) {
            let data = self.kernel.op(op);
            if data.results.iter().any(|result| needed.contains(result)) {
                if !data.op.is_leaf() && !is_movement(op) {
                    return None;
                }
                needed.extend(&data.operands);
                ahead.push(op);
            }
        }
        ahead.reverse();
        Some(ahead)
    }

    /// What others need of a product and of what is done ahead of it.
    fn given(&self, product: OpId, ahead: &[OpId]) -> Vec<ValueId> {
        let done = || ahead.iter().chain([&product]);
        let is_needed = |value: &&ValueId| {
            self.uses.of_value(**value).iter().any(|user| done().all(|other| other != user))
        };
        done().flat_map(|&op| &self.kernel.op(op).results).filter(is_needed).copied().collect()
    }

    /// What late ops and their product need of their own turn, besides what the loop carries of the product's sums, and what lies
    /// in a ring, where the product finds it.
    fn values_for(&self, product: OpId, ops: &[OpId], in_ring: &dyn Fn(ValueId) -> bool) -> Vec<ValueId> {
        let reached = self.reached(product, true);
        let late = |op: &OpId| *op == product || ops.contains(op);
        let early = self.ops.iter().filter(|op| !late(op)).flat_map(|&op| &self.kernel.op(op).results);
        let region = self.kernel.region_of(product).map(|region| &self.kernel.region(region).params);
        let defined: HashSet<ValueId> = early.chain(region.into_iter().flatten()).copied().collect();
        let mut values = Vec::new();
        for operand in ops.iter().chain([&product]).flat_map(|&op| &self.kernel.op(op).operands) {
            let is_own = defined.contains(operand) && !reached.contains(operand) && !in_ring(*operand);
            if is_own && !values.contains(operand) {
                values.push(*operand);
            }
        }
        values
    }
}

/// Whether an op changes the format or the place of elements, within the registers of a thread.
fn is_movement(laid_out: &LaidOut, op: OpId) -> bool {
    match laid_out.instance.op(op).op {
        Op::Cast(_) | Op::CastWith(..) | Op::SaturatingCast(_) | Op::Broadcast(_) | Op::Splat(_) => true,
        Op::ConvertLayout => matches!(laid_out.ways.get(&op), Some(Way::Renamed(_))),
        _ => false,
    }
}

/// The 32-bit registers of a thread that a product's sums and its left factor take.
fn words(laid_out: &LaidOut, pipelines: &Pipelines, product: OpId) -> u64 {
    let data: &OpData = laid_out.instance.op(product);
    let tiles = [data.operands[0], data.results[0]].into_iter().filter(|&tile| !pipelines.holds(tile));
    let words = |tile: ValueId| {
        let bytes = dtype_of(&laid_out.instance, tile).bytes() as u64;
        (laid_out.distributions[&tile].slots() * bytes).div_ceil(4)
    };
    tiles.map(words).sum()
}
