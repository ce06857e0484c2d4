//! The calls of the driver's functions, on a library with their names and their checks (`tests/drivers/libcuda`). What
//! NVIDIA's own driver does with them it can't show. What the runtime makes of a driver is tested on the same library by
//! `gpu/tests`.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::*;
use crate::device::{Device, Kind};
use crate::embedded::{Binding, Embedded, EmbeddedCode, Variant, launch};
use crate::gpu::MemoryLimits;
use crate::gpu::context::Context;
use crate::gpu::stand_in::vendors::{self, Vendor};
use crate::gpu::stand_in::{Grid as Blocks, StandIn};
use crate::launch::{KernelDef, Launch as KernelLaunch};
use crate::tensor::Tensor;
use tile_ir::DType;
use tile_ir::tensor_map::Swizzle;

/// In a process that has the library, the tests of the calls alone; they are functions, because there is one such process.
#[test]
fn the_suite_passes_on_the_functions_of_cuda() {
    vendors::suite(
        Vendor::Cuda,
        "gpu::cuda::tests::",
        &[
            ("devices_are_described", devices_are_described),
            (
                "a_kernel_gets_the_parameters_of_its_calling_convention",
                a_kernel_gets_the_parameters_of_its_calling_convention,
            ),
            ("places_of_a_grid_have_clusters", places_of_a_grid_have_clusters),
            ("code_that_the_driver_refuses_is_told_of", code_that_the_driver_refuses_is_told_of),
            (
                "tensor_maps_of_every_format_and_swizzle_keep_to_the_drivers_rules",
                tensor_maps_of_every_format_and_swizzle_keep_to_the_drivers_rules,
            ),
            (
                "tensor_maps_of_small_tensors_have_nothing_read_beyond_them",
                tensor_maps_of_small_tensors_have_nothing_read_beyond_them,
            ),
            ("tensor_maps_are_encoded_on_any_thread", tensor_maps_are_encoded_on_any_thread),
            (
                "the_way_to_a_peer_is_opened_before_the_first_copy",
                the_way_to_a_peer_is_opened_before_the_first_copy,
            ),
            ("the_library_checks_its_arguments", the_library_checks_its_arguments),
        ],
    );
}

fn refused(name: &str) -> Failure {
    Failure::refused(format!("invalid argument ({name})"))
}

fn devices_are_described() {
    assert_eq!(count(), Ok(2));
    let [first, second] = [0, 1].map(|ordinal| Cuda::open(ordinal).unwrap().describe().unwrap());
    assert_eq!(first.name, "NVIDIA A100-SXM4-80GB");
    assert_eq!(first.architecture, Architecture::Nvidia { major: 8, minor: 0 });
    assert_eq!((first.multiprocessors, first.warp, first.clusters), (108, 32, false));
    assert_eq!(second.name, "NVIDIA H100 80GB HBM3");
    assert_eq!(second.architecture, Architecture::Nvidia { major: 9, minor: 0 });
    assert_eq!((second.multiprocessors, second.clusters, second.pools), (132, true, true));
    assert_eq!((second.shared_bytes, second.l2_bytes), (227 << 10, 50 << 20));
    // Two words of a bus of 5120 bits per clock of 2.619 GHz.
    assert_eq!((second.clock, second.memory_rate), (Some(1.98e9), Some(3.352_32e12)));
    assert_eq!((&*second.driver, second.grid_threads), ("CUDA 12.8", None));
    assert_eq!(first.uuid.as_deref(), Some("5a21c80f-ee01-4b7d-9012-3456789abc00"));
    assert_eq!(second.uuid.as_deref(), Some("5a21c80f-ee01-4b7d-9012-3456789abc01"));
    let places = [first.pci_bus, second.pci_bus];
    assert_eq!(places.each_ref().map(Option::as_deref), [Some("0000:3b:00.0"), Some("0000:db:00.0")]);
    let nowhere = Cuda::open(4000).err().unwrap();
    assert_eq!(nowhere, Failure::refused("invalid device ordinal (CUDA_ERROR_INVALID_DEVICE)"));
}

