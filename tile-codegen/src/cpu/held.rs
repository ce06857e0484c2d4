//! Tiles that a loop carries in vector registers, if each iteration computes the next value element by element: for example
//! a row of sums, to which each iteration adds a piece of a longer row.
//!
//! In scratch memory, every element would be loaded, added to and stored again. Besides, processors compare only the lowest
//! bits of addresses to find whether a load depends on an earlier store, and now and then mistake the tensor's elements for
//! those of the tile; so even a tile in the first cache slows the loop down.
//!
//! Inside the loop the tile is an array on the stack that is accessed by unrolled code, so that LLVM promotes it to
//! registers; before and after the loop it is in scratch memory like any stored tile.

use super::fuse::{Fusion, is_elementwise, is_tile};
use super::region::{Emitter, extents};
use super::vectors::vector_type;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{IntValue, PointerValue, VectorValue};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::{DType, Op, ValueId};

/// Lanes that are computed together: those of several registers, because fewer loops over lanes are compiled sooner.
const LANES: i64 = 16;

/// A tile that a loop carries in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// The loop's parameter.
    param: ValueId,
    /// What a turn gives the next one.
    next: ValueId,
    dtype: DType,
    elements: i64,
}

impl Held {
    /// Whether it is a number of whole vectors.
    fn is_of_vectors(&self) -> bool {
        self.elements % LANES == 0
    }

    fn bytes(&self) -> i64 {
        self.elements * super::memory::scratch::element_bytes(self.dtype) as i64
    }
}

impl<'a> Fusion<'a> {
    /// The tiles that a loop carries in registers of so many bytes together: all that it carries, or none.
    pub(super) fn held(&self, data: &OpData, bytes: i64) -> Vec<Held> {
        let held = self.carried(data).filter(|held| {
            let is_same = held.iter().all(|tile| tile.elements == held[0].elements && tile.is_of_vectors());
            is_same && held.iter().map(Held::bytes).sum::<i64>() <= bytes
        });
        held.filter(|held| self.is_all_in_registers(data, held)).unwrap_or_default()
    }

    /// The tiles that a loop carries, where they are rows of numbers that each turn makes anew.
    fn carried(&self, data: &OpData) -> Option<Vec<Held>> {
        let instance = self.instance();
        let region = instance.region(*data.regions.first()?);
        let results = &data.results;
        let params = &region.params[region.params.len().checked_sub(results.len())?..];
        let yielded = region.ops.last().map(|&op| instance.op(op)).filter(|last| last.op == Op::Yield)?;
        let pairs = params.iter().zip(&yielded.operands).filter(|(param, _)| is_tile(instance, **param));
        pairs.map(|(&param, &next)| self.held_tile(param, next, data)).collect()
    }

    fn held_tile(&self, param: ValueId, next: ValueId, data: &OpData) -> Option<Held> {
        let ty = self.instance().ty(param).as_tile()?;
        let dtype = ty.elem.known().filter(|&dtype| dtype != DType::Bool)?;
        let shape = extents(&ty.shape);
        let (&elements, before) = shape.split_last()?;
        let made = self.definition(next)?;
        let is_row = before.iter().all(|&extent| extent == 1);
        let is_made_here = self.home(next) == Some(data.regions[0]) && self.use_count(next) == 1;
        let is_computed = is_elementwise(&made.op) && self.transposed_axis(made).is_none();
        (is_row && is_made_here && is_computed).then_some(Held { param, next, dtype, elements })
    }

    /// Whether a loop does nothing with tiles but compute the next ones, each element from the same one of those before.
    fn is_all_in_registers(&self, data: &OpData, held: &[Held]) -> bool {
        let instance = self.instance();
        let body = &instance.region(data.regions[0]).ops;
        body.iter().map(|&op| instance.op(op)).all(|op| {
            let Some(&result) = op.results.first() else { return matches!(op.op, Op::Yield | Op::Prefetch) };
            let is_next = held.iter().any(|tile| tile.next == result);
            let reads_in_place = || {
                let mut reads = self.reads(op).into_iter();
                reads.all(|read| read.in_place && held.iter().any(|tile| tile.param == read.tile))
            };
            match is_next {
                true => reads_in_place(),
                false => op.regions.is_empty() && !self.is_stored(result),
            }
        })
    }
}

