//! Launches on streams and in graphs, on a driver that runs nothing before somebody waits.

use super::launches::{KERNEL, call, double, ramp};
use super::tasks::{await_wakes, poll, task, woken};
use super::*;
use crate::bench::timed;
use crate::error::Error;
use crate::journal::tests::{in_process, is_child};
use crate::profile::profile;
use crate::stream::{Graph, Pending, Stream};
use crate::tensor::Tensor;
use std::ffi::c_void;
use std::future::Future;
use std::sync::mpsc::{Sender, channel};
use std::task::{Poll, Wake, Waker};

/// A device with the kernel of these tests.
fn ready() -> (Device, StandIn) {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    (device, driver)
}

/// Numbers from 0 on, doubled so many times.
fn doubled(n: usize, times: usize) -> Vec<f32> {
    (0..n).map(|i| (i << times) as f32).collect()
}

/// Also where it has waited for that queue before.
#[test]
fn a_stream_comes_after_what_another_library_gives_the_own_queue() {
    let (device, driver) = ready();
    let mut x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let stream = Stream::new(&device).unwrap();
    call(&KERNEL, &x, &mut y).on(&stream).unwrap().wait().unwrap();
    let (own, address) = (device.stream(), x.device_address_mut().unwrap());
    let handle = StreamHandle(own.as_raw().unwrap() as usize);
    // SAFETY: all of `x`; what comes later comes after the queue.
    unsafe { driver.fill(address, crate::gpu::driver::Pattern::Byte(0), 32, handle) }.unwrap();
    call(&KERNEL, &x, &mut y).on(&stream).unwrap().wait().unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0; 8]);
}

/// Whoever has a handle may use it; two values are that of the default stream.
#[test]
fn a_stream_comes_after_what_another_library_gives_the_default_one() {
    const LEGACY: usize = 1;
    for raw in [0, LEGACY] {
        let (device, driver) = ready();
        let mut x = ramp(&device, 8);
        let mut y = Tensor::zeros(&device, [8]).unwrap();
        let stream = Stream::new(&device).unwrap();
        call(&KERNEL, &x, &mut y).on(&stream).unwrap().wait().unwrap();
        // SAFETY: the default stream is there.
        let theirs = unsafe { Stream::from_raw(&device, raw as *mut c_void) }.unwrap();
        let address = x.device_address_mut().unwrap();
        let byte = crate::gpu::driver::Pattern::Byte(0);
        // SAFETY: all of `x`; what comes later comes after the stream.
        unsafe { driver.fill(address, byte, 32, StreamHandle::DEFAULT) }.unwrap();
        call(&KERNEL, &x, &mut y).on(&stream).unwrap().wait().unwrap();
        assert_eq!(y.to_vec().unwrap(), [0.0; 8], "handle {raw}");
        call(&KERNEL, &x, &mut y).on(&theirs).unwrap().wait().unwrap();
    }
}

#[test]
fn what_uses_a_tensor_comes_after_the_launches_on_streams() {
    let (device, driver) = ready();
    let (first, second) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let x = ramp(&device, 8);
    let [mut y, mut z] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    // One stream reads what the other writes, the device's own stream reads that, and then the host does.
    call(&KERNEL, &x, &mut y).on(&first).unwrap().detach();
    call(&KERNEL, &y, &mut z).on(&second).unwrap().detach();
    assert!(driver.pending() > 2, "nothing has run");
    let mut w = Tensor::zeros(&device, [8]).unwrap();
    call(&KERNEL, &z, &mut w).launch().unwrap();
    assert_eq!(w.to_vec().unwrap(), doubled(8, 3));
    assert_eq!(z.to_vec().unwrap(), doubled(8, 2));
}

