//! The meaning of ops that compute each element from those at its position.

use super::numbers::{float_to_int, int_to_float};
use super::{Array, Elements, round_float, wrap_int};
use crate::dtype::DType;
use crate::ops::{BinaryOp, Classification, Literal, Predicate, UnaryOp, fused};
use crate::round::{Rounding, decode, encode, round};

impl Array {
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

    /// Op [`crate::Op::SaturatingCast`].
    pub fn saturating_cast(&self, to: DType) -> Array {
        let (Elements::Float(values), Some(format)) = (&self.elements, to.float_format()) else {
            unreachable!("verified: a float becomes another")
        };
        let within = values.iter().map(|x| x.clamp(-format.max(), format.max()));
        let elements = Elements::Float(within.map(|x| round_float(to, x)).collect());
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

    /// Op [`crate::Op::Lookup`].
    pub fn lookup(&self, to: DType, table: &[Literal]) -> Array {
        let Elements::Int(places) = &self.elements else { unreachable!("verified: integers are looked up") };
        let table = Array::of_literals(to, table);
        let place = |&place: &i128| usize::try_from(place).ok().filter(|&place| place < table.len());
        let places = places.iter().map(place);
        let elements = match &table.elements {
            Elements::Float(numbers) => {
                Elements::Float(places.map(|place| place.map_or(0.0, |place| numbers[place])).collect())
            }
            Elements::Int(numbers) => {
                Elements::Int(places.map(|place| place.map_or(0, |place| numbers[place])).collect())
            }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(shape: &[usize], values: &[f64]) -> Array {
        Array::new(DType::F32, shape.to_vec(), Elements::Float(values.to_vec()))
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
}
