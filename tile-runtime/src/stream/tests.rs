//! Streams of the host. Those of GPUs are tested beside their drivers.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::*;
use crate::launch::{KernelDef, Launch};
use crate::reference::Arguments;
use crate::tensor::{Tensor, TensorRef};
#[cfg(feature = "jit")]
use crate::tensor::{TensorView, TensorViewMut};
use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

const ADD_ONE: &str = "\
kernel @add_one<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [B] : partition<n x f32, [B]>
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %i = block_index %vy : index
  %0 = constant 0.0 : f32
  %1 = constant 1.0 : f32
  %t = load_masked %vx[%i] pad %0 : tile<B x f32>
  %one = splat %1 : tile<B x f32>
  %d = add %t, %one : tile<B x f32>
  store_masked %vy, %d
}
";

static KERNEL: KernelDef = KernelDef::new("add_one", ADD_ONE, &[]);

/// Blocks of negative numbers wait until this is set.
static GATE: AtomicBool = AtomicBool::new(false);

fn body(arguments: &Arguments<'_>) {
    let (x, given) = arguments.tensor::<f32>(0);
    let (y, _) = arguments.tensor_mut::<f32>(1);
    let start = arguments.block_index()[0] * 4;
    for i in start..given.extents[0].min(start + 4) {
        assert!(!x.at(i).is_nan(), "no number");
        while x.at(i) < 0.0 && !GATE.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        y.set(i, x.at(i) + 1.0);
    }
}

fn add_one<'a>(x: &'a TensorRef<f32>, y: &'a mut TensorRef<f32>) -> Launch<'a> {
    Launch::new(&KERNEL).constant("B", 4).tensor("x", x).tensor_mut("y", y).reference(body)
}

fn devices() -> Vec<Device> {
    if cfg!(feature = "jit") { vec![Device::reference(), Device::cpu()] } else { vec![Device::reference()] }
}

fn full(device: &Device, value: f32) -> Tensor<f32> {
    Tensor::full(device, [10], value).unwrap()
}

#[test]
fn a_launch_goes_on_beside_the_host_and_what_uses_its_tensors_waits() {
    let device = Device::reference();
    let [first, second] = [0; 2].map(|_| Stream::new(&device).unwrap());
    let x = full(&device, -5.0);
    let [mut y, mut z] = [0; 2].map(|_| full(&device, 0.0));
    let pending = add_one(&x, &mut y).on(&first).unwrap();
    assert!(!pending.is_done().unwrap(), "it waits for the gate");
    pending.detach();
    let next = add_one(&y, &mut z).on(&second).unwrap();
    assert!(!next.is_done().unwrap(), "it waits for the launch before it");
    GATE.store(true, Ordering::Release);
    next.wait().unwrap();
    assert_eq!((z.to_vec().unwrap()[9], y.to_vec().unwrap()[0]), (-3.0, -4.0));
}

#[test]
fn many_launches_keep_the_order_that_their_tensors_ask_for() {
    for device in devices() {
        let streams = [0; 3].map(|_| Stream::new(&device).unwrap());
        let [mut x, mut y] = [0; 2].map(|_| full(&device, 0.0));
        let turns = if cfg!(miri) { 14 } else { 200 };
        for turn in 0..turns {
            let stream = &streams[turn % 3];
            match turn % 7 {
                // Forgotten guards, the device's own queue, and the host between.
                0 => std::mem::forget(add_one(&x, &mut y).on(stream).unwrap()),
                1 => add_one(&x, &mut y).launch().unwrap(),
                2 => y.copy_from(&add_one_to(&x)).unwrap(),
                _ => add_one(&x, &mut y).on(stream).unwrap().detach(),
            }
            std::mem::swap(&mut x, &mut y);
        }
        assert_eq!(x.to_vec().unwrap(), [turns as f32; 10], "{}", device.name());
    }
}

