//! From a kernel and its parameters to code for a device: what is in memory, else what is embedded, else, with the feature
//! `jit`, what an earlier run has left on disk, else compilation; without it an error that says how to get code. Here is
//! what is kept of an instance; [`code`] looks for its code, [`describe`] says what it is, and how to get code where there
//! is none.

mod code;
mod describe;

pub(crate) use describe::{display_bindings, display_parameters};

use crate::cpu::Pace;
use crate::error::{Error, Result};
use crate::flight::Flight;
use crate::gpu::{GpuCode, MOST_PITCH};
use crate::launch::KernelDef;
use crate::list::List;
use crate::messages::Sites;
use crate::simulated::SimulatedCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tile_ir::abi::{CpuEntry, KernelAbi, Launch, LaunchSizes};
use tile_ir::cost::Plan;
use tile_ir::counts::Counts;
use tile_ir::padding::{Padded, Padding};
use tile_ir::specialize::{Binding, Bindings, specialize_for};
use tile_ir::target::{Family, TARGETS};
use tile_ir::view::ArgumentLayout;
use tile_ir::{Instance, TargetDesc, Variant, Variants};

/// An instance of a kernel that was launched before, with the code found for it.
pub(crate) struct Prepared {
    instance: Instance,
    /// The arguments that aren't dense and aligned.
    layouts: Box<[(usize, ArgumentLayout)]>,
    abi: KernelAbi,
    sites: Sites,
    /// Of NVIDIA's GPUs and of AMD's.
    variants: [OnceLock<Variants>; 2],
    cpu: Flight<CpuCode, Error>,
    pace: Pace,
    gpu: List<OnGpu>,
    simulated: List<OnSimulated>,
    counts: OnceLock<Counts>,
    padding: OnceLock<Padding>,
    plans: Mutex<HashMap<(&'static str, Variant), Arc<Plan>>>,
}

/// Native code.
#[derive(Clone, Copy)]
pub(crate) struct CpuCode {
    pub(crate) entry: CpuEntry,
    pub(crate) launch: Launch,
}

/// An instance's code for a GPU, for launches whose sizes a variant fits.
struct OnGpu {
    device: usize,
    variant: Variant,
    code: Flight<GpuCode, Error>,
}

/// An instance's code for a GPU that is simulated, for launches whose sizes a variant fits.
struct OnSimulated {
    target: &'static str,
    variant: Variant,
    code: Flight<SimulatedCode, Error>,
}

/// The instance of a kernel with these parameters, in any order, for arguments that lie so.
pub(crate) fn instance(
    kernel: &'static KernelDef,
    bindings: &[(&str, Binding)],
    layouts: &[(usize, ArgumentLayout)],
) -> Result<&'static Prepared> {
    let is_given = |(name, value): &(String, Binding)| {
        bindings.iter().any(|(given, binding)| given == name && binding == value)
    };
    let is = |prepared: &&Prepared| {
        prepared.bindings().len() == bindings.len()
            && *prepared.layouts == *layouts
            && prepared.bindings().iter().all(is_given)
    };
    if let Some(known) = kernel.instances.iter().find(is) {
        return Ok(known);
    }
    // Threads that ask for a new one at once each specialise it, in a millisecond or less, and one is kept.
    let bindings: Bindings = bindings.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let instance = specialize_for(kernel.kernel()?, &bindings, layouts)?;
    let bindings = instance.bindings().clone();
    let same = |prepared: &Prepared| *prepared.bindings() == bindings && *prepared.layouts == *layouts;
    Ok(kernel.instances.find_or_add(same, || Prepared::new(instance, layouts)))
}

