//! Target machines, the optimisation pipeline, and machine code out of a module.

use crate::error::Error;
use crate::options::Cpu;
use crate::system::System;
use inkwell::OptimizationLevel;
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetData, TargetMachine, TargetTriple,
};
use std::ffi::{CStr, c_void};
use std::sync::Once;
use tile_ir::target::{Architecture, CpuLevel, TILE_FEATURES, grants_tiles};

/// All of LLVM's passes.
const EVERYTHING: &str = "default<O3>";

/// LLVM's passes for a CPU. Products are vectors when they are emitted, and everything else is loops along rows, whose
/// vectors the loop vectoriser makes: what comes before makes registers of numbers on the stack and prepares loops for it, and
/// what comes after puts instructions in the place of functions that stand for them, makes registers of the lanes that it has
/// put together on the stack, shares what is common, and takes out of loops what no turn changes. `-O3` has identities sought
/// eight times and loops transformed in six ways that nothing here needs, and takes twice as long. Straight code isn't
/// vectorised: pairs of sizes and of addresses are all that there is, and cost.
const FOR_CPU: &str = "function(\
    mem2reg,\
    early-cse<memssa>,\
    simplifycfg<hoist-common-insts>,\
    instcombine<no-verify-fixpoint>,\
    loop-mssa(loop-rotate<header-duplication>,licm),\
    loop(loop-deletion,loop-unroll-full),\
    early-cse<memssa>,\
    loop-vectorize),\
    always-inline,\
    function(\
    sroa,\
    instcombine<no-verify-fixpoint>,\
    simplifycfg<hoist-common-insts;sink-common-insts;speculate-unpredictables>,\
    loop-unroll<O3>,\
    loop-mssa(licm),\
    early-cse<memssa>,\
    div-rem-pairs)";

/// LLVM's passes for PTX, which `ptxas` optimises again. A kernel is a few long blocks that the emitter has unrolled, and
/// what can be known of it as a whole the IR's passes knew. So each pass runs where it finds most: common expressions,
/// branches that are one select, identities, sums in an order that constants can be shared in, what no turn of a loop
/// changes, and the first three again on what that leaves. That takes a sixth to a third of the time of `default<O3>`,
/// which seeks identities alone six times.
const FOR_PTX: &str = "function(\
    early-cse<memssa>,\
    simplifycfg<hoist-common-insts;sink-common-insts;speculate-unpredictables>,\
    instcombine<no-verify-fixpoint>,\
    reassociate,\
    loop-mssa(loop-rotate,licm),\
    early-cse<memssa>,\
    instcombine<no-verify-fixpoint>,\
    simplifycfg<hoist-common-insts;sink-common-insts;speculate-unpredictables>,\
    adce)";

/// What keeps LLVM from scalable vectors on processors that have them: emitters write vectors of 128 bits, which are as
/// fast on most, and what no test runs isn't made.
const WITHOUT_SCALABLE_VECTORS: &str = ",-sve,-sve2,-sme";

static INITIALIZE: Once = Once::new();

pub(crate) fn initialize() {
    INITIALIZE.call_once(|| {
        let config = InitializationConfig::default();
        Target::initialize_x86(&config);
        Target::initialize_aarch64(&config);
        Target::initialize_nvptx(&config);
        Target::initialize_amd_gpu(&config);
    });
}

/// A target machine and what the optimiser and the emitters must know of it.
pub(crate) struct Machine {
    machine: TargetMachine,
    /// The passes that optimise a module for it, as `PassBuilder` reads them.
    passes: &'static str,
    /// That of a CPU.
    architecture: Option<Architecture>,
    pub(crate) cpu: String,
    pub(crate) features: String,
}

impl Machine {
    fn new(
        triple: &str,
        cpu: &str,
        features: &str,
        optimization: OptimizationLevel,
    ) -> Result<Machine, Error> {
        initialize();
        let triple = TargetTriple::create(triple);
        let target = Target::from_triple(&triple).map_err(|error| Error::Host(error.to_string()))?;
        let machine = target
            .create_target_machine(&triple, cpu, features, optimization, RelocMode::PIC, CodeModel::Default)
            .ok_or_else(|| Error::Host(format!("LLVM has no machine `{cpu}` for {triple:?}")))?;
        let (cpu, features) = (cpu.to_owned(), features.to_owned());
        Ok(Machine { machine, passes: EVERYTHING, architecture: None, cpu, features })
    }

    /// A processor that runs CPU code of a system: the host, or one of a level, of whichever architecture.
    pub(crate) fn cpu(cpu: Cpu, system: System) -> Result<Machine, Error> {
        let (architecture, processor, features) = match cpu {
            Cpu::Level(level) => (level.architecture, level.processor.to_owned(), asked_for(level)),
            Cpu::Host => host()?,
        };
        let machine =
            Machine::new(&system.triple(architecture), &processor, &features, effort(architecture))?;
        Ok(Machine { passes: FOR_CPU, architecture: Some(architecture), ..machine })
    }

    /// An NVIDIA GPU, by its compute capability and what else code asks of LLVM.
    pub(crate) fn nvptx(name: &str, features: &str) -> Result<Machine, Error> {
        // `ptxas` optimises again: another GVN before it takes a fifth of the compile time for the same machine code.
        let machine = Machine::new("nvptx64-nvidia-cuda", name, features, OptimizationLevel::Default)?;
        Ok(Machine { passes: FOR_PTX, ..machine })
    }

