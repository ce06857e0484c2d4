//! GPU kernels run on the host, thread by thread, to prove the generated code without a GPU.
//!
//! The very emitter that writes PTX and HSACO writes the kernel for one more dialect, in which the thread's
//! number is an argument and a barrier is a call. Each GPU thread is a thread of the host, but they take
//! turns: one runs until it reaches a barrier or its end, then the next, in a fixed order. So a run is
//! reproducible. Every access to shared memory is checked against a shadow of it: a read of bytes that were
//! never written, or a read or write of bytes that another thread wrote or read since the last barrier, is
//! an error, whatever values came out of it.
//!
//! What isn't proved: instruction selection, registers, and the memory model of the devices.

use super::dialect::{Dialect, Entry, Resources, SHARED_ALIGNMENT, ScopeName};
use super::distribution::Distribution;
use super::shared::SharedPlan;
use crate::emit::{Features, Ir, Shared, Value};
use crate::error::Error;
use crate::llvm::Machine;
use crate::options::CpuLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::values::{FunctionValue, PointerValue};
use inkwell::{AddressSpace, OptimizationLevel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tile_ir::abi::{Argument, KernelAbi};
use tile_ir::ops::Scope;
use tile_ir::{Instance, TargetDesc, passes};

/// The entry: slots as [`tile_ir::abi`] has them, thread, block, shared memory, and the [`Block`] that runs.
type ThreadEntry = unsafe extern "C" fn(*const u64, u32, u64, *mut u8, *const Block);

/// A GPU kernel in this process.
pub struct SimtKernel {
    entry: ThreadEntry,
    threads: u32,
    shared_bytes: usize,
}

const SYMBOL: &str = "tile_simt_kernel";
const BARRIER: &str = "tile_simt_barrier";
const ACCESS: &str = "tile_simt_access";

/// Compiles an instance as for `target`, but for blocks of `threads` threads if that is given.
///
/// # Errors
/// As [`crate::compile`].
///
/// # Panics
/// If `threads` isn't a power of two.
pub fn compile(instance: &Instance, target: &TargetDesc, threads: Option<u32>) -> Result<SimtKernel, Error> {
    let instance = passes::optimize(instance.clone());
    let mut distribution = Distribution::of(&instance, target);
    distribution.check(&instance, target)?;
    if let Some(threads) = threads {
        assert!(threads.is_power_of_two(), "a block has a power of two of threads");
        distribution.threads = u64::from(threads);
    }
    let plan = SharedPlan::of(&instance, distribution, target)?;
    let machine = Machine::host(CpuLevel::Host)?;
    // The code lives as long as the process, as that of `jit` does.
    let context: &'static Context = Box::leak(Box::new(Context::create()));
    // Conversions and fused operations without instructions would be library calls.
    let features = Features { half_conversion: machine.has("f16c"), fma: machine.has("fma") };
    let ir = Ir::new(context, &instance.name, features);
    machine.prepare(&ir.module);
    let (barrier, access) = declare_runtime(&ir);
    super::emit(&ir, &instance, &Host { machine: &machine }, SYMBOL, distribution, &plan);
    let refused = |message: String| Error::Llvm { kernel: instance.name.clone(), message };
    ir.module.verify().map_err(|message| refused(message.to_string()))?;
    let engine = ir
        .module
        .create_jit_execution_engine(OptimizationLevel::Less)
        .map_err(|message| refused(message.to_string()))?;
    engine.add_global_mapping(&barrier, tile_simt_barrier as *const () as usize);
    engine.add_global_mapping(&access, tile_simt_access as *const () as usize);
    let address = engine.get_function_address(SYMBOL).map_err(|error| refused(error.to_string()))?;
    std::mem::forget((engine, ir.module));
    // SAFETY: the address is that of the function `Host::entry` declared, with the signature of `ThreadEntry`.
    let entry = unsafe { std::mem::transmute::<usize, ThreadEntry>(address) };
    Ok(SimtKernel { entry, threads: distribution.threads as u32, shared_bytes: plan.bytes() as usize })
}

impl SimtKernel {
    /// Threads per block.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// Runs blocks `0..blocks`, one after the other.
    ///
    /// # Safety
    /// The slots are as [`tile_ir::abi`] says for the kernel's instance, and tensors are as large as their
    /// shapes.
    ///
    /// # Errors
    /// The first data race, uninitialised read or barrier that not all threads reached.
    pub unsafe fn run(&self, slots: &[u64], blocks: u64) -> Result<(), String> {
        for block in 0..blocks {
            self.run_block(slots, block)?;
        }
        Ok(())
    }

    fn run_block(&self, slots: &[u64], block: u64) -> Result<(), String> {
        let alignment = SHARED_ALIGNMENT as usize;
        // Bytes that a kernel forgets to write are not conveniently zero.
        let mut memory = vec![0xa5u8; self.shared_bytes + alignment];
        let offset = memory.as_ptr().align_offset(alignment);
        let shared = Address(memory[offset..].as_mut_ptr());
        let state = Block {
            turns: Mutex::new(Turns {
                running: 0,
                barriers: 0,
                done: vec![false; self.threads as usize],
                error: None,
            }),
            turn: (0..self.threads).map(|_| Condvar::new()).collect(),
            shadow: Mutex::new(vec![Cell::default(); self.shared_bytes]),
            shared: shared.0 as usize,
        };
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let (state, entry) = (&state, self.entry);
                scope.spawn(move || {
                    let shared = shared;
                    state.wait_for_turn(thread);
                    // SAFETY: the caller of `run` vouches for the slots; shared memory has the planned size.
                    unsafe { entry(slots.as_ptr(), thread, block, shared.0, state) };
                    state.finish(thread);
                });
            }
        });
        let turns = state.turns.into_inner().unwrap_or_else(PoisonError::into_inner);
        turns.error.map_or(Ok(()), |error| Err(format!("block {block}: {error}")))
    }
}

