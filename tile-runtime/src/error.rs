//! Everything that can go wrong between a kernel's call and its results.

use crate::launch::Site;
use tile_ir::abi::BindError;
use tile_ir::tensor_map::MapError;

/// What a fallible call of the runtime gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a device, a tensor or a launch isn't to be had, and what to do about it.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A launch that failed, and [where it was made](crate::launch::Site).
    #[error("{reason}\n{site}")]
    InLaunch {
        /// Why it failed: one of the other errors.
        reason: Box<Error>,
        /// The launch and its kernel in the program.
        site: Site,
    },
    /// A number of elements that doesn't fill a shape.
    #[error("{given} elements were given for shape {shape:?}, which holds {expected}")]
    ElementCount {
        /// The shape.
        shape: Vec<usize>,
        /// How many elements it holds.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// A shape with more elements than memory has addresses.
    #[error("a tensor of shape {shape:?} is larger than the address space")]
    TooLarge {
        /// The shape.
        shape: Vec<usize>,
    },
    /// A movement operation that isn't possible without copying, or not at all.
    #[error(transparent)]
    Layout(#[from] tile_layout::LayoutError),
    /// A view for writing that would have an element more than once.
    #[error(
        "elements of {view} share memory, or have none; only what has each element once can be written: make a tensor of \
         its own with `to_dense`"
    )]
    SharedElements {
        /// Where the elements would lie.
        view: String,
    },
    /// A tensor that isn't a slice of the host's memory.
    #[error("the tensor is no slice: {problem}; `to_vec` copies its elements")]
    Slice {
        /// Why.
        problem: String,
    },
    /// A copy between tensors of different shapes.
    #[error("a tensor of shape {target_shape:?} can't take the elements of one of shape {source_shape:?}")]
    ShapeMismatch {
        /// The shape of what is read.
        source_shape: Vec<usize>,
        /// The shape of what is written.
        target_shape: Vec<usize>,
    },
    /// A sequence that isn't one.
    #[error("a sequence {sequence}: {problem}")]
    Sequence {
        /// What was asked for.
        sequence: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file of tensors that can't be read or written.
    #[error("`{path}`: {problem}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
        /// The kind of the system's error, where it is one: `NotFound`, `PermissionDenied`, …
        kind: Option<std::io::ErrorKind>,
    },
    /// A tensor of another library that can't be taken, or one of ours that can't be handed over.
    #[error("the DLPack tensor can't be exchanged: {problem}")]
    Dlpack {
        /// What is wrong.
        problem: String,
    },
    /// No memory for a tensor or for scratch space.
    #[error("{device} has no {bytes} bytes of memory left{}", limited(*limit))]
    OutOfMemory {
        /// The device.
        device: String,
        /// What was asked for.
        bytes: usize,
        /// The [limit](crate::MemoryLimits) that it would exceed; `None` where there is no more memory.
        limit: Option<u64>,
    },
    /// Memory of another library that a tensor can't lie in.
    #[error("a tensor can't lie at address {address:#x} on {device}: {problem}")]
    Address {
        /// The device.
        device: String,
        /// The address.
        address: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A device that isn't there.
    #[error("device `{device}` isn't available: {reason}")]
    NoDevice {
        /// The device's name.
        device: String,
        /// Why, and what to do.
        reason: String,
    },
    /// What no device of this kind does.
    #[error("{action} isn't possible on {device}: {reason}")]
    Unsupported {
        /// The device.
        device: String,
        /// What was asked for.
        action: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A tensor that lies otherwise than kernels take it.
    #[error("`{argument}` of kernel `{kernel}` {problem}; pass a copy, which `.to_dense()` makes")]
    Place {
        /// The kernel.
        kernel: String,
        /// The tensor argument.
        argument: String,
        /// How it lies.
        problem: &'static str,
    },
    /// A tensor that lies otherwise than embedded code takes it, in a program without a compiler.
    #[error(
        "`{argument}` of kernel `{kernel}` {problem}, and embedded code is for dense tensors alone; pass a copy, which \
         `.to_dense()` makes, or enable the feature `jit` of `tile`, which compiles the kernel for it"
    )]
    EmbeddedPlace {
        /// The kernel.
        kernel: String,
        /// The tensor argument.
        argument: String,
        /// How it lies.
        problem: &'static str,
    },
    /// An output that shares memory with another argument.
    #[error(
        "`{written}` of kernel `{kernel}` is written and shares memory with `{other}`; pass a copy of one, which \
         `.to_dense()` makes"
    )]
    Overlap {
        /// The kernel.
        kernel: String,
        /// What it writes.
        written: String,
        /// The other argument.
        other: String,
    },
    /// Arguments of one launch on several devices.
    #[error(
        "the arguments of `{kernel}` are on different devices: `{first_argument}` on {first}, `{second_argument}` on \
         {second}; move one with `Tensor::copy_to`"
    )]
    DeviceMismatch {
        /// The kernel.
        kernel: String,
        /// A tensor argument.
        first_argument: Box<str>,
        /// Its device.
        first: String,
        /// Another.
        second_argument: Box<str>,
        /// Its device.
        second: String,
    },
    /// Shapes that don't fit the kernel.
    #[error(transparent)]
    Arguments(#[from] BindError),
    /// A tensor that the kernel's code can't be told of.
    #[error(transparent)]
    TensorMap(#[from] MapError),
    /// A stream, event or graph that can't be used so.
    #[error("{problem}")]
    Stream {
        /// What can't be done, and what to do.
        problem: String,
    },
    /// A launch that wasn't made by the kernel's own function.
    #[error("the launch of `{kernel}` doesn't fit its kernel: {problem}; launch it through its own function")]
    Launch {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        problem: String,
    },
    /// A launch that can't be where, or as large as, it was asked for.
    #[error("kernel `{kernel}` can't be launched so: {problem}")]
    Refused {
        /// The kernel; on a GPU, as its code names it.
        kernel: String,
        /// Why, and what to do.
        problem: String,
    },
    /// The kernel's IR in the executable can't be read.
    #[error("the IR of kernel `{kernel}` in this executable is damaged ({problem}); rebuild the program")]
    Ir {
        /// The kernel.
        kernel: String,
        /// What is wrong with it.
        problem: Box<tile_ir::Error>,
    },
    /// Parameters that the kernel can't be made with.
    #[error(transparent)]
    Specialize(#[from] tile_ir::specialize::SpecializeError),
    /// No code for these parameters and this device.
    #[error(
        "kernel `{kernel}` has no code for {target}{}{bindings}; {embedded}. {remedy}, or enable the feature `jit` of \
         `tile`",
        if .bindings.is_empty() { "" } else { " with " }
    )]
    MissingInstance {
        /// The kernel.
        kernel: String,
        /// The parameters, if it has some.
        bindings: String,
        /// The target.
        target: String,
        /// What the executable holds instead.
        embedded: String,
        /// How to have the code embedded.
        remedy: String,
    },
    /// An instance that the build script has left out, because the target can't hold it.
    #[error("the instance {bindings} isn't in this program for {target}, which can't hold it: {reason}")]
    LeftOut {
        /// The parameters.
        bindings: String,
        /// The device.
        target: String,
        /// What the instance needs, and what there is.
        reason: String,
    },
    /// No instance, of those that a kernel names, for a launch that lets the cost model choose.
    #[error(
        "no instance of `{kernel}` fits this launch on {device}:\n{reasons}\nadd one that does to `instances(…)` of its \
         `#[tile_kernel]`"
    )]
    NoInstance {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// What is wrong with each, a line for an instance.
        reasons: String,
    },
    /// Instances that compute different things, for a launch that would take the fastest.
    #[error(
        "`best` of `{kernel}` has no choice between {} and {}, which give different results: {difference}",
        .instances[0], .instances[1]
    )]
    InstancesDiffer {
        /// The kernel.
        kernel: String,
        /// Two of them.
        instances: [String; 2],
        /// In what they differ, and what to do.
        difference: String,
    },
    /// Compilation at run time failed.
    #[error("kernel `{kernel}` can't be compiled: {message}")]
    Compile {
        /// The kernel.
        kernel: String,
        /// Why, and what to change.
        message: String,
    },
    /// The kernel's body panicked on the reference device.
    #[error("kernel `{kernel}` panicked in block {block:?} on the reference device: {message}")]
    KernelPanicked {
        /// The kernel.
        kernel: String,
        /// The block's index.
        block: Vec<usize>,
        /// The panic's message.
        message: String,
    },
    /// What the kernel does on a GPU that is simulated, and no GPU's code may do. What it wrote is unspecified.
    #[error("fault in block {block} of kernel `{kernel}` on simulated:{target}, at {place}: {problem}")]
    Simulation {
        /// The kernel.
        kernel: String,
        /// The target whose code runs.
        target: &'static str,
        /// The block.
        block: SimulatedBlock,
        /// File, line and column.
        place: String,
        /// Which thread of the block does what there.
        problem: String,
    },
    /// A `tile_assert!` doesn't hold. What the kernel wrote is unspecified.
    #[error("assertion failed in block {block:?} of kernel `{kernel}`, at {place}: {message}")]
    AssertionFailed {
        /// The kernel.
        kernel: String,
        /// The block's index.
        block: Vec<usize>,
        /// File, line and column.
        place: String,
        /// What the assertion says.
        message: String,
    },
    /// Assertions that don't hold, without room in the log for any of them.
    #[error("kernel `{kernel}`: {problem}; launch it with a larger `.log_bytes(…)`")]
    LogFull {
        /// The kernel.
        kernel: String,
        /// What is known.
        problem: String,
    },
    /// A failure after which the GPU does nothing more. What it computed before may be wrong, too.
    #[error(
        "{action} failed on {device}: {message}. The cause may be any launch before; the device takes no more work from this \
         process, so start it again"
    )]
    DeviceLost {
        /// The device.
        device: String,
        /// What was tried.
        action: String,
        /// The driver's words when the device was lost.
        message: String,
    },
    /// The GPU's driver reported an error.
    #[error("{action} failed on {device}: {message}")]
    Driver {
        /// The device.
        device: String,
        /// What was tried.
        action: String,
        /// The driver's words.
        message: String,
    },
}

