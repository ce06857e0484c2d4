//! Which instance a launch takes that says none: of those that a kernel names, the one that the cost model gives the
//! least time, for the sizes of the tensors and their device.
//!
//! What was chosen is kept for each kernel, processor, element types, `bool`s, shapes, numbers that are sizes, and shares of
//! the tiles, so that a launch like one before looks up a number. Nothing is run to find out, unless a launch is tuned: then the times
//! that were measured decide.

mod agreement;

use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::launch::{Candidate, KernelDef};
use crate::resolve::{self, Prepared, display_bindings};
use crate::{cpu, machine};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, PoisonError, RwLock};
use std::time::Duration;
use tile_ir::abi::{KernelAbi, LaunchSizes, Sharing};
use tile_ir::cost::{self, Machine, NoRoom, Plan, Prediction};
use tile_ir::specialize::Binding;
use tile_ir::view::ArgumentLayout;

/// Binds a launch's arguments to an instance's interface.
pub(crate) type Bind<'b> = &'b dyn Fn(&KernelAbi) -> Result<LaunchSizes>;

/// How many choices are kept at most.
const MOST_KNOWN: usize = 1 << 12;

/// What a choice depends on.
pub(crate) struct Query<'q> {
    pub(crate) kernel: &'static KernelDef,
    pub(crate) candidates: &'static [Candidate],
    /// The compile-time parameters that the launch says: element types and `bool`s.
    pub(crate) given: &'q [(&'static str, Binding)],
    /// Of each tensor its rank, then its extents.
    pub(crate) shapes: &'q [usize],
    /// The numbers that are sizes as well.
    pub(crate) numbers: &'q [u64],
    /// The tensors that aren't dense and aligned.
    pub(crate) layouts: &'q [(usize, ArgumentLayout)],
    /// How many blocks share the tiles of a persistent kernel, and which of the tiles.
    pub(crate) sharing: Sharing,
    pub(crate) device: &'q Device,
}

/// What a choice is kept by: that of a query borrows from it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key<'k> {
    /// Kernels are told apart by the address of their definition, which is a `static`.
    kernel: usize,
    /// The device, and how many threads run its blocks, which may change.
    processor: (usize, usize),
    given: Cow<'k, [(&'static str, Binding)]>,
    shapes: Cow<'k, [usize]>,
    numbers: Cow<'k, [u64]>,
    layouts: Cow<'k, [(usize, ArgumentLayout)]>,
    sharing: Sharing,
}

impl Key<'_> {
    fn into_owned(self) -> Key<'static> {
        Key {
            kernel: self.kernel,
            processor: self.processor,
            given: self.given.into_owned().into(),
            shapes: self.shapes.into_owned().into(),
            numbers: self.numbers.into_owned().into(),
            layouts: self.layouts.into_owned().into(),
            sharing: self.sharing,
        }
    }
}

/// A choice that was made.
struct Known {
    number: usize,
    prepared: &'static Prepared,
    /// How long each candidate took, where the launch was tuned.
    measured: Vec<Option<Duration>>,
}

/// The choices of this program, by what they depend on.
static CHOICES: LazyLock<RwLock<HashMap<Key<'static>, Known>>> = LazyLock::new(RwLock::default);

/// What the model says of an instance.
pub(crate) struct Assessed {
    /// `BM = 128, BN = 64`.
    pub(crate) instance: String,
    /// How long it took, where the launch was tuned.
    pub(crate) measured: Option<Duration>,
    /// The instance with the sizes of the launch, and its time.
    pub(crate) outcome: std::result::Result<Fitting, Refusal>,
}

/// An instance that the launch may take.
pub(crate) struct Fitting {
    pub(crate) prepared: &'static Prepared,
    pub(crate) bound: LaunchSizes,
    pub(crate) prediction: Prediction,
}

