//! Loops in C that this machine's compiler compiles for it: what a programmer gets without a library.

use libloading::{Library, Symbol};
use std::ffi::{CStr, c_int};
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = include_str!("loops.c");
const FLAGS: [&str; 6] = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC", "-shared"];

/// The compiled loops.
pub(crate) struct CLoops {
    /// Never unloaded: OpenMP's threads stay, and need their code.
    library: &'static Library,
    description: String,
}

impl CLoops {
    /// Compiles and loads them; where there is no compiler, the error says how to get one.
    pub(crate) fn build() -> Result<CLoops, String> {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let hint = |problem: String| format!("the C loops aren't there ({problem}): apt-get install gcc");
        let version = Command::new(&compiler).arg("--version").output();
        let version = version.map_err(|error| hint(format!("`{compiler}`: {error}")))?;
        let version = String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or("").to_owned();
        let folder = folder().map_err(|error| hint(error.to_string()))?;
        let (source, built) = (folder.join("loops.c"), folder.join("loops.so"));
        std::fs::write(&source, SOURCE).map_err(|error| hint(error.to_string()))?;
        let mut command = Command::new(&compiler);
        command.args(FLAGS).arg(widest_vectors(&compiler)).arg(&source).arg("-o").arg(&built).arg("-lm");
        let output = command.output().map_err(|error| hint(error.to_string()))?;
        if !output.status.success() {
            return Err(hint(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        // SAFETY: what loading runs is OpenMP's and the C library's.
        let library = unsafe { Library::new(&built) }.map_err(|error| hint(error.to_string()))?;
        let (library, flags) = (Box::leak(Box::new(library)), FLAGS[..4].join(" "));
        Ok(CLoops { library, description: format!("C loops by {version}, {flags}") })
    }

    /// The compiler, and how it was told.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// From now on, so many threads.
    pub(crate) fn set_threads(&self, threads: usize) {
        // SAFETY: the type is that of the source.
        let set = unsafe { self.function::<unsafe extern "C" fn(c_int)>(c"set_threads") };
        // SAFETY: a number of threads is all it takes.
        unsafe { set(threads as c_int) }
    }

    /// # Safety
    /// The type is that of the function in the source.
    unsafe fn function<T>(&self, name: &CStr) -> Symbol<'_, T> {
        // SAFETY: the caller vouches for the type.
        unsafe { self.library.get(name) }.expect("the source defines every function that is asked for")
    }

    /// Softmax of rows of `n` elements, scaled before, where they lie.
    pub(crate) fn softmax_in_place(&self, x: &mut [f32], n: usize, scale: f32) {
        let (address, rows) = (x.as_mut_ptr(), x.len() / n);
        type Softmax = unsafe extern "C" fn(*const f32, *mut f32, usize, usize, f32);
        // SAFETY: the type is that of the source; it allows both to be the same, and so many rows are there.
        unsafe { self.function::<Softmax>(c"softmax")(address, address, rows, n, scale) }
    }

    /// Softmax of rows of `n` elements.
    pub(crate) fn softmax(&self, x: &[f32], y: &mut [f32], n: usize) {
        assert_eq!(x.len(), y.len());
        type Softmax = unsafe extern "C" fn(*const f32, *mut f32, usize, usize, f32);
        // SAFETY: the type is that of the source, and both have so many rows.
        unsafe { self.function::<Softmax>(c"softmax")(x.as_ptr(), y.as_mut_ptr(), x.len() / n, n, 1.0) }
    }

    /// RMS normalisation of rows.
    pub(crate) fn rmsnorm(&self, x: &[f32], weight: &[f32], y: &mut [f32]) {
        let n = weight.len();
        assert_eq!((x.len() % n, x.len()), (0, y.len()));
        type Rmsnorm = unsafe extern "C" fn(*const f32, *const f32, *mut f32, usize, usize);
        let (rows, y) = (x.len() / n, y.as_mut_ptr());
        // SAFETY: the type is that of the source, and both have so many rows of the weight's extent.
        unsafe { self.function::<Rmsnorm>(c"rmsnorm")(x.as_ptr(), weight.as_ptr(), y, rows, n) }
    }

    /// Layer normalisation of rows.
    pub(crate) fn layernorm(&self, x: &[f32], weight: &[f32], bias: &[f32], y: &mut [f32]) {
        let n = weight.len();
        assert_eq!((x.len() % n, x.len(), bias.len()), (0, y.len(), n));
        type Layernorm = unsafe extern "C" fn(*const f32, *const f32, *const f32, *mut f32, usize, usize);
        let (rows, y) = (x.len() / n, y.as_mut_ptr());
        // SAFETY: the type is that of the source, and both have so many rows of the weight's and bias's extent.
        unsafe {
            self.function::<Layernorm>(c"layernorm")(x.as_ptr(), weight.as_ptr(), bias.as_ptr(), y, rows, n)
        }
    }

    /// y = a + b.
    pub(crate) fn add(&self, a: &[f32], b: &[f32], y: &mut [f32]) {
        assert!(a.len() == y.len() && b.len() == y.len());
        type Add = unsafe extern "C" fn(*const f32, *const f32, *mut f32, usize);
        // SAFETY: the type is that of the source, and all have so many elements.
        unsafe { self.function::<Add>(c"add")(a.as_ptr(), b.as_ptr(), y.as_mut_ptr(), y.len()) }
    }

    /// y = gelu(a + b)·c.
    pub(crate) fn gelu_add_mul(&self, [a, b, c]: [&[f32]; 3], y: &mut [f32]) {
        assert!([a, b, c].iter().all(|x| x.len() == y.len()));
        type Gelu = unsafe extern "C" fn(*const f32, *const f32, *const f32, *mut f32, usize);
        let count = y.len();
        // SAFETY: the type is that of the source, and all have so many elements.
        unsafe {
            self.function::<Gelu>(c"gelu_add_mul")(a.as_ptr(), b.as_ptr(), c.as_ptr(), y.as_mut_ptr(), count);
        }
    }

    /// The sum of all elements.
    pub(crate) fn sum(&self, x: &[f32], y: &mut f32) {
        type Sum = unsafe extern "C" fn(*const f32, *mut f32, usize);
        // SAFETY: the type is that of the source; so many elements are there, and room for one.
        unsafe { self.function::<Sum>(c"sum")(x.as_ptr(), y, x.len()) }
    }

    /// y = xᵀ, of `m` rows.
    pub(crate) fn transpose(&self, x: &[f32], y: &mut [f32], m: usize) {
        assert_eq!((x.len(), x.len() % m), (y.len(), 0));
        type Transpose = unsafe extern "C" fn(*const f32, *mut f32, usize, usize);
        // SAFETY: the type is that of the source, and both have so many elements.
        unsafe { self.function::<Transpose>(c"transpose")(x.as_ptr(), y.as_mut_ptr(), m, x.len() / m) }
    }

    /// The mean of four neighbours, of `m` rows.
    pub(crate) fn neighbours(&self, x: &[f32], y: &mut [f32], m: usize) {
        assert_eq!((x.len(), x.len() % m), (y.len(), 0));
        type Neighbours = unsafe extern "C" fn(*const f32, *mut f32, usize, usize);
        // SAFETY: the type is that of the source, and both have so many elements.
        unsafe { self.function::<Neighbours>(c"neighbours")(x.as_ptr(), y.as_mut_ptr(), m, x.len() / m) }
    }

    /// Each channel of `m` by `n` by 3 by 3 weights of its own.
    pub(crate) fn depthwise(&self, x: &[f32], weight: &[f32], y: &mut [f32], [m, n]: [usize; 2]) {
        let channels = weight.len() / 9;
        assert_eq!((x.len(), weight.len()), (channels * m * n, channels * 9));
        assert_eq!(x.len(), y.len());
        type Depthwise = unsafe extern "C" fn(*const f32, *const f32, *mut f32, usize, usize, usize);
        let y = y.as_mut_ptr();
        // SAFETY: the type is that of the source, and all have so many elements.
        unsafe { self.function::<Depthwise>(c"depthwise")(x.as_ptr(), weight.as_ptr(), y, channels, m, n) }
    }

    /// Squared distances of points of `d` numbers from others.
    pub(crate) fn distances(&self, a: &[f32], b: &[f32], y: &mut [f32], d: usize) {
        let (m, n) = (a.len() / d, b.len() / d);
        assert_eq!((a.len(), b.len(), y.len()), (m * d, n * d, m * n));
        type Distances = unsafe extern "C" fn(*const f32, *const f32, *mut f32, usize, usize, usize);
        // SAFETY: the type is that of the source, and all have so many elements.
        unsafe { self.function::<Distances>(c"distances")(a.as_ptr(), b.as_ptr(), y.as_mut_ptr(), m, n, d) }
    }

    /// y = x·w.
    pub(crate) fn row_times_matrix(&self, x: &[f32], w: &[f32], y: &mut [f32]) {
        let (k, n) = (x.len(), y.len());
        assert_eq!(w.len(), k * n);
        type Product = unsafe extern "C" fn(*const f32, *const f32, *mut f32, usize, usize);
        let y = y.as_mut_ptr();
        // SAFETY: the type is that of the source, and all have so many elements.
        unsafe { self.function::<Product>(c"row_times_matrix")(x.as_ptr(), w.as_ptr(), y, k, n) }
    }
}

/// Where the library lies: beside this program, which cargo has put into the target folder.
fn folder() -> std::io::Result<PathBuf> {
    let folder = std::env::current_exe()?.with_extension("loops");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// On x86 compilers keep to half of AVX-512's vectors unless they are told.
fn widest_vectors(compiler: &str) -> &'static str {
    let flag = "-mprefer-vector-width=512";
    let try_it = Command::new(compiler).args(["-x", "c", "-E", flag, "/dev/null"]).output();
    if try_it.is_ok_and(|output| output.status.success()) { flag } else { "-O3" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::distance;
    use crate::memory::Memory;

    /// Against f64, element by element.
    fn check(name: &str, actual: &[f32], expected: impl Fn(usize) -> f64) {
        let expected: Vec<f32> = (0..actual.len()).map(|at| expected(at) as f32).collect();
        let error = distance(&expected, actual);
        assert!(error < 1e-5, "{name}: {error}");
    }

    #[test]
    fn loops_compute_what_their_names_say() {
        let Ok(c) = CLoops::build() else {
            println!("no C compiler");
            return;
        };
        c.set_threads(2);
        let (m, n) = (5, 37);
        let [x, a, b] = [1, 2, 3].map(|seed| Memory::floats(m * n, seed).of::<f32>().to_vec());
        let mut y = vec![0.0; m * n];
        let at = |i: usize| f64::from(x[i]);
        let row = |i: usize| (i / n * n..i / n * n + n).map(at);
        c.softmax(&x, &mut y, n);
        let softmax = |i: usize| at(i).exp() / row(i).map(f64::exp).sum::<f64>();
        check("softmax", &y, softmax);
        let mut z = x.clone();
        c.softmax_in_place(&mut z, n, 1.0);
        check("softmax in place", &z, softmax);
        let mean_square = |i: usize| row(i).map(|x| x * x).sum::<f64>() / n as f64;
        c.rmsnorm(&x, &a[..n], &mut y);
        check("rmsnorm", &y, |i| at(i) / (mean_square(i) + 1e-6).sqrt() * f64::from(a[i % n]));
        c.layernorm(&x, &a[..n], &b[..n], &mut y);
        check("layernorm", &y, |i| {
            let mean = row(i).sum::<f64>() / n as f64;
            let deviation = (mean_square(i) - mean * mean + 1e-5).sqrt();
            (at(i) - mean) / deviation * f64::from(a[i % n]) + f64::from(b[i % n])
        });
        c.add(&x, &a, &mut y);
        check("add", &y, |i| at(i) + f64::from(a[i]));
        let mut sum = [0.0];
        c.sum(&x, &mut sum[0]);
        check("sum", &sum, |_| (0..m * n).map(at).sum());
        c.transpose(&x, &mut y, m);
        check("transpose", &y, |i| at(i % m * n + i / m));
        let near = |i: usize, down: isize, right: isize| {
            let (row, column) = ((i / n) as isize + down, (i % n) as isize + right);
            let exists = (0..m as isize).contains(&row) && (0..n as isize).contains(&column);
            if exists { at(row as usize * n + column as usize) } else { 0.0 }
        };
        c.neighbours(&x, &mut y, m);
        let mean = |i| (near(i, -1, 0) + near(i, 1, 0) + near(i, 0, -1) + near(i, 0, 1)) / 4.0;
        check("neighbours", &y, mean);
        c.depthwise(&x, &a[..9], &mut y, [m, n]);
        check("depthwise", &y, |i| {
            let tap = |t: usize| f64::from(a[t]) * near(i, t as isize / 3 - 1, t as isize % 3 - 1);
            (0..9).map(tap).sum()
        });
        let mut squares = vec![0.0; m * m];
        c.distances(&x, &b, &mut squares, n);
        check("distances", &squares, |i| {
            (0..n).map(|k| (at(i / m * n + k) - f64::from(b[i % m * n + k])).powi(2)).sum()
        });
        let mut product = vec![0.0; n];
        c.row_times_matrix(&a[..m], &x, &mut product);
        check("row × matrix", &product, |j| (0..m).map(|i| f64::from(a[i]) * at(i * n + j)).sum());
        // gelu of large numbers is the number or nothing.
        let (ones, large): (Vec<f32>, Vec<f32>) =
            (0..m * n).map(|i| (1.0, if i % 2 == 0 { 9.0 } else { -9.0 })).unzip();
        c.gelu_add_mul([&ones, &large, &a], &mut y);
        check("gelu", &y, |i| if i % 2 == 0 { 10.0 * f64::from(a[i]) } else { 0.0 });
    }
}
