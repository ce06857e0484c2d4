//! Which matrix instruction does a product, and how the block's warps share it.

use super::pipeline::TENSOR_ROWS;
use super::{Multiplied, Pipelines, Remark, Threads, dtype_of};
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{Op, UnaryOp};
use crate::target::{Fragments, MatrixInstruction, Passing, TargetDesc};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use tile_layout::linear::{Dim, Distribution, MatrixShape, Operand};

/// A product by matrix instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// The instruction.
    pub instruction: MatrixInstruction,
    /// What each bit of a warp's number counts along: rows (0) or columns (1) of the result, or, where there are more
    /// warps than it has parts, nothing.
    warps: Vec<Option<usize>>,
}

/// The products of a verified instance that a target has instructions for.
pub(super) fn products(
    kernel: &Kernel,
    target: &TargetDesc,
    threads: Threads,
    pipelines: &Pipelines,
) -> HashMap<OpId, Product> {
    let ops: Vec<OpId> = kernel.walk().into_iter().filter(|&op| kernel.op(op).op.is_product()).collect();
    let by_rows = ops.iter().any(|&op| goes_on_by_rows(kernel, op));
    let product = |op| {
        let data = kernel.op(op);
        let product = match pipelines.factors(op) {
            Some(_) => Product::of_warpgroups(kernel, data, target, threads),
            None => Product::of(kernel, data, target, threads, by_rows).map(|product| {
                if are_sums(kernel, data.operands[0]) { product.with_depth_by_sums() } else { product }
            }),
        };
        Some((op, product?))
    };
    ops.into_iter().filter_map(product).collect()
}

/// Whether what becomes of a product, element by element, is reduced along its rows or is the left factor of another:
/// a warp that has whole rows then needs nothing of other warps.
fn goes_on_by_rows(kernel: &Kernel, product: OpId) -> bool {
    let mut reached: HashSet<ValueId> = kernel.op(product).results.iter().copied().collect();
    // Uses follow definitions in the walk.
    kernel.walk().into_iter().filter(|&op| op != product).any(|op| {
        let data = kernel.op(op);
        let uses = |operand: &ValueId| reached.contains(operand);
        match &data.op {
            Op::Reduce { axis, .. } => uses(&data.operands[0]) && *axis + 1 == rank(kernel, data.operands[0]),
            Op::Mma | Op::MmaScaled => uses(&data.operands[0]),
            leaf if leaf.is_leaf() && data.operands.iter().any(uses) => {
                reached.extend(&data.results);
                false
            }
            _ => false,
        }
    })
}

/// Whether a tile is what became of a product, element by element.
fn are_sums(kernel: &Kernel, tile: ValueId) -> bool {
    let (mut left, mut seen) = (vec![tile], HashSet::new());
    while let Some(tile) = left.pop() {
        let Some(data) = kernel.definition(tile).filter(|_| seen.insert(tile)) else { continue };
        match &data.op {
            Op::Mma | Op::MmaScaled => return true,
            Op::If => {
                let result = data.results.iter().position(|&result| result == tile);
                let result = result.expect("a result of its op");
                let ends = data.regions.iter().filter_map(|&region| kernel.region(region).ops.last());
                left.extend(ends.map(|&end| kernel.op(end).operands[result]));
            }
            leaf if leaf.is_leaf() => left.extend(&data.operands),
            _ => {}
        }
    }
    false
}

fn rank(kernel: &Kernel, tile: ValueId) -> usize {
    super::shape_of(kernel, tile).map_or(0, |shape| shape.len())
}

impl Product {
    /// The first instruction of the target that an `mma` of a verified instance can be cut into.
    fn of(
        kernel: &Kernel,
        data: &OpData,
        target: &TargetDesc,
        threads: Threads,
        by_rows: bool,
    ) -> Option<Product> {
        if !threads.are_whole_warps(target) {
            return None;
        }
        let (shape, table) = (extents(kernel, data), table(data, target));
        let instruction = taken(kernel, data, table)?;
        let instruction = with_rows_in_lanes(instruction, table, by_rows);
        let warps = shared_by(threads.warps, [shape[0], shape[1]], instruction.extents(), by_rows);
        Some(Product { instruction, warps })
    }

