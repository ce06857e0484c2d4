//! The pages about the IR as Markdown, made of the op tables: `docs/ir.md` and `docs/ops.md`.
//!
//! Nothing is said of an op here that its table doesn't say.

use crate::dtype::{Class, DType};
use crate::ops::documented::Kind;
use crate::ops::{BinaryOp, Classification, Domain, Movement, Op, Predicate, ReduceOp, ScanMode, UnaryOp};
use crate::passes::PIPELINE;
use crate::round::Rounding;
use crate::view::TensorMovement;
use std::fmt::Write;

/// A kernel that the page on the IR shows; a test parses and verifies it.
pub(crate) const EXAMPLE: &str = "\
kernel @matmul<BM, BN, BK>(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) {
  %a_1 = partition %a [BM, BK] : partition<m x k x bf16, [BM, BK]>
  %b_1 = partition %b [BK, BN] : partition<k x n x bf16, [BK, BN]>
  %c_1 = partition %c [BM, BN] : mut partition<m x n x f32, [BM, BN]>
  %i, %j = block_index %c_1 : index, index
  %0 = constant 0.0 : f32
  %acc = splat %0 : tile<BM x BN x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %acc_2 = for %p = %1 to %2 carry (%acc_1 = %acc) : tile<BM x BN x f32> {
    %3 = constant 0.0 : bf16
    %4 = load_masked %a_1[%i, %p] pad %3 : tile<BM x BK x bf16>
    %5 = constant 0.0 : bf16
    %6 = load_masked %b_1[%p, %j] pad %5 : tile<BK x BN x bf16>
    %7 = mma %4, %6, %acc_1 : tile<BM x BN x f32>
    yield %7
  }
  store_masked %c_1, %acc_2
}
";

const TEXT_FORM: &str = "\
# The tile IR

What a tile kernel means, independent of Rust syntax and of any target. `kernel::ir()` prints it, snapshot tests hold \
it, executables embed it; the text reads back to the same kernel. This page is made from the op tables by \
`cargo xtask docs`; what the values and the memory of a kernel mean is in the documentation of the crate `tile_ir`.

## Text

A kernel has compile-time parameters (`BM` is a `usize`, `T: float` an element format), arguments, and ops. A name in \
an extent is a parameter if it is declared as one, else a run-time size, which some argument's axis binds, or \
an argument of that name that is a number, `%stride: index size`. What the kernel relies on stands behind the arguments, as \
its author wrote it and as comparisons: `where \"!CAUSAL || m == n\": any(CAUSAL eq 0, m eq n)`. Ops stand \
one to a line: results, name, attributes and operands, `:` and the results' types. Unnamed values are numbered.

";

