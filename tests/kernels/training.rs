//! Kernels of training: derivatives of layer norm and of the cross entropy, a step of Adam.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// dx of layer norm, a row's statistics computed again.
#[tile_kernel]
fn layer_norm_backward<const R: usize, const N: usize>(
    x: &Tensor<f32, m, n>,
    gamma: &Tensor<f32, n>,
    dy: &Tensor<f32, m, n>,
    dx: &mut Tensor<f32, m, n>,
    epsilon: f32,
) {
    let mut dx = dx.partition_view_mut([R, N]);
    let [i, j] = dx.index();
    let x = x.partition_view([R, N]).load_masked([i, j]);
    let gamma = gamma.unsqueeze(0).partition_view([1, N]).load_masked([0, j]);
    let g = dy.partition_view([R, N]).load_masked([i, j]) * gamma;
    let inside = Tile::<i32, 2>::iota([1, N], 1).lt(n as i32);
    let centered = select(inside, x - x.sum(1) / n as f32, 0.0);
    let scale = rsqrt((centered * centered).sum(1) / n as f32 + epsilon);
    let normal = centered * scale;
    let along = (g * normal).sum(1) / n as f32;
    dx.store_masked((g - normal * along - g.sum(1) / n as f32) * scale);
}

/// dγ and dβ: each block adds what its rows give.
#[tile_kernel(grid = [m.div_ceil(R)])]
fn layer_norm_weights<const R: usize, const N: usize>(
    x: &Tensor<f32, m, n>,
    dy: &Tensor<f32, m, n>,
    mean: &Tensor<f32, m>,
    scale: &Tensor<f32, m>,
    dgamma: &mut Tensor<f32, n>,
    dbeta: &mut Tensor<f32, n>,
) {
    let x = x.partition_view([R, N]);
    let dy = dy.partition_view([R, N]);
    let i = block_id(0);
    let mean = mean.unsqueeze(1).partition_view([R, 1]).load_masked([i, 0]);
    let scale = scale.unsqueeze(1).partition_view([R, 1]).load_masked([i, 0]);
    let dgamma = dgamma.atomic_view();
    let dbeta = dbeta.atomic_view();
    for j in 0..x.tiles(1) {
        let g = dy.load_masked([i, j]);
        let normal = (x.load_masked([i, j]) - mean) * scale;
        let column = Tile::<i32, 1>::iota([N], 0) + (j * N) as i32;
        dgamma.fetch_add([column], (g * normal).sum(0).squeeze(0), Relaxed, DeviceScope);
        dbeta.fetch_add([column], g.sum(0).squeeze(0), Relaxed, DeviceScope);
    }
}

#[test]
fn derivatives_of_layer_norm() {
    let (m, n, epsilon) = (7, 50, 1e-5);
    let [x, dy] = [1, 2].map(|seed| numbers::<f32>(m * n, seed));
    let gamma = numbers::<f32>(n, 3);
    let (mut dx, mut dgamma, mut dbeta) = (vec![0.0f64; m * n], vec![0.0; n], vec![0.0; n]);
    let (mut means, mut scales) = (Vec::new(), Vec::new());
    for i in 0..m {
        let at = |j: usize| f64::from(x[i * n + j]);
        let mean = (0..n).map(at).sum::<f64>() / n as f64;
        let variance = (0..n).map(|j| (at(j) - mean).powi(2)).sum::<f64>() / n as f64;
        let scale = 1.0 / (variance + epsilon).sqrt();
        let g = |j: usize| f64::from(dy[i * n + j] * gamma[j]);
        let along = (0..n).map(|j| g(j) * (at(j) - mean) * scale).sum::<f64>() / n as f64;
        let common = (0..n).map(g).sum::<f64>() / n as f64;
        for j in 0..n {
            let normal = (at(j) - mean) * scale;
            dx[i * n + j] = (g(j) - normal * along - common) * scale;
            dgamma[j] += f64::from(dy[i * n + j]) * normal;
            dbeta[j] += f64::from(dy[i * n + j]);
        }
        means.push(mean as f32);
        scales.push(scale as f32);
    }
    check_kernel!(layer_norm_backward<R = 4, N = 64>(
        input x: (x, [m, n]), input gamma: (gamma, [n]), input dy: (dy, [m, n]),
        output dx: (vec![0f32; m * n], [m, n] => dx, 1e-5), number epsilon: (1e-5f32),
    ));
    check_kernel!(layer_norm_weights<R = 4, N = 32>(
        input x: (x, [m, n]), input dy: (dy, [m, n]), input mean: (means, [m]), input scale: (scales, [m]),
        output dgamma: (vec![0f32; n], [n] => dgamma, 1e-5), output dbeta: (vec![0f32; n], [n] => dbeta, 1e-5),
    ));
}

/// The loss of each row and the logarithm of its sum, in one pass over a row of any length.
#[tile_kernel]
fn cross_entropy<const V: usize>(
    logits: &Tensor<f32, m, v>,
    labels: &Tensor<i64, m>,
    loss: &mut Tensor<f32, m>,
    log_sum: &mut Tensor<f32, m>,
) {
    let logits = logits.partition_view([1, V]);
    let mut loss = loss.partition_view_mut([1]);
    let mut log_sum = log_sum.partition_view_mut([1]);
    let [i] = loss.index();
    let label = labels.partition_view([1]).load([i]).item();
    let mut highest = f32::NEG_INFINITY;
    let mut sum = 0.0;
    let mut at_label = 0.0;
    for p in 0..logits.tiles(1) {
        let x = logits.load_masked_or(f32::NEG_INFINITY, [i, p]);
        let next = max(highest, x.max(1).item());
        sum = sum * exp(highest - next) + exp(x - next).sum(1).item();
        highest = next;
        let column = Tile::<i64, 2>::iota([1, V], 1) + (p * V) as i64;
        at_label += select(column.eq(label), x, 0.0).sum(1).item();
    }
    let total = highest + log(sum);
    log_sum.store(Tile::full([1], total));
    // A label outside is one to ignore.
    loss.store(Tile::full([1], if label >= 0 { total - at_label } else { 0.0 }));
}