    /// The product with the depth of its factors in the order of sums: a left factor that was sums stays where it lies.
    fn with_depth_by_sums(self) -> Product {
        Product { instruction: self.instruction.with_depth_by_sums(), ..self }
    }

    /// A product whose rows are shared by warpgroups; in tensor memory its columns, where it has too few rows.
    fn of_warpgroups(
        kernel: &Kernel,
        data: &OpData,
        target: &TargetDesc,
        threads: Threads,
    ) -> Option<Product> {
        let mut instruction = *suited(kernel, data, target.warpgroup_matrix).next()?;
        let fragment = instruction.fragment(Operand::Accumulator);
        let warpgroup_bits = threads.warps.ilog2().saturating_sub(fragment.input_bits(Dim::Warp));
        let mut axis = 0;
        if instruction.fragments == Fragments::TensorMemory {
            let ([rows, columns, _], groups) = (extents(kernel, data), 1 << warpgroup_bits);
            axis = usize::from(share_columns(rows, groups));
            instruction.shape.n = (if axis == 1 { columns / groups } else { columns }) as u32;
        }
        Some(Product { instruction, warps: vec![Some(axis); warpgroup_bits as usize] })
    }

    /// Into how many parts warps cut the rows and the columns of the result.
    pub fn parts(&self) -> [u64; 2] {
        [0, 1].map(|axis| 1 << self.warps.iter().filter(|&&it| it == Some(axis)).count())
    }

    /// How a tile that is one of the operands lies in the block.
    pub(super) fn distribution(&self, tile: &[u64], operand: Operand) -> Distribution {
        if self.instruction.fragments == Fragments::TensorMemory {
            return self.of_tensor_memory(tile);
        }
        let fragment = self.instruction.fragment(operand);
        Distribution::of_fragment(tile, &fragment, &self.warps_of(operand))
            .expect("a fragment covers its tile")
    }

    /// How the scales of a factor lie in the block: with the warps that multiply what they scale.
    pub(super) fn distribution_of_scales(&self, tile: &[u64], operand: Operand) -> Distribution {
        let fragment = self.instruction.scale_fragment(operand);
        Distribution::of_fragment(tile, &fragment, &self.warps_of(operand))
            .expect("a fragment covers its tile")
    }

    /// What each bit of a warp's number counts along in an operand.
    fn warps_of(&self, operand: Operand) -> Vec<Option<usize>> {
        let of_operand = |&axis: &Option<usize>| match operand {
            Operand::A => axis.filter(|&axis| axis == 0),
            Operand::B => axis.filter(|&axis| axis == 1),
            Operand::Accumulator => axis,
        };
        self.warps.iter().map(of_operand).collect()
    }
}

/// Whether so many warpgroups share the columns of a product in tensor memory, which has too few rows for them.
pub(super) fn share_columns(rows: u64, groups: u64) -> bool {
    rows < groups * TENSOR_ROWS
}

impl Product {
    /// How sums lie that warpgroups load, or a left factor that they bring to shared memory: each has rows of its own, or its
    /// part of the columns.
    fn of_tensor_memory(&self, tile: &[u64]) -> Distribution {
        let mut instruction = self.instruction;
        instruction.shape.n = (tile[1] / self.parts()[1]) as u32;
        let fragment = instruction.fragment(Operand::Accumulator);
        Distribution::of_fragment(tile, &fragment, &self.warps).expect("a fragment covers its tile")
    }
}

/// The instruction with its factors exchanged where a lane then has neighbours along the rows of the result, which it
/// stores together and mostly reduces alone; or, if what follows goes `by_rows`, more of a row at least.
fn with_rows_in_lanes(
    instruction: MatrixInstruction,
    table: &[MatrixInstruction],
    by_rows: bool,
) -> MatrixInstruction {
    if instruction.exchanged {
        return instruction;
    }
    let Some(exchanged) = instruction.with_factors_exchanged(table) else { return instruction };
    let sums = exchanged.fragment(Operand::Accumulator);
    let next = sums.columns(Dim::Register).first().map(|&flat| sums.output_coordinate(flat, Dim::Axis(1)));
    if by_rows || next == Some(1) { exchanged } else { instruction }
}

