//! Which thread holds which element of a tile.
//!
//! The elements of a tile, counted in row-major order, are dealt to the threads of a block in turn: element
//! `e` is in **slot** `e / threads` of thread `e % threads`. So neighbouring threads hold neighbouring
//! elements, which makes every global access coalesced, and two tiles of as many elements are held alike,
//! which makes elementwise ops and reshapes local to a thread. Where the element count isn't a multiple of
//! the thread count, the last slot of some threads is **padding**: it has a value, which nobody observes.
//!
//! Knows types and numbers, and emits index arithmetic; knows nothing of ops.

use crate::emit::Ir;
use crate::error::Error;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::{Instance, Loc, TargetDesc, Type, ValueId};

/// Tiles of more elements than this get the larger block.
const SMALL_TILE: u64 = 1024;

/// 32-bit registers per thread of the largest tile: a tile that takes more than this fills the register file
/// of a whole multiprocessor on its own.
const MAX_WORDS: usize = 256;

/// Extents of a tile as numbers.
pub(super) fn extents(instance: &Instance, value: ValueId) -> Vec<u64> {
    let tile = instance.ty(value).as_tile().expect("verified: a tile");
    tile.shape
        .iter()
        .map(|dim| dim.as_const().expect("an instance's tile extents are numbers") as u64)
        .collect()
}

/// Strides of a dense row-major tile.
pub(super) fn strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// How tiles are dealt to the threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Distribution {
    /// Threads per block, a power of two.
    pub(super) threads: u64,
}

impl Distribution {
    /// 128 threads, or 256 where the kernel has a large tile.
    pub(super) fn of(instance: &Instance, target: &TargetDesc) -> Distribution {
        let tiles = instance.value_ids().filter(|&value| matches!(instance.ty(value), Type::Tile(_)));
        let largest = tiles.map(|value| extents(instance, value).iter().product::<u64>()).max().unwrap_or(0);
        let threads = if largest > SMALL_TILE { 256 } else { 128 };
        Distribution { threads: threads.min(u64::from(target.max_threads)) }
    }

    /// Slots per thread of a tile of this many elements.
    pub(super) fn slots(self, elements: u64) -> usize {
        elements.div_ceil(self.threads) as usize
    }

    /// Elements including padding.
    pub(super) fn padded(self, elements: u64) -> u64 {
        self.slots(elements) as u64 * self.threads
    }

    /// Refuses tiles that no thread could hold.
    pub(super) fn check(self, instance: &Instance, target: &TargetDesc) -> Result<(), Error> {
        for op in instance.walk() {
            let data = instance.op(op);
            for &result in &data.results {
                self.check_tile(instance, target, result, data.loc)?;
            }
        }
        Ok(())
    }

    fn check_tile(
        self,
        instance: &Instance,
        target: &TargetDesc,
        value: ValueId,
        loc: Loc,
    ) -> Result<(), Error> {
        let Some(tile) = instance.ty(value).as_tile() else { return Ok(()) };
        let dtype = tile.elem.known().expect("an instance has no dtype parameters");
        let slots = self.slots(extents(instance, value).iter().product());
        let needed = slots * dtype.bytes().div_ceil(4);
        if needed <= MAX_WORDS {
            return Ok(());
        }
        Err(Error::Registers {
            kernel: instance.name.clone(),
            target: target.name.to_owned(),
            tile: tile.to_string(),
            needed,
            available: MAX_WORDS,
            loc,
        })
    }
}

/// A slot of the running thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot<'c> {
    /// Known when the code is emitted.
    Fixed(u64),
    /// The counter of a loop over slots, an i32.
    Varying(IntValue<'c>),
}

/// A position along one axis: what differs between threads (an i32), plus what differs between slots.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}

/// An i32 constant.
pub(super) fn i32_const<'c>(ir: &Ir<'c>, value: u64) -> IntValue<'c> {
    ir.context.i32_type().const_int(value, false)
}

/// The element indices that the running thread's slots of one tile stand for.
///
/// What is common to all slots is emitted where the mapping is made, so that slots share it: within one
/// mapping, equal `varying` parts are one LLVM value.
pub(super) struct Mapping<'c> {
    shape: Vec<u64>,
    strides: Vec<u64>,
    elements: u64,
    threads: u64,
    thread: IntValue<'c>,
    /// Per axis: `(thread / stride) % extent`, or without the `%` where the extent spans more than a slot.
    common: Vec<Option<IntValue<'c>>>,
}