/// Launches on parts of one tensor, on two streams, with guards that are forgotten.
#[test]
fn parts_of_a_tensor_are_used_by_two_streams() {
    for device in devices() {
        let streams = [0; 2].map(|_| Stream::new(&device).unwrap());
        let mut x = Tensor::<f32>::zeros(&device, [20]).unwrap();
        let (mut first, mut second) = x.split_at_mut(0, 10).unwrap();
        let turns = if cfg!(miri) { 4 } else { 100 };
        for turn in 0..turns {
            std::mem::forget(add_one(&first, &mut second).on(&streams[turn % 2]).unwrap());
            std::mem::forget(add_one(&second, &mut first).on(&streams[turn / 2 % 2]).unwrap());
        }
        assert_eq!(second.to_vec().unwrap(), [2.0 * turns as f32 - 1.0; 10], "{}", device.name());
        assert_eq!(first.as_slice().unwrap(), [2.0 * turns as f32; 10], "{}", device.name());
    }
}

fn add_one_to(x: &Tensor<f32>) -> Tensor<f32> {
    let more = x.to_vec().unwrap().into_iter().map(|value| value + 1.0).collect();
    Tensor::from_vec(x.device(), more, [10]).unwrap()
}

#[test]
fn tensors_may_be_dropped_while_they_are_used() {
    for device in devices() {
        let stream = Stream::new(&device).unwrap();
        for _ in 0..if cfg!(miri) { 3 } else { 100 } {
            let x = full(&device, 1.0);
            let mut y = full(&device, 0.0);
            std::mem::forget(add_one(&x, &mut y).on(&stream).unwrap());
            drop((x, y));
        }
        stream.synchronize().unwrap();
    }
}

/// What an owner does when it is dropped may have to wait for somebody who waits for the launch, as the deleters of Python's
/// tensors wait for its interpreter; or for what was enqueued behind it.
#[test]
fn memory_is_dropped_when_who_waits_has_been_told_and_keeps_nobody_waiting() {
    struct Locks(Arc<Mutex<()>>, #[allow(dead_code, reason = "it keeps the elements")] Vec<f32>);
    impl Drop for Locks {
        fn drop(&mut self) {
            drop(self.0.lock().unwrap());
        }
    }
    let device = Device::reference();
    let (stream, lock) = (Stream::new(&device).unwrap(), Arc::new(Mutex::new(())));
    let owned = || {
        let elements = vec![1.0; 10];
        let address = elements.as_ptr() as u64;
        let owner = Locks(Arc::clone(&lock), elements);
        // SAFETY: the owner keeps the elements, and nobody else uses them.
        unsafe { Tensor::<f32>::from_raw_owned(&device, address, [10], [1], owner) }.unwrap()
    };
    let mut y = full(&device, 0.0);
    for copies in [false, true] {
        let x = owned();
        let held = lock.lock().unwrap();
        let (goes_on, gate) = std::sync::mpsc::channel();
        stream.enqueue(move || {
            gate.recv().unwrap();
            Ok(())
        });
        match copies {
            true => y.copy_from_on(&x, &stream).unwrap().detach(),
            false => add_one(&x, &mut y).on(&stream).unwrap().detach(),
        }
        // The stream has the last reference.
        drop(x);
        goes_on.send(()).unwrap();
        assert_eq!(y.to_vec().unwrap(), [if copies { 1.0 } else { 2.0 }; 10]);
        let waits = {
            let (stream, device) = (stream.clone(), device.clone());
            move || {
                stream.synchronize().unwrap();
                stream.record().unwrap().wait().unwrap();
                stream.enqueue(|| Ok(())).wait().unwrap();
                device.synchronize().unwrap();
            }
        };
        within_a_minute(waits, "nobody who waits for the stream waits for the owner");
        assert!(Arc::strong_count(&lock) > 1, "it waits for the lock");
        drop(held);
        let goes = {
            let lock = Arc::clone(&lock);
            move || {
                while Arc::strong_count(&lock) > 2 {
                    std::thread::yield_now();
                }
            }
        };
        within_a_minute(goes, "the owner goes");
    }
}

/// Does something that would take for ever were it wrong.
fn within_a_minute(work: impl FnOnce() + Send + 'static, what: &str) {
    let (told, hears) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        work();
        told.send(()).unwrap();
    });
    hears.recv_timeout(std::time::Duration::from_secs(60)).expect(what);
}

