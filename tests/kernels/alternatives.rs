//! Conditions with `||`, `!` and `bool`s: what parameters decide of them is decided for each instance, the rest at launch.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::devices;
use tile::ir::Binding;
use tile::prelude::*;

/// Rows of one of two lengths, whose elements before the diagonal alone count where it is causal; then the matrix is square,
/// in whole tiles.
#[tile_kernel(
    where(D == 4 || D == 8, !CAUSAL || (m == n && m % 4 == 0), !(bias.is_some() && CAUSAL), k == 0 || n % k == 0),
    instances(D = 4 | 6 | 8, CAUSAL = true | false)
)]
fn masked<const D: usize, const CAUSAL: bool>(
    x: &Tensor<f32, m, n>,
    k: usize,
    bias: Option<&Tensor<f32, n>>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([4, D]);
    let mut y = y.partition_view_mut([4, D]);
    let [i, j] = y.index();
    let mut tile = x.load_masked([i, j]) + k as f32;
    if CAUSAL {
        let row = Tile::<i32, 2>::iota([4, 1], 0) + (i * 4) as i32;
        let column = Tile::<i32, 2>::iota([1, D], 1) + (j * D) as i32;
        tile = select(column <= row, tile, 0.0);
    }
    if let Some(bias) = bias {
        tile += bias.partition_view([D]).load_masked([j]).unsqueeze(0);
    }
    y.store_masked(tile);
}

fn bindings(d: usize, causal: bool, bias: bool) -> Vec<(String, Binding)> {
    let of = |name: &str, value| (name.to_owned(), value);
    vec![of("D", Binding::Const(d)), of("CAUSAL", Binding::Bool(causal)), of("bias", Binding::Bool(bias))]
}

/// `masked` of rows of n elements, on a device.
fn run(device: &Device, [m, n]: [usize; 2], k: usize, causal: bool, bias: bool) -> tile::Result<Vec<f32>> {
    let x = Tensor::from_vec(device, (0..m * n).map(|i| i as f32).collect(), [m, n])?;
    let ones = Tensor::ones(device, [n])?;
    let bias = bias.then_some(&*ones);
    let mut y = Tensor::zeros(device, [m, n])?;
    if causal {
        masked::best::<true>(&x, k, bias, &mut y).launch()?;
    } else {
        masked::best::<false>(&x, k, bias, &mut y).launch()?;
    }
    y.to_vec()
}

#[test]
fn instances_keep_the_conditions_that_are_theirs() {
    for (device, label) in devices() {
        let causal = run(&device, [8, 8], 2, true, false).unwrap();
        let expected = (0..64).map(|i| if i % 8 <= i / 8 { (i + 2) as f32 } else { 0.0 });
        assert_eq!(causal, expected.collect::<Vec<_>>(), "{label}");
        for (shape, k) in [([3, 5], 5), ([3, 5], 0), ([8, 8], 4)] {
            let found = run(&device, shape, k, false, true).unwrap();
            let expected = (0..shape[0] * shape[1]).map(|i| (i + k + 1) as f32).collect::<Vec<_>>();
            assert_eq!(found, expected, "{label}: {shape:?}, {k}");
        }
    }
}

#[test]
fn launches_say_what_is_left_of_a_condition() {
    for (device, label) in devices() {
        let refused = |shape, k, causal, bias| {
            run(&device, shape, k, causal, bias).expect_err("a condition is broken").reason().to_string()
        };
        let message = refused([3, 5], 5, true, false);
        for part in [
            "`masked` needs `!CAUSAL || (m == n && m % 4 == 0)`",
            "alternatives.rs:12",
            "which is `m == n && m % 4 == 0` here",
            "m = 3 (axis 0 of `x`), n = 5 (axis 1 of `x`)",
        ] {
            assert!(message.contains(part), "{label}: {part} in {message}");
        }
        let message = refused([3, 5], 2, false, false);
        let left = "needs `k == 0 || n % k == 0`";
        assert!(
            message.contains(left) && message.contains("k = 2 (an argument), n = 5"),
            "{label}: {message}"
        );
        let x = Tensor::<f32>::zeros(&device, [8, 8]).unwrap();
        let (bias, mut y) = (Tensor::zeros(&device, [8]).unwrap(), Tensor::zeros(&device, [8, 8]).unwrap());
        let message = masked::<8, true>(&x, 1, Some(&bias), &mut y).launch().unwrap_err().to_string();
        let left = "`masked` needs `!(bias.is_some() && CAUSAL)`";
        assert!(
            message.contains(left) && message.contains("but CAUSAL = true, bias = true"),
            "{label}: {message}"
        );
    }
}

/// What an instance's parameters leave is known in its body; of what may be otherwise nothing is.
#[test]
fn what_parameters_leave_makes_masks_needless() {
    let optimized = |causal| {
        let instance = tile::ir::specialize(&masked::ir(), &bindings(4, causal, false)).unwrap();
        tile::ir::text::print(&tile::ir::passes::optimize(instance))
    };
    assert!(!optimized(true).contains("masked %"), "{}", optimized(true));
    assert!(optimized(false).contains("masked %"), "{}", optimized(false));
    let refused = |d, causal, bias| {
        tile::ir::specialize(&masked::ir(), &bindings(d, causal, bias)).map(drop).unwrap_err().to_string()
    };
    let message = refused(6, true, false);
    assert!(message.contains("needs `D == 4 || D == 8`") && message.ends_with("but D = 6"), "{message}");
    let message = refused(8, true, true);
    assert!(message.ends_with("but CAUSAL = true, bias = true"), "{message}");
}

#[test]
fn the_text_of_a_kernel_has_its_conditions() {
    let text = masked::ir().to_string();
    let head = text.lines().next().unwrap();
    assert!(
        head.contains("\"!CAUSAL || (m == n && m % 4 == 0)\": any(CAUSAL eq 0, all(m eq n, rem(m, 4) eq 0))"),
        "{head}"
    );
    assert!(head.contains("any(bias eq 0, CAUSAL eq 0)"), "{head}");
    let again = tile::ir::text::parse(&text).unwrap();
    assert_eq!(tile::ir::text::print(&tile::ir::verify(again).unwrap()), text);
}

/// As many arguments as one of two conditions admits.
#[tile_kernel(where(K <= 2 || K == 4), instances(K = 1 | 4))]
fn summed<const K: usize>(inputs: [&Tensor<f32, n>; K], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    let mut sum = Tile::zeros([4]);
    for input in inputs {
        sum += input.partition_view([4]).load_masked(y.index());
    }
    for i in 0..K {
        sum += inputs[i].partition_view([4]).load_masked(y.index()) * 0.0;
    }
    y.store_masked(sum);
}

#[test]
fn alternatives_say_how_many_arguments_there_may_be() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1.0, 2.0], [2]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        summed::best([&x, &x, &x, &x], &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [4.0, 8.0], "{label}");
        let message = summed([&x, &x, &x], &mut y).launch().unwrap_err().to_string();
        assert!(
            message.contains("needs `K <= 2 || K == 4`") && message.contains("K = 3"),
            "{label}: {message}"
        );
    }
}
