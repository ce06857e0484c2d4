//! From a kernel and its parameters to code for a device: what is in memory, else what is embedded, else, with the feature
//! `jit`, what an earlier run has left on disk, else compilation; without it an error that says how to get code.

#[cfg(feature = "jit")]
use crate::compile;
use crate::cpu::Pace;
use crate::embedded::{Embedded, EmbeddedCode};
use crate::error::{Error, Result};
use crate::flight::Flight;
use crate::gpu::{self, GpuCode};
use crate::journal::{self, Origin};
use crate::launch::KernelDef;
use crate::list::List;
use crate::messages::Sites;
use crate::simulated::SimulatedCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use tile_ir::abi::{Argument, Bound, CpuEntry, KernelAbi, Launch};
use tile_ir::cost::Plan;
use tile_ir::counts::Counts;
use tile_ir::specialize::{Binding, Bindings, specialize_for};
use tile_ir::target::{Family, TARGETS};
use tile_ir::tensor_map::TensorMap;
use tile_ir::text::parse_tensor_map;
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
    pub(crate) fn plan(&self, target: &'static TargetDesc, bound: &Bound) -> Arc<Plan> {
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

    /// Whether there is code for this machine's processor, or will be when it is wanted.
    pub(crate) fn has_cpu_code(&self, kernel: &KernelDef) -> bool {
        cfg!(feature = "jit") || self.embedded_cpu(kernel).is_some()
    }

    /// Whether there is code for a GPU, or will be when it is wanted.
    pub(crate) fn has_gpu_code(&self, kernel: &KernelDef, context: &gpu::Context) -> bool {
        cfg!(feature = "jit") || self.embedded(kernel).any(|embedded| context.rank(embedded.target).is_some())
    }

    /// The latest target with code for a GPU, or, without any, that the GPU runs; `None` for one older than all.
    pub(crate) fn target(&self, kernel: &KernelDef, context: &gpu::Context) -> Option<&'static TargetDesc> {
        let latest = |names: &mut dyn Iterator<Item = &'static str>| {
            let ranked = names.filter_map(|name| Some((context.rank(name)?, name)));
            let (_, name) = ranked.max_by_key(|&(rank, _)| rank)?;
            TargetDesc::named(name).ok()
        };
        let known = || latest(&mut TARGETS.iter().map(|target| target.name));
        latest(&mut self.embedded(kernel).map(|embedded| embedded.target)).or_else(known)
    }

    /// What the kernel may print and assert.
    pub(crate) fn sites(&self) -> &Sites {
        &self.sites
    }

    /// How long the CPU takes for a tile.
    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Native code. Concurrent first launches wait for one compilation.
    pub(crate) fn cpu(&self, kernel: &KernelDef) -> Result<&CpuCode> {
        self.cpu.get_or_make(|| {
            let (start, search) = (Instant::now(), journal::search(&self.instance, "cpu", Variant::General));
            let _within = search.enter();
            let embedded = self.embedded_cpu(kernel);
            embedded
                .inspect(|_| journal::found(Origin::Embedded, start.elapsed(), None))
                .map_or_else(|| self.compile_cpu(kernel), Ok)
        })
    }

    /// The embedded code of the instance: there is none for arguments that aren't dense.
    fn embedded<'k>(&self, kernel: &'k KernelDef) -> impl Iterator<Item = &'k Embedded> {
        self.noted(kernel).filter(|embedded| !matches!(embedded.code, EmbeddedCode::LeftOut(_)))
    }

    /// Why the build script has left the instance out for a GPU that runs code of that target, if it has, and there is none
    /// of another.
    pub(crate) fn left_out(&self, kernel: &KernelDef, context: &gpu::Context) -> Option<&'static str> {
        let ranked =
            self.noted(kernel).filter_map(|embedded| Some((context.rank(embedded.target)?, embedded)));
        let reason = |embedded: &Embedded| match embedded.code {
            EmbeddedCode::LeftOut(reason) => Some(reason),
            _ => None,
        };
        let all: Option<Vec<_>> = ranked.map(|(rank, embedded)| Some((rank, reason(embedded)?))).collect();
        all?.into_iter().max_by_key(|&(rank, _)| rank).map(|(_, reason)| reason)
    }

    /// What the build script says of the instance.
    fn noted<'k>(&self, kernel: &'k KernelDef) -> impl Iterator<Item = &'k Embedded> {
        let (bindings, is_dense) = (self.instance.bindings().clone(), self.layouts.is_empty());
        kernel.embedded().iter().filter(move |embedded| {
            is_dense
                && embedded.bindings.len() == bindings.len()
                && embedded.bindings.iter().zip(&bindings).all(|(a, b)| a.0 == b.0 && a.1 == b.1)
        })
    }

    fn embedded_cpu(&self, kernel: &KernelDef) -> Option<CpuCode> {
        crate::cpu::levels::usable().find_map(|best| {
            self.embedded(kernel).find_map(|embedded| match embedded.code {
                EmbeddedCode::Cpu { level, entry } if level == best.name => {
                    Some(CpuCode { entry, launch: embedded.launch })
                }
                _ => None,
            })
        })
    }

    #[cfg(feature = "jit")]
    fn compile_cpu(&self, _: &KernelDef) -> Result<CpuCode> {
        let code = compile::cpu(&self.instance)?;
        Ok(CpuCode { entry: code.entry(), launch: code.launch() })
    }

    #[cfg(not(feature = "jit"))]
    fn compile_cpu(&self, kernel: &KernelDef) -> Result<CpuCode> {
        Err(self.missing(kernel, "cpu"))
    }

    /// Code for a GPU, for a launch of these sizes. Concurrent first launches wait for one compilation.
    pub(crate) fn gpu(
        &'static self,
        kernel: &KernelDef,
        bound: &Bound,
        context: &gpu::Context,
    ) -> Result<&'static GpuCode> {
        let fitting = self.variants(context.family()).fitting(&self.abi, bound);
        let mut fitting = fitting.filter(|&variant| context.takes(variant));
        let variant = fitting.next().unwrap_or(Variant::General);
        let device = context.number();
        let is = |code: &OnGpu| (code.device, code.variant) == (device, variant);
        let new = || OnGpu { device, variant, code: Flight::new() };
        self.gpu.find_or_add(is, new).code.get_or_make(|| {
            let search = journal::search(&self.instance, &context.description().name, variant);
            let (start, _within) = (Instant::now(), search.enter());
            let fitting: Vec<Variant> = std::iter::once(variant).chain(fitting).collect();
            // Not every target has every variant.
            let embedded = fitting.iter().find_map(|&variant| self.embedded_gpu(kernel, variant, context));
            embedded
                .inspect(|_| journal::found(Origin::Embedded, start.elapsed(), None))
                .unwrap_or_else(|| self.compile_gpu(kernel, &fitting, context))
        })
    }

    /// Code for a GPU that is simulated, for a launch of these sizes.
    pub(crate) fn simulated(
        &'static self,
        bound: &Bound,
        target: &'static TargetDesc,
    ) -> Result<&'static SimulatedCode> {
        let own = Variant::of_target(target);
        let fitting = self.variants(target.family).fitting(&self.abi, bound);
        let (variant, instance) =
            Variant::first_of(fitting.filter(|variant| own.contains(variant)), &self.instance);
        let is = |code: &OnSimulated| (code.target, code.variant) == (target.name, variant);
        let new = || OnSimulated { target: target.name, variant, code: Flight::new() };
        let known = self.simulated.find_or_add(is, new);
        known.code.get_or_make(|| SimulatedCode::compile(&instance, target))
    }

    /// The embedded code of a variant for the latest target that the GPU runs.
    fn embedded_gpu(
        &self,
        kernel: &KernelDef,
        variant: Variant,
        context: &gpu::Context,
    ) -> Option<Result<GpuCode>> {
        let of_variant = self.embedded(kernel).filter(|embedded| embedded.variant == variant);
        let ranked = of_variant.filter_map(|embedded| Some((context.rank(embedded.target)?, embedded)));
        let (_, latest) = ranked.max_by_key(|&(rank, _)| rank)?;
        let images = match latest.code {
            EmbeddedCode::Ptx { text, cubin } => cubin.into_iter().chain([text.as_bytes()]).collect(),
            EmbeddedCode::Hsaco(image) => std::iter::once(image).collect(),
            EmbeddedCode::Cpu { .. } | EmbeddedCode::LeftOut(_) => return None,
        };
        let (symbol, launch) = (latest.symbol.to_owned(), latest.launch);
        let tensor_maps = tensor_maps(kernel.name(), latest.tensor_maps);
        Some(tensor_maps.map(|tensor_maps| GpuCode { images, symbol, launch, tensor_maps }))
    }

    #[cfg(feature = "jit")]
    fn compile_gpu(
        &self,
        kernel: &KernelDef,
        fitting: &[Variant],
        context: &gpu::Context,
    ) -> Result<GpuCode> {
        let ranked = TARGETS.iter().filter_map(|target| Some((context.rank(target.name)?, target)));
        let latest = ranked.max_by_key(|&(rank, _)| rank);
        let (_, target) = latest.ok_or_else(|| self.missing(kernel, &context.description().name))?;
        let variants = fitting.iter().copied().filter(|variant| Variant::of_target(target).contains(variant));
        let (_, instance) = Variant::first_of(variants, &self.instance);
        let artifact = compile::artifact(&instance, target)?;
        // Compiled once per instance and GPU, for as long as the process lives.
        let image: &'static [u8] = match artifact.code {
            tile_codegen::Code::Ptx(text) => text.leak().as_bytes(),
            tile_codegen::Code::Hsaco(image) => image.leak(),
            tile_codegen::Code::Object(_) => return Err(self.missing(kernel, target.name)),
        };
        Ok(GpuCode {
            images: std::iter::once(image).collect(),
            symbol: artifact.symbol,
            launch: artifact.launch,
            tensor_maps: artifact.tensor_maps.into(),
        })
    }

    #[cfg(not(feature = "jit"))]
    fn compile_gpu(&self, kernel: &KernelDef, _: &[Variant], context: &gpu::Context) -> Result<GpuCode> {
        if let Some(reason) = self.left_out(kernel, context) {
            return Err(Error::LeftOut {
                bindings: self.parameters(),
                target: context.description().name.clone(),
                reason: reason.to_owned(),
            });
        }
        Err(self.missing(kernel, &context.description().name))
    }

    #[cfg_attr(
        feature = "jit",
        allow(dead_code, reason = "with a compiler, only a GPU older than every target lacks code")
    )]
    fn missing(&self, kernel: &KernelDef, target: &str) -> Error {
        if let Some((number, layout)) = self.layouts.first() {
            return Error::EmbeddedPlace {
                kernel: kernel.name().to_owned(),
                argument: self.abi.arguments.get(*number).map_or("", Argument::name).to_owned(),
                problem: layout.describe(),
            };
        }
        let bindings = self.parameters();
        let code = kernel.embedded().iter().filter(|held| !matches!(held.code, EmbeddedCode::LeftOut(_)));
        let held: Vec<(&str, String)> =
            code.map(|held| (held.target, display_bindings(held.bindings.iter().copied()))).collect();
        let text = |(target, held): &(&str, String)| match held.as_str() {
            "" => (*target).to_owned(),
            held => format!("{target} ({held})"),
        };
        let mut texts: Vec<String> = held.iter().map(text).collect();
        texts.dedup();
        let embedded = match texts.as_slice() {
            [] => "this executable has no code for it".to_owned(),
            texts => format!("this executable has it for {}", texts.join(", ")),
        };
        let is_elsewhere = held.iter().any(|(_, held)| *held == bindings);
        let remedy = remedy(target, &bindings, is_elsewhere);
        Error::MissingInstance {
            kernel: kernel.name().to_owned(),
            bindings,
            target: target.to_owned(),
            embedded,
            remedy,
        }
    }
}

