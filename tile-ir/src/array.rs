//! Dense arrays and the reference meaning of every data op, written for clarity.
//!
//! Floats of every format are held as `f64`, which represents each exactly; an op computes in `f64` and
//! rounds once. Shapes and formats are the caller's duty (verified IR, or the kernel-side types): a
//! violation is a panic that names the invariant.

mod lines;
mod memory;
mod movement;

pub use lines::Combine;

use crate::dtype::{Class, DType};
use crate::ops::fused;
use crate::ops::{BinaryOp, Classification, Literal, Op, Predicate, ReduceOp, UnaryOp};
use crate::round::{Rounding, decode, encode, round};
use tile_layout::shape::Lines;
use tile_layout::{element_count, multi_index};

/// Elements as numbers. Invariant: each is representable in the array's format.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// Integers, and `bool` as 0 and 1.
    Int(Vec<i128>),
    /// Floats of any format; each format's values are exact in f64.
    Float(Vec<f64>),
}

/// A dense row-major array. Rank 0 is a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    elements: Elements,
}

/// Rounds to the nearest value of a float format, ties to even.
///
/// ```
/// use tile_ir::{DType, array::round_float};
/// assert_eq!(round_float(DType::BF16, 1.0 + 1.0 / 256.0), 1.0);
/// ```
pub fn round_float(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F32 => f64::from(value as f32),
        _ => round(dtype, Rounding::NearestEven, value),
    }
}

/// Wraps an integer to the width of a format; `bool` keeps the lowest bit.
///
/// ```
/// use tile_ir::{DType, array::wrap_int};
/// assert_eq!(wrap_int(DType::I8, 128), -128);
/// ```
pub fn wrap_int(dtype: DType, value: i128) -> i128 {
    match dtype.class() {
        Class::Bool => value & 1,
        Class::Signed => {
            let unused = 128 - dtype.bits();
            (value << unused) >> unused
        }
        _ => value & ((1i128 << dtype.bits()) - 1),
    }
}

/// Rust's `as` from a float to an integer format: truncates, saturates, NaN gives 0.
fn float_to_int(dtype: DType, value: f64) -> i128 {
    let (low, high) = dtype.int_range();
    (value as i128).clamp(low, high)
}

/// An integer as a float format, rounded once.
fn int_to_float(dtype: DType, value: i128) -> f64 {
    if value.unsigned_abs() < 1 << 53 {
        return round_float(dtype, value as f64);
    }
    match dtype {
        DType::F64 => value as f64,
        DType::F32 => f64::from(value as f32),
        // A 64-bit integer cut to 53 bits, the last one sticky, rounds to 11 or 8 bits as the whole would.
        _ => {
            let sticky = i128::from(value & 0x7ff != 0);
            round_float(dtype, (((value >> 11) | sticky) as f64) * 2048.0)
        }
    }
}

impl Array {
    /// An array of these elements.
    ///
    /// # Panics
    /// If the number or kind of the elements doesn't fit the shape or the format.
    pub fn new(dtype: DType, shape: Vec<usize>, elements: Elements) -> Array {
        let count = match &elements {
            Elements::Int(values) => values.len(),
            Elements::Float(values) => values.len(),
        };
        assert_eq!(element_count(&shape), Some(count), "an array has as many elements as its shape says");
        assert_eq!(
            matches!(elements, Elements::Float(_)),
            dtype.is_float(),
            "elements are of the format's class"
        );
        Array { dtype, shape, elements }
    }

    /// A number of rank 0, rounded or wrapped to the format.
    pub fn scalar(dtype: DType, value: Literal) -> Array {
        Array::full(dtype, &[], value)
    }

    /// An array with every element equal to `value`, rounded or wrapped to the format.
    pub fn full(dtype: DType, shape: &[usize], value: Literal) -> Array {
        let count = element_count(shape).expect("the element count fits usize");
        let elements = match value {
            Literal::Float(value) => Elements::Float(vec![round_float(dtype, value); count]),
            Literal::Int(value) if dtype.is_float() => {
                Elements::Float(vec![int_to_float(dtype, value); count])
            }
            Literal::Int(value) => Elements::Int(vec![wrap_int(dtype, value); count]),
        };
        Array::new(dtype, shape.to_vec(), elements)
    }