/// Why a launch can't take an instance.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It has other element types or `bool`s than the launch.
    Given(String),
    /// The arguments don't fit it.
    Arguments(Error),
    /// A block doesn't fit the device.
    NoRoom(NoRoom),
    /// There is no code of it for the device.
    NoCode,
    /// There is none because the build script left it out.
    LeftOut(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Given(given) => write!(f, "the launch has {given}"),
            Refusal::Arguments(error) => write!(f, "{error}"),
            Refusal::NoRoom(no_room) => write!(f, "{no_room}"),
            Refusal::LeftOut(reason) => f.write_str(reason),
            Refusal::NoCode => f.write_str("the program has no code of it for the device"),
        }
    }
}

impl Query<'_> {
    /// The instance that the launch takes, and its number among the candidates.
    pub(crate) fn choose(&self, bind: Bind<'_>) -> Result<(usize, &'static Prepared)> {
        if let Some(chosen) = self.known(|known| (known.number, known.prepared)) {
            return Ok(chosen);
        }
        let assessed = self.assess_all(bind);
        let Some(number) = self.decide(&assessed)? else { return Err(self.none(assessed)) };
        let Ok(fitting) = &assessed[number].outcome else { unreachable!("the best one fits") };
        self.keep(number, fitting.prepared, Vec::new());
        Ok((number, fitting.prepared))
    }

    /// What a choice that was made for such a launch says.
    fn known<R>(&self, say: impl Fn(&Known) -> R) -> Option<R> {
        let key = self.key();
        let choices = CHOICES.read().unwrap_or_else(PoisonError::into_inner);
        // Its keys as those that live as long as the one that is looked for.
        let choices: &HashMap<Key<'_>, Known> = &choices;
        choices.get(&key).map(say)
    }

    /// Keeps what was chosen, in place of what was chosen before; but of what was measured meanwhile a model has nothing to say.
    fn keep(&self, number: usize, prepared: &'static Prepared, measured: Vec<Option<Duration>>) {
        let key = self.key().into_owned();
        let mut choices = CHOICES.write().unwrap_or_else(PoisonError::into_inner);
        // A program whose shapes never come again must not keep them all; what was measured isn't found again by a model.
        if choices.len() >= MOST_KNOWN {
            choices.retain(|_, known| !known.measured.is_empty());
        }
        let is_measured = !measured.is_empty();
        if is_measured || choices.get(&key).is_none_or(|known| known.measured.is_empty()) {
            choices.insert(key, Known { number, prepared, measured });
        }
    }

    /// Takes of the candidates that fit the one for which `times` has the least time from now on.
    pub(crate) fn tune(
        &self,
        bind: Bind<'_>,
        times: impl FnOnce(&[(usize, Fitting)]) -> Result<Vec<Duration>>,
    ) -> Result<()> {
        let (mut fitting, mut refused) = (Vec::new(), Vec::new());
        let assessed = self.assess_all(bind);
        agreement::check(self.kernel, &assessed)?;
        for (number, one) in assessed.into_iter().enumerate() {
            match one.outcome {
                Ok(fits) => fitting.push((number, fits)),
                Err(_) => refused.push(one),
            }
        }
        if fitting.is_empty() {
            return Err(self.none(refused));
        }
        let mut measured = vec![None; self.candidates.len()];
        let times = times(&fitting)?;
        for ((number, _), &time) in fitting.iter().zip(&times) {
            measured[*number] = Some(time);
        }
        let fastest = fitting.iter().zip(times).min_by_key(|(_, time)| *time);
        if let Some(((number, fits), _)) = fastest {
            self.keep(*number, fits.prepared, measured);
        }
        Ok(())
    }

    /// The one that the launch takes of those that fit, where any does.
    ///
    /// # Errors
    /// [`Error::InstancesDiffer`].
    pub(crate) fn decide(&self, assessed: &[Assessed]) -> Result<Option<usize>> {
        agreement::check(self.kernel, assessed)?;
        Ok(best(assessed))
    }

    /// What the model says of every candidate.
    pub(crate) fn assess_all(&self, bind: Bind<'_>) -> Vec<Assessed> {
        let assess = |candidate: &Candidate| {
            let other = |(name, value): &(&str, Binding)| {
                let given = self.given.iter().find(|(parameter, _)| parameter == name)?;
                (given.1 != *value).then_some(*given)
            };
            let others: Vec<(&str, Binding)> = candidate.iter().filter_map(other).collect();
            if others.is_empty() {
                return self.assess(candidate, bind);
            }
            let refusal = Refusal::Given(display_bindings(others.into_iter()));
            let instance = display_bindings(candidate.iter().copied());
            Assessed { instance, measured: None, outcome: Err(refusal) }
        };
        let mut assessed: Vec<Assessed> = self.candidates.iter().map(assess).collect();
        let measured = self.known(|known| known.measured.clone()).unwrap_or_default();
        assessed.iter_mut().zip(measured).for_each(|(one, time)| one.measured = time);
        let has_code = |one: &Assessed| matches!(&one.outcome, Ok(fitting) if has_code(self.kernel, fitting, self.device));
        // Without code for any, the launch says how to get it.
        if assessed.iter().any(has_code) {
            for one in &mut assessed {
                if !has_code(one)
                    && let Ok(fitting) = &one.outcome
                {
                    let left_out = left_out(self.kernel, fitting, self.device);
                    one.outcome = Err(left_out.map_or(Refusal::NoCode, Refusal::LeftOut));
                }
            }
        }
        assessed
    }

    /// What the model says of an instance.
    pub(crate) fn assess(&self, bindings: &[(&str, Binding)], bind: Bind<'_>) -> Assessed {
        let instance = display_bindings(bindings.iter().copied());
        let fitting = resolve::instance(self.kernel, bindings, self.layouts).and_then(|prepared| {
            let bound = bind(prepared.abi())?;
            Ok((prepared, bound))
        });
        let outcome = match fitting {
            Err(error) => Err(Refusal::Arguments(error)),
            Ok((prepared, bound)) => predict(self.kernel, prepared, &bound, self.device)
                .map(|prediction| Fitting { prepared, bound, prediction }),
        };
        Assessed { instance, measured: None, outcome }
    }

    /// Made while nothing is locked: it asks for the CPU's threads, which may tell somebody of a variable who launches then.
    fn key(&self) -> Key<'_> {
        Key {
            kernel: std::ptr::from_ref(self.kernel) as usize,
            processor: (self.device.number(), self.device.threads()),
            given: self.given.into(),
            shapes: self.shapes.into(),
            numbers: self.numbers.into(),
            layouts: self.layouts.into(),
            sharing: self.sharing,
        }
    }

    /// The error of a launch that no instance fits: what is wrong with all of them, or with each.
    fn none(&self, assessed: Vec<Assessed>) -> Error {
        let line = |one: &Assessed| {
            one.outcome.as_ref().err().map(|refusal| format!("  {}: {refusal}", one.instance))
        };
        let reasons: Vec<String> = assessed.iter().filter_map(line).collect();
        common_error(assessed).unwrap_or_else(|| Error::NoInstance {
            kernel: self.kernel.name().to_owned(),
            device: self.device.name(),
            reasons: reasons.join("\n"),
        })
    }
}