#[test]
fn failures_are_told_by_the_guard_or_else_by_the_stream() {
    let device = Device::reference();
    let stream = Stream::new(&device).unwrap();
    let x = full(&device, f32::NAN);
    let mut y = full(&device, 0.0);
    let expected = "kernel `add_one` panicked in block [0] on the reference device: no number";
    let told = add_one(&x, &mut y).on(&stream).unwrap().wait().unwrap_err();
    assert_eq!(told.reason().to_string(), expected);
    add_one(&x, &mut y).on(&stream).unwrap().detach();
    assert_eq!(stream.synchronize().unwrap_err().reason().to_string(), expected);
    stream.synchronize().unwrap();
    // The stream goes on.
    let one = full(&device, 1.0);
    add_one(&one, &mut y).on(&stream).unwrap().wait().unwrap();
    assert_eq!(y.to_vec().unwrap()[0], 2.0);
}

/// Whoever is told by a guard, or as a task, isn't told again by the stream, which so has room for what nobody knows of.
#[test]
fn what_a_guard_has_told_hides_no_other_failure() {
    let device = Device::reference();
    let stream = Stream::new(&device).unwrap();
    let x = full(&device, f32::NAN);
    let mut y = full(&device, 0.0);
    let fails = || {
        stream.enqueue(|| Err(Error::Stream { problem: "another failure".to_owned() }));
    };
    assert!(add_one(&x, &mut y).on(&stream).unwrap().wait().is_err());
    assert!(block_on(add_one(&x, &mut y).on(&stream).unwrap()).is_err());
    stream.synchronize().unwrap();
    let told_later = add_one(&x, &mut y).on(&stream).unwrap();
    fails();
    assert!(told_later.wait().is_err());
    assert_eq!(stream.synchronize().unwrap_err().to_string(), "another failure");
    // Nobody is told by a launch or a read that comes after.
    add_one(&x, &mut y).on(&stream).unwrap().detach();
    y.to_vec().unwrap();
    fails();
    assert!(stream.synchronize().unwrap_err().to_string().contains("no number"));
    stream.synchronize().unwrap();
}

/// However many a guard has told of, or will.
#[test]
fn a_failure_that_nobody_was_told_of_is_not_lost_among_many() {
    // Under Miri few are enough to be many, and take a tenth of the time.
    const MANY: usize = if cfg!(miri) { 10 } else { 100 };
    let device = Device::reference();
    let stream = Stream::new(&device).unwrap();
    let fails = |problem: &str| {
        let error = Error::Stream { problem: problem.to_owned() };
        stream.enqueue(move || Err(error))
    };
    for _ in 0..MANY {
        assert!(fails("a told one").wait().is_err());
    }
    let held = [0; MANY].map(|_| fails("a held one"));
    fails("the first");
    (0..MANY).for_each(|_| drop(fails("a later one")));
    stream.enqueue(|| Ok(())).wait().unwrap();
    assert!(held.iter().all(|event| event.wait().is_err()));
    assert_eq!(stream.synchronize().unwrap_err().to_string(), "the first");
    stream.synchronize().unwrap();
}

#[test]
fn there_is_no_time_between_events_of_different_devices() {
    let devices = [Device::reference(), Device::cpu()];
    let places =
        |device: &Device| [Stream::new(device).unwrap(), device.stream()].map(|on| on.record().unwrap());
    let [[first, own], [other, others_own]] = devices.each_ref().map(places);
    first.since(&own).unwrap();
    for [end, start] in [[&first, &other], [&other, &first], [&own, &others_own]] {
        assert_eq!(
            end.since(start).unwrap_err().to_string(),
            "there is no time between events of different devices"
        );
    }
}