    /// An AMD GPU, by its processor name and what else code asks of LLVM.
    pub(crate) fn amdgpu(name: &str, features: &str) -> Result<Machine, Error> {
        Machine::new("amdgcn-amd-amdhsa", name, features, OptimizationLevel::Aggressive)
    }

    /// Whether the processor has a feature, by LLVM's name.
    pub(crate) fn has(&self, feature: &str) -> bool {
        self.features.split(',').any(|listed| listed.strip_prefix('+') == Some(feature))
    }

    /// Whether it is a processor of this architecture.
    pub(crate) fn is_of(&self, architecture: Architecture) -> bool {
        self.architecture == Some(architecture)
    }

    /// Tells the module its target. Must come before emission where stack memory has its own address space.
    pub(crate) fn prepare(&self, module: &Module<'_>) {
        module.set_triple(&self.machine.get_triple());
        module.set_data_layout(&self.machine.get_target_data().get_data_layout());
    }

    /// How the target lays out types.
    pub(crate) fn layout(&self) -> TargetData {
        self.machine.get_target_data()
    }

    /// Verifies the module and runs the target's passes on it.
    pub(crate) fn optimize(&self, kernel: &str, module: &Module<'_>) -> Result<(), Error> {
        self.run(self.passes, kernel, module)
    }

    /// Verifies the module and runs all of LLVM's passes on it.
    pub(crate) fn optimize_fully(&self, kernel: &str, module: &Module<'_>) -> Result<(), Error> {
        self.run(EVERYTHING, kernel, module)
    }

    fn run(&self, passes: &str, kernel: &str, module: &Module<'_>) -> Result<(), Error> {
        self.prepare(module);
        // SAFETY: the module's context is valid, and the handler needs nothing of its own.
        unsafe {
            LLVMContextSetDiagnosticHandler(module.get_context().raw(), Some(hear), std::ptr::null_mut());
        }
        let refused = |message: inkwell::support::LLVMString| Error::Llvm {
            kernel: kernel.to_owned(),
            message: message.to_string(),
        };
        module.verify().map_err(refused)?;
        let options = PassBuilderOptions::create();
        options.set_loop_vectorization(true);
        options.set_loop_slp_vectorization(true);
        module.run_passes(passes, &self.machine, options).map_err(refused)
    }

    /// The machine code of an optimised module: an object file, or assembly text.
    pub(crate) fn emit(&self, kernel: &str, module: &Module<'_>, kind: FileType) -> Result<Vec<u8>, Error> {
        let buffer = self.machine.write_to_memory_buffer(module, kind);
        let buffer = buffer
            .map_err(|message| Error::Llvm { kernel: kernel.to_owned(), message: message.to_string() })?;
        let bytes = buffer.as_slice();
        // LLVM appends a NUL to text.
        Ok(bytes.strip_suffix(&[0]).filter(|_| kind == FileType::Assembly).unwrap_or(bytes).to_vec())
    }
}

/// Hears what LLVM says of code. That it can't follow a hint, which only costs time, isn't printed on a user's terminal;
/// what it can't compile ends the process, as without a handler.
extern "C" fn hear(diagnostic: LLVMDiagnosticInfoRef, _: *mut c_void) {
    // SAFETY: LLVM lends the diagnostic for this call; its description is text that ends with a NUL.
    unsafe {
        if matches!(LLVMGetDiagInfoSeverity(diagnostic), LLVMDiagnosticSeverity::LLVMDSError) {
            let text = LLVMGetDiagInfoDescription(diagnostic);
            eprintln!("LLVM: {}", CStr::from_ptr(text).to_string_lossy());
            std::process::exit(1);
        }
    }
}

/// How hard LLVM's code generator tries for a processor. Those of x86-64 reorder instructions themselves, and gain nothing by
/// what more it would do: a second scheduling, behind the allocation of registers.
fn effort(architecture: Architecture) -> OptimizationLevel {
    match architecture {
        Architecture::X86_64 => OptimizationLevel::Less,
        Architecture::Aarch64 => OptimizationLevel::Aggressive,
    }
}

/// The features of a level, as LLVM is asked for them.
fn asked_for(level: &CpuLevel) -> String {
    let features: Vec<String> = level.all_features().map(|feature| format!("+{feature}")).collect();
    features.join(",")
}

/// This machine's architecture, processor and features.
fn host() -> Result<(Architecture, String, String), Error> {
    let architecture = Architecture::host().ok_or_else(|| {
        let known = Architecture::ALL.map(Architecture::name).join(" and ");
        Error::Host(format!(
            "CPU code is generated for {known} only, and this is {}; kernels run on `Device::reference()` here",
            std::env::consts::ARCH
        ))
    })?;
    let mut features = host_features();
    if architecture == Architecture::Aarch64 {
        features += WITHOUT_SCALABLE_VECTORS;
    }
    Ok((architecture, TargetMachine::get_host_cpu_name().to_string_lossy().into_owned(), features))
}

/// What this machine has of LLVM's features and lets this process use.
fn host_features() -> String {
    let features = TargetMachine::get_host_cpu_features().to_string_lossy().into_owned();
    if grants_tiles() {
        return features;
    }
    let refused = TILE_FEATURES.map(|feature| format!("+{feature}"));
    let granted = features.split(',').filter(|feature| !refused.iter().any(|refused| refused == feature));
    granted.collect::<Vec<_>>().join(",")
}

/// The processor and its features, as a cache key has them.
pub(crate) fn host_name() -> String {
    format!("{} {}", TargetMachine::get_host_cpu_name().to_string_lossy(), host_features())
}
