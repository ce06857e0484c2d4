//! Arguments that aren't dense: native code and code of both vendors' GPUs on the host, on memory in which other elements
//! lie between a tensor's, against the evaluator on dense arrays. What lies between stays as it is.

use crate::fenced::Fence;
use crate::kernels::{elementwise, matmul, reduction};
use crate::lines::kernel;
use crate::support::{Memory, Native, close, compile_simt, instance, sample, taken};
use tile_codegen::{Options, compile};
use tile_ir::abi::{KernelAbi, Sharing};
use tile_ir::array::{Elements, round_float};
use tile_ir::ops::{Literal, ReduceOp};
use tile_ir::specialize::specialize_for;
use tile_ir::text::print;
use tile_ir::view::argument::{Strides, canonical};
use tile_ir::view::{ArgumentLayout, GivenTensor};
use tile_ir::{Array, DType, Instance, TargetDesc, VerifiedKernel, interp};

/// What lies between a tensor's elements: a number that no kernel here gives, or one near it that the format has.
fn between(dtype: DType) -> Literal {
    match dtype {
        DType::Bool => Literal::Int(1),
        dtype if dtype.is_float() => Literal::Float(round_float(dtype, 77.0)),
        _ => Literal::Int(77),
    }
}

/// How a tensor lies: strides, and elements before the one that lies first; without strides it is row-major.
#[derive(Clone, Copy)]
struct Lies(&'static [i64], usize);

const DENSE: Lies = Lies(&[], 0);

/// A tensor's memory.
pub(crate) struct Laid {
    extents: Vec<usize>,
    strides: Option<Strides>,
    offset: usize,
    pub(crate) memory: Array,
}

impl Laid {
    fn of(array: &Array, lies: Lies) -> Laid {
        Laid::placed(array, (!lies.0.is_empty()).then_some(lies.0), lies.1)
    }

    /// An array with these strides, or row-major, so many elements behind the address that kernels are given.
    pub(crate) fn placed(array: &Array, strides: Option<&[i64]>, offset: usize) -> Laid {
        let extents = array.shape().to_vec();
        let strides = strides.map(|strides| canonical(&extents, strides));
        let mut laid = Laid { extents, strides, offset, memory: array.clone() };
        let count = laid.positions().iter().max().map_or(0, |most| most + 1);
        laid.memory = Array::full(array.dtype(), &[count], between(array.dtype()));
        laid.memory = laid.holding(array);
        laid
    }

    pub(crate) fn given(&self) -> GivenTensor<'_> {
        GivenTensor { extents: &self.extents, strides: self.strides.as_deref(), offset: self.offset }
    }

    /// The strides, counted in elements, also of a row-major tensor.
    pub(crate) fn strides_or_dense(&self) -> Vec<i64> {
        let mut row_major = vec![1i64; self.extents.len()];
        for axis in (1..row_major.len()).rev() {
            row_major[axis - 1] = row_major[axis] * self.extents[axis] as i64;
        }
        self.strides.as_deref().map_or(row_major, <[i64]>::to_vec)
    }

    /// Where the element with index 0 everywhere lies.
    pub(crate) fn first(&self) -> i64 {
        let strides = self.strides_or_dense();
        let axes = strides.iter().zip(&self.extents);
        let lowest: i64 = axes.map(|(stride, &extent)| stride.min(&0) * (extent as i64 - 1)).sum();
        self.offset as i64 - lowest
    }

    /// The memory with other elements.
    pub(crate) fn holding(&self, array: &Array) -> Array {
        let mut memory = self.memory.clone();
        let positions = self.positions();
        memory.write(array, |index| Some(positions[tile_layout::linear_index(index, array.shape())]));
        memory
    }

    /// Where each element lies, in row-major order: plain sums.
    fn positions(&self) -> Vec<usize> {
        let mut positions = vec![self.first()];
        for (stride, &extent) in self.strides_or_dense().iter().zip(&self.extents) {
            let along = |&position: &i64| (0..extent as i64).map(move |i| position + i * stride);
            positions = positions.iter().flat_map(along).collect();
        }
        positions.into_iter().map(|position| position as usize).collect()
    }

    /// The elements of a memory that is laid out like this; what lies between must be as it was.
    pub(crate) fn read(&self, memory: &Array, what: &str) -> Array {
        let positions = self.positions();
        let mut is_element = vec![false; memory.len()];
        positions.iter().for_each(|&position| is_element[position] = true);
        for i in (0..memory.len()).filter(|&i| !is_element[i]) {
            assert_eq!(memory.get(i), between(memory.dtype()), "word {i} between the elements in {what}");
        }
        let literal = |&position: &usize| memory.get(position);
        let elements = match self.memory.dtype().is_float() {
            true => Elements::Float(positions.iter().map(|&position| memory.get_f64(position)).collect()),
            false => Elements::Int(positions.iter().map(literal).map(whole).collect()),
        };
        Array::new(self.memory.dtype(), self.extents.clone(), elements)
    }
}

