//! Ops that move elements, on every target, against plain loops over indices: random chains of them on tiles of
//! any extents.

use crate::gpu::check_for;
use crate::support::{close, instance, run_native, run_simt, sample};
use proptest::prelude::*;
use std::fmt::Write;
use tile_codegen::Options;
use tile_ir::array::Elements;
use tile_ir::ops::Domain;
use tile_ir::{Array, DType, interp};

/// A tile as plain loops see it.
#[derive(Clone, Debug)]
struct Plain {
    name: String,
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Plain {
    fn at(&self, index: &[usize]) -> f64 {
        self.values[index.iter().zip(&self.shape).fold(0, |position, (i, extent)| position * extent + i)]
    }
}

/// The values of a function of the index, in row-major order.
fn tabulate(shape: &[usize], mut value: impl FnMut(&[usize]) -> f64) -> Vec<f64> {
    let mut values = Vec::new();
    let mut index = vec![0; shape.len()];
    for _ in 0..shape.iter().product() {
        values.push(value(&index));
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    values
}

fn type_text(shape: &[usize], dtype: DType) -> String {
    let extents: String = shape.iter().map(|extent| format!("{extent} x ")).collect();
    format!("tile<{extents}{dtype}>")
}

/// Writes a kernel by the choices on a tape, and computes what it gives.
struct Writer<'a> {
    tape: std::slice::Iter<'a, u8>,
    text: String,
    tiles: Vec<Plain>,
    names: usize,
    dtype: DType,
}

/// Larger tiles than this make the slow executor slow.
const LARGEST: usize = 1500;

impl Writer<'_> {
    fn choose(&mut self, below: usize) -> usize {
        usize::from(self.tape.next().copied().unwrap_or(0)) % below
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    fn line(&mut self, body: &str, ty: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.text, "  {name} = {body} : {ty}");
        name
    }

    fn define(&mut self, body: &str, shape: &[usize], value: impl FnMut(&[usize]) -> f64) {
        if shape.iter().product::<usize>() > LARGEST {
            return;
        }
        let name = self.line(body, &type_text(shape, self.dtype));
        self.tiles.push(Plain { name, shape: shape.to_vec(), values: tabulate(shape, value) });
    }

    fn tile(&mut self) -> Plain {
        let back = self.choose(4).min(self.tiles.len() - 1);
        self.tiles[self.tiles.len() - 1 - back].clone()
    }

    fn number(&mut self) -> (String, f64) {
        let value = self.choose(7) as f64;
        let literal = if self.dtype.is_float() { format!("{value}.0") } else { value.to_string() };
        let dtype = self.dtype.to_string();
        (self.line(&format!("constant {literal}"), &dtype), value)
    }

    /// A tile of `i32`: the position along an axis times a factor, less an offset.
    fn indices(&mut self, shape: &[usize]) -> Plain {
        let (axis, factor, offset) = (self.choose(shape.len()), self.choose(4), self.choose(3));
        let ty = type_text(shape, DType::I32);
        let mut counter = self.line(&format!("iota {axis}"), &ty);
        for (op, number) in [("mul", factor), ("sub", offset)] {
            let number = self.line(&format!("constant {number}"), "i32");
            let number = self.line(&format!("splat {number}"), &ty);
            counter = self.line(&format!("{op} {counter}, {number}"), &ty);
        }
        let values = tabulate(shape, |index| (index[axis] * factor) as f64 - offset as f64);
        Plain { name: counter, shape: shape.to_vec(), values }
    }