/// The instructions of a target's warps that are for such an op.
fn table(data: &OpData, target: &TargetDesc) -> &'static [MatrixInstruction] {
    if data.op == Op::MmaScaled { target.scaling_matrix } else { target.matrix }
}

/// Those of a target's instructions that are for the formats of an `mma`, and of f32 for the numbers.
pub(super) fn suited<'t>(
    kernel: &Kernel,
    data: &OpData,
    table: &'t [MatrixInstruction],
) -> impl Iterator<Item = &'t MatrixInstruction> + use<'t> {
    let [a, b, sum] = formats(kernel, data);
    let in_tf32 = data.operands[..2].iter().all(|&factor| is_tf32(kernel, factor));
    let suits = move |it: &&MatrixInstruction| {
        let reads = in_tf32 || it.passing != Passing::Tf32Words;
        [a, b] == it.factors && adds(it.sum, sum) && reads
    };
    table.iter().filter(suits)
}

/// Whether all elements of a tile of f32 are TF32 numbers: it was rounded to them, and after that only moved.
fn is_tf32(kernel: &Kernel, tile: ValueId) -> bool {
    kernel.definition(tile).is_some_and(|data| match data.op {
        Op::Unary(UnaryOp::RoundTf32) => true,
        Op::ConvertLayout | Op::Permute(_) | Op::Reshape(_) | Op::Broadcast(_) => {
            is_tf32(kernel, data.operands[0])
        }
        _ => false,
    })
}

/// The formats of the factors and of the result.
fn formats(kernel: &Kernel, data: &OpData) -> [DType; 3] {
    let dtype = |value| dtype_of(kernel, value);
    [dtype(data.operands[0]), dtype(data.operands[1]), dtype(data.results[0])]
}

/// Whether a product can be cut into an instruction's.
pub(super) fn cuts(instruction: &MatrixInstruction, extents: [u64; 3]) -> bool {
    extents.into_iter().zip(steps(instruction.extents())).all(|(extent, step)| extent.is_multiple_of(step))
}

/// The instruction of a table that does an `mma`: the first that it can be cut into, or, of a product of few rows, as a few
/// queries that share a head of keys are, that with the fewest rows more.
fn taken(kernel: &Kernel, data: &OpData, table: &[MatrixInstruction]) -> Option<MatrixInstruction> {
    let shape = extents(kernel, data);
    let all = || suited(kernel, data, table);
    all().find(|it| cuts(it, shape)).copied().or_else(|| {
        let few = all().filter_map(|it| with_few_rows(it, table, shape));
        few.min_by_key(|it| it.extents().m)
    })
}

/// An instruction with more rows than a product, which it otherwise does.
fn with_few_rows(
    instruction: &MatrixInstruction,
    table: &[MatrixInstruction],
    extents: [u64; 3],
) -> Option<MatrixInstruction> {
    let few = instruction.with_few_rows(table, extents[0])?;
    cuts(&few, [few.extents().m.into(), extents[1], extents[2]]).then_some(few)
}

/// Whether one of these instructions of a table does a product of so many rows, columns and depth.
pub(super) fn does<'t>(
    mut suited: impl Iterator<Item = &'t MatrixInstruction>,
    table: &[MatrixInstruction],
    extents: [u64; 3],
) -> bool {
    suited.any(|it| cuts(it, extents) || with_few_rows(it, table, extents).is_some())
}

/// Why an `mma` isn't done by matrix instructions of a target that has some.
pub(super) fn remark(kernel: &Kernel, data: &OpData, target: &TargetDesc) -> Remark {
    let ([m, n, k], [a, b, sum]) = (extents(kernel, data), formats(kernel, data));
    let shapes: Vec<String> = suited(kernel, data, target.matrix).map(|it| it.shape.to_string()).collect();
    let (reason, multiplied) = if shapes.is_empty() {
        (format!("there are none for {} summed in {sum}", named([a, b])), multiplied(target.matrix))
    } else {
        let reason = format!(
            "{m} rows, {n} columns and a depth of {k} aren't multiples of any of their extents; choose extents that are \
             multiples of {}",
            shapes.join(" or ")
        );
        (reason, Vec::new())
    };
    let message = format!("a product is computed without matrix instructions: {reason}");
    Remark::of_product(data, message, multiplied)
}

