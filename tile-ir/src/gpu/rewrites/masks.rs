//! Selections by a comparison of positions: in most turns of a loop every element takes the same way.
//!
//! Causal attention hides scores above the diagonal, and a tail's beyond the end. Whether any element of a turn is hidden
//! is one comparison of numbers: of the greatest position on one side with the least on the other. A turn in which none
//! is takes the tile as it is; the others compare and select. It is done in loops whose tiles a producer copies, where
//! what threads compute in a turn is what tensor cores wait for.

use crate::analysis::uses::Uses;
use crate::dtype::DType;
use crate::gpu::Pipelines;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{BinaryOp, Literal, Op, Predicate};
use crate::types::{Elem, Type};
use std::collections::HashSet;

/// What positions are added up and compared in: no sum of a few 32-bit numbers wraps.
const WIDE: DType = DType::I64;

/// Rewrites the selections of all pipelines' loops, but for the producer's, which are of numbers.
pub(in crate::gpu) fn run(kernel: &mut Kernel, pipelines: &Pipelines) {
    let is_consumers = |op: &OpId| !pipelines.slice().executes(*op);
    let loops = kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::For);
    let bodies: Vec<RegionId> = loops.map(|op| kernel.op(op).regions[0]).collect();
    let with_pipelines = bodies.into_iter().filter(|&body| pipelines.of_region(body).is_some());
    with_pipelines.for_each(|body| in_loop(kernel, body, &is_consumers));
}

fn in_loop(kernel: &mut Kernel, region: RegionId, is_consumers: &dyn Fn(&OpId) -> bool) {
    for op in kernel.region(region).ops.clone().into_iter().filter(is_consumers) {
        if kernel.op(op).op == Op::Select
            && let Some(comparisons) = Reader::of(kernel).comparisons(kernel.op(op).operands[0])
        {
            rewrite(kernel, region, op, &comparisons);
        }
    }
}

/// Integers of a tile: the sum of these scalars, and a number from the first to the last of these besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Positions {
    scalars: Vec<ValueId>,
    least: i64,
    greatest: i64,
}

/// Ops of a condition that are read; what is computed of many more isn't compared in their place.
const MOST_OPS: u32 = 64;

/// Reads what a condition compares.
struct Reader<'a> {
    kernel: &'a Kernel,
    /// The ops that it reads yet, one that is used twice counted twice.
    left: u32,
}

impl<'a> Reader<'a> {
    fn of(kernel: &'a Kernel) -> Reader<'a> {
        Reader { kernel, left: MOST_OPS }
    }

    /// The op that makes a value, unless enough were read.
    fn read(&mut self, value: ValueId) -> Option<&'a OpData> {
        self.left = self.left.checked_sub(1)?;
        self.kernel.definition(value)
    }

    /// The elements of a tile; `None` where they aren't such sums.
    fn positions(&mut self, tile: ValueId) -> Option<Positions> {
        let data = self.read(tile)?;
        match &data.op {
            Op::Iota { axis, .. } => {
                let extent = self.kernel.ty(tile).as_tile()?.shape[*axis].as_const()?;
                Some(Positions { greatest: extent - 1, ..Positions::default() })
            }
            Op::Splat(_) => match self.kernel.constant(data.operands[0]) {
                Some(Literal::Int(value)) => {
                    let value = i64::try_from(value).ok()?;
                    Some(Positions { scalars: Vec::new(), least: value, greatest: value })
                }
                _ => Some(Positions { scalars: vec![data.operands[0]], ..Positions::default() }),
            },
            Op::Broadcast(_) | Op::Permute(_) => self.positions(data.operands[0]),
            Op::Binary(BinaryOp::Add) => {
                let (a, b) = (self.positions(data.operands[0])?, self.positions(data.operands[1])?);
                Some(Positions {
                    scalars: [a.scalars, b.scalars].concat(),
                    least: a.least.checked_add(b.least)?,
                    greatest: a.greatest.checked_add(b.greatest)?,
                })
            }
            _ => None,
        }
    }

