//! What divides an integer: for every integer scalar and every element of a tile of integers, the largest number
//! that is known to divide it, as it is stored.
//!
//! Arithmetic wraps at the format's width, which powers of two survive and other divisors don't. So a sum or product
//! keeps the odd part of its divisor only where [`Ranges`] shows that neither it nor its operands have wrapped.
//!
//! 0 divides nothing but 0, and everything divides 0: a divisor of 0 says that the value is 0. The greatest common
//! divisor joins what is known of two values, 0 is its neutral element.

use super::facts::{Facts, gcd as common};
use super::ranges::Ranges;
use crate::dim::{Atom, Dim};
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{BinaryOp, Carried, Literal, Movement, Op, UnaryOp};
use std::collections::HashMap;

/// How often a loop is read before what it carries is taken for unknown.
const TURNS: usize = 8;

/// The divisors of a kernel's integers.
#[derive(Clone, Debug, Default)]
pub struct Divisors {
    /// What isn't here is divided by 1 alone.
    divisors: HashMap<ValueId, u64>,
}

impl Divisors {
    /// Analyses a verified kernel, under its conditions.
    pub fn of(kernel: &Kernel) -> Divisors {
        Divisors::within(kernel, &Ranges::under(kernel, Facts::of(kernel)))
    }

    /// Analyses a kernel whose ranges are known.
    pub fn within(kernel: &Kernel, ranges: &Ranges) -> Divisors {
        let mut analysis = Analysis { kernel, ranges, found: Divisors::default() };
        analysis.region(kernel.body());
        analysis.found
    }

    /// The largest number known to divide a value, or every element of a tile; 0 where the value is 0.
    pub fn divisor(&self, value: ValueId) -> u64 {
        self.divisors.get(&value).copied().unwrap_or(1)
    }

    /// Whether a number divides a value.
    pub fn divides(&self, number: u64, value: ValueId) -> bool {
        number != 0 && self.divisor(value).is_multiple_of(number)
    }
}

/// The kernel's text with the divisor of every value of which one is known beside its definition.
pub fn print(kernel: &Kernel) -> String {
    let divisors = Divisors::of(kernel);
    let note = |value: ValueId| match divisors.divisor(value) {
        0 => Some(String::from("= 0")),
        1 => None,
        divisor => Some(format!("divisible by {divisor}")),
    };
    crate::text::print_with_notes(kernel, &note)
}

struct Analysis<'k> {
    kernel: &'k Kernel,
    ranges: &'k Ranges,
    found: Divisors,
}

