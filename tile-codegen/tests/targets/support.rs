//! Runs a kernel's native code on arrays, and compares with the evaluator.
//!
//! With the environment variable [`ARCHITECTURE`] native code is that of another architecture, run by an emulator: every test
//! that takes its code from here then shows the same of that one.

use crate::emulated::{Emulated, Region, emulates_tiles};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::faulting;
use crate::fenced::{Fence, Fenced};
use crate::recent::Recent;
use inkwell::targets::TargetMachine;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;
use std::sync::OnceLock;
use tile_codegen::simt::SimtKernel;
use tile_codegen::{Cpu, Error, Options, compile, jit, levels_of, simt};
use tile_ir::abi::{KernelAbi, LaunchSizes, REFERENCE_BLOCKS, Sharing};
use tile_ir::array::{Elements, round_float};
use tile_ir::ops::Domain;
use tile_ir::target::{Architecture, TILE_FEATURES, grants_tiles};
use tile_ir::view::GivenTensor;
use tile_ir::{Array, DType, Instance, TargetDesc, Type, Variant, Variants, interp, text};

/// The instance of a kernel text with const parameters bound.
pub(crate) fn instance(source: &str, constants: &[(&str, usize)]) -> Instance {
    Instance::parse(source, constants).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// Arguments in memory as the ABI has them, each in pages of its own.
pub(crate) struct Memory {
    arguments: Vec<Argument>,
    pub(crate) slots: Vec<u64>,
    pub(crate) blocks: u64,
    pub(crate) bound: LaunchSizes,
}

/// An argument's bytes, the pages in which they lie, and what is in these before and behind.
struct Argument {
    pages: Fenced,
    address: *mut u8,
    bytes: usize,
}

/// What lies in pages beside an argument, which a kernel must not touch: NaN as f64, as f32 and as bf16.
const BESIDE: [u8; 8] = 0x7ff8_7fc1_7fc1_7fc1u64.to_le_bytes();

impl Argument {
    fn of(array: &Array, fence: Fence) -> Argument {
        let bytes = array.to_bytes();
        let mut pages = Fenced::new(bytes.len());
        let open = pages.open_mut();
        open.chunks_mut(BESIDE.len()).for_each(|word| word.copy_from_slice(&BESIDE[..word.len()]));
        let address = pages.place(bytes.len(), fence);
        let mut argument = Argument { pages, address, bytes: bytes.len() };
        argument.elements_mut().copy_from_slice(&bytes);
        argument
    }

    fn first(&self) -> usize {
        self.address.addr() - self.pages.open().as_ptr().addr()
    }

    /// The bytes, beside which nothing has changed.
    fn elements(&self) -> &[u8] {
        let (open, inside) = (self.pages.open(), self.first()..self.first() + self.bytes);
        let are_kept =
            |mut places: Range<usize>| places.all(|place| open[place] == BESIDE[place % BESIDE.len()]);
        let beside = [0..inside.start, inside.end..open.len()];
        assert!(beside.into_iter().all(are_kept), "the kernel wrote outside its arguments");
        &open[inside]
    }

    fn elements_mut(&mut self) -> &mut [u8] {
        let inside = self.first()..self.first() + self.bytes;
        &mut self.pages.open_mut()[inside]
    }

    /// A scalar's slot.
    fn word(&self) -> u64 {
        let mut word = [0; 8];
        word[..self.bytes].copy_from_slice(self.elements());
        u64::from_le_bytes(word)
    }
}

impl Memory {
    pub(crate) fn of(instance: &Instance, arguments: &[Array]) -> Memory {
        Memory::shared(instance, arguments, Sharing::default())
    }

    /// For a launch that says how blocks share tiles.
    pub(crate) fn shared(instance: &Instance, arguments: &[Array], sharing: Sharing) -> Memory {
        Memory::laid_out(instance, arguments, &dense(instance, arguments), sharing, Fence::Before)
    }

    /// With tensors that have this fence.
    fn fenced(instance: &Instance, arguments: &[Array], fence: Fence) -> Memory {
        Memory::laid_out(instance, arguments, &dense(instance, arguments), Sharing::default(), fence)
    }

    /// Of tensors that lie so in the arrays, which are their memory.
    pub(crate) fn laid_out(
        instance: &Instance,
        arguments: &[Array],
        tensors: &[GivenTensor<'_>],
        sharing: Sharing,
        fence: Fence,
    ) -> Memory {
        let arguments: Vec<Argument> = arguments.iter().map(|array| Argument::of(array, fence)).collect();
        let is_tensor = |i: usize| matches!(instance.ty(instance.params()[i]), Type::Tensor(_));
        let abi = KernelAbi::of(instance);
        let bound =
            abi.share(abi.bind_tensors(tensors, &|_| None).unwrap(), sharing, REFERENCE_BLOCKS).unwrap();
        let slot = |(i, argument): (usize, &Argument)| {
            if is_tensor(i) { argument.address as u64 } else { argument.word() }
        };
        let mut slots: Vec<u64> = arguments.iter().enumerate().map(slot).collect();
        slots.extend(bound.slots());
        Memory { arguments, slots, blocks: bound.blocks() as u64, bound }
    }

    /// What the kernel left of an argument.
    pub(crate) fn bytes(&self, argument: usize) -> &[u8] {
        self.arguments[argument].elements()
    }

    /// Forgets what a kernel left of an argument.
    pub(crate) fn clear(&mut self, argument: usize) {
        self.arguments[argument].elements_mut().fill(u8::MAX);
    }

    /// What the kernel left, as arrays like these.
    pub(crate) fn arrays(&self, like: &[Array]) -> Vec<Array> {
        let read = |(argument, array): (usize, &Array)| {
            Array::from_bytes(array.dtype(), array.shape(), self.bytes(argument))
        };
        like.iter().enumerate().map(read).collect()
    }
}

/// The tensors among a kernel's arguments, row-major.
fn dense<'a>(instance: &Instance, arguments: &'a [Array]) -> Vec<GivenTensor<'a>> {
    let tensors = arguments.iter().zip(instance.params());
    let tensors = tensors.filter(|&(_, &param)| matches!(instance.ty(param), Type::Tensor(_)));
    tensors.map(|(array, _)| GivenTensor::dense(array.shape())).collect()
}