/// As `.launch()` is done when it returns, so is a launch or a copy on the own queue; nothing is ever waited for.
#[test]
fn the_own_queue_of_the_host_has_done_what_it_is_given() {
    for device in devices() {
        let own = device.stream();
        let x = full(&device, 1.0);
        let [mut y, mut z] = [0; 2].map(|_| full(&device, 0.0));
        let start = own.record().unwrap();
        assert!(add_one(&x, &mut y).on(&own).unwrap().is_done().unwrap());
        assert!(z.copy_from_on(&y, &own).unwrap().is_done().unwrap());
        let end = own.record().unwrap();
        assert!(end.is_done().unwrap() && end.since(&start).unwrap() > std::time::Duration::ZERO);
        assert_eq!(z.as_slice().unwrap(), [2.0; 10], "{}", device.name());
        // It comes after an event of another stream, and after the launches there that use its tensors.
        let other = Stream::new(&device).unwrap();
        let (go, begun) = std::sync::mpsc::channel::<()>();
        let gone = other.enqueue(move || begun.recv().map_err(|_| unreachable!("it is sent")));
        add_one(&z, &mut y).on(&other).unwrap().detach();
        go.send(()).unwrap();
        own.wait_for(&gone).unwrap();
        add_one(&y, &mut z).on(&own).unwrap().wait().unwrap();
        assert_eq!(z.as_slice().unwrap(), [4.0; 10]);
        device.synchronize().unwrap();
    }
    let device = Device::reference();
    let (own, x, mut y) = (device.stream(), full(&device, f32::NAN), full(&device, 0.0));
    // As `.launch()` does.
    let error = add_one(&x, &mut y).on(&own).map(Pending::detach).unwrap_err();
    let expected = "kernel `add_one` panicked in block [0] on the reference device: no number";
    assert_eq!(error.reason().to_string(), expected);
    own.synchronize().unwrap();
}

/// A launch, a copy of what it writes and a launch on that, each on a stream of its own, with guards that are forgotten.
#[test]
fn copies_take_their_place_among_launches() {
    for device in devices() {
        let streams = [0; 3].map(|_| Stream::new(&device).unwrap());
        let mut staged = Tensor::<f32>::pinned(&device, [10]).unwrap();
        assert_eq!(staged.device(), &Device::cpu());
        let [mut x, mut y, mut z] = [0; 3].map(|_| full(&device, 0.0));
        for round in 0..if cfg!(miri) { 3 } else { 100 } {
            let first = round as f32;
            staged.as_mut_slice().unwrap().fill(first);
            std::mem::forget(x.copy_from_on(&staged, &streams[0]).unwrap());
            std::mem::forget(add_one(&x, &mut y).on(&streams[1]).unwrap());
            std::mem::forget(z.copy_from_on(&y, &streams[2]).unwrap());
            std::mem::forget(add_one(&z, &mut y).on(&streams[1]).unwrap());
            std::mem::forget(staged.copy_from_on(&y, &streams[0]).unwrap());
            assert_eq!(staged.as_slice().unwrap(), [first + 2.0; 10], "{}", device.name());
            assert_eq!(z.to_vec().unwrap(), [first + 1.0; 10]);
        }
    }
}

#[test]
fn copies_on_streams_of_the_host_have_every_view_and_keep_what_is_dropped() {
    let stream = Stream::new(&Device::reference()).unwrap();
    let x = Tensor::from_iter(&Device::cpu(), 0..6).unwrap().into_shape([2, 3]).unwrap();
    let mut y = Tensor::<i32>::zeros(&Device::reference(), [3, 2]).unwrap();
    y.copy_from_on(&x.t().unwrap(), &stream).unwrap().wait().unwrap();
    assert_eq!(y.to_vec().unwrap(), [0, 3, 1, 4, 2, 5]);
    y.slice_mut((.., 1)).unwrap().copy_from_on(&x.slice(0).unwrap(), &stream).unwrap().wait().unwrap();
    block_on(y.slice_mut((0, ..)).unwrap().copy_from_on(&x.slice((1, 1..)).unwrap(), &stream).unwrap())
        .unwrap();
    assert_eq!(y.to_vec().unwrap(), [4, 5, 1, 1, 2, 2]);
    for _ in 0..if cfg!(miri) { 3 } else { 100 } {
        let mut gone = Tensor::<i32>::zeros(&Device::reference(), [2, 3]).unwrap();
        std::mem::forget(gone.copy_from_on(&x, &stream).unwrap());
        let source = gone.to_dense().unwrap();
        std::mem::forget(
            y.slice_mut((.., 0)).unwrap().copy_from_on(&source.slice(1).unwrap(), &stream).unwrap(),
        );
        drop((gone, source));
        assert_eq!(y.slice((.., 0)).unwrap().to_vec().unwrap(), [3, 4, 5]);
    }
    let mut slice = [0; 6];
    let mut borrowed = crate::tensor::TensorViewMut::of_slice(&mut slice, [2, 3]).unwrap();
    let other = Stream::new(&Device::cpu()).unwrap();
    std::mem::forget(borrowed.copy_from_on(&x, &other).unwrap());
    assert_eq!(slice, [0, 1, 2, 3, 4, 5]);
    let inside = Graph::new(&Device::reference())
        .run(|_| y.copy_from_on(&x.t().unwrap(), &stream).map(Pending::detach))
        .unwrap_err()
        .to_string();
    assert!(inside.contains("a copy on a stream"), "{inside}");
}

