//! A GPU's ceilings, by kernels that the feature `jit` compiles for it.

use super::{Ceiling, TRIES};
use crate::bench::Bench;
use crate::device::Device;
use crate::element::{Element, Float};
use crate::error::Result;
use crate::float8::{f8e4m3fn, f8e5m2};
use crate::launch::{KernelDef, Launch};
use crate::profile;
use crate::tensor::Tensor;
use half::{bf16, f16};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tile_ir::DType;

/// Elements of f32 that are copied: 256 MiB, more than caches hold.
const COPIED: usize = 64 << 20;

/// Rows and columns of the matrices that are multiplied.
const SIDE: usize = 4096;

/// Sums of multiply-adds: as many as the largest GPUs have registers for at once, several times over.
const CHAINS: usize = 4 << 20;

/// Multiply-adds of each.
const TURNS: usize = 4096;

static COPY: KernelDef = KernelDef::new(
    "copy",
    "\
kernel @copy<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [B] : partition<n x f32, [B]>
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %zero : tile<B x f32>
  store_masked %vy, %t
}
",
    &[],
);

static MULTIPLY_ADDS: KernelDef = KernelDef::new(
    "multiply_adds",
    "\
kernel @multiply_adds<T: float, B, TURNS>(%x: tensor<n x T>, %y: mut tensor<n x T>) {
  %vx = partition %x [B] : partition<n x T, [B]>
  %vy = partition %y [B] : mut partition<n x T, [B]>
  %i = block_index %vy : index
  %zero = constant 0.0 : T
  %t = load_masked %vx[%i] pad %zero : tile<B x T>
  %first = constant 0 : index
  %end = extent TURNS : index
  %sum = for %turn = %first to %end carry (%before = %t) : tile<B x T> {
    %after = mul_add %before, %t, %t : tile<B x T>
    yield %after
  }
  store_masked %vy, %sum
}
",
    &[],
);

/// The rates of all tries.
pub(super) fn measure(device: &Device, ceiling: Ceiling) -> Option<Vec<f64>> {
    let rates = match ceiling {
        Ceiling::Copy => copy(device, COPIED),
        Ceiling::MultiplyAdd(DType::F32) => multiply_adds::<f32>(device, CHAINS),
        Ceiling::MultiplyAdd(DType::F64) => multiply_adds::<f64>(device, CHAINS),
        Ceiling::Product(DType::F16) => product::<f16>(device, SIDE),
        Ceiling::Product(DType::BF16) => product::<bf16>(device, SIDE),
        Ceiling::Product(DType::F8E4M3FN) => product::<f8e4m3fn>(device, SIDE),
        Ceiling::Product(DType::F8E5M2) => product::<f8e5m2>(device, SIDE),
        Ceiling::MultiplyAdd(_) | Ceiling::Product(_) => return None,
    };
    rates.ok()
}

/// So many a second, of each of several runs, which are in no profile: a profile's table asks for it.
fn rates(device: &Device, count: usize, run: impl FnMut() -> Result<Duration>) -> Result<Vec<f64>> {
    let measured = Bench::new(device).warm_up(0).runs(TRIES).warm_caches();
    let measured = profile::aside(|| measured.measure(run))?;
    Ok(measured.times().iter().map(|time| count as f64 / time.as_secs_f64()).collect())
}

fn copy(device: &Device, count: usize) -> Result<Vec<f64>> {
    let (x, mut y) = (Tensor::<f32>::zeros(device, [count])?, Tensor::<f32>::zeros(device, [count])?);
    rates(device, 2 * count * size_of::<f32>(), || {
        let launch = Launch::new(&COPY).constant("B", 4096).tensor("x", &x).tensor_mut("y", &mut y);
        launch.launch_timed()
    })
}

fn multiply_adds<T: Element>(device: &Device, count: usize) -> Result<Vec<f64>> {
    let (x, mut y) = (Tensor::<T>::zeros(device, [count])?, Tensor::<T>::zeros(device, [count])?);
    rates(device, 2 * count * TURNS, || {
        let launch =
            Launch::new(&MULTIPLY_ADDS).element::<T>("T").constant("B", 2048).constant("TURNS", TURNS);
        launch.tensor("x", &x).tensor_mut("y", &mut y).launch_timed()
    })
}

