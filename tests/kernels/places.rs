//! Errors of launches say where in the program the launch is, and its kernel.

use std::future::IntoFuture;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tile::prelude::*;
use tile::{Graph, Stream};

/// The line of the kernel's function below.
const KERNEL_LINE: u32 = line!() + 3;

#[tile_kernel(instances(B = 4 | 8))]
fn halved<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) * 0.5);
}

/// What an error says behind its reason.
fn places(launch_line: u32, launch_column: u32) -> String {
    let file = file!();
    format!(
        "\n  --> {file}:{launch_line}:{launch_column}, the launch\n  --> {file}:{KERNEL_LINE}:4, kernel `halved`"
    )
}

const DISAGREE: &str = "`n` of kernel `halved` is 4 (axis 0 of `x`) and 5 (axis 0 of `y`); axes that share a name must have equal extents";

#[test]
fn a_refused_launch_says_where_it_is() {
    let device = Device::reference();
    let stream = Stream::new(&device).unwrap();
    let x = Tensor::<f32>::zeros(&device, [4]).unwrap();
    let mut y = Tensor::<f32>::zeros(&device, [5]).unwrap();

    let line = line!() + 1;
    let error = halved::<4>(&x, &mut y).launch().unwrap_err();
    assert_eq!(error.to_string(), format!("{DISAGREE}{}", places(line, 17)));
    assert_eq!(error.reason().to_string(), DISAGREE);
    assert_eq!(format!("{error:?}"), error.to_string(), "what `main` prints");

    let expected = |line| format!("{DISAGREE}{}", places(line, 17));
    let line = line!() + 1;
    let error = halved::<4>(&x, &mut y).on(&stream).map(drop).unwrap_err();
    assert_eq!(error.to_string(), expected(line));
    let line = line!() + 1;
    let error = halved::<4>(&x, &mut y).warm().unwrap_err();
    assert_eq!(error.to_string(), expected(line));
    let line = line!() + 1;
    let error = halved::<4>(&x, &mut y).grid().unwrap_err();
    assert_eq!(error.to_string(), expected(line));

    let line = line!() + 1;
    let launch = halved::<4>(&x, &mut y);
    let error = Graph::new(&device).run(|graph| graph.launch(launch)).unwrap_err();
    assert_eq!(error.to_string(), format!("{DISAGREE}{}", places(line, 18)));

    let line = line!() + 1;
    let launch = halved::<4>(&x, &mut y);
    let polled = pin!(launch.into_future()).poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Err(error)) = polled else { panic!("it is refused at once") };
    assert_eq!(error.to_string(), format!("{DISAGREE}{}", places(line, 18)));

    let line = line!() + 1;
    let error = halved::best(&x, &mut y).launch().unwrap_err();
    assert_eq!(error.to_string(), expected(line));
}

/// Whoever waits for a launch is told where that is, not where it is waited for.
#[test]
fn a_launch_that_fails_later_says_where_it_is() {
    #[tile_kernel]
    fn positive<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let x = x.load_masked_or(1.0, y.index());
        tile_assert!(x > 0.0, "a logarithm of what isn't positive");
        y.store_masked(log(x));
    }

    for (device, _) in super::devices() {
        let stream = Stream::new(&device).unwrap();
        let x = Tensor::<f32>::zeros(&device, [4]).unwrap();
        let mut y = Tensor::<f32>::zeros(&device, [4]).unwrap();
        let line = line!() + 1;
        let launch = positive::<4>(&x, &mut y);
        // A GPU's launch with assertions is waited for, which tells at once.
        let later = launch.on(&stream).map(|pending| pending.detach()).and_then(|()| stream.synchronize());
        let error = later.unwrap_err().to_string();
        assert!(error.starts_with("assertion failed in block [0] of kernel `positive`, at "), "{error}");
        assert!(error.contains(&format!("\n  --> {}:{line}:22, the launch\n", file!())), "{error}");
    }
}

/// Arguments that are `mut`, one by one, optional and in an array, changed in branches and loops.
#[tile_kernel]
fn changed_arguments(
    x: &Tensor<f32, n>,
    mut scale: f32,
    mut turns: usize,
    mut weights: [f32; 2],
    y: &mut Tensor<f32, n>,
) {
    let x = x.partition_view([2]);
    let mut y = y.partition_view_mut([2]);
    while turns > 1 {
        turns -= 1;
        scale *= 2.0;
    }
    if scale > 3.0 {
        weights[1] += scale;
    }
    y.store_masked(x.load_masked(y.index()) * weights[0] + weights[1] + turns as f32);
}

#[test]
fn arguments_are_changed_where_they_are_mut() {
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0], [3]).unwrap();
        for (turns, more) in [(1usize, 0.0), (3, 6.0)] {
            let mut y = Tensor::zeros(&device, [3]).unwrap();
            changed_arguments(&x, 1.5, turns, [2.0, 0.5], &mut y).launch().unwrap();
            let expected = [1.0f32, 2.0, 3.0].map(|x| x * 2.0 + 0.5 + more + 1.0);
            assert_eq!(y.to_vec().unwrap(), expected, "{label}");
        }
    }
}
