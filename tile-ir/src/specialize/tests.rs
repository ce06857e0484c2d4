//! What instances are made, which branches they take and which arguments they have.

use super::*;
use crate::array::{Array, Elements};
use crate::dtype::DType;
use crate::text::{parse, print};
use crate::view::GivenTensor;
use tile_test_edit::Edit;

const AXPY: &str = "\
kernel @axpy<T: float, B>(%x: tensor<n x T>, %y: mut tensor<n x T>) {
  %v = partition %y [B] : mut partition<n x T, [B]>
  %0 = constant 2.0 : T
  %1 = splat %0 : tile<B x T>
  store_masked %v, %1
}
";

fn axpy() -> VerifiedKernel {
    VerifiedKernel::parse(AXPY).unwrap()
}

fn message(bindings: &[(&str, Binding)]) -> String {
    let bindings: Bindings = bindings.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    specialize(&axpy(), &bindings).unwrap_err().to_string()
}

#[test]
fn substitutes_everywhere() {
    let bindings = [("T".to_owned(), Binding::Elem(DType::F16)), ("B".to_owned(), Binding::Const(64))];
    let instance = specialize(&axpy(), &bindings).unwrap();
    let text = print(&instance);
    assert!(text.contains("kernel @axpy(%x: tensor<n x f16>"), "{text}");
    assert!(text.contains("splat %0 : tile<64 x f16>"), "{text}");
    assert_eq!(instance.bindings(), &bindings);
}

#[test]
fn wrong_bindings_are_explained() {
    let (t, b) = (("T", Binding::Elem(DType::F32)), ("B", Binding::Const(4)));
    assert_eq!(message(&[t]), "kernel `axpy`: parameter `B` has no value");
    assert_eq!(
        message(&[t, b, ("Q", Binding::Const(1))]),
        "kernel `axpy`: `Q` is not a parameter of the kernel"
    );
    assert_eq!(
        message(&[t, b, ("B", Binding::Const(8))]),
        "kernel `axpy`: `B` is given twice, as 4 and as 8; name it once"
    );
    assert_eq!(
        message(&[("T", Binding::Elem(DType::I32)), b]),
        "kernel `axpy`: `T` is i32, but must be a float"
    );
    assert_eq!(
        message(&[t, ("B", Binding::Elem(DType::I32))]),
        "kernel `axpy`: `B` is a const parameter, but was given the element type i32"
    );
    assert_eq!(
        message(&[t, ("B", Binding::Const(0))]),
        "kernel `axpy` can't be made with these parameters: the tile extent `0` is not positive"
    );
}

/// An extent that rounds down a number below 0 is a number, and one that divides by 0 is refused.
#[test]
fn extents_of_an_instance_are_numbers() {
    let made = |shift: usize, divisor: usize| {
        let source = "kernel @k<S, D>(%y: mut tensor<n x i32>) {
  %v = partition %y [4] : mut partition<n x i32, [4]>
  %t = iota 0 : tile<floor_div(S - 6, D) + 4 x i32>
  %u = roll %t axis 0 by floor_div(S - 6, 2) : tile<floor_div(S - 6, D) + 4 x i32>
  print 0 \"{0}\" %u
}
";
        let mut y = Array::full(DType::I32, &[4], Literal::Int(0));
        let instance = Instance::parse(source, &[("S", shift), ("D", divisor)])?;
        let events = crate::interp::run_logged(&instance, std::slice::from_mut(&mut y)).unwrap();
        Ok::<_, Error>(events[0].values[0].elements().clone())
    };
    assert_eq!(made(3, 4).unwrap(), Elements::Int(vec![2, 0, 1]));
    assert_eq!(
        made(8, 0).unwrap_err().to_string(),
        "kernel `k` can't be made with these parameters: a tile extent has no value: `floor_div(2, 0)` divides by 0, \
         which isn't positive"
    );
}

/// An extent may be a logarithm, which 0 has none of, and a power of two, which may be more than 64 bits have.
#[test]
fn extents_of_an_instance_have_a_value() {
    let made = |extent: &str, number: usize| {
        let source = format!(
            "kernel @k<N>(%y: mut tensor<n x i32>) {{
  %v = partition %y [{extent}] : mut partition<n x i32, [{extent}]>
}}
"
        );
        Instance::parse(&source, &[("N", number)]).map(|_| ()).map_err(|error| error.to_string())
    };
    let refused = |reason: &str| {
        Err(format!("kernel `k` can't be made with these parameters: a tile extent has no value: {reason}"))
    };
    assert_eq!(made("ilog2(floor_div(N, 2)) + 1", 2), Ok(()));
    let logarithm = refused("`ilog2(0)` is the logarithm of 0, which isn't positive");
    assert_eq!(made("ilog2(floor_div(N, 2)) + 1", 1), logarithm);
    let most = 1 << 62;
    let power = refused(&format!("`next_power_of_two({})` overflows 64 bits", most + 1));
    assert_eq!(made("next_power_of_two(N)", most + 1), power);
}