    fn op(&mut self) {
        let x = self.tile();
        let rank = x.shape.len();
        let axis = self.choose(rank);
        let extent = x.shape[axis];
        match self.choose(13) {
            0 => {
                let shape: Vec<usize> = x.shape.iter().map(|&e| 1 + self.choose(e)).collect();
                let starts: Vec<usize> =
                    x.shape.iter().zip(&shape).map(|(e, s)| self.choose(e - s + 1)).collect();
                let body = format!("extract {} {starts:?}", x.name);
                self.define(&body, &shape, |index| {
                    x.at(&index.iter().zip(&starts).map(|(i, start)| i + start).collect::<Vec<_>>())
                });
            }
            1 => self.insert(&x),
            2 => {
                let y = self.tile();
                let alike = |y: &Plain| {
                    y.shape.len() == rank && (0..rank).all(|a| a == axis || y.shape[a] == x.shape[a])
                };
                let y = if alike(&y) { y } else { x.clone() };
                let mut shape = x.shape.clone();
                shape[axis] += y.shape[axis];
                self.define(&format!("cat {}, {} axis {axis}", x.name, y.name), &shape, |index| {
                    let mut index = index.to_vec();
                    if index[axis] < extent {
                        return x.at(&index);
                    }
                    index[axis] -= extent;
                    y.at(&index)
                });
            }
            3 => {
                let before: Vec<usize> = x.shape.iter().map(|_| self.choose(4)).collect();
                let after: Vec<usize> = x.shape.iter().map(|_| self.choose(4)).collect();
                let (fill, value) = self.number();
                let shape: Vec<usize> = (0..rank).map(|a| before[a] + x.shape[a] + after[a]).collect();
                self.define(&format!("pad {}, {fill} {before:?} {after:?}", x.name), &shape, |index| {
                    let inside = (0..rank).all(|a| (before[a]..before[a] + x.shape[a]).contains(&index[a]));
                    let from: Vec<_> = index.iter().zip(&before).map(|(i, b)| i.wrapping_sub(*b)).collect();
                    if inside { x.at(&from) } else { value }
                });
            }
            4 => self.define(&format!("flip {} axis {axis}", x.name), &x.shape, |index| {
                let mut index = index.to_vec();
                index[axis] = extent - 1 - index[axis];
                x.at(&index)
            }),
            5 => {
                let by = self.choose(2 * extent + 1) as i64 - extent as i64;
                self.define(&format!("roll {} axis {axis} by {by}", x.name), &x.shape, |index| {
                    let mut index = index.to_vec();
                    index[axis] = (index[axis] as i64 - by).rem_euclid(extent as i64) as usize;
                    x.at(&index)
                });
            }
            6 => {
                let by = self.choose(2 * extent + 3) as i64 - extent as i64 - 1;
                let (fill, value) = self.number();
                self.define(&format!("shift {}, {fill} axis {axis} by {by}", x.name), &x.shape, |index| {
                    let from = index[axis] as i64 - by;
                    let mut index = index.to_vec();
                    index[axis] = from as usize;
                    if (0..extent as i64).contains(&from) { x.at(&index) } else { value }
                });
            }
            7 => {
                let counts: Vec<usize> = x.shape.iter().map(|_| 1 + self.choose(3)).collect();
                let shape: Vec<usize> = x.shape.iter().zip(&counts).map(|(e, c)| e * c).collect();
                self.define(&format!("repeat {} {counts:?}", x.name), &shape, |index| {
                    x.at(&index.iter().zip(&x.shape).map(|(i, e)| i % e).collect::<Vec<_>>())
                });
            }
            8 => {
                let order: Vec<usize> = (0..rank).map(|a| (a + 1) % rank).collect();
                let shape: Vec<usize> = order.iter().map(|&a| x.shape[a]).collect();
                self.define(&format!("permute {} {order:?}", x.name), &shape, |index| {
                    let mut from = vec![0; rank];
                    order.iter().zip(index).for_each(|(&a, &i)| from[a] = i);
                    x.at(&from)
                });
            }
            9 => {
                let y = self.tile();
                if y.shape == x.shape {
                    let body = format!("max {}, {}", x.name, y.name);
                    self.define(&body, &x.shape, |index| x.at(index).max(y.at(index)));
                }
            }
            10 => self.gather(&x, axis),
            _ => self.scatter(&x, axis),
        }
    }

