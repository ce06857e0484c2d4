//! Right and wrong uses of every op that isn't a row of a table, for `docs/ops.md`. The front end lowers each: a right
//! use must have the op, and what is said of a wrong one is what the page shows. So the page can't be stale, and
//! neither can these.

/// Ops that belong together.
pub(crate) struct Group {
    /// The heading.
    pub(crate) title: &'static str,
    /// The lines that stand before each use.
    pub(crate) shell: Shell,
    /// Names in the IR, `view flip` for what `view` does, and what a kernel writes.
    pub(crate) right: &'static [(&'static str, &'static str)],
    /// What is refused.
    pub(crate) wrong: &'static [&'static str],
}

/// The kernel around a use.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shell {
    /// `a`, `k` and `y` are tensors of two axes, `x` a tile `[4, 8]` of f32, `i` one of i32, `c` one of bool.
    Tiles,
    /// A kernel whose blocks share tiles: `own` is its output in tiles `[4, 8]` of f32, `x` such a tile.
    Persistent,
    /// A kernel with a grid of its own; `counts` is an atomic view of i32 with one axis.
    Atomics,
}

impl Shell {
    /// What stands in the attribute's parentheses, and the kernel with a use in it.
    pub(crate) fn kernel(self, usage: &str) -> (&'static str, String) {
        match self {
            Shell::Tiles => (
                "",
                format!(
                    "fn example(a: &Tensor<f32, m, n>, k: &Tensor<i32, m, n>, y: &mut Tensor<f32, m, n>) {{
                        let view = a.partition_view([4, 8]);
                        let mut own = y.partition_view_mut([4, 8]);
                        let x = view.load_masked(own.index());
                        let i = k.partition_view([4, 8]).load_masked(own.index());
                        let c = x > 0.0;
                        own.store_masked(x);
                        {usage};
                    }}"
                ),
            ),
            Shell::Persistent => (
                "",
                format!(
                    "fn example(y: &mut Tensor<f32, m, n>) {{
                        let mut own = y.partition_view_mut([4, 8]);
                        let x = Tile::<f32, 2>::zeros([4, 8]);
                        {usage};
                    }}"
                ),
            ),
            Shell::Atomics => (
                "grid = [4]",
                format!(
                    "fn example(counts: &mut Tensor<i32, n>) {{
                        let counts = counts.atomic_view();
                        let i = Tile::<i32, 1>::iota([4], 0);
                        {usage};
                    }}"
                ),
            ),
        }
    }
}

