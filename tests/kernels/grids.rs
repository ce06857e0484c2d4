//! Grids: where a block is, and how many there are.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::{check_exact, devices};
use tile::prelude::*;

/// What each block is called, in base 100.
#[tile_kernel]
fn places<const B: usize>(y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([B, 3]);
    let place = block_id(0) * 1_000_000 + block_id(1) * 10_000 + block_count(0) * 100 + block_count(1);
    y.store_masked(Tile::full([B, 3], place as f32));
}

#[test]
fn blocks_know_their_place() {
    let (m, n) = (5, 7);
    let expected: Vec<f32> = (0..m * n)
        .map(|at| {
            let (i, j) = (at / n / 2, at % n / 3);
            (i * 1_000_000 + j * 10_000 + 3 * 100 + 3) as f32
        })
        .collect();
    check_exact!(places<B = 2>() -> f32, [m, n] => expected);
}

/// Row `block_id` of x, which the grid is known to have.
#[tile_kernel]
fn rows(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, 4]);
    let mut y = y.partition_view_mut([1, 4]);
    y.store(x.load([block_id(0), block_id(1)]));
}

#[test]
fn a_block_id_is_bounded() {
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    check_exact!(rows<>(x: &values, [3, 8]) -> f32, [3, 8] => values.clone());
}

/// Counts the blocks along each axis: of the first, those that the longer of two tensors has tiles, up to six.
#[tile_kernel(grid = [m.div_ceil(B).max(n.div_ceil(B)).min(6), (m << 1) - n.min(m), (1 << 2) >> 1])]
fn longer<const B: usize>(x: &Tensor<f32, m>, y: &Tensor<f32, n>, counts: &mut Tensor<i32, 4>) {
    const WIDE: usize = B.max(8);
    let counts = counts.atomic_view();
    let (x, y) = (x.partition_view([B]), y.partition_view([B]));
    let i = block_id(0);
    let present = x.load_masked([i]) + y.load_masked([i]);
    if block_id(1) == 0 && block_id(2) == 0 {
        counts.fetch_add([0], 1, Relaxed, DeviceScope);
        counts.fetch_add([3], present.sum(0).item() as i32, Relaxed, DeviceScope);
    }
    if i == 0 && block_id(2) == 0 {
        counts.fetch_add([1], 1, Relaxed, DeviceScope);
    }
    counts.store([2], (block_count(2) + WIDE) as i32, Relaxed, DeviceScope);
}

#[test]
fn a_grid_has_the_arithmetic_of_sizes() {
    for (m, n) in [(5usize, 9usize), (9, 5), (40, 3)] {
        for (device, label) in super::devices() {
            let x = Tensor::from_slice(&device, &vec![1.0f32; m], [m]).unwrap();
            let y = Tensor::from_slice(&device, &vec![1.0f32; n], [n]).unwrap();
            let mut counts = Tensor::zeros(&device, [4]).unwrap();
            longer::<4>(&x, &y, &mut counts).launch().unwrap();
            let blocks = m.div_ceil(4).max(n.div_ceil(4)).min(6);
            let seen = (blocks * 4).min(m) + (blocks * 4).min(n);
            let expected = [blocks, 2 * m - n.min(m), 10, seen].map(|count| count as i32);
            assert_eq!(counts.to_vec().unwrap(), expected, "{label}: {m}, {n}");
        }
    }
}

/// An extent of an argument, and a condition, with the smaller of two sizes.
#[tile_kernel(where(m.min(n) >= 2))]
fn diagonal(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, { m.min(n) }>) {
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let place = Tile::<i64, 1>::iota([4], 0) + (i * 4) as i64;
    y.store_masked(x.gather([place, place]));
}

#[test]
fn extents_and_conditions_have_it_too() {
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        diagonal(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0, 5.0], "{label}");
        let mut long = Tensor::zeros(&device, [3]).unwrap();
        let message = diagonal(&x, &mut long).launch().unwrap_err().to_string();
        assert!(message.contains("m.min(n)"), "{message}");
        let column = Tensor::from_slice(&device, &[1.0f32, 2.0], [2, 1]).unwrap();
        let mut y = Tensor::zeros(&device, [1]).unwrap();
        let message = diagonal(&column, &mut y).launch().unwrap_err().to_string();
        assert!(message.contains("needs `m.min(n) >= 2`"), "{message}");
    }
}