impl Analysis<'_> {
    fn set(&mut self, value: ValueId, divisor: u64) {
        // A value with one possible number says more than how it was computed.
        let only = match self.ranges.defined_interval(self.kernel, value) {
            Some((low, high)) if low == high => magnitude(low),
            _ => divisor,
        };
        self.found.divisors.insert(value, only);
    }

    fn region(&mut self, region: RegionId) {
        for &op in &self.kernel.region(region).ops {
            self.op(op);
        }
    }

    fn op(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        match (&data.op, Carried::of(&data.op)) {
            (_, Some(at)) => self.repeated(data, at),
            (Op::If, None) => self.branches(data),
            (_, None) => {
                for &inner in &data.regions {
                    self.region(inner);
                }
                for &result in &data.results {
                    if let Some(dtype) = integers(self.kernel, result) {
                        let divisor = self.value(data, dtype);
                        self.set(result, divisor);
                    }
                }
            }
        }
    }

    /// What a loop carries is divided by what divides its start and whatever a turn gives.
    fn repeated(&mut self, data: &OpData, at: Carried) {
        let region = self.kernel.region(data.regions[0]);
        let carried = &region.params[at.param..];
        let starts = &data.operands[at.initial..];
        for (&param, &start) in carried.iter().zip(starts) {
            self.found.divisors.insert(param, self.found.divisor(start));
        }
        if let (Op::For, Some(&counter)) = (&data.op, region.params.first()) {
            self.set(counter, 1);
        }
        for turn in 0.. {
            self.region(data.regions[0]);
            let nexts = self.yielded(data.regions[0], carried.len());
            let joined: Vec<u64> = carried
                .iter()
                .zip(nexts)
                .map(|(&param, next)| common(self.found.divisor(param), self.found.divisor(next)))
                .collect();
            let settled = carried.iter().zip(&joined).all(|(&param, &new)| self.found.divisor(param) == new);
            for (&param, &new) in carried.iter().zip(&joined) {
                self.found.divisors.insert(param, if turn < TURNS { new } else { 1 });
            }
            if settled {
                break;
            }
        }
        for (&result, &param) in data.results.iter().zip(carried) {
            self.found.divisors.insert(result, self.found.divisor(param));
        }
    }

    fn branches(&mut self, data: &OpData) {
        let count = data.results.len();
        for &region in &data.regions {
            self.region(region);
        }
        let [taken, other] = [0, 1].map(|which| self.yielded(data.regions[which], count));
        for (&result, (a, b)) in data.results.iter().zip(taken.into_iter().zip(other)) {
            self.found.divisors.insert(result, common(self.found.divisor(a), self.found.divisor(b)));
        }
    }

    /// The last values that a region yields.
    fn yielded(&self, region: RegionId, count: usize) -> Vec<ValueId> {
        let last = self.kernel.region(region).ops.last().map(|&op| self.kernel.op(op));
        let operands = last.filter(|last| last.op == Op::Yield).map_or(&[][..], |last| &last.operands);
        operands[operands.len() - count..].to_vec()
    }

    fn value(&self, data: &OpData, dtype: DType) -> u64 {
        let of = |i: usize| self.found.divisor(data.operands[i]);
        let common_of = |values: &[ValueId]| {
            values.iter().fold(0, |divisor, &value| common(divisor, self.found.divisor(value)))
        };
        let exact = |divisor: u64| if self.is_exact(data, dtype) { divisor } else { power_of_two(divisor) };
        match &data.op {
            Op::Constant { value: Literal::Int(value), .. } => magnitude(*value),
            Op::Extent(dim) => self.extent(dim),
            Op::Binary(op) => match op {
                BinaryOp::Add | BinaryOp::Sub => exact(common(of(0), of(1))),
                BinaryOp::Mul => exact(product(of(0), of(1))),
                BinaryOp::Shl => match self.shift(data, dtype) {
                    Some(amount) => power_of_two(product(of(0), 1 << amount)),
                    None => power_of_two(of(0)),
                },
                BinaryOp::Shr => quotient(of(0), self.shift(data, dtype).map_or(0, |amount| 1 << amount)),
                BinaryOp::Div | BinaryOp::DivFloor | BinaryOp::DivCeil => {
                    quotient(of(0), self.constant(data.operands[1]).map_or(0, magnitude))
                }
                // `a - k*b`, which doesn't wrap.
                BinaryOp::Rem | BinaryOp::RemEuclid | BinaryOp::Min | BinaryOp::Max => common(of(0), of(1)),
                BinaryOp::And => masked(of(0), of(1)),
                BinaryOp::Or | BinaryOp::Xor => power_of_two(common(of(0), of(1))),
                _ => 1,
            },
            // The smallest number is a power of two and its own negation.
            Op::Unary(UnaryOp::Neg | UnaryOp::Abs) => of(0),
            Op::Select => common(of(1), of(2)),
            Op::Cast(_) => match integers(self.kernel, data.operands[0]) {
                Some(from) if dtype.contains_integers_of(from) || self.is_exact(data, dtype) => of(0),
                Some(_) => power_of_two_within(of(0), dtype),
                None => 1,
            },
            Op::Splat(_) | Op::Broadcast(_) | Op::Reshape(_) | Op::Permute(_) | Op::Item => of(0),
            Op::Movement(Movement::Repeat { .. } | Movement::Flip { .. } | Movement::Roll { .. }) => of(0),
            Op::Movement(_) => common_of(&data.operands),
            _ => 1,
        }
    }

    /// Whether no result of a sum, difference, product or cast of the operands wraps.
    fn is_exact(&self, data: &OpData, dtype: DType) -> bool {
        let interval = |i: usize| self.ranges.defined_interval(self.kernel, data.operands[i]);
        let result = || match &data.op {
            Op::Binary(op) => {
                let ((a, b), (c, d)) = (interval(0)?, interval(1)?);
                match op {
                    BinaryOp::Add => Some((a.checked_add(c)?, b.checked_add(d)?)),
                    BinaryOp::Sub => Some((a.checked_sub(d)?, b.checked_sub(c)?)),
                    // Of numbers that aren't negative, the smallest product is that of the smallest.
                    _ if a >= 0 && c >= 0 => Some((a.checked_mul(c)?, b.checked_mul(d)?)),
                    _ => None,
                }
            }
            _ => interval(0),
        };
        let (least, greatest) = dtype.int_range();
        result().is_some_and(|(low, high)| least <= low && high <= greatest)
    }

    /// The divisor of an extent's value, which is 0 where the extent is negative.
    fn extent(&self, dim: &Dim) -> u64 {
        let facts = self.ranges.facts();
        if facts.computes(dim) { form_divisor(&facts.apply(dim)) } else { power_of_two(form_divisor(dim)) }
    }

    fn constant(&self, value: ValueId) -> Option<i128> {
        let data = self.kernel.definition(value)?;
        match data.op {
            Op::Splat(_) => self.constant(data.operands[0]),
            _ => data.constant()?.as_int(),
        }
    }

    /// The amount of a shift by a constant.
    fn shift(&self, data: &OpData, dtype: DType) -> Option<u32> {
        let amount = self.constant(data.operands[1])?.rem_euclid(i128::from(dtype.bits()));
        u32::try_from(amount).ok()
    }
}

