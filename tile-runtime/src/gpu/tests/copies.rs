//! Copies between the host and a device, and fills, on a driver that runs nothing before somebody waits.

use super::launches::{KERNEL, call, double, ramp};
use super::*;
use crate::error::Error;
use crate::stream::{Access, Stream};
use crate::tensor::{Tensor, TensorView, TensorViewMut};

const N: usize = 8;

/// How often something is done, and every how many-th call is refused: less under Miri, which takes a thousand times as
/// long and looks at every access.
const TIMES: u8 = if cfg!(miri) { 3 } else { 50 };
const STEP: usize = if cfg!(miri) { 11 } else { 1 };

fn numbers(first: i32) -> Vec<i32> {
    (first..first + N as i32).collect()
}

/// A pinned tensor with these numbers.
fn staged(device: &Device, first: i32) -> Tensor<i32> {
    let mut tensor = Tensor::pinned(device, [N]).unwrap();
    tensor.as_mut_slice().unwrap().copy_from_slice(&numbers(first));
    tensor
}

#[test]
fn copies_go_on_beside_the_host_in_both_directions() {
    let (device, driver) = device(1 << 20, true);
    let stream = Stream::new(&device).unwrap();
    let (x, mut back) = (staged(&device, 0), Tensor::<i32>::pinned(&device, [N]).unwrap());
    let mut y = Tensor::<i32>::zeros(&device, [N]).unwrap();
    let up = y.copy_from_on(&x, &stream).unwrap();
    assert!(driver.pending() > 0, "nobody has waited");
    up.wait().unwrap();
    assert_eq!(driver.pending(), 0);
    back.copy_from_on(&y, &stream).unwrap().detach();
    assert!(driver.pending() > 0, "nobody has looked");
    assert_eq!(back.as_slice().unwrap(), numbers(0));
    // Pinned memory is the host's.
    assert_eq!((x.device(), x.to_vec().unwrap()), (&Device::cpu(), numbers(0)));
}

/// A copy goes on beside launches on other streams; the device's own queue it follows, since no memory knows what that does.
#[test]
fn a_copy_overlaps_with_launches_that_are_on_a_stream() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let (copies, launches) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let staged = staged(&device, 0);
    let mut target = Tensor::<i32>::zeros(&device, [N]).unwrap();
    let (x, mut y) = (ramp(&device, N), Tensor::zeros(&device, [N]).unwrap());
    device.synchronize().unwrap();
    let launch = call(&KERNEL, &x, &mut y).on(&launches).unwrap();
    target.copy_from_on(&staged, &copies).unwrap().wait().unwrap();
    assert!(driver.pending() > 0, "the launch hasn't run");
    launch.wait().unwrap();
    device.synchronize().unwrap();
    call(&KERNEL, &x, &mut y).launch().unwrap();
    target.copy_from_on(&staged, &copies).unwrap().wait().unwrap();
    assert_eq!(driver.pending(), 0, "the launch is over");
    // What a launch of the own queue writes is what a copy behind it reads.
    let mut back = Tensor::<f32>::pinned(&device, [N]).unwrap();
    call(&KERNEL, &ramp(&device, N), &mut y).launch().unwrap();
    back.copy_from_on(&y, &copies).unwrap().wait().unwrap();
    assert_eq!(back.as_slice().unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]);
}

#[test]
fn what_a_copy_reads_is_written_after_it() {
    let (device, driver) = device(1 << 20, true);
    let stream = Stream::new(&device).unwrap();
    let mut x = staged(&device, 0);
    let mut y = Tensor::<i32>::zeros(&device, [N]).unwrap();
    // The guard is forgotten, and the memory knows the copy.
    std::mem::forget(y.copy_from_on(&x, &stream).unwrap());
    assert!(driver.pending() > 0);
    x.as_mut_slice().unwrap().fill(-1);
    assert_eq!(y.to_vec().unwrap(), numbers(0));
    // On the device's own stream there is no guard at all.
    y.copy_from(&x).unwrap();
    assert!(driver.pending() > 0);
    x.fill(-2).unwrap();
    assert_eq!(y.to_vec().unwrap(), [-1; N]);
}

