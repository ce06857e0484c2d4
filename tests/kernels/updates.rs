//! Tensors that kernels update where they lie, several by one kernel: each element is read before anything is written there.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// A step of AdamW: parameter and moments are read and written.
#[tile_kernel]
fn adamw<const B: usize>(
    p: &mut Tensor<f32, n>,
    gradient: &Tensor<f32, n>,
    m: &mut Tensor<f32, n>,
    v: &mut Tensor<f32, n>,
    rate: f32,
) {
    let (mut p, mut m, mut v) =
        (p.partition_view_mut([B]), m.partition_view_mut([B]), v.partition_view_mut([B]));
    let gradient = gradient.partition_view([B]).load_masked(p.index());
    let first = m.load_masked() * 0.9 + gradient * 0.1;
    let second = v.load_masked() * 0.999 + gradient * gradient * 0.001;
    p.store_masked(p.load_masked() * (1.0 - 0.01 * rate) - first * rate / (sqrt(second) + 1e-8));
    m.store_masked(first);
    v.store_masked(second);
}

#[test]
fn an_optimizer_updates_its_moments_and_parameters() {
    for n in [5, 64, 200] {
        let (p, g, m) = (numbers::<f32>(n, 1), numbers::<f32>(n, 2), numbers::<f32>(n, 3));
        let v: Vec<f32> = numbers::<f32>(n, 4).iter().map(|v| v.abs()).collect();
        let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let of = |a: &[f32], b: &[f32], f: fn(f64, f64) -> f64| -> Vec<f64> {
            a.iter().zip(b).map(|(&a, &b)| f(f64::from(a), f64::from(b))).collect()
        };
        let first = of(&m, &g, |m, g| m * 0.9 + g * 0.1);
        let second = of(&v, &g, |v, g| v * 0.999 + g * g * 0.001);
        let step = first.iter().zip(&second).map(|(m, v)| m * 0.125 / (v.sqrt() + 1e-8));
        let after: Vec<f64> =
            wide(&p).iter().zip(step).map(|(p, step)| p * (1.0 - 0.01 * 0.125) - step).collect();
        check_kernel!(adamw<B = 64>(
            output p: (p, [n] => after, 1e-4), input g: (g, [n]),
            output m: (m, [n] => first, 1e-6), output v: (v, [n] => second, 1e-6), number rate: (0.125f32),
        ));
    }
}

/// Exchanges two matrices.
#[tile_kernel]
fn exchange<const R: usize, const C: usize>(x: &mut Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let (mut x, mut y) = (x.partition_view_mut([R, C]), y.partition_view_mut([R, C]));
    let (a, b) = (x.load_masked(), y.load_masked());
    x.store_masked(b);
    y.store_masked(a);
}

/// The same with sums on the way, of which two stores need one.
#[tile_kernel]
fn rotate<const R: usize, const C: usize>(x: &mut Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let (mut x, mut y) = (x.partition_view_mut([R, C]), y.partition_view_mut([R, C]));
    let (a, b) = (x.load_masked(), y.load_masked());
    let both = a + b;
    let product = both * both;
    x.store_masked(product - a);
    y.store_masked(product + b * both);
}

#[test]
fn tensors_change_places() {
    for (m, n) in [(4, 64), (5, 70), (1, 3)] {
        let (x, y) = (numbers::<f32>(m * n, 1), numbers::<f32>(m * n, 2));
        check_kernel!(exchange<R = 2, C = 64>(
            output x: (x, [m, n] => y, 0.0), output y: (y, [m, n] => x, 0.0),
        ));
        let of = |f: fn(f64, f64) -> f64| -> Vec<f64> {
            x.iter().zip(&y).map(|(&a, &b)| f(f64::from(a), f64::from(b))).collect()
        };
        let rotated = [of(|a, b| (a + b) * (a + b) - a), of(|a, b| (a + b) * (a + b) + b * (a + b))];
        check_kernel!(rotate<R = 2, C = 64>(
            output x: (x, [m, n] => rotated[0], 1e-5), output y: (y, [m, n] => rotated[1], 1e-5),
        ));
    }
}

