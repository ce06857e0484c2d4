//! Functions that kernels call, and closures.

use super::{Case, array, check_exact, check_vectors, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    const SLOPE: f32 = 0.125;
    const TURNS: usize = 2 * 3;
    const STOP: i32 = 7;

    #[derive(TileStruct)]
    pub(super) struct Seen {
        max: Tile<f32, 2>,
        sum: Tile<f32, 2>,
    }

    /// One step of an online softmax.
    #[tile_fn]
    fn softmax_step(seen: Seen, tile: Tile<f32, 2>) -> Seen {
        let highest = max(seen.max, tile.max(1));
        let sum = seen.sum * exp(seen.max - highest) + exp(tile - highest).sum(1);
        Seen { max: highest, sum }
    }

    #[tile_fn]
    fn nothing_seen<const ROWS: usize>() -> Seen {
        Seen { max: Tile::full([ROWS, 1], f32::NEG_INFINITY), sum: Tile::zeros([ROWS, 1]) }
    }

    /// Reads through a view, and calls another function in a loop.
    #[tile_fn]
    fn seen_in_row<const ROWS: usize>(x: &PartitionView<'_, f32, 2>, row: usize) -> Seen {
        let mut seen = nothing_seen::<ROWS>();
        for p in 0..x.tiles(1) {
            seen = softmax_step(seen, x.load_masked_or(f32::NEG_INFINITY, [row, p]));
        }
        seen
    }

    #[tile_kernel]
    pub(super) fn softmax<const ROWS: usize, const COLUMNS: usize>(
        x: &Tensor<f32, m, n>,
        y: &mut Tensor<f32, m, n>,
    ) {
        let x = x.partition_view([ROWS, COLUMNS]);
        let mut y = y.partition_view_mut([ROWS, COLUMNS]);
        let [i, j] = y.index();
        let Seen { max, sum } = seen_in_row::<{ ROWS }>(&x, i);
        y.store_masked(exp(x.load_masked([i, j]) - max) / sum);
    }

    /// Comparisons and arithmetic of tiles of any float.
    #[tile_fn]
    fn leaky<T: Float, const R: usize>(x: Tile<T, R>, slope: T) -> Tile<T, R> {
        select(x < T::of(0.0), x * slope, x)
    }

    #[tile_kernel]
    pub(super) fn leaky_relu<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let tile = x.load_masked(y.index());
        let a = leaky::<f32, 1>(tile, SLOPE);
        y.store_masked(leaky::<_, 1>(a, 2.0) + a);
    }

    /// Several exits, one of them in a loop in a branch.
    #[tile_fn]
    fn collatz(start: i32, limit: usize) -> (i32, usize) {
        let mut value = start;
        let mut turns = 0;
        if value <= 0 {
            return (-1, 0);
        }
        while value != 1 {
            if turns == limit {
                return (value, turns);
            }
            if value % 2 == 0 {
                value /= 2;
            } else {
                value = 3 * value + 1;
            }
            if value == STOP {
                return (STOP * 100, turns);
            }
            turns += 1;
        }
        (1, turns)
    }

    #[tile_kernel]
    pub(super) fn exits<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let start = x.load_masked(y.index()).sum(0).item();
        let (value, turns) = collatz(start, TURNS);
        y.store_masked(Tile::full([B], value * 100 + turns as i32));
    }

    /// The sum of an array of any length, which the call binds.
    #[tile_fn]
    fn sum_of<const N: usize>(parts: [Tile<i32, 1>; N]) -> Tile<i32, 1> {
        const LAST: usize = N - 1;
        parts[0] * (N as i32) + parts[LAST]
    }

    /// Integer scalars wrap in functions too.
    #[tile_fn]
    pub(super) fn wrapped(x: i32) -> i32 {
        let big = x + i32::MAX;
        -big * 2 - 1
    }

    #[tile_kernel]
    pub(super) fn arrays<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let tile = x.load_masked(y.index());
        let all = sum_of::<3>([tile, tile + 1, tile + 2]);
        let more = 1;
        y.store_masked(all + wrapped(more));
    }
}

