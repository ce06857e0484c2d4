//! The `.tir` text form: what snapshots hold and executables embed. `print(parse(print(k)))` is `print(k)` of every kernel that
//! somebody wrote; what schedules make of one, `mma_scaled` in it, is only printed.

mod lexer;
mod parse;
mod parse_conditions;
mod parse_ops;
mod parse_tensor_map;
mod parse_types;
mod parse_views;
mod print;

pub(crate) use lexer::is_word;
pub use parse::{ParseError, parse};
pub use parse_tensor_map::parse_tensor_map;
pub use print::{print, print_with_locations, print_with_notes};

use crate::kernel::Kernel;
use std::fmt;

/// A stable 64-bit hash (FNV-1a) of [`print()`]'s text: the identity of a kernel's meaning in caches and in
/// embedded code. It doesn't depend on source locations.
pub fn fingerprint(kernel: &Kernel) -> u64 {
    print(kernel)
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tile_test_edit::Edit;

    pub(crate) use crate::pages::EXAMPLE as MATMUL;

    const EVERYTHING: &str = "\
kernel @everything<T: float, B>(%x: tensor<2*B + n x T>, %flag: bool, %y: mut tensor<n x 8 x T>) where \"n % B == 0\": rem(n, B) eq 0, \"B <= 8\": B le 8 {
  %y_1 = partition %y [B, 8] : mut partition<n x 8 x T, [B, 8]>
  %i, %j = block_index %y_1 : index, index
  %0 = constant -0.0 : T
  %1 = load_masked %y_1 pad %0 : tile<B x 8 x T>
  %2 = iota 1 : tile<1 x 8 x i32>
  %3 = cast %2 : tile<1 x 8 x T>
  %u = mul_add %3, %3, %3 : tile<1 x 8 x T>
  %h = cast_with toward_zero %u : tile<1 x 8 x f16>
  %bits = bitcast %h : tile<1 x 8 x u16>
  %4 = broadcast %3 : tile<B x 8 x T>
  %5 = lt %1, %4 : tile<B x 8 x bool>
  %6 = select %5, %1, %4 : tile<B x 8 x T>
  %7 = reduce max %6 axis 1 : tile<B x 1 x T>
  %8 = reshape %7 : tile<1 x B x T>
  %9 = permute %8 [1, 0] : tile<B x 1 x T>
  %10 = exp %9 : tile<B x 1 x T>
  %11 = broadcast %10 : tile<B x 8 x T>
  %12 = constant true : bool
  %13 = and %flag, %12 : bool
  %out = if %13 : tile<B x 8 x T> {
    %14 = add %11, %6 : tile<B x 8 x T>
    yield %14
  } else {
    yield %11
  }
  if %13 {
    store_masked %y_1, %out
  }
  %15 = iota 0 : tile<B x 8 x u16>
  %16 = extract %15 [B - 1, 2] : tile<1 x 3 x u16>
  %17 = insert %15, %16 [0, 4] : tile<B x 8 x u16>
  %18 = cat %15, %17, %15 axis 0 : tile<3*B x 8 x u16>
  %19 = constant 7 : u16
  %20 = pad %16, %19 [0, B] [1, 0] : tile<2 x B + 3 x u16>
  %21 = flip %18 axis 1 : tile<3*B x 8 x u16>
  %22 = roll %17 axis 0 by -B + 1 : tile<B x 8 x u16>
  %23 = shift %22, %19 axis 1 by -2 : tile<B x 8 x u16>
  %24 = repeat %23 [2, B] : tile<2*B x 8*B x u16>
  %25 = gather %20, %16, %19 axis 0 : tile<1 x 3 x u16>
  %26 = scatter %15, %22, %23 axis 1 : tile<B x 8 x u16>
  %27 = scatter_add %26, %22, %23 axis 0 : tile<B x 8 x u16>
  %28 = extent floor_div(n + 1, 2)*rem(n, B) + ilog2(n + 1) + next_power_of_two(B) - 1 : index
  for %p = %i to %28 {
    store_masked %y_1, %11
  }
  %29 = iota 1 : tile<B x 8 x i32>
  %30 = constant 0 : i32
  %31, %32 = reduce_with %6, %29 from %0, %30 axis 1 with (%a, %at, %b, %bt) : tile<B x 1 x T>, tile<B x 1 x i32> {
    %33 = gt %b, %a : bool
    %34 = select %33, %b, %a : T
    %35 = select %33, %bt, %at : i32
    yield %34, %35
  }
  %36 = scan_with %6 from %0 axis 0 reverse exclusive with (%c, %d) : tile<B x 8 x T> {
    %37 = max %c, %d : T
    yield %37
  }
  %38 = scan sum %6 axis 1 exclusive : tile<B x 8 x T>
  %39, %40 = sort %38 axis 0 : tile<B x 8 x T>, tile<B x 8 x i32>
  %41, %42 = sort %38 axis 1 descending : tile<B x 3 x T>, tile<B x 3 x i32>
  %43 = histogram %42 : tile<B x i32>
  %44 = reduce maximum %6 axis 1 : tile<B x 1 x T>
  %w32 = reduce sum %10 axis 0 : tile<1 x 1 x T>
  %w33 = item %w32 : T
  %w34, %w35 = while %13 carry (%w36 = %w33, %w37 = %11) : T, tile<B x 8 x T> {
    %w38 = add %w36, %w36 : T
    %w39 = lt %w38, %w33 : bool
    yield %w39, %w38, %w37
  }
  while %flag {
    store_masked %y_1, %w35
    yield %12
  }
  print 0 \"only {{text}}, \\\"quoted\\\" \\\\ \\n\\t\\u{200b}é\"
  %top, %place = sort %38 axis 0 : tile<B x 8 x T>, tile<B x 8 x i32>
  print 3 \"{1:+8.3?} and {0} and {1:.2}\" %i, %out
  assert 1 \"never {0:8}\" %flag, %30
  assert 2 \"x < y\" %5
}
";

    pub(crate) const GRID: &str = "\
kernel @grid<B>(%x: tensor<m x f32>, %c: mut tensor<n x i64>) grid [ceil_div(m, B), 4] threads 64*B stages 3 occupancy 2 fast_accumulation if B > 2 {
  %0 = block_id axis 1 : index
  %1 = block_count axis 0 : index
  %2 = iota 0 : tile<4 x i32>
  %3 = iota 0 : tile<4 x i64>
  %4 = eq %3, %3 : tile<4 x bool>
  %5 = atomic add relaxed device %c[%2], %3 : tile<4 x i64>
  %6 = atomic compare_exchange acq_rel block %c[%2], %3, %5 mask %4 : tile<4 x i64>
  %7 = atomic load acquire system %c[%2] : tile<4 x i64>
  atomic store release device %c[%2], %6
}
";

    pub(crate) const TILES: &str = "\
kernel @tiles<G>(%y: mut tensor<m x n x f32>) {
  %v = partition %y [4, 4] : mut partition<m x n x f32, [4, 4]>
  %0 = constant 0 : i64
  %last = tiles %v grouped(2*G) carry (%count = %0) : i64 {
    %1 = constant 1 : i64
    %2 = add %count, %1 : i64
    %3 = cast %2 : f32
    %4 = splat %3 : tile<4 x 4 x f32>
    store_masked %v, %4
    yield %2
  }
  print 0 \"{0}\" %last
}
";

    pub(crate) const VIEWS: &str = "\
kernel @views<B>(%x: tensor<m x n x f32>, %b: tensor<1 x n x f32>, %y: mut tensor<n x m x f32>) {
  %yt = view %y permute [1, 0] : mut tensor<m x n x f32, strided [1, m]>
  %w = partition %yt [B, 8] : mut partition<m x n x f32, strided [1, m], [B, 8]>
  %i, %j = block_index %w : index, index
  %0 = view %x flip [0, 1] : tensor<m x n x f32, strided [-n, -1] offset m*n - 1>
  %1 = view %0 pad [(1, 2), (0, 0)] : tensor<m + 3 x n x f32, strided [-n, -1] offset m*n + n - 1 within [[(1, m + 1)], []]>
  %2 = view %1 shrink [(0, m), (2, n)] : tensor<m x n - 2 x f32, strided [-n, -1] offset m*n + n - 3 within [[(1, m + 1)], []]>
  %3 = view %2 shift 1 by -1 : tensor<m x n - 2 x f32, strided [-n, -1] offset m*n + n - 4 within [[(1, m + 1)], [(-1, n - 3)]]>
  %4 = view %3 step 1 by 2 : tensor<m x ceil_div(n - 2, 2) x f32, strided [-n, -2] offset m*n + n - 4 within [[(1, m + 1)], [(0, ceil_div(n - 3, 2))]]>
  %5 = partition %4 [B, 8] step [1, 4] bulk_copy true : partition<m x ceil_div(n - 2, 2) x f32, strided [-n, -2] offset m*n + n - 4 within [[(1, m + 1)], [(0, ceil_div(n - 3, 2))]], [B, 8] step [1, 4]>
  %6 = view %x unflatten 1 [floor_div(n, 4), 4] : tensor<m x floor_div(n, 4) x 4 x f32, strided [n, 4, 1]>
  %7 = view %6 flatten 1 to 2 : tensor<m x 4*floor_div(n, 4) x f32, strided [n, 1]>
  %8 = view %7 unfold 0 size 3 step 2 : tensor<floor_div(m - 3, 2) + 1 x 4*floor_div(n, 4) x 3 x f32, strided [2*n, 1, n]>
  %9 = view %8 select 2 at %i : tensor<floor_div(m - 3, 2) + 1 x 4*floor_div(n, 4) x f32, strided [2*n, 1]>
  %10 = view %x unsqueeze 1 : tensor<m x 1 x n x f32>
  %11 = view %10 squeeze 1 : tensor<m x n x f32>
  %12 = view %b expand [m, n] : tensor<m x n x f32, strided [0, 1]>
  %13 = partition %12 [B, 8] latency B + 1 bulk_copy false : partition<m x n x f32, strided [0, 1], [B, 8]>
  %14 = load %13[%i, %j] : tile<B x 8 x f32>
  %15 = load_unchecked %13[%j, %i] : tile<B x 8 x f32>
  %16 = constant 0.0 : f32
  %17 = iota 0 : tile<B x 8 x i32>
  %18 = gather_load %9[%17, %17] pad %16 : tile<B x 8 x f32>
  %19 = load_masked %5[%i, %j] pad %16 : tile<B x 8 x f32>
  %20 = load %w : tile<B x 8 x f32>
  %21 = view %x require [window 0 (3, m + 2), elements 1 (n, 4*floor_div(n, 4)), step 1 (1, B)] : tensor<m x n x f32>
  prefetch %13[%j, %i]
  prefetch %w
  store %w, %18
}
";

    #[test]
    fn views_keep_their_layouts() {
        let kernel = crate::verify(parse(VIEWS).unwrap()).unwrap_or_else(|errors| panic!("{errors:?}"));
        assert_eq!(print(&kernel), VIEWS);
    }

    #[test]
    fn round_trips_exactly() {
        for text in [MATMUL, EVERYTHING, VIEWS, GRID, TILES] {
            let kernel = parse(text).unwrap();
            assert_eq!(print(&kernel), text);
            let located = print_with_locations(&kernel);
            assert_eq!(print_with_locations(&parse(&located).unwrap()), located);
            assert_eq!(fingerprint(&kernel), fingerprint(&parse(&located).unwrap()));
        }
    }

    /// Arithmetic on extents saturates at numbers that the text has.
    #[test]
    fn extents_at_the_ends_of_64_bits_read_back() {
        let greatest = i64::MAX;
        for extent in [
            format!("-{greatest} - 5"),
            format!("{greatest} + 5"),
            format!("-{greatest}*{greatest}*n"),
            format!("n - {greatest}*n - {greatest}*n"),
        ] {
            let text = format!("kernel @k(%x: tensor<n x f32>) {{\n  %e = extent {extent} : index\n}}\n");
            let printed = print(&parse(&text).unwrap());
            assert_eq!(print(&parse(&printed).unwrap()), printed, "{extent}");
        }
    }

    /// The deepest and the longest that a kernel may have: each of the least length for its depth.
    #[test]
    fn extents_of_every_shape_read_back() {
        let (n, two) = (crate::Dim::size("n"), crate::Dim::from(2));
        let one = crate::Dim::from(1);
        let steps: [&dyn Fn(&crate::Dim) -> crate::Dim; 7] = [
            &|dim| dim.ilog2(),
            &|dim| two.rem(dim),
            &|dim| dim.floor_div(&n),
            &|dim| (dim.clone() + one.clone()).ceil_div(&two),
            &|dim| dim.clone() * n.clone(),
            &|dim| dim.clone() * n.clone() + one.clone(),
            &|dim| dim.clone() - dim.floor_div(&two),
        ];
        for (which, step) in steps.into_iter().enumerate() {
            let all = std::iter::successors(Some(n.clone()), |dim| Some(step(dim)));
            let longest = all.take_while(crate::Dim::is_readable).last().unwrap();
            let text = format!(
                "kernel @k(%x: tensor<n x f32>) where \"\": {longest} ge 0 {{\n  %e = extent {longest} : index\n}}\n"
            );
            assert_eq!(print(&parse(&text).unwrap_or_else(|error| panic!("{which}: {error}"))), text);
            let longer =
                format!("kernel @k(%x: tensor<n x f32>) {{\n  %e = extent {} : index\n}}\n", step(&longest));
            let error = parse(&longer).unwrap_err().to_string();
            assert!(error.ends_with(": an extent has more than 256 terms and factors"), "{error}");
        }
    }

    /// A quotient by 1 is its dividend, and a product of sums is a sum of all products.
    #[test]
    fn products_of_sums_are_refused_where_they_get_long() {
        let factors: Vec<String> = (0..40).map(|i| format!("floor_div(a{i} + b{i}, 1)")).collect();
        let text = format!("kernel @k() {{\n  %e = extent\n {} : index\n}}", factors.join("\n * "));
        assert_eq!(
            parse(&text).unwrap_err().to_string(),
            "8:2: an extent has more than 256 terms and factors"
        );
    }

    /// A middle dot, the virama of Devanagari, a tone mark of Thai: Rust's identifiers have them, and they are no letters.
    #[test]
    fn names_of_all_scripts_read_back() {
        for name in ["größe", "col·lapse", "क्षेत्र", "ที่", "x\u{200d}y"] {
            let text = format!(
                "\
kernel @{name}<{name}_B>(%{name}: f32, %{name}_y: mut tensor<{name}_n x f32>) {{
  %v = partition %{name}_y [{name}_B] : mut partition<{name}_n x f32, [{name}_B]>
  %{name}_1 = splat %{name} : tile<{name}_B x f32>
  store_masked %v, %{name}_1
}}
"
            );
            let kernel = parse(&text).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
            assert_eq!(print(&kernel), text);
        }
    }

    #[test]
    fn locations_survive() {
        let text = MATMUL
            .replacen("kernel", "file \"src/a b.rs\"\nkernel", 1)
            .edit("%acc_1 : tile<BM x BN x f32>\n", "%acc_1 : tile<BM x BN x f32> @7:9\n");
        let kernel = parse(&text).unwrap();
        assert_eq!(kernel.file, "src/a b.rs");
        assert!(kernel.walk().iter().any(|&op| kernel.op(op).loc == crate::Loc::new(7, 9)));
        assert_eq!(print_with_locations(&kernel), text);
    }

    #[test]
    fn mistakes_are_located_and_explained() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(message("kernel matmul"), "1:8: expected `@`, found `matmul`");
        assert_eq!(message("kernel @k() {\n  %0 = frobnicate %1 : f32\n}"), "2:8: `frobnicate` is not an op");
        assert_eq!(message("kernel @k() {\n  %0 = neg %1 : f32\n}"), "2:12: `%1` is not defined");
        assert_eq!(
            message("kernel @k(%y: f32) {\n  tiles %y spiral {\n  }\n}"),
            "2:12: `spiral` is not an order of tiles"
        );
        assert_eq!(message("kernel @k() {"), "1:14: expected an op or `}`, found the end of the text");
        // Where the name stands that there is already, and the op with other results.
        let [twice, of] = ["`%a` is defined twice", "kernel @k(%a: i32, %b: i32) {\n"];
        assert_eq!(
            message(&format!("{of}  %c, %a = block_index %b\n   : i32, i32\n}}")),
            format!("2:7: {twice}")
        );
        assert_eq!(
            message(&format!("{of}  for %a = %b to %b carry (%c = %b) : i32 {{\n  }}\n}}")),
            "2:3: 0 results are named, but 1 types given"
        );
        assert_eq!(
            message(&format!("{of}  %c = for %i = %b to %b carry (%a = %b) : i32 {{\n  }}\n}}")),
            format!("2:33: {twice}")
        );
        assert_eq!(
            message(&format!("{of}  %c = for %a = %b to %b {{\n  }}\n}}")).split(':').next(),
            Some("2")
        );
        assert_eq!(message("kernel @k() where"), "1:18: expected a condition in quotes");
        assert_eq!(message("file"), "1:5: expected a quoted file name");
    }

    proptest::proptest! {
        #[test]
        fn mutilated_text_never_panics(
            which in 0..3usize, cut in 0..usize::MAX, len in 0..40usize, with in "[ -~\\n]{0,6}",
        ) {
            let mut text = [VIEWS, EVERYTHING, TILES][which].as_bytes().to_vec();
            let cut = cut % text.len();
            let end = (cut + len).min(text.len());
            text.splice(cut..end, with.bytes());
            if let Ok(kernel) = parse(&String::from_utf8_lossy(&text)) {
                let printed = print(&kernel);
                proptest::prop_assert_eq!(print(&parse(&printed).unwrap()), printed);
            }
        }
    }
}
