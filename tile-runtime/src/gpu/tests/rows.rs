//! Elements that lie apart, copied and filled by the device in rows.

use super::*;
use crate::element::Element;
use crate::stream::Stream;
use crate::tensor::{Tensor, TensorRef};
use tile_layout::Index;

const ROWS: usize = if cfg!(miri) { 12 } else { 300 };
const COLUMNS: usize = 40;

fn numbers() -> Vec<i32> {
    (0..(ROWS * COLUMNS) as i32).collect()
}

/// A matrix with every element another, and nothing left of how it came there.
fn matrix(device: &Device) -> Tensor<i32> {
    let matrix = Tensor::from_vec(device, numbers(), [ROWS, COLUMNS]).unwrap();
    device.trim().unwrap();
    matrix
}

#[test]
fn parts_are_copied_on_the_device_and_nobody_waits() {
    let (device, driver) = device(1 << 20, true);
    let x = matrix(&device);
    let mut y = Tensor::<i32>::zeros(&device, [COLUMNS, 2 * ROWS]).unwrap();
    // A block; a column to every second place of a row, both backwards; a few columns turned.
    y.slice_mut((3..5, 7..17)).unwrap().copy_from(&x.slice((1..3, 10..20)).unwrap()).unwrap();
    let backwards = x.slice((Index::slice(None, None, -1), 9)).unwrap();
    y.slice_mut((8, Index::slice(None, None, -2))).unwrap().copy_from(&backwards).unwrap();
    y.slice_mut((20..23, ..ROWS)).unwrap().copy_from(&x.slice((.., 4..7)).unwrap().t().unwrap()).unwrap();
    assert!(driver.pending() > 0, "nobody has waited");
    assert_eq!(driver.live().pinned, 0, "nothing went by way of the host");
    let of = |row: usize, column: usize| (row * COLUMNS + column) as i32;
    let expected = |row: usize, column: usize| match (row, column) {
        (3..5, 7..17) => of(row - 2, column + 3),
        (8, _) if column % 2 == 1 => of(column / 2, 9),
        (20..23, _) if column < ROWS => of(column, row - 16),
        _ => 0,
    };
    let elements = (0..2 * ROWS * COLUMNS).map(|i| expected(i / (2 * ROWS), i % (2 * ROWS)));
    assert_eq!(y.to_vec().unwrap(), elements.collect::<Vec<_>>());
}

#[test]
fn of_a_column_no_more_than_its_elements_go_to_the_host_and_back() {
    let (device, driver) = device(1 << 20, true);
    let mut x = matrix(&device);
    let column: Vec<i32> = numbers().into_iter().skip(6).step_by(COLUMNS).collect();
    assert_eq!(x.slice((.., 6)).unwrap().to_vec().unwrap(), column);
    let pinned = device.memory().unwrap().pinned;
    assert!(pinned <= 4096, "{pinned} bytes for {ROWS} elements");
    let other: Vec<i32> = column.iter().map(|element| -element).collect();
    x.slice_mut((.., 6)).unwrap().copy_from_slice(&other).unwrap();
    assert!(driver.pending() > 0, "what is written isn't waited for");
    let expected = numbers().into_iter().map(|i| if i as usize % COLUMNS == 6 { -i } else { i });
    assert_eq!(x.to_vec().unwrap(), expected.collect::<Vec<_>>());
}

/// Elements that lie between those of another part, in too many rows for a copy of the device: what is copied around them would
/// write the other part, too.
#[test]
#[cfg_attr(miri, ignore = "so few rows are copied by the device")]
fn of_a_part_no_element_is_written_but_its_own() {
    let (device, _driver) = device(1 << 20, true);
    let mut x = matrix(&device);
    let half = COLUMNS / 2;
    let (left, right) = x.split_at_mut(1, half).unwrap();
    let other: Vec<i32> = (0..(half * ROWS) as i32).map(|i| -i).collect();
    right.t().unwrap().copy_from_slice(&other).unwrap();
    let pinned = device.memory().unwrap().pinned;
    assert!(pinned < 4 * other.len() as u64, "{pinned} bytes: more than one element was copied at a time");
    assert_eq!(left.slice(1).unwrap().to_vec().unwrap(), numbers()[COLUMNS..COLUMNS + half]);
    let expected = numbers().into_iter().map(|i| match (i as usize / COLUMNS, i as usize % COLUMNS) {
        (row, column) if column >= half => -(((column - half) * ROWS + row) as i32),
        _ => i,
    });
    assert_eq!(x.to_vec().unwrap(), expected.collect::<Vec<_>>());
}

