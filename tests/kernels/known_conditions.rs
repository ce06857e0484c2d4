//! Conditions on constants of a kernel, of which only one side is there.

use super::check_exact;
use super::whole::check_kernel;
use tile::prelude::*;

/// A constant that switches something off, of which the types are decided all the same. `b` is 1.
#[tile_kernel]
fn switched_off(x: &Tensor<u8, 1>, y: &mut Tensor<i32, 1>, log: &mut Tensor<u8, 1>) {
    const LOGS: bool = false;
    let b = x.partition_view([1]).load([0]);
    let mut log = log.partition_view_mut([1]);
    if LOGS {
        log.store(b);
    }
    let k = if LOGS { b.item() } else { 200 };
    y.partition_view_mut([1]).store(Tile::full([1], (k + 200) as i32));
}

#[test]
fn what_a_constant_switches_off_has_its_types_and_outputs() {
    check_kernel!(switched_off<>(
        input x: ([1u8], [1]), output y: (vec![0i32], [1] => [144i32], 0.0), output log: (vec![7u8], [1] => [7u8], 0.0),
    ));
}

/// The third of four, by way of turns that aren't taken.
#[tile_fn]
fn found(parts: [f32; 4], at: usize) -> f32 {
    for i in 0..4 {
        if i == 2 {
            return parts[i] * 10.0;
        }
        if i > 0 && parts[i - 1] > 100.0 {
            return parts[i - 1];
        }
    }
    parts[at]
}

/// Exits, variables and formats that depend on what is known.
#[expect(clippy::needless_late_init, reason = "that each side assigns is the test")]
#[tile_kernel]
fn of_constants(x: &Tensor<f32, 4>, y: &mut Tensor<f32, 6>, z: &mut Tensor<bf16, 2>) {
    const SLOW: bool = false;
    const FAST: bool = true;
    let t = x.partition_view([4]).load([0]);
    let parts = [0, 1, 2, 3].map(|i: usize| t.take(i, 0).item());
    let mut sum = 0.0;
    'outer: for i in 0..4 {
        for j in 0..4 {
            if j == 2 && i == 1 {
                break 'outer;
            }
            if j < i {
                continue 'outer;
            }
            sum += parts[i] * 10.0 + parts[j];
        }
    }
    let mut k = 0;
    let once = loop {
        k += 1;
        if FAST {
            break k * 3;
        }
    };
    let often = loop {
        if FAST && k == 5 {
            break k;
        }
        k += 1;
    };
    let last;
    if SLOW {
        last = parts[0];
    } else {
        last = parts[3];
    }
    let mut count = 0.0;
    while !SLOW && count < 3.0 {
        count += 1.0;
        if !FAST {
            break;
        }
    }
    let of_block = 'a: {
        if FAST {
            break 'a 7.0;
        }
        parts[2]
    };
    let half = if FAST { 0.5 } else { 0.25 };
    z.partition_view_mut([2]).store(t.cast::<bf16>().extract([0], [2]) * half);
    let sums = [sum, found(parts, 1), (once + often * 100) as f32, last, count, of_block];
    y.partition_view_mut([6]).store(cat(sums.map(|sum| Tile::full([1], sum)), 0));
}

#[test]
fn exits_and_variables_follow_from_constants() {
    check_kernel!(of_constants<>(
        input x: ([1f32, 2.0, 3.0, 4.0], [4]),
        output y: (vec![0f32; 6], [6] => [50f32, 30.0, 503.0, 4.0, 3.0, 7.0], 0.0),
        output z: (vec![bf16::from_f32(0.0); 2], [2] => [0.5f32, 1.0], 0.0),
    ));
}

/// A kernel that a constant switches off.
#[tile_kernel]
fn skipped(x: &Tensor<f32, 4>, y: &mut Tensor<f32, 4>) {
    const SKIPS: bool = true;
    let t = x.partition_view([4]).load([0]);
    let mut y = y.partition_view_mut([4]);
    if SKIPS {
        return;
    }
    y.store(t);
}

