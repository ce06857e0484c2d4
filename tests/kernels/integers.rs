//! Integer and bool kernels: Rust's division, wrapping, shifts, casts between formats.

use super::whole::check_kernel;
use super::{Case, array, check_exact, widen};
use tile::ir::{Binding, DType};
use tile::prelude::*;

/// Quotient and remainder by a scalar, put together again, then mixed by shifts.
#[tile_kernel]
fn divide_and_mix<T: Int, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>, divisor: T) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let (quotient, remainder) = (x / divisor, x % divisor);
    let mixed = (quotient << T::of(3.0)) ^ (remainder >> T::of(1.0)) | T::of(1.0);
    y.store_masked(select(quotient * divisor + remainder == x, mixed, T::of(0.0)));
}

/// Bits that are counted of a number are a `u32`, as Rust's own methods give; of a tile they are numbers of its type.
#[tile_kernel]
fn counted<const B: usize>(x: &Tensor<i64, n>, number: i16, y: &mut Tensor<i64, n>) {
    let mut y = y.partition_view_mut([B]);
    let x = x.partition_view([B]).load_masked(y.index());
    let of_number: u32 =
        number.count_ones() + 100 * number.leading_zeros() + 10_000 * number.trailing_zeros();
    y.store_masked(x.count_ones() + of_number as i64);
}

