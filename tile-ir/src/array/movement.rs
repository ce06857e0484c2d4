//! The meaning of ops that move elements: pieces, and gather and scatter along an axis.

use super::{Array, Elements, round_float, wrap_int};
use crate::ops::movement::{Numbers, Piece};
use crate::ops::{Literal, Movement, Op, ScatterMode};
use tile_layout::{element_count, linear_index, multi_index, row_major_strides};

impl Array {
    /// An op that moves elements, of operands that are tiles or, of rank 0, scalars.
    pub fn moved(op: &Op, operands: &[&Array], shape: &[usize]) -> Array {
        let shapes: Vec<Vec<usize>> = operands.iter().map(|operand| operand.shape.clone()).collect();
        let pieces = op.pieces(&shapes, shape).expect("verified: an op that moves elements");
        let mut result = Array::full(operands[0].dtype, shape, Literal::Int(0));
        for piece in &pieces {
            result.place(piece, operands[piece.operand]);
        }
        result
    }

    /// A [`Movement`] whose attributes are numbers and fit the operands.
    pub fn movement(movement: Movement, operands: &[&Array], shape: &[usize]) -> Array {
        Array::moved(&Op::Movement(movement), operands, shape)
    }

    /// Op [`crate::Op::Splat`] of a scalar.
    pub fn splat(&self, shape: &[usize]) -> Array {
        Array::full(self.dtype, shape, self.get(0))
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

    fn place(&mut self, piece: &Piece, operand: &Array) {
        match (&mut self.elements, &operand.elements) {
            (Elements::Int(to), Elements::Int(from)) => {
                copy(piece, (to, &self.shape), (from, &operand.shape))
            }
            (Elements::Float(to), Elements::Float(from)) => {
                copy(piece, (to, &self.shape), (from, &operand.shape));
            }
            _ => unreachable!("verified: elements of one format"),
        }
    }

    fn set(&mut self, i: usize, value: Literal) {
        match (&mut self.elements, value) {
            (Elements::Int(values), Literal::Int(value)) => values[i] = value,
            (Elements::Float(values), Literal::Float(value)) => values[i] = value,
            _ => unreachable!("verified: elements of one format"),
        }
    }

    /// Op [`crate::Op::Gather`]: `self` at the indices along `axis`, `fill` where an index is outside.
    pub fn gather(&self, indices: &Array, fill: &Array, axis: usize) -> Array {
        let mut result = Array::full(self.dtype, &indices.shape, Literal::Int(0));
        for i in 0..indices.len() {
            let value = match self.at_index(indices, i, axis) {
                Some(from) => self.get(from),
                None => fill.get(0),
            };
            result.set(i, value);
        }
        result
    }

    /// Op [`crate::Op::Scatter`]: `self` with values written, or added one after the other, at the indices along
    /// `axis`, in row-major order of the indices.
    pub fn scatter(&self, mode: ScatterMode, indices: &Array, values: &Array, axis: usize) -> Array {
        let mut result = self.clone();
        for i in 0..indices.len() {
            let Some(to) = self.at_index(indices, i, axis) else { continue };
            let value = match mode {
                ScatterMode::Write => values.get(i),
                ScatterMode::Add => result.sum_of(to, values.get(i)),
            };
            result.set(to, value);
        }
        result
    }

    fn sum_of(&self, i: usize, value: Literal) -> Literal {
        match (self.get(i), value) {
            (Literal::Int(a), Literal::Int(b)) => Literal::Int(wrap_int(self.dtype, a + b)),
            (Literal::Float(a), Literal::Float(b)) => Literal::Float(round_float(self.dtype, a + b)),
            _ => unreachable!("verified: elements of one format"),
        }
    }

    /// The position in `self` that index `i` names; `None` where it is outside.
    fn at_index(&self, indices: &Array, i: usize, axis: usize) -> Option<usize> {
        let mut index = multi_index(i, &indices.shape);
        index[axis] = usize::try_from(indices.get_int(i)).ok().filter(|&k| k < self.shape[axis])?;
        Some(linear_index(&index, &self.shape))
    }
}

/// Copies a piece, row by row, into elements of a shape from elements of another.
fn copy<E: Copy>(piece: &Piece, (to, shape): (&mut [E], &[usize]), (from, source): (&[E], &[usize])) {
    let offsets = source_offsets(piece, source);
    let (row, rows) = piece.extents.split_last().map_or((1, &[][..]), |(&row, rows)| (row, rows));
    for i in 0..rows.iter().product() {
        let mut index = multi_index(i, rows);
        let first = index.iter().zip(&offsets).map(|(&i, offsets)| offsets[i]).sum::<usize>();
        index.resize(shape.len(), 0);
        index.iter_mut().zip(&piece.start).for_each(|(i, start)| *i += start);
        let row = &mut to[linear_index(&index, shape)..][..row];
        match offsets.last() {
            Some(offsets) => row.iter_mut().zip(offsets).for_each(|(to, &offset)| *to = from[first + offset]),
            None => row[0] = from[first],
        }
    }
}

/// How far into the operand each position along each axis of the box leads: every axis of the operand goes along one of
/// these, or has one element, so that an element comes from the sum of one number for each.
fn source_offsets(piece: &Piece, shape: &[usize]) -> Vec<Vec<usize>> {
    let mut offsets: Vec<Vec<usize>> = piece.extents.iter().map(|&extent| vec![0; extent]).collect();
    let mut index = vec![0; piece.extents.len()];
    for (source, stride) in piece.sources.iter().zip(row_major_strides(shape)) {
        let Some(axis) = source.axis() else { continue };
        for (i, offset) in offsets[axis].iter_mut().enumerate() {
            index[axis] = i;
            *offset += source.position(&Numbers, &index) * stride;
        }
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Dim;
    use crate::dtype::DType;

    fn dims(numbers: &[i64]) -> Vec<Dim> {
        numbers.iter().copied().map(Dim::from).collect()
    }

    fn ints(shape: &[usize], values: &[i128]) -> Array {
        Array::new(DType::I32, shape.to_vec(), Elements::Int(values.to_vec()))
    }

    fn moved(movement: Movement, operands: &[&Array], shape: &[usize]) -> Vec<i128> {
        match Array::movement(movement, operands, shape).elements {
            Elements::Int(values) => values,
            Elements::Float(_) => unreachable!("the operands are integers"),
        }
    }

    #[test]
    fn windows_are_taken_out_and_put_back() {
        let x = Array::iota(DType::I32, &[16], 0).reshape(&[4, 4]);
        let window = Movement::Extract { starts: dims(&[0, 2]), shape: dims(&[2, 2]) };
        assert_eq!(moved(window, &[&x], &[2, 2]), [2, 3, 6, 7]);
        let y = ints(&[1, 2], &[-1, -2]);
        let put = Movement::Insert { starts: dims(&[3, 1]) };
        assert_eq!(moved(put, &[&x, &y], &[4, 4])[12..], [12, -1, -2, 15]);
    }

    #[test]
    fn tiles_are_joined_padded_and_repeated() {
        let (a, b) = (ints(&[2, 1], &[1, 2]), ints(&[2, 2], &[3, 4, 5, 6]));
        assert_eq!(moved(Movement::Cat { axis: 1 }, &[&a, &b], &[2, 3]), [1, 3, 4, 2, 5, 6]);
        let nine = Array::scalar(DType::I32, Literal::Int(9));
        let pad = Movement::Pad { before: dims(&[0, 1]), after: dims(&[1, 0]) };
        assert_eq!(moved(pad, &[&b, &nine], &[3, 3]), [9, 3, 4, 9, 5, 6, 9, 9, 9]);
        let repeat = Movement::Repeat { counts: dims(&[1, 2]) };
        assert_eq!(moved(repeat, &[&b], &[2, 4]), [3, 4, 3, 4, 5, 6, 5, 6]);
    }

    #[test]
    fn axes_turn_roll_and_shift() {
        let x = ints(&[4], &[1, 2, 3, 4]);
        let zero = Array::scalar(DType::I32, Literal::Int(0));
        let roll = |by| moved(Movement::Roll { axis: 0, by: Dim::from(by) }, &[&x], &[4]);
        let shift = |by| moved(Movement::Shift { axis: 0, by: Dim::from(by) }, &[&x, &zero], &[4]);
        assert_eq!(moved(Movement::Flip { axis: 0 }, &[&x], &[4]), [4, 3, 2, 1]);
        assert_eq!((roll(1), roll(-1)), (vec![4, 1, 2, 3], vec![2, 3, 4, 1]));
        assert_eq!((roll(0), roll(-7)), (vec![1, 2, 3, 4], vec![4, 1, 2, 3]));
        assert_eq!((shift(1), shift(-3)), (vec![0, 1, 2, 3], vec![4, 0, 0, 0]));
        assert_eq!((shift(4), shift(-9), shift(0)), (vec![0; 4], vec![0; 4], vec![1, 2, 3, 4]));
    }

    #[test]
    fn gather_and_scatter_follow_the_indices() {
        let x = ints(&[3, 2], &[10, 11, 20, 21, 30, 31]);
        let indices = ints(&[2, 2], &[2, -1, 0, 3]);
        let seven = Array::scalar(DType::I32, Literal::Int(7));
        assert_eq!(x.gather(&indices, &seven, 0).elements, Elements::Int(vec![30, 7, 10, 7]));
        let (twice, values) = (ints(&[2, 2], &[1, 5, 1, 0]), ints(&[2, 2], &[1, 2, 3, 4]));
        let scattered = |mode| x.scatter(mode, &twice, &values, 0).elements;
        assert_eq!(scattered(ScatterMode::Write), Elements::Int(vec![10, 4, 3, 21, 30, 31]));
        assert_eq!(scattered(ScatterMode::Add), Elements::Int(vec![10, 15, 24, 21, 30, 31]));
    }

    #[test]
    fn axes_are_permuted_and_repeated() {
        let x = Array::iota(DType::F32, &[8], 0).reshape(&[2, 4]);
        assert_eq!(x.permute(&[1, 0]).elements(), &Elements::Float(vec![0., 4., 1., 5., 2., 6., 3., 7.]));
        let column = ints(&[2, 1], &[1, 2]);
        assert_eq!(column.broadcast(&[2, 3]).elements(), &Elements::Int(vec![1, 1, 1, 2, 2, 2]));
    }
}
