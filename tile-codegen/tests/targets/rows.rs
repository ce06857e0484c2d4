//! The CPU target's code that goes over rows: tiles that are turned, reductions whose loops make tiles, outputs that are
//! written past the caches, and rows that end within a vector.

use crate::emulated::Region;
use crate::fenced::{Fence, Fenced};
use crate::kernels::SOFTMAX;
use crate::support::{Company, Native, agree, agree_in_turn, cpus, instance, run_native, sample};
use tile_codegen::{Cpu, Options};
use tile_ir::abi::KernelAbi;
use tile_ir::array::Elements;
use tile_ir::{Array, DType, interp};
use tile_test_edit::Edit;

/// A tile `%a` of one tensor becomes `%b`; turned, that is `%t` and becomes `%r`, which goes to another.
fn transpose(dtype: &str, before: &str, through: &str) -> String {
    let zero = if dtype.contains('f') { "0.0" } else { "0" };
    format!(
        "kernel @transpose<B, C>(%x: tensor<m x n x {dtype}>, %y: mut tensor<n x m x {dtype}>) {{
  %vx = partition %x [B, C] : partition<m x n x {dtype}, [B, C]>
  %vy = partition %y [C, B] : mut partition<n x m x {dtype}, [C, B]>
  %i, %j = block_index %vy : index, index
  %pad = constant {zero} : {dtype}
  %a = load_masked %vx[%j, %i] pad %pad : tile<B x C x {dtype}>
{before}  %t = permute %b [1, 0] : tile<C x B x {dtype}>
{through}  store_masked %vy, %r
}}
"
    )
}

/// A tile of one tensor, turned, goes to another.
fn transposed(dtype: &str) -> String {
    transpose(dtype, "", "").edit("permute %b", "permute %a").edit(", %r", ", %t")
}

#[test]
fn tiles_of_every_width_are_turned() {
    for dtype in [DType::Bool, DType::I8, DType::BF16, DType::F32, DType::U64] {
        let name = dtype.name();
        let direct = transposed(name);
        for (tiles, shape) in [
            ([64, 64], [64, 128]),
            ([64, 64], [130, 75]),
            ([16, 48], [100, 100]),
            ([80, 20], [7, 300]),
            ([32, 32], [1, 1]),
        ] {
            let [m, n] = shape;
            let arguments = [sample(dtype, &[m, n], 1), sample(dtype, &[n, m], 2)];
            agree_in_turn(&direct, &[("B", tiles[0]), ("C", tiles[1])], &arguments, 0.0);
        }
    }
}

/// What is turned in scratch memory, because something is done with it before and after.
#[test]
fn tiles_are_turned_between_other_ops() {
    for dtype in [DType::I8, DType::F16, DType::I32, DType::F64] {
        let name = dtype.name();
        let double = |to, from| format!("  %{to} = add %{from}, %{from} : tile<SHAPE x {name}>\n");
        let before = double("b", "a").edit("SHAPE", "B x C");
        let source = transpose(name, &before, &double("r", "t").edit("SHAPE", "C x B"));
        for (tiles, shape) in [([64, 64], [70, 128]), ([40, 24], [100, 60]), ([16, 17], [33, 35])] {
            let [m, n] = shape;
            let arguments = [sample(dtype, &[m, n], 1), sample(dtype, &[n, m], 2)];
            agree_in_turn(&source, &[("B", tiles[0]), ("C", tiles[1])], &arguments, 0.0);
        }
    }
}

