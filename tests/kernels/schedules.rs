//! Loops over the tiles of a persistent kernel: what may stand in them, and what a launch says of them.

use super::{Case, array, devices, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

/// C = A·B by blocks that share the tiles of C.
#[tile_kernel]
fn matmul_persistent<const BM: usize, const BN: usize, const BK: usize, const GROUP: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    for mut tile in c.tiles_persistent(Grouped(GROUP)) {
        let [i, j] = tile.index();
        let mut acc = Tile::zeros([BM, BN]);
        for p in 0..a.tiles(1) {
            acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
        }
        tile.store_masked(acc);
    }
}

#[test]
fn a_persistent_product_agrees_with_loops() {
    for [m, n, k] in [[1, 1, 1], [16, 8, 8], [67, 41, 29], [130, 9, 3]] {
        let (a, b) = (numbers::<bf16>(m * k, 1), numbers::<bf16>(k * n, 2));
        let (wide_a, wide_b) = (widen(&a), widen(&b));
        let element = |at: usize| (0..k).map(|p| wide_a[at / n * k + p] * wide_b[p * n + at % n]).sum();
        Case {
            ir: matmul_persistent::ir(),
            bindings: &[
                ("BM", Binding::Const(16)),
                ("BN", Binding::Const(8)),
                ("BK", Binding::Const(8)),
                ("GROUP", Binding::Const(3)),
            ],
            arguments: vec![array(&a, &[m, k]), array(&b, &[k, n]), array(&vec![0f32; m * n], &[m, n])],
            output: 2,
            expected: (0..m * n).map(element).collect(),
            tolerance: 1e-6,
            run: &|device| {
                let a = Tensor::from_slice(device, &a, [m, k])?;
                let b = Tensor::from_slice(device, &b, [k, n])?;
                let mut c = Tensor::zeros(device, [m, n])?;
                matmul_persistent::<16, 8, 8, 3>(&a, &b, &mut c).blocks(5).launch()?;
                Ok(widen(&c.to_vec()?))
            },
        }
        .check();
    }
}

/// Numbers the tiles of each block from 1 and skips those that begin with a negative number; what a block has
/// handled is carried from tile to tile.
#[tile_kernel]
fn counted<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut count = 0;
    let mut seen = Tile::zeros([B]);
    'tiles: for mut tile in y.tiles_persistent(RowMajor) {
        let own = x.load(tile.index());
        for i in 0..2 {
            if i == 1 && own.extract([0], [1]).item() < 0 {
                continue 'tiles;
            }
        }
        count += 1;
        seen += own;
        tile.store(seen * 10 + count);
    }
}

#[test]
fn values_are_carried_and_tiles_skipped() {
    let x: Vec<i32> = (0..22).map(|i| if i % 6 == 4 { -i } else { i }).collect();
    // The four blocks of the evaluators, and of a launch that says so, each with its own count and sum.
    let mut expected = vec![0; 22];
    for block in 0..4 {
        let (mut count, mut seen) = (0, [0; 2]);
        for tile in (block..11).step_by(4).filter(|tile| x[2 * tile] >= 0) {
            count += 1;
            for i in 0..2 {
                seen[i] += x[2 * tile + i];
                expected[2 * tile + i] = seen[i] * 10 + count;
            }
        }
    }
    Case {
        ir: counted::ir(),
        bindings: &[("B", Binding::Const(2))],
        arguments: vec![array(&x, &[22]), array(&[0; 22], &[22])],
        output: 1,
        expected: expected.into_iter().map(f64::from).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [22])?;
            let mut y = Tensor::<i32>::zeros(device, [22])?;
            counted::<2>(&x, &mut y).blocks(4).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

/// Sum and difference: the second output is used by its own name, where it means the tile of the loop.
#[tile_kernel]
fn sum_and_difference<const B: usize>(
    x: &Tensor<i32, m, n>,
    sum: &mut Tensor<i32, m, n>,
    difference: &mut Tensor<i32, m, n>,
) {
    let x = x.partition_view([B, B]);
    let mut difference = difference.partition_view_mut([B, B]);
    let mut sum = sum.partition_view_mut([B, B]);
    let two = Tile::full([B, B], 2);
    for mut tile in sum.tiles_persistent(Hilbert) {
        let own = x.load_masked(difference.index());
        tile.store_masked(tile.load_masked() + own);
        if block_id(0) < block_count(0) {
            difference.store_masked(difference.load_masked() - own * two);
        }
    }
}

#[test]
fn other_outputs_mean_the_tile_of_the_loop() {
    for (device, label) in devices() {
        let numbers: Vec<i32> = (0..7 * 9).collect();
        let x = Tensor::from_slice(&device, &numbers, [7, 9]).unwrap();
        let mut sum = Tensor::from_slice(&device, &[1; 63], [7, 9]).unwrap();
        let mut difference = Tensor::from_slice(&device, &[5; 63], [7, 9]).unwrap();
        sum_and_difference::<2>(&x, &mut sum, &mut difference).blocks(3).launch().unwrap();
        let expected = |f: fn(i32) -> i32| numbers.iter().map(|&x| f(x)).collect::<Vec<_>>();
        assert_eq!(sum.to_vec().unwrap(), expected(|x| 1 + x), "{label}");
        assert_eq!(difference.to_vec().unwrap(), expected(|x| 5 - 2 * x), "{label}");
    }
}

/// The number of the block that handles each tile, and of how many.
#[tile_kernel]
fn who<const B: usize>(y: &mut Tensor<i32, n>) {
    let mut y = y.partition_view_mut([B]);
    let blocks = block_count(0) as i32;
    for mut tile in y.tiles_persistent(RowMajor) {
        tile.store_masked(Tile::full([B], 100 * blocks + block_id(0) as i32));
    }
}

#[test]
fn blocks_know_their_number() {
    for (device, label) in devices() {
        let mut y = Tensor::<i32>::zeros(&device, [9]).unwrap();
        who::<2>(&mut y).blocks(2).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [200, 200, 201, 201, 200, 200, 201, 201, 200], "{label}");
    }
}

