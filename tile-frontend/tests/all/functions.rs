//! Functions, closures and conditions: what they become in the IR, and what is said where they are wrong.

use syn::Item;
use tile_frontend::Helpers;

const MODULE: &str = "
const SLOPE: f32 = 0.5;
const WIDTH: usize = 2 * 4;
#[tile_fn]
fn leaky<T: Float>(x: Tile<T, 2>, slope: T) -> Tile<T, 2> {
    select(x < T::of(0.0), x * slope, x)
}
#[tile_fn]
fn first(x: Tile<f32, 2>, skip: bool) -> Tile<f32, 2> {
    if skip {
        return x;
    }
    leaky(x, SLOPE)
}
#[tile_fn]
fn ones<const N: usize>(count: usize) -> Tile<f32, 2> {
    Tile::full([N, WIDTH], count as f32)
}
#[tile_fn]
fn pair_of(pair: (Tile<f32, 2>, [f32; 2])) -> Tile<f32, 2> {
    pair.0 * pair.1[1]
}
#[tile_fn]
fn ping(x: Tile<f32, 2>) -> Tile<f32, 2> { pong(x) }
#[tile_fn]
fn pong(x: Tile<f32, 2>) -> Tile<f32, 2> { ping(x) }
#[tile_fn]
fn applied(x: Tile<f32, 2>, f: impl Fn(Tile<f32, 2>) -> Tile<f32, 2>) -> Tile<f32, 2> { f(x) + f(x * SLOPE) }
#[tile_fn]
fn folded<T: Float, F: Fn(T, T) -> T>(x: Tile<T, 2>, start: T, f: F) -> Tile<T, 2> {
    let SLOPE = f(start, 2.0);
    x * SLOPE
}
#[tile_fn]
fn passed_on<F>(x: Tile<f32, 2>, f: &F) -> Tile<f32, 2> where F: Fn(Tile<f32, 2>) -> Tile<f32, 2> {
    let twice = |t: Tile<f32, 2>| f(f(t));
    applied(x, twice) - applied(x, f)
}
struct Sum { tile: Tile<f32, 2>, turns: i32 }
#[tile_fn]
impl Sum {
    const START: f32 = SLOPE * 2.0;
    fn new(tile: Tile<f32, 2>) -> Self { Self { tile: tile + Self::START, turns: 0 } }
    fn add(&mut self, tile: Tile<f32, 2>) { self.tile += tile; self.turns += 1; }
}
#[tile_fn]
fn itself(x: Tile<f32, 2>) -> Tile<f32, 2> { applied(x, |t| itself(t)) }
#[tile_fn]
fn wrongly(x: Tile<f32, 2>, f: impl Fn(Tile<f32, 2>) -> Tile<f32, 2>) -> Tile<f32, 2> { f(x, x) + f(1.0) }
";

/// A kernel around `body` with a tile `t` of `[B, WIDTH]`, in a module of functions.
fn report(options: &str, body: &str) -> String {
    let source = format!(
        "fn k<const B: usize>(x: &Tensor<f32, m, n>, flag: bool, y: &mut Tensor<f32, m, n>) {{
let x = x.partition_view([B, WIDTH]); let mut y = y.partition_view_mut([B, WIDTH]); let t = x.load_masked([0, 0]);
{body}
}}"
    );
    let items: Vec<Item> = syn::parse_str::<syn::File>(MODULE).unwrap().items;
    let function = syn::parse_str(&source).unwrap();
    let lowered =
        tile_frontend::lower_with(options.parse().unwrap(), function, &Helpers::of(&items), "src/main.rs");
    let text = match lowered {
        Ok(lowered) => lowered.kernel.to_string(),
        Err(errors) => errors.to_string(),
    };
    format!("{options} {body}\n{text}\n\n")
}

