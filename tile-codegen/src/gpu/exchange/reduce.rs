//! Reductions along one axis: first within each thread, then between the lanes of a warp, then between warps,
//! then between blocks that share the tile.
//!
//! Lanes give each other partial results by shuffles, in halves: afterwards all lanes that differ along the axis have
//! the same result, bit by bit, because what joins two partial results is commutative. Warps that differ along the
//! axis write theirs to shared memory, and every thread joins those of its results; so do blocks, to the shared memory of
//! all. Sums and products of f16 and bf16 are kept in f32 and rounded once.

use crate::emit::Value;
use crate::gpu::coordinates::{Coordinate, Linear, Mapping, both, has_none};
use crate::gpu::fragment::Fragment;
use crate::gpu::pipeline::mbarrier;
use crate::gpu::region::Emitter;
use inkwell::values::IntValue;
use tile_ir::gpu::{Buffer, Reduction};
use tile_ir::kernel::OpData;
use tile_ir::{OpId, ValueId};

/// Threads that have joined what each of them had.
#[derive(Clone, Copy)]
enum Group {
    Warps,
    Blocks,
}

impl Group {
    /// The bits of a thread's number by which groups differ along the axis.
    fn bits<'r>(self, reduction: &'r Reduction<'_>) -> &'r [u32] {
        match self {
            Group::Warps => &reduction.warps,
            Group::Blocks => &reduction.blocks,
        }
    }
}

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn reduce(&mut self, op: OpId, data: &OpData) {
        let reduction = self.scheduled.reduction(data);
        let (operand, result) = (data.operands[0], data.results[0]);
        let members = self.own_elements(&reduction, operand);
        let mut partial: Vec<Value<'c>> =
            members.into_iter().map(|values| self.join_all(&reduction, values)).collect();
        for &lane in &reduction.lanes {
            for value in &mut partial {
                let bits = self.i32(1 << lane);
                let other = self.dialect.shuffle(self.ir, self.thread_count(), self.thread, *value, bits);
                *value = self.join(&reduction, *value, other);
            }
        }
        let mut buffers = self.scheduled.buffers(op).iter();
        for group in
            [Group::Warps, Group::Blocks].into_iter().filter(|group| !group.bits(&reduction).is_empty())
        {
            let buffer = *buffers.next().expect("scheduled: a buffer for what is exchanged");
            partial = self.across(group, &reduction, buffer, op, result, &partial);
        }
        let dtype = self.dtype(result);
        if dtype != reduction.dtype {
            partial.iter_mut().for_each(|sum| *sum = self.ir.round_to(sum.into_float_value(), dtype).into());
        }
        self.set_tile(result, Fragment::Slots(partial));
    }

    fn join(&self, reduction: &Reduction<'_>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.ir.binary(reduction.op.combine(), reduction.dtype, a, b)
    }

    /// Joins neighbours until one value is left: steps that wait for each other are few.
    fn join_all(&self, reduction: &Reduction<'_>, mut values: Vec<Value<'c>>) -> Value<'c> {
        while values.len() > 1 {
            let pairs = values.chunks(2).map(|pair| match *pair {
                [a, b] => self.join(reduction, a, b),
                _ => pair[0],
            });
            values = pairs.collect();
        }
        values[0]
    }

    /// The running thread's elements of each result; in place of padding, what changes nothing.
    fn own_elements(&self, reduction: &Reduction<'_>, operand: ValueId) -> Vec<Vec<Value<'c>>> {
        let (ir, source, mapping) = (self.ir, self.tile(operand), self.mapping(operand));
        let identity = ir.literal(reduction.op.identity(reduction.dtype), reduction.dtype);
        let element = |slot: u64| {
            let value = source.get(slot);
            let inside = mapping.is_element_of_line(ir, slot, reduction.axis);
            inside.map_or(value, |inside| ir.select(inside, value, identity))
        };
        let members = reduction.members().into_iter();
        members.map(|slots| slots.into_iter().map(element).collect()).collect()
    }

    /// Joins the partial results of groups of threads that differ along the axis.
    fn across(
        &self,
        group: Group,
        reduction: &Reduction<'_>,
        buffer: Buffer,
        op: OpId,
        result: ValueId,
        partial: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let (ir, mapping) = (self.ir, self.mapping(result));
        let bits = group.bits(reduction);
        let count = 1u64 << bits.len();
        // The group's place along the axis, as a number of partial results.
        let mut places = vec![0; self.thread_count().ilog2() as usize];
        for (i, &bit) in bits.iter().enumerate() {
            places[bit as usize] = 1 << i;
        }
        let own = Linear::of(ir, self.running_thread(), &places).at(ir, 0, 0);
        let speakers = self.speakers(group, &mapping);
        let answers = self.answers(group, reduction, speakers, &mapping);
        let arrival = self.arrival_of(op);
        for (slot, &value) in partial.iter().enumerate() {
            let place = mapping.element(ir, slot as u64).then(ir, count, own);
            let write = || match group {
                Group::Warps => self.write_shared(buffer, place.value(ir), value),
                Group::Blocks => {
                    let pointer = self.shared_pointer(buffer, place.value(ir));
                    self.write_in_cluster(pointer, arrival, value, buffer.dtype, speakers);
                }
            };
            let inside = mapping.is_element(ir, slot as u64);
            self.where_it_holds(both(ir, inside, answers), write);
        }
        match (group, arrival) {
            (Group::Warps, _) => self.sync_block(),
            (Group::Blocks, Some(arrival)) => mbarrier::wait(ir, arrival, self.i32(0)),
            (Group::Blocks, None) => self.sync(),
        }
        let join = |slot: u64| {
            let element = mapping.element(ir, slot);
            let first = mapping.or_zero(ir, slot, element.then(ir, count, ZERO).value(ir));
            let read = |i| self.read_shared(buffer, ir.add(first, self.i32(i)));
            self.join_all(reduction, (0..count).map(read).collect())
        };
        (0..mapping.slots()).map(join).collect()
    }

    /// The bits of a lane's number that say to which block of the cluster it writes what all these lanes have; 0 where one
    /// thread writes to all.
    fn speakers(&self, group: Group, mapping: &Mapping<'c>) -> u64 {
        let ranks = u64::from(self.scheduled.cluster()) - 1;
        let have_all = mapping.distribution().copies() & ranks == ranks;
        match group {
            Group::Blocks if have_all && ranks < self.scheduled.threads().lanes => ranks,
            _ => 0,
        }
    }

    /// Whether the running thread answers for the partial results of its group: it does but for copies of what other threads
    /// of the group have, unless these speak to other blocks, and copies of the group among those that read what it writes.
    fn answers(
        &self,
        group: Group,
        reduction: &Reduction<'_>,
        speakers: u64,
        mapping: &Mapping<'c>,
    ) -> Option<IntValue<'c>> {
        let groups = group.bits(reduction).iter().fold(0, |all, bit| all | 1 << bit);
        let readers = match group {
            Group::Warps => self.scheduled.threads().of_block(),
            Group::Blocks => self.thread_count(),
        };
        let others = mapping.distribution().copies() & !groups & !speakers & (readers - 1);
        (others != 0).then(|| has_none(self.ir, self.running_thread(), others))
    }
}

const ZERO: Coordinate<'static> = Coordinate { varying: None, fixed: 0 };
