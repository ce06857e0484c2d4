//! Recurrences along time with a matrix as their state: the delta rule, step by step and in chunks, Mamba, 1 and 2,
//! and filters of second order.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// Every step the state decays, and what it has for the step's key is corrected towards the step's value.
#[tile_kernel]
fn gated_delta<const K: usize, const V: usize>(
    q: &Tensor<f32, b, t, h, K>,
    k: &Tensor<f32, b, t, h, K>,
    v: &Tensor<f32, b, t, h, n>,
    gate: &Tensor<f32, b, t, h>,
    beta: &Tensor<f32, b, t, h>,
    y: &mut Tensor<f32, b, t, h, n>,
    last: &mut Tensor<f32, b, h, K, n>,
) {
    let q = q.partition_view([1, 1, 1, K]);
    let k = k.partition_view([1, 1, 1, K]);
    let v = v.partition_view([1, 1, 1, V]);
    let gate = gate.partition_view([1, 1, 1]);
    let beta = beta.partition_view([1, 1, 1]);
    let mut y = y.permute([0, 2, 1, 3]).partition_view_mut([1, 1, 1, V]).spanning([2]);
    let mut last = last.partition_view_mut([1, 1, K, V]);
    let [b, h, _, j] = last.index();
    let mut state = Tile::zeros([K, V]);
    for t in 0..q.tiles(1) {
        let key = k.load([b, t, h, 0]).reshape([K, 1]);
        let value = v.load_masked([b, t, h, j]).reshape([1, V]);
        state *= exp(gate.load([b, t, h]).item());
        let found = (state * key).sum(0);
        state += key * ((value - found) * beta.load([b, t, h]).item());
        let query = q.load([b, t, h, 0]).reshape([K, 1]);
        y.at([t]).store_masked((state * query).sum(0).reshape([1, 1, 1, V]));
    }
    last.store_masked(state.reshape([1, 1, K, V]));
}

/// The rule in plain loops, for rows of the arguments: those of one head, step by step.
struct Rule<'a> {
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    gate: &'a [f32],
    beta: &'a [f32],
    /// Of keys and of values.
    widths: [usize; 2],
}

impl Rule<'_> {
    /// Writes the results, and gives the last state.
    fn run(&self, rows: impl Iterator<Item = usize>, y: &mut [f64]) -> Vec<f64> {
        let [wide, n] = self.widths;
        let mut state = vec![0f64; wide * n];
        for row in rows {
            let (q, k) = (&self.q[row * wide..][..wide], &self.k[row * wide..][..wide]);
            state.iter_mut().for_each(|x| *x *= f64::from(self.gate[row]).exp());
            for c in 0..n {
                let column = |state: &[f64], by: &[f32]| -> f64 {
                    (0..wide).map(|r| state[r * n + c] * f64::from(by[r])).sum()
                };
                let change = (f64::from(self.v[row * n + c]) - column(&state, k)) * f64::from(self.beta[row]);
                (0..wide).for_each(|r| state[r * n + c] += f64::from(k[r]) * change);
                y[row * n + c] = column(&state, q);
            }
        }
        state
    }
}

#[test]
fn a_state_is_corrected_step_by_step() {
    let (b, t, h, wide, n) = (2, 9, 2, 16, 20);
    let rows = b * t * h;
    let (q, v) = (numbers::<f32>(rows * wide, 1), numbers::<f32>(rows * n, 3));
    let k: Vec<f32> = numbers::<f32>(rows * wide, 2).iter().map(|x| x / 4.0).collect();
    let gate: Vec<f32> = numbers::<f32>(rows, 4).iter().map(|x| -x.abs()).collect();
    let beta: Vec<f32> = numbers::<f32>(rows, 5).iter().map(|x| x.abs()).collect();
    let rule = Rule { q: &q, k: &k, v: &v, gate: &gate, beta: &beta, widths: [wide, n] };
    let (mut y, mut last) = (vec![0.0; rows * n], vec![]);
    for i in 0..b * h {
        last.extend(rule.run((0..t).map(|step| (i / h * t + step) * h + i % h), &mut y));
    }
    check_kernel!(gated_delta<K = 16, V = 16>(
        input q: (q, [b, t, h, wide]), input k: (k, [b, t, h, wide]), input v: (v, [b, t, h, n]),
        input gate: (gate, [b, t, h]), input beta: (beta, [b, t, h]),
        output y: (vec![0f32; y.len()], [b, t, h, n] => y, 1e-5),
        output last: (vec![0f32; last.len()], [b, h, wide, n] => last, 1e-5),
    ));
}