#[test]
fn calls_are_their_bodies() {
    let bodies = [
        "y.store_masked(first(t, flag));",
        "y.store_masked(t * ones::<B>(m));",
        "y.store_masked(pair_of((t, [1.0, 2.0])));",
        "let k = 2.0; let scale = |x: Tile<f32, 2>| x * k; y.store_masked(scale(scale(t)));",
        "let mut sum = Sum::new(t); for _ in 0..m { sum.add(t); } y.store_masked(sum.tile * sum.turns as f32);",
    ];
    insta::assert_snapshot!(bodies.map(|body| report("", body)).concat());
}

#[test]
fn closures_are_arguments() {
    let bodies = [
        "let k = 3.0; let scale = |x: Tile<f32, 2>| x * k; y.store_masked(applied(t, scale));",
        "y.store_masked(applied(t, |x| x.exp() * SLOPE));",
        "y.store_masked(folded(t, 4.0, |a, b| a - b));",
        "y.store_masked(passed_on(t, &|x| x + 1.0));",
        "y.store_masked(applied(t, |x| applied(x, |x| x * SLOPE)));",
        "y.store_masked(applied(t, |x| { let SLOPE = 9.0; tile_assert!(x > SLOPE); leaky(x, SLOPE) }));",
    ];
    insta::assert_snapshot!(bodies.map(|body| report("", body)).concat());
}

#[test]
fn mistakes_in_closures_that_are_arguments() {
    let bodies = [
        "y.store_masked(applied(t, |a, b| a + b));",
        "y.store_masked(applied(t, || t));",
        "y.store_masked(applied(t, t));",
        "y.store_masked(applied(|x| x, t));",
        "y.store_masked(applied(t, ping));",
        "y.store_masked(applied(t, exp));",
        "y.store_masked(applied(t, |a| a.sum(0).reshape([WIDTH])));",
        "y.store_masked(applied(t, |a| a + Tile::zeros([3, 5])));",
        "y.store_masked(applied(t, |a: Tile<i32, 2>| a.cast()));",
        "y.store_masked(applied(t, |a| a + x));",
        "y.store_masked(wrongly(t, |a| a));",
        "y.store_masked(itself(t));",
        "let w = |g, a: Tile<f32, 2>| g(g, a); y.store_masked(w(w, t));",
        "y.store_masked(folded::<f32>(t, 1.0, |a, b| a));",
    ];
    insta::assert_snapshot!(bodies.map(|body| report("", body)).concat());
}

#[test]
fn mistakes_in_calls() {
    let bodies = [
        "y.store_masked(first(t));",
        "y.store_masked(leaky(t, 1));",
        "y.store_masked(leaky(1.0, 1.0));",
        "y.store_masked(leaky(t.sum(0).reshape([WIDTH]), 1.0));",
        "y.store_masked(ones::<B, 4>(m));",
        "y.store_masked(ones::<f32>(m));",
        "y.store_masked(ones(m));",
        "y.store_masked(ones::<3>(flag));",
        "y.store_masked(ones::<{ B + 1 }>(m) + t);",
        "y.store_masked(pair_of((t, [1.0])));",
        "y.store_masked(pair_of(t));",
        "y.store_masked(ping(t));",
        "y.store_masked(leaky(&t, 1.0));",
        "y.store_masked(t(1.0));",
        "let f = |a, b| a + b; y.store_masked(f(t));",
        "let mut c = 1.0; let f = |a| { c = 2.0; a }; y.store_masked(f(t));",
        "let f = |a: Tile<i32, 2>| a; y.store_masked(f(t));",
        "break_of(t);",
    ];
    insta::assert_snapshot!(bodies.map(|body| report("", body)).concat());
}

