//! Closures in kernels.

use super::super::{Case, array, check_vectors, widen};
use tile::ir::Binding;
use tile::prelude::*;

/// Closures of tiles and scalars, which capture variables, also of loops, and return early.
#[tile_kernel]
fn closures<const B: usize>(x: &Tensor<i32, n>, factor: i32, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    let scale = |t: Tile<i32, 1>| t * factor;
    let clamp = |t: Tile<i32, 1>, low, high| {
        select(t < low, Tile::full([B], low), select(t > high, Tile::full([B], high), t))
    };
    let mut k = 1;
    let shift = move |t: Tile<i32, 1>| t + k;
    k += 10;
    let mut sum = shift(tile) * k;
    for p in 0..3 {
        let step = |t: Tile<i32, 1>, q: i32| {
            if q == 1 {
                return t - q;
            }
            t + scale(t) * (q + p)
        };
        let before = sum;
        sum = step(before, p);
    }
    y.store_masked(clamp(sum, -5000, 5000));
}

#[test]
fn closures_capture_what_they_name() {
    let x: Vec<i32> = (-30..30).collect();
    let factor = 3;
    let one = |&x: &i32| {
        let mut sum = (x + 1) * 11;
        for p in 0..3 {
            sum = if p == 1 { sum - 1 } else { sum + sum * factor * (p + p) };
        }
        f64::from(sum.clamp(-5000, 5000))
    };
    let expected: Vec<f64> = x.iter().map(one).collect();
    let n = x.len();
    Case {
        ir: closures::ir(),
        bindings: &[("B", Binding::Const(8))],
        arguments: vec![array(&x, &[n]), array(&[factor], &[]), array(&vec![0i32; n], &[n])],
        output: 2,
        expected,
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [n])?;
            let mut y = Tensor::zeros(device, [n])?;
            closures::<8>(&x, factor, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[derive(TileStruct)]
struct Ends {
    low: Tile<i32, 1>,
    high: i32,
}

/// Closures in closures and in loops, which take arrays, tuples and structs.
#[tile_kernel]
fn nested_closures<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    let sum = |parts: [Tile<i32, 1>; 3]| {
        let mut total = Tile::zeros([B]);
        for part in parts {
            let twice = |t: Tile<i32, 1>| {
                let once = |t| t + part;
                once(once(t))
            };
            total = twice(twice(total));
        }
        total
    };
    let split = |(a, b): (Tile<i32, 1>, i32)| (a * b, [b, b + 1]);
    let clamp = |Ends { low, high }: Ends, t: Tile<i32, 1>| min(max(t, low), high);
    let bounded = |ends: Ends| clamp(ends, tile) + ends.high;
    let (scaled, [_, next]) = split((tile, 3));
    let ends = Ends { low: Tile::full([B], -2), high: 5 };
    y.store_masked(sum([tile, scaled, Tile::full([B], next)]) + bounded(ends) * 1000);
}

#[test]
fn closures_take_arrays_tuples_and_structs() {
    let x: Vec<i32> = (-9..10).collect();
    let one = |&x: &i32| f64::from(4 * (x + 3 * x + 4) + (x.clamp(-2, 5) + 5) * 1000);
    let expected = x.iter().map(one).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(nested_closures::ir(), bindings, &x, expected, 0.0, |x, y| {
        nested_closures::<8>(x, y).launch()
    });
}

/// Patterns of closures that are the names of constants.
#[allow(non_upper_case_globals)]
#[tile_kernel]
fn picked<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    const FAST: i32 = 1;
    const slow: i32 = 2;
    let pick = |m: i32| match m {
        FAST => 10,
        slow => 20,
        other => 30 + other,
    };
    let count = |m: i32| if matches!(m, FAST | slow) { 100 } else { 200 };
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mode = x.load_masked(y.index()).item();
    y.store_masked(Tile::full([B], pick(mode) + count(mode)));
}

#[test]
fn closures_compare_with_constants_of_the_body() {
    let x: Vec<i32> = (-2..5).collect();
    let expected = x.iter().map(|&x| match x {
        1 => 110.0,
        2 => 120.0,
        x => f64::from(230 + x),
    });
    let bindings = &[("B", Binding::Const(1))];
    check_vectors(picked::ir(), bindings, &x, expected.collect(), 0.0, |x, y| picked::<1>(x, y).launch());
}
