//! Structs of tiles as the state of loops and branches.

use super::whole::check_kernel;
use super::{Case, array, check_exact, check_vectors, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

/// What an online softmax knows of the columns that it has seen.
#[derive(TileStruct)]
struct Seen<T: Float> {
    max: Tile<T, 2>,
    sum: Tile<T, 2>,
}

/// Softmax over rows of any length, in one pass for the state and one for the result.
#[tile_kernel]
fn online_softmax<const ROWS: usize, const COLUMNS: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([ROWS, COLUMNS]);
    let mut y = y.partition_view_mut([ROWS, COLUMNS]);
    let [i, j] = y.index();
    let mut seen = Seen { max: Tile::full([ROWS, 1], f32::NEG_INFINITY), sum: Tile::zeros([ROWS, 1]) };
    for p in 0..x.tiles(1) {
        let tile = x.load_masked_or(f32::NEG_INFINITY, [i, p]);
        let highest = max(seen.max, tile.max(1));
        let Seen { max: before, sum } = seen;
        seen = Seen { max: highest, ..seen };
        seen.sum = sum * exp(before - highest) + exp(tile - highest).sum(1);
    }
    let Seen { max, sum } = seen;
    y.store_masked(exp(x.load_masked([i, j]) - max) / sum);
}

#[test]
fn an_online_softmax_keeps_its_state_in_a_struct() {
    let (m, n) = (5, 21);
    let x = numbers::<f32>(m * n, 1);
    let row = |row: &[f32]| {
        let sum: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
        row.iter().map(move |&x| f64::from(x).exp() / sum).collect::<Vec<_>>()
    };
    Case {
        ir: online_softmax::ir(),
        bindings: &[("ROWS", Binding::Const(2)), ("COLUMNS", Binding::Const(8))],
        arguments: vec![array(&x, &[m, n]), array(&vec![0f32; m * n], &[m, n])],
        output: 1,
        expected: x.chunks(n).flat_map(row).collect(),
        tolerance: 1e-6,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, n])?;
            let mut y = Tensor::zeros(device, [m, n])?;
            online_softmax::<2, 8>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[derive(TileStruct)]
struct Inner {
    tile: Tile<i32, 1>,
    pair: (i32, bool),
}

#[derive(TileStruct)]
struct Outer<const N: usize> {
    inner: Inner,
    others: [Tile<i32, 1>; N],
    turns: usize,
}

/// Structs in structs, assigned part by part in branches that may leave.
#[tile_kernel]
fn nested_state<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let tile = x.load_masked([i]);
    let inner = Inner { tile, pair: (0, false) };
    let mut state = Outer { inner, others: [tile; 2], turns: 0usize };
    loop {
        state.turns += 1;
        if state.turns > 6 {
            break;
        }
        state.inner.pair.1 = !state.inner.pair.1;
        if state.inner.pair.1 {
            state.inner.pair.0 += 3;
            state.others[1] += state.inner.pair.0;
            continue;
        }
        let [a, b] = state.others;
        state.others = [b, a];
        state.inner = Inner { tile: state.inner.tile + a, ..state.inner };
    }
    y.store_masked(state.inner.tile * 10 + state.others[0] + state.turns as i32);
}

#[test]
fn parts_of_structs_are_variables() {
    let x: Vec<i32> = (0..13).collect();
    let one = |&x: &i32| {
        let (mut tile, mut pair, mut others) = (x, (0, false), [x, x]);
        for _ in 1..=6 {
            pair.1 = !pair.1;
            if pair.1 {
                pair.0 += 3;
                others[1] += pair.0;
                continue;
            }
            others.swap(0, 1);
            tile += others[1];
        }
        f64::from(tile * 10 + others[0] + 7)
    };
    let expected = x.iter().map(one).collect();
    let bindings = &[("B", Binding::Const(8))];
    check_vectors(nested_state::ir(), bindings, &x, expected, 0.0, |x, y| nested_state::<8>(x, y).launch());
}

#[tile_kernels]
mod typed {
    use tile::prelude::*;

    #[derive(TileStruct)]
    pub(super) struct Generator {
        state: u32,
        drawn: (usize, [u8; 2]),
    }

    #[derive(TileStruct)]
    pub(super) struct Scale(pub(super) f32, pub(super) i64);

    #[tile_fn]
    impl Generator {
        fn new() -> Generator {
            Generator { state: 1, drawn: (0, [200, 100]) }
        }

        fn next(&mut self) -> u32 {
            self.state = self.state * 1664525 + 1013904223;
            self.drawn.0 += 1;
            self.state >> 16
        }
    }

    /// Literals of fields are of the types that their structs say, wherever these stand in the module.
    #[tile_kernel]
    pub(super) fn draw<const B: usize>(x: &Tensor<f32, n>, turns: i32, y: &mut Tensor<f64, n>) {
        let mut y = y.partition_view_mut([B]);
        let t = x.partition_view([B]).load_masked(y.index());
        let mut own = Generator { state: 1, drawn: (0, [200, 100]) };
        let mut other = Generator::new();
        let mut sum = 0.0;
        for _ in 0..turns {
            own.state = own.state * 1664525 + 1013904223;
            sum += (own.state >> 16) as f64 + other.next() as f64 * 3.0;
        }
        own.drawn.1[0] += own.drawn.1[1];
        own.drawn.0 -= turns as usize;
        let mut scale = Scale(0.1, 1);
        for _ in 0..3 {
            scale = Scale(scale.0 * 3.0, scale.1 * 65_536);
        }
        sum += (own.drawn.1[0] as f64) + (scale.1 as f64);
        let small = if scale.0 > 2.7 { 0.25 } else { 0.5 };
        y.store_masked((t * scale.0).cast::<f64>() + (sum + small));
    }
}
use typed::draw;

