//! Factors of f32 become bf16 or f16 where all their elements are such numbers, so that a target's matrix instructions of
//! these multiply them.
//!
//! Numbers of few bits that are converted to f32 and scaled by powers of two, or by numbers of few bits themselves, are numbers
//! of bf16 still: 8-bit floats with the scales of the microscaling formats, weights of 4 bits, bytes. Their products are the
//! same numbers whatever format the factors have, so the sums are those that were asked for. Only where a scale takes a
//! factor below 2⁻¹²⁶, as f32 is subnormal there, does it lose bits, since bf16 has fewer below.

use crate::dtype::{Class, DType};
use crate::gpu::products;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{BinaryOp, Literal, Op, UnaryOp};
use crate::passes::remove_unused;
use crate::round::FloatFormat;
use crate::target::TargetDesc;
use crate::types::Elem;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// What all numbers of a tile are: multiples of `2^unit` with so many significant bits, below `2^end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Significance {
    bits: u32,
    unit: i32,
    end: i32,
    /// Whether they are scaled by any power of two besides.
    is_scaled: bool,
}

impl Significance {
    const POWERS_OF_TWO: Significance = Significance { bits: 1, unit: 0, end: 1, is_scaled: true };

    fn of_format(format: FloatFormat) -> Significance {
        Significance {
            bits: format.mantissa_bits + 1,
            unit: format.min_exponent() - format.mantissa_bits as i32,
            end: format.bias() + if format.has_infinity { 1 } else { 2 },
            is_scaled: false,
        }
    }

    fn of_integers(range: RangeInclusive<i128>) -> Significance {
        // −2ⁿ needs no more bits than 2ⁿ − 1.
        let most = (*range.end()).max(-1 - *range.start()).max(0);
        let bits = i128::BITS - most.leading_zeros();
        Significance { bits, unit: 0, end: bits as i32 + 1, is_scaled: false }
    }

    fn product(self, other: Significance) -> Significance {
        // A power of two moves bits and adds none.
        let is_power = self.bits.min(other.bits) <= 1;
        Significance {
            bits: if is_power { self.bits.max(other.bits) } else { self.bits + other.bits },
            unit: self.unit + other.unit,
            end: self.end + other.end,
            is_scaled: self.is_scaled || other.is_scaled,
        }
    }

    fn either(self, other: Significance) -> Significance {
        Significance {
            bits: self.bits.max(other.bits),
            unit: self.unit.min(other.unit),
            end: self.end.max(other.end),
            is_scaled: self.is_scaled || other.is_scaled,
        }
    }

    /// Whether all but zero are normal numbers of a format, if they are numbers of it.
    fn are_normal(self, dtype: DType) -> bool {
        dtype.float_format().is_some_and(|format| self.unit >= format.min_exponent())
    }

    /// Whether all are numbers of a format. One with the exponents of f32 overflows where f32 does.
    fn fits(self, dtype: DType) -> bool {
        dtype.float_format().is_some_and(|format| {
            let all = Significance::of_format(format);
            let may_scale = format.exponent_bits == 8;
            self.bits <= all.bits
                && self.unit >= all.unit
                && self.end <= all.end
                && (may_scale || !self.is_scaled)
        })
    }
}

/// What is known of a kernel's values, each asked for once: what is computed of a value twice would else be followed as often.
struct Known<'k> {
    kernel: &'k Kernel,
    definitions: HashMap<ValueId, OpId>,
    significances: HashMap<ValueId, Option<Significance>>,
    integers: HashMap<ValueId, RangeInclusive<i128>>,
}

impl<'k> Known<'k> {
    fn of(kernel: &'k Kernel) -> Known<'k> {
        let (significances, integers) = (HashMap::new(), HashMap::new());
        Known { kernel, definitions: kernel.definitions(), significances, integers }
    }

    fn definition(&self, value: ValueId) -> Option<&'k OpData> {
        self.definitions.get(&value).map(|&op| self.kernel.op(op))
    }

    /// What the numbers of a tile or scalar of f32 are known to be.
    fn significance(&mut self, value: ValueId) -> Option<Significance> {
        if let Some(&known) = self.significances.get(&value) {
            return known;
        }
        let found = self.definition(value).and_then(|data| self.significance_of(data));
        self.significances.insert(value, found);
        found
    }

    fn significance_of(&mut self, data: &OpData) -> Option<Significance> {
        let operands = &data.operands;
        match &data.op {
            Op::Cast(_) => Some(self.converted(operands[0])),
            Op::Unary(UnaryOp::Neg | UnaryOp::Abs) => self.significance(operands[0]),
            Op::Binary(BinaryOp::Mul) => {
                Some(self.significance(operands[0])?.product(self.significance(operands[1])?))
            }
            _ => {
                let parts = moved(data)?.iter().map(|&part| self.significance(part));
                parts.reduce(|all, part| Some(all?.either(part?)))?
            }
        }
    }

