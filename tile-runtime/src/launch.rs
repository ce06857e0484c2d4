//! A kernel with its arguments, checked and run.

mod footprint;
mod given;
mod host;
mod places;
mod run;
mod site;
mod tune;

use crate::choices::Choices;
use crate::choose;
use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::list::List;
use crate::messages::Sink;
use crate::reference::{Arguments, Body};
use crate::resolve::{self, Prepared};
use crate::stream::Access;
use crate::{cpu, embedded};
use given::{Given, GivenValue};
use smallvec::SmallVec;
use std::fmt;
use std::panic::Location;
use std::sync::OnceLock;
use tile_ir::VerifiedKernel;
use tile_ir::abi::{Argument, KernelAbi, LaunchSizes, REFERENCE_BLOCKS, Sharing};
use tile_ir::specialize::Binding;
use tile_ir::view::ArgumentLayout;

pub use site::Site;

/// A kernel of the program: its IR and the code that the build script compiled. `#[tile_kernel]` makes one.
#[derive(Debug)]
pub struct KernelDef {
    name: &'static str,
    ir: &'static str,
    embedded: &'static [embedded::Embedded],
    place: &'static Location<'static>,
    parsed: OnceLock<Result<VerifiedKernel, tile_ir::Error>>,
    /// The arguments that are numbers and sizes.
    size_arguments: OnceLock<Vec<String>>,
    /// The instances that were asked for.
    pub(crate) instances: List<Prepared>,
}

impl KernelDef {
    /// A kernel of this name, IR text and embedded code, declared where this is called.
    #[track_caller]
    pub const fn new(
        name: &'static str,
        ir: &'static str,
        embedded: &'static [embedded::Embedded],
    ) -> KernelDef {
        let place = Location::caller();
        KernelDef {
            name,
            ir,
            embedded,
            place,
            parsed: OnceLock::new(),
            size_arguments: OnceLock::new(),
            instances: List::new(),
        }
    }

    /// The Rust function's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The code that the build script compiled.
    pub fn embedded(&self) -> &'static [embedded::Embedded] {
        self.embedded
    }

    /// The kernel's IR.
    ///
    /// # Errors
    /// [`Error::Ir`] if the text isn't a valid kernel.
    pub fn kernel(&self) -> Result<&VerifiedKernel> {
        let parsed = self.parsed.get_or_init(|| VerifiedKernel::parse(self.ir));
        parsed
            .as_ref()
            .map_err(|problem| Error::Ir { kernel: self.name.to_owned(), problem: Box::new(problem.clone()) })
    }

    /// The names of the arguments that are numbers and sizes.
    fn size_arguments(&self) -> Result<&[String]> {
        let kernel = self.kernel()?;
        let names = || kernel.size_arguments().map(|(_, name)| name.to_owned()).collect();
        Ok(self.size_arguments.get_or_init(names))
    }
}

/// An instance that a launch may take: what the kernel's compile-time parameters are bound to.
pub type Candidate = &'static [(&'static str, Binding)];

/// What `best` of a kernel asks for that names no instances. No type has it: it is there for what rustc says of that.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "kernel `{Self}` names no instances, so `best` has none to choose from",
    label = "there are no instances to choose from",
    note = "name them at the kernel, with values for each of its parameters: `#[tile_kernel(instances(BM = 64 | 128, T = f32))]`",
    note = "or say which instance to launch, without `best`: `{Self}::<64, f32>(…)`"
)]
pub trait NamesInstances<'a> {}

/// How many arguments a launch has room for without allocating, and how many compile-time parameters.
const ARGUMENTS: usize = 8;

/// The 8 bytes of each argument and run-time size, as [`tile_ir::abi`] orders them.
type Slots = SmallVec<[u64; 2 * ARGUMENTS + 4]>;

/// The ranks and extents of as many tensors, of up to four axes.
type Shapes = SmallVec<[usize; 5 * ARGUMENTS]>;