/// With some numbers a movement moves nothing, and the view is what it is of.
#[test]
fn views_follow_from_the_numbers_of_an_instance() {
    let source = "kernel @k<G, P, S>(%x: tensor<n x m x i32>, %y: mut tensor<n x m x i32>) {
  %0 = view %x unflatten 1 [G, floor_div(m, G)] : tensor<n x G x floor_div(m, G) x i32, strided [m, floor_div(m, G), 1]>
  %1 = view %0 pad [(0, 0), (0, 0), (P, 0)] : tensor<n x G x floor_div(m, G) + P x i32, strided [m, floor_div(m, G), 1] \
offset -P within [[], [], [(P, floor_div(m, G) + P)]]>
  %2 = view %1 step 0 by S : tensor<ceil_div(n, S) x G x floor_div(m, G) + P x i32, strided [m*S, floor_div(m, G), 1] \
offset -P within [[], [], [(P, floor_div(m, G) + P)]]>
  %v = partition %2 [1, 1, 4] : partition<ceil_div(n, S) x G x floor_div(m, G) + P x i32, strided [m*S, \
floor_div(m, G), 1] offset -P within [[], [], [(P, floor_div(m, G) + P)]], [1, 1, 4]>
  %vy = partition %y [1, 4] : mut partition<n x m x i32, [1, 4]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0 : i32
  %none = constant 0 : index
  %t = load_masked %v[%i, %none, %j] pad %zero : tile<1 x 1 x 4 x i32>
  %u = reshape %t : tile<1 x 4 x i32>
  store_masked %vy, %u
}
";
    let run = |numbers: [usize; 3]| {
        let [g, p, s] = numbers;
        let instance = Instance::parse(source, &[("G", g), ("P", p), ("S", s)]).unwrap();
        let x = Array::new(DType::I32, vec![3, 6], Elements::Int((0..18).collect()));
        let mut arrays = [x, Array::full(DType::I32, &[3, 6], Literal::Int(0))];
        crate::interp::run_logged(&instance, &mut arrays).unwrap();
        arrays[1].elements().clone()
    };
    // Group 0 of row S·i, with P zeros before.
    let expected = |[g, p, s]: [usize; 3]| {
        let element = |at: usize| {
            let (row, column) = (at / 6 * s, (at % 6).checked_sub(p));
            column.filter(|&column| row < 3 && column < 6 / g).map_or(0, |column| (row * 6 + column) as i128)
        };
        Elements::Int((0..18).map(element).collect())
    };
    for numbers in [[2, 1, 2], [1, 1, 1], [1, 0, 1], [2, 0, 1], [1, 0, 2], [3, 2, 1]] {
        assert_eq!(run(numbers), expected(numbers), "{numbers:?}");
    }
}

/// A format of which an op computes nothing is refused, also where the op could decide a branch.
#[test]
fn a_truth_has_no_arithmetic() {
    for (line, refused) in [
        ("%b = exp %a : T", "`exp` needs a float, not bool"),
        ("%b = constant 2.5 : T", "a float literal can't be bool"),
    ] {
        let source = format!(
            "kernel @k<T: any>(%y: mut tensor<n x T>) {{
  %v = partition %y [4] : mut partition<n x T, [4]>
  %a = constant 1 : T
  {line}
}}
"
        );
        let kernel = VerifiedKernel::parse(&source).unwrap();
        let error = specialize(&kernel, &[("T".to_owned(), Binding::Elem(DType::Bool))]).unwrap_err();
        assert_eq!(error.to_string(), format!("kernel `k` can't be made with these parameters: {refused}"));
    }
}

/// A branch that decides another one is taken in time, however deep it stands.
#[test]
fn branches_in_branches_decide() {
    let source = "kernel @k<A: bool, B: bool>(%y: mut tensor<n x i32>) {
  %v = partition %y [4] : mut partition<n x i32, [4]>
  %0 = extent A : index
  %1 = extent B : index
  %2 = constant 0 : index
  %a = ne %0, %2 : bool
  %b = ne %1, %2 : bool
  %true = constant true : bool
  %false = constant false : bool
  %both = if %a : bool {
    %inner = if %b : bool {
      yield %true
    } else {
      yield %false
    }
    yield %inner
  } else {
    yield %false
  }
  if %both {
    %t = iota 0 : tile<floor_div(8, B) x i32>
    print 0 \"{0}\" %t
  }
}
";
    let kernel = VerifiedKernel::parse(source).unwrap();
    for [a, b] in [[true, false], [true, true], [false, false]] {
        let bindings = [("A".to_owned(), Binding::Bool(a)), ("B".to_owned(), Binding::Bool(b))];
        let printed = print(&specialize(&kernel, &bindings).unwrap());
        assert_eq!(printed.contains("print"), a && b, "{printed}");
        assert!(!printed.contains("if "), "{printed}");
    }
}

