//! One random program everywhere: the evaluator, native code and simulated threads must leave the same bits.

use super::kept::keep;
use super::placement::Placement;
use super::reached::{note, note_refused};
use crate::fenced::Fence;
use crate::strided::Laid;
use crate::support::{Memory, Native, identical, instance, is_emulated, taken, with_room};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tile_codegen::simt::SimtKernel;
use tile_codegen::{Cpu, Error, Options};
use tile_ir::abi::Sharing;
use tile_ir::specialize::specialize_for;
use tile_ir::view::{ArgumentLayout, GivenTensor};
use tile_ir::{Array, Instance, TargetDesc, VerifiedKernel, interp, passes};

/// Where and how a kernel is compiled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) cpu: Cpu,
    pub(super) skip_passes: bool,
    pub(super) gpu: &'static str,
    /// Threads of a block; as many as a launch has where it isn't said.
    pub(super) threads: Option<u32>,
    /// Whether the evaluator runs the kernel after every pass, or after the last one only.
    pub(super) after_every_pass: bool,
}

/// What a program is given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) arguments: Vec<Array>,
    /// How each tensor among the arguments lies.
    pub(super) placements: Vec<Placement>,
}

/// An instance that is made for tensors that lie so.
struct Placed {
    instance: Instance,
    /// The tensors; scalars, which are the last arguments, lie nowhere.
    laid: Vec<Laid>,
    memories: Vec<Array>,
}

impl Placed {
    /// The kernel's instance for what it is given; for dense tensors where views in it can't be made of others.
    fn of(written: &Instance, source: &str, given: &Given) -> Placed {
        let kernel = VerifiedKernel::parse(source).expect("it was read before");
        let dense = vec![Placement::Dense; given.placements.len()];
        for placements in [&given.placements, &dense] {
            let tensors = given.arguments.iter().filter(|array| !array.shape().is_empty());
            let laid: Vec<Laid> =
                tensors.zip(placements).map(|(array, placement)| placement.of(array)).collect();
            let layout = |(i, laid): (usize, &Laid)| Some((i, ArgumentLayout::of(&laid.given())?));
            let layouts: Vec<_> = laid.iter().enumerate().filter_map(layout).collect();
            if let Ok(instance) = specialize_for(&kernel, written.bindings(), &layouts) {
                let memories = laid.iter().map(|laid| laid.memory.clone());
                let scalars = given.arguments[laid.len()..].iter().cloned();
                let memories = memories.chain(scalars).collect();
                return Placed { instance, laid, memories };
            }
        }
        unreachable!("the instance for dense tensors is the one that is written")
    }

    fn given(&self) -> Vec<GivenTensor<'_>> {
        self.laid.iter().map(Laid::given).collect()
    }

    fn memory(&self, fence: Fence) -> Memory {
        Memory::laid_out(&self.instance, &self.memories, &self.given(), Sharing::default(), fence)
    }

    /// Asserts that the tensors hold these numbers, and that what lies between is as it was.
    fn same(&self, found: &[Array], expected: &[Array], what: &str) {
        for (i, ((laid, found), expected)) in self.laid.iter().zip(found).zip(expected).enumerate() {
            identical(&laid.read(found, what), expected, &format!("argument {i} {what}"));
        }
    }
}

/// The kernel for threads of a block, or for more where its tiles need their registers. `None` where the GPU can't hold
/// it, as the error says with the kernel's name.
pub(super) fn compiled(taken: &Instance, target: &TargetDesc, threads: Option<u32>) -> Option<SimtKernel> {
    match with_room(taken, target, threads) {
        Ok(kernel) => Some(kernel),
        Err(error @ (Error::Registers { .. } | Error::SharedMemory { .. })) => {
            assert!(error.to_string().contains(&taken.name), "{error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// What a program has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// All that it was to.
    All,
    /// Nothing of the GPU, for whose registers or memory it is too large.
    NoThreads,
}

/// Compiles a program in some way, and compares what it leaves.
pub(super) fn check(source: &str, given: &Given, way: Way) -> Shown {
    let written = instance(source, &[]);
    let mut expected = given.arguments.clone();
    interp::run(&written, &mut expected).expect("the shapes fit");
    let placed = Placed::of(&written, source, given);
    if keep(source, &placed.laid, &given.arguments[placed.laid.len()..], &expected) {
        return Shown::All;
    }
    let same = |found: &[Array], what: &str| placed.same(found, &expected, &format!("{what}: {source}"));

    let options = Options { cpu: way.cpu, skip_passes: way.skip_passes, ..Options::default() };
    let native = Native::of(&placed.instance, &options);
    for memory in Fence::BOTH.map(|fence| placed.memory(fence)) {
        native.run(&memory);
        same(&memory.arrays(&placed.memories), "natively");
    }
    note(&written, way.cpu.name());
    if is_emulated() {
        // The rest is the same for every architecture.
        return Shown::All;
    }
    after_passes(&placed, way.after_every_pass, &same);
    on_threads(&placed, &written, way, &same)
}

/// The evaluator, after every pass or after the last one.
fn after_passes(placed: &Placed, every: bool, same: &dyn Fn(&[Array], &str)) {
    let mut rewritten = placed.instance.clone();
    let all = passes::PIPELINE.len() + passes::OVER_MEMORY.len();
    for (i, pass) in passes::PIPELINE.iter().chain(passes::OVER_MEMORY).enumerate() {
        rewritten = passes::run(rewritten, pass);
        if every || i + 1 == all {
            let mut memories = placed.memories.clone();
            let run = interp::run_tensors(&rewritten, &mut memories, &placed.given(), Sharing::default());
            run.expect("the shapes fit");
            same(&memories, &format!("after `{}`", pass.name));
        }
    }
}

/// Simulated threads of a GPU, with the variant that a launch takes.
fn on_threads(placed: &Placed, written: &Instance, way: Way, same: &dyn Fn(&[Array], &str)) -> Shown {
    let memory = placed.memory(Fence::Before);
    let target = TargetDesc::named(way.gpu).expect("a target of the table");
    let taken = taken(&placed.instance, target, &memory.bound);
    let Some(kernel) = compiled(&taken, target, way.threads) else {
        note_refused(way.gpu);
        return Shown::NoThreads;
    };
    // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes.
    let run = unsafe { kernel.run(&memory.slots, memory.blocks) };
    run.unwrap_or_else(|error| panic!("{error} on {} in {}", way.gpu, written.name));
    same(&memory.arrays(&placed.memories), &format!("on simulated threads of {}", way.gpu));
    note(written, way.gpu);
    Shown::All
}

/// How many turns the loops of a program take, with that limit.
fn turns(source: &str, given: &Given, most: u64) -> u64 {
    interp::turns(&instance(source, &[]), &mut given.arguments.clone(), most).expect("the shapes fit")
}

/// Whether texts are kernels that fail as `source` does. Those that take many more turns don't: a kernel that has lost what
/// ends a loop would run for ever.
pub(super) fn fails<'a>(source: &str, given: &'a Given, way: Way) -> impl Fn(&str) -> bool + 'a {
    let most = 2 * turns(source, given, u64::MAX) + 100;
    move |text| {
        VerifiedKernel::parse(text).is_ok()
            && catch_unwind(|| turns(text, given, most)).is_ok_and(|turns| turns < most)
            && catch_unwind(AssertUnwindSafe(|| check(text, given, way))).is_err()
    }
}