/// The environment variable that names the architecture whose code is run, as Rust names it; this machine's without.
pub(crate) const ARCHITECTURE: &str = "TILE_TEST_ARCHITECTURE";

/// The architecture whose code is run.
fn architecture() -> Architecture {
    static CHOSEN: OnceLock<Architecture> = OnceLock::new();
    *CHOSEN.get_or_init(|| match std::env::var(ARCHITECTURE) {
        Ok(name) => Architecture::named(&name).unwrap_or_else(|| panic!("no code is made for {name}")),
        Err(_) => Architecture::host().expect("a machine that CPU code is made for"),
    })
}

/// Whether native code is run by an emulator, which takes a hundred times as long.
pub(crate) fn is_emulated() -> bool {
    Architecture::host() != Some(architecture())
}

/// The processor with the fewest instructions.
pub(crate) fn least_cpu() -> Cpu {
    Cpu::Level(architecture().least())
}

/// The processors whose code for any kernel differs, of those that it can be run on: the host, and the lesser levels.
/// For what is said of functions; a kernel takes [`cpus_in_turn`].
pub(crate) fn cpus() -> Vec<Cpu> {
    let is_general = |cpu: &Cpu| matches!(cpu, Cpu::Level(level) if level.is_general);
    let lesser: Vec<Cpu> = embedded_levels().into_iter().filter(is_general).collect();
    // Of several the best is the host's own.
    let is_own = usize::from(lesser.len() > 1);
    [Cpu::Host].into_iter().chain(lesser.into_iter().skip(is_own)).collect()
}

