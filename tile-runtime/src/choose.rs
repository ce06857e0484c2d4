//! Which instance a launch takes that says none: of those that a kernel names, the one that the cost model gives the
//! least time, for the sizes of the tensors and their device.
//!
//! What was chosen is kept for each kernel, processor, element types, `bool`s and shapes, so that a launch like one before
//! looks up a number. Nothing is run to find out, unless a launch is tuned: then the times that were measured decide.

mod agreement;

use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::launch::{Candidate, KernelDef};
use crate::resolve::{self, Prepared, display_bindings};
use crate::{cpu, machine};
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{LazyLock, PoisonError, RwLock};
use std::time::Duration;
use tile_ir::abi::{Bound, KernelAbi};
use tile_ir::cost::{self, Machine, NoRoom, Prediction};
use tile_ir::specialize::Binding;
use tile_ir::view::ArgumentLayout;

/// Binds a launch's arguments to an instance's interface.
pub(crate) type Bind<'b> = &'b dyn Fn(&KernelAbi) -> Result<Bound>;

/// How many choices are kept at most.
const MOST_KNOWN: usize = 1 << 12;

/// What a choice depends on.
pub(crate) struct Query<'q> {
    pub(crate) kernel: &'static KernelDef,
    pub(crate) candidates: &'static [Candidate],
    /// The compile-time parameters that the launch says: element types and `bool`s.
    pub(crate) given: &'q [(&'static str, Binding)],
    pub(crate) shapes: &'q [&'q [usize]],
    /// The tensors that aren't dense and aligned.
    pub(crate) layouts: &'q [(usize, ArgumentLayout)],
    pub(crate) device: &'q Device,
}

/// A choice that was made.
struct Known {
    kernel: usize,
    processor: (usize, usize),
    given: Vec<(&'static str, Binding)>,
    shapes: Vec<Vec<usize>>,
    layouts: Vec<(usize, ArgumentLayout)>,
    number: usize,
    prepared: &'static Prepared,
    /// How long each candidate took, where the launch was tuned.
    measured: Vec<Option<Duration>>,
}

/// The choices of this program, by the hash of what they depend on.
static CHOICES: LazyLock<RwLock<HashMap<u64, Vec<Known>>>> = LazyLock::new(RwLock::default);

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
    pub(crate) bound: Bound,
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
        let Some(number) = best(&assessed) else { return Err(self.none(assessed)) };
        agreement::check(self.kernel, &assessed)?;
        let Ok(fitting) = &assessed[number].outcome else { unreachable!("the best one fits") };
        self.keep(number, fitting.prepared, Vec::new());
        Ok((number, fitting.prepared))
    }

    /// What a choice that was made for such a launch says.
    fn known<R>(&self, say: impl Fn(&Known) -> R) -> Option<R> {
        let choices = CHOICES.read().unwrap_or_else(PoisonError::into_inner);
        let known = choices.get(&self.hash())?.iter().find(|known| self.is_of(known))?;
        Some(say(known))
    }

    /// Keeps what was chosen, in place of what was chosen before.
    fn keep(&self, number: usize, prepared: &'static Prepared, measured: Vec<Option<Duration>>) {
        let mut choices = CHOICES.write().unwrap_or_else(PoisonError::into_inner);
        // A program whose shapes never come again must not keep them all; what was measured isn't found again by a model.
        if choices.len() >= MOST_KNOWN {
            choices.retain(|_, known| {
                known.retain(|known| !known.measured.is_empty());
                !known.is_empty()
            });
        }
        let of_hash = choices.entry(self.hash()).or_default();
        of_hash.retain(|known| !self.is_of(known));
        of_hash.push(Known {
            kernel: self.address(),
            processor: self.processor(),
            given: self.given.to_vec(),
            shapes: self.shapes.iter().map(|shape| shape.to_vec()).collect(),
            layouts: self.layouts.to_vec(),
            number,
            prepared,
            measured,
        });
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

    /// Kernels are told apart by the address of their definition, which is a `static`.
    fn address(&self) -> usize {
        std::ptr::from_ref(self.kernel) as usize
    }

    /// The device, and how many threads run its blocks, which may change.
    fn processor(&self) -> (usize, usize) {
        (self.device.number(), self.device.threads())
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.address(), self.processor(), self.given, self.shapes, self.layouts).hash(&mut hasher);
        hasher.finish()
    }

    fn is_of(&self, known: &Known) -> bool {
        known.kernel == self.address()
            && known.processor == self.processor()
            && known.given == *self.given
            && known.layouts == *self.layouts
            && known.shapes.iter().map(Vec::as_slice).eq(self.shapes.iter().copied())
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
pub(crate) fn best(assessed: &[Assessed]) -> Option<usize> {
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
    bound: &Bound,
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
            cost::predict(&totals, Some(&plan), &Machine::Gpu(machine::gpu(target, Some(context))))
        }
        Kind::Simulated(gpu) => {
            let plan = prepared.plan(gpu.target(), bound);
            cost::predict(&totals, Some(&plan), &Machine::Gpu(machine::gpu(gpu.target(), None)))
        }
    };
    prediction.map_err(Refusal::NoRoom)
}