pub(crate) const GROUPS: &[Group] = &[
    Group {
        title: "New tiles",
        shell: Shell::Tiles,
        right: &[
            ("constant", "let one = 1.0f32"),
            ("splat", "Tile::full([4, 8], 1.0f32)"),
            ("iota", "Tile::<i32, 2>::iota([4, 8], 1)"),
        ],
        wrong: &[
            "Tile::<f32, 2>::zeros([4, m])",
            "Tile::<f32, 2>::zeros([4, 0])",
            "Tile::<f32, 2>::iota([4, 8], 2)",
            "Tile::<bool, 2>::iota([4, 8], 1)",
        ],
    },
    Group {
        title: "Choices and conversions",
        shell: Shell::Tiles,
        right: &[
            ("select", "select(c, x, 0.0)"),
            ("cast", "x.cast::<bf16>()"),
            ("cast_with", "x.cast_with::<f16>(Rounding::Up)"),
            ("saturating_cast", "x.saturating_cast::<f8e4m3fn>()"),
            ("bitcast", "x.bitcast::<u32>()"),
            ("lookup", "i.lookup([0.5, 1.0, 2.0])"),
            ("mul_add", "x.mul_add(2.0, x)"),
            ("item", "x.sum([0, 1]).item()"),
        ],
        wrong: &[
            "x + i",
            "x & x",
            "exp(i)",
            "x + Tile::<f32, 2>::zeros([4, 7])",
            "select(i, x, x)",
            "select(c, x, i)",
            "i.cast_with::<f32>(Rounding::Up)",
            "x.cast_with::<bool>(Rounding::Up)",
            "x.saturating_cast::<i8>()",
            "x.bitcast::<u64>()",
            "i.mul_add(i, i)",
            "x.lookup([0.5, 1.0])",
            "i.lookup(x)",
            "x.item()",
        ],
    },
    Group {
        title: "Shapes",
        shell: Shell::Tiles,
        right: &[
            ("broadcast", "x.sum(1).broadcast([4, 8])"),
            ("reshape", "x.reshape([32])"),
            ("permute", "x.permute([1, 0])"),
        ],
        wrong: &["x.broadcast([4, 9])", "x.reshape([33])", "x.permute([0, 0])", "x.squeeze(0)"],
    },
    Group {
        title: "Movements of tiles",
        shell: Shell::Tiles,
        right: &[
            ("extract", "x.extract([0, 4], [4, 4])"),
            ("insert", "x.insert([0, 0], Tile::zeros([2, 2]))"),
            ("cat", "cat([x, x], 1)"),
            ("pad", "x.pad([(1, 0), (0, 2)], 0.0)"),
            ("flip", "x.flip(0)"),
            ("roll", "x.roll(1, -1)"),
            ("shift", "x.shift(1, 1, 0.0)"),
            ("repeat", "x.repeat([2, 1])"),
            ("gather", "x.gather(i, 0)"),
            ("scatter", "x.scatter(i, x, 0)"),
            ("scatter_add", "x.scatter_add(i, x, 1)"),
        ],
        wrong: &[
            "x.extract([0, 5], [4, 4])",
            "x.insert([3, 0], x)",
            "x.insert([0, 0], i)",
            "cat([x, Tile::zeros([3, 8])], 1)",
            "cat([x, i], 1)",
            "x.flip(2)",
            "x.split_even::<3>(1)",
            "x.gather(x, 0)",
            "x.gather(i.extract([0, 0], [4, 4]), 0)",
            "x.scatter(i, i, 0)",
            "c.scatter_add(i, c, 0)",
        ],
    },
    Group {
        title: "Lines along an axis",
        shell: Shell::Tiles,
        right: &[
            ("reduce", "x.sum(1)"),
            ("scan", "x.cumsum(1)"),
            ("reduce_with", "reduce(x, 1, 0.0, |s, t| s * 0.5 + t)"),
            ("scan_with", "scan(x, 1, 0.0, |s, t| s * 0.5 + t)"),
            ("sort", "x.top_k(3, 1)"),
            ("histogram", "i.histogram(16)"),
        ],
        wrong: &[
            "x.sum(2)",
            "x.sum([1, 1])",
            "x.any(1)",
            "c.sum(1)",
            "c.cumsum(1)",
            "reduce((x, i.sum(1)), 1, (0.0, 0), |(s, p), (t, q)| (s + t, p))",
            "reduce(x, 1, 0.0, |s, t| s + x)",
            "x.top_k(9, 1)",
            "c.sort(1)",
            "x.histogram(16)",
        ],
    },
    Group {
        title: "Products of matrices",
        shell: Shell::Tiles,
        right: &[("mma", "mma(x, x.t(), Tile::<f32, 2>::zeros([4, 4]))")],
        wrong: &[
            "mma(x, x, Tile::<f32, 2>::zeros([4, 8]))",
            "mma(x, x.t(), Tile::<f32, 2>::zeros([4, 5]))",
            "mma(x, i.t(), Tile::<f32, 2>::zeros([4, 4]))",
            "mma(x, x.t(), Tile::<f64, 2>::zeros([4, 4]))",
            "mma(x.sum(0).reshape([8]), x.t(), Tile::<f32, 2>::zeros([4, 4]))",
        ],
    },
    Group {
        title: "Views of tensors",
        shell: Shell::Tiles,
        right: &[
            ("partition", "a.partition_view([4, 8])"),
            ("view", "a.t()"),
            ("view permute", "a.permute([1, 0])"),
            ("view flip", "a.flip([0])"),
            ("view shrink", "a.shrink([(1, m), (0, n)])"),
            ("view pad", "a.pad([(1, 0), (0, 2)])"),
            ("view shift", "a.shift(0, 1)"),
            ("view step", "a.step(0, 2)"),
            ("view expand", "a.unsqueeze(0).expand([3, m, n])"),
            ("view unsqueeze", "a.unsqueeze(0)"),
            ("view squeeze", "a.unsqueeze(0).squeeze(0)"),
            ("view unflatten", "a.unflatten(0, [m / 4, 4])"),
            ("view flatten", "a.flatten(0, 1)"),
            ("view unfold", "a.unfold(1, 3, 1)"),
            ("view select", "a.select(0, 0)"),
            ("view require", "a.pad([(1, 1), (0, 0)]).unfold(0, 3, 1)"),
        ],
        wrong: &[
            "a.partition_view([4])",
            "a.partition_view([m, 8])",
            "a.permute([0, 0])",
            "a.flip([2])",
            "a.expand([4, n])",
            "a.flatten(1, 0)",
            "a.t().flatten(0, 1)",
            "a.select(2, 0)",
            "y.strided_view_mut([4, 8], [2, 8])",
        ],
    },
    Group {
        title: "Loads and stores",
        shell: Shell::Tiles,
        right: &[
            ("block_index", "own.index()"),
            ("load_masked", "view.load_masked_or(1.0, [0, 1])"),
            ("store_masked", "own.store_masked(x)"),
            ("prefetch", "view.prefetch([0, 1])"),
            ("load", "view.load(own.index())"),
            ("store", "own.store(x)"),
            ("gather_load", "a.gather((i, 0))"),
        ],
        wrong: &[
            "view.load_masked([0])",
            "view.load_masked([x, x])",
            "view.load([i.sum([0, 1]).item() as usize, 0])",
            "own.store_masked(i)",
            "own.store_masked(x.t())",
            "view.prefetch([0])",
            "view.store_masked(x)",
            "a.gather([i])",
            "a.gather([x, x])",
        ],
    },
    Group {
        title: "Atomics",
        shell: Shell::Atomics,
        right: &[("atomic", "counts.fetch_add([i], 1, Relaxed, DeviceScope)")],
        wrong: &[
            "counts.fetch_add([i], 1.0f32, Relaxed, DeviceScope)",
            "counts.fetch_add([i, i], 1, Relaxed, DeviceScope)",
            "counts.load([i], Release, DeviceScope)",
            "counts.store([i], 1, Acquire, DeviceScope)",
        ],
    },
    Group {
        title: "Control",
        shell: Shell::Tiles,
        right: &[
            ("extent", "Tile::full([4, 8], m as f32)"),
            ("block_id", "block_id(0)"),
            ("block_count", "block_count(0)"),
            ("for", "for p in 0..3 { own.store_masked(x) }"),
            ("if", "if m > 3 { own.store_masked(x) }"),
            ("while", "let mut p = 1; while p < m { p *= 2; }"),
            ("yield", "let mut s = x; for p in 0..3 { s += x; }"),
        ],
        wrong: &[
            "if x > 0.0 { own.store_masked(x) }",
            "while c { own.store_masked(x) }",
            "for p in 0..1.0 { own.store_masked(x) }",
            "let mut s = x; for p in 0..3 { s = x.sum(1); }",
            "block_id(2)",
        ],
    },
    Group {
        title: "Persistent kernels",
        shell: Shell::Persistent,
        right: &[("tiles", "for mut tile in own.tiles_persistent(Grouped(8)) { tile.store_masked(x) }")],
        wrong: &[
            "for mut tile in own.tiles_persistent() { tile.store_masked(x) }",
            "for mut tile in own.tiles_persistent(Grouped(0)) { tile.store_masked(x) }",
            "for mut tile in own.tiles_persistent(RowMajor) { tile.store_masked(x); break; }",
            "if m > 3 { for mut tile in own.tiles_persistent(RowMajor) { tile.store_masked(x) } }",
            "for mut tile in own.tiles_persistent(RowMajor) {} own.store_masked(x)",
        ],
    },
    Group {
        title: "Messages",
        shell: Shell::Tiles,
        right: &[
            ("print", r#"tile_println!("{x:.2}")"#),
            ("assert", r#"tile_assert!(x >= 0.0, "negative: {x}")"#),
        ],
        wrong: &[r#"tile_println!("{} {}", x)"#, r#"tile_println!("{nobody}")"#, "tile_assert!(x)"],
    },
];
