//! Ranges of whole kernels: what they say, and that what goes by them prints as the kernel does.

use super::*;
use crate::Instance;
use crate::VerifiedKernel;

fn kernel(body: &str) -> Kernel {
    let source = format!(
        "kernel @k<B>(%x: tensor<m x n x f32>, %count: index, %y: mut tensor<m x n x f32>) {{
  %v = partition %y [B, 8] : mut partition<m x n x f32, [B, 8]>
  %i, %j = block_index %v : index, index
{body}
}}
"
    );
    VerifiedKernel::parse(&source).unwrap().into_inner()
}

/// What a kernel prints that is given tensors of these extents.
fn printed(instance: &Instance, extents: &[&[usize]]) -> Vec<Literal> {
    let ones = |extents: &&[usize]| crate::array::Array::full(DType::F32, extents, Literal::Float(1.0));
    let mut arrays: Vec<_> = extents.iter().map(ones).collect();
    let events = crate::interp::run_logged(instance, &mut arrays).unwrap();
    events.iter().flat_map(|event| event.values.iter().map(|value| value.get(0))).collect()
}

/// Whether a kernel prints something, and the same after all passes.
fn assert_prints_alike(source: &str) {
    let instance = Instance::parse(source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let expected = printed(&instance, &[&[24]]);
    let optimized = crate::passes::optimize(instance);
    assert!(!expected.is_empty(), "{source}");
    assert_eq!(printed(&optimized, &[&[24]]), expected, "{}", crate::text::print(&optimized));
}

/// What an optimised kernel prints is what the kernel prints, although what it computes with has wrapped.
#[test]
fn what_may_have_wrapped_has_no_lower_bound() {
    let quarter =
        "%a = add %i, %one : index\n%k = constant 4611686018427387904 : index\n%b = mul %a, %k : index";
    let unsigned = |lines: &str| format!("{quarter}\n{lines}");
    for lines in [
        unsigned("%q = div %b, %k : index\n%c = ge %q, %one : bool\nprint 0 \"{0} {1}\" %q, %c"),
        unsigned("%q = div %b, %k : index\n%c = le %q, %a : bool\nprint 0 \"{0} {1}\" %q, %c"),
        unsigned("%q = min %b, %k : index\nprint 0 \"{0}\" %q"),
        unsigned("%q = max %b, %one : index\n%c = ge %q, %k : bool\nprint 0 \"{0} {1}\" %q, %c"),
        unsigned("%c = lt %b, %one : bool\nif %c {\n%d = ge %b, %one : bool\nprint 0 \"{0}\" %d\n}"),
        unsigned("%c = ge %i, %b : bool\nif %c {\n%d = ge %i, %k : bool\nprint 0 \"{0}\" %d\n}"),
        unsigned("%e = constant 6 : index\nfor %p = %b to %e {\n%c = ge %p, %one : bool\nprint 0 \"{0}\" %c\n}"),
        String::from(
            "%a = add %i, %one : index\n%k = constant 6364136223846793005 : index\n%b = mul %a, %k : index
%s = constant 60 : index\n%five = constant 5 : index\n%q = shr %b, %s : index\n%c = lt %q, %five : bool
print 0 \"{0} {1}\" %q, %c",
        ),
        String::from(
            "%k = constant 4611686018427387904 : i64\n%z = constant 0 : i64\n%j = cast %i : i64
%b = mul %j, %k : i64\n%q = div %b, %k : i64\n%c = lt %q, %z : bool\n%r = rem %b, %k : i64\n%d = lt %b, %z : bool
%e = max %b, %z : i64\nprint 0 \"{0} {1} {2} {3} {4}\" %q, %c, %r, %d, %e",
        ),
    ] {
        let source = format!(
            "kernel @k(%y: mut tensor<n x f32>) {{
  %v = partition %y [4] : mut partition<n x f32, [4]>
  %i = block_index %v : index
  %one = constant 1 : index
{lines}
}}
"
        );
        assert_prints_alike(&source);
    }
}

/// Of the lower bounds that a guard gives one may be negative, and the product of two such is none.
#[test]
fn products_of_guarded_values_have_true_bounds() {
    for lines in [
        "%e = add %i, %three : index\n%c = lt %e, %six : bool\nif %c {\n%p = mul %i, %i : index
%r = le %p, %three : bool\nprint 0 \"{0} {1}\" %p, %r\n}",
        "%d = sub %i, %three : index\n%c = lt %d, %six : bool\nif %c {\n%p = mul %d, %d : index
%r = lt %p, %six : bool\nprint 0 \"{0} {1}\" %p, %r\n}",
    ] {
        let source = format!(
            "kernel @k(%y: mut tensor<n x f32>) {{
  %v = partition %y [2] : mut partition<n x f32, [2]>
  %i = block_index %v : index
  %three = constant 3 : index
  %six = constant 6 : index
{lines}
}}
"
        );
        assert_prints_alike(&source);
    }
}

/// A launch that reads in front of a padded tensor isn't taken for one that doesn't.
#[test]
fn a_launch_checks_products_of_guarded_values() {
    let source = "kernel @k(%x: tensor<m x f32>, %y: mut tensor<n x k x f32>) {
  %p = view %x pad [(4, 0)] : tensor<m + 4 x f32, strided [1] offset -4 within [[(4, m + 4)]]>
  %vx = partition %p [1] : partition<m + 4 x f32, strided [1] offset -4 within [[(4, m + 4)]], [1]>
  %vy = partition %y [1, 1] : mut partition<n x k x f32, [1, 1]>
  %i, %j = block_index %vy : index, index
  %two = constant 2 : index
  %eight = constant 8 : index
  %a = add %i, %two : index
  %c = lt %a, %eight : bool
  %b = add %j, %two : index
  %d = lt %b, %eight : bool
  %e = and %c, %d : bool
  if %e {
    %q = mul %i, %j : index
    %t = load %vx[%q] : tile<1 x f32>
    print 0 \"{0}\" %t
  }
}
";
    let instance = Instance::parse(source, &[]).unwrap();
    let abi = crate::abi::KernelAbi::of(&instance);
    assert!(abi.bind(&[&[64], &[8, 8]]).is_err());
}

