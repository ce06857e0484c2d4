//! OpenBLAS, as the system's packages have it: loaded when the program runs, so that building needs none.
//!
//! The classes of processors that a distribution's version knows are older than many processors, and what it doesn't
//! know gets code of 2004: a fifth of the speed. So its class is named before it is loaded, by what instructions the
//! processor has.

use libloading::Library;
use std::ffi::{CStr, c_char, c_int};

/// The environment variable that names the class.
const CLASS_VARIABLE: &str = "OPENBLAS_CORETYPE";

const NAMES: [&str; 3] = ["libopenblas.so.0", "libopenblas.so", "libopenblas.dylib"];

const ROW_MAJOR: c_int = 101;
const PLAIN: c_int = 111;
const TRANSPOSED: c_int = 112;

/// `cblas_sgemm`, as cblas.h declares it where integers have 32 bits.
type Sgemm = unsafe extern "C" fn(
    order: c_int,
    a_form: c_int,
    b_form: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: f32,
    a: *const f32,
    a_stride: c_int,
    b: *const f32,
    b_stride: c_int,
    beta: f32,
    c: *mut f32,
    c_stride: c_int,
);

/// The library.
pub(crate) struct OpenBlas {
    sgemm: Sgemm,
    set_threads: unsafe extern "C" fn(c_int),
    description: String,
}

/// The class that OpenBLAS is told: the fastest of those that a processor with these instructions can run, as measured;
/// `None` where OpenBLAS finds out itself.
pub(crate) fn class(has: impl Fn(&str) -> bool, is_amd: bool) -> Option<&'static str> {
    let all = |features: &[&str]| features.iter().all(|feature| has(feature));
    // Zen 4 takes two turns for a vector of 512 bits, and code for 256 is the faster one; AVX-VNNI came with Zen 5.
    let is_split = is_amd && !has("avxvnni");
    if all(&["avx512f", "avx512bw", "avx512dq", "avx512vl"]) && !is_split {
        Some(if has("avx512bf16") { "Cooperlake" } else { "SkylakeX" })
    } else if all(&["avx2", "fma"]) {
        Some(if is_amd { "Zen" } else { "Haswell" })
    } else {
        None
    }
}

/// Names the class for the OpenBLAS that is loaded later, unless somebody has; what to say where that is another one.
///
/// # Safety
/// No other thread reads or writes the environment.
pub(crate) unsafe fn name_class(has: impl Fn(&str) -> bool, is_amd: bool) -> Option<String> {
    let class = class(has, is_amd)?;
    let Some(said) = std::env::var_os(CLASS_VARIABLE) else {
        // SAFETY: the caller vouches for the other threads.
        unsafe { std::env::set_var(CLASS_VARIABLE, class) };
        return None;
    };
    let said = said.to_string_lossy();
    (said != class).then(|| {
        format!("{CLASS_VARIABLE}={said} is in the environment; by this processor's instructions it would be {class}")
    })
}

impl OpenBlas {
    /// Loads it; where there is none, the error says how to get it.
    pub(crate) fn load() -> Result<OpenBlas, String> {
        // SAFETY: what OpenBLAS does when it is loaded is to allocate and to start threads.
        let library = NAMES.into_iter().find_map(|name| unsafe { Library::new(name) }.ok());
        let library = library.ok_or("OpenBLAS isn't there: apt-get install libopenblas0")?;
        let missing = |error: libloading::Error| format!("OpenBLAS lacks a function: {error}");
        // SAFETY: the types are those of cblas.h.
        unsafe {
            let sgemm = *library.get::<Sgemm>(c"cblas_sgemm").map_err(missing)?;
            let set_threads =
                *library.get::<unsafe extern "C" fn(c_int)>(c"openblas_set_num_threads").map_err(missing)?;
            type Text = unsafe extern "C" fn() -> *const c_char;
            let config = text(*library.get::<Text>(c"openblas_get_config").map_err(missing)?);
            let class = text(*library.get::<Text>(c"openblas_get_corename").map_err(missing)?);
            // The configuration begins with `OpenBLAS 0.3.21 `.
            let version = config.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            let description = format!("{version} with kernels for {class}");
            // Never unloaded: its threads stay, and need their code.
            std::mem::forget(library);
            Ok(OpenBlas { sgemm, set_threads, description })
        }
    }

    /// Version and class.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// From now on, so many threads.
    pub(crate) fn set_threads(&self, threads: usize) {
        // SAFETY: a number of threads is all it takes.
        unsafe { (self.set_threads)(threads as c_int) }
    }

    /// C = A·B of row-major matrices, B transposed or not, of which rows begin where the ones before end.
    pub(crate) fn multiply(
        &self,
        [m, n, k]: [usize; 3],
        a: &[f32],
        b: &[f32],
        is_transposed: bool,
        c: &mut [f32],
    ) {
        assert!(
            a.len() >= m * k && b.len() >= k * n && c.len() >= m * n,
            "matrices are as large as their extents say"
        );
        let b_form = if is_transposed { TRANSPOSED } else { PLAIN };
        let b_stride = if is_transposed { k } else { n };
        let [rows, columns, depth, b_stride] = [m, n, k, b_stride].map(|extent| extent as c_int);
        // SAFETY: the matrices are as large as the extents say.
        unsafe {
            (self.sgemm)(
                ROW_MAJOR,
                PLAIN,
                b_form,
                rows,
                columns,
                depth,
                1.0,
                a.as_ptr(),
                depth,
                b.as_ptr(),
                b_stride,
                0.0,
                c.as_mut_ptr(),
                columns,
            );
        }
    }
}

/// # Safety
/// The function gives a C string that stays.
unsafe fn text(function: unsafe extern "C" fn() -> *const c_char) -> String {
    // SAFETY: the caller vouches for the string.
    unsafe { CStr::from_ptr(function()) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_follows_from_instructions() {
        let skylake = ["avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"];
        let of = |features: &[&str], is_amd| class(|feature| features.contains(&feature), is_amd);
        assert_eq!(of(&[], false), None);
        assert_eq!(of(&["avx2"], false), None);
        assert_eq!(of(&skylake[..2], false), Some("Haswell"));
        assert_eq!(of(&skylake[..2], true), Some("Zen"));
        // An early AVX-512 processor, without the instructions for bytes.
        assert_eq!(of(&["avx2", "fma", "avx512f"], false), Some("Haswell"));
        assert_eq!(of(&skylake, false), Some("SkylakeX"));
        let zen4 = [&skylake[..], &["avx512bf16"]].concat();
        assert_eq!((of(&zen4, false), of(&zen4, true)), (Some("Cooperlake"), Some("Zen")));
        assert_eq!(of(&[&zen4[..], &["avxvnni"]].concat(), true), Some("Cooperlake"));
    }
}
