//! Methods of structs, by value, by reference and by `&mut self`, in kernels and the functions that they call.

use super::{Case, array, check_exact, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

#[tile_kernels]
mod attention {
    use tile::prelude::*;

    /// What flash attention knows of the keys that it has seen.
    #[derive(TileStruct)]
    pub(super) struct State {
        highest: Tile<f32, 2>,
        sum: Tile<f32, 2>,
        acc: Tile<f32, 2>,
    }

    #[tile_fn]
    impl State {
        /// log₂ e, so that a power of two is one of e.
        const LOG2_E: f32 = std::f32::consts::LOG2_E;

        pub(super) fn new<const ROWS: usize, const D: usize>() -> Self {
            Self {
                highest: Tile::full([ROWS, 1], f32::NEG_INFINITY),
                sum: Tile::zeros([ROWS, 1]),
                acc: Tile::zeros([ROWS, D]),
            }
        }

        pub(super) fn update(&mut self, scores: Tile<f32, 2>, values: Tile<f32, 2>) {
            let before = self.highest;
            self.highest = max(before, scores.max(1));
            let weights = exp2((scores - self.highest) * Self::LOG2_E);
            self.rescale(exp2((before - self.highest) * Self::LOG2_E));
            self.sum += weights.sum(1);
            self.acc = mma(weights, values, self.acc);
        }

        fn rescale(&mut self, by: Tile<f32, 2>) {
            self.sum *= by;
            self.acc *= by;
        }

        pub(super) fn result(self) -> Tile<f32, 2> {
            self.acc / self.sum
        }
    }

    #[tile_kernel]
    pub(super) fn flash<const ROWS: usize, const KEYS: usize, const D: usize>(
        q: &Tensor<f32, m, D>,
        k: &Tensor<f32, n, D>,
        v: &Tensor<f32, n, D>,
        y: &mut Tensor<f32, m, D>,
    ) {
        let q = q.partition_view([ROWS, D]);
        let k = k.partition_view([KEYS, D]);
        let v = v.partition_view([KEYS, D]);
        let mut y = y.partition_view_mut([ROWS, D]);
        let q = q.load_masked(y.index());
        let mut state = State::new::<ROWS, D>();
        for p in 0..k.tiles(0) {
            let scores = mma(q, k.load_masked([p, 0]).t(), Tile::zeros([ROWS, KEYS]));
            let inside = Tile::<i32, 2>::iota([1, KEYS], 1) + ((p * KEYS) as i32) < n as i32;
            state.update(select(inside, scores, f32::NEG_INFINITY), v.load_masked([p, 0]));
        }
        y.store_masked(state.result());
    }
}
use attention::flash;

#[test]
fn flash_attention_keeps_its_state_in_a_struct_with_methods() {
    const D: usize = 4;
    let (m, n) = (5, 11);
    let (q, k, v) = (numbers::<f32>(m * D, 1), numbers::<f32>(n * D, 2), numbers::<f32>(n * D, 3));
    let mut expected = Vec::new();
    for q in q.chunks(D) {
        let score =
            |k: &[f32]| q.iter().zip(k).map(|(&q, &k)| f64::from(q) * f64::from(k)).sum::<f64>().exp();
        let weights: Vec<f64> = k.chunks(D).map(score).collect();
        let sum: f64 = weights.iter().sum();
        let of_column = |d: usize| weights.iter().zip(v.chunks(D)).map(move |(w, v)| w * f64::from(v[d]));
        expected.extend((0..D).map(|d| of_column(d).sum::<f64>() / sum));
    }
    Case {
        ir: flash::ir(),
        bindings: &[("ROWS", Binding::Const(2)), ("KEYS", Binding::Const(4)), ("D", Binding::Const(D))],
        arguments: vec![
            array(&q, &[m, D]),
            array(&k, &[n, D]),
            array(&v, &[n, D]),
            array(&vec![0f32; m * D], &[m, D]),
        ],
        output: 3,
        expected,
        tolerance: 1e-5,
        run: &|device| {
            let q = Tensor::from_slice(device, &q, [m, D])?;
            let k = Tensor::from_slice(device, &k, [n, D])?;
            let v = Tensor::from_slice(device, &v, [n, D])?;
            let mut y = Tensor::zeros(device, [m, D])?;
            flash::<2, 4, D>(&q, &k, &v, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[tile_kernels]
mod counters {
    use tile::prelude::*;

    #[derive(TileStruct)]
    pub(super) struct Counter<T: Number> {
        tile: Tile<T, 1>,
        turns: i32,
    }

    #[tile_fn]
    impl<T: Number> Counter<T> {
        fn of(tile: Tile<T, 1>) -> Counter<T> {
            Counter { tile, turns: 0 }
        }

        fn plus(mut self, by: T) -> Self {
            for _ in 0..2 {
                self.tile += by;
            }
            self.turns += 1;
            self
        }

        /// Gives what was there.
        fn replace(&mut self, tile: Tile<T, 1>) -> Tile<T, 1> {
            let before = self.tile;
            *self = Counter { tile, turns: self.turns + 10 };
            before
        }

        fn many(&mut self, count: i32, by: T) {
            for k in 0..count {
                if k == 3 {
                    return;
                }
                *self = self.plus(by);
                self.wrap();
            }
        }

        fn wrap(&mut self) {
            self.turns += i32::MAX;
        }

        fn shown(&self) -> (Tile<T, 1>, i32) {
            (self.tile, self.turns)
        }
    }

    #[tile_fn]
    impl Default for Counter<i32> {
        fn default() -> Self {
            Counter { tile: Tile::zeros([1]), turns: 7 }
        }
    }

    /// What a function of another module calls comes along.
    #[tile_fn]
    pub(super) fn counted(x: Tile<i32, 1>) -> Tile<i32, 1> {
        let mut counter = Counter::of(x);
        counter.many(2, 5);
        let (tile, turns) = counter.shown();
        tile * 100 + turns
    }

    #[tile_kernel]
    pub(super) fn updates<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let [i] = y.index();
        let t = x.load_masked([i]);
        let mut counters = [Counter::of(t), Counter::default()];
        for k in 0..counters.len() {
            counters[k].many(k as i32 + 5, 3);
        }
        let mut before = t;
        while before.sum(0).item() < 50 && counters[1].turns < 1000 {
            if i > 0 {
                before = counters[0].replace(before + 20);
            } else {
                before += 30;
            }
            counters[1].turns += 400;
        }
        let (a, turns) = counters[0].plus(1).shown();
        y.store_masked(a * 1000 + before + (turns + counters[1].turns) * 7 + counters[1].tile);
    }

    /// Variables with the names by which a call that changes its struct is written out.
    #[tile_kernel]
    pub(super) fn named<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let updated = x.load_masked(y.index());
        let mut given = Counter::of(updated * 2);
        let before = given.replace(updated);
        y.store_masked(given.tile * 10 + before);
    }
}
use counters::{named, updates};

/// The same in plain Rust, of one block of two elements.
fn updated(block: usize, t: [i32; 2]) -> [i32; 2] {
    // `many` leaves at its fourth turn, after three of `plus`, each of which adds twice and wraps.
    let turns_of_many = (0..3).fold(0i32, |turns, _| (turns + 1).wrapping_add(i32::MAX));
    let mut tiles = [t.map(|t| t + 18), [18, 18]];
    let mut turns = [turns_of_many, turns_of_many.wrapping_add(7)];
    let mut before = t;
    while before.iter().sum::<i32>() < 50 && turns[1] < 1000 {
        if block > 0 {
            let given = before.map(|t| t + 20);
            before = std::mem::replace(&mut tiles[0], given);
            turns[0] = turns[0].wrapping_add(10);
        } else {
            before = before.map(|t| t + 30);
        }
        turns[1] = turns[1].wrapping_add(400);
    }
    let turns = turns[0].wrapping_add(1).wrapping_add(turns[1]).wrapping_mul(7);
    std::array::from_fn(|k| {
        let a = (tiles[0][k] + 2).wrapping_mul(1000);
        a.wrapping_add(before[k]).wrapping_add(turns).wrapping_add(tiles[1][k])
    })
}

#[test]
fn methods_change_parts_of_values_in_branches_and_loops() {
    let x = [1, 2, 3, 4, -7, 60];
    let expected: Vec<i32> =
        (0..3).flat_map(|block| updated(block, [x[2 * block], x[2 * block + 1]])).collect();
    check_exact!(updates<B = 2>(x: x, [6]) -> i32, [6] => expected);
}

#[test]
fn variables_have_any_names_where_methods_are_called() {
    let x = [1, -2, 3];
    check_exact!(named<B = 2>(x: x, [3]) -> i32, [3] => x.map(|x| 12 * x));
}

/// A kernel of another module.
#[tile_kernel]
fn of_another_module<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(counters::counted(x.load_masked(y.index())));
}

#[test]
fn methods_travel_with_functions_that_call_them() {
    let turns = (0..2).fold(0i32, |turns, _| (turns + 1).wrapping_add(i32::MAX));
    let expected = [1, -4, 9].map(|x: i32| ((x + 20) * 100).wrapping_add(turns));
    check_exact!(of_another_module<B = 2>(x: [1, -4, 9], [3]) -> i32, [3] => expected);
}

#[tile_kernels]
mod of_one_name {
    use tile::prelude::*;

    #[derive(TileStruct)]
    pub(super) struct Sum {
        tile: Tile<f32, 1>,
    }

    #[derive(TileStruct)]
    pub(super) struct Count {
        turns: i32,
    }

    #[tile_fn]
    impl Sum {
        fn update(&mut self, by: f32) {
            self.tile += by;
        }
    }

    #[tile_fn]
    impl Count {
        fn update(self, by: i32) -> Count {
            Count { turns: self.turns + by }
        }
    }

    /// A method that changes its struct, and one of the same name that gives another.
    #[tile_kernel]
    pub(super) fn counted_and_summed<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let mut y = y.partition_view_mut([B]);
        let mut sum = Sum { tile: x.partition_view([B]).load_masked(y.index()) };
        let mut count = Count { turns: 1 };
        for k in 0..3 {
            sum.update(0.5);
            count = count.update(k);
        }
        let more = count.update(10);
        y.store_masked(sum.tile + (count.turns * 100 + more.turns) as f32);
    }
}
use of_one_name::counted_and_summed;

#[test]
fn a_method_by_value_keeps_its_value_beside_one_of_its_name_that_changes_its_struct() {
    let x = [1.0f32, -2.0, 0.5];
    check_exact!(counted_and_summed<B = 2>(x: x, [3]) -> f32, [3] => x.map(|x| x + 1.5 + 414.0));
}

#[tile_kernels]
mod of_parameters {
    use tile::prelude::*;

    #[derive(TileStruct)]
    pub(super) struct Counter<T: Number> {
        tile: Tile<T, 1>,
        turns: i32,
    }

    #[tile_fn]
    impl<T: Number> Counter<T> {
        fn zeros<const N: usize>() -> Counter<T> {
            Counter { tile: Tile::zeros([N]), turns: N as i32 }
        }

        fn grown<const N: usize>(self) -> Self {
            Counter { tile: cat([self.tile, Self::zeros::<N>().tile], 0), turns: self.turns + N as i32 }
        }

        fn third() -> f32 {
            Tile::full([1], T::of(7.0) / T::of(3.0)).cast::<f32>().item()
        }

        fn thirds(self, by: T) -> f32 {
            Self::third() + (self.tile / by).cast::<f32>().sum(0).item()
        }
    }

    #[derive(TileStruct)]
    pub(super) struct Several<const N: usize> {
        parts: [Tile<f32, 1>; N],
    }

    #[tile_fn]
    impl<const N: usize> Several<N> {
        fn count() -> i32 {
            N as i32
        }

        fn scaled<const BY: usize>(self) -> Tile<f32, 1> {
            let mut sum = Tile::zeros([2]);
            for part in self.parts {
                sum += part;
            }
            sum * (BY * 10 + Self::count() as usize) as f32
        }
    }

    #[tile_kernel]
    pub(super) fn own_parameters(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 8>) {
        let x = x.partition_view([2]).load([0]);
        let counter = Counter::zeros::<2>();
        let zeros = counter.tile + x;
        let grown = Counter { tile: zeros, turns: counter.turns }.grown::<2>();
        let sums =
            [grown.turns as f32, Counter::<i32>::third(), grown.thirds(2.0), Several::<5>::count() as f32];
        let scaled = Several { parts: [x, x, x] }.scaled::<2>();
        let of_path = Counter::<f32>::zeros::<2>().grown::<1>();
        let sums = cat(sums.map(|sum| Tile::full([1], sum)), 0);
        y.partition_view_mut([8]).store(cat([sums, scaled, Tile::full([2], of_path.turns as f32)], 0));
    }
}
use of_parameters::own_parameters;

#[test]
fn methods_have_parameters_beside_those_of_their_type() {
    check_exact!(own_parameters<>(x: [1f32, 2.0], [2]) -> f32, [8] =>
        [4f32, 2.0, 7.0 / 3.0 + 1.5, 5.0, 69.0, 138.0, 3.0, 3.0]);
}
