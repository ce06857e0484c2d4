//! The `.tir` text form: what snapshots hold and executables embed. `print(parse(print(k)))` is `print(k)`.

mod lexer;
mod parse;
mod parse_ops;
mod parse_types;
mod print;

pub use parse::{ParseError, parse};
pub use print::{print, print_with_locations};

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
mod tests {
    use super::*;

    const MATMUL: &str = "\
kernel @matmul<BM, BN, BK>(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) {
  %a_1 = partition %a [BM, BK] : partition<m x k x bf16, [BM, BK]>
  %b_1 = partition %b [BK, BN] : partition<k x n x bf16, [BK, BN]>
  %c_1 = partition %c [BM, BN] : mut partition<m x n x f32, [BM, BN]>
  %i, %j = block_index %c_1 : index, index
  %0 = constant 0.0 : f32
  %acc = splat %0 : tile<BM x BN x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %acc_2 = for %p = %1 to %2 carry (%acc_1 = %acc) : tile<BM x BN x f32> {
    %3 = constant 0.0 : bf16
    %4 = load_masked %a_1[%i, %p] pad %3 : tile<BM x BK x bf16>
    %5 = constant 0.0 : bf16
    %6 = load_masked %b_1[%p, %j] pad %5 : tile<BK x BN x bf16>
    %7 = mma %4, %6, %acc_1 : tile<BM x BN x f32>
    yield %7
  }
  store_masked %c_1, %acc_2
}
";

    const EVERYTHING: &str = "\
kernel @everything<T: float, B>(%x: tensor<2*B + n x T>, %flag: bool, %y: mut tensor<n x 8 x T>) where \"n % B == 0\": rem(n, B) eq 0, \"B <= 8\": B le 8 {
  %y_1 = partition %y [B, 8] : mut partition<n x 8 x T, [B, 8]>
  %i, %j = block_index %y_1 : index, index
  %0 = constant -0.0 : T
  %1 = load_masked %y_1 pad %0 : tile<B x 8 x T>
  %2 = iota 1 : tile<1 x 8 x i32>
  %3 = cast %2 : tile<1 x 8 x T>
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
  %15 = extent floor_div(n + 1, 2)*rem(n, B) - 1 : index
  for %p = %i to %15 {
    store_masked %y_1, %11
  }
  %16 = reduce sum %10 axis 0 : tile<1 x 1 x T>
  %17 = item %16 : T
  %18, %19 = while %13 carry (%20 = %17, %21 = %11) : T, tile<B x 8 x T> {
    %22 = add %20, %20 : T
    %23 = lt %22, %17 : bool
    yield %23, %22, %21
  }
  while %flag {
    store_masked %y_1, %19
    yield %12
  }
}
";

    #[test]
    fn round_trips_exactly() {
        for text in [MATMUL, EVERYTHING] {
            let kernel = parse(text).unwrap();
            assert_eq!(print(&kernel), text);
            let located = print_with_locations(&kernel);
            assert_eq!(print_with_locations(&parse(&located).unwrap()), located);
            assert_eq!(fingerprint(&kernel), fingerprint(&parse(&located).unwrap()));
        }
    }

    #[test]
    fn locations_survive() {
        let text = MATMUL
            .replacen("kernel", "file \"src/a b.rs\"\nkernel", 1)
            .replace("%acc_1 : tile<BM x BN x f32>\n", "%acc_1 : tile<BM x BN x f32> @7:9\n");
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
        assert_eq!(message("kernel @k() {"), "1:14: expected an op or `}`, found the end of the text");
    }

    proptest::proptest! {
        #[test]
        fn mutilated_text_never_panics(cut in 0..EVERYTHING.len(), len in 0..40usize, with in "[ -~\\n]{0,6}") {
            let mut text = EVERYTHING.as_bytes().to_vec();
            let end = (cut + len).min(text.len());
            text.splice(cut..end, with.bytes());
            if let Ok(kernel) = parse(&String::from_utf8_lossy(&text)) {
                let printed = print(&kernel);
                proptest::prop_assert_eq!(print(&parse(&printed).unwrap()), printed);
            }
        }
    }
}
