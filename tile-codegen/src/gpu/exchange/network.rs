//! Puts the keys of lines in order, which all differ: a network of comparisons, the same whatever the keys are.
//!
//! The threads of a line have equally many keys each. A thread sorts its own by an odd-even merge; sorted runs of
//! neighbouring threads become one by a bitonic merge (both in Batcher 1968, "Sorting networks and their applications"),
//! until a line is one run. A merge begins by comparing the one run with the other one backwards, so that all comparisons
//! put the lesser key first, and none depends on where its run lies. A thread's partner differs from it in known bits of
//! its number, so that keys come by shuffles from its own warp, and through shared memory from another.
//!
//! Where a thread can have all that is kept of a line ([`Reach::Least`]), a merge gives both runs' threads the lesser
//! half: one exchange for twice as many threads, in place of one more than the time before.
//!
//! A network that would be long code ([`UNROLLED_WORDS`]) goes over its merges, and their exchanges, in loops. All threads
//! of a warp take the same way through them, and all of the block where keys go to other warps.

use crate::emit::Value;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use std::cell::Cell;
use tile_ir::gpu::{Buffer, Sorting};

/// Words that threads give each other in a network without loops, at most. Where lanes are known when code is made, AMD's
/// GPUs have quicker instructions for them, and no loop counts.
const UNROLLED_WORDS: u64 = 128;

/// What is in order afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) enum Reach {
    /// The line: its first keys are in its first thread, and so on.
    Whole,
    /// Its least keys, as many as a thread has, in every thread of the line.
    Least,
}

/// The threads of a block, which sort lines.
pub(in crate::gpu) struct Network<'e, 'a, 'c> {
    pub(in crate::gpu) emitter: &'e Emitter<'a, 'c>,
    pub(in crate::gpu) sorting: &'e Sorting,
    /// Where keys go to other warps, if they do.
    pub(in crate::gpu) exchanged: Option<Buffer>,
    /// Whether threads may have read there since the last barrier.
    pub(in crate::gpu) is_read: Cell<bool>,
    /// The running thread's number among those of its line, an i32.
    pub(in crate::gpu) own: IntValue<'c>,
}

type Keys<'c> = Vec<IntValue<'c>>;