/// The square of a matrix of random numbers: with zeros a GPU takes less power and has a higher clock.
fn product<T: Float>(device: &Device, side: usize) -> Result<Vec<f64>> {
    let a = Tensor::<T>::random(device, [side, side], 0)?;
    let mut c = Tensor::<f32>::zeros(device, [side, side])?;
    let kernel = product_of(T::DTYPE);
    rates(device, 2 * side * side * side, || {
        Launch::new(kernel).tensor("a", &a).tensor("b", &a).tensor_mut("c", &mut c).launch_timed()
    })
}

/// The kernel for factors of a format, made once.
fn product_of(factor: DType) -> &'static KernelDef {
    static MADE: Mutex<Vec<(DType, &'static KernelDef)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, kernel)) = made.iter().find(|(of, _)| *of == factor) {
        return kernel;
    }
    let kernel = &*Box::leak(Box::new(KernelDef::new("product", product_text(factor).leak(), &[])));
    made.push((factor, kernel));
    kernel
}

fn product_text(factor: DType) -> String {
    format!(
        "\
kernel @product(%a: tensor<m x k x {factor}>, %b: tensor<k x n x {factor}>, %c: mut tensor<m x n x f32>) {{
  %va = partition %a [128, 64] : partition<m x k x {factor}, [128, 64]>
  %vb = partition %b [64, 128] : partition<k x n x {factor}, [64, 128]>
  %vc = partition %c [128, 128] : mut partition<m x n x f32, [128, 128]>
  %i, %j = block_index %vc : index, index
  %none = constant 0.0 : {factor}
  %zero = constant 0.0 : f32
  %start = splat %zero : tile<128 x 128 x f32>
  %first = constant 0 : index
  %end = extent ceil_div(k, 64) : index
  %sum = for %p = %first to %end carry (%before = %start) : tile<128 x 128 x f32> {{
    %ta = load_masked %va[%i, %p] pad %none : tile<128 x 64 x {factor}>
    %tb = load_masked %vb[%p, %j] pad %none : tile<64 x 128 x {factor}>
    %after = mma %ta, %tb, %before : tile<128 x 128 x f32>
    yield %after
  }}
  store_masked %vc, %sum
}}
"
    )
}

#[cfg(test)]
#[cfg_attr(not(feature = "jit"), allow(unused_imports, reason = "nothing is launched"))]
mod tests {
    use super::*;
    use crate::profile::profile;

    /// However often a ceiling is measured, its kernel is compiled once.
    #[test]
    fn there_is_one_kernel_for_each_format() {
        assert!(std::ptr::eq(product_of(DType::F16), product_of(DType::F16)));
        assert!(!std::ptr::eq(product_of(DType::F16), product_of(DType::BF16)));
    }

    /// A table that is shown within another profile measures ceilings.
    #[test]
    #[cfg(feature = "jit")]
    fn a_measurement_is_in_no_profile() {
        let (rates, noted) = profile(|| copy(&Device::cpu(), 10_000));
        assert_eq!((rates.unwrap().len(), noted.launches().len()), (TRIES, 0));
    }

    /// The kernels are right wherever they run.
    #[test]
    #[cfg(feature = "jit")]
    fn the_kernels_run_on_the_cpu() {
        let device = Device::cpu();
        let is_measured = |rates: Result<Vec<f64>>| {
            let rates = rates.unwrap();
            rates.len() == TRIES && rates.iter().all(|&rate| rate > 0.0)
        };
        assert!(is_measured(copy(&device, 10_000)));
        assert!(is_measured(multiply_adds::<f32>(&device, 4096)));
        assert!(is_measured(multiply_adds::<f64>(&device, 4096)));
        assert!(is_measured(product::<bf16>(&device, 200)));
        assert!(is_measured(product::<f8e5m2>(&device, 128)));
    }
}
