//! Numbers that a launch passes and that extents and conditions name: sizes like those that tensors have.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::devices;
use tile::ir::Binding;
use tile::prelude::*;

/// The largest of three neighbours, `stride` elements apart.
#[tile_kernel(where(stride > 0, n >= 3))]
fn pooled<const B: usize>(x: &Tensor<f32, n>, stride: usize, y: &mut Tensor<f32, { (n - 3) / stride + 1 }>) {
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let first = (Tile::<i32, 1>::iota([B], 0) + (i * B) as i32) * stride as i32;
    let mut most = x.gather([first]);
    for tap in 1..3 {
        most = max(most, x.gather([first + tap]));
    }
    y.store_masked(most);
}

/// What `pooled` gives with an output of so many elements.
fn pool(device: &Device, x: &[f32], stride: usize, outputs: usize) -> tile::Result<Vec<f32>> {
    let x = Tensor::from_slice(device, x, [x.len()])?;
    let mut y = Tensor::zeros(device, [outputs])?;
    pooled::<4>(&x, stride, &mut y).launch()?;
    y.to_vec()
}

#[test]
fn an_extent_may_name_an_argument() {
    let x: Vec<f32> = (0..23).map(|i| (i * 37 % 23) as f32).collect();
    for (device, label) in devices() {
        for stride in [1, 2, 3, 20, 50] {
            let expected: Vec<f32> =
                (0..=20).step_by(stride).map(|i| x[i].max(x[i + 1]).max(x[i + 2])).collect();
            assert_eq!(pool(&device, &x, stride, expected.len()).unwrap(), expected, "{label}: {stride}");
        }
    }
}

#[test]
fn launches_compare_extents_and_conditions_with_the_argument() {
    for (device, label) in devices() {
        let refused =
            |stride, outputs| pool(&device, &[0.0; 10], stride, outputs).unwrap_err().reason().to_string();
        assert_eq!(
            refused(2, 5),
            "axis 0 of `y` is 5, but `pooled` declares 4 (`(n - 3) / stride + 1`, where n = 10 (axis 0 of `x`), stride = 2 \
             (an argument))",
            "{label}"
        );
        let message = refused(0, 5);
        assert!(message.contains("`pooled` needs `stride > 0`"), "{label}: {message}");
        // No parameter makes it another condition, so it is said once.
        assert!(message.contains("given_sizes.rs:10), but stride = 0 (an argument)"), "{label}: {message}");
        assert!(message.contains("stride = 0 (an argument)"), "{label}: {message}");
        assert_eq!(
            refused(usize::MAX, 1),
            "`stride` of kernel `pooled` is 18446744073709551615, and sizes end at 9223372036854775807",
            "{label}"
        );
    }
}

/// A convolution whose taps are views in steps of the argument.
#[tile_kernel(where(stride > 0, m > 0), instances(B = 4 | 16))]
fn convolved<const B: usize>(
    x: &Tensor<f32, { (m - 1) * stride + 3 }>,
    weights: &Tensor<f32, 3>,
    stride: usize,
    y: &mut Tensor<f32, m>,
) {
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let at = (Tile::<i32, 1>::iota([B], 0) + (i * B) as i32) * stride as i32;
    let mut sum = Tile::zeros([B]);
    for tap in 0..3 {
        sum += x.gather([at + tap]) * weights.gather([tap]);
    }
    y.store_masked(sum);
}

#[test]
fn a_convolution_has_the_stride_of_its_launch() {
    let (m, weights) = (9, [1.0, -2.0, 0.5]);
    for (device, label) in devices() {
        for stride in [1, 2, 5, 1] {
            let x: Vec<f32> = (0..(m - 1) * stride + 3).map(|i| (i * 7 % 11) as f32).collect();
            let taps = |i: usize| (0..3).map(|tap| x[i * stride + tap] * weights[tap]).sum::<f32>();
            let expected: Vec<f32> = (0..m).map(taps).collect();
            let x = Tensor::from_slice(&device, &x, [x.len()]).unwrap();
            let weights = Tensor::from_slice(&device, &weights, [3]).unwrap();
            let mut y = Tensor::zeros(&device, [m]).unwrap();
            convolved::best(&x, &weights, stride, &mut y).launch().unwrap();
            assert_eq!(y.to_vec().unwrap(), expected, "{label}: {stride}");
        }
    }
}

/// Whole tiles, of which the last is added to each: what conditions say of arguments holds in the body.
#[tile_kernel(where(n == B * count, count > 0))]
fn added<const B: usize>(x: &Tensor<f32, n>, count: usize, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let last = x.load([count - 1]);
    y.store_masked(x.load_masked(y.index()) + last);
}

#[test]
fn conditions_on_arguments_make_masks_and_checks_needless() {
    let instance = tile::ir::specialize(&added::ir(), &[("B".to_owned(), Binding::Const(4))]).unwrap();
    assert_eq!(instance.checks(), []);
    let optimized = tile::ir::text::print(&tile::ir::passes::optimize(instance));
    assert!(!optimized.contains("masked"), "{optimized}");
    let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [12]).unwrap();
        let mut y = Tensor::zeros(&device, [12]).unwrap();
        added::<4>(&x, 3, &mut y).launch().unwrap();
        let expected: Vec<f32> = (0..12).map(|i| (i + 8 + i % 4) as f32).collect();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
        let message = added::<4>(&x, 2, &mut y).launch().unwrap_err().to_string();
        assert!(message.contains("count = 2 (an argument), n = 12 (axis 0 of `x`)"), "{label}: {message}");
    }
}

