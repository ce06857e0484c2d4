//! Which axis of a reshaped tile an axis of the result is: axes of one element come and go, and the others keep their order.

use crate::dim::Dim;
use crate::kernel::{Kernel, OpData, ValueId};

/// The axis of a reshaped tile that an axis of the result is; `None` where that is of one element, or axes are joined or split.
pub(crate) fn axis_before(kernel: &Kernel, reshape: &OpData, axis: usize) -> Option<usize> {
    let long = |value: ValueId| -> Option<Vec<(usize, &Dim)>> {
        let extents = kernel.ty(value).as_tile()?.shape.iter().enumerate();
        Some(extents.filter(|(_, extent)| extent.as_const() != Some(1)).collect())
    };
    let (before, after) = (long(reshape.operands[0])?, long(reshape.results[0])?);
    let same = before.iter().map(|it| it.1).eq(after.iter().map(|it| it.1));
    let at = after.iter().position(|&(other, _)| other == axis).filter(|_| same)?;
    Some(before[at].0)
}
