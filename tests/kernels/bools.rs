//! Const parameters that are `bool`: branches on them are taken when an instance is made.

use super::whole::check_kernel;
use super::{devices, numbers};
use tile::ir::{Binding, Op, passes, specialize};
use tile::prelude::*;

/// Attention of queries to keys of its head: with `CAUSAL`, to those that aren't behind the query.
#[tile_kernel(instances(B = 16 | 32, D = 16, CAUSAL = true | false))]
fn attention<const B: usize, const D: usize, const CAUSAL: bool>(
    q: &Tensor<f32, l, D>,
    k: &Tensor<f32, s, D>,
    v: &Tensor<f32, s, D>,
    o: &mut Tensor<f32, l, D>,
) {
    let (k, v) = (k.partition_view([B, D]), v.partition_view([B, D]));
    let mut o = o.partition_view_mut([B, D]);
    let [i, _] = o.index();
    let q = q.partition_view([B, D]).load_masked([i, 0]);
    let row = Tile::<i32, 2>::iota([B, 1], 0) + (i * B) as i32;
    let mut highest = Tile::full([B, 1], f32::NEG_INFINITY);
    let (mut sum, mut acc) = (Tile::zeros([B, 1]), Tile::zeros([B, D]));
    let end = if CAUSAL { (i + 1).min(k.tiles(0)) } else { k.tiles(0) };
    for j in 0..end {
        let column = Tile::<i32, 2>::iota([1, B], 1) + (j * B) as i32;
        let mut scores = mma(q, k.load_masked([j, 0]).t(), Tile::zeros([B, B]));
        scores = select(column < s as i32, scores, f32::NEG_INFINITY);
        if CAUSAL {
            scores = select(row >= column, scores, f32::NEG_INFINITY);
        }
        let next = max(highest, scores.max(1));
        let (p, rescaled) = (exp(scores - next), exp(highest - next));
        sum = sum * rescaled + p.sum(1);
        acc = mma(p, v.load_masked([j, 0]), acc * rescaled);
        highest = next;
    }
    o.store_masked(acc / sum);
}

const LENGTH: usize = 40;
const DEPTH: usize = 16;

fn attended(q: &[f32], k: &[f32], v: &[f32], causal: bool) -> Vec<f64> {
    let dot = |i: usize, j: usize| -> f64 {
        (0..DEPTH).map(|p| f64::from(q[i * DEPTH + p]) * f64::from(k[j * DEPTH + p])).sum()
    };
    let row = |i: usize| {
        let weights: Vec<f64> = (0..if causal { i + 1 } else { LENGTH }).map(|j| dot(i, j).exp()).collect();
        let sum: f64 = weights.iter().sum();
        (0..DEPTH)
            .map(move |p| {
                weights.iter().enumerate().map(|(j, w)| w * f64::from(v[j * DEPTH + p])).sum::<f64>() / sum
            })
            .collect::<Vec<f64>>()
    };
    (0..LENGTH).flat_map(row).collect()
}

#[test]
fn a_kernel_is_one_of_two_by_a_parameter() {
    let [q, k, v] = [1, 2, 3].map(|seed| numbers::<f32>(LENGTH * DEPTH, seed));
    let (shape, zeros) = ([LENGTH, DEPTH], vec![0f32; LENGTH * DEPTH]);
    check_kernel!(attention<B = 16, D = 16, CAUSAL = true>(
        input q: (q, shape), input k: (k, shape), input v: (v, shape),
        output o: (zeros, shape => attended(&q, &k, &v, true), 1e-4),
    ));
    check_kernel!(attention<B = 16, D = 16, CAUSAL = false>(
        input q: (q, shape), input k: (k, shape), input v: (v, shape),
        output o: (zeros, shape => attended(&q, &k, &v, false), 1e-4),
    ));
}

#[test]
fn a_branch_that_is_not_taken_leaves_nothing() {
    let selects = |causal: bool| {
        let bindings =
            [("B", Binding::Const(16)), ("D", Binding::Const(16)), ("CAUSAL", Binding::Bool(causal))];
        let bindings = bindings.map(|(name, value)| (name.to_owned(), value));
        let instance = specialize(&attention::ir(), &bindings).unwrap();
        let has_branch = instance.walk().into_iter().any(|op| instance.op(op).op == Op::If);
        assert!(!has_branch, "{}", tile::ir::text::print(&instance));
        let instance = passes::optimize(instance);
        instance.walk().into_iter().filter(|&op| instance.op(op).op == Op::Select).count()
    };
    assert_eq!((selects(true), selects(false)), (2, 1));
}