    /// What holds of all elements if these comparisons do; `None` for anything but positions that are compared.
    fn comparisons(&mut self, condition: ValueId) -> Option<Vec<Comparison>> {
        let data = self.read(condition)?;
        if matches!(data.op, Op::Broadcast(_) | Op::Permute(_)) {
            return self.comparisons(data.operands[0]);
        }
        let [a, b] = data.operands[..] else { return None };
        match data.op {
            Op::Binary(BinaryOp::And) => {
                let mut all = self.comparisons(a)?;
                all.extend(self.comparisons(b)?);
                Some(all)
            }
            Op::Compare(predicate) => {
                let dtype = crate::gpu::dtype_of(self.kernel, a);
                let (less, greater, strict) = match predicate {
                    Predicate::Le => (a, b, false),
                    Predicate::Lt => (a, b, true),
                    Predicate::Ge => (b, a, false),
                    Predicate::Gt => (b, a, true),
                    _ => return None,
                };
                if !dtype.is_int() || dtype.bits() > 32 {
                    return None;
                }
                let (less, greater) = (self.positions(less)?, self.positions(greater)?);
                Some(vec![Comparison { less, greater, strict, dtype }])
            }
            _ => None,
        }
    }
}

/// That the elements of a tile are less than those of another, or equal to them.
struct Comparison {
    less: Positions,
    greater: Positions,
    strict: bool,
    dtype: DType,
}

impl Comparison {
    /// Emits whether it holds of all elements, none of which wraps.
    fn emit(&self, place: &mut Inserter<'_>) -> ValueId {
        let (least, greatest) = self.dtype.int_range();
        let strict = i64::from(self.strict);
        let less = sum(place, &self.less.scalars, self.less.greatest + strict);
        let greater = sum(place, &self.greater.scalars, self.greater.least);
        let ordered = compare(place, less, greater);
        // What lies between the greatest of one and the least of the other has wrapped at neither end; these may have at
        // the others.
        let low = sum(place, &self.less.scalars, self.less.least);
        let first = sum(place, &[], i64::try_from(least).expect("32 bits"));
        let high = sum(place, &self.greater.scalars, self.greater.greatest);
        let last = sum(place, &[], i64::try_from(greatest).expect("32 bits"));
        let whole = [compare(place, first, low), compare(place, high, last)];
        whole.into_iter().fold(ordered, |all, one| and(place, all, one))
    }
}

fn sum(place: &mut Inserter<'_>, scalars: &[ValueId], number: i64) -> ValueId {
    let elem = Elem::Known(WIDE);
    let constant = Op::Constant { value: Literal::Int(number.into()), elem: elem.clone() };
    let number = place.emit(constant, Vec::new(), Type::scalar(elem.clone()));
    scalars.iter().fold(number, |sum, &scalar| {
        let wide = place.emit(Op::Cast(elem.clone()), vec![scalar], Type::scalar(elem.clone()));
        place.emit(Op::Binary(BinaryOp::Add), vec![sum, wide], Type::scalar(elem.clone()))
    })
}

fn compare(place: &mut Inserter<'_>, a: ValueId, b: ValueId) -> ValueId {
    place.emit(Op::Compare(Predicate::Le), vec![a, b], Type::BOOL)
}

fn and(place: &mut Inserter<'_>, a: ValueId, b: ValueId) -> ValueId {
    place.emit(Op::Binary(BinaryOp::And), vec![a, b], Type::BOOL)
}

