//! Iterators of arrays, which tiles don't have, and what stands for those that arrays don't have.

use super::whole::check_kernel;
use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    const HALF: f32 = 0.5;

    #[derive(TileStruct)]
    pub(super) struct State {
        pub(super) m: f32,
        pub(super) sum: f32,
    }

    #[tile_fn]
    impl State {
        fn scaled(self, by: f32) -> Self {
            State { m: self.m * by, sum: self.sum * by }
        }
    }

    #[tile_fn]
    fn total(state: State) -> f32 {
        state.m + state.sum
    }

    #[tile_kernel]
    pub(super) fn scaled(x: f32, y: &mut Tensor<f32, 1>) {
        let more = |x| x + 1.0;
        let state = State { m: x, sum: more(x) };
        y.partition_view_mut([1]).store(Tile::full([1], total(state.scaled(HALF))));
    }
}
use kernels::{State, scaled};

/// A case for each element of `y`.
#[tile_kernel]
fn folded(x: &Tensor<f32, 3>, y: &mut Tensor<f32, 17>) {
    let x = x.partition_view([1]);
    let mut x = [x.load([0]).item(), x.load([1]).item(), x.load([2]).item()];
    let start = 1.0;
    let some = x.iter().map(|x| *x).fold(false, |any, value| any | (value > 0.0));
    let every = x.iter().map(|x| *x).fold(true, |all, value| all & (value > 0.0));
    let old = State { m: 1.0, sum: 2.0 };
    let m = 3.0;
    let changed = State { m, ..old };
    let scaled = x.map(|value| value * 2.0);
    let counted = [0, 1, 2].map(|i| i as f32);
    let same = [start; 3];
    let (first, last) = (x[0], x[x.len() - 1]);
    let most = x.into_iter().reduce(|a, b| max(a, b)).unwrap();
    let total = x.into_iter().fold(start, |a, b| a + b);
    (x[0], x[1]) = (x[1], x[0]);
    for i in 0..x.len() {
        x[i] += 1.0;
    }
    let (mut a, mut b) = (4.0, 5.0);
    (a, b) = (b, a);
    let kept = {
        let mut x = 6.0;
        let old = x;
        x = a;
        old - x
    };
    let signs = [1, -2].into_iter().fold(false, |any, value| any | (value > 0));
    let positive = [1, -2].into_iter().fold(true, |all, value| all & (value > 0));
    let dot = {
        let y = [1.0, 2.0, 4.0];
        x.iter().zip(y).map(|(x, y)| *x * y).sum::<f32>()
    };
    let ordered = {
        let x = [3, 5, 4];
        x.iter().max().unwrap() - x.iter().min().unwrap()
    };
    let folded = {
        let x = x.iter().map(|x| *x);
        x.fold(start, |a, b| a + b)
    };
    let rows = [
        if some { 1.0 } else { 0.0 },
        if every { 1.0 } else { 0.0 },
        changed.m + changed.sum,
        scaled[2],
        counted[2] + same[1],
        first,
        last,
        most,
        total,
        x[0],
        x[1],
        a - b,
        kept,
        if signs & !positive { 1.0 } else { 0.0 },
        dot,
        ordered as f32,
        folded,
    ];
    let mut y = y.partition_view_mut([1]).spanning([0]);
    for i in 0..rows.len() {
        y.at([i]).store(Tile::full([1], rows[i]));
    }
}

#[test]
fn arrays_are_folded_mapped_and_changed() {
    let expected = [1.0, 0.0, 5.0, 0.5, 3.0, -1.0, 0.25, 2.0, 2.25, 3.0, 0.0, 1.0, 1.0, 1.0, 8.0, 2.0, 5.25];
    check_kernel!(folded<>(input x: ([-1.0f32, 2.0, 0.25], [3]), output y: ([0f32; 17], [17] => expected, 0.0)));
}

#[test]
fn structs_have_functions() {
    check_kernel!(scaled<>(number x: (3f32), output y: ([0f32], [1] => [3.5], 0.0)));
}

/// Arguments of one kind are iterated as they are.
#[tile_kernel]
fn summed(values: [&Tensor<f32, n>; 3], y: &mut Tensor<f32, n>) {
    let mut y = y.partition_view_mut([4]);
    let mut sum = Tile::zeros([4]);
    for t in values {
        sum += t.partition_view([4]).load_masked(y.index());
    }
    y.store_masked(sum);
}

#[test]
fn arguments_are_iterated() {
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0, 5.0], [5]).expect("it fits");
    let mut y = Tensor::zeros(&device, [5]).expect("it fits");
    summed([&x, &x, &x], &mut y).launch().expect("it runs");
    assert_eq!(y.to_vec().expect("it is read"), [3.0, 6.0, 9.0, 12.0, 15.0]);
}
