//! Launches through the public interface, of code that the stand-in runs as functions of the host.

use super::*;
#[cfg(not(feature = "jit"))]
use crate::embedded::left_out;
use crate::embedded::{Embedded, EmbeddedCode, Variant, launch};
use crate::error::Error;
#[cfg(not(feature = "jit"))]
use crate::launch::Candidate;
use crate::launch::{KernelDef, Launch};
use crate::tensor::Tensor;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tile_ir::specialize::Binding;
use tile_ir::target::Family;

const DOUBLE: &str = "\
kernel @double<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [B] : partition<n x f32, [B]>
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %i = block_index %vy : index
  %0 = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %0 : tile<B x f32>
  %d = add %t, %t : tile<B x f32>
  store_masked %vy, %d
}
";

const fn code(
    target: &'static str,
    variant: Variant,
    code: EmbeddedCode,
    symbol: &'static str,
    shared: bool,
) -> Embedded {
    let (bindings, launch) = (&[("B", Binding::Const(4))], launch(64, 0, 0, shared, 1, 1));
    Embedded { target, bindings, variant, code, symbol, launch, tensor_maps: &[] }
}

const fn amd(variant: Variant, text: &'static str, symbol: &'static str, shared: bool) -> Embedded {
    code("gfx942", variant, EmbeddedCode::Hsaco(text.as_bytes()), symbol, shared)
}

const fn nvidia(variant: Variant, text: &'static str, symbol: &'static str, shared: bool) -> Embedded {
    code("sm_80", variant, EmbeddedCode::Ptx { text, cubin: None }, symbol, shared)
}

/// Code for whichever vendor's device the suite runs on.
const fn codes(text: &'static str, symbol: &'static str, shared: bool) -> [Embedded; 2] {
    [amd(Variant::General, text, symbol, shared), nvidia(Variant::General, text, symbol, shared)]
}

static EMBEDDED: [Embedded; 2] = codes(image!("general", 3), "general", false);
pub(super) static KERNEL: KernelDef = KernelDef::new("double", DOUBLE, &EMBEDDED);

/// Doubles every element; the slots are two addresses and the length.
pub(super) fn double(grid: Grid, slots: &[u64]) {
    let [x, y, n] = slots else { panic!("{} slots", slots.len()) };
    assert_eq!(u64::from(grid.blocks), n.div_ceil(4));
    for i in 0..*n as usize {
        // SAFETY: the slots are the addresses of as many elements.
        unsafe { (*y as *mut f32).add(i).write(2.0 * (*x as *const f32).add(i).read()) }
    }
}

pub(super) fn ramp(device: &Device, n: usize) -> Tensor<f32> {
    Tensor::from_vec(device, (0..n).map(|i| i as f32).collect(), [n]).unwrap()
}

pub(super) fn call<'a>(kernel: &'static KernelDef, x: &'a Tensor<f32>, y: &'a mut Tensor<f32>) -> Launch<'a> {
    Launch::new(kernel).constant("B", 4).tensor("x", x).tensor_mut("y", y)
}

#[test]
fn a_code_object_for_the_processor_is_found_and_launched() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    for n in [1, 4, 11, 1000] {
        let x = ramp(&device, n);
        let mut y = Tensor::zeros(&device, [n]).unwrap();
        call(&KERNEL, &x, &mut y).launch().unwrap();
        // The launch returned before anything ran.
        assert!(driver.pending() > 0);
        assert_eq!(y.to_vec().unwrap(), (0..n).map(|i| 2.0 * i as f32).collect::<Vec<_>>());
    }
    // The code was loaded once.
    assert_eq!(driver.live().modules, 1);
    drop(device);
    assert_eq!(driver.live(), Live::default());
}

#[test]
fn a_launch_that_is_warmed_is_loaded_and_has_not_run() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let x = ramp(&device, 11);
    let mut y = Tensor::<f32>::zeros(&device, [11]).unwrap();
    assert_eq!(driver.live().modules, 0);
    call(&KERNEL, &x, &mut y).warm().unwrap();
    assert_eq!(driver.live().modules, 1);
    assert_eq!(y.to_vec().unwrap(), [0.0; 11]);
    call(&KERNEL, &x, &mut y).launch().unwrap();
    assert_eq!((driver.live().modules, y.to_vec().unwrap()[10]), (1, 20.0));
}

