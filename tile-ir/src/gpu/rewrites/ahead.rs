//! Loops over products load the tiles of the next turn while they compute this one's.
//!
//! A load that follows the loop's counter ([`followers`]) becomes a value that the loop carries: it is loaded once before
//! the loop, and in every turn for the next one, just before the first product. Memory answers while matrices are
//! multiplied, at the price of the registers for a second tile. Where there is no next turn nothing is loaded. The
//! address of a gather is computed again for the next turn's number.

use crate::analysis::uses::Uses;
use crate::dtype::DType;
use crate::gpu::followers::{Follower, addresses, followers, unused};
use crate::gpu::{Pipelines, Threads};
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{BinaryOp, Literal, Op, Predicate};
use crate::types::{Elem, Type};
use std::collections::{HashMap, HashSet};

/// 32-bit registers of a thread that tiles of the next turn may take.
const MOST_REGISTERS: u64 = 64;

/// Rewrites every loop that multiplies matrices of tiles that it loads; these loads stay where they are. Where a loop has a
/// producer, which copies what it can, the threads that multiply gather ahead, and load what they bring to shared memory;
/// the numbers that the producer loads itself stay, because it knows them of its own turn alone.
pub(in crate::gpu) fn run(
    kernel: &mut Kernel,
    threads: Threads,
    pipelines: &Pipelines,
    staying: &HashSet<OpId>,
) {
    for op in kernel.walk() {
        if kernel.op(op).op == Op::For {
            let region = kernel.op(op).regions[0];
            let has_producer = pipelines.of_region(region).is_some();
            let brings = pipelines.brought_right().iter().any(|brought| brought.home == region);
            let is_own = |load: OpId, data: &OpData| {
                let is_multiplied = data.op == Op::GatherLoad || brings;
                !has_producer || is_multiplied && !pipelines.slice().executes(load)
            };
            load_ahead(kernel, op, threads, &is_own, staying);
        }
    }
}

/// Rewrites a loop, of whose loads `is_own` says which are done by the threads that multiply.
fn load_ahead(
    kernel: &mut Kernel,
    for_op: OpId,
    threads: Threads,
    is_own: &dyn Fn(OpId, &OpData) -> bool,
    staying: &HashSet<OpId>,
) {
    let region = kernel.op(for_op).regions[0];
    let ops = kernel.region(region).ops.clone();
    let Some(product) = ops.iter().position(|&op| kernel.op(op).op.is_product()) else { return };
    let is_carried = |follower: &Follower| {
        let load = follower.load;
        is_own(load, kernel.op(load)) && ops[..product].contains(&load) && !staying.contains(&load)
    };
    let all: Vec<Follower> = followers(kernel, region).filter(is_carried).collect();
    let Some(followers) = fitting(kernel, all, threads) else { return };
    let loads: Vec<Loaded> = followers.iter().map(|follower| Loaded::of(kernel, follower)).collect();
    let (start, end) = (kernel.op(for_op).operands[0], kernel.op(for_op).operands[1]);
    let mut before = Inserter::before(kernel, for_op);
    let first = turn(&mut before, start, end, &loads, region, None);
    let mut body = Inserter::new(kernel, region, 0);
    let counter = body.kernel.region(region).params[0];
    let current: Vec<ValueId> =
        followers.iter().map(|follower| body.carry(for_op, region, follower.load)).collect();
    // The loads are gone from before the product.
    body.at = product - loads.len();
    let one = body.emit(
        Op::Constant { value: Literal::Int(1), elem: Elem::Known(DType::Index) },
        vec![],
        Type::INDEX,
    );
    let next = body.emit(Op::Binary(BinaryOp::Add), vec![counter, one], Type::INDEX);
    let loaded = turn(&mut body, next, end, &loads, region, Some(&current));
    let last = *kernel.region(region).ops.last().expect("verified: a loop's region yields");
    kernel.op_mut(last).operands.extend(loaded);
    kernel.op_mut(for_op).operands.extend(first);
    remove_unused(kernel, region, &followers);
}

/// The loads whose tiles have room in registers: all, or those of views alone.
fn fitting(kernel: &Kernel, all: Vec<Follower>, threads: Threads) -> Option<Vec<Follower>> {
    let fit = |followers: &Vec<Follower>| {
        let tiles = followers.iter().map(|follower| kernel.op(follower.load).results[0]);
        let taken: u64 = tiles.map(|tile| registers(kernel, tile, threads)).sum();
        !followers.is_empty() && taken <= MOST_REGISTERS
    };
    let is_load = |follower: &Follower| kernel.op(follower.load).op.is_load();
    let loads = all.iter().filter(|follower| is_load(follower)).cloned().collect();
    [all, loads].into_iter().find(fit)
}

