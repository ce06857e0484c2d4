//! Orders against their definitions, and launches that share tiles.

use super::*;
use crate::abi::{KernelAbi, Sharing};
use crate::{Array, DType, Instance, VerifiedKernel, interp, ops::Literal, specialize};
use std::collections::HashSet;
use tile_test_edit::Edit;

const ORDERS: [TileOrder; 7] = [
    TileOrder::RowMajor,
    TileOrder::Grouped(1),
    TileOrder::Grouped(2),
    TileOrder::Grouped(3),
    TileOrder::Grouped(8),
    TileOrder::Grouped(usize::MAX),
    TileOrder::Hilbert,
];

/// Those that are defined for any rank.
const FALLING: [TileOrder; 4] =
    [TileOrder::Falling(0), TileOrder::Falling(1), TileOrder::Falling(2), TileOrder::Falling(3)];

fn indices(order: TileOrder, extents: &[usize]) -> Vec<Vec<usize>> {
    (0..extents.iter().product()).map(|number| order.index_of(extents, number)).collect()
}

fn check_bijection(extents: &[usize]) {
    for order in ORDERS.into_iter().chain(FALLING.into_iter().take(extents.len())) {
        let indices = indices(order, extents);
        for index in &indices {
            assert_eq!(index.len(), extents.len());
            assert!(
                index.iter().zip(extents).all(|(i, extent)| i < extent),
                "{order:?} {extents:?}: {index:?}"
            );
        }
        let distinct: HashSet<_> = indices.iter().collect();
        assert_eq!(distinct.len(), indices.len(), "{order:?} of {extents:?} visits a tile twice");
    }
}

#[test]
fn every_order_is_a_bijection() {
    for m in 0..=12 {
        check_bijection(&[m]);
        for n in 0..=12 {
            check_bijection(&[m, n]);
            for k in 0..=7 {
                check_bijection(&[m, n, k]);
            }
        }
    }
    for extents in [&[1000][..], &[257, 129], &[1, 500], &[500, 1], &[64, 64], &[3, 100, 37], &[2, 2, 3, 5]] {
        check_bijection(extents);
    }
}

#[test]
fn row_major_and_rank_1_count_the_last_axis_fastest() {
    let expected: Vec<Vec<usize>> =
        (0..24).map(|number| vec![number / 12, number / 4 % 3, number % 4]).collect();
    assert_eq!(indices(TileOrder::RowMajor, &[2, 3, 4]), expected);
    for order in ORDERS {
        assert_eq!(indices(order, &[5]), [[0], [1], [2], [3], [4]]);
    }
}

#[test]
fn leading_axes_count_row_major_outside_of_planes() {
    for order in ORDERS {
        let planes = indices(order, &[2, 3, 5, 4]);
        let plane = indices(order, &[5, 4]);
        for (number, index) in planes.iter().enumerate() {
            assert_eq!(index[..2], [number / 60, number / 20 % 3], "{order:?}");
            assert_eq!(index[2..], plane[number % 20], "{order:?}");
        }
    }
}

/// As Triton's tutorial on matrix multiplication has it.
#[test]
fn groups_are_those_of_triton() {
    let (rows, columns, group) = (7, 5, 3);
    for number in 0..rows * columns {
        let in_group = group * columns;
        let first = number / in_group * group;
        let size = (rows - first).min(group);
        let expected = [first + number % in_group % size, number % in_group / size];
        assert_eq!(TileOrder::Grouped(group).index_of(&[rows, columns], number), expected);
    }
}

#[test]
fn a_wave_of_a_grouped_order_touches_few_rows_and_columns() {
    let distinct = |order: TileOrder, axis: usize| {
        let wave = (0..64).map(|number| order.index_of(&[64, 64], number)[axis]);
        wave.collect::<HashSet<_>>().len()
    };
    let touched = |order| distinct(order, 0) + distinct(order, 1);
    assert_eq!(touched(TileOrder::RowMajor), 65);
    assert_eq!(touched(TileOrder::Grouped(8)), 16);
    assert_eq!(touched(TileOrder::Hilbert), 16);
}