#[tile_kernel]
fn cross_entropy_backward<const R: usize, const V: usize>(
    logits: &Tensor<f32, m, v>,
    labels: &Tensor<i64, m>,
    log_sum: &Tensor<f32, m>,
    scale: f32,
    d: &mut Tensor<bf16, m, v>,
) {
    let mut d = d.partition_view_mut([R, V]);
    let [i, j] = d.index();
    let x = logits.partition_view([R, V]).load_masked([i, j]);
    let label = labels.unsqueeze(1).partition_view([R, 1]).load_masked_or(-1, [i, 0]);
    let log_sum = log_sum.unsqueeze(1).partition_view([R, 1]).load_masked([i, 0]);
    let column = Tile::<i64, 2>::iota([1, V], 1) + (j * V) as i64;
    let difference = exp(x - log_sum) - column.eq(label).cast::<f32>();
    d.store_masked(select(label.ge(0), difference * scale, 0.0).cast::<bf16>());
}

#[test]
fn cross_entropies_and_their_derivatives() {
    let (m, v) = (6, 300);
    let x: Vec<f32> = numbers::<f32>(m * v, 1).iter().map(|x| x * 8.0).collect();
    let labels = [5i64, 299, -100, 0, 128, 17];
    let (mut loss, mut log_sum, mut d) = (vec![0.0; m], vec![0.0; m], vec![0.0; m * v]);
    for (i, row) in x.chunks(v).enumerate() {
        log_sum[i] = row.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
        let Ok(label) = usize::try_from(labels[i]) else { continue };
        loss[i] = log_sum[i] - f64::from(row[label]);
        for j in 0..v {
            let own = if j == label { 1.0 } else { 0.0 };
            d[i * v + j] = 0.5 * ((f64::from(row[j]) - log_sum[i]).exp() - own);
        }
    }
    check_kernel!(cross_entropy<V = 128>(
        input logits: (x, [m, v]), input labels: (labels, [m]),
        output loss: (vec![0f32; m], [m] => loss, 1e-5), output log_sum: (vec![0f32; m], [m] => log_sum, 1e-5),
    ));
    let log_sum: Vec<f32> = log_sum.iter().map(|&x| x as f32).collect();
    check_kernel!(cross_entropy_backward<R = 4, V = 128>(
        input logits: (x, [m, v]), input labels: (labels, [m]), input log_sum: (log_sum, [m]), number scale: (0.5f32),
        output d: (vec![bf16::ZERO; m * v], [m, v] => d, 2e-4),
    ));
}

/// A step of Adam. The state is f32; parameters are bf16 and rounded up or down at random, so that small steps add up.
#[tile_kernel]
fn adam<const B: usize>(
    parameters: &mut Tensor<bf16, n>,
    gradient: &Tensor<bf16, n>,
    mean: &mut Tensor<f32, n>,
    square: &mut Tensor<f32, n>,
    rate: f32,
    seed: u64,
) {
    let mut parameters = parameters.partition_view_mut([B]);
    let mut mean = mean.partition_view_mut([B]);
    let mut square = square.partition_view_mut([B]);
    let [i] = parameters.index();
    let g = gradient.partition_view([B]).load_masked([i]).cast::<f32>();
    let first = mean.load_masked() * 0.875 + g * 0.125;
    let second = square.load_masked() * 0.9375 + g * g * 0.0625;
    mean.store_masked(first);
    square.store_masked(second);
    let next = parameters.load_masked().cast::<f32>() - rate * first / (sqrt(second) + 1e-8);
    let noise = Tile::random_bits([B], seed, (i * B) as u64) & 0xffff;
    let rounded = (next.bitcast::<u32>() + noise) >> 16;
    parameters.store_masked(rounded.cast::<u16>().bitcast::<bf16>());
}

#[test]
fn adam_rounds_at_random() {
    let n = 600;
    let [parameters, gradient] = [1, 2].map(|seed| numbers::<bf16>(n, seed));
    let mean = numbers::<f32>(n, 3);
    let square: Vec<f32> = numbers::<f32>(n, 4).iter().map(|x| x.abs()).collect();
    let bits = Tile::<u32, 1>::random_bits([n], 7, 0).to_vec();
    let (mut p, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let g = gradient[i].to_f32();
        first.push(mean[i] * 0.875 + g * 0.125);
        second.push(square[i] * 0.9375 + g * g * 0.0625);
        let next = parameters[i].to_f32() - 0.01 * first[i] / (second[i].sqrt() + 1e-8);
        p.push(f32::from_bits(next.to_bits().wrapping_add(bits[i] & 0xffff) & 0xffff_0000));
    }
    check_kernel!(adam<B = 256>(
        output parameters: (parameters, [n] => p, 0.0), input gradient: (gradient, [n]),
        output mean: (mean, [n] => first, 0.0), output square: (square, [n] => second, 0.0),
        number rate: (0.01f32), number seed: (7u64),
    ));
}
