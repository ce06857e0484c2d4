//! What a row measures: a problem with its sizes.

use crate::tensors::{AnyTensor, Role, Spec};
use std::error::Error;
use tile::{Launch, Stream};

/// What a fallible step of the benchmark gives.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Something that is computed of tensors, by one launch or a few.
pub trait Problem: Sync {
    /// The tensors, in the order in which the other functions take them; the output is the last one.
    fn tensors(&self) -> Vec<Spec>;

    /// Enqueues the launches on a stream, or on the device's own.
    ///
    /// # Errors
    /// Where the tensors aren't those of [`Problem::tensors`], and as [`Launch::launch`].
    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()>;

    /// The output for inputs with these numbers, by plain loops.
    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64>;

    /// Floating-point operations, where these rather than bytes are what takes the time.
    fn operations(&self) -> Option<f64> {
        None
    }

    /// Bytes that must be read and written.
    fn bytes(&self) -> f64 {
        let moved = |spec: &Spec| spec.role != Role::Scratch;
        self.tensors().iter().filter(|spec| moved(spec)).map(|spec| spec.bytes() as f64).sum()
    }
}

/// Launches a kernel on a stream, or on its device's own.
pub(crate) fn launch_on(stream: Option<&Stream>, launch: Launch<'_>) -> Result<()> {
    match stream {
        Some(stream) => launch.on(stream)?.detach(),
        None => launch.launch()?,
    }
    Ok(())
}

/// What is said of tensors that aren't those of a problem.
pub(crate) fn misfit() -> Box<dyn Error + Send + Sync> {
    "these aren't the tensors of the problem".into()
}
