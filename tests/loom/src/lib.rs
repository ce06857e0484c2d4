//! The pool of tile-runtime's CPU device under loom, which runs its threads in every order that their atomics and locks
//! allow, up to a bound of preemptions, and checks that what one thread writes is there for the next.

/// Loom's atomics and locks in the place of the standard library's.
#[cfg(test)]
mod sync {
    pub(super) use loom::hint::spin_loop;
    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};

    /// One look is as good as a thousand, and has fewer orders.
    pub(super) const SPINS: usize = 1;
}

#[cfg(test)]
#[path = "../../../tile-runtime/src/cpu/pool.rs"]
mod pool;

#[cfg(test)]
mod tests {
    use super::pool::{Job, Pool};
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// Tries all orders with so many preemptions.
    fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(body);
    }

    /// A cell per number, written by whoever runs the number and read by who submitted the job: loom objects where
    /// one isn't ordered after the other, and where a cell is used after it is dropped.
    struct Cells(Vec<UnsafeCell<usize>>);

    // SAFETY: every number is given to one thread, which is what the models check.
    unsafe impl Sync for Cells {}

    fn run_job(pool: &Pool, count: usize) {
        let cells = Cells((0..count).map(|_| UnsafeCell::new(0)).collect());
        let cells = &cells;
        let share = |number: usize| {
            // SAFETY: nobody else has this number.
            cells.0[number].with_mut(|value| unsafe { *value += 1 });
        };
        pool.run(&Job::new(count, &share), 1);
        for cell in &cells.0 {
            // SAFETY: the job is over.
            assert_eq!(cell.with(|value| unsafe { *value }), 1);
        }
    }

    fn served(pool: &Arc<Pool>) -> thread::JoinHandle<()> {
        let pool = Arc::clone(pool);
        thread::spawn(move || pool.serve())
    }

    #[test]
    fn a_job_is_done_once_and_its_thread_leaves() {
        model(3, || {
            let pool = Arc::new(Pool::new(2));
            let worker = served(&pool);
            run_job(&pool, 2);
            pool.close();
            worker.join().unwrap();
        });
    }

    #[test]
    fn a_thread_sleeps_between_jobs_and_wakes() {
        model(2, || {
            let pool = Arc::new(Pool::new(2));
            let worker = served(&pool);
            run_job(&pool, 2);
            run_job(&pool, 2);
            pool.close();
            worker.join().unwrap();
            assert!(!pool.sleeps());
        });
    }

    #[test]
    fn two_threads_submit_at_once() {
        model(2, || {
            let pool = Arc::new(Pool::new(2));
            let worker = served(&pool);
            let other = {
                let pool = Arc::clone(&pool);
                thread::spawn(move || run_job(&pool, 1))
            };
            run_job(&pool, 1);
            other.join().unwrap();
            pool.close();
            worker.join().unwrap();
        });
    }
}
