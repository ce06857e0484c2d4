//! What differs between GPU targets: the few things that they spell differently ([`dialect`]), which instructions they have
//! ([`features`]), those that LLVM has no intrinsic for, which are declarations until the last step ([`declared`],
//! [`rounding`], [`packed`]), and what their code generators need to be told ([`scalars`], [`strides`], [`own_memory`]) or may not know ([`amd_numbers`]).

pub(crate) mod amd_numbers;
pub(super) mod declared;
pub(super) mod dialect;
pub(crate) mod features;
pub(super) mod hsaco;
pub(super) mod own_memory;
pub(super) mod packed;
pub(super) mod rounding;
pub(super) mod scalars;
pub(super) mod strides;