impl<'c> Network<'_, '_, 'c> {
    /// The running thread's keys of its line once that is sorted.
    pub(in crate::gpu) fn sorted(&self, keys: Keys<'c>, reach: Reach) -> Keys<'c> {
        let keys = self.in_thread(keys);
        match reach {
            Reach::Least => self.least(keys),
            Reach::Whole if self.is_short() => self.merges(keys),
            Reach::Whole => self.merges_in_loops(keys),
        }
    }

    fn is_short(&self) -> bool {
        let merges = u64::from(self.sorting.threads.ilog2());
        let words = self.sorting.keys * u64::from(self.sorting.key_bits / 32);
        merges * (merges + 1) / 2 * words <= UNROLLED_WORDS
    }

    /// Sorts a thread's own keys: by Batcher's odd-even merges, which compare less than bitonic ones.
    fn in_thread(&self, mut keys: Keys<'c>) -> Keys<'c> {
        let count = keys.len();
        for run in powers(count) {
            for distance in powers(2 * run).rev() {
                for i in 0..count - distance {
                    let is_low = i >= distance % run && (i - distance % run) / distance % 2 == 0;
                    let is_same_run = i / (2 * run) == (i + distance) / (2 * run);
                    if is_low && is_same_run {
                        self.put_in_order(&mut keys, i, i + distance);
                    }
                }
            }
        }
        keys
    }

    /// Sorts a thread's own keys that are a bitonic run.
    fn bitonic_in_thread(&self, mut keys: Keys<'c>) -> Keys<'c> {
        for distance in powers(keys.len()).rev() {
            for low in (0..keys.len()).filter(|i| i & distance == 0) {
                self.put_in_order(&mut keys, low, low + distance);
            }
        }
        keys
    }

    fn put_in_order(&self, keys: &mut Keys<'c>, low: usize, high: usize) {
        let ir = self.emitter.ir;
        let (a, b) = (keys[low], keys[high]);
        let is_less = ir.icmp(IntPredicate::SLT, a, b);
        let lesser = ir.select_int(is_less, a, b);
        keys[low] = lesser;
        keys[high] = match self.sorting.key_bits {
            32 => ir.select_int(is_less, b, a),
            // The other one; LLVM would make a second comparison of a second selection.
            _ => ir.xor(ir.xor(a, b), lesser),
        };
    }

    fn least(&self, mut keys: Keys<'c>) -> Keys<'c> {
        let ir = self.emitter.ir;
        for half in powers(self.sorting.threads as usize) {
            // Any thread of the other half will do, and all bits are quicker than one.
            let bits = 2 * half as u64 - 1;
            let others = self.keys_of_partner(&keys, self.number(bits), bits);
            let pairs = keys.iter().zip(others.iter().rev());
            let lesser = |(&a, &b)| ir.select_int(ir.icmp(IntPredicate::SLT, a, b), a, b);
            keys = self.bitonic_in_thread(pairs.map(lesser).collect());
        }
        keys
    }

    fn merges(&self, mut keys: Keys<'c>) -> Keys<'c> {
        for half in powers(self.sorting.threads as usize) {
            keys = self.backwards(&keys, self.number(2 * half as u64));
            for distance in powers(half).rev() {
                keys = self.apart(&keys, self.number(distance as u64));
            }
            keys = self.bitonic_in_thread(keys);
        }
        keys
    }

    fn merges_in_loops(&self, keys: Keys<'c>) -> Keys<'c> {
        let ir = self.emitter.ir;
        let values = |number: IntValue<'c>, keys: Keys<'c>| -> Vec<Value<'c>> {
            [number].into_iter().chain(keys).map(Value::from).collect()
        };
        let keys_of = |values: &[Value<'c>]| -> Keys<'c> {
            values[1..].iter().map(|key| key.into_int_value()).collect()
        };
        let half = |number| ir.lshr(number, self.number(1));
        let goes_on = |merged| ir.icmp(IntPredicate::ULE, merged, self.number(self.sorting.threads));
        let is_apart = |distance| ir.icmp(IntPredicate::NE, distance, self.number(0));
        // A turn of a loop comes after another one.
        self.is_read.set(true);
        let first = self.number(2);
        let sorted = ir.while_loop(goes_on(first), &values(first, keys), |carried| {
            let merged = carried[0].into_int_value();
            let keys = self.backwards(&keys_of(carried), merged);
            let distance = half(half(merged));
            let merging = ir.while_loop(is_apart(distance), &values(distance, keys), |carried| {
                let distance = carried[0].into_int_value();
                let keys = self.apart(&keys_of(carried), distance);
                (is_apart(half(distance)), values(half(distance), keys))
            });
            let next = ir.shl(merged, self.number(1));
            (goes_on(next), values(next, self.bitonic_in_thread(keys_of(&merging))))
        });
        keys_of(&sorted)
    }

    /// Compares the runs of the two halves of so many threads, the one with the other one backwards.
    fn backwards(&self, keys: &Keys<'c>, threads: IntValue<'c>) -> Keys<'c> {
        let ir = self.emitter.ir;
        let bits = ir.sub(threads, self.number(1));
        let mut others = self.keys_of_partner(keys, bits, self.sorting.threads - 1);
        others.reverse();
        self.own_half(keys, &others, ir.lshr(threads, self.number(1)))
    }

    /// Compares keys of threads whose numbers differ by a power of two, less than a half of a line's threads.
    fn apart(&self, keys: &Keys<'c>, distance: IntValue<'c>) -> Keys<'c> {
        self.own_half(keys, &self.keys_of_partner(keys, distance, self.sorting.threads / 4), distance)
    }

    /// Of each pair of keys the greater, if this bit of the thread's number is set, and otherwise the lesser.
    fn own_half(&self, keys: &Keys<'c>, others: &Keys<'c>, bit: IntValue<'c>) -> Keys<'c> {
        let ir = self.emitter.ir;
        let is_upper = ir.icmp(IntPredicate::NE, ir.and(self.own, bit), self.number(0));
        let kept = |(&own, &other): (&IntValue<'c>, &IntValue<'c>)| {
            let other_is_less = ir.icmp(IntPredicate::SLT, other, own);
            ir.select_int(ir.xor(other_is_less, is_upper), other, own)
        };
        keys.iter().zip(others).map(kept).collect()
    }

    /// The keys of the thread whose number differs in these bits, which are no greater number than `most`.
    fn keys_of_partner(&self, keys: &Keys<'c>, bits: IntValue<'c>, most: u64) -> Keys<'c> {
        let lanes = self.sorting.lanes();
        let Some(buffer) = self.exchanged.filter(|_| most >= lanes) else {
            return self.keys_of_lane(keys, bits);
        };
        match bits.get_zero_extended_constant() {
            Some(known) if known < lanes => self.keys_of_lane(keys, bits),
            Some(_) => self.keys_of_warp(buffer, keys, bits),
            None => {
                let is_near = self.emitter.ir.icmp(IntPredicate::ULT, bits, self.number(lanes));
                let values = |keys: Keys<'c>| keys.into_iter().map(Value::from).collect();
                let near = || values(self.keys_of_lane(keys, bits));
                let chosen =
                    self.emitter.ir.if_else(is_near, near, || values(self.keys_of_warp(buffer, keys, bits)));
                chosen.into_iter().map(|key| key.into_int_value()).collect()
            }
        }
    }

    fn keys_of_lane(&self, keys: &Keys<'c>, bits: IntValue<'c>) -> Keys<'c> {
        let emitter = self.emitter;
        let threads = emitter.thread_count();
        let shuffle = |&key: &IntValue<'c>| {
            emitter.dialect.shuffle(emitter.ir, threads, emitter.thread, key.into(), bits).into_int_value()
        };
        keys.iter().map(shuffle).collect()
    }

    /// Keys through shared memory, as many at a time as there is room for; neighbours in neighbouring threads.
    fn keys_of_warp(&self, buffer: Buffer, keys: &Keys<'c>, bits: IntValue<'c>) -> Keys<'c> {
        let (emitter, ir, (words, word)) = (self.emitter, self.emitter.ir, self.sorting.words());
        let (threads, thread) = (emitter.thread_count(), emitter.running_thread());
        let partner = ir.xor(thread, bits);
        let place = |of: IntValue<'c>, i: u64| ir.add(of, self.number(i * threads));
        let (key_bits, word_bits) = (self.sorting.key_bits, word.bits());
        let amount = |i: u64| ir.int_type(key_bits).const_int(i * u64::from(word_bits), false);
        let parts = |keys: &[IntValue<'c>]| {
            let parts = (0..words).flat_map(|word| (0..keys.len()).map(move |i| (word, i)));
            parts.enumerate().collect::<Vec<_>>()
        };
        let exchanged = |keys: &[IntValue<'c>]| {
            if self.is_read.get() {
                emitter.sync();
            }
            for (at, (word, i)) in parts(keys) {
                let value = ir.resize(ir.lshr(keys[i], amount(word)), word_bits, false);
                emitter.write_shared(buffer, place(thread, at as u64), value.into());
            }
            emitter.sync();
            self.is_read.set(true);
            let mut others = vec![ir.int_type(key_bits).const_zero(); keys.len()];
            for (at, (word, i)) in parts(keys) {
                let value = emitter.read_shared(buffer, place(partner, at as u64)).into_int_value();
                let value = ir.shl(ir.resize(value, key_bits, false), amount(word));
                others[i] = ir.or(others[i], value);
            }
            others
        };
        keys.chunks(self.sorting.exchanged() as usize).flat_map(exchanged).collect()
    }

    fn number(&self, value: u64) -> IntValue<'c> {
        self.emitter.i32(value)
    }
}

/// The powers of two below an end.
fn powers(end: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..end.next_power_of_two().ilog2()).map(|bit| 1 << bit)
}
