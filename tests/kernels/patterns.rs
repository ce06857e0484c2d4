//! Patterns that take values apart, what is chosen by them, and variables that get their value later.

use super::check_exact;
use tile::prelude::*;

/// What is left of a value, and names for the whole of one.
#[tile_kernel]
fn parts<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let [first, middle @ .., last] = [t, t * 2.0, t * 3.0, t * 4.0];
    let (.., factor) = (t, 1, 0.5);
    let pair @ (a, _) = (first + last, factor);
    let f = |(left, ..): (Tile<f32, 1>, f32)| left - 1.0;
    y.store_masked(f((a, 0.0)) + middle[0] * pair.1 + middle[middle.len() - 1]);
}

#[test]
fn a_pattern_names_some_parts_of_a_value() {
    let x = [1.0f32, -2.0, 0.5, 3.0, 7.0];
    let expected = x.map(|x| (5.0 * x - 1.0) + x + 3.0 * x);
    check_exact!(parts<B = 2>(x: x, [5]) -> f32, [5] => expected);
}

#[derive(TileStruct)]
struct Step {
    kind: i32,
    by: f32,
}

/// Sums and their count.
#[derive(TileStruct)]
struct Sums(Tile<f32, 1>, i32);

/// Tuple structs carried through loops, and structs, tuples and arrays that `match` takes apart.
#[tile_kernel]
fn chosen<const B: usize>(kinds: &Tensor<i32, 6>, x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    /// A struct of the kernel's own.
    #[derive(Clone, Copy)]
    struct Count {
        ones: i32,
    }
    let kinds = kinds.partition_view([1]);
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut sums = Sums(x.load_masked(y.index()), 0);
    let mut count = Count { ones: 0 };
    for p in 0..6 {
        let step = Step { kind: kinds.load([p]).item(), by: p as f32 };
        count.ones +=
            if matches!(Step { kind: step.kind, by: 0.0 }, Step { kind: 1 | 7, .. }) { 1 } else { 0 };
        let Sums(before, _) = sums;
        sums.0 = match step {
            Step { kind: 0, .. } => before,
            Step { kind: 1..=2, by } if by > 1.5 => before + by,
            Step { kind: kind @ (1 | 3), .. } => before * kind as f32,
            Step { .. } => before - 1.0,
        };
        sums.1 += match [step.kind, 3] {
            [0, _] => 100,
            [a, .., b] if a == b => 10,
            [..] => 1,
        };
    }
    let Sums(sum, number) = sums;
    y.store_masked(sum + (number + 1000 * count.ones) as f32);
}

#[test]
fn match_takes_values_apart() {
    let kinds = [1, 0, 2, 7, 3, 1];
    let x = [1.0f32, -2.0, 0.5];
    let expected = x.map(|x| {
        let sum = kinds.iter().enumerate().fold(x, |before, (p, &kind)| match kind {
            0 => before,
            1 | 2 if p > 1 => before + p as f32,
            1..=3 => before * kind as f32,
            _ => before - 1.0,
        });
        sum + (1 + 100 + 1 + 1 + 10 + 1 + 3000) as f32
    });
    check_exact!(chosen<B = 2>(kinds: kinds, [6]; x: x, [3]) -> f32, [3] => expected);
}

/// Variables that are declared first, in branches that may leave and in loops.
#[tile_kernel]
fn later<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let t = x.load_masked([i]);
    let factor;
    let offset: i64;
    let zeros: Tile<f32, 1>;
    if i == 0 {
        (factor, offset) = (t * 2.0, 3);
        zeros = Tile::zeros([B]);
    } else if i > 1 {
        return;
    } else {
        factor = t;
        offset = -1;
        zeros = t * 0.0;
    }
    let mut last;
    let mut sum = zeros;
    for p in 0..3 {
        last = factor + p as f32;
        sum += last;
    }
    let found;
    let mut k = 0;
    loop {
        k += 1;
        if k > i {
            found = sum + offset as f32;
            break;
        }
    }
    y.store_masked(found);
}

#[test]
fn a_variable_gets_its_value_later() {
    let x = [1.0f32, -2.0, 0.5, 3.0, 7.0];
    let expected = [6.0 + 3.0 + 3.0, -12.0 + 3.0 + 3.0, 1.5 + 3.0 - 1.0, 9.0 + 3.0 - 1.0, 0.0f32];
    check_exact!(later<B = 2>(x: x, [5]) -> f32, [5] => expected);
}

/// A pattern is asked of a value that may leave the kernel.
#[tile_kernel]
fn left_in_a_value<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let k = x.load_masked(y.index()).sum(0).item();
    let 0..=5 = (if k > 3 {
        return;
    } else {
        k
    }) else {
        return;
    };
    y.store_masked(Tile::full([B], 7));
}

#[test]
fn nothing_follows_a_value_that_has_left() {
    check_exact!(left_in_a_value<B = 1>(x: [1, 9, -2, 4, 3], [5]) -> i32, [5] => [7, 0, 0, 0, 7]);
}

/// Ranges that are asked whether they contain a number, of its own arithmetic.
#[tile_kernel]
fn ranges<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let t = x.load_masked([i]);
    let k = t.sum(0).item();
    let inside = (1..3).contains(&i) || (..=-5).contains(&k) || (7..).contains(&(i + 3));
    // It wraps, as everywhere in a kernel.
    let wrapped = matches!(k + i32::MAX, i32::MIN..=-1 if i < 5);
    let ones = if inside { 1 } else { 0 };
    y.store_masked(Tile::full([B], ones + if wrapped { 10 } else { 0 }));
}