#[test]
fn a_softmax_of_functions() {
    let (m, n) = (5, 21);
    let x = numbers::<f32>(m * n, 1);
    let row = |row: &[f32]| {
        let sum: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
        row.iter().map(move |&x| f64::from(x).exp() / sum).collect::<Vec<_>>()
    };
    Case {
        ir: kernels::softmax::ir(),
        bindings: &[("ROWS", Binding::Const(2)), ("COLUMNS", Binding::Const(8))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0f32; m * n], &[m, n])],
        output: 1,
        expected: x.chunks(n).flat_map(row).collect(),
        tolerance: 1e-6,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, n])?;
            kernels::softmax::<2, 8>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn functions_are_generic_over_elements() {
    let x = numbers::<f32>(37, 2);
    let leaky = |x: f64, slope: f64| if x < 0.0 { x * slope } else { x };
    let one = |&x: &f32| leaky(leaky(f64::from(x), 0.125), 2.0) + leaky(f64::from(x), 0.125);
    let expected = x.iter().map(one).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(kernels::leaky_relu::ir(), bindings, &x, expected, 1e-6, |x, y| {
        kernels::leaky_relu::<8>(x, y).launch()
    });
}

#[test]
fn a_function_returns_early() {
    let plain = |start: i32| {
        let (mut value, mut turns) = (start, 0);
        if value <= 0 {
            return -100;
        }
        while value != 1 {
            if turns == 6 {
                return value * 100 + turns;
            }
            value = if value % 2 == 0 { value / 2 } else { 3 * value + 1 };
            if value == 7 {
                return 70_000 + turns;
            }
            turns += 1;
        }
        100 + turns
    };
    let x: Vec<i32> = (-2..40).chain([64, 27, 97, 9, 28]).collect();
    let expected: Vec<f64> = x.iter().map(|&x| f64::from(plain(x))).collect();
    for exit in [-100.0, 104.0, 9_406.0, 70_002.0] {
        assert!(expected.contains(&exit), "every exit is taken: {exit} of {expected:?}");
    }
    let bindings = &[("B", Binding::Const(1))];
    check_vectors(kernels::exits::ir(), bindings, &x, expected, 0.0, |x, y| {
        kernels::exits::<1>(x, y).launch()
    });
}

#[test]
fn arrays_and_wrapping_scalars_pass_through_functions() {
    let x: Vec<i32> = (0..19).collect();
    // 1 + MAX is MIN; −MIN is MIN; MIN·2 is 0.
    let expected = x.iter().map(|x| f64::from(x * 3 + x + 2 - 1)).collect();
    assert_eq!(kernels::wrapped(1), -1);
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(kernels::arrays::ir(), bindings, &x, expected, 0.0, |x, y| {
        kernels::arrays::<8>(x, y).launch()
    });
}

/// Closures.
mod closures;

/// Closures as arguments.
mod passing_closures;

/// Names of functions, and their parameters in `<…>`.
mod own_names;

/// A module that is a file.
mod of_a_file;

#[test]
fn a_file_is_a_module_of_kernels() {
    let x: Vec<i32> = (0..19).collect();
    let expected = x.iter().map(|&x| f64::from((x + 40) * 2 + 7)).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(of_a_file::shifted::ir(), bindings, &x, expected, 0.0, |x, y| {
        of_a_file::shifted::<8>(x, y).launch()
    });
    assert_eq!(of_a_file::doubled(Tile::full([1], 4)).to_vec(), [8]);
}

/// Functions of another module, by path and by `use`.
mod elsewhere {
    use tile::prelude::*;

    #[tile_fn]
    pub(super) fn twice(x: Tile<i32, 1>) -> Tile<i32, 1> {
        x + x
    }

    #[tile_kernels]
    pub(super) mod deep {
        use super::super::further::{self, clipped};
        use tile::prelude::*;
        use tile_test_functions::offset;

        const STEP: i32 = 5;

        #[tile_fn]
        fn inner(x: Tile<i32, 1>) -> Tile<i32, 1> {
            select(x > 3, x + STEP, x)
        }

        /// Calls what only its own module sees.
        #[tile_fn]
        pub(crate) fn outer<const N: usize>(x: Tile<i32, 1>) -> Tile<i32, 1> {
            let mut sum = Tile::zeros([N]);
            for _ in 0..2 {
                sum += inner(x);
            }
            sum
        }

        /// Calls functions of a third module, which call functions of others, and of another crate.
        #[tile_fn]
        pub(crate) fn through(x: Tile<i32, 1>) -> Tile<i32, 1> {
            let low = |x: Tile<i32, 1>| clipped(x);
            inner(low(x)) + further::chained(offset(x)) + near(x)
        }