/// Heads of two sequences by tiles of queries: the last tile of every head, then the one before it.
#[test]
fn a_falling_order_begins_at_the_end_of_its_axis() {
    let falling = indices(TileOrder::Falling(1), &[3, 2, 1]);
    assert_eq!(falling, [[0, 1, 0], [1, 1, 0], [2, 1, 0], [0, 0, 0], [1, 0, 0], [2, 0, 0]]);
    // Of 140 heads 64 go together, then 64, then 12.
    let heads: Vec<usize> =
        indices(TileOrder::Falling(1), &[140, 3]).iter().map(|index| index[0] / 64).collect();
    assert!(heads.is_sorted());
    assert_eq!(indices(TileOrder::Falling(0), &[4]), [[3], [2], [1], [0]]);
}

/// With as many turns as the index along the axis and one, no block has much more to do than another: as causal attention
/// of 16 heads of 128 tiles on 132 multiprocessors, where row by row the most is half as much again as the mean.
#[test]
fn blocks_of_a_falling_order_have_about_as_much_to_do() {
    let most_by_mean = |order: TileOrder, extents: [usize; 2], blocks: usize| {
        let tiles: usize = extents.iter().product();
        let mut turns = vec![0; blocks];
        for number in 0..tiles {
            let index = order.index_of(&extents, order.taken(number, blocks, tiles));
            turns[number % blocks] += index[1] + 1;
        }
        let sum: usize = turns.iter().sum();
        *turns.iter().max().unwrap() as f64 * blocks as f64 / sum as f64
    };
    for (extents, row_major, falling) in
        [([16, 128], 1.56, 1.01), ([64, 64], 1.07, 1.01), ([32, 32], 1.12, 1.01), ([3, 1000], 1.06, 1.01)]
    {
        let found =
            [TileOrder::RowMajor, TileOrder::Falling(1)].map(|order| most_by_mean(order, extents, 132));
        assert!(found[0] > row_major, "{extents:?}: {found:?}");
        assert!(found[1] < falling, "{extents:?}: {found:?}");
    }
}

/// How many steps of the curve aren't to a neighbour; each of them is to a tile across a corner.
fn diagonals(rows: usize, columns: usize) -> usize {
    let path = indices(TileOrder::Hilbert, &[rows, columns]);
    let apart = |pair: &[Vec<usize>]| (0..2).map(|axis| pair[0][axis].abs_diff(pair[1][axis])).collect();
    let steps = path.windows(2).map(apart);
    let diagonal = steps.filter(|apart: &Vec<usize>| {
        assert!(apart.iter().all(|&apart| apart <= 1), "{rows}×{columns} jumps");
        apart.iter().sum::<usize>() == 2
    });
    diagonal.count()
}

#[test]
fn successive_tiles_of_the_curve_are_neighbours() {
    for rows in 1..=40 {
        for columns in 1..=40 {
            let odd = rows.max(columns) % 2 == 1 && rows.min(columns) % 2 == 0;
            let diagonals = diagonals(rows, columns);
            assert!(diagonals <= usize::from(odd), "{rows}×{columns}: {diagonals} diagonal steps");
        }
    }
    assert_eq!(diagonals(128, 256), 0);
    assert!(diagonals(101, 230) <= 1);
}

/// Writes to each tile its turn in its block, and 10 times the block's number, and 100 times that of blocks.
const TURNS: &str = "\
kernel @turns(%y: mut tensor<m x n x i64>) {
  %v = partition %y [1, 1] : mut partition<m x n x i64, [1, 1]>
  %0 = constant 0 : i64
  %b = block_id axis 0 : index
  %c = block_count axis 0 : index
  %last = tiles %v ORDER carry (%turn = %0) : i64 {
    %1 = constant 1 : i64
    %2 = constant 10 : i64
    %3 = cast %b : i64
    %4 = cast %c : i64
    %5 = mul %4, %2 : i64
    %6 = add %3, %5 : i64
    %7 = mul %6, %2 : i64
    %8 = add %7, %turn : i64
    %9 = splat %8 : tile<1 x 1 x i64>
    store_masked %v, %9
    %next = add %turn, %1 : i64
    yield %next
  }
}
";

fn turns(order: &str) -> Instance {
    let kernel = VerifiedKernel::parse(&TURNS.edit("ORDER", order));
    specialize(&kernel.unwrap_or_else(|errors| panic!("{errors:?}")), &[]).unwrap()
}

