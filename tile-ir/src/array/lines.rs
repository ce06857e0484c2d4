//! Ops along the lines of an axis, one line after the other: folds, scans, sorting; and histograms.

use super::{Array, Elements, round_float, wrap_int};
use crate::dtype::DType;
use crate::ops::{Literal, ReduceOp, ScanMode};
use std::cmp::Ordering;
use tile_layout::shape::Lines;

/// What joins two elements of several operands: first what was folded, then an element.
pub type Combine<'f> = dyn FnMut(&[Literal], &[Literal]) -> Vec<Literal> + 'f;

/// The lines of a shape along an axis, each as the row-major positions of its elements.
fn lines(shape: &[usize], axis: usize) -> impl Iterator<Item = Vec<usize>> + use<> {
    let lines = Lines::of(shape, axis);
    (0..lines.count()).map(move |line| lines.positions(line).collect())
}

impl Array {
    /// An array of these numbers, each representable in the format.
    fn of_numbers(dtype: DType, shape: Vec<usize>, numbers: Vec<Literal>) -> Array {
        let elements = if dtype.is_float() {
            let float = |number| match number {
                Literal::Float(value) => value,
                Literal::Int(_) => unreachable!("a float format has float elements"),
            };
            Elements::Float(numbers.into_iter().map(float).collect())
        } else {
            let int = |number| match number {
                Literal::Int(value) => value,
                Literal::Float(_) => unreachable!("an integer format has integer elements"),
            };
            Elements::Int(numbers.into_iter().map(int).collect())
        };
        Array::new(dtype, shape, elements)
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

    /// Op [`crate::Op::ReduceWith`]: the arrays folded along an axis from these starts.
    pub fn reduce_with(
        arrays: &[&Array],
        starts: &[Literal],
        axis: usize,
        combine: &mut Combine<'_>,
    ) -> Vec<Array> {
        let mut shape = arrays[0].shape.clone();
        shape[axis] = 1;
        let mut results = vec![Vec::new(); arrays.len()];
        for line in lines(&arrays[0].shape, axis) {
            let mut folded = starts.to_vec();
            for position in line {
                folded = combine(&folded, &elements_at(arrays, position));
            }
            results.iter_mut().zip(folded).for_each(|(result, number)| result.push(number));
        }
        let results = arrays.iter().zip(results);
        results.map(|(array, numbers)| Array::of_numbers(array.dtype, shape.clone(), numbers)).collect()
    }

    /// Op [`crate::Op::ScanWith`]: every partial result of a fold along an axis.
    pub fn scan_with(
        arrays: &[&Array],
        starts: &[Literal],
        axis: usize,
        mode: ScanMode,
        combine: &mut Combine<'_>,
    ) -> Vec<Array> {
        let mut results: Vec<Vec<Literal>> =
            arrays.iter().map(|array| (0..array.len()).map(|i| array.get(i)).collect()).collect();
        for mut line in lines(&arrays[0].shape, axis) {
            if mode.reverse {
                line.reverse();
            }
            let mut folded = starts.to_vec();
            for position in line {
                let next = combine(&folded, &elements_at(arrays, position));
                let kept = if mode.exclusive { &folded } else { &next };
                results.iter_mut().zip(kept).for_each(|(result, &number)| result[position] = number);
                folded = next;
            }
        }
        let results = arrays.iter().zip(results);
        results.map(|(array, numbers)| Array::of_numbers(array.dtype, array.shape.clone(), numbers)).collect()
    }

    /// Op [`crate::Op::Scan`].
    pub fn scan(&self, op: ReduceOp, axis: usize, mode: ScanMode) -> Array {
        let (partial, join) = (op.partial(self.dtype), op.combine());
        let wide = self.cast(partial);
        let mut combine = |a: &[Literal], b: &[Literal]| match (a[0], b[0]) {
            (Literal::Float(a), Literal::Float(b)) => {
                vec![Literal::Float(round_float(partial, join.float()(a, b)))]
            }
            (Literal::Int(a), Literal::Int(b)) => {
                vec![Literal::Int(wrap_int(partial, join.int()(a, b, partial)))]
            }
            _ => unreachable!("elements have one format"),
        };
        let start = op.scan_start(partial, mode);
        Array::scan_with(&[&wide], &[start], axis, mode, &mut combine)[0].cast(self.dtype)
    }

    /// Op [`crate::Op::Sort`]: values and their positions along the axis.
    pub fn sort(&self, axis: usize, descending: bool, count: usize) -> [Array; 2] {
        let mut shape = self.shape.clone();
        shape[axis] = count;
        let (mut values, mut positions) =
            (vec![self.get(0); shape.iter().product()], vec![0; shape.iter().product()]);
        let (all, kept) = (lines(&self.shape, axis), lines(&shape, axis));
        for (line, kept) in all.zip(kept) {
            let mut order: Vec<usize> = (0..line.len()).collect();
            // Stable, so that equal elements keep their order both ways.
            order.sort_by(|&a, &b| {
                let ordering = self.order(line[a], line[b]);
                if descending { ordering.reverse() } else { ordering }
            });
            for (&from, to) in order.iter().zip(kept) {
                values[to] = self.get(line[from]);
                positions[to] = from as i128;
            }
        }
        let values = Array::of_numbers(self.dtype, shape.clone(), values);
        [values, Array::new(DType::I32, shape, Elements::Int(positions))]
    }

    /// The order of two elements: −0 and +0 are equal, NaN is above every number and equal to NaN.
    fn order(&self, a: usize, b: usize) -> Ordering {
        match &self.elements {
            Elements::Int(values) => values[a].cmp(&values[b]),
            Elements::Float(values) => {
                let (a, b) = (values[a], values[b]);
                a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
        }
    }

    /// Op [`crate::Op::Histogram`].
    pub fn histogram(&self, bins: usize) -> Array {
        let mut counts = vec![0; bins];
        for &value in self.ints() {
            if let Some(count) = usize::try_from(value).ok().and_then(|bin| counts.get_mut(bin)) {
                *count += 1;
            }
        }
        Array::new(DType::I32, vec![bins], Elements::Int(counts))
    }
}

fn elements_at(arrays: &[&Array], position: usize) -> Vec<Literal> {
    arrays.iter().map(|array| array.get(position)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(shape: &[usize], values: &[f64]) -> Array {
        Array::new(DType::F32, shape.to_vec(), Elements::Float(values.to_vec()))
    }

    fn ints(values: &[i128]) -> Elements {
        Elements::Int(values.to_vec())
    }

    const MODES: [ScanMode; 4] = [ScanMode::ALL[0], ScanMode::ALL[1], ScanMode::ALL[2], ScanMode::ALL[3]];

    #[test]
    fn either_axis_is_reduced() {
        let x = Array::iota(DType::F32, &[8], 0).reshape(&[2, 4]);
        assert_eq!(x.reduce(ReduceOp::Sum, 1).elements(), &Elements::Float(vec![6., 22.]));
        assert_eq!(x.reduce(ReduceOp::Sum, 0).elements(), &Elements::Float(vec![4., 6., 8., 10.]));
    }

    #[test]
    fn scans_go_both_ways_with_and_without_the_element() {
        let x = Array::iota(DType::I32, &[4], 0)
            .binary(crate::ops::BinaryOp::Add, &Array::full(DType::I32, &[4], Literal::Int(1)));
        let expected = [[1, 3, 6, 10], [10, 9, 7, 4], [0, 1, 3, 6], [9, 7, 4, 0]];
        for (mode, expected) in MODES.into_iter().zip(expected) {
            assert_eq!(x.scan(ReduceOp::Sum, 0, mode).elements(), &ints(&expected), "{mode:?}");
        }
        assert_eq!(x.scan(ReduceOp::Prod, 0, MODES[0]).elements(), &ints(&[1, 2, 6, 24]));
    }

    #[test]
    fn a_start_that_is_not_neutral_is_folded_in_first() {
        let x = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let mut add = |a: &[Literal], b: &[Literal]| match (a[0], b[0]) {
            (Literal::Float(a), Literal::Float(b)) => vec![Literal::Float(a + b)],
            _ => unreachable!("floats"),
        };
        let one = [Literal::Float(1.0)];
        let rows = Array::scan_with(&[&x], &one, 1, MODES[0], &mut add);
        assert_eq!(rows[0].elements(), &Elements::Float(vec![2.0, 4.0, 4.0, 8.0]));
        let columns = Array::reduce_with(&[&x], &one, 0, &mut add);
        assert_eq!(columns[0].elements(), &Elements::Float(vec![5.0, 7.0]));
        assert_eq!(columns[0].shape(), [1, 2]);
    }

    #[test]
    fn partial_sums_of_bf16_are_rounded_when_they_are_kept() {
        // 300 ones: a bf16 sum would stop at 256.
        let ones = Array::full(DType::BF16, &[300], Literal::Float(1.0));
        let sums = ones.scan(ReduceOp::Sum, 0, MODES[0]);
        assert_eq!((sums.get_f64(255), sums.get_f64(299)), (256.0, 300.0));
        assert_eq!(sums.get_f64(256), 256.0, "257 is not a bf16");
    }

    #[test]
    fn sorting_is_stable_and_nan_is_above_all() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let x = floats(&[7], &[2.0, nan, 0.0, -inf, -0.0, inf, 2.0]);
        let [up, at] = x.sort(0, false, 7);
        assert_eq!(at.elements(), &ints(&[3, 2, 4, 0, 6, 5, 1]));
        assert!(up.get_f64(1).is_sign_positive() && up.get_f64(2).is_sign_negative());
        let [down, at] = x.sort(0, true, 3);
        assert_eq!(at.elements(), &ints(&[1, 5, 0]));
        assert_eq!((down.shape(), down.get_f64(1)), (&[3][..], inf));
    }

    #[test]
    fn a_histogram_counts_what_has_a_bin() {
        let x = Array::new(DType::I8, vec![2, 3], ints(&[0, 2, 2, -1, 3, 127]));
        assert_eq!(x.histogram(3).elements(), &ints(&[1, 0, 2]));
    }
}
