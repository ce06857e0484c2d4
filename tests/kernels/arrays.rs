//! Arrays of arguments: several tensors and numbers of a kernel, as many as a number or a const parameter says.

use super::{array, compare, devices, numbers, numbers_of, widen};
use tile::ir::{Array, Binding, Op, interp, specialize};
use tile::prelude::*;

/// Σ weightsᵢ · inputsᵢ of any number of tensors, as sums of several devices' results.
#[tile_kernel(where(K <= 5), instances(B = 4, K = 2 | 5))]
fn weighted<const B: usize, const K: usize>(
    inputs: [&Tensor<f32, n>; K],
    weights: [f32; K],
    y: &mut Tensor<f32, n>,
) {
    let mut y = y.partition_view_mut([B]);
    let mut sum = Tile::zeros([B]);
    for i in 0..K {
        sum += inputs[i].partition_view([B]).load_masked(y.index()) * weights[i];
    }
    y.store_masked(sum);
}

const N: usize = 11;

/// The instance with these parameters, run by the evaluator; its arguments afterwards.
fn evaluated(
    kernel: &tile::ir::VerifiedKernel,
    bindings: &[(&str, usize)],
    arguments: Vec<Array>,
) -> Vec<Array> {
    let bindings: Vec<_> =
        bindings.iter().map(|&(name, value)| (name.to_owned(), Binding::Const(value))).collect();
    let instance = specialize(kernel, &bindings).expect("the arguments fit");
    assert!(instance.walk().into_iter().all(|op| instance.op(op).op != Op::If));
    assert_eq!(instance.params().len(), arguments.len());
    let mut arguments = arguments;
    interp::run(&instance, &mut arguments).expect("the arguments fit");
    arguments
}

fn weighted_sum<const K: usize>() {
    let inputs: [Vec<f32>; K] = std::array::from_fn(|i| numbers(N, i as u64 + 1));
    let weights: [f32; K] = std::array::from_fn(|i| i as f32 + 0.5);
    let of_place =
        |at: usize| f64::from(inputs.iter().zip(&weights).map(|(x, weight)| x[at] * weight).sum::<f32>());
    let expected: Vec<f64> = (0..N).map(of_place).collect();
    for (device, label) in devices() {
        let inputs =
            inputs.each_ref().map(|x| Tensor::from_slice(&device, x, [N]).expect("the arguments fit"));
        let mut y = Tensor::zeros(&device, [N]).expect("the arguments fit");
        weighted::<4, K>(inputs.each_ref().map(|x| &**x), weights, &mut y)
            .launch()
            .expect("the arguments fit");
        compare(label, &widen(&y.to_vec().expect("the arguments fit")), &expected, 1e-6);
        let mut y = Tensor::zeros(&device, [N]).expect("the arguments fit");
        let launch = weighted::best(inputs.each_ref().map(|x| &**x), weights, &mut y);
        if K != 2 && K != 5 {
            let message = launch.launch().expect_err("no instance is so long").to_string();
            assert!(message.contains(&format!("the launch has K = {K}")), "{message}");
            continue;
        }
        launch.launch().expect("the arguments fit");
        compare(label, &widen(&y.to_vec().expect("the arguments fit")), &expected, 1e-6);
    }
    let mut arguments: Vec<Array> = inputs.iter().map(|x| array(x, &[N])).collect();
    arguments.extend(weights.map(|weight| array(&[weight], &[])));
    arguments.push(array(&[0f32; N], &[N]));
    let arguments = evaluated(&weighted::ir(), &[("B", 4), ("K", K)], arguments);
    compare("the evaluator", &numbers_of(arguments.last().expect("the arguments fit")), &expected, 1e-6);
}

#[test]
fn a_const_parameter_says_how_many() {
    weighted_sum::<1>();
    weighted_sum::<2>();
    weighted_sum::<5>();
}