#[test]
fn the_evaluator_shares_tiles_among_blocks() {
    let orders = [TileOrder::RowMajor, TileOrder::Hilbert, TileOrder::Falling(1)];
    for (name, order) in ["row_major", "hilbert", "falling(1)"].into_iter().zip(orders) {
        for (blocks, first_tiles) in [(1, None), (4, None), (15, Some(7)), (99, Some(0)), (3, Some(99))] {
            let mut arguments = [Array::full(DType::I64, &[3, 5], Literal::Int(-1))];
            let sharing = Sharing { blocks: Some(blocks), first_tiles };
            interp::run_shared(&turns(name), &mut arguments, sharing).unwrap();
            let mut expected = [-1; 15];
            for number in 0..first_tiles.unwrap_or(15).min(15) {
                let taken = order.taken(number, blocks, first_tiles.unwrap_or(15).min(15));
                let index = order.index_of(&[3, 5], taken);
                expected[index[0] * 5 + index[1]] =
                    (100 * blocks + 10 * (number % blocks) + number / blocks) as i128;
            }
            let found: Vec<i128> = (0..15).map(|i| arguments[0].get_int(i)).collect();
            assert_eq!(found, expected, "{name}, {blocks} blocks");
        }
    }
}

#[test]
fn launches_say_how_tiles_are_shared() {
    let abi = KernelAbi::of(&turns("row_major"));
    let bound = abi.bind(&[&[3, 5]]).unwrap();
    assert_eq!((bound.grid.as_slice(), bound.slots().collect::<Vec<_>>()), (&[4][..], vec![3, 5, 15, 4]));
    assert_eq!((abi.shared_slot(), abi.log_slot()), (3, 5));
    let share = |blocks, first_tiles, at_once| {
        abi.share(bound.clone(), Sharing { blocks, first_tiles }, at_once).map(|bound| bound.grid[0])
    };
    assert_eq!(share(None, None, 132), Ok(15));
    assert_eq!(share(None, Some(6), 132), Ok(6));
    assert_eq!(share(None, None, 8), Ok(8));
    assert_eq!(share(Some(20), Some(6), 8), Ok(20));
    assert_eq!(share(Some(20), Some(0), 8), Ok(0));
    assert_eq!(
        share(Some(0), None, 8).unwrap_err().to_string(),
        "kernel `turns`: `blocks(0)` leaves nobody to handle its tiles; give one block or more"
    );
    assert_eq!(
        share(Some(1 << 31), None, 8).unwrap_err().to_string(),
        "kernel `turns`: `blocks` is at most 2³¹ − 1, and more blocks than tiles have nothing to do"
    );
    assert_eq!(abi.bind(&[&[0, 5]]).unwrap().blocks(), 0);
    let plain = "kernel @plain(%y: mut tensor<n x f32>) {
  %v = partition %y [4] : mut partition<n x f32, [4]>
}
";
    let plain = KernelAbi::of(&Instance::parse(plain, &[]).unwrap());
    let bound = plain.bind(&[&[9]]).unwrap();
    assert_eq!((bound.blocks(), bound.slots().collect::<Vec<_>>()), (3, vec![9]));
    let wrong = |sharing| plain.share(bound.clone(), sharing, 4).unwrap_err().to_string();
    assert_eq!(
        wrong(Sharing { blocks: Some(2), first_tiles: None }),
        "kernel `plain`: `blocks` says how many blocks share the tiles of `tiles_persistent`, over which this \
         kernel has no loop; its grid has one block per tile"
    );
    assert!(wrong(Sharing { blocks: None, first_tiles: Some(1) }).contains("`first_tiles` counts"));
}

#[test]
fn the_blocks_of_a_part_have_successive_tiles() {
    for (parts, blocks) in [1, 2, 8].into_iter().flat_map(|parts| (0..100).map(move |blocks| (parts, blocks)))
    {
        let tiles: Vec<u64> = (0..blocks).map(|block| tile_in_part(&Plain, parts, blocks, block)).collect();
        let all: HashSet<u64> = tiles.iter().copied().collect();
        assert_eq!(all, (0..blocks).collect(), "{blocks} blocks in {parts} parts");
        for (block, tile) in tiles.iter().enumerate() {
            if let Some(next) = tiles.get(block + parts as usize) {
                assert_eq!(tile + 1, *next, "block {block} of {blocks} in {parts} parts");
            }
        }
    }
}
