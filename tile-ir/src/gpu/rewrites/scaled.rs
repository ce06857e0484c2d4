//! Products of f32 whose factors are 8-bit floats times powers of two, one for each block along the depth, become products
//! that scale blocks ([`Op::MmaScaled`]), where a target's matrix instructions do that: the microscaling formats.
//!
//! A scaled factor is found by what is computed, whoever wrote it: a multiplication by powers of two (`f8e8m0fnu`) that were
//! only moved and repeated. From which of the powers each element has its own is found by moving their positions as they
//! are moved. If that is one for each block of a row that instructions can scale, the product takes the floats and the powers as they
//! are.
//!
//! Such a multiplication rounds nothing: an 8-bit float has four significant bits, and times the least power of two, 2⁻¹²⁷,
//! the last of them is still a number of f32. Of narrower floats it is not: those have fewer exponents, or fewer below them,
//! so only factors of f32 are taken. What isn't a number stays none. Only a product beyond f32, of
//! powers above 2¹¹² alone, is infinite in the kernel and what it is in an instruction.

use crate::array::{Array, Elements};
use crate::dtype::DType;
use crate::gpu::{dtype_of, products, shape_of};
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{BinaryOp, Literal, Op};
use crate::passes::remove_unused;
use crate::target::{MatrixInstruction, TargetDesc};
use crate::types::{Elem, TileType, Type};
use std::collections::HashMap;

/// A product whose factors are blocks of 8-bit floats times powers of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct ScaledProduct {
    op: OpId,
    factors: [ScaledFactor; 2],
    /// Elements along the depth that an instruction scales together.
    block: u64,
}

/// A factor of f32 that is 8-bit floats times powers of two.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ScaledFactor {
    /// What made it.
    made: OpId,
    floats: ValueId,
    is_transposed: bool,
    /// `None` where the floats aren't multiplied by any.
    powers: Option<Powers>,
    /// Rows of the left factor, columns of the right one.
    rows: u64,
}

/// Powers of two, one for each block along the depth of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Powers {
    tile: ValueId,
    /// Whether those of a row follow each other, and not those of a block.
    by_rows: bool,
    /// Blocks of a row.
    blocks: u64,
}

/// The products that a target's instructions can scale.
pub(in crate::gpu) fn found(kernel: &Kernel, target: &TargetDesc) -> Vec<ScaledProduct> {
    if target.scaling_matrix.is_empty() {
        return Vec::new();
    }
    let finder = Finder { kernel, definitions: kernel.definitions() };
    kernel.walk().into_iter().filter_map(|op| finder.product(op, target)).collect()
}

struct Finder<'k> {
    kernel: &'k Kernel,
    definitions: HashMap<ValueId, OpId>,
}