/// Launches that read one tensor don't ask for each other, which this driver would take for a chance to run one.
#[test]
fn launches_that_read_a_tensor_leave_one_event_there() {
    const LAUNCHES: usize = 20;
    let (device, driver) = ready();
    let stream = Stream::new(&device).unwrap();
    let mut x = ramp(&device, 8);
    device.synchronize().unwrap();
    let mut outputs: Vec<_> = (0..LAUNCHES).map(|_| Tensor::zeros(&device, [8]).unwrap()).collect();
    device.synchronize().unwrap();
    for y in &mut outputs {
        call(&KERNEL, &x, y).on(&stream).unwrap().detach();
    }
    assert!(driver.pending() >= LAUNCHES, "{} pieces of work are left", driver.pending());
    x.fill(-1.0).unwrap();
    for y in &outputs {
        assert_eq!(y.to_vec().unwrap(), doubled(8, 1));
    }
}

#[test]
fn a_read_waits_for_the_stream_that_writes() {
    let (device, _) = ready();
    let stream = Stream::new(&device).unwrap();
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    call(&KERNEL, &x, &mut y).on(&stream).unwrap().detach();
    assert_eq!(y.to_vec().unwrap(), doubled(8, 1));
}

#[test]
fn a_write_waits_for_the_streams_that_read() {
    let (device, driver) = ready();
    let stream = Stream::new(&device).unwrap();
    let mut x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    call(&KERNEL, &x, &mut y).on(&stream).unwrap().detach();
    assert!(driver.pending() > 0);
    x.fill(-1.0).unwrap();
    assert_eq!(y.to_vec().unwrap(), doubled(8, 1));
}

#[test]
fn memory_is_freed_behind_the_streams_that_use_it() {
    for pools in [false, true] {
        let (device, driver) = device(1 << 20, pools);
        driver.add("general", 3, double);
        let stream = Stream::new(&device).unwrap();
        let x = ramp(&device, 8);
        let mut y = Tensor::zeros(&device, [8]).unwrap();
        // A launch whose guard is forgotten still uses what it borrowed.
        std::mem::forget(call(&KERNEL, &x, &mut y).on(&stream).unwrap());
        drop(x);
        let mut other = Tensor::<f32>::zeros(&device, [8]).unwrap();
        other.fill(7.0).unwrap();
        assert_eq!(y.to_vec().unwrap(), doubled(8, 1), "pools: {pools}");
    }
}

#[test]
fn streams_and_events_are_used_again_and_nothing_is_left() {
    let (device, driver) = ready();
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    for _ in 0..if cfg!(miri) { 8 } else { 50 } {
        let stream = Stream::new(&device).unwrap();
        call(&KERNEL, &x, &mut y).on(&stream).unwrap().wait().unwrap();
        let (start, end) = (stream.record().unwrap(), stream.record().unwrap());
        // A piece of work takes a microsecond: the second event is one.
        assert_eq!(end.since(&start).unwrap().as_nanos(), 1000);
    }
    let live = driver.live();
    assert!(live.streams == 1 && live.events <= 6, "{live:?}");
    drop((x, y, device));
    assert_eq!(driver.live(), Live::default());
}

#[test]
fn a_stream_waits_for_an_event() {
    let (device, driver) = ready();
    let (first, second) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let pending = call(&KERNEL, &x, &mut y).on(&first).unwrap();
    second.wait_for(&first.record().unwrap()).unwrap();
    second.synchronize().unwrap();
    assert!(pending.is_done().unwrap());
    assert_eq!(driver.pending(), 0);
}

#[test]
fn other_libraries_streams_take_launches() {
    let (device, driver) = ready();
    let handle = driver.create_stream().unwrap();
    // SAFETY: the stream is the driver's, and there to the end of the test.
    let theirs = unsafe { Stream::from_raw(&device, handle.0 as *mut c_void) }.unwrap();
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    call(&KERNEL, &x, &mut y).on(&theirs).unwrap().detach();
    assert_eq!(y.to_vec().unwrap(), doubled(8, 1));
    assert_eq!(theirs.as_raw().map(|raw| raw as usize), Some(handle.0));
    drop(theirs);
    assert_eq!(driver.live().streams, 1, "it is theirs");
    // SAFETY: null is the default stream.
    let error = unsafe { Stream::from_raw(&Device::cpu(), std::ptr::null_mut()) }.unwrap_err();
    assert_eq!(error.to_string(), "cpu has no streams of other libraries");
}

