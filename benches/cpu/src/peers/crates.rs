//! Matrix products of Rust's crates.

use crate::Result;
use crate::contest::{Contestant, Role};
use crate::effort::{Clock, Effort};
use crate::memory::Memory;
use crate::peers::process::{Process, effort_of};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use gemm::Parallelism;
use std::cell::RefCell;
use std::io::{BufRead, Write};
use std::process::Command;
use std::rc::Rc;

/// Their versions, as this package's lock file has them.
pub(crate) fn versions() -> String {
    let lock = include_str!("../../Cargo.lock");
    let named = |name: &&str| format!("{name} {}", version_of(lock, name).unwrap_or("?"));
    ["faer", "gemm", "matrixmultiply"].iter().map(named).collect::<Vec<_>>().join(", ")
}

/// The version of a package in the text of a lock file.
fn version_of<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let (_, after) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    after.split('"').next()
}

/// The crates' products C = A·B of the first two inputs, row-major.
pub(crate) fn multiplying([m, n, k]: [usize; 3], threads: usize) -> Result<Vec<Contestant>> {
    let faer = Contestant::here(Role::Peer, "faer", move |shared| {
        let a = MatRef::from_row_major_slice(shared.inputs[0].of::<f32>(), m, k);
        let b = MatRef::from_row_major_slice(shared.inputs[1].of::<f32>(), k, n);
        let c = MatMut::from_row_major_slice_mut(shared.output.of_mut::<f32>(), m, n);
        let parallel = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
        matmul(c, Accum::Replace, a, b, 1.0, parallel);
        Ok(())
    });
    let gemm = Contestant::here(Role::Peer, "gemm", move |shared| {
        let (a, b) = (shared.inputs[0].of::<f32>(), shared.inputs[1].of::<f32>());
        let c = shared.output.of_mut::<f32>();
        assert!(
            a.len() == m * k && b.len() == k * n && c.len() == m * n,
            "the memory is that of the matrices"
        );
        let parallel = if threads == 1 { Parallelism::None } else { Parallelism::Rayon(threads) };
        let ([a_stride, b_stride, c_stride], one) = ([k, n, n].map(|stride| stride as isize), 1);
        // SAFETY: the matrices are as large as their extents say, and the strides are those of rows and columns.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                c.as_mut_ptr(),
                one,
                c_stride,
                false,
                a.as_ptr(),
                one,
                a_stride,
                b.as_ptr(),
                one,
                b_stride,
                0.0f32,
                1.0f32,
                false,
                false,
                false,
                parallel,
            );
        }
        Ok(())
    });
    // It reads its number of threads once in a process.
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(SERVE).env("MATMUL_NUM_THREADS", threads.to_string());
    let process = Rc::new(RefCell::new(Process::start(&mut command)?));
    let matrixmultiply =
        Contestant::elsewhere("matrixmultiply", process, format!("matmul {threads} {m} {n} {k}"));
    Ok(vec![faer, gemm, matrixmultiply])
}

/// The argument that makes this program be `matrixmultiply`'s process.
pub(crate) const SERVE: &str = "--serve-matrixmultiply";

/// Answers the requests of [`Process`] with `matrixmultiply`.
pub(crate) fn serve() -> Result<()> {
    let mut problem = Product::new([1; 3]);
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words.as_slice() {
            ["matmul", _, sizes @ ..] => {
                let sizes: Vec<usize> =
                    sizes.iter().map(|size| size.parse()).collect::<std::result::Result<_, _>>()?;
                problem = Product::new(sizes.try_into().map_err(|_| "a product has three extents")?);
                "ready".to_owned()
            }
            words => match effort_of(words) {
                Some((effort, clock)) => problem.sample(&effort, clock)?.to_string(),
                None => format!("unknown: {line}"),
            },
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// A product of matrices of its own.
struct Product {
    extents: [usize; 3],
    a: Memory,
    b: Memory,
    c: Memory,
}

impl Product {
    fn new([m, n, k]: [usize; 3]) -> Product {
        let (a, b) = (Memory::floats(m * k, 1), Memory::floats(k * n, 2));
        Product { extents: [m, n, k], a, b, c: Memory::zeros::<f32>(m * n) }
    }

    fn sample(&mut self, effort: &Effort, clock: Clock) -> Result<f64> {
        effort.sample(clock, &mut || {
            self.multiply();
            Ok(())
        })
    }

    fn multiply(&mut self) {
        let [m, n, k] = self.extents;
        let (a, b, c) = (self.a.of::<f32>(), self.b.of::<f32>(), self.c.of_mut::<f32>());
        let [a_stride, c_stride] = [k, n].map(|stride| stride as isize);
        // SAFETY: the matrices are as large as their extents say, and rows begin where the ones before end.
        unsafe {
            matrixmultiply::sgemm(
                m,
                k,
                n,
                1.0,
                a.as_ptr(),
                a_stride,
                1,
                b.as_ptr(),
                c_stride,
                1,
                0.0,
                c.as_mut_ptr(),
                c_stride,
                1,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::{Shared, distance};

    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = "[[package]]\nname = \"gemm-f32\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"gemm\"\nversion = \"0.19.0\"\n";
        assert_eq!(version_of(lock, "gemm"), Some("0.19.0"));
        assert_eq!(version_of(lock, "faer"), None);
        assert!(!versions().contains('?'), "{}", versions());
    }

    #[test]
    fn products_are_products() {
        let (m, n, k) = (5, 7, 3);
        let mut product = Product::new([m, n, k]);
        let (a, b) = (product.a.of::<f32>().to_vec(), product.b.of::<f32>().to_vec());
        let element = |at: usize| (0..k).map(|p| a[at / n * k + p] * b[p * n + at % n]).sum::<f32>();
        let expected: Vec<f32> = (0..m * n).map(element).collect();
        product.multiply();
        assert!(distance(&expected, product.c.of::<f32>()) < 1e-6);
        let inputs = vec![Memory::floats(m * k, 1), Memory::floats(k * n, 2)];
        let mut shared = Shared { inputs, output: Memory::zeros::<f32>(m * n) };
        for threads in [1, 2] {
            for mut peer in multiplying([m, n, k], threads).unwrap() {
                shared.output.of_mut::<f32>().fill(f32::NAN);
                if peer.compute(&mut shared).unwrap() {
                    let error = distance(&expected, shared.output.of::<f32>());
                    assert!(error < 1e-6, "{}: {error}", peer.name);
                }
            }
        }
    }
}
