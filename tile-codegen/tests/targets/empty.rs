//! Tensors with an extent of 0, everywhere a kernel runs: loops over them have no turn, what is loaded of them is the pad,
//! atomics find no element there, and products of them are what they began with. Each kernel runs with elements, too.

use crate::kernels::matmul;
use crate::support::{close, instance, run_everywhere, sample};
use tile_ir::array::Elements;
use tile_ir::{Array, DType};

fn floats(shape: &[usize], values: Vec<f64>) -> Array {
    Array::new(DType::F32, shape.to_vec(), Elements::Float(values))
}

fn integers(values: Vec<i128>) -> Array {
    Array::new(DType::I32, vec![values.len()], Elements::Int(values))
}

/// Whether every way leaves these in the arguments behind `read`.
fn check(source: &str, constants: &[(&str, usize)], arguments: &[Array], expected: &[Array]) {
    let instance = instance(source, constants);
    let read = arguments.len() - expected.len();
    for (way, found) in run_everywhere(&instance, arguments) {
        for (number, (found, expected)) in found[read..].iter().zip(expected).enumerate() {
            let sizes: Vec<&[usize]> = arguments.iter().map(Array::shape).collect();
            close(found, expected, 0.0, &format!("output {number} of {sizes:?} on {way} of\n{source}"));
        }
    }
}

/// Rows in tiles of 32 columns: their sums, by a reduction and by the end of a scan, and their largest elements.
const ROWS: &str = "\
kernel @rows(%x: tensor<m x n x f32>, %y: mut tensor<m x 1 x f32>, %w: mut tensor<m x 1 x f32>, %z: mut tensor<m x 1 x f32>) {
  %vx = partition %x [4, 32] : partition<m x n x f32, [4, 32]>
  %vy = partition %y [4, 1] : mut partition<m x 1 x f32, [4, 1]>
  %vw = partition %w [4, 1] : mut partition<m x 1 x f32, [4, 1]>
  %vz = partition %z [4, 1] : mut partition<m x 1 x f32, [4, 1]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : f32
  %low = constant -inf : f32
  %zeros = splat %zero : tile<4 x 1 x f32>
  %lows = splat %low : tile<4 x 1 x f32>
  %0 = constant 0 : index
  %1 = extent ceil_div(n, 32) : index
  %sum, %last, %most = for %p = %0 to %1 carry (%s = %zeros, %t = %zeros, %l = %lows) : tile<4 x 1 x f32>, tile<4 x 1 x f32>, tile<4 x 1 x f32> {
    %a = load_masked %vx[%i, %p] pad %zero : tile<4 x 32 x f32>
    %b = load_masked %vx[%i, %p] pad %low : tile<4 x 32 x f32>
    %part = reduce sum %a axis 1 : tile<4 x 1 x f32>
    %c = scan sum %a axis 1 : tile<4 x 32 x f32>
    %end = extract %c [0, 31] : tile<4 x 1 x f32>
    %m = reduce max %b axis 1 : tile<4 x 1 x f32>
    %s1 = add %s, %part : tile<4 x 1 x f32>
    %t1 = add %t, %end : tile<4 x 1 x f32>
    %l1 = max %l, %m : tile<4 x 1 x f32>
    yield %s1, %t1, %l1
  }
  store_masked %vy, %sum
  store_masked %vw, %last
  store_masked %vz, %most
}
";

#[test]
fn rows_without_elements_have_what_a_loop_begins_with() {
    for (m, n) in [(5, 0), (0, 40), (0, 0), (5, 70), (1, 1)] {
        let x = sample(DType::F32, &[m, n], 1);
        let row = |i: usize| (0..n).map(|j| x.get_f64(i * n + j)).collect::<Vec<f64>>();
        let of = |f: fn(Vec<f64>) -> f64| floats(&[m, 1], (0..m).map(|i| f(row(i))).collect());
        // The `sum` of nothing is −0.
        let sums = || of(|row| row.iter().fold(0.0, |sum, x| sum + x));
        let most = of(|row| row.into_iter().fold(f64::NEG_INFINITY, f64::max));
        let before = [2, 3, 4].map(|seed| sample(DType::F32, &[m, 1], seed));
        let arguments: Vec<Array> = [x.clone()].into_iter().chain(before).collect();
        check(ROWS, &[], &arguments, &[sums(), sums(), most]);
    }
}

