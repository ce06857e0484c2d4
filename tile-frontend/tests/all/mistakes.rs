//! What a user reads for each mistake.

use crate::lower;

/// A kernel around `body`, with views `x` (f32, `[B, 4]`, read-only) and `y` (f32, `[B, 4]`) and a tile `t`.
fn message(body: &str) -> String {
    let source = format!(
        "fn k<const B: usize, const C: usize>(x: &Tensor<f32, m, n>, flag: bool, y: &mut Tensor<f32, m, n>) {{
let x = x.partition_view([B, 4]); let mut y = y.partition_view_mut([B, 4]); let t = x.load_masked([0, 0]);
{body}
}}"
    );
    match lower("", &source) {
        Ok(lowered) => format!("accepted:\n{}", lowered.kernel),
        Err(errors) => errors.to_string(),
    }
}

fn signature_message(source: &str) -> String {
    signature_message_with("", source)
}

fn signature_message_with(attribute: &str, source: &str) -> String {
    match lower(attribute, source) {
        Ok(lowered) => format!("accepted:\n{}", lowered.kernel),
        Err(errors) => errors.to_string(),
    }
}

fn report(cases: &[&str], message: impl Fn(&str) -> String) -> String {
    cases.iter().map(|case| format!("{case}\n{}\n\n", message(case))).collect()
}

#[test]
fn in_the_body() {
    insta::assert_snapshot!(report(
        &[
            "y.store_masked(t + Tile::zeros([B, C]));",
            "let u = Tile::<f32, 1>::zeros([B]); y.store_masked(t + u);",
            "let u = Tile::<i32, 2>::zeros([B, 4]); y.store_masked(t * u);",
            "let a = Tile::<f32, 2>::zeros([B, 8]); y.store_masked(mma(a, t, t));",
            "y.store_masked(t.sum(1));",
            "y.store_masked(t.sum(2));",
            "y.store_masked(1.0);",
            "y.store_masked(t + 1);",
            "y.store_masked(t.cast::<i32>());",
            "y.store_masked(t.reshape([B]));",
            "y.store_masked(Tile::zeros([m, 4]));",
            "y.store_masked(t + N);",
            "y.store_masked(q);",
            "let mut s = t; s = t.sum(1); y.store_masked(s);",
            "let s = t; s = t; y.store_masked(s);",
            "let mut s = t.sum(1); for _ in 0..3 { s = s + t; } y.store_masked(t);",
            "if t > 0.0 { y.store_masked(t); }",
            "y.store_masked(select(t > 0.0 && t < 1.0, t, 0.0));",
            "let v = if flag { t } else { t.sum(1) }; y.store_masked(t);",
            "while t { y.store_masked(t); }",
            "loop { let a = t; }",
            "let a = t[0]; y.store_masked(a);",
            "let f = |x| x; y.store_masked(f);",
            "match t { 0.0 => {} _ => {} }",
            "println!(\"{}\", 1);",
            "let v = vec![1, 2];",
            "y.store_masked(if flag { return } else { t });",
            "for p in (0..n).map(|p| p) { y.store_masked(t); }",
            "for p in 0.. { y.store_masked(t); }",
            "let e = x.read([0, 0]); y.store_masked(e);",
            "let e = x.load_masked([0]); y.store_masked(e);",
            "let e = x.load_masked(0, 0); y.store_masked(e);",
            "let e = x.load_masked([0.5, 0]); y.store_masked(e);",
            "let e = x.load_masked_or(0, [0, 0]); y.store_masked(e);",
            "x.store_masked(t);",
            "let [i, j, k] = y.index();",
            "let i = x.index();",
            "y.store_masked(t.softmax());",
            "y.store_masked(relu(t));",
            "y.store_masked(t.max(t));",
            "y.store_masked(exp(t, t));",
            "let z = Tile::zeros([B, 4]);",
            "y.store_masked(t as i32);",
            "let u: f32 = t; y.store_masked(t);",
            "let c = m as f32; y.store_masked(t + c + m);",
            "y.store_masked(!t);",
            "y.store_masked(t.permute([0, 0]));",
            "let u = Tile::<f32, 2>::iota([B, 4], 2); y.store_masked(u);",
            "y.store_masked(t); t",
        ],
        message
    ));
}

