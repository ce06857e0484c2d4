//! Runs a kernel's code for another architecture: linked with a few instructions that call it, by QEMU.
//!
//! A kernel and the program around it call no library, so that a linker finds everything in two objects. What the kernel is
//! given lies in a file that the program maps: the launch's arguments first, then its slots, the memory that these point to,
//! and scratch memory. Registers that are tiles, which few machines have, are emulated [in this process](tiles).

use crate::support::Company;
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetTriple};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tile_codegen::Artifact;
use tile_ir::abi::Launch;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tiles;

/// Lets this process run AMX's instructions, and says whether it can.
pub(crate) fn emulates_tiles() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    tiles::emulate();
    cfg!(all(target_arch = "x86_64", target_os = "linux"))
}

/// Where the program maps its memory.
const MEMORY: u64 = 0x10_0000_0000;

/// QEMU for AArch64, from the package `qemu-user`, which `cargo xtask setup` installs.
const EMULATOR: &str = "qemu-aarch64";

/// Bytes of the arguments but whether scratch memory was used before, which is 0: slots, first block, end of blocks, scratch
/// memory, whether nobody else runs blocks.
const HEADER: usize = 64;

/// A kernel as a program.
pub(crate) struct Emulated {
    program: PathBuf,
    launch: Launch,
}

/// Host memory that slots point to.
#[derive(Clone, Copy)]
pub(crate) struct Region {
    pub(crate) address: *mut u8,
    pub(crate) bytes: usize,
}

impl Emulated {
    pub(crate) fn of(artifact: &Artifact) -> Emulated {
        let folder = folder();
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (object, program) = (folder.join(format!("{number}.o")), folder.join(format!("{number}")));
        fs::write(&object, artifact.code.bytes()).unwrap();
        let mut linker = Command::new(linker());
        linker.args(["-flavor", "gnu", "-static", "--no-undefined", "--defsym"]);
        linker.arg(format!("kernel={}", artifact.symbol)).arg("-o").arg(&program);
        run(linker.arg(caller()).arg(&object));
        fs::remove_file(object).unwrap();
        Emulated { program, launch: artifact.launch }
    }

    /// Runs blocks from 0 on with these slots, of which those that are addresses in a region become addresses of its copy.
    ///
    /// # Safety
    /// The regions are memory that nobody else uses.
    pub(crate) unsafe fn run(&self, slots: &[u64], regions: &[Region], blocks: u64, company: Company) {
        let mut image = vec![0u8; HEADER + slots.len() * 8];
        let mut places = Vec::new();
        for region in regions {
            // As far into a cache line as it is here.
            image.resize(image.len().next_multiple_of(64) + region.address.addr() % 64, 0);
            places.push(image.len());
            // SAFETY: the caller vouches for the region.
            image.extend(unsafe { std::slice::from_raw_parts(region.address, region.bytes) });
        }
        let scratch = image.len().next_multiple_of(64);
        let moved = |slot: u64| {
            let within = regions.iter().zip(&places).find_map(|(region, &place)| {
                let offset = slot.checked_sub(region.address as u64)?;
                (offset < region.bytes as u64).then_some(MEMORY + place as u64 + offset)
            });
            within.unwrap_or(slot)
        };
        let is_alone = u64::from(company == Company::Nobody);
        let header = [MEMORY + HEADER as u64, 0, blocks, MEMORY + scratch as u64, is_alone];
        for (i, word) in header.into_iter().enumerate() {
            image[8 * i..][..8].copy_from_slice(&word.to_le_bytes());
        }
        for (i, &slot) in slots.iter().enumerate() {
            image[HEADER + 8 * i..][..8].copy_from_slice(&moved(slot).to_le_bytes());
        }
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let file = folder().join(format!("{}.memory", NUMBER.fetch_add(1, Ordering::Relaxed)));
        fs::write(&file, &image).unwrap();
        // Most of the scratch memory is never written: it is a hole in the file.
        let whole = scratch as u64 + self.launch.scratch_bytes;
        fs::File::options().write(true).open(&file).and_then(|file| file.set_len(whole)).unwrap();
        run(Command::new(EMULATOR).args(["-cpu", "max"]).arg(&self.program).arg(&file));
        fs::File::open(&file).and_then(|mut file| file.read_exact(&mut image)).unwrap();
        fs::remove_file(file).unwrap();
        for (region, &place) in regions.iter().zip(&places) {
            // SAFETY: the caller vouches for the region, and the image is a copy of it.
            unsafe {
                std::ptr::copy_nonoverlapping(image[place..].as_ptr(), region.address, region.bytes);
            }
        }
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        // What can't be removed is litter in the temporary folder, no failure of a test.
        let _ = fs::remove_file(&self.program);
    }
}

/// Runs a command that must succeed.
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} gave {}: {words}", output.status);
}

/// This process's folder, below cargo's own.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("emulated-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    })
}

/// The linker of the toolchain that built this.
fn linker() -> &'static Path {
    static LINKER: OnceLock<PathBuf> = OnceLock::new();
    LINKER.get_or_init(|| {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let answer = Command::new(rustc).args(["--print", "target-libdir"]).output().unwrap();
        let libraries = PathBuf::from(String::from_utf8(answer.stdout).unwrap().trim());
        libraries.with_file_name("bin").join("rust-lld")
    })
}

/// The object that calls a kernel.
fn caller() -> &'static Path {
    static CALLER: OnceLock<PathBuf> = OnceLock::new();
    CALLER.get_or_init(|| {
        Target::initialize_aarch64(&InitializationConfig::default());
        let triple = TargetTriple::create("aarch64-unknown-linux-gnu");
        let (level, relocation, model) = (OptimizationLevel::None, RelocMode::Static, CodeModel::Default);
        let machine = Target::from_triple(&triple).unwrap();
        let machine =
            machine.create_target_machine(&triple, "generic", "", level, relocation, model).unwrap();
        let context = Context::create();
        let module = context.create_module("caller");
        module.set_triple(&triple);
        module.set_inline_assembly(include_str!("aarch64.s"));
        let object = folder().join("caller.o");
        machine.write_to_file(&module, FileType::Object, &object).unwrap();
        object
    })
}