/// What is computed is given, how it is computed is chosen.
#[test]
fn the_best_instance_is_one_with_the_given_bool() {
    for (device, label) in devices() {
        let [q, k, v] = [1, 2, 3].map(|seed| numbers::<f32>(LENGTH * DEPTH, seed));
        let [q_t, k_t, v_t] = [&q, &k, &v].map(|x| Tensor::from_slice(&device, x, [LENGTH, DEPTH]).unwrap());
        let mut o = Tensor::zeros(&device, [LENGTH, DEPTH]).unwrap();
        let launch = attention::best::<true>(&q_t, &k_t, &v_t, &mut o);
        assert!(launch.instance().unwrap().ends_with("CAUSAL = true"), "{label}");
        let table = launch.choices().unwrap().to_string();
        assert!(table.contains("the launch has CAUSAL = true"), "{table}");
        launch.launch().unwrap();
        let found = super::widen(&o.to_vec().unwrap());
        super::compare(label, &found, &attended(&q, &k, &v, true), 1e-4);
        let launch = attention::best::<false>(&q_t, &k_t, &v_t, &mut o);
        assert!(launch.instance().unwrap().ends_with("CAUSAL = false"), "{label}");
    }
}

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    const ALWAYS: bool = true;

    #[tile_fn]
    fn activated<const RELU: bool, const R: usize>(x: Tile<f32, R>) -> Tile<f32, R> {
        if RELU {
            return max(x, 0.0);
        }
        x
    }

    #[tile_fn]
    fn shifted<const UP: bool, const FAR: bool>(x: Tile<f32, 1>) -> Tile<f32, 1> {
        const BOTH: bool = UP && FAR;
        let by = match (UP, FAR) {
            (true, true) => 10.0,
            (true, false) => 1.0,
            (false, _) => -1.0,
        };
        if BOTH == FAR && UP { x + by } else { x + activated::<true, 1>(Tile::full([4], by)) }
    }

    /// Without `WHOLE` the last tile may be a part, and the first branch would leave the tensor.
    #[tile_kernel]
    pub(super) fn steps<const WHOLE: bool, const UP: bool, const B: usize>(
        x: &Tensor<f32, n>,
        y: &mut Tensor<f32, n>,
    ) {
        const BOTH: bool = WHOLE && UP;
        const WIDE: i32 = B as i32 * 2;
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let mut t = if WHOLE { x.load(y.index()) } else { x.load_masked(y.index()) };
        t = activated::<UP, _>(t) + shifted::<WHOLE, UP>(Tile::zeros([4])).sum(0);
        if !UP || ALWAYS && BOTH {
            t += WIDE as f32;
        }
        y.store_masked(t);
    }
}

fn stepped(x: &[f32], whole: bool, up: bool) -> Vec<f64> {
    let by = if whole { if up { 10.0 } else { 1.0 } } else { 0.0 };
    let wide = if !up || whole { 8.0 } else { 0.0 };
    x.iter().map(|&x| f64::from(if up { x.max(0.0) } else { x }) + 4.0 * by + wide).collect()
}

#[test]
fn functions_take_bools_and_constants_are_made_of_them() {
    use kernels::steps;
    let x = [-1.0f32, 2.0, -3.0, 4.0, 5.0, -6.0, 7.0, -8.0];
    macro_rules! check {
        ($n:expr, $whole:literal, $up:literal) => {
            check_kernel!(steps<WHOLE = $whole, UP = $up, B = 4>(
                input x: (x[..$n], [$n]), output y: (vec![0f32; $n], [$n] => stepped(&x[..$n], $whole, $up), 0.0),
            ));
        };
    }
    check!(8, true, true);
    check!(8, true, false);
    // Nothing is asked of the unmasked load in the branch that isn't taken.
    check!(7, false, true);
    check!(7, false, false);
}

/// Keeps the numbers that a mask has; beyond the tensors the mask is false.
#[tile_kernel]
fn keep<const B: usize>(x: &Tensor<f32, n>, mask: &Tensor<bool, n>, y: &mut Tensor<f32, n>) {
    let (x, mask) = (x.partition_view([B]), mask.partition_view([B]));
    let mut y = y.partition_view_mut([B]);
    y.store_masked(select(mask.load_masked(y.index()), x.load_masked(y.index()), 0.0));
}

#[test]
fn masks_are_read_from_tensors() {
    let n = 77;
    let (x, mask) = (numbers::<f32>(n, 1), (0..n).map(|i| i % 3 == 0).collect::<Vec<bool>>());
    let kept: Vec<f32> = x.iter().zip(&mask).map(|(&x, &mask)| if mask { x } else { 0.0 }).collect();
    check_kernel!(keep<B = 32>(
        input x: (x, [n]), input mask: (mask, [n]), output y: (vec![1f32; n], [n] => kept, 0.0),
    ));
}

/// Elements of a mask, looked up.
#[tile_kernel]
fn looked_up<const B: usize>(mask: &Tensor<bool, k>, at: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let mut y = y.partition_view_mut([B]);
    let at = at.partition_view([B]).load_masked(y.index());
    y.store_masked(select(mask.gather([at]), 10, 20) + mask.gather_or(true, [at]).cast::<i32>());
}

#[test]
fn truth_values_are_gathered() -> tile::Result<()> {
    for (device, label) in devices() {
        let mask = Tensor::from_slice(&device, &[true, false, true], [3])?;
        let at = Tensor::from_slice(&device, &[2, 1, 0, -1, 3], [5])?;
        let mut y = Tensor::zeros(&device, [5])?;
        looked_up::<4>(&mask, &at, &mut y).launch()?;
        assert_eq!(y.to_vec()?, [11, 20, 11, 21, 21], "{label}");
    }
    Ok(())
}