/// A block for each pair of elements, which count themselves.
#[tile_kernel(grid = [m, n])]
fn pairs(x: &Tensor<f32, m>, y: &Tensor<f32, n>, count: &mut Tensor<i32, 1>) {
    let (x, y) = (x.partition_view([1]), y.partition_view([1]));
    let pair = x.load([block_id(0)]) + y.load([block_id(1)]);
    count.atomic_view().fetch_add([0], pair.sum(0).item() as i32, Relaxed, DeviceScope);
}

/// Tensors that repeat an element are as long as one likes, and grids of them may have more blocks than numbers count.
#[test]
fn a_grid_that_nobody_can_count_is_refused() {
    for (device, name) in super::devices() {
        let one = Tensor::from_slice(&device, &[1.0f32], [1]).unwrap();
        let mut count = Tensor::zeros(&device, [1]).unwrap();
        let long = one.expand([1i64 << 40]).unwrap();
        let error = pairs(&long, &long, &mut count).launch().unwrap_err();
        assert_eq!(
            error.reason().to_string(),
            "the grid of kernel `pairs` is [1099511627776, 1099511627776], more blocks than can be counted; launch it on \
             parts of its tensors",
            "{name}"
        );
        pairs(&one.expand([3]).unwrap(), &one.expand([2]).unwrap(), &mut count).launch().unwrap();
        assert_eq!(count.to_vec().unwrap(), [12], "{name}");
    }
}

/// How often numbers occur, counted by as many blocks as the launch says: each goes through its share of the tiles. Along
/// the second axis half of the numbers count.
#[tile_kernel(grid = [blocks, 2])]
fn counted_by<const B: usize>(x: &Tensor<i32, n>, blocks: usize, counts: &mut Tensor<i32, 6>) {
    let counts = counts.atomic_view();
    let x = x.partition_view([B]);
    let mut own = Tile::<i32, 1>::zeros([4]);
    for i in (block_id(0)..x.tiles(0)).step_by(blocks) {
        own += x.load_masked_or(-1, [i]).histogram(4);
    }
    let number = Tile::<i32, 1>::iota([4], 0);
    counts.fetch_add_masked(number / 2 == block_id(1) as i32, [number], own, Relaxed, DeviceScope);
    counts.fetch_add([4], (blocks * 10 + block_count(0)) as i32, Relaxed, DeviceScope);
}

/// The first elements, as many as the launch has blocks.
#[tile_kernel(grid = [blocks])]
fn sum_of_first(x: &Tensor<i32, n>, blocks: usize, sum: &mut Tensor<i32, 1>) {
    let first = x.partition_view([1]).load([block_id(0)]);
    sum.atomic_view().fetch_add([0], first.item(), Relaxed, DeviceScope);
}

#[test]
fn a_launch_says_how_many_blocks_there_are() {
    let x: Vec<i32> = (0..29).map(|i| i * i % 4 + i % 3 % 2).collect();
    let zeros = [0i32; 6];
    for blocks in [0usize, 1, 3, 12] {
        let mut expected = [0.0; 6];
        if blocks > 0 {
            x.iter().for_each(|&x| expected[x as usize] += 1.0);
            expected[4] = (2 * blocks * (blocks * 10 + blocks)) as f64;
        }
        let number = tile::ir::Array::new(
            tile::ir::DType::Index,
            Vec::new(),
            tile::ir::array::Elements::Int(vec![blocks as i128]),
        );
        let output = super::whole::Expected { elements: expected.to_vec(), tolerance: 0.0 };
        let arguments =
            vec![(super::array(&x, &[29]), None), (number, None), (super::array(&zeros, &[6]), Some(output))];
        super::whole::check(&counted_by::ir(), &[("B", tile::ir::Binding::Const(4))], arguments, &|device| {
            let x = Tensor::from_slice(device, &x, [29])?;
            let mut counts = Tensor::zeros(device, [6])?;
            counted_by::<4>(&x, blocks, &mut counts).launch()?;
            Ok(vec![super::widen(&counts.to_vec()?)])
        });
    }
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1, 2, 3], [3]).unwrap();
        let mut sum = Tensor::zeros(&device, [1]).unwrap();
        sum_of_first(&x, 2, &mut sum).launch().unwrap();
        assert_eq!(sum.to_vec().unwrap(), [3], "{label}");
        let message = sum_of_first(&x, 5, &mut sum).launch().unwrap_err().reason().to_string();
        assert!(
            message.contains("tile 4 of axis 0 ends at element 5, but the axis has 3 elements"),
            "{label}: {message}"
        );
        let message = sum_of_first(&x, usize::MAX, &mut sum).launch().unwrap_err().reason().to_string();
        assert!(
            message.starts_with("`blocks` of kernel `sum_of_first` is 18446744073709551615"),
            "{label}: {message}"
        );
    }
}

