//! Attention.

use crate::kernels::attention::{attention, causal, decode_join, decode_part};
use crate::problem::{Problem, Result, launch_on, misfit};
use crate::tensors::{AnyTensor, Spec};
use tile::Stream;
use tile::ir::DType;

/// Attention of all queries.
pub(crate) struct Attention {
    /// Heads of queries, of all sequences together.
    pub(crate) heads: usize,
    /// Heads of keys and values; each serves as many heads of queries.
    pub(crate) shared: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    /// Elements of a head.
    pub(crate) width: usize,
    /// Whether a query sees only the keys up to its own place.
    pub(crate) causal: bool,
}

/// log₂(e)/√width.
fn scale(width: usize) -> f32 {
    (std::f64::consts::LOG2_E / (width as f64).sqrt()) as f32
}

impl Problem for Attention {
    fn tensors(&self) -> Vec<Spec> {
        let &Attention { heads, shared, queries, keys, width, .. } = self;
        vec![
            Spec::input("q", DType::BF16, &[heads, queries, width]),
            Spec::input("k", DType::BF16, &[shared, keys, width]),
            Spec::input("v", DType::BF16, &[shared, keys, width]),
            Spec::output("o", DType::BF16, &[heads, queries, width]),
        ]
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [q, k, v, o] = tensors else { return Err(misfit()) };
        let (q, k, v, o) = (q.get()?, k.get()?, v.get()?, o.get_mut()?);
        let scale = scale(self.width);
        let launch = match (self.width, self.causal) {
            (128, false) => attention::<128, 128, 128>(q, k, v, o, scale),
            (128, true) => causal::<128, 128, 128>(q, k, v, o, scale),
            (64, true) => causal::<64, 128, 128>(q, k, v, o, scale),
            (width, _) => return Err(format!("no row has such attention with heads of {width}").into()),
        };
        launch_on(stream, launch)
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        let &Attention { heads, shared, queries, keys, width, causal } = self;
        let mut output = Vec::new();
        for head in 0..heads {
            let own = head / (heads / shared) * keys * width..(head / (heads / shared) + 1) * keys * width;
            let (k, v) = (&inputs[1][own.clone()], &inputs[2][own]);
            for query in 0..queries {
                let start = (head * queries + query) * width;
                let seen = if causal { query + 1 } else { keys } * width;
                output.extend(attend(&inputs[0][start..start + width], &k[..seen], &v[..seen]));
            }
        }
        output
    }

    /// Two products; what a causal query doesn't see isn't counted.
    fn operations(&self) -> Option<f64> {
        let pairs = self.heads as f64 * self.queries as f64 * self.keys as f64;
        let all = 4.0 * pairs * self.width as f64;
        Some(if self.causal { all / 2.0 } else { all })
    }
}

/// What one query gets of keys and values.
fn attend(query: &[f64], keys: &[f64], values: &[f64]) -> Vec<f64> {
    let width = query.len();
    let dot = |key: &[f64]| query.iter().zip(key).map(|(x, y)| x * y).sum::<f64>();
    let scores: Vec<f64> = keys.chunks(width).map(|key| dot(key) / (width as f64).sqrt()).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let mut output = vec![0.0; width];
    for (weight, value) in weights.iter().zip(values.chunks(width)) {
        output.iter_mut().zip(value).for_each(|(o, v)| *o += weight / sum * v);
    }
    output
}

/// Attention of one query per sequence: `group` heads of queries share a head of keys and values.
pub(crate) struct Decode {
    /// Heads of keys and values, of all sequences together: as many as blocks run at once, or more.
    pub(crate) heads: usize,
    pub(crate) group: usize,
    pub(crate) keys: usize,
}

const WIDTH: usize = 128;

impl Decode {
    /// The same as attention in which the heads of a group are so many queries.
    fn attention(&self) -> Attention {
        let &Decode { heads, group, keys } = self;
        Attention { heads, shared: heads, queries: group, keys, width: WIDTH, causal: false }
    }
}

impl Problem for Decode {
    fn tensors(&self) -> Vec<Spec> {
        self.attention().tensors()
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [q, k, v, o] = tensors else { return Err(misfit()) };
        let (q, k, v, o) = (q.get()?, k.get()?, v.get()?, o.get_mut()?);
        launch_on(stream, attention::<WIDTH, 64, 128>(q, k, v, o, scale(WIDTH)))
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        self.attention().expected(inputs)
    }
}

/// [`Decode`] of few heads of many keys and values, at most [`PARTS`] parts of [`SPAN`] of them.
pub(crate) struct DecodeInParts(pub(crate) Decode);

/// Keys of a part.
const SPAN: usize = 4096;
/// The most parts.
const PARTS: usize = 16;

impl Problem for DecodeInParts {
    fn tensors(&self) -> Vec<Spec> {
        let &Decode { heads, group, keys } = &self.0;
        let parts = keys.div_ceil(SPAN);
        let scratch = [("weighted", WIDTH), ("sums", 1), ("largest", 1)];
        let scratch = scratch.map(|(name, width)| Spec::scratch(name, &[heads, parts, group, width]));
        let mut tensors = self.0.tensors();
        let output = tensors.len() - 1;
        tensors.splice(output..output, scratch);
        tensors
    }

    fn launch(&self, tensors: &mut [AnyTensor], stream: Option<&Stream>) -> Result<()> {
        let [q, k, v, weighted, sums, largest, o] = tensors else { return Err(misfit()) };
        let scale = scale(WIDTH);
        let (q, k, v) = (q.get()?, k.get()?, v.get()?);
        let written = (weighted.get_mut()?, sums.get_mut()?, largest.get_mut()?);
        let parts = decode_part::<WIDTH, 64, 128, SPAN>(q, k, v, written.0, written.1, written.2, scale);
        launch_on(stream, parts)?;
        let (weighted, sums, largest) = (weighted.get()?, sums.get()?, largest.get()?);
        launch_on(stream, decode_join::<WIDTH, PARTS>(weighted, sums, largest, o.get_mut()?, scale))
    }

    fn expected(&self, inputs: &[Vec<f64>]) -> Vec<f64> {
        self.0.expected(inputs)
    }
}