/// Bytes that every vector of a tile's array begins at a multiple of: those of the shortest, of bytes.
const ALIGNMENT: u32 = 16;

/// A tile's elements in registers, which are an array on the stack until LLVM has optimised it.
#[derive(Clone, Copy)]
struct Array<'c> {
    element: BasicTypeEnum<'c>,
    first: PointerValue<'c>,
}

/// The arrays of tiles in registers, by the parameters of the loops that run.
pub(super) type Arrays<'c> = HashMap<ValueId, PointerValue<'c>>;

impl<'a, 'c> Emitter<'a, 'c> {
    /// Whether an op's tile is computed at the end of the turn, with the others that are held.
    pub(super) fn is_next_of_held(&self, tile: ValueId) -> bool {
        self.sources.held.contains_key(&tile)
    }

    /// Brings tiles from scratch memory to registers.
    pub(super) fn hold(&mut self, held: &[Held]) {
        for tile in held {
            let element = self.buffers.element_type(tile.dtype);
            let [now, next] = [(); 2].map(|()| self.lane_array(element, tile.elements));
            self.sources.held.extend([(tile.param, now), (tile.next, next)]);
            let (buffer, now) = (self.stored(tile.param), self.array_of(tile.dtype, now));
            self.each_vector(tile, |emitter, first, lanes| {
                let vector = emitter.buffers.load_lanes(&buffer, first, None, lanes);
                emitter.write_lanes(now, first, vector);
            });
        }
    }

    /// Computes the next tiles from those of this turn, which they then take the place of.
    pub(super) fn next_of_held(&mut self, held: &[Held]) {
        let made: Vec<&'a OpData> = held.iter().filter_map(|tile| self.definition(tile.next)).collect();
        let loads: Vec<&'a OpData> = made.iter().flat_map(|made| self.fusion.streams_of(made)).collect();
        self.with_streams(&loads, &[], &mut |emitter, whole| {
            for (tile, made) in held.iter().zip(&made) {
                let next = emitter.array_of(tile.dtype, emitter.sources.held[&tile.next]);
                let before = vec![emitter.ir.i64(0); emitter.shape(tile.param).len() - 1];
                emitter.each_vector(tile, |emitter, first, lanes| {
                    emitter.each_lane(lanes.into(), |emitter, lane| {
                        let i = emitter.ir.add(first, lane);
                        let value = emitter.compute(made, &[before.as_slice(), &[i]].concat());
                        emitter.ir.store(emitter.ir.element(next.element, next.first, i), value);
                    });
                    if !whole && tile.dtype.is_float() {
                        // Otherwise LLVM makes one copy of what both ways do with the elements, and reads all of them
                        // before it uses any: 10 % slower than sums that read their operand, where memory is the limit.
                        let vector = emitter.read_lanes(next, first, lanes);
                        let fenced = emitter.ir.intrinsic(
                            "llvm.arithmetic.fence",
                            &[vector.get_type().into()],
                            &[vector.into()],
                        );
                        let fenced = fenced.expect("a fence has a result").into_vector_value();
                        emitter.write_lanes(next, first, fenced);
                    }
                });
            }
        });
        for tile in held {
            let [now, next] =
                [tile.param, tile.next].map(|value| self.array_of(tile.dtype, self.sources.held[&value]));
            self.each_vector(tile, |emitter, first, lanes| {
                let vector = emitter.read_lanes(next, first, lanes);
                emitter.write_lanes(now, first, vector);
            });
        }
    }

    /// Brings tiles back to scratch memory.
    pub(super) fn let_go(&mut self, held: &[Held]) {
        for tile in held {
            let buffer = self.stored(tile.param);
            let now = self.sources.held.remove(&tile.param).expect("what is let go is held");
            let now = self.array_of(tile.dtype, now);
            self.sources.held.remove(&tile.next);
            self.each_vector(tile, |emitter, first, lanes| {
                let vector = emitter.read_lanes(now, first, lanes);
                emitter.buffers.store_lanes(&buffer, first, None, vector);
            });
        }
    }

