//! Products whose right factor is one matrix of a stack, selected by a number that a block finds out, on simulated threads:
//! what a producer copies by a tensor map of the stack, and with what numbers; and what it can't.

use crate::copies::check_on;
use crate::pipelines::{check, matmul};
use crate::support::{instance, sample};
use tile_ir::array::Elements;
use tile_ir::gpu::{Scheduled, schedule};
use tile_ir::ops::Literal;
use tile_ir::{Array, DType, TargetDesc, passes};
use tile_test_edit::Edit;

/// `y = x·w[which]` in tiles of 64×64 and a depth of 64, where each 64 rows have a matrix.
pub(crate) struct Stacked {
    /// What `%w` is.
    stack: &'static str,
    /// Lines that make the matrix `%m` of it at `%at`, or at numbers of their own.
    select: &'static str,
    /// Lines that make the number `%at`.
    number: &'static str,
    /// Lines in the loop that make the factor `%l` of the rows.
    left: &'static str,
}

/// The number of a block's matrix, as it was loaded.
const LOADED: &str = "  %e = load_masked %ve[%i] pad %none : tile<1 x i32>
  %number = item %e : i32
  %at = cast %number : index
";

pub(crate) const PLAIN: Stacked = Stacked {
    stack: "e x k x n",
    select: "  %m = view %w select 0 at %at : tensor<k x n x bf16>\n",
    number: LOADED,
    left: "    %l = load_masked %vx[%i, %p] pad %pad : tile<64 x 64 x bf16>\n",
};

/// Rows that are named one by one, some of which don't exist.
const GATHERED: &str = "    %start = mul %p, %width : index
    %from = cast %start : i32
    %starts = splat %from : tile<64 x 64 x i32>
    %counted = iota 1 : tile<64 x 64 x i32>
    %columns = add %starts, %counted : tile<64 x 64 x i32>
    %l = gather_load %x[%rows, %columns] pad %pad : tile<64 x 64 x bf16>
";

impl Stacked {
    pub(crate) fn source(&self) -> String {
        let Stacked { stack, select, number, left } = self;
        format!(
            "kernel @stacked(%x: tensor<m x k x bf16>, %w: tensor<{stack} x bf16>, %which: tensor<b x i32>, %row: tensor<m x i32>, %s: index, %y: mut tensor<m x n x f32>) where \"n\": rem(n, 8) eq 0, \"k\": rem(k, 8) eq 0 {{
  %vx = partition %x [64, 64] : partition<m x k x bf16, [64, 64]>
  %ve = partition %which [1] : partition<b x i32, [1]>
  %vr = partition %row [64] : partition<m x i32, [64]>
  %vy = partition %y [64, 64] : mut partition<m x n x f32, [64, 64]>
  %i, %j = block_index %vy : index, index
  %none = constant -1 : i32
  %pad = constant 0.0 : bf16
  %zero = constant 0.0 : f32
  %width = constant 64 : index
  %row_of = load_masked %vr[%i] pad %none : tile<64 x i32>
  %column = reshape %row_of : tile<64 x 1 x i32>
  %rows = broadcast %column : tile<64 x 64 x i32>
{number}{select}  %vm = partition %m [64, 64] : partition<k x n x bf16, STRIDED[64, 64]>
  %sums = splat %zero : tile<64 x 64 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %sums) : tile<64 x 64 x f32> {{
{left}    %r = load_masked %vm[%p, %j] pad %pad : tile<64 x 64 x bf16>
    %next = mma %l, %r, %acc : tile<64 x 64 x f32>
    yield %next
  }}
  store_masked %vy, %sum
}}
"
        )
        .edit("STRIDED", &self.layout())
    }

    /// The layout of `%m`, as its view's type says it.
    fn layout(&self) -> String {
        let last = self.select.lines().last().unwrap();
        let layout = last.split_once("bf16, ").map(|(_, layout)| layout.trim_end_matches('>'));
        layout.map(|layout| format!("{layout}, ")).unwrap_or_default()
    }

    /// Of six blocks of rows and two of columns, both with edges. `shape` is the stack's.
    pub(crate) fn arguments(&self, shape: &[usize], which: &[i128]) -> [Array; 6] {
        let [m, n, k] = [330, 72, 104];
        let named = |i: usize| if i % 7 == 3 { -1 } else { (i * 5 % (m + 2)) as i128 };
        let integers = |values: Vec<i128>| Array::new(DType::I32, vec![values.len()], Elements::Int(values));
        [
            sample(DType::BF16, &[m, k], 1),
            sample(DType::BF16, shape, 2),
            integers(which.to_vec()),
            integers((0..m).map(named).collect()),
            Array::scalar(DType::Index, Literal::Int(1)),
            sample(DType::F32, &[m, n], 3),
        ]
    }

    fn check(&self, shape: &[usize], which: &[i128]) {
        check(&self.source(), &[], &self.arguments(shape, which), 256, 0.0);
    }

    fn scheduled(&self) -> Scheduled {
        let instance = passes::optimize(instance(&self.source(), &[]));
        schedule(instance, TargetDesc::named("sm_90a").unwrap(), None)
    }

    /// No producer copies anything, and the product is right.
    fn check_without_producer(&self, shape: &[usize], which: &[i128]) {
        assert!(self.scheduled().pipelines().is_empty());
        check_on("sm_90a", &self.source(), &self.arguments(shape, which), self.copied(), 0.0);
    }

    /// How many factors threads copy themselves.
    fn copied(&self) -> usize {
        self.scheduled().copies().loops().map(|(_, copied)| copied.copies.len()).sum()
    }
}

