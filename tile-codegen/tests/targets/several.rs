//! Several computations in one kernel, each on tensors of its own: what a compilation costs whatever the kernel has is
//! paid once for all of them.

use crate::kernels::zero;
use std::fmt::Write;
use tile_ir::DType;

/// A tensor that is one tile: its format and extents.
pub(crate) type Whole = (DType, Vec<usize>);

/// Ops that make tiles of tiles.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The tensors whose tiles the lines call `%a`, `%b`, `%c`.
    pub(crate) inputs: Vec<Whole>,
    /// The ops; `%zero` is the index 0, `%pad` what the first input is padded with.
    pub(crate) lines: Vec<String>,
    /// The tensors that get the tiles `%r`, `%s`.
    pub(crate) outputs: Vec<Whole>,
}

impl Part {
    /// A part of one line, which makes `%r` of `%a`: an op and its operands.
    pub(crate) fn single(dtype: DType, from: &[usize], op: &str, to: &[usize]) -> Part {
        Part {
            inputs: vec![(dtype, from.to_vec())],
            lines: vec![format!("%r = {op} : {}", tile(dtype, to))],
            outputs: vec![(dtype, to.to_vec())],
        }
    }

    /// The number of its tensors, which are arguments in order: inputs, then outputs.
    pub(crate) fn tensors(&self) -> usize {
        self.inputs.len() + self.outputs.len()
    }
}

/// The type of a tile.
pub(crate) fn tile(dtype: DType, shape: &[usize]) -> String {
    format!("tile<{}{dtype}>", extents(shape))
}

fn extents(shape: &[usize]) -> String {
    shape.iter().map(|extent| format!("{extent} x ")).collect()
}

/// A kernel of one block that has these parts; their outputs have as many axes. The names of part `i` begin with `%ki_`.
pub(crate) fn kernel(parts: &[Part]) -> String {
    let tensors = parts.iter().enumerate().flat_map(|(i, part)| {
        let inputs = part.inputs.iter().map(|whole| ("", whole));
        let all = inputs.chain(part.outputs.iter().map(|whole| ("mut ", whole)));
        all.enumerate().map(move |(t, (mutable, (dtype, shape)))| {
            format!("%k{i}_t{t}: {mutable}tensor<{}{dtype}>", extents(shape))
        })
    });
    let mut text = format!("kernel @several({}) {{\n", tensors.collect::<Vec<_>>().join(", "));
    for (i, part) in parts.iter().enumerate() {
        for line in body(part).lines() {
            let _ = writeln!(text, "  {}", line.replace('%', &format!("%k{i}_")));
        }
    }
    text + "}\n"
}

/// A part's ops with loads and stores.
fn body(part: &Part) -> String {
    let mut text = String::from("%zero = constant 0 : index\n");
    if let Some((dtype, _)) = part.inputs.first() {
        let _ = writeln!(text, "%pad = constant {} : {dtype}", zero(dtype.name()));
    }
    for (i, ((dtype, shape), name)) in part.inputs.iter().zip(["a", "b", "c"]).enumerate() {
        let (ty, index) = (format!("{}{dtype}", extents(shape)), vec!["%zero"; shape.len()].join(", "));
        let _ = writeln!(text, "%v{i} = partition %t{i} {shape:?} : partition<{ty}, {shape:?}>");
        let _ = writeln!(text, "%p{i} = constant {} : {dtype}", zero(dtype.name()));
        let _ = writeln!(text, "%{name} = load_masked %v{i}[{index}] pad %p{i} : tile<{ty}>");
    }
    part.lines.iter().for_each(|line| text += &format!("{line}\n"));
    for (i, ((dtype, shape), name)) in (part.inputs.len()..).zip(part.outputs.iter().zip(["r", "s"])) {
        let ty = format!("{}{dtype}", extents(shape));
        let _ = writeln!(text, "%v{i} = partition %t{i} {shape:?} : mut partition<{ty}, {shape:?}>");
        let _ = writeln!(text, "store_masked %v{i}, %{name}");
    }
    text
}