/// With `WHOLE` the load isn't masked; the branch without is one that no instance could have.
const PARTS: &str = "\
kernel @parts<WHOLE: bool, T: number>(%x: tensor<n x T>, %y: mut tensor<n x T>) {
  %vx = partition %x [4] : partition<n x T, [4]>
  %vy = partition %y [4] : mut partition<n x T, [4]>
  %i = block_index %vy : index
  %0 = extent WHOLE : index
  %1 = constant 0 : index
  %WHOLE = ne %0, %1 : bool
  %2 = if %WHOLE : tile<4 x T> {
    %3 = load %vx[%i] : tile<4 x T>
    yield %3
  } else {
    %4 = constant 1 : T
    %5 = splat %4 : tile<4 x T>
    %6 = neg %5 : tile<4 x T>
    yield %6
  }
  store_masked %vy, %2
}
";

#[test]
fn branches_of_parameters_are_taken_before_anything_is_asked() {
    let kernel = VerifiedKernel::parse(PARTS).unwrap();
    assert_eq!(print(&kernel), PARTS);
    let made = |whole, dtype| {
        let bindings = [("WHOLE", Binding::Bool(whole)), ("T", Binding::Elem(dtype))];
        specialize(&kernel, &bindings.map(|(name, value)| (name.to_owned(), value)))
    };
    let whole = made(true, DType::U32).unwrap();
    let text = print(&whole);
    assert!(!text.contains("if") && !text.contains("neg") && text.contains("load %vx[%i]"), "{text}");
    assert_eq!(whole.checks().len(), 1, "{text}");
    let parts = made(false, DType::I32).unwrap();
    assert!(parts.checks().is_empty() && !print(&parts).contains("partition %x"), "{}", print(&parts));
    // u32 has no negative numbers.
    assert!(made(false, DType::U32).is_err());
    let number = specialize(&kernel, &[("WHOLE".to_owned(), Binding::Const(1))]).unwrap_err().to_string();
    assert_eq!(number, "kernel `parts`: `WHOLE` is a `bool`, but was given the number 1");
}

/// What is added is a number without `BIASED`.
const BIAS: &str = "\
kernel @bias<BIASED: bool>(%bias: tensor<m x f32> if BIASED, %x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vb = partition %bias [4] : partition<m x f32, [4]>
  %vx = partition %x [4] : partition<n x f32, [4]>
  %vy = partition %y [4] : mut partition<n x f32, [4]>
  %i = block_index %vy : index
  %0 = extent BIASED : index
  %1 = constant 0 : index
  %2 = ne %0, %1 : bool
  %3 = constant 1.0 : f32
  %4 = load_masked %vx[%i] pad %3 : tile<4 x f32>
  %5 = if %2 : tile<4 x f32> {
    %6 = load_masked %vb[%i] pad %3 : tile<4 x f32>
    %7 = add %4, %6 : tile<4 x f32>
    yield %7
  } else {
    yield %4
  }
  store_masked %vy, %5
}
";

#[test]
fn an_optional_argument_is_one_where_it_is_given() {
    let kernel = VerifiedKernel::parse(BIAS).unwrap();
    assert_eq!(print(&kernel), BIAS);
    let made =
        |kernel: &VerifiedKernel, given| specialize(kernel, &[("BIASED".to_owned(), Binding::Bool(given))]);
    let with = made(&kernel, true).unwrap();
    assert!(print(&with).contains("(%bias: tensor<m x f32>, %x: "), "{}", print(&with));
    let without = made(&kernel, false).unwrap();
    assert!(print(&without).contains("(%x: tensor<n x f32>, %y: "), "{}", print(&without));
    assert!(!print(&without).contains("%vb"), "{}", print(&without));

    let always = BIAS.edit("%4 = load_masked %vx[%i]", "%4 = load_masked %vb[%i]");
    let always = VerifiedKernel::parse(&always).unwrap();
    let message = made(&always, false).unwrap_err().to_string();
    assert!(message.contains("`bias` is used where `BIASED` doesn't hold"), "{message}");
    let errors = verify(parse(&BIAS.edit(" if BIASED", " if WHOLE")).unwrap()).unwrap_err();
    let part = "`WHOLE` is neither a `bool` nor a number that the kernel has as a parameter";
    assert!(errors.iter().any(|error| error.message.contains(part)), "{errors:?}");
}

