//! Where launches are made in a program, and where their kernels stand: what an error of one says beside its reason.

use crate::error::{Error, Result};
use std::fmt;
use std::panic::Location;

/// Where a launch was made, and where its kernel is declared.
///
/// ```
/// # use tile_runtime::{Device, Error, Launch, Tensor, launch::KernelDef};
/// # static KERNEL: KernelDef = KernelDef::new(
/// #     "zero",
/// #     "kernel @zero(%y: mut tensor<n x f32>) {
/// #   %v = partition %y [4] : mut partition<n x f32, [4]>
/// #   %z = constant 0.0 : f32
/// #   %t = splat %z : tile<4 x f32>
/// #   store_masked %v, %t
/// # }",
/// #     &[],
/// # );
/// # let mut y = Tensor::<f32>::zeros(&Device::reference(), [4, 4]).unwrap();
/// let error = Launch::new(&KERNEL).tensor_mut("y", &mut y).launch().unwrap_err();
/// let Error::InLaunch { site, .. } = &error else { panic!("it is a launch's") };
/// assert_eq!(site.launch.file(), file!());
/// assert!(error.reason().to_string().starts_with("argument `y` has rank 2 (shape [4, 4]), but `zero` declares rank 1"));
/// assert!(error.to_string().ends_with(&site.to_string()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Site {
    /// The kernel's name.
    pub name: &'static str,
    /// The call that gave the launch its arguments.
    pub launch: &'static Location<'static>,
    /// The kernel's function.
    pub kernel: &'static Location<'static>,
}

impl Site {
    /// A launch's result; an error that doesn't say yet of which launch it is says so from here on.
    pub(crate) fn locate<R>(self, result: Result<R>) -> Result<R> {
        result.map_err(|reason| match reason {
            Error::InLaunch { .. } => reason,
            reason => Error::InLaunch { reason: Box::new(reason), site: self },
        })
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  --> {}, the launch", self.launch)?;
        write!(f, "  --> {}, kernel `{}`", self.kernel, self.name)
    }
}
