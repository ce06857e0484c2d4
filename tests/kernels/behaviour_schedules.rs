//! Persistent schedules: every tile is handled once, by the block and in the turn that its order says, whatever the rank and
//! the number of blocks, and tiles past a prefix aren't touched. The numbering is that of the list of behaviours that peers
//! disagree on.

use super::{array, devices, numbers_of};
use tile::Launch;
use tile::ir::abi::Sharing;
use tile::ir::{Binding, VerifiedKernel, interp, specialize};
use tile::kernel::TileOrder;
use tile::prelude::*;

/// What was there before, and stays in tiles that aren't handled.
const POISON: i32 = -7;

/// Kernels of ranks 1 to 3 that put into each tile its own flat index.
macro_rules! numbered {
    ($order:expr; $line:ident $plane:ident $space:ident) => {
        #[tile_kernel]
        fn $line<const G: usize>(y: &mut Tensor<i32, n>) {
            let mut y = y.partition_view_mut([3]);
            for mut tile in y.tiles_persistent($order) {
                let [i] = tile.index();
                tile.store_masked(Tile::full([3], i as i32));
            }
        }

        #[tile_kernel]
        fn $plane<const G: usize>(y: &mut Tensor<i32, m, n>) {
            let mut y = y.partition_view_mut([2, 3]);
            let columns = y.tiles(1);
            for mut tile in y.tiles_persistent($order) {
                let [i, j] = tile.index();
                tile.store_masked(Tile::full([2, 3], (i * columns + j) as i32));
            }
        }

        #[tile_kernel]
        fn $space<const G: usize>(y: &mut Tensor<i32, k, m, n>) {
            let mut y = y.partition_view_mut([1, 2, 3]);
            let (rows, columns) = (y.tiles(1), y.tiles(2));
            for mut tile in y.tiles_persistent($order) {
                let [h, i, j] = tile.index();
                tile.store_masked(Tile::full([1, 2, 3], ((h * rows + i) * columns + j) as i32));
            }
        }
    };
}

numbered!(RowMajor; row_major_line row_major_plane row_major_space);
numbered!(Grouped(G); grouped_line grouped_plane grouped_space);
numbered!(Hilbert; hilbert_line hilbert_plane hilbert_space);
numbered!(Falling(0); falling_line falling_plane falling_space);

/// The numbered kernel of an order and a rank: its IR and its launch with `G` = 2.
type Numbered = (TileOrder, usize, VerifiedKernel, fn(&mut TensorRef<i32>) -> Launch<'_>);

fn kernels() -> Vec<Numbered> {
    let grouped = TileOrder::Grouped(2);
    vec![
        (TileOrder::RowMajor, 1, row_major_line::ir(), row_major_line::<2>),
        (TileOrder::RowMajor, 2, row_major_plane::ir(), row_major_plane::<2>),
        (TileOrder::RowMajor, 3, row_major_space::ir(), row_major_space::<2>),
        (grouped, 1, grouped_line::ir(), grouped_line::<2>),
        (grouped, 2, grouped_plane::ir(), grouped_plane::<2>),
        (grouped, 3, grouped_space::ir(), grouped_space::<2>),
        (TileOrder::Hilbert, 1, hilbert_line::ir(), hilbert_line::<2>),
        (TileOrder::Hilbert, 2, hilbert_plane::ir(), hilbert_plane::<2>),
        (TileOrder::Hilbert, 3, hilbert_space::ir(), hilbert_space::<2>),
        (TileOrder::Falling(0), 1, falling_line::ir(), falling_line::<2>),
        (TileOrder::Falling(0), 2, falling_plane::ir(), falling_plane::<2>),
        (TileOrder::Falling(0), 3, falling_space::ir(), falling_space::<2>),
    ]
}

const TILE: [usize; 3] = [1, 2, 3];

/// Shapes that tiles don't divide, and one that they do.
fn shapes(rank: usize) -> Vec<Vec<usize>> {
    let spaces = [[1, 1, 1], [2, 7, 16], [3, 4, 31], [2, 6, 9]];
    spaces.iter().map(|space| space[3 - rank..].to_vec()).collect()
}

fn spaces(shape: &[usize]) -> Vec<usize> {
    let tile = &TILE[3 - shape.len()..];
    shape.iter().zip(tile).map(|(extent, tile)| extent.div_ceil(*tile)).collect()
}

/// By plain loops: what each element holds after the first `tiles` tiles.
fn expected(order: TileOrder, shape: &[usize], tiles: usize) -> Vec<f64> {
    let (space, tile) = (spaces(shape), &TILE[3 - shape.len()..]);
    let flat = |index: &[usize]| index.iter().zip(&space).fold(0, |at, (i, extent)| at * extent + i);
    let handled: Vec<usize> = (0..tiles).map(|number| flat(&order.index_of(&space, number))).collect();
    let element = |at: usize| {
        let mut rest = at;
        let mut index = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            index[axis] = rest % shape[axis] / tile[axis];
            rest /= shape[axis];
        }
        let own = flat(&index);
        if handled.contains(&own) { own as f64 } else { f64::from(POISON) }
    };
    (0..shape.iter().product()).map(element).collect()
}

fn poison(shape: &[usize]) -> Vec<i32> {
    vec![POISON; shape.iter().product()]
}

