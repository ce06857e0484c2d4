//! What differs between GPU targets, as a description: how a kernel is declared, who the running thread is,
//! how a block synchronises, where shared memory is. No emitter asks for a vendor.

mod vendors;

pub(in crate::gpu) use vendors::{CDNA, NVPTX, RDNA};

use super::declared::{self, INACCESSIBLE_MEMORY};
use crate::emit::{Ir, Shared, Value};
use crate::gpu::exchange::lanes::Shuffle;
use crate::gpu::pipeline::pairs::Pair;
use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::llvm_sys::LLVMAtomicOrdering;
use inkwell::llvm_sys::core::LLVMBuildFenceSyncScope;
use inkwell::module::Linkage;
use inkwell::types::{AnyType, BasicMetadataTypeEnum};
use inkwell::values::{FunctionValue, InstructionValue, IntValue, PointerValue};
use tile_ir::abi::{Argument, KernelAbi};
use tile_ir::gpu::{Orders, TENSOR_ALIGNMENT};
use tile_ir::ops::Scope;
use tile_ir::tensor_map::{TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES};

/// What a kernel asks of a block.
#[derive(Clone, Copy, Debug)]
pub(in crate::gpu) struct Resources {
    /// Threads per block.
    pub(in crate::gpu) threads: u32,
    /// Warps per block.
    pub(in crate::gpu) warps: u32,
    /// Blocks that run together; 1 where each is alone.
    pub(in crate::gpu) cluster: u32,
    /// Blocks that are to run at once on a multiprocessor, if that is said.
    pub(in crate::gpu) at_once: Option<u32>,
    /// Shared memory per block, in bytes.
    pub(in crate::gpu) shared_bytes: u32,
    /// What it begins at a multiple of, in bytes.
    pub(in crate::gpu) shared_alignment: u32,
}

/// The values that a kernel starts with.
#[derive(Clone)]
pub(in crate::gpu) struct Entry<'c> {
    /// Per argument: a tensor's address, or a scalar in its compute type.
    pub(in crate::gpu) arguments: Vec<Value<'c>>,
    /// Run-time sizes, i64, in the order of the ABI.
    pub(in crate::gpu) sizes: Vec<IntValue<'c>>,
    /// How blocks share tiles, in a persistent kernel.
    pub(in crate::gpu) tiles: Option<Shared<'c>>,
    /// The addresses of the tensor maps, in any address space.
    pub(in crate::gpu) maps: Vec<PointerValue<'c>>,
    /// The address of the log, of a kernel that has one.
    pub(in crate::gpu) log: Option<PointerValue<'c>>,
    /// The running thread's number in its block, an i32.
    pub(in crate::gpu) thread: IntValue<'c>,
    /// The block's number, an i64.
    pub(in crate::gpu) block: IntValue<'c>,
    /// How many blocks there are, an i64, on targets whose blocks share the places of a grid.
    pub(in crate::gpu) blocks: Option<IntValue<'c>>,
    /// The first byte of shared memory.
    pub(in crate::gpu) shared: PointerValue<'c>,
    /// The pair of which the block is one, in a kernel whose blocks are pairs.
    pub(in crate::gpu) pair: Option<Pair<'c>>,
}

/// A scope in LLVM's words.
#[derive(Clone, Copy, Debug)]
pub(in crate::gpu) struct ScopeName {
    pub(in crate::gpu) name: &'static str,
    /// Whether an update in one instruction reaches it; a comparison with exchange always does.
    pub(in crate::gpu) updates: bool,
}

/// Whether a number is the same in the threads of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) enum Spread {
    Varying,
    Uniform,
}

/// How shared memory is declared.
#[derive(Clone, Copy, Debug)]
enum SharedMemory {
    /// One array whose size the launch gives.
    Dynamic,
    /// A variable of the kernel.
    Static,
}

