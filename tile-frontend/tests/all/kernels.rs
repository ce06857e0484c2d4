//! Kernels to IR, as snapshots, and their results from the evaluator against plain Rust.

use crate::lower;
use quote::ToTokens;
use tile_ir::array::Elements;
use tile_ir::ops::{BinaryOp, Classification, Domain, ReduceOp, UnaryOp};
use tile_ir::{Array, Binding, DType, interp, specialize};

fn ir(source: &str) -> String {
    match lower("", source) {
        Ok(lowered) => lowered.kernel.to_string(),
        Err(errors) => panic!("{errors}"),
    }
}

/// Runs a kernel of f32 tensors.
fn run(source: &str, bindings: &[(&str, usize)], mut arguments: Vec<Array>) -> Vec<Array> {
    let lowered = lower("", source).unwrap_or_else(|errors| panic!("{errors}"));
    let bindings: Vec<_> = bindings.iter().map(|&(n, v)| (n.to_owned(), Binding::Const(v))).collect();
    let instance = specialize(&lowered.kernel, &bindings).unwrap();
    interp::run(&instance, &mut arguments).unwrap();
    arguments
}

fn array(shape: &[usize], f: impl Fn(usize) -> f64) -> Array {
    let count = shape.iter().product();
    Array::new(
        DType::F32,
        shape.to_vec(),
        Elements::Float((0..count).map(|i| f64::from(f(i) as f32)).collect()),
    )
}

const MATMUL: &str = "
fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}";

#[test]
fn matmul() {
    insta::assert_snapshot!(ir(MATMUL));
}

const SOFTMAX: &str = "
fn softmax<const ROWS: usize, const COLUMNS: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([ROWS, COLUMNS]);
    let mut y = y.partition_view_mut([ROWS, COLUMNS]);
    let row = x.load_masked_or(f32::NEG_INFINITY, y.index());
    let shifted = exp(row - row.max(1));
    y.store_masked(shifted / shifted.sum(1));
}";

#[test]
fn softmax() {
    insta::assert_snapshot!(ir(SOFTMAX));
    let x = array(&[3, 5], |i| (i as f64 * 1.7).sin() * 4.0);
    let out = run(SOFTMAX, &[("ROWS", 2), ("COLUMNS", 8)], vec![x.clone(), array(&[3, 5], |_| 0.0)]);
    for row in 0..3 {
        let line: Vec<f64> = (0..5).map(|j| x.get_f64(row * 5 + j).exp()).collect();
        for j in 0..5 {
            let expected = line[j] / line.iter().sum::<f64>();
            assert!((out[1].get_f64(row * 5 + j) - expected).abs() < 1e-6);
        }
    }
}

const CONTROL: &str = "
fn control<const B: usize>(x: &Tensor<f32, n>, limit: usize, scale: f32, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let mut tile = x.load_masked([i]);
    let (mut count, half) = (0, 0.5);
    for step in 0..limit {
        if step % 2 == 0 {
            tile *= scale;
            count += 1;
        } else {
            tile = tile + half;
        }
    }
    let sign = if i > 0 && count < 3 { -1.0 } else { 1.0 };
    let masked = select(tile > 2.0, 2.0 * tile, tile);
    y.store_masked(masked * sign + (n as f32));
}";

#[test]
fn control_flow_has_no_variables() {
    insta::assert_snapshot!(ir(CONTROL));
    let n = 7;
    let arguments = vec![
        array(&[n], |i| i as f64),
        Array::scalar(DType::Index, tile_ir::ops::Literal::Int(3)),
        Array::scalar(DType::F32, tile_ir::ops::Literal::Float(1.5)),
        array(&[n], |_| 0.0),
    ];
    let out = run(CONTROL, &[("B", 4)], arguments);
    for i in 0..n {
        let tile = (i as f64 * 1.5 + 0.5) * 1.5;
        let masked = if tile > 2.0 { 2.0 * tile } else { tile };
        let sign = if i / 4 > 0 { -1.0 } else { 1.0 };
        assert_eq!(out[3].get_f64(i), masked * sign + n as f64, "{i}");
    }
}