/// Matrices of a batch, and axes that change places around them.
#[test]
fn inner_axes_are_turned_in_batches() {
    for (tile, order) in [([2, 16, 32], [0, 2, 1]), ([1, 16, 32], [0, 2, 1]), ([17, 2, 32], [2, 1, 0])] {
        let shape = |axes: [usize; 3], names: [&str; 3]| axes.map(|axis| names[axis]).join(" x ");
        let [from, to] = [[0, 1, 2], order];
        let extents = tile.map(|extent| extent.to_string());
        let texts: [&str; 3] = [&extents[0], &extents[1], &extents[2]];
        let (sizes, names) = ([3, 40, 70], ["p", "q", "r"]);
        let indices = order.map(|axis| ["%i", "%j", "%k"][axis]);
        let list = |axes: [usize; 3]| axes.map(|axis| texts[axis]).join(", ");
        let source = format!(
            "kernel @turn(%x: tensor<{a} x f32>, %y: mut tensor<{b} x f32>) {{
  %vx = partition %x [{la}] : partition<{a} x f32, [{la}]>
  %vy = partition %y [{lb}] : mut partition<{b} x f32, [{lb}]>
  {idx} = block_index %vy : index, index, index
  %pad = constant 0.5 : f32
  %a = load_masked %vx[%i, %j, %k] pad %pad : tile<{ta} x f32>
  %t = permute %a [{o}] : tile<{tb} x f32>
  store_masked %vy, %t
}}
",
            a = shape(from, names),
            b = shape(to, names),
            la = list(from),
            lb = list(to),
            idx = indices.join(", "),
            ta = shape(from, texts),
            tb = shape(to, texts),
            o = order.map(|axis| axis.to_string()).join(", "),
        );
        let turned = order.map(|axis| sizes[axis]);
        agree(&source, &[], &[sample(DType::F32, &sizes, 1), sample(DType::F32, &turned, 2)], 0.0);
    }
}

/// Reduces rows of a tensor of W columns.
fn reduce_rows(op: &str, dtype: &str, width: usize) -> String {
    format!(
        "kernel @reduce(%x: tensor<n x {width} x {dtype}>, %y: mut tensor<n x 1 x {dtype}>) {{
  %vx = partition %x [1, {width}] : partition<n x {width} x {dtype}, [1, {width}]>
  %vy = partition %y [1, 1] : mut partition<n x 1 x {dtype}, [1, 1]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : {dtype}
  %a = load_masked %vx[%i, %j] pad %pad : tile<1 x {width} x {dtype}>
  %s = reduce {op} %a axis 1 : tile<1 x 1 x {dtype}>
  store_masked %vy, %s
}}
"
    )
}

#[test]
fn extrema_of_rows_order_zeros_and_place_nan() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let patterns: [&[f64]; 8] = [
        &[nan],
        &[-0.0],
        &[0.0, -0.0],
        &[-0.0, -1.0, nan],
        &[1.0, 2.0, -3.0],
        &[-infinity, nan],
        &[infinity, -infinity, 0.5],
        &[-1.0, -2.0, -0.25],
    ];
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for width in [32, 37, 48, 67] {
            let rows = patterns.iter().flat_map(|pattern| pattern.iter().cycle().take(width).copied());
            let x = Array::new(dtype, vec![patterns.len(), width], Elements::Float(rows.collect()));
            for op in ["max", "min", "maximum", "minimum"] {
                let instance = instance(&reduce_rows(op, dtype.name(), width), &[]);
                let arguments = [x.clone(), sample(dtype, &[patterns.len(), 1], 1)];
                let mut expected = arguments.to_vec();
                interp::run(&instance, &mut expected).unwrap();
                let actual = run_native(&instance, &arguments, &Options::default());
                for i in 0..patterns.len() {
                    let (a, e) = (actual[1].get_f64(i), expected[1].get_f64(i));
                    let same = a.to_bits() == e.to_bits() || (a.is_nan() && e.is_nan());
                    assert!(same, "{op} of row {i} of {width} {dtype} is {a}, not {e}");
                }
            }
        }
    }
}

