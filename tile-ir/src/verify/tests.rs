//! Each invariant, broken, and what is said of it.

use super::*;
use crate::kernel::OpData;
use crate::text::parse;

/// A kernel around the given lines, with a view `%v` of the output and a tile `%t`.
fn errors(lines: &str) -> Vec<String> {
    let text = format!(
        "kernel @k<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{\n%v = partition %y [B] : mut \
         partition<n x f32, [B]>\n%0 = constant 0.0 : f32\n%t = splat %0 : tile<B x f32>\n{lines}\n}}"
    );
    let kernel = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(kernel).err().unwrap_or_default().into_iter().map(|error| error.message).collect()
}

#[test]
fn a_good_kernel_passes() {
    assert_eq!(errors("store_masked %v, %t"), Vec::<String>::new());
}

#[test]
fn every_invariant_has_its_message() {
    let cases = [
        ("%a = add %t, %0 : tile<B x f32>", "`+` mixes tile<B x f32> and f32"),
        ("%a = neg %t : tile<B x f16>", "`neg` gives (tile<B x f32>), not (tile<B x f16>)"),
        ("%a = not %t : tile<B x f32>", "`!` needs an integer or bool, not f32"),
        (
            "%a = splat %0 : tile<n x f32>",
            "the extent `n` of a tile made by `splat` is known only at run time",
        ),
        ("%a = splat %0 : tile<0 x f32>", "the tile extent `0` is not positive"),
        (
            "%a = splat %0 : tile<floor_div(8, 0) x f32>",
            "a tile extent has no value: `floor_div(8, 0)` divides by 0, which isn't positive",
        ),
        (
            "%a = roll %t axis 0 by rem(3, 0) : tile<B x f32>",
            "a position in a tile has no value: `rem(3, 0)` divides by 0, which isn't positive",
        ),
        (
            "tiles %v grouped(ceil_div(8, -1)) {\n}",
            "the height of a group has no value: `ceil_div(8, -1)` divides by -1, which isn't positive",
        ),
        ("%a = cast %t : tile<B x index>", "a tile can't hold `usize`"),
        ("%a = cast %t : tile<B x u64>\n%b = bitcast %a : tile<B x index>", "a tile can't hold `usize`"),
        ("%a = cast_with up %t : tile<B x index>", "a tile can't hold `usize`"),
        (
            "%a = splat %0 : tile<8192 x 8192 x f32>",
            "tile<8192 x 8192 x f32> has more than 16777216 elements",
        ),
        ("%a = broadcast %t : tile<4 x f32>", "shape [B] can't be broadcast to [4]"),
        (
            "%a = reshape %t : tile<B x 2 x f32>",
            "[B] has B elements and can't be reshaped to [B, 2], which has 2*B",
        ),
        ("%a = permute %t [1] : tile<B x f32>", "[1] is not a permutation of the axes of [B]"),
        ("%a = reduce sum %t axis 1 : tile<1 x f32>", "axis 1 of `sum` is out of range: the tile has rank 1"),
        ("%a = mma %t, %t, %t : tile<B x f32>", "`mma` needs tiles of rank 2 or more, not [B]"),
        (
            "%w = partition %x [B, B] : partition<n x f32, [B, B]>",
            "tile [B, B] has rank 2, but the tensor [n] has rank 1",
        ),
        (
            "%w = partition %y [B] : mut partition<n x f32, [B]>",
            "`y` has two mutable partition views; a block owns one tile of it",
        ),
        ("%a = extent q : index", "nothing binds the run-time size `q`"),
        ("%a = constant 300 : u8", "300 doesn't fit u8"),
        ("if %0 {\n}", "the condition of `if` is f32, not a bool"),
        ("for %p = %0 to %0 {\n}", "a loop bound is `usize`, not f32"),
        ("yield %t", "`yield` may only end a region"),
        ("while %0 {\nyield %0\n}", "the condition of `while` is f32, not a bool"),
        (
            "%c = constant true : bool\n%a = while %c carry (%s = %t) : tile<B x f32> {\nyield %t\n}",
            "a region of `while` yields (tile<B x f32>), but it must yield (bool, tile<B x f32>)",
        ),
        (
            "%c = constant true : bool\nwhile %c {\n}",
            "a region of `while` yields (), but it must yield (bool)",
        ),
        (
            "%p = splat %0 : tile<1 x 3 x f32>\n%a = item %p : f32",
            "`item` needs a tile of one element, not of shape [1, 3]",
        ),
        ("%a = item %0 : f32", "`item` needs a tile, not f32"),
        (
            "%e = extent n : index\n%a = for %p = %e to %e carry (%s = %t) : tile<B x f32> {\nyield %0\n}",
            "a region of `for` yields (f32), but its results are (tile<B x f32>)",
        ),
        (
            "%e = extent n : index\nfor %p = %e to %e {\n%w = partition %x [B] : partition<n x f32, [B]>\n}",
            "a partition view is made at the top level of a kernel, not in a loop or branch",
        ),
        (
            "%a = reduce_with %t from %0 axis 0 with (%p, %q) : tile<1 x f32> {\nyield %t\n}",
            "a region of `reduce_with` yields (tile<B x f32>), but it must yield (f32)",
        ),
        (
            "%a = reduce_with %t from %0 axis 0 with (%p, %q) : tile<1 x f32> {\n\
             %u = neg %t : tile<B x f32>\nyield %p\n}",
            "a region of `reduce_with` computes with scalars, not with tile<B x f32>",
        ),
        (
            "%a = scan_with %t from %0 axis 0 with (%p, %q) : tile<B x f32> {\nstore_masked %v, %t\nyield %p\n}",
            "`store_masked` stands in a region of `scan_with`, which has leaf ops only",
        ),
        (
            "%e = extent n : index\n%a = scan_with %t from %e axis 0 with (%p, %q) : tile<B x f32> {\nyield %p\n}",
            "`scan` of a tile of f32 starts from index",
        ),
        (
            "%a, %b = reduce_with %t, %0 from %0, %0 axis 0 with (%p, %q, %r, %s) : tile<1 x f32>, tile<1 x f32> {\n\
             yield %p, %q\n}",
            "`reduce` needs a tile, not f32",
        ),
        ("%a = scan any %t axis 0 : tile<B x f32>", "`any` has no scan"),
        (
            "%a = scan sum %t axis 1 : tile<B x f32>",
            "axis 1 of `cumsum` is out of range: the tile has rank 1",
        ),
        ("%a = histogram %t : tile<4 x i32>", "`histogram` needs an integer, not f32"),
        (
            "%c = splat %0 : tile<4 x f32>\n%a, %b = sort %c axis 0 : tile<5 x f32>, tile<5 x i32>",
            "the first 5 elements are taken along axis 0 of [4], which has 4",
        ),
        ("store_masked %v, %0", "`store_masked` needs a tile, not f32"),
        ("%h = cast %t : tile<B x f16>\nstore_masked %v, %h", "a tile of f16 is stored to a view of f32"),
    ];
    for (lines, expected) in cases {
        let found = errors(lines);
        assert_eq!(found.first().map(String::as_str), Some(expected), "{lines}: {found:?}");
    }
}