#[test]
fn bits_are_counted_as_in_rust() {
    let (x, number) = ([0i64, -1, 7, i64::MIN], 0b1010_0000i16);
    let of_number = 2.0 + 100.0 * 8.0 + 10_000.0 * 5.0;
    Case {
        ir: counted::ir(),
        bindings: &[("B", Binding::Const(4))],
        arguments: vec![array(&x, &[4]), array(&[number], &[]), array(&[0i64; 4], &[4])],
        output: 2,
        expected: x.iter().map(|x| f64::from(x.count_ones()) + of_number).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [4])?;
            let mut y = Tensor::zeros(device, [4])?;
            counted::<4>(&x, number, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Negated, as tiles, as a number, and both by way of a function.
#[tile_kernel]
fn negated<T: Int, const B: usize>(x: &Tensor<T, n>, number: T, y: &mut Tensor<T, 4, n>) {
    let mut y = y.partition_view_mut([1, B]).spanning([0]);
    let [_, j] = y.index();
    let x = x.partition_view([B]).load_masked([j]);
    let (tile, scalar) = (negated_tile(x), negated_number(number));
    let rows = [x.wrapping_neg(), Tile::full([B], number.wrapping_neg()), tile, Tile::full([B], scalar)];
    for i in 0..rows.len() {
        y.at([i]).store_masked(rows[i].unsqueeze(0));
    }
}

#[tile_fn]
fn negated_tile<T: Int>(x: Tile<T, 1>) -> Tile<T, 1> {
    x.wrapping_neg()
}

#[tile_fn]
fn negated_number<T: Int>(x: T) -> T {
    x.wrapping_neg()
}

/// The same of a format that the kernel says.
#[tile_kernel]
fn negated_words(x: &Tensor<u32, n>, number: u8, y: &mut Tensor<u32, 2, n>) {
    let mut y = y.partition_view_mut([1, 4]).spanning([0]);
    let [_, j] = y.index();
    let x = x.partition_view([4]).load_masked([j]);
    y.at([0]).store_masked(x.wrapping_neg().unsqueeze(0));
    y.at([1]).store_masked(Tile::full([1, 4], number.wrapping_neg() as u32 + 7u32.wrapping_neg()));
}

/// Absolute values of numbers with a sign.
#[tile_kernel]
fn absolute<const B: usize>(x: &Tensor<i8, n>, number: i64, y: &mut Tensor<i8, n>, z: &mut Tensor<i64, n>) {
    let mut y = y.partition_view_mut([B]);
    let mut z = z.partition_view_mut([B]);
    y.store_masked(x.partition_view([B]).load_masked(y.index()).wrapping_abs());
    z.store_masked(Tile::full([B], absolute_number(number) - 2 * number.wrapping_abs()));
}

#[tile_fn]
fn absolute_number(x: i64) -> i64 {
    x.wrapping_abs()
}

macro_rules! check_negated {
    ($($format:ty)*) => { $(
        let x = [0 as $format, 1, 7, <$format>::MAX, <$format>::MIN];
        for (device, label) in super::devices() {
            let values = Tensor::from_slice(&device, &x, [5]).unwrap();
            for number in x {
                let mut y = Tensor::zeros(&device, [4, 5]).unwrap();
                negated::<$format, 4>(&values, number, &mut y).launch().unwrap();
                let (of_tile, of_number) = (x.map(<$format>::wrapping_neg), [number.wrapping_neg(); 5]);
                let expected = [of_tile, of_number, of_tile, of_number].concat();
                assert_eq!(y.to_vec().unwrap(), expected, "{} {label}", stringify!($format));
            }
        }
    )* };
}

#[test]
fn integers_are_negated_and_made_absolute_as_in_rust() {
    check_negated!(i8 u8 i16 u16 i32 u32 i64 u64);
    let (x, words) = ([0i8, 1, -7, i8::MAX, i8::MIN], [0u32, 1, 7, u32::MAX]);
    for (device, label) in super::devices() {
        let tensor = Tensor::from_slice(&device, &words, [4]).unwrap();
        let mut y = Tensor::zeros(&device, [2, 4]).unwrap();
        negated_words(&tensor, 200, &mut y).launch().unwrap();
        let of_number = u32::from(200u8.wrapping_neg()).wrapping_add(7u32.wrapping_neg());
        assert_eq!(y.to_vec().unwrap(), [words.map(u32::wrapping_neg), [of_number; 4]].concat(), "{label}");
        let tensor = Tensor::from_slice(&device, &x, [5]).unwrap();
        for number in [0, 3, -3, i64::MAX, i64::MIN] {
            let (mut y, mut z) = (Tensor::zeros(&device, [5]).unwrap(), Tensor::zeros(&device, [5]).unwrap());
            absolute::<4>(&tensor, number, &mut y, &mut z).launch().unwrap();
            assert_eq!(y.to_vec().unwrap(), x.map(i8::wrapping_abs), "{label}");
            let (once, twice) = (number.wrapping_abs(), number.wrapping_abs().wrapping_mul(2));
            assert_eq!(z.to_vec().unwrap(), [once.wrapping_sub(twice); 5], "{label}");
        }
    }
}

/// Floats to bytes and back, through a bool.
#[tile_kernel]
fn quantize<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<u8, n>, negative: &mut Tensor<bool, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut negative = negative.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked((x * 300.0).cast::<u8>());
    negative.store_masked(x < 0.0);
}

#[test]
fn integers_divide_wrap_and_shift_as_in_rust() {
    let x: Vec<i8> = (-128..=127).collect();
    for divisor in [3i8, -7, -1] {
        let one = |&x: &i8| {
            let (quotient, remainder) = (x.wrapping_div(divisor), x.wrapping_rem(divisor));
            f64::from((quotient << 3) ^ (remainder >> 1) | 1)
        };
        Case {
            ir: divide_and_mix::ir(),
            bindings: &[("T", Binding::Elem(DType::I8)), ("B", Binding::Const(32))],
            arguments: vec![array(&x, &[256]), array(&[0i8; 256], &[256]), array(&[divisor], &[])],
            output: 1,
            expected: x.iter().map(one).collect(),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [256])?;
                let mut y = Tensor::zeros(device, [256])?;
                divide_and_mix::<i8, 32>(&x, &mut y, divisor).launch()?;
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    }
}

#[test]
fn unsigned_integers_are_unsigned() {
    let x = [0u32, 1, 7, u32::MAX, u32::MAX / 2];
    Case {
        ir: divide_and_mix::ir(),
        bindings: &[("T", Binding::Elem(DType::U32)), ("B", Binding::Const(4))],
        arguments: vec![array(&x, &[5]), array(&[0u32; 5], &[5]), array(&[10u32], &[])],
        output: 1,
        expected: x.iter().map(|x| f64::from((x / 10) << 3 ^ (x % 10) >> 1 | 1)).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [5])?;
            let mut y = Tensor::zeros(device, [5])?;
            divide_and_mix::<u32, 4>(&x, &mut y, 10).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn casts_saturate_and_bools_are_stored() {
    let x = [-1.0f32, -0.0, 0.5, 0.9, 1.0, f32::NAN, f32::INFINITY];
    let n = x.len();
    for output in [1, 2] {
        let expected =
            x.iter().map(|x| if output == 1 { f64::from((x * 300.0) as u8) } else { f64::from(*x < 0.0) });
        Case {
            ir: quantize::ir(),
            bindings: &[("B", Binding::Const(4))],
            arguments: vec![array(&x, &[n]), array(&vec![0u8; n], &[n]), array(&vec![true; n], &[n])],
            output,
            expected: expected.collect(),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [n])?;
                let mut y = Tensor::zeros(device, [n])?;
                let mut negative = Tensor::from_slice(device, &vec![true; n], [n])?;
                quantize::<4>(&x, &mut y, &mut negative).launch()?;
                Ok(if output == 1 { widen(&y.to_vec()?) } else { widen(&negative.to_vec()?) })
            },
        }
        .check();
    }
}