/// Shared memory's address, which the threads of a block share.
#[derive(Clone, Copy)]
struct Address(*mut u8);

// SAFETY: threads take turns, so that only one touches the memory at a time.
unsafe impl Send for Address {}

/// One block in progress.
struct Block {
    turns: Mutex<Turns>,
    /// One per thread, so that a turn wakes only the thread that takes it.
    turn: Vec<Condvar>,
    shadow: Mutex<Vec<Cell>>,
    shared: usize,
}

struct Turns {
    /// The thread that runs.
    running: u32,
    barriers: u32,
    done: Vec<bool>,
    error: Option<String>,
}

/// What happened to a byte of shared memory since the start (`written`) and since the last barrier.
#[derive(Clone, Copy, Default)]
struct Cell {
    written: bool,
    /// The number of barriers passed when the threads below were noted.
    epoch: u32,
    writer: Option<u32>,
    reader: Option<u32>,
    many_readers: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Block {
    fn wait_for_turn(&self, thread: u32) {
        let mut turns = locked(&self.turns);
        while turns.running != thread {
            turns = self.turn[thread as usize].wait(turns).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the running thread's turn; gives the turn to the next that isn't done. When all have had theirs,
    /// all are at a barrier or done, and the next round begins.
    fn next(&self, mut turns: MutexGuard<'_, Turns>) {
        let threads = turns.done.len() as u32;
        let mut next = turns.running + 1;
        loop {
            if next == threads {
                let (any, all) = (turns.done.contains(&true), !turns.done.contains(&false));
                if any && !all {
                    turns.error.get_or_insert("some threads ended while others wait at a barrier".to_owned());
                }
                if all {
                    return;
                }
                turns.barriers += 1;
                next = 0;
            }
            if !turns.done[next as usize] {
                break;
            }
            next += 1;
        }
        turns.running = next;
        self.turn[next as usize].notify_one();
    }

    fn barrier(&self) {
        let turns = locked(&self.turns);
        let thread = turns.running;
        self.next(turns);
        self.wait_for_turn(thread);
    }

    fn finish(&self, thread: u32) {
        let mut turns = locked(&self.turns);
        turns.done[thread as usize] = true;
        self.next(turns);
    }

    fn access(&self, address: usize, bytes: u64, write: bool) {
        let mut turns = locked(&self.turns);
        let (thread, epoch) = (turns.running, turns.barriers);
        let first = address.wrapping_sub(self.shared);
        let mut shadow = locked(&self.shadow);
        let Some(cells) = first.checked_add(bytes as usize).and_then(|end| shadow.get_mut(first..end)) else {
            let message = format!("thread {thread} accesses byte {first} of {} shared bytes", shadow.len());
            turns.error.get_or_insert(message);
            return;
        };
        for cell in cells {
            if let Some(problem) = cell.note(thread, epoch, write) {
                turns.error.get_or_insert(format!("thread {thread}, shared byte {first}: {problem}"));
                return;
            }
        }
    }
}

impl Cell {
    fn note(&mut self, thread: u32, epoch: u32, write: bool) -> Option<String> {
        if self.epoch != epoch {
            *self = Cell { written: self.written, epoch, ..Cell::default() };
        }
        if let Some(writer) = self.writer.filter(|&writer| writer != thread) {
            let access = if write { "written" } else { "read" };
            return Some(format!("{access}, but thread {writer} wrote it since the last barrier"));
        }
        if !write {
            self.many_readers |= self.reader.is_some_and(|reader| reader != thread);
            self.reader = Some(thread);
            return (!self.written).then(|| "read before anything was written".to_owned());
        }
        if self.many_readers || self.reader.is_some_and(|reader| reader != thread) {
            return Some("written, but another thread read it since the last barrier".to_owned());
        }
        (self.written, self.writer) = (true, Some(thread));
        None
    }
}

extern "C" fn tile_simt_barrier(block: *const Block) {
    // SAFETY: the kernel passes on the block that `run_block` gave it, which outlives its threads.
    unsafe { &*block }.barrier();
}

extern "C" fn tile_simt_access(block: *const Block, address: *const u8, bytes: u64, write: u32) {
    // SAFETY: as for `tile_simt_barrier`.
    unsafe { &*block }.access(address as usize, bytes, write != 0);
}

/// Declares the functions above.
fn declare_runtime<'c>(ir: &Ir<'c>) -> (FunctionValue<'c>, FunctionValue<'c>) {
    let pointer = ir.context.ptr_type(AddressSpace::default()).into();
    let declare = |name, parameters: &[_]| {
        let ty = ir.context.void_type().fn_type(parameters, false);
        ir.module.add_function(name, ty, None)
    };
    let access = [pointer, pointer, ir.int_type(64).into(), ir.int_type(32).into()];
    (declare(BARRIER, &[pointer]), declare(ACCESS, &access))
}

/// The host's dialect.
struct Host<'m> {
    machine: &'m Machine,
}

impl Host<'_> {
    fn call<'c>(&self, ir: &Ir<'c>, name: &str, arguments: &[Value<'c>]) {
        let function = ir.module.get_function(name).expect("the runtime's functions are declared");
        let block = ir.function().get_nth_param(4).expect("the entry has five parameters");
        ir.call(function, &[&[block], arguments].concat());
    }
}