    /// An array whose element is its position along `axis`.
    pub fn iota(dtype: DType, shape: &[usize], axis: usize) -> Array {
        let count = element_count(shape).expect("the element count fits usize");
        let positions = (0..count).map(|i| multi_index(i, shape)[axis] as i128);
        let elements = if dtype.is_float() {
            Elements::Float(positions.map(|p| int_to_float(dtype, p)).collect())
        } else {
            Elements::Int(positions.map(|p| wrap_int(dtype, p)).collect())
        };
        Array::new(dtype, shape.to_vec(), elements)
    }

    /// Element format.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements in row-major order.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match &self.elements {
            Elements::Int(values) => values.len(),
            Elements::Float(values) => values.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `i` in row-major order, as the number it is.
    pub fn get(&self, i: usize) -> Literal {
        match &self.elements {
            Elements::Int(values) => Literal::Int(values[i]),
            Elements::Float(values) => Literal::Float(values[i]),
        }
    }

    /// Element `i` as a float; integers are converted.
    pub fn get_f64(&self, i: usize) -> f64 {
        match &self.elements {
            Elements::Int(values) => values[i] as f64,
            Elements::Float(values) => values[i],
        }
    }

    /// Element `i` of an integer or bool array.
    ///
    /// # Panics
    /// If the elements are floats.
    pub fn get_int(&self, i: usize) -> i128 {
        self.ints()[i]
    }

    fn ints(&self) -> &[i128] {
        match &self.elements {
            Elements::Int(values) => values,
            Elements::Float(_) => panic!("verified: the elements are integers"),
        }
    }

    /// The elements at positions that `source` gives for each position of the result.
    fn picked(&self, shape: Vec<usize>, source: impl Fn(usize) -> usize) -> Array {
        let count = element_count(&shape).expect("the element count fits usize");
        let elements = match &self.elements {
            Elements::Int(values) => Elements::Int((0..count).map(|i| values[source(i)]).collect()),
            Elements::Float(values) => Elements::Float((0..count).map(|i| values[source(i)]).collect()),
        };
        Array { dtype: self.dtype, shape, elements }
    }

    /// Op [`crate::Op::Unary`].
    pub fn unary(&self, op: UnaryOp) -> Array {
        let dtype = self.dtype;
        let elements = match &self.elements {
            Elements::Int(values) => {
                let f = op.int();
                Elements::Int(values.iter().map(|&x| wrap_int(dtype, f(x, dtype))).collect())
            }
            Elements::Float(values) => {
                let f = op.float();
                Elements::Float(values.iter().map(|&x| round_float(dtype, f(x))).collect())
            }
        };
        Array { dtype, shape: self.shape.clone(), elements }
    }

    /// Op [`crate::Op::Binary`].
    pub fn binary(&self, op: BinaryOp, other: &Array) -> Array {
        assert_eq!(
            (self.dtype, &self.shape),
            (other.dtype, &other.shape),
            "verified: operands have one type"
        );
        let dtype = self.dtype;
        let elements = match (&self.elements, &other.elements) {
            (Elements::Float(a), Elements::Float(b)) => {
                let f = op.float();
                Elements::Float(a.iter().zip(b).map(|(&x, &y)| round_float(dtype, f(x, y))).collect())
            }
            _ => {
                let f = op.int();
                let pairs = self.ints().iter().zip(other.ints());
                Elements::Int(pairs.map(|(&x, &y)| wrap_int(dtype, f(x, y, dtype))).collect())
            }
        };
        Array { dtype, shape: self.shape.clone(), elements }
    }

    /// Op [`crate::Op::Compare`].
    pub fn compare(&self, predicate: Predicate, other: &Array) -> Array {
        assert_eq!(
            (self.dtype, &self.shape),
            (other.dtype, &other.shape),
            "verified: operands have one type"
        );
        let truths: Vec<i128> = match (&self.elements, &other.elements) {
            (Elements::Float(a), Elements::Float(b)) => {
                a.iter().zip(b).map(|(x, y)| i128::from(predicate.holds(x, y))).collect()
            }
            _ => {
                self.ints().iter().zip(other.ints()).map(|(x, y)| i128::from(predicate.holds(x, y))).collect()
            }
        };
        Array { dtype: DType::Bool, shape: self.shape.clone(), elements: Elements::Int(truths) }
    }

    /// Op [`crate::Op::Classify`].
    pub fn classify(&self, classification: Classification) -> Array {
        let Elements::Float(values) = &self.elements else {
            unreachable!("verified: floats are classified");
        };
        let truths = values.iter().map(|&x| i128::from(classification.holds(x))).collect();
        Array { dtype: DType::Bool, shape: self.shape.clone(), elements: Elements::Int(truths) }
    }