#[test]
fn ranges_contain_numbers() {
    let x = [1, -1, 3, 0, -5, 9];
    let expected = [10, 1, 11, 0, 1, 1];
    check_exact!(ranges<B = 1>(x: x, [6]) -> i32, [6] => expected);
}

/// Names that alternatives bind, of which the first that fits says what they are, with its guard where there is one.
#[tile_kernel]
fn alternatives<const B: usize>(pairs: &Tensor<i32, 5, 2>, x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let mut sum = 0;
    for p in 0..5 {
        let (a, b) = (pairs.gather([p, 0]), pairs.gather([p, 1]));
        sum += match (a, b) {
            (1, other) | (other, 1) => other,
            (v, _) | (_, v) if v > 6 => 10 * v,
            (v, 4 | 5) | (4, v) => 100 * v,
            (_, v) => 1000 * v,
        };
        if let (7, v) | (v, 7) = (a, b) {
            sum -= v;
        }
        let ([2, v] | [v, 2], true): ([i32; 2], bool) = ([a, b], a < b) else { continue };
        sum += 10_000 * v;
    }
    let (first, second) = match (pairs.gather([0, 0]), (t, t * 2.0)) {
        (2, (u, v)) | (_, (v, u)) => (u, v),
    };
    y.store_masked(first - second + sum as f32);
}

#[test]
fn the_alternative_that_fits_says_what_a_name_is() {
    let pairs = [[2, 1], [1, 3], [5, 7], [2, 4], [4, 3]];
    let x = [1.0f32, -2.0, 0.5];
    let sum = 2 + 3 + (70 - 5) + (200 + 10_000 * 4) + 300;
    let expected = x.map(|x| x - 2.0 * x + sum as f32);
    check_exact!(alternatives<B = 2>(pairs: pairs.concat(), [5, 2]; x: x, [3]) -> f32, [3] => expected);
}

/// Arms that are known not to be taken: rustc sees them all the same.
#[tile_kernel]
fn by_mode<const B: usize>(x: &Tensor<f32, n>, z: &Tensor<bf16, n>, y: &mut Tensor<f32, n>) {
    const MODE: usize = 1;
    let x = x.partition_view([B]);
    let z = z.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let halves = z.load_masked(y.index());
    let w = 0.1;
    let mut sum = match MODE {
        0 => select(t < 0.0, w, t),
        1 if n > 2 => t * 2.0,
        2 => (halves * 0.5).cast::<f32>(),
        other => match other {
            1 => select(t > 1.0, 0.0, t),
            _ => select(t < 0.5, t, x.load([B + 7])) + t.item() + missing_shape(t),
        },
    };
    let (1, part) = (MODE, t * 3.0) else {
        tile_assert!(t < 0.0);
        return;
    };
    let parts = [part];
    for i in 1..parts.len() {
        sum = select(parts[i - 1] < parts[0], sum, 1.0);
    }
    y.store_masked(sum + parts[0] + if w * 3.0 > 0.3 { 1.0 } else { 0.0 });
}

/// What isn't taken is exempt from checks, here from that of the shape.
#[tile_fn]
fn missing_shape(t: Tile<f32, 1>) -> f32 {
    t.reshape([1]).item()
}

#[test]
fn arms_that_are_not_taken_are_rusts_to_check() {
    let (x, z) = ([1.0f32, -2.0, 0.25], [1.0, 2.0, 3.0].map(bf16::from_f32));
    check_exact!(by_mode<B = 2>(x: x, [3]; z: z, [3]) -> f32, [3] => x.map(|x| x * 2.0 + x * 3.0));
    let (x, z) = ([1.5f32, -2.0], [1.0, 2.0].map(bf16::from_f32));
    check_exact!(by_mode<B = 2>(x: x, [2]; z: z, [2]) -> f32, [2] => [0.0 + 4.5, -2.0 - 6.0]);
}

/// Several variables of one `let` that get their values later, of types that it says or that the values have.
#[tile_kernel]
fn several_later(x: &Tensor<f32, n>, flag: bool, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    let t = x.partition_view([4]).load_masked(y.index());
    let (mut a, b);
    let (c, (mut d, _)): (f32, (i32, f32));
    let [e, f]: [f32; 2];
    if flag {
        (a, b) = (t, t * 2.0);
        c = 1.0;
        d = 3;
    } else {
        a = t * 3.0;
        b = doubled_later(t);
        c = 2.0;
        d = 4;
    }
    for _ in 0..3 {
        a += b;
        d += 1;
    }
    (e, f) = (1.5, 2.0);
    y.store_masked(a * c + d as f32 + e * f);
}

#[tile_fn]
fn doubled_later(x: Tile<f32, 1>) -> Tile<f32, 1> {
    let (mut a, b);
    a = x;
    b = x * 0.5;
    for _ in 0..2 {
        a += b;
    }
    a
}

#[test]
fn several_variables_get_their_values_later() {
    let x = [1.0f32, -2.0, 0.5, 3.0, 7.0];
    for (device, label) in super::devices() {
        let tensor = Tensor::from_slice(&device, &x, [5]).unwrap();
        for flag in [true, false] {
            let mut y = Tensor::zeros(&device, [5]).unwrap();
            several_later(&tensor, flag, &mut y).launch().unwrap();
            let expected = x.map(|x| if flag { 7.0 * x + 6.0 + 3.0 } else { 2.0 * (9.0 * x) + 7.0 + 3.0 });
            assert_eq!(y.to_vec().unwrap(), expected, "{label} {flag}");
        }
    }
}
