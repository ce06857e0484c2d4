//! Stores across the rows of a tensor, as views that are turned have them, become stores along its rows of tiles that are turned:
//! what gives a tile is computed turned where more of what it loads lies across rows than along them, and otherwise the tile is
//! turned where it is stored, by blocks of elements in registers. So are the planes of an image that interleaves them.

use super::across_rows::{axis_of_rows, order_of_rows};
use super::turned_tiles::{Known, TurnedTiles};
use super::{dce, turned};
use crate::cpu::MOST_APART;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::loc::Loc;
use crate::ops::Op;
use crate::types::{PartitionType, Type};
use std::collections::HashMap;

/// Turns every such store.
pub(super) fn run(kernel: &mut Kernel) {
    // Tiles that are turned are one store's alone, so what is known of the others stays true.
    let (known, mut views) = (Known::of(kernel), HashMap::new());
    for store in kernel.walk() {
        let Some((cut, order)) = across(kernel, &known.definitions, store) else { continue };
        let tile = turned_tile(kernel, &known, store, &order);
        let view = *views.entry(cut).or_insert_with(|| turned::view(kernel, cut, &order));
        let index = tile_index(kernel, store);
        let operands = [view, tile].into_iter().chain(turned::axes(&index, &order)).collect();
        kernel.op_mut(store).operands = operands;
    }
    dce::run(kernel);
}

/// What cuts the tensor of a store into tiles, and the order of axes in which its tile lies along the tensor's rows, where it
/// doesn't as it is.
fn across(kernel: &Kernel, definitions: &HashMap<ValueId, OpId>, store: OpId) -> Option<(OpId, Vec<usize>)> {
    let data = kernel.op(store);
    let view = *data.operands.first().filter(|_| data.op.is_store())?;
    let ty = kernel.ty(view).as_partition()?;
    let axis = axis_of_rows(ty).or_else(|| interleaved(ty))?;
    let cut = *definitions.get(&view).filter(|cut| matches!(kernel.op(**cut).op, Op::Partition(_)))?;
    Some((cut, order_of_rows(ty.tile.len(), axis)))
}

/// The axis of few elements that lie next to each other, between those of the last.
fn interleaved(view: &PartitionType) -> Option<usize> {
    let strides = view.tensor.strided().strides;
    let (last, others) = strides.split_last()?;
    let apart = last.as_const().filter(|apart| (2..=MOST_APART).contains(apart))?;
    let is_between =
        |&axis: &usize| others[axis].as_const() == Some(1) && view.tile[axis].as_const() == Some(apart);
    (0..others.len()).find(is_between)
}

/// What a store stores, turned.
fn turned_tile(kernel: &mut Kernel, known: &Known, store: OpId, order: &[usize]) -> ValueId {
    let tile = kernel.op(store).operands[1];
    let row = order[order.len() - 1];
    let goes_across = |view: &PartitionType| view.tensor.strided().strides[row].as_const() == Some(1);
    let saves = |together: &TurnedTiles| {
        let views = together.views(kernel);
        let across = views.iter().filter(|view| goes_across(view)).count();
        across >= views.len() - across
    };
    match TurnedTiles::of(kernel, known, tile, store, order.to_vec()).filter(saves) {
        Some(together) => together.turn(kernel),
        None => Inserter::before(kernel, store).emit_typed(Op::Permute(order.to_vec()), vec![tile]),
    }
}

/// The index of a store's tile along every axis: what it gives, and that of the tile which its block owns.
fn tile_index(kernel: &mut Kernel, store: OpId) -> Vec<ValueId> {
    let data = kernel.op(store);
    let (view, given) = (data.operands[0], data.tile_index().to_vec());
    let ty = kernel.ty(view).as_partition().expect("verified: a store is of a view").clone();
    let own: Vec<ValueId> = (0..ty.tile.len()).map(|_| kernel.new_value(Type::INDEX, None)).collect();
    let op = Op::BlockIndex;
    let block =
        OpData { op, operands: vec![view], results: own.clone(), regions: Vec::new(), loc: Loc::UNKNOWN };
    Inserter::before(kernel, store).insert(block);
    ty.tile_index(&own, &given)
}