/// What the verifier accepts reads back, however deep its branches stand in each other.
#[test]
fn regions_nest_as_deeply_as_text_is_read() {
    let nested = |count: usize| {
        let source = format!(
            "kernel @k(%c: bool, %y: mut tensor<n x f32>) {{
  %v = partition %y [4] : mut partition<n x f32, [4]>\n{}print 0 \"deep\"\n{}}}\n",
            "if %c {\n".repeat(count),
            "}\n".repeat(count)
        );
        parse(&source)
    };
    let mut deepest = nested(MAX_NESTING - 1).unwrap();
    assert!(verify(deepest.clone()).is_ok());
    assert_eq!(
        nested(MAX_NESTING).unwrap_err().message,
        format!("regions nest more than {MAX_NESTING} levels deep")
    );
    // One more, which no text has.
    let innermost = *deepest.walk().iter().rfind(|&&op| deepest.op(op).op == Op::If).unwrap();
    let mut branch = deepest.op(innermost).clone();
    let regions = [(); 2].map(|()| {
        let end = OpData {
            op: Op::Yield,
            operands: Vec::new(),
            results: Vec::new(),
            regions: Vec::new(),
            ..branch.clone()
        };
        let (region, end) = (deepest.new_region(), deepest.new_op(end));
        deepest.region_mut(region).ops.push(end);
        region
    });
    let around = std::mem::replace(&mut branch.regions, regions.to_vec())[0];
    let branch = deepest.new_op(branch);
    deepest.region_mut(around).ops.insert(0, branch);
    let errors = verify(deepest).unwrap_err();
    assert_eq!(errors[0].message, "loops and branches stand in each other, more than 63 of them");
}