/// The shape of a stack of four matrices.
pub(crate) const FOUR: [usize; 3] = [4, 104, 72];

/// Not in order, one of them twice, two that aren't there, and none for the last rows.
pub(crate) const WHICH: [i128; 5] = [2, 0, 2, -1, 4];

#[test]
fn every_block_has_a_matrix_of_its_own() {
    PLAIN.check(&FOUR, &WHICH);
    PLAIN.check(&FOUR, &[3, 2, 1, 0, i128::from(i32::MAX), i128::from(i32::MIN)]);
    PLAIN.check(&[0, 104, 72], &WHICH);
    PLAIN.check(&FOUR, &[]);
}

#[test]
fn rows_are_gathered_beside_it() {
    let gathered = Stacked { left: GATHERED, ..PLAIN };
    gathered.check(&FOUR, &WHICH);
    gathered.check(&FOUR, &[1, 3, 3, 0, 2, 1]);
}

/// The map is of the stack, and consumers hear nothing of the number: its tile needs no exchange.
#[test]
fn only_the_producer_knows_the_number() {
    let scheduled = PLAIN.scheduled();
    let stack = scheduled.tensor_maps().iter().find(|map| map.argument == 1).unwrap().to_string();
    assert_eq!(
        stack,
        "argument 1 : bf16 offset 0 [n stride 1 tile 64, k stride n tile 64, e stride k*n tile 1] swizzle 128"
    );
    let exchanges = |op| !scheduled.buffers(op).is_empty();
    assert!(!scheduled.walk().into_iter().any(exchanges));
    assert!(scheduled.shares_grid(), "blocks go on to tiles of other matrices");
}

/// Numbers that the kernel is given, that are the block's, or that don't fit 32 bits.
#[test]
fn numbers_that_nobody_loads() {
    for number in [
        "  %at = constant 3 : index\n",
        "  %one = constant 1 : index\n  %at = add %s, %one : index\n",
        "  %one = constant 1 : index\n  %at = sub %i, %one : index\n",
        "  %far = constant 4294967298 : index\n  %at = add %i, %far : index\n",
        "  %far = constant 2147483646 : index\n  %at = add %i, %far : index\n",
    ] {
        Stacked { number, ..PLAIN }.check(&FOUR, &WHICH);
    }
}

