//! Products whose factors are gathered by rows in a loop over the depth, on simulated threads: copied ahead where threads
//! copy, loaded a turn ahead elsewhere; rows that don't exist, turns that are cut, and what keeps rows from either.

use crate::copies::check_on;
use crate::support::{instance, sample};
use tile_ir::array::{Elements, wrap_int};
use tile_ir::gpu::{Scheduled, schedule};
use tile_ir::ops::Literal;
use tile_ir::{Array, DType, Op, TargetDesc, passes};
use tile_test_edit::Edit;

/// Extents: rows of the table, rows and columns of the result, and the depth.
type Extents = [usize; 4];

/// `c = x[ids]·b` in tiles of 64×64 with a depth of 32, or with the table as the right factor: `c = a·x[ids]ᵀ`.
struct Gathered {
    /// The format of the indices.
    index: DType,
    dtype: DType,
    sum: DType,
    /// What divides the depth and the columns.
    step: usize,
    pad: &'static str,
    /// What `%x` is, and a line that makes the table `%m` of it.
    tensor: &'static str,
    table: &'static str,
    /// A line in the loop that makes `%rows`, which rows are gathered, of `%which`, those that were named before it.
    rows: &'static str,
    /// Whether the gathered tile is the right factor, turned.
    is_right: bool,
}

const PLAIN: Gathered = Gathered {
    index: DType::I32,
    dtype: DType::BF16,
    sum: DType::F32,
    step: 8,
    pad: "0.0",
    tensor: "tensor<t x k x ELEM>",
    table: "  %m = view %x permute [0, 1] : tensor<t x k x ELEM>\n",
    rows: "    %rows = add %which, %nothing : tile<64 x 32 x INDEX>\n",
    is_right: false,
};

impl Gathered {
    fn source(&self) -> String {
        let Gathered { step, pad, tensor, table, rows, is_right, .. } = self;
        let none = if self.index.is_signed() { "-1" } else { "100" };
        let (zero, nothing) = if self.dtype.is_float() { ("0.0", "0.0") } else { ("0", "0") };
        let named = if *is_right { "j" } else { "i" };
        let (length, other, cut, place) = match is_right {
            false => ("m", "k x n", "[32, 64]", "[%p, %j]"),
            true => ("n", "m x k", "[64, 32]", "[%i, %p]"),
        };
        let loaded = cut.edit(", ", " x ").replace(['[', ']'], "");
        let product = match is_right {
            false => "    %next = mma %g, %o, %acc : tile<64 x 64 x SUM>\n",
            true => {
                "    %turned = permute %g [1, 0] : tile<32 x 64 x ELEM>\n    \
                 %next = mma %o, %turned, %acc : tile<64 x 64 x SUM>\n"
            }
        };
        let text = format!(
            "kernel @gathered(%x: {tensor}, %ids: tensor<{length} x INDEX>, %b: tensor<{other} x ELEM>, %s: index, %c: mut tensor<m x n x SUM>) where \"n\": rem(n, {step}) eq 0, \"k\": rem(k, {step}) eq 0 {{
{table}  %vi = partition %ids [64] : partition<{length} x INDEX, [64]>
  %vb = partition %b {cut} : partition<{other} x ELEM, {cut}>
  %vc = partition %c [64, 64] : mut partition<m x n x SUM, [64, 64]>
  %i, %j = block_index %vc : index, index
  %none = constant {none} : INDEX
  %pad = constant {pad} : ELEM
  %fill = constant {zero} : ELEM
  %zero = constant {nothing} : SUM
  %ids_of = load_masked %vi[%{named}] pad %none : tile<64 x INDEX>
  %column = reshape %ids_of : tile<64 x 1 x INDEX>
  %which = broadcast %column : tile<64 x 32 x INDEX>
  %naught = constant 0 : INDEX
  %nothing = splat %naught : tile<64 x 32 x INDEX>
  %width = constant 32 : index
  %sums = splat %zero : tile<64 x 64 x SUM>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 32) : index
  %sum = for %p = %0 to %end carry (%acc = %sums) : tile<64 x 64 x SUM> {{
    %start = mul %p, %width : index
    %from = cast %start : INDEX
    %starts = splat %from : tile<64 x 32 x INDEX>
    %counted = iota 1 : tile<64 x 32 x INDEX>
    %at = add %starts, %counted : tile<64 x 32 x INDEX>
{rows}    %g = gather_load %m[%rows, %at] pad %pad : tile<64 x 32 x ELEM>
    %o = load_masked %vb{place} pad %fill : tile<{loaded} x ELEM>
{product}    yield %next
  }}
  store_masked %vc, %sum
}}
"
        );
        let formats = [("ELEM", self.dtype), ("INDEX", self.index), ("SUM", self.sum)];
        formats.iter().fold(text, |text, (name, dtype)| text.edit(name, dtype.name()))
    }

    fn arguments(&self, [t, m, n, k]: Extents) -> [Array; 5] {
        let (length, other) = if self.is_right { (n, [m, k]) } else { (m, [k, n]) };
        // Some rows are nobody's, some are named twice.
        let named = |i: usize| if i % 7 == 3 { -1 } else { (i * 5 % (t + 2)) as i128 };
        let ids = (0..length).map(|i| wrap_int(self.index, named(i))).collect();
        let table: Vec<usize> = if self.tensor.contains("e x t") { vec![3, t, k] } else { vec![t, k] };
        [
            sample(self.dtype, &table, 1),
            Array::new(self.index, vec![length], Elements::Int(ids)),
            sample(self.dtype, &other, 2),
            Array::scalar(DType::Index, Literal::Int(1)),
            sample(self.sum, &[m, n], 3),
        ]
    }

    fn scheduled(&self, target: &str) -> Scheduled {
        let instance = passes::optimize(instance(&self.source(), &[]));
        schedule(instance, TargetDesc::named(target).unwrap(), None)
    }

    /// Whether rows are gathered before the loop, and then in every turn for the next one.
    fn is_carried(&self, target: &str) -> bool {
        let scheduled = self.scheduled(target);
        scheduled.walk().into_iter().filter(|&op| scheduled.op(op).op == Op::GatherLoad).count() == 2
    }

    /// So many factors are copied on targets whose threads copy; everywhere the product is right.
    fn check(&self, extents: Extents, copied: usize) {
        let (source, arguments) = (self.source(), self.arguments(extents));
        check_on("sm_80", &source, &arguments, copied, 0.0);
        check_on("gfx942", &source, &arguments, 0, 0.0);
    }
}