/// How to have code of an instance embedded, which the executable has for another target, or not at all.
fn remedy(target: &str, bindings: &str, is_elsewhere: bool) -> String {
    if is_elsewhere {
        return format!("Add {target} to the targets of build.rs");
    }
    let named = if bindings.is_empty() { String::new() } else { format!(" with `instances({bindings})`") };
    format!(
        "A build script compiles every `#[tile_kernel]`{named} for the targets that it names, but those that another \
         macro makes, and those that it warns of: add what is missing"
    )
}

/// The tensor maps of embedded code.
fn tensor_maps(kernel: &str, texts: &[&str]) -> Result<Arc<[TensorMap]>> {
    let damaged =
        |error| Error::Ir { kernel: kernel.to_owned(), problem: Box::new(tile_ir::Error::Parse(error)) };
    texts.iter().map(|text| parse_tensor_map(text).map_err(damaged)).collect()
}

/// What the parameters of an instance are bound to,
/// and how arguments lie that aren't dense: `B = 16, x strided [1, x.stride_1]`.
pub(crate) fn display_parameters(instance: &Instance) -> String {
    let parameters =
        display_bindings(instance.bindings().iter().map(|(name, value)| (name.as_str(), *value)));
    let laid_out = instance.tensors().filter_map(|(param, tensor)| {
        let name = instance.value(param).name.as_deref()?;
        Some(format!("{name} {}", tensor.layout.as_deref()?))
    });
    let parameters = (!parameters.is_empty()).then_some(parameters).into_iter();
    parameters.chain(laid_out).collect::<Vec<_>>().join(", ")
}