#[test]
fn in_the_signature() {
    insta::assert_snapshot!(report(
        &[
            "fn k(x: Tensor<f32, n>) {}",
            "fn k(x: &Tensor<f32>) {}",
            "fn k(x: &Tensor) {}",
            "fn k(x: &Tensor<n, n>) {}",
            "fn k(x: &Tensor<f32, N>) {}",
            "fn k(x: &[f32]) {}",
            "fn k(x: String) {}",
            "fn k<T>(x: &Tensor<T, n>) {}",
            "fn k<T: Copy>(x: &Tensor<T, n>) {}",
            "fn k<const B: i32>(x: &Tensor<f32, n>) {}",
            "fn k<'a>(x: &'a Tensor<f32, n>) {}",
            "async fn k(x: &Tensor<f32, n>) {}",
            "fn k(x: &Tensor<f32, n>) -> f32 { 0.0 }",
            "fn k((a, b): (f32, f32)) {}",
            "fn k(x: &Tensor<f32, n>) {}",
            "fn k(x: &Tensor<f32, n>) { let v = x.partition_view_mut([4]); }",
            "fn k(x: &mut Tensor<f32, n>) { let v = x.partition_view([4]); }",
            "fn k(x: &mut Tensor<f32, n>) { let v = x.partition_view_mut([4, 4]); }",
            "fn k(x: &mut Tensor<f32, n>) { let v = x.partition_view_mut([4]); let w = x.partition_view_mut([4]); }",
            "fn k(x: &mut Tensor<f32, n>) { x.store_masked(1.0); }",
        ],
        signature_message
    ));
}

#[test]
fn in_the_attribute() {
    let kernel = "fn k<T: Float, const B: usize>(y: &mut Tensor<T, n>) { let mut y = y.partition_view_mut([B]); y.store_masked(Tile::zeros([B])); }";
    let message = |attribute: &str| match lower(attribute, kernel) {
        Ok(lowered) => format!("accepted: {:?}", lowered.instances),
        Err(errors) => errors.to_string(),
    };
    insta::assert_snapshot!(report(
        &[
            "instances(T = f32, B = 4)",
            "instances(T = f32)",
            "instances(T = i32, B = 4)",
            "instances(T = f32, B = 0)",
            "instances(T = f32, B = 4, C = 1)",
            "instances(T = f32, B = 4, B = 8)",
            "instances(T = string, B = 4)",
            "instances(T = f32, B = -4)",
            "targets(sm_80)",
            "instances(T = f32, B = 4), allow(slow_product)",
            "allow()",
            "allow(slow_product, slow_loads)",
            "instances(T = f32, B = 4), fast_accumulation = B",
            "instances(T = f32, B = 4), fast_accumulation = true",
            "fast_accumulation = 1",
            "instances(T = f32, B = 64), threads = 2 * B, stages = 3",
            "threads = 100",
            "stages = n",
            "stages = C",
            "occupancy = \"two\"",
            "occupancy",
            "occupancy =",
            "stages = 3, stages = 4",
            "grid = [4], grid = tiles",
            "fast_accumulation, fast_accumulation = false",
            "instances(T = f32, B = 48), threads = B",
        ],
        message
    ));
}

#[test]
fn an_instance_without_elements_of_an_array_is_told_so() {
    let kernel = "fn k<const K: usize>(xs: [&Tensor<f32, n>; K], y: &mut Tensor<f32, n>) { y.partition_view_mut([4]).store_masked(Tile::zeros([4])); }";
    let message = signature_message_with("where(K <= 8), instances(K = 0)", kernel);
    assert_eq!(
        message,
        "1:26: `k` needs `K > 0`, but K = 0\n  help: an array of arguments has at least one element"
    );
}