/// Every `step`-th element of a row; an instance takes multiples of its own step.
#[tile_kernel(where(step % S == 0, step > 0, n == m * step), instances(S = 1 | 2 | 3))]
fn thinned<const S: usize>(x: &Tensor<f32, n>, step: usize, y: &mut Tensor<f32, m>) {
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let at = (Tile::<i32, 1>::iota([4], 0) + (i * 4) as i32) * step as i32;
    y.store_masked(x.gather([at]) + S as f32);
}

/// The tensors have the same shapes each time, so that nothing but the argument says which instance fits.
#[test]
fn a_choice_that_was_made_for_another_number_is_not_taken() {
    for (device, label) in devices() {
        let x = Tensor::<f32>::zeros(&device, [0]).unwrap();
        let mut y = Tensor::zeros(&device, [0]).unwrap();
        for step in [6, 1, 6, 5, 1] {
            let fits = |s: usize| format!("S = {s}");
            let launch = thinned::best(&x, step, &mut y);
            let instance = launch.instance().unwrap();
            let fitting: Vec<String> = (1..4).filter(|s| step % s == 0).map(fits).collect();
            assert!(fitting.contains(&instance), "{label}: {step} took {instance}");
            let choices = launch.choices().unwrap();
            let taken = choices.rows().iter().filter(|row| row.prediction.is_ok()).count();
            assert_eq!(taken, fitting.len(), "{label}: {step}\n{choices}");
            assert!(choices.to_string().contains(&format!("step = {step}")), "{label}: {choices}");
        }
        let message = thinned::best(&x, 0, &mut y).launch().unwrap_err().to_string();
        assert!(message.contains("step = 0"), "{label}: {message}");
    }
}

/// A prefix, whose length a tensor has too.
#[tile_kernel]
fn prefix(x: &Tensor<f32, n>, m: usize, bias: Option<&Tensor<f32, m>>, y: &mut Tensor<f32, m>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let mut tile = x.load_masked(y.index()) + m as f32;
    if let Some(bias) = bias {
        tile += bias.partition_view([4]).load_masked(y.index());
    }
    y.store_masked(tile);
}

#[test]
fn an_argument_and_an_axis_of_one_name_are_equal() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [6]).unwrap();
        let bias = Tensor::from_slice(&device, &[0.5; 5], [5]).unwrap();
        let mut y = Tensor::zeros(&device, [5]).unwrap();
        prefix(&x, 5, None, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [6.0, 7.0, 8.0, 9.0, 10.0], "{label}");
        prefix(&x, 5, Some(&bias), &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [6.5, 7.5, 8.5, 9.5, 10.5], "{label}");
        let error = prefix(&x, 4, None, &mut y).launch().unwrap_err();
        assert_eq!(
            error.reason().to_string(),
            "`m` of kernel `prefix` is 5 (axis 0 of `y`) and 4 (an argument); what shares a name must be equal",
            "{label}"
        );
    }
}

/// A size that an instance's parameters leave in no extent, and that the body assigns to.
#[tile_kernel(instances(K = 0 | 2))]
fn behind<const K: usize>(
    x: &Tensor<f32, { n + K * mut_by }>,
    mut mut_by: usize,
    by: usize,
    y: &mut Tensor<f32, { n + K * by }>,
    z: &Tensor<f32, n>,
) {
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let x = x.partition_view([4]);
    let z = z.partition_view([4]);
    mut_by += 1;
    y.store_masked(x.load_masked([i]) + z.load_masked([i]) + (by * 100 + mut_by) as f32);
}

#[test]
fn a_size_may_be_in_no_extent_of_an_instance() {
    for (device, label) in devices() {
        let x = Tensor::<f32>::zeros(&device, [2]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        behind::<0>(&x, 7, 3, &mut y, &x).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [308.0; 2], "{label}");
        let long = Tensor::<f32>::zeros(&device, [4]).unwrap();
        let mut y = Tensor::zeros(&device, [6]).unwrap();
        behind::<2>(&long, 1, 2, &mut y, &x).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [202.0; 6], "{label}");
    }
}

/// Runs of a graph that differ in nothing but the number are recorded anew.
#[test]
fn runs_of_a_graph_have_their_own_numbers() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[3.0, 1.0, 9.0, 2.0, 4.0, 4.0], [6]).unwrap();
        let (mut y, mut z) = (Tensor::zeros(&device, [4]).unwrap(), Tensor::zeros(&device, [2]).unwrap());
        let mut graph = tile::Graph::new(&device);
        for stride in [2, 3, 3, 2] {
            graph
                .run(|graph| {
                    graph.launch(pooled::<4>(&x, 1, &mut y))?;
                    graph.launch(pooled::<4>(&x, stride, &mut z))
                })
                .unwrap();
            let expected = [9.0, if stride == 2 { 9.0 } else { 4.0 }];
            assert_eq!(y.to_vec().unwrap(), [9.0, 9.0, 9.0, 4.0], "{label}");
            assert_eq!(z.to_vec().unwrap(), expected, "{label}: {stride}");
        }
    }
}