/// Integers computed of elements, as numbers and as tiles that have one; of a table that is one of several itself.
#[test]
fn numbers_that_are_computed_of_elements() {
    let of_number = "  %e = load_masked %ve[%i] pad %none : tile<1 x i32>
  %number = item %e : i32
  %three = constant 3 : i32
  %some = mul %number, %three : i32
  %four = constant 4 : i32
  %rest = rem %some, %four : i32
  %least = constant 0 : i32
  %kept = max %rest, %least : i32
  %at = cast %kept : index
";
    let of_tiles = "  %e = load_masked %ve[%i] pad %none : tile<1 x i32>
  %d = load_masked %ve[%j] pad %none : tile<1 x i32>
  %turned = reshape %e : tile<1 x 1 x i32>
  %other = reshape %d : tile<1 x 1 x i32>
  %both = add %turned, %other : tile<1 x 1 x i32>
  %nothing = splat %none : tile<1 x 1 x i32>
  %less = add %both, %nothing : tile<1 x 1 x i32>
  %permuted = permute %less [1, 0] : tile<1 x 1 x i32>
  %wide = cast %permuted : tile<1 x 1 x i64>
  %number = item %wide : i64
  %at = cast %number : index
";
    let of_table = "  %tables = view %which unflatten 0 [2, b / 2] : tensor<2 x b / 2 x i32>
  %table = view %tables select 0 at %s : tensor<b / 2 x i32>
  %vt = partition %table [1] : partition<b / 2 x i32, [1]>
  %e = load_masked %vt[%i] pad %none : tile<1 x i32>
  %number = item %e : i32
  %at = cast %number : index
";
    Stacked { number: of_number, ..PLAIN }.check(&FOUR, &WHICH);
    Stacked { number: of_tiles, ..PLAIN }.check(&FOUR, &WHICH);
    let of_table = of_table.edit("b / 2", "floor_div(b, 2)");
    Stacked { number: of_table.leak(), ..PLAIN }.check(&FOUR, &[9, 9, 9, 9, 9, 9, 3, -2, 0, 1, 4, 2]);
}

/// Matrices that lie otherwise in their stack, and stacks of stacks.
#[test]
fn matrices_of_any_axes() {
    let among_rows = Stacked {
        stack: "k x e x n",
        select: "  %m = view %w select 1 at %at : tensor<k x n x bf16, strided [e*n, 1]>\n",
        ..PLAIN
    };
    among_rows.check(&[104, 4, 72], &WHICH);
    let turned = Stacked {
        stack: "e x n x k",
        select: "  %t = view %w select 0 at %at : tensor<n x k x bf16>
  %m = view %t permute [1, 0] : tensor<k x n x bf16, strided [1, k]>
",
        ..PLAIN
    };
    turned.check(&[4, 72, 104], &WHICH);
    let of_two = Stacked {
        stack: "e x f x k x n",
        select: "  %t = view %w select 1 at %s : tensor<e x k x n x bf16, strided [f*k*n, n, 1]>
  %m = view %t select 0 at %at : tensor<k x n x bf16>
",
        ..PLAIN
    };
    of_two.check(&[4, 3, 104, 72], &WHICH);
    let of_three = Stacked {
        stack: "f x e x g x k x n",
        select: "  %t = view %w select 2 at %s : tensor<f x e x k x n x bf16, strided [e*g*k*n, g*k*n, n, 1]>
  %u = view %t select 1 at %at : tensor<f x k x n x bf16, strided [e*g*k*n, n, 1]>
  %m = view %u select 0 at %s : tensor<k x n x bf16>
",
        ..PLAIN
    };
    of_three.check(&[2, 4, 2, 104, 72], &WHICH);
    let shrunk = Stacked {
        stack: "e x n x 2*k",
        select: "  %t = view %w select 0 at %at : tensor<n x 2*k x bf16>
  %u = view %t shrink [(0, n), (k, 2*k)] : tensor<n x k x bf16, strided [2*k, 1] offset k>
  %m = view %u permute [1, 0] : tensor<k x n x bf16, strided [1, 2*k] offset k>
",
        ..PLAIN
    };
    shrunk.check(&[4, 72, 208], &WHICH);
}