#[test]
fn constants_that_are_made_of_themselves_are_refused() {
    let items = syn::parse_str::<syn::File>(
        "const A: usize = 2 * B; const B: usize = A + 1; const C: usize = 3;
         struct S { k: f32 } struct T { k: f32 }
         #[tile_fn] impl S { const K: f32 = 0.5; } #[tile_fn] impl T { const K: f32 = S::K * 2.0; }",
    );
    let helpers = Helpers::of(&items.unwrap().items);
    let lower = |extent: &str, value: &str| {
        let function = format!(
            "fn k(y: &mut Tensor<f32, {extent}>) {{
                let mut y = y.partition_view_mut([4]);
                y.store_masked(Tile::full([4], {value}));
            }}"
        );
        let function = syn::parse_str(&function).unwrap();
        tile_frontend::lower_with(Default::default(), function, &helpers, "src/main.rs")
    };
    assert!(lower("C", "T::K").is_ok());
    for (extent, value) in [("A", "1.0"), ("C", "A as f32")] {
        let errors = lower(extent, value).unwrap_err().to_string();
        assert!(errors.contains("`A` is made of itself"), "{errors}");
    }
    let errors = lower("99999999999999999999", "1.0").unwrap_err().to_string();
    assert!(errors.contains("the number is too large"), "{errors}");
}

#[test]
fn constants_mean_in_a_signature_what_they_mean_in_a_body() {
    let items = syn::parse_str::<syn::File>(
        "const EIGHTS: usize = 2usize.pow(2) + WIDE.ilog2() as usize; const WIDE: usize = [3, 16][1];
         #[cfg(feature = \"big\")] const LIMIT: usize = 4096;
         #[cfg(not(feature = \"big\"))] const LIMIT: usize = 256;
         const SIGNED: i32 = 4; const UNKNOWN: usize = size_of::<f32>();",
    );
    let helpers = Helpers::of(&items.unwrap().items);
    let lower = |condition: &str, arguments: &str| {
        let function = format!(
            "fn k({arguments}, y: &mut Tensor<f32, n>) {{ y.partition_view_mut([4]).store_masked(Tile::zeros([4])); }}"
        );
        let (options, function) = (condition.parse().unwrap(), syn::parse_str(&function).unwrap());
        match tile_frontend::lower_with(options, function, &helpers, "src/main.rs") {
            Ok(lowered) => lowered.kernel.to_string(),
            Err(errors) => errors.to_string(),
        }
    };
    for (condition, arguments, expected) in [
        ("", "x: &Tensor<f32, { EIGHTS * 2 }>", "tensor<16 x f32>"),
        ("", "x: [&Tensor<f32, n>; EIGHTS]", "x[7]"),
        ("where(n <= WIDE)", "a: f32", "n <= WIDE"),
        ("", "x: &Tensor<f32, LIMIT>, z: &Tensor<f32, LIMIT>", "can't know whether `#[cfg]` leaves it out"),
        ("", "x: [&Tensor<f32, n>; LIMIT]", "can't know whether `#[cfg]` leaves it out"),
        ("where(n <= LIMIT)", "a: f32", "can't know whether `#[cfg]` leaves it out"),
        ("", "x: &Tensor<f32, SIGNED>", "`SIGNED` is i32, and an extent is a `usize`"),
        ("where(n <= UNKNOWN)", "a: f32", "help: write the number of bytes"),
    ] {
        let text = lower(condition, arguments);
        assert!(text.contains(expected), "{condition} {arguments}\n{text}");
        assert!(text.matches("can't know").count() < 2, "it is said once: {text}");
    }
}

#[test]
fn conditions_are_printed_and_refused() {
    let options = [
        "where(B % 16 == 0, (m + 1) * 2 <= n.div_ceil(WIDTH) && m != n)",
        "where(WIDTH > 8), instances(B = 4)",
        "where(B % (B - 4) == 0), instances(B = 4; B = 8)",
        "where(q < 4)",
        "where(B)",
        "where(B == 4 || !(m < n && (B % 8 == 0)))",
        "where(m > 0 || B + 1, !n)",
    ];
    insta::assert_snapshot!(options.map(|options| report(options, "y.store_masked(t);")).concat());
}