/// A kernel with its arguments: what a call of a kernel's function gives. Nothing happens before [`Launch::launch`],
/// [`Launch::on`] or `.await`.
///
/// A launch like one before it allocates nothing on the CPU: a kernel of up to eight arguments lies in this value, and
/// what was found for it before is looked up in place. A kernel that prints or asserts has its log allocated.
#[must_use = "a launch does nothing until `.launch()` or `.on(&stream)` is called, or it is awaited"]
pub struct Launch<'a> {
    kernel: &'static KernelDef,
    place: &'static Location<'static>,
    /// What is said of the compile-time parameters: of all of them, or of those that `candidates` leave open.
    bindings: SmallVec<[(&'static str, Binding); ARGUMENTS]>,
    /// The instances of which the cost model takes one; none where the launch says which.
    candidates: &'static [Candidate],
    arguments: SmallVec<[Given<'a>; ARGUMENTS]>,
    /// The positions, among all arguments, of the optional ones that aren't given.
    absent: SmallVec<[usize; ARGUMENTS]>,
    body: Option<Body>,
    sharing: Sharing,
    log_bytes: Option<usize>,
    sink: Option<Sink<'a>>,
}

/// A launch whose arguments fit: the instance, its number among those that the launch may take, and its sizes.
struct Checked<'a> {
    number: usize,
    prepared: &'static Prepared,
    device: &'a Device,
    bound: LaunchSizes,
}

impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Launch of `{}` at {}", self.kernel.name, self.place)
    }
}

impl<'a> Launch<'a> {
    /// A launch without arguments, made where this is called. Kernels' functions make complete ones.
    #[track_caller]
    pub fn new(kernel: &'static KernelDef) -> Launch<'a> {
        Launch {
            kernel,
            place: Location::caller(),
            bindings: SmallVec::new(),
            candidates: &[],
            arguments: SmallVec::new(),
            absent: SmallVec::new(),
            body: None,
            sharing: Sharing::default(),
            log_bytes: None,
            sink: None,
        }
    }

    /// A launch without arguments that takes the best of these instances. Kernels' `best` functions make complete ones.
    #[track_caller]
    pub fn choosing(kernel: &'static KernelDef, candidates: &'static [Candidate]) -> Launch<'a> {
        Launch { candidates, ..Launch::new(kernel) }
    }