/// What is loaded where a tensor has nothing, or not all of a tile: reduced, scanned, sorted and counted.
const TILE: &str = "\
kernel @tile(%x: tensor<m x n x f32>, %y: mut tensor<4 x 1 x f32>, %z: mut tensor<1 x 32 x f32>, %w: mut tensor<4 x 32 x f32>, %v: mut tensor<4 x 32 x f32>, %p: mut tensor<4 x 32 x i32>, %h: mut tensor<1 x 8 x i32>) {
  %vx = partition %x [4, 32] : partition<m x n x f32, [4, 32]>
  %vy = partition %y [4, 1] : mut partition<4 x 1 x f32, [4, 1]>
  %vz = partition %z [1, 32] : mut partition<1 x 32 x f32, [1, 32]>
  %vw = partition %w [4, 32] : mut partition<4 x 32 x f32, [4, 32]>
  %vv = partition %v [4, 32] : mut partition<4 x 32 x f32, [4, 32]>
  %vp = partition %p [4, 32] : mut partition<4 x 32 x i32, [4, 32]>
  %vh = partition %h [1, 8] : mut partition<1 x 8 x i32, [1, 8]>
  %0 = constant 0 : index
  %pad = constant 3.0 : f32
  %a = load_masked %vx[%0, %0] pad %pad : tile<4 x 32 x f32>
  %sum = reduce sum %a axis 1 : tile<4 x 1 x f32>
  %least = reduce min %a axis 0 : tile<1 x 32 x f32>
  %running = scan sum %a axis 1 : tile<4 x 32 x f32>
  %sorted, %places = sort %a axis 1 descending : tile<4 x 32 x f32>, tile<4 x 32 x i32>
  %whole = cast %a : tile<4 x 32 x i32>
  %bins = histogram %whole : tile<8 x i32>
  %counts = reshape %bins : tile<1 x 8 x i32>
  store_masked %vy, %sum
  store_masked %vz, %least
  store_masked %vw, %running
  store_masked %vv, %sorted
  store_masked %vp, %places
  store_masked %vh, %counts
}
";

#[test]
fn tiles_of_tensors_without_elements_are_the_pad() {
    for (m, n) in [(0, 0), (0, 32), (4, 0), (3, 20), (4, 32)] {
        let x = sample(DType::F32, &[m, n], 3);
        let rows: Vec<Vec<f64>> = (0..4)
            .map(|i| (0..32).map(|j| if i < m && j < n { x.get_f64(i * n + j) } else { 3.0 }).collect())
            .collect();
        let sums = rows.iter().map(|row| row.iter().sum()).collect();
        let least = (0..32).map(|j| rows.iter().map(|row| row[j]).fold(f64::INFINITY, f64::min)).collect();
        let running = rows.iter().flat_map(|row| (0..32).map(|j| row[..=j].iter().sum())).collect();
        let order = |row: &Vec<f64>| {
            let mut order: Vec<usize> = (0..32).collect();
            order.sort_by(|&i, &j| row[j].partial_cmp(&row[i]).unwrap());
            order
        };
        let sorted = rows.iter().flat_map(|row| order(row).into_iter().map(|i| row[i])).collect();
        let places = rows.iter().flat_map(|row| order(row).into_iter().map(|i| i as i128)).collect();
        let counted = |bin: i32| rows.iter().flatten().filter(|&&x| x as i32 == bin).count() as i128;
        let expected = [
            floats(&[4, 1], sums),
            floats(&[1, 32], least),
            floats(&[4, 32], running),
            floats(&[4, 32], sorted),
            Array::new(DType::I32, vec![4, 32], Elements::Int(places)),
            Array::new(DType::I32, vec![1, 8], Elements::Int((0..8).map(counted).collect())),
        ];
        let before = expected.iter().map(|array| sample(array.dtype(), array.shape(), 5));
        let arguments: Vec<Array> = [x.clone()].into_iter().chain(before).collect();
        check(TILE, &[], &arguments, &expected);
    }
}

