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
        (
            "|m: i32| { let other = |m: i32| match m { FAST..=slow => 1.0f32, _ => 2.0 }; other(m) }",
            2,
        ),
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