    /// The body as Rust, for the reference device.
    pub fn reference(mut self, body: fn(&Arguments<'_>)) -> Self {
        self.body = Some(body);
        self
    }

    /// How many bytes of messages a launch of compiled code keeps, if the kernel prints or asserts; without
    /// this, as many as the environment variable `TILE_LOG_BYTES` says (`64K`, `4M`), or 1 MiB. Eight bytes per value and
    /// 16 to 24 per message; what doesn't fit is lost, and a warning says how much. More than there is memory
    /// for is the launch's [`Error::OutOfMemory`].
    pub fn log_bytes(mut self, bytes: usize) -> Self {
        self.log_bytes = Some(bytes);
        self
    }

    /// How many blocks share the tiles of a persistent kernel, one with a loop over `tiles_persistent`; without this,
    /// one for each thread of the CPU or multiprocessor of the GPU (4 on the reference and simulated devices), and no
    /// more than there are tiles. The launch refuses 0, and any number for other kernels.
    pub fn blocks(mut self, blocks: usize) -> Self {
        self.sharing.blocks = Some(blocks);
        self
    }

    /// Only the first so many tiles of a persistent kernel, in their order, are handled; the others keep their
    /// elements. The launch refuses it for other kernels.
    pub fn first_tiles(mut self, tiles: usize) -> Self {
        self.sharing.first_tiles = Some(tiles);
        self
    }

    /// Hands what the kernel prints to a function, a message at a time, instead of printing it.
    pub fn on_print(mut self, sink: impl FnMut(&str) + Send + 'a) -> Self {
        self.sink = Some(Box::new(sink));
        self
    }

    /// Does all that a launch does before anything runs: checks the arguments, chooses the instance and sees that its code
    /// for their device and sizes is in memory, compiled if need be, and loaded by a GPU's driver. A launch with these
    /// arguments, or others of such sizes, then begins at once.
    ///
    /// Where a launch makes aligned copies of its tensors, there are two codes, and both are loaded: the other is for graphs,
    /// which take the tensors as they are, and for when there is no memory for copies.
    ///
    /// # Errors
    /// As [`Launch::launch`].
    pub fn warm(&self) -> Result<()> {
        self.site().locate(self.find_code())
    }

    fn find_code(&self) -> Result<()> {
        let Checked { prepared, device, bound, .. } = self.checked()?;
        match &device.0 {
            Kind::Reference => Ok(()),
            Kind::Cpu => prepared.cpu(self.kernel).map(drop),
            Kind::Gpu(context) => {
                let padded = prepared.padded(context.family(), &bound).map(|padded| padded.bound);
                let mut bounds = padded.iter().chain([&bound]);
                bounds.try_for_each(|bound| context.warm(prepared.gpu(self.kernel, bound, context)?))
            }
            Kind::Simulated(gpu) => prepared.simulated(&bound, gpu.target()).map(drop),
        }
    }

    /// The number of blocks along each axis.
    ///
    /// # Errors
    /// As [`Launch::launch`] reports of arguments.
    pub fn grid(&self) -> Result<Vec<usize>> {
        self.site().locate(self.checked().map(|checked| checked.bound.grid.to_vec()))
    }

    /// The instance that runs: `BM = 128, BN = 256, BK = 64`.
    ///
    /// # Errors
    /// As [`Launch::launch`] reports of arguments.
    pub fn instance(&self) -> Result<String> {
        self.site().locate(self.resolved().map(|(_, prepared)| prepared.parameters()))
    }

    /// What the cost model says of every instance that the launch may take, the chosen one first: a table when
    /// displayed. Of a launch that says which instance it takes, of that one. Where the launch takes none, because those that
    /// fit compute different things, that stands below the table.
    ///
    /// # Errors
    /// [`Error`] where the launch has no tensor, or tensors on several devices. What is wrong with the sizes stands in
    /// the table.
    pub fn choices(&self) -> Result<Choices> {
        self.site().locate(self.assess())
    }

    fn assess(&self) -> Result<Choices> {
        let (device, shapes, layouts) = (self.device()?, self.shapes(), self.layouts()?);
        let numbers = self.given_sizes()?;
        let query = self.query(device, &shapes, &numbers, &layouts);
        let assessed = match self.candidates {
            [] => vec![query.assess(&self.bindings, &|abi| self.bound(abi))],
            _ => query.assess_all(&|abi| self.bound(abi)),
        };
        let decided = query.decide(&assessed);
        Ok(Choices::new(self.kernel.name, device, assessed, decided))
    }

    /// The instance that runs, and its number among the candidates.
    fn resolved(&self) -> Result<(usize, &'static Prepared)> {
        let layouts = self.layouts()?;
        if self.candidates.is_empty() {
            return Ok((0, resolve::instance(self.kernel, &self.bindings, &layouts)?));
        }
        let (device, shapes, numbers) = (self.device()?, self.shapes(), self.given_sizes()?);
        let query = self.query(device, &shapes, &numbers, &layouts);
        query.choose(&|abi| self.bound(abi))
    }

    /// The numbers among the arguments that are sizes, as extents of tensors are.
    fn given_sizes(&self) -> Result<SmallVec<[u64; ARGUMENTS]>> {
        let given = |name: &String| {
            let argument = self.arguments.iter().find(|argument| argument.name.is(name))?;
            match argument.value {
                GivenValue::Scalar { slot, .. } => Some(slot),
                GivenValue::Tensor { .. } => None,
            }
        };
        Ok(self.kernel.size_arguments()?.iter().filter_map(given).collect())
    }

    /// What the choice of an instance goes by.
    fn query<'q>(
        &'q self,
        device: &'q Device,
        shapes: &'q [usize],
        numbers: &'q [u64],
        layouts: &'q [(usize, ArgumentLayout)],
    ) -> choose::Query<'q> {
        let (kernel, candidates, given) = (self.kernel, self.candidates, &self.bindings[..]);
        choose::Query { kernel, candidates, given, shapes, numbers, layouts, sharing: self.sharing, device }
    }

    /// Where the launch was made.
    pub(crate) fn site(&self) -> Site {
        Site { name: self.kernel.name, launch: self.place, kernel: self.kernel.place }
    }

    fn misfit(&self, problem: impl Into<String>) -> Error {
        Error::Launch { kernel: self.kernel.name.to_owned(), problem: problem.into() }
    }

    fn refused(&self, problem: impl Into<String>) -> Error {
        Error::Refused { kernel: self.kernel.name.to_owned(), problem: problem.into() }
    }

    fn checked(&self) -> Result<Checked<'a>> {
        let (number, prepared) = self.resolved()?;
        let (device, bound) = self.bind(prepared.abi())?;
        Ok(Checked { number, prepared, device, bound })
    }

    /// Compares the arguments with the kernel's and binds its run-time sizes and blocks; the device that all tensors
    /// are on.
    fn bind(&self, abi: &KernelAbi) -> Result<(&'a Device, LaunchSizes)> {
        if abi.arguments.len() != self.arguments.len() {
            let problem = format!("it takes {} arguments, not {}", abi.arguments.len(), self.arguments.len());
            return Err(self.misfit(problem));
        }
        for (declared, given) in abi.arguments.iter().zip(&self.arguments) {
            let fits = match (declared, &given.value) {
                (
                    Argument::Tensor { dtype, mutable, .. },
                    GivenValue::Tensor { dtype: given, access, .. },
                ) => dtype == given && *mutable == (*access == Access::Write),
                (Argument::Scalar { dtype, .. }, GivenValue::Scalar { dtype: given, .. }) => dtype == given,
                _ => false,
            };
            if !fits || !given.name.is(declared.name()) {
                return Err(self.misfit(format!("argument `{}` isn't what the kernel declares", given.name)));
            }
        }
        let number = |position: usize| match self.arguments.get(position)?.value {
            GivenValue::Scalar { slot, .. } => Some(slot),
            GivenValue::Tensor { .. } => None,
        };
        let bound = abi.bind_tensors(&self.tensors(), &number)?;
        let device = self.device()?;
        self.check_overlaps()?;
        let at_once = match &device.0 {
            Kind::Reference | Kind::Simulated(_) => REFERENCE_BLOCKS,
            Kind::Cpu => cpu::threads(),
            Kind::Gpu(context) => context.multiprocessors(),
        };
        Ok((device, abi.share(bound, self.sharing, at_once)?))
    }

    fn bound(&self, abi: &KernelAbi) -> Result<LaunchSizes> {
        Ok(self.bind(abi)?.1)
    }

    /// The shapes of the tensors: of each its rank, then its extents.
    fn shapes(&self) -> Shapes {
        let mut shapes = Shapes::new();
        for argument in &self.arguments {
            if let GivenValue::Tensor { tensor, .. } = argument.value {
                shapes.push(tensor.shape().len());
                shapes.extend_from_slice(tensor.shape());
            }
        }
        shapes
    }

    /// The one device that holds all tensors.
    pub(crate) fn device(&self) -> Result<&'a Device> {
        let mut tensors = self.arguments.iter().filter_map(|argument| match argument.value {
            GivenValue::Tensor { tensor, .. } => Some((argument.name, tensor.device())),
            GivenValue::Scalar { .. } => None,
        });
        let (first_argument, first) = tensors.next().ok_or_else(|| self.misfit("it has no tensor"))?;
        for (second_argument, second) in tensors {
            if first != second {
                return Err(Error::DeviceMismatch {
                    kernel: self.kernel.name.to_owned(),
                    first_argument: first_argument.to_string().into(),
                    first: first.name(),
                    second_argument: second_argument.to_string().into(),
                    second: second.name(),
                });
            }
        }
        Ok(first)
    }
}