/// What is wrong with the arguments, if that is the same for all instances. Those of other element types or `bool`s than the
/// launch has don't count.
fn common_error(assessed: Vec<Assessed>) -> Option<Error> {
    let mut common: Option<Error> = None;
    for one in assessed {
        match (one.outcome, &common) {
            (Err(Refusal::Given(_)), _) => {}
            (Err(Refusal::Arguments(error)), None) => common = Some(error),
            (Err(Refusal::Arguments(error)), Some(first)) if error.to_string() == first.to_string() => {}
            _ => return None,
        }
    }
    common
}

/// The instance with the least time, that was measured if any was; of equal ones the first.
fn best(assessed: &[Assessed]) -> Option<usize> {
    let fitting = assessed
        .iter()
        .enumerate()
        .filter_map(|(number, one)| Some((number, one, one.outcome.as_ref().ok()?)));
    let fitting: Vec<(usize, &Assessed, &Fitting)> = fitting.collect();
    let measured = fitting.iter().filter_map(|(number, one, _)| Some((*number, one.measured?)));
    let fastest = measured.min_by_key(|(_, time)| *time).map(|(number, _)| number);
    let predicted = || fitting.iter().min_by(|a, b| a.2.prediction.compare(&b.2.prediction));
    fastest.or_else(|| predicted().map(|(number, ..)| *number))
}

