//! Makes ops with inferred result types. The builder refuses operands whose types don't fit; the rest of what a kernel must be
//! is [`verify`](crate::verify())'s to say.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::loc::Loc;
use crate::ops::{Literal, Op, TypeError, result_types};
use crate::types::{Elem, Type};

/// Appends ops to a region of a kernel.
///
/// ```
/// use tile_ir::{Builder, DType, Dim, Kernel, Loc, Op, ops::BinaryOp};
/// let mut kernel = Kernel::new("twice", vec![]);
/// let mut b = Builder::new(&mut kernel);
/// let one = b.float(1.0, DType::F32);
/// let ones = b.op(Op::Splat(vec![Dim::from(4)]), &[one], Loc::UNKNOWN)?;
/// let twos = b.op(Op::Binary(BinaryOp::Add), &[ones, ones], Loc::UNKNOWN)?;
/// assert_eq!(b.kernel.ty(twos).to_string(), "tile<4 x f32>");
/// # Ok::<(), tile_ir::ops::TypeError>(())
/// ```
#[derive(Debug)]
pub struct Builder<'k> {
    /// The kernel that is built.
    pub kernel: &'k mut Kernel,
    region: RegionId,
}

impl<'k> Builder<'k> {
    /// A builder at the end of the kernel's body.
    pub fn new(kernel: &'k mut Kernel) -> Builder<'k> {
        let region = kernel.body();
        Builder { kernel, region }
    }

    /// The region that ops are appended to.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// Goes on in another region; gives the one left.
    pub fn enter(&mut self, region: RegionId) -> RegionId {
        std::mem::replace(&mut self.region, region)
    }

    /// Appends an op with exactly one result.
    ///
    /// # Errors
    /// [`TypeError`] where the operands don't fit.
    ///
    /// # Panics
    /// If the op gives nothing, as a store.
    pub fn op(&mut self, op: Op, operands: &[ValueId], loc: Loc) -> Result<ValueId, TypeError> {
        let id = self.ops(op, operands, vec![], loc)?;
        Ok(self.kernel.op(id).results[0])
    }

    /// Appends an op with any number of results, and its regions.
    ///
    /// # Errors
    /// [`TypeError`] where the operands don't fit.
    pub fn ops(
        &mut self,
        op: Op,
        operands: &[ValueId],
        regions: Vec<RegionId>,
        loc: Loc,
    ) -> Result<OpId, TypeError> {
        let operand_types: Vec<Type> = operands.iter().map(|&value| self.kernel.ty(value).clone()).collect();
        let results = result_types(&op, &operand_types)?;
        Ok(self.append(op, operands, &results, regions, loc))
    }

    /// Appends an op whose result types the caller knows: `if`, whose results are its regions' business.
    pub fn append(
        &mut self,
        op: Op,
        operands: &[ValueId],
        results: &[Type],
        regions: Vec<RegionId>,
        loc: Loc,
    ) -> OpId {
        let results = results.iter().map(|ty| self.kernel.new_value(ty.clone(), None)).collect();
        let id = self.kernel.new_op(OpData { op, operands: operands.to_vec(), results, regions, loc });
        let region = self.region;
        self.kernel.region_mut(region).ops.push(id);
        id
    }

    /// A float constant.
    ///
    /// # Panics
    /// If `elem` is not a float format.
    pub fn float(&mut self, value: f64, elem: impl Into<Elem>) -> ValueId {
        self.constant(Literal::Float(value), elem.into())
    }

    /// An integer constant.
    ///
    /// # Panics
    /// If the value doesn't fit the format.
    pub fn int(&mut self, value: i128, elem: impl Into<Elem>) -> ValueId {
        self.constant(Literal::Int(value), elem.into())
    }

    fn constant(&mut self, value: Literal, elem: Elem) -> ValueId {
        self.op(Op::Constant { value, elem }, &[], Loc::UNKNOWN)
            .expect("the caller gives a value of the format")
    }

    /// The value of an extent.
    pub fn extent(&mut self, dim: Dim) -> ValueId {
        let op = self.append(Op::Extent(dim), &[], &[Type::scalar(DType::Index)], vec![], Loc::UNKNOWN);
        self.kernel.op(op).results[0]
    }
}
