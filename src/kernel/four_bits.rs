//! The 4-bit floats of the OCP's microscaling formats, two to a byte.

use super::tile::Tile;
use super::{Element, Float};
use tile_ir::Array;
use tile_ir::DType;
use tile_ir::array::Elements;
use tile_runtime::f8e4m3fn;

/// The magnitudes by their codes.
const MAGNITUDES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

impl<const R: usize> Tile<u8, R> {
    /// The 4-bit floats of the OCP's microscaling formats (E2M1: ±0, 0.5, 1, 1.5, 2, 3, 4, 6), two to a byte, the one in the
    /// lower bits first: `[…, K]` bytes are `[…, 2 * K]` numbers. [`f8e4m3fn`] has all of them.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let bytes = Tile::full([1, 1], 0xf1u8);
    /// assert_eq!(bytes.unpack_f4e2m1().cast::<f32>().to_vec(), [0.5, -6.0]);
    /// ```
    pub fn unpack_f4e2m1(self) -> Tile<f8e4m3fn, R> {
        let mut shape = self.shape();
        shape[R - 1] *= 2;
        let codes = self.to_vec().into_iter().flat_map(|byte| [byte & 0xf, byte >> 4]);
        let number = |code: u8| {
            let magnitude = MAGNITUDES[usize::from(code & 7)];
            if code < 8 { magnitude } else { -magnitude }
        };
        let numbers = Elements::Float(codes.map(number).collect());
        Tile::hold(Array::new(f8e4m3fn::DTYPE, shape.to_vec(), numbers))
    }
}

impl<T: Float, const R: usize> Tile<T, R> {
    /// The bytes that [`Tile::unpack_f4e2m1`] unpacks: every element as the nearest 4-bit float (E2M1), of two equally near
    /// the one with an even code, two to a byte, the first in the lower bits. `[…, 2 * K]` numbers are `[…, K]` bytes. What
    /// is too large, infinities too, becomes ±6. NaN, which the format hasn't, becomes 6, as NVIDIA's instruction has it:
    /// where there may be some, the scale of a block is to say so.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<f32, 1>::arange([4], -0.75, 2.0); // −0.75, 1.25, 3.25, 5.25
    /// let bytes = x.pack_f4e2m1();
    /// assert_eq!(bytes.to_vec(), [0x2a, 0x75]);
    /// assert_eq!(bytes.unpack_f4e2m1().cast::<f32>().to_vec(), [-1.0, 1.0, 3.0, 6.0]);
    /// ```
    ///
    /// # Panics
    /// If the last extent is odd, or there is none; in a kernel that is a compile error.
    pub fn pack_f4e2m1(self) -> Tile<u8, R> {
        let mut shape = self.shape();
        let last = shape.last_mut().expect("`pack_f4e2m1` packs along the last axis");
        assert!(last.is_multiple_of(2), "`pack_f4e2m1` packs pairs, but the last axis has {last} elements");
        *last /= 2;
        let codes: Vec<u8> = self.to_vec().into_iter().map(|x| code(x.to_float())).collect();
        let bytes = codes.chunks(2).map(|pair| i128::from(pair[0] | pair[1] << 4));
        Tile::hold(Array::new(DType::U8, shape.to_vec(), Elements::Int(bytes.collect())))
    }
}

/// The code of the nearest number.
fn code(x: f64) -> u8 {
    if x.is_nan() {
        return 7;
    }
    let magnitude = x.abs().min(MAGNITUDES[7]);
    let above = MAGNITUDES.iter().position(|&known| known >= magnitude).expect("6 is the largest");
    let below = above.saturating_sub(1);
    let (down, up) = (magnitude - MAGNITUDES[below], MAGNITUDES[above] - magnitude);
    let nearest = if down < up || down == up && below % 2 == 0 { below } else { above };
    nearest as u8 | u8::from(x.is_sign_negative()) << 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_codes_come_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        for byte in bytes {
            let packed = Tile::full([1], byte);
            assert_eq!(packed.unpack_f4e2m1().pack_f4e2m1().to_vec(), [byte]);
        }
    }

    #[test]
    #[should_panic(expected = "the last axis has 3 elements")]
    fn pairs_are_packed() {
        Tile::<f32, 2>::zeros([2, 3]).pack_f4e2m1();
    }
}