#[test]
fn a_handle_that_is_another_stream_on_each_thread_is_refused() {
    const PER_THREAD: usize = 2;
    let (device, _) = ready();
    // SAFETY: every thread has such a stream.
    let error = unsafe { Stream::from_raw(&device, PER_THREAD as *mut c_void) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "handle 2 (`CU_STREAM_PER_THREAD`, `hipStreamPerThread`) is another stream on each thread that names it, so it \
         doesn't say after what a launch comes; make a stream in the other library, and give its handle"
    );
}

/// What another library does with a tensor on a stream of ours, or on one of its own, by address and handle.
#[test]
fn other_libraries_use_tensors_between_launches() {
    let (device, driver) = ready();
    let mut x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let fill = |address: u64, byte: u8, stream: *mut c_void| {
        let pattern = crate::gpu::driver::Pattern::Byte(byte);
        // SAFETY: the memory is that of the last four elements, and what comes later waits for the stream.
        unsafe { driver.fill(address, pattern, 16, StreamHandle(stream as usize)) }.unwrap();
    };
    let own = device.stream();
    call(&KERNEL, &x, &mut y).launch().unwrap();
    fill(y.slice_mut(4..).unwrap().device_address_mut().unwrap(), 0, own.as_raw().unwrap());
    call(&KERNEL, &y, &mut x).launch().unwrap();
    assert!(own.as_raw().unwrap().is_null() && driver.pending() > 2);
    assert_eq!(x.to_vec().unwrap(), [0.0, 4.0, 8.0, 12.0, 0.0, 0.0, 0.0, 0.0]);
    let theirs = Stream::new(&device).unwrap();
    call(&KERNEL, &x, &mut y).launch().unwrap();
    theirs.wait_for(&own.record().unwrap()).unwrap();
    fill(y.slice_mut(4..).unwrap().device_address_mut().unwrap(), 0x40, theirs.as_raw().unwrap());
    own.wait_for(&theirs.record().unwrap()).unwrap();
    let bytes = f32::from_bits(0x4040_4040);
    assert_eq!(y.to_vec().unwrap(), [0.0, 8.0, 16.0, 24.0, bytes, bytes, bytes, bytes]);
}

/// What is given to the own stream by its name counts as work of it.
#[test]
fn a_stream_comes_after_what_the_own_one_is_given_as_a_stream() {
    let (device, _driver) = ready();
    let x = ramp(&device, 8);
    let [y, z] = [0; 2].map(|_| Tensor::<f32>::zeros(&device, [8]).unwrap());
    // SAFETY: the memory is that of tensors that live longer.
    let at = |of: &Tensor<f32>| unsafe { Tensor::<f32>::from_raw(&device, of.address(), [8]) }.unwrap();
    let own = device.stream();
    let other = Stream::new(&device).unwrap();
    // It has waited for the own stream once. Tensors that are made for a launch alone know of no other launch.
    call(&KERNEL, &at(&x), &mut at(&z)).on(&other).unwrap().wait().unwrap();
    call(&KERNEL, &at(&x), &mut at(&y)).on(&own).unwrap().detach();
    call(&KERNEL, &at(&y), &mut at(&z)).on(&other).unwrap().wait().unwrap();
    assert_eq!(at(&z).to_vec().unwrap(), doubled(8, 2));
    // What the own stream waits for is work of it, too.
    let third = Stream::new(&device).unwrap();
    call(&KERNEL, &at(&y), &mut at(&z)).on(&third).unwrap().wait().unwrap();
    call(&KERNEL, &at(&z), &mut at(&y)).on(&other).unwrap().detach();
    own.wait_for(&other.record().unwrap()).unwrap();
    call(&KERNEL, &at(&y), &mut at(&z)).on(&third).unwrap().wait().unwrap();
    assert_eq!(at(&z).to_vec().unwrap(), doubled(8, 4));
}

