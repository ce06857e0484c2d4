//! `overflowing_add`, `overflowing_sub` and `overflowing_mul` against std's, on every integer format.

use super::{Case, array, widen};
use tile::ir::Binding;
use tile::kernel::Element;
use tile::prelude::*;

/// The results of all three, each and a bit where it wrapped, one column each.
#[tile_kernel]
fn overflowing<T: Int, const B: usize>(a: &Tensor<T, n, 1>, b: &Tensor<T, n, 1>, y: &mut Tensor<T, n, 6>) {
    let a = a.partition_view([B, 1]);
    let b = b.partition_view([B, 1]);
    let mut y = y.partition_view_mut([B, 6]);
    let a = a.load_masked(y.index());
    let b = b.load_masked(y.index());
    let (sum, high) = a.overflowing_add(b);
    let (difference, low) = a.overflowing_sub(b);
    let (product, wide) = a.overflowing_mul(b);
    let one = select(high, Tile::ones([B, 1]), Tile::zeros([B, 1]));
    let two = select(low, Tile::ones([B, 1]), Tile::zeros([B, 1]));
    let three = select(wide, Tile::ones([B, 1]), Tile::zeros([B, 1]));
    y.store_masked(cat([sum, one, difference, two, product, three], 1));
}

macro_rules! goldens {
    ($($ty:ident)*) => { $({
        // Bounds, their square roots, factors of what wraps to a bound, and numbers that are none of these.
        let root = 1 << ($ty::BITS / 2);
        let some = [0, 1, 2, 7, 73, 85, root, root - 1, $ty::MAX, $ty::MAX - 1, $ty::MIN, $ty::MIN + 1];
        let some: Vec<$ty> = some.iter().flat_map(|&x: &$ty| [x, x.wrapping_neg(), x / 3]).collect();
        let pairs: Vec<($ty, $ty)> = some.iter().flat_map(|&a| some.iter().map(move |&b| (a, b))).collect();
        let (a, b): (Vec<$ty>, Vec<$ty>) = pairs.iter().copied().unzip();
        let n = pairs.len();
        let row = |&(a, b): &($ty, $ty)| {
            let results = [a.overflowing_add(b), a.overflowing_sub(b), a.overflowing_mul(b)];
            results.map(|(value, wrapped)| [value, $ty::from(wrapped)]).concat()
        };
        let expected: Vec<$ty> = pairs.iter().flat_map(row).collect();
        Case {
            ir: overflowing::ir(),
            bindings: &[("T", Binding::Elem($ty::DTYPE)), ("B", Binding::Const(16))],
            arguments: vec![array(&a, &[n, 1]), array(&b, &[n, 1]), array(&vec![0 as $ty; 6 * n], &[n, 6])],
            output: 2,
            expected: widen(&expected),
            tolerance: 0.0,
            run: &|device| {
                let (a, b) = (Tensor::from_slice(device, &a, [n, 1])?, Tensor::from_slice(device, &b, [n, 1])?);
                let mut y = Tensor::zeros(device, [n, 6])?;
                overflowing::<$ty, 16>(&a, &b, &mut y).launch()?;
                // Not all i64 and u64 are f64s.
                assert_eq!(y.to_vec()?, expected, "{}", stringify!($ty));
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    })* };
}

#[test]
fn results_and_overflows_are_those_of_std() {
    goldens!(i8 u8 i16 u16 i32 u32 i64 u64);
}