impl<'c> Mapping<'c> {
    /// The mapping of a tile of this shape; `thread` is the running thread's number, an i32.
    pub(super) fn new(ir: &Ir<'c>, distribution: Distribution, thread: IntValue<'c>, shape: &[u64]) -> Self {
        let (strides, elements) = (strides(shape), shape.iter().product::<u64>());
        let threads = distribution.threads;
        let common = shape.iter().zip(&strides).map(|(&extent, &stride)| {
            let period = extent * stride;
            if !elements.is_multiple_of(threads) || !threads.is_multiple_of(stride) {
                return None;
            }
            let quotient = quotient(ir, thread, stride);
            if period.is_multiple_of(threads) {
                Some(quotient)
            } else {
                threads.is_multiple_of(period).then(|| remainder(ir, quotient, extent))
            }
        });
        let common = common.collect();
        Mapping { shape: shape.to_vec(), strides, elements, threads, thread, common }
    }

    /// The row-major number of the slot's element, an i32. Padding stands for the last element.
    pub(super) fn element(&self, ir: &Ir<'c>, slot: Slot<'c>) -> IntValue<'c> {
        let first = self.first(ir, slot);
        let element = first.map_or(self.thread, |first| ir.add(first, self.thread));
        match self.is_element(ir, slot) {
            None => element,
            Some(inside) => ir.select_int(inside, element, i32_const(ir, self.elements - 1)),
        }
    }

    fn first(&self, ir: &Ir<'c>, slot: Slot<'c>) -> Option<IntValue<'c>> {
        match slot {
            Slot::Fixed(0) => None,
            Slot::Fixed(slot) => Some(i32_const(ir, slot * self.threads)),
            Slot::Varying(slot) => Some(ir.mul(slot, i32_const(ir, self.threads))),
        }
    }

    /// Whether the slot isn't padding; `None` where no thread has padding there.
    pub(super) fn is_element(&self, ir: &Ir<'c>, slot: Slot<'c>) -> Option<IntValue<'c>> {
        let whole = match slot {
            Slot::Fixed(slot) => (slot + 1) * self.threads <= self.elements,
            Slot::Varying(_) => self.elements.is_multiple_of(self.threads),
        };
        if whole {
            return None;
        }
        let element = self.first(ir, slot).map_or(self.thread, |first| ir.add(first, self.thread));
        Some(ir.icmp(IntPredicate::ULT, element, i32_const(ir, self.elements)))
    }

    /// The position of the slot's element along every axis. Padding stands for the last element.
    pub(super) fn coordinates(&self, ir: &Ir<'c>, slot: Slot<'c>) -> Vec<Coordinate<'c>> {
        (0..self.shape.len()).map(|axis| self.coordinate(ir, slot, axis)).collect()
    }

    fn coordinate(&self, ir: &Ir<'c>, slot: Slot<'c>, axis: usize) -> Coordinate<'c> {
        let (extent, stride) = (self.shape[axis], self.strides[axis]);
        if extent == 1 {
            return Coordinate { varying: None, fixed: 0 };
        }
        let period = extent * stride;
        match slot {
            Slot::Fixed(slot) if self.elements.is_multiple_of(self.threads) => {
                // The slot within a period, where the period is whole slots; a period within a slot repeats.
                let spans = period.is_multiple_of(self.threads);
                let within = if spans { slot % (period / self.threads) } else { 0 };
                if let Some(varying) = self.common[axis] {
                    return Coordinate { varying: Some(varying), fixed: within * (self.threads / stride) };
                }
                if spans && stride.is_multiple_of(self.threads) {
                    return Coordinate { varying: None, fixed: within / (stride / self.threads) };
                }
                self.divided(ir, Slot::Fixed(slot), axis)
            }
            slot => self.divided(ir, slot, axis),
        }
    }

    fn divided(&self, ir: &Ir<'c>, slot: Slot<'c>, axis: usize) -> Coordinate<'c> {
        let mut position = quotient(ir, self.element(ir, slot), self.strides[axis]);
        if axis > 0 {
            position = remainder(ir, position, self.shape[axis]);
        }
        Coordinate { varying: Some(position), fixed: 0 }
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
