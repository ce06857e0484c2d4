//! Launches of kernels given as IR text: every device, and every message that a user may read.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

#[cfg(not(feature = "jit"))]
use tile_ir::abi::CpuEntry;
use tile_ir::view::GivenTensor;
use tile_layout::{Index, Movement};
#[cfg(not(feature = "jit"))]
use tile_runtime::embedded::{Binding, Embedded, EmbeddedCode, Variant, launch};
#[cfg(not(feature = "jit"))]
use tile_runtime::launch::Candidate;
use tile_runtime::launch::KernelDef;
use tile_runtime::reference::Arguments;
use tile_runtime::{Device, Error, Launch, Tensor, TensorRef};
#[cfg(feature = "jit")]
use tile_runtime::{TensorView, TensorViewMut};

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

static KERNEL: KernelDef = KernelDef::new("double", DOUBLE, &[]);
const B: usize = 4;

fn body(arguments: &Arguments<'_>) {
    let (x, given) = arguments.tensor::<f32>(0);
    let (y, written) = arguments.tensor_mut::<f32>(1);
    // Where element `i` lies, counted from the one that lies first.
    let at = |given: &GivenTensor<'_>, i: usize| match given.strides {
        Some([stride]) if *stride < 0 => stride.unsigned_abs() as usize * (given.extents[0] - 1 - i),
        Some([stride]) => *stride as usize * i,
        _ => i,
    };
    let start = arguments.block_index()[0] * B;
    for i in start..given.extents[0].min(start + B) {
        y.set(at(&written, i), 2.0 * x.at(at(&given, i)));
    }
}

fn double<'a>(x: &'a TensorRef<f32>, y: &'a mut TensorRef<f32>) -> Launch<'a> {
    Launch::new(&KERNEL).constant("B", B).tensor("x", x).tensor_mut("y", y).reference(body)
}

fn ramp(device: &Device, n: usize) -> Tensor<f32> {
    Tensor::from_vec(device, (0..n).map(|i| i as f32).collect(), [n]).unwrap()
}

fn check(device: &Device, n: usize) {
    let x = ramp(device, n);
    let mut y = Tensor::zeros(device, [n]).unwrap();
    double(&x, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), (0..n).map(|i| 2.0 * i as f32).collect::<Vec<_>>());
}

#[test]
fn the_reference_runs_the_body() {
    [0, 1, 4, 11].into_iter().for_each(|n| check(&Device::reference(), n));
}

#[cfg(feature = "jit")]
#[test]
fn the_cpu_runs_compiled_code() {
    [0, 1, 4, 11, 100_000].into_iter().for_each(|n| check(&Device::cpu(), n));
}

#[cfg(feature = "jit")]
#[test]
fn threads_launch_at_once_and_often() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..500).for_each(|i| check(&Device::cpu(), i % 37)));
        }
    });
}

#[cfg(not(feature = "jit"))]
#[test]
fn without_code_the_message_says_how_to_get_it() {
    let x = ramp(&Device::cpu(), 4);
    let mut y = Tensor::zeros(&Device::cpu(), [4]).unwrap();
    assert_eq!(
        double(&x, &mut y).launch().unwrap_err().reason().to_string(),
        "kernel `double` has no code for cpu with B = 4; this executable has none for any device. A build script \
         compiles every `#[tile_kernel]` with `instances(B = 4)` in `src` for the targets that it names, with \
         `.also(\"tests\")` those in `tests` too, and none that another macro makes or that it warns of: add what is \
         missing, or enable the feature `jit` of `tile`"
    );
}

