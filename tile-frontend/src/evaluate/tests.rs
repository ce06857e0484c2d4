//! What the macro computes beside what rustc does: the same text is compiled, and evaluated.

use super::{Value, call};
use crate::helpers::Helpers;
use std::fmt::Debug;

/// Items of Rust, and their text.
macro_rules! module {
    ($($item:item)*) => {
        $($item)*
        const TEXT: &str = stringify!($($item)*);
    };
}

fn evaluated(called: &str, text: &str) -> Result<Value, String> {
    let file: syn::File = syn::parse_str(text).unwrap();
    let helpers = Helpers::of(&file.items);
    let path: syn::Path = syn::parse_str(called).unwrap();
    let function = helpers.const_function(&path).unwrap_or_else(|| panic!("{called} isn't there"));
    call(function, &path, Vec::new(), &helpers).map_err(|refused| refused.message)
}

/// A value as Rust prints it.
fn shown(value: &Value) -> String {
    match value {
        Value::Int(value, dtype) => {
            assert!(dtype.is_some(), "the type of {value} is open");
            value.to_string()
        }
        Value::Float(float) if float.dtype == Some(tile_ir::DType::F32) => format!("{:?}", float.single),
        Value::Float(float) => format!("{:?}", float.double),
        Value::Bool(holds) => holds.to_string(),
        Value::List(values) => values.iter().map(shown).collect::<Vec<_>>().join(" "),
    }
}

fn check(called: &str, expected: impl Debug, text: &str) {
    let value = evaluated(called, text).unwrap_or_else(|message| panic!("{called}: {message}"));
    let expected = format!("{expected:?}").replace(['[', ']', '(', ')', ','], "");
    assert_eq!(shown(&value), expected, "{called}");
}

/// Compares functions without parameters with their selves.
macro_rules! check {
    ($($function:ident)*) => { $(check(stringify!($function), $function(), TEXT);)* };
}

#[test]
fn loops_branches_and_parts_are_those_of_rust() {
    module! {
        const LAST: usize = 5;
        const TABLE: [[u8; 2]; 3] = [[1, 2], [3, 4], [5, 6]];

        const fn sieve() -> [bool; 30] {
            let mut is_prime = [true; 30];
            is_prime[0] = false;
            is_prime[1] = false;
            let mut i = 2;
            'all: loop {
                if i * i >= is_prime.len() {
                    break 'all;
                }
                let mut multiple = i * i;
                while multiple < 30 {
                    is_prime[multiple] = false;
                    multiple += i;
                }
                i += 1;
            }
            is_prime
        }

        const fn fibonacci(n: u32) -> u64 {
            if n < 2 { n as u64 } else { fibonacci(n - 1) + fibonacci(n - 2) }
        }

        const fn recursive() -> u64 {
            fibonacci(15)
        }

        const fn parts() -> (i32, [u8; 3], bool) {
            let mut pair = (1, [0u8; 3]);
            pair.0 -= 3;
            pair.1[2] = TABLE[1][0] + TABLE[LAST - 3][1];
            let (first, bytes) = pair;
            let labelled = 'found: {
                if first < 0 {
                    break 'found true;
                }
                false
            };
            assert!(bytes.len() == 3, "three");
            (first, bytes, labelled && matches!(bytes[0], 0 | 1) && !(bytes[0] > 0 || first == 0))
        }

        const fn arms() -> [i16; 6] {
            const NAMED: i16 = 4;
            let mut given = [0; 6];
            let mut i: i16 = 0;
            while i < 6 {
                given[i as usize] = match i {
                    0 => -1,
                    1..=2 => i * 10,
                    NAMED => 7,
                    other if other % 2 == 1 => {
                        i += 1;
                        given[5] = 99;
                        continue;
                    }
                    _ => return given,
                };
                i += 1;
            }
            given
        }

        const fn scoped() -> u32 {
            let x = 1u32;
            {
                let x = x + 10;
                let _ = x;
            }
            let value = loop {
                let x = x + 4;
                if x > 0 {
                    break x * 2;
                }
            };
            let early = |_: u32| 0;
            let _ = early;
            value + x
        }

        const fn bytes() -> [u8; 4] {
            let text = *b"a\xffz0";
            let [first, rest @ ..] = text;
            let _ = rest;
            let [.., _] = text;
            [first, text[1], b'!', first ^ 1]
        }

        const fn lent() -> u32 {
            total(&[1, 2, 3]) + total(&[])
        }

        const fn total(numbers: &[u32]) -> u32 {
            let (mut sum, mut i) = (0, 0);
            while i < numbers.len() {
                sum += numbers[i];
                i += 1;
            }
            sum
        }
    }
    check!(sieve recursive parts arms lent);
    assert_eq!(scoped() + u32::from(bytes()[0]), 11 + 97);
    // A closure and a rest of an array aren't there.
    assert!(evaluated("scoped", TEXT).is_err() && evaluated("bytes", TEXT).is_err());
}

