//! Matrix products.

use crate::kernels::matrix::{gemm, gemm_f8, gemm_nt, gemv, linear, skinny};
use crate::problem::{Problem, Result, launch_on, misfit};
use crate::tensors::{AnyTensor, Spec};
use tile::Stream;
use tile::ir::DType;

/// A kernel of products: how its factors lie, their format, and the tile of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `A·B` of bf16, in tiles of 128×256.
    Nn,
    /// The same in tiles of 64×128, where there would be fewer large ones than multiprocessors.
    NnSmall,
    /// `A·Bᵀ` of bf16, in tiles of 128×256: rows of both follow the sum.
    Nt,
    /// `scale·A·Bᵀ` of f8, in tiles of 128×256.
    NtF8,
    /// The same with fast accumulation.
    NtF8Fast,
}

/// What products of f8 are multiplied with.
const F8_SCALE: f32 = 1.0 / 64.0;

/// `m × k` times `k × n`.
pub(crate) struct Gemm {
    pub(crate) kind: Kind,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Problem for Gemm {
    fn tensors(&self) -> Vec<Spec> {
        let &Gemm { kind, m, n, k } = self;
        let (dtype, b) = match kind {
            Kind::Nn | Kind::NnSmall => (DType::BF16, [k, n]),
            Kind::Nt => (DType::BF16, [n, k]),
            Kind::NtF8 | Kind::NtF8Fast => (DType::F8E4M3FN, [n, k]),
        };
        vec![
            Spec::input("a", dtype, &[m, k]),
            Spec::input("b", dtype, &b),
            Spec::output("c", DType::BF16, &[m, n]),
        ]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [a, b, c] = tensors else { return Err(misfit()) };
        let launch = match self.kind {
            Kind::Nn => gemm::<128, 256, 64>(a.get()?, b.get()?, c.get_mut()?),
            Kind::NnSmall => gemm::<64, 128, 64>(a.get()?, b.get()?, c.get_mut()?),
            Kind::Nt => gemm_nt::<128, 256, 64>(a.get()?, b.get()?, c.get_mut()?),
            Kind::NtF8 => gemm_f8::<128, 256, 128, false>(a.get()?, b.get()?, c.get_mut()?, F8_SCALE),
            Kind::NtF8Fast => gemm_f8::<128, 256, 128, true>(a.get()?, b.get()?, c.get_mut()?, F8_SCALE),
        };
        launch_on(stream, launch)
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        let &Gemm { kind, m, n, k } = self;
        let (a, b) = (&inputs[0], &inputs[1]);
        let row_of_a = |i: usize, p: usize| a[i * k + p];
        match kind {
            Kind::Nn | Kind::NnSmall => product([m, n, k], row_of_a, |p, j| b[p * n + j]),
            Kind::Nt => product([m, n, k], row_of_a, |p, j| b[j * k + p]),
            Kind::NtF8 | Kind::NtF8Fast => {
                let sums = product([m, n, k], row_of_a, |p, j| b[j * k + p]);
                sums.into_iter().map(|sum| sum * f64::from(F8_SCALE)).collect()
            }
        }
    }

    fn operations(&self) -> Option<f64> {
        Some(operations(self.m, self.n, self.k))
    }
}

/// `gelu(A·B + bias) + residual`.
pub(crate) struct Linear {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Problem for Linear {
    fn tensors(&self) -> Vec<Spec> {
        let &Linear { m, n, k } = self;
        let input = |name, shape: &[usize]| Spec::input(name, DType::BF16, shape);
        vec![
            input("a", &[m, k]),
            input("b", &[k, n]),
            input("bias", &[1, n]),
            input("residual", &[m, n]),
            Spec::output("c", DType::BF16, &[m, n]),
        ]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [a, b, bias, residual, c] = tensors else { return Err(misfit()) };
        let (bias, residual) = (bias.get()?, residual.get()?);
        launch_on(stream, linear::<128, 256, 64>(a.get()?, b.get()?, bias, residual, c.get_mut()?))
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        let &Linear { m, n, k } = self;
        let [a, b, bias, residual] = inputs else { return Vec::new() };
        let sums = product([m, n, k], |i, p| a[i * k + p], |p, j| b[p * n + j]);
        let element = |(at, sum): (usize, f64)| super::elements::gelu(sum + bias[at % n]) + residual[at];
        sums.into_iter().enumerate().map(element).collect()
    }

    fn operations(&self) -> Option<f64> {
        Some(operations(self.m, self.n, self.k))
    }
}

/// `W·x` of a matrix with `n` rows.
pub(crate) struct Gemv {
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Problem for Gemv {
    fn tensors(&self) -> Vec<Spec> {
        let &Gemv { n, k } = self;
        vec![
            Spec::input("x", DType::BF16, &[1, k]),
            Spec::input("w", DType::BF16, &[n, k]),
            Spec::output("y", DType::BF16, &[n, 1]),
        ]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [x, w, y] = tensors else { return Err(misfit()) };
        launch_on(stream, gemv::<64, 256>(x.get()?, w.get()?, y.get_mut()?))
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        let &Gemv { n, k } = self;
        product([n, 1, k], |i, p| inputs[1][i * k + p], |p, _| inputs[0][p])
    }
}

/// `X·Wᵀ` of few rows.
pub(crate) struct Skinny {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Problem for Skinny {
    fn tensors(&self) -> Vec<Spec> {
        let &Skinny { m, n, k } = self;
        vec![
            Spec::input("x", DType::BF16, &[m, k]),
            Spec::input("w", DType::BF16, &[n, k]),
            Spec::output("c", DType::BF16, &[m, n]),
        ]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [x, w, c] = tensors else { return Err(misfit()) };
        launch_on(stream, skinny::<16, 64, 128>(x.get()?, w.get()?, c.get_mut()?))
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        let &Skinny { m, n, k } = self;
        product([m, n, k], |i, p| inputs[0][i * k + p], |p, j| inputs[1][j * k + p])
    }
}

/// A multiplication and an addition for each element of the sums.
fn operations(m: usize, n: usize, k: usize) -> f64 {
    2.0 * m as f64 * n as f64 * k as f64
}

fn product(
    [m, n, k]: [usize; 3],
    a: impl Fn(usize, usize) -> f64,
    b: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let element = |at: usize| (0..k).map(|p| a(at / n, p) * b(p, at % n)).sum();
    (0..m * n).map(element).collect()
}