    /// Op [`crate::Op::Select`]: `a` where the condition holds, else `b`.
    pub fn select(condition: &Array, a: &Array, b: &Array) -> Array {
        assert_eq!((a.dtype, &a.shape), (b.dtype, &b.shape), "verified: both choices have one type");
        assert_eq!(condition.shape, a.shape, "verified: the condition has the shape of the choices");
        let chosen = condition.ints().iter().enumerate();
        let elements = match (&a.elements, &b.elements) {
            (Elements::Float(a), Elements::Float(b)) => {
                Elements::Float(chosen.map(|(i, &c)| if c != 0 { a[i] } else { b[i] }).collect())
            }
            _ => {
                Elements::Int(chosen.map(|(i, &c)| if c != 0 { a.ints()[i] } else { b.ints()[i] }).collect())
            }
        };
        Array { dtype: a.dtype, shape: a.shape.clone(), elements }
    }

    /// Op [`crate::Op::Cast`].
    pub fn cast(&self, to: DType) -> Array {
        let elements = match &self.elements {
            Elements::Int(values) if to.is_float() => {
                Elements::Float(values.iter().map(|&x| int_to_float(to, x)).collect())
            }
            Elements::Int(values) if to == DType::Bool => {
                Elements::Int(values.iter().map(|&x| i128::from(x != 0)).collect())
            }
            Elements::Int(values) => Elements::Int(values.iter().map(|&x| wrap_int(to, x)).collect()),
            Elements::Float(values) if to.is_float() => {
                Elements::Float(values.iter().map(|&x| round_float(to, x)).collect())
            }
            Elements::Float(values) if to == DType::Bool => {
                Elements::Int(values.iter().map(|&x| i128::from(x != 0.0)).collect())
            }
            Elements::Float(values) => Elements::Int(values.iter().map(|&x| float_to_int(to, x)).collect()),
        };
        Array { dtype: to, shape: self.shape.clone(), elements }
    }

    /// Op [`crate::Op::CastWith`].
    pub fn cast_with(&self, to: DType, rounding: Rounding) -> Array {
        let Elements::Float(values) = &self.elements else { unreachable!("verified: floats are rounded") };
        let elements = if to.is_float() {
            Elements::Float(values.iter().map(|&x| round(to, rounding, x)).collect())
        } else {
            Elements::Int(values.iter().map(|&x| float_to_int(to, rounding.to_integer(x))).collect())
        };
        Array { dtype: to, shape: self.shape.clone(), elements }
    }

    /// Op [`crate::Op::Bitcast`].
    pub fn bitcast(&self, to: DType) -> Array {
        let bits = |i: usize| match self.get(i) {
            Literal::Int(value) => value,
            Literal::Float(value) => i128::from(encode(self.dtype, value)),
        };
        let bits = (0..self.len()).map(bits);
        let elements = if to.is_float() {
            Elements::Float(bits.map(|bits| decode(to, bits as u64)).collect())
        } else {
            Elements::Int(bits.map(|bits| wrap_int(to, bits)).collect())
        };
        Array { dtype: to, shape: self.shape.clone(), elements }
    }

    /// Op [`crate::Op::MulAdd`].
    pub fn mul_add(a: &Array, b: &Array, c: &Array) -> Array {
        let (Elements::Float(x), Elements::Float(y), Elements::Float(z)) =
            (&a.elements, &b.elements, &c.elements)
        else {
            unreachable!("verified: floats are multiplied and added")
        };
        let sums = x.iter().zip(y).zip(z).map(|((&x, &y), &z)| fused::mul_add(a.dtype, x, y, z));
        Array { dtype: a.dtype, shape: a.shape.clone(), elements: Elements::Float(sums.collect()) }
    }

    /// Op [`crate::Op::Splat`] of a scalar.
    pub fn splat(&self, shape: &[usize]) -> Array {
        self.picked(shape.to_vec(), |_| 0)
    }

    /// Op [`crate::Op::Broadcast`]: axes of extent 1 are repeated.
    pub fn broadcast(&self, shape: &[usize]) -> Array {
        Array::moved(&Op::Broadcast(Vec::new()), &[self], shape)
    }

    /// Op [`crate::Op::Reshape`].
    pub fn reshape(&self, shape: &[usize]) -> Array {
        assert_eq!(element_count(shape), Some(self.len()), "verified: a reshape keeps the element count");
        Array { shape: shape.to_vec(), ..self.clone() }
    }

