//! Kernels along a sequence: Mamba's convolution and scan, prefix sums by looking back, a step of a radix sort.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// A causal convolution of every channel by itself, and SiLU.
#[tile_kernel]
fn causal_convolution<const T: usize, const C: usize>(
    x: &Tensor<bf16, b, l, d>,
    w: &Tensor<f32, d, 4>,
    y: &mut Tensor<bf16, b, l, d>,
) {
    let x = x.pad([(0, 0), (3, 0), (0, 0)]).strided_view([1, T, C], [1, 1, C]);
    let w = w.t().partition_view([1, C]);
    let mut y = y.partition_view_mut([1, T, C]);
    let [b, i, j] = y.index();
    let mut acc = Tile::zeros([T, C]);
    for k in 0..4 {
        acc += x.load_masked([b, i * T + k, j]).squeeze(0).cast::<f32>() * w.load_masked([k, j]);
    }
    y.store_masked(silu(acc).cast::<bf16>().unsqueeze(0));
}

/// hₜ = exp(Δₜ·A)·hₜ₋₁ + Δₜ·Bₜ·xₜ and yₜ = Cₜ·hₜ, a whole sequence of one channel in a tile: a scan of pairs.
#[tile_kernel]
fn selective_scan<const L: usize, const N: usize>(
    x: &Tensor<f32, b, l, d>,
    delta: &Tensor<f32, b, l, d>,
    a: &Tensor<f32, d, N>,
    bs: &Tensor<f32, b, l, N>,
    cs: &Tensor<f32, b, l, N>,
    y: &mut Tensor<f32, b, l, d>,
) {
    let mut y = y.partition_view_mut([1, L, 1]);
    let [b, _, j] = y.index();
    let x = x.partition_view([1, L, 1]).load_masked([b, 0, j]).squeeze(0);
    let delta = delta.partition_view([1, L, 1]).load_masked([b, 0, j]).squeeze(0);
    let decay = exp(delta * a.partition_view([1, N]).load_masked([j, 0]));
    let input = delta * x * bs.partition_view([1, L, N]).load_masked([b, 0, 0]).squeeze(0);
    let (_, state) = scan((decay, input), 0, (1.0, 0.0), |(_, h), (decay, input)| (decay, decay * h + input));
    let out = (state * cs.partition_view([1, L, N]).load_masked([b, 0, 0]).squeeze(0)).sum(1);
    y.store_masked(out.unsqueeze(0));
}

#[test]
fn mamba() {
    let (b, l, d, n) = (2, 21, 13, 8);
    let x = numbers::<bf16>(b * l * d, 1);
    let w = numbers::<f32>(d * 4, 2);
    let convolved: Vec<f64> = (0..b * l * d)
        .map(|at| {
            let (t, channel) = (at / d % l, at % d);
            let taps = (0..4).filter(|k| t + k >= 3);
            let sum: f64 = taps.map(|k| x[at - (3 - k) * d].to_f64() * f64::from(w[channel * 4 + k])).sum();
            sum / (1.0 + (-sum).exp())
        })
        .collect();
    check_kernel!(causal_convolution<T = 8, C = 16>(
        input x: (x, [b, l, d]), input w: (w, [d, 4]),
        output y: (vec![bf16::ZERO; x.len()], [b, l, d] => convolved, 8e-3),
    ));
    let x = numbers::<f32>(b * l * d, 3);
    let delta: Vec<f32> = numbers::<f32>(b * l * d, 4).iter().map(|x| x.abs() * 0.5).collect();
    let a: Vec<f32> = numbers::<f32>(d * n, 5).iter().map(|x| -x.abs()).collect();
    let [bs, cs] = [6, 7].map(|seed| numbers::<f32>(b * l * n, seed));
    let mut y = vec![0.0f64; x.len()];
    for line in 0..b * d * n {
        let (batch, channel, state) = (line / (d * n), line / n % d, line % n);
        let mut h = 0.0;
        for t in 0..l {
            let (at, inner) = ((batch * l + t) * d + channel, (batch * l + t) * n + state);
            let step = f64::from(delta[at]);
            h = (step * f64::from(a[channel * n + state])).exp() * h
                + step * f64::from(x[at]) * f64::from(bs[inner]);
            y[at] += h * f64::from(cs[inner]);
        }
    }
    check_kernel!(selective_scan<L = 32, N = 8>(
        input x: (x, [b, l, d]), input delta: (delta, [b, l, d]), input a: (a, [d, n]),
        input bs: (bs, [b, l, n]), input cs: (cs, [b, l, n]),
        output y: (vec![0f32; x.len()], [b, l, d] => y, 1e-5),
    ));
}

