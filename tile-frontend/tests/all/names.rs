//! What names mean in functions, closures and constants: what they mean where these are written, whoever calls them.

use syn::Item;
use tile_frontend::Helpers;

fn items(module: &str) -> Vec<Item> {
    syn::parse_str::<syn::File>(module).unwrap().items
}

/// The IR of a kernel around `body`, with a tile `t` of the kernel's `T`, or what is wrong with it.
fn lowered(helpers: &Helpers, body: &str) -> Result<String, String> {
    let source = format!(
        "fn k<T: Float>(x: &Tensor<T, n>, mode: i32, y: &mut Tensor<T, n>) {{
let x = x.partition_view([8]); let mut y = y.partition_view_mut([8]); let t = x.load_masked(y.index());
{body}
}}"
    );
    let function = syn::parse_str(&source).unwrap();
    tile_frontend::lower_with(Default::default(), function, helpers, "src/main.rs")
        .map(|lowered| lowered.kernel.to_string())
        .map_err(|errors| errors.to_string())
}

/// The same with the functions of one module.
fn lowered_in(module: &str, body: &str) -> Result<String, String> {
    lowered(&Helpers::of(&items(module)), body)
}

#[test]
fn a_type_that_is_no_format_is_told_all_formats() {
    let module = "#[tile_fn] fn wide<T: Float>(x: Tile<T, 1>) -> Tile<T, 1> { x }";
    let refused = |value: &str| lowered_in(module, &format!("y.store_masked({value});")).expect_err(value);
    let formats = "help: use bool, i8 … u64, f8e4m3fn, f8e5m2, f8e8m0fnu, f16, bf16, f32, f64 or";
    for (value, more) in [("wide::<String>(t)", "a type parameter"), ("t * (1 as String)", "usize")] {
        assert!(refused(value).contains(&format!("{formats} {more}")), "{}", refused(value));
    }
}

#[test]
fn type_parameters_of_a_kernel_mean_nothing_in_functions_and_constants() {
    let module = "
type T = f16;
const HALF: T = 0.5;
const OTHER: f32 = 1.5 as T as f32;
#[tile_fn]
fn rough(x: Tile<f32, 1>) -> Tile<f32, 1> { x.cast::<T>().cast::<f32>() }
#[tile_fn]
fn wide<T: Float>(x: Tile<T, 1>) -> Tile<T, 1> { x * OTHER.cast() }
#[tile_fn]
fn half() -> Tile<f32, 1> { Tile::full([8], T::of(0.5)).cast::<f32>() }
#[tile_fn]
fn given(x: Tile<T, 1>) -> Tile<f32, 1> { x.cast::<f32>() }
";
    let values = [
        "rough(t.cast::<f32>())",
        "t.cast::<f32>() * HALF",
        "wide(t.cast::<f32>())",
        "half()",
        "given(Tile::full([8], 0.1))",
    ];
    let refused = values.map(|value| {
        let errors = lowered_in(module, &format!("y.store_masked({value}.cast::<T>());")).expect_err(value);
        format!("{value}\n{errors}\n\n")
    });
    insta::assert_snapshot!(refused.concat());
    let closure = "let rough = |x: Tile<f32, 1>| x.cast::<T>(); y.store_masked(rough(t.cast::<f32>()));";
    assert!(lowered_in(module, closure).is_ok(), "a closure sees the kernel's type parameters");
}

#[test]
fn patterns_of_closures_compare_with_constants_of_the_body() {
    let constants = "const FAST: i32 = 1; #[allow(non_upper_case_globals)] const slow: i32 = 2;";
    let closures = [
        ("|m: i32| match m { FAST => 1.0f32, _ => 2.0 }", 1),
        ("|m: i32| match m { slow => 1.0f32, _ => 2.0 }", 1),
        ("|m: i32| if matches!(m, FAST | slow) { 1.0f32 } else { 2.0 }", 2),
        ("|m: i32| if let FAST = m { 1.0f32 } else { 2.0 }", 1),
        ("|m: i32| { let other = |m: i32| match m { FAST..=slow => 1.0f32, _ => 2.0 }; other(m) }", 2),
        ("|m: i32| match m { free => free as f32 }", 0),
    ];
    for (closure, expected) in closures {
        let body = format!(
            "{constants} let pick = {closure}; y.store_masked((t.cast::<f32>() * pick(mode)).cast::<T>());"
        );
        let text = lowered_in("", &body).unwrap();
        let comparisons = text.lines().filter(|line| line.contains("%mode, ")).count();
        assert_eq!(comparisons, expected, "{closure}: {text}");
    }
}