    /// Of numbers of another format that become f32.
    fn converted(&mut self, source: ValueId) -> Significance {
        let dtype = crate::gpu::dtype_of(self.kernel, source);
        match dtype.float_format() {
            Some(_) if dtype.class() == Class::Scale => Significance::POWERS_OF_TWO,
            Some(format) => Significance::of_format(format),
            None => Significance::of_integers(self.integers(source)),
        }
    }

    /// Between which numbers the integers of a tile or scalar lie, as those do of which a few bits were taken.
    fn integers(&mut self, value: ValueId) -> RangeInclusive<i128> {
        if let Some(known) = self.integers.get(&value) {
            return known.clone();
        }
        let (least, most) = crate::gpu::dtype_of(self.kernel, value).int_range();
        let found = self.definition(value).and_then(|data| self.integers_of(data));
        let found = found.filter(|found| least <= *found.start() && *found.end() <= most);
        let found = found.unwrap_or(least..=most);
        self.integers.insert(value, found.clone());
        found
    }

    fn integers_of(&mut self, data: &OpData) -> Option<RangeInclusive<i128>> {
        let either = |a: RangeInclusive<i128>, b: RangeInclusive<i128>| {
            *a.start().min(b.start())..=*a.end().max(b.end())
        };
        match &data.op {
            Op::Constant { value: Literal::Int(number), .. } => Some(*number..=*number),
            Op::Cast(_) if !crate::gpu::dtype_of(self.kernel, data.operands[0]).is_float() => {
                Some(self.integers(data.operands[0]))
            }
            Op::Binary(op) => {
                let [a, b] = [0, 1].map(|operand| self.integers(data.operands[operand]));
                let width = crate::gpu::dtype_of(self.kernel, data.results[0]).bits();
                integers_of_two(*op, &a, &b, width)
            }
            _ => moved(data)?.iter().map(|&part| self.integers(part)).reduce(either),
        }
    }
}

/// Between which numbers the results lie, of integers of so many bits, without regard to overflow.
fn integers_of_two(
    op: BinaryOp,
    a: &RangeInclusive<i128>,
    b: &RangeInclusive<i128>,
    width: u32,
) -> Option<RangeInclusive<i128>> {
    match op {
        BinaryOp::And => {
            let masks = [a, b].into_iter().filter(|mask| *mask.start() >= 0);
            masks.map(|mask| *mask.end()).min().map(|most| 0..=most)
        }
        BinaryOp::Shr => {
            // Shifts count modulo the width.
            let by = u32::try_from(*b.start()).ok().filter(|_| *b.end() < i128::from(width))?;
            (*a.start() >= 0).then(|| 0..=(*a.end() >> by))
        }
        BinaryOp::Add => Some(a.start() + b.start()..=a.end() + b.end()),
        BinaryOp::Sub => Some(a.start() - b.end()..=a.end() - b.start()),
        _ => None,
    }
}

/// The operands whose elements those of the result are; `None` where it computes others.
fn moved(data: &OpData) -> Option<&[ValueId]> {
    match &data.op {
        Op::Splat(_) | Op::Broadcast(_) | Op::Reshape(_) | Op::Permute(_) | Op::Movement(_) => {
            Some(&data.operands)
        }
        Op::Select => Some(&data.operands[1..]),
        _ => None,
    }
}

/// A product of f32, and the format that its factors have all the same.
pub(in crate::gpu) type Narrower = (OpId, DType);

/// The products of f32 that a target's instructions of a narrower format can do.
pub(in crate::gpu) fn needed(kernel: &Kernel, target: &TargetDesc) -> Vec<Narrower> {
    let mut known = Known::of(kernel);
    let mut narrower = |op: OpId| {
        let data = kernel.op(op);
        if data.op != Op::Mma || crate::gpu::dtype_of(kernel, data.operands[0]) != DType::F32 {
            return None;
        }
        let [a, b] = [0, 1].map(|factor| known.significance(data.operands[factor]));
        let both = a?.either(b?);
        let extents = products::extents(kernel, data);
        let is_multiplied = |format: DType| {
            let instructions = target.matrix.iter().filter(|it| it.factors == [format; 2]);
            products::does(instructions, target.matrix, extents)
        };
        // Where subnormal numbers of f16 would be zeros, factors may have none.
        let is_kept =
            |format: DType| format != DType::F16 || !target.flushes_halves || both.are_normal(format);
        let formats = [DType::BF16, DType::F16].into_iter();
        formats.filter(|&format| both.fits(format) && is_kept(format)).find(|&format| is_multiplied(format))
    };
    kernel.walk().into_iter().filter_map(|op| Some((op, narrower(op)?))).collect()
}

