//! Modules, functions and launches. Of PTX the parameters and the cluster of an entry are read and compared with what the
//! test says of its kernel.

use crate::common::{self, asked, check, give};
use crate::functions;
use crate::machine::{BLOCKS, Code, Kernel, MULTIPROCESSORS};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Of `CUfunction_attribute`.
const MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: usize,
    attributes: *const c_void,
    count: c_uint,
}

/// Whether an entry of PTX has the parameters and the cluster of a kernel; of machine code nothing is known.
fn is_entry_of(image: &[u8], kernel: &Kernel) -> bool {
    let Ok(text) = std::str::from_utf8(image) else { return true };
    let entry = format!(".entry {}(", kernel.symbol);
    let head = text.split_once(&entry).and_then(|(_, rest)| rest.split('{').next());
    let Some((parameters, directives)) = head.and_then(|head| head.rsplit_once(')')) else { return false };
    let bytes = parameters.split(',').filter(|text| !text.trim().is_empty()).map(|text| {
        let size = text.split_once('[').and_then(|(_, size)| size.trim_end().strip_suffix(']'));
        size.map_or_else(|| text.contains("64").then_some(8), |size| size.parse().ok())
    });
    let cluster = directives.split_once(".reqnctapercluster").map_or(Some(1), |(_, size)| {
        size.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    });
    cluster == Some(kernel.cluster) && bytes.eq(kernel.parameters.iter().copied().map(Some))
}

functions! {
    fn cuModuleLoadData(module: *mut usize, first: *const c_void) {
        let image = common::image(first)?;
        let forms: [&[u8]; 3] = [b"\x7fELF", b".version", b"//"];
        if !forms.iter().any(|form| image.starts_with(form)) {
            return Err(Code::INVALID_IMAGE);
        }
        give(module, common::load(image)?)
    }
    fn cuModuleUnload(module: usize) { asked()?.1.unload(module) }
    fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) {
        let (device, mut machine) = asked()?;
        check(!name.is_null())?;
        let found = machine.function(module, &CStr::from_ptr(name).to_string_lossy())?;
        match is_entry_of(machine.image(module)?, machine.kernel(found, device.ordinal)?.0) {
            true => give(function, found),
            false => Err(Code::INVALID_PTX),
        }
    }
    fn cuFuncSetAttribute(function: usize, attribute: c_int, value: c_int) {
        let (_, mut machine) = asked()?;
        check(attribute == MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0)?;
        machine.allow_shared(function, value as u32)
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: usize, threads: c_int, bytes: usize) {
        common::occupancy(blocks, function, threads, bytes)
    }
    fn cuOccupancyMaxActiveClusters(clusters: *mut c_int, function: usize, config: *const LaunchConfig) {
        let (device, machine) = asked()?;
        let (kernel, most_shared) = machine.kernel(function, device.ordinal)?;
        check(!config.is_null())?;
        let LaunchConfig { grid, block, shared_bytes, attributes, count, .. } = &*config;
        check(grid[1..] == [1, 1] && block[1..] == [1, 1] && (1..=1024).contains(&block[0]))?;
        check(*shared_bytes <= most_shared && attributes.is_null() && *count == 0)?;
        if kernel.cluster == 1 || grid[0] == 0 || !grid[0].is_multiple_of(kernel.cluster) {
            return Err(Code::INVALID_CLUSTER);
        }
        give(clusters, (MULTIPROCESSORS * BLOCKS / kernel.cluster) as c_int)
    }
    fn cuLaunchKernel(
        function: usize, blocks: c_uint, gy: c_uint, gz: c_uint, threads: c_uint, by: c_uint, bz: c_uint,
        shared_bytes: c_uint, stream: usize, parameters: *const *mut c_void, extra: *const *mut c_void,
    ) {
        common::launch(function, [[blocks, gy, gz], [threads, by, bz]], shared_bytes, stream, [parameters, extra])
    }
}