/// Elements by their places, of a tensor and of it turned around within a border; and additions there.
const PLACES: &str = "\
kernel @places(%x: tensor<n x f32>, %at: tensor<k x i32>, %y: mut tensor<k x f32>, %z: mut tensor<k x f32>, %o: mut tensor<k x i32>, %c: mut tensor<n x i32>) {
  %b = view %x pad [(1, 2)] : tensor<n + 3 x f32, strided [1] offset -1 within [[(1, n + 1)]]>
  %vat = partition %at [16] : partition<k x i32, [16]>
  %vy = partition %y [16] : mut partition<k x f32, [16]>
  %vz = partition %z [16] : mut partition<k x f32, [16]>
  %vo = partition %o [16] : mut partition<k x i32, [16]>
  %i = block_index %vy : index
  %none = constant -1 : i32
  %one = constant 1 : i32
  %ones = splat %one : tile<16 x i32>
  %pad = constant 9.0 : f32
  %where = load_masked %vat[%i] pad %none : tile<16 x i32>
  %a = gather_load %x[%where] pad %pad : tile<16 x f32>
  %w = gather_load %b[%where] pad %pad : tile<16 x f32>
  %old = atomic add relaxed device %c[%where], %ones : tile<16 x i32>
  store_masked %vy, %a
  store_masked %vz, %w
  store_masked %vo, %old
}
";

#[test]
fn places_in_tensors_without_elements_are_outside() {
    for (n, k) in [(0, 20), (0, 0), (5, 0), (5, 20), (40, 20)] {
        let x = sample(DType::F32, &[n], 1);
        // Each place once, so that what was there before an addition is what was there at first.
        let places: Vec<i128> = (0..k as i128).map(|i| i * 7 % 23 - 2).collect();
        let element = |at: i128| {
            let at = usize::try_from(at).ok().filter(|&at| at < n);
            at.map_or(9.0, |at| x.get_f64(at))
        };
        let counts = sample(DType::I32, &[n], 2);
        let count =
            |at: i128| usize::try_from(at).ok().filter(|&at| at < n).map_or(0, |at| counts.get_int(at));
        let added =
            (0..n).map(|at| counts.get_int(at) + i128::from(places.contains(&(at as i128)))).collect();
        let expected = [
            floats(&[k], places.iter().map(|&at| element(at)).collect()),
            floats(&[k], places.iter().map(|&at| element(at - 1)).collect()),
            integers(places.iter().map(|&at| count(at)).collect()),
            integers(added),
        ];
        let [y, z] = [3, 4].map(|seed| sample(DType::F32, &[k], seed));
        let arguments = [x.clone(), integers(places), y, z, sample(DType::I32, &[k], 5), counts];
        check(PLACES, &[], &arguments, &expected);
    }
}

/// Tiles for each kind of matrix instruction, and those that Hopper's producers copy.
#[test]
fn products_without_elements_are_zero() {
    for (operand, sum, tiles) in [
        (DType::F32, DType::F32, [16, 32, 16]),
        (DType::BF16, DType::F32, [64, 64, 64]),
        (DType::F16, DType::F32, [16, 16, 16]),
        (DType::I8, DType::I32, [64, 128, 64]),
        (DType::F64, DType::F64, [16, 16, 8]),
    ] {
        for [m, n, k] in [[70, 40, 0], [0, 40, 24], [70, 0, 24], [0, 0, 0], [70, 64, 24]] {
            let [a, b] = [sample(operand, &[m, k], 1), sample(operand, &[k, n], 2)];
            let element = |i: usize| {
                let (row, column) = (i / n, i % n);
                (0..k).fold(0.0, |sum, p| sum + a.get_f64(row * k + p) * b.get_f64(p * n + column))
            };
            let product: Vec<f64> = (0..m * n).map(element).collect();
            let elements = match sum.is_float() {
                true => Elements::Float(product),
                false => Elements::Int(product.into_iter().map(|x| x as i128).collect()),
            };
            let expected = Array::new(sum, vec![m, n], elements);
            let tiles: Vec<(&str, usize)> = ["BM", "BN", "BK"].into_iter().zip(tiles).collect();
            let arguments = [a.clone(), b.clone(), sample(sum, &[m, n], 3)];
            check(&matmul(operand.name(), sum.name()), &tiles, &arguments, &[expected]);
        }
    }
}
