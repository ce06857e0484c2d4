//! What a kernel's author says of lints holds in its body, and what is expected happens: as a module that denies warnings
//! sees it.

use tile::prelude::*;

mod kernels {
    #![deny(unused_variables, unfulfilled_lint_expectations)]

    use tile::prelude::*;

    #[tile_kernel]
    pub(super) fn of_arguments<const B: usize>(
        #[allow(unused_variables)] left_out: f32,
        #[expect(unused_variables, reason = "the caller has it")] unused: f32,
        y: &mut Tensor<f32, n>,
    ) {
        y.partition_view_mut([B]).store_masked(Tile::ones([B]));
    }

    #[tile_kernel]
    #[expect(unused_variables)]
    pub(super) fn of_kernels<const B: usize>(unused: f32, y: &mut Tensor<f32, n>) {
        y.partition_view_mut([B]).store_masked(Tile::full([B], 2.0));
    }
}

#[test]
fn lints_are_of_the_body() {
    let device = Device::reference();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    kernels::of_arguments::<4>(1.0, 2.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.0; 3]);
    kernels::of_kernels::<4>(1.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; 3]);
}
