//! What a launch refuses, and kernels in unusual places.

use super::products::matmul;
use tile::prelude::*;

/// Those devices of the host that have code of this program's kernels.
fn on_the_host() -> impl Iterator<Item = Device> {
    let cpu = cfg!(feature = "jit").then(Device::cpu);
    [Device::reference()].into_iter().chain(cpu)
}

#[test]
fn shapes_that_disagree_are_named() {
    let device = Device::reference();
    let a = Tensor::<bf16>::zeros(&device, [4, 5]).unwrap();
    let b = Tensor::<bf16>::zeros(&device, [6, 3]).unwrap();
    let mut c = Tensor::<f32>::zeros(&device, [4, 3]).unwrap();
    let message = matmul::<4, 4, 4>(&a, &b, &mut c).launch().unwrap_err().to_string();
    for part in ["`k`", "`a`", "`b`", "5", "6"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_wrong_rank_is_named() {
    let device = Device::reference();
    let a = Tensor::<bf16>::zeros(&device, [4]).unwrap();
    let b = Tensor::<bf16>::zeros(&device, [4, 3]).unwrap();
    let mut c = Tensor::<f32>::zeros(&device, [4, 3]).unwrap();
    let message = matmul::<4, 4, 4>(&a, &b, &mut c).launch().unwrap_err().to_string();
    assert!(message.contains("`a`") && message.contains("rank 1"), "{message}");
}

#[test]
fn an_empty_output_launches_nothing() {
    let device = Device::reference();
    let a = Tensor::<bf16>::zeros(&device, [0, 5]).unwrap();
    let b = Tensor::<bf16>::zeros(&device, [5, 3]).unwrap();
    let mut c = Tensor::<f32>::zeros(&device, [0, 3]).unwrap();
    matmul::<4, 4, 4>(&a, &b, &mut c).launch().unwrap();
    assert!(c.to_vec().unwrap().is_empty());
}

#[test]
fn launches_go_to_streams_and_graphs() {
    for device in on_the_host() {
        let stream = tile::Stream::new(&device).unwrap();
        let a = Tensor::<bf16>::ones(&device, [4, 5]).unwrap();
        let b = Tensor::<bf16>::ones(&device, [5, 3]).unwrap();
        let mut c = Tensor::<f32>::zeros(&device, [4, 3]).unwrap();
        matmul::<4, 4, 4>(&a, &b, &mut c).on(&stream).unwrap().wait().unwrap();
        assert_eq!(c.to_vec().unwrap(), [5.0; 12]);
        c.fill(0.0).unwrap();
        let mut graph = tile::Graph::new(&device);
        graph.run(|graph| graph.launch(matmul::<4, 4, 4>(&a, &b, &mut c))).unwrap();
        assert_eq!(c.to_vec().unwrap(), [5.0; 12]);
    }
}

/// A kernel reads and writes memory that isn't a tensor's own.
#[test]
fn foreign_memory_is_read_and_written() {
    for device in on_the_host() {
        let (mut x, mut y) = ([[bf16::ONE; 32]; 2], [[0f32; 16]; 2]);
        let place = |bytes: *mut u8| bytes.align_offset(16);
        let (x, y) = (x.as_flattened_mut().as_mut_ptr(), y.as_flattened_mut().as_mut_ptr());
        // SAFETY: a pointer moves by less than 16 bytes within arrays of 128.
        let (x, y) = unsafe {
            (x.byte_add(place(x.cast())).cast::<bf16>(), y.byte_add(place(y.cast())).cast::<f32>())
        };
        // SAFETY: from there on the arrays have room for 16 elements, and they outlive the tensors.
        let (a, mut c) = unsafe {
            let a = Tensor::<bf16>::from_raw(&device, x as u64, [4, 4]).unwrap();
            (a, Tensor::<f32>::from_raw(&device, y as u64, [4, 4]).unwrap())
        };
        matmul::<4, 4, 4>(&a, &a, &mut c).launch().unwrap();
        assert_eq!(c.to_vec().unwrap(), [4.0; 16]);
        // SAFETY: the element lies in the array, which nobody else uses now.
        assert_eq!(unsafe { y.add(15).read() }, 4.0);
    }
}

/// `dbg!` is its argument; on the reference device it prints.
#[test]
fn values_can_be_debugged() {
    #[tile_kernel]
    fn flip<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let x = x.load_masked(y.index());
        let negative = dbg!(x < 0.0);
        dbg!(n);
        y.store_masked(select(negative, dbg!(-x), x));
    }

    for (device, _) in super::devices() {
        let x = Tensor::from_slice(&device, &[-1.0, 2.0, -3.0], [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        flip::<2>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0, 2.0, 3.0]);
    }
}

/// A panic in a kernel's body is an error of the launch, and the device goes on.
#[test]
fn a_panic_in_a_kernel_is_an_error() {
    #[tile_kernel]
    fn beyond<const B: usize>(y: &mut Tensor<i32, n>) {
        let mut y = y.partition_view_mut([B]);
        // An extent is Rust's own `usize` on this device.
        let rest = n - 4;
        y.store_masked(Tile::full([B], rest as i32));
    }

    let device = Device::reference();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    let error = beyond::<2>(&mut y).launch().unwrap_err().to_string();
    assert!(error.contains("`beyond`") && error.contains("subtract with overflow"), "{error}");
    let mut y = Tensor::zeros(&device, [6]).unwrap();
    beyond::<2>(&mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2; 6]);
}