#[test]
fn comparisons_of_tiles_become_calls_and_those_of_scalars_stay() {
    let lowered = lower("", CONTROL).unwrap();
    let body = lowered.function.block.to_token_stream().to_string();
    assert!(body.contains(":: tile :: kernel :: gt (tile , 2.0)"), "{body}");
    assert!(body.contains("i > 0") && body.contains("count < 3"), "{body}");
}

#[test]
fn generic_over_the_element_type() {
    let source = "
fn axpy<T: Float, const B: usize>(alpha: T, x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let sum = alpha * x.load_masked(y.index()) + y.load_masked();
    y.store_masked(tanh(sum) * T::of(0.5));
}";
    insta::assert_snapshot!(ir(source));
    let lowered = lower("instances(T = f32, B = 64; T = bf16, B = 128)", source).unwrap();
    assert_eq!(lowered.instances[1][0], ("T".to_owned(), Binding::Elem(DType::BF16)));
}

#[test]
fn extents_are_symbolic_arithmetic() {
    let source = "
fn extents<const B: usize>(x: &Tensor<f32, m, { 2 * B }>, v: &Tensor<i32, _>, y: &mut Tensor<f32, m, 1>) {
    let wide = 2 * B;
    let x = x.partition_view([B, wide]);
    let v = v.partition_view([B]);
    let mut y = y.partition_view_mut([B, 1]);
    let [i, _] = y.index();
    let column = Tile::<i32, 2>::iota([B, 1], 0) + v.load_masked([i]).reshape([B, 1]);
    let folded = x.load_masked([i, 0]).permute([1, 0]).t().sum(1);
    let tiles = m.div_ceil(B) + x.tiles(0);
    y.store_masked(folded + column.cast() + tiles as f32);
}";
    insta::assert_snapshot!(ir(source));
}

#[test]
fn tuples_are_carried_part_by_part() {
    let source = "
fn swap<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut pair = (x.load_masked(y.index()), Tile::ones([B]));
    for _ in 0..3 {
        pair = (pair.1, pair.0);
    }
    y.store_masked(pair.0 + max(pair.1, 7.0).minimum(9.0));
}";
    insta::assert_snapshot!(ir(source));
    let out = run(source, &[("B", 4)], vec![array(&[4], |i| i as f64 * 4.0), array(&[4], |_| 0.0)]);
    assert_eq!(out[1].elements(), &Elements::Float(vec![8.0, 8.0, 9.0, 10.0]));
}

#[test]
fn iterators_are_unrolled_and_declarations_have_no_value() {
    let source = "
fn weighted<const B: usize>(x: &Tensor<f32, n>, first: bool, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    let weight;
    if first {
        weight = 2.0;
    } else {
        weight = 3.0;
    }
    let tiles = [t, t * weight];
    let mut sum = Tile::zeros([B]);
    for (k, &tile) in tiles.iter().enumerate().rev() {
        sum += tile * k as f32;
    }
    y.store_masked([4.0, 5.0].into_iter().fold(sum, |sum, factor| sum * factor));
}";
    insta::assert_snapshot!(ir(source));
    let flag = Array::new(DType::Bool, Vec::new(), Elements::Int(vec![0]));
    let out = run(source, &[("B", 2)], vec![array(&[2], |i| i as f64 + 1.0), flag, array(&[2], |_| 0.0)]);
    assert_eq!(out[2].elements(), &Elements::Float(vec![60.0, 120.0]));
}

