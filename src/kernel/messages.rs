//! [`tile_println!`](crate::tile_println) and [`tile_assert!`](crate::tile_assert) as Rust: they print, and they
//! panic.

use super::Tile;
use std::fmt;
use tile_ir::log::failure_text;
use tile_runtime::messages;

/// Prints a line from a kernel, on every device.
///
/// Arguments are scalars and tiles; the text is that of `println!`, with `{}`, `{name}`, `{0}`, and the formats
/// `{:?}`, `{:8}`, `{:.3}` and `{:+}`. A tile is written as NumPy does, with the format for each element. Lines
/// go to standard output, or where [`Launch::on_print`](crate::Launch::on_print) says. Compiled kernels write
/// values to a log of [`Launch::log_bytes`](crate::Launch::log_bytes) that is printed when the kernel has ended;
/// blocks that run at once print in any order.
///
/// ```
/// use tile::prelude::*;
///
/// #[tile_kernel]
/// fn rows<const B: usize>(x: &Tensor<f32, m, 4>, y: &mut Tensor<f32, m, 4>) {
///     let x = x.partition_view([B, 4]);
///     let mut y = y.partition_view_mut([B, 4]);
///     let [i, j] = y.index();
///     let t = x.load_masked([i, j]);
///     tile_println!("tile {i}: sums {:.1}", t.sum(1));
///     y.store_masked(t);
/// }
///
/// # fn main() -> tile::Result<()> {
/// let device = Device::reference();
/// let x = Tensor::from_slice(&device, &[1.0, 2.0, 3.0, 4.0], [1, 4])?;
/// let mut y = Tensor::zeros(&device, [1, 4])?;
/// let mut lines = Vec::new();
/// rows::<1>(&x, &mut y).on_print(|line| lines.push(line.to_owned())).launch()?;
/// assert_eq!(lines, ["tile 0: sums [[10.0]]"]);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! tile_println {
    ($($message:tt)*) => {
        $crate::kernel::print_line(::core::format_args!($($message)*))
    };
}

/// Checks a condition in a kernel, on every device: a `bool`, or a tile of `bool` that must hold everywhere.
///
/// A text and arguments as those of [`tile_println!`](crate::tile_println) may follow; without them the condition is
/// shown. The launch fails with [`Error::AssertionFailed`](crate::Error::AssertionFailed), which names the block,
/// the place and the first element that is false. On the reference device the block ends where the assertion is;
/// compiled kernels go on, and what they have written is unspecified.
///
/// ```
/// use tile::prelude::*;
///
/// #[tile_kernel]
/// fn root<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
///     let x = x.partition_view([B]);
///     let mut y = y.partition_view_mut([B]);
///     let t = x.load_masked(y.index());
///     tile_assert!(t >= 0.0, "no root of {t}");
///     y.store_masked(t.sqrt());
/// }
///
/// # fn main() -> tile::Result<()> {
/// let device = Device::reference();
/// let x = Tensor::from_slice(&device, &[4.0, -1.0], [2])?;
/// let mut y = Tensor::zeros(&device, [2])?;
/// let error = root::<2>(&x, &mut y).launch().unwrap_err();
/// assert!(error.reason().to_string().ends_with("no root of [ 4.0, -1.0] (false at element [1] of the condition)"), "{error}");
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! tile_assert {
    ($condition:expr $(,)?) => {
        $crate::kernel::assert_that(
            $condition,
            ::core::format_args!("{}", ::core::stringify!($condition)),
        )
    };
    ($condition:expr, $($message:tt)+) => {
        $crate::kernel::assert_that($condition, ::core::format_args!($($message)+))
    };
}

/// What [`tile_assert!`](crate::tile_assert) takes: a `bool` or a tile of `bool`.
#[diagnostic::on_unimplemented(
    message = "`tile_assert!` takes a bool or a tile of bool, not `{Self}`",
    label = "not a condition"
)]
pub trait Asserted {
    /// The shape, and the row-major position of the first element that is false.
    #[doc(hidden)]
    fn first_false(self) -> Option<(Vec<usize>, usize)>;
}

impl Asserted for bool {
    fn first_false(self) -> Option<(Vec<usize>, usize)> {
        if self { None } else { Some((Vec::new(), 0)) }
    }
}

impl<const R: usize> Asserted for Tile<bool, R> {
    fn first_false(self) -> Option<(Vec<usize>, usize)> {
        let position = self.to_vec().iter().position(|holds| !holds)?;
        Some((self.shape().to_vec(), position))
    }
}

/// What [`tile_println!`](crate::tile_println) calls.
#[doc(hidden)]
pub fn print_line(line: fmt::Arguments<'_>) {
    messages::print(line);
}

/// What [`tile_assert!`](crate::tile_assert) calls.
///
/// # Panics
/// If the condition doesn't hold everywhere.
#[doc(hidden)]
#[track_caller]
pub fn assert_that(condition: impl Asserted, message: fmt::Arguments<'_>) {
    if let Some((shape, position)) = condition.first_false() {
        messages::fail(failure_text(&message.to_string(), &shape, position));
    }
}
