//! Scans and associative folds: the steps of [`tile_ir::gpu::Scan`] as code. What comes before an element in its part of a
//! line, and the part's sum, are values of the thread; sums of parts come from other lanes by shuffles, and from other warps
//! through shared memory. Sums and products of f16 and bf16 are kept in f32 and rounded once.

use crate::emit::Value;
use crate::gpu::coordinates::{Linear, has_none, i32_const};
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use std::collections::{BTreeMap, HashMap};
use tile_ir::gpu::{Buffer, Scan, Step, members};
use tile_ir::kernel::OpData;
use tile_ir::{Op, OpId, ValueId};
use tile_layout::linear::Distribution;

/// What a part of a line comes to: a value of each operand.
type Sum<'c> = Vec<Value<'c>>;

/// The slots of a thread whose parts a step joins, in the order in which the scan comes to them.
type Joined = Vec<usize>;

/// What a thread knows of the part of its line in which an element lies.
struct Known<'c> {
    /// What comes before the element; `None` where nothing does.
    before: Option<Sum<'c>>,
    sum: Sum<'c>,
}

/// How two parts are joined.
struct Join<'s, 'c> {
    /// The values of the part that the scan comes to first, and then of the other.
    combine: &'s dyn Fn(&[Value<'c>]) -> Sum<'c>,
    /// Whether it doesn't matter which comes first.
    commutes: bool,
    /// What changes nothing.
    identity: Sum<'c>,
}

/// The elements of a thread while they are scanned. Elements of one part share what was computed for it.
struct Scanned<'s, 'a, 'c> {
    emitter: &'s Emitter<'a, 'c>,
    scan: &'s Scan,
    join: Join<'s, 'c>,
    slots: Vec<Known<'c>>,
    sums: HashMap<[Sum<'c>; 2], Sum<'c>>,
}