/// The fences around a barrier.
struct Fences {
    /// The scope at which they order memory.
    scope: &'static str,
    /// What metadata `mmra` says of those that order shared memory alone (LLVM's AMDGPU usage guide, "Memory Model
    /// Relaxation Annotations"). Of two fences side by side that are alike but for it, LLVM 22 keeps the second, whatever
    /// that one orders; but one that releases and one that acquires aren't alike, and a barrier has one of each.
    of_shared_memory: [&'static str; 2],
}

/// How memory is brought into the L2 cache before it is read: instructions of one address, and of an address and a
/// number of bytes. They are declarations ([`super::declared`]) because LLVM selects its intrinsics for the newer
/// targets alone.
struct Prefetch {
    line_bytes: u64,
    line: &'static str,
    range: &'static str,
}

/// A GPU's dialect as data.
pub(in crate::gpu) struct Device {
    calling_convention: u32,
    thread: &'static str,
    block: &'static str,
    /// How many blocks there are, where code asks for it.
    blocks: Option<&'static str>,
    barrier: &'static str,
    /// The operand of the barrier intrinsic, where it has one.
    barrier_number: Option<u64>,
    /// The intrinsic by which so many threads of a block wait for each other, at a barrier of a number.
    part_barrier: Option<&'static str>,
    /// The fences around the barrier, where the barrier alone orders no memory.
    fences: Option<Fences>,
    /// Whether what a thread stored before a barrier is complete behind it for other blocks as well, as far as a thread of the
    /// block says so by a fence of its own. By LLVM's memory model it always is.
    pub(in crate::gpu) barrier_completes_stores: bool,
    shared: SharedMemory,
    /// The inline assembly constraints of a register for a number that differs between threads, and for one that doesn't.
    varying_register: &'static str,
    uniform_register: &'static str,
    /// How lanes give each other values.
    shuffle: Shuffle,
    /// The intrinsic that gives all threads of a wave the value of the first one, where branches need it.
    first_lane: Option<&'static str>,
    /// The scopes of atomic operations, from a block to the system.
    scopes: [ScopeName; 3],
    /// Whether one instruction stores several words atomically, one by one; elsewhere one integer holds them.
    pub(in crate::gpu) vector_stores: bool,
    prefetch: Option<Prefetch>,
    /// The intrinsics that load matrices, and that load them transposed; `{}` stands for how many.
    load_matrices: Option<[&'static str; 2]>,
    /// The intrinsics that store matrices, likewise.
    store_matrices: Option<[&'static str; 2]>,
    /// The fourth word of buffer resources, on targets whose loads and stores check bounds.
    pub(in crate::gpu) buffers: Option<u32>,
    /// Whether products are told in which order groups of their instructions should come.
    pub(in crate::gpu) takes_groups: bool,
    /// The function attribute that says how many blocks run together, where some do.
    cluster: Option<&'static str>,
    /// The function attribute that says how many are to run at once on a multiprocessor.
    at_once: AtOnce,
    /// Function attributes; `{}` stands for the number of threads.
    attributes: &'static [(&'static str, &'static str)],
}

/// The function attribute that says how many blocks are to run at once on a multiprocessor.
#[derive(Clone, Copy)]
enum AtOnce {
    /// In blocks.
    Blocks(&'static str),
    /// In waves of each of its so many SIMD units.
    Waves(&'static str, u32),
}

impl AtOnce {
    /// The attribute for so many blocks of so many waves.
    fn attribute(self, blocks: u32, waves: u32) -> (&'static str, String) {
        match self {
            AtOnce::Blocks(key) => (key, blocks.to_string()),
            AtOnce::Waves(key, units) => (key, (blocks * waves).div_ceil(units).to_string()),
        }
    }
}

const GLOBAL: u16 = 1;
const SHARED: u16 = 3;

impl Device {
    /// Whether the launch must give the shared memory.
    pub(in crate::gpu) fn has_dynamic_shared_memory(&self) -> bool {
        matches!(self.shared, SharedMemory::Dynamic)
    }

    fn declare<'c>(
        &self,
        ir: &Ir<'c>,
        symbol: &str,
        abi: &KernelAbi,
        maps: usize,
        Resources { threads, warps, cluster, at_once, .. }: Resources,
    ) -> FunctionValue<'c> {
        let tensor: BasicMetadataTypeEnum<'c> = ir.context.ptr_type(AddressSpace::from(GLOBAL)).into();
        let mut types: Vec<BasicMetadataTypeEnum<'c>> = abi
            .arguments
            .iter()
            .map(|argument| match argument {
                Argument::Tensor { .. } => tensor,
                Argument::Scalar { dtype, .. } => ir.storage_type(*dtype).into(),
            })
            .collect();
        let numbers = abi.log_slot() - abi.arguments.len();
        types.extend((0..numbers).map(|_| BasicMetadataTypeEnum::from(ir.context.i64_type())));
        let map: BasicMetadataTypeEnum<'c> = ir.context.ptr_type(AddressSpace::default()).into();
        types.extend((0..maps).map(|_| map));
        types.extend(abi.logs.then_some(tensor));
        let function = ir.module.add_function(symbol, ir.context.void_type().fn_type(&types, false), None);
        function.set_call_conventions(self.calling_convention);
        for (i, argument) in abi.arguments.iter().enumerate() {
            if let &Argument::Tensor { mutable, atomic, loaded, .. } = argument {
                let is_alone = !(atomic || mutable && loaded);
                tensor_attributes(ir, function, i as u32, mutable, is_alone);
            }
        }
        (0..maps).for_each(|i| map_attributes(ir, function, (abi.log_slot() + i) as u32));
        let own =
            self.attributes.iter().map(|(key, value)| (*key, value.replace("{}", &threads.to_string())));
        let together = self.cluster.filter(|_| cluster > 1).map(|key| (key, format!("{cluster},1,1")));
        let at_once = at_once.map(|blocks| self.at_once.attribute(blocks, warps));
        for (key, value) in own.chain(together).chain(at_once) {
            function.add_attribute(AttributeLoc::Function, ir.context.create_string_attribute(key, &value));
        }
        enum_attribute(ir, function, AttributeLoc::Function, "nounwind", 0);
        function
    }

    fn shared_memory<'c>(&self, ir: &Ir<'c>, symbol: &str, resources: Resources) -> PointerValue<'c> {
        let space = AddressSpace::from(SHARED);
        let (name, size) = match self.shared {
            SharedMemory::Dynamic => ("tile_shared".to_owned(), 0),
            SharedMemory::Static => (format!("{symbol}_shared"), resources.shared_bytes),
        };
        let ty = ir.context.i8_type().array_type(size);
        let array = ir.module.add_global(ty, Some(space), &name);
        array.set_alignment(resources.shared_alignment);
        if size > 0 {
            array.set_linkage(Linkage::Internal);
            array.set_initializer(&ty.get_undef());
        }
        array.as_pointer_value()
    }

