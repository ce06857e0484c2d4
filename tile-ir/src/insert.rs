//! Ops that passes and steps of a schedule add to a kernel.

use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::loc::Loc;
use crate::ops::{Literal, Op, result_types};
use crate::types::Type;

/// A place in a region where ops are added, one after the other.
pub(crate) struct Inserter<'k> {
    pub(crate) kernel: &'k mut Kernel,
    pub(crate) region: RegionId,
    pub(crate) at: usize,
}

impl<'k> Inserter<'k> {
    pub(crate) fn new(kernel: &'k mut Kernel, region: RegionId, at: usize) -> Self {
        Inserter { kernel, region, at }
    }

    /// The place right before an op.
    ///
    /// # Panics
    /// If the op was taken out of the kernel.
    pub(crate) fn before(kernel: &'k mut Kernel, op: OpId) -> Self {
        let region = kernel.region_of(op).expect("the op stands in a region");
        let at = kernel.region(region).ops.iter().position(|&other| other == op);
        let at = at.expect("an op is among those of its region");
        Inserter::new(kernel, region, at)
    }

    /// The place right behind an op.
    ///
    /// # Panics
    /// If the op was taken out of the kernel.
    pub(crate) fn behind(kernel: &'k mut Kernel, op: OpId) -> Self {
        let mut place = Inserter::before(kernel, op);
        place.at += 1;
        place
    }

    pub(crate) fn insert(&mut self, data: OpData) {
        let op = self.kernel.new_op(data);
        self.kernel.region_mut(self.region).ops.insert(self.at, op);
        self.at += 1;
    }

    pub(crate) fn emit(&mut self, op: Op, operands: Vec<ValueId>, ty: Type) -> ValueId {
        let result = self.kernel.new_value(ty, None);
        self.insert(OpData { op, operands, results: vec![result], regions: Vec::new(), loc: Loc::UNKNOWN });
        result
    }

    /// An op whose result has the type that its operands give it.
    ///
    /// # Panics
    /// If they can't be its operands.
    pub(crate) fn emit_typed(&mut self, op: Op, operands: Vec<ValueId>) -> ValueId {
        let types: Vec<Type> = operands.iter().map(|&value| self.kernel.ty(value).clone()).collect();
        let types = result_types(&op, &types).expect("an op that is added has its operands");
        self.emit(op, operands, types[0].clone())
    }

    /// A tile of zeros, of another tile's type.
    pub(crate) fn zeros(&mut self, like: ValueId) -> ValueId {
        let ty = self.kernel.ty(like).clone();
        let elem = ty.elem().clone();
        let is_float = elem.known().is_some_and(DType::is_float);
        let value = if is_float { Literal::Float(0.0) } else { Literal::Int(0) };
        let zero = self.emit(Op::Constant { value, elem: elem.clone() }, Vec::new(), Type::scalar(elem));
        let shape = ty.as_tile().expect("it is a tile").shape.clone();
        self.emit(Op::Splat(shape), vec![zero], ty)
    }

    pub(crate) fn finish(&mut self, values: Vec<ValueId>) {
        let (results, regions) = (Vec::new(), Vec::new());
        self.insert(OpData { op: Op::Yield, operands: values, results, regions, loc: Loc::UNKNOWN });
    }
}