/// Whoever keeps the memory of a tensor, its launches are ordered, and its reads, writes and copies with them.
#[test]
fn tensors_in_memory_of_another_library_are_ordered() {
    let (device, driver) = ready();
    let [x, y, z] = [0.0, 0.0, 5.0].map(|value| Tensor::<f32>::full(&device, [8], value).unwrap());
    // SAFETY: the memory is that of tensors that live longer and that nobody else uses.
    let at = |of: &Tensor<f32>| unsafe { Tensor::<f32>::from_raw(&device, of.address(), [8]) }.unwrap();
    let (mut a, mut b, mut c) = (at(&x), at(&y), at(&z));
    let [first, second] = [0; 2].map(|_| Stream::new(&device).unwrap());
    a.copy_from_slice(&ramp(&device, 8).to_vec().unwrap()).unwrap();
    call(&KERNEL, &a, &mut b).on(&first).unwrap().detach();
    call(&KERNEL, &b, &mut c).on(&second).unwrap().detach();
    assert_eq!(c.to_vec().unwrap(), doubled(8, 2));
    // The own stream comes after both, and a copy on one after the other.
    call(&KERNEL, &a, &mut b).on(&first).unwrap().detach();
    call(&KERNEL, &b, &mut c).launch().unwrap();
    c.copy_from_on(&b, &second).unwrap().detach();
    b.fill(0.0).unwrap();
    assert_eq!((c.to_vec().unwrap(), b.to_vec().unwrap()), (doubled(8, 1), vec![0.0; 8]));
    // That nothing has to be waited for when they are dropped is up to who keeps the memory.
    call(&KERNEL, &c, &mut b).on(&first).unwrap().detach();
    let pending = driver.pending();
    drop((a, b, c));
    assert_eq!(driver.pending(), pending);
    device.synchronize().unwrap();
    assert_eq!(y.to_vec().unwrap(), doubled(8, 2));
}

#[test]
fn a_future_is_woken_when_the_device_comes_to_it() {
    let (device, driver) = ready();
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let task = task();
    let mut launching = Box::pin(call(&KERNEL, &x, &mut y).into_future());
    assert_eq!(driver.live().modules, 0, "nothing happens before it is polled");
    assert!(poll(launching.as_mut(), &task).is_pending());
    context(&device).synchronize().unwrap();
    await_wakes(std::slice::from_ref(&task), &[1]);
    assert!(matches!(poll(launching.as_mut(), &task), Poll::Ready(Ok(()))));
    drop(launching);
    assert_eq!(y.to_vec().unwrap(), doubled(8, 1));
}

#[test]
fn a_task_is_woken_by_its_last_waker_and_asks_the_device_once() {
    let (device, driver) = ready();
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let tasks = [0; 3].map(|_| task());
    let mut launching = Box::pin(call(&KERNEL, &x, &mut y).into_future());
    let mut enqueued = Vec::new();
    for task in &tasks {
        assert!(poll(launching.as_mut(), task).is_pending());
        enqueued.push(driver.pending());
    }
    // Every poll asks whether it is done, upon which the stand-in does a piece of work; nothing more is enqueued.
    assert!(enqueued.is_sorted_by(|a, b| a > b), "{enqueued:?}");
    context(&device).synchronize().unwrap();
    await_wakes(&tasks, &[0, 0, 1]);
    // A future that is dropped is woken by nobody, and its waker is dropped with it.
    let task = task();
    drop(launching);
    let mut launching = Box::pin(call(&KERNEL, &x, &mut y).into_future());
    assert!(poll(launching.as_mut(), &task).is_pending());
    drop(launching);
    context(&device).synchronize().unwrap();
    assert_eq!((Arc::strong_count(&task), woken(&[task])), (1, vec![0]));
}

/// The function that a driver calls may not call the driver, and the end of what a waker owns does.
#[test]
fn a_task_that_ends_when_it_is_woken_gives_its_memory_back() {
    /// Its parts are dropped in this order.
    struct Owner {
        _memory: Tensor<f32>,
        _ended: Sender<()>,
    }

    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }

    let (device, driver) = ready();
    let x = ramp(&device, 8);
    let [mut y, owned] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    let (ended, end) = channel();
    let waker = Waker::from(Arc::new(Owner { _memory: owned, _ended: ended }));
    let mut launching = Box::pin(call(&KERNEL, &x, &mut y).into_future());
    assert!(launching.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    drop(waker);
    assert_eq!(driver.live().allocations, 3);
    context(&device).synchronize().unwrap();
    end.recv().unwrap_err();
    context(&device).synchronize().unwrap();
    assert_eq!(driver.live().allocations, 2);
}