/// Rows that end within a tile, times weights that all rows share and the turned rows of a third tensor: of the first two
/// the vectors that exist are gone through without masks.
#[test]
fn rows_that_end_within_a_tile_are_reduced_and_stored() {
    let source = "kernel @k<R, W>(%x: tensor<m x n x f32>, %w: tensor<1 x n x f32>, %z: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [R, W] : partition<m x n x f32, [R, W]>
  %vw = partition %w [1, W] : partition<1 x n x f32, [1, W]>
  %vz = partition %z [R, W] : partition<m x n x f32, [R, W]>
  %vy = partition %y [R, W] : mut partition<m x n x f32, [R, W]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0 : index
  %pad = constant 0.5 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<R x W x f32>
  %wt = load_masked %vw[%0, %j] pad %pad : tile<1 x W x f32>
  %zt = load_masked %vz[%i, %j] pad %pad : tile<R x W x f32>
  %zf = flip %zt axis 1 : tile<R x W x f32>
  %wb = broadcast %wt : tile<R x W x f32>
  %tw = mul %t, %wb : tile<R x W x f32>
  %s = reduce sum %tw axis 1 : tile<R x 1 x f32>
  %tz = mul %t, %zf : tile<R x W x f32>
  %l = reduce max %tz axis 1 : tile<R x 1 x f32>
  %sl = add %s, %l : tile<R x 1 x f32>
  %sb = broadcast %sl : tile<R x W x f32>
  %tzw = mul %tz, %wb : tile<R x W x f32>
  %r = add %tzw, %sb : tile<R x W x f32>
  store_masked %vy, %r
}
";
    for (m, n, r, w) in [(5, 100, 2, 128), (3, 96, 1, 128), (4, 64, 2, 64), (3, 130, 1, 64), (2, 33, 4, 37)] {
        let shapes = [[m, n], [1, n], [m, n], [m, n]];
        let arguments: Vec<Array> =
            (1..).zip(&shapes).map(|(i, shape)| sample(DType::F32, shape, i)).collect();
        agree(source, &[("R", r), ("W", w)], &arguments, 1e-5);
    }
}

/// A reduction whose loop makes a tile reads it and other tiles, some of which the tile is made of, or lies in the place
/// of.
#[test]
fn what_a_reduction_makes_is_what_later_ops_read() {
    let source = "kernel @k<W>(%x: mut tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [2, W] : mut partition<m x n x f32, [2, W]>
  %vy = partition %y [2, W] : mut partition<m x n x f32, [2, W]>
  %pad = constant 0.5 : f32
  %t = load_masked %vx pad %pad : tile<2 x W x f32>
  %m = reduce max %t axis 1 : tile<2 x 1 x f32>
  %mb = broadcast %m : tile<2 x W x f32>
  %d = sub %t, %mb : tile<2 x W x f32>
  %e = exp %d : tile<2 x W x f32>
  %et = mul %e, %t : tile<2 x W x f32>
  %s = reduce sum %et axis 1 : tile<2 x 1 x f32>
  %sb = broadcast %s : tile<2 x W x f32>
  %g = tanh %e : tile<2 x W x f32>
  %gg = mul %g, %g : tile<2 x W x f32>
  %v = reduce sum %gg axis 1 : tile<2 x 1 x f32>
  %vb = broadcast %v : tile<2 x W x f32>
  %r1 = add %g, %sb : tile<2 x W x f32>
  %r2 = add %r1, %vb : tile<2 x W x f32>
  %r3 = add %r2, %e : tile<2 x W x f32>
  store_masked %vy, %r3
}
";
    for (m, n, w) in [(4, 64, 64), (5, 60, 64), (3, 40, 43)] {
        let arguments = [sample(DType::F32, &[m, n], 1), sample(DType::F32, &[m, n], 2)];
        agree(source, &[("W", w)], &arguments, 2e-5);
    }
}