impl Dialect for Host<'_> {
    fn entry<'c>(&self, ir: &Ir<'c>, symbol: &str, abi: &KernelAbi, _: Resources) -> Entry<'c> {
        let (pointer, i64) = (ir.context.ptr_type(AddressSpace::default()), ir.context.i64_type());
        let parameters = [pointer.into(), ir.int_type(32).into(), i64.into(), pointer.into(), pointer.into()];
        let ty = ir.context.void_type().fn_type(&parameters, false);
        let function = ir.module.add_function(symbol, ty, None);
        for (key, value) in [("target-cpu", &self.machine.cpu), ("target-features", &self.machine.features)] {
            function.add_attribute(AttributeLoc::Function, ir.context.create_string_attribute(key, value));
        }
        ir.builder.position_at_end(ir.context.append_basic_block(function, "entry"));
        let param = |i| function.get_nth_param(i).expect("the entry has five parameters");
        let slot = |i: usize| ir.element(i64.into(), param(0).into_pointer_value(), ir.i64(i as i64));
        let arguments = abi.arguments.iter().enumerate().map(|(i, argument)| match argument {
            Argument::Tensor { .. } => ir.load(pointer.into(), slot(i)),
            Argument::Scalar { dtype, .. } => ir.load_value(slot(i), *dtype),
        });
        let sizes = (0..abi.sizes.len()).map(|i| ir.load(i64.into(), slot(abi.arguments.len() + i)));
        let (arguments, sizes) = (arguments.collect(), sizes.map(|size| size.into_int_value()).collect());
        let number = |i: usize| ir.load(i64.into(), slot(i)).into_int_value();
        let tiles = abi.shared_slot();
        let log = || ir.load(pointer.into(), slot(abi.log_slot()));
        Entry {
            arguments,
            sizes,
            tiles: abi.persistent.then(|| Shared { tiles: number(tiles), blocks: number(tiles + 1) }),
            log: abi.logs.then(|| log().into_pointer_value()),
            thread: param(1).into_int_value(),
            block: param(2).into_int_value(),
            shared: param(3).into_pointer_value(),
        }
    }

    fn barrier<'c>(&self, ir: &Ir<'c>) {
        self.call(ir, BARRIER, &[]);
    }

    fn scope(&self, _: Scope) -> ScopeName {
        ScopeName { name: "", updates: true }
    }

    fn shared_access<'c>(&self, ir: &Ir<'c>, pointer: PointerValue<'c>, bytes: u64, write: bool) {
        let write = ir.int_type(32).const_int(u64::from(write), false);
        self.call(ir, ACCESS, &[pointer.into(), ir.i64(bytes as i64).into(), write.into()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the last of these accesses gives: thread, epoch, whether it writes.
    fn last(accesses: &[(u32, u32, bool)]) -> Option<String> {
        let mut cell = Cell::default();
        accesses.iter().map(|&(thread, epoch, write)| cell.note(thread, epoch, write)).last().flatten()
    }

    #[test]
    fn races_and_uninitialised_reads_are_found() {
        let (written, read) = (true, false);
        assert_eq!(last(&[(0, 0, written), (0, 0, read), (0, 0, written)]), None);
        assert_eq!(last(&[(0, 0, written), (1, 1, read), (2, 1, read), (1, 2, written)]), None);
        let race = |accesses: &[_]| last(accesses).expect("a race");
        assert!(race(&[(0, 0, written), (1, 0, read)]).contains("thread 0 wrote it"));
        assert!(race(&[(0, 0, written), (1, 0, written)]).contains("thread 0 wrote it"));
        assert!(race(&[(0, 0, written), (1, 1, read), (0, 1, written)]).contains("another thread read it"));
        assert!(race(&[(0, 0, written), (0, 1, read), (1, 1, read), (0, 1, written)]).contains("another"));
        assert!(race(&[(3, 0, read)]).contains("before anything was written"));
    }
}
