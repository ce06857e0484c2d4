//! Losses over a vocabulary and draws from it.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// Cross entropy with smoothed labels, capped logits and a penalty on their normalisation; the derivative replaces the
/// logits. Rows with a label below zero don't count.
#[tile_kernel]
fn smoothed_cross_entropy<const V: usize>(
    labels: &Tensor<i64, m>,
    smoothing: f32,
    penalty: f32,
    cap: f32,
    logits: &mut Tensor<bf16, m, v>,
    loss: &mut Tensor<f32, m>,
) {
    let mut logits = logits.partition_view_mut([1, V]).spanning([1]);
    let mut loss = loss.unsqueeze(1).partition_view_mut([1, 1]);
    let [i, _] = loss.index();
    let label = labels.partition_view([1]).load([i]).item();
    if label < 0 {
        for j in 0..logits.tiles(1) {
            logits.at([j]).store_masked(Tile::zeros([1, V]));
        }
        loss.store(Tile::zeros([1, 1]));
        return;
    }
    let (mut highest, mut total) = (f32::NEG_INFINITY, 0.0f32);
    let (mut sum, mut chosen) = (0.0f32, 0.0f32);
    for j in 0..logits.tiles(1) {
        let at = Tile::<i64, 2>::iota([1, V], 1) + (j * V) as i64;
        let capped = tanh(logits.at([j]).load_masked().cast::<f32>() / cap) * cap;
        let scores = select(at < v as i64, capped, f32::NEG_INFINITY);
        let higher = max(highest, scores.max(1).item());
        total = total * exp(highest - higher) + exp(scores - higher).sum(1).item();
        highest = higher;
        sum += select(at < v as i64, capped, 0.0).sum(1).item();
        chosen += select(at == label, capped, 0.0).sum(1).item();
    }
    let lse = highest + log(total);
    let share = smoothing / v as f32;
    loss.store(Tile::full([1, 1], lse - (1.0 - smoothing) * chosen - share * sum + penalty * lse * lse));
    for j in 0..logits.tiles(1) {
        let at = Tile::<i64, 2>::iota([1, V], 1) + (j * V) as i64;
        let flattened = tanh(logits.at([j]).load_masked().cast::<f32>() / cap);
        let likely = exp(flattened * cap - lse) * (1.0 + 2.0 * penalty * lse);
        let derivative = likely - share - select(at == label, 1.0 - smoothing, 0.0);
        logits.at([j]).store_masked((derivative * (1.0 - flattened * flattened)).cast::<bf16>());
    }
}

#[test]
fn labels_are_smoothed_and_logits_capped() {
    let (m, v) = (5, 37);
    let logits: Vec<bf16> = numbers::<f32>(m * v, 1).iter().map(|&x| bf16::from_f32(x * 8.0)).collect();
    let labels = [3i64, -100, 36, 0, 17];
    let (smoothing, penalty, cap) = (0.125, 0.0078125, 4.0);
    let (mut derivatives, mut losses) = (vec![], vec![]);
    for (row, label) in logits.chunks(v).zip(labels) {
        if label < 0 {
            derivatives.extend(vec![0.0; v]);
            losses.push(0.0);
            continue;
        }
        let z: Vec<f64> = row.iter().map(|x| (x.to_f64() / cap).tanh() * cap).collect();
        let lse = z.iter().map(|z| z.exp()).sum::<f64>().ln();
        let target = |j: usize| smoothing / v as f64 + if j as i64 == label { 1.0 - smoothing } else { 0.0 };
        losses.push((0..v).map(|j| target(j) * (lse - z[j])).sum::<f64>() + penalty * lse * lse);
        derivatives.extend((0..v).map(|j| {
            let derivative = (z[j] - lse).exp() * (1.0 + 2.0 * penalty * lse) - target(j);
            derivative * (1.0 - (z[j] / cap).powi(2))
        }));
    }
    check_kernel!(smoothed_cross_entropy<V = 16>(
        input labels: (labels, [m]), number smoothing: (0.125f32), number penalty: (0.0078125f32), number cap: (4f32),
        output logits: (logits, [m, v] => derivatives, 1.5e-3), output loss: (vec![0f32; m], [m] => losses, 1e-5),
    ));
}

