//! What extents and lengths of a signature may be besides names and numbers, where the body names them too.

use super::numbers;
use super::whole::check_kernel;
use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    const WIDE: usize = 2usize.pow(3);
    #[allow(non_upper_case_globals)]
    const rows: usize = 2;

    /// Extents that are constants of the module are no sizes of a launch.
    #[tile_kernel]
    pub(super) fn of_constants(x: &Tensor<f32, rows, WIDE>, y: &mut Tensor<f32, rows, WIDE>) {
        let mut y = y.partition_view_mut([1, WIDE]);
        let tile = x.partition_view([1, WIDE]).load_masked(y.index());
        y.store_masked(tile * rows as f32);
    }

    /// A size in braces, which the body names.
    #[tile_kernel]
    #[allow(unused_braces)]
    pub(super) fn in_braces<const B: usize>(x: &Tensor<f32, { m }>, y: &mut Tensor<f32, n>) {
        let mut y = y.partition_view_mut([B]);
        let tile = x.partition_view([B]).load_masked(y.index());
        y.store_masked(tile + m as f32);
    }
}

use kernels::{in_braces, of_constants};

#[test]
fn constants_of_the_module_are_extents() {
    let x: Vec<f32> = numbers(16, 1);
    let doubled: Vec<f32> = x.iter().map(|x| x * 2.0).collect();
    check_kernel!(of_constants<>(input x: (&x, [2, 8]), output y: (&[0f32; 16], [2, 8] => &doubled, 0.0)));
}

#[test]
fn sizes_stand_in_braces() {
    let x: Vec<f32> = numbers(6, 2);
    let raised: Vec<f32> = x.iter().map(|x| x + 6.0).collect();
    check_kernel!(in_braces<B = 4>(input x: (&x, [6]), output y: (&[0f32; 6], [6] => &raised, 0.0)));
}

/// A length in braces is a const parameter by itself, which `best` is given.
#[tile_kernel(where(K <= 4), instances(B = 4, K = 2))]
fn total<const B: usize, const K: usize>(xs: [&Tensor<f32, n>; { K }], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    let mut sum = Tile::zeros([B]);
    for k in 0..K {
        sum += xs[k].partition_view([B]).load_masked(y.index());
    }
    y.store_masked(sum);
}

#[test]
fn lengths_stand_in_braces() {
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0], [3]).unwrap();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    total::best::<2>([&x, &x], &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0, 4.0, 6.0]);
    total::<4, 3>([&x, &x, &x], &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0, 6.0, 9.0]);
}

/// An argument has the kernel's own name, as that of a thing that is done often has.
#[tile_kernel(instances(B = 4))]
fn scale<const B: usize>(x: &Tensor<f32, n>, scale: f32, y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.partition_view([B]).load_masked(y.index()) * scale);
}

#[test]
fn arguments_have_the_kernels_name() {
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0], [3]).unwrap();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    scale::best(&x, 3.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0, 6.0, 9.0]);
    scale::<2>(&x, 2.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0, 4.0, 6.0]);
}

/// Rust's names have marks of many scripts, which are no letters.
#[tile_kernel]
fn क्षेत्र<const ब्लॉक: usize>(
    l·l: &Tensor<f32, ที่>, y: &mut Tensor<f32, ที่>
) {
    let mut y = y.partition_view_mut([ब्लॉक]);
    let l·l = l·l.partition_view([ब्लॉक]).load_masked(y.index());
    tile_assert!(ที่ > 0, "of {ที่}");
    y.store_masked(l·l + ที่ as f32);
}

#[test]
fn names_are_of_any_script() {
    let x: Vec<f32> = numbers(6, 3);
    let raised: Vec<f32> = x.iter().map(|x| x + 6.0).collect();
    check_kernel!(क्षेत्र<ब्लॉक = 4>(input l·l: (&x, [6]), output y: (&[0f32; 6], [6] => &raised, 0.0)));
}

/// A parameter that a launch binds once more beside its `::<…>`.
#[test]
fn parameters_are_given_once() {
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0], [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        let wrong = scale::<2>(&x, 2.0, &mut y).constant("B", 4).launch().unwrap_err().to_string();
        let said = "kernel `scale`: `B` is given twice, as 2 and as 4; name it once\n";
        assert!(wrong.starts_with(said), "{label}: {wrong}");
        assert_eq!(y.to_vec().unwrap(), [0.0; 3]);
    }
}