/// Prefix sums in one pass (Merrill and Garland 2016): a block publishes its sum, adds up those before it, and
/// publishes the total. A word of `state` has a flag above and a sum below; the last one counts the blocks that began.
#[tile_kernel(grid = [n.div_ceil(B)])]
pub(super) fn look_back<const B: usize>(
    x: &Tensor<i32, n>,
    state: &mut Tensor<u64, { n.div_ceil(B) + 1 }>,
    y: &mut Tensor<i32, n>,
) {
    let state = state.atomic_view();
    let y = y.atomic_view();
    let ticket = state.fetch_add([n.div_ceil(B)], Tile::ones([1]), Relaxed, DeviceScope).item();
    let x = x.partition_view([B]).load_masked([ticket as usize]);
    let sum = x.sum(0).item();
    let mut before = 0;
    if ticket > 0 {
        let own = (1 << 32) | sum as u32 as u64;
        state.store([ticket], Tile::full([1], own), Release, DeviceScope);
        let mut at = ticket - 1;
        loop {
            let word = state.load([Tile::full([1], at)], Acquire, DeviceScope).item();
            if word >> 32 == 0 {
                continue;
            }
            before += word as u32 as i32;
            if word >> 32 == 2 {
                break;
            }
            at -= 1;
        }
    }
    let total = (2 << 32) | (before + sum) as u32 as u64;
    state.store([ticket], Tile::full([1], total), Release, DeviceScope);
    let place = Tile::<u64, 1>::iota([B], 0) + ticket * B as u64;
    y.store([place], x.cumsum(0) + before, Relaxed, DeviceScope);
}

pub(super) fn prefix_sums(x: &[i32]) -> Vec<i32> {
    let mut sum = 0;
    let next = |x: &i32| {
        sum += x;
        sum
    };
    x.iter().map(next).collect()
}

#[test]
fn prefix_sums_in_one_pass() {
    let n = 300;
    let x: Vec<i32> = (0..n).map(|i| (i * 37) % 1000 - 500).collect();
    let sums = prefix_sums(&x);
    let n = x.len();
    let totals: Vec<f64> = (1..=5u64)
        .map(|block| ((2u64 << 32) | u64::from(sums[(64 * block as usize).min(n) - 1] as u32)) as f64)
        .chain([5.0])
        .collect();
    check_kernel!(look_back<B = 64>(
        input x: (x, [n]), output state: (vec![0u64; 6], [6] => totals, 0.0),
        output y: (vec![0i32; n], [n] => sums, 0.0),
    ));
}

/// Puts a block's keys behind where those of their digit begin, in order.
#[tile_kernel(grid = [n.div_ceil(B)])]
fn radix_scatter<const B: usize>(
    keys: &Tensor<u32, n>,
    starts: &Tensor<i32, { n.div_ceil(B) }, 16>,
    shift: u32,
    out: &mut Tensor<u32, n>,
) {
    let i = block_id(0);
    let key = keys.partition_view([B]).load_masked([i]);
    let inside = (Tile::<i32, 2>::iota([B, 1], 0) + (i * B) as i32).lt(n as i32);
    let digit = ((key >> shift) & 15).cast::<i32>().unsqueeze(1);
    let has = digit.eq(Tile::<i32, 2>::iota([1, 16], 1)) & inside;
    let before = has.cast::<i32>().cumsum_exclusive(0);
    let start = starts.partition_view([1, 16]).load_masked([i, 0]);
    let place = select(has, before + start, 0).sum(1).squeeze(1);
    out.atomic_view().store_masked(inside.squeeze(1), [place], key, Relaxed, DeviceScope);
}

#[test]
fn a_step_of_a_radix_sort_is_stable() {
    let n = 300;
    let keys: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 8).collect();
    let digit = |key: &u32| (key >> 4 & 15) as usize;
    let mut sorted = keys.clone();
    sorted.sort_by_key(digit);
    // By digit, then by block.
    let starts: Vec<i32> = (0..3 * 16)
        .map(|at| {
            let (block, own) = (at / 16, at % 16);
            let earlier = |(i, key): &(usize, &u32)| digit(key) < own || digit(key) == own && i / 128 < block;
            keys.iter().enumerate().filter(earlier).count() as i32
        })
        .collect();
    check_kernel!(radix_scatter<B = 128>(
        input keys: (keys, [n]), input starts: (starts, [3, 16]), number shift: (4u32),
        output out: (vec![0u32; n], [n] => sorted, 0.0),
    ));
}
