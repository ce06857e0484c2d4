//! Closures as arguments of functions, of this module and of others.

use super::super::{Case, array, widen};
use elsewhere::twice_clipped;
use tile::ir::Binding;
use tile::prelude::*;

/// A module that isn't that of the kernels.
mod elsewhere {
    use super::super::further::clipped;
    use tile::prelude::*;

    /// Calls what only its own module sees, around closures of its callers.
    #[tile_fn]
    pub(super) fn twice_clipped(
        x: Tile<i32, 1>,
        is_high: impl Fn(Tile<i32, 1>) -> Tile<bool, 1>,
        f: impl Fn(Tile<i32, 1>) -> Tile<i32, 1>,
    ) -> Tile<i32, 1> {
        let step = |t: Tile<i32, 1>| select(is_high(t), clipped(f(t)), t);
        step(step(x))
    }
}

#[tile_kernels]
mod kernels {
    use super::twice_clipped;
    use tile::prelude::*;

    const STEP: i32 = 5;

    #[tile_fn]
    pub(super) fn applied(x: Tile<i32, 1>, f: impl Fn(Tile<i32, 1>) -> Tile<i32, 1>) -> Tile<i32, 1> {
        f(x) + f(x * 2)
    }

    /// A generic parameter, whose body's `T` isn't that of its callers.
    #[tile_fn]
    fn both<T: Number, F>(x: Tile<T, 1>, y: T, f: &F) -> Tile<T, 1>
    where
        F: Fn(Tile<T, 1>, T) -> Tile<T, 1>,
    {
        let halves = |t: Tile<T, 1>| f(t, y);
        halves(f(x, y))
    }

    /// Passes closures on, by reference and by value, and one of its own.
    #[tile_fn]
    fn passed_on<F: Fn(Tile<i32, 1>) -> Tile<i32, 1>>(x: Tile<i32, 1>, k: i32, f: F) -> Tile<i32, 1> {
        let shifted = |t: Tile<i32, 1>| f(t) - k;
        applied(x, shifted) * 10
            + applied(x, &f)
            + applied(x, |t| select(t > STEP, t - k, t * k))
            + applied(x, f)
    }

    #[tile_kernel]
    pub(super) fn passing<const B: usize, T: Number>(
        x: &Tensor<i32, n>,
        z: &Tensor<T, n>,
        factor: i32,
        y: &mut Tensor<i32, n>,
    ) {
        const STEP: i32 = 9;
        let x = x.partition_view([B]);
        let z = z.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let i = y.index();
        let tile = x.load_masked(i);
        let z = z.load_masked(i);
        let scale = |t: Tile<i32, 1>| t * factor;
        let compare = |t: Tile<i32, 1>| select(t < factor, scale(t), t + STEP);
        let mut sum = applied(tile, scale) + passed_on(tile, factor, compare);
        for p in 0..2 {
            sum += applied(tile, |t| {
                if p == 1 {
                    return scale(t) - p;
                }
                applied(t, |t| t + p * factor)
            });
        }
        let cast = |t: Tile<i32, 1>, k: i32| t + (z + Tile::<T, 1>::ones([B])).cast::<i32>() * k;
        y.store_masked(sum + both(tile, 3, &cast) + twice_clipped(tile, |t| t > 4, |t| scale(t) + STEP));
    }
}

#[test]
fn functions_take_closures() {
    let x: Vec<i32> = (-30..31).collect();
    let z: Vec<f32> = x.iter().map(|&x| (x % 7) as f32).collect();
    let (n, factor) = (x.len(), 3);
    fn applied(x: i32, f: impl Fn(i32) -> i32) -> i32 {
        f(x) + f(x * 2)
    }
    let scale = |t: i32| t * factor;
    let compare = |t: i32| if t < factor { scale(t) } else { t + 9 };
    let one = |(&x, &z): (&i32, &f32)| {
        let passed_on = applied(x, |t| compare(t) - factor) * 10
            + 2 * applied(x, compare)
            + applied(x, |t| if t > 5 { t - factor } else { t * factor });
        let turns = applied(x, |t| applied(t, |t| t)) + applied(x, |t| scale(t) - 1);
        let both = x + 2 * 3 * (z as i32 + 1);
        let clipped = |t: i32| if t > 4 { 6.min(scale(t) + 9) } else { t };
        f64::from(applied(x, scale) + passed_on + turns + both + clipped(clipped(x)))
    };
    let expected = x.iter().zip(&z).map(one).collect();
    Case {
        ir: kernels::passing::ir(),
        bindings: &[("B", Binding::Const(8)), ("T", Binding::Elem(tile::ir::DType::F32))],
        arguments: vec![array(&x, &[n]), array(&z, &[n]), array(&[factor], &[]), array(&vec![0i32; n], &[n])],
        output: 3,
        expected,
        tolerance: 0.0,
        run: &|device| {
            let (x, z) = (Tensor::from_slice(device, &x, [n])?, Tensor::from_slice(device, &z, [n])?);
            let mut y = Tensor::zeros(device, [n])?;
            kernels::passing::<8, f32>(&x, &z, factor, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn functions_that_take_closures_are_ordinary_rust() {
    let k = 3;
    let given = kernels::applied(Tile::full([2], 5), |t| t * k);
    assert_eq!(given.to_vec(), [45, 45]);
}
