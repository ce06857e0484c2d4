//! Best paths: alignments along diagonals, the likeliest states by going back, the best continuations of a search.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// The best score of a part of one string beside a part of another (Smith and Waterman), of many pairs. What a diagonal
/// needs are the two before it, so that it is computed at once: position `i` of the tile is letter `i` of the first string.
#[tile_kernel(where(n <= N))]
fn align<const N: usize>(a: &Tensor<u8, pairs, n>, b: &Tensor<u8, pairs, m>, best: &mut Tensor<i32, pairs>) {
    let mut best = best.partition_view_mut([1]);
    let [pair] = best.index();
    let a = a.partition_view([1, N]).load_masked([pair, 0]).squeeze(0);
    let i = Tile::<i32, 1>::iota([N], 0);
    let mut before = Tile::<i32, 1>::zeros([N]);
    let (mut last, mut highest) = (before, before);
    for diagonal in 0..n + m - 1 {
        let j = diagonal as i32 - i;
        let is_pair = (j >= 0) & (j < m as i32) & (i < n as i32);
        let both = before.shift(0, 1, 0) + select(a == b.gather((pair, j)), 3, -3);
        let gap = max(last, last.shift(0, 1, 0)) - 2;
        (before, last) = (last, select(is_pair, max(max(both, gap), 0), 0));
        highest = max(highest, last);
    }
    best.store(highest.max(0));
}

#[test]
fn strings_are_aligned_along_diagonals() {
    let (pairs, n, m) = (3, 21, 17);
    let a: Vec<u8> = (0..pairs * n).map(|i| b"ACGT"[(i * i + i / 3) % 4]).collect();
    let b: Vec<u8> = (0..pairs * m).map(|i| b"ACGT"[(i * 5 + i * i / 7) % 4]).collect();
    let score = |pair: usize| {
        let mut scores = vec![vec![0; m + 1]; n + 1];
        for (i, &left) in a[pair * n..][..n].iter().enumerate() {
            for (j, &right) in b[pair * m..][..m].iter().enumerate() {
                let both = scores[i][j] + if left == right { 3 } else { -3 };
                scores[i + 1][j + 1] = both.max(scores[i][j + 1] - 2).max(scores[i + 1][j] - 2).max(0);
            }
        }
        scores.concat().into_iter().max().unwrap_or(0)
    };
    let expected: Vec<i32> = (0..pairs).map(score).collect();
    check_kernel!(align<N = 32>(
        input a: (a, [pairs, n]),
        input b: (b, [pairs, m]),
        output best: ([0; 3], [pairs] => expected, 0.0),
    ));
}

/// The likeliest states of a sequence (Viterbi): forwards where each state's best path comes from, then back along it. A
/// block reads what it wrote.
#[tile_kernel]
fn likeliest<const S: usize>(
    emissions: &Tensor<f32, b, t, S>,
    transitions: &Tensor<f32, S, S>,
    from: &mut Tensor<i32, b, t, S>,
    path: &mut Tensor<i32, b, t, 1>,
) {
    let emissions = emissions.partition_view([1, 1, S]);
    let transitions = transitions.partition_view([S, S]).load([0, 0]);
    let mut from = from.partition_view_mut([1, 1, S]).spanning([1]);
    let mut path = path.partition_view_mut([1, 1, 1]).spanning([1]);
    let [b, ..] = from.index();
    let mut score = emissions.load_masked([b, 0, 0]).reshape([S, 1]);
    for i in 1..t {
        let paths = score + transitions;
        from.at([i]).store(paths.argmax(0).unsqueeze(0));
        score = paths.max(0).t() + emissions.load([b, i, 0]).reshape([S, 1]);
    }
    let mut state = score.argmax(0).item();
    for i in (1..t).rev() {
        path.at([i]).store(Tile::full([1, 1, 1], state));
        state = from.at([i]).load().take(state as usize, 2).item();
    }
    path.at([0]).store_masked(Tile::full([1, 1, 1], state));
}

