//! `mma`: products of matrices, and which element formats they multiply.

use super::{Float, Number, Scale, Tile};
use half::{bf16, f16};
use tile_ir::Array;
use tile_ir::array::Elements;
use tile_layout::multi_index;
use tile_runtime::{f8e4m3fn, f8e5m2};

/// An element format that `mma` multiplies with `Other`, where `Accumulator` is the format of the sum.
///
/// A generic kernel that calls `mma` names it as a bound: `T: Float + MmaOperand<f32>`.
#[diagnostic::on_unimplemented(
    message = "`mma` doesn't multiply elements of type `{Self}` with this factor and accumulator",
    label = "no `mma` of these element types",
    note = "a generic kernel says it in a bound, such as `T: Float + MmaOperand<f32>`"
)]
pub trait MmaOperand<Accumulator, Other = Self>: Number {}

macro_rules! mma_operands {
    ($($left:ident * $right:ident => $($accumulator:ident)*;)*) => {
        $($(impl MmaOperand<$accumulator, $right> for $left {})*)*

        #[cfg(test)]
        const MMA: &[([tile_ir::DType; 2], &[tile_ir::DType])] = {
            use super::Element;
            &[$(([<$left>::DTYPE, <$right>::DTYPE], &[$(<$accumulator>::DTYPE,)*]),)*]
        };
    };
}

mma_operands! {
    f8e4m3fn * f8e4m3fn => f32 f16;
    f8e4m3fn * f8e5m2 => f32 f16;
    f8e5m2 * f8e4m3fn => f32 f16;
    f8e5m2 * f8e5m2 => f32 f16;
    f16 * f16 => f32 f16;
    bf16 * bf16 => f32;
    f32 * f32 => f32;
    f64 * f64 => f64;
    i8 * i8 => i32;
    i8 * u8 => i32;
    u8 * i8 => i32;
    u8 * u8 => i32;
    i16 * i16 => i32;
    i32 * i32 => i32;
    u32 * u32 => u32;
    i64 * i64 => i64;
    u64 * u64 => u64;
}

/// Matrix multiply-accumulate: `a · b + acc` for `a: […, M, K]`, `b: […, K, N]`, `acc: […, M, N]`, in the format
/// of `acc`. Products are exact, but on processors without FMA (`x86-64-v2`) those of f32 and f64 are rounded before they are
/// added, and on AArch64 those of bf16, to odd. Floats are summed in any order, integers wrap. Of 8-bit floats Hopper and Ada
/// keep about 14 bits of what they add within a turn of a loop. Subnormal numbers of bf16, and on `gfx90a` of f16, and sums
/// of such may count as zeros. Leading axes count matrices. A transposed operand is `a.t()`.
///
/// ```
/// use tile::prelude::*;
///
/// let a = Tile::<bf16, 2>::ones([2, 3]);
/// assert_eq!(mma(a, a.t(), Tile::zeros([2, 2])).to_vec(), [3.0f32; 4]);
/// let batch = a.reshape([2, 1, 3]);
/// assert_eq!(mma(batch, batch.permute([0, 2, 1]), Tile::<f32, 3>::zeros([2, 1, 1])).to_vec(), [3.0, 3.0]);
/// ```
///
/// # Panics
/// If the extents don't fit; in a kernel that is a compile error.
pub fn mma<Left, Right, Accumulator, const R: usize>(
    a: Tile<Left, R>,
    b: Tile<Right, R>,
    acc: Tile<Accumulator, R>,
) -> Tile<Accumulator, R>
where
    Left: MmaOperand<Accumulator, Right>,
    Right: Number,
    Accumulator: Number,
{
    let fits = |a: &[usize], b: &[usize], c: &[usize]| match (a, b, c) {
        ([batch_a @ .., m, k], [batch_b @ .., l, n], [batch @ .., rows, columns]) => {
            k == l && (m, n) == (rows, columns) && batch_a == batch && batch_b == batch
        }
        _ => false,
    };
    assert!(
        fits(&a.shape(), &b.shape(), &acc.shape()),
        "`mma(a, b, acc)` takes a: [M, K], b: [K, N], acc: [M, N], not {:?} · {:?} + {:?}",
        a.shape(),
        b.shape(),
        acc.shape()
    );
    Tile::hold(Array::mma(&a.array(), &b.array(), &acc.array()))
}