/// An array of outputs, the second of which an instance with `K = 1` doesn't have.
const COPIES: &str = "\
kernel @copies<K>(%x: tensor<n x f32>, %y[0]: mut tensor<n x f32>, %y[1]: mut tensor<n x f32> if K > 1) {
  %vx = partition %x [4] : partition<n x f32, [4]>
  %v = partition %y[0] [4] : mut partition<n x f32, [4]>
  %w = partition %y[1] [4] : mut partition<n x f32, [4]>
  %i = block_index %v : index
  %0 = constant 1.0 : f32
  %1 = load_masked %vx[%i] pad %0 : tile<4 x f32>
  store_masked %v, %1
  %2 = extent K : index
  %3 = constant 1 : index
  %4 = gt %2, %3 : bool
  if %4 {
    store_masked %w, %1
  }
}
";

#[test]
fn an_output_declares_the_grid_of_the_instances_that_have_it() {
    let kernel = VerifiedKernel::parse(COPIES).unwrap();
    assert_eq!(print(&kernel), COPIES);
    let made = |length| specialize(&kernel, &[("K".to_owned(), Binding::Const(length))]).unwrap();
    assert!(
        print(&made(2))
            .contains("(%x: tensor<n x f32>, %y[0]: mut tensor<n x f32>, %y[1]: mut tensor<n x f32>)")
    );
    assert!(print(&made(2)).contains("store_masked %w, %1"));
    let one = print(&made(1));
    assert!(
        one.contains("(%x: tensor<n x f32>, %y[0]: mut tensor<n x f32>)") && !one.contains("%w"),
        "{one}"
    );

    let alone = COPIES.edit("%y[0]: mut tensor<n x f32>,", "%y[0]: mut tensor<n x f32> if K > 3,");
    let errors = verify(parse(&alone).unwrap()).unwrap_err();
    assert_eq!(errors[0].message, "`y[0]` may be left out, and no other output says what the grid is then");
}

#[test]
fn fast_accumulation_is_that_of_an_instance() {
    let source = AXPY.edit("B>(", "B, FAST: bool>(").edit(" {", " fast_accumulation if FAST {");
    let kernel = VerifiedKernel::parse(&source).unwrap();
    for (fast, header) in [(true, ">) fast_accumulation {"), (false, ">) {")] {
        let bound =
            [("T", Binding::Elem(DType::F32)), ("B", Binding::Const(4)), ("FAST", Binding::Bool(fast))];
        let text = print(&specialize(&kernel, &bound.map(|(name, value)| (name.to_owned(), value))).unwrap());
        assert!(text.contains(header), "{fast}: {text}");
    }
    let unknown = VerifiedKernel::parse(&source.edit("if FAST", "if QUICK")).unwrap_err().to_string();
    assert!(unknown.contains("`QUICK` is neither a `bool` nor a number"), "{unknown}");
}

#[test]
fn arguments_of_an_array_have_layouts() {
    let kernel = VerifiedKernel::parse(COPIES).unwrap();
    let strided = GivenTensor { extents: &[4], strides: Some(&[3]), offset: 0 };
    let layouts = [(1, ArgumentLayout::of(&strided).unwrap())];
    let instance = specialize_for(&kernel, &[("K".to_owned(), Binding::Const(1))], &layouts).unwrap();
    let text = print(&instance);
    assert!(text.contains("%y[0]: mut tensor<n x f32, strided [y[0].stride_0]>"), "{text}");
    assert_eq!(print(&parse(&text).unwrap()), text);
}

#[test]
fn conditions_of_parameters_are_decided_and_dropped() {
    let source = AXPY.edit(
        ") {",
        ") where \"B % 16 == 0\": rem(B, 16) eq 0, \"n % B == 0\": rem(n, B) eq 0, \"2 > 1\": 2 gt 1 {",
    );
    let kernel = VerifiedKernel::parse(&source).unwrap();
    assert_eq!(print(&kernel), source);
    let made = |b| {
        specialize(
            &kernel,
            &[("T".to_owned(), Binding::Elem(DType::F32)), ("B".to_owned(), Binding::Const(b))],
        )
    };
    let instance = made(32).unwrap();
    assert!(print(&instance).contains(") where \"n % B == 0\": rem(n, 32) eq 0 {"), "{}", print(&instance));
    assert_eq!(made(24).unwrap_err().to_string(), "kernel `axpy` needs `B % 16 == 0`, but B = 24");
    let unbound = source.edit("rem(n, B) eq", "rem(q, B) eq");
    assert!(VerifiedKernel::parse(&unbound).is_err());
}