/// Runs `y = 2x` and `z = 2y` as a graph.
fn twice(graph: &mut Graph, x: &Tensor<f32>, y: &mut Tensor<f32>, z: &mut Tensor<f32>) {
    graph
        .run(|graph| {
            graph.launch(call(&KERNEL, x, y))?;
            graph.launch(call(&KERNEL, y, z))
        })
        .unwrap();
}

#[test]
fn a_graph_is_captured_once_and_its_inputs_may_change() {
    let (device, driver) = ready();
    let mut graph = Graph::new(&device);
    let mut x = ramp(&device, 8);
    let [mut y, mut z] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    for round in 0..5 {
        x.copy_from_slice(&doubled(8, round)).unwrap();
        twice(&mut graph, &x, &mut y, &mut z);
        assert!(driver.pending() > 0, "it runs when somebody waits");
        assert_eq!(z.to_vec().unwrap(), doubled(8, round + 2));
    }
    assert_eq!(graph.captures(), 1);
    // Other tensors are other addresses.
    let mut w = Tensor::zeros(&device, [8]).unwrap();
    twice(&mut graph, &x, &mut y, &mut w);
    assert_eq!((w.to_vec().unwrap(), graph.captures()), (doubled(8, 6), 2));
    // So are other sizes, and fewer launches.
    graph.run(|graph| graph.launch(call(&KERNEL, &x, &mut y))).unwrap();
    assert_eq!((y.to_vec().unwrap(), graph.captures()), (doubled(8, 5), 3));
    drop((x, y, z, w, graph, device));
    assert_eq!(driver.live(), Live::default());
}

#[test]
fn a_graph_waits_for_streams_and_keeps_what_is_dropped_in_its_closure() {
    let (device, _) = ready();
    let stream = Stream::new(&device).unwrap();
    let x = ramp(&device, 8);
    let [mut y, mut z] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    call(&KERNEL, &x, &mut y).on(&stream).unwrap().detach();
    Graph::new(&device)
        .run(|graph| {
            graph.launch(call(&KERNEL, &y, &mut z))?;
            drop(y);
            Ok(())
        })
        .unwrap();
    let mut other = Tensor::<f32>::zeros(&device, [8]).unwrap();
    other.fill(7.0).unwrap();
    assert_eq!(z.to_vec().unwrap(), doubled(8, 2));
}

#[test]
fn inside_of_a_graph_there_are_launches_alone() {
    let (device, _) = ready();
    let x = ramp(&device, 8);
    let [mut y, mut z] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    let mut graph = Graph::new(&device);
    let message = graph
        .run(|graph| {
            graph.launch(call(&KERNEL, &x, &mut y))?;
            y.to_vec().map(drop)
        })
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "inside of a graph there are launches alone, and this is a read of a tensor's elements; do it before or after"
    );
    // Nothing has run, and nothing is remembered.
    assert_eq!((y.to_vec().unwrap(), graph.captures()), (vec![0.0; 8], 0));
    let direct = graph.run(|_| call(&KERNEL, &x, &mut z).launch()).unwrap_err().to_string();
    assert!(direct.contains("a launch that isn't the graph's"), "{direct}");
    let made = graph.run(|_| Tensor::<f32>::zeros(&device, [1]).map(drop)).unwrap_err().to_string();
    assert!(made.contains("a tensor that is made"), "{made}");
    let filled = graph.run(|_| z.fill(1.0)).unwrap_err().to_string();
    assert!(filled.contains("this is a write of a tensor's elements"), "{filled}");
    let copied = graph.run(|_| z.copy_from(&x)).unwrap_err().to_string();
    assert!(copied.contains("this is a copy"), "{copied}");
}

