//! Scans: the steps of [`tile_ir::gpu::Scan`] as code. What comes before an element in its part of a line, and the part's
//! sum, are values of the thread; sums of parts come from other lanes by shuffles, and from other warps through shared memory.
//! Sums and products of f16 and bf16 are kept in f32 and rounded once.

use crate::emit::Value;
use crate::gpu::coordinates::{Linear, has_none, i32_const};
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use std::collections::{BTreeMap, HashMap};
use tile_ir::gpu::{Buffer, Scan, Step};
use tile_ir::kernel::OpData;
use tile_ir::{OpId, ValueId};
use tile_layout::linear::Distribution;

/// What a thread knows of the part of its line in which an element lies.
#[derive(Clone, Copy)]
struct Known<'c> {
    /// What comes before the element; `None` where nothing does.
    before: Option<Value<'c>>,
    sum: Value<'c>,
}

/// The slots of a thread whose parts a step joins, in the order in which the scan comes to them.
type Joined = Vec<usize>;

/// The elements of a thread while they are scanned. Elements of one part share what was computed for it.
struct Scanned<'s, 'a, 'c> {
    emitter: &'s Emitter<'a, 'c>,
    scan: &'s Scan,
    identity: Value<'c>,
    slots: Vec<Known<'c>>,
    sums: HashMap<[Value<'c>; 2], Value<'c>>,
}

impl<'c> Emitter<'_, 'c> {
    /// Op [`tile_ir::Op::Scan`].
    pub(in crate::gpu) fn scan(&mut self, op: OpId, data: &OpData) {
        let (operand, result) = (data.operands[0], data.results[0]);
        let (ir, scan, dtype) = (self.ir, self.scheduled.scan(data), self.dtype(operand));
        let elements = self.elements_of_lines(operand, &scan);
        let slots = elements.iter().map(|&element| Known { before: None, sum: element }).collect();
        let identity = ir.literal(scan.op.identity(scan.dtype), scan.dtype);
        let mut scanned = Scanned { emitter: self, scan: &scan, identity, slots, sums: HashMap::new() };
        let distribution = self.scheduled.distribution(operand);
        let mut buffers = self.scheduled.buffers(op).iter();
        for step in &scan.steps {
            match step {
                Step::Registers(bits) => {
                    let place_bits = (1u64 << bits.end) - (1 << bits.start);
                    scanned.join_slots(&by_register(distribution, &scan, place_bits));
                }
                Step::Lanes(bit) => scanned.join_lanes(*bit),
                Step::Warps { bits, .. } => {
                    let buffer = *buffers.next().expect("scheduled: a buffer for what warps join");
                    scanned.join_warps(bits, buffer);
                }
                Step::Pieces => scanned.join_slots(&by_piece(distribution, &scan)),
            }
        }
        let start = ir.literal(scan.op.scan_start(scan.dtype, scan.mode), scan.dtype);
        let join = |a, b| ir.binary(scan.op.combine(), scan.dtype, a, b);
        let slots = scanned.slots.iter().zip(elements);
        let results = slots.map(|(known, element)| match (known.before, scan.mode.exclusive) {
            (None, true) => start,
            (Some(before), true) => join(start, before),
            (None, false) => element,
            (Some(before), false) => join(before, element),
        });
        let results = results.map(|value| ir.cast(scan.dtype, dtype, value)).collect();
        self.set_tile(result, Fragment::Slots(results));
    }

    /// The running thread's elements in the format in which they are joined; in place of padding, what changes nothing.
    fn elements_of_lines(&self, operand: ValueId, scan: &Scan) -> Vec<Value<'c>> {
        let (ir, source, mapping) = (self.ir, self.tile(operand), self.mapping(operand));
        let identity = ir.literal(scan.op.identity(scan.dtype), scan.dtype);
        let is_padded = mapping.distribution().is_padded(scan.axis);
        let element = |slot: u64| {
            let value = ir.cast(self.dtype(operand), scan.dtype, source.get(slot));
            let inside = if is_padded { mapping.is_element(ir, slot) } else { None };
            inside.map_or(value, |inside| ir.select(inside, value, identity))
        };
        (0..mapping.slots()).map(element).collect()
    }
}