    fn insert(&mut self, x: &Plain) {
        let y = self.tile();
        if y.shape.len() != x.shape.len() || y.shape.iter().zip(&x.shape).any(|(y, x)| y > x) {
            return;
        }
        let starts: Vec<usize> = x.shape.iter().zip(&y.shape).map(|(x, y)| self.choose(x - y + 1)).collect();
        self.define(&format!("insert {}, {} {starts:?}", x.name, y.name), &x.shape, |index| {
            let from: Vec<_> = index.iter().zip(&starts).map(|(i, s)| i.wrapping_sub(*s)).collect();
            let inside = from.iter().zip(&y.shape).all(|(i, extent)| i < extent);
            if inside { y.at(&from) } else { x.at(index) }
        });
    }

    fn gather(&mut self, x: &Plain, axis: usize) {
        let mut shape = x.shape.clone();
        shape[axis] = 1 + self.choose(2 * shape[axis] + 2);
        if shape.iter().product::<usize>() > LARGEST {
            return;
        }
        let indices = self.indices(&shape);
        let (fill, value) = self.number();
        let body = format!("gather {}, {}, {fill} axis {axis}", x.name, indices.name);
        self.define(&body, &shape, |index| {
            let (k, mut from) = (indices.at(index), index.to_vec());
            from[axis] = k as usize;
            if k >= 0.0 && (k as usize) < x.shape[axis] { x.at(&from) } else { value }
        });
    }

    fn scatter(&mut self, x: &Plain, axis: usize) {
        let y = self.tile();
        let alike = y.shape.len() == x.shape.len()
            && (0..x.shape.len()).all(|a| a == axis || y.shape[a] == x.shape[a]);
        let y = if alike { y } else { x.clone() };
        let indices = self.indices(&y.shape);
        let add = self.choose(2) == 1;
        let op = if add { "scatter_add" } else { "scatter" };
        let mut result = x.values.clone();
        let position = |index: &[usize]| index.iter().zip(&x.shape).fold(0, |p, (i, e)| p * e + i);
        tabulate(&y.shape, |index| {
            let (k, mut to) = (indices.at(index), index.to_vec());
            if k >= 0.0 && (k as usize) < x.shape[axis] {
                to[axis] = k as usize;
                let place = &mut result[position(&to)];
                // Numbers of this test stay small enough to be exact, but for u8, which wraps.
                *place = if add { wrapped(self.dtype, *place + y.at(index)) } else { y.at(index) };
            }
            0.0
        });
        let body = format!("{op} {}, {}, {} axis {axis}", x.name, indices.name, y.name);
        self.define(&body, &x.shape, |index| result[position(index)]);
    }
}

fn wrapped(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::U8 => value.rem_euclid(256.0),
        DType::I32 => f64::from(value as i64 as i32),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

/// A kernel of one block, its argument, and what it gives.
fn program(tape: &[u8], dtype: DType, shape: &[usize], ops: usize) -> (String, Array, Array) {
    let x = sample(dtype, shape, 1);
    let values = (0..x.len()).map(|i| x.get_f64(i)).collect();
    let mut writer = Writer { tape: tape.iter(), text: String::new(), tiles: Vec::new(), names: 0, dtype };
    writer.tiles.push(Plain { name: "%x0".to_owned(), shape: shape.to_vec(), values });
    for _ in 0..ops {
        writer.op();
    }
    let last = writer.tiles.last().expect("the argument is a tile").clone();
    let extents = |shape: &[usize]| shape.iter().map(|e| format!("{e} x ")).collect::<String>();
    let (from, to) = (extents(shape), extents(&last.shape));
    let zeros = vec!["%zero"; shape.len()].join(", ");
    let source = format!(
        "kernel @moved(%x: tensor<{from}{dtype}>, %y: mut tensor<{to}{dtype}>) {{
  %vx = partition %x {shape:?} : partition<{from}{dtype}, {shape:?}>
  %vy = partition %y {result:?} : mut partition<{to}{dtype}, {result:?}>
  %zero = constant 0 : index
  %pad = constant {pad} : {dtype}
  %x0 = load_masked %vx[{zeros}] pad %pad : tile<{from}{dtype}>
{text}  store_masked %vy, {name}
}}
",
        result = last.shape,
        pad = if dtype.is_float() { "0.0" } else { "0" },
        text = writer.text,
        name = last.name,
    );
    let elements = if dtype.is_float() {
        Elements::Float(last.values)
    } else {
        Elements::Int(last.values.iter().map(|&value| value as i128).collect())
    };
    (source, x, Array::new(dtype, last.shape, elements))
}

