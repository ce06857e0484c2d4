//! One binary for all tests that need LLVM, so that it links once.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

/// For LLVM as for the tests themselves: its library finds this allocator's functions under the names of C.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "targets/emulated/mod.rs"]
mod emulated;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[path = "targets/faulting.rs"]
mod faulting;
#[path = "targets/fenced.rs"]
mod fenced;
#[path = "targets/recent.rs"]
mod recent;
#[path = "targets/support.rs"]
mod support;

#[path = "targets/accuracy.rs"]
mod accuracy;
#[path = "targets/amd.rs"]
mod amd;
#[path = "targets/atomics.rs"]
mod atomics;
#[path = "targets/batches.rs"]
mod batches;
#[path = "targets/beside_tensors.rs"]
mod beside_tensors;
#[path = "targets/brought_factors.rs"]
mod brought_factors;
#[path = "targets/budgets.rs"]
mod budgets;
#[path = "targets/cases.rs"]
mod cases;
#[path = "targets/closeness.rs"]
mod closeness;
#[path = "targets/conflicts.rs"]
mod conflicts;
#[path = "targets/contract.rs"]
mod contract;
#[path = "targets/control.rs"]
mod control;
#[path = "targets/copies.rs"]
mod copies;
#[path = "targets/cpu.rs"]
mod cpu;
#[path = "targets/deadline.rs"]
mod deadline;
#[path = "targets/deep.rs"]
mod deep;
#[path = "targets/degenerate.rs"]
mod degenerate;
#[path = "targets/derivatives.rs"]
mod derivatives;
#[path = "targets/edges.rs"]
mod edges;
#[path = "targets/eight_bits.rs"]
mod eight_bits;
#[path = "targets/empty.rs"]
mod empty;
#[path = "targets/exits.rs"]
mod exits;
#[path = "targets/extents.rs"]
mod extents;
#[path = "targets/factors_of_products.rs"]
mod factors_of_products;
#[path = "targets/faults.rs"]
mod faults;
#[path = "targets/float8.rs"]
mod float8;
#[path = "targets/gathered_factors.rs"]
mod gathered_factors;
#[path = "targets/gathers.rs"]
mod gathers;
#[path = "targets/golden/mod.rs"]
mod golden;
#[path = "targets/gpu.rs"]
mod gpu;
#[path = "targets/hints.rs"]
mod hints;
#[path = "targets/instructions.rs"]
mod instructions;
#[path = "targets/kernels.rs"]
mod kernels;
#[path = "targets/leaf.rs"]
mod leaf;
#[path = "targets/lines.rs"]
mod lines;
#[path = "targets/messages.rs"]
mod messages;
#[path = "targets/metadata.rs"]
mod metadata;
#[path = "targets/movement.rs"]
mod movement;
#[path = "targets/pipelines.rs"]
mod pipelines;
#[path = "targets/prefetch.rs"]
mod prefetch;
#[path = "targets/products.rs"]
mod products;
#[path = "targets/products_beside.rs"]
mod products_beside;
#[path = "targets/products_kept.rs"]
mod products_kept;
#[path = "targets/products_within.rs"]
mod products_within;
#[path = "targets/random/mod.rs"]
mod random;
#[path = "targets/remarks.rs"]
mod remarks;
#[path = "targets/rows.rs"]
mod rows;
#[path = "targets/rows_left.rs"]
mod rows_left;
#[path = "targets/scaled.rs"]
mod scaled;
#[path = "targets/scatters.rs"]
mod scatters;
#[path = "targets/schedules.rs"]
mod schedules;
#[path = "targets/scratch.rs"]
mod scratch;
#[path = "targets/several.rs"]
mod several;
#[path = "targets/shapes.rs"]
mod shapes;
#[path = "targets/sharing.rs"]
mod sharing;
#[path = "targets/sharing_blocks.rs"]
mod sharing_blocks;
#[path = "targets/simt.rs"]
mod simt;
#[path = "targets/sorts.rs"]
mod sorts;
#[path = "targets/spanning.rs"]
mod spanning;
#[path = "targets/stacks.rs"]
mod stacks;
#[path = "targets/strided.rs"]
mod strided;
#[path = "targets/tensor_memory.rs"]
mod tensor_memory;
#[path = "targets/views.rs"]
mod views;
#[path = "targets/whole_loops.rs"]
mod whole_loops;