/// The same by a pattern.
#[tile_kernel]
fn skipped_by_a_pattern(x: &Tensor<f32, 4>, y: &mut Tensor<f32, 4>) {
    const MODE: usize = 0;
    let t = x.partition_view([4]).load([0]);
    let mut y = y.partition_view_mut([4]);
    let (1, twice) = (MODE, t * 2.0) else { return };
    y.store(twice);
}

#[test]
fn what_an_exit_leaves_out_is_not_taken_for_forgotten() {
    check_exact!(skipped<>(x: [1f32; 4], [4]) -> f32, [4] => [0f32; 4]);
    check_exact!(skipped_by_a_pattern<>(x: [1f32; 4], [4]) -> f32, [4] => [0f32; 4]);
}

/// What isn't taken, deep in what isn't taken.
#[expect(clippy::collapsible_if, reason = "their depth is the test")]
#[tile_kernel]
fn deep(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    const OFF: bool = false;
    let x = x.partition_view([2]).load([0]);
    let mut s = x * 2.0;
    if OFF {
        if !OFF {
            if OFF {
                if OFF {
                    if OFF {
                        if OFF {
                            s = select(s < x, s, x);
                        }
                    }
                }
            }
        }
    }
    y.partition_view_mut([2]).store(s);
}

#[test]
fn what_is_deep_in_what_is_left_out_is_written_for_rustc() {
    check_exact!(deep<>(x: [1.0f32, 2.0], [2]) -> f32, [2] => [2.0f32, 4.0]);
}

/// Right sides and guards that have no value where they aren't asked.
#[tile_kernel]
fn divisors(x: &Tensor<i32, 4>, y: &mut Tensor<i32, 4>) {
    let x = x.partition_view([4]).load([0]);
    let parts = [0, 1, 2, 3].map(|i: usize| x.take(i, 0).item());
    let mut sums = [0; 4];
    for i in 0..4usize {
        if i > 0 && 12 % i == 0 && parts[i - 1] > 1 {
            sums[i] += parts[i - 1];
        }
        if i == 0 || 8 % i == 0 {
            sums[i] += 100;
        }
        sums[i] += match (i > 1, parts[i]) {
            (true, part) if 6 / (i - 1) > 3 => part * 1000,
            (_, part) if i > 0 && 6 / i == 2 && part > 3 => 2000,
            _ => 10,
        };
    }
    y.partition_view_mut([4]).store(cat(sums.map(|sum| Tile::full([1], sum)), 0));
}

#[test]
fn what_isnt_asked_needs_no_value() {
    check_exact!(divisors<>(x: [2, 1, 4, 5], [4]) -> i32, [4] => [110, 112, 4100, 2004]);
}

#[tile_kernels]
mod asserted {
    use tile::prelude::*;

    #[derive(TileStruct)]
    struct Part {
        k: i32,
    }

    /// Methods with the names of those of numbers.
    #[tile_fn]
    impl Part {
        fn abs(self) -> i32 {
            tile_assert!(self.k < 0, "{} isn't negative", self.k);
            -self.k
        }

        fn lt(self, other: i32) -> bool {
            tile_assert!(self.k < 0, "{} isn't negative", self.k);
            self.k < other
        }
    }

    #[tile_kernel]
    pub(super) fn negatives(x: &Tensor<i32, 4>, y: &mut Tensor<i32, 4>) {
        let x = x.partition_view([4]).load([0]);
        let sums = [0, 1, 2, 3].map(|i: usize| {
            let k = x.take(i, 0).item();
            let part = Part { k };
            let large = if k < 0 && part.abs() > 3 { 10 } else { 0 };
            let small = match k {
                ..0 if part.lt(-5) => 100,
                _ => 0,
            };
            let none = if k >= 0 || part.lt(-3) { 1 } else { 0 };
            Tile::full([1], large + small + none)
        });
        y.partition_view_mut([4]).store(cat(sums, 0));
    }
}

#[test]
fn methods_of_structs_are_called_where_rust_calls_them() {
    use asserted::negatives;
    check_exact!(negatives<>(x: [3, -2, -4, -9], [4]) -> i32, [4] => [1, 0, 11, 111]);
}