fn has_code(kernel: &KernelDef, fitting: &Fitting, device: &Device) -> bool {
    match &device.0 {
        Kind::Reference => true,
        Kind::Cpu => fitting.prepared.has_cpu_code(kernel),
        Kind::Gpu(context) => fitting.prepared.has_gpu_code(kernel, context),
        Kind::Simulated(_) => true,
    }
}

fn left_out(kernel: &KernelDef, fitting: &Fitting, device: &Device) -> Option<&'static str> {
    match &device.0 {
        Kind::Gpu(context) => fitting.prepared.left_out(kernel, context),
        Kind::Reference | Kind::Cpu | Kind::Simulated(_) => None,
    }
}

fn predict(
    kernel: &KernelDef,
    prepared: &Prepared,
    bound: &LaunchSizes,
    device: &Device,
) -> std::result::Result<Prediction, Refusal> {
    let totals = prepared.counts().total(prepared.abi(), bound);
    let prediction = match &device.0 {
        // The reference runs blocks on the calling thread, and no number says how fast; the order is a processor's.
        Kind::Reference => cost::predict(&totals, None, &Machine::Cpu(machine::cpu(1))),
        Kind::Cpu => cost::predict(&totals, None, &Machine::Cpu(machine::cpu(cpu::threads()))),
        Kind::Gpu(context) => {
            let target = prepared.target(kernel, context).ok_or(Refusal::NoCode)?;
            let plan = prepared.plan(target, bound);
            has_room(&plan, context.description().shared_bytes).and_then(|()| {
                cost::predict(&totals, Some(&plan), &Machine::Gpu(machine::gpu(target, Some(context))))
            })
        }
        Kind::Simulated(gpu) => {
            let plan = prepared.plan(gpu.target(), bound);
            cost::predict(&totals, Some(&plan), &Machine::Gpu(machine::gpu(gpu.target(), None)))
        }
    };
    prediction.map_err(Refusal::NoRoom)
}