/// The rule without decay, L steps at once: what the steps of a chunk correct in each other is a triangular system, whose
/// inverse makes products of the rest.
#[tile_kernel]
fn chunked_delta<const L: usize, const K: usize, const V: usize>(
    q: &Tensor<f32, h, t, K>,
    k: &Tensor<f32, h, t, K>,
    v: &Tensor<f32, h, t, V>,
    beta: &Tensor<f32, h, t>,
    y: &mut Tensor<f32, h, t, V>,
) {
    let q = q.partition_view([1, L, K]);
    let k = k.partition_view([1, L, K]);
    let v = v.partition_view([1, L, V]);
    let beta = beta.partition_view([1, L]);
    let mut y = y.partition_view_mut([1, L, V]).spanning([1]);
    let [h, _, _] = y.index();
    let rows = Tile::<i32, 2>::iota([L, 1], 0);
    let columns = Tile::<i32, 2>::iota([1, L], 1);
    let mut state = Tile::zeros([K, V]);
    for c in 0..k.tiles(1) {
        let keys = k.load_masked([h, c, 0]).reshape([L, K]);
        let queries = q.load_masked([h, c, 0]).reshape([L, K]);
        let strengths = beta.load_masked([h, c]).reshape([L, 1]);
        let weighted = keys * strengths;
        let earlier = select(columns < rows, mma(weighted, keys.t(), Tile::zeros([L, L])), 0.0);
        let mut inverse = Tile::eye([L, L]);
        for r in 1..L {
            let change = (earlier.take(r, 0).t() * inverse).sum(0);
            inverse = select(rows == r as i32, inverse - change, inverse);
        }
        let values = v.load_masked([h, c, 0]).reshape([L, V]) * strengths;
        let seen = mma(mma(inverse, weighted, Tile::zeros([L, K])), state, Tile::zeros([L, V]));
        let fresh = mma(inverse, values, Tile::zeros([L, V])) - seen;
        let scores = select(columns <= rows, mma(queries, keys.t(), Tile::zeros([L, L])), 0.0);
        let result = mma(scores, fresh, mma(queries, state, Tile::zeros([L, V])));
        y.at([c]).store_masked(result.reshape([1, L, V]));
        state = mma(keys.t(), fresh, state);
    }
}

#[test]
fn a_state_is_corrected_by_chunks() {
    let (h, t, wide, n) = (2, 21, 16, 16);
    let rows = h * t;
    let (q, v) = (numbers::<f32>(rows * wide, 1), numbers::<f32>(rows * n, 3));
    let k: Vec<f32> = numbers::<f32>(rows * wide, 2).iter().map(|x| x / 4.0).collect();
    let beta: Vec<f32> = numbers::<f32>(rows, 4).iter().map(|x| x.abs()).collect();
    let gate = vec![0.0; rows];
    let rule = Rule { q: &q, k: &k, v: &v, gate: &gate, beta: &beta, widths: [wide, n] };
    let mut y = vec![0.0; rows * n];
    for i in 0..h {
        rule.run(i * t..(i + 1) * t, &mut y);
    }
    check_kernel!(chunked_delta<L = 8, K = 16, V = 16>(
        input q: (q, [h, t, wide]), input k: (k, [h, t, wide]), input v: (v, [h, t, n]), input beta: (beta, [h, t]),
        output y: (vec![0f32; y.len()], [h, t, n] => y, 1e-4),
    ));
}

