//! The libraries that are measured beside this project, those of them that are at hand.

pub(crate) mod c_loops;
pub(crate) mod crates;
pub(crate) mod openblas;
pub(crate) mod process;
pub(crate) mod torch;

use c_loops::CLoops;
use openblas::OpenBlas;
use process::Process;
use std::cell::RefCell;
use std::rc::Rc;

/// Those that needn't be there.
pub(crate) struct Peers {
    pub(crate) openblas: Option<Rc<OpenBlas>>,
    pub(crate) c_loops: Option<Rc<CLoops>>,
    pub(crate) torch: Option<Rc<RefCell<Process>>>,
    /// What is missing, and how to get it: a line each.
    pub(crate) missing: Vec<String>,
    /// What is there, with versions: a line each.
    pub(crate) present: Vec<String>,
}

impl Peers {
    /// Looks for all of them.
    pub(crate) fn find() -> Peers {
        let (mut missing, mut present) = (Vec::new(), Vec::new());
        let openblas = OpenBlas::load().map(Rc::new).map_err(|problem| missing.push(problem)).ok();
        present.extend(openblas.iter().map(|openblas| openblas.description().to_owned()));
        present.push(crates::versions());
        let c_loops = CLoops::build().map(Rc::new).map_err(|problem| missing.push(problem)).ok();
        present.extend(c_loops.iter().map(|c_loops| c_loops.description().to_owned()));
        let torch = match torch::start() {
            Ok((process, version)) => {
                present.push(version);
                Some(Rc::new(RefCell::new(process)))
            }
            Err(problem) => {
                missing.push(problem);
                None
            }
        };
        Peers { openblas, c_loops, torch, missing, present }
    }

    /// Sets the threads of those that have a number of their own.
    pub(crate) fn set_threads(&self, threads: usize) {
        if let Some(openblas) = &self.openblas {
            openblas.set_threads(threads);
        }
        if let Some(c_loops) = &self.c_loops {
            c_loops.set_threads(threads);
        }
    }
}