/// Puts a selection, with what is computed for it alone, into the branch where not all elements are chosen alike.
fn rewrite(kernel: &mut Kernel, region: RegionId, select: OpId, comparisons: &[Comparison]) {
    let own = for_alone(kernel, region, select);
    let ops = &mut kernel.region_mut(region).ops;
    let at = ops.iter().take_while(|&&op| op != select).filter(|op| !own.contains(op)).count();
    let moved: Vec<OpId> = ops.iter().copied().filter(|op| own.contains(op) || *op == select).collect();
    ops.retain(|op| !moved.contains(op));
    let data = kernel.op(select).clone();
    let result = data.results[0];
    let mut place = Inserter::new(kernel, region, at);
    let conditions: Vec<ValueId> = comparisons.iter().map(|comparison| comparison.emit(&mut place)).collect();
    let all = conditions.into_iter().reduce(|a, b| and(&mut place, a, b)).expect("there is a comparison");
    let regions = [place.kernel.new_region(), place.kernel.new_region()];
    Inserter::new(place.kernel, regions[0], 0).finish(vec![data.operands[1]]);
    let selected = place.kernel.new_value(place.kernel.ty(result).clone(), None);
    place.kernel.op_mut(select).results = vec![selected];
    let count = moved.len();
    place.kernel.region_mut(regions[1]).ops = moved;
    Inserter::new(place.kernel, regions[1], count).finish(vec![selected]);
    let results = vec![result];
    place.insert(OpData {
        op: Op::If,
        operands: vec![all],
        results,
        regions: regions.to_vec(),
        loc: data.loc,
    });
}

