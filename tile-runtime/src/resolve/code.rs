//! The search for an instance's code: embedded, else kept on disk or compiled with the feature `jit`.

use super::{CpuCode, OnGpu, OnSimulated, Prepared};
#[cfg(feature = "jit")]
use crate::compile;
use crate::embedded::{Embedded, EmbeddedCode};
use crate::error::{Error, Result};
use crate::flight::Flight;
use crate::gpu::{self, GpuCode};
use crate::journal::{self, Origin};
use crate::launch::KernelDef;
use crate::simulated::{PREFIX, SimulatedCode};
use std::sync::Arc;
use std::time::Instant;
use tile_ir::abi::LaunchSizes;
use tile_ir::tensor_map::TensorMap;
use tile_ir::text::parse_tensor_map;
use tile_ir::{TargetDesc, Variant};

impl Prepared {
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
        let embedded = context.best_of(self.embedded(kernel), |embedded| embedded.target);
        let of_code = embedded.and_then(|embedded| TargetDesc::named(embedded.target).ok());
        of_code.or_else(|| context.target())
    }

    /// That target's name, as build scripts say it; the GPU's own where it runs no target's code.
    fn target_name<'c>(&self, kernel: &KernelDef, context: &'c gpu::Context) -> &'c str {
        self.target(kernel, context).map_or(&context.description().name, |target| target.name)
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
        bound: &LaunchSizes,
        context: &gpu::Context,
    ) -> Result<&'static GpuCode> {
        let fitting = self.variants(context.family()).fitting(&self.abi, bound);
        let mut fitting = fitting.filter(|&variant| context.takes(variant));
        let variant = fitting.next().unwrap_or(Variant::General);
        let device = context.number();
        let is = |code: &OnGpu| (code.device, code.variant) == (device, variant);
        let new = || OnGpu { device, variant, code: Flight::new() };
        self.gpu.find_or_add(is, new).code.get_or_make(|| {
            let search = journal::search(&self.instance, self.target_name(kernel, context), variant);
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
        bound: &LaunchSizes,
        target: &'static TargetDesc,
    ) -> Result<&'static SimulatedCode> {
        let own = Variant::of_target(target);
        let fitting = self.variants(target.family).fitting(&self.abi, bound);
        let (variant, instance) =
            Variant::first_of(fitting.filter(|variant| own.contains(variant)), &self.instance);
        let is = |code: &OnSimulated| (code.target, code.variant) == (target.name, variant);
        let new = || OnSimulated { target: target.name, variant, code: Flight::new() };
        self.simulated.find_or_add(is, new).code.get_or_make(|| {
            let search = journal::search(&self.instance, &format!("{PREFIX}{}", target.name), variant);
            let (start, _within) = (Instant::now(), search.enter());
            let code = SimulatedCode::compile(&instance, target)?;
            journal::found(Origin::Compiled, start.elapsed(), None);
            #[cfg(feature = "jit")]
            journal::remarks(&instance, target);
            Ok(code)
        })
    }

    /// The embedded code of a variant for the latest target that the GPU runs.
    fn embedded_gpu(
        &self,
        kernel: &KernelDef,
        variant: Variant,
        context: &gpu::Context,
    ) -> Option<Result<GpuCode>> {
        let of_variant = self.embedded(kernel).filter(|embedded| embedded.variant == variant);
        let latest = context.best_of(of_variant, |embedded| embedded.target)?;
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
        let target =
            context.target().ok_or_else(|| self.missing(kernel, self.target_name(kernel, context)))?;
        let variants = fitting.iter().copied().filter(|variant| Variant::of_target(target).contains(variant));
        let (_, instance) = Variant::first_of(variants, &self.instance);
        let artifact = compile::artifact(&instance, target)?;
        journal::remarks(&instance, target);
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
                target: self.target_name(kernel, context).to_owned(),
                reason: reason.to_owned(),
            });
        }
        Err(self.missing(kernel, self.target_name(kernel, context)))
    }
}

/// The tensor maps of embedded code.
fn tensor_maps(kernel: &str, texts: &[&str]) -> Result<Arc<[TensorMap]>> {
    let damaged =
        |error| Error::Ir { kernel: kernel.to_owned(), problem: Box::new(tile_ir::Error::Parse(error)) };
    texts.iter().map(|text| parse_tensor_map(text).map_err(damaged)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::tensor_map::{MapAxis, Swizzle};
    use tile_ir::{DType, Dim};

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
