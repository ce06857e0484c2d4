//! Arrays as they lie in memory: dense, row-major, little-endian.

use super::{Array, Elements, wrap_int};
use crate::dtype::DType;
use crate::round::{decode, encode};

impl Array {
    /// The elements' bytes, [`DType::bytes`] each.
    ///
    /// ```
    /// use tile_ir::{Array, DType};
    /// assert_eq!(Array::iota(DType::U16, &[3], 0).to_bytes(), [0, 0, 1, 0, 2, 0]);
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.dtype.bytes();
        match &self.elements {
            Elements::Int(values) => {
                values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(bytes)).collect()
            }
            Elements::Float(values) => {
                let bits = values.iter().map(|&value| encode(self.dtype, value).to_le_bytes());
                bits.flat_map(|word| word.into_iter().take(bytes)).collect()
            }
        }
    }

    /// The array that lies in memory.
    ///
    /// # Panics
    /// If the bytes aren't as many as the shape says.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Array {
        let words = bytes.chunks_exact(dtype.bytes());
        assert!(words.remainder().is_empty(), "{} bytes aren't whole elements of {dtype}", bytes.len());
        let wide = |word: &[u8]| {
            let mut wide = [0u8; 16];
            wide[..word.len()].copy_from_slice(word);
            u128::from_le_bytes(wide)
        };
        let elements = if dtype.is_float() {
            Elements::Float(words.map(|word| decode(dtype, wide(word) as u64)).collect())
        } else {
            Elements::Int(words.map(|word| wrap_int(dtype, wide(word) as i128)).collect())
        };
        Array::new(dtype, shape.to_vec(), elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_formats_of_the_manuals() {
        let floats =
            |dtype, values: &[f64]| Array::new(dtype, vec![values.len()], Elements::Float(values.to_vec()));
        let ints =
            |dtype, values: &[i128]| Array::new(dtype, vec![values.len()], Elements::Int(values.to_vec()));
        let cases = [
            (floats(DType::F32, &[1.0, -2.0]), vec![0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]),
            (floats(DType::BF16, &[1.0, -0.0]), vec![0x80, 0x3f, 0, 0x80]),
            (floats(DType::F16, &[1.5]), vec![0, 0x3e]),
            (floats(DType::F64, &[1.0]), vec![0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
            (ints(DType::I16, &[-2, 258]), vec![0xfe, 0xff, 2, 1]),
            (ints(DType::U8, &[255]), vec![255]),
            (ints(DType::Bool, &[1, 0]), vec![1, 0]),
            (ints(DType::U64, &[(1 << 64) - 1]), vec![255; 8]),
        ];
        for (array, bytes) in cases {
            assert_eq!(array.to_bytes(), bytes);
            assert_eq!(Array::from_bytes(array.dtype(), array.shape(), &bytes), array);
        }
    }

    #[test]
    #[should_panic(expected = "3 bytes aren't whole elements of i16")]
    fn part_of_an_element_is_none() {
        let _ = Array::from_bytes(DType::I16, &[1], &[1, 0, 7]);
    }
}