impl Error {
    /// What went wrong, of a launch without saying of which.
    ///
    /// ```
    /// # use tile_runtime::{Device, Error, Tensor};
    /// let error = Tensor::from_slice(&Device::cpu(), &[1.0, 2.0], [3]).unwrap_err();
    /// assert!(matches!(error.reason(), Error::ElementCount { .. }));
    /// ```
    ///
    /// [`std::error::Error::source`] isn't the way there: an error's text says everything, and a report that prints an error
    /// with its sources, as `anyhow` and `eyre` make it, would say it twice. Of such a report's error,
    /// `error.downcast_ref::<tile::Error>()` has the reason.
    pub fn reason(&self) -> &Error {
        match self {
            Error::InLaunch { reason, .. } => reason.reason(),
            other => other,
        }
    }
}

/// A block of a GPU that is simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulatedBlock {
    /// Its index in the grid.
    Index(Vec<usize>),
    /// Its number among the blocks that run, where these take places in another order than the grid's, or many each.
    Number(u64),
}

/// `[1, 0]`, or `3 of the launch`.
impl std::fmt::Display for SimulatedBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SimulatedBlock::Index(index) => write!(f, "{index:?}"),
            SimulatedBlock::Number(number) => write!(f, "{number} of the launch"),
        }
    }
}

