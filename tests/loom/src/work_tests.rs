//! A stream comes after all work that its user knows to be enqueued on the device's own.

use crate::model;
use crate::work::{Enqueued, Followed};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// Two queues of a driver's, as long as they are and, of the second, how far it waits for the first at each place.
struct Device {
    enqueued: Enqueued,
    followed: Followed,
    own: Mutex<usize>,
    stream: Mutex<usize>,
}

impl Device {
    fn new() -> Arc<Device> {
        let (own, stream) = (Mutex::new(0), Mutex::new(0));
        Arc::new(Device { enqueued: Enqueued::new(), followed: Followed::new(), own, stream })
    }

    /// A piece of work on the device's own stream.
    fn enqueue(&self) {
        let _work = self.enqueued.begin();
        *self.own.lock().unwrap() += 1;
    }

    /// A launch on the other stream: how many pieces of the first come before it.
    fn launch(&self) -> usize {
        let wait = || {
            let event = *self.own.lock().unwrap();
            let mut stream = self.stream.lock().unwrap();
            *stream = (*stream).max(event);
            Ok::<(), ()>(())
        };
        self.followed.follow(&self.enqueued, wait).unwrap();
        *self.stream.lock().unwrap()
    }
}

/// Another thread that launches meanwhile takes no wait away.
#[test]
fn launches_on_one_stream_from_two_threads_come_after_what_is_enqueued() {
    model(3, || {
        let device = Device::new();
        device.enqueue();
        let other = {
            let device = Arc::clone(&device);
            thread::spawn(move || device.launch())
        };
        assert_eq!((device.launch(), other.join().unwrap()), (1, 1));
    });
}

/// A launch beside work that is being enqueued needn't come after it; the next one, which may use what it makes, does.
#[test]
fn what_is_enqueued_beside_a_launch_comes_before_the_next() {
    model(3, || {
        let device = Device::new();
        let other = {
            let device = Arc::clone(&device);
            thread::spawn(move || device.enqueue())
        };
        device.launch();
        other.join().unwrap();
        assert_eq!(device.launch(), 1);
    });
}

#[test]
fn a_wait_that_fails_is_made_up_for() {
    model(2, || {
        let device = Device::new();
        device.enqueue();
        assert!(device.followed.follow(&device.enqueued, || Err(())).is_err());
        assert_eq!(device.launch(), 1);
    });
}