#[test]
fn what_a_copy_writes_is_read_after_it() {
    let (device, driver) = device(1 << 20, true);
    let stream = Stream::new(&device).unwrap();
    let y = Tensor::from_vec(&device, numbers(3), [N]).unwrap();
    let mut x = Tensor::<i32>::pinned(&device, [N]).unwrap();
    std::mem::forget(x.copy_from_on(&y, &stream).unwrap());
    assert!(driver.pending() > 0);
    assert_eq!(x.as_slice().unwrap(), numbers(3));
    x.fill(0).unwrap();
    x.copy_from(&y).unwrap();
    assert!(driver.pending() > 0);
    assert_eq!(x.slice(2..4).unwrap().to_vec().unwrap(), [5, 6]);
}

/// What is dropped while a copy has it is neither freed nor given to anybody else.
#[test]
fn memory_of_a_copy_stays_until_it_is_done() {
    let (device, driver) = device(1 << 20, true);
    let stream = Stream::new(&device).unwrap();
    let mut y = Tensor::<i32>::zeros(&device, [N]).unwrap();
    {
        let x = staged(&device, 0);
        std::mem::forget(y.copy_from_on(&x, &stream).unwrap());
    }
    assert!(driver.pending() > 0, "the drop doesn't wait");
    let others: Vec<_> = (0..3).map(|first| staged(&device, 100 * first + 100)).collect();
    assert_eq!(y.to_vec().unwrap(), numbers(0));
    for (other, first) in others.iter().zip([100, 200, 300]) {
        assert_eq!(other.as_slice().unwrap(), numbers(first));
    }
    // A download to memory that is gone writes to nobody else's.
    {
        let mut x = Tensor::<i32>::pinned(&device, [N]).unwrap();
        std::mem::forget(x.copy_from_on(&y, &stream).unwrap());
    }
    let other = staged(&device, 7);
    stream.synchronize().unwrap();
    context(&device).synchronize().unwrap();
    assert_eq!(other.as_slice().unwrap(), numbers(7));
}

/// Ordinary memory of the host is no one's pool's: its end waits for the copy.
#[test]
fn ordinary_memory_takes_part_and_its_end_waits() {
    let (device, driver) = device(1 << 20, true);
    let stream = Stream::new(&device).unwrap();
    let mut y = Tensor::<i32>::zeros(&device, [N]).unwrap();
    {
        let x = Tensor::from_vec(&Device::cpu(), numbers(0), [N]).unwrap();
        std::mem::forget(y.copy_from_on(&x, &stream).unwrap());
        assert!(driver.pending() > 0);
    }
    assert_eq!(driver.pending(), 0);
    {
        let numbers = numbers(20);
        let address = numbers.as_ptr() as u64;
        // SAFETY: the vector has the elements, and nobody else uses them.
        let x = unsafe { Tensor::<i32>::from_raw_owned(&Device::cpu(), address, [N], [1], numbers) }.unwrap();
        std::mem::forget(y.copy_from_on(&x, &stream).unwrap());
        assert!(driver.pending() > 0);
    }
    assert_eq!(y.to_vec().unwrap(), numbers(20));
}

/// Slices have nobody who would keep them: a copy is over when it returns, and a wait that is refused leaves nothing that
/// writes to them.
#[test]
fn slices_of_the_host_are_waited_for() {
    let (device, driver) = device(1 << 20, true);
    let stream = Stream::new(&device).unwrap();
    let mut y = Tensor::<i32>::zeros(&device, [N]).unwrap();
    let mut slice = numbers(5);
    let x = TensorView::of_slice(&slice, [N]).unwrap();
    assert!(y.copy_from_on(&x, &stream).unwrap().is_done().unwrap());
    slice.fill(0);
    assert_eq!((driver.pending(), y.to_vec().unwrap()), (0, numbers(5)));
    let mut x = TensorViewMut::of_slice(&mut slice, [N]).unwrap();
    x.copy_from_on(&y, &stream).unwrap().detach();
    assert_eq!(slice, numbers(5));
    for calls in (0..20).step_by(STEP) {
        let mut slice = vec![-1; N];
        driver.refuse_after(calls, Code::INVALID_VALUE);
        let copied = TensorViewMut::of_slice(&mut slice, [N]).unwrap().copy_from(&y);
        driver.refuse_nothing();
        context(&device).synchronize().unwrap();
        assert_eq!(slice, if copied.is_ok() { numbers(5) } else { vec![-1; N] }, "{calls}");
    }
}