#[test]
fn optional_arguments_make_at_most_so_many_combinations() {
    let names: Vec<String> = (0..9).map(|i| format!("a{i}")).collect();
    let arguments: String = names.iter().map(|name| format!("{name}: Option<f32>, ")).collect();
    let kernel = format!(
        "fn k({arguments}y: &mut Tensor<f32, n>) {{ y.partition_view_mut([4]).store_masked(Tile::zeros([4])); }}"
    );
    let said = "these choices are 512 instances, each of which is compiled for every target; at most 256 stand in a list\n  \
                help: name fewer values, or the combinations that matter: `instances(…; …)`; an optional argument of which \
                nothing is said is given in one instance and left out in another, ";
    for (attribute, example) in
        [("", "`a0 = true` has it given"), ("instances(a0 = true | false)", "`a1 = true` has it given")]
    {
        let message = signature_message_with(attribute, &kernel);
        assert!(message.ends_with(&format!("{said}{example}")), "{message}");
    }
    assert!(lower("instances(a0 = true)", &kernel).is_ok_and(|lowered| lowered.instances.len() == 256));
}

#[test]
fn several_mistakes_are_all_reported() {
    let text = message("let a = t + N;\nlet b = a + 1.0;\ny.store_masked(t.sum(1));");
    assert_eq!(text.matches("help:").count(), 1, "{text}");
    assert_eq!(
        text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count(),
        2,
        "{text}"
    );
}

/// Refusals of what a user may well try, which say what does it instead.
#[test]
fn other_ways_are_offered() {
    for (attribute, source, refused) in [
        (
            "",
            "fn k(x: &Tensor<i32, n>, y: &mut Tensor<u32, n>) { let d = x.partition_view([4]).load_masked([0]); let e = 1u32 << d; }",
            "`<<` mixes element types u32 and i32\n  line 1: `d` is tile<4 x i32>\n  help: convert the distance: `.cast::<u32>()`",
        ),
        (
            "where(K <= 8)",
            "fn k<const K: usize>(xs: [&Tensor<f32, n>; K], y: &mut Tensor<f32, n>) { xs.map(|x| x.partition_view([4])); }",
            "an array of K arguments has no method but `len` in a kernel\n  help: how many there are is known when an \
             instance is made, so a loop goes through them, `for t in values`; an array of arguments as long as a number \
             has the methods of arrays",
        ),
        (
            "",
            "fn k(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) { let x = x.pad([(0, 2)]).unflatten(0, [n.div_ceil(3), 3]); }",
            "`unflatten` of axis 0, which `pad` or `shift` has given indices without elements, isn't one view\n  help: \
             `unflatten` first, and pad or shift what it gives; `unfold` gives parts that the axis needn't divide into",
        ),
    ] {
        let message = signature_message_with(attribute, source);
        assert!(message.trim_end().ends_with(refused), "{message}");
    }
}

/// Windows over a margin are cut and used as other tensors are, and refused with the same words.
#[test]
fn cuts_of_windows() {
    let after = |rest: &str| {
        signature_message(&format!(
            "fn k<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {{ y.partition_view_mut([B]).store_masked(Tile::zeros([B]));
let x = x.pad([(1, 1)]).unfold(0, 3, 1){rest} }}"
        ))
    };
    insta::assert_snapshot!(report(
        &[
            ".strided_view([4, 3], [0, 3]);",
            ".strided_view([0, 3], [1, 3]);",
            ".partition_view([n, 3]);",
            ".partition_view([4]);",
            ".partition_view(4);",
            ".strided_view([4, 3], [1]);",
            ".strided_view([4, 3]);",
            ".partition_view_mut([4, 3]);",
            ".partition_view([4, 3]).latency(65);",
            ".partition_view([4, 3]); x.prefetch([0]);",
            ".partition_view([4, 3]); x.prefetch(0, 0);",
            ".partition_view([4, 3]); let e = x[0];",
        ],
        after
    ));
}