#[cfg(test)]
mod tests {
    use crate::passes::{STORED_ROWS, run};
    use crate::{Instance, text};

    fn after(source: &str) -> String {
        text::print(&run(Instance::parse(source, &[]).unwrap(), &STORED_ROWS))
    }

    /// What lies along rows is turned where it is stored, what lies across them where it is loaded, with what is between. A
    /// tensor that isn't turned is stored as it is.
    #[test]
    fn stores_go_along_rows() {
        let source = "\
kernel @k(%x: tensor<m x n x f32>, %w: tensor<n x f32>, %y: mut tensor<n x m x f32>, %z: mut tensor<n x m x f32>, \
%u: mut tensor<m x n x f32>) {
  %vx = partition %x [16, 32] : partition<m x n x f32, [16, 32]>
  %xt = view %x permute [1, 0] : tensor<n x m x f32, strided [1, n]>
  %vxt = partition %xt [32, 16] : partition<n x m x f32, strided [1, n], [32, 16]>
  %vw = partition %w [32] : partition<n x f32, [32]>
  %vy = partition %y [32, 16] : mut partition<n x m x f32, [32, 16]>
  %zt = view %z permute [1, 0] : mut tensor<m x n x f32, strided [1, m]>
  %vz = partition %zt [16, 32] : mut partition<m x n x f32, strided [1, m], [16, 32]>
  %ut = view %u permute [1, 0] : mut tensor<n x m x f32, strided [1, n]>
  %vu = partition %ut [32, 16] : mut partition<n x m x f32, strided [1, n], [32, 16]>
  %i, %j = block_index %vz : index, index
  %none = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %none : tile<16 x 32 x f32>
  %twice = add %t, %t : tile<16 x 32 x f32>
  store_masked %vz, %twice
  %tt = load_masked %vxt[%j, %i] pad %none : tile<32 x 16 x f32>
  %most = reduce max %tt axis 1 : tile<32 x 1 x f32>
  %each = broadcast %most : tile<32 x 16 x f32>
  %w1 = load_masked %vw[%j] pad %none : tile<32 x f32>
  %column = reshape %w1 : tile<32 x 1 x f32>
  %ws = broadcast %column : tile<32 x 16 x f32>
  %less = sub %tt, %each : tile<32 x 16 x f32>
  %scaled = mul %less, %ws : tile<32 x 16 x f32>
  store_masked %vu, %scaled
  %p = load_masked %vxt[%j, %i] pad %none : tile<32 x 16 x f32>
  store_masked %vy, %p
}
";
        insta::assert_snapshot!(after(source));
    }

    /// Planes are interleaved. Of a view whose blocks span an axis the index is turned as well, and of planes of which a tile has
    /// one each is stored as it is.
    #[test]
    fn planes_are_interleaved() {
        let source = "\
kernel @k(%x: tensor<3 x m x n x f32>, %y: mut tensor<m x n x 3 x f32>, %z: mut tensor<m x n x 3 x f32>) {
  %vx = partition %x [3, 4, 32] : partition<3 x m x n x f32, [3, 4, 32]>
  %yt = view %y permute [2, 0, 1] : mut tensor<3 x m x n x f32, strided [1, 3*n, 3]>
  %vy = partition %yt [3, 4, 32] spanning [1] : mut partition<3 x m x n x f32, strided [1, 3*n, 3], [3, 4, 32] spanning [1]>
  %zt = view %z permute [2, 0, 1] : mut tensor<3 x m x n x f32, strided [1, 3*n, 3]>
  %vz = partition %zt [1, 4, 32] : mut partition<3 x m x n x f32, strided [1, 3*n, 3], [1, 4, 32]>
  %i, %none, %j = block_index %vy : index, index, index
  %0 = constant 0 : index
  %2 = constant 2 : index
  %zero = constant 0.0 : f32
  %t = load_masked %vx[%0, %2, %j] pad %zero : tile<3 x 4 x 32 x f32>
  store_masked %vy[%2], %t
  %most = reduce max %t axis 0 : tile<1 x 4 x 32 x f32>
  store_masked %vz, %most
}
";
        insta::assert_snapshot!(after(source));
    }
}
