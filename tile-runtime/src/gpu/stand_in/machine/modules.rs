//! Code: modules by the kernels whose symbols stand somewhere in their images, and what a launch gives a kernel.

use super::{Code, Handle, Machine, Outcome};
use std::ffi::c_void;

/// A grid of blocks along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Grid {
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Shared memory of a block that the code doesn't declare, in bytes.
    pub shared_bytes: u32,
}

/// What runs for a kernel: a function of the test's, on the words of its parameters one after the other.
pub type Run = extern "C" fn(data: *const c_void, grid: Grid, words: *const u64, count: usize);

/// A kernel that modules may have.
#[derive(Clone)]
pub struct Kernel {
    pub symbol: String,
    /// How many bytes each parameter has: multiples of eight.
    pub parameters: Vec<usize>,
    /// How many blocks are a cluster, or 1.
    pub cluster: u32,
    pub run: Run,
    pub data: *const c_void,
}

pub(super) struct Module {
    device: usize,
    image: Vec<u8>,
}

pub(super) struct Function {
    pub(super) module: Handle,
    pub(super) kernel: usize,
    /// How many bytes of shared memory a launch may ask for.
    pub(super) most_shared: u32,
}

/// What a block has of shared memory unless a function was allowed more.
const SHARED_BYTES: u32 = 48 * 1024;
pub const MOST_SHARED_BYTES: u32 = 227 * 1024;

impl Machine {
    pub fn load(&mut self, image: &[u8], device: usize) -> Handle {
        let module = super::give();
        self.modules.insert(module, Module { device, image: image.to_vec() });
        module
    }

    /// What a module was loaded from.
    pub fn image(&self, module: Handle) -> Outcome<&[u8]> {
        self.modules.get(&module).map(|module| &*module.image).ok_or(Code::INVALID_HANDLE)
    }

    pub fn unload(&mut self, module: Handle) -> Outcome<()> {
        self.modules.remove(&module).ok_or(Code::INVALID_HANDLE)?;
        self.functions.retain(|_, function| function.module != module);
        Ok(())
    }

    pub fn function(&mut self, module: Handle, symbol: &str) -> Outcome<Handle> {
        let image = self.image(module)?;
        let is_in_image = image.windows(symbol.len()).any(|bytes| bytes == symbol.as_bytes());
        let kernel = self.kernels.iter().rposition(|kernel| kernel.symbol == symbol).filter(|_| is_in_image);
        let kernel = kernel.ok_or(Code::NOT_FOUND)?;
        let function = super::give();
        self.functions.insert(function, Function { module, kernel, most_shared: SHARED_BYTES });
        Ok(function)
    }

    /// The kernel of a function that a device has loaded, and how much shared memory its launches may ask for.
    pub fn kernel(&self, function: Handle, device: usize) -> Outcome<(&Kernel, u32)> {
        let function = self.functions.get(&function).ok_or(Code::INVALID_HANDLE)?;
        match self.modules.get(&function.module) {
            Some(module) if module.device == device => {
                Ok((&self.kernels[function.kernel], function.most_shared))
            }
            _ => Err(Code::INVALID_HANDLE),
        }
    }

    /// Lets launches of a function ask for so much shared memory.
    pub fn allow_shared(&mut self, function: Handle, bytes: u32) -> Outcome<()> {
        let function = self.functions.get_mut(&function).ok_or(Code::INVALID_HANDLE)?;
        if bytes > MOST_SHARED_BYTES {
            return Err(Code::INVALID_VALUE);
        }
        function.most_shared = bytes;
        Ok(())
    }

    /// A launch with the parameters that these addresses stand at.
    ///
    /// # Safety
    /// Each is the address of as many bytes as the kernel's parameter has.
    pub unsafe fn launch(
        &mut self,
        function: Handle,
        device: usize,
        grid: Grid,
        parameters: *const *mut c_void,
        stream: Handle,
    ) -> Outcome<()> {
        let (kernel, most_shared) = self.kernel(function, device)?;
        let is_whole = grid.blocks.is_multiple_of(kernel.cluster);
        let has_all = grid.blocks > 0 && (1..=1024).contains(&grid.threads) && !parameters.is_null();
        match () {
            () if !has_all || grid.blocks > i32::MAX as u32 || grid.shared_bytes > most_shared => {
                return Err(Code::INVALID_VALUE);
            }
            () if !is_whole => return Err(Code::INVALID_CLUSTER),
            () => {}
        }
        let mut words = Vec::with_capacity(kernel.parameters.iter().sum::<usize>() / 8);
        for (i, &bytes) in kernel.parameters.iter().enumerate() {
            // SAFETY: the caller vouches for the list and for what is behind its addresses.
            unsafe {
                let first = (*parameters.add(i)).cast::<u64>();
                words.extend((0..bytes / 8).map(|word| first.add(word).read_unaligned()));
            }
        }
        let kernel = self.functions[&function].kernel;
        self.enqueue(stream, device, super::Work::Launch { kernel, grid, words })
    }
}
