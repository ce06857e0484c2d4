//! Functions that take atomic views: of one element, of tiles and of both, by reference and by value.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::devices;
use super::sequences::prefix_sums;
use super::waiting::rows_added;
use tile::prelude::*;

#[tile_kernels]
mod shared {
    use tile::prelude::*;

    #[tile_fn]
    fn lock(locks: &AtomicView<'_, i32, 1>, i: usize) {
        while locks.compare_exchange([i], 0, 1, Acquire, DeviceScope) != 0 {}
    }

    #[tile_fn]
    fn unlock(locks: AtomicView<'_, i32, 1>, i: usize) {
        locks.store([i], 0, Release, DeviceScope);
    }

    /// Adds a row to one of those that several blocks share.
    #[tile_fn]
    fn add_to<T: Number, const N: usize>(sums: &AtomicView<'_, T, 2>, at: usize, row: Tile<T, 2>) {
        let columns = Tile::<i32, 2>::iota([1, N], 1);
        let sum = sums.load((at, columns), Relaxed, DeviceScope) + row;
        sums.store((at, columns), sum, Relaxed, DeviceScope);
    }

    #[tile_kernel(grid = [m])]
    pub(crate) fn behind_a_lock<T: Number, const N: usize, const SHARED: usize>(
        x: &Tensor<T, m, N>,
        locks: &mut Tensor<i32, SHARED>,
        sums: &mut Tensor<T, SHARED, N>,
    ) {
        let (locks, sums) = (locks.atomic_view(), sums.atomic_view());
        let at = block_id(0) % SHARED;
        let row = x.partition_view([1, N]).load([block_id(0), 0]);
        lock(&locks, at);
        add_to::<T, N>(&sums, at, row);
        unlock(locks, at);
    }

    /// Truths are stored where indices say, which a literal is one of.
    #[tile_fn]
    fn mark(seen: &AtomicView<'_, bool, 2>, row: i32) {
        let was = seen.load([row, 0], Relaxed, DeviceScope);
        seen.store([row, 1], was, Relaxed, DeviceScope);
        seen.store([row, 0], true, Relaxed, DeviceScope);
        seen.store([0, 0], true, Relaxed, DeviceScope);
    }

    #[tile_kernel(grid = [1])]
    pub(crate) fn marked(row: i32, seen: &mut Tensor<bool, m, 2>) {
        let seen = seen.atomic_view();
        mark(&seen, row);
        mark(&seen, row);
    }

    /// The slot of a key in a table: where it is, or where none was. Keys aren't 0.
    #[tile_fn]
    fn slot_of<const SLOTS: usize>(keys: AtomicView<'_, u32, 1>, key: u32) -> usize {
        let mut at = (key * 2_654_435_761) as usize % SLOTS;
        loop {
            let found = keys.compare_exchange([at], 0, key, Relaxed, DeviceScope);
            if found == 0 || found == key {
                return at;
            }
            at = (at + 1) % SLOTS;
        }
    }

    /// How often each key occurs, in a table that all blocks put keys into.
    #[tile_kernel(grid = [n])]
    pub(crate) fn counted<const SLOTS: usize>(
        x: &Tensor<u32, n>,
        keys: &mut Tensor<u32, SLOTS>,
        counts: &mut Tensor<i32, SLOTS>,
    ) {
        let keys = keys.atomic_view();
        let slot = slot_of::<SLOTS>(keys, x.gather([block_id(0)]));
        counts.atomic_view().fetch_add([slot], 1, Relaxed, DeviceScope);
    }

    /// The sum of what the blocks with earlier tickets have published: a word has a flag above and a sum below.
    #[tile_fn]
    fn before(state: &AtomicView<'_, u64, 1>, ticket: u64, sum: i32) -> i32 {
        let mut total = 0i32;
        if ticket > 0 {
            state.store([ticket], 1u64 << 32 | sum as u32 as u64, Release, DeviceScope);
            let mut at = ticket - 1;
            loop {
                let word = state.load([at], Acquire, DeviceScope);
                if word >> 32 == 0 {
                    continue;
                }
                total += word as u32 as i32;
                if word >> 32 == 2 {
                    break;
                }
                at -= 1;
            }
        }
        state.store([ticket], 2u64 << 32 | (total + sum) as u32 as u64, Release, DeviceScope);
        total
    }

    #[tile_kernel(grid = [n.div_ceil(B)])]
    pub(crate) fn look_back<const B: usize>(
        x: &Tensor<i32, n>,
        state: &mut Tensor<u64, { n.div_ceil(B) }>,
        tickets: &mut Tensor<u64, 1>,
        y: &mut Tensor<i32, n>,
    ) {
        let (state, y) = (state.atomic_view(), y.atomic_view());
        let ticket = next(tickets.atomic_view());
        let x = x.partition_view([B]).load_masked([ticket as usize]);
        let place = Tile::<u64, 1>::iota([B], 0) + ticket * B as u64;
        y.store([place], x.cumsum(0) + before(&state, ticket, x.sum(0).item()), Relaxed, DeviceScope);
    }