/// The environment variable with which every kernel is compiled for all processors that it may be: half of the time of a
/// run of all tests would be LLVM's for those.
const EVERY_PROCESSOR: &str = "TILE_EVERY_PROCESSOR";

/// The host and one of the others, which the kernel's text chooses: each processor has kernels of every kind, and a kernel
/// the same in every run.
fn in_turn(instance: &Instance, mut processors: Vec<Cpu>) -> Vec<Cpu> {
    if processors.len() < 3 || std::env::var_os(EVERY_PROCESSOR).is_some() {
        return processors;
    }
    let mut hasher = DefaultHasher::new();
    text::print(instance).hash(&mut hasher);
    let chosen = 1 + hasher.finish() as usize % (processors.len() - 1);
    processors.swap(1, chosen);
    processors.truncate(2);
    processors
}

/// Of [`cpus`] those that an instance is run on.
pub(crate) fn cpus_in_turn(instance: &Instance) -> Vec<Cpu> {
    in_turn(instance, cpus())
}

/// The instruction sets of embedded code that can be run, with AMX's tiles emulated where need be, the best first.
pub(crate) fn embedded_levels() -> Vec<Cpu> {
    let host = TargetMachine::get_host_cpu_features();
    let host: Vec<String> = host.to_string_lossy().split(',').map(str::to_owned).collect();
    // A processor that has tiles does half of their instructions where the system refuses them.
    let has = |feature: &str| match (TILE_FEATURES.contains(&feature), host.contains(&format!("+{feature}")))
    {
        (true, true) => grants_tiles(),
        (true, false) => emulates_tiles(),
        (false, has) => has,
    };
    let levels = architecture().levels();
    levels.filter(|level| is_emulated() || level.all_features().all(has)).map(Cpu::Level).collect()
}

/// Every processor whose code can be run: the host, and the levels; of an emulator the best level is the host.
pub(crate) fn all_cpus() -> Vec<Cpu> {
    let host = (!is_emulated()).then_some(Cpu::Host);
    host.into_iter().chain(embedded_levels()).collect()
}

/// Of the processors whose code of an instance differs (the host, and the levels that are embedded for it) those that it is
/// run on.
pub(crate) fn cpus_of(instance: &Instance) -> Vec<Cpu> {
    let embedded: Vec<&str> = levels_of(instance, architecture()).map(|level| level.name).collect();
    let differs = |cpu: &Cpu| match cpu {
        Cpu::Host => true,
        Cpu::Level(level) => embedded.contains(&level.name),
    };
    in_turn(instance, all_cpus().into_iter().filter(differs).collect())
}

/// Who else runs blocks of a launch, as its code is told; here nobody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    Nobody,
    Others,
}

/// Native code that can be run.
pub(crate) enum Native {
    /// In this process.
    Here(jit::CpuKernel),
    /// By an emulator.
    Emulated(Emulated),
}

impl Native {
    /// The code of an instance; of the best level for [`Cpu::Host`] where it is emulated.
    pub(crate) fn of(instance: &Instance, options: &Options) -> Native {
        let failed = |error: Error| -> ! { panic!("{error}") };
        if !is_emulated() {
            return Native::Here(jit::compile_cpu(instance, options).unwrap_or_else(|error| failed(error)));
        }
        let cpu = if options.cpu == Cpu::Host { embedded_levels()[0] } else { options.cpu };
        let artifact = compile(instance, TargetDesc::cpu(), &Options { cpu, ..options.clone() });
        Native::Emulated(Emulated::of(&artifact.unwrap_or_else(|error| failed(error))))
    }

    /// Runs every block, as one of the threads that run a launch.
    pub(crate) fn run(&self, memory: &Memory) {
        self.run_beside(memory, &[], Company::Others);
    }

