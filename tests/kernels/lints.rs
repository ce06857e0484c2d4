//! What a kernel's author says of lints holds in its body, and what is expected happens: as a module that denies warnings
//! sees it.

use tile::prelude::*;

mod kernels {
    #![deny(unused_variables, non_snake_case, unfulfilled_lint_expectations)]

    use tile::prelude::*;

    #[tile_kernel(instances(B = 4))]
    pub(super) fn of_names<const B: usize>(
        #[expect(non_snake_case)] X: f32,
        #[allow(unused, non_snake_case)] Z: f32,
        y: &mut Tensor<f32, n>,
    ) {
        y.partition_view_mut([B]).store_masked(Tile::full([B], X));
    }

    #[tile_kernel]
    #[forbid(unused)]
    pub(super) fn forbidden<const B: usize>(x: f32, y: &mut Tensor<f32, n>) {
        y.partition_view_mut([B]).store_masked(Tile::full([B], x));
    }

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

/// Attributes that stand inside of what they are of, as Rust lets them.
mod inside {
    #![deny(unused_variables)]

    use tile::prelude::*;

    #[tile_kernels]
    mod kernels {
        use tile::prelude::*;

        #[tile_fn]
        fn three() -> f32 {
            //! A number.
            #![allow(unused_variables)]
            let unused = 1.0f32;
            3.0
        }

        #[tile_kernel]
        pub(in super::super) fn of_module<const B: usize>(unused: f32, y: &mut Tensor<f32, n>) {
            //! Stores threes.
            #![allow(unused_variables)]
            y.partition_view_mut([B]).store_masked(Tile::full([B], three()));
        }
    }

    pub(super) use kernels::of_module;

    #[tile_kernel]
    pub(super) fn alone<const B: usize>(unused: f32, y: &mut Tensor<f32, n>) {
        //! Stores fours.
        #![allow(unused_variables)]
        y.partition_view_mut([B]).store_masked(Tile::full([B], 4.0));
    }
}

#[test]
fn attributes_may_stand_inside() {
    let device = Device::reference();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    inside::of_module::<4>(1.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; 3]);
    inside::alone::<4>(1.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [4.0; 3]);
}

#[test]
fn lints_are_of_the_body() {
    let device = Device::reference();
    let mut y = Tensor::zeros(&device, [3]).unwrap();
    kernels::of_arguments::<4>(1.0, 2.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.0; 3]);
    kernels::of_names::<4>(3.0, 0.0, &mut y).launch().unwrap();
    kernels::of_names::best(4.0, 0.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [4.0; 3]);
    kernels::forbidden::<4>(5.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [5.0; 3]);
    kernels::of_kernels::<4>(1.0, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; 3]);
}
