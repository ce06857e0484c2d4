//! Where the running thread's slots lie in a tile: a [`Distribution`] as code.
//!
//! What is common to all slots is emitted where a mapping is made, so that slots share it: within one mapping, equal
//! `varying` parts are one LLVM value.

use crate::emit::Ir;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use std::cell::RefCell;
use std::collections::HashMap;
use tile_layout::linear::Distribution;

/// A position along one axis: what differs between threads (an i32), plus what differs between slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Coordinate<'c> {
    pub(super) varying: Option<IntValue<'c>>,
    pub(super) fixed: u64,
}

impl<'c> Coordinate<'c> {
    /// The position as an i32.
    pub(super) fn value(self, ir: &Ir<'c>) -> IntValue<'c> {
        let fixed = i32_const(ir, self.fixed);
        match self.varying {
            None => fixed,
            Some(varying) if self.fixed == 0 => varying,
            Some(varying) => ir.add(varying, fixed),
        }
    }

    /// `self·extent + inner`.
    pub(super) fn then(self, ir: &Ir<'c>, extent: u64, inner: Coordinate<'c>) -> Coordinate<'c> {
        let scaled = self.varying.map(|outer| product(ir, outer, extent));
        let varying = match (scaled, inner.varying) {
            (Some(outer), Some(inner)) => Some(ir.add(outer, inner)),
            (outer, inner) => outer.or(inner),
        };
        Coordinate { varying, fixed: self.fixed * extent + inner.fixed }
    }
}

/// An i32 constant.
pub(super) fn i32_const<'c>(ir: &Ir<'c>, value: u64) -> IntValue<'c> {
    ir.context.i32_type().const_int(value, false)
}

/// A number that is linear over GF(2) in the bits of the thread's number.
pub(super) struct Linear<'c> {
    own: Option<IntValue<'c>>,
    /// The bits that it may have.
    reach: u64,
    /// Sums with numbers that share bits with it.
    sums: RefCell<HashMap<u64, IntValue<'c>>>,
}

impl<'c> Linear<'c> {
    /// The exclusive or of `places[i]` over the bits `i` of the thread's number.
    pub(super) fn of(ir: &Ir<'c>, thread: IntValue<'c>, places: &[u64]) -> Linear<'c> {
        let reach = places.iter().fold(0, |reach, place| reach | place);
        let mut own = None;
        let mut bit = 0;
        let mut seen = 0;
        while bit < places.len() {
            let run = run(&places[bit..]);
            let bits = places[bit..bit + run].iter().fold(0, |all, place| all | place);
            if bits != 0 {
                let term = term(ir, thread, bit, run, places.len(), places[bit]);
                own = Some(match own {
                    None => term,
                    Some(own) if seen & bits == 0 => ir.or(own, term),
                    Some(own) => ir.xor(own, term),
                });
            }
            seen |= bits;
            bit += run;
        }
        Linear { own, reach, sums: RefCell::default() }
    }

    /// The number `own ^ fixed + start`, as a sum.
    pub(super) fn at(&self, ir: &Ir<'c>, fixed: u64, start: u64) -> Coordinate<'c> {
        if fixed & self.reach == 0 {
            return Coordinate { varying: self.own, fixed: fixed + start };
        }
        let own = self.own.expect("a number with bits is a value");
        let mut sums = self.sums.borrow_mut();
        let varying = *sums.entry(fixed).or_insert_with(|| ir.xor(own, i32_const(ir, fixed)));
        Coordinate { varying: Some(varying), fixed: start }
    }

    /// Whether the number is this one: known, or a condition.
    pub(super) fn is(&self, ir: &Ir<'c>, number: u64) -> Result<bool, IntValue<'c>> {
        match self.own {
            _ if number & !self.reach != 0 => Ok(false),
            None => Ok(true),
            Some(own) => Err(ir.icmp(IntPredicate::EQ, own, i32_const(ir, number))),
        }
    }
}

/// How many bits from the first on are moved by the same distance, or lead nowhere.
fn run(places: &[u64]) -> usize {
    let first = places[0];
    let continues = |(i, &place): (usize, &u64)| {
        if first == 0 { place == 0 } else { first.is_power_of_two() && place == first << i }
    };
    places.iter().enumerate().take_while(|&it| continues(it)).count().max(1)
}

/// What a run of bits of the thread's number adds.
fn term<'c>(
    ir: &Ir<'c>,
    thread: IntValue<'c>,
    bit: usize,
    run: usize,
    bits: usize,
    place: u64,
) -> IntValue<'c> {
    let shifted = if bit == 0 { thread } else { ir.lshr(thread, i32_const(ir, bit as u64)) };
    let own = if bit + run == bits { shifted } else { ir.and(shifted, i32_const(ir, (1 << run) - 1)) };
    product(ir, own, place)
}

/// A product with a number that is known.
pub(super) fn product<'c>(ir: &Ir<'c>, a: IntValue<'c>, factor: u64) -> IntValue<'c> {
    match factor {
        1 => a,
        factor if factor.is_power_of_two() => ir.shl(a, i32_const(ir, factor.trailing_zeros().into())),
        factor => ir.mul(a, i32_const(ir, factor)),
    }
}

/// The positions that the running thread's slots of one tile stand for.
pub(super) struct Mapping<'c> {
    distribution: Distribution,
    axes: Vec<Linear<'c>>,
    /// Whether of all threads that hold its elements the running one answers for them; `None` where it is the only one.
    owner: Option<IntValue<'c>>,
}