/// Has these products multiply factors of the narrower format. Those of f32 that nobody has use for then go, so that what
/// was loaded is a product's alone.
pub(in crate::gpu) fn run(kernel: &mut Kernel, products: &[Narrower]) {
    let definitions = kernel.definitions();
    for &(op, format) in products {
        for factor in 0..2 {
            let value = kernel.op(op).operands[factor];
            let narrow = narrowed(kernel, &definitions, value, format);
            kernel.op_mut(op).operands[factor] = narrow;
        }
    }
    remove_unused(kernel);
}

/// A tile in a narrower format, converted where it was computed, so that no loop does it again, and before it was moved.
fn narrowed(
    kernel: &mut Kernel,
    definitions: &HashMap<ValueId, OpId>,
    value: ValueId,
    format: DType,
) -> ValueId {
    let made = definitions[&value];
    let data = kernel.op(made).clone();
    let (op, operand) = match data.op {
        Op::Cast(_) if crate::gpu::dtype_of(kernel, data.operands[0]) == format => return data.operands[0],
        Op::Cast(_) => (Op::Cast(Elem::from(format)), data.operands[0]),
        Op::Permute(_) | Op::Reshape(_) | Op::Broadcast(_) => {
            (data.op, narrowed(kernel, definitions, data.operands[0], format))
        }
        _ => (Op::Cast(Elem::from(format)), value),
    };
    let ty = kernel.ty(value).with_elem(Elem::from(format));
    Inserter::behind(kernel, made).emit(op, vec![operand], ty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{print, schedule};
    use crate::specialize::Instance;
    use tile_test_edit::Edit;

    /// A product of f32 that are made of a tile of 128×64 elements of a format each, by these lines from `%x` to `%y`.
    fn product(element: &str, lines: &str) -> String {
        let factor = |from: &str, to: &str| lines.edit("%x", from).edit("%y", to);
        let (left, right) = (factor("%ta", "%fa"), factor("%tb", "%fb"));
        format!(
            "kernel @product(%a: tensor<128 x 64 x {element}>, %b: tensor<128 x 64 x {element}>, %s: tensor<128 x 2 x f8e8m0fnu>, %c: mut tensor<128 x 128 x f32>) {{
  %va = partition %a [128, 64] : partition<128 x 64 x {element}, [128, 64]>
  %vb = partition %b [128, 64] : partition<128 x 64 x {element}, [128, 64]>
  %vs = partition %s [128, 2] : partition<128 x 2 x f8e8m0fnu, [128, 2]>
  %vc = partition %c [128, 128] : mut partition<128 x 128 x f32, [128, 128]>
  %i, %j = block_index %vc : index, index
  %none = constant 0.0 : f32
  %zero = splat %none : tile<128 x 128 x f32>
  %ta = load %va[%i, %j] : tile<128 x 64 x {element}>
  %tb = load %vb[%i, %j] : tile<128 x 64 x {element}>
  %scales = load %vs[%i, %j] : tile<128 x 2 x f8e8m0fnu>
{left}{right}  %across = permute %fb [1, 0] : tile<64 x 128 x f32>
  %sum = mma %fa, %across, %zero : tile<128 x 128 x f32>
  store %vc, %sum
}}
"
        )
    }

    /// The formats of the factors that the product has on `sm_80` in the end.
    fn factors(element: &str, lines: &str) -> Vec<DType> {
        factors_on("sm_80", element, lines)
    }

    fn factors_on(target: &str, element: &str, lines: &str) -> Vec<DType> {
        let source = product(element, lines);
        let instance = Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}"));
        let target = TargetDesc::named(target).unwrap();
        needed(&crate::passes::optimize(instance), target).into_iter().map(|(_, format)| format).collect()
    }

    const CAST: &str = "  %y = cast %x : tile<128 x 64 x f32>\n";

    const SCALED: &str = "\
  %x_f = cast %x : tile<128 x 64 x f32>
  %x_s = cast %scales : tile<128 x 2 x f32>
  %x_c = reshape %x_s : tile<128 x 2 x 1 x f32>
  %x_b = broadcast %x_c : tile<128 x 2 x 32 x f32>
  %x_r = reshape %x_b : tile<128 x 64 x f32>
  %y = mul %x_f, %x_r : tile<128 x 64 x f32>