fn whole(literal: Literal) -> i128 {
    match literal {
        Literal::Int(value) => value,
        other => panic!("{other:?} is no integer"),
    }
}

/// The instance of a kernel for these arguments.
fn made_for(source: &str, constants: &[(&str, usize)], laid: &[Laid]) -> Instance {
    let kernel = VerifiedKernel::parse(source).unwrap();
    let bindings = instance(source, constants).bindings().clone();
    let layout = |(number, laid): (usize, &Laid)| Some((number, ArgumentLayout::of(&laid.given())?));
    let layouts: Vec<_> = laid.iter().enumerate().filter_map(layout).collect();
    let made = specialize_for(&kernel, &bindings, &layouts).unwrap_or_else(|error| panic!("{error}"));
    // The text says everything.
    let text = print(&made);
    assert_eq!(print(&VerifiedKernel::parse(&text).unwrap()), text);
    made
}

fn agree(source: &str, constants: &[(&str, usize)], arguments: &[Array], lies: &[Lies], tolerance: f64) {
    let mut expected = arguments.to_vec();
    interp::run(&instance(source, constants), &mut expected).unwrap();
    let laid: Vec<Laid> = arguments.iter().zip(lies).map(|(array, &lies)| Laid::of(array, lies)).collect();
    let instance = made_for(source, constants, &laid);
    let given: Vec<GivenTensor<'_>> = laid.iter().map(Laid::given).collect();
    let memories: Vec<Array> = laid.iter().map(|laid| laid.memory.clone()).collect();
    let check = |what: &str, found: &[Array]| {
        let what = format!("{what} of\n{}", print(&instance));
        for (number, ((found, laid), expected)) in found.iter().zip(&laid).zip(&expected).enumerate() {
            close(&laid.read(found, &what), expected, tolerance, &format!("argument {number} in {what}"));
        }
    };
    let mut evaluated = memories.clone();
    interp::run_tensors(&instance, &mut evaluated, &given, Sharing::default()).unwrap();
    check("the evaluator", &evaluated);
    let memory = |fence| Memory::laid_out(&instance, &memories, &given, Sharing::default(), fence);
    let native = Native::of(&instance, &Options::default());
    for memory in Fence::BOTH.map(memory) {
        native.run(&memory);
        check("cpu", &memory.arrays(&memories));
    }
    let gpus =
        [("sm_90a", None), ("sm_80", Some(32)), ("gfx942", None), ("gfx942", Some(64)), ("gfx1100", None)];
    for (name, threads) in gpus {
        let (memory, target) = (memory(Fence::Before), TargetDesc::named(name).unwrap());
        // Of the variant that a launch takes, and of the one that relies on nothing.
        for variant in [taken(&instance, target, &memory.bound), instance.clone()] {
            let kernel = compile_simt(&variant, target, threads);
            let mut found = memories.clone();
            let outcome = kernel.run_tensors(&mut found, &given, Default::default());
            outcome.unwrap_or_else(|error| panic!("{error} on {name} of\n{}", print(&variant)));
            check(name, &found);
        }
    }
}