#[test]
fn a_timed_launch_waits_and_gives_the_time_between_its_events() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let time = call(&KERNEL, &x, &mut y).launch_timed().unwrap();
    // A microsecond for a piece of work: the first event and the kernel.
    assert_eq!(time.as_nanos(), 2_000);
    assert_eq!(driver.pending(), 0);
    // Others use the same events.
    let events = driver.live().events;
    for _ in 0..10 {
        call(&KERNEL, &x, &mut y).launch_timed().unwrap();
    }
    assert_eq!(driver.live().events, events);
}

/// A driver that takes long to load some code keeps no launch of other code waiting, and loads it once.
#[test]
#[cfg_attr(miri, ignore = "threads that wait for time to pass, in orders that loom tries")]
fn code_is_loaded_outside_of_every_lock_and_once() {
    const IMAGE: &str = image!("slow", 3);
    static SLOW: [Embedded; 2] = codes(IMAGE, "slow", false);
    static SLOW_KERNEL: KernelDef = KernelDef::new("double", DOUBLE, &SLOW);
    static LOADS: AtomicUsize = AtomicUsize::new(0);
    static QUICK: AtomicBool = AtomicBool::new(false);
    extern "C" fn load(image: *const u8, bytes: usize) {
        // SAFETY: who loads the image gives it.
        if unsafe { std::slice::from_raw_parts(image, bytes) } == IMAGE.as_bytes() {
            LOADS.fetch_add(1, Ordering::Relaxed);
            // Were other code to wait for this, neither would go on.
            while !QUICK.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
    }
    let (device, driver) = device(1 << 20, true);
    driver.add("slow", 3, double);
    driver.add("general", 3, double);
    driver.before_loads(load);
    let launch = |kernel: &'static KernelDef| {
        let x = ramp(&device, 8);
        let mut y = Tensor::zeros(&device, [8]).unwrap();
        call(kernel, &x, &mut y).launch().unwrap();
        y.to_vec().unwrap()
    };
    std::thread::scope(|scope| {
        let slow: Vec<_> = (0..4).map(|_| scope.spawn(|| launch(&SLOW_KERNEL))).collect();
        while LOADS.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(launch(&KERNEL)[7], 14.0);
        QUICK.store(true, Ordering::Release);
        slow.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap()[7], 14.0));
    });
    assert_eq!((LOADS.load(Ordering::Relaxed), driver.live().modules), (1, 2));
}

#[test]
fn a_grid_that_is_too_large_is_refused_before_anything_is_enqueued() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    // SAFETY: nothing is there, and nothing is touched.
    let huge = |address| unsafe { Tensor::<f32>::from_raw(&device, address, [1 << 40]) }.unwrap();
    let (x, mut y) = (huge(1 << 43), huge(1 << 44));
    let error = call(&KERNEL, &x, &mut y).launch().unwrap_err().reason().to_string();
    let begin = "kernel `general` can't be launched so: a grid of 274877906944 blocks exceeds ";
    assert!(error.starts_with(begin) && error.ends_with("; use larger tiles"), "{error}");
    assert_eq!(driver.pending(), 0);
}

#[test]
fn code_without_the_symbol_is_an_error_and_leaves_nothing_loaded() {
    let (device, driver) = device(1 << 20, true);
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let error = call(&KERNEL, &x, &mut y).launch().unwrap_err();
    assert_eq!(
        error.reason().to_string(),
        format!(
            "loading `general` failed on {:?}: {}",
            context(&device),
            driver.failure(Code::NOT_FOUND).message
        )
    );
    assert_eq!(driver.live().modules, 0);
}

#[test]
fn a_kernel_that_goes_wrong_loses_the_device_at_the_next_wait() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    context(&device).synchronize().unwrap();
    call(&KERNEL, &x, &mut y).launch().unwrap();
    driver.lose_at_next_work(Code::LAUNCH_FAILED);
    assert!(matches!(y.to_vec(), Err(Error::DeviceLost { .. })));
    let error = call(&KERNEL, &x, &mut y).launch().unwrap_err().to_string();
    assert!(error.starts_with("launching `general` failed on "), "{error}");
    assert!(error.contains("unspecified launch failure"), "{error}");
}

