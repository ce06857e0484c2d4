//! What loops keep from turn to turn where it takes looking twice: states with scalars of a type parameter, and
//! names that a loop shares with what is around it.

use super::{Case, array, check_exact, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

#[derive(TileStruct)]
struct State<T> {
    scale: T,
    sum: Tile<T, 1>,
}

/// A tuple of a scalar and a tile, then a struct and an array of them.
#[tile_kernel]
fn generic_state<T: Float, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let mut pair = (T::ONE, x);
    let mut state = State { scale: T::ONE, sum: x };
    let mut parts = [(T::ONE, x), (T::ONE, x)];
    for _ in 0..4 {
        pair = (pair.0 * T::of(2.0), pair.1 + x);
        state.sum += x;
        state.scale = state.scale + T::ONE;
        parts = [(parts[1].0, parts[1].1 + x), (parts[0].0 + T::ONE, parts[0].1)];
    }
    let last = parts[0].0 * parts[0].1 + parts[1].0 * parts[1].1;
    y.store_masked(pair.0 * pair.1 + state.scale * state.sum + last);
}

#[test]
fn a_state_of_a_generic_scalar_and_a_tile_is_kept() {
    let x = numbers::<f32>(11, 1);
    Case {
        ir: generic_state::ir(),
        bindings: &[("T", Binding::Elem(tile::ir::DType::F32)), ("B", Binding::Const(4))],
        arguments: vec![array(&x, &[11]), array(&[0f32; 11], &[11])],
        output: 1,
        // 16 · 5x + 5 · 5x + (3 · 3x + 3 · 3x)
        expected: x.iter().map(|&x| f64::from(x) * (80.0 + 25.0 + 18.0)).collect(),
        tolerance: 1e-6,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [11])?;
            let mut y = Tensor::zeros(device, [11])?;
            generic_state::<f32, 4>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// A loop's own `v`, where another arm binds one.
#[tile_kernel]
fn arms<const B: usize>(x: &Tensor<f32, n>, p: &Tensor<i32, 1>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let p = p.partition_view([1]).load_masked([0]).item();
    let x = x.load_masked(y.index());
    let mut acc = x;
    match p {
        v if v > 3 => acc *= 2.0,
        _ => {
            for _ in 0..4 {
                let mut v = x * 2.0;
                v += acc;
                acc = v;
            }
        }
    }
    y.store_masked(acc);
}

#[test]
fn a_loops_own_variable_is_not_that_of_another_arm() {
    let x = [1f32, -2.0, 3.5, 0.25, 7.0];
    for (p, factor) in [(3, 9.0), (4, 2.0)] {
        check_exact!(arms<B = 2>(x: x, [5]; p: [p], [1]) -> f32, [5] => x.map(|x| x * factor));
    }
}

/// A loop's own `t`, where a view of this name was given away.
#[tile_kernel]
fn moved<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let t = x.partition_view([B]);
    let x = t.latency(3);
    let mut y = y.partition_view_mut([B]);
    let mut acc = x.load_masked(y.index());
    for _ in 0..4 {
        let mut t = acc * 2.0;
        t += 1.0;
        acc = t;
    }
    y.store_masked(acc);
}

#[test]
fn a_loops_own_variable_is_not_the_view_around_it() {
    let x = [1f32, -2.0, 3.5, 0.25, 7.0];
    check_exact!(moved<B = 2>(x: x, [5]) -> f32, [5] => x.map(|x| x * 16.0 + 15.0));
}

/// The accumulator has the name of the view whose tiles the blocks share.
#[tile_kernel]
fn product<const B: usize>(a: &Tensor<f32, m, k>, b: &Tensor<f32, k, n>, c: &mut Tensor<f32, m, n>) {
    let a = a.partition_view([B, B]);
    let b = b.partition_view([B, B]);
    let mut c = c.partition_view_mut([B, B]);
    for mut tile in c.tiles_persistent(Grouped(2)) {
        let [i, j] = tile.index();
        let mut c = Tile::zeros([B, B]);
        for p in 0..a.tiles(1) {
            c = mma(a.load_masked([i, p]), b.load_masked([p, j]), c);
        }
        tile.store_masked(c);
    }
}

#[test]
fn an_accumulator_may_have_the_name_of_the_view_around() {
    let (m, n, k) = (7, 5, 6);
    let (a, b) = (numbers::<f32>(m * k, 2), numbers::<f32>(k * n, 3));
    let dot = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum::<f32>();
    let expected: Vec<f32> = (0..m * n).map(|at| dot(at / n, at % n)).collect();
    check_exact!(product<B = 4>(a: a.clone(), [m, k]; b: b.clone(), [k, n]) -> f32, [m, n] => expected);
}