/// What limits the memory, and who says so.
fn limited(limit: Option<u64>) -> String {
    let text = |bytes| {
        format!(
            " of the {bytes} that `TILE_MEMORY_IN_USE` or `Device::limit_memory` lets it have; drop tensors, or allow more"
        )
    };
    limit.map_or_else(String::new, text)
}

impl std::fmt::Debug for Error {
    /// The message: `fn main() -> tile::Result<()>` prints an error's `Debug` form, to a user.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::KernelDef;
    use crate::{Device, Launch, Tensor};
    use std::error::Error as _;

    static KERNEL: KernelDef = KernelDef::new(
        "all_but_four",
        "kernel @all_but_four(%y: mut tensor<n - 4 x f32>, %x: tensor<n x f32>) {\n  \
         %v = partition %y [4] : mut partition<n - 4 x f32, [4]>\n  %0 = constant 1.0 : f32\n  \
         %t = splat %0 : tile<4 x f32>\n  store_masked %v, %t\n}\n",
        &[],
    );

    /// What prints an error with its sources, as `anyhow` does, repeats nothing of it.
    #[test]
    fn a_launchs_error_says_everything_once() {
        let [mut y, x] = [0, 3].map(|n| Tensor::<f32>::zeros(&Device::reference(), [n]).unwrap());
        let launch = Launch::new(&KERNEL).tensor_mut("y", &mut y).tensor("x", &x);
        let error = launch.reference(|_| {}).launch().unwrap_err();
        assert!(matches!(error.reason(), Error::Arguments(BindError::Dim { .. })), "{error}");
        let told: Vec<String> =
            std::iter::successors(Some(&error as &dyn std::error::Error), |&error| error.source())
                .map(ToString::to_string)
                .collect();
        let reason = error.reason().to_string();
        assert_eq!(told, [format!("{reason}\n{}", told[0].split_once('\n').unwrap().1)]);
        assert!(
            reason.contains("`n - 4` is negative (-1), where n = 3") && error.reason().source().is_none()
        );
    }
}