/// Slots, tensor maps, shared memory beyond what every block has, and clusters, on the GPU that has them.
fn a_kernel_gets_the_parameters_of_its_calling_convention() {
    const FILL: &str = "\
kernel @fill<B>(%y: mut tensor<m x n x f32>) {
  %vy = partition %y [B, 4] : mut partition<m x n x f32, [B, 4]>
  %0 = constant 0.0 : f32
  %t = splat %0 : tile<B x 4 x f32>
  store_masked %vy, %t
}
";
    const PTX: &str = "\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry paired(.param .u64 y, .param .u64 m, .param .u64 n, .param .align 64 .b8 map[128])
.reqntid 128, 1, 1
.reqnctapercluster 2, 1, 1
{ ret; }
";
    static CODE: [Embedded; 1] = [Embedded {
        target: "sm_90a",
        bindings: &[("B", Binding::Const(8))],
        variant: Variant::General,
        code: EmbeddedCode::Ptx { text: PTX, cubin: None },
        symbol: "paired",
        launch: launch(128, 100 << 10, 0, true, 2, 1),
        tensor_maps: &["argument 0 : f32 offset 0 [n stride 1 tile 4, m stride n tile 8] swizzle 0"],
    }];
    static KERNEL: KernelDef = KernelDef::new("fill", FILL, &CODE);
    /// The number of blocks, and what the tensor map says, as the library encodes it.
    fn note(grid: Blocks, words: &[u64]) {
        assert_eq!((grid.threads, grid.shared_bytes, words.len()), (128, 100 << 10, 3 + 16));
        let (y, map) = (words[0], &words[3..]);
        assert_eq!((map[0], map[1..3].to_vec(), map[6]), (y, vec![words[2], words[1]], 4 * words[2]));
        // 4 × 8 elements, two axes, no swizzle, floats.
        assert_eq!((map[10..12].to_vec(), map[15]), (vec![4, 8], 2 << 16 | 7));
        // SAFETY: the tensor has more elements than one.
        unsafe { (y as *mut f32).write(grid.blocks as f32) };
    }
    let hopper = StandIn::existing(1);
    hopper.add_whole("paired", &[8, 8, 8, 128], 2, note);
    let device = Device(Kind::Gpu(Arc::new(Context::new(hopper.driver(), MemoryLimits::default()).unwrap())));
    let mut y = Tensor::<f32>::zeros(&device, [64, 16]).unwrap();
    KernelLaunch::new(&KERNEL).constant("B", 8).tensor_mut("y", &mut y).launch().unwrap();
    // There are 32 tiles, and 4 clusters of two blocks run at once.
    assert_eq!(y.to_vec().unwrap()[0], 8.0);
}

/// Where a cluster's blocks share each tile, a launch has all of them for each place of the grid.
fn places_of_a_grid_have_clusters() {
    const COPY: &str = "\
kernel @copy<B>(%y: mut tensor<n x f32>) {
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %0 = constant 0.0 : f32
  %t = splat %0 : tile<B x f32>
  store_masked %vy, %t
}
";
    const PTX: &str = "\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry shared_tiles(.param .u64 y, .param .u64 n)
.reqntid 256, 1, 1
.reqnctapercluster 4, 1, 1
{ ret; }
";
    static CODE: [Embedded; 1] = [Embedded {
        target: "sm_90a",
        bindings: &[("B", Binding::Const(8))],
        variant: Variant::General,
        code: EmbeddedCode::Ptx { text: PTX, cubin: None },
        symbol: "shared_tiles",
        launch: launch(256, 0, 0, false, 4, 4),
        tensor_maps: &[],
    }];
    static KERNEL: KernelDef = KernelDef::new("copy", COPY, &CODE);
    fn note(grid: Blocks, words: &[u64]) {
        // SAFETY: the tensor has elements.
        unsafe { (words[0] as *mut f32).write(grid.blocks as f32) };
    }
    let hopper = StandIn::existing(1);
    hopper.add_whole("shared_tiles", &[8, 8], 4, note);
    let device = Device(Kind::Gpu(Arc::new(Context::new(hopper.driver(), MemoryLimits::default()).unwrap())));
    let mut y = Tensor::<f32>::zeros(&device, [37]).unwrap();
    KernelLaunch::new(&KERNEL).constant("B", 8).tensor_mut("y", &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap()[0], 20.0);
}