        #[tile_fn]
        fn near(x: Tile<i32, 1>) -> Tile<i32, 1> {
            tile_test_functions::through(x) - STEP
        }
    }
}

/// Functions alone in a module that isn't one of `#[tile_kernels]`.
mod further {
    use super::elsewhere::twice as doubled;
    use tile::prelude::*;

    #[tile_fn]
    pub(super) fn clipped<T: Number>(x: Tile<T, 1>) -> Tile<T, 1> {
        min(x, T::of(6.0))
    }

    #[tile_fn]
    pub(super) fn chained(x: Tile<i32, 1>) -> Tile<i32, 1> {
        self::clipped(doubled(x)) * 100
    }
}

use elsewhere::deep::{outer, through};

#[tile_kernel]
fn calls_of_calls<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    y.store_masked(through(tile) + further::clipped(tile) * 10_000);
}

#[test]
fn functions_call_functions_of_further_modules() {
    let x: Vec<i32> = (-9..30).collect();
    let inner = |x: i32| if x > 3 { x + 5 } else { x };
    let near = |x: i32| (x + 7) * 2 - 5;
    let through = |x: i32| inner(x.min(6)) + (2 * (x + 7)).min(6) * 100 + near(x);
    let expected = x.iter().map(|&x| f64::from(through(x) + x.min(6) * 10_000)).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(calls_of_calls::ir(), bindings, &x, expected, 0.0, |x, y| {
        calls_of_calls::<8>(x, y).launch()
    });
}

/// Not the one of `elsewhere::deep`.
#[tile_fn]
fn inner(x: Tile<i32, 1>) -> Tile<i32, 1> {
    x * 1000
}

#[tile_kernel]
fn across_modules<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    y.store_masked(
        elsewhere::twice(tile) + outer::<B>(tile) + inner(tile) + tile_test_functions::offset(tile),
    );
}

#[tile_kernels]
mod with_both {
    use super::outer;
    use tile::prelude::*;
    use tile_test_functions::parts::mixed;

    #[tile_fn]
    fn inner(x: Tile<i32, 1>) -> Tile<i32, 1> {
        x - 1
    }

    #[tile_kernel]
    pub(super) fn kernel<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let tile = x.load_masked(y.index());
        y.store_masked(mixed::<B>(inner(tile), outer::<B>(tile)));
    }
}

#[test]
fn functions_come_from_other_modules_and_crates() {
    let x: Vec<i32> = (-9..30).collect();
    let outer = |x: i32| 2 * if x > 3 { x + 5 } else { x };
    let expected = x.iter().map(|&x| f64::from(2 * x + outer(x) + x * 1000 + x + 7)).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(across_modules::ir(), bindings, &x, expected, 0.0, |x, y| {
        across_modules::<8>(x, y).launch()
    });
    let expected = x.iter().map(|&x| f64::from((x - 1) * 3 - outer(x))).collect();
    check_vectors(with_both::kernel::ir(), bindings, &x, expected, 0.0, |x, y| {
        with_both::kernel::<8>(x, y).launch()
    });
}

/// Two functions of one name, which one `macro_rules!` made.
#[tile_kernel]
fn of_one_place<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    y.store_masked(tile_test_functions::near::shifted(tile) * tile_test_functions::far::shifted(tile));
}

#[test]
fn functions_of_one_name_and_place_are_different() {
    let x: Vec<i32> = (-3..9).collect();
    let expected = x.iter().map(|&x| f64::from((x + 1) * (x + 100))).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(of_one_place::ir(), bindings, &x, expected, 0.0, |x, y| of_one_place::<8>(x, y).launch());
}

mod named_as_elsewhere {
    use tile::prelude::*;

    #[tile_fn]
    pub(super) fn norm(x: Tile<f32, 1>) -> Tile<f32, 1> {
        x * x.sum(0)
    }

    /// Says what it does on every device.
    #[tile_fn]
    pub(super) fn relu(x: Tile<f32, 1>, factor: i32) -> Tile<f32, 1> {
        tile_assert!(x >= -100.0);
        tile_assert!(factor + 1 > 0, "{}", factor * 2);
        max(x, 0.0) * factor as f32
    }
}

mod calling_by_use {
    use super::named_as_elsewhere::{norm, relu};
    use tile::prelude::*;

    /// A variable of the function's name, which its value doesn't see.
    #[tile_fn]
    fn twice(x: Tile<f32, 1>) -> Tile<f32, 1> {
        let norm = norm(x);
        norm * 2.0
    }

