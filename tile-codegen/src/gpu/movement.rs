//! `broadcast` and `permute`: every element of the result is some element of the operand.
//!
//! Where each thread already holds the elements that it needs, slots are renamed. Otherwise the operand
//! goes through shared memory.

use super::distribution::{Distribution, extents, strides};
use super::fragment::{Fragment, REGISTER_SLOTS};
use super::region::Emitter;
use super::shared::Request;
use tile_ir::kernel::OpData;
use tile_ir::{Instance, Op, OpId};

/// Which element of the operand each element of the result is.
struct Movement {
    shape: Vec<u64>,
    /// Strides of the operand along the result's axes; 0 where it is repeated.
    source_strides: Vec<u64>,
    source_elements: u64,
}

impl Movement {
    fn of(instance: &Instance, data: &OpData, op: &Op) -> Option<Movement> {
        let permutation = match op {
            Op::Broadcast(shape) => (0..shape.len()).collect(),
            Op::Permute(permutation) => permutation.clone(),
            _ => return None,
        };
        let (source, shape) = (extents(instance, data.operands[0]), extents(instance, data.results[0]));
        let strides = strides(&source);
        let stride = |axis: usize| if source[axis] == 1 { 0 } else { strides[axis] };
        Some(Movement {
            shape,
            source_strides: permutation.into_iter().map(stride).collect(),
            source_elements: source.iter().product(),
        })
    }

    fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    fn source(&self, mut element: u64) -> u64 {
        let mut source = 0;
        for (&extent, &stride) in self.shape.iter().zip(&self.source_strides).rev() {
            source += element % extent * stride;
            element /= extent;
        }
        source
    }

    /// The operand's slot for each slot of the result, if every thread holds what it needs.
    fn renamed(&self, distribution: Distribution) -> Option<Vec<usize>> {
        let threads = distribution.threads;
        let slots = 0..distribution.slots(self.elements()) as u64;
        let renamed = slots.map(|slot| {
            let first = self.source(slot * threads) / threads;
            let mut elements = slot * threads..((slot + 1) * threads).min(self.elements());
            let local = elements.all(|element| self.source(element) == first * threads + element % threads);
            local.then_some(first as usize)
        });
        let renamed = renamed.collect::<Option<Vec<usize>>>()?;
        let in_registers = renamed.len() <= REGISTER_SLOTS;
        (in_registers || self.is_identity(&renamed)).then_some(renamed)
    }

    fn is_identity(&self, renamed: &[usize]) -> bool {
        self.elements() == self.source_elements && renamed.iter().copied().eq(0..renamed.len())
    }
}

/// The shared memory that the op needs.
pub(super) fn requests(
    instance: &Instance,
    distribution: Distribution,
    data: &OpData,
    op: &Op,
) -> Vec<Request> {
    let Some(movement) = Movement::of(instance, data, op) else { return Vec::new() };
    if movement.renamed(distribution).is_some() {
        return Vec::new();
    }
    let dtype = instance.ty(data.results[0]).elem().known().expect("an instance has no dtype parameters");
    vec![Request { dtype, elements: distribution.padded(movement.source_elements) }]
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn movement(&mut self, op: OpId, data: &OpData) {
        let movement = Movement::of(self.instance, data, &data.op).expect("a movement op");
        let result = data.results[0];
        let source = self.tile(data.operands[0]).clone();
        let fragment = match (&source, movement.renamed(self.distribution)) {
            (Fragment::Uniform(_), _) => source,
            (Fragment::Registers(values), Some(slots)) => {
                Fragment::Registers(slots.into_iter().map(|slot| values[slot]).collect())
            }
            // Only the identity is a renaming of arrays.
            (Fragment::Local(_), Some(_)) => source,
            (_, None) => self.through_shared_memory(op, data, &movement, &source),
        };
        self.set_tile(result, fragment);
    }

    fn through_shared_memory(
        &mut self,
        op: OpId,
        data: &OpData,
        movement: &Movement,
        source: &Fragment<'c>,
    ) -> Fragment<'c> {
        let buffer = self.plan.buffers(op)[0];
        let (dtype, ir) = (self.dtype(data.results[0]), self.ir);
        self.reserve(&[buffer]);
        self.share(buffer, source, movement.source_elements, dtype);
        self.sync();
        self.pending.read(buffer);
        let mapping = self.mapping(&movement.shape);
        self.map(movement.elements(), dtype, |slot| {
            let mut index = self.i32(0);
            let coordinates = mapping.coordinates(ir, slot);
            for (coordinate, &stride) in coordinates.into_iter().zip(&movement.source_strides) {
                if stride > 0 {
                    index = ir.add(index, ir.mul(coordinate.value(ir), self.i32(stride)));
                }
            }
            self.read_shared(buffer, index)
        })
    }
}