/// PyTorch's `roll` has the distance before the axis. What may be 0 in one turn or instance is no mistake.
#[test]
fn distances_of_0() {
    let of = |rest: &str| message(&format!("let axis = 0; {rest} y.store_masked(t);"));
    for (body, refused) in [
        (
            "let t = t.roll(1, 0);",
            "`roll` by 0 moves nothing\n  help: the axis comes first: `x.roll(axis, by)`",
        ),
        (
            "let t = t.shift(2, 0, 0.0);",
            "`shift` by 0 moves nothing\n  help: the axis comes first: `x.shift(axis, by, fill)`",
        ),
    ] {
        let found = of(body);
        assert!(found.trim_end().ends_with(refused), "{found}");
    }
    let accepted = of(
        "let t = t.roll(0, C) + t.shift(axis, 1, 0.0); for (axis, by) in [(0, 0), (1, 2)] { let a = t.roll(axis, by); }",
    );
    assert!(accepted.starts_with("accepted"), "{accepted}");
}

#[test]
fn of_sizes_and_bools_among_numbers() {
    insta::assert_snapshot!(report(
        &[
            "let [i, _] = y.index(); y.store_masked((Tile::iota([B, 4], 0) + i * 4).cast::<f32>());",
            "let [i, _] = y.index(); y.store_masked(select(Tile::iota([B, 4], 0) < n, t, 0.0));",
            "let [i, _] = y.index(); for p in 0..i { y.store_masked(Tile::full([B, 4], log2(p) as f32)); }",
            "for p in 0..n { y.store_masked(t.shift(1, -p, 0.0)); }",
            "for p in 0..n { y.store_masked(t.shift(1, -(p as i32), 0.0)); }",
            "let mut seen = Tile::zeros([B, 4]); seen |= t > 0.0; y.store_masked(t);",
            "let seen = Tile::ones([B, 4]); y.store_masked(select(seen, t, 0.0));",
            "y.store_masked(t.shift(0, -B, 0.0));",
        ],
        message
    ));
}

/// Numbers that count elements, and aren't as many as there can be.
#[test]
fn of_counts() {
    insta::assert_snapshot!(report(
        &[
            "y.store_masked(t.pad([(-1, 0), (0, 0)], 0.0));",
            "y.store_masked(t.extract([0, -1], [B, 4]));",
            "let u = Tile::<f32, 2>::zeros([2, 3]).pack_f4e2m1(); y.store_masked(t);",
            "let u = Tile::<f32, 2>::zeros([2, C]).pack_f4e2m1(); y.store_masked(t);",
            "let a = Tile::<f32, 2>::zeros([16, 100]); let s = Tile::<f32, 2>::ones([16, 3]); \
             let b = Tile::<f32, 2>::zeros([100, 4]); let r = Tile::<f32, 2>::ones([25, 4]); \
             let u = mma_scaled(a, s, b, r, Tile::zeros([16, 4])); y.store_masked(t);",
            "y.store_masked(t.roll(1, B - C));",
        ],
        message
    ));
    insta::assert_snapshot!(
        "of_counts_of_tensors",
        report(&["x.shrink([(-1, 2), (0, 4)])", "x.unsqueeze(3)"], |view| {
            signature_message(&format!(
                "fn k(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {{
let mut y = y.partition_view_mut([4, 4]); let x = {view};
y.store_masked(Tile::zeros([4, 4])); }}"
            ))
        })
    );
}

/// Functions of the name that the kernel itself has, which hides them from rustc.
#[test]
fn of_the_kernels_own_name() {
    let called = |name: &str, body: &str| {
        signature_message(&format!(
            "fn {name}(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {{
let mut y = y.partition_view_mut([4]); let t = x.partition_view([4]).load_masked(y.index());
y.store_masked({body}); }}"
        ))
    };
    insta::assert_snapshot!(
        [
            called("gelu", "gelu(t)"),
            called("max", "max(t, 0.0)"),
            called("select", "select(t > 0.0, t, 0.0)"),
        ]
        .join("\n\n")
    );
    assert!(called("gelu", "t.gelu() + tile::kernel::gelu(t)").starts_with("accepted"));
}