/// The digits of words, which lie in rows of eight: distances are counters that are indices too, const parameters and
/// numbers of other types.
#[tile_kernel]
fn digits<const STEP: usize>(
    x: &Tensor<u32, n>,
    last: i64,
    y: &mut Tensor<i32, n, 4>,
    lowest: &mut Tensor<u32, n, 1>,
) {
    let mut y = y.partition_view_mut([4, 1]).spanning([1]);
    let mut lowest = lowest.partition_view_mut([4, 1]);
    let [i, _] = y.index();
    let words = x.partition_view([4]).load_masked([i]).unsqueeze(1);
    for k in 0..4 {
        y.at([k]).store_masked(((words >> (k * STEP)) & 15).cast::<i32>());
    }
    let mut t = words.wrapping_shl(last);
    t >>= STEP;
    lowest.store_masked(shifted(t, STEP));
}

#[tile_fn]
fn shifted(x: Tile<u32, 2>, by: usize) -> Tile<u32, 2> {
    (x >> by) << 1
}

#[test]
fn tiles_are_shifted_by_integers_of_other_types() {
    let x = [0x1234_5678u32, 0xfedc_ba98, 0, u32::MAX, 7];
    for (device, label) in super::devices() {
        let words = Tensor::from_slice(&device, &x, [5]).unwrap();
        let (mut y, mut lowest) =
            (Tensor::zeros(&device, [5, 4]).unwrap(), Tensor::zeros(&device, [5, 1]).unwrap());
        digits::<4>(&words, 8 + 32, &mut y, &mut lowest).launch().unwrap();
        let expected = x.iter().flat_map(|x| (0..4).map(move |k| (x >> (4 * k)) as i32 & 15));
        assert_eq!(y.to_vec().unwrap(), expected.collect::<Vec<_>>(), "{label}");
        let expected = x.iter().map(|x| (x << 8 >> 4 >> 4) << 1);
        assert_eq!(lowest.to_vec().unwrap(), expected.collect::<Vec<_>>(), "{label}");
    }
}

/// Rows: rotated to the left and to the right by what a number says, and by what each element says; bytes and bits in the
/// opposite order.
#[tile_kernel]
fn moved_bits<T: Int, const B: usize>(
    x: &Tensor<T, n>,
    by: &Tensor<T, n>,
    amount: i32,
    y: &mut Tensor<T, 6, n>,
) {
    let mut y = y.partition_view_mut([1, B]).spanning([0]);
    let [_, j] = y.index();
    let (x, by) = (x.partition_view([B]).load_masked([j]), by.partition_view([B]).load_masked([j]));
    let rows = [
        x.rotate_left(amount),
        rotate_right(x, amount),
        rotate_left(x, by),
        x.rotate_right(by),
        x.swap_bytes(),
        reverse_bits(x),
    ];
    for i in 0..rows.len() {
        y.at([i]).store_masked(rows[i].unsqueeze(0));
    }
}

macro_rules! check_moved_bits {
    ($($format:ty)*) => { $(
        let x = [0x0123_4567_89ab_cdef_u64, 1, 0x8000_8000_8000_8080, u64::MAX, 0xfedc_ba98_7654_3210].map(|x| x as $format);
        let by = [1i8, 0, -3, 63, 32].map(|by| by as $format);
        for (device, label) in super::devices() {
            for amount in [0, 5, 37, -1] {
                let of = |by: i64| by.rem_euclid(i64::from(<$format>::BITS)) as u32;
                let expected = [
                    x.map(|x| x.rotate_left(of(amount.into()))),
                    x.map(|x| x.rotate_right(of(amount.into()))),
                    std::array::from_fn(|i| x[i].rotate_left(of(by[i] as i64))),
                    std::array::from_fn(|i| x[i].rotate_right(of(by[i] as i64))),
                    x.map(<$format>::swap_bytes),
                    x.map(<$format>::reverse_bits),
                ];
                let mut y = Tensor::zeros(&device, [6, 5]).unwrap();
                let (x, by) = (Tensor::from_slice(&device, &x, [5]).unwrap(), Tensor::from_slice(&device, &by, [5]).unwrap());
                moved_bits::<$format, 4>(&x, &by, amount, &mut y).launch().unwrap();
                let what = format!("{} by {amount} on {label}", stringify!($format));
                assert_eq!(y.to_vec().unwrap(), expected.concat(), "{what}");
            }
        }
    )* };
}

#[test]
fn bits_move_as_those_of_rusts_integers() {
    check_moved_bits!(i8 u8 i16 u16 i32 u32 i64 u64);
}