/// The same of memory of another library's: what lies between its elements isn't ours, however short the rows are.
#[test]
#[cfg_attr(miri, ignore = "so few rows are copied by the device")]
fn of_foreign_memory_no_element_is_written_but_its_own() {
    const N: usize = 20_000;
    let (device, _driver) = device(1 << 20, true);
    let x = Tensor::full(&device, [2 * N], -1_i32).unwrap();
    device.trim().unwrap();
    // SAFETY: the memory is that of a tensor that lives longer; the odd elements are somebody else's.
    let mut even = unsafe { Tensor::<i32>::from_raw_strided(&device, x.address(), [N], [2]) }.unwrap();
    let most_pinned = |what: &str| {
        let pinned = device.memory().unwrap().pinned;
        let own = (4 * N).next_power_of_two() as u64;
        assert!(pinned <= own, "{what}: {pinned} bytes, somebody else's elements among them");
    };
    even.fill(7).unwrap();
    most_pinned("filled");
    even.copy_from_slice(&(0..N as i32).collect::<Vec<_>>()).unwrap();
    most_pinned("copied");
    let expected = |i: usize| if i.is_multiple_of(2) { (i / 2) as i32 } else { -1 };
    assert_eq!(x.to_vec().unwrap(), (0..2 * N).map(expected).collect::<Vec<_>>());
    // Where nothing lies between, as where axes are turned, elements are written together.
    // SAFETY: the memory is that of a tensor that lives longer, and nobody else uses it.
    let mut turned =
        unsafe { Tensor::<i32>::from_raw_strided(&device, x.address(), [100, 400], [1, 100]) }.unwrap();
    device.trim().unwrap();
    turned.copy_from_slice(&vec![3; 2 * N]).unwrap();
    assert!(device.memory().unwrap().pinned >= 8 * N as u64);
    assert_eq!(x.to_vec().unwrap(), vec![3; 2 * N]);
}

#[test]
fn columns_of_every_format_are_filled_by_the_device() {
    fn check<T: Element>(value: T) {
        let (device, driver) = device(1 << 20, true);
        let mut x = Tensor::<T>::zeros(&device, [ROWS, 4, 3]).unwrap();
        x.slice_mut((.., 1..3, 1)).unwrap().fill(value).unwrap();
        x.slice_mut((Index::slice(None, None, -7), 0)).unwrap().fill(value).unwrap();
        // An element of eight bytes that no driver fills with is written once for each of three sets of rows.
        assert!(driver.live().pinned <= 3, "{value:?}: {:?}", driver.live());
        let pinned = device.memory().unwrap().pinned;
        assert!(pinned <= 3 * 4096, "{value:?}: {pinned}");
        let last = ROWS - 1;
        let is_filled = |row: usize, line: usize, column: usize| {
            (1..3).contains(&line) && column == 1 || line == 0 && (last - row).is_multiple_of(7)
        };
        let expected = (0..ROWS * 12).map(|i| match is_filled(i / 12, i / 3 % 4, i % 3) {
            true => value,
            false => T::default(),
        });
        assert_eq!(x.to_vec().unwrap(), expected.collect::<Vec<_>>());
    }
    check(half::bf16::from_f32(1.5));
    check(std::f64::consts::PI);
    if !cfg!(miri) {
        check(true);
        check(-2_i16);
        check(1.25_f32);
        check(-1_i64);
    }
}

#[test]
fn parts_on_a_stream_are_copied_beside_the_host() {
    let (device, driver) = device(1 << 20, true);
    let stream = Stream::new(&device).unwrap();
    let mut y = Tensor::<i32>::zeros(&device, [ROWS, 2]).unwrap();
    {
        let x = matrix(&device);
        let (part, mut right) = (x.slice((.., 5)).unwrap(), y.slice_mut((.., 1)).unwrap());
        std::mem::forget(right.copy_from_on(&part, &stream).unwrap());
        assert!(driver.pending() > 0, "nobody has waited");
    }
    // What was dropped is neither freed nor given to anybody else before the copy.
    let _other = Tensor::full(&device, [ROWS, COLUMNS], -1_i32).unwrap();
    y.slice_mut((.., 0)).unwrap().fill(-3).unwrap();
    let expected = (0..ROWS).flat_map(|row| [-3, (row * COLUMNS + 5) as i32]);
    assert_eq!(y.to_vec().unwrap(), expected.collect::<Vec<_>>());
}

/// Where a driver refuses rows, elements go by way of the host.
#[test]
#[cfg_attr(miri, ignore = "every call refused once takes long, and the ways are those of the other tests")]
fn refused_rows_are_copied_and_filled_all_the_same() {
    let mut succeeded = 0;
    for calls in 0..16 {
        let (device, driver) = device(1 << 20, true);
        let stream = Stream::new(&device).unwrap();
        let x = matrix(&device);
        let mut y = Tensor::<i32>::zeros(&device, [ROWS, 3]).unwrap();
        driver.refuse_after(calls, Code::INVALID_VALUE);
        let column = |x: &TensorRef<i32>| x.slice((.., 5)).unwrap().view().to_vec();
        let read = column(&x);
        let copied = y.slice_mut((.., 1)).unwrap().copy_from(&x.slice((.., 5)).unwrap());
        let on_stream = y
            .slice_mut((.., 0))
            .unwrap()
            .copy_from_on(&x.slice((.., 5)).unwrap(), &stream)
            .map(|pending| pending.detach());
        let filled = y.slice_mut((.., 2)).unwrap().fill(4);
        driver.refuse_nothing();
        let expected: Vec<i32> = (0..ROWS).map(|row| (row * COLUMNS + 5) as i32).collect();
        assert!(read.is_err() || read.unwrap() == expected, "{calls}");
        let elements = y.to_vec().unwrap();
        let is = |column: usize, expected: &dyn Fn(usize) -> i32| {
            (0..ROWS).all(|row| elements[3 * row + column] == expected(row))
        };
        assert!(copied.is_err() || is(1, &|row| expected[row]), "{calls}");
        assert!(on_stream.is_err() || is(0, &|row| expected[row]), "{calls}");
        assert!(filled.is_err() || is(2, &|_| 4), "{calls}");
        succeeded += [copied, on_stream, filled].iter().filter(|done| done.is_ok()).count();
    }
    assert!(succeeded >= 40, "{succeeded}");
}
