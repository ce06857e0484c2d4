//! Loops that do nothing but add products to a tile.

use super::super::fuse::Fusion;
use tile_ir::kernel::OpData;
use tile_ir::ops::Effect;
use tile_ir::{Instance, Op, Type, ValueId};

/// A loop that adds the products of one `mma` of matrices to a tile, and has no effect besides.
pub(in super::super) struct Accumulation<'a> {
    /// The `mma`.
    pub(in super::super) product: &'a OpData,
    /// The stores that are all that the loop's tile is used for, element by element; none where it is used otherwise.
    /// Sums that none of them writes needn't be right.
    pub(in super::super) stores: Vec<&'a OpData>,
}

/// The accumulation that an op is.
pub(super) fn accumulation<'a>(
    instance: &'a Instance,
    fusion: &Fusion<'a>,
    data: &'a OpData,
) -> Option<Accumulation<'a>> {
    let (Op::For, [_, _, _], [sum]) = (&data.op, data.operands.as_slice(), data.results.as_slice()) else {
        return None;
    };
    let body = instance.region(data.regions[0]);
    let (&carried, ops) = (body.params.last()?, body.ops.iter().map(|&op| instance.op(op)));
    let ops: Vec<&'a OpData> = ops.collect();
    let (last, before) = ops.split_last()?;
    let product = fusion.definition(*last.operands.first()?)?;
    let is_only_use = |value: ValueId, user: &OpData| {
        let mut users = fusion.users(value);
        users.next().is_some_and(|(_, only)| std::ptr::eq(only, user)) && users.next().is_none()
    };
    let adds = product.op == Op::Mma
        && before.iter().any(|op| std::ptr::eq(*op, product))
        && product.operands[2] == carried
        && is_only_use(carried, product)
        && is_only_use(product.results[0], last);
    let is_one_matrix = matches!(instance.ty(*sum), Type::Tile(ty) if ty.shape.len() == 2);
    // A sum that is rounded in each turn is another one.
    let is_exact = !instance.ty(*sum).elem().known()?.is_narrow_float();
    let is_pure = before
        .iter()
        .all(|op| op.regions.is_empty() && (op.op.effect() == Effect::Hints || !op.op.has_effect()));
    if !(adds && is_one_matrix && is_exact && is_pure) {
        return None;
    }
    Some(Accumulation { product, stores: stores_of(fusion, *sum).unwrap_or_default() })
}

/// What stores a tile, where it is only stored, element by element and in the region of the loop that gives it.
fn stores_of<'a>(fusion: &Fusion<'a>, sum: ValueId) -> Option<Vec<&'a OpData>> {
    let users = fusion.users_through_leaves(sum).into_iter();
    let stores = users.filter(|(_, user)| !user.op.is_leaf());
    stores
        .map(|(region, user)| (user.op.is_store() && Some(region) == fusion.home(sum)).then_some(user))
        .collect()
}