    /// Op [`crate::Op::Permute`]: axis `i` of the result is axis `permutation[i]` of `self`.
    pub fn permute(&self, permutation: &[usize]) -> Array {
        let shape: Vec<usize> = permutation.iter().map(|&axis| self.shape[axis]).collect();
        Array::moved(&Op::Permute(permutation.to_vec()), &[self], &shape)
    }

    /// Op [`crate::Op::Reduce`]: float sums and products are rounded once, at the end.
    pub fn reduce(&self, op: ReduceOp, axis: usize) -> Array {
        let combine = op.combine();
        let dtype = self.dtype;
        let lines = Lines::of(&self.shape, axis);
        let verified = "verified: a tile axis is not empty";
        let elements = match &self.elements {
            Elements::Float(values) => {
                let f = combine.float();
                let folded = |line| lines.positions(line).map(|i| values[i]).reduce(f).expect(verified);
                Elements::Float((0..lines.count()).map(|line| round_float(dtype, folded(line))).collect())
            }
            Elements::Int(values) => {
                let f = |x, y| wrap_int(dtype, combine.int()(x, y, dtype));
                let folded = |line| lines.positions(line).map(|i| values[i]).reduce(f).expect(verified);
                Elements::Int((0..lines.count()).map(folded).collect())
            }
        };
        let mut shape = self.shape.clone();
        shape[axis] = 1;
        Array { dtype, shape, elements }
    }

    /// Op [`crate::Op::Mma`]: `a·b + c`, matrix by matrix; float sums rounded once, at the end.
    pub fn mma(a: &Array, b: &Array, c: &Array) -> Array {
        let verified = "verified: mma shapes agree";
        let [.., m, k] = a.shape[..] else { unreachable!("verified: mma tiles have rank 2 or more") };
        let n = *b.shape.last().expect(verified);
        assert_eq!(b.len() * m, a.len() * n, "{verified}");
        assert_eq!(c.len() * k, a.len() * n, "{verified}");
        let dtype = c.dtype;
        let matrix = |row: usize| row / m * k * n;
        let elements = match (&a.elements, &b.elements, &c.elements) {
            (Elements::Float(a), Elements::Float(b), Elements::Float(c)) => {
                let mut sums = c.clone();
                for (row, sums) in sums.chunks_exact_mut(n).enumerate() {
                    for p in 0..k {
                        let (x, first) = (a[row * k + p], matrix(row) + p * n);
                        sums.iter_mut().zip(&b[first..first + n]).for_each(|(sum, y)| *sum += x * y);
                    }
                    sums.iter_mut().for_each(|sum| *sum = round_float(dtype, *sum));
                }
                Elements::Float(sums)
            }
            _ => {
                let (a, b) = (a.ints(), b.ints());
                let product =
                    |i: usize, p: usize| a[i / n * k + p].wrapping_mul(b[matrix(i / n) + p * n + i % n]);
                let sum = |(i, &sum): (usize, &i128)| {
                    wrap_int(dtype, (0..k).fold(sum, |sum, p| sum.wrapping_add(product(i, p))))
                };
                Elements::Int(c.ints().iter().enumerate().map(sum).collect())
            }
        };
        Array { dtype, shape: c.shape.clone(), elements }
    }

    /// The elements of this tensor at positions given per index of a tile; `pad` where there is none.
    pub fn read(&self, tile: &[usize], pad: Literal, position: impl Fn(&[usize]) -> Option<usize>) -> Array {
        let mut result = Array::full(self.dtype, tile, pad);
        for i in 0..result.len() {
            let Some(from) = position(&multi_index(i, tile)) else { continue };
            match (&mut result.elements, &self.elements) {
                (Elements::Float(to), Elements::Float(elements)) => to[i] = elements[from],
                (Elements::Int(to), Elements::Int(elements)) => to[i] = elements[from],
                _ => unreachable!("both arrays have one format"),
            }
        }
        result
    }