#[test]
fn literals_of_fields_have_the_types_that_structs_say() {
    let (mut state, mut sum) = (1u32, 0.0);
    for _ in 0..5 {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        sum += f64::from(state >> 16) * 4.0;
    }
    let scale = 0.1f32 * 3.0 * 3.0 * 3.0;
    sum += f64::from(300u16 as u8) + 2f64.powi(48) + if scale > 2.7 { 0.25 } else { 0.5 };
    let expected = [1f32, 2.0, 3.0].map(|x| f64::from(x * scale) + sum);
    check_kernel!(draw<B = 2>(
        input x: ([1f32, 2.0, 3.0], [3]), number turns: (5i32),
        output y: (vec![0f64; 3], [3] => expected, 0.0),
    ));
}

#[tile_kernels]
mod decided_by_fields {
    use tile::prelude::*;

    #[derive(TileStruct)]
    pub(super) struct Sum<T: Number> {
        tile: Tile<T, 1>,
    }

    #[tile_fn]
    fn converted<T: Number>(x: T) -> f32 {
        Tile::full([1], x).cast::<f32>().item()
    }

    #[tile_fn]
    impl<T: Number> Sum<T> {
        fn half(&self) -> f32 {
            converted(T::of(7.0) / T::of(2.0))
        }

        fn greatest(&self) -> f32 {
            converted(T::MAX)
        }
    }

    #[derive(TileStruct)]
    pub(super) struct Pair<A: Number, B: Number, const N: usize, const R: usize> {
        sums: (Sum<B>, [A; N]),
        tile: Tile<i32, R>,
    }

    #[tile_fn]
    fn of_pair<S: Number, T: Number, const K: usize, const Q: usize>(_pair: Pair<S, T, K, Q>) -> f32 {
        let halves = converted(S::of(7.0) / S::of(2.0)) * 10.0 + converted(T::of(7.0) / T::of(2.0));
        halves * 100.0 + (K * 10 + Q) as f32
    }

    #[tile_kernel]
    pub(super) fn halves(x: &Tensor<i32, 2>, y: &mut Tensor<f32, 5>) {
        let x = x.partition_view([2]).load([0]);
        let of_floats = Sum { tile: x.cast::<f32>() };
        let pair = Pair { sums: (Sum { tile: x }, [1.5f32, 2.5]), tile: x.unsqueeze(0) };
        let declared: Sum<bf16> = Sum { tile: Tile::zeros([4]) };
        let sums = [
            Sum { tile: x }.half(),
            of_floats.half(),
            Sum { tile: x }.greatest(),
            of_pair(pair),
            declared.greatest(),
        ];
        y.partition_view_mut([5]).store(cat(sums.map(|sum| Tile::full([1], sum)), 0));
    }
}
use decided_by_fields::halves;

#[test]
fn fields_decide_the_parameters_of_functions() {
    let expected: [f32; 5] = [3.0, 3.5, 2_147_483_648.0, 3822.0, 3.3895314e38];
    check_exact!(halves<>(x: [1i32, 2], [2]) -> f32, [5] => expected);
}

#[tile_kernels]
mod scaled {
    use tile::prelude::*;

    const HALF: bf16 = bf16::of(0.5);

    /// Numbers of formats that Rust's `as` doesn't know, of which the functions that read them say nothing.
    #[derive(TileStruct)]
    struct Scaled {
        scale: f16,
        tile: Tile<bf16, 1>,
        turns: u32,
    }

    #[tile_fn]
    fn quarter() -> f16 {
        f16::of(0.25)
    }

    #[tile_fn]
    impl Scaled {
        fn scale(self) -> f32 {
            self.scale as f32 * self.turns as f32
        }

        fn halved(self) -> Self {
            Scaled { scale: self.scale * 0.5, ..self }
        }

        fn first(&self) -> f32 {
            let Scaled { tile, .. } = *self;
            tile.take(0, 0).item() as f32
        }
    }

    #[tile_fn]
    fn sum(scaled: Scaled) -> f32 {
        scaled.halved().scale() + quarter() as f32 + HALF as f32 * 100.0 + scaled.first()
    }

    #[tile_kernel]
    pub(super) fn of_formats(x: &Tensor<bf16, 2>, scale: f16, y: &mut Tensor<f32, 2>) {
        let tile = x.partition_view([2]).load([0]);
        let scaled = Scaled { scale, tile, turns: 3 };
        y.partition_view_mut([2]).store(tile.cast() + sum(scaled));
    }
}

#[test]
fn functions_convert_fields_of_any_format() {
    use scaled::of_formats;
    let x = [4.0, 7.0].map(bf16::from_f32);
    check_kernel!(of_formats<>(
        input x: (x, [2]), number scale: (f16::from_f32(8.0)),
        output y: (vec![0f32; 2], [2] => [70.25f32, 73.25], 0.0),
    ));
}
