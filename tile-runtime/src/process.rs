//! Which process this is. A child that a process forks has its memory and none of its threads but the one that forked: what
//! other threads were to do there nobody does.

use crate::error::Error;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often this process and those before it were forked on the way here.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// A process, as its children tell it from themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(usize);

impl Process {
    /// This one.
    pub(crate) fn current() -> Process {
        static COUNTED: Once = Once::new();
        COUNTED.call_once(count_forks);
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it isn't this one.
    pub(crate) fn is_over(self) -> bool {
        self != Process::current()
    }

    /// What is told of work that a thread of a process before this one was to do.
    pub(crate) fn error() -> Error {
        let problem = "a thread was to do this that is in the process from which this one was forked; make streams, and read \
                       what is computed on them, in the process that uses them";
        Error::Stream { problem: problem.to_owned() }
    }
}

/// Asking the system for the process's number at every launch would take longer than the rest of a small one.
#[cfg(all(unix, not(miri)))]
fn count_forks() {
    use std::ffi::c_int;
    type Handler = Option<extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the function may be called in a child of any process: it changes a number. Where there is no memory for it
    // children aren't told from their parents.
    let _ = unsafe { pthread_atfork(None, None, Some(in_child)) };
}

/// There are no such children.
#[cfg(not(all(unix, not(miri))))]
fn count_forks() {}

#[cfg(all(test, target_os = "linux", not(miri)))]
#[allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]
mod tests {
    use crate::cpu;
    use crate::launch::{KernelDef, Launch};
    use crate::stream::tests::block_on;
    use crate::{Device, Error, Stream, Tensor};
    use std::ffi::c_int;
    use std::future::Future;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::Command;
    use std::task::{Context, Waker};

    unsafe extern "C" {
        fn fork() -> c_int;
        fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn alarm(seconds: u32) -> u32;
        fn _exit(status: c_int) -> !;
    }

    /// Set in a process of this test, which has no other tests' threads.
    const OWN: &str = "FORK_TEST_PROCESS";

    static KERNEL: KernelDef = KernelDef::new(
        "ones",
        "kernel @ones(%y: mut tensor<n x f32>) {\n  %v = partition %y [4] : mut partition<n x f32, [4]>\n  \
         %0 = constant 1.0 : f32\n  %t = splat %0 : tile<4 x f32>\n  store_masked %v, %t\n}\n",
        &[],
    );

    fn ones(y: &mut Tensor<f32>) -> Launch<'_> {
        Launch::new(&KERNEL).reference(|given| given.tensor_mut::<f32>(0).0.set(0, 1.0)).tensor_mut("y", y)
    }

    /// How something goes in a child of this process: whether it ends in time and without a panic.
    fn in_child(work: impl FnOnce()) -> bool {
        // SAFETY: the child uses what it has of this process as any thread would; nothing else runs here that could hold the
        // allocator's lock, which the C library sees to as well.
        match unsafe { fork() } {
            0 => {
                // SAFETY: a signal after a while ends a child that waits for ever.
                unsafe { alarm(60) };
                let is_well = catch_unwind(AssertUnwindSafe(work)).is_ok();
                // SAFETY: the child ends, without what the parent has to do at its end.
                unsafe { _exit(c_int::from(!is_well)) }
            }
            child => {
                let mut status = -1;
                // SAFETY: the status is there.
                assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
                status == 0
            }
        }
    }

    #[test]
    fn a_child_of_a_process_has_threads_and_streams_of_its_own() {
        const NAME: &str = "process::tests::a_child_of_a_process_has_threads_and_streams_of_its_own";
        if std::env::var_os(OWN).is_none() {
            let mut test = Command::new(std::env::current_exe().unwrap());
            let output = test.args(["--exact", NAME, "--nocapture"]).env(OWN, "1").output().unwrap();
            let texts =
                [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
            assert!(output.status.success(), "{}\n{}", texts[0], texts[1]);
            return;
        }
        let device = Device::reference();
        let [mut x, mut y] = [0; 2].map(|_| Tensor::<f32>::zeros(&device, [1]).unwrap());
        let kept = Stream::new(&device).unwrap();
        ones(&mut x).on(&kept).unwrap().wait().unwrap();
        // One whose thread waits for the next stream.
        drop(Stream::new(&device).unwrap());
        let (go, begun) = std::sync::mpsc::channel::<()>();
        let busy = Stream::new(&device).unwrap();
        busy.enqueue(move || begun.recv().map_err(|_| unreachable!("it is sent")));
        let mut pending = Box::pin(ones(&mut y).on(&busy).unwrap());
        // A thread wakes this process's tasks.
        assert!(pending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        std::mem::forget(pending);
        cpu::set_threads(3);
        let streams_go_on = in_child(|| {
            let stream = Stream::new(&device).unwrap();
            ones(&mut x).on(&stream).unwrap().wait().unwrap();
            block_on(ones(&mut x).on(&stream).unwrap()).unwrap();
            stream.synchronize().unwrap();
            device.synchronize().unwrap();
        });
        assert!(streams_go_on, "streams of the child's own");
        let others_are_told_of = in_child(|| {
            let told = "a thread was to do this that is in the process from which this one was forked";
            let is_told =
                |result: Result<(), Error>| result.unwrap_err().reason().to_string().starts_with(told);
            assert!(is_told(kept.synchronize()) && is_told(busy.synchronize()));
            assert!(is_told(ones(&mut x).on(&kept).unwrap().wait()));
            assert!(is_told(kept.record().unwrap().wait()));
            assert!(is_told(y.to_vec().map(drop)), "what the parent's thread still writes");
            assert!(is_told(ones(&mut y).launch()));
            // Nor is it told to be done by what was to come after it, on a stream of the child's.
            let other = Stream::new(&device).unwrap();
            ones(&mut y).on(&other).unwrap().detach();
            assert!(is_told(other.synchronize()) && is_told(y.to_vec().map(drop)));
            y.copy_from_on(&x, &other).unwrap().detach();
            assert!(is_told(other.synchronize()) && is_told(y.to_vec().map(drop)));
            drop((kept.clone(), y));
        });
        assert!(others_are_told_of, "streams of the parent's");
        let pool_has_threads = in_child(|| {
            let met = std::sync::Barrier::new(3);
            cpu::on_threads(3, &|_| {
                met.wait();
            });
        });
        assert!(pool_has_threads, "a pool of the child's own");
        go.send(()).unwrap();
        busy.synchronize().unwrap();
    }
}