/// The loss of a last layer whose logits are never in memory, and the likeliest word of each row.
#[tile_kernel]
fn loss_of_a_layer<const BM: usize, const BV: usize, const BK: usize>(
    x: &Tensor<bf16, m, k>,
    w: &Tensor<bf16, v, k>,
    labels: &Tensor<i32, m>,
    loss: &mut Tensor<f32, m>,
    likeliest: &mut Tensor<i32, m>,
) {
    let x = x.partition_view([BM, BK]);
    let w = w.partition_view([BV, BK]);
    let mut loss = loss.partition_view_mut([BM]);
    let mut likeliest = likeliest.partition_view_mut([BM]);
    let [i] = loss.index();
    let label = labels.partition_view([BM]).load_masked_or(-1, [i]).unsqueeze(1);
    let mut highest = Tile::full([BM, 1], f32::NEG_INFINITY);
    let (mut total, mut chosen) = (Tile::zeros([BM, 1]), Tile::zeros([BM, 1]));
    let mut best = Tile::zeros([BM, 1]);
    for j in 0..w.tiles(0) {
        let mut logits = Tile::zeros([BM, BV]);
        for p in 0..x.tiles(1) {
            logits = mma(x.load_masked([i, p]), w.load_masked([j, p]).t(), logits);
        }
        let at = Tile::<i32, 2>::iota([1, BV], 1) + (j * BV) as i32;
        let logits = select(at < v as i32, logits, f32::NEG_INFINITY);
        chosen += select(at == label, logits, 0.0).sum(1);
        let top = logits.max(1);
        best = select(top > highest, logits.argmax(1) + (j * BV) as i32, best);
        let higher = max(highest, top);
        total = total * exp(highest - higher) + exp(logits - higher).sum(1);
        highest = higher;
    }
    loss.store_masked((highest + log(total) - chosen).squeeze(1));
    likeliest.store_masked(best.squeeze(1));
}

#[test]
fn logits_are_never_in_memory() {
    let (m, v, k) = (70, 200, 96);
    let x = numbers::<bf16>(m * k, 1);
    let w = numbers::<bf16>(v * k, 2);
    let labels: Vec<i32> = (0..m).map(|i| (i * 29 % v) as i32).collect();
    let (mut losses, mut likeliest) = (vec![], vec![]);
    for (x, &label) in x.chunks(k).zip(&labels) {
        let dot = |w: &[bf16]| x.iter().zip(w).map(|(x, w)| x.to_f64() * w.to_f64()).sum::<f64>();
        let z: Vec<f64> = w.chunks(k).map(dot).collect();
        let highest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = z.iter().map(|z| (z - highest).exp()).sum();
        losses.push(highest + total.ln() - z[label as usize]);
        likeliest.push(z.iter().position(|&z| z == highest).expect("it is one of them") as i32);
    }
    check_kernel!(loss_of_a_layer<BM = 64, BV = 128, BK = 32>(
        input x: (x, [m, k]), input w: (w, [v, k]), input labels: (labels, [m]),
        output loss: (vec![0f32; m], [m] => losses, 1e-4), output likeliest: (vec![0; m], [m] => likeliest, 0.0),
    ));
}

/// The gradient of that loss by the words' vectors, from the logarithms of the sums: a block has some words, and adds up
/// in the output itself what each row gives to them.
#[tile_kernel]
fn gradient_of_a_layer<const BM: usize, const BV: usize, const BK: usize>(
    x: &Tensor<bf16, m, k>,
    w: &Tensor<bf16, v, k>,
    labels: &Tensor<i32, m>,
    lse: &Tensor<f32, m>,
    dw: &mut Tensor<f32, v, k>,
) {
    let x = x.partition_view([BM, BK]);
    let w = w.partition_view([BV, BK]);
    let labels = labels.partition_view([BM]);
    let lse = lse.partition_view([BM]);
    let mut dw = dw.partition_view_mut([BV, BK]).spanning([1]);
    let [j, _] = dw.index();
    for p in 0..x.tiles(1) {
        dw.at([p]).store_masked(Tile::zeros([BV, BK]));
    }
    for i in 0..x.tiles(0) {
        let mut logits = Tile::zeros([BM, BV]);
        for p in 0..x.tiles(1) {
            logits = mma(x.load_masked([i, p]), w.load_masked([j, p]).t(), logits);
        }
        let at = Tile::<i32, 2>::iota([1, BV], 1) + (j * BV) as i32;
        let label = labels.load_masked_or(-1, [i]).unsqueeze(1);
        // Rows beyond the last have x = 0.
        let likely = exp(logits - lse.load_masked([i]).unsqueeze(1));
        let derivative = (likely - select(at == label, 1.0, 0.0)).cast::<bf16>().t();
        for p in 0..x.tiles(1) {
            let sum = dw.at([p]).load_masked();
            dw.at([p]).store_masked(mma(derivative, x.load_masked([i, p]), sum));
        }
    }
}