/// Every leaf op that isn't an operator, by its name in the op table: as a function, and as a method.
#[test]
fn leaf_ops_are_called_by_their_names() {
    let kernel = |elem: &str, result: &str, value: &str| {
        format!(
            "
fn leaf<const B: usize>(x: &Tensor<{elem}, n>, y: &mut Tensor<{result}, n>) {{
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked({value});
}}"
        )
    };
    let check = |elem: &str, result: &str, name: &str, value: &str| {
        let text = ir(&kernel(elem, result, value));
        assert!(text.contains(&format!(" = {name} ")), "{value}: {text}");
    };
    let elem = |domain: Domain| {
        let formats = [DType::F32, DType::I32, DType::U64].into_iter();
        formats.filter(|dtype| domain.accepts(*dtype)).map(DType::name).next().expect("a domain accepts one")
    };
    for op in UnaryOp::ALL.iter().filter(|op| op.operator().is_none()) {
        let (elem, name) = (elem(op.domain()), op.name());
        check(elem, elem, name, &format!("{name}(x)"));
        check(elem, elem, name, &format!("x.{name}()"));
    }
    for op in BinaryOp::ALL.iter().filter(|op| op.operator().is_none()) {
        let (elem, name) = (elem(op.domain()), op.name());
        check(elem, elem, name, &format!("{name}(x, x)"));
        if ReduceOp::from_name(name).is_none() {
            check(elem, elem, name, &format!("x.{name}(x)"));
        }
    }
    for name in Classification::ALL.iter().map(|classification| classification.name()) {
        check("f32", "bool", name, &format!("{name}(x)"));
        check("f32", "bool", name, &format!("x.{name}()"));
    }
}

/// What `instances(…)` with these words binds, or the error.
fn instances(words: &str) -> Result<Vec<String>, String> {
    let source = "
fn fill<T: Float, const B: usize, const C: usize>(y: &mut Tensor<T, m, n>) {
    let mut y = y.partition_view_mut([B, C]);
    y.store_masked(Tile::zeros([B, C]));
}";
    let lowered = lower(words, source).map_err(|errors| errors.to_string())?;
    let text = |(name, value): &(String, Binding)| match value {
        Binding::Const(value) => format!("{name}{value}"),
        Binding::Bool(value) => format!("{name}={value}"),
        Binding::Elem(dtype) => format!("{name}:{dtype}"),
    };
    Ok(lowered.instances.iter().map(|it| it.iter().map(text).collect::<Vec<_>>().join(" ")).collect())
}

#[test]
fn instances_are_all_combinations_once() {
    assert_eq!(
        instances("instances(C = 1 | 2, T = f32 | bf16, B = 4; T = f32, B = 4 | 8, C = 2)").unwrap(),
        ["T:f32 B4 C1", "T:bf16 B4 C1", "T:f32 B4 C2", "T:bf16 B4 C2", "T:f32 B8 C2"]
    );
    let causal = "fn f<const B: usize, const CAUSAL: bool>(y: &mut Tensor<f32, n>) {
        let mut y = y.partition_view_mut([B]);
        y.store_masked(Tile::full([B], if CAUSAL { 1.0 } else { 0.0 }));
    }";
    let lowered = lower("instances(B = 4, CAUSAL = true | false)", causal).unwrap();
    let values: Vec<Binding> = lowered.instances.iter().map(|bindings| bindings[1].1).collect();
    assert_eq!(values, [Binding::Bool(true), Binding::Bool(false)]);
    let message = lower("instances(B = 4, CAUSAL = 1)", causal).unwrap_err().to_string();
    assert!(message.contains("`CAUSAL` is a `bool`, but was given the number 1"), "{message}");
    // Those that break a condition are left out, but not where all do.
    let conditional = |values: &str| instances(&format!("where(B * C <= 16), instances(T = f32, {values})"));
    assert_eq!(conditional("B = 4 | 8, C = 2 | 4").unwrap(), ["T:f32 B4 C2", "T:f32 B4 C4", "T:f32 B8 C2"]);
    for (values, part) in [
        ("B = 8, C = 4", "needs `B * C <= 16`, but B = 8, C = 4\n"),
        ("B = 8 | 16, C = 4", "needs `B * C <= 16`, but B = 8, C = 4 in one combination, and none is left"),
        // What is no condition is a mistake in every combination.
        ("B = 16 | 0, C = 4", "the tile extent `0` is not positive"),
    ] {
        let message = conditional(values).unwrap_err();
        assert!(message.contains(part), "{values}: {message}");
    }
}