    fn number<'c>(&self, ir: &Ir<'c>, intrinsic: &str) -> IntValue<'c> {
        ir.intrinsic(intrinsic, &[], &[]).expect("an id is an i32").into_int_value()
    }
}

/// Has LLVM's code generator not look for loads and stores that one instruction can do. It compares each with those
/// around, and finds none: emitters write accesses as wide as they may be. The attribute says that nothing is to be made
/// of vectors that the code doesn't do with vectors, and for PTX means nothing else.
pub(in crate::gpu) fn without_merged_accesses(ir: &Ir<'_>) {
    for function in ir.module.get_functions().filter(|function| function.count_basic_blocks() > 0) {
        enum_attribute(ir, function, AttributeLoc::Function, "noimplicitfloat", 0);
    }
}

fn enum_attribute(ir: &Ir<'_>, function: FunctionValue<'_>, place: AttributeLoc, name: &str, value: u64) {
    let kind = Attribute::get_named_enum_kind_id(name);
    function.add_attribute(place, ir.context.create_enum_attribute(kind, value));
}

/// Rust's borrow rules and the runtime's allocator vouch for these. `is_alone` says that nobody loads what another thread
/// stores or changes.
fn tensor_attributes(
    ir: &Ir<'_>,
    function: FunctionValue<'_>,
    parameter: u32,
    mutable: bool,
    is_alone: bool,
) {
    let place = AttributeLoc::Param(parameter);
    // To LLVM a barrier changes nothing of a `noalias` parameter, so that it may move a thread's loads of what another one
    // stored across it. One that is only loaded from reads as constant memory, and instruction selection for NVPTX ends the
    // process on an atomic load of that.
    if is_alone {
        enum_attribute(ir, function, place, "noalias", 0);
    }
    enum_attribute(ir, function, place, "align", TENSOR_ALIGNMENT);
    if !mutable {
        enum_attribute(ir, function, place, "readonly", 0);
    }
}

/// A parameter in memory that a launch fills and the kernel doesn't change. Only with `nvvm.grid_constant` is the
/// kernel's address of it one in the parameters themselves, which tensor copies demand, and not that of a copy.
fn map_attributes(ir: &Ir<'_>, function: FunctionValue<'_>, parameter: u32) {
    let place = AttributeLoc::Param(parameter);
    let bytes = ir.context.i8_type().array_type(TENSOR_MAP_BYTES as u32).as_any_type_enum();
    let by_value = Attribute::get_named_enum_kind_id("byval");
    function.add_attribute(place, ir.context.create_type_attribute(by_value, bytes));
    enum_attribute(ir, function, place, "align", TENSOR_MAP_ALIGNMENT as u64);
    function.add_attribute(place, ir.context.create_string_attribute("nvvm.grid_constant", ""));
}