    /// Writes a tile's elements to the positions given per index; nothing where there is none.
    pub fn write(&mut self, tile: &Array, position: impl Fn(&[usize]) -> Option<usize>) {
        assert_eq!(self.dtype, tile.dtype, "verified: a tile is stored to a view of its format");
        for i in 0..tile.len() {
            let Some(to) = position(&multi_index(i, &tile.shape)) else { continue };
            match (&mut self.elements, &tile.elements) {
                (Elements::Float(elements), Elements::Float(from)) => elements[to] = from[i],
                (Elements::Int(elements), Elements::Int(from)) => elements[to] = from[i],
                _ => unreachable!("both arrays have one format"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(shape: &[usize], values: &[f64]) -> Array {
        Array::new(DType::F32, shape.to_vec(), Elements::Float(values.to_vec()))
    }

    #[test]
    fn bf16_rounds_once() {
        // Just above the midpoint of 1 and 1 + 2⁻⁷, by less than f32 can see: nearest is the upper one.
        let above = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        assert_eq!(round_float(DType::BF16, above), 1.0 + 2f64.powi(-7));
        assert_eq!(round_float(DType::BF16, -above), -1.0 - 2f64.powi(-7));
        assert_eq!(round_float(DType::BF16, 1.0 + 2f64.powi(-8)), 1.0);
        assert_eq!(round_float(DType::BF16, 1.0 + 3.0 * 2f64.powi(-8)), 1.015625);
        assert_eq!(round_float(DType::BF16, 1e300), f64::INFINITY);
        assert!(round_float(DType::BF16, f64::NAN).is_nan());
        assert_eq!(round_float(DType::F16, 65519.0), 65504.0);
        assert_eq!(round_float(DType::F16, 65520.0), f64::INFINITY);
    }

    #[test]
    fn integers_wrap_and_casts_saturate_as_rusts() {
        let x = Array::full(DType::I8, &[1], Literal::Int(127));
        assert_eq!(x.binary(BinaryOp::Add, &Array::full(DType::I8, &[1], Literal::Int(1))).get_int(0), -128);
        let big = floats(&[3], &[f64::NAN, 1e20, -1.9]);
        assert_eq!(big.cast(DType::I32).elements(), &Elements::Int(vec![0, i128::from(i32::MAX), -1]));
        assert_eq!(big.cast(DType::U8).elements(), &Elements::Int(vec![0, 255, 0]));
        let wide = Array::full(DType::U64, &[1], Literal::Int(i128::from(u64::MAX)));
        assert_eq!(wide.cast(DType::F16).get_f64(0), f64::INFINITY);
        assert_eq!(wide.cast(DType::BF16).get_f64(0), 2f64.powi(64));
        assert_eq!(Array::full(DType::Bool, &[1], Literal::Int(1)).unary(UnaryOp::Not).get_int(0), 0);
    }

    #[test]
    fn shape_ops_move_the_right_elements() {
        let x = Array::iota(DType::F32, &[8], 0).reshape(&[2, 4]);
        assert_eq!(x.permute(&[1, 0]).elements(), &Elements::Float(vec![0., 4., 1., 5., 2., 6., 3., 7.]));
        assert_eq!(x.reduce(ReduceOp::Sum, 1).elements(), &Elements::Float(vec![6., 22.]));
        assert_eq!(x.reduce(ReduceOp::Sum, 0).elements(), &Elements::Float(vec![4., 6., 8., 10.]));
        let column = floats(&[2, 1], &[1., 2.]);
        assert_eq!(column.broadcast(&[2, 3]).elements(), &Elements::Float(vec![1., 1., 1., 2., 2., 2.]));
    }

    #[test]
    fn mma_contracts_the_inner_axis() {
        let a = floats(&[2, 3], &[1., 2., 3., 4., 5., 6.]);
        let b = floats(&[3, 2], &[1., 0., 0., 1., 1., 1.]);
        let c = floats(&[2, 2], &[10., 20., 30., 40.]);
        assert_eq!(Array::mma(&a, &b, &c).elements(), &Elements::Float(vec![14., 25., 40., 51.]));
        let (s, u) = (
            Array::full(DType::I8, &[1, 16], Literal::Int(-1)),
            Array::full(DType::I8, &[16, 1], Literal::Int(127)),
        );
        let zero = Array::full(DType::I32, &[1, 1], Literal::Int(0));
        assert_eq!(Array::mma(&s, &u, &zero).get_int(0), -2032);
    }

    #[test]
    fn tiles_are_read_and_written_where_there_are_elements() {
        let mut x = floats(&[3], &[1.0, 2.0, 3.0]);
        let backwards = |index: &[usize]| 2usize.checked_sub(index[0]);
        let tile = x.read(&[4], Literal::Float(f64::NEG_INFINITY), backwards);
        assert_eq!(tile.elements(), &Elements::Float(vec![3.0, 2.0, 1.0, f64::NEG_INFINITY]));
        x.write(&floats(&[4], &[7.0, 8.0, 9.0, 10.0]), backwards);
        assert_eq!(x.elements(), &Elements::Float(vec![9.0, 8.0, 7.0]));
    }
}