/// Mamba 2: within chunks of L steps a product that is masked and weighted by how far the state has decayed in between,
/// across them the state itself.
#[tile_kernel]
fn chunked_scan<const L: usize, const N: usize, const P: usize>(
    x: &Tensor<f32, t, h, P>,
    steps: &Tensor<f32, t, h>,
    rates: &Tensor<f32, h>,
    b: &Tensor<f32, t, N>,
    c: &Tensor<f32, t, N>,
    y: &mut Tensor<f32, t, h, P>,
) {
    let x = x.partition_view([L, 1, P]);
    let steps = steps.partition_view([L, 1]);
    let b = b.partition_view([L, N]);
    let c = c.partition_view([L, N]);
    let mut y = y.partition_view_mut([L, 1, P]).spanning([0]);
    let [_, h, _] = y.index();
    let rate = rates.partition_view([1]).load([h]).item();
    let from = Tile::<i32, 2>::iota([1, L], 1);
    let to = Tile::<i32, 2>::iota([L, 1], 0);
    let mut state = Tile::zeros([N, P]);
    for i in 0..x.tiles(0) {
        let step = steps.load_masked([i, h]);
        let decay = (step * rate).cumsum(0);
        let inputs = x.load_masked([i, h, 0]).reshape([L, P]) * step;
        let (keys, queries) = (b.load_masked([i, 0]), c.load_masked([i, 0]));
        let scores = mma(queries, keys.t(), Tile::zeros([L, L]));
        let within = select(from <= to, exp(decay - decay.t()) * scores, 0.0);
        let carried = mma(queries * exp(decay), state, Tile::zeros([L, P]));
        y.at([i]).store_masked(mma(within, inputs, carried).reshape([L, 1, P]));
        let end = decay.extract([L - 1, 0], [1, 1]);
        state = mma((keys * exp(end - decay)).t(), inputs, state * exp(end));
    }
}

#[test]
fn chunks_of_a_scan_are_products() {
    let (t, h, n, p) = (27, 3, 16, 16);
    let (x, b, c) = (numbers::<f32>(t * h * p, 1), numbers::<f32>(t * n, 2), numbers::<f32>(t * n, 3));
    let steps: Vec<f32> = numbers::<f32>(t * h, 4).iter().map(|x| x.abs()).collect();
    let rates = [-0.5f32, -1.0, -0.125];
    let mut y = vec![0.0; t * h * p];
    for line in 0..h * p {
        let mut state = vec![0f64; n];
        for i in 0..t {
            let (head, at) = (i * h + line / p, (i * h + line / p) * p + line % p);
            let decay = f64::from(steps[head] * rates[line / p]).exp();
            for (r, state) in state.iter_mut().enumerate() {
                *state = *state * decay + f64::from(b[i * n + r]) * f64::from(steps[head]) * f64::from(x[at]);
                y[at] += *state * f64::from(c[i * n + r]);
            }
        }
    }
    check_kernel!(chunked_scan<L = 8, N = 16, P = 16>(
        input x: (x, [t, h, p]), input steps: (steps, [t, h]), input rates: (rates, [h]), input b: (b, [t, n]),
        input c: (c, [t, n]),
        output y: (vec![0f32; y.len()], [t, h, p] => y, 1e-4),
    ));
}

