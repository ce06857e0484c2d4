//! Integers that are widened stay narrow while bits of them are taken and while they are moved: what is shuffled and stored of a
//! tile on the way is bytes where it would be words. Weights of four bits are unpacked so: `cast(bytes) & 15` is
//! `cast(bytes & 15)`, and pairs of these are joined before they become words. And so are colours of pixels, of which parts are
//! taken.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{BinaryOp, Literal, Movement, Op};
use crate::passes;
use crate::specialize::Instance;
use crate::types::{Elem, Type};
use std::collections::HashMap;

/// The instance with its integers widened where they are computed with.
///
/// ```
/// use tile_ir::Instance;
/// let text = "kernel @low(%x: tensor<n x u8>, %y: mut tensor<n x i32>) {
///   %vx = partition %x [8] : partition<n x u8, [8]>
///   %vy = partition %y [8] : mut partition<n x i32, [8]>
///   %i = block_index %vy : index
///   %none = constant 0 : u8
///   %bytes = load_masked %vx[%i] pad %none : tile<8 x u8>
///   %words = cast %bytes : tile<8 x i32>
///   %fifteen = constant 15 : i32
///   %mask = splat %fifteen : tile<8 x i32>
///   %low = and %words, %mask : tile<8 x i32>
///   store_masked %vy, %low
/// }";
/// let late = tile_ir::cpu::widened_late(Instance::parse(text, &[]).unwrap());
/// assert!(late.to_string().contains("and %bytes"));
/// ```
pub fn widened_late(instance: Instance) -> Instance {
    instance.rewrite("widen late", run)
}

fn run(kernel: &mut Kernel) {
    // An op that changes gives what it gave, so these stay.
    let definitions = kernel.definitions();
    let mut late = Late { kernel, definitions };
    let mut changed = false;
    for op in late.kernel.walk() {
        let narrow = match late.kernel.op(op).op {
            Op::Binary(taken @ (BinaryOp::And | BinaryOp::Shr)) => late.bits_of(op, taken),
            Op::Reshape(_) | Op::Movement(Movement::Cat { .. } | Movement::Extract { .. }) => late.moved(op),
            _ => None,
        };
        if let Some(narrow) = narrow {
            let elem = late.kernel.ty(late.kernel.op(op).results[0]).elem().clone();
            let data = late.kernel.op_mut(op);
            (data.op, data.operands) = (Op::Cast(elem), vec![narrow]);
            changed = true;
        }
    }
    if changed {
        passes::remove_unused(kernel);
    }
}

struct Late<'k> {
    kernel: &'k mut Kernel,
    definitions: HashMap<ValueId, OpId>,
}

impl Late<'_> {
    fn definition(&self, value: ValueId) -> Option<&OpData> {
        self.definitions.get(&value).map(|&op| self.kernel.op(op))
    }

    /// Bits that an op takes of what was widened, taken before.
    fn bits_of(&mut self, op: OpId, taken: BinaryOp) -> Option<ValueId> {
        let &[wide, number] = self.kernel.op(op).operands.as_slice() else { return None };
        let (narrow, dtype) = self.widened(wide).filter(|(_, dtype)| !dtype.is_signed())?;
        let number = self.number_of_all(number)?;
        let number = match taken {
            BinaryOp::And => number & ((1 << dtype.bits()) - 1),
            _ => Some(number).filter(|number| (0..i128::from(dtype.bits())).contains(number))?,
        };
        let elem = Elem::from(dtype);
        let shape = self.shape_of(op)?;
        let ty = Type::tile(shape.clone(), elem.clone());
        let mut place = Inserter::before(self.kernel, op);
        let constant = Op::Constant { value: Literal::Int(number), elem: elem.clone() };
        let number = place.emit(constant, Vec::new(), Type::scalar(elem));
        let all = place.emit(Op::Splat(shape), vec![number], ty.clone());
        Some(place.emit(Op::Binary(taken), vec![narrow, all], ty))
    }

    /// What was widened and then moved, moved before.
    fn moved(&mut self, op: OpId) -> Option<ValueId> {
        let data = self.kernel.op(op);
        let parts: Vec<(ValueId, DType)> =
            data.operands.iter().map(|&part| self.widened(part)).collect::<Option<_>>()?;
        let (_, dtype) = *parts.first()?;
        if parts.iter().any(|(_, other)| *other != dtype) {
            return None;
        }
        let movement = data.op.clone();
        let ty = Type::tile(self.shape_of(op)?, Elem::from(dtype));
        let parts = parts.into_iter().map(|(part, _)| part).collect();
        Some(Inserter::before(self.kernel, op).emit(movement, parts, ty))
    }

    /// The shape of the tile that an op gives.
    fn shape_of(&self, op: OpId) -> Option<Vec<Dim>> {
        Some(self.kernel.ty(self.kernel.op(op).results[0]).as_tile()?.shape.clone())
    }

    /// The tile of integers of up to 16 bits that one of more bits is, and their format.
    fn widened(&self, tile: ValueId) -> Option<(ValueId, DType)> {
        let OpData { op: Op::Cast(_), operands, .. } = self.definition(tile)? else { return None };
        let format = |value| self.kernel.ty(value).as_tile()?.elem.known().filter(|dtype| dtype.is_int());
        let (narrow, wide) = (format(operands[0])?, format(tile)?);
        let is_widened = narrow.bits() <= 16 && narrow.bits() < wide.bits();
        is_widened.then_some((operands[0], narrow))
    }

    /// The integer that all elements of a tile are.
    fn number_of_all(&self, tile: ValueId) -> Option<i128> {
        let OpData { op: Op::Splat(_), operands, .. } = self.definition(tile)? else { return None };
        self.definition(operands[0])?.constant()?.as_int()
    }
}

#[cfg(test)]
mod tests {
    use crate::specialize::Instance;

    /// Bytes that are unpacked to pairs of numbers, and what is computed of them.
    const UNPACKED: &str = "kernel @unpacked(%x: tensor<n x u8>, %y: mut tensor<k x i32>) {
  %vx = partition %x [8] : partition<n x u8, [8]>
  %vy = partition %y [16] : mut partition<k x i32, [16]>
  %i = block_index %vy : index
  %none = constant 0 : u8
  %bytes = load_masked %vx[%i] pad %none : tile<8 x u8>
  %words = cast %bytes : tile<8 x i32>
  %fifteen = constant 15 : i32
  %mask = splat %fifteen : tile<8 x i32>
  %four = constant 4 : i32
  %shift = splat %four : tile<8 x i32>
  %low = and %words, %mask : tile<8 x i32>
  %high = shr %words, %shift : tile<8 x i32>
  %l = reshape %low : tile<8 x 1 x i32>
  %h = reshape %high : tile<8 x 1 x i32>
  %pairs = cat %l, %h axis 1 : tile<8 x 2 x i32>
  %row = reshape %pairs : tile<16 x i32>
  %less = sub %row, %row : tile<16 x i32>
  store_masked %vy, %less
}
";

    #[test]
    fn pairs_of_four_bits_are_joined_as_bytes() {
        let instance = Instance::parse(UNPACKED, &[]).unwrap();
        let late = super::widened_late(instance).to_string();
        for line in ["and %bytes", "shr %bytes", "axis 1 : tile<8 x 2 x u8>", "tile<16 x u8>"] {
            assert!(late.contains(line), "no {line} in\n{late}");
        }
        assert_eq!(late.matches("cast").count(), 1, "{late}");
    }
}
