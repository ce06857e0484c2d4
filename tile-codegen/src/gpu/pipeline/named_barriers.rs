//! The numbers of a block's barriers at which a part of its threads meets (PTX ISA, "barrier{.cta}"). That of all threads has
//! number 0 ([`crate::gpu::targets::dialect`]).

use tile_ir::gpu::pipeline::MOST_CONSUMERS;

/// The barrier of all consumers.
pub(in crate::gpu) const CONSUMERS: u64 = 1;

/// The first warpgroup's barrier of those at which a warpgroup meets while it stores panels; the others' follow it.
pub(in crate::gpu) const STORES: u64 = CONSUMERS + 1;

/// The first warpgroup's barrier of those at which warpgroups wait for their turn to issue products; the others' follow it.
pub(in crate::gpu) const TURNS: u64 = STORES + MOST_CONSUMERS;