/// In a process of its own: where somebody listens, others' launches allocate.
#[test]
#[cfg_attr(miri, ignore = "it starts a process")]
fn launches_of_a_graph_are_told_of_as_others() {
    if !is_child() {
        let test = "gpu::tests::streams::launches_of_a_graph_are_told_of_as_others";
        let told = in_process(test, &[("TILE_LOG", "debug")]);
        let launches: Vec<&str> =
            told.lines().filter(|line| line.starts_with("tile debug: launch ")).collect();
        assert!(launches.len() == 3 && launches.iter().all(|line| *line == launches[0]), "{told}");
        return;
    }
    let (device, _) = ready();
    let x = ramp(&device, 8);
    let [mut y, mut z] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    call(&KERNEL, &x, &mut y).launch().unwrap();
    twice(&mut Graph::new(&device), &x, &mut y, &mut z);
}

/// They are timed one by one when the closure is over, as the graph has them.
#[test]
fn launches_of_a_graph_are_profiled_in_their_order_and_not_before_its_closure_ends() {
    let (device, driver) = ready();
    let x = ramp(&device, 8);
    let [mut y, mut z] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    let mut graph = Graph::new(&device);
    let (run, profiled) = profile(|| {
        graph.run(|graph| {
            graph.launch(call(&KERNEL, &x, &mut y))?;
            graph.launch(call(&KERNEL, &y, &mut z))?;
            y.to_vec().map(drop)
        })
    });
    assert!(run.unwrap_err().to_string().contains("this is a read"));
    assert_eq!((profiled.launches().len(), y.to_vec().unwrap()), (0, vec![0.0; 8]), "nothing has run");
    for _ in 0..2 {
        let ((), profiled) = profile(|| twice(&mut graph, &x, &mut y, &mut z));
        assert_eq!(driver.pending(), 0, "they were waited for");
        let noted = profiled.launches().iter().map(|launched| (launched.kernel, launched.time.as_nanos()));
        assert_eq!(noted.collect::<Vec<_>>(), [("double", 2_000); 2]);
        assert_eq!(z.to_vec().unwrap(), doubled(8, 2));
    }
    twice(&mut graph, &x, &mut y, &mut z);
    assert!(driver.pending() > 0 && graph.captures() == 1, "a graph again");
}

/// Nothing has run when such a profile ends, and what comes before it in the graph least of all.
#[test]
fn a_profile_inside_of_a_graph_is_refused_on_every_device() {
    let (gpu, _) = ready();
    for device in [gpu, Device::reference()] {
        let x = ramp(&device, 8);
        let mut y = Tensor::zeros(&device, [8]).unwrap();
        let mut graph = Graph::new(&device);
        let mut run =
            || graph.run(|graph| profile(|| graph.launch(call(&KERNEL, &x, &mut y).reference(|_| {}))).0);
        let alone = run().unwrap_err();
        assert_eq!(
            alone.reason().to_string(),
            "inside of a graph there are launches alone, which haven't run yet when a profile of them ends there; \
             profile the whole of `Graph::run`"
        );
        assert!(matches!(alone, Error::InLaunch { .. }));
        let (within, noted) = profile(run);
        assert_eq!((within.unwrap_err().to_string(), noted.launches().len()), (alone.to_string(), 0));
        // One without launches misses nothing.
        graph.run(|_| profile(|| Ok(())).0).unwrap();
    }
}

/// Whichever call of its recording a driver refuses: a stream, the begin, two launches, and what is made of them.
#[test]
#[cfg_attr(miri, ignore = "eleven devices with their launches")]
fn a_graph_that_is_refused_leaves_nothing() {
    /// The end of the capture. What refuses it goes on capturing here, and with a driver it is over.
    const END: usize = 4;
    let mut refused = 0;
    for calls in (0..12).filter(|&calls| calls != END) {
        let (device, driver) = ready();
        let x = ramp(&device, 8);
        let [mut y, mut z] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
        call(&KERNEL, &x, &mut y).launch().unwrap();
        let mut graph = Graph::new(&device);
        driver.refuse_after(calls, Code::INVALID_VALUE);
        let run = graph.run(|graph| {
            graph.launch(call(&KERNEL, &x, &mut y))?;
            graph.launch(call(&KERNEL, &y, &mut z))
        });
        driver.refuse_nothing();
        drop((graph, x, y, z, device));
        // A driver that doesn't destroy what was captured has it still, and the graph runs.
        assert!(run.is_ok() || driver.live().graphs == 0, "{calls}: {:?}", driver.live());
        refused += usize::from(run.is_err());
    }
    assert_eq!(refused, 6);
}

