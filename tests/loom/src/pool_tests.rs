//! The pool of the CPU device: every number of a job is run once, and nobody has a job that is gone.

use crate::model;
use crate::pool::{Job, Pool};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

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