/// A reduction whose loop makes a tile of another one, and hosts a reduction that needs that one as it was.
#[test]
fn what_a_reduction_makes_leaves_what_others_of_its_loop_read() {
    let source =
        "kernel @k<R, W>(%a: tensor<m x n x f32>, %b: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %va = partition %a [R, W] : partition<m x n x f32, [R, W]>
  %vb = partition %b [R, W] : partition<m x n x f32, [R, W]>
  %vy = partition %y [R, W] : mut partition<m x n x f32, [R, W]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.5 : f32
  %ta = load_masked %va[%i, %j] pad %pad : tile<R x W x f32>
  %tb = load_masked %vb[%i, %j] pad %pad : tile<R x W x f32>
  %x = exp %ta : tile<R x W x f32>
  %made = mul %x, %tb : tile<R x W x f32>
  %s = reduce sum %made axis 1 : tile<R x 1 x f32>
  %u = add %x, %tb : tile<R x W x f32>
  %t = reduce REDUCTION %u axis 1 : tile<R x 1 x f32>
  %sb = broadcast %s : tile<R x W x f32>
  %tb2 = broadcast %t : tile<R x W x f32>
  %v = mul %made, %sb : tile<R x W x f32>
  %w = add %v, %tb2 : tile<R x W x f32>
  store_masked %vy, %w
}
";
    for reduction in ["sum", "max"] {
        for (r, n, w) in [(1, 32, 32), (3, 64, 64), (2, 60, 64), (1, 40, 43)] {
            let arguments = [1, 2, 3].map(|seed| sample(DType::F32, &[5, n], seed));
            let source = source.edit("REDUCTION", reduction);
            agree_in_turn(&source, &[("R", r), ("W", w)], &arguments, 1e-4);
        }
    }
}

/// Softmax of rows that go to a view of the output, in which the next block's loop can't store them.
#[test]
fn rows_of_functions_are_stored_through_views() {
    for (view, layout) in [("flip [0]", "[-256, 1] offset 1280"), ("flip [1]", "[256, -1] offset 255")] {
        let source = format!(
            "kernel @k(%x: tensor<6 x 256 x f32>, %y: mut tensor<6 x 256 x f32>) {{
  %view = view %y {view} : mut tensor<6 x 256 x f32, strided {layout}>
  %vx = partition %x [1, 256] : partition<6 x 256 x f32, [1, 256]>
  %vy = partition %view [1, 256] : mut partition<6 x 256 x f32, strided {layout}, [1, 256]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%i, %j] : tile<1 x 256 x f32>
  %e = exp %t : tile<1 x 256 x f32>
  %s = reduce sum %e axis 1 : tile<1 x 1 x f32>
  %all = broadcast %s : tile<1 x 256 x f32>
  %r = div %e, %all : tile<1 x 256 x f32>
  store %vy, %r
}}
"
        );
        let arguments = [sample(DType::F32, &[6, 256], 1), sample(DType::F32, &[6, 256], 2)];
        agree_in_turn(&source, &[], &arguments, 1e-5);
    }
}

/// Runs a kernel of f32 tensors at these places.
pub(crate) fn run_at(source: &str, constants: &[(&str, usize)], tensors: &[(*mut f32, Vec<usize>)]) {
    run_at_on(Cpu::Host, source, constants, tensors);
}

/// [`run_at`] for the code of a processor.
fn run_at_on(cpu: Cpu, source: &str, constants: &[(&str, usize)], tensors: &[(*mut f32, Vec<usize>)]) {
    let options = Options { cpu, ..Options::default() };
    let instance = instance(source, constants);
    let shapes: Vec<&[usize]> = tensors.iter().map(|(_, shape)| shape.as_slice()).collect();
    let bound = KernelAbi::of(&instance).bind(&shapes).unwrap();
    let slots: Vec<u64> = tensors.iter().map(|(at, _)| *at as u64).chain(bound.slots()).collect();
    let bytes = |shape: &[usize]| size_of::<f32>() * shape.iter().product::<usize>();
    let regions = tensors.iter().map(|(at, shape)| Region { address: at.cast(), bytes: bytes(shape) });
    let regions: Vec<Region> = regions.collect();
    // SAFETY: the tensors are as large as their shapes.
    unsafe {
        Native::of(&instance, &options).run_with(&slots, &regions, bound.blocks() as u64, Company::Others)
    };
}