/// All streams, those that nobody has any more and the device's own, but nothing else is asked of the driver.
#[test]
fn a_device_is_waited_for_with_all_its_streams() {
    let (device, driver) = ready();
    let x = ramp(&device, 8);
    let [mut y, mut z, mut w] = [0; 3].map(|_| Tensor::zeros(&device, [8]).unwrap());
    let stream = Stream::new(&device).unwrap();
    call(&KERNEL, &x, &mut y).launch().unwrap();
    call(&KERNEL, &x, &mut z).on(&stream).unwrap().detach();
    call(&KERNEL, &x, &mut w).on(&Stream::new(&device).unwrap()).unwrap().detach();
    assert!(driver.pending() > 2, "nothing has run");
    device.synchronize().unwrap();
    assert_eq!(driver.pending(), 0);
    // A stream that captures isn't among those that are waited for: a driver would refuse that, and the capture with it.
    Graph::new(&device).run(|graph| graph.launch(call(&KERNEL, &x, &mut y))).unwrap();
    let streams = driver.live().streams;
    driver.refuse(1 + 2, 1, Code::INVALID_VALUE);
    device.synchronize().unwrap();
    driver.refuse_nothing();
    assert_eq!((streams, driver.pending()), (3, 0));
    drop((x, y, z, w, stream, device));
    assert_eq!(driver.live(), Live::default());
}

/// `.launch()` returns before anything has run, so that nothing but a wait can say that it failed.
#[test]
fn a_wait_for_the_device_tells_that_a_launch_has_failed() {
    let (device, driver) = ready();
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    device.synchronize().unwrap();
    driver.lose_at_next_work(Code::ILLEGAL_ADDRESS);
    call(&KERNEL, &x, &mut y).launch().unwrap();
    let lost = device.synchronize().unwrap_err();
    assert!(matches!(lost, Error::DeviceLost { .. }), "{lost}");
}

#[test]
fn the_own_queue_is_a_stream() {
    let (device, driver) = ready();
    let x = ramp(&device, 8);
    let [mut y, mut z] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    let own = device.stream();
    assert_eq!(own.device(), &device);
    // The time of a launch is that between two events around it: a microsecond for each piece of work.
    let start = own.record().unwrap();
    call(&KERNEL, &x, &mut y).launch().unwrap();
    let end = own.record().unwrap();
    assert!(!end.is_done().unwrap());
    assert_eq!(end.since(&start).unwrap().as_nanos(), 2000);
    // A stream comes after a launch on it, and it after a launch on a stream.
    let other = Stream::new(&device).unwrap();
    call(&KERNEL, &x, &mut y).on(&own).unwrap().detach();
    call(&KERNEL, &y, &mut z).on(&other).unwrap().detach();
    own.wait_for(&other.record().unwrap()).unwrap();
    own.synchronize().unwrap();
    assert_eq!(driver.pending(), 0);
    assert_eq!(z.to_vec().unwrap(), doubled(8, 2));
}

#[test]
fn the_clock_waits_for_what_a_gpu_has_been_given_before_and_meanwhile() {
    let (device, driver) = ready();
    let x = ramp(&device, 8);
    let [mut y, mut z] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    let stream = Stream::new(&device).unwrap();
    call(&KERNEL, &x, &mut y).launch().unwrap();
    let launches = || {
        assert_eq!(driver.pending(), 0, "what was given before is over");
        call(&KERNEL, &x, &mut y).launch()?;
        call(&KERNEL, &x, &mut z).on(&stream).map(Pending::detach)
    };
    timed(&device, launches).unwrap();
    assert_eq!(driver.pending(), 0, "and so is this");
}