/// What is read after a store is what was stored, though both tiles are stored in the end.
#[tile_kernel]
fn twice<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>, z: &mut Tensor<f32, n>) {
    let (mut y, mut z) = (y.partition_view_mut([B]), z.partition_view_mut([B]));
    let x = x.partition_view([B]).load_masked(y.index());
    let before = y.load_masked();
    y.store_masked(x + 1.0);
    let between = y.load_masked();
    z.store_masked(before * 2.0 + between);
    y.store_masked(between * between);
}

#[test]
fn what_is_stored_is_read_back() {
    let n = 100;
    let (x, y) = (numbers::<f32>(n, 1), numbers::<f32>(n, 2));
    let squares: Vec<f32> = x.iter().map(|x| (x + 1.0) * (x + 1.0)).collect();
    let sums: Vec<f32> = x.iter().zip(&y).map(|(x, y)| y * 2.0 + (x + 1.0)).collect();
    check_kernel!(twice<B = 32>(
        input x: (x, [n]), output y: (y, [n] => squares, 1e-6), output z: (vec![0f32; n], [n] => sums, 1e-6),
    ));
}

/// Two outputs of formats of different width, and one that a row's sum needs besides.
#[tile_kernel]
fn residual<const C: usize>(
    x: &Tensor<f32, m, n>,
    added: &Tensor<f32, m, n>,
    sum: &mut Tensor<f32, m, n>,
    rounded: &mut Tensor<bf16, m, n>,
    positive: &mut Tensor<i8, m, n>,
) {
    let (x, added) = (x.partition_view([1, C]), added.partition_view([1, C]));
    let mut sum = sum.partition_view_mut([1, C]);
    let mut rounded = rounded.partition_view_mut([1, C]);
    let mut positive = positive.partition_view_mut([1, C]);
    let at = sum.index();
    let row = x.load_masked(at) + added.load_masked(at);
    sum.store_masked(row);
    let squared = (row * row).sum(1);
    rounded.store_masked((row * rsqrt(squared)).cast());
    positive.store_masked((row > 0.0).cast());
}

#[test]
fn outputs_of_several_formats_come_of_a_row() {
    for n in [64usize, 100, 128] {
        let m = 3;
        let (x, w) = (numbers::<f32>(m * n, 1), numbers::<f32>(m * n, 2));
        let sum: Vec<f32> = x.iter().zip(&w).map(|(x, w)| x + w).collect();
        let rounded = sum.chunks(n).flat_map(|row| {
            let squared: f64 = row.iter().map(|&x| f64::from(x).powi(2)).sum();
            row.iter().map(move |&x| f64::from(x) / squared.sqrt())
        });
        let rounded: Vec<f64> = rounded.collect();
        let positive: Vec<i8> = sum.iter().map(|&x| i8::from(x > 0.0)).collect();
        check_kernel!(residual<C = 128>(
            input x: (x, [m, n]), input added: (w, [m, n]),
            output sum: (vec![0f32; m * n], [m, n] => sum, 0.0),
            output rounded: (vec![bf16::ZERO; m * n], [m, n] => rounded, 5e-3),
            output positive: (vec![0i8; m * n], [m, n] => positive, 0.0),
        ));
    }
}

/// Adds to a row's squares, which two ops need, the row backwards: that reads other places of what they read.
#[tile_kernel]
fn backwards<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]);
    let row = x.load_masked(y.index());
    let square = row * row;
    y.store_masked(square * square + row.flip(1));
}

#[test]
fn what_is_computed_once_is_of_one_place() {
    let (m, n) = (3, 64);
    let x = numbers::<f32>(m * n, 1);
    let row = |row: &[f32]| {
        row.iter().zip(row.iter().rev()).map(|(x, last)| x.powi(4) + last).collect::<Vec<f32>>()
    };
    let expected: Vec<f32> = x.chunks(n).flat_map(row).collect();
    check_kernel!(backwards<B = 64>(
        input x: (x, [m, n]), output y: (vec![0f32; m * n], [m, n] => expected, 1e-5),
    ));
}