#[test]
fn refused_calls_leave_no_copy_that_nobody_knows() {
    for calls in (0..24).step_by(STEP) {
        let (device, driver) = device(1 << 20, false);
        let stream = Stream::new(&device).unwrap();
        let mut y = Tensor::<i32>::zeros(&device, [N]).unwrap();
        let mut x = staged(&device, 0);
        driver.refuse_after(calls, Code::INVALID_VALUE);
        let copied = y.copy_from_on(&x, &stream).map(std::mem::forget);
        if x.as_mut_slice().map(|x| x.fill(-1)).is_ok() && copied.is_ok() {
            driver.refuse_nothing();
            assert_eq!(y.to_vec().unwrap(), numbers(0), "{calls}");
        }
        drop(x);
        driver.refuse_nothing();
        let other = staged(&device, 50);
        stream.synchronize().unwrap();
        context(&device).synchronize().unwrap();
        assert_eq!(other.as_slice().unwrap(), numbers(50), "{calls}");
    }
}

/// Where neither an event behind a copy is to be had nor a wait for it, nobody gets the memory that it writes.
#[test]
fn memory_of_a_copy_that_nobody_can_wait_for_is_given_to_nobody() {
    for calls in (0..24).step_by(STEP) {
        let (device, driver) = device(1 << 20, false);
        let stream = Stream::new(&device).unwrap();
        let y = Tensor::from_vec(&device, numbers(0), [N]).unwrap();
        let mut x = Tensor::<i32>::pinned(&device, [N]).unwrap();
        driver.refuse(calls, 2, Code::INVALID_VALUE);
        let _ = x.copy_from_on(&y, &stream).map(std::mem::forget);
        drop(x);
        driver.refuse_nothing();
        let others = [0; 3].map(|_| staged(&device, 50));
        stream.synchronize().unwrap();
        context(&device).synchronize().unwrap();
        others.iter().for_each(|other| assert_eq!(other.as_slice().unwrap(), numbers(50), "{calls}"));
    }
}

#[test]
fn copies_and_launches_keep_the_order_that_their_tensors_ask_for() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let (first, second) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let mut x = Tensor::<f32>::pinned(&device, [N]).unwrap();
    let mut back = Tensor::<f32>::pinned(&device, [N]).unwrap();
    let [mut a, mut b] = [0; 2].map(|_| Tensor::<f32>::zeros(&device, [N]).unwrap());
    for round in 0..TIMES {
        x.as_mut_slice().unwrap().iter_mut().zip(0u8..).for_each(|(x, i)| *x = f32::from(round + i));
        a.copy_from_on(&x, &first).unwrap().detach();
        call(&KERNEL, &a, &mut b).on(&second).unwrap().detach();
        back.copy_from_on(&b, &first).unwrap().detach();
        let expected: Vec<f32> = (0..N as u8).map(|i| 2.0 * f32::from(round + i)).collect();
        assert_eq!(back.as_slice().unwrap(), expected, "round {round}");
    }
    // The device's own stream, and what it is given to write, come before a launch on another.
    a.copy_from_slice(&[5.0; N]).unwrap();
    call(&KERNEL, &a, &mut b).on(&second).unwrap().detach();
    assert_eq!(b.to_vec().unwrap(), [10.0; N]);
}

#[test]
fn what_the_host_writes_is_enqueued_and_its_memory_is_free() {
    let (device, driver) = device(1 << 20, true);
    let mut x = Tensor::<i32>::zeros(&device, [N]).unwrap();
    let mut slice = numbers(0);
    x.copy_from_slice(&slice).unwrap();
    assert!(driver.pending() > 0, "the host waits for nothing");
    slice.fill(-1);
    let copy = x.to_dense().unwrap();
    x.copy_from_slice(&slice).unwrap();
    assert_eq!((copy.to_vec().unwrap(), x.to_vec().unwrap()), (numbers(0), vec![-1; N]));
}

/// A look at an event is a chance for this driver to run one piece of work, so many are before the writes.
#[test]
fn a_fifth_write_behind_launches_waits_for_the_first() {
    const LAUNCHES: usize = 20;
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let x = Tensor::<f32>::ones(&device, [N]).unwrap();
    let mut y = Tensor::zeros(&device, [N]).unwrap();
    let mut z = Tensor::<i32>::zeros(&device, [N]).unwrap();
    device.synchronize().unwrap();
    for _ in 0..LAUNCHES {
        call(&KERNEL, &x, &mut y).launch().unwrap();
    }
    for first in 0..4 {
        z.copy_from_slice(&numbers(first)).unwrap();
    }
    assert!(driver.pending() >= LAUNCHES, "{} pieces of work are left", driver.pending());
    z.copy_from_slice(&numbers(4)).unwrap();
    assert!(driver.pending() < LAUNCHES, "the launches are done, and not {} pieces", driver.pending());
    assert_eq!(z.to_vec().unwrap(), numbers(4));
}