/// A GPU runs code of earlier targets, too, some of which have more shared memory for a block.
fn has_room(plan: &Plan, available: u64) -> std::result::Result<(), NoRoom> {
    let needed = plan.shared_bytes;
    if needed > available { Err(NoRoom { needed, available, target: "this GPU" }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Launch, Tensor};
    use std::collections::BTreeMap;

    static COUNT: KernelDef = KernelDef::new(
        "count",
        "\
kernel @count<B>(%counts: mut tensor<1 x i32>, %x: tensor<m x n x f32>, %blocks: index size) grid [ceil_div(blocks, B)] {
  %vx = partition %x [1, B] : partition<m x n x f32, [1, B]>
  %i = block_id axis 0 : index
  %zero = constant 0 : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%zero, %i] pad %pad : tile<1 x B x f32>
  %e = exp %t : tile<1 x B x f32>
  %sum = reduce sum %e axis 1 : tile<1 x 1 x f32>
  %numbers = cast %sum : tile<1 x 1 x i32>
  %flat = reshape %numbers : tile<1 x i32>
  %at = iota 0 : tile<1 x i32>
  %old = atomic add relaxed device %counts[%at], %flat : tile<1 x i32>
}
",
        &[],
    );

    const CANDIDATES: &[Candidate] = &[&[("B", Binding::Const(1))], &[("B", Binding::Const(1024))]];

    fn instance(shape: [usize; 2], blocks: usize) -> String {
        let device = Device::reference();
        let mut counts = Tensor::<i32>::zeros(&device, [1]).unwrap();
        let x = Tensor::<f32>::zeros(&device, shape).unwrap();
        let launch = Launch::choosing(&COUNT, CANDIDATES).tensor_mut("counts", &mut counts).tensor("x", &x);
        let launch = launch.scalar("blocks", blocks);
        let chosen = launch.choices().unwrap().chosen().unwrap().instance.clone();
        assert_eq!(launch.instance().unwrap(), chosen, "what is launched is what is shown");
        chosen
    }

    #[test]
    fn a_choice_goes_by_the_numbers_of_the_grid() {
        for (blocks, expected) in [(1, "B = 1"), (1 << 20, "B = 1024"), (1, "B = 1")] {
            assert_eq!(instance([1, 2048], blocks), expected, "{blocks}");
        }
    }

    const FILL: &str = "kernel @fill<B>(%y: mut tensor<n x f32>) {
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  tiles %vy row_major {
    %one = constant 1.0 : f32
    %t = splat %one : tile<B x f32>
    store_masked %vy, %t
  }
}
";

    /// What a launch takes that was made after another with other tiles is what the model says of it alone.
    #[test]
    fn a_choice_goes_by_how_blocks_share_tiles() {
        static KERNEL: KernelDef = KernelDef::new("fill", FILL, &[]);
        let device = Device::reference();
        let mut y = Tensor::<f32>::zeros(&device, [1 << 20]).unwrap();
        let sharings = [(None, Some(1)), (None, None), (Some(1), None), (Some(1), Some(2)), (None, Some(1))];
        let instances = sharings.map(|(blocks, first_tiles)| {
            let mut launch = Launch::choosing(&KERNEL, CANDIDATES).tensor_mut("y", &mut y);
            launch = blocks.into_iter().fold(launch, Launch::blocks);
            launch = first_tiles.into_iter().fold(launch, Launch::first_tiles);
            let chosen = launch.choices().unwrap().chosen().unwrap().instance.clone();
            assert_eq!(launch.instance().unwrap(), chosen, "{blocks:?}, {first_tiles:?}");
            chosen
        });
        assert_eq!(instances[..2], ["B = 1", "B = 1024"]);
    }

    #[test]
    fn a_model_replaces_nothing_that_was_measured() {
        static KERNEL: KernelDef = KernelDef::new("fill", FILL, &[]);
        let device = Device::reference();
        let query = Query {
            kernel: &KERNEL,
            candidates: CANDIDATES,
            given: &[],
            shapes: &[1, 7],
            numbers: &[],
            layouts: &[],
            sharing: Sharing::default(),
            device: &device,
        };
        let prepared = resolve::instance(&KERNEL, CANDIDATES[1], &[]).unwrap();
        let number = || query.known(|known| (known.number, known.measured.len())).unwrap();
        query.keep(0, prepared, Vec::new());
        query.keep(1, prepared, vec![None, Some(Duration::from_nanos(5))]);
        query.keep(0, prepared, Vec::new());
        assert_eq!(number(), (1, 2));
        query.keep(0, prepared, vec![Some(Duration::from_nanos(4)), None]);
        assert_eq!(number(), (0, 2));
    }

    #[test]
    fn tensors_without_elements_may_be_of_any_extents() {
        for shape in [[0, 1 << 60], [1 << 60, 0]] {
            assert_eq!(instance(shape, 1), "B = 1", "{shape:?}");
        }
    }

    #[test]
    fn code_for_more_shared_memory_than_the_gpu_has_is_no_choice() {
        let plan = |shared_bytes| Plan {
            threads: 128,
            blocks_per_tile: 1,
            shared_bytes,
            shared_available: 166_912,
            registers: 64,
            stages: 2,
            products: BTreeMap::new(),
        };
        assert_eq!(has_room(&plan(101_376), 101_376), Ok(()));
        assert_eq!(
            has_room(&plan(131_072), 101_376).unwrap_err().to_string(),
            "a block needs 131072 bytes of shared memory, and this GPU has 101376"
        );
    }
}