fn check(kernel: &Numbered, shape: &[usize], sharing: Sharing) {
    let (order, _, ir, launch) = kernel;
    let all: usize = spaces(shape).iter().product();
    let expected = expected(*order, shape, sharing.first_tiles.unwrap_or(all).min(all));
    let what = format!("{} of {shape:?}, {sharing:?}", ir.name);
    for (device, label) in devices() {
        let mut y = Tensor::from_slice(&device, &poison(shape), shape).expect("the shape fits");
        let mut launch = launch(&mut y);
        if let Some(blocks) = sharing.blocks {
            launch = launch.blocks(blocks);
        }
        if let Some(tiles) = sharing.first_tiles {
            launch = launch.first_tiles(tiles);
        }
        launch.launch().unwrap_or_else(|error| panic!("{what} on {label}: {error}"));
        let found: Vec<f64> = y.to_vec().expect("the launch is done").into_iter().map(f64::from).collect();
        assert_eq!(found, expected, "{what} on {label}");
    }
    let instance = specialize(ir, &[("G".to_owned(), Binding::Const(2))]).expect("the binding fits");
    let mut arguments = [array(&poison(shape), shape)];
    interp::run_shared(&instance, &mut arguments, sharing).expect("the arguments fit");
    assert_eq!(numbers_of(&arguments[0]), expected, "the IR of {what}");
}

#[test]
fn case_25_every_tile_holds_its_own_flat_index() {
    for kernel in kernels() {
        for shape in shapes(kernel.1) {
            let all: usize = spaces(&shape).iter().product();
            // One block, a number that doesn't divide, one block per tile, more than tiles, and the default.
            let divisor = (2..=all).find(|&blocks| !all.is_multiple_of(blocks)).unwrap_or(1);
            for blocks in [Some(1), Some(divisor), Some(all), Some(all + 3), None] {
                check(&kernel, &shape, Sharing { blocks, first_tiles: None });
            }
        }
    }
}

#[test]
fn case_25_tiles_past_a_prefix_keep_their_elements() {
    for kernel in kernels() {
        for shape in shapes(kernel.1) {
            let all: usize = spaces(&shape).iter().product();
            for first in [0, 1, all / 2, all, all + 5] {
                check(&kernel, &shape, Sharing { blocks: None, first_tiles: Some(first) });
                check(&kernel, &shape, Sharing { blocks: Some(3), first_tiles: Some(first) });
            }
        }
    }
}

#[test]
fn case_25_of_no_tiles_no_block_runs() {
    for (device, label) in devices() {
        let mut y = Tensor::<i32>::zeros(&device, [0, 5]).unwrap();
        let launch = row_major_plane::<2>(&mut y).blocks(4);
        assert_eq!(launch.grid().unwrap(), [0], "{label}");
        launch.launch().unwrap();
    }
}

/// Kernels that add to each tile which block handles it, in which of its turns: `1000 + 10 * block + turn`.
macro_rules! turns {
    ($($name:ident in $order:expr, $tile:literal;)*) => { $(
        #[tile_kernel]
        fn $name(y: &mut Tensor<i32, m, n>) {
            let mut y = y.partition_view_mut([1, $tile]);
            let mut turn = 0;
            for mut tile in y.tiles_persistent($order) {
                let own = (1000 + 10 * block_id(0)) as i32 + turn;
                tile.store_masked(tile.load_masked() + own);
                turn += 1;
            }
        }
    )* };
}

turns! {
    row_major_turns in RowMajor, 3;
    grouped_turns in Grouped(2), 1;
    hilbert_turns in Hilbert, 1;
    falling_turns in Falling(1), 3;
}

/// Checks what a kernel of so many blocks adds to tiles of `width` elements in rows of `columns` tiles, of which the last may
/// have fewer: these numbers, written down by hand.
fn check_turns<const COLUMNS: usize>(
    ir: VerifiedKernel,
    launch: fn(&mut TensorRef<i32>) -> Launch<'_>,
    blocks: usize,
    [m, n]: [usize; 2],
    expected: &[[i32; COLUMNS]],
) {
    let width = n.div_ceil(COLUMNS);
    let before: Vec<i32> = (0..(m * n) as i32).map(|i| 10_000 * i).collect();
    let after: Vec<i32> =
        before.iter().enumerate().map(|(at, x)| x + expected[at / n][at % n / width]).collect();
    for (device, label) in devices() {
        let mut y = Tensor::from_slice(&device, &before, [m, n]).expect("the shape fits");
        launch(&mut y).blocks(blocks).launch().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(y.to_vec().expect("the launch is done"), after, "{} on {label}", ir.name);
    }
    let instance = specialize(&ir, &[]).expect("there is nothing to bind");
    let mut arguments = [array(&before, &[m, n])];
    let sharing = Sharing { blocks: Some(blocks), first_tiles: None };
    interp::run_shared(&instance, &mut arguments, sharing).expect("the arguments fit");
    assert_eq!(arguments[0], array(&after, &[m, n]), "the IR of {}", ir.name);
}

#[test]
fn case_25_every_tile_is_handled_in_its_turn() {
    let rows = [[1000, 1010, 1020, 1001], [1011, 1021, 1002, 1012]];
    check_turns(row_major_turns::ir(), row_major_turns, 3, [2, 11], &rows);
    // Down each column of two rows, and then along the row that is left.
    let bands = [[1000, 1001], [1010, 1011], [1002, 1012]];
    check_turns(grouped_turns::ir(), grouped_turns, 2, [3, 2], &bands);
    // Tiles 0, 1, 14, 15; 3, 2, 13, 12; 4, 7, 8, 11; 5, 6, 9, 10 of Hilbert's curve.
    let curve = [
        [1000, 1010, 1024, 1005],
        [1001, 1020, 1014, 1004],
        [1011, 1012, 1022, 1023],
        [1021, 1002, 1003, 1013],
    ];
    check_turns(hilbert_turns::ir(), hilbert_turns, 3, [4, 4], &curve);
    // From the last tile to the first; every other round of the blocks goes backwards.
    let back = [[1012, 1002, 1001, 1011, 1021, 1020, 1010, 1000]];
    check_turns(falling_turns::ir(), falling_turns, 3, [1, 22], &back);
}
