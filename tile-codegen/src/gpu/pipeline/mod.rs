//! Tiles that are copied to shared memory before they are needed: by a producer, whose [`roles`] and [`ring`] of stages are
//! as [`tile_ir::gpu::Pipelines`] says, or by every thread ([`copies`]); how who copies and who reads wait for each other;
//! and what blocks of a [`cluster`] copy and exchange.

pub(super) mod cluster;
pub(super) mod copies;
pub(super) mod mbarrier;
pub(super) mod named_barriers;
pub(super) mod pairs;
pub(super) mod ring;
pub(super) mod roles;
pub(super) mod tensor_store;