/// Two of three instances have code; the one that fits the vector as a whole hasn't.
#[cfg(not(feature = "jit"))]
#[test]
fn an_instance_without_code_is_not_chosen() {
    /// Doesn't compute: the element at a block's begin is how large its tile is.
    unsafe extern "C" fn marks<const B: u64>(
        slots: *const u64,
        first: u64,
        end: u64,
        _: *mut u8,
        _: bool,
        _: bool,
    ) {
        for block in first..end {
            // SAFETY: the second slot is the address of the output, whose length is the third.
            unsafe {
                let (y, n) = (*slots.add(1) as *mut f32, *slots.add(2));
                assert!(block * B < n, "a block begins inside");
                y.add((block * B) as usize).write(B as f32);
            }
        }
    }
    const fn code(bindings: &'static [(&'static str, Binding)], entry: CpuEntry) -> Embedded {
        let code = EmbeddedCode::Cpu { level: "x86-64-v2", entry };
        let (variant, launch) = (Variant::General, launch(1, 0, 0, false, 1, 1));
        Embedded { target: "cpu", bindings, variant, code, symbol: "marks", launch, tensor_maps: &[] }
    }
    static EMBEDDED: [Embedded; 2] =
        [code(&[("B", Binding::Const(8))], marks::<8>), code(&[("B", Binding::Const(64))], marks::<64>)];
    static CODED: KernelDef = KernelDef::new("double", DOUBLE, &EMBEDDED);
    const CANDIDATES: &[Candidate] =
        &[&[("B", Binding::Const(16))], &[("B", Binding::Const(8))], &[("B", Binding::Const(64))]];

    let device = Device::cpu();
    let x = ramp(&device, 16);
    let mut y = Tensor::<f32>::zeros(&device, [16]).unwrap();
    fn coded<'a>(x: &'a Tensor<f32>, y: &'a mut Tensor<f32>) -> Launch<'a> {
        Launch::choosing(&CODED, CANDIDATES).tensor("x", x).tensor_mut("y", y)
    }
    let choices = coded(&x, &mut y).choices().unwrap();
    let reasons: Vec<_> = choices.rows().iter().filter_map(|row| row.prediction.as_ref().err()).collect();
    assert_eq!(reasons, ["the program has no code of it for the device"], "{choices}");
    let chosen = coded(&x, &mut y).instance().unwrap();
    assert_eq!(choices.chosen().unwrap().instance, chosen);
    coded(&x, &mut y).launch().unwrap();
    let tile: f32 = chosen.strip_prefix("B = ").unwrap().parse().unwrap();
    assert!(tile != 16.0 && y.to_vec().unwrap()[0] == tile, "{chosen}");

    // Without any code the launch says how to get it.
    let mut y = Tensor::<f32>::zeros(&device, [16]).unwrap();
    let none = Launch::choosing(&KERNEL, CANDIDATES).tensor("x", &x).tensor_mut("y", &mut y);
    assert!(matches!(none.launch().unwrap_err().reason(), Error::MissingInstance { .. }));
}

#[test]
fn wrong_arguments_are_refused_before_anything_runs() {
    let device = Device::reference();
    let (x, other) = (ramp(&device, 4), ramp(&Device::cpu(), 4));
    let mut y = Tensor::zeros(&device, [5]).unwrap();
    assert_eq!(
        double(&x, &mut y).launch().unwrap_err().reason().to_string(),
        "`n` of kernel `double` is 4 (axis 0 of `x`) and 5 (axis 0 of `y`); axes that share a name must have equal \
         extents"
    );
    let mut matrix = Tensor::zeros(&device, [2, 2]).unwrap();
    assert_eq!(
        double(&x, &mut matrix).launch().unwrap_err().reason().to_string(),
        "argument `y` has rank 2 (shape [2, 2]), but `double` declares rank 1; pass a view of it that has that rank: \
         `unsqueeze`, `squeeze`, `flatten` and `reshape` make one; for one that is written, call them on `view_mut()`"
    );
    let mut y = Tensor::zeros(&device, [4]).unwrap();
    assert_eq!(
        double(&other, &mut y).launch().unwrap_err().reason().to_string(),
        "the arguments of `double` are on different devices: `x` on cpu, `y` on reference; move one with \
         `Tensor::copy_to`"
    );
    let wrong = Launch::new(&KERNEL).constant("B", 4).tensor("x", &x).reference(body);
    assert!(matches!(wrong.launch().unwrap_err().reason(), Error::Launch { .. }));
    assert_eq!(y.to_vec().unwrap(), [0.0; 4]);
}

#[test]
fn a_zero_tile_and_a_damaged_text_are_errors() {
    let device = Device::reference();
    let x = ramp(&device, 4);
    let mut y = Tensor::<f32>::zeros(&device, [4]).unwrap();
    let zero = Launch::new(&KERNEL).constant("B", 0).tensor("x", &x).tensor_mut("y", &mut y).reference(body);
    assert_eq!(
        zero.launch().unwrap_err().reason().to_string(),
        "kernel `double` can't be made with these parameters: the tile extent `0` is not positive"
    );
    static DAMAGED: KernelDef = KernelDef::new("damaged", "kernel @damaged(%x: tensor<n", &[]);
    let damaged = Launch::new(&DAMAGED).tensor("x", &x).reference(body);
    assert_eq!(
        damaged.launch().unwrap_err().reason().to_string(),
        "the IR of kernel `damaged` in this executable is damaged (1:29: expected `x`, found the end of the text); \
         rebuild the program"
    );
}