#[test]
fn a_stream_of_another_device_is_refused() {
    let stream = Stream::new(&Device::cpu()).unwrap();
    let x = full(&Device::reference(), 1.0);
    let mut y = full(&Device::reference(), 1.0);
    assert_eq!(
        add_one(&x, &mut y).on(&stream).unwrap_err().reason().to_string(),
        "kernel `add_one` can't be launched so: its tensors are on reference, and the stream is one of cpu; take one of \
         reference, or move the tensors with `Tensor::copy_to`"
    );
}

#[cfg(feature = "jit")]
#[test]
fn slices_of_the_host_are_waited_for() {
    #[repr(align(16))]
    struct Aligned([f32; 10]);
    let stream = Stream::new(&Device::cpu()).unwrap();
    let (x, mut y) = (Aligned([1.0; 10]), Aligned([0.0; 10]));
    let x = TensorView::of_slice(&x.0, [10]).unwrap();
    std::mem::forget(add_one(&x, &mut TensorViewMut::of_slice(&mut y.0, [10]).unwrap()).on(&stream).unwrap());
    assert_eq!(y.0, [2.0; 10]);
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn launches_are_awaited_without_an_executor_of_their_own() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    for device in devices() {
        let x = full(&device, 1.0);
        let mut y = full(&device, 0.0);
        let mut z = full(&device, 0.0);
        let both = async {
            add_one(&x, &mut y).await?;
            add_one(&y, &mut z).await
        };
        block_on(is_send(both)).unwrap();
        assert_eq!(z.to_vec().unwrap(), [3.0; 10]);
    }
}

#[test]
fn a_future_that_is_dropped_early_leaves_nothing_undone() {
    for device in devices() {
        let x = full(&device, 1.0);
        let mut y = full(&device, 0.0);
        drop(add_one(&x, &mut y).into_future());
        assert_eq!(y.to_vec().unwrap(), [0.0; 10], "it wasn't polled");
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut polled = Box::pin(add_one(&x, &mut y).into_future());
        let _ = polled.as_mut().poll(&mut Context::from_waker(&waker));
        drop(polled);
        assert_eq!(y.to_vec().unwrap(), [2.0; 10], "it was begun, and the read waits for it");
    }
}

/// What wakers do is an executor's: it may poll the task at once, which waits for the stream, or panic.
#[test]
fn wakers_keep_no_stream_waiting() {
    struct Waits(Stream, std::sync::mpsc::Sender<()>);
    impl Wake for Waits {
        fn wake(self: Arc<Self>) {
            self.0.synchronize().unwrap();
            self.1.send(()).unwrap();
        }
    }
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker's")
        }
    }
    let device = Device::reference();
    let stream = Stream::new(&device).unwrap();
    let (go, begun) = std::sync::mpsc::channel::<()>();
    stream.enqueue(move || begun.recv().map_err(|_| unreachable!("it is sent")));
    let x = full(&device, 1.0);
    let [mut y, mut z] = [0; 2].map(|_| full(&device, 0.0));
    let mut first = pin!(add_one(&x, &mut y).on(&stream).unwrap());
    let mut second = pin!(add_one(&x, &mut z).on(&stream).unwrap());
    let panics = Waker::from(Arc::new(Panics));
    assert!(first.as_mut().poll(&mut Context::from_waker(&panics)).is_pending());
    let (told, hears) = std::sync::mpsc::channel();
    let waits = Waker::from(Arc::new(Waits(stream.clone(), told)));
    assert!(second.as_mut().poll(&mut Context::from_waker(&waits)).is_pending());
    go.send(()).unwrap();
    hears.recv_timeout(std::time::Duration::from_secs(60)).expect("it is woken, and the stream goes on");
    block_on(first).unwrap();
    block_on(second).unwrap();
}

