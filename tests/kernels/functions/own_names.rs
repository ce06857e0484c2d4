//! Functions of users whose names are near those of kernels, or those of other libraries; ranks that follow from
//! arguments.

use super::super::check_vectors;
use crate::kernels::functions::own_names::relu::relu;
use tile::ir::Binding;
use tile::prelude::*;

/// A module of the name of a function that it has.
mod relu {
    use tile::prelude::*;

    #[tile_fn]
    pub(super) fn relu(x: Tile<i32, 1>) -> Tile<i32, 1> {
        max(x, 0)
    }

    #[tile_fn]
    pub(super) fn leaky(x: Tile<i32, 1>) -> Tile<i32, 1> {
        select(x < 0, x * 2, x)
    }
}

#[tile_kernel]
fn own_names<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let rows = scaled(t.reshape([1, B]), 3).reshape([B]);
    y.store_masked(expp(t) + dot(t, t) * 100 + relu(t) * 10_000 + relu::leaky(t) + scaled(rows, 5));
}

/// A name that is near one of kernels.
#[tile_fn]
fn expp(x: Tile<i32, 1>) -> Tile<i32, 1> {
    x + 1
}

/// A name of another library.
#[tile_fn]
fn dot(x: Tile<i32, 1>, y: Tile<i32, 1>) -> Tile<i32, 1> {
    x * y
}

/// The module of a function that a kernel names before.
#[tile_fn]
fn steep(x: Tile<i32, 1>) -> Tile<i32, 1> {
    relu::leaky(x) + 1
}

/// The rank that a parameter says.
#[tile_fn]
fn twice<const R: usize>(x: Tile<i32, R>) -> Tile<i32, R> {
    let doubled: Tile<i32, R> = x * 2;
    doubled
}

#[tile_kernel]
fn name_and_module<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    y.store_masked(relu(t) + twice(steep(t)));
}

#[test]
fn a_name_is_that_of_a_function_and_of_its_module() {
    let x = [1, -2, 3, -4];
    let expected = x.map(|x: i32| f64::from(x.max(0) + 2 * (if x < 0 { x * 2 } else { x } + 1)));
    let launch = |x: &Tensor<i32>, y: &mut Tensor<i32>| name_and_module::<4>(x, y).launch();
    check_vectors(name_and_module::ir(), &[("B", Binding::Const(4))], &x, expected.into(), 0.0, launch);
}

/// Modules and functions of names that other languages have.
mod tl {
    use tile::prelude::*;

    #[tile_fn]
    pub(super) fn sum(x: Tile<i32, 1>, y: Tile<i32, 1>) -> Tile<i32, 1> {
        x + y
    }
}

mod cuda {
    use tile::prelude::*;

    #[tile_fn]
    pub(super) fn zeros<const N: usize>() -> Tile<i32, 1> {
        Tile::zeros([N])
    }

    #[tile_fn]
    pub(super) fn ravel(x: Tile<i32, 1>) -> Tile<i32, 1> {
        x * 7
    }
}

use cuda::zeros;

#[tile_fn]
fn around<const N: usize>(x: Tile<i32, 1>) -> Tile<i32, 1> {
    self::tl::sum(cuda::ravel(x), zeros::<N>())
}

#[tile_kernel]
fn names_of_others<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    y.store_masked(self::tl::sum(around::<B>(t) + zeros::<B>(), cuda::ravel(t) + cuda::zeros::<B>()));
}

#[test]
fn users_name_functions_as_other_languages_do() {
    let x: Vec<i32> = (-9..10).collect();
    let expected = x.iter().map(|&x| f64::from(14 * x)).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(names_of_others::ir(), bindings, &x, expected, 0.0, |x, y| {
        names_of_others::<8>(x, y).launch()
    });
}

/// A struct of the name of a type that allocates, beside a function that takes it.
#[tile_kernels]
mod boxes {
    use tile::prelude::*;

    #[derive(TileStruct)]
    struct Box {
        kept: Tile<i32, 1>,
    }

    #[tile_fn]
    fn opened(of: Box) -> Tile<i32, 1> {
        of.kept
    }

    #[tile_kernel]
    pub(super) fn kernel<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let mut y = y.partition_view_mut([B]);
        y.store_masked(opened(Box { kept: x.partition_view([B]).load_masked(y.index()) }));
    }
}

#[test]
fn users_name_structs_as_they_like() {
    let x: Vec<i32> = (-9..10).collect();
    let expected = x.iter().map(|&x| f64::from(x)).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(boxes::kernel::ir(), bindings, &x, expected, 0.0, |x, y| boxes::kernel::<8>(x, y).launch());
}

/// Of any rank.
#[tile_fn]
fn scaled<T: Number, const R: usize>(x: Tile<T, R>, factor: T) -> Tile<T, R> {
    x * factor
}

#[test]
fn users_name_functions_as_they_like() {
    let x: Vec<i32> = (-9..10).collect();
    let one = |&x: &i32| {
        let leaky = if x < 0 { 2 * x } else { x };
        f64::from(x + 1 + x * x * 100 + x.max(0) * 10_000 + leaky + x * 15)
    };
    let expected = x.iter().map(one).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(own_names::ir(), bindings, &x, expected, 0.0, |x, y| own_names::<8>(x, y).launch());
}

#[test]
fn kernels_in_a_block_call_functions_of_the_block() {
    #[tile_kernel(instances(B = 4))]
    fn kernel<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(abss(dot(x.load_masked(y.index()), Tile::full([B], -3))));
    }

    #[tile_fn]
    fn abss(x: Tile<i32, 1>) -> Tile<i32, 1> {
        abs(x) + 1
    }

    let x = [-2, -1, 0, 1, 2];
    let expected = x.iter().map(|&x: &i32| f64::from(x.abs() * 3 + 1)).collect();
    let bindings = &[("B", Binding::Const(4))];
    check_vectors(kernel::ir(), bindings, &x, expected, 0.0, |x, y| kernel::best(x, y).launch());
}

#[tile_kernels]
mod tenfold {
    use tile::prelude::*;

    const FACTOR: i32 = 10;

    #[derive(TileStruct)]
    pub(super) struct Sum {
        tile: Tile<i32, 1>,
    }

    #[tile_fn]
    impl Sum {
        pub(super) fn value(self) -> Tile<i32, 1> {
            self.tile * FACTOR
        }

        pub(super) fn negated(self) -> Self {
            Self { tile: -self.tile }
        }
    }

    #[tile_fn]
    pub(super) fn start(x: Tile<i32, 1>) -> Sum {
        Sum { tile: x }
    }
}

#[tile_kernels]
mod once {
    use super::tenfold;
    use tile::prelude::*;

    #[derive(TileStruct)]
    struct Sum {
        tile: Tile<i32, 1>,
    }

    #[tile_fn]
    impl Sum {
        fn value(self) -> Tile<i32, 1> {
            self.tile
        }
    }

    #[tile_kernel]
    pub(super) fn both_sums<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let t = x.load_masked(y.index());
        let mut of_other = tenfold::start(t);
        for _ in 0..3 {
            of_other = of_other.negated();
        }
        y.store_masked(of_other.value() * 100 + Sum { tile: t }.value());
    }
}

#[test]
fn structs_of_two_modules_have_their_own_methods() {
    let x: Vec<i32> = (-9..10).collect();
    let expected = x.iter().map(|&x| f64::from(-1000 * x + x)).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(once::both_sums::ir(), bindings, &x, expected, 0.0, |x, y| {
        once::both_sums::<8>(x, y).launch()
    });
}
