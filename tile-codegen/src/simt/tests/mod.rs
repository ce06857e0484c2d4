//! The executor is held against kernels that are right and against the same with something wrong: those of the emitter
//! ([`removed`]), and hand-written ones for every instruction ([`harness`]).

mod barriers;
mod buffers;
mod clusters;
mod copies;
mod costs;
mod exits;
mod harness;
mod lanes;
mod masks;
mod matrices;
mod mutations;
mod orders;
mod pairs;
mod pipelines;
mod refusals;
mod removed;
mod rows;
mod scaled_matrices;
mod scatters;
mod shuffles;
mod tcgen05;
mod tensor_memory;
mod tensors;
mod waiting;
mod wgmma;