const TYPES: &str = "
Types are `f32` and its kin (scalars), `tile<BM x 64 x f32>`, `tensor<m x k x bf16>` and `mut tensor<…>` (arguments; one \
that not every instance has adds `if BIASED` with a `bool` parameter or `if K > 3` with a number, a tensor that isn't \
dense `strided [strides] offset n within [windows]`), and `partition<m x k x bf16, [BM, BK]>`. A parameter is a number (`BM`), a `bool` (`CAUSAL: bool`, \
which counts 0 or 1 in extents) or a format (`T: float`). Extents are sums of products of numbers, parameters, run-time \
sizes and `ceil_div(a, b)`, `floor_div(a, b)`, `rem(a, b)`, `min(a, b)`, `max(a, b)`, `ilog2(a)`, \
`next_power_of_two(a)`.

";

/// `docs/ir.md`.
pub fn ir_page() -> String {
    let mut page = format!("{TEXT_FORM}```text\n{EXAMPLE}```\n{TYPES}## Formats\n\n{}", formats());
    let _ =
        write!(page, "\n## Ops\n\nIn the signatures, `tile` is any tile and `data` a scalar or a tile.\n\n");
    page += &kinds(Op::KINDS);
    page += "\n### Movements of tiles\n\n";
    page += &kinds(Movement::KINDS);
    page += "\n### Movements of tensors\n\nWhat `view` does to a tensor's index space; no element moves.\n\n";
    page += &kinds(TensorMovement::KINDS);
    page += "\n## Passes\n\nIn this order, each printable on its own:";
    let names: Vec<String> = PIPELINE.iter().map(|pass| format!("`{}`", pass.name)).collect();
    let _ = write!(
        page,
        " {}.\n\nWhat a kernel writes for each, and what is refused, is in [ops.md](ops.md).\n",
        names.join(", ")
    );
    page
}

const OPS: &str = "\
# Ops

Every op works on every [target](#targets), with the same results: exactly, or within the bound that is given (\"2 ulp\": \
units in the last place), but for [what targets differ in](language.md#numbers). Functions that are made of several ops (`argmax`, `mean`, `stack`, `take`, `clamp`, `powi`, \
`arange`, `mma_scaled` and others) are in [language](language.md#operators-and-functions). What is refused is an error at `cargo check`, at the tokens that are wrong. Below, `x` is a \
tile `[4, 8]` of f32, `i` one of i32, `c` one of bool; `a` and `y` are tensors `[m, n]` of f32, `view` and `own` their \
partitions. This page is made by `cargo xtask docs` from the op tables, and from uses that the front end lowers; its \
answers are the errors.

Ops that compute element by element (*leaf ops*), down to comparisons, work on tiles and on scalars.

";

/// `docs/ops.md`.
pub fn ops_page() -> String {
    let mut page = OPS.to_owned();
    page += "## Of one operand\n\n| op | in a kernel | accepts | meaning |\n|---|---|---|---|\n";
    for op in UnaryOp::ALL {
        let spelling = op.operator().map_or_else(|| call(op.name(), 1), |operator| format!("`{operator}x`"));
        row(&mut page, op.name(), &spelling, op.domain(), op.doc());
    }
    page += "\n## Of two operands\n\n| op | in a kernel | accepts | meaning |\n|---|---|---|---|\n";
    for op in BinaryOp::ALL {
        let operator = op.operator().map(|operator| format!("`a {} b`", operator.replace('|', "\\|")));
        row(&mut page, op.name(), &operator.unwrap_or_else(|| call(op.name(), 2)), op.domain(), op.doc());
    }
    page += "\n## Comparisons\n\nThe result is `bool`.\n\n| op | in a kernel | accepts | meaning |\n|---|---|---|---|\n";
    for predicate in Predicate::ALL {
        let spelling = format!("`a {} b`", predicate.symbol());
        row(&mut page, predicate.name(), &spelling, predicate.domain(), predicate.doc());
    }
    for question in Classification::ALL {
        row(&mut page, question.name(), &call(question.name(), 1), question.domain(), question.doc());
    }
    page += "\n## Reductions\n\nThe axis stays with extent 1; several axes count as one.\n\n\
             | op | in a kernel | accepts | meaning | scans |\n|---|---|---|---|---|\n";
    for op in ReduceOp::ALL {
        let scan = op.scan_method().map_or(String::new(), |name| format!("`x.{name}(axis)`"));
        let (accepts, doc) = (op.domain().describe(), op.doc());
        let _ =
            writeln!(page, "| `{}` | `x.{}(axis)` | {accepts} | {doc} | {scan} |", op.name(), op.method());
    }
    let suffixes: Vec<String> = ScanMode::ALL.iter().map(|mode| format!("`{}`", mode.suffix())).collect();
    let suffixes: Vec<String> = suffixes.into_iter().filter(|suffix| suffix != "``").collect();
    let _ = write!(page, "\nA scan's name takes {} for its other ways.\n", suffixes.join(", "));
    page += "\n## Rounding\n\n`x.cast_with::<f16>(Rounding::Up)` rounds in a direction:";
    let names: Vec<String> =
        Rounding::ALL.iter().map(|rounding| format!("`{}`", rounding.variant())).collect();
    let _ = writeln!(page, " {}.", names.join(", "));
    page
}

fn row(page: &mut String, name: &str, spelling: &str, domain: Domain, doc: &str) {
    let _ = writeln!(page, "| `{name}` | {spelling} | {} | {doc} |", domain.describe());
}

fn call(name: &str, operands: usize) -> String {
    let operands = if operands == 1 { "x" } else { "a, b" };
    format!("`{name}({operands})`")
}

fn formats() -> String {
    let mut table = String::from("| format | in Rust | bits | range | |\n|---|---|---|---|---|\n");
    for dtype in DType::ALL {
        let range = match (dtype.class(), dtype.float_format()) {
            (_, Some(format)) if format.is_signed => format!("±{}", short(format.max())),
            (_, Some(format)) => {
                format!("{} … {}", short(2f64.powi(format.min_exponent())), short(format.max()))
            }
            (Class::Bool, _) => String::from("`false`, `true`"),
            _ => {
                let (least, most) = dtype.int_range();
                format!("{least} … {most}")
            }
        };
        let (name, rust, bits, doc) = (dtype.name(), dtype.rust_name(), dtype.bits(), dtype.doc());
        let _ = writeln!(table, "| `{name}` | `{rust}` | {bits} | {range} | {doc} |");
    }
    table
}

/// A number with few digits.
fn short(value: f64) -> String {
    if (1e-6..1e6).contains(&value) { format!("{value}") } else { format!("{value:.3e}") }
}

/// A list of kinds: the signature, which begins the documentation, then the meaning.
fn kinds(kinds: &[Kind]) -> String {
    let mut list = String::new();
    for kind in kinds.iter().filter(|kind| !GROUPS.contains(&kind.name)) {
        let _ = writeln!(list, "- **`{}`** {}", kind.name, rule(kind));
    }
    list
}

/// What is said of a kind of op, as Markdown without links.
pub fn rule(kind: &Kind) -> String {
    let lines: Vec<&str> =
        kind.doc.iter().map(|line| line.trim()).take_while(|line| *line != "```text").collect();
    let text = lines.join(" ").replace("[`Op::ReduceWith`]", "`reduce_with`");
    let text = text
        .replace("[`ReduceOp::scan_start`]", "the reduction's start")
        .replace("[`ReduceOp::partial`]", "f32 or the format, whichever is wider")
        .replace("See [`infer::mma_accumulators`] for the formats.", "")
        .replace(": see [`mod@crate::analysis`]", "")
        .replace("; see [`mod@crate::log`]", "")
        .replace(": see [`mod@crate::tile_order`]", "")
        .replace("[`AtomicKind::values`] values", "the operation's values");
    text.trim().to_owned()
}

/// Kinds that stand for tables of their own.
const GROUPS: &[&str] = &["unary", "binary", "compare", "classify", "movement"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{text, verify};

    #[test]
    fn the_example_is_a_kernel_in_the_printers_form() {
        let kernel = text::parse(EXAMPLE).unwrap();
        assert_eq!(text::print(&kernel), EXAMPLE);
        verify(kernel).unwrap();
    }

    #[test]
    fn every_op_is_on_a_page_and_no_link_is_left() {
        let (ir, ops) = (ir_page(), ops_page());
        for kind in Op::KINDS.iter().chain(Movement::KINDS).chain(TensorMovement::KINDS) {
            let listed = ir.contains(&format!("- **`{}`** ", kind.name)) || GROUPS.contains(&kind.name);
            assert!(listed, "{}", kind.name);
        }
        let leaves = UnaryOp::ALL.iter().map(|op| op.name()).chain(BinaryOp::ALL.iter().map(|op| op.name()));
        for name in leaves.chain(ReduceOp::ALL.iter().map(|op| op.name())) {
            assert!(ops.contains(&format!("| `{name}` | ")), "{name}");
        }
        assert!(!ir.contains("[`") && !ops.contains("[`"), "{ir}{ops}");
    }
}