";

    #[test]
    fn numbers_of_few_bits_are_multiplied_in_the_format_that_has_them() {
        let cases = [
            ("bf16", CAST, Some(DType::BF16)),
            ("f16", CAST, Some(DType::F16)),
            ("i8", CAST, Some(DType::BF16)),
            ("u8", CAST, Some(DType::BF16)),
            // 511 has nine bits, which are an f16's.
            ("i16", CAST, None),
            ("f8e4m3fn", SCALED, Some(DType::BF16)),
            ("f8e5m2", SCALED, Some(DType::BF16)),
            // More bits than a bf16 has, and exponents that an f16 hasn't.
            ("f16", SCALED, None),
        ];
        for (element, lines, expected) in cases {
            assert_eq!(factors(element, lines), Vec::from_iter(expected), "{element}\n{lines}");
        }
    }

    /// CDNA 2 multiplies subnormal numbers of f16 as zeros, which no integer is.
    #[test]
    fn numbers_that_a_target_flushes_stay_as_they_are() {
        let integers = "\
  %x_m = constant 1023 : i16
  %x_t = splat %x_m : tile<128 x 64 x i16>
  %x_l = and %x, %x_t : tile<128 x 64 x i16>
  %y = cast %x_l : tile<128 x 64 x f32>
";
        for (target, halves) in [("gfx90a", vec![]), ("gfx942", vec![DType::F16])] {
            assert_eq!(factors_on(target, "f16", CAST), halves, "{target}");
            assert_eq!(factors_on(target, "i16", integers), [DType::F16], "{target}");
            assert_eq!(factors_on(target, "bf16", CAST), [DType::BF16], "{target}");
        }
    }

    #[test]
    fn integers_of_few_bits_are_known_by_how_they_were_taken() {
        let taken = |mask: u32, less: u32| {
            format!(
                "  %x_m = constant {mask} : i32
  %x_n = splat %x_m : tile<128 x 64 x i32>
  %x_a = and %x, %x_n : tile<128 x 64 x i32>
  %x_l = constant {less} : i32
  %x_o = splat %x_l : tile<128 x 64 x i32>
  %x_d = sub %x_a, %x_o : tile<128 x 64 x i32>
  %y = cast %x_d : tile<128 x 64 x f32>
"
            )
        };
        assert_eq!(factors("i32", &taken(15, 8)), [DType::BF16]);
        assert_eq!(factors("i32", &taken(511, 256)), [DType::BF16]);
        assert_eq!(factors("i32", &taken(1023, 0)), [DType::F16]);
        assert_eq!(factors("i32", &taken(8191, 0)), []);
    }

    /// `>> 40` of a u32 is `>> 8`, and what is left has 24 bits.
    #[test]
    fn shifts_by_more_than_the_width_leave_bits() {
        let shifted = |by: u32| {
            format!(
                "  %x_m = constant {by} : u32
  %x_n = splat %x_m : tile<128 x 64 x u32>
  %x_a = shr %x, %x_n : tile<128 x 64 x u32>
  %y = cast %x_a : tile<128 x 64 x f32>
"
            )
        };
        assert_eq!(factors("u32", &shifted(24)), [DType::BF16]);
        assert_eq!(factors("u32", &shifted(8)), []);
        assert_eq!(factors("u32", &shifted(40)), []);
    }

    /// Each of 64 sums has the one before it twice: followed anew each time, these were 2⁶⁴ steps.
    #[test]
    fn a_value_that_is_used_twice_is_followed_once() {
        let sum = |i: usize| format!("  %x_{} = add %x_{i}, %x_{i} : tile<128 x 64 x i32>\n", i + 1);
        let sums: String = (0..64).map(sum).collect();
        let lines = format!(
            "  %x_0 = add %x, %x : tile<128 x 64 x i32>\n{sums}  %y = cast %x_64 : tile<128 x 64 x f32>\n"
        );
        assert_eq!(factors("i32", &lines), []);
    }

    /// Nothing is converted that was loaded in the format already, and scaled factors once, where they are made.
    #[test]
    fn factors_are_what_they_were_converted_from() {
        let scheduled = |source: &str| {
            let instance = crate::passes::optimize(Instance::parse(source, &[]).unwrap());
            print(&schedule(instance, TargetDesc::named("sm_80").unwrap(), None))
        };
        let plain = scheduled(&product("bf16", CAST));
        assert!(plain.contains("m16n8k16") && !plain.contains("= cast "), "{plain}");
        let scaled = scheduled(&product("f8e4m3fn", SCALED));
        assert!(scaled.contains("m16n8k16"), "{scaled}");
    }
}
