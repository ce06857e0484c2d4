//! The meaning of products of matrices.

use super::{Array, Elements, round_float, wrap_int};
use crate::dtype::DType;

impl Array {
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

    /// Op [`crate::Op::MmaScaled`]: `(a·s)·(b·t) + c`, where each scale is that of a block along the depth.
    pub fn mma_scaled([a, b]: [&Array; 2], c: &Array, [s, t]: [&Array; 2]) -> Array {
        Array::mma(&a.times_of_blocks(s), &b.times_of_blocks(t), c)
    }

    /// The elements of a matrix times the scale of their block each: in f64, which rounds none of 8 bits.
    fn times_of_blocks(&self, scales: &Array) -> Array {
        let (&[rows, columns], &[row_blocks, column_blocks]) = (&self.shape[..], &scales.shape[..]) else {
            unreachable!("verified: matrices")
        };
        let block = [rows / row_blocks, columns / column_blocks];
        let scale = |at: usize| at / columns / block[0] * column_blocks + at % columns / block[1];
        let scaled = |at: usize| self.get_f64(at) * scales.get_f64(scale(at));
        let elements = Elements::Float((0..self.len()).map(scaled).collect());
        Array { dtype: DType::F64, shape: self.shape.clone(), elements }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Literal;

    fn floats(shape: &[usize], values: &[f64]) -> Array {
        Array::new(DType::F32, shape.to_vec(), Elements::Float(values.to_vec()))
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
    fn blocks_have_powers_of_two() {
        let powers = |shape: &[usize], values: &[f64]| {
            Array::new(DType::F8E8M0FNU, shape.to_vec(), Elements::Float(values.to_vec()))
        };
        let float8 = |shape: &[usize], values: &[f64]| {
            Array::new(DType::F8E4M3FN, shape.to_vec(), Elements::Float(values.to_vec()))
        };
        let a = float8(&[2, 4], &[1., 2., 3., 4., 5., 6., 7., 8.]);
        let b = float8(&[4, 1], &[1., 1., 1., 1.]);
        let (s, t) = (powers(&[2, 2], &[1., 2., 0.5, 4.]), powers(&[2, 1], &[8., 0.25]));
        let c = floats(&[2, 1], &[100., 200.]);
        // (1 + 2)·1·8 + (3 + 4)·2/4 and (5 + 6)/2·8 + (7 + 8)·4/4.
        let expected = Elements::Float(vec![100. + 24. + 3.5, 200. + 44. + 15.]);
        assert_eq!(Array::mma_scaled([&a, &b], &c, [&s, &t]).elements(), &expected);
        let none = powers(&[2, 1], &[f64::NAN, 1.]);
        assert!(Array::mma_scaled([&a, &b], &c, [&s, &none]).get_f64(0).is_nan());
    }
}