    /// Runs every block, with slots that point to further memory.
    pub(crate) fn run_beside(&self, memory: &Memory, further: &[Region], company: Company) {
        let own = memory.arguments.iter().map(|argument| Region {
            address: argument.pages.open().as_ptr().cast_mut(),
            bytes: argument.pages.open().len(),
        });
        let regions: Vec<Region> = own.chain(further.iter().copied()).collect();
        // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes; the arguments and what
        // the caller adds are this thread's.
        unsafe { self.run_with(&memory.slots, &regions, memory.blocks, company) };
    }

    /// Runs blocks from 0 on with these slots.
    ///
    /// # Safety
    /// The slots are as the instance's ABI says, and what they point to lies in the regions, which nobody else uses.
    pub(crate) unsafe fn run_with(&self, slots: &[u64], regions: &[Region], blocks: u64, company: Company) {
        match self {
            Native::Here(kernel) => {
                let bytes = kernel.launch().scratch_bytes as usize;
                let scratch = Fenced::new(bytes.next_multiple_of(64));
                let aligned = scratch.place(bytes.next_multiple_of(64), Fence::Behind);
                // SAFETY: the caller vouches for the slots; the scratch memory has the size and alignment that the kernel
                // asks for.
                unsafe { enter(kernel, slots, 0..blocks, (aligned, false), company) };
            }
            // SAFETY: the caller vouches for the regions.
            Native::Emulated(kernel) => unsafe { kernel.run(slots, regions, blocks, company) },
        }
    }
}

/// Runs blocks of code for this machine; gives what they leave in scratch memory, which was full of this word.
///
/// # Safety
/// The slots are as the instance's ABI says, and nobody else uses what they point to.
pub(crate) unsafe fn run_here(
    kernel: &jit::CpuKernel,
    slots: &[u64],
    blocks: Range<u64>,
    word: u64,
) -> Vec<[u64; 8]> {
    let mut scratch = scratch_of(kernel, word);
    // SAFETY: the caller vouches for the slots.
    unsafe { run_range(kernel, slots, blocks, (&mut scratch, false)) };
    scratch
}

/// Scratch memory of a kernel, full of this word.
pub(crate) fn scratch_of(kernel: &jit::CpuKernel, word: u64) -> Vec<[u64; 8]> {
    vec![[word; 8]; kernel.launch().scratch_bytes as usize / 64 + 2]
}

/// Runs blocks with this scratch memory, which an earlier range of the same launch has left, or not.
///
/// # Safety
/// As for [`run_here`].
pub(crate) unsafe fn run_range(
    kernel: &jit::CpuKernel,
    slots: &[u64],
    blocks: Range<u64>,
    (scratch, goes_on): (&mut [[u64; 8]], bool),
) {
    let address = scratch.as_mut_ptr().cast::<u8>();
    let aligned = address.wrapping_add(address.align_offset(64));
    // SAFETY: the caller vouches for the slots; the scratch memory has the size and alignment that the kernel asks for.
    unsafe { enter(kernel, slots, blocks, (aligned, goes_on), Company::Others) };
}

/// Runs blocks with scratch memory at an address.
///
/// # Safety
/// As for [`run_here`], and the scratch memory has the size and alignment that the kernel asks for.
unsafe fn enter(
    kernel: &jit::CpuKernel,
    slots: &[u64],
    blocks: Range<u64>,
    (scratch, goes_on): (*mut u8, bool),
    company: Company,
) {
    let (entry, first) = (kernel.entry(), slots.as_ptr());
    let is_alone = company == Company::Nobody;
    // SAFETY: the caller vouches for what the code is given.
    let code = move || unsafe { entry(first, blocks.start, blocks.end, scratch, goes_on, is_alone) };
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    // SAFETY: kernels call nothing, and write where their slots point to.
    unsafe { faulting::run(code) }.unwrap_or_else(|fault| panic!("{}", fault.message(slots)));
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    code();
}