/// Mamba's selective scan. Within a chunk a scan composes the steps; between chunks the state is carried.
#[tile_kernel]
fn selective_scan<const L: usize, const D: usize, const N: usize>(
    x: &Tensor<f32, b, t, d>,
    delta: &Tensor<f32, b, t, d>,
    a: &Tensor<f32, d, N>,
    keys: &Tensor<f32, b, t, N>,
    queries: &Tensor<f32, b, t, N>,
    y: &mut Tensor<f32, b, t, d>,
    last: &mut Tensor<f32, b, d, N>,
) {
    let x = x.partition_view([1, L, D]);
    let delta = delta.partition_view([1, L, D]);
    let keys = keys.partition_view([1, L, N]);
    let queries = queries.partition_view([1, L, N]);
    let mut y = y.partition_view_mut([1, L, D]).spanning([1]);
    // Cut as y is, with one tile along the states.
    let mut last = last.permute([0, 2, 1]).partition_view_mut([1, N, D]);
    let [b, _, j] = y.index();
    let a = a.partition_view([D, N]).load_masked([j, 0]).unsqueeze(0);
    let time = Tile::<i32, 2>::iota([L, 1], 0);
    let mut state = Tile::zeros([1, D, N]);
    for c in 0..x.tiles(1) {
        let inputs = x.load_masked([b, c, j]).squeeze(0);
        let raw = delta.load_masked([b, c, j]).squeeze(0);
        let softplus = max(raw, 0.0) + ln_1p(exp(-abs(raw)));
        // Steps beyond the end leave the state as it is.
        let inside = time < t as i32 - (c * L) as i32;
        let step = select(inside, softplus, 0.0);
        let decay = exp(step.unsqueeze(2) * a);
        let added = (step * inputs).unsqueeze(2) * keys.load_masked([b, c, 0]).squeeze(0).unsqueeze(1);
        let (decays, states) = scan((decay, added), 0, (1.0, 0.0), |(p, h), (d, i)| (p * d, d * h + i));
        let states = states + decays * state;
        state = states.extract([L - 1, 0, 0], [1, D, N]);
        let out = (states * queries.load_masked([b, c, 0]).squeeze(0).unsqueeze(1)).sum(2).squeeze(2);
        y.at([c]).store_masked(out.unsqueeze(0));
    }
    last.store_masked(state.permute([0, 2, 1]));
}

#[test]
fn chunks_of_a_selective_scan_carry_its_state() {
    let (b, t, d, n) = (2, 11, 6, 4);
    let [x, delta] = [1, 2].map(|seed| numbers::<f32>(b * t * d, seed));
    let [keys, queries] = [3, 4].map(|seed| numbers::<f32>(b * t * n, seed));
    let a: Vec<f32> = numbers::<f32>(d * n, 5).iter().map(|a| -a.abs()).collect();
    let (mut y, mut states) = (vec![0.0f64; b * t * d], vec![0.0f64; b * d * n]);
    for (row, step) in (0..b).flat_map(|row| (0..t).map(move |step| (row, row * t + step))) {
        for channel in 0..d {
            let at = step * d + channel;
            let softplus = f64::from(delta[at]).exp().ln_1p();
            for s in 0..n {
                let state = &mut states[(row * d + channel) * n + s];
                *state *= (softplus * f64::from(a[channel * n + s])).exp();
                *state += softplus * f64::from(x[at]) * f64::from(keys[step * n + s]);
                y[at] += *state * f64::from(queries[step * n + s]);
            }
        }
    }
    check_kernel!(selective_scan<L = 4, D = 4, N = 4>(
        input x: (x, [b, t, d]), input delta: (delta, [b, t, d]), input a: (a, [d, n]),
        input keys: (keys, [b, t, n]), input queries: (queries, [b, t, n]),
        output y: (vec![0f32; b * t * d], [b, t, d] => y, 1e-5),
        output last: (vec![0f32; b * d * n], [b, d, n] => states, 1e-5),
    ));
}

/// Linear recurrences of whole lines, hₖ = dₖ·hₖ₋₁ + xₖ: all threads of a block join steps, of which two make another.
#[tile_kernel]
fn linear_recurrences<const T: usize>(
    decay: &Tensor<f32, m, T>,
    x: &Tensor<f32, m, T>,
    states: &mut Tensor<f32, m, T>,
    last: &mut Tensor<f32, m, 1>,
) {
    let (decay, x) = (decay.partition_view([1, T]), x.partition_view([1, T]));
    let mut states = states.partition_view_mut([1, T]);
    let mut last = last.partition_view_mut([1, 1]);
    let [i, _] = states.index();
    let (decay, x) = (decay.load([i, 0]), x.load([i, 0]));
    let (_, h) = associative_scan((decay, x), 1, (1.0, 0.0), |(d, h), (e, x)| (d * e, e * h + x));
    let (_, end) = associative_reduce((decay, x), 1, (1.0, 0.0), |(d, h), (e, x)| (d * e, e * h + x));
    states.store(h);
    last.store(end);
}