impl Prepared {
    fn new(instance: Instance, layouts: &[(usize, ArgumentLayout)]) -> Prepared {
        Prepared {
            layouts: layouts.into(),
            abi: KernelAbi::of(&instance),
            sites: Sites::of(&instance),
            instance,
            variants: Default::default(),
            cpu: Flight::new(),
            pace: Pace::new(),
            gpu: List::new(),
            simulated: List::new(),
            counts: OnceLock::new(),
            padding: OnceLock::new(),
            plans: Mutex::default(),
        }
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    pub(crate) fn abi(&self) -> &KernelAbi {
        &self.abi
    }

    /// What the parameters are bound to.
    pub(crate) fn bindings(&self) -> &Bindings {
        self.instance.bindings()
    }

    /// What the parameters are bound to, as people read it.
    pub(crate) fn parameters(&self) -> String {
        display_parameters(&self.instance)
    }

    /// How much the kernel does.
    pub(crate) fn counts(&self) -> &Counts {
        self.counts.get_or_init(|| Counts::of(&self.instance))
    }

    /// The launch on copies with aligned rows in place of another, where that pays on a GPU of a family.
    pub(crate) fn padded(&self, family: Family, bound: &LaunchSizes) -> Option<Padded> {
        // AMD's buffer instructions read rows that begin anywhere as fast.
        let padding = || Padding::of(&self.instance, &self.abi);
        let padded = (family == Family::Nvptx)
            .then(|| self.padding.get_or_init(padding).of_launch(&self.abi, bound))
            .flatten()?;
        padded.tensors.iter().all(|tensor| tensor.padded_bytes <= MOST_PITCH).then_some(padded)
    }

    /// The variants for the GPUs of a family that have most of them, looked for when the first GPU asks.
    fn variants(&self, family: Family) -> &Variants {
        self.variants[usize::from(family == Family::Amdgpu)].get_or_init(|| {
            let gpus = TARGETS.iter().filter(|target| target.family == family);
            let target = gpus
                .max_by_key(|target| Variant::of_target(target).len())
                .expect("every family of GPUs has targets");
            Variants::of(&self.instance, &self.abi, target)
        })
    }

    /// How a block is scheduled for a GPU, for a launch of these sizes.
    pub(crate) fn plan(&self, target: &'static TargetDesc, bound: &LaunchSizes) -> Arc<Plan> {
        let own = Variant::of_target(target);
        let variant =
            self.variants(target.family).fitting(&self.abi, bound).find(|variant| own.contains(variant));
        let variant = variant.unwrap_or(Variant::General);
        let mut known = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = known.entry((target.name, variant)).or_insert_with(|| {
            let instance = variant.of(&self.instance);
            Arc::new(Plan::of(instance.as_ref().unwrap_or(&self.instance), target))
        });
        Arc::clone(plan)
    }

    /// What the kernel may print and assert.
    pub(crate) fn sites(&self) -> &Sites {
        &self.sites
    }

    /// How long the CPU takes for a tile.
    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }
}

#[cfg(all(test, feature = "jit"))]
mod tests {
    use super::*;
    use crate::{Device, Launch, Tensor};

    #[test]
    fn a_launch_that_is_warmed_has_its_code_and_has_not_run() {
        static KERNEL: KernelDef = KernelDef::new(
            "fill",
            "kernel @fill<B>(%y: mut tensor<n x f32>) {\n  %v = partition %y [B] : mut partition<n x f32, [B]>\n  \
             %0 = constant 1.0 : f32\n  %t = splat %0 : tile<B x f32>\n  store_masked %v, %t\n}\n",
            &[],
        );
        let device = Device::cpu();
        let mut y = Tensor::<f32>::zeros(&device, [9]).unwrap();
        Launch::new(&KERNEL).constant("B", 4).tensor_mut("y", &mut y).warm().unwrap();
        let has_code = |tile| {
            let bindings = [("B", Binding::Const(tile))];
            instance(&KERNEL, &bindings, &[]).unwrap().cpu.get().is_some()
        };
        assert!(has_code(4) && !has_code(8));
        assert_eq!(y.to_vec().unwrap(), [0.0; 9]);
        Launch::new(&KERNEL).constant("B", 4).tensor_mut("y", &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0; 9]);
        let wrong = Launch::new(&KERNEL).constant("B", 4).tensor_mut("x", &mut y).warm();
        assert!(matches!(wrong, Err(ref error) if matches!(error.reason(), Error::Launch { .. })));
    }
}