    #[tile_kernel]
    pub(super) fn called_by_use<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(relu(self::twice(x.load_masked(y.index())), 3));
    }
}

#[test]
fn functions_have_names_of_other_libraries() {
    let x = [1.0_f32, -2.0, 3.0, 4.0];
    let block =
        |x: &[f32]| x.iter().map(|v| f64::from((2.0 * v * (x[0] + x[1])).max(0.0) * 3.0)).collect::<Vec<_>>();
    let expected = x.chunks(2).flat_map(block).collect();
    let bindings = &[("B", Binding::Const(2))];
    check_vectors(calling_by_use::called_by_use::ir(), bindings, &x, expected, 0.0, |x, y| {
        calling_by_use::called_by_use::<2>(x, y).launch()
    });
}

/// Kernels and functions of one name, of which rustc leaves out all but one.
#[tile_kernels]
mod conditional {
    use tile::prelude::*;

    const LEAST: i32 = -100;

    #[cfg(test)]
    #[tile_kernel]
    pub(super) fn step<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let t = x.load_masked(y.index());
        tile_assert!(t > LEAST, "{t} isn't above {LEAST}");
        y.store_masked(t + 1);
    }

    #[cfg(not(test))]
    #[tile_kernel]
    pub(super) fn step<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(x.load_masked(y.index()) - 1);
    }

    #[cfg(test)]
    #[tile_fn]
    pub(super) fn doubled(x: Tile<i32, 1>) -> Tile<i32, 1> {
        x * 2
    }

    #[cfg(not(test))]
    #[tile_fn]
    pub(super) fn doubled(x: Tile<i32, 1>) -> Tile<i32, 1> {
        x * 3
    }
}
use conditional::step;

#[tile_kernel]
fn of_a_conditional<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(conditional::doubled(x.load_masked(y.index())));
}

#[test]
fn a_kernel_and_a_function_of_a_module_may_have_conditions() {
    let x = [1, -2, 3];
    check_exact!(step<B = 2>(x: x, [3]) -> i32, [3] => x.map(|x| x + 1));
    check_exact!(of_a_conditional<B = 2>(x: x, [3]) -> i32, [3] => x.map(|x| 2 * x));
}

/// What fits no literal of Rust's is converted as in a kernel.
#[tile_fn]
fn widened<T: Float>(x: T, half: bf16) -> f32 {
    x as f32 * 2.0 + half as f32
}

#[tile_kernel]
fn widened_numbers<T: Float, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let first = x.load_masked(y.index()).take(0, 0).item();
    y.store_masked(Tile::full([B], widened(first, bf16::of(0.5))));
}

#[test]
fn scalars_of_other_formats_are_converted_in_functions() {
    for (device, label) in super::devices() {
        let x = [1.5, 3.0].map(bf16::from_f32);
        let x = Tensor::from_slice(&device, &x, [2]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        widened_numbers::<_, 1>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.5, 6.5], "{label}");
    }
}

/// Of the name of one that kernels have of their own.
const WIDE: usize = 1000;

#[tile_fn]
fn in_any_order<const B: usize>(k: usize) -> usize {
    let q = LAST + k;
    const LAST: usize = WIDE - 1;
    const WIDE: usize = 2 * B;
    let v = {
        let q = WIDE;
        const WIDE: usize = 3 * B;
        q + WIDE
    };
    q * 100 + v
}

/// Constants of parameters, which all of their block sees.
#[tile_kernel]
fn of_constants<const B: usize>(y: &mut Tensor<f32, n>) {
    let before = LAST + WIDE;
    const LAST: usize = WIDE - 1;
    const WIDE: usize = 2 * B;
    let v = {
        let q = WIDE;
        const WIDE: usize = 3 * B;
        q + WIDE
    };
    let all = before * 100 + v + in_any_order::<B>(v) * 10000;
    let mut y = y.partition_view_mut([B]);
    y.store_masked(Tile::full([B], all as f32));
}

#[test]
fn constants_of_parameters_are_seen_by_their_whole_block() {
    assert_eq!(WIDE, 1000);
    let (b, v) = (2, 12);
    let all = (4 * b - 1) * 100 + v + ((2 * b - 1 + v) * 100 + v) * 10000;
    check_exact!(of_constants<B = 2>() -> f32, [3] => [all as f32; 3]);
}