/// `y = 2x + 1` in tiles with ragged edges, of any rank.
fn affine(dtype: &str, names: &[&str], tile: &[usize]) -> String {
    let list = |items: Vec<String>, between: &str| items.join(between);
    let extents = names.join(" x ");
    let tiles = list(tile.iter().map(usize::to_string).collect(), ", ");
    let shape = tiles.replace(", ", " x ");
    let index = list((0..tile.len()).map(|axis| format!("%i{axis}")).collect(), ", ");
    let types = vec!["index"; tile.len()].join(", ");
    format!(
        "kernel @affine(%x: tensor<{extents} x {dtype}>, %y: mut tensor<{extents} x {dtype}>) {{
  %vx = partition %x [{tiles}] : partition<{extents} x {dtype}, [{tiles}]>
  %vy = partition %y [{tiles}] : mut partition<{extents} x {dtype}, [{tiles}]>
  {index} = block_index %vy : {types}
  %pad = constant 0.0 : {dtype}
  %t = load_masked %vx[{index}] pad %pad : tile<{shape} x {dtype}>
  %one = constant 1.0 : {dtype}
  %ones = splat %one : tile<{shape} x {dtype}>
  %twice = add %t, %t : tile<{shape} x {dtype}>
  %u = add %twice, %ones : tile<{shape} x {dtype}>
  store_masked %vy, %u
}}
"
    )
}

#[test]
fn matrices_are_read_and_written_where_they_lie() {
    let ways: [Lies; 10] = [
        DENSE,
        Lies(&[], 3),
        Lies(&[1, 24], 0),
        Lies(&[40, 1], 0),
        Lies(&[41, 1], 1),
        Lies(&[68, 2], 0),
        Lies(&[-40, 1], 0),
        Lies(&[35, -1], 2),
        Lies(&[-1, 21], 0),
        Lies(&[3, 61], 2),
    ];
    let shape = [20, 33];
    let (x, y) = (sample(DType::F32, &shape, 1), sample(DType::F32, &shape, 2));
    let source = affine("f32", &["m", "n"], &[8, 16]);
    for lies in ways {
        agree(&source, &[], &[x.clone(), y.clone()], &[lies, DENSE], 0.0);
        agree(&source, &[], &[x.clone(), y.clone()], &[DENSE, lies], 0.0);
    }
}

/// Elements that are there once are read under many indices.
#[test]
fn repeated_elements_are_read_everywhere() {
    for (lies, along) in
        [(Lies(&[0, 1], 0), 1), (Lies(&[1, 0], 2), 0), (Lies(&[0, -3], 0), 1), (Lies(&[0, 0], 5), 2)]
    {
        let shape = [20, 32];
        let value = |i: usize| ([i / 32, i % 32, 0][along] % 9) as f64;
        let x = Array::new(DType::F32, shape.to_vec(), Elements::Float((0..640).map(value).collect()));
        agree(
            &affine("f32", &["m", "n"], &[8, 16]),
            &[],
            &[x, sample(DType::F32, &shape, 2)],
            &[lies, DENSE],
            0.0,
        );
    }
}

/// A matrix of `m` × `n` elements all of whose rows are the same, or all of whose columns.
fn repeated(dtype: DType, [m, n]: [usize; 2], axis: usize) -> Array {
    let value = |i: usize| round_float(dtype, ([i % n, i / n][axis] * 5 % 13) as f64 - 6.0);
    let values = (0..m * n).map(value);
    let elements = match dtype.is_float() {
        true => Elements::Float(values.collect()),
        false => Elements::Int(values.map(|x| x as i128).collect()),
    };
    Array::new(dtype, vec![m, n], elements)
}