/// On numbers they are Rust's own methods, and functions that take an amount of any type.
#[tile_kernel]
fn moved_bits_of_numbers(word: u32, wide: u64, narrow: i8, by: u32, far: i64, y: &mut Tensor<u64, 7>) {
    let rows = [
        word.rotate_left(by) as u64,
        wide.rotate_right(by),
        narrow.rotate_left(3) as u64,
        rotate_left(word, far) as u64,
        rotate_right(wide, narrow),
        wide.swap_bytes() ^ word.reverse_bits() as u64,
        narrow.swap_bytes().reverse_bits() as u64,
    ];
    let mut y = y.partition_view_mut([1]).spanning([0]);
    for i in 0..rows.len() {
        y.at([i]).store(Tile::full([1], rows[i]));
    }
}

#[test]
fn bits_of_numbers_move_too() {
    let (word, wide, narrow, far) = (0x8123_4567u32, 0x0123_4567_89ab_cdefu64, -77i8, -4i64);
    for (device, label) in super::devices() {
        for by in [0, 7, 31] {
            let expected = [
                word.rotate_left(by).into(),
                wide.rotate_right(by),
                narrow.rotate_left(3) as u64,
                word.rotate_left(28).into(),
                wide.rotate_right(narrow.rem_euclid(64) as u32),
                wide.swap_bytes() ^ u64::from(word.reverse_bits()),
                narrow.reverse_bits() as u64,
            ];
            let mut y = Tensor::zeros(&device, [7]).unwrap();
            moved_bits_of_numbers(word, wide, narrow, by, far, &mut y).launch().unwrap();
            assert_eq!(y.to_vec().unwrap(), expected, "by {by} on {label}");
        }
    }
}

/// A counter over an array has the type of its numbers.
#[tile_kernel]
fn by_counters(x: u64, y: &mut Tensor<u64, 1>) {
    let mut sum = 0u64;
    for k in [1u32, 33] {
        sum += x.rotate_right(k) ^ (x << k);
    }
    y.partition_view_mut([1]).store(Tile::full([1], sum));
}

#[test]
fn numbers_are_shifted_by_counters_of_other_types() {
    let x = 0x0123_4567_89ab_cdefu64;
    let expected = (x.rotate_right(1) ^ (x << 1)).wrapping_add(x.rotate_right(33) ^ (x << 33));
    for (device, label) in super::devices() {
        let mut y = Tensor::zeros(&device, [1]).unwrap();
        by_counters(x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [expected], "{label}");
    }
}

/// Numbers that are known, and bytes only by what they are added to, are shifted by more bits than these have.
#[tile_kernel]
fn shifted_by_more<const B: usize>(x: &Tensor<u8, n>, y: &mut Tensor<u8, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut t = x.load_masked(y.index());
    let (mask, none) = (200, 0);
    for by in [1, 9] {
        t = t + (mask >> by) + (none << by);
    }
    // What is known of a wider one.
    let size: usize = 4096 >> 10;
    y.store_masked(t + Tile::<u8, 1>::iota([size], 0).sum(0));
}

#[test]
fn known_numbers_are_shifted_modulo_their_width() {
    let x = [0u8, 1, 2, 255];
    check_exact!(shifted_by_more<B = 4>(x: x, [4]) -> u8, [4] => [206u8, 207, 208, 205]);
}

/// Constants of 64 bits, of which sums and products wrap. `b` is 1.
#[tile_kernel]
fn of_wide_constants(x: &Tensor<u64, 1>, y: &mut Tensor<u64, 4>) {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let b = x.partition_view([1]).load([0]).item();
    let numbers = [
        GOLDEN * 5 + b,
        0x9E37_79B9_7F4A_7C15u64 * GOLDEN,
        (GOLDEN ^ 1) << 3,
        GOLDEN + 0xFFFF_FFFF_FFFF_FFFF,
    ];
    y.partition_view_mut([4]).store(cat(numbers.map(|number| Tile::full([1], number)), 0));
}

#[test]
fn constants_of_64_bits_wrap() {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let expected = [GOLDEN.wrapping_mul(5) + 1, GOLDEN.wrapping_mul(GOLDEN), (GOLDEN ^ 1) << 3, GOLDEN - 1];
    check_kernel!(of_wide_constants<>(
        input x: ([1u64], [1]), output y: (vec![0u64; 4], [4] => expected.map(|number| number as f64), 0.0),
    ));
}

/// Of numbers that are known and of types of their own.
#[tile_kernel]
fn known_quotients(x: &Tensor<u32, n>, y: &mut Tensor<u32, n>) {
    const SEVEN: u32 = 7;
    let mut y = y.partition_view_mut([4]);
    let mut sum = x.partition_view([4]).load_masked(y.index()) + SEVEN.div_ceil(2) + 9u32.div_ceil(4);
    for k in [1u32, 2, 3] {
        sum += k.div_ceil(2);
    }
    y.store_masked(sum);
}

#[test]
fn known_numbers_of_every_type_are_divided_upwards() {
    check_exact!(known_quotients<>(x: [1u32, 2, 3, 4], [4]) -> u32, [4] => [12u32, 13, 14, 15]);
}
