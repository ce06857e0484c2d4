//! The dialects of the vendors' GPUs: tables, and no code.

use super::declared::{PREFETCH_LINE, PREFETCH_RANGE};
use super::{AtOnce, Device, Fences, Prefetch, ScopeName, SharedMemory};
use crate::gpu::exchange::lanes::Shuffle;

/// NVIDIA GPUs.
pub(in crate::gpu) const NVPTX: Device = Device {
    calling_convention: 71,
    thread: "llvm.nvvm.read.ptx.sreg.tid.x",
    block: "llvm.nvvm.read.ptx.sreg.ctaid.x",
    blocks: Some("llvm.nvvm.read.ptx.sreg.nctaid.x"),
    barrier: "llvm.nvvm.barrier.cta.sync.aligned.all",
    barrier_number: Some(0),
    part_barrier: Some("llvm.nvvm.barrier.cta.sync.aligned.count"),
    fences: None,
    barrier_completes_stores: true,
    shared: SharedMemory::Dynamic,
    varying_register: "r",
    uniform_register: "l",
    shuffle: Shuffle::Butterfly("llvm.nvvm.shfl.sync.bfly.i32"),
    first_lane: None,
    // Of an update in one instruction LLVM drops the scope: it has that of the device.
    scopes: [
        ScopeName { name: "block", updates: true },
        ScopeName { name: "device", updates: true },
        ScopeName { name: "", updates: false },
    ],
    vector_stores: true,
    prefetch: Some(Prefetch { line_bytes: 128, line: PREFETCH_LINE, range: PREFETCH_RANGE }),
    load_matrices: Some([
        "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{}.b16",
        "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{}.trans.b16",
    ]),
    store_matrices: Some([
        "llvm.nvvm.stmatrix.sync.aligned.m8n8.x{}.b16",
        "llvm.nvvm.stmatrix.sync.aligned.m8n8.x{}.trans.b16",
    ]),
    buffers: None,
    takes_groups: false,
    cluster: Some("nvvm.cluster_dim"),
    at_once: AtOnce::Blocks("nvvm.minctasm"),
    attributes: &[("nvvm.reqntid", "{},1,1")],
};

/// AMD GPUs whose waves have 32 lanes. Their threads have too few registers for what is read a step ahead.
pub(in crate::gpu) const RDNA: Device = Device {
    // LLVM's fences wait for stores where a work-group may be on two compute units.
    barrier_completes_stores: true,
    shuffle: Shuffle::Rdna,
    buffers: Some(RDNA_BUFFERS),
    takes_groups: false,
    at_once: AtOnce::Waves(WAVES, 2),
    ..CDNA
};

/// How many waves a SIMD unit is to have at least ("User Guide for AMDGPU Backend", LLVM IR attributes); a compute unit has
/// four such units, RDNA's has two.
const WAVES: &str = "amdgpu-waves-per-eu";

/// The last word of a buffer resource (CDNA 3 and RDNA 3 ISA manuals, "Buffer Resource Descriptor"). A format must be
/// given, though loads and stores of plain words don't look at it: without one the resource is void. On CDNA it is 32 bits
/// (bits 15 to 18) of a float (bits 12 to 14). On RDNA it is one number (bits 12 to 18), bit 24 is set, and bits 28 and 29
/// say that what is checked is the offset, as it always is on CDNA where there is no stride.
const CDNA_BUFFERS: u32 = 4 << 15 | 7 << 12;
const RDNA_BUFFERS: u32 = 3 << 28 | 1 << 24 | 4 << 12;

/// AMD GPUs whose waves have 64 lanes. Their barrier orders execution only.
pub(in crate::gpu) const CDNA: Device = Device {
    calling_convention: 91,
    thread: "llvm.amdgcn.workitem.id.x",
    block: "llvm.amdgcn.workgroup.id.x",
    blocks: None,
    barrier: "llvm.amdgcn.s.barrier",
    barrier_number: None,
    part_barrier: None,
    fences: Some(Fences { scope: "workgroup", of_shared_memory: ["amdgpu-synchronize-as", "local"] }),
    // A fence of a work-group doesn't wait for stores, which its waves see in order, and one of the device waits for those of
    // its own wave (LLVM's AMDGPU usage guide, "Memory Model GFX90A" and "GFX942", not in threadgroup split mode).
    barrier_completes_stores: false,
    shared: SharedMemory::Static,
    varying_register: "v",
    uniform_register: "s",
    shuffle: Shuffle::Cdna,
    first_lane: Some("llvm.amdgcn.readfirstlane"),
    scopes: [
        ScopeName { name: "workgroup", updates: true },
        ScopeName { name: "agent", updates: true },
        ScopeName { name: "", updates: true },
    ],
    vector_stores: false,
    prefetch: None,
    load_matrices: None,
    store_matrices: None,
    buffers: Some(CDNA_BUFFERS),
    takes_groups: true,
    cluster: None,
    at_once: AtOnce::Waves(WAVES, 4),
    attributes: &[
        ("amdgpu-flat-work-group-size", "{},{}"),
        ("uniform-work-group-size", "true"),
        ("amdgpu-no-implicitarg-ptr", ""),
    ],
};