#[test]
fn gradients_are_added_up_in_the_output() {
    let (m, v, k) = (40, 70, 36);
    let x = numbers::<bf16>(m * k, 1);
    let w = numbers::<bf16>(v * k, 2);
    let labels: Vec<i32> = (0..m).map(|i| (i * 29 % v) as i32).collect();
    let (mut sums, mut dw) = (vec![], vec![0.0; v * k]);
    for (x, &label) in x.chunks(k).zip(&labels) {
        let dot = |w: &[bf16]| x.iter().zip(w).map(|(x, w)| x.to_f64() * w.to_f64()).sum::<f64>();
        let z: Vec<f64> = w.chunks(k).map(dot).collect();
        let lse = z.iter().map(|z| z.exp()).sum::<f64>().ln();
        sums.push(lse as f32);
        for (j, row) in dw.chunks_mut(k).enumerate() {
            let derivative = (z[j] - lse).exp() - if j == label as usize { 1.0 } else { 0.0 };
            row.iter_mut().zip(x).for_each(|(sum, x)| *sum += derivative * x.to_f64());
        }
    }
    check_kernel!(gradient_of_a_layer<BM = 32, BV = 32, BK = 16>(
        input x: (x, [m, k]), input w: (w, [v, k]), input labels: (labels, [m]), input lse: (sums, [m]),
        output dw: (vec![1f32; v * k], [v, k] => dw, 4e-3),
    ));
}

/// A draw from the K likeliest words, and of these from the fewest that are `share` of them together.
#[tile_kernel]
fn draw<const V: usize, const K: usize>(
    logits: &Tensor<f32, m, v>,
    temperature: f32,
    share: f32,
    seed: u64,
    word: &mut Tensor<i32, m>,
) {
    let mut word = word.partition_view_mut([1]);
    let [i] = word.index();
    let row = logits.partition_view([1, V]).load_masked_or(f32::NEG_INFINITY, [i, 0]);
    let (values, places) = (row / temperature).top_k(K, 1);
    let weights = exp(values - values.max(1));
    let likely = weights / weights.sum(1);
    let kept = likely.cumsum_exclusive(1) < share;
    let likely = select(kept, likely, 0.0);
    let drawn = Tile::random_uniform([1, 1], seed, i as u64) * likely.sum(1);
    let passed = ((likely.cumsum(1) <= drawn) & kept).cast::<i32>().sum(1);
    let position = min(passed, kept.cast::<i32>().sum(1) - 1);
    word.store(places.gather(position, 1).reshape([1]));
}

#[test]
fn words_are_drawn_from_the_likeliest() {
    let (m, v, k) = (24, 100, 8);
    let logits: Vec<f32> = numbers::<f32>(m * v, 7).iter().map(|x| x * 4.0).collect();
    let mut words = vec![];
    for (i, row) in logits.chunks(v).enumerate() {
        let mut order: Vec<usize> = (0..v).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        let weight = |&j: &usize| f64::from((row[j] - row[order[0]]) / 0.75).exp();
        let weights: Vec<f64> = order[..k].iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        let before = |n: usize| weights[..n].iter().sum::<f64>() / total;
        let kept = (0..k).filter(|&n| before(n) < 0.8).count();
        let uniform = Tile::<f32, 1>::random_uniform([1], 42, i as u64).item();
        let drawn = f64::from(uniform) * before(kept);
        words.push(order[(0..kept).rfind(|&n| before(n) <= drawn).expect("the first begins at 0")] as i32);
    }
    check_kernel!(draw<V = 128, K = 8>(
        input logits: (logits, [m, v]), number temperature: (0.75f32), number share: (0.8f32), number seed: (42u64),
        output word: (vec![0; m], [m] => words, 0.0),
    ));
}