/// Of two modules, each with a struct `Sum` that has a method `value`: the kernel's, and `other`.
fn two_modules() -> Helpers {
    let own = "
#[tile_fn]
impl Sum { fn value(self) -> Tile<f32, 1> { self.tile * 3.0 } fn own(self) -> Tile<f32, 1> { self.value() } }
#[tile_fn]
fn here(x: Tile<f32, 1>) -> Sum { Sum { tile: x } }
";
    let other = "
#[tile_fn]
impl Sum {
    fn value(self) -> Tile<f32, 1> { self.tile * FACTOR }
    fn add(&mut self, x: Tile<f32, 1>) { self.tile += x; }
    fn turned(self) -> Self { Self { tile: -self.tile } }
}
const FACTOR: f32 = 10.0;
#[tile_fn]
fn start(x: Tile<f32, 1>) -> Sum { Sum { tile: x } }
#[tile_fn]
fn paired(x: Tile<f32, 1>) -> (Sum, f32) { (Sum { tile: x }, 1.0) }
#[tile_fn]
fn valued(sum: Sum) -> Tile<f32, 1> { sum.value() }
#[tile_fn]
fn applied(x: Tile<f32, 1>, f: impl Fn(Sum) -> Tile<f32, 1>) -> Tile<f32, 1> { f(Sum { tile: x }) }
";
    let (mut helpers, other) = (Helpers::of(&items(own)), items(other));
    for item in &other {
        let Item::Fn(function) = item else { continue };
        let path = format!("other::{}", function.sig.ident);
        helpers.insert(path, function.clone(), Helpers::of(&other), false);
    }
    helpers
}

#[test]
fn methods_are_those_of_the_module_that_has_the_struct() {
    let factor = |value: &str| {
        let body = format!(
            "let t = t.cast::<f32>(); let made: Tile<f32, 1> = {{ {value} }}; y.store_masked(made.cast::<T>());"
        );
        let text = lowered(&two_modules(), &body).map_err(|errors| format!("{value}: {errors}")).unwrap();
        ["3.0", "10.0"]
            .into_iter()
            .filter(|factor| text.contains(&format!("constant {factor} ")))
            .collect::<Vec<_>>()
    };
    let of_own =
        ["here(t).value()", "here(t).own()", "Sum { tile: t }.value()", "let s: Sum = here(t); s.value()"];
    for value in of_own {
        assert_eq!(factor(value), ["3.0"], "{value}");
    }
    let of_other = [
        "other::start(t).value()",
        "other::paired(t).0.value()",
        "other::start(t).turned().value()",
        "other::valued(other::start(t))",
        "other::valued(other::Sum { tile: t })",
        "other::applied(t, |s| s.value())",
        "let mut s = other::start(t); for _ in 0..mode { s = s.turned(); } s.value()",
        "let s = if mode > 0 { other::start(t) } else { other::start(-t) }; s.value()",
    ];
    for value in of_other {
        assert_eq!(factor(value), ["10.0"], "{value}");
    }
}

#[test]
fn methods_of_other_modules_that_may_be_others_are_refused() {
    let refused = |value: &str| {
        let body = format!(
            "let t = t.cast::<f32>(); let made: Tile<f32, 1> = {{ {value} }}; y.store_masked(made.cast::<T>());"
        );
        let errors = lowered(&two_modules(), &body).expect_err(value);
        format!("{value}\n{errors}\n\n")
    };
    let values = [
        "other::Sum { tile: t }.value()",
        "let mut s = other::start(t); s.add(t); s.tile",
        "other::start(t).missing()",
    ];
    insta::assert_snapshot!(values.map(refused).concat());
}

#[test]
fn functions_with_names_of_other_languages_may_be_the_authors() {
    let missing = |call: &str| {
        let source = format!(
            "fn k(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {{
                let mut y = y.partition_view_mut([4]);
                let t = x.partition_view([4]).load_masked(y.index());
                y.store_masked({call});
            }}"
        );
        let function = syn::parse_str(&source).unwrap();
        let errors = tile_frontend::lower(Default::default(), function, "src/main.rs").expect_err(call);
        (!errors.missing().is_empty(), errors.to_string())
    };
    for call in [
        "zeros::<4>()",
        "cdiv(t)",
        "cuda::softmax(t)",
        "wgpu::zeros(t)",
        "crate::tl::sum(t)",
        "self::tl::sum(t)",
        "np::mine(t)",
    ] {
        let (may_be_elsewhere, message) = missing(call);
        assert!(may_be_elsewhere && message.contains("isn't a function that this kernel sees"), "{message}");
    }
    for (call, said) in [
        (
            "tl::sum(t)",
            "it is a method of tiles: `x.sum(…)`; a function of a module of yours is `self::tl::sum`",
        ),
        ("np::clip(t)", "write `x.clamp(low, high)`; a function of a module of yours is `self::np::clip`"),
        ("tl::exp(t)", "write `exp(x)`; a function of a module of yours is `self::tl::exp`"),
    ] {
        let (may_be_elsewhere, message) = missing(call);
        assert!(!may_be_elsewhere && message.contains(said), "{message}");
    }
}

#[test]
fn structs_may_have_the_names_of_types_that_allocate() {
    let module = items("#[derive(TileStruct)] struct Vec<T> { of: Tile<T, 1> } struct Option { a: f32 }");
    let of_module = |parameter: &str| {
        let function = syn::parse_str(&format!("fn f({parameter}) {{}}")).unwrap();
        tile_frontend::function(function, &Helpers::of(&module))
    };
    for parameter in ["a: Vec<f32>", "a: Option", "a: Box", "a: [(Arc, f32); 2]"] {
        assert!(of_module(parameter).is_ok(), "{parameter}");
    }
    for parameter in ["a: Box<f32>", "a: std::vec::Vec<f32>", "a: String", "a: HashMap<u32, u32>"] {
        let errors = of_module(parameter).expect_err(parameter).to_string();
        assert!(errors.contains("kernels allocate nothing"), "{errors}");
    }
}