#[test]
fn rows_of_either_factor() {
    let right = Gathered { is_right: true, ..PLAIN };
    for extents in [[7, 72, 136, 200], [90, 136, 40, 64]] {
        PLAIN.check(extents, 2);
        right.check(extents, 2);
    }
    for (target, is_carried) in [("sm_80", false), ("gfx942", true), ("gfx1100", true), ("gfx1201", true)] {
        assert!(PLAIN.is_carried(target) == is_carried && right.is_carried(target) == is_carried, "{target}");
    }
}

/// A producer copies the right factor; warpgroups gather the left one's rows for the next turn.
#[test]
fn rows_beside_a_producer() {
    assert!(!PLAIN.scheduled("sm_90a").pipelines().is_empty() && PLAIN.is_carried("sm_90a"));
    for k in [0, 8, 32, 104, 296] {
        check_on("sm_90a", &PLAIN.source(), &PLAIN.arguments([11, 136, 72, k]), 0, 0.0);
    }
    let other = Gathered { pad: "-3.0", ..PLAIN };
    check_on("sm_90a", &other.source(), &other.arguments([11, 136, 72, 104]), 0, 0.0);
}

/// From none to more than there are stages, with a last one that is cut.
#[test]
fn any_number_of_turns() {
    for k in [0, 8, 32, 64, 96, 104, 128, 160, 296] {
        PLAIN.check([11, 64, 64, k], 2);
    }
}

#[test]
fn a_table_without_rows() {
    PLAIN.check([0, 64, 64, 104], 2);
    Gathered { pad: "-3.0", ..PLAIN }.check([0, 64, 64, 104], 1);
}

/// Rows are groups of 16, 8 and 4 bytes; single elements pass through registers.
#[test]
fn rows_as_aligned_as_they_are() {
    for (step, copied) in [(4, 2), (2, 2), (1, 0)] {
        let rows = Gathered { step, ..PLAIN };
        rows.check([9, 70, 12, 36 + step], copied);
        assert_eq!(rows.is_carried("gfx942"), step > 1);
    }
    let bytes = Gathered { dtype: DType::I8, sum: DType::I32, pad: "0", step: 16, is_right: true, ..PLAIN };
    bytes.check([9, 80, 48, 144], 2);
}