impl<'c> Scanned<'_, '_, 'c> {
    /// The sum of two parts, the first of which the scan comes to first.
    fn join(&mut self, first: Value<'c>, second: Value<'c>) -> Value<'c> {
        let (ir, scan) = (self.emitter.ir, self.scan);
        let sum = || ir.binary(scan.op.combine(), scan.dtype, first, second);
        *self.sums.entry([first, second]).or_insert_with(sum)
    }

    /// Adds what comes before a part to what comes before one of its elements.
    fn precede(&mut self, slot: usize, part: Value<'c>) {
        let before = self.slots[slot].before;
        self.slots[slot].before = Some(before.map_or(part, |before| self.join(part, before)));
    }

    fn join_slots(&mut self, groups: &[Joined]) {
        for slots in groups {
            let mut sum = self.slots[slots[0]].sum;
            for &slot in &slots[1..] {
                self.precede(slot, sum);
                sum = self.join(sum, self.slots[slot].sum);
            }
            slots.iter().for_each(|&slot| self.slots[slot].sum = sum);
        }
    }

    /// The sums of all parts, each once, and which of them is each slot's.
    fn parts(&self) -> (Vec<Value<'c>>, Vec<usize>) {
        let mut parts: Vec<Value<'c>> = Vec::new();
        let mut numbers = HashMap::new();
        let number = self.slots.iter().map(|known| {
            *numbers.entry(known.sum).or_insert_with(|| {
                parts.push(known.sum);
                parts.len() - 1
            })
        });
        let number = number.collect();
        (parts, number)
    }

    fn join_lanes(&mut self, bit: u32) {
        let (emitter, ir) = (self.emitter, self.emitter.ir);
        let (parts, number) = self.parts();
        let is_first = has_none(ir, emitter.running_thread(), 1 << bit);
        let from_other = |&part: &Value<'c>| {
            let bits = i32_const(ir, 1 << bit);
            let other = emitter.dialect.shuffle(ir, emitter.thread_count(), emitter.thread, part, bits);
            let [of_first, of_second] =
                if self.scan.mode.reverse { [other, self.identity] } else { [self.identity, other] };
            (other, ir.select(is_first, of_first, of_second))
        };
        let others: Vec<_> = parts.iter().map(from_other).collect();
        for (slot, number) in number.into_iter().enumerate() {
            let (other, before) = others[number];
            self.precede(slot, before);
            self.slots[slot].sum = self.join(self.slots[slot].sum, other);
        }
    }

    /// Every thread writes the sums of its parts, and reads those of the threads that have the rest of the lines.
    fn join_warps(&mut self, bits: &[u32], buffer: Buffer) {
        let (emitter, ir, thread) = (self.emitter, self.emitter.ir, self.emitter.running_thread());
        let threads = emitter.thread_count();
        let (parts, number) = self.parts();
        for (part, &sum) in parts.iter().enumerate() {
            emitter.write_shared(buffer, ir.add(thread, i32_const(ir, part as u64 * threads)), sum);
        }
        emitter.sync_block();
        let all = bits.iter().fold(0, |all, bit| all | 1u64 << bit);
        let first = ir.and(thread, i32_const(ir, (threads - 1) & !all));
        // The thread's part among those that are joined, in the order in which the scan comes to them.
        let mut places = vec![0; threads.ilog2() as usize];
        bits.iter().enumerate().for_each(|(i, &bit)| places[bit as usize] = 1 << i);
        let own = Linear::of(ir, thread, &places).at(ir, 0, 0).value(ir);
        let count = 1u64 << bits.len();
        let numbers: Vec<u64> =
            if self.scan.mode.reverse { (0..count).rev().collect() } else { (0..count).collect() };
        let joined: Vec<(Option<Value<'c>>, Value<'c>)> = (0..parts.len() as u64)
            .map(|part| {
                let read = |number: u64| {
                    let thread =
                        bits.iter().enumerate().fold(0, |at, (i, bit)| at | (number >> i & 1) << bit);
                    emitter.read_shared(buffer, ir.add(first, i32_const(ir, thread + part * threads)))
                };
                let sums: Vec<Value<'c>> = numbers.iter().map(|&number| read(number)).collect();
                self.before_own(own, &numbers, &sums)
            })
            .collect();
        for (slot, number) in number.into_iter().enumerate() {
            let (before, sum) = joined[number];
            before.into_iter().for_each(|before| self.precede(slot, before));
            self.slots[slot].sum = sum;
        }
    }

    /// Of sums of parts with these numbers, what comes before the own one, and all of them.
    fn before_own(
        &mut self,
        own: IntValue<'c>,
        numbers: &[u64],
        sums: &[Value<'c>],
    ) -> (Option<Value<'c>>, Value<'c>) {
        let ir = self.emitter.ir;
        let is_before = if self.scan.mode.reverse { IntPredicate::ULT } else { IntPredicate::UGT };
        let (mut before, mut all) = (None, sums[0]);
        for (i, (&number, &sum)) in numbers.iter().zip(sums).enumerate() {
            if i > 0 {
                all = self.join(all, sum);
            }
            // Nobody comes after the last one.
            if i + 1 < sums.len() {
                let comes_before = ir.icmp(is_before, own, i32_const(ir, number));
                let sum = ir.select(comes_before, sum, self.identity);
                before = Some(before.map_or(sum, |before| self.join(before, sum)));
            }
        }
        (before, all)
    }
}

/// The slots that differ in these bits of the place along the axis alone.
fn by_register(distribution: &Distribution, scan: &Scan, place_bits: u64) -> Vec<Joined> {
    grouped(distribution, scan, |_, within| {
        let bits = within[scan.axis] & place_bits;
        within[scan.axis] &= !place_bits;
        bits
    })
}

/// The slots that differ in the piece along the axis alone.
fn by_piece(distribution: &Distribution, scan: &Scan) -> Vec<Joined> {
    grouped(distribution, scan, |start, _| std::mem::take(&mut start[scan.axis]))
}

/// Slots in groups that are left alike, in the order of what is taken of where they lie.
fn grouped(
    distribution: &Distribution,
    scan: &Scan,
    taken: impl Fn(&mut Vec<u64>, &mut Vec<u64>) -> u64,
) -> Vec<Joined> {
    let mut groups: BTreeMap<_, BTreeMap<u64, usize>> = BTreeMap::new();
    for slot in 0..distribution.slots() {
        let (mut start, mut within) = distribution.slot(slot);
        let order = taken(&mut start, &mut within);
        groups.entry((start, within)).or_default().insert(order, slot as usize);
    }
    let in_order = |slots: BTreeMap<u64, usize>| match scan.mode.reverse {
        true => slots.into_values().rev().collect(),
        false => slots.into_values().collect(),
    };
    groups.into_values().map(in_order).collect()
}