/// Removes what computed addresses in the loop's own turn, where nothing else needs it.
fn remove_unused(kernel: &mut Kernel, region: RegionId, followers: &[Follower]) {
    let addresses = addresses(kernel, region, followers);
    let unused = unused(kernel, &Uses::of(kernel), &addresses, &[]);
    kernel.region_mut(region).ops.retain(|op| !unused.contains(op));
}

/// A load of a loop's turn, as it stood there, and what computes its address.
struct Loaded {
    address: Vec<OpData>,
    load: OpData,
}

impl Loaded {
    fn of(kernel: &Kernel, follower: &Follower) -> Loaded {
        let data = |&op: &OpId| kernel.op(op).clone();
        Loaded { address: follower.address.iter().map(data).collect(), load: data(&follower.load) }
    }

    fn tile(&self) -> ValueId {
        self.load.results[0]
    }
}

/// The tiles of a turn, if there is such a turn; otherwise those given, or zeros.
fn turn(
    place: &mut Inserter<'_>,
    counter: ValueId,
    end: ValueId,
    loads: &[Loaded],
    region: RegionId,
    otherwise: Option<&[ValueId]>,
) -> Vec<ValueId> {
    let exists = place.emit(Op::Compare(Predicate::Lt), vec![counter, end], Type::BOOL);
    let own = place.kernel.region(region).params[0];
    let regions = [place.kernel.new_region(), place.kernel.new_region()];
    let results: Vec<ValueId> = loads
        .iter()
        .map(|load| {
            let ty = place.kernel.ty(load.tile()).clone();
            place.kernel.new_value(ty, None)
        })
        .collect();
    let mut then = Inserter::new(place.kernel, regions[0], 0);
    let mut known = HashMap::from([(own, counter)]);
    let loaded = loads.iter().map(|load| then.again(load, &mut known)).collect();
    then.finish(loaded);
    let mut rest = Inserter::new(place.kernel, regions[1], 0);
    let values = match otherwise {
        Some(values) => values.to_vec(),
        None => results.iter().map(|&result| rest.zeros(result)).collect(),
    };
    rest.finish(values);
    let loc = loads[0].load.loc;
    let data = OpData {
        op: Op::If,
        operands: vec![exists],
        results: results.clone(),
        regions: regions.to_vec(),
        loc,
    };
    place.insert(data);
    results
}

/// Whether a loop multiplies matrices, and loads tiles that are known as soon as the turn's number is.
pub(in crate::gpu) fn may_load(kernel: &Kernel) -> bool {
    kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::For).any(|op| {
        let region = kernel.op(op).regions[0];
        let multiplies = kernel.region(region).ops.iter().any(|&op| kernel.op(op).op.is_product());
        multiplies && followers(kernel, region).next().is_some()
    })
}

fn registers(kernel: &Kernel, tile: ValueId, threads: Threads) -> u64 {
    let elements: u64 = crate::gpu::shape_of(kernel, tile).expect("verified: a tile").iter().product();
    let bytes = crate::gpu::dtype_of(kernel, tile).bytes() as u64;
    (elements * bytes).div_ceil(4 * threads.count())
}