/// What is said of tensors and tiles of one axis, of constants of other modules, and of numbers that aren't known.
#[test]
fn of_one_axis_and_of_constants() {
    let kernel = |tensor: &str, body: &str| {
        signature_message(&format!(
            "fn k<const B: usize, const C: bool>(x: &Tensor<f32, n>, {tensor}, q: usize, y: &mut Tensor<f32, n>) {{
const W: [f32; 2] = [0.25, 0.5]; let v = x.partition_view([4]); let mut y = y.partition_view_mut([4]);
{body} y.store_masked(v.load_masked(y.index())); }}"
        ))
    };
    let one = "loss: &mut Tensor<f32, 1>";
    let cases = [
        ("loss: &mut Tensor<f32>", ""),
        ("loss: &Tensor<f32>", ""),
        (one, "let t = x.gather(Tile::<i32, 1>::iota([4], 0));"),
        (one, "let t = v.load_masked(0);"),
        (one, "let t = v.load_masked([0], 0);"),
        (one, "let t = W[q];"),
        (one, "let t = n.pow(2);"),
        (one, "let t = n.ilog2();"),
        (one, "let t = TILE;"),
        (one, "let t = params::TILE;"),
        (one, "let t = Tile::<f32, 2>::zeros([1, B]); let u = if C { t } else { t.broadcast([4, B]) };"),
    ];
    let report = cases.map(|(tensor, body)| format!("{tensor} {body}\n{}\n\n", kernel(tensor, body)));
    insta::assert_snapshot!(report.concat());
}

/// Literals and counters beside values of a type parameter that they can't be of.
#[test]
fn of_type_parameters() {
    let kernel = |bound: &str, body: &str| {
        signature_message(&format!(
            "fn k<T: {bound}>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {{
let mut y = y.partition_view_mut([4]); let t = x.partition_view([4]).load_masked(y.index());
{body} }}"
        ))
    };
    let cases = [
        ("Int", "y.store_masked(t & 1.0);"),
        ("Int", "y.store_masked(t & T::of(1.5));"),
        ("Float", "y.store_masked(t * 2);"),
        ("Int", "let mut s = t; for k in 0..3 { s += t * k; } y.store_masked(s);"),
        ("Int", "let mut s = t; for k in 0..10000 { s += t * k; } y.store_masked(s);"),
        ("Int", "let mut s = t; for k in 0..3 { s += t * k as T; } y.store_masked(s);"),
        ("Float", "y.store_masked(Tile::full([4], t.sum(0).item().powi(2)));"),
    ];
    let report = cases.map(|(bound, body)| {
        let said = kernel(bound, body);
        let said = if said.starts_with("accepted") { "accepted" } else { &said };
        format!("{bound}: {body}\n{said}\n\n")
    });
    insta::assert_snapshot!(report.concat());
}

/// What Rust has and kernels have by another way: the help says which.
#[test]
fn of_what_rust_has_otherwise() {
    insta::assert_snapshot!(report(
        &[
            "let u = t.cast::<u32>().leading_ones();",
            "let u = t.cast::<u32>().trailing_ones();",
            "let i = t.sum(0).sum(1).item() as usize; let u = t.extract([i, 0], [1, 4]);",
            "let u = t.cast::<u8>().lookup(b\"abcd\");",
            "let u = t.wrapping_neg();",
            "let u = m.wrapping_neg();",
            "let u = m.wrapping_abs();",
            "let u = t.cast::<u32>().wrapping_abs();",
            "let (a, ..); a = t;",
            "let u = const { square(3) };",
            "const K: u32 = square(3); let u = K;",
            "const K: [u8; 4] = crate::table(); let u = t.cast::<u8>().lookup(K);",
            "const N: usize = { let mut i = 0; while i < 4 { i += 1; } i };",
            "const K: [i32; 2] = [{ let mut i = 0; while i < 4 { i += 1; } i }, 2]; let u = t.cast::<u8>().lookup(K);",
        ],
        message
    ));
}