impl Device {
    /// Declares the kernel, with so many tensor maps, and leaves the builder in its first block.
    pub(in crate::gpu) fn entry<'c>(
        &self,
        ir: &Ir<'c>,
        symbol: &str,
        abi: &KernelAbi,
        maps: usize,
        resources: Resources,
    ) -> Entry<'c> {
        let function = self.declare(ir, symbol, abi, maps, resources);
        ir.builder.position_at_end(ir.context.append_basic_block(function, "entry"));
        let param = |i: usize| function.get_nth_param(i as u32).expect("a parameter per slot");
        let arguments = abi.arguments.iter().enumerate().map(|(i, argument)| match argument {
            Argument::Tensor { .. } => param(i),
            Argument::Scalar { dtype, .. } => ir.value_from_storage(param(i), *dtype),
        });
        let arguments = arguments.collect();
        let number = |i: usize| param(i).into_int_value();
        let sizes = (0..abi.sizes.len()).map(|i| number(abi.arguments.len() + i)).collect();
        let tiles = abi.shared_slot();
        let tiles = abi.persistent.then(|| Shared { tiles: number(tiles), blocks: number(tiles + 1) });
        let pointer = |i: usize| param(abi.log_slot() + i).into_pointer_value();
        let log = abi.logs.then(|| pointer(maps));
        let maps = (0..maps).map(pointer).collect();
        Entry {
            arguments,
            sizes,
            tiles,
            maps,
            log,
            thread: self.number(ir, self.thread),
            block: ir.resize(self.number(ir, self.block), 64, false),
            blocks: self.blocks.map(|blocks| ir.resize(self.number(ir, blocks), 64, false)),
            shared: self.shared_memory(ir, symbol, resources),
            pair: None,
        }
    }

    /// Waits until every thread of the block is here, and all see what each has written to the memory that is ordered.
    pub(in crate::gpu) fn barrier<'c>(&self, ir: &Ir<'c>, orders: Orders) {
        let number: Vec<Value<'c>> =
            self.barrier_number.iter().map(|&n| ir.context.i32_type().const_int(n, false).into()).collect();
        self.fence(ir, LLVMAtomicOrdering::LLVMAtomicOrderingRelease, orders);
        let none = ir.intrinsic(self.barrier, &[], &number);
        debug_assert!(none.is_none(), "a barrier has no result");
        self.fence(ir, LLVMAtomicOrdering::LLVMAtomicOrderingAcquire, orders);
    }

    /// Waits at the barrier of a number (`pipeline/named_barriers.rs`), an i32, for so many threads of a block, whole warps, on
    /// targets that have that.
    pub(in crate::gpu) fn barrier_of<'c>(&self, ir: &Ir<'c>, number: IntValue<'c>, threads: u64) {
        let intrinsic = self.part_barrier.expect("only where blocks have parts");
        let threads = ir.context.i32_type().const_int(threads, false);
        let none = ir.intrinsic(intrinsic, &[], &[number.into(), threads.into()]);
        debug_assert!(none.is_none(), "a barrier has no result");
    }

    /// How a scope of atomic operations is called.
    pub(in crate::gpu) fn scope(&self, scope: Scope) -> ScopeName {
        let [block, device, system] = self.scopes;
        match scope {
            Scope::Block => block,
            Scope::Device => device,
            Scope::System => system,
        }
    }

    /// The same number, from where the optimiser can't tell that it is the same: what is computed from it
    /// stays in its loop, instead of occupying a register throughout.
    ///
    /// It is an empty assembly statement that "changes" a register. It touches no memory; `convergent` is what
    /// keeps it in its loop.
    pub(in crate::gpu) fn opaque<'c>(
        &self,
        ir: &Ir<'c>,
        value: IntValue<'c>,
        spread: Spread,
    ) -> IntValue<'c> {
        let register = match spread {
            Spread::Varying => self.varying_register,
            Spread::Uniform => self.uniform_register,
        };
        let call = ir.through_register(value.into(), register);
        for (name, value) in [("convergent", 0), ("nounwind", 0), ("memory", 0)] {
            let kind = Attribute::get_named_enum_kind_id(name);
            call.add_attribute(AttributeLoc::Function, ir.context.create_enum_attribute(kind, value));
        }
        call.try_as_basic_value().basic().expect("the statement has a result").into_int_value()
    }

    /// How many bytes one prefetch brings near, a power of two; `None` where the target has no prefetches.
    pub(in crate::gpu) fn prefetch_line(&self) -> Option<u64> {
        self.prefetch.as_ref().map(|prefetch| prefetch.line_bytes)
    }

    /// Begins to bring near the line of memory at an address; or so many bytes from there, which the target has an
    /// instruction for if it says so, and both of which are multiples of 16.
    pub(in crate::gpu) fn prefetch<'c>(
        &self,
        ir: &Ir<'c>,
        address: PointerValue<'c>,
        bytes: Option<IntValue<'c>>,
    ) {
        let prefetch = self.prefetch.as_ref().expect("asked for where there is a line");
        let name = if bytes.is_some() { prefetch.range } else { prefetch.line };
        let arguments: Vec<Value<'c>> =
            std::iter::once(address.into()).chain(bytes.map(Value::from)).collect();
        let attributes = [("nounwind", 0), ("memory", INACCESSIBLE_MEMORY)];
        declared::call_without_result(ir, name, &arguments, &attributes);
    }

    /// A value that all threads have alike, said to the target where it can make use of that.
    pub(in crate::gpu) fn uniform<'c>(&self, ir: &Ir<'c>, value: Value<'c>) -> Value<'c> {
        let Some(intrinsic) = self.first_lane else { return value };
        let number =
            if value.is_float_value() { ir.bits(value.into_float_value()) } else { value.into_int_value() };
        let bits = number.get_type().get_bit_width();
        let word = ir.resize(number, bits.max(32), false);
        let first = ir.resize(ir.int_intrinsic(intrinsic, &[word]), bits, false);
        if value.is_float_value() {
            ir.float_of_bits(first, value.into_float_value().get_type()).into()
        } else {
            first.into()
        }
    }

    /// A value of the lane whose number differs in these bits, an i32 that is the same in every lane; every one of the
    /// `threads` of the block takes part.
    pub(in crate::gpu) fn shuffle<'c>(
        &self,
        ir: &Ir<'c>,
        threads: u64,
        thread: IntValue<'c>,
        value: Value<'c>,
        bits: IntValue<'c>,
    ) -> Value<'c> {
        let word = |word| self.shuffle.word(ir, threads, thread, word, bits);
        ir.by_words(value, word)
    }

    /// Matrices of 8 rows of 16 bytes, each lane giving the address of a row: one word of each matrix. Only on targets
    /// with [`tile_ir::TargetDesc::matrix_loads`].
    pub(in crate::gpu) fn load_matrices<'c>(
        &self,
        ir: &Ir<'c>,
        row: PointerValue<'c>,
        matrices: u64,
        transposed: bool,
    ) -> Vec<Value<'c>> {
        let names = self.load_matrices.expect("asked for where the target has such loads");
        let name = names[usize::from(transposed)].replace("{}", &matrices.to_string());
        let words = ir.intrinsic(&name, &[row.get_type().into()], &[row.into()]);
        ir.parts(words.expect("a load has a result"), matrices as u32)
    }

    /// Stores one word of each of as many matrices, as [`Self::load_matrices`] would load them. Only on targets with
    /// [`tile_ir::TargetDesc::matrix_stores`].
    pub(in crate::gpu) fn store_matrices<'c>(
        &self,
        ir: &Ir<'c>,
        row: PointerValue<'c>,
        words: &[Value<'c>],
        transposed: bool,
    ) {
        let names = self.store_matrices.expect("asked for where the target has such stores");
        let name = names[usize::from(transposed)].replace("{}", &words.len().to_string());
        ir.intrinsic(&name, &[row.get_type().into()], &[&[row.into()], words].concat());
    }

    fn fence(&self, ir: &Ir<'_>, ordering: LLVMAtomicOrdering, orders: Orders) {
        let Some(Fences { scope, of_shared_memory }) = &self.fences else { return };
        let id = ir.scope(scope);
        // SAFETY: the positioned builder is alive. inkwell has no fence with a scope.
        let fence = unsafe {
            InstructionValue::new(LLVMBuildFenceSyncScope(
                ir.builder.as_mut_ptr(),
                ordering,
                id,
                c"".as_ptr(),
            ))
        };
        if orders == Orders::SharedMemory {
            let words = of_shared_memory.map(|word| ir.context.metadata_string(word).into());
            let (kind, node) = (ir.context.get_kind_id("mmra"), ir.context.metadata_node(&words));
            fence.set_metadata(node, kind).expect("an instruction takes metadata");
        }
    }
}

#[cfg(test)]
mod tests;