fn check(source: &str, x: &Array, expected: &Array) {
    let instance = instance(source, &[]);
    let blank = sample(expected.dtype(), expected.shape(), 9);
    let arguments = [x.clone(), blank];
    let mut evaluated = arguments.to_vec();
    interp::run(&instance, &mut evaluated).unwrap();
    close(&evaluated[1], expected, 0.0, &format!("the evaluator:\n{source}"));
    let native = run_native(&instance, &arguments, &Options::default());
    close(&native[1], expected, 0.0, &format!("cpu:\n{source}"));
    for threads in [None, Some(4)] {
        let simt = run_simt(&instance, &arguments, threads);
        close(&simt[1], expected, 0.0, &format!("{threads:?} threads:\n{source}"));
    }
}

fn extents() -> impl Strategy<Value = Vec<usize>> {
    let extent = || prop_oneof![4 => 1usize..=9, 1 => Just(16usize), 1 => 30usize..=40];
    prop_oneof![
        1 => prop::collection::vec(1usize..=300, 1),
        3 => prop::collection::vec(extent(), 2),
        1 => prop::collection::vec(1usize..=6, 3),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    #[test]
    fn random_chains_agree_with_plain_loops(
        tape in prop::collection::vec(any::<u8>(), 0..160),
        dtype in prop::sample::select(&[DType::I32, DType::F32, DType::U8, DType::F64]),
        shape in extents(),
        ops in 1usize..10,
    ) {
        let (source, x, expected) = program(&tape, dtype, &shape, ops);
        check(&source, &x, &expected);
    }
}

/// One op between the argument and the result.
fn single(dtype: DType, body: &str, from: &[usize], to: &[usize]) -> String {
    let extents = |shape: &[usize]| shape.iter().map(|e| format!("{e} x ")).collect::<String>();
    let (f, t) = (extents(from), extents(to));
    let zeros = vec!["%zero"; from.len()].join(", ");
    let pad = match dtype {
        DType::Bool => "false",
        dtype if dtype.is_float() => "0.0",
        _ => "0",
    };
    format!(
        "kernel @single(%x: tensor<{f}{dtype}>, %y: mut tensor<{t}{dtype}>) {{
  %vx = partition %x {from:?} : partition<{f}{dtype}, {from:?}>
  %vy = partition %y {to:?} : mut partition<{t}{dtype}, {to:?}>
  %zero = constant 0 : index
  %pad = constant {pad} : {dtype}
  %a = load_masked %vx[{zeros}] pad %pad : tile<{f}{dtype}>
  %i = iota 0 : tile<{f}i64>
  %r = {body} : tile<{t}{dtype}>
  store_masked %vy, %r
}}
"
    )
}