/// What instructions multiply, each pair of formats once.
fn multiplied(instructions: &[MatrixInstruction]) -> Vec<Multiplied> {
    let mut all: Vec<Multiplied> = Vec::new();
    for it in instructions {
        let factors = match it.passing {
            Passing::Tf32Words => format!("{} of `mma_tf32`", named(it.factors)),
            _ => named(it.factors),
        };
        let multiplied = Multiplied { factors, sum: it.sum };
        if !all.contains(&multiplied) {
            all.push(multiplied);
        }
    }
    all
}

/// What a message calls factors of these formats.
fn named([a, b]: [DType; 2]) -> String {
    if a == b { a.to_string() } else { format!("{a} with {b}") }
}

/// Words of a tile that a thread holds, where one warp would have all rows of a product, before warps share its columns.
const MOST_OF_A_TILE: u64 = 32;

/// The most warps that have rows of their own in every product that goes on by rows; `None` where none does. Where that is
/// a single warp, as many as tiles are large: sharing columns costs them an exchange of what is reduced along rows, but one
/// warp has neither the registers for a long row nor enough on its way.
pub(super) fn most_warps(kernel: &Kernel, target: &TargetDesc) -> Option<u64> {
    let asked = largest_words(kernel).div_ceil(MOST_OF_A_TILE * u64::from(target.warp));
    warps_with_rows(kernel, target).map(|warps| if warps == 1 { asked.next_power_of_two() } else { warps })
}

/// Words of 32 bits of the largest tile of an instance.
fn largest_words(kernel: &Kernel) -> u64 {
    let words = |value: ValueId| {
        let elements: u64 = super::shape_of(kernel, value)?.iter().product();
        Some(elements * dtype_of(kernel, value).bytes() as u64 / 4)
    };
    kernel.value_ids().filter_map(words).max().unwrap_or(0)
}

fn warps_with_rows(kernel: &Kernel, target: &TargetDesc) -> Option<u64> {
    let products = kernel.walk().into_iter().filter(|&op| kernel.op(op).op.is_product());
    let by_rows = products.filter(|&op| goes_on_by_rows(kernel, op));
    let warps = by_rows.filter_map(|op| {
        let shape = extents(kernel, kernel.op(op));
        let instruction = taken(kernel, kernel.op(op), table(kernel.op(op), target))?;
        Some(1 << (shape[0] / u64::from(instruction.extents().m)).max(1).ilog2())
    });
    warps.min()
}

/// Whether sums in a format serve an accumulator of another: narrow floats are rounded once at the end.
fn adds(sum: DType, accumulator: DType) -> bool {
    sum == accumulator || (sum == DType::F32 && accumulator.is_narrow_float())
}

/// Rows, columns and depth of a product.
pub(super) fn extents(kernel: &Kernel, data: &OpData) -> [u64; 3] {
    let shape = |value| super::shape_of(kernel, value).expect("verified: a tile");
    let (a, result) = (shape(data.operands[0]), shape(data.results[0]));
    let rank = result.len();
    [result[rank - 2], result[rank - 1], a[rank - 1]]
}

fn steps(shape: MatrixShape) -> [u64; 3] {
    [shape.m, shape.n, shape.k].map(u64::from)
}

/// What each bit of a warp's number counts along: so that a warp's part is as square as can be, because it reads the
/// factors of its rows and of its columns; or rows first.
fn shared_by(warps: u64, mut part: [u64; 2], instruction: MatrixShape, by_rows: bool) -> Vec<Option<usize>> {
    let steps = [u64::from(instruction.m), u64::from(instruction.n)];
    let next = |_| {
        let splits = |&axis: &usize| part[axis].is_multiple_of(2 * steps[axis]);
        let rank = |&axis: &usize| (by_rows && axis == 0, part[axis], Reverse(axis));
        let axis = [0, 1].into_iter().filter(splits).max_by_key(rank)?;
        part[axis] /= 2;
        Some(axis)
    };
    (0..warps.ilog2()).map(next).collect()
}