/// Two products that have nothing in common, by one launch: each output is as long as the longer one, and where that
/// isn't its own, nothing is written.
#[tile_kernel]
fn two_products<const B: usize>(
    a: &Tensor<f32, m1, k1>,
    b: &Tensor<f32, k1, n1>,
    c: &mut Tensor<f32, m1, n1>,
    d: &Tensor<f32, m2, k2>,
    e: &Tensor<f32, k2, n2>,
    f: &mut Tensor<f32, m2, n2>,
) {
    let mut c = c.pad([(0, m1.max(m2) - m1), (0, n1.max(n2) - n1)]).partition_view_mut([B, B]);
    let mut f = f.pad([(0, m2.max(m1) - m2), (0, n2.max(n1) - n2)]).partition_view_mut([B, B]);
    let [i, j] = c.index();
    let (a, b) = (a.partition_view([B, B]), b.partition_view([B, B]));
    if i * B < m1 && j * B < n1 {
        let mut acc = Tile::zeros([B, B]);
        for p in 0..a.tiles(1) {
            acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
        }
        c.store_masked(acc);
    }
    let (d, e) = (d.partition_view([B, B]), e.partition_view([B, B]));
    if i * B < m2 && j * B < n2 {
        let mut acc = Tile::zeros([B, B]);
        for p in 0..d.tiles(1) {
            acc = mma(d.load_masked([i, p]), e.load_masked([p, j]), acc);
        }
        f.store_masked(acc);
    }
}

/// The same without a margin.
#[tile_kernel]
fn two_copies(x: &Tensor<f32, m>, y: &mut Tensor<f32, m>, z: &Tensor<f32, n>, w: &mut Tensor<f32, n>) {
    let (mut y, mut w) = (y.partition_view_mut([4]), w.partition_view_mut([4]));
    let (x, z) = (x.partition_view([4]), z.partition_view([4]));
    y.store_masked(x.load_masked(y.index()));
    w.store_masked(z.load_masked(w.index()));
}

#[test]
fn outputs_of_different_sizes_are_padded_to_one_grid() {
    let product = |a: &[f32], b: &[f32], [m, k, n]: [usize; 3]| -> Vec<f32> {
        let sum = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| sum(i, j)).collect()
    };
    let small = |count: usize| -> Vec<f32> { (0..count).map(|i| (i * 7 % 5) as f32 - 2.0).collect() };
    for (device, label) in devices() {
        for (first, second) in [([9, 5, 3], [4, 7, 13]), ([2, 3, 4], [11, 1, 9])] {
            let given = [first, second].map(|[m, k, n]| [small(m * k), small(k * n)]);
            let tensor = |values: &[f32], shape| Tensor::from_slice(&device, values, shape).unwrap();
            let [[a, b], [d, e]] = &given;
            let [m1, k1, n1] = first;
            let [m2, k2, n2] = second;
            let (a, b) = (tensor(a, [m1, k1]), tensor(b, [k1, n1]));
            let (d, e) = (tensor(d, [m2, k2]), tensor(e, [k2, n2]));
            let mut c = Tensor::zeros(&device, [m1, n1]).unwrap();
            let mut f = Tensor::zeros(&device, [m2, n2]).unwrap();
            two_products::<4>(&a, &b, &mut c, &d, &e, &mut f).launch().unwrap();
            assert_eq!(c.to_vec().unwrap(), product(&given[0][0], &given[0][1], first), "{label}");
            assert_eq!(f.to_vec().unwrap(), product(&given[1][0], &given[1][1], second), "{label}");
        }
        let zeros = |count| Tensor::<f32>::zeros(&device, [count]).unwrap();
        let (x, mut y, z, mut w) = (zeros(9), zeros(9), zeros(20), zeros(20));
        let error = two_copies(&x, &mut y, &z, &mut w).launch().unwrap_err().to_string();
        let told = "the outputs of `two_copies` need different grids, and a block owns one tile of each: `y` has [3] tiles \
                    and `w` has [5]; choose tile extents that give equal counts, or, where outputs have sizes of their own, \
                    launch the kernel once for each, or pad the shorter axes to the longer ones in front of \
                    `partition_view_mut`: `y.pad([(0, m.max(n) - m)])`, where stores beyond `m` write nothing";
        assert!(error.contains(told), "{label}: {error}");
    }
}