impl<'c> Mapping<'c> {
    /// The mapping of a tile; `thread` is the running thread's number, an i32.
    pub(super) fn new(ir: &Ir<'c>, distribution: &Distribution, thread: IntValue<'c>) -> Self {
        let places =
            |axis: usize| -> Vec<u64> { distribution.thread_bits().map(|position| position[axis]).collect() };
        let axes = (0..distribution.shape().len()).map(|axis| Linear::of(ir, thread, &places(axis)));
        let axes = axes.collect();
        let copies = distribution.copies();
        let owner = (copies != 0).then(|| has_none(ir, thread, copies));
        Mapping { distribution: distribution.clone(), axes, owner }
    }

    pub(super) fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// The slots of a thread.
    pub(super) fn slots(&self) -> u64 {
        self.distribution.slots()
    }

    /// The position of the slot's element along every axis; of padding, beyond the tile.
    pub(super) fn coordinates(&self, ir: &Ir<'c>, slot: u64) -> Vec<Coordinate<'c>> {
        let (start, within) = self.distribution.slot(slot);
        let axes = self.axes.iter().zip(within).zip(start);
        axes.map(|((axis, fixed), start)| axis.at(ir, fixed, start)).collect()
    }

    /// [`Self::coordinates`] as i32s.
    pub(super) fn index(&self, ir: &Ir<'c>, slot: u64) -> Vec<IntValue<'c>> {
        self.coordinates(ir, slot).into_iter().map(|coordinate| coordinate.value(ir)).collect()
    }

    /// The row-major number of the slot's element, of padding some number.
    pub(super) fn element(&self, ir: &Ir<'c>, slot: u64) -> Coordinate<'c> {
        let none = Coordinate { varying: None, fixed: 0 };
        let axes = self.coordinates(ir, slot).into_iter().zip(self.distribution.shape());
        axes.fold(none, |outer, (inner, &extent)| outer.then(ir, extent, inner))
    }

    /// The row-major number of a position.
    pub(super) fn number(&self, position: &[u64]) -> u64 {
        let axes = position.iter().zip(self.distribution.shape());
        axes.fold(0, |outer, (inner, extent)| outer * extent + inner)
    }

    /// Whether the slot is padding for some thread.
    pub(super) fn may_be_padding(&self, slot: u64) -> bool {
        self.axes_beyond(slot).next().is_some()
    }

    /// The axes along which the slot is padding for some thread.
    fn axes_beyond(&self, slot: u64) -> impl Iterator<Item = usize> {
        let (start, _) = self.distribution.slot(slot);
        let (shape, piece) = (self.distribution.shape(), self.distribution.piece());
        (0..shape.len()).filter(move |&axis| start[axis] + piece[axis] > shape[axis])
    }

    /// Whether the slot isn't padding; `None` where no thread has padding there.
    pub(super) fn is_element(&self, ir: &Ir<'c>, slot: u64) -> Option<IntValue<'c>> {
        let (shape, coordinates) = (self.distribution.shape(), self.coordinates(ir, slot));
        let inside = self
            .axes_beyond(slot)
            .map(|axis| ir.icmp(IntPredicate::ULT, coordinates[axis].value(ir), i32_const(ir, shape[axis])));
        inside.reduce(|a, b| ir.and(a, b))
    }

    /// The same where lines along an axis are joined: of a line of padding alone nobody needs to know.
    pub(super) fn is_element_of_line(&self, ir: &Ir<'c>, slot: u64, axis: usize) -> Option<IntValue<'c>> {
        if self.distribution.is_padded(axis) { self.is_element(ir, slot) } else { None }
    }

    /// Whether the running thread answers for its elements; `None` where no other thread holds them.
    pub(super) fn is_owner(&self) -> Option<IntValue<'c>> {
        self.owner
    }

    /// Whether the running thread answers for the slot's element; `None` where it does whatever happens.
    pub(super) fn answers(&self, ir: &Ir<'c>, slot: u64) -> Option<IntValue<'c>> {
        both(ir, self.is_element(ir, slot), self.owner)
    }

    /// An i32 for the slot's element, and 0 for padding.
    pub(super) fn or_zero(&self, ir: &Ir<'c>, slot: u64, value: IntValue<'c>) -> IntValue<'c> {
        match self.is_element(ir, slot) {
            Some(inside) => ir.select_int(inside, value, i32_const(ir, 0)),
            None => value,
        }
    }
}

/// Whether a thread's number has none of these bits: of threads that differ in nothing else, one answers.
pub(super) fn has_none<'c>(ir: &Ir<'c>, thread: IntValue<'c>, bits: u64) -> IntValue<'c> {
    let bits = ir.and(thread, i32_const(ir, bits));
    ir.icmp(IntPredicate::EQ, bits, i32_const(ir, 0))
}

/// Conditions of which those that are `None` hold.
pub(super) fn both<'c>(
    ir: &Ir<'c>,
    a: Option<IntValue<'c>>,
    b: Option<IntValue<'c>>,
) -> Option<IntValue<'c>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(ir.and(a, b)),
        (a, b) => a.or(b),
    }
}

/// `a / divisor` of i32s.
pub(super) fn quotient<'c>(ir: &Ir<'c>, a: IntValue<'c>, divisor: u64) -> IntValue<'c> {
    if divisor == 1 { a } else { ir.udiv(a, i32_const(ir, divisor)) }
}

/// `a % divisor` of i32s.
pub(super) fn remainder<'c>(ir: &Ir<'c>, a: IntValue<'c>, divisor: u64) -> IntValue<'c> {
    if divisor == 1 { i32_const(ir, 0) } else { ir.urem(a, i32_const(ir, divisor)) }
}