impl Finder<'_> {
    fn product(&self, op: OpId, target: &TargetDesc) -> Option<ScaledProduct> {
        let data = self.kernel.op(op);
        let are_f32 = || {
            let mut values = data.operands.iter().chain(&data.results);
            values.all(|&value| dtype_of(self.kernel, value) == DType::F32)
        };
        if data.op != Op::Mma || !are_f32() {
            return None;
        }
        let factors = [self.factor(data.operands[0], 1)?, self.factor(data.operands[1], 0)?];
        let extents = products::extents(self.kernel, data);
        let formats = [&factors[0], &factors[1]].map(|factor| dtype_of(self.kernel, factor.floats));
        let powers: Vec<Powers> = factors.iter().filter_map(|factor| factor.powers).collect();
        let scales = |block: u64| {
            let is_whole = |powers: &Powers| (extents[2] / powers.blocks).is_multiple_of(block);
            !powers.is_empty() && powers.iter().all(is_whole)
        };
        let block = |it: &MatrixInstruction| it.scales.map(|scales| u64::from(scales.block));
        let suited =
            target.scaling_matrix.iter().filter(|it| it.factors == formats && block(it).is_some_and(scales));
        let block = suited.clone().find_map(block)?;
        products::does(suited, target.scaling_matrix, extents).then_some(ScaledProduct { op, factors, block })
    }

    fn definition(&self, value: ValueId) -> Option<&OpData> {
        self.definitions.get(&value).map(|&op| self.kernel.op(op))
    }

    /// A factor whose depth is this axis.
    fn factor(&self, value: ValueId, depth: usize) -> Option<ScaledFactor> {
        let shape = shape_of(self.kernel, value).filter(|shape| shape.len() == 2)?;
        let made = *self.definitions.get(&value)?;
        let (inner, is_turned) = self.turned(value);
        let data = self.definition(inner)?;
        let of = |floats, powers| {
            let (floats, is_transposed) = self.floats(floats)?;
            let rows = shape[1 - depth];
            Some(ScaledFactor { made, floats, is_transposed: is_transposed != is_turned, powers, rows })
        };
        match data.op {
            Op::Cast(_) => of(inner, None),
            Op::Binary(BinaryOp::Mul) => {
                let scaled = |[floats, powers]: [ValueId; 2]| {
                    let (tile, at) = self.sources(powers).filter(|_| self.floats(floats).is_some())?;
                    let at = if is_turned { at.permute(&[1, 0]) } else { at };
                    of(floats, Some(Powers::of(tile, &at, depth)?))
                };
                let [a, b] = [data.operands[0], data.operands[1]];
                scaled([a, b]).or_else(|| scaled([b, a]))
            }
            _ => None,
        }
    }

    /// What a matrix is a transpose of, and whether it is one.
    fn turned(&self, value: ValueId) -> (ValueId, bool) {
        match self.definition(value) {
            Some(OpData { op: Op::Permute(order), operands, .. }) if order.len() == 2 => {
                let (inner, is_turned) = self.turned(operands[0]);
                (inner, is_turned != (order[0] == 1))
            }
            _ => (value, false),
        }
    }

    /// The 8-bit floats that a matrix of f32 has, and whether they are transposed in it.
    fn floats(&self, value: ValueId) -> Option<(ValueId, bool)> {
        let (inner, is_turned) = self.turned(value);
        let data = self.definition(inner).filter(|data| matches!(data.op, Op::Cast(_)))?;
        dtype_of(self.kernel, data.operands[0]).is_float8().then_some((data.operands[0], is_turned))
    }

    /// The powers of two of which a tile has the elements, and at which of their positions it has each.
    fn sources(&self, value: ValueId) -> Option<(ValueId, Array)> {
        let is_powers = |value| dtype_of(self.kernel, value) == DType::F8E8M0FNU;
        let shape = shape_of(self.kernel, value)?;
        let shape: Vec<usize> = shape.into_iter().map(|extent| extent as usize).collect();
        match self.definition(value) {
            Some(OpData { op: Op::Cast(_), operands, .. }) if is_powers(operands[0]) => {
                self.sources(operands[0])
            }
            Some(OpData { op: Op::Reshape(_), operands, .. }) => {
                let (tile, at) = self.sources(operands[0])?;
                Some((tile, at.reshape(&shape)))
            }
            Some(OpData { op: op @ (Op::Permute(_) | Op::Broadcast(_)), operands, .. }) => {
                let (tile, at) = self.sources(operands[0])?;
                Some((tile, Array::moved(op, &[&at], &shape)))
            }
            _ if is_powers(value) => {
                let count = shape.iter().product::<usize>() as i128;
                Some((value, Array::new(DType::I64, shape, Elements::Int((0..count).collect()))))
            }
            _ => None,
        }
    }
}