    /// The array from an element of this format on.
    fn array_of(&self, dtype: DType, first: PointerValue<'c>) -> Array<'c> {
        Array { element: self.buffers.element_type(dtype), first }
    }

    /// The elements of an array from one on.
    fn read_lanes(&self, array: Array<'c>, first: IntValue<'c>, lanes: u32) -> VectorValue<'c> {
        let vector = vector_type(array.element, lanes).into();
        let from = self.ir.element(array.element, array.first, first);
        self.ir.load_at(vector, from, Some(ALIGNMENT)).into_vector_value()
    }

    fn write_lanes(&self, array: Array<'c>, first: IntValue<'c>, vector: VectorValue<'c>) {
        let to = self.ir.element(array.element, array.first, first);
        self.ir.store_at(to, vector.into(), Some(ALIGNMENT));
    }

    /// Emits what is done with some lanes of a tile, for all of them one after the other.
    fn each_vector(&mut self, tile: &Held, mut body: impl FnMut(&mut Self, IntValue<'c>, u32)) {
        for first in (0..tile.elements).step_by(LANES as usize) {
            body(self, self.ir.i64(first), LANES as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// Sums of pieces of rows, with more in the loop's body, which yields this.
    fn sums(elements: usize, in_body: &str, yielded: &str) -> Instance {
        let ty = format!("tile<1 x {elements} x f32>");
        let source = format!(
            "kernel @k(%x: tensor<m x n x f32>, %y: mut tensor<m x {elements} x f32>) {{
  %vx = partition %x [1, {elements}] : partition<m x n x f32, [1, {elements}]>
  %vy = partition %y [1, {elements}] : mut partition<m x {elements} x f32, [1, {elements}]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0 : index
  %end = extent ceil_div(n, {elements}) : index
  %zero = constant 0.0 : f32
  %start = splat %zero : {ty}
  %sums = for %p = %0 to %end carry (%acc = %start) : {ty} {{
    %t = load_masked %vx[%i, %p] pad %zero : {ty}
    %next = add %acc, %t : {ty}
{in_body}    yield {yielded}
  }}
  store_masked %vy, %sums
}}
"
        );
        Instance::parse(&source, &[]).unwrap()
    }

    /// How many tiles the loop of an instance carries in 1536 bytes of registers.
    fn held(instance: &Instance) -> usize {
        let ops = instance.walk();
        let looped = ops.iter().map(|&op| instance.op(op)).find(|data| data.op == Op::For);
        Fusion::of(instance).held(looped.unwrap(), 1536).len()
    }

    #[test]
    fn a_row_of_whole_vectors_is_held_where_registers_have_room() {
        let of = |elements| held(&sums(elements, "", "%next"));
        assert_eq!([16, 128, 384].map(of), [1, 1, 1]);
        assert_eq!([20, 400].map(of), [0, 0]);
    }

    #[test]
    fn what_is_needed_as_a_tile_is_not_held() {
        let flipped = "    %turned = flip %acc axis 1 : tile<1 x 64 x f32>\n    %sum = add %next, %turned : tile<1 x 64 x f32>\n";
        assert_eq!(held(&sums(64, flipped, "%sum")), 0);
        let reduced = "    %all = reduce sum %acc axis 1 : tile<1 x 1 x f32>\n    %of = broadcast %all : tile<1 x 64 x f32>\n    %sum = add %next, %of : tile<1 x 64 x f32>\n";
        assert_eq!(held(&sums(64, reduced, "%sum")), 0);
        assert_eq!(held(&sums(64, "", "%t")), 0);
    }

    /// The sums' loop reads each vector of the tensor once, as what is added, and writes nothing.
    #[test]
    fn a_loop_that_holds_its_tile_touches_the_tensor_alone() {
        let assembly = assembly(&sums(128, "", "%next"), "x86-64-v4");
        let added = |line: &&str| line.contains("vaddps") && line.contains("(%r") && line.contains("zmm");
        let lines: Vec<&str> = assembly.lines().collect();
        let first = lines.iter().position(added).unwrap();
        assert_eq!(lines[first..first + 8].iter().filter(|line| added(line)).count(), 8, "{assembly}");
    }
}