impl Inserter<'_> {
    /// The load once more; `known` has what is another value for it, and then also what was computed for it.
    fn again(&mut self, load: &Loaded, known: &mut HashMap<ValueId, ValueId>) -> ValueId {
        for data in load.address.iter().chain([&load.load]) {
            if data.results.iter().all(|result| known.contains_key(result)) {
                continue;
            }
            let mut again = data.clone();
            let replaced = |operand: &mut ValueId| *operand = *known.get(operand).unwrap_or(operand);
            again.operands.iter_mut().for_each(replaced);
            for result in &mut again.results {
                let ty = self.kernel.ty(*result).clone();
                let other = self.kernel.new_value(ty, None);
                known.insert(*result, other);
                *result = other;
            }
            self.insert(again);
        }
        known[&load.tile()]
    }

    /// Makes what a load gives a value that the loop carries; the load goes.
    fn carry(&mut self, for_op: OpId, region: RegionId, load: OpId) -> ValueId {
        let loaded = self.kernel.op(load).results[0];
        let ty = self.kernel.ty(loaded).clone();
        let result = self.kernel.new_value(ty.clone(), None);
        self.kernel.op_mut(for_op).results.push(result);
        let ops = &mut self.kernel.region_mut(region).ops;
        ops.retain(|&op| op != load);
        // The load's result is now the parameter: its uses stay.
        self.kernel.op_mut(load).results.clear();
        self.kernel.region_mut(region).params.push(loaded);
        loaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Elements;
    use crate::gpu::tests::MATMUL;
    use crate::{Array, Instance, TargetDesc, interp, text};

    /// The same with a left factor whose rows are named, further down in every turn.
    const GATHERED: &str = "\
kernel @gathered<B>(%a: tensor<t x k x f32>, %b: tensor<k x n x f32>, %ids: tensor<m x i32>, %c: mut tensor<m x n x f32>) {
  %vi = partition %ids [B] : partition<m x i32, [B]>
  %vb = partition %b [B, B] : partition<k x n x f32, [B, B]>
  %vc = partition %c [B, B] : mut partition<m x n x f32, [B, B]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : f32
  %none = constant -1 : i32
  %zero = splat %pad : tile<B x B x f32>
  %ids_of = load_masked %vi[%i] pad %none : tile<B x i32>
  %column = reshape %ids_of : tile<B x 1 x i32>
  %which = broadcast %column : tile<B x B x i32>
  %counted = iota 1 : tile<B x B x i32>
  %width = extent B : index
  %0 = constant 0 : index
  %end = extent ceil_div(k, B) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<B x B x f32> {
    %number = cast %p : i32
    %numbers = splat %number : tile<B x B x i32>
    %rows = add %which, %numbers : tile<B x B x i32>
    %from = mul %p, %width : index
    %first = cast %from : i32
    %firsts = splat %first : tile<B x B x i32>
    %columns = add %firsts, %counted : tile<B x B x i32>
    %ta = gather_load %a[%rows, %columns] pad %pad : tile<B x B x f32>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<B x B x f32>
    %next = mma %ta, %tb, %acc : tile<B x B x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

    fn rewritten(source: &str, tile: usize) -> (Instance, Instance) {
        rewritten_for(source, tile, 128)
    }

    fn rewritten_for(source: &str, tile: usize, threads: u64) -> (Instance, Instance) {
        let instance = Instance::parse(source, &[("B", tile)]).unwrap();
        let threads = Threads::of(threads, TargetDesc::named("sm_80").unwrap());
        let ahead = instance
            .clone()
            .rewrite("ahead", |kernel| run(kernel, threads, &Pipelines::default(), &HashSet::new()));
        (instance, ahead)
    }

    #[test]
    fn tiles_of_the_next_turn_are_loaded_before_the_product() {
        insta::assert_snapshot!(text::print(&rewritten(MATMUL, 16).1));
    }

    fn array(shape: [usize; 2], seed: usize) -> Array {
        let number = |i: usize| ((i * 7 + seed * 5) % 11) as f64 - 5.0;
        let values = (0..shape[0] * shape[1]).map(number).collect();
        Array::new(DType::F32, shape.to_vec(), Elements::Float(values))
    }

    fn same((plain, ahead): &(Instance, Instance), mut expected: Vec<Array>) {
        let mut found = expected.clone();
        interp::run(plain, &mut expected).unwrap();
        interp::run(ahead, &mut found).unwrap();
        assert_eq!(found, expected, "{}", text::print(ahead));
    }

    #[test]
    fn the_product_is_the_same_for_any_number_of_turns() {
        let both = rewritten(MATMUL, 4);
        for k in [0, 1, 4, 5, 12] {
            same(&both, vec![array([6, k], 1), array([k, 5], 2), array([6, 5], 3)]);
        }
    }

    #[test]
    fn a_product_of_gathered_rows_is_the_same_for_any_number_of_turns() {
        let both = rewritten(GATHERED, 4);
        let named = || Array::new(DType::I32, vec![6], Elements::Int(vec![0, 3, -1, 1, 99, -2]));
        for k in [0, 1, 4, 5, 12] {
            same(&both, vec![array([4, k], 1), array([k, 5], 2), named(), array([6, 5], 3)]);
        }
    }

    /// What computed the address of a gather is gone from the turn that needs its tile, and stands where the next one's is
    /// computed.
    #[test]
    fn addresses_of_the_next_turn_are_computed_with_its_loads() {
        insta::assert_snapshot!(text::print(&rewritten(GATHERED, 16).1));
    }

    /// Both tiles of 64 registers are too many; that of the view alone is what was loaded ahead before.
    #[test]
    fn gathers_leave_registers_to_loads() {
        let (_, ahead) = rewritten_for(GATHERED, 64, 64);
        let region = ahead.op(*ahead.region(ahead.body()).ops.iter().rev().nth(1).unwrap()).regions[0];
        let stays = ahead.region(region).ops.iter().any(|&op| ahead.op(op).op == Op::GatherLoad);
        let ops = ahead.walk_in(region);
        let loads = ops.iter().filter(|&&op| ahead.op(op).op.is_load()).count();
        assert!(stays && loads == 1 && !ahead.region(region).ops.iter().any(|&op| ahead.op(op).op.is_load()));
    }

    #[test]
    fn tiles_that_would_take_too_many_registers_are_loaded_when_they_are_needed() {
        let (plain, ahead) = rewritten(MATMUL, 128);
        assert_eq!(text::print(&plain), text::print(&ahead));
    }
}
