//! Kernels of mixtures of experts: which experts a token has, and in which order tokens lie for them.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// The K likeliest of E experts in G groups of which BEST count: those whose two likeliest experts are so together. A bias
/// says who is chosen and isn't part of the weights.
#[tile_kernel(where(G > 0, E % G == 0))]
fn route_by_group<const E: usize, const G: usize, const BEST: usize, const K: usize>(
    logits: &Tensor<f32, t, E>,
    bias: &Tensor<f32, E>,
    expert: &mut Tensor<i32, t, K>,
    weight: &mut Tensor<f32, t, K>,
) {
    let mut expert = expert.partition_view_mut([1, K]);
    let mut weight = weight.partition_view_mut([1, K]);
    let scores = logits.partition_view([1, E]).load(expert.index()).sigmoid();
    let groups = (scores + bias.partition_view([E]).load([0]).unsqueeze(0)).reshape([G, E / G]);
    let (two, _) = groups.top_k(2, 1);
    let (_, chosen) = two.sum(1).t().top_k(BEST, 1);
    let counts = (chosen == Tile::<i32, 2>::iota([G, 1], 0)).any(1);
    let (_, best) = select(counts, groups, f32::NEG_INFINITY).reshape([1, E]).top_k(K, 1);
    let weights = scores.gather(best, 1);
    expert.store(best);
    weight.store(weights / weights.sum(1));
}

#[test]
fn experts_are_of_the_best_groups() {
    let (t, e, g, k) = (7, 32, 8, 4);
    let (logits, bias) = (numbers::<f32>(t * e, 3), numbers::<f32>(e, 4));
    let (mut expert, mut weight) = (Vec::new(), Vec::new());
    for row in logits.chunks(e) {
        let scores: Vec<f64> = row.iter().map(|x| 1.0 / (1.0 + (-f64::from(*x)).exp())).collect();
        let biased = |expert: &usize| scores[*expert] + f64::from(bias[*expert]);
        let descending = |experts: std::ops::Range<usize>| {
            let mut experts: Vec<usize> = experts.collect();
            experts.sort_by(|a, b| biased(b).total_cmp(&biased(a)));
            experts
        };
        let of_group = |group: &usize| descending(group * e / g..(group + 1) * e / g);
        let score = |group: &usize| of_group(group).iter().take(2).map(biased).sum::<f64>();
        let mut groups: Vec<usize> = (0..g).collect();
        groups.sort_by(|a, b| score(b).total_cmp(&score(a)));
        let experts = descending(0..e).into_iter().filter(|expert| groups[..3].contains(&(expert * g / e)));
        let experts: Vec<usize> = experts.take(k).collect();
        let sum: f64 = experts.iter().map(|&expert| scores[expert]).sum();
        weight.extend(experts.iter().map(|&expert| scores[expert] / sum));
        expert.extend(experts.iter().map(|&expert| expert as i32));
    }
    check_kernel!(route_by_group<E = 32, G = 8, BEST = 3, K = 4>(
        input logits: (logits, [t, e]), input bias: (bias, [e]),
        output expert: (vec![0i32; t * k], [t, k] => expert, 0.0),
        output weight: (vec![0f32; t * k], [t, k] => weight, 1e-6),
    ));
}

/// The tokens in the order of their experts, and where each expert's end: one block counts, and then puts B of them at a
/// time behind those that it has put.
#[tile_kernel(grid = [1])]
fn sort_by_expert<const B: usize, const E: usize>(
    expert: &Tensor<i32, t>,
    token: &mut Tensor<i32, t>,
    ends: &mut Tensor<i32, E>,
) {
    let expert = expert.partition_view([B]);
    let token = token.atomic_view();
    let mut counts = Tile::<i32, 1>::zeros([E]);
    for p in 0..expert.tiles(0) {
        counts += expert.load_masked_or(-1, [p]).histogram(E);
    }
    ends.atomic_view().store([Tile::<i32, 1>::iota([E], 0)], counts.cumsum(0), Relaxed, DeviceScope);
    let mut place = counts.cumsum_exclusive(0);
    for p in 0..expert.tiles(0) {
        let expert = expert.load_masked_or(-1, [p]);
        let is = expert.unsqueeze(1) == Tile::<i32, 2>::iota([1, E], 1);
        let before = is.cast::<i32>().cumsum_exclusive(0);
        let at = select(is, place.unsqueeze(0) + before, 0).sum(1).squeeze(1);
        let tokens = Tile::<i32, 1>::iota([B], 0) + (p * B) as i32;
        token.store_masked(expert >= 0, [at], tokens, Relaxed, DeviceScope);
        place += expert.histogram(E);
    }
}

#[test]
fn tokens_lie_in_the_order_of_their_experts() {
    let t = 75;
    let expert: Vec<i32> = (0..t as i32).map(|i| i * i % 7).collect();
    let mut token: Vec<i32> = (0..t as i32).collect();
    token.sort_by_key(|&token| expert[token as usize]);
    let ends: Vec<i32> = (0..8).map(|end| expert.iter().filter(|&&e| e <= end).count() as i32).collect();
    check_kernel!(sort_by_expert<B = 16, E = 8>(
        input expert: (expert, [t]), output token: (vec![0i32; t], [t] => token, 0.0),
        output ends: (vec![0i32; 8], [8] => ends, 0.0),
    ));
}