/// [`mma()`] of f32 with both operands rounded to TF32: 10 mantissa bits, to nearest, ties away from zero. Products
/// and sums keep the precision of f32; tensor cores take this form.
///
/// ```
/// use tile::prelude::*;
///
/// let third = Tile::full([1, 1], 1.0f32 / 3.0);
/// let one = Tile::ones([1, 1]);
/// assert_eq!(mma_tf32(third, one, Tile::zeros([1, 1])).to_vec(), [1365.0 / 4096.0]);
/// ```
///
/// # Panics
/// If the extents don't fit; in a kernel that is a compile error.
pub fn mma_tf32<const R: usize>(a: Tile<f32, R>, b: Tile<f32, R>, acc: Tile<f32, R>) -> Tile<f32, R> {
    mma(a.round_tf32(), b.round_tf32(), acc)
}

/// `(a · scale_a) · (b · scale_b) + acc` for `a: […, M, K]` and `b: […, K, N]` of small floats whose scales belong to
/// blocks of K: `scale_a: […, M, K / BLOCK]`, `scale_b: […, K / BLOCK, N]`, as in the microscaling formats (BLOCK = 32).
/// Leading axes count matrices.
/// Factors are scaled in f32, each rounded once, then multiplied and summed as by [`mma()`]. GPUs that scale blocks in their matrix
/// instructions round nothing, which is the same but for scaled factors beyond f32: elsewhere they are infinite.
///
/// ```
/// use tile::prelude::*;
///
/// let (a, b) = (Tile::<f8e4m3fn, 2>::ones([2, 64]), Tile::<f8e4m3fn, 2>::ones([64, 2]));
/// let scale_a = Tile::full([2, 2], f8e8m0fnu::from_f32(2.0));
/// let scale_b = Tile::full([2, 2], 0.5f32);
/// assert_eq!(mma_scaled(a, scale_a, b, scale_b, Tile::zeros([2, 2])).to_vec(), [64.0; 4]);
/// ```
///
/// # Panics
/// If the extents don't fit; in a kernel that is a compile error.
pub fn mma_scaled<Left: Float, Right: Float, LeftScale: Scale, RightScale: Scale, const R: usize>(
    a: Tile<Left, R>,
    scale_a: Tile<LeftScale, R>,
    b: Tile<Right, R>,
    scale_b: Tile<RightScale, R>,
    acc: Tile<f32, R>,
) -> Tile<f32, R> {
    let of_left = repeated(scale_a, a.shape(), 1);
    let of_right = repeated(scale_b, b.shape(), 2);
    let (Some(of_left), Some(of_right)) = (of_left, of_right) else {
        panic!(
            "`mma_scaled` takes scales […, M, K / BLOCK] and […, K / BLOCK, N], not {:?} and {:?} for {:?} · {:?}",
            scale_a.shape(),
            scale_b.shape(),
            a.shape(),
            b.shape()
        )
    };
    mma(a.cast::<f32>() * of_left, b.cast::<f32>() * of_right, acc)
}

/// A scale for each element of a factor, of which those along the axis that is so many from the end lie in blocks; `None`
/// where the shapes don't fit.
fn repeated<S: Scale, const R: usize>(
    scales: Tile<S, R>,
    shape: [usize; R],
    from_end: usize,
) -> Option<Tile<f32, R>> {
    let axis = R.checked_sub(from_end).filter(|_| R >= 2)?;
    let own = scales.shape();
    let fits = |i: usize| if i == axis { shape[i].is_multiple_of(own[i]) } else { shape[i] == own[i] };
    if !(0..R).all(fits) {
        return None;
    }
    let (scales, block) = (scales.cast::<f32>().to_vec(), shape[axis] / own[axis]);
    let of = |element: usize| {
        let mut place = multi_index(element, &shape);
        place[axis] /= block;
        f64::from(scales[place.iter().zip(&own).fold(0, |at, (&i, &extent)| at * extent + i)])
    };
    let elements = (0..shape.iter().product()).map(of).collect();
    Some(Tile::hold(Array::new(tile_ir::DType::F32, shape.to_vec(), Elements::Float(elements))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::DType;

    #[test]
    fn formats_are_those_of_the_type_rules() {
        for &left in DType::ALL {
            for &right in DType::ALL {
                let known = MMA.iter().find(|row| row.0 == [left, right]).map_or(&[][..], |row| row.1);
                assert_eq!(known, tile_ir::ops::infer::mma_accumulators(left, right), "{left} · {right}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "not [2, 3] · [2, 3] + [2, 2]")]
    fn shapes_that_do_not_fit_are_named() {
        let a = Tile::<f32, 2>::zeros([2, 3]);
        mma(a, a, Tile::zeros([2, 2]));
    }
}
