//! Sequences, groups and bags of any length behind each other, and what passes a test closed up.

use super::numbers;
use super::whole::check_kernel;
use super::{devices, widen};
use tile::prelude::*;

/// Causal attention within a window, of sequences that lie behind each other and begin at `starts`; G heads share one of
/// keys. Scores are capped, results lie apart by sequence.
#[tile_kernel]
fn packed_attention<const B: usize, const D: usize, const G: usize>(
    q: &Tensor<bf16, t, { G * h }, D>,
    k: &Tensor<bf16, t, h, D>,
    v: &Tensor<bf16, t, h, D>,
    starts: &Tensor<i32, { s + 1 }>,
    cap: f32,
    window: i32,
    out: &mut Tensor<bf16, s, longest, { G * h }, D>,
) {
    let mut out = out.partition_view_mut([1, B, 1, D]);
    let [s, i, head, _] = out.index();
    let starts = starts.partition_view([1]);
    let begin = starts.load([s]).item();
    let length = starts.load([s + 1]).item() - begin;
    if (i * B) as i32 >= length {
        return;
    }
    let to = Tile::<i32, 2>::iota([B, 1], 0) + (i * B) as i32;
    let columns = Tile::<i32, 2>::iota([1, D], 1);
    let q = q.gather((to + begin, head, columns));
    let mut highest = Tile::full([B, 1], f32::NEG_INFINITY);
    let mut total = Tile::zeros([B, 1]);
    let mut acc = Tile::zeros([B, D]);
    for p in max((i * B) as i32 - window, 0) as usize / B..=i {
        let at = Tile::<i32, 2>::iota([B, 1], 0) + (p * B) as i32;
        let rows = select(at < length, at + begin, -1);
        let keys = k.gather((rows, head / G, columns));
        let values = v.gather((rows, head / G, columns));
        let scores = tanh(mma(q, keys.t(), Tile::zeros([B, B])) / cap) * cap;
        let from = at.t();
        let seen = (from <= to) & (from > to - window) & (from < length);
        let scores = select(seen, scores, f32::NEG_INFINITY);
        let higher = max(highest, scores.max(1));
        // Rows that have seen nothing yet: −∞ less −∞ is no number.
        let base = select(higher == f32::NEG_INFINITY, 0.0, higher);
        let (weights, kept) = (exp(scores - base), exp(highest - base));
        total = total * kept + weights.sum(1);
        acc = mma(weights.cast::<bf16>(), values, acc * kept);
        highest = higher;
    }
    let result = select(to < length, acc / total, 0.0);
    out.store_masked(result.cast::<bf16>().reshape([1, B, 1, D]));
}

#[test]
fn sequences_lie_behind_each_other() {
    let (h, g, d, longest) = (2, 2, 32, 64);
    let starts = [0, 33, 34, 98];
    let (t, s, heads) = (98, 3, g * h);
    let q = numbers::<bf16>(t * heads * d, 1);
    let k = numbers::<bf16>(t * h * d, 2);
    let v = numbers::<bf16>(t * h * d, 3);
    let (cap, window) = (3.0, 20);
    let mut out = vec![0.0; s * longest * heads * d];
    for (at, row) in out.chunks_mut(d).enumerate() {
        let (sequence, i, head) = (at / (longest * heads), at / heads % longest, at % heads);
        let (begin, end) = (starts[sequence] as usize, starts[sequence + 1] as usize);
        if begin + i >= end {
            continue;
        }
        let keys = (i + 1).saturating_sub(window)..=i;
        let place = |p: usize| ((begin + p) * h + head / g) * d;
        let query = &q[((begin + i) * heads + head) * d..][..d];
        let weight = |p: usize| {
            let products = query.iter().zip(&k[place(p)..]).map(|(q, k)| q.to_f64() * k.to_f64());
            ((products.sum::<f64>() / cap).tanh() * cap).exp()
        };
        let total: f64 = keys.clone().map(weight).sum();
        for (e, x) in row.iter_mut().enumerate() {
            *x = keys.clone().map(|p| weight(p) * v[place(p) + e].to_f64()).sum::<f64>() / total;
        }
    }
    check_kernel!(packed_attention<B = 16, D = 32, G = 2>(
        input q: (q, [t, heads, d]), input k: (k, [t, h, d]), input v: (v, [t, h, d]), input starts: (starts, [s + 1]),
        number cap: (3f32), number window: (20i32),
        output out: (vec![bf16::ZERO; out.len()], [s, longest, heads, d] => out, 8e-3),
    ));
}

/// Rows are sorted by group, and each group has a matrix of its own: a block multiplies by those of all groups that have
/// rows in it.
#[tile_kernel]
fn grouped_product<const BM: usize, const BN: usize, const BK: usize>(
    x: &Tensor<bf16, m, k>,
    w: &Tensor<bf16, g, k, n>,
    starts: &Tensor<i32, { g + 1 }>,
    y: &mut Tensor<f32, m, n>,
) {
    let mut y = y.partition_view_mut([BM, BN]);
    let [i, j] = y.index();
    let x = x.partition_view([BM, BK]);
    let w = w.partition_view([1, BK, BN]);
    let starts = starts.partition_view([1]);
    let rows = Tile::<i32, 2>::iota([BM, 1], 0) + (i * BM) as i32;
    let mut result = Tile::zeros([BM, BN]);
    for e in 0..g {
        let (begin, end) = (starts.load([e]).item(), starts.load([e + 1]).item());
        if end <= (i * BM) as i32 || begin >= ((i + 1) * BM) as i32 {
            continue;
        }
        let mut acc = Tile::zeros([BM, BN]);
        for p in 0..x.tiles(1) {
            acc = mma(x.load_masked([i, p]), w.load_masked([e, p, j]).reshape([BK, BN]), acc);
        }
        result = select((rows >= begin) & (rows < end), acc, result);
    }
    y.store_masked(result);
}