#[test]
fn parameters_that_no_kernel_can_pass() {
    let parameters = [
        "<const N: usize>(x: Tile<f32, 2>, s: Scale, v: &mut PartitionViewMut<'_, f32, 2>, a: [(f32, i32); N])",
        "<F, G: Fn()>(f: F, g: &G, h: &impl Fn(Tile<f32, 2>) -> f32) where F: Fn(usize)",
        "(a: String, b: &str, c: &[f32], d: &mut Tile<f32, 2>, e: &Tensor<f32, m>, s: &Scale)",
        "(a: fn(f32) -> f32, b: &dyn Fn(f32) -> f32, c: *const f32, d: [Vec<f32>; 2], e: (char, i128))",
        "(f: impl FnMut(f32) -> f32, x: impl Float)",
        "<F: FnOnce(f32)>(f: F)",
        "<const K: u8, const N: usize, const FAST: bool, const S: char>(x: Tile<f32, 1>)",
    ];
    let report = parameters.map(|parameters| {
        let function = syn::parse_str(&format!("fn f{parameters} {{}}")).unwrap();
        let text = match tile_frontend::function(function, &Helpers::default()) {
            Ok(_) => "fine".to_owned(),
            Err(errors) => errors.to_string(),
        };
        format!("{parameters}\n{text}\n\n")
    });
    insta::assert_snapshot!(report.concat());
}

#[test]
fn operators_of_functions_are_calls_but_where_rust_needs_constants() {
    let function = syn::parse_quote! {
        fn f<const N: usize>(mut x: Tile<f32, 1>, k: usize) -> [Tile<f32, 1>; 2 + 1] {
            const M: usize = 2 * N;
            const FOUR: usize = 2 + 2;
            x += -x * (k + M) as f32;
            if x.item() < -1.0 { g::<{ N + 1 }>(x) }
            [x; 2 + 1]
        }
    };
    let function = tile_frontend::function(function, &Helpers::default()).unwrap();
    let expected: syn::ItemFn = syn::parse_quote! {
        fn f<const N: usize>(mut x: Tile<f32, 1>, k: usize) -> [Tile<f32, 1>; 2 + 1] {
            #[allow(non_snake_case, unused_variables)]
            let __tile_M: usize = 2 * N;
            const FOUR: usize = 2 + 2;
            x = ::tile::kernel::either::add(
                x,
                ::tile::kernel::either::mul(::tile::kernel::either::neg(x), (::tile::kernel::either::add(k, __tile_M)) as f32)
            );
            if ::tile::kernel::either::lt(x.item(), -1.0) { g::<{ N + 1 }>(x) }
            [x; 2 + 1]
        }
    };
    let text = |function: &syn::ItemFn| quote::ToTokens::to_token_stream(function).to_string();
    assert_eq!(text(&function), text(&expected));
}