/// What the verifier accepts reads back: of extents, too.
#[test]
fn extents_are_as_long_as_text_is_read() {
    let (n, k) = (crate::Dim::size("n"), crate::Dim::from(3));
    let mut kernel = parse(
        "kernel @k(%y: mut tensor<n x f32>) {\n  %v = partition %y [4] : mut partition<n x f32, [4]>\n}",
    )
    .unwrap();
    let longest = (0..63).fold(n, |dim, _| dim.floor_div(&k) + k.clone());
    assert!(longest.is_readable());
    let with = |kernel: &mut crate::Kernel, dim: &crate::Dim| {
        crate::Builder::new(kernel).extent(dim.clone());
        verify(kernel.clone())
            .err()
            .unwrap_or_default()
            .into_iter()
            .map(|error| error.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(with(&mut kernel, &longest), Vec::<String>::new());
    let longer = longest.floor_div(&k);
    assert_eq!(with(&mut kernel, &longer), ["an extent has more than 256 terms and factors"]);
}

#[test]
fn tensors_hold_what_tiles_do() {
    let source = "kernel @k(%x: tensor<n x index>, %y: mut tensor<n x f32>) {
  %v = partition %y [4] : mut partition<n x f32, [4]>
}
";
    let errors = verify(parse(source).unwrap()).unwrap_err();
    assert_eq!(errors[0].message, "a tensor can't hold `usize`");
}

#[test]
fn a_kernel_needs_an_output() {
    let errors = verify(parse("kernel @k(%x: tensor<n x f32>) {\n}").unwrap()).unwrap_err();
    assert_eq!(errors[0].message, "kernel `k` has no output");
}

/// What is wrong with a kernel is said, and doesn't end the check of what follows.
#[test]
fn ops_behind_what_is_refused_are_checked() {
    let refused = |argument: &str, lines: &str| {
        let text = format!(
            "kernel @k({argument}, %y: mut tensor<n x f32>) {{\n%0 = constant 0.0 : f32\n{lines}\n}}"
        );
        let errors = verify(parse(&text).unwrap()).unwrap_err();
        errors.into_iter().map(|error| error.message).collect::<Vec<_>>()
    };
    assert_eq!(
        refused("%x: f32", "partition %y [4]\n%i = block_id axis 0 : index"),
        ["`partition` gives (mut partition<n x f32, [4]>), not ()"]
    );
    let output = "%v = partition %y [4] : mut partition<n x f32, [4]>";
    assert_eq!(
        refused("%x: tensor<f32>", &format!("{output}\n%t = gather_load %x[] pad %0 : tile<4 x f32>")),
        ["a tensor argument has rank 0", "`gather` needs a tensor that has an axis"]
    );
    assert_eq!(
        refused(
            "%c: mut tensor<i32>",
            &format!("{output}\n%r = atomic load relaxed device %c[] : tile<4 x i32>")
        ),
        ["a tensor argument has rank 0", "`load` needs a tensor that has an axis"]
    );
}

#[test]
fn tiles_of_outputs_lie_along_as_many_axes() {
    let source = "kernel @k(%y: mut tensor<m x n x f32>, %z: mut tensor<m x f32>) {
  %v = partition %y [4, 8] spanning [1] : mut partition<m x n x f32, [4, 8] spanning [1]>
  %w = partition %z [4] : mut partition<m x f32, [4]>
}
";
    let errors = verify(parse(source).unwrap()).unwrap_err();
    assert_eq!(
        errors[0].message,
        "the tiles of all outputs are one grid, but those of `y` lie along 2 axes and those of `z` along 1 axis"
    );
    let help = errors[0].help.as_deref().unwrap();
    assert_eq!(
        help,
        "give `z` an axis of extent 1, and its tiles too: `z.unsqueeze(1).partition_view_mut([…])`; the grids are one where \
         blocks of the other have all tiles along that axis: `.spanning([1])`"
    );
}

#[test]
fn values_of_an_inner_region_stay_inside() {
    let found = errors(
        "%e = extent n : index\nfor %p = %e to %e {\n%u = neg %t : tile<B x f32>\n}\nstore_masked %v, %u",
    );
    assert_eq!(found, ["`u` is used by `store_masked` before it is defined"]);
}

/// An argument lies as a launch can bind it, by sizes of its own.
#[test]
fn arguments_have_the_layouts_that_launches_bind() {
    let refused = |x: &str| {
        let text = format!(
            "kernel @k(%x: {x}, %y: mut tensor<m x n x f32>) {{\n%v = partition %y [4, 4] : mut partition<m x n x f32, [4, 4]>\n}}"
        );
        let errors = verify(parse(&text).unwrap()).err().unwrap_or_default();
        errors.into_iter().map(|error| error.message).collect::<Vec<_>>()
    };
    let message = "a tensor argument is dense, or has strides of 0, 1 and run-time sizes of its own; written it has none of 0";
    for good in ["[x.stride_0, 1]", "[1, x.stride_1] offset x.offset", "[0, 1]", "[n, 1] offset x.offset"] {
        assert!(refused(&format!("tensor<m x n x f32, strided {good}>")).is_empty(), "{good}");
    }
    for bad in ["[4, 1]", "[y.stride_0, 1]", "[x.stride_1, 1]", "[n, 1] offset 3", "[-x.stride_0, 1]"] {
        let all = refused(&format!("tensor<m x n x f32, strided {bad}>"));
        assert_eq!(all.first().map(String::as_str), Some(message), "{bad}");
    }
    assert_eq!(refused("tensor<m x n x f32, strided [x.stride_0, 1] within [[(0, 2)], []]>")[0], message);
    assert_eq!(refused("mut tensor<m x n x f32, strided [0, 1]>")[0], message);
}