#[test]
fn states_are_found_by_going_back() {
    let (b, t, s) = (2, 9, 8);
    let (emissions, transitions) = (numbers::<f32>(b * t * s, 5), numbers::<f32>(s * s, 6));
    let first_largest =
        |scores: &[f32]| (0..s).fold(0, |best, i| if scores[i] > scores[best] { i } else { best });
    let (mut from, mut path) = (vec![0; b * t * s], vec![0; b * t]);
    for b in 0..b {
        let mut score = emissions[b * t * s..][..s].to_vec();
        for i in 1..t {
            let at = (b * t + i) * s;
            let into = |state: usize| -> Vec<f32> {
                (0..s).map(|q| score[q] + transitions[q * s + state]).collect()
            };
            let best: Vec<usize> = (0..s).map(|state| first_largest(&into(state))).collect();
            let next = (0..s).map(|state| into(state)[best[state]] + emissions[at + state]).collect();
            from[at..][..s].iter_mut().zip(&best).for_each(|(from, &best)| *from = best as i32);
            score = next;
        }
        let mut state = first_largest(&score);
        for i in (0..t).rev() {
            path[b * t + i] = state as i32;
            state = from[(b * t + i) * s + state] as usize;
        }
    }
    check_kernel!(likeliest<S = 8>(
        input emissions: (emissions, [b, t, s]),
        input transitions: (transitions, [s, s]),
        output from: (vec![0; from.len()], [b, t, s] => from, 0.0),
        output path: (vec![0; path.len()], [b, t, 1] => path, 0.0),
    ));
}

/// A step of a search with K beams: the best of their continuations by one of any number of words. The best of the tiles so
/// far go on with those of the next tile.
#[tile_kernel]
fn continued<const K: usize, const V: usize>(
    logits: &Tensor<f32, b, K, v>,
    scores: &Tensor<f32, b, K>,
    best: &mut Tensor<f32, b, K>,
    beams: &mut Tensor<i32, b, K>,
    words: &mut Tensor<i32, b, K>,
) {
    let logits = logits.partition_view([1, K, V]);
    let mut best = best.partition_view_mut([1, K]);
    let mut beams = beams.partition_view_mut([1, K]);
    let mut words = words.partition_view_mut([1, K]);
    let [b, _] = best.index();
    let score = scores.partition_view([1, K]).load([b, 0]).t();
    let beam = Tile::<i32, 2>::iota([K, V], 0);
    let mut values = Tile::full([K], f32::NEG_INFINITY);
    let mut places = Tile::<i32, 1>::zeros([K]);
    for j in 0..logits.tiles(2) {
        let sums = logits.load_masked_or(f32::NEG_INFINITY, [b, 0, j]).squeeze(0) + score;
        let (of_tile, at) = sums.reshape([K * V]).top_k(K, 0);
        let word = Tile::<i32, 2>::iota([K, V], 1) + (j * V) as i32;
        let place = (beam * v as i32 + word).reshape([K * V]).gather(at, 0);
        let (merged, from) = cat([values, of_tile], 0).top_k(K, 0);
        places = cat([places, place], 0).gather(from, 0);
        values = merged;
    }
    best.store(values.unsqueeze(0));
    beams.store((places / v as i32).unsqueeze(0));
    words.store((places % v as i32).unsqueeze(0));
}

#[test]
fn beams_go_on_with_the_best_words() {
    let (b, k, v) = (3, 4, 41);
    let spread = |(i, x): (usize, &f32)| x + i as f32 / 4096.0;
    let logits: Vec<f32> = numbers::<f32>(b * k * v, 3).iter().enumerate().map(spread).collect();
    let scores = numbers::<f32>(b * k, 8);
    let (mut best, mut beams, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for b in 0..b {
        let sum = |at: usize| (logits[b * k * v + at] + scores[b * k + at / v], at);
        let mut sums: Vec<(f32, usize)> = (0..k * v).map(sum).collect();
        sums.sort_by(|one, other| other.0.total_cmp(&one.0));
        for &(sum, at) in &sums[..k] {
            best.push(sum);
            beams.push((at / v) as i32);
            words.push((at % v) as i32);
        }
    }
    check_kernel!(continued<K = 4, V = 16>(
        input logits: (logits, [b, k, v]),
        input scores: (scores, [b, k]),
        output best: ([0f32; 12], [b, k] => best, 0.0),
        output beams: ([0; 12], [b, k] => beams, 0.0),
        output words: ([0; 12], [b, k] => words, 0.0),
    ));
}