impl<'c> Emitter<'_, 'c> {
    /// Ops [`Op::Scan`], and [`Op::ScanWith`] and [`Op::ReduceWith`] where they are associative.
    pub(in crate::gpu) fn scan(&mut self, op: OpId, data: &OpData, scan: &Scan) {
        let ir = self.ir;
        let (tiles, starts) = data.operands.split_at(data.results.len());
        let binary = |values: &[Value<'c>]| match data.op {
            Op::Scan { op, .. } => vec![ir.binary(op.combine(), scan.formats[0], values[0], values[1])],
            _ => self.leaf_region(data.regions[0], values),
        };
        let (identity, first) = match data.op {
            Op::Scan { op, mode, .. } => {
                let literal = |literal| vec![ir.literal(literal, scan.formats[0])];
                let start = literal(op.scan_start(scan.formats[0], mode));
                (literal(op.identity(scan.formats[0])), Some(start))
            }
            _ => (starts.iter().map(|&start| self.scalar(start)).collect::<Sum<'c>>(), None),
        };
        let elements = self.elements_of_lines(tiles, scan, &identity);
        let join = Join { combine: &binary, commutes: first.is_some(), identity };
        let mut scanned = Scanned::of(self, scan, join, &elements);
        scanned.take_steps(self.scheduled.distribution(tiles[0]), self.scheduled.buffers(op));
        let results = match data.op {
            Op::ReduceWith { .. } => scanned.sums_of(data.results[0], tiles[0]),
            _ => scanned.partial(&elements, first.as_ref()),
        };
        for (i, &result) in data.results.iter().enumerate() {
            let rounded = |values: &Sum<'c>| ir.cast(scan.formats[i], self.dtype(result), values[i]);
            let fragment = Fragment::Slots(results.iter().map(rounded).collect());
            self.set_tile(result, fragment);
        }
    }

    /// The running thread's elements of all tiles, in the formats in which they are joined; in place of padding, what changes
    /// nothing.
    fn elements_of_lines(&self, tiles: &[ValueId], scan: &Scan, identity: &Sum<'c>) -> Vec<Sum<'c>> {
        let (ir, mapping) = (self.ir, self.mapping(tiles[0]));
        let element = |slot: u64| {
            let inside = mapping.is_element_of_line(ir, slot, scan.axis);
            let value = |(i, &tile): (usize, &ValueId)| {
                let value = ir.cast(self.dtype(tile), scan.formats[i], self.tile(tile).get(slot));
                inside.map_or(value, |inside| ir.select(inside, value, identity[i]))
            };
            tiles.iter().enumerate().map(value).collect()
        };
        (0..mapping.slots()).map(element).collect()
    }
}

impl<'s, 'a, 'c> Scanned<'s, 'a, 'c> {
    /// Before the first step every element is a part.
    fn of(emitter: &'s Emitter<'a, 'c>, scan: &'s Scan, join: Join<'s, 'c>, elements: &[Sum<'c>]) -> Self {
        let slots = elements.iter().map(|element| Known { before: None, sum: element.clone() }).collect();
        Scanned { emitter, scan, join, slots, sums: HashMap::new() }
    }

    /// Takes the steps, of which those of warps have a buffer for each operand.
    fn take_steps(&mut self, distribution: &Distribution, buffers: &[Buffer]) {
        let mut buffers = buffers.chunks(self.scan.formats.len());
        for step in &self.scan.steps {
            match step {
                Step::Registers(bits) => {
                    let place_bits = (1u64 << bits.end) - (1 << bits.start);
                    self.join_slots(&by_register(distribution, self.scan, place_bits));
                }
                Step::Lanes(bit) => self.join_lanes(*bit),
                Step::Warps { bits, .. } => {
                    let buffers = buffers.next().expect("scheduled: buffers for what warps join");
                    self.join_warps(bits, buffers);
                }
                Step::Pieces => self.join_slots(&by_piece(distribution, self.scan)),
            }
        }
    }

    /// What each slot keeps of a scan; exclusive ones of an op start from `first`.
    fn partial(&mut self, elements: &[Sum<'c>], first: Option<&Sum<'c>>) -> Vec<Sum<'c>> {
        let exclusive = self.scan.mode.exclusive;
        let identity = self.join.identity.clone();
        (0..elements.len())
            .map(|slot| match (self.slots[slot].before.clone(), exclusive) {
                (None, true) => first.unwrap_or(&identity).clone(),
                (Some(before), true) => match first {
                    Some(first) => self.joined(first, &before),
                    None => before,
                },
                (None, false) => elements[slot].clone(),
                (Some(before), false) => self.joined(&before, &elements[slot]),
            })
            .collect()
    }

    /// Of each slot of a folded tile, the sum of its line.
    fn sums_of(&self, result: ValueId, operand: ValueId) -> Vec<Sum<'c>> {
        let [lines, folded] = [operand, result].map(|tile| self.emitter.scheduled.distribution(tile));
        let members = members(lines, folded, self.scan.axis);
        members.into_iter().map(|slots| self.slots[slots[0] as usize].sum.clone()).collect()
    }

    /// The sum of two parts, the first of which the scan comes to first.
    fn joined(&mut self, first: &Sum<'c>, second: &Sum<'c>) -> Sum<'c> {
        let key = [first.clone(), second.clone()];
        if let Some(known) = self.sums.get(&key) {
            return known.clone();
        }
        let sum = (self.join.combine)(&key.concat());
        self.sums.insert(key, sum.clone());
        sum
    }

    /// Adds what comes before a part to what comes before one of its elements.
    fn precede(&mut self, slot: usize, part: &Sum<'c>) {
        let before = self.slots[slot].before.take();
        self.slots[slot].before =
            Some(before.map_or_else(|| part.clone(), |before| self.joined(part, &before)));
    }

    fn join_slots(&mut self, groups: &[Joined]) {
        for slots in groups {
            let mut sum = self.slots[slots[0]].sum.clone();
            for &slot in &slots[1..] {
                self.precede(slot, &sum);
                let next = self.slots[slot].sum.clone();
                sum = self.joined(&sum, &next);
            }
            slots.iter().for_each(|&slot| self.slots[slot].sum.clone_from(&sum));
        }
    }

    /// The sums of all parts, each once, and which of them is each slot's.
    fn parts(&self) -> (Vec<Sum<'c>>, Vec<usize>) {
        let mut parts: Vec<Sum<'c>> = Vec::new();
        let mut numbers = HashMap::new();
        let number = self.slots.iter().map(|known| {
            *numbers.entry(&known.sum).or_insert_with(|| {
                parts.push(known.sum.clone());
                parts.len() - 1
            })
        });
        let number = number.collect();
        (parts, number)
    }

    /// Gives each slot what comes before its part, if anything may, and the sum of the part that it is joined to.
    fn grow(&mut self, number: &[usize], joined: &[(Option<Sum<'c>>, Sum<'c>)]) {
        for (slot, &number) in number.iter().enumerate() {
            let (before, sum) = &joined[number];
            before.iter().for_each(|before| self.precede(slot, before));
            self.slots[slot].sum.clone_from(sum);
        }
    }

    fn join_lanes(&mut self, bit: u32) {
        let (emitter, ir) = (self.emitter, self.emitter.ir);
        let (parts, number) = self.parts();
        let has_no_bit = has_none(ir, emitter.running_thread(), 1 << bit);
        // Of the two parts, that of the lane without the bit comes first, or, backwards, second.
        let by_order = |first: &Sum<'c>, second: &Sum<'c>| -> Sum<'c> {
            let [without, with] = if self.scan.mode.reverse { [second, first] } else { [first, second] };
            without.iter().zip(with).map(|(&without, &with)| ir.select(has_no_bit, without, with)).collect()
        };
        let from_other = |part: &Sum<'c>| -> Sum<'c> {
            let shuffled = |&value: &Value<'c>| {
                let bits = i32_const(ir, 1 << bit);
                emitter.dialect.shuffle(ir, emitter.thread_count(), emitter.thread, value, bits)
            };
            part.iter().map(shuffled).collect()
        };
        let others: Vec<Sum<'c>> = parts.iter().map(from_other).collect();
        let before: Vec<Sum<'c>> = others.iter().map(|other| by_order(&self.join.identity, other)).collect();
        let in_order: Vec<[Sum<'c>; 2]> = match self.join.commutes {
            true => parts.iter().cloned().zip(others).map(|(own, other)| [own, other]).collect(),
            false => parts
                .iter()
                .zip(&others)
                .map(|(own, other)| [by_order(own, other), by_order(other, own)])
                .collect(),
        };
        let sums = in_order.iter().map(|[first, second]| self.joined(first, second)).collect::<Vec<_>>();
        let joined: Vec<_> = before.into_iter().map(Some).zip(sums).collect();
        self.grow(&number, &joined);
    }

    /// Every thread writes the sums of its parts, and reads those of the threads that have the rest of the lines.
    fn join_warps(&mut self, bits: &[u32], buffers: &[Buffer]) {
        let (emitter, ir, thread) = (self.emitter, self.emitter.ir, self.emitter.running_thread());
        let threads = emitter.thread_count();
        let (parts, number) = self.parts();
        for (part, sum) in parts.iter().enumerate() {
            let place = ir.add(thread, i32_const(ir, part as u64 * threads));
            sum.iter().zip(buffers).for_each(|(&value, &buffer)| emitter.write_shared(buffer, place, value));
        }
        emitter.sync_block();
        let all = bits.iter().fold(0, |all, bit| all | 1u64 << bit);
        let first = ir.and(thread, i32_const(ir, (threads - 1) & !all));
        // The thread's part among those that are joined, in the order in which the scan comes to them.
        let mut places = vec![0; threads.ilog2() as usize];
        bits.iter().enumerate().for_each(|(i, &bit)| places[bit as usize] = 1 << i);
        let own = Linear::of(ir, thread, &places).at(ir, 0, 0).value(ir);
        let mut numbers: Vec<u64> = (0..1 << bits.len()).collect();
        if self.scan.mode.reverse {
            numbers.reverse();
        }
        let joined: Vec<_> = (0..parts.len() as u64)
            .map(|part| {
                let read = |&number: &u64| -> Sum<'c> {
                    let thread =
                        bits.iter().enumerate().fold(0, |at, (i, bit)| at | (number >> i & 1) << bit);
                    let place = ir.add(first, i32_const(ir, thread + part * threads));
                    buffers.iter().map(|&buffer| emitter.read_shared(buffer, place)).collect()
                };
                let sums: Vec<Sum<'c>> = numbers.iter().map(read).collect();
                self.before_own(own, &numbers, &sums)
            })
            .collect();
        self.grow(&number, &joined);
    }

    /// Of sums of parts with these numbers, what comes before the own one, and all of them.
    fn before_own(
        &mut self,
        own: IntValue<'c>,
        numbers: &[u64],
        sums: &[Sum<'c>],
    ) -> (Option<Sum<'c>>, Sum<'c>) {
        let ir = self.emitter.ir;
        let is_before = if self.scan.mode.reverse { IntPredicate::ULT } else { IntPredicate::UGT };
        let (mut before, mut all): (Option<Sum<'c>>, _) = (None, sums[0].clone());
        for (i, (&number, sum)) in numbers.iter().zip(sums).enumerate() {
            if i > 0 {
                all = self.joined(&all, sum);
            }
            // Nobody comes after the last one.
            if i + 1 < sums.len() {
                let comes_before = ir.icmp(is_before, own, i32_const(ir, number));
                let values = sum.iter().zip(&self.join.identity);
                let sum = values.map(|(&value, &nothing)| ir.select(comes_before, value, nothing)).collect();
                before = Some(before.map_or_else(|| Sum::clone(&sum), |before| self.joined(&before, &sum)));
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