/// The arguments after running every block natively, the same whichever way they lie in their pages, and by one thread as by
/// one of several.
pub(crate) fn run_native(instance: &Instance, arguments: &[Array], options: &Options) -> Vec<Array> {
    thread_local!(static COMPILED: Recent<Native> = const { Recent::new() });
    let of = format!("{options:?}\n{}", text::print(instance));
    let native = COMPILED.with(|compiled| compiled.get(of, || Native::of(instance, options)));
    let run = |fence, company| {
        let memory = Memory::fenced(instance, arguments, fence);
        native.run_beside(&memory, &[], company);
        memory.arrays(arguments)
    };
    let (before, behind) = (run(Fence::BOTH[0], Company::Others), run(Fence::BOTH[1], Company::Nobody));
    for (number, (before, behind)) in before.iter().zip(&behind).enumerate() {
        let what =
            format!("argument {number} of {}, elsewhere in memory and run by one thread", instance.name);
        identical(behind, before, &what);
    }
    before
}

/// The arguments after running every block as a GPU would: one of NVIDIA's with the usual number of threads, or
/// one of AMD's with this number.
pub(crate) fn run_simt(instance: &Instance, arguments: &[Array], threads: Option<u32>) -> Vec<Array> {
    run_simt_as(if threads.is_none() { "sm_90a" } else { "gfx942" }, instance, arguments, threads)
}

/// The kernel in blocks of `threads` threads if given, or as many more as its tiles need registers of.
pub(crate) fn with_room(
    instance: &Instance,
    target: &TargetDesc,
    mut threads: Option<u32>,
) -> Result<SimtKernel, Error> {
    loop {
        match (simt::compile(instance, target, threads), threads) {
            (Err(Error::Registers { .. }), Some(few)) if few < target.max_threads => threads = Some(2 * few),
            (result, _) => return result,
        }
    }
}

/// [`with_room`], of a kernel that the target can hold; compiled once as long as a test goes on.
pub(crate) fn compile_simt(instance: &Instance, target: &TargetDesc, threads: Option<u32>) -> Rc<SimtKernel> {
    thread_local!(static COMPILED: Recent<SimtKernel> = const { Recent::new() });
    let of = format!("{} {threads:?}\n{}", target.name, text::print(instance));
    let make = || with_room(instance, target, threads).unwrap_or_else(|error| panic!("{error}"));
    COMPILED.with(|compiled| compiled.get(of, make))
}

/// The variant that a launch on a target takes.
pub(crate) fn taken(instance: &Instance, target: &TargetDesc, bound: &LaunchSizes) -> Instance {
    let abi = KernelAbi::of(instance);
    Variant::first_of(Variants::of(instance, &abi, target).fitting(&abi, bound), instance).1
}

/// The arguments after running every block as this GPU would, in blocks of `threads` threads if given; of the variant
/// that a launch takes.
pub(crate) fn run_simt_as(
    target: &str,
    instance: &Instance,
    arguments: &[Array],
    threads: Option<u32>,
) -> Vec<Array> {
    let (memory, target) = (Memory::of(instance, arguments), TargetDesc::named(target).unwrap());
    let taken = taken(instance, target, &memory.bound);
    let kernel = compile_simt(&taken, target, threads);
    // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes.
    let result = unsafe { kernel.run(&memory.slots, memory.blocks) };
    result.unwrap_or_else(|error| panic!("{error} ({threads:?} threads) in {}", instance.name));
    memory.arrays(arguments)
}