/// `BM = 128, T = f32`.
pub(crate) fn display_bindings<'b>(bindings: impl Iterator<Item = (&'b str, Binding)>) -> String {
    let texts: Vec<String> = bindings.map(|(name, value)| format!("{name} = {value}")).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::tensor_map::{MapAxis, Swizzle};
    use tile_ir::{DType, Dim};

    #[cfg(feature = "jit")]
    #[test]
    fn a_launch_that_is_warmed_has_its_code_and_has_not_run() {
        use crate::{Device, Launch, Tensor};
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

    #[test]
    fn embedded_tensor_maps_are_read() {
        let text = "argument 2 : f32 offset 0 [n stride 1 tile 32] swizzle 128";
        let axes = vec![MapAxis { extent: Dim::size("n"), stride: Dim::from(1), tile: 32 }];
        let swizzle = Swizzle::Bytes128;
        let map = TensorMap { argument: 2, elem: DType::F32, offset: Dim::from(0), axes, swizzle };
        assert_eq!(*tensor_maps("k", &[text, text]).unwrap(), [map.clone(), map]);
        assert!(tensor_maps("k", &[]).unwrap().is_empty());
        assert_eq!(
            tensor_maps("k", &["argument 2"]).unwrap_err().to_string(),
            "the IR of kernel `k` in this executable is damaged (1:11: expected `:`, found the end of the text); \
             rebuild the program"
        );
    }
}
