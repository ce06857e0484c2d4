//! Tasks that wait for a device when it is lost.

use super::launches::{KERNEL, call, double, ramp};
use super::tasks::{await_wakes, poll, task, woken};
use super::*;
use crate::error::Error;
use crate::stream::{Stream, waiting};
use crate::tensor::Tensor;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Sender, channel};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

/// A task whose waker doesn't do what it should.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker's")
    }
}

/// Loses the device without anybody of the runtime's knowing.
fn lose(driver: &StandIn, stream: StreamHandle) {
    driver.lose_at_next_work(Code::ILLEGAL_ADDRESS);
    // SAFETY: the stream is there.
    unsafe { driver.synchronize(stream) }.unwrap_err();
}

#[test]
fn whoever_finds_the_device_lost_wakes_those_who_wait_for_it() {
    let ((device, driver), (other, _other)) = (device(1 << 20, true), device(1 << 20, true));
    driver.add("general", 3, double);
    let streams = [0; 2].map(|_| Stream::new(&device).unwrap());
    let x = ramp(&device, 8);
    let [y, z] = [0; 2].map(|_| Tensor::<f32>::pinned(&device, [8]).unwrap());
    let [mut a, mut b] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    // A launch and a copy, and a copy on a device that isn't lost.
    let tasks = [0; 3].map(|_| task());
    let mut elsewhere = Tensor::<f32>::zeros(&other, [8]).unwrap();
    let mut launch = pin!(call(&KERNEL, &x, &mut a).on(&streams[0]).unwrap());
    let mut copy = pin!(b.copy_from_on(&y, &streams[1]).unwrap());
    let other_stream = Stream::new(&other).unwrap();
    let mut third = pin!(elsewhere.copy_from_on(&z, &other_stream).unwrap());
    assert!(poll(launch.as_mut(), &tasks[0]).is_pending());
    assert!(poll(copy.as_mut(), &tasks[1]).is_pending());
    assert!(poll(third.as_mut(), &tasks[2]).is_pending());
    lose(&driver, streams[0].on_gpu().unwrap().handle());
    assert!(device.memory().is_err());
    await_wakes(&tasks, &[1, 1, 0]);
    let lost = |poll| matches!(poll, Poll::Ready(Err(Error::DeviceLost { .. })));
    assert!(lost(poll(launch, &tasks[0])) && lost(poll(copy, &tasks[1])));
    context(&other).synchronize().unwrap();
    other_stream.synchronize().unwrap();
    await_wakes(&tasks, &[1, 1, 1]);
    assert!(matches!(poll(third, &tasks[2]), Poll::Ready(Ok(()))));
}

#[test]
fn a_waker_that_panics_leaves_nobody_asleep() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let streams = [0; 2].map(|_| Stream::new(&device).unwrap());
    let (x, y) = (ramp(&device, 8), Tensor::<f32>::pinned(&device, [8]).unwrap());
    let [mut a, mut b] = [0; 2].map(|_| Tensor::zeros(&device, [8]).unwrap());
    let mut first = pin!(call(&KERNEL, &x, &mut a).on(&streams[0]).unwrap());
    let mut second = pin!(b.copy_from_on(&y, &streams[1]).unwrap());
    let panics = Waker::from(Arc::new(Panics));
    assert!(first.as_mut().poll(&mut std::task::Context::from_waker(&panics)).is_pending());
    let task = task();
    assert!(poll(second.as_mut(), &task).is_pending());
    lose(&driver, streams[0].on_gpu().unwrap().handle());
    assert!(device.memory().is_err());
    await_wakes(std::slice::from_ref(&task), &[1]);
}

/// Whoever finds the device lost may hold what a task needs when it is woken: here the list of who uses its memory.
#[test]
fn a_task_that_is_woken_may_use_memory_whose_user_found_the_device_lost() {
    struct Reader(Arc<Tensor<f32>>, Sender<bool>);

    impl Wake for Reader {
        fn wake(self: Arc<Self>) {
            let _ = self.1.send(self.0.to_vec().is_err());
        }
    }

    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let stream = Stream::new(&device).unwrap();
    let x = Arc::new(ramp(&device, 8));
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let (has_read, read) = channel();
    let waker = Waker::from(Arc::new(Reader(Arc::clone(&x), has_read)));
    let mut launch = pin!(call(&KERNEL, &x, &mut y).on(&stream).unwrap());
    assert!(launch.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    lose(&driver, stream.on_gpu().unwrap().handle());
    let finder = Arc::clone(&x);
    let found = std::thread::spawn(move || finder.to_vec().is_err());
    assert_eq!(read.recv_timeout(Duration::from_secs(60)), Ok(true), "the task hasn't come to its end");
    assert!(found.join().unwrap());
}

/// Nobody sees a waker's panic, and the launch goes on.
#[test]
fn a_device_that_is_done_wakes_a_waker_that_panics() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let mut launch = Box::pin(call(&KERNEL, &x, &mut y).into_future());
    let panics = Waker::from(Arc::new(Panics));
    assert!(launch.as_mut().poll(&mut std::task::Context::from_waker(&panics)).is_pending());
    context(&device).synchronize().unwrap();
    assert!(matches!(poll(launch.as_mut(), &task()), Poll::Ready(Ok(()))));
}

#[test]
fn a_look_finds_the_device_lost() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let stream = Stream::new(&device).unwrap();
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let task = task();
    let mut launch = pin!(call(&KERNEL, &x, &mut y).on(&stream).unwrap());
    assert!(poll(launch.as_mut(), &task).is_pending());
    waiting::look();
    assert_eq!(woken(std::slice::from_ref(&task)), [0]);
    lose(&driver, stream.on_gpu().unwrap().handle());
    waiting::look();
    await_wakes(std::slice::from_ref(&task), &[1]);
    assert!(matches!(poll(launch, &task), Poll::Ready(Err(Error::DeviceLost { .. }))));
}

/// What a copy was to write isn't there, so nobody reads what is there instead.
#[test]
fn memory_of_a_copy_that_was_lost_is_not_read() {
    let (device, driver) = device(1 << 20, true);
    let y = ramp(&device, 8);
    let mut x = Tensor::<f32>::pinned(&device, [8]).unwrap();
    x.copy_from(&y).unwrap();
    lose(&driver, StreamHandle::DEFAULT);
    assert!(matches!(x.as_slice(), Err(Error::DeviceLost { .. })));
    assert!(matches!(x.to_vec(), Err(Error::DeviceLost { .. })));
    // Nor after work of the host's that was to come behind it.
    let stream = Stream::new(&Device::cpu()).unwrap();
    let source = Tensor::<f32>::zeros(&Device::cpu(), [8]).unwrap();
    x.copy_from_on(&source, &stream).unwrap().detach();
    assert!(matches!(stream.synchronize(), Err(Error::DeviceLost { .. })));
    assert!(matches!(x.as_slice(), Err(Error::DeviceLost { .. })));
}

/// Nobody asks the device for anything but the future, which sleeps.
#[test]
fn a_future_of_a_lost_device_ends() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    let task = task();
    let mut launch = Box::pin(call(&KERNEL, &x, &mut y).into_future());
    assert!(poll(launch.as_mut(), &task).is_pending());
    lose(&driver, StreamHandle::DEFAULT);
    let ended = loop {
        match poll(launch.as_mut(), &task) {
            Poll::Ready(ended) => break ended,
            Poll::Pending => std::thread::park(),
        }
    };
    assert!(matches!(ended, Err(Error::DeviceLost { .. })));
}
