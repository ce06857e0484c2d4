//! What each instruction does, by the name that it has in LLVM. What isn't found here is refused when a kernel is
//! compiled for the executor.
//!
//! Written from the vendors' manuals alone: it is the second opinion on what the emitter believes of them.

mod barriers;
mod buffers;
mod copies;
mod float8;
mod floats;
mod hints;
mod integers;
mod lanes;
mod mbarriers;
mod scatters;
mod shuffle;
mod tensors;

pub(super) use buffers::Resource;

use super::host_module::Gpu;
use super::instruction::Operation;
use super::matrix;

/// The operation of this name on this GPU: an intrinsic, a declaration of [`crate::gpu`], or the text of assembly.
pub(super) fn find(name: &str, gpu: Gpu) -> Option<Operation> {
    if let Some(name) = name.strip_prefix("llvm.nvvm.") {
        let families: [fn(&str) -> Option<Operation>; 12] = [
            hints::nvidia,
            floats::nvidia,
            float8::nvidia,
            integers::nvidia,
            barriers::nvidia,
            shuffle::find,
            matrix::nvidia::find,
            copies::find,
            mbarriers::find,
            tensors::find,
            matrix::wgmma::find_intrinsic,
            matrix::tcgen05::find_intrinsic,
        ];
        return families.iter().find_map(|find| find(name));
    }
    if let Some(name) = name.strip_prefix("llvm.amdgcn.") {
        let families: [fn(&str) -> Option<Operation>; 3] = [hints::amd, floats::amd, barriers::amd];
        let of_gpus: [fn(&str, Gpu) -> Option<Operation>; 4] =
            [buffers::find, lanes::find, matrix::amd::find, float8::amd];
        let found = families.iter().find_map(|find| find(name));
        return found.or_else(|| of_gpus.iter().find_map(|find| find(name, gpu)));
    }
    let families: [fn(&str) -> Option<Operation>; 6] = [
        hints::declared,
        floats::declared,
        scatters::declared,
        mbarriers::declared,
        matrix::wgmma::find,
        matrix::tcgen05::find,
    ];
    families.iter().find_map(|find| find(name))
}

/// Whether a name is that of an intrinsic, with or without the types that it is made for.
fn is(name: &str, intrinsic: &str) -> bool {
    name.strip_prefix(intrinsic).is_some_and(|types| {
        let of_type = |part: &str| {
            part.starts_with(['i', 'f', 'p', 'v', 'b']) && part.ends_with(|c: char| c.is_ascii_digit())
        };
        types.is_empty() || types.strip_prefix('.').is_some_and(|types| types.split('.').all(of_type))
    })
}
