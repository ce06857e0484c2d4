//! What is computed of elements that don't depend on each other.

use crate::kernels::elements::{gelu_fused, transpose};
use crate::problem::{Problem, Result, launch_on, misfit};
use crate::tensors::{AnyTensor, Spec};
use tile::Stream;
use tile::ir::DType;
use tile::prelude::{bf16, f16};

/// `gelu(a + b)·c` of f16.
pub(crate) struct GeluFused {
    pub(crate) elements: usize,
}

impl Problem for GeluFused {
    fn tensors(&self) -> Vec<Spec> {
        let shape = [self.elements];
        let inputs = ["a", "b", "c"].map(|name| Spec::input(name, DType::F16, &shape));
        inputs.into_iter().chain([Spec::output("y", DType::F16, &shape)]).collect()
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [a, b, c, y] = tensors else { return Err(misfit()) };
        launch_on(stream, gelu_fused::<4096>(a.get::<f16>()?, b.get()?, c.get()?, y.get_mut()?))
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        let [a, b, c] = inputs else { return Vec::new() };
        a.iter().zip(b).zip(c).map(|((a, b), c)| gelu(a + b) * c).collect()
    }
}

/// `x·Φ(x)`, Φ by its integral with Simpson's rule: independent of any series for erf.
pub(super) fn gelu(x: f64) -> f64 {
    const STEPS: usize = 200;
    let density = |t: f64| (-t * t / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let step = x / STEPS as f64;
    let weight = |i: usize| match i {
        0 | STEPS => 1.0,
        _ if i % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let integral: f64 = (0..=STEPS).map(|i| weight(i) * density(i as f64 * step)).sum();
    x * (0.5 + integral * step / 3.0)
}

/// `xᵀ` of f32 or bf16.
pub(crate) struct Transpose {
    pub(crate) dtype: DType,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Problem for Transpose {
    fn tensors(&self) -> Vec<Spec> {
        let &Transpose { dtype, rows, columns } = self;
        vec![Spec::input("x", dtype, &[rows, columns]), Spec::output("y", dtype, &[columns, rows])]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [x, y] = tensors else { return Err(misfit()) };
        match self.dtype {
            DType::F32 => launch_on(stream, transpose::<f32, 64>(x.get()?, y.get_mut()?)),
            DType::BF16 => launch_on(stream, transpose::<bf16, 128>(x.get()?, y.get_mut()?)),
            dtype => Err(format!("no row has a transpose of {dtype}").into()),
        }
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        let &Transpose { rows, columns, .. } = self;
        (0..rows * columns).map(|at| inputs[0][at % rows * columns + at / rows]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::gelu;

    #[test]
    fn gelu_has_known_values() {
        // x·Φ(x) with Φ(1) = 0.841344746, Φ(−2) = 0.022750132, Φ(5) = 0.9999997133.
        for (x, expected) in [(0.0, 0.0), (1.0, 0.841_344_746), (-2.0, -0.045_500_264), (5.0, 4.999_998_567)]
        {
            assert!((gelu(x) - expected).abs() < 1e-8, "gelu({x}) = {}", gelu(x));
        }
    }
}
