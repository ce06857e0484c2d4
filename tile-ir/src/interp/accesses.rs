//! What a block does to tensors: where a view's elements lie in an argument, and what is loaded from there and stored.

use super::evaluation::Evaluation;
use super::extents;
use crate::array::Array;
use crate::kernel::{OpData, ValueId};
use crate::ops::{Atomic, Literal};
use crate::types::{TensorType, Type};
use crate::view::Placement;
use tile_layout::linear_index;

impl Evaluation<'_> {
    /// The argument that a tensor value shows, and where its elements lie in it.
    fn placement(&self, tensor: ValueId) -> (usize, Placement) {
        let lookup = |name: &str| self.sizes.get(name).copied();
        let place = |ty: &TensorType| Placement::of(ty, &lookup).expect("a launch has checked the sizes");
        let Type::Tensor(ty) = self.instance.ty(tensor) else { unreachable!("verified: a tensor") };
        let (argument, source) = &self.tensors[&tensor];
        let selections = source
            .selections
            .iter()
            .map(|selection| (place(&selection.from), selection.axis, self.index(selection.index) as u64));
        (*argument, place(ty).at(selections))
    }

    /// The argument of a partition view, and where the elements of one of its tiles lie, for which an access gives an
    /// index.
    fn tile(&self, view: ValueId, given: &[ValueId]) -> (usize, impl Fn(&[usize]) -> Option<usize> + use<>) {
        let ty = self.instance.ty(view).as_partition().expect("verified: a view operand");
        let (argument, placement) = self.placement(self.views[&view]);
        let given: Vec<usize> = given.iter().map(|&value| self.index(value)).collect();
        let (steps, index) = (extents(&ty.steps), ty.tile_index(&self.tile, &given));
        let position = move |inside: &[usize]| {
            let axes = index.iter().zip(&steps).zip(inside).zip(&placement.extents);
            let element = axes.map(|(((&tile, &step), &inside), &extent)| {
                let start = i64::try_from(tile.checked_mul(step)?).ok().filter(|&start| start < extent)?;
                start.checked_add(inside as i64)
            });
            placement.position(&element.collect::<Option<Vec<i64>>>()?)
        };
        (argument, position)
    }

    pub(super) fn load(&self, data: &OpData) -> Array {
        let load = data.load().expect("verified: a load");
        let view = self.instance.ty(load.view).as_partition().expect("verified: a view operand");
        let (argument, position) = self.tile(load.view, load.index);
        let source = &self.arguments[argument];
        // Without a mask there is nothing to pad, unless the kernel's author vouched for it and was wrong.
        let zero = if source.dtype().is_float() { Literal::Float(0.0) } else { Literal::Int(0) };
        let pad = load.pad.map_or(zero, |pad| self.get(pad).get(0));
        source.read(&extents(&view.tile), pad, position)
    }

    pub(super) fn store(&mut self, data: &OpData) {
        let tile = self.get(data.operands[1]).clone();
        let (argument, position) = self.tile(data.operands[0], data.tile_index());
        self.arguments[argument].write(&tile, position);
    }

    pub(super) fn gather_load(&self, data: &OpData) -> Array {
        let (argument, placement) = self.placement(data.operands[0]);
        let indices: Vec<&Array> = data.operands[2..].iter().map(|&value| self.get(value)).collect();
        let shape = indices[0].shape();
        let pad = self.get(data.operands[1]).get(0);
        self.arguments[argument].read(shape, pad, |inside| {
            let at = linear_index(inside, shape);
            let element = indices.iter().map(|index| i64::try_from(index.get_int(at)).ok());
            placement.position(&element.collect::<Option<Vec<i64>>>()?)
        })
    }

    pub(super) fn atomic(&mut self, data: &OpData, atomic: Atomic) -> Vec<Option<Array>> {
        let (argument, placement) = self.placement(data.operands[0]);
        let tile = |&value: &ValueId| self.get(value).clone();
        let tiles: Vec<Array> = data.operands[1..].iter().map(tile).collect();
        let (indices, values) = tiles.split_at(placement.extents.len());
        let (values, mask) = values.split_at(atomic.kind.values());
        let (shape, dtype) = (indices[0].shape().to_vec(), self.arguments[argument].dtype());
        let zero = if dtype.is_float() { Literal::Float(0.0) } else { Literal::Int(0) };
        let mut old = Array::full(dtype, &shape, zero);
        for at in 0..old.len() {
            let index = indices.iter().map(|index| i64::try_from(index.get_int(at)).ok());
            let position = index.collect::<Option<Vec<i64>>>().and_then(|index| placement.position(&index));
            let on = mask.iter().all(|mask| mask.get_int(at) != 0);
            let Some(position) = position.filter(|_| on) else { continue };
            let before = self.arguments[argument].get(position);
            let given: Vec<Literal> = values.iter().map(|value| value.get(at)).collect();
            let after = Array::full(dtype, &[1], atomic.kind.update(dtype, before, &given));
            self.arguments[argument].write(&after, |_| Some(position));
            old.write(&Array::full(dtype, &[1], before), |_| Some(at));
        }
        if atomic.kind.has_result() { vec![Some(old)] } else { Vec::new() }
    }
}