const SINGLES: &[(&str, [usize; 2], [usize; 2])] = &[
    ("extract %a [1, 2]", [40, 50], [33, 48]),
    ("insert %a, %a [0, 0]", [16, 16], [16, 16]),
    ("cat %a, %a, %a axis 0", [8, 128], [24, 128]),
    ("cat %a, %a axis 1", [5, 7], [5, 14]),
    // Pieces that take turns in memory.
    ("cat %a, %a, %a axis 1", [40, 1], [40, 3]),
    ("roll %a axis 1 by 4", [9, 8], [9, 8]),
    ("shift %a, %pad axis 1 by 3", [9, 6], [9, 6]),
    ("pad %a, %pad [1, 0] [3, 5]", [9, 20], [13, 25]),
    ("flip %a axis 1", [16, 33], [16, 33]),
    ("roll %a axis 0 by -3", [16, 33], [16, 33]),
    ("shift %a, %pad axis 1 by 2", [16, 33], [16, 33]),
    ("repeat %a [2, 3]", [7, 9], [14, 27]),
    ("gather %a, %i, %pad axis 0", [16, 33], [16, 33]),
    ("scatter %a, %i, %a axis 0", [16, 33], [16, 33]),
    ("scatter_add %a, %i, %a axis 1", [16, 33], [16, 33]),
    // More than 64 slots per thread.
    ("roll %a axis 1 by 1", [150, 150], [150, 150]),
    ("extract %a [1, 0]", [151, 150], [150, 150]),
    ("cat %a, %a axis 0", [70, 150], [140, 150]),
    ("gather %a, %i, %pad axis 1", [120, 150], [120, 150]),
];

#[test]
fn every_op_of_every_format_on_cpu_and_threads() {
    // Formats of one width move in one way, and `golden` has them all; additions are each format's own.
    let moved = [DType::Bool, DType::I8, DType::BF16, DType::F32, DType::U64];
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_element()) {
        for (body, from, to) in SINGLES {
            let takes = match body.starts_with("scatter_add") {
                true => Domain::Number.accepts(dtype),
                false => moved.contains(&dtype),
            };
            if !takes {
                continue;
            }
            let instance = instance(&single(dtype, body, from, to), &[]);
            let arguments = [sample(dtype, from, 1), sample(dtype, to, 2)];
            let mut expected = arguments.to_vec();
            interp::run(&instance, &mut expected).unwrap();
            let native = run_native(&instance, &arguments, &Options::default());
            close(&native[1], &expected[1], 0.0, &format!("cpu: {dtype} {body}"));
            let simt = run_simt(&instance, &arguments, None);
            close(&simt[1], &expected[1], 0.0, &format!("threads: {dtype} {body}"));
        }
    }
}

#[test]
fn every_op_compiles_for_every_gpu() {
    for (dtype, target) in [
        (DType::F32, "sm_80"),
        (DType::BF16, "sm_90a"),
        (DType::F64, "gfx942"),
        (DType::U8, "gfx1100"),
        (DType::Bool, "sm_80"),
        (DType::F16, "sm_100a"),
        (DType::F32, "gfx90a"),
        (DType::BF16, "gfx950"),
        (DType::I32, "gfx1201"),
    ] {
        for (body, from, to) in SINGLES {
            if dtype == DType::Bool && body.starts_with("scatter_add")
                || from[1] == 150 && target.starts_with('g')
            {
                continue;
            }
            let instance = instance(&single(dtype, body, from, to), &[]);
            check_for(&instance, &[target]);
        }
    }
}

