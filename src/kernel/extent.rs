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
    use std::panic::catch_unwind;

    #[test]
    fn results_fit_or_panic() {
        assert_eq!((add(3, 4), sub(4, 3), mul(3, 4)), (7, 1, 12));
        assert!(catch_unwind(|| add(usize::MAX, 1)).is_err());
        assert!(catch_unwind(|| sub(3, 5)).is_err());
        assert!(catch_unwind(|| mul(usize::MAX, 2)).is_err());
    }
}