#[test]
fn groups_have_any_number_of_rows() {
    let (m, n, k, g) = (37, 20, 33, 4);
    let starts = [0, 5, 5, 30, 37];
    let x = numbers::<bf16>(m * k, 1);
    let w = numbers::<bf16>(g * k * n, 2);
    let mut y = vec![];
    for at in 0..m * n {
        let (i, j) = (at / n, at % n);
        let group = (0..g).find(|&e| starts[e + 1] as usize > i).expect("every row has a group");
        y.push((0..k).map(|p| x[i * k + p].to_f64() * w[(group * k + p) * n + j].to_f64()).sum::<f64>());
    }
    check_kernel!(grouped_product<BM = 16, BN = 16, BK = 16>(
        input x: (x, [m, k]), input w: (w, [g, k, n]), input starts: (starts, [g + 1]),
        output y: (vec![0f32; m * n], [m, n] => y, 1e-5),
    ));
}

/// The derivative of a mean over bags of rows of a table: L rows of it get their share at once.
#[tile_kernel(grid = [bags, d.div_ceil(B)])]
fn bags_backward<const L: usize, const B: usize>(
    dy: &Tensor<f32, bags, d>,
    members: &Tensor<i32, n>,
    starts: &Tensor<i32, { bags + 1 }>,
    table: &mut Tensor<f32, rows, d>,
) {
    let (bag, j) = (block_id(0), block_id(1));
    let starts = starts.partition_view([1]);
    let (begin, end) = (starts.load([bag]).item(), starts.load([bag + 1]).item());
    let share = dy.partition_view([1, B]).load_masked([bag, j]) / (end - begin) as f32;
    let table = table.atomic_view();
    let columns = Tile::<i32, 2>::iota([L, B], 1) + (j * B) as i32;
    for p in (begin..end).step_by(L) {
        let at = Tile::<i32, 2>::iota([L, 1], 0) + p;
        let rows = select(at < end, members.gather([at]), -1).broadcast([L, B]);
        table.fetch_add([rows, columns], share.broadcast([L, B]), Relaxed, DeviceScope);
    }
}

#[test]
fn rows_get_their_share_of_every_bag() {
    let (bags, d, rows) = (4, 20, 7);
    let starts = [0, 3, 3, 10, 12];
    let members: Vec<i32> = (0..12).map(|i| i * 5 % 7).collect();
    let dy = numbers::<f32>(bags * d, 1);
    let mut table = vec![0.0; rows * d];
    for bag in 0..bags {
        let bag_members = &members[starts[bag] as usize..starts[bag + 1] as usize];
        for (&member, e) in bag_members.iter().flat_map(|member| (0..d).map(move |e| (member, e))) {
            table[member as usize * d + e] += f64::from(dy[bag * d + e]) / bag_members.len() as f64;
        }
    }
    check_kernel!(bags_backward<L = 4, B = 16>(
        input dy: (dy, [bags, d]), input members: (members, [12]), input starts: (starts, [bags + 1]),
        output table: (vec![0f32; rows * d], [rows, d] => table, 1e-5),
    ));
}

/// The numbers above a threshold, and where they were: a block keeps their order, and takes its place from a counter.
#[tile_kernel(grid = [n.div_ceil(B)])]
fn closed_up<const B: usize>(
    x: &Tensor<f32, n>,
    threshold: f32,
    kept: &mut Tensor<f32, n>,
    places: &mut Tensor<u32, n>,
    count: &mut Tensor<u32, 1>,
) {
    let i = block_id(0);
    let x = x.partition_view([B]).load_masked_or(f32::NEG_INFINITY, [i]);
    let keep = x > threshold;
    let ones = keep.cast::<u32>();
    let first = count.atomic_view().fetch_add([0], ones.sum(0).item(), Relaxed, DeviceScope);
    let at = ones.cumsum_exclusive(0) + first;
    let place = Tile::<u32, 1>::iota([B], 0) + (i * B) as u32;
    kept.atomic_view().store_masked(keep, [at], x, Relaxed, DeviceScope);
    places.atomic_view().store_masked(keep, [at], place, Relaxed, DeviceScope);
}

#[test]
fn what_is_kept_is_closed_up() {
    let n = 77;
    let x = numbers::<f32>(n, 1);
    let expected: Vec<f64> = x.iter().filter(|&&x| x > 0.25).map(|&x| f64::from(x)).collect();
    for (device, label) in devices() {
        let input = Tensor::from_slice(&device, &x, [n]).unwrap();
        let mut kept = Tensor::zeros(&device, [n]).unwrap();
        let mut places = Tensor::zeros(&device, [n]).unwrap();
        let mut count = Tensor::zeros(&device, [1]).unwrap();
        closed_up::<16>(&input, 0.25, &mut kept, &mut places, &mut count).launch().unwrap();
        assert_eq!(count.to_vec().unwrap(), [expected.len() as u32], "{label}");
        // Blocks come in any order.
        let found = places.to_vec().unwrap().into_iter().zip(widen(&kept.to_vec().unwrap()));
        let mut found: Vec<(u32, f64)> = found.take(expected.len()).collect();
        found.sort_by_key(|&(place, _)| place);
        assert_eq!(found.iter().map(|&(_, x)| x).collect::<Vec<_>>(), expected, "{label}");
        assert!(found.iter().all(|&(place, kept)| f64::from(x[place as usize]) == kept), "{label}");
    }
}