impl Powers {
    /// The powers of a tile, if a factor has them at these positions: one for each block along the depth of each row.
    fn of(tile: ValueId, at: &Array, depth: usize) -> Option<Powers> {
        let at = if depth == 1 { at } else { &at.permute(&[1, 0]) };
        let &[rows, length] = at.shape() else { return None };
        let count = (0..at.len()).map(|i| at.get_int(i)).max()? as usize + 1;
        let blocks = count / rows;
        if blocks == 0 || count != blocks * rows || !length.is_multiple_of(blocks) {
            return None;
        }
        let block = length / blocks;
        let are = |position: &dyn Fn(usize, usize) -> usize| {
            let expected = |i: usize| position(i / length, i % length / block) as i128;
            (0..at.len()).all(|i| at.get_int(i) == expected(i))
        };
        let by_rows = are(&|row, block| row * blocks + block);
        let is_known = by_rows || are(&|row, block| block * rows + row);
        is_known.then_some(Powers { tile, by_rows, blocks: blocks as u64 })
    }
}

/// Has these products multiply floats and powers as they are.
pub(in crate::gpu) fn run(kernel: &mut Kernel, products: &[ScaledProduct]) {
    for product in products {
        let [left, right] = [0, 1].map(|side| {
            let factor = &product.factors[side];
            let depth = products::extents(kernel, kernel.op(product.op))[2];
            let mut place = Inserter::behind(kernel, factor.made);
            let floats = match factor.is_transposed {
                true => transposed(&mut place, factor.floats),
                false => factor.floats,
            };
            (floats, scales(&mut place, factor, [depth, product.block], side == 0))
        });
        let data = kernel.op_mut(product.op);
        let sums = data.operands[2];
        data.op = Op::MmaScaled;
        data.operands = [left.0, right.0, sums, left.1, right.1].into();
    }
    remove_unused(kernel);
}

/// The tile of scales of a factor of this depth, one for each of the blocks that an instruction scales: those of a row in a
/// row, or, of a right factor, in a column.
fn scales(
    place: &mut Inserter<'_>,
    factor: &ScaledFactor,
    [depth, block]: [u64; 2],
    is_left: bool,
) -> ValueId {
    let (rows, count) = (factor.rows, depth / block);
    let Some(Powers { tile, by_rows, blocks }) = factor.powers else {
        let elem = Elem::from(DType::F8E8M0FNU);
        let one = Op::Constant { value: Literal::Float(1.0), elem: elem.clone() };
        let one = place.emit(one, Vec::new(), Type::scalar(elem));
        let ty = powers_type(&if is_left { [rows, count] } else { [count, rows] });
        return place.emit(Op::Splat(ty.shape.clone()), vec![one], Type::Tile(ty));
    };
    let own = if by_rows { [rows, blocks] } else { [blocks, rows] };
    let mut scales = reshaped(place, tile, &own);
    if by_rows != is_left {
        scales = transposed(place, scales);
    }
    let repeated = count / blocks;
    if repeated == 1 {
        return scales;
    }
    // A power of a longer block is that of all blocks that instructions scale in it.
    let (apart, together, all) = match is_left {
        true => (vec![rows, blocks, 1], vec![rows, blocks, repeated], [rows, count]),
        false => (vec![blocks, 1, rows], vec![blocks, repeated, rows], [count, rows]),
    };
    let apart = reshaped(place, scales, &apart);
    let together = powers_type(&together);
    let together = place.emit(Op::Broadcast(together.shape.clone()), vec![apart], Type::Tile(together));
    reshaped(place, together, &all)
}

fn powers_type(shape: &[u64]) -> TileType {
    let shape = shape.iter().map(|&extent| (extent as i64).into()).collect();
    TileType { shape, elem: Elem::from(DType::F8E8M0FNU) }
}

fn reshaped(place: &mut Inserter<'_>, tile: ValueId, shape: &[u64]) -> ValueId {
    if shape_of(place.kernel, tile).as_deref() == Some(shape) {
        return tile;
    }
    let ty = powers_type(shape);
    place.emit(Op::Reshape(ty.shape.clone()), vec![tile], Type::Tile(ty))
}

fn transposed(place: &mut Inserter<'_>, matrix: ValueId) -> ValueId {
    let mut ty = place.kernel.ty(matrix).as_tile().expect("a factor is a tile").clone();
    ty.shape.swap(0, 1);
    place.emit(Op::Permute(vec![1, 0]), vec![matrix], Type::Tile(ty))
}

#[cfg(test)]
mod tests;
