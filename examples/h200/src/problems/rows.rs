//! What is computed of rows.

use crate::kernels::rows::{rmsnorm, softmax, softmax_scaled, softmax_statistics, sum_all, sum_rows};
use crate::problem::{Problem, Result, launch_on, misfit};
use crate::tensors::{AnyTensor, Spec};
use tile::Stream;
use tile::ir::DType;

/// Elements of the rows that fit into a block.
const WIDTH: usize = 8192;

/// Those of rows that a cluster's blocks hold together.
const LONG: usize = 131_072;

/// Softmax of rows that are tiles.
pub(crate) struct Softmax {
    pub(crate) rows: usize,
    /// 8192 or 131072.
    pub(crate) width: usize,
}

impl Problem for Softmax {
    fn tensors(&self) -> Vec<Spec> {
        let shape = [self.rows, self.width];
        vec![Spec::input("x", DType::BF16, &shape), Spec::output("y", DType::BF16, &shape)]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [x, y] = tensors else { return Err(misfit()) };
        match self.width {
            LONG => launch_on(stream, softmax::<LONG>(x.get()?, y.get_mut()?)),
            _ => launch_on(stream, softmax::<WIDTH>(x.get()?, y.get_mut()?)),
        }
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        inputs[0].chunks(self.width).flat_map(softmax_of).collect()
    }
}

/// Softmax of rows in pieces, which are read twice.
pub(crate) struct SoftmaxInPieces {
    pub(crate) rows: usize,
    /// A multiple of 8192.
    pub(crate) width: usize,
}

impl Problem for SoftmaxInPieces {
    fn tensors(&self) -> Vec<Spec> {
        let &SoftmaxInPieces { rows, width } = self;
        vec![
            Spec::input("x", DType::BF16, &[rows, width]),
            Spec::scratch("largest", &[rows, 1]),
            Spec::scratch("sums", &[rows, 1]),
            Spec::output("y", DType::BF16, &[rows, width]),
        ]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [x, largest, sums, y] = tensors else { return Err(misfit()) };
        let x = x.get()?;
        launch_on(stream, softmax_statistics::<1024>(x, largest.get_mut()?, sums.get_mut()?))?;
        launch_on(stream, softmax_scaled::<4096>(x, largest.get()?, sums.get()?, y.get_mut()?))
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        inputs[0].chunks(self.width).flat_map(softmax_of).collect()
    }
}

fn softmax_of(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let scaled: Vec<f64> = row.iter().map(|x| (x - largest).exp()).collect();
    let sum: f64 = scaled.iter().sum();
    scaled.into_iter().map(|x| x / sum).collect()
}

/// Root-mean-square normalisation of rows of 8192 elements.
pub(crate) struct RmsNorm {
    pub(crate) rows: usize,
}

impl Problem for RmsNorm {
    fn tensors(&self) -> Vec<Spec> {
        let shape = [self.rows, WIDTH];
        vec![
            Spec::input("x", DType::BF16, &shape),
            Spec::input("weight", DType::BF16, &[1, WIDTH]),
            Spec::output("y", DType::BF16, &shape),
        ]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [x, weight, y] = tensors else { return Err(misfit()) };
        launch_on(stream, rmsnorm::<WIDTH>(x.get()?, weight.get()?, y.get_mut()?))
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        let normalised = |row: &[f64]| {
            let square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
            let elements = row.iter().zip(&inputs[1]);
            elements.map(|(x, weight)| x / (square + 1e-6).sqrt() * weight).collect::<Vec<f64>>()
        };
        inputs[0].chunks(WIDTH).flat_map(normalised).collect()
    }
}

/// The sum of `rows · width` elements.
pub(crate) struct Sum {
    pub(crate) rows: usize,
    pub(crate) width: usize,
}

impl Problem for Sum {
    fn tensors(&self) -> Vec<Spec> {
        vec![
            Spec::input("x", DType::F32, &[self.rows, self.width]),
            Spec::scratch("sums", &[self.rows]),
            Spec::output("y", DType::F32, &[1]),
        ]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [x, sums, y] = tensors else { return Err(misfit()) };
        launch_on(stream, sum_rows::<4096>(x.get()?, sums.get_mut()?))?;
        launch_on(stream, sum_all::<4096>(sums.get()?, y.get_mut()?))
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        vec![inputs[0].iter().sum()]
    }
}