/// What every way of running a kernel leaves of the arguments, with its name: the evaluator, native code of every kind, and
/// GPUs thread by thread, on warps of 32 and waves of 64 lanes.
pub(crate) fn run_everywhere(instance: &Instance, arguments: &[Array]) -> Vec<(&'static str, Vec<Array>)> {
    let mut evaluated = arguments.to_vec();
    interp::run(instance, &mut evaluated).unwrap_or_else(|error| panic!("{error}"));
    let mut found = vec![("the evaluator", evaluated)];
    for cpu in cpus_in_turn(instance) {
        found.push((cpu.name(), run_native(instance, arguments, &Options { cpu, ..Options::default() })));
    }
    for gpu in ["sm_90a", "gfx942", "gfx1100"] {
        found.push((gpu, run_simt_as(gpu, instance, arguments, None)));
    }
    found
}

/// Asserts that the native code and the evaluator agree within `tolerance` (relative, and absolute below 1).
pub(crate) fn agree(source: &str, constants: &[(&str, usize)], arguments: &[Array], tolerance: f64) {
    agree_on(&[Cpu::Host], &instance(source, constants), arguments, tolerance);
}

/// [`agree`] for the code of processors in turn.
pub(crate) fn agree_in_turn(source: &str, constants: &[(&str, usize)], arguments: &[Array], tolerance: f64) {
    let instance = instance(source, constants);
    agree_on(&cpus_in_turn(&instance), &instance, arguments, tolerance);
}

/// [`agree`] for the code of these processors.
pub(crate) fn agree_on(cpus: &[Cpu], instance: &Instance, arguments: &[Array], tolerance: f64) {
    let mut expected = arguments.to_vec();
    interp::run(instance, &mut expected).unwrap();
    for &cpu in cpus {
        let actual = run_native(instance, arguments, &Options { cpu, ..Options::default() });
        for (which, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            let what = format!("argument {which} on {} of\n{}", cpu.name(), text::print(instance));
            close(actual, expected, tolerance, &what);
        }
    }
}

/// Asserts that two arrays are equal within `tolerance`, or [`identical`] where it is 0 or they have integers; NaN equals NaN,
/// and an infinity only itself.
pub(crate) fn close(actual: &Array, expected: &Array, tolerance: f64, what: &str) {
    if tolerance == 0.0 || !actual.dtype().is_float() {
        return identical(actual, expected, what);
    }
    for i in 0..expected.len() {
        let (a, e) = (actual.get_f64(i), expected.get_f64(i));
        let near = e.is_finite() && (a - e).abs() <= tolerance * e.abs().max(1.0);
        assert!(a == e || a.is_nan() && e.is_nan() || near, "element {i} is {a:?}, not {e:?}, in {what}");
    }
}

/// Asserts that two arrays have the same bits, also those of zeros; NaN equals NaN, whose bits are the machine's.
pub(crate) fn identical(found: &Array, expected: &Array, what: &str) {
    for i in 0..expected.len() {
        let (f, e) = (found.get_f64(i), expected.get_f64(i));
        let same = match found.dtype().is_float() {
            true => f.to_bits() == e.to_bits() || f.is_nan() && e.is_nan(),
            false => found.get(i) == expected.get(i),
        };
        assert!(same, "element {i} is {:?}, not {:?}, in {what}", found.get(i), expected.get(i));
    }
}

/// Numbers in a small range that differ from element to element, exact in every format that can hold them.
pub(crate) fn sample(dtype: DType, shape: &[usize], seed: usize) -> Array {
    let count: usize = shape.iter().product();
    let number = |i: usize| {
        ((i * 7919 + seed * 104_729 + i / 13) % 33) as i64
            - if Domain::SignedNumber.accepts(dtype) { 16 } else { 0 }
    };
    let elements = if dtype.is_float() {
        Elements::Float((0..count).map(|i| round_float(dtype, number(i) as f64 / 8.0)).collect())
    } else if dtype == DType::Bool {
        Elements::Int((0..count).map(|i| i128::from(number(i) % 2 != 0)).collect())
    } else {
        Elements::Int((0..count).map(|i| i128::from(number(i))).collect())
    };
    Array::new(dtype, shape.to_vec(), elements)
}