#[test]
fn numbers_are_those_of_rust() {
    module! {
        const fn integers() -> [u32; 12] {
            let x = 0x8001_00f3u32;
            [
                x.wrapping_mul(0x9e37_79b9), x.rotate_left(7), x.rotate_right(0), x.swap_bytes(), x.reverse_bits(),
                x.leading_zeros() + x.trailing_ones(), (x >> 3).leading_zeros(), !x, x.saturating_add(x), x.isqrt(),
                u32::MAX.wrapping_pow(3), x.wrapping_neg() % 1000,
            ]
        }

        const fn signed() -> [i64; 12] {
            let x = -77i64;
            [
                x / 10, x % 10, x.div_euclid(10), x.rem_euclid(10), x >> 2, x << 5, i64::MIN.wrapping_abs(),
                i64::MIN.saturating_sub(1), x.pow(3), x.signum(), x.abs_diff(5) as i64, x.count_ones() as i64,
            ]
        }

        const fn wide() -> [u64; 6] {
            let mut state = 0x9e37_79b9_7f4a_7c15u64;
            state ^= state >> 30;
            state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
            [
                state, state.wrapping_add(u64::MAX), u64::MAX.saturating_mul(u64::MAX), state << 63,
                u64::MAX.wrapping_mul(u64::MAX), 10u64.next_power_of_two() + 7u64.div_ceil(2) + 9u64.ilog2() as u64,
            ]
        }

        const fn conversions() -> [i16; 9] {
            [
                300u32 as u8 as i16, -1i32 as u16 as i16, 1e9f32 as i16, -1e9f32 as i16, -2.9f64 as i16, true as i16,
                200u8 as i8 as i16, 0x1_0005u64 as i16, (0.1f32 as f64 * 1e9) as i64 as i16,
            ]
        }

        const fn floats() -> [f32; 10] {
            let third = 1.0 / 3.0;
            let big = 16_777_217u32;
            [
                third, third * third, 0.1 + 0.2, 1.0 / 49.0 * 49.0, big as f32, -0.0, 1e-45 / 2.0,
                (0.1f64 + 0.2) as f32, f32::from_bits(0x7f80_0000), 7.5 % 2.0,
            ]
        }

        const fn doubles() -> [f64; 7] {
            let third = 1.0 / 3.0;
            [
                third, 0.1 + 0.2, 0.1f32 as f64, third.abs().min(0.25).max(0.125), std::f64::consts::PI.floor(),
                f64::EPSILON, 2.5f64.clamp(0.0, 1.0).copysign(-1.0),
            ]
        }

        const fn order() -> [bool; 8] {
            let nan = f32::NAN;
            [
                nan < 1.0, nan >= 1.0, nan != nan, -0.0 == 0.0f32, 3 <= 3, 1u8 > 2, true & (nan > 1.0) ^ true,
                1.0f32.to_bits() == 0x3f80_0000,
            ]
        }
    }
    check!(integers signed wide conversions floats doubles order);
}

#[test]
fn what_depends_on_a_type_that_is_not_written_is_refused() {
    let refused = |body: &str| evaluated("f", &format!("const fn f() -> u64 {{ {body} }}")).unwrap_err();
    assert_eq!(
        refused("let x = 5; x.leading_zeros() as u64"),
        "what this gives depends on the number's type"
    );
    assert_eq!(refused("!0"), "-1 doesn't fit u64");
    assert_eq!(refused("let sum = 0.1 + 0.2; (sum == 0.3) as u64"), "of which format are these?");
    assert_eq!(refused("let x = 0.1; (x as f64 * 1e9) as u64"), "of which format is this?");
    assert_eq!(refused("1u32 as u64 + 1u32"), "this is u32, but u64 is needed");
    assert_eq!(refused("let x = 200u8; (x + 100) as u64"), "this overflows u8, or has no value");
    assert_eq!(refused("1 / 0"), "this overflows its type, or has no value");
    assert_eq!(refused("1u64 << 64"), "64 bits are too many to shift by");
}

#[test]
fn what_never_ends_is_stopped() {
    let refused = |body: &str| evaluated("f", &format!("const fn f() -> u64 {{ {body} }}")).unwrap_err();
    assert_eq!(refused("loop {}"), "this `const fn` takes more than 4194304 steps");
    assert_eq!(refused("while true {} 1"), "this `const fn` takes more than 4194304 steps");
    assert_eq!(refused("f()"), "calls of `const fn`s go more than 48 deep, and the last is of `f`");
    assert_eq!(refused("let mut x = [0; 2]; x[2] = 1; 0"), "there is no such part: there are 2");
}