/// One row that stands for all, one column for all: in tiles that Hopper's producers would copy of others, and in small ones.
#[test]
fn factors_of_repeated_rows_and_columns_are_multiplied() {
    for (turn, (dtype, sum, tiles)) in [
        (DType::BF16, DType::F32, [64, 64, 64]),
        (DType::F32, DType::F32, [16, 32, 16]),
        (DType::F16, DType::F32, [64, 128, 64]),
        (DType::I8, DType::I32, [64, 64, 64]),
    ]
    .into_iter()
    .enumerate()
    {
        let [m, n, k] = [[64, 128, 128], [35, 41, 50]][turn % 2];
        for (axis, lies) in [Lies(&[0, 1], 0), Lies(&[1, 0], 0)].into_iter().enumerate() {
            let tiles: Vec<_> = ["BM", "BN", "BK"].into_iter().zip(tiles).collect();
            let source = matmul(dtype.name(), sum.name());
            let (a, b, c) = (sample(dtype, &[m, k], 1), sample(dtype, &[k, n], 2), sample(sum, &[m, n], 3));
            let left = [repeated(dtype, [m, k], axis), b, c.clone()];
            agree(&source, &tiles, &left, &[lies, DENSE, DENSE], 0.0);
            let right = [a, repeated(dtype, [k, n], axis), c];
            agree(&source, &tiles, &right, &[DENSE, lies, DENSE], 0.0);
        }
    }
}

/// Lines of one element that is there once, or lines that are all one.
#[test]
fn lines_of_repeated_elements_are_reduced_scanned_and_sorted() {
    for (axis, lies) in [(0, Lies(&[0, 1], 0)), (1, Lies(&[1, 0], 3)), (0, Lies(&[0, 2], 1))] {
        let shape = [40, 70];
        let x = repeated(DType::F32, shape, axis);
        for along in 0..2 {
            let mut reduced = shape.to_vec();
            reduced[along] = 1;
            for op in [ReduceOp::Sum, ReduceOp::Max] {
                let arguments = [x.clone(), sample(DType::F32, &reduced, 5)];
                agree(&reduction(DType::F32, op, &shape, along), &[], &arguments, &[lies, DENSE], 0.0);
            }
            let whole = "tile<40 x 70 x f32>";
            let body = format!(
                "  %r0 = scan sum %a axis {along} : {whole}
  %r1, %r2 = sort %a axis {along} : {whole}, tile<40 x 70 x i32>"
            );
            let outputs = [DType::F32, DType::F32, DType::I32].map(|dtype| (dtype, &shape[..]));
            let written = outputs.iter().map(|&(dtype, shape)| sample(dtype, shape, 6));
            let arguments: Vec<Array> = [x.clone()].into_iter().chain(written).collect();
            agree(
                &kernel(DType::F32, &shape, &outputs, &body),
                &[],
                &arguments,
                &[lies, DENSE, DENSE, DENSE],
                0.0,
            );
        }
    }
}

#[test]
fn formats_ranks_and_axes_of_one_element() {
    let check = |dtype: DType, names: &[&str], tile: &[usize], shape: &[usize], lies: [Lies; 2]| {
        let source = affine(dtype.name(), names, tile);
        agree(&source, &[], &[sample(dtype, shape, 1), sample(dtype, shape, 2)], &lies, 0.0);
    };
    check(DType::F16, &["n"], &[16], &[50], [Lies(&[3], 1), Lies(&[2], 0)]);
    check(DType::F64, &["n"], &[16], &[48], [Lies(&[-1], 1), Lies(&[], 1)]);
    check(DType::BF16, &["m", "n"], &[8, 32], &[16, 64], [Lies(&[96, 1], 0), Lies(&[1, 24], 0)]);
    check(DType::F32, &["m", "n"], &[1, 16], &[1, 40], [Lies(&[7, 2], 0), Lies(&[0, 1], 1)]);
    check(DType::F32, &["m", "n"], &[16, 1], &[40, 1], [Lies(&[1, 5], 0), Lies(&[3, 0], 0)]);
    check(
        DType::F32,
        &["b", "m", "n"],
        &[1, 4, 8],
        &[3, 6, 16],
        [Lies(&[1, 3, 24], 0), Lies(&[160, 20, 1], 0)],
    );
    check(
        DType::F32,
        &["b", "m", "n"],
        &[2, 4, 8],
        &[3, 6, 10],
        [Lies(&[-200, 1, 7], 3), Lies(&[10, 40, -1], 0)],
    );
    check(DType::F32, &["m", "n"], &[4, 8], &[0, 8], [DENSE, DENSE]);
}