#[test]
fn errors_of_launches_name_elements() {
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0], [3]).unwrap();
    let short = Tensor::<f32>::zeros(&device, [2]).unwrap();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    let message = weighted::<4, 2>([&x, &short], [1.0; 2], &mut y).launch().unwrap_err().to_string();
    assert!(message.contains("3 (axis 0 of `inputs[0]`) and 2 (axis 0 of `inputs[1]`)"), "{message}");
    let message = weighted::<4, 6>([&x; 6], [1.0; 6], &mut y).launch().unwrap_err().to_string();
    assert!(message.contains("needs `K <= 5`") && message.contains("K = 6"), "{message}");
    let message = weighted::<4, 0>([], [], &mut y).launch().unwrap_err().to_string();
    assert!(message.contains("needs `K > 0`") && message.contains("K = 0"), "{message}");
}

/// A length that is computed, with arguments behind the array.
#[tile_kernel]
fn scaled_pair<const B: usize>(xs: [&Tensor<f32, n>; 1 << 1], by: f32, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    let [a, b] = xs.map(|x| x.partition_view([B]).load_masked(y.index()));
    y.store_masked((a - b) * by);
}

#[test]
fn arguments_stand_behind_an_array_of_a_computed_length() {
    for (device, label) in devices() {
        let tensor = |values: [f32; 3]| Tensor::from_slice(&device, &values, [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        scaled_pair::<4>([&tensor([4.0, 5.0, 6.0]), &tensor([1.0, 2.0, 4.0])], 2.0, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [6.0, 6.0, 4.0], "{label}");
    }
}

/// A step of momentum of several parameters.
#[tile_kernel(where(K <= 3))]
fn momentum<const K: usize>(
    parameters: [&mut Tensor<f32, n>; K],
    moments: [&mut Tensor<f32, n>; K],
    gradients: [&Tensor<f32, n>; K],
    rate: f32,
) {
    for i in (0..parameters.len()).rev() {
        let mut parameter = parameters[i].partition_view_mut([4]);
        let mut moment = moments[i].partition_view_mut([4]);
        let gradient = gradients[i].partition_view([4]);
        let next = moment.load_masked() * 0.5 + gradient.load_masked(parameter.index());
        moment.store_masked(next);
        parameter.store_masked(parameter.load_masked() - next * rate);
    }
}

#[test]
fn outputs_are_arrays_too() {
    for (device, label) in devices() {
        let tensor = |values: [f32; 3]| Tensor::from_slice(&device, &values, [3]).unwrap();
        let mut parameters = [tensor([1.0, 2.0, 3.0]), tensor([4.0, 5.0, 6.0])];
        let mut moments = [tensor([2.0, 0.0, 4.0]), tensor([0.0; 3])];
        let gradients = [tensor([1.0; 3]), tensor([2.0; 3])];
        let views = gradients.each_ref().map(|x| &**x);
        let outputs = parameters.each_mut().map(|x| &mut **x);
        momentum(outputs, moments.each_mut().map(|x| &mut **x), views, 0.5).launch().unwrap();
        assert_eq!(parameters[0].to_vec().unwrap(), [0.0, 1.5, 1.5], "{label}");
        assert_eq!(parameters[1].to_vec().unwrap(), [3.0, 4.0, 5.0], "{label}");
        assert_eq!(moments[0].to_vec().unwrap(), [2.0, 1.0, 3.0], "{label}");
        assert_eq!(moments[1].to_vec().unwrap(), [2.0; 3], "{label}");
    }
    let two = [[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let arguments = [two, [[2.0, 0.0, 4.0], [0.0; 3]], [[1.0; 3], [2.0; 3]]];
    let mut arguments: Vec<Array> = arguments.iter().flatten().map(|values| array(values, &[3])).collect();
    arguments.push(array(&[0.5f32], &[]));
    let arguments = evaluated(&momentum::ir(), &[("K", 2)], arguments);
    assert_eq!(numbers_of(&arguments[0]), [0.0, 1.5, 1.5]);
    assert_eq!(numbers_of(&arguments[3]), [2.0; 3]);
}

/// A tile of a view, and that of the next.
#[tile_fn]
fn neighbours<const B: usize>(view: PartitionView<'_, f32, 1>, i: usize) -> Tile<f32, 1> {
    view.load_masked([i]) + view.load_masked([i + 1])
}

/// Sums of shifted tensors: the views, which are `Copy`, are mapped in every turn of a loop and given to functions.
#[tile_kernel]
fn windows<const B: usize>(inputs: [&Tensor<f32, n>; 2], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let mut sum = Tile::zeros([B]);
    for distance in 0..3 {
        let views = inputs.map(|x| x.shift(0, distance).partition_view([B]));
        for view in views {
            sum += neighbours::<B>(view, i);
        }
        sum += views[1].load_masked([i]);
    }
    y.store_masked(sum);
}

#[test]
fn views_are_copied() {
    let x = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    // Sums of up to three neighbours of `x`, of which 1 and 10 times are in the inputs.
    let three = |i: usize| x.iter().take(i + 1).skip((i + 1).saturating_sub(3)).sum::<f32>();
    let expected: Vec<f32> =
        (0..6).map(|i| 21.0 * three(i) + if i < 2 { 11.0 * three(i + 4) } else { 0.0 }).collect();
    for (device, label) in devices() {
        let a = Tensor::from_slice(&device, &x, [6]).unwrap();
        let b = Tensor::from_slice(&device, &x.map(|x| 10.0 * x), [6]).unwrap();
        let mut y = Tensor::zeros(&device, [6]).unwrap();
        windows::<4>([&a, &b], &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
    }
}

/// Rows of four tensors, each of a length of its own, after each other.
#[tile_kernel]
fn concatenated(parts: [&Tensor<f32, _>; 4], y: &mut Tensor<f32, m>) {
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let place = Tile::<i64, 1>::iota([4], 0) + (i * 4) as i64;
    let mut joined = Tile::zeros([4]);
    let mut begin: i64 = 0;
    for i in 0..parts.len() {
        joined += parts[i].gather([place - begin]);
        begin += parts[i].extent(0) as i64;
    }
    y.store_masked(joined);
}

#[test]
fn elements_have_lengths_of_their_own() {
    let parts = [vec![1.0f32, 2.0], vec![3.0], vec![4.0, 5.0, 6.0, 7.0, 8.0], vec![9.0]];
    let expected: Vec<f32> = parts.concat();
    for (device, label) in devices() {
        let parts = parts.each_ref().map(|part| Tensor::from_slice(&device, part, [part.len()]).unwrap());
        let mut y = Tensor::zeros(&device, [9]).unwrap();
        concatenated(parts.each_ref().map(|part| &**part), &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
    }
}

/// Fills the first elements of outputs in turn, twice, until a limit.
#[tile_kernel(where(K <= 4))]
fn counted<const K: usize>(x: &Tensor<f32, n>, outputs: [&mut Tensor<f32, n>; K], limit: i32) {
    let x = x.partition_view([2]);
    let mut turns: i32 = 0;
    for round in [1.0, 2.0] {
        for output in outputs {
            if turns >= limit {
                break;
            }
            turns += 1;
            let mut output = output.partition_view_mut([2]);
            output.store_masked(x.load_masked(output.index()) * round);
        }
    }
}

#[test]
fn loops_over_outputs_go_through_them_again_and_are_left() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0], [3]).unwrap();
        let mut outputs: [_; 3] = std::array::from_fn(|_| Tensor::zeros(&device, [3]).unwrap());
        counted(&x, outputs.each_mut().map(|y| &mut **y), 4).launch().unwrap();
        assert_eq!(outputs[0].to_vec().unwrap(), [2.0, 4.0, 6.0], "{label}");
        assert_eq!(outputs[1].to_vec().unwrap(), [1.0, 2.0, 3.0], "{label}");
        assert_eq!(outputs[2].to_vec().unwrap(), [1.0, 2.0, 3.0], "{label}");
    }
}