/// Loops over values that a closure makes, and over what `if let` binds.
#[tile_kernel]
fn made_on_the_way<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let view = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = view.load_masked(y.index());
    let mut sum = t;
    for (part, k) in [t, t * 2.0, t * 3.0].iter().map(|part| *part * 2.0).zip(1..4) {
        sum += part * k as f32;
    }
    for load in (1..4).map(|width| x.partition_view([B]).load_masked(y.index()) * width as f32) {
        sum = sum * 0.5 + load;
    }
    if let (mut power, 1..=100) = (t, n) {
        for _ in 0..3 {
            power = power * 0.5 + t;
        }
        sum += power;
    }
    y.store_masked(sum);
}

#[test]
fn what_a_loop_runs_over_and_what_it_begins_with_live_as_long_as_it() {
    let x = [1.0f32, -2.0, 0.5, 3.0, 7.0];
    let expected = x.map(|t| {
        let sum = (1..4).fold(t, |sum, k| sum + t * (2 * k * k) as f32);
        let sum = (1..4).fold(sum, |sum, width| sum * 0.5 + t * width as f32);
        sum + (0..3).fold(t, |power, _| power * 0.5 + t)
    });
    check_exact!(made_on_the_way<B = 2>(x: x, [5]) -> f32, [5] => expected);
}

/// An iterator that was given a name before the loop.
#[tile_kernel]
fn named_before<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let doubled = [t, t + 1.0, t + 2.0].into_iter().map(|p| p * 2.0);
    let tripled = [t, t + 1.0, t + 2.0].into_iter().map(|p| p * 3.0);
    let mut sum = t;
    for part in doubled {
        sum += part;
    }
    for (k, part) in tripled.rev().enumerate() {
        sum = sum * 0.5 + part * k as f32;
    }
    y.store_masked(sum);
}

#[test]
fn a_named_iterator_makes_its_values_before_the_loop() {
    let x = [1.0f32, -2.0, 0.5, 3.0, 7.0];
    let expected = x.map(|t| {
        let sum = t + 6.0 * t + 6.0;
        (0..3).fold(sum, |sum, k| sum * 0.5 + (t + (2 - k) as f32) * 3.0 * k as f32)
    });
    check_exact!(named_before<B = 2>(x: x, [5]) -> f32, [5] => expected);
}

#[tile_kernels]
mod constants {
    use tile::prelude::*;

    const OF_MODULE: u32 = {
        let (mut sum, mut i) = (0, 0);
        while i < 4 {
            sum += i;
            i += 1;
        }
        sum
    };

    /// Constants that loops compute: of the module, of the kernel, of its parameter and of a function.
    #[tile_kernel]
    pub(super) fn computed<const N: usize>(x: &Tensor<u32, n>, y: &mut Tensor<u32, n>) {
        const SQUARES: u32 = {
            let (mut sum, mut i) = (0, 0);
            while i < 5 {
                sum += i * i;
                i += 1;
            }
            sum
        };
        const OF_PARAMETER: u32 = {
            let (mut product, mut i) = (1, 0);
            while i < N as u32 {
                product *= 3;
                i += 1;
            }
            product
        };
        let power = const {
            let mut power = 1u32;
            loop {
                power *= 7;
                if power > 100 {
                    break;
                }
            }
            power
        };
        let mut y = y.partition_view_mut([4]);
        let x = x.partition_view([4]).load_masked(y.index());
        y.store_masked(of_function(x * SQUARES + OF_MODULE) * OF_PARAMETER + power);
    }

    #[tile_fn]
    fn of_function(x: Tile<u32, 1>) -> Tile<u32, 1> {
        const FIVE: u32 = {
            let mut i = 0;
            while i < 5 {
                i += 1;
            }
            i
        };
        x * FIVE
            + const {
                let mut i = 9u32;
                while i > 2 {
                    i -= 1;
                }
                i
            }
    }
}

#[test]
fn loops_compute_constants() {
    let x = [0u32, 1, 7, 1000, u32::MAX];
    let (squares, of_module, power) = (16 + 9 + 4 + 1, 3 + 2 + 1, 343);
    let of = |x: u32| {
        let inside = x.wrapping_mul(squares).wrapping_add(of_module).wrapping_mul(5).wrapping_add(2);
        inside.wrapping_mul(81).wrapping_add(power)
    };
    for (device, label) in super::devices() {
        let tensor = Tensor::from_slice(&device, &x, [5]).unwrap();
        let mut y = Tensor::zeros(&device, [5]).unwrap();
        constants::computed::<4>(&tensor, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), x.map(of), "{label}");
    }
}