#[test]
fn products_of_factors_that_lie_otherwise() {
    let (shape, tiles) = ([35, 50, 41], [("BM", 16), ("BN", 32), ("BK", 16)]);
    let [m, n, k] = shape;
    for (dtype, lies) in [
        (DType::F32, [Lies(&[1, 35], 0), DENSE, DENSE]),
        (DType::BF16, [Lies(&[1, 40], 0), Lies(&[56, 1], 0), DENSE]),
        (DType::BF16, [Lies(&[48, 1], 0), Lies(&[1, 48], 0), Lies(&[1, 40], 0)]),
        (DType::F32, [Lies(&[-41, 1], 1), Lies(&[50, -1], 0), Lies(&[100, 2], 0)]),
        (DType::F16, [Lies(&[82, 2], 0), Lies(&[0, 0], 3), Lies(&[], 1)]),
    ] {
        let b = if lies[1].0 == [0, 0] {
            Array::full(dtype, &[k, n], Literal::Float(0.5))
        } else {
            sample(dtype, &[k, n], 2)
        };
        let arguments = [sample(dtype, &[m, k], 1), b, sample(DType::F32, &[m, n], 3)];
        agree(&matmul(dtype.name(), "f32"), &tiles, &arguments, &lies, 0.0);
    }
}

/// Hopper copies tiles of strided factors by tensor maps where their lines are aligned, and loads them where they aren't.
#[test]
fn aligned_factors_are_copied_by_tensor_maps() {
    let tiles = [("BM", 64), ("BN", 64), ("BK", 64)];
    let source = matmul("bf16", "f32");
    let maps = |lies: [Lies; 2]| {
        let arguments = [sample(DType::BF16, &[64, 128], 1), sample(DType::BF16, &[128, 64], 2)];
        let mut laid: Vec<Laid> =
            arguments.iter().zip(lies).map(|(array, lies)| Laid::of(array, lies)).collect();
        laid.push(Laid::of(&sample(DType::F32, &[64, 64], 3), DENSE));
        let instance = made_for(&source, &tiles, &laid);
        let given: Vec<GivenTensor<'_>> = laid.iter().map(Laid::given).collect();
        let bound = KernelAbi::of(&instance).bind_tensors(&given, &|_| None).unwrap();
        let target = TargetDesc::named("sm_90a").unwrap();
        let variant = taken(&instance, target, &bound);
        let artifact = compile(&variant, target, &Options::default()).unwrap();
        artifact
            .tensor_maps
            .iter()
            .filter(|map| map.argument < 2)
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let turned = maps([Lies(&[1, 64], 0), Lies(&[72, 1], 0)]);
    assert_eq!(
        turned,
        [
            "argument 0 : bf16 offset 0 [m stride 1 tile 64, k stride a.stride_1 tile 64] swizzle 128",
            "argument 1 : bf16 offset 0 [n stride 1 tile 64, k stride b.stride_0 tile 64] swizzle 128",
        ]
    );
    // Strides of 65 elements, a begin within 16 bytes, and elements that no line has.
    assert!(maps([Lies(&[1, 65], 0), Lies(&[72, 1], 0)]).is_empty());
    assert!(maps([Lies(&[1, 64], 1), Lies(&[72, 1], 0)]).iter().all(|map| map.starts_with("argument 1")));
    assert!(maps([Lies(&[256, 2], 0), Lies(&[72, 1], 0)]).iter().all(|map| map.starts_with("argument 1")));
    // What is copied is what is multiplied.
    for lies in [
        [Lies(&[1, 64], 0), Lies(&[72, 1], 0)],
        [Lies(&[136, 1], 0), Lies(&[1, 128], 0)],
        // Warpgroups take the left factor from registers where no copy brings it.
        [Lies(&[256, 2], 0), Lies(&[72, 1], 0)],
        [Lies(&[128, 1], 3), Lies(&[1, 128], 0)],
    ] {
        let arguments = [
            sample(DType::BF16, &[64, 128], 1),
            sample(DType::BF16, &[128, 64], 2),
            sample(DType::F32, &[64, 64], 3),
        ];
        agree(&source, &tiles, &arguments, &[lies[0], lies[1], DENSE], 0.0);
    }
}

#[test]
fn rows_of_stepped_slices_are_summed() {
    for (lies, result) in [
        (Lies(&[200, 2], 0), Lies(&[], 0)),
        (Lies(&[100, 1], 3), Lies(&[4, 1], 0)),
        (Lies(&[1, 8], 0), Lies(&[-2, 1], 1)),
    ] {
        for axis in [0, 1] {
            let mut reduced = vec![6, 100];
            reduced[axis] = 1;
            let arguments = [sample(DType::F32, &[6, 100], 4), sample(DType::F32, &reduced, 5)];
            let source = reduction(DType::F32, ReduceOp::Sum, &[6, 100], axis);
            agree(&source, &[], &arguments, &[lies, result], 1e-5);
        }
    }
}

/// Views in the kernel are views of what lies so.
#[test]
fn kernels_move_what_is_moved() {
    let source = "kernel @turned(%x: tensor<m x n x f32>, %y: mut tensor<n x m x f32>) {
  %t = view %x permute [1, 0] : tensor<n x m x f32, strided [1, n]>
  %f = view %t flip [0] : tensor<n x m x f32, strided [-1, n] offset n - 1>
  %vx = partition %f [8, 8] : partition<n x m x f32, strided [-1, n] offset n - 1, [8, 8]>
  %vy = partition %y [8, 8] : mut partition<n x m x f32, [8, 8]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %a = load_masked %vx[%i, %j] pad %pad : tile<8 x 8 x f32>
  store_masked %vy, %a
}
";
    for lies in [Lies(&[50, 1], 0), Lies(&[1, 22], 1), Lies(&[-45, 2], 0)] {
        let arguments = [sample(DType::F32, &[21, 20], 1), sample(DType::F32, &[20, 21], 2)];
        agree(source, &[], &arguments, &[lies, Lies(&[1, 24], 0)], 0.0);
    }
}