/// A page for each turn, looked up in it, and a number of turns that is looked up before.
#[test]
fn matrices_that_turns_look_up() {
    let source = PLAIN
        .source()
        .edit("  %m = view %w select 0 at %at : tensor<k x n x bf16>\n", "")
        .edit(
            "  %vm = partition %m [64, 64] : partition<k x n x bf16, [64, 64]>\n",
            "  %vm = partition %w [1, 64, 64] : partition<e x k x n x bf16, [1, 64, 64]>\n  \
             %turns = max %number, %least : i32\n  %end = cast %turns : index\n",
        )
        .edit("  %end = extent ceil_div(k, 64) : index\n", "")
        .edit("  %pad = constant", "  %least = constant 0 : i32\n  %pad = constant")
        .edit(
            "    %r = load_masked %vm[%p, %j] pad %pad : tile<64 x 64 x bf16>\n",
            "    %f = load_masked %ve[%p] pad %none : tile<1 x i32>\n    %page = item %f : i32\n    \
             %there = cast %page : index\n    \
             %q = load_masked %vm[%there, %0, %j] pad %pad : tile<1 x 64 x 64 x bf16>\n    \
             %r = reshape %q : tile<64 x 64 x bf16>\n",
        );
    // In a tile of one element, one page up to a turn and another from there on.
    let chosen = source.edit(
        "    %page = item %f : i32\n",
        "    %turn = cast %p : i32\n    %turned = splat %turn : tile<1 x i32>\n    \
         %one = constant 1 : i32\n    %ones = splat %one : tile<1 x i32>\n    \
         %is_late = ge %turned, %ones : tile<1 x bool>\n    \
         %g = select %is_late, %ones, %f : tile<1 x i32>\n    %page = item %g : i32\n",
    );
    assert_ne!(chosen, source);
    for which in [[2, 0, 3, -1, 4, 1], [9, 1, 2, 0, 0, 3]] {
        check(&source, &[], &PLAIN.arguments(&FOUR, &which), 256, 0.0);
        check(&chosen, &[], &PLAIN.arguments(&FOUR, &which), 256, 0.0);
    }
}

/// What a producer hasn't: elements of larger tiles. And what a tensor map hasn't: indices without elements.
#[test]
fn what_keeps_matrices_from_a_producer() {
    let reduced = Stacked {
        number: "  %most = reduce max %row_of axis 0 : tile<1 x i32>
  %number = item %most : i32
  %four = constant 4 : i32
  %kept = rem %number, %four : i32
  %at = cast %kept : index
",
        ..PLAIN
    };
    reduced.check_without_producer(&FOUR, &WHICH);
    let padded = Stacked {
        select: "  %t = view %w pad [(1, 0), (0, 0), (0, 0)] : tensor<e + 1 x k x n x bf16, strided [k*n, n, 1] offset -k*n within [[(1, e + 1)], [], []]>
  %m = view %t select 0 at %at : tensor<k x n x bf16, strided [n, 1] offset -k*n>
",
        ..PLAIN
    };
    padded.check_without_producer(&FOUR, &[1, 0, 4, 3, -1, 2]);
}

/// A factor of fewer rows than the product is deep, down to none, of which a tensor map knows nothing.
#[test]
fn factors_that_end_before_the_other() {
    let source = matmul([DType::BF16, DType::F32], "mk", "kn", [64, 64, 64])
        .edit("%b: tensor<k x n", "%b: tensor<l x n")
        .edit("partition<k x n", "partition<l x n");
    for rows in [0, 72, 200, 264] {
        let arguments = [
            sample(DType::BF16, &[72, 200], 1),
            sample(DType::BF16, &[rows, 136], 2),
            sample(DType::F32, &[72, 136], 3),
        ];
        check(&source, &[], &arguments, 256, 0.0);
    }
}

/// A tensor map has no axis that goes backwards.
#[test]
fn rows_that_go_backwards() {
    let flipped = Stacked {
        select: "  %t = view %w select 0 at %at : tensor<k x n x bf16>
  %m = view %t flip [0] : tensor<k x n x bf16, strided [-n, 1] offset k*n - n>
",
        ..PLAIN
    };
    flipped.check_without_producer(&FOUR, &WHICH);
}