#[test]
fn large_copies_go_in_parts_and_few_buffers_are_pinned() {
    // More than four parts, the last of them short.
    let n = if cfg!(miri) { 1_000 } else { 9 << 19 };
    let (device, driver) = device(64 << 20, true);
    let numbers: Vec<i32> = (0..n).collect();
    let x = Tensor::from_vec(&device, numbers.clone(), [n as usize]).unwrap();
    assert!(x.to_vec().unwrap() == numbers);
    let (pinned, bytes) = (driver.live().pinned, device.memory().unwrap().pinned);
    assert!(pinned <= 8 && bytes <= 32 << 20, "{pinned} buffers, {bytes} bytes");
    for _ in 0..TIMES {
        let mut part = x.slice(..1000).unwrap().to_dense().unwrap();
        part.copy_from_slice(&numbers[..1000]).unwrap();
    }
    assert!(driver.live().pinned <= pinned + 5, "{:?}", driver.live());
    device.trim().unwrap();
    assert_eq!((driver.live().pinned, device.memory().unwrap().pinned), (0, 0));
}

#[test]
fn pinned_memory_is_used_again_and_given_back() {
    let (device, driver) = device(1 << 20, true);
    let stream = Stream::new(&device).unwrap();
    let mut y = Tensor::<i32>::zeros(&device, [N]).unwrap();
    for round in 0..TIMES {
        y.copy_from_on(&staged(&device, round.into()), &stream).unwrap().detach();
    }
    assert_eq!(y.to_vec().unwrap(), numbers(i32::from(TIMES) - 1));
    assert!(driver.live().pinned <= 5, "{:?}", driver.live());
    drop((y, stream, device));
    assert_eq!(driver.live(), Live::default());
}

#[test]
fn a_copy_is_refused_on_a_stream_that_has_no_part_in_it() {
    let (device, _driver) = device(1 << 20, true);
    let host = Stream::new(&Device::cpu()).unwrap();
    let mut y = Tensor::<i32>::zeros(&device, [N]).unwrap();
    let name = device.name();
    assert_eq!(
        y.copy_from_on(&staged(&device, 0), &host).unwrap_err().to_string(),
        format!("a copy from cpu to {name} can't be on a stream of cpu; take one of {name}")
    );
    let stream = Stream::new(&device).unwrap();
    let error = y.copy_from_on(&Tensor::zeros(&device, [N + 1]).unwrap(), &stream).unwrap_err();
    assert!(matches!(error, Error::ShapeMismatch { .. }));
    let error = y.as_slice().unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "the tensor is no slice: its elements are in the memory of {name}; `to_vec` copies its elements"
        )
    );
    let turned = staged(&device, 0).into_shape([2, 4]).unwrap().into_reversed_axes().unwrap();
    assert!(turned.as_slice().unwrap_err().to_string().contains("row-major order"));
}

/// Parts and turned views go by way of the host, and are over when the call returns.
#[test]
fn elements_that_lie_apart_are_copied_all_the_same() {
    let (device, driver) = device(1 << 20, true);
    let stream = Stream::new(&device).unwrap();
    let x = staged(&device, 0).into_shape([2, 4]).unwrap();
    let mut y = Tensor::<i32>::zeros(&device, [4, 2]).unwrap();
    y.copy_from_on(&x.t().unwrap(), &stream).unwrap().detach();
    assert_eq!((driver.pending(), y.to_vec().unwrap()), (0, vec![0, 4, 1, 5, 2, 6, 3, 7]));
    y.slice_mut((.., 0)).unwrap().copy_from_on(&x.slice(1).unwrap(), &stream).unwrap().detach();
    assert_eq!(y.to_vec().unwrap(), [4, 4, 5, 5, 6, 6, 7, 7]);
}