/// Carried tiles that are moved, put into each other and change places: shared memory and scratch memory are
/// written again in every iteration.
#[test]
fn moved_tiles_in_loops() {
    let source = "\
kernel @loops<M, N>(%x: tensor<m x n x i32>, %y: mut tensor<m x n x i32>) {
  %vx = partition %x [M, N] : partition<m x n x i32, [M, N]>
  %vy = partition %y [M, N] : mut partition<m x n x i32, [M, N]>
  %i, %j = block_index %vy : index, index
  %pad = constant 3 : i32
  %a = load_masked %vx[%i, %j] pad %pad : tile<M x N x i32>
  %b = load_masked %vy pad %pad : tile<M x N x i32>
  %rows = iota 0 : tile<M x N x i32>
  %0 = constant 0 : index
  %5 = constant 5 : index
  %c, %d = for %k = %0 to %5 carry (%p = %a, %q = %b) : tile<M x N x i32>, tile<M x N x i32> {
    %r = roll %p axis 1 by -3 : tile<M x N x i32>
    %n = neg %q : tile<M x N x i32>
    %e = extract %n [1, 2] : tile<M - 1 x N - 2 x i32>
    %s = insert %r, %e [0, 1] : tile<M x N x i32>
    %t = add %s, %p : tile<M x N x i32>
    %u = scatter_add %t, %rows, %n axis 0 : tile<M x N x i32>
    %f = flip %rows axis 0 : tile<M x N x i32>
    %g = gather %u, %f, %pad axis 0 : tile<M x N x i32>
    yield %q, %g
  }
  %h = shift %c, %pad axis 0 by 1 : tile<M x N x i32>
  %z = sub %h, %d : tile<M x N x i32>
  store_masked %vy, %z
}
";
    for (m, n) in [(4, 8), (7, 9), (3, 130), (16, 64)] {
        let instance = instance(source, &[("M", m), ("N", n)]);
        let arguments = [sample(DType::I32, &[10, 70], 1), sample(DType::I32, &[10, 70], 2)];
        let mut expected = arguments.to_vec();
        interp::run(&instance, &mut expected).unwrap();
        assert_eq!(run_native(&instance, &arguments, &Options::default())[1], expected[1], "cpu {m} {n}");
        for threads in [None, Some(32), Some(4)] {
            assert_eq!(run_simt(&instance, &arguments, threads)[1], expected[1], "{threads:?} {m} {n}");
        }
    }
}

/// Elements that go to one place are added one after the other, also where a row of them is as long as a vector.
#[test]
fn what_goes_to_one_place_is_added_in_order() {
    for columns in [4, 8, 16] {
        let shape = [2, columns];
        let source = single(DType::F32, "scatter_add %a, %i, %a axis 1", &shape, &shape);
        // Small numbers that are lost beside large ones, unless these have gone.
        let values: Vec<f32> = (0..2 * columns).map(|i| [1e8, 1.0, -1e8, 3.0][i % 4]).collect();
        let mut expected = values.clone();
        for (row, values) in values.chunks(columns).enumerate() {
            values.iter().for_each(|value| expected[row * columns + row] += value);
        }
        let array = |values: Vec<f32>| {
            Array::new(
                DType::F32,
                shape.to_vec(),
                Elements::Float(values.into_iter().map(f64::from).collect()),
            )
        };
        check(&source, &array(values), &array(expected));
    }
}

/// `philox` bit by bit: numbers of 64 bits don't survive a comparison as floats.
#[test]
fn random_words_are_the_same_bits_everywhere() {
    let source = "\
kernel @words(%seed: u64, %x: tensor<n x u64>, %y: mut tensor<n x u64>) {
  %vx = partition %x [128] : partition<n x u64, [128]>
  %vy = partition %y [128] : mut partition<n x u64, [128]>
  %i = block_index %vy : index
  %pad = constant 0 : u64
  %a = load_masked %vx[%i] pad %pad : tile<128 x u64>
  %s = splat %seed : tile<128 x u64>
  %r = philox %a, %s : tile<128 x u64>
  store_masked %vy, %r
}
";
    let positions: Vec<i128> =
        (0..200u64).map(|i| i128::from(i.wrapping_mul(0x0123_4567_89ab_cdef))).collect();
    let n = positions.len();
    let instance = instance(source, &[]);
    let seed = 0xfedc_ba98_7654_3210u64;
    let arguments = [
        Array::scalar(DType::U64, tile_ir::ops::Literal::Int(i128::from(seed))),
        Array::new(DType::U64, vec![n], Elements::Int(positions)),
        sample(DType::U64, &[n], 1),
    ];
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    assert_eq!(run_native(&instance, &arguments, &Options::default())[2], expected[2]);
    assert_eq!(run_simt(&instance, &arguments, None)[2], expected[2]);
    assert_eq!(Array::from_bytes(DType::U64, &[n], &expected[2].to_bytes()), expected[2]);
}