/// A kernel in a function, next to a variable of its name, with an attribute of its own.
#[test]
fn kernels_can_be_local() {
    #[tile_kernel]
    #[allow(unused_variables)]
    fn fill<const B: usize>(y: &mut Tensor<f32, n>, value: f32) {
        let mut y = y.partition_view_mut([B]);
        let unused = 3;
        y.store_masked(Tile::full([B], value));
    }

    let device = Device::reference();
    let mut y = Tensor::zeros(&device, [5]).unwrap();
    fill::<2>(&mut y, 1.5).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.5; 5]);
}

mod tripled {
    use tile::prelude::*;

    #[tile_kernel(instances(B = 2 | 4))]
    pub(super) fn tripled<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(x.load_masked(y.index()) * 3.0);
    }
}

// The module has this name as a type, to which the kernel's type gives way.
use tripled::*;

#[test]
fn a_kernel_may_have_the_name_of_its_module() {
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[1.0, 2.0, 3.0], [3]).unwrap();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    tripled::<4>(&x, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0, 6.0, 9.0]);
    let x = Tensor::from_slice(&device, &y.to_vec().unwrap(), [3]).unwrap();
    tripled::tripled::best(&x, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [9.0, 18.0, 27.0]);
}

/// In a crate that is built without checks of Rust's own arithmetic, as programs are for release. On other devices an extent
/// below zero reads as 0.
#[test]
fn extents_that_overflow_are_an_error_on_the_reference_device() {
    use tile_test_functions::extents::*;
    type Run = fn(&TensorRef<i32>, &mut TensorRef<i32>) -> tile::Result<()>;
    // Extents whose result fits, with what it is in each element.
    type Fitting = ([usize; 2], &'static [i32]);
    // What is launched, what it does and in which block first, and extents whose result doesn't fit.
    type Case = (&'static str, Run, &'static str, usize, Fitting, [usize; 2]);
    let cases: [Case; 6] = [
        ("sum", |x, y| sum(x, y).launch(), "add", 0, ([1, 1], &[2]), [4, 4]),
        ("difference", |x, y| difference(x, y).launch(), "subtract", 1, ([7, 5], &[0, 0, 0, 0, 2]), [4, 5]),
        ("product", |x, y| product(x, y).launch(), "multiply", 0, ([3, 2], &[3, 3]), [8, 2]),
        ("assigned_sum", |x, y| assigned_sum(x, y).launch(), "add", 0, ([1, 1], &[2]), [4, 4]),
        (
            "assigned_difference",
            |x, y| assigned_difference(x, y).launch(),
            "subtract",
            0,
            ([5, 2], &[3, 3]),
            [1, 2],
        ),
        (
            "assigned_product",
            |x, y| assigned_product(x, y).launch(),
            "multiply",
            0,
            ([3, 2], &[3, 3]),
            [8, 2],
        ),
    ];
    for (device, label) in super::devices() {
        for (name, run, verb, block, ([m, n], expected), large) in cases {
            let launched = |[m, n]: [usize; 2]| {
                let (x, mut y) =
                    (Tensor::zeros(&device, [m]).unwrap(), Tensor::full(&device, [n], 9).unwrap());
                run(&x, &mut y).map(|()| y.to_vec().unwrap())
            };
            assert_eq!(launched([m, n]).unwrap(), expected, "{name} on {label}");
            if label == "reference" {
                let expected = format!(
                    "kernel `{name}` panicked in block [{block}] on the reference device: attempt to {verb} with \
                     overflow"
                );
                assert_eq!(launched(large).unwrap_err().reason().to_string(), expected);
            } else if verb == "subtract" {
                assert_eq!(launched(large).unwrap(), vec![0; large[1]], "{name} on {label}");
            }
        }
    }
}

/// A size that has no name is none that another argument can name.
#[tile_kernel]
fn without_a_name(x: &Tensor<f32, _>, w: &Tensor<f32, x_0>, y: &mut Tensor<f32, x_0>) {
    let x = x.partition_view([4]);
    let w = w.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    y.store_masked(x.load_masked([1]) + w.load_masked(y.index()) * x_0 as f32);
}

#[test]
fn a_size_without_a_name_is_its_own() {
    for device in on_the_host() {
        let x = Tensor::from_slice(&device, &[1.0, 1.0, 1.0, 1.0, 7.0], [5]).unwrap();
        let w = Tensor::from_slice(&device, &[1.0, 2.0, 3.0], [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        without_a_name(&x, &w, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [10.0, 6.0, 9.0]);
    }
}