/// An instance that the build script has left out is no candidate, and one that is launched by name says why.
#[cfg(not(feature = "jit"))]
#[test]
#[cfg_attr(miri, ignore = "what is chosen of embedded code, and no memory that others don't use")]
fn an_instance_that_was_left_out_says_why() {
    const REASON: &str =
        "kernel `double` needs 90112 bytes of shared memory per block, but the target has 65536";
    const LARGE: &[(&str, Binding)] = &[("B", Binding::Const(8))];
    static EMBEDDED: [Embedded; 4] = {
        let [amd, nvidia] = codes(image!("general", 3), "general", false);
        [left_out("gfx942", LARGE, REASON), left_out("sm_80", LARGE, REASON), amd, nvidia]
    };
    static KERNEL: KernelDef = KernelDef::new("double", DOUBLE, &EMBEDDED);
    const CANDIDATES: &[Candidate] = &[LARGE, &[("B", Binding::Const(4))], &[("B", Binding::Const(16))]];
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let x = ramp(&device, 11);
    let mut y = Tensor::<f32>::zeros(&device, [11]).unwrap();
    fn of<'a>(size: usize, x: &'a Tensor<f32>, y: &'a mut Tensor<f32>) -> Launch<'a> {
        Launch::new(&KERNEL).constant("B", size).tensor("x", x).tensor_mut("y", y)
    }
    fn best<'a>(x: &'a Tensor<f32>, y: &'a mut Tensor<f32>) -> Launch<'a> {
        Launch::choosing(&KERNEL, CANDIDATES).tensor("x", x).tensor_mut("y", y)
    }
    let Error::LeftOut { bindings, reason, .. } = of(8, &x, &mut y).launch().unwrap_err().reason().clone()
    else {
        panic!("the instance was left out")
    };
    assert_eq!((bindings.as_str(), reason.as_str()), ("B = 8", REASON));
    // One that nobody compiled is another matter.
    let missing = of(16, &x, &mut y).launch().unwrap_err();
    assert!(matches!(missing.reason(), Error::MissingInstance { .. }), "{missing}");
    assert!(!missing.to_string().contains("B = 8"), "{missing}");
    // What it needs is said as a build script names it, not as the GPU is called.
    let Error::MissingInstance { target, .. } = missing.reason() else { unreachable!() };
    assert!(["sm_80", "gfx942"].contains(&target.as_str()), "{missing}");
    let choices = best(&x, &mut y).choices().unwrap();
    let reasons: Vec<_> = choices.rows().iter().filter_map(|row| row.prediction.as_ref().err()).collect();
    assert_eq!(reasons, [REASON, "the program has no code of it for the device"], "{choices}");
    best(&x, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap()[10], 20.0);
}

/// The stand-in finds the symbol in the code object that was compiled and linked for its processor.
#[cfg(feature = "jit")]
#[test]
fn without_embedded_code_a_code_object_is_compiled() {
    static BARE: KernelDef = KernelDef::new("double", DOUBLE, &[]);
    let (device, driver) = device(1 << 20, true);
    driver.add("double", 3, double);
    for n in [4, 11] {
        let x = ramp(&device, n);
        let mut y = Tensor::zeros(&device, [n]).unwrap();
        call(&BARE, &x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), (0..n).map(|i| 2.0 * i as f32).collect::<Vec<_>>());
    }
}

/// Blocks that go on to further places of the grid are as many as run at once.
#[test]
#[cfg_attr(miri, ignore = "what is chosen of embedded code, and no memory that others don't use")]
fn blocks_that_share_a_grid_are_as_many_as_run_at_once() {
    static SHARING: [Embedded; 2] = codes(image!("sharing", 3), "sharing", true);
    static SHARES: KernelDef = KernelDef::new("double", DOUBLE, &SHARING);
    /// Writes how many there are.
    fn count(grid: Grid, slots: &[u64]) {
        // SAFETY: the second slot is the address of at least one element.
        unsafe { (slots[1] as *mut f32).write(grid.blocks as f32) }
    }
    let (device, driver) = device(1 << 20, true);
    driver.add("sharing", 3, count);
    for (n, blocks) in [(8, 2.0), (1000, 8.0)] {
        let x = ramp(&device, n);
        let mut y = Tensor::zeros(&device, [n]).unwrap();
        call(&SHARES, &x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap()[0], blocks, "{n}");
    }
}