pub(crate) fn number(i: usize) -> f32 {
    (i * 7919 % 1013) as f32 / 250.0 - 2.0
}

/// A kernel, its constants, and the shapes of its input and its output.
type Case<'a> = (&'a str, &'a [(&'a str, usize)], [[usize; 2]; 2]);

/// Elements beyond a row's end are neither read nor written, not even to find that they don't count.
#[test]
fn vectors_at_the_end_of_memory_stay_in_it() {
    let turn = transposed("f32");
    let maximum = reduce_rows("max", "f32", 37);
    let cases: [Case<'_>; 6] = [
        (SOFTMAX, &[("B", 1), ("W", 128)], [[3, 100]; 2]),
        (SOFTMAX, &[("B", 2), ("W", 64)], [[5, 33]; 2]),
        (SOFTMAX, &[("B", 1), ("W", 37)], [[3, 37]; 2]),
        (&turn, &[("B", 32), ("C", 32)], [[33, 50], [50, 33]]),
        (&turn, &[("B", 64), ("C", 16)], [[64, 17], [17, 64]]),
        (&maximum, &[], [[7, 37], [7, 1]]),
    ];
    for (source, constants, [from, to]) in cases {
        let (inputs, outputs) = (from[0] * from[1], to[0] * to[1]);
        let mut results = Vec::new();
        for fence in Fence::BOTH {
            let [x, y] = [inputs, outputs].map(|elements| Fenced::new(4 * elements));
            let [a, b] =
                [x.place(4 * inputs, fence), y.place(4 * outputs, fence)].map(<*mut u8>::cast::<f32>);
            // SAFETY: the elements lie in the pages that are open.
            unsafe {
                (0..inputs).for_each(|i| *a.add(i) = number(i));
                run_at(source, constants, &[(a, from.to_vec()), (b, to.to_vec())]);
                results.push((0..outputs).map(|i| (*b.add(i)).to_bits()).collect::<Vec<_>>());
            }
        }
        // The two differ in how they are aligned.
        assert_eq!(results[0], results[1], "{source}");
    }
}

/// A tensor between canaries, so many elements past an address that is aligned to lines.
pub(crate) struct Large {
    memory: Vec<f32>,
    first: usize,
    elements: usize,
}

const CANARY: f32 = 12345.5;

impl Large {
    pub(crate) fn new(elements: usize, skew: usize) -> Large {
        let mut memory = vec![CANARY; elements + 64];
        let first = memory.as_ptr().align_offset(64) + 16 + skew;
        memory[first..first + elements].fill(0.0);
        Large { memory, first, elements }
    }

    pub(crate) fn place(&mut self) -> *mut f32 {
        self.memory[self.first..].as_mut_ptr()
    }

    pub(crate) fn read(&self) -> &[f32] {
        let (before, rest) = self.memory.split_at(self.first);
        let (elements, after) = rest.split_at(self.elements);
        assert!(before.iter().chain(after).all(|&x| x == CANARY), "written outside the tensor");
        elements
    }
}

/// Outputs of more than 32 MiB are written past the caches; what is written is the same, aligned or not.
#[test]
fn large_outputs_have_the_bits_of_small_ones() {
    for (columns, skew, width) in [(1024, 0, 1024), (1024, 3, 1024), (1003, 0, 1024), (1003, 5, 256)] {
        let rows = (33 << 20) / (4 * columns);
        let scale = "kernel @scale<W>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [1, W] : partition<m x n x f32, [1, W]>
  %vy = partition %y [1, W] : mut partition<m x n x f32, [1, W]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %a = load_masked %vx[%i, %j] pad %pad : tile<1 x W x f32>
  %e = exp %a : tile<1 x W x f32>
  store_masked %vy, %e
}
";
        let mut x = Large::new(rows * columns, skew);
        // SAFETY: the tensor has so many elements.
        (0..rows * columns).for_each(|i| unsafe { *x.place().add(i) = number(i) });
        let mut large = Large::new(rows * columns, skew);
        run_at(
            scale,
            &[("W", width)],
            &[(x.place(), vec![rows, columns]), (large.place(), vec![rows, columns])],
        );
        let few = 1013;
        let mut small = Large::new(few * columns, skew);
        run_at(
            scale,
            &[("W", width)],
            &[(x.place(), vec![few, columns]), (small.place(), vec![few, columns])],
        );
        let (large, small) = (large.read(), small.read());
        assert!(large[..small.len()] == *small, "{columns} columns, {skew} elements off");
        // Elements repeat after 1013.
        let repeated = large.iter().enumerate().all(|(i, &e)| e.to_bits() == small[i % 1013].to_bits());
        assert!(repeated, "{columns} columns, {skew} elements off");
    }
}