/// The ops before a selection that make tiles for its condition and for nothing else.
fn for_alone(kernel: &Kernel, region: RegionId, select: OpId) -> HashSet<OpId> {
    let uses = Uses::of(kernel);
    let mut own = HashSet::new();
    let ops = &kernel.region(region).ops;
    for &op in ops.iter().rev().skip_while(|&&op| op != select).skip(1) {
        let data = kernel.op(op);
        let is_for = |user: &OpId| own.contains(user) || *user == select;
        let is_own = |&result: &ValueId| {
            let is_chosen = kernel.op(select).operands[1..].contains(&result);
            !is_chosen && kernel.ty(result).as_tile().is_some() && uses.of_value(result).iter().all(is_for)
        };
        if data.op.is_repeatable() && !data.results.is_empty() && data.results.iter().all(is_own) {
            own.insert(op);
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Elements;
    use crate::{Array, Instance, interp, text};
    use tile_test_edit::Edit;

    /// The sum of what lies on and below a diagonal, and before an end; positions begin at a number.
    const LOWER: &str = "\
kernel @lower(%x: tensor<m x n x f32>, %at: tensor<2 x i32>, %y: mut tensor<m x 4 x f32>) {
  %vx = partition %x [4, 4] : partition<m x n x f32, [4, 4]>
  %vat = partition %at [1] : partition<2 x i32, [1]>
  %vy = partition %y [4, 4] : mut partition<m x 4 x f32, [4, 4]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %none = splat %pad : tile<4 x 4 x f32>
  %size = constant 4 : index
  %0 = constant 0 : index
  %1 = constant 1 : index
  %ta = load %vat[%0] : tile<1 x i32>
  %offset = item %ta : i32
  %tb = load %vat[%1] : tile<1 x i32>
  %last = item %tb : i32
  %where = mul %i, %size : index
  %short = cast %where : i32
  %first = add %short, %offset : i32
  %firsts = splat %first : tile<4 x 1 x i32>
  %rows = iota 0 : tile<4 x 1 x i32>
  %row = add %rows, %firsts : tile<4 x 1 x i32>
  %ends = splat %last : tile<1 x 4 x i32>
  %end = extent ceil_div(n, 4) : index
  %sum = for %p = %0 to %end carry (%acc = %none) : tile<4 x 4 x f32> {
    %t = load_masked %vx[%i, %p] pad %pad : tile<4 x 4 x f32>
    %start = mul %p, %size : index
    %narrow = cast %start : i32
    %begin = add %narrow, %offset : i32
    %begins = splat %begin : tile<1 x 4 x i32>
    %columns = iota 1 : tile<1 x 4 x i32>
    %column = add %columns, %begins : tile<1 x 4 x i32>
    %before = lt %column, %ends : tile<1 x 4 x bool>
    %across = broadcast %column : tile<4 x 4 x i32>
    %down = broadcast %row : tile<4 x 4 x i32>
    %below = ge %down, %across : tile<4 x 4 x bool>
    %early = broadcast %before : tile<4 x 4 x bool>
    %seen = select %below, %t, %none : tile<4 x 4 x f32>
    %kept = select %early, %seen, %none : tile<4 x 4 x f32>
    %next = add %acc, %kept : tile<4 x 4 x f32>
    yield %next
  }
  store_masked %vy, %sum
}
";

    fn rewritten() -> (Instance, Instance) {
        rewritten_of(LOWER)
    }

    fn rewritten_of(source: &str) -> (Instance, Instance) {
        let plain = Instance::parse(source, &[]).unwrap();
        let masked = plain.clone().rewrite("masks", |kernel| {
            let loops: Vec<OpId> =
                kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::For).collect();
            loops.into_iter().for_each(|op| in_loop(kernel, kernel.op(op).regions[0], &|_| true));
        });
        (plain, masked)
    }

    #[test]
    fn a_turn_whose_elements_are_all_chosen_selects_nothing() {
        insta::assert_snapshot!(text::print(&rewritten().1));
    }

    /// A condition that is also what is chosen stays where both ways find it.
    #[test]
    fn a_condition_that_is_chosen_is_there_for_every_turn() {
        let chosen = LOWER
            .edit(
                "    %seen = ",
                "    %both = select %below, %below, %early : tile<4 x 4 x bool>\n    %seen = ",
            )
            .edit("select %early, %seen", "select %both, %seen")
            .edit("select %below, %t", "select %early, %t");
        let (plain, masked) = rewritten_of(&chosen);
        assert_eq!(sums(&masked, (0, 7)), sums(&plain, (0, 7)));
    }

    /// Tiles below, on and above the diagonal; positions that wrap, where half of a tile is hidden for that.
    #[test]
    fn the_same_elements_are_chosen() {
        let (plain, masked) = rewritten();
        for (first, last) in
            [(0, 7), (-9, 2), (i32::MAX - 9, i32::MAX), (i32::MIN + 3, i32::MIN + 9), (0, 100)]
        {
            assert_eq!(sums(&masked, (first, last)), sums(&plain, (first, last)), "from {first} to {last}");
        }
    }

    /// Positions that are doubled again and again would be followed as often as there are ways to the first of them.
    #[test]
    fn a_condition_of_many_ops_is_left_as_it_is() {
        let positions = |count: usize| {
            let sums: String = (0..count)
                .map(|i| format!("    %d{} = add %d{i}, %d{i} : tile<1 x 4 x i32>\n", i + 1))
                .collect();
            let doubled =
                format!("    %d0 = add %columns, %columns : tile<1 x 4 x i32>\n{sums}    %before = ");
            LOWER.edit("    %before = ", &doubled).edit("lt %column, %ends", &format!("lt %d{count}, %ends"))
        };
        let branches =
            |count: usize| text::print(&rewritten_of(&positions(count)).1).matches(" = if ").count();
        assert_eq!([3, 62].map(branches), [2, 1]);
    }

    /// What a kernel makes of numbers, for such a first and last position.
    fn sums(kernel: &Instance, (first, last): (i32, i32)) -> Vec<Array> {
        let numbers = Elements::Float((0..12 * 16).map(|i| f64::from(i % 13) + 1.0).collect());
        let mut arrays = vec![
            Array::new(DType::F32, vec![12, 16], numbers),
            Array::new(DType::I32, vec![2], Elements::Int(vec![i128::from(first), i128::from(last)])),
            Array::new(DType::F32, vec![12, 4], Elements::Float(vec![0.0; 48])),
        ];
        interp::run(kernel, &mut arrays).unwrap();
        arrays
    }
}