/// The format of an integer scalar, or of a tile of integers.
fn integers(kernel: &Kernel, value: ValueId) -> Option<DType> {
    let ty = kernel.ty(value);
    let dtype = ty.elem().known().filter(|_| ty.is_data())?;
    dtype.is_int().then_some(dtype)
}

/// What divides every value of a form.
pub(crate) fn form_divisor(dim: &Dim) -> u64 {
    dim.terms().fold(0, |divisor, (factors, coefficient)| {
        let term = factors.iter().fold(coefficient.unsigned_abs(), |term, atom| match atom {
            Atom::Rem(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                product(term, common(form_divisor(a), form_divisor(b)))
            }
            Atom::Param(_)
            | Atom::Size(_)
            | Atom::CeilDiv(..)
            | Atom::FloorDiv(..)
            | Atom::Ilog2(_)
            | Atom::NextPowerOfTwo(_) => term,
        });
        common(divisor, term)
    })
}

fn magnitude(value: i128) -> u64 {
    u64::try_from(value.unsigned_abs()).unwrap_or(1)
}

/// A product of divisors, or the part of it that fits.
fn product(a: u64, b: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product,
        None => {
            let twos = a.trailing_zeros() + b.trailing_zeros();
            1 << twos.min(63)
        }
    }
}

/// What divides the quotient by a number; 0 is an unknown one.
fn quotient(divisor: u64, by: u64) -> u64 {
    if divisor == 0 {
        0
    } else if by != 0 && divisor.is_multiple_of(by) {
        divisor / by
    } else {
        1
    }
}

/// The powers of two in a divisor.
fn power_of_two(divisor: u64) -> u64 {
    if divisor == 0 { 0 } else { 1 << divisor.trailing_zeros() }
}

/// The powers of two that a narrower format keeps: where none of its bits is left, the value is 0.
fn power_of_two_within(divisor: u64, dtype: DType) -> u64 {
    match power_of_two(divisor) {
        twos if twos.trailing_zeros() >= dtype.bits() => 0,
        twos => twos,
    }
}

/// Bits that are 0 in either operand are 0 in both.
fn masked(a: u64, b: u64) -> u64 {
    if a == 0 || b == 0 { 0 } else { power_of_two(a).max(power_of_two(b)) }
}

#[cfg(test)]
mod tests;