#[test]
fn of_a_tasks_wakers_the_last_is_kept_until_the_task_is_gone() {
    let device = Device::reference();
    let stream = Stream::new(&device).unwrap();
    let (go, begun) = std::sync::mpsc::channel::<()>();
    stream.enqueue(move || begun.recv().map_err(|_| unreachable!("it is sent")));
    let x = full(&device, 1.0);
    let mut y = full(&device, 0.0);
    let mut pending = Box::pin(add_one(&x, &mut y).on(&stream).unwrap());
    let tasks = [0; 3].map(|_| Arc::new(Unpark(std::thread::current())));
    for task in &tasks {
        let waker = Waker::from(Arc::clone(task));
        assert!(pending.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(tasks.each_ref().map(Arc::strong_count), [1, 1, 2]);
    drop(pending);
    assert_eq!(Arc::strong_count(&tasks[2]), 1);
    go.send(()).unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; 10]);
}

#[test]
fn graphs_of_the_host_run_their_launches_as_they_are_made() {
    for device in devices() {
        let mut graph = Graph::new(&device);
        let mut x = full(&device, 1.0);
        let mut y = full(&device, 0.0);
        for _ in 0..3 {
            graph
                .run(|graph| {
                    graph.launch(add_one(&x, &mut y))?;
                    graph.launch(add_one(&y, &mut x))
                })
                .unwrap();
        }
        assert_eq!((x.to_vec().unwrap()[0], graph.captures()), (7.0, 0));
        let failed = || Error::Stream { problem: "failed".to_owned() };
        graph.run(|graph| graph.launch(add_one(&x, &mut y)).and_then(|()| Err(failed()))).unwrap_err();
        assert_eq!(y.to_vec().unwrap()[0], 8.0);
        let told = |error: Error| error.to_string();
        let is = |what: &str| {
            Err(format!(
                "inside of a graph there are launches alone, and this is {what}; do it before or after"
            ))
        };
        let (read, write) = (is("a read of a tensor's elements"), is("a write of a tensor's elements"));
        assert_eq!(graph.run(|_| x.as_slice().map(drop)).map_err(told), read);
        assert_eq!(graph.run(|_| x.to_vec().map(drop)).map_err(told), read);
        assert_eq!(graph.run(|_| x.as_mut_slice().map(drop)).map_err(told), write);
        assert_eq!(graph.run(|_| x.fill(1.0)).map_err(told), write);
        #[cfg(feature = "dlpack")]
        assert_eq!(
            graph.run(|_| x.into_dlpack().map(drop)).map_err(told),
            is("memory that another library gets")
        );
        let other = Graph::new(&device).run(|_| graph.run(|_| Ok(()))).unwrap_err().to_string();
        assert!(other.contains("another graph"), "{other}");
    }
}

#[test]
fn threads_launch_on_streams_at_once() {
    let (threads, times) = if cfg!(miri) { (3, 2) } else { (32, 20) };
    for device in devices() {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let device = device.clone();
                scope.spawn(move || {
                    let stream = Stream::new(&device).unwrap();
                    let [mut x, mut y] = [0; 2].map(|_| full(&device, 0.0));
                    for _ in 0..times {
                        add_one(&x, &mut y).on(&stream).unwrap().detach();
                        add_one(&y, &mut x).on(&stream).unwrap().detach();
                    }
                    assert_eq!(x.to_vec().unwrap(), [2.0 * times as f32; 10]);
                });
            }
        });
    }
}
