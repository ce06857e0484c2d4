//! Arithmetic of extents on the reference device: where the result is no `usize` a block ends with an error, in every build
//! of a program. `#[tile_kernel]` puts these in place of Rust's operators, which look only where overflow checks are on.
//! They are `const`, because an extent may stand where rustc needs a constant.
//!
//! ```
//! use tile::kernel::extent;
//!
//! const WIDTH: usize = extent::mul(2, extent::sub(9, 1));
//! assert_eq!(extent::add(WIDTH, 1), 17);
//! ```

macro_rules! checked {
    ($($name:ident $checked:ident, $doc:literal, $message:literal;)*) => {
        $(
            #[doc = $doc]
            ///
            /// # Panics
            /// If the result is no `usize`.
            #[track_caller]
            pub const fn $name(left: usize, right: usize) -> usize {
                match left.$checked(right) {
                    Some(result) => result,
                    None => panic!($message),
                }
            }
        )*
    };
}

checked! {
    add checked_add, "`left + right`.", "attempt to add with overflow";
    sub checked_sub, "`left - right`.", "attempt to subtract with overflow";
    mul checked_mul, "`left * right`.", "attempt to multiply with overflow";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{UnwindSafe, catch_unwind};

    fn message(result: impl FnOnce() -> usize + UnwindSafe) -> &'static str {
        let panic = catch_unwind(result).expect_err("it overflows");
        panic.downcast_ref::<&str>().expect("the message is a literal")
    }

    #[test]
    fn results_fit_or_panic() {
        assert_eq!((add(3, 4), sub(4, 3), mul(3, 4)), (7, 1, 12));
        assert_eq!((add(usize::MAX, 0), sub(3, 3), mul(usize::MAX, 1)), (usize::MAX, 0, usize::MAX));
        assert_eq!(message(|| add(usize::MAX, 1)), "attempt to add with overflow");
        assert_eq!(message(|| sub(3, 5)), "attempt to subtract with overflow");
        assert_eq!(message(|| mul(usize::MAX, 2)), "attempt to multiply with overflow");
    }
}