/// Code whose parameters or clusters aren't those of the kernel is refused, and so is what isn't code.
fn code_that_the_driver_refuses_is_told_of() {
    let stand_in = StandIn::new(1 << 16, true);
    stand_in.add("other", 2, |_, _| ());
    assert_eq!(
        stand_in.load(b"other").unwrap_err(),
        Failure::refused("device kernel image is invalid (CUDA_ERROR_INVALID_IMAGE)")
    );
    let module = stand_in.load(b".version 8.0\n.entry other(.param .u64 a) { ret; }").unwrap();
    // SAFETY: the module was loaded above.
    let function = unsafe { stand_in.function(module, c"other", 0) };
    assert_eq!(
        function.unwrap_err(),
        Failure::refused("a PTX JIT compilation failed (CUDA_ERROR_INVALID_PTX)")
    );
}

fn map(elem: DType, swizzle: Swizzle) -> BoundMap {
    let row = if swizzle == Swizzle::None { 128 } else { swizzle.bytes() as usize };
    BoundMap {
        address: 0x7000,
        elem,
        extents: vec![1000, 30, 1],
        strides: vec![8000, 240_000],
        tile: vec![(row / elem.bytes()) as u32, 256, 1],
        swizzle,
    }
}

fn tensor_maps_of_every_format_and_swizzle_keep_to_the_drivers_rules() {
    let cuda = Cuda::open(1).unwrap();
    for &elem in DType::ALL {
        for swizzle in Swizzle::ALL {
            let map = map(elem, swizzle);
            let EncodedMap(bytes) = cuda.encode(&map).unwrap();
            let mut words: Vec<u64> =
                bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
            words[1] &= !READS_BEYOND;
            assert_eq!((words[0], &words[1..4], &words[6..8]), (map.address, &*map.extents, &*map.strides));
            let tile: Vec<u64> = map.tile.iter().map(|&extent| extent.into()).collect();
            assert_eq!((&words[10..13], words[15] >> 16), (&*tile, 3), "{elem} {swizzle:?}");
        }
    }
    let mut wrong = [0; 5].map(|_| map(DType::F32, Swizzle::Bytes64));
    wrong[0].address += 8;
    wrong[1].strides[0] += 8;
    wrong[2].tile[1] = 257;
    wrong[3].tile[0] *= 2;
    wrong[4].extents[2] = 0;
    for map in wrong {
        assert_eq!(cuda.encode(&map).unwrap_err(), refused("CUDA_ERROR_INVALID_VALUE"), "{map:?}");
    }
}

/// The bit that the library sets of every map, as drivers of its version do.
const READS_BEYOND: u64 = 1 << 21;

/// A tensor is small whose last element begins before 128 KiB less one byte.
fn tensor_maps_of_small_tensors_have_nothing_read_beyond_them() {
    let cuda = Cuda::open(1).unwrap();
    let reads_beyond = |rows: u64, pitch: u64| {
        let map = BoundMap {
            address: 0x7000,
            elem: DType::F32,
            extents: vec![8, rows],
            strides: vec![pitch],
            tile: vec![8, 64],
            swizzle: Swizzle::None,
        };
        let EncodedMap(bytes) = cuda.encode(&map).unwrap();
        let second = u64::from_ne_bytes(bytes[8..16].try_into().unwrap());
        assert_eq!(second & !READS_BEYOND, 8);
        second & READS_BEYOND != 0
    };
    // Rows of 32 bytes, dense.
    assert_eq!([1, 64, 4096].map(|rows| reads_beyond(rows, 32)), [false; 3]);
    assert!(reads_beyond(4097, 32));
    // Two rows, 28 bytes from the first element of a row to the last.
    let step = (128 << 10) - 32;
    assert_eq!([step - 16, step, step + 16].map(|pitch| reads_beyond(2, pitch)), [false, false, true]);
    // More than 64 bits have.
    assert!(reads_beyond(1 << 32, (1 << 40) - 16));
}