/// The loss of a sequence without an alignment (CTC): all ways to say the labels, with blanks (0) between them, are a line of
/// `2·L + 1` states, whose probabilities go on step by step.
#[tile_kernel(where(l <= L))]
fn alignments<const L: usize>(
    log_likely: &Tensor<f32, t, n, c>,
    labels: &Tensor<i32, n, l>,
    steps: &Tensor<i32, n>,
    lengths: &Tensor<i32, n>,
    loss: &mut Tensor<f32, n>,
) {
    const S: usize = 2 * L + 1;
    let mut loss = loss.partition_view_mut([1]);
    let [i] = loss.index();
    let state = Tile::<i32, 1>::iota([S], 0);
    let label = select(state % 2 == 1, labels.gather((i, state / 2)), 0);
    // Between two labels that differ a blank may be left out.
    let skips = (state % 2 == 1) & (state >= 2) & (label != label.shift(0, 2, 0));
    let last = lengths.gather([i]) * 2;
    let mut seen = select(state < 2, log_likely.gather((0, i, label)), f32::NEG_INFINITY);
    for step in 1..steps.gather([i]) {
        let one = seen.shift(0, 1, f32::NEG_INFINITY);
        let two = select(skips, seen.shift(0, 2, f32::NEG_INFINITY), f32::NEG_INFINITY);
        // Where nothing was seen all three are −∞.
        let most = max(max(max(seen, one), two), f32::MIN);
        let sum = exp(seen - most) + exp(one - most) + exp(two - most);
        seen = most + log(sum) + log_likely.gather((step, i, label));
    }
    let ends = select((state == last) | (state == last - 1), seen, f32::NEG_INFINITY);
    let most = ends.max(0);
    loss.store(-(most + log(exp(ends - most).sum(0))));
}

#[test]
fn all_alignments_of_labels_count() {
    let [t, n, c, l] = [9usize, 4, 7, 5];
    let row = |x: &[f32]| {
        let total = x.iter().map(|&x| f64::from(x * 3.0).exp()).sum::<f64>().ln();
        x.iter().map(|&x| (f64::from(x * 3.0) - total) as f32).collect::<Vec<_>>()
    };
    let log_likely: Vec<f32> = numbers::<f32>(t * n * c, 8).chunks(c).flat_map(row).collect();
    let labels = [1, 2, 2, 3, 1, 4, 4, 4, 0, 0, 6, 0, 0, 0, 0, 5, 1, 5, 1, 5];
    let (steps, lengths) = ([9, 7, 8, 9], [5, 3, 1, 5]);
    // What every sequence of `t` symbols says, without repetitions and then without blanks, is found by going through the
    // positions in the labels: `likely[k][s]` is of those that have said `k` labels and end in the symbol `s`.
    let expected = |i: usize| {
        let said: Vec<usize> = labels[i * l..][..lengths[i]].iter().map(|&label| label as usize).collect();
        let mut likely = vec![vec![0.0; c]; said.len() + 1];
        likely[0][0] = 1.0;
        for step in 0..steps[i] {
            let mut next = vec![vec![0.0; c]; said.len() + 1];
            for (k, symbols) in likely.iter().enumerate() {
                for (s, &before) in symbols.iter().enumerate() {
                    for symbol in 0..c {
                        let says = symbol != 0 && symbol != s;
                        if says && said.get(k) != Some(&symbol) {
                            continue;
                        }
                        let p = f64::from(log_likely[(step * n + i) * c + symbol]).exp();
                        next[k + usize::from(says)][symbol] += before * p;
                    }
                }
            }
            likely = next;
        }
        -likely[said.len()].iter().sum::<f64>().ln()
    };
    let lines: Vec<f64> = (0..n).map(expected).collect();
    check_kernel!(alignments<L = 6>(
        input log_likely: (log_likely, [t, n, c]), input labels: (labels, [n, l]),
        input steps: (steps.map(|steps| steps as i32), [n]), input lengths: (lengths.map(|length| length as i32), [n]),
        output loss: (vec![0f32; n], [n] => lines, 1e-5),
    ));
}
