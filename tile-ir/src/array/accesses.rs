//! What loads and stores do with a tensor: a tile's elements are read from positions of it, and written there.

use super::{Array, Elements};
use crate::ops::Literal;
use tile_layout::multi_index;

impl Array {
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
    use crate::dtype::DType;

    fn floats(shape: &[usize], values: &[f64]) -> Array {
        Array::new(DType::F32, shape.to_vec(), Elements::Float(values.to_vec()))
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