#[test]
fn a_panic_in_the_body_is_an_error() {
    let device = Device::reference();
    let x = ramp(&device, 9);
    let mut y = Tensor::<f32>::zeros(&device, [9]).unwrap();
    let fails = |arguments: &Arguments<'_>| assert!(arguments.block_index()[0] < 1, "third time unlucky");
    let launch =
        Launch::new(&KERNEL).constant("B", 4).tensor("x", &x).tensor_mut("y", &mut y).reference(fails);
    assert_eq!(
        launch.launch().unwrap_err().reason().to_string(),
        "kernel `double` panicked in block [1] on the reference device: third time unlucky"
    );
}

/// What a thread keeps is gone in part when the rest of it is dropped.
#[test]
fn a_thread_that_ends_launches() {
    use std::sync::mpsc;
    struct Last(Device, mpsc::Sender<Vec<f32>>);
    impl Last {
        fn launch(&self) {
            let mut y = Tensor::zeros(&self.0, [9]).unwrap();
            double(&ramp(&self.0, 9), &mut y).launch().unwrap();
            self.1.send(y.to_vec().unwrap()).unwrap();
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            self.launch();
        }
    }
    thread_local! {
        static LAST: std::cell::OnceCell<Last> = const { std::cell::OnceCell::new() };
    }
    let devices = if cfg!(feature = "jit") {
        vec![Device::reference(), Device::cpu()]
    } else {
        vec![Device::reference()]
    };
    for device in devices {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            // What is kept first is dropped last.
            LAST.with(|last| last.get_or_init(|| Last(device, sender)).launch());
        });
        thread.join().unwrap();
        let doubled: Vec<f32> = (0..9).map(|i| 2.0 * i as f32).collect();
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [doubled.clone(), doubled]);
    }
}

#[test]
fn the_grid_is_inferred() {
    let device = Device::reference();
    let x = ramp(&device, 9);
    let mut y = Tensor::zeros(&device, [9]).unwrap();
    assert_eq!(double(&x, &mut y).grid().unwrap(), [3]);
}

#[test]
fn tensors_that_lie_otherwise_are_taken_where_they_lie() {
    let device = Device::reference();
    let numbers: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let address = numbers.as_ptr() as u64;
    // SAFETY: the vector has the elements, and nobody writes them.
    let strided =
        |stride| unsafe { Tensor::<f32>::from_raw_strided(&device, address + 20, [6], [stride]) }.unwrap();
    let doubled = |x: &TensorRef<f32>| {
        let mut y = Tensor::zeros(&device, [6]).unwrap();
        double(x, &mut y).launch().unwrap();
        y.to_vec().unwrap()
    };
    assert_eq!(doubled(&strided(2)), [10.0, 14.0, 18.0, 22.0, 26.0, 30.0]);
    assert_eq!(doubled(&strided(-1)), [10.0, 8.0, 6.0, 4.0, 2.0, 0.0]);
    assert_eq!(doubled(&strided(0)), [10.0; 6]);
    assert_eq!(doubled(&strided(1)), [10.0, 12.0, 14.0, 16.0, 18.0, 20.0]);
    let mut y = Tensor::full(&device, [12], -1.0).unwrap();
    let mut view = y.slice_mut(Index::slice(None, None, 2)).unwrap();
    double(&strided(1), &mut view).launch().unwrap();
    let every_second = (0..12).map(|i| if i % 2 == 0 { 10.0 + i as f32 } else { -1.0 });
    assert_eq!(y.to_vec().unwrap(), every_second.collect::<Vec<f32>>());
}

#[test]
fn tensors_that_no_code_can_be_made_for_are_refused() {
    let device = Device::reference();
    let x = ramp(&device, 12);
    let mut numbers = [1.0f32; 6];
    let message =
        |x: &TensorRef<f32>, y: &mut TensorRef<f32>| double(x, y).launch().unwrap_err().reason().to_string();
    let address = numbers.as_mut_ptr() as u64;
    // SAFETY: the array has the element, and nobody else uses it.
    let mut repeated = unsafe { Tensor::<f32>::from_raw_strided(&device, address, [12], [0]) }.unwrap();
    assert_eq!(
        message(&x, &mut repeated),
        "`y` of kernel `double` is written and has elements that share memory; pass a copy, which `.to_dense()` makes"
    );
    let padded = x.view().pad(&[Some((1, 2))]).unwrap();
    assert_eq!(
        message(&padded, &mut Tensor::zeros(&device, [15]).unwrap()),
        "`x` of kernel `double` has elements that aren't in memory, or no single stride along an \
         axis; pass a copy, which `.to_dense()` makes"
    );
    let matrix = ramp(&device, 12).into_shape([3, 4]).unwrap();
    let turned = matrix.t().unwrap();
    assert_eq!(
        message(&turned, &mut Tensor::zeros(&device, [12]).unwrap()),
        "argument `x` has rank 2 (shape [4, 3]), but `double` declares rank 1; pass a view of it that has that rank: \
         `unsqueeze`, `squeeze`, `flatten` and `reshape` make one; for one that is written, call them on `view_mut()`"
    );
}