/// What is said of a kernel that calls a function in its module.
fn said(function: &str, body: &str) -> String {
    let items: Vec<Item> = syn::parse_str::<syn::File>(function).unwrap().items;
    let source = format!(
        "fn k<const B: usize>(x: &Tensor<f32, n>, a: i32, y: &mut Tensor<f32, n>) {{
let x = x.partition_view([B]); let mut y = y.partition_view_mut([B]); let t = x.load_masked(y.index());
{body}
}}"
    );
    let function = syn::parse_str(&source).unwrap();
    match tile_frontend::lower_with(Default::default(), function, &Helpers::of(&items), "src/main.rs") {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn what_a_return_gives_is_not_left_in_the_middle() {
    let left = "#[tile_fn] fn g(a: i32) -> i32 { return if a > 0 { return 1 } else { 2 }; }";
    let broken = "#[tile_fn] fn g(a: i32) -> i32 { loop { break if a > 0 { return 1 } else { 2 }; } }";
    for function in [left, broken] {
        let message = said(function, "y.store_masked(t * g(a) as f32);");
        assert!(message.contains("can't stand in the middle of an expression"), "{message}");
    }
    let block = "let t = unsafe { if a > 3 { return; } x.load_unchecked(y.index()) }; y.store_masked(t);";
    assert_eq!(said("", block), "accepted");
}

#[test]
fn assignments_to_parts_have_one_order() {
    let message = |index: &str, value: &str| {
        let function = format!(
            "#[tile_fn] fn g(t: Tile<f32, 1>) -> Tile<f32, 1> {{ let mut parts = [t, t]; let mut k = 0; \
             parts[{index}] += {value}; parts[0] }}"
        );
        said(&function, "y.store_masked(g(t));")
    };
    assert_eq!(message("{ let k = 1; k }", "t * k as f32"), "accepted");
    let assigning = message("{ k += 1; k }", "t * k as f32");
    assert!(
        assigning.contains("the index assigns to `k`, before or after the right side is computed"),
        "{assigning}"
    );
    let changing = message("k", "{ k += 1; t }");
    assert!(changing.contains("the right side assigns to `k`, which this assignment reads"), "{changing}");
    // A kernel as rustc sees it keeps Rust's order.
    let own = "let mut parts = [t, t]; let mut k = 0; parts[{ k += 1; k }] += t * k as f32; y.store_masked(parts[1]);";
    assert_eq!(said("", own), "accepted");
}

#[test]
fn numbers_in_fields_need_a_type_where_their_struct_is_not_seen() {
    let body = |state: &str| {
        format!(
            "let mut s = State {{ turns: {state}, unused: 3 }}; for _ in 0..a {{ s.turns = s.turns * 3 + 1; }} \
             y.store_masked(t * (s.turns >> 16) as f32);"
        )
    };
    insta::assert_snapshot!(said("", &body("1")));
    assert_eq!(said("", &body("1u32")), "accepted");
    let structure = "struct State { turns: u32, unused: u8 }";
    assert_eq!(said(structure, &body("1")), "accepted");
}

#[test]
fn constants_of_parameters_are_no_arguments_of_functions() {
    let function = "#[tile_fn] fn g<const N: usize>() -> Tile<f32, 1> { Tile::ones([N]) }";
    insta::assert_snapshot!(said(function, "const W: usize = 1 * B; y.store_masked(t * g::<W>());"));
    assert_eq!(said(function, "const W: usize = 1; y.store_masked(t * g::<W>());"), "accepted");
}

#[test]
fn constants_of_parameters_are_variables_that_the_whole_block_sees() {
    let function = syn::parse_quote! {
        fn f<const B: usize>(t: Tile<f32, 1>) -> usize {
            let q = W + LAST;
            const LAST: usize = W - 1;
            const W: usize = 2 * B;
            tile_println!("{W} {}", LAST);
            let v = {
                let q = W;
                const W: usize = 3 * B;
                q + W
            };
            let s = State { W, last: { const LAST: usize = 4; LAST } };
            q + v
        }
    };
    let function = tile_frontend::function(function, &Helpers::default()).unwrap();
    let expected: syn::ItemFn = syn::parse_quote! {
        fn f<const B: usize>(t: Tile<f32, 1>) -> usize {
            #[allow(non_snake_case, unused_variables)]
            let __tile_W: usize = 2 * B;
            #[allow(non_snake_case, unused_variables)]
            let __tile_LAST: usize = __tile_W - 1;
            let q = ::tile::kernel::either::add(__tile_W, __tile_LAST);
            tile_println!("{W} {}", __tile_LAST, W = __tile_W);
            let v = {
                #[allow(non_snake_case, unused_variables)]
                let __tile_W: usize = 3 * B;
                let q = __tile_W;
                ::tile::kernel::either::add(q, __tile_W)
            };
            let s = State { W: __tile_W, last: { const LAST: usize = 4; LAST } };
            ::tile::kernel::either::add(q, v)
        }
    };
    let text = |function: &syn::ItemFn| quote::ToTokens::to_token_stream(function).to_string();
    assert_eq!(text(&function), text(&expected));
}

#[test]
fn every_conversion_of_a_function_with_other_formats_is_a_kernels() {
    let converted = |parameters: &str| {
        let source = format!("fn f{parameters} -> f32 {{ x as f32 + 2 as f32 }}");
        let function =
            tile_frontend::function(syn::parse_str(&source).unwrap(), &Helpers::default()).unwrap();
        quote::ToTokens::to_token_stream(&function).to_string().contains("scalar :: cast :: < _ , f32 > (x)")
    };
    assert_eq!(
        [converted("(x: bf16)"), converted("<T: Float>(x: T)"), converted("(x: i32)")],
        [true, true, false]
    );
}

#[test]
fn what_a_function_uses_of_its_module_may_have_other_formats() {
    let items = "struct Scaled { scale: f16, tile: Tile<bf16, 1>, turns: u32 } struct Pair(u32, f8e5m2);
        const HALF: bf16 = bf16::of(0.5); const TWO: f32 = 2.0;
        #[tile_fn] fn half(x: f32) -> f16 { x as f16 }
        #[tile_fn] fn twice(x: f32) -> f32 { x * 2.0 }
        #[tile_fn] impl Pair { fn second(self) -> f8e5m2 { self.1 } fn first(self) -> u32 { self.0 } }";
    let items: Vec<Item> = syn::parse_str::<syn::File>(items).unwrap().items;
    let converted = |value: &str| {
        let source = format!("fn f(s: Scaled, p: Pair, k: u32) -> f32 {{ let x = {value}; x as f32 }}");
        let function =
            tile_frontend::function(syn::parse_str(&source).unwrap(), &Helpers::of(&items)).unwrap();
        let text = quote::ToTokens::to_token_stream(&function).to_string();
        assert!(text.contains("cast :: < _ , f32 > (x)") || text.contains("x as f32"), "{text}");
        !text.contains("x as f32")
    };
    for value in [
        "s.scale",
        "s.tile.item()",
        "p.1",
        "HALF",
        "self::half(2.0)",
        "p.second()",
        "Pair::second(p)",
        "match s { Scaled { scale, .. } => scale }",
        "match p { Pair(.., second) => second }",
        "dbg!(s.scale)",
    ] {
        assert!(converted(value), "{value}");
    }
    for value in
        ["s.turns", "p.0", "TWO", "twice(2.0)", "p.first()", "k", "match s { Scaled { turns, .. } => turns }"]
    {
        assert!(!converted(value), "{value}");
    }
}

/// What a call says in `<…>`, and what follows from a struct's fields or doesn't.
#[test]
fn parameters_of_types_and_functions_are_told_apart() {
    let items = syn::parse_str::<syn::File>(
        "struct Sum<T: Number> { tile: Tile<T, 1> } struct Several<const N: usize> { k: f32 }
         #[tile_fn] impl<T: Number> Sum<T> { fn grown<const N: usize>(self) -> Self { Sum { tile: Tile::zeros([N]) } } }
         #[tile_fn] impl<const N: usize> Several<N> { fn count() -> usize { N } }
         #[tile_fn] fn halves<T: Number>(s: other::Sum<T>) -> Tile<T, 1> { Tile::full([4], T::of(7.0) / T::of(2.0)) }",
    );
    let helpers = Helpers::of(&items.unwrap().items);
    let lower = |value: &str| {
        let function = format!(
            "fn k(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {{
                let s = Sum {{ tile: x.partition_view([4]).load_masked([0]) }};
                y.partition_view_mut([4]).store_masked({value});
            }}"
        );
        let function = syn::parse_str(&function).unwrap();
        match tile_frontend::lower_with(Default::default(), function, &helpers, "src/main.rs") {
            Ok(_) => "accepted".to_owned(),
            Err(errors) => errors.to_string(),
        }
    };
    for (value, expected) in [
        ("s.grown::<4>().tile", "accepted"),
        (
            "s.grown::<f32, 4>().tile",
            "`grown` has 1 parameter in `<…>`, not 2\n  help: write `grown::<N>(…)`",
        ),
        ("Tile::full([4], Several::<3>::count() as f32)", "accepted"),
        ("Tile::full([4], Several::count() as f32)", "help: write `Several::<N>::count(…)`"),
        ("halves(s)", "accepted"),
        ("halves(s).cast()", "nothing that the kernel sees says what `T` of `halves` is"),
        ("halves::<i32>(s).cast()", "accepted"),
    ] {
        let text = lower(value);
        assert!(text.contains(expected), "{value}\n{text}");
    }
}