/// Of the variants that its vendor's code has, a launch takes the one that relies on most of what its sizes are.
#[test]
#[cfg_attr(miri, ignore = "what is chosen of embedded code, and no memory that others don't use")]
fn a_launch_takes_the_variant_that_its_sizes_allow() {
    const FILL: &str = "\
kernel @fill<B>(%y: mut tensor<m x n x f32>) {
  %vy = partition %y [B, 4] : mut partition<m x n x f32, [B, 4]>
  %0 = constant 0.0 : f32
  %t = splat %0 : tile<B x 4 x f32>
  store_masked %vy, %t
}
";
    static VARIANTS: [Embedded; 5] = [
        amd(Variant::General, image!("general", 3), "general", false),
        amd(Variant::Near, image!("near", 3), "near", false),
        amd(Variant::AlignedNear, image!("aligned_near", 3), "aligned_near", false),
        nvidia(Variant::General, image!("general", 3), "general", false),
        nvidia(Variant::Aligned, image!("aligned", 3), "aligned", false),
    ];
    static FILLS: KernelDef = KernelDef::new("fill", FILL, &VARIANTS);
    fn mark<const MARK: u32>(_: Grid, slots: &[u64]) {
        // SAFETY: the first slot is the address of at least one element.
        unsafe { (slots[0] as *mut f32).write(MARK as f32) }
    }
    let (device, driver) = device(1 << 20, true);
    let kernels: [(_, super::super::stand_in::Kernel); 4] =
        [("general", mark::<1>), ("near", mark::<2>), ("aligned_near", mark::<3>), ("aligned", mark::<4>)];
    kernels.into_iter().for_each(|(symbol, kernel)| driver.add(symbol, 3, kernel));
    let expected = match driver.surface().family() {
        Family::Nvptx => [(8, 4.0), (7, 1.0)],
        _ => [(8, 3.0), (7, 2.0)],
    };
    for (n, expected) in expected {
        let mut y = Tensor::<f32>::zeros(&device, [4, n]).unwrap();
        Launch::new(&FILLS).constant("B", 4).tensor_mut("y", &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap()[0], expected, "{n}");
    }
}

/// A GPU gets addresses that are multiples of 16 bytes, and where elements lie from there; code for that is compiled.
#[cfg(feature = "jit")]
#[test]
fn views_are_described_from_an_aligned_address_on() {
    use std::sync::Mutex;
    use tile_layout::Index;
    static SEEN: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());
    static STRIDED: KernelDef = KernelDef::new("double_strided", DOUBLE, &[]);
    let (device, driver) = device(1 << 20, true);
    let x = ramp(&device, 64);
    let mut y = Tensor::<f32>::zeros(&device, [9]).unwrap();
    let mut launched = |begin: i64, end: i64, step: i64, slots: usize| {
        driver.add("double", slots, |_, slots| SEEN.lock().unwrap().push(slots.to_vec()));
        let view = x.slice(Index::slice(begin, end, step)).unwrap();
        Launch::new(&STRIDED).constant("B", 4).tensor("x", &view).tensor_mut("y", &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [0.0; 9]);
        let slots = SEEN.lock().unwrap().pop().unwrap();
        assert_eq!((slots[0] % 16, slots[1] % 16), (0, 0));
        slots[2..].to_vec()
    };
    // The length, then the stride of what has one, then elements before the first.
    assert_eq!(launched(4, 13, 1, 3), [9]);
    assert_eq!(launched(5, 14, 1, 4), [9, 1]);
    assert_eq!(launched(8, 26, 2, 4), [9, 2]);
    assert_eq!(launched(11, 29, 2, 5), [9, 2, 3]);
    assert_eq!(launched(34, 16, -2, 5), [9, 2, 2]);
}

/// Without a compiler a tensor that begins elsewhere is refused, with both ways out.
#[cfg(not(feature = "jit"))]
#[test]
#[cfg_attr(miri, ignore = "what is chosen of embedded code, and no memory that others don't use")]
fn embedded_code_takes_tensors_that_begin_at_multiples_of_16_bytes() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let x = ramp(&device, 12);
    let mut y = Tensor::<f32>::zeros(&device, [4]).unwrap();
    let mut launched = |begin: usize| {
        let x = x.slice(begin..begin + 4).unwrap();
        Launch::new(&KERNEL).constant("B", 4).tensor("x", &x).tensor_mut("y", &mut y).launch()
    };
    launched(4).unwrap();
    assert_eq!(
        launched(5).unwrap_err().reason().to_string(),
        "`x` of kernel `double` begins at no multiple of 16 bytes, and embedded code is for dense tensors alone; pass a \
         copy, which `.to_dense()` makes, or enable the feature `jit` of `tile`, which compiles the kernel for it"
    );
}
