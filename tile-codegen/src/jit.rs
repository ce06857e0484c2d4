//! CPU kernels in this process: machine code that was compiled now, or was kept.

use crate::artifact::{Artifact, Code};
use crate::error::Error;
use crate::options::Options;
use linker::Linker;
use std::ffi::CString;
use tile_ir::abi::{CpuEntry, Launch};
use tile_ir::{Instance, TargetDesc};

mod linker;

/// A kernel whose native code is in this process, for as long as the process lives.
#[derive(Clone, Copy, Debug)]
pub struct CpuKernel {
    entry: CpuEntry,
    launch: Launch,
}

impl CpuKernel {
    /// The native entry.
    pub fn entry(&self) -> CpuEntry {
        self.entry
    }

    /// What a launch needs to know.
    pub fn launch(&self) -> Launch {
        self.launch
    }
}

/// Compiles an instance for the processor that runs this.
///
/// # Errors
/// [`Error`] where the kernel can't be compiled.
pub fn compile_cpu(instance: &Instance, options: &Options) -> Result<CpuKernel, Error> {
    let artifact = crate::compile(instance, TargetDesc::cpu(), options)?;
    // SAFETY: it was compiled just now, for this machine unless the options name a level that it lacks, which is then the
    // caller's to know, as it is for a whole program.
    unsafe { load(&artifact) }
}

/// Puts the native code of an artifact into this process, where it stays: a kernel's definition is a `static`, which any
/// launch to come may use, so no code is ever known to be needed no more. Beside its pages of code and constants, an
/// instance takes a few KiB of the linker's that all share.
///
/// # Safety
/// The artifact is one that [`crate::compile`] has made for a processor that has what this one has.
///
/// # Errors
/// [`Error::Llvm`] where the linker refuses the object.
pub unsafe fn load(artifact: &Artifact) -> Result<CpuKernel, Error> {
    let refused = |message: String| Error::Llvm { kernel: artifact.symbol.clone(), message };
    let Code::Object(object) = &artifact.code else {
        return Err(refused(format!("code for {} can't be called", artifact.target)));
    };
    let symbol = CString::new(artifact.symbol.as_str()).map_err(|error| refused(error.to_string()))?;
    let address = Linker::shared().and_then(|linker| linker.link(object, &symbol)).map_err(refused)?;
    // SAFETY: the address is that of the function that `cpu::emit` defined under this symbol, with the signature of
    // `CpuEntry`, as the caller vouches, and its code is never freed.
    let entry = unsafe { std::mem::transmute::<usize, CpuEntry>(address) };
    Ok(CpuKernel { entry, launch: artifact.launch })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a tensor with a number.
    fn fill(number: f32) -> Artifact {
        let source = format!(
            "kernel @fill(%y: mut tensor<n x f32>) {{\n%v = partition %y [4] : mut partition<n x f32, [4]>\n%0 = \
             constant {number:?} : f32\n%t = splat %0 : tile<4 x f32>\nstore_masked %v, %t\n}}"
        );
        let instance = Instance::parse(&source, &[]).unwrap();
        crate::compile(&instance, TargetDesc::cpu(), &Options::default()).unwrap()
    }

    fn run(kernel: CpuKernel) -> [f32; 6] {
        let (mut y, mut scratch) = ([0.0; 6], vec![0u128; 1 << 12]);
        let aligned = scratch.as_mut_ptr().cast::<u8>();
        // SAFETY: the slots are those of one tensor of six elements, in two blocks; there is more scratch memory than the
        // kernel asks for.
        unsafe {
            let aligned = aligned.add(aligned.align_offset(64));
            kernel.entry()([y.as_mut_ptr() as u64, 6].as_ptr(), 0, 2, aligned, false, true);
        }
        y
    }

    /// Kernels of one name are in the process together, and what links one twice gets two.
    #[test]
    fn objects_of_one_name_are_loaded_beside_each_other() {
        let artifacts = [1.5, 2.5].map(fill);
        // SAFETY: both were compiled above.
        let loaded = [0, 1, 0].map(|i| unsafe { load(&artifacts[i]) }.unwrap());
        assert_eq!(loaded.map(run), [[1.5; 6], [2.5; 6], [1.5; 6]]);
    }

    #[test]
    fn threads_load_at_once() {
        let artifacts = [1.5, 2.5].map(fill);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let artifact = &artifacts[thread % 2];
                scope.spawn(move || {
                    // SAFETY: it was compiled above.
                    let loaded = [0; 20].map(|_| unsafe { load(artifact) }.unwrap());
                    assert_eq!(loaded.map(run), [[1.5 + (thread % 2) as f32; 6]; 20]);
                });
            }
        });
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let good = fill(1.0);
        let bytes = good.code.bytes();
        for code in
            [Code::Object(b"text".to_vec()), Code::Object(bytes[..90].to_vec()), Code::Ptx(String::new())]
        {
            // SAFETY: nothing is loaded.
            let error = unsafe { load(&Artifact { code, ..good.clone() }) }.unwrap_err().to_string();
            assert!(error.contains("kernel `fill`"), "{error}");
        }
        // SAFETY: it was compiled above, under another name.
        let unknown = unsafe { load(&Artifact { symbol: "other".to_owned(), ..good.clone() }) };
        assert!(unknown.unwrap_err().to_string().contains("other"));
        // The linker that refused all of these goes on.
        // SAFETY: it was compiled above.
        assert_eq!(run(unsafe { load(&good) }.unwrap()), [1.0; 6]);
    }
}