#[test]
fn large_matrices_are_turned() {
    let turn = transposed("f32");
    for (m, n, skew) in [(2944, 2992, 0), (2999, 2977, 0), (2944, 2992, 1)] {
        let (mut x, mut y) = (Large::new(m * n, skew), Large::new(m * n, skew));
        // SAFETY: the tensor has so many elements.
        (0..m * n).for_each(|i| unsafe { *x.place().add(i) = number(i) });
        for cpu in cpus() {
            // SAFETY: the tensor has so many elements.
            (0..m * n).for_each(|i| unsafe { *y.place().add(i) = f32::NAN });
            let tensors = [(x.place(), vec![m, n]), (y.place(), vec![n, m])];
            run_at_on(cpu, &turn, &[("B", 64), ("C", 64)], &tensors);
            let y = y.read();
            let wrong = (0..m * n).find(|&i| y[i % n * m + i / n] != number(i));
            assert_eq!(wrong, None, "{m} x {n}, {skew} elements off, on {}", cpu.name());
        }
    }
}

/// A loop whose tiles are rows that registers hold, each made of both of the turn before; some are too large, or begin
/// where no vector does.
#[test]
fn rows_are_carried_in_registers() {
    for dtype in [DType::I8, DType::F16, DType::I32, DType::F32, DType::F64] {
        let name = dtype.name();
        let zero = if dtype.is_float() { "0.0" } else { "0" };
        let source = format!(
            "kernel @k<B>(%x: tensor<m x n x {name}>, %y: mut tensor<m x B x {name}>, %z: mut tensor<m x B x {name}>) {{
  %vx = partition %x [1, B] : partition<m x n x {name}, [1, B]>
  %vy = partition %y [1, B] : mut partition<m x B x {name}, [1, B]>
  %vz = partition %z [1, B] : mut partition<m x B x {name}, [1, B]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0 : index
  %end = extent ceil_div(n, B) : index
  %zero = constant {zero} : {name}
  %start = splat %zero : tile<1 x B x {name}>
  %first = load_masked %vx[%i, %0] pad %zero : tile<1 x B x {name}>
  %most = max %first, %start : tile<1 x B x {name}>
  %sums, %last = for %p = %0 to %end carry (%a = %start, %b = %most) : tile<1 x B x {name}>, tile<1 x B x {name}> {{
    %t = load_masked %vx[%i, %p] pad %zero : tile<1 x B x {name}>
    %sum = add %a, %t : tile<1 x B x {name}>
    %larger = max %b, %a : tile<1 x B x {name}>
    %next = sub %larger, %t : tile<1 x B x {name}>
    yield %sum, %next
  }}
  store_masked %vy, %sums
  store_masked %vz, %last
}}
"
        );
        for (elements, n) in [(16, 100), (48, 96), (64, 1), (128, 1000), (20, 70), (1024, 3000)] {
            let [x, y, z] =
                [(n, 1), (elements, 2), (elements, 3)].map(|(n, seed)| sample(dtype, &[3, n], seed));
            agree(&source, &[("B", elements)], &[x, y, z], 0.0);
        }
    }
}
