//! Dynamic programs: tables that are filled row by row or along diagonals, of which a block keeps the last one, and the path
//! that comes out of them.

// An array has an element, and kernels read `max`, `min` and `reduce` of its iterators with `unwrap` alone.
#![allow(clippy::unwrap_used)]

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

/// The likeliest states of a hidden Markov model, one block for each sequence: forwards with the best predecessor of every
/// state, then backwards along these.
#[tile_kernel]
fn viterbi<const S: usize>(
    emissions: &Tensor<f32, batch, t, S>,
    transitions: &Tensor<f32, S, S>,
    before: &mut Tensor<i32, batch, t, S>,
    path: &mut Tensor<i32, batch, t, 1>,
) {
    let emissions = emissions.partition_view([1, 1, S]);
    let transitions = transitions.partition_view([S, S]).load([0, 0]);
    let mut before = before.partition_view_mut([1, 1, S]).spanning([1, 2]);
    let mut path = path.partition_view_mut([1, 1, 1]).spanning([1, 2]);
    let [b, ..] = before.index();
    let mut score = emissions.load_masked([b, 0, 0]).reshape([S]);
    for step in 1..t {
        let candidates = score.reshape([S, 1]) + transitions;
        before.at([step, 0]).store_masked(candidates.argmax(0).reshape([1, 1, S]));
        score = candidates.max(0).reshape([S]) + emissions.load_masked([b, step, 0]).reshape([S]);
    }
    let mut state = score.argmax(0).item();
    for step in (0..t).rev() {
        path.at([step, 0]).store(Tile::full([1, 1, 1], state));
        if step > 0 {
            state = before.at([step, 0]).load_masked().reshape([S]).take(state, 0).item();
        }
    }
}

#[test]
fn likeliest_states_are_found_backwards() {
    let (batch, t, s) = (3usize, 7usize, 4usize);
    let (emissions, transitions): (Vec<f32>, Vec<f32>) = (numbers(batch * t * s, 1), numbers(s * s, 2));
    let (mut before, mut path) = (vec![0i32; batch * t * s], vec![0i32; batch * t]);
    for b in 0..batch {
        let emission = |step: usize, state: usize| emissions[(b * t + step) * s + state];
        let mut score: Vec<f32> = (0..s).map(|state| emission(0, state)).collect();
        for step in 1..t {
            let mut next = Vec::new();
            for state in 0..s {
                let candidate = |from: usize| score[from] + transitions[from * s + state];
                let best =
                    (1..s).fold(0, |best, from| if candidate(from) > candidate(best) { from } else { best });
                before[(b * t + step) * s + state] = best as i32;
                next.push(candidate(best) + emission(step, state));
            }
            score = next;
        }
        let mut state = (1..s).fold(0, |best, state| if score[state] > score[best] { state } else { best });
        for step in (0..t).rev() {
            path[b * t + step] = state as i32;
            state = before[(b * t + step) * s + state] as usize;
        }
    }
    check_kernel!(viterbi<S = 4>(
        input emissions: (&emissions, [batch, t, s]),
        input transitions: (&transitions, [s, s]),
        output before: (&vec![0i32; batch * t * s], [batch, t, s] => &before, 0.0),
        output path: (&vec![0i32; batch * t], [batch, t, 1] => &path, 0.0),
    ));
}

/// The distance of two series by dynamic time warping. A diagonal of the table follows from the two before it.
#[tile_kernel]
fn time_warp<const N: usize>(a: &Tensor<f32, m, N>, b: &Tensor<f32, m, N>, cost: &mut Tensor<f32, m, 1>) {
    let mut cost = cost.partition_view_mut([1, 1]);
    let [i, _] = cost.index();
    let a = a.partition_view([1, N]).load([i, 0]);
    let row = Tile::<i32, 2>::iota([1, N], 1);
    let mut before = Tile::full([1, N], f32::INFINITY);
    let mut last = before;
    for diagonal in 0..2 * N - 1 {
        let column = diagonal as i32 - row;
        let above = last.shift(1, 1, f32::INFINITY);
        let corner = if diagonal == 0 {
            select(row == 0, 0.0, f32::INFINITY)
        } else {
            before.shift(1, 1, f32::INFINITY)
        };
        let distance = (a - b.gather((i, column))).abs();
        let inside = (column >= 0) & (column < N as i32);
        before = last;
        last = select(inside, distance + [last, above, corner].iter().min().unwrap(), f32::INFINITY);
    }
    cost.store(last.take(N - 1, 1));
}

#[test]
fn series_are_warped_along_diagonals() {
    let (m, n) = (3usize, 6usize);
    let (a, b): (Vec<f32>, Vec<f32>) = (numbers(m * n, 3), numbers(m * n, 4));
    let costs: Vec<f32> = (0..m)
        .map(|row| {
            let mut table = vec![vec![f32::INFINITY; n + 1]; n + 1];
            table[0][0] = 0.0;
            for (i, j) in (1..=n).flat_map(|i| (1..=n).map(move |j| (i, j))) {
                let least = table[i - 1][j].min(table[i][j - 1]).min(table[i - 1][j - 1]);
                table[i][j] = (a[row * n + i - 1] - b[row * n + j - 1]).abs() + least;
            }
            table[n][n]
        })
        .collect();
    check_kernel!(time_warp<N = 6>(
        input a: (&a, [m, n]),
        input b: (&b, [m, n]),
        output cost: (&vec![0.0f32; m], [m, 1] => &costs, 1e-6),
    ));
}

/// The edit distance of pairs of words. What comes from the left in a row of the table is a running minimum.
#[tile_kernel]
fn edits<const L: usize>(
    a: &Tensor<u8, n, L>,
    b: &Tensor<u8, n, L>,
    lengths: &Tensor<i32, n, 2>,
    distances: &mut Tensor<i32, n>,
) {
    let mut distances = distances.partition_view_mut([1]);
    let [i] = distances.index();
    let word = a.select(0, i).partition_view([L]).load([0]);
    let other = b.partition_view([1, 1]);
    let lengths = lengths.select(0, i).partition_view([2]).load([0]);
    let place = Tile::<i32, 1>::iota([L], 0);
    let mut row = place + 1;
    for j in 0..lengths.take(1, 0).item() {
        let letter = other.load_masked([i, j as usize]).item();
        let replaced = row.shift(0, 1, j) + (word != letter).cast::<i32>();
        let best = min(row + 1, replaced);
        row = min((best - place).cummin(0) + place, place + j + 2);
    }
    let length = lengths.take(0, 0);
    distances.store(select(length == 0, lengths.take(1, 0), row.take(length.item() - 1, 0)));
}

#[test]
fn words_are_edited() {
    let words = [("kitten", "sitting"), ("", "abc"), ("flaw", "lawn"), ("same", "same"), ("abc", "")];
    let (n, length) = (words.len(), 8usize);
    let padded = |word: &str| {
        let mut letters = word.as_bytes().to_vec();
        letters.resize(length, 0);
        letters
    };
    let a: Vec<u8> = words.iter().flat_map(|(a, _)| padded(a)).collect();
    let b: Vec<u8> = words.iter().flat_map(|(_, b)| padded(b)).collect();
    let lengths: Vec<i32> = words.iter().flat_map(|(a, b)| [a.len() as i32, b.len() as i32]).collect();
    check_kernel!(edits<L = 8>(
        input a: (&a, [n, length]),
        input b: (&b, [n, length]),
        input lengths: (&lengths, [n, 2]),
        output distances: (&vec![0i32; n], [n] => &[3, 3, 2, 0, 3], 0.0),
    ));
}