#[test]
fn steps_of_linear_recurrences_are_joined() {
    let (m, t) = (3, 200);
    let decay: Vec<f32> = numbers::<f32>(m * t, 1).into_iter().map(|d| d.abs().min(1.0)).collect();
    let x = numbers::<f32>(m * t, 2);
    let mut states = vec![0f64; m * t];
    for (row, states) in states.chunks_mut(t).enumerate() {
        let mut h = 0.0;
        for (k, state) in states.iter_mut().enumerate() {
            h = f64::from(decay[row * t + k]) * h + f64::from(x[row * t + k]);
            *state = h;
        }
    }
    let last: Vec<f64> = states.chunks(t).map(|states| states[t - 1]).collect();
    check_kernel!(linear_recurrences<T = 200>(
        input decay: (decay, [m, t]), input x: (x, [m, t]),
        output states: (vec![0f32; m * t], [m, t] => states, 1e-5),
        output last: (vec![0f32; m], [m, 1] => last, 1e-5),
    ));
}

/// Filters of second order, a row for each: yₜ = xₜ + a·yₜ₋₁ + b·yₜ₋₂. What several steps make of the last two results is a
/// matrix and a vector, which threads join.
#[tile_kernel]
fn biquads<const B: usize>(
    x: &Tensor<f32, m, B>,
    a: f32,
    b: f32,
    y: &mut Tensor<f32, m, B>,
    last: &mut Tensor<f32, m, 2>,
) {
    let mut y = y.partition_view_mut([1, B]);
    let mut last = last.partition_view_mut([1, 2]);
    let x = x.partition_view([1, B]).load(y.index());
    let (zeros, ones) = (Tile::zeros([1, B]), Tile::ones([1, B]));
    let steps = (zeros + a, zeros + b, ones, zeros, x, zeros);
    let start = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0);
    let (_, _, _, _, results, _) =
        associative_scan(steps, 1, start, |(a, b, c, d, e, f), (g, h, i, j, k, l)| {
            (g * a + h * c, g * b + h * d, i * a + j * c, i * b + j * d, g * e + h * f + k, i * e + j * f + l)
        });
    let (_, _, _, _, now, before) =
        associative_reduce(steps, 1, start, |(a, b, c, d, e, f), (g, h, i, j, k, l)| {
            (g * a + h * c, g * b + h * d, i * a + j * c, i * b + j * d, g * e + h * f + k, i * e + j * f + l)
        });
    y.store(results);
    last.store(cat([now, before], 1));
}

#[test]
fn filters_of_second_order_join_six_numbers() {
    let (m, n, of_last, of_second) = (3, 300, 1.6f32, -0.8f32);
    let x = numbers::<f32>(m * n, 1);
    let mut y = vec![0f64; m * n];
    for (x, y) in x.chunks(n).zip(y.chunks_mut(n)) {
        for t in 0..n {
            let back = |steps: usize| if t < steps { 0.0 } else { y[t - steps] };
            y[t] = f64::from(x[t]) + f64::from(of_last) * back(1) + f64::from(of_second) * back(2);
        }
    }
    let last: Vec<f64> = y.chunks(n).flat_map(|row| [row[n - 1], row[n - 2]]).collect();
    check_kernel!(biquads<B = 300>(
        input x: (x, [m, n]), number a: (of_last), number b: (of_second),
        output y: (vec![0f32; m * n], [m, n] => y, 1e-4),
        output last: (vec![0f32; 2 * m], [m, 2] => last, 1e-4),
    ));
}