/// One that has called nothing yet has no context, and one that used another device has that one's.
fn tensor_maps_are_encoded_on_any_thread() {
    let devices = [0, 1].map(|ordinal| Cuda::open(ordinal).unwrap());
    let map = map(DType::F32, Swizzle::None);
    std::thread::scope(|scope| {
        let encoded = scope.spawn(|| devices.each_ref().map(|device| device.encode(&map).map(|_| ())));
        assert_eq!(encoded.join().unwrap(), [Ok(()), Ok(())]);
    });
}

fn the_way_to_a_peer_is_opened_before_the_first_copy() {
    let to = StandIn::new(1 << 16, true);
    let from = to.another();
    let devices = [&to, &from].map(|driver| Context::new(driver.driver(), MemoryLimits::default()).unwrap());
    let [to_device, from_device] = devices.map(|context| Device(Kind::Gpu(Arc::new(context))));
    let x = Tensor::full(&from_device, [100], 7_u8).unwrap();
    assert!(!to.has_ways_to(&from));
    for _ in 0..2 {
        assert_eq!(x.copy_to(&to_device).unwrap().to_vec().unwrap(), [7; 100]);
    }
    assert!(to.has_ways_to(&from) && !from.has_ways_to(&to));
}

/// What the other tests rely on: the library refuses what the driver does.
fn the_library_checks_its_arguments() {
    use sys::CUresult::*;
    let driver = StandIn::new(1 << 16, true);
    let (stream, event) = (driver.create_stream().unwrap(), driver.create_event(EventKind::Plain).unwrap());
    let other = StandIn::new(1 << 16, true);
    let theirs = other.create_stream().unwrap();
    let address = driver.allocate(64).unwrap();
    // SAFETY: the library looks whether handles and memory are there; they are used here alone.
    unsafe {
        // The thread's context is the first device's from here on.
        driver.free(address).unwrap();
        assert_eq!(sys::cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
        let ordered = driver.allocate_ordered(64, stream).unwrap();
        assert_eq!(sys::cuMemFree_v2(ordered), CUDA_ERROR_INVALID_VALUE);
        driver.free_ordered(ordered, stream).unwrap();
        assert_eq!(driver.free_ordered(ordered, stream).unwrap_err(), refused("CUDA_ERROR_INVALID_VALUE"));
        let fill = |first, pitch, on| sys::cuMemsetD2D32Async(first, pitch, 0, 4, 2, stream_of(on));
        assert_eq!(fill(address + 2, 16, stream), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(fill(address, 12, stream), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(fill(address, 16, theirs), CUDA_ERROR_INVALID_HANDLE);
        // Making the event has made the other device's context the thread's.
        let theirs = other.create_event(EventKind::Plain).unwrap();
        driver.create_event(EventKind::Plain).and_then(|event| driver.destroy_event(event)).unwrap();
        let recorded = sys::cuEventRecord(super::event(theirs), stream_of(stream));
        assert_eq!(recorded, CUDA_ERROR_INVALID_HANDLE);
        driver.destroy_event(event).unwrap();
        assert_eq!(sys::cuEventDestroy_v2(super::event(event)), CUDA_ERROR_INVALID_HANDLE);
        driver.destroy_stream(stream).unwrap();
        assert_eq!(sys::cuStreamSynchronize(stream_of(stream)), CUDA_ERROR_INVALID_HANDLE);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut address = 0;
            // SAFETY: the thread has no context, which is all that the library comes to look at.
            let outcome = unsafe { sys::cuMemAlloc_v2(&raw mut address, 64) };
            assert_eq!(outcome, CUDA_ERROR_INVALID_CONTEXT);
        });
    });
    // A copy beyond an allocation loses the device, for every later call.
    let address = driver.allocate(64).unwrap();
    // SAFETY: as above.
    let failure = unsafe {
        driver.copy(address, address + 32, 64, StreamHandle::DEFAULT).unwrap();
        driver.synchronize(StreamHandle::DEFAULT).unwrap_err()
    };
    assert_eq!(failure.kind, FailureKind::Lost);
    assert_eq!(driver.memory().unwrap_err(), failure);
    assert_eq!(driver.create_stream().unwrap_err(), failure);
}

fn stream_of(handle: StreamHandle) -> sys::CUstream {
    super::stream(handle)
}