#[test]
fn every_format_is_filled_by_the_device() {
    /// The longest has more bytes than are written before the device doubles them.
    fn check<T: crate::Element>(value: T) {
        for n in if cfg!(miri) { &[7][..] } else { &[1, 7, 5000] }.iter().copied() {
            let (device, driver) = device(1 << 20, true);
            let x = Tensor::full(&device, [n], value).unwrap();
            // What the device repeats is no longer than a page.
            let pinned = device.memory().unwrap().pinned;
            assert!(pinned <= 4096 && driver.live().pinned <= 1, "{value:?}: {pinned}");
            assert_eq!(x.to_vec().unwrap(), vec![value; n]);
        }
    }
    check(true);
    check(0x12_u8);
    check(half::bf16::from_f32(1.5));
    check(-2_i16);
    check(1.25_f32);
    check(0_i64);
    check(-1_i64);
    check(0x0102_0304_0506_0708_i64);
    check(std::f64::consts::PI);
}

#[test]
fn parts_are_filled_where_they_lie() {
    let (device, driver) = device(4 << 20, true);
    let mut x = Tensor::<i32>::zeros(&device, [20, 10]).unwrap();
    x.slice_mut((1..3, 2..5)).unwrap().fill(7).unwrap();
    x.slice_mut((.., 9)).unwrap().fill(9).unwrap();
    assert_eq!(driver.live().pinned, 0, "nothing went by way of the host");
    let expected = |row: usize, column: usize| match (row, column) {
        (_, 9) => 9,
        (1..3, 2..5) => 7,
        _ => 0,
    };
    let elements = (0..200).map(|i| expected(i / 10, i % 10));
    assert_eq!(x.to_vec().unwrap(), elements.collect::<Vec<_>>());
    // A column of many rows: more runs than are filled one by one.
    let mut x = Tensor::<i32>::zeros(&device, [500, 2]).unwrap();
    x.slice_mut((.., 1)).unwrap().fill(3).unwrap();
    assert_eq!(x.to_vec().unwrap(), [0, 3].repeat(500));
}

#[test]
fn without_memory_to_pin_there_is_an_error_and_the_next_copy_works() {
    let (device, driver) = device(1 << 20, true);
    let x = Tensor::full(&device, [N], 2_u8).unwrap();
    // Once: what is kept is given up, and there is some.
    driver.refuse_after(0, Code::OUT_OF_MEMORY);
    assert_eq!(x.to_vec().unwrap(), [2; N]);
    device.trim().unwrap();
    driver.refuse(0, 100, Code::OUT_OF_MEMORY);
    let error = Tensor::<u8>::pinned(&device, [N]).unwrap_err();
    driver.refuse_nothing();
    let words = driver.failure(Code::OUT_OF_MEMORY).message;
    assert!(error.to_string().ends_with(&format!(": {words}")), "{error}");
    assert_eq!(x.to_vec().unwrap(), [2; N]);
}

/// A failure is told by the stream of the launch that failed. What that has left is read, as the host reads it.
#[test]
fn what_failed_on_a_stream_of_the_host_is_copied_without_an_error() {
    let (device, _driver) = device(1 << 20, true);
    let (host, stream) = (Stream::new(&Device::cpu()).unwrap(), Stream::new(&device).unwrap());
    let x = staged(&device, 0);
    let mut y = Tensor::<i32>::zeros(&device, [N]).unwrap();
    let fails = || {
        let event = host.enqueue(|| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            Err(Error::Stream { problem: "it failed".to_owned() })
        });
        x.untyped().allocation().unwrap().uses().note(&event, Access::Write, &[]);
    };
    fails();
    y.copy_from(&x).unwrap();
    assert_eq!(host.synchronize().unwrap_err().to_string(), "it failed");
    fails();
    y.copy_from_on(&x, &stream).unwrap().wait().unwrap();
    assert_eq!(host.synchronize().unwrap_err().to_string(), "it failed");
    assert_eq!(y.to_vec().unwrap(), numbers(0));
}

#[test]
fn a_stream_of_the_host_tells_that_it_could_not_wait_for_a_device() {
    let (device, driver) = device(1 << 20, true);
    let (host, stream) = (Stream::new(&Device::cpu()).unwrap(), Stream::new(&device).unwrap());
    let event = stream.record().unwrap();
    driver.refuse_after(0, Code::INVALID_VALUE);
    host.wait_for(&event).unwrap();
    let told = host.synchronize();
    driver.refuse_nothing();
    assert!(matches!(told, Err(Error::Driver { .. })), "{told:?}");
    host.wait_for(&event).unwrap();
    host.synchronize().unwrap();
}