/// Code that is made for an aligned argument is wrong on one that begins elsewhere, which a check of every access shows: what
/// code must know of an argument is in its layout.
#[test]
fn code_for_aligned_arguments_is_objected_to_elsewhere() {
    let source = elementwise("f32", "f32", "add %a, %b");
    let kernel_of = |lies: Lies| {
        let vector = |seed| Laid::of(&sample(DType::F32, &[64], seed), DENSE);
        let laid = [Laid::of(&sample(DType::F32, &[64], 1), lies), vector(2), vector(3)];
        let instance = made_for(&source, &[("B", 64)], &laid);
        let given: Vec<GivenTensor<'_>> = laid.iter().map(Laid::given).collect();
        let target = TargetDesc::named("sm_80").unwrap();
        let bound = KernelAbi::of(&instance).bind_tensors(&given, &|_| None).unwrap();
        let kernel = compile_simt(&taken(&instance, target, &bound), target, Some(32));
        (kernel, laid.map(|laid| laid.memory))
    };
    let (dense, mut memories) = kernel_of(DENSE);
    let given = GivenTensor::dense(&[64]);
    dense.run_tensors(&mut memories, &[given; 3], Default::default()).unwrap();
    let (anywhere, mut memories) = kernel_of(Lies(&[], 1));
    let shifted = GivenTensor { offset: 1, ..given };
    anywhere.run_tensors(&mut memories, &[shifted, given, given], Default::default()).unwrap();
    // One element from a multiple of 16 bytes on, and called aligned.
    let mut words = [Aligned([1.0; 68]), Aligned([1.0; 68]), Aligned([1.0; 68])];
    let [x, w, y] = words.each_mut().map(|words| words.0.as_mut_ptr() as u64);
    // SAFETY: every argument has 64 words from its address on, and the size is theirs.
    let error = unsafe { dense.run(&[x + 4, w, y, 64], 1) }.unwrap_err().to_string();
    assert!(error.contains("relies on an alignment of"), "{error}");
}

/// Words that begin at a multiple of 16 bytes.
#[repr(align(16))]
struct Aligned([f32; 68]);