    /// A literal for an index, and a result that a method is called of.
    #[tile_fn]
    fn next(tickets: AtomicView<'_, u64, 1>) -> u64 {
        tickets.fetch_add([0], 1, Relaxed, DeviceScope).min(1 << 40)
    }

    /// Operations of one element beside such of tiles, on a tensor of two axes.
    #[tile_fn]
    fn mixed(y: &AtomicView<'_, i32, 2>, i: usize) -> Tile<i32, 1> {
        let columns = Tile::<i32, 1>::iota([4], 0);
        let one = y.fetch_max((i, 2), 7, Relaxed, DeviceScope);
        let old = y.swap((i, columns), columns + one, Relaxed, DeviceScope);
        y.fetch_sub([i, 1], 10, Relaxed, DeviceScope);
        y.fetch_or((i, columns), 64, Relaxed, DeviceScope);
        y.fetch_add_masked(columns < 2, (i, columns), 1, Relaxed, DeviceScope);
        old + y.extent(1) as i32
    }

    #[tile_kernel]
    pub(crate) fn mixes(y: &mut Tensor<i32, m, 4>, z: &mut Tensor<i32, { m * 4 }>) {
        let mut z = z.partition_view_mut([4]);
        let y = y.atomic_view();
        let [i] = z.index();
        z.store(mixed(&y, i));
    }
}

#[test]
fn a_lock_is_a_function() {
    let (m, n, shared) = (30, 16, 3);
    let (x, expected) = rows_added([m, n], shared);
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [m, n]).unwrap();
        let mut locks = Tensor::zeros(&device, [shared]).unwrap();
        let mut sums = Tensor::zeros(&device, [shared, n]).unwrap();
        shared::behind_a_lock::<f32, 16, 3>(&x, &mut locks, &mut sums).launch().unwrap();
        assert_eq!(sums.to_vec().unwrap(), expected, "{label}");
        assert_eq!(locks.to_vec().unwrap(), [0; 3], "{label}");
    }
}

#[test]
fn blocks_put_keys_into_a_table() {
    let x: Vec<u32> = (0..40).map(|i| 1 + i * i % 11).collect();
    for (device, label) in devices() {
        let input = Tensor::from_slice(&device, &x, [x.len()]).unwrap();
        let mut keys = Tensor::zeros(&device, [16]).unwrap();
        let mut counts = Tensor::zeros(&device, [16]).unwrap();
        shared::counted::<16>(&input, &mut keys, &mut counts).launch().unwrap();
        let (keys, counts) = (keys.to_vec().unwrap(), counts.to_vec().unwrap());
        let mut found: Vec<(u32, i32)> = keys.into_iter().zip(counts).filter(|(key, _)| *key != 0).collect();
        found.sort_unstable();
        let mut distinct = x.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let expected =
            distinct.iter().map(|key| (*key, x.iter().filter(|other| *other == key).count() as i32));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{label}");
    }
}

#[test]
fn looking_back_is_a_function() {
    let x: Vec<i32> = (0..300).map(|i| i * 37 % 1000 - 500).collect();
    let sums = prefix_sums(&x);
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [300]).unwrap();
        let mut state = Tensor::zeros(&device, [5]).unwrap();
        let mut tickets = Tensor::zeros(&device, [1]).unwrap();
        let mut y = Tensor::zeros(&device, [300]).unwrap();
        shared::look_back::<64>(&x, &mut state, &mut tickets, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), sums, "{label}");
        assert_eq!(tickets.to_vec().unwrap(), [5], "{label}");
    }
}

#[test]
fn functions_tell_one_element_from_tiles() {
    for (device, label) in devices() {
        let mut y = Tensor::from_slice(&device, &[1, 2, 3, 4, 5, 6, 9, 8], [2, 4]).unwrap();
        let mut z = Tensor::zeros(&device, [8]).unwrap();
        shared::mixes(&mut y, &mut z).launch().unwrap();
        assert_eq!(z.to_vec().unwrap(), [5, 6, 11, 8, 9, 10, 13, 12], "{label}");
        let row = |one: i32| [one, one - 9, one + 2, one + 3].map(|sum| sum | 64);
        let [a, b, c, d] = row(3);
        let [e, f, g, h] = row(9);
        assert_eq!(y.to_vec().unwrap(), [a + 1, b + 1, c, d, e + 1, f + 1, g, h], "{label}");
    }
}

#[test]
fn truths_are_stored_at_indices_of_which_one_is_written_out() {
    for (device, label) in devices() {
        let mut seen = Tensor::<bool>::zeros(&device, [3, 2]).unwrap();
        shared::marked(2, &mut seen).launch().unwrap();
        assert_eq!(seen.to_vec().unwrap(), [true, false, false, false, true, true], "{label}");
    }
}