#[test]
fn a_launch_says_how_many_blocks() {
    let device = Device::reference();
    let mut y = Tensor::<i32>::zeros(&device, [90]).unwrap();
    assert_eq!(who::<2>(&mut y).grid().unwrap(), [4]);
    assert_eq!(who::<2>(&mut y).blocks(7).grid().unwrap(), [7]);
    assert_eq!(who::<2>(&mut y).first_tiles(3).grid().unwrap(), [3]);
    let refused = |launch: tile::Launch<'_>| launch.launch().unwrap_err().reason().to_string();
    assert_eq!(
        refused(who::<2>(&mut y).blocks(0)),
        "kernel `who`: `blocks(0)` leaves nobody to handle its tiles; give one block or more"
    );
    let x = Tensor::<f32>::zeros(&device, [4]).unwrap();
    let mut z = Tensor::<f32>::zeros(&device, [4]).unwrap();
    assert_eq!(
        refused(plain::<2>(&x, &mut z).blocks(3)),
        "kernel `plain`: `blocks` says how many blocks share the tiles of `tiles_persistent`, over which this kernel \
         has no loop; its grid has one block per tile"
    );
    assert_eq!(
        refused(plain::<2>(&x, &mut z).first_tiles(1)),
        "kernel `plain`: `first_tiles` counts the tiles of `tiles_persistent`, over which this kernel has no loop"
    );
}

#[tile_kernel]
fn plain<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()));
}

/// A block for each tile, whatever the target.
#[tile_kernel(grid = tiles)]
fn one_per_tile<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) + block_id(0) as f32 * 10.0);
}

#[test]
fn a_kernel_asks_for_a_block_per_tile() {
    assert!(one_per_tile::IR.contains(") grid tiles {"), "{}", one_per_tile::IR);
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1.0, 2.0, 3.0, 4.0, 5.0], [5]).unwrap();
        let mut y = Tensor::<f32>::zeros(&device, [5]).unwrap();
        assert_eq!(one_per_tile::<2>(&x, &mut y).grid().unwrap(), [3], "{label}");
        one_per_tile::<2>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0, 2.0, 13.0, 14.0, 25.0], "{label}");
    }
}

/// Says where it is; the log's slot comes after those of the schedule.
#[tile_kernel]
fn announce<const B: usize>(y: &mut Tensor<i32, n>) {
    let mut y = y.partition_view_mut([B]);
    for mut tile in y.tiles_persistent(RowMajor) {
        let [i] = tile.index();
        tile_println!("tile {i} of block {}", block_id(0));
        tile.store_masked(Tile::full([B], i as i32));
    }
}

#[test]
fn messages_come_from_tiles() {
    for (device, label) in devices() {
        let mut y = Tensor::<i32>::zeros(&device, [5]).unwrap();
        let mut lines = Vec::new();
        announce::<2>(&mut y).blocks(2).on_print(|line| lines.push(line.to_owned())).launch().unwrap();
        lines.sort_unstable();
        assert_eq!(lines, ["tile 0 of block 0", "tile 1 of block 1", "tile 2 of block 0"], "{label}");
        assert_eq!(y.to_vec().unwrap(), [0, 0, 1, 1, 2], "{label}");
    }
}