/// Embedded code is for dense tensors, and of others the message says both ways out.
#[cfg(not(feature = "jit"))]
#[test]
fn without_a_compiler_embedded_code_takes_dense_tensors_alone() {
    unsafe extern "C" fn nothing(_: *const u64, _: u64, _: u64, _: *mut u8, _: bool, _: bool) {}
    static EMBEDDED: [Embedded; 1] = [Embedded {
        target: "cpu",
        bindings: &[("B", Binding::Const(B))],
        variant: Variant::General,
        code: EmbeddedCode::Cpu { level: "x86-64-v2", entry: nothing },
        symbol: "double",
        launch: launch(1, 0, 0, false, 1, 1),
        tensor_maps: &[],
    }];
    static CODED: KernelDef = KernelDef::new("double", DOUBLE, &EMBEDDED);
    let (x, mut y) = (ramp(&Device::cpu(), 9), Tensor::<f32>::zeros(&Device::cpu(), [4]).unwrap());
    let mut run = |x: &TensorRef<f32>| {
        Launch::new(&CODED).constant("B", B).tensor("x", x).tensor_mut("y", &mut y).launch()
    };
    run(&x.slice(..4).unwrap()).unwrap();
    // A tensor of the host may begin anywhere.
    run(&x.slice(1..5).unwrap()).unwrap();
    let every_second = x.slice(Index::slice(1, None, 2)).unwrap();
    assert_eq!(
        run(&every_second).unwrap_err().reason().to_string(),
        "`x` of kernel `double` has elements that don't lie one after the other in row-major order, and embedded code is \
         for dense tensors alone; pass a copy, which `.to_dense()` makes, or enable the feature `jit` of `tile`, which \
         compiles the kernel for it"
    );
}

#[test]
fn what_is_written_shares_no_memory() {
    let device = Device::reference();
    let mut numbers: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let address = numbers.as_mut_ptr() as u64;
    let at = |first: u64, count| {
        // SAFETY: the vector has 16 elements, and nobody else uses them meanwhile; what overlaps is refused.
        unsafe { Tensor::<f32>::from_raw(&device, address + 4 * first, [count]) }.unwrap()
    };
    assert_eq!(
        double(&at(4, 8), &mut at(8, 8)).launch().unwrap_err().reason().to_string(),
        "`y` of kernel `double` is written and shares memory with `x`; pass a copy of one, which `.to_dense()` makes"
    );
    // Every second element and those between them share nothing.
    let every_second = |first: u64| {
        // SAFETY: as above.
        unsafe { Tensor::<f32>::from_raw_strided(&device, address + 4 * first, [4], [2]) }.unwrap()
    };
    let overlaps = |other| double(&every_second(0), &mut every_second(other)).launch().is_err();
    assert_eq!([1, 2, 7, 8].map(overlaps), [false, true, false, false]);
    (0..16).for_each(|i| numbers[i] = i as f32);
    double(&at(0, 8), &mut at(8, 8)).launch().unwrap();
    assert_eq!(at(8, 3).to_vec().unwrap(), [0.0, 2.0, 4.0]);
}

#[test]
fn parts_of_tensors_are_taken_where_they_lie() {
    let device = Device::reference();
    let x = ramp(&device, 24).into_shape([3, 8]).unwrap();
    let mut y = Tensor::zeros(&device, [3, 8]).unwrap();
    double(&x.slice(1).unwrap(), &mut y.slice_mut(2).unwrap()).launch().unwrap();
    let expected: Vec<f32> = (0..24).map(|i| if i < 16 { 0.0 } else { 2.0 * (i - 8) as f32 }).collect();
    assert_eq!(y.to_vec().unwrap(), expected);
}

#[cfg(feature = "jit")]
#[test]
fn slices_of_the_host_are_taken_where_they_lie() {
    #[repr(align(16))]
    struct Aligned([f32; 3]);
    let (x, mut y) = (Aligned([1.0, 2.0, 3.0]), Aligned([0.0; 3]));
    let x = TensorView::of_slice(&x.0, [3]).unwrap();
    double(&x, &mut TensorViewMut::of_slice(&mut y.0, [3]).unwrap()).launch().unwrap();
    assert_eq!(y.0, [2.0, 4.0, 6.0]);
}