/// Where a divisor is 0, an extent is less than the parts of it show, so that no comparison with it is decided.
#[test]
fn an_extent_without_a_value_reads_as_0() {
    let source = "kernel @k(%x: tensor<m x n x f32>, %y: mut tensor<4 x f32>) where \"m >= 8\": m ge 8 {
  %v = partition %y [4] : mut partition<4 x f32, [4]>
  %eight = constant 8 : index
  %e = extent floor_div(m*n, n) : index
  %c = ge %e, %eight : bool
  print 0 \"{0}\" %c
}
";
    let instance = Instance::parse(source, &[]).unwrap();
    let printed = |instance: &Instance, n: usize| printed(instance, &[&[16, n], &[4]]);
    let optimized = crate::passes::optimize(instance.clone());
    for (n, expected) in [(0, 0), (1, 1), (3, 1)] {
        assert_eq!(printed(&instance, n), [Literal::Int(expected)], "{n}");
        assert_eq!(printed(&optimized, n), [Literal::Int(expected)], "{n}");
    }
}

/// The whole extent is 0 where a logarithm in it is that of 0, of a size as of a number of the instance.
#[test]
fn a_sum_with_the_logarithm_of_0_reads_as_0() {
    let source = "kernel @k<N>(%x: tensor<m x f32>, %y: mut tensor<4 x f32>) {
  %v = partition %y [4] : mut partition<4 x f32, [4]>
  %two = constant 2 : index
  %a = extent ilog2(m) + 2 : index
  %b = extent ilog2(N) + 2 : index
  %c = ge %a, %two : bool
  %d = ge %b, %two : bool
  print 0 \"{0} {1} {2}\" %c, %d, %b
}
";
    let printed = |instance: &Instance, m: usize| printed(instance, &[&[m], &[4]]);
    for (n, m, expected) in [(0, 0, [0, 0, 0]), (0, 1, [1, 0, 0]), (9, 0, [0, 1, 5]), (1, 8, [1, 1, 2])] {
        let instance = Instance::parse(source, &[("N", n)]).unwrap();
        let optimized = crate::passes::optimize(instance.clone());
        let expected = expected.map(Literal::Int);
        assert_eq!([printed(&instance, m), printed(&optimized, m)], [&expected, &expected], "{n} {m}");
    }
}

/// Fixed-point numbers that are squared again and again: a bound is twice as long each time, until it is none.
#[test]
fn what_is_squared_and_divided_often_has_no_bound() {
    let squares: String = (0..40)
        .map(|i| format!("  %s{i} = mul %x{i}, %x{i} : index\n  %x{} = div %s{i}, %c : index\n", i + 1))
        .collect();
    let source = format!(
        "kernel @k(%y: mut tensor<n x f32>) {{
  %v = partition %y [4] : mut partition<n x f32, [4]>
  %x0 = block_index %v : index
  %c = constant 32768 : index
{squares}  print 0 \"{{0}}\" %x40
}}
"
    );
    let kernel = VerifiedKernel::parse(&source).unwrap();
    let ranges = Ranges::of(&kernel);
    let is_quotient = |op: &OpId| kernel.op(*op).op == Op::Binary(BinaryOp::Div);
    let quotients: Vec<OpId> = kernel.walk().into_iter().filter(is_quotient).collect();
    let has_bound = |&op: &OpId| !ranges.get(kernel.op(op).results[0]).max.is_empty();
    assert_eq!([&quotients[1], &quotients[39]].map(has_bound), [true, false]);
}

/// A launch that reads outside, because what its index is computed of has wrapped, is refused.
#[test]
fn a_launch_checks_what_may_have_wrapped() {
    let source = "kernel @k(%x: tensor<m x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [4] : partition<m x f32, [4]>
  %vy = partition %y [4] : mut partition<n x f32, [4]>
  %i = block_index %vy : index
  %one = constant 1 : index
  %k = constant 4611686018427387904 : index
  %a = add %i, %one : index
  %b = mul %a, %k : index
  %q = div %b, %k : index
  %r = sub %q, %one : index
  %t = load %vx[%r] : tile<4 x f32>
  store_masked %vy, %t
}
";
    let instance = Instance::parse(source, &[]).unwrap();
    let abi = crate::abi::KernelAbi::of(&instance);
    assert!(abi.bind(&[&[16], &[16]]).is_err());
}

#[test]
fn ranges_are_printed_beside_definitions() {
    let body = "  %two = constant 2 : index
  %m = extent m : index
  %sum = add %i, %two : index
  %difference = sub %j, %two : index
  %scaled = mul %i, %two : index
  %half = div %scaled, %two : index
  %by_size = div %i, %m : index
  %odd = rem %count, %two : index
  %kept = rem %j, %two : index
  %by_zero = rem %i, %m : index
  %clamped = min %i, %m : index
  %raised = max %i, %two : index
  %wide = cast %i : i64
  %narrow = cast %i : i32
  %back = cast %wide : index
  %unknown = add %i, %count : index
  %end = extent ceil_div(n, 8) - 1 : index
  for %p = %two to %end {
    %before = sub %p, %two : index
    for %q = %p to %m {
      %product = mul %p, %q : index
    }
  }";
    insta::assert_snapshot!(print(&kernel(body)));
}