/// Of 8 bits, columns behind the 127th have other numbers.
#[test]
fn indices_of_every_width() {
    for index in [DType::I8, DType::U8, DType::I16, DType::I64, DType::U32] {
        Gathered { index, ..PLAIN }.check([9, 72, 40, 200], 2);
    }
}

/// Rows further down in every turn; every other row; rows that the turn looks up, which aren't known before it.
#[test]
fn rows_that_change_from_turn_to_turn() {
    let down = "    %number = cast %p : INDEX
    %numbers = splat %number : tile<64 x 32 x INDEX>
    %rows = add %which, %numbers : tile<64 x 32 x INDEX>
";
    Gathered { rows: down, ..PLAIN }.check([12, 72, 72, 168], 2);
    let chosen = "    %number = cast %p : INDEX
    %numbers = splat %number : tile<64 x 1 x INDEX>
    %later = lt %numbers, %column : tile<64 x 1 x bool>
    %one = select %later, %column, %numbers : tile<64 x 1 x INDEX>
    %rows = broadcast %one : tile<64 x 32 x INDEX>
";
    Gathered { rows: chosen, ..PLAIN }.check([12, 72, 72, 168], 2);
    let looked_up = "    %now = load_masked %vi[%p] pad %none : tile<64 x INDEX>
    %upright = reshape %now : tile<64 x 1 x INDEX>
    %rows = broadcast %upright : tile<64 x 32 x INDEX>
";
    let looked_up = Gathered { rows: looked_up, ..PLAIN };
    looked_up.check([12, 72, 72, 168], 1);
    assert!(!looked_up.is_carried("gfx942"));
}

/// Groups that don't exist are zeros where they are copied, so another pad passes through registers.
#[test]
fn other_pads_are_chosen() {
    Gathered { pad: "-3.0", ..PLAIN }.check([7, 72, 72, 104], 1);
}

/// A table with rows before the first, and one of several, whose number may be none.
#[test]
fn rows_of_views() {
    let bordered = "  %m = view %x pad [(2, 0), (0, 0)] : tensor<t + 2 x k x ELEM, strided [k, 1] offset -2*k within [[(2, t + 2)], []]>\n";
    let of_some = "  %m = view %x select 0 at %s : tensor<t x k x ELEM>\n";
    Gathered { table: bordered, ..PLAIN }.check([9, 72, 72, 104], 2);
    let selected = Gathered { tensor: "tensor<e x t x k x ELEM>", table: of_some, ..PLAIN };
    selected.check([9, 72, 72, 104], 2);
    let beyond = of_some.edit("%s", "%three");
    let beyond = format!("  %three = constant 3 : index\n{beyond}");
    let source = selected.source().edit(&of_some.edit("ELEM", "bf16"), &beyond.edit("ELEM", "bf16"));
    check_on("sm_80", &source, &selected.arguments([9, 72, 72, 104]), 2, 0.0);
    check_on("gfx942", &source, &selected.arguments([9, 72, 72, 104]), 0, 0.0);
}

/// A block that goes from tile to tile names other rows for each.
#[test]
fn rows_of_every_tile_of_a_block() {
    let source =
        PLAIN.source().edit("  %i, %j = block_index", "  tiles %vc row_major {\n  %i, %j = block_index");
    let source = source.edit("  store_masked %vc, %sum\n", "  store_masked %vc, %sum\n  }\n");
    for extents in [[12, 136, 200, 168], [5, 200, 72, 32]] {
        check_on("sm_80", &source, &PLAIN.arguments(extents), 2, 0.0);
        check_on("gfx942", &source, &PLAIN.arguments(extents), 0, 0.0);
    }
}

/// Where nothing is copied, NVIDIA's targets load rows a turn ahead, too.
#[test]
fn products_without_matrix_instructions() {
    let singles = Gathered { dtype: DType::F32, step: 4, ..PLAIN };
    assert!(singles.is_carried("sm_80"));
    singles.check([9, 72, 72, 104], 0);
    Gathered { is_right: true, pad: "2.0", ..singles }.check([9, 72, 72, 104], 0);
}
