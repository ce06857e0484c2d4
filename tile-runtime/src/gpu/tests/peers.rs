//! Copies from one device to another.

use super::*;
use crate::stream::Stream;
use crate::tensor::Tensor;

const N: usize = 64;

/// Miri takes a thousand times as long.
const POOLS: &[bool] = if cfg!(miri) { &[false] } else { &[false, true] };

fn numbers() -> Vec<i32> {
    (0..N as i32).collect()
}

/// Two devices of one driver.
fn pair(pools: bool) -> ([Device; 2], StandIn) {
    let (first, driver) = device(1 << 20, pools);
    let second = device_of(&driver.another());
    ([first, second], driver)
}

#[test]
fn a_copy_between_devices_of_a_vendor_is_enqueued() {
    for pools in POOLS {
        let ([to, from], driver) = pair(*pools);
        let x = Tensor::full(&from, [N], 7_i32).unwrap();
        let y = x.copy_to(&to).unwrap();
        assert!(driver.pending() > 0, "nobody has waited");
        assert_eq!(driver.live().pinned, 0, "nothing went by way of the host");
        assert_eq!(y.to_vec().unwrap(), [7; N]);
        // And back, a part to a part.
        let mut x = x;
        x.slice_mut(3..5).unwrap().copy_from(&Tensor::full(&to, [2], -1).unwrap()).unwrap();
        assert_eq!(x.to_vec().unwrap()[2..6], [7, -1, -1, 7]);
    }
}

/// The two devices' streams know of each other what they must.
#[test]
fn what_is_copied_is_written_and_freed_after_it() {
    for pools in POOLS {
        let ([to, from], driver) = pair(*pools);
        let mut x = Tensor::from_vec(&from, numbers(), [N]).unwrap();
        let first = x.copy_to(&to).unwrap();
        x.fill(-1).unwrap();
        let second = x.copy_to(&to).unwrap();
        drop(x);
        let other = Tensor::full(&from, [N], -2_i32).unwrap();
        assert!(driver.pending() > 0, "nobody has waited");
        // The one that gave comes to its end first.
        assert_eq!(other.to_vec().unwrap(), [-2; N]);
        assert_eq!(first.to_vec().unwrap(), numbers());
        assert_eq!(second.to_vec().unwrap(), [-1; N]);
        // What gets elements is written and freed in the order of its own device.
        let mut y = other.copy_to(&to).unwrap();
        y.fill(5).unwrap();
        assert_eq!(y.to_vec().unwrap(), [5; N]);
    }
}

#[test]
fn launches_on_streams_come_before_a_copy_of_their_tensors() {
    use super::launches::{KERNEL, call, double, ramp};
    let ([to, from], driver) = pair(true);
    driver.add("general", 3, double);
    let stream = Stream::new(&from).unwrap();
    let (x, mut y) = (ramp(&from, 8), Tensor::zeros(&from, [8]).unwrap());
    call(&KERNEL, &x, &mut y).on(&stream).unwrap().detach();
    let there = y.copy_to(&to).unwrap();
    assert!(driver.pending() > 0, "nobody has waited");
    assert_eq!(there.to_vec().unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]);
}

#[test]
fn elements_that_lie_apart_are_brought_together_first_and_spread_there() {
    let ([to, from], driver) = pair(true);
    const ROWS: usize = if cfg!(miri) { 10 } else { 100 };
    let x = Tensor::from_vec(&from, (0..20 * ROWS as i32).collect::<Vec<i32>>(), [ROWS, 20]).unwrap();
    from.trim().unwrap();
    let mut y = Tensor::zeros(&to, [10, 3 * ROWS]).unwrap();
    y.slice_mut((3, ROWS..2 * ROWS)).unwrap().copy_from(&x.slice((.., 7)).unwrap()).unwrap();
    y.slice_mut((.., 5)).unwrap().copy_from(&x.slice((..10, 2)).unwrap()).unwrap();
    assert!(driver.pending() > 0, "nobody has waited");
    assert_eq!(driver.live().pinned, 0, "nothing went by way of the host");
    let expected = |row: usize, column: usize| match (row, column) {
        (_, 5) => 20 * row + 2,
        (3, _) if (ROWS..2 * ROWS).contains(&column) => 20 * (column - ROWS) + 7,
        _ => 0,
    };
    let elements = (0..30 * ROWS).map(|i| expected(i / (3 * ROWS), i % (3 * ROWS)) as i32);
    assert_eq!(y.to_vec().unwrap(), elements.collect::<Vec<_>>());
}

/// Also where the driver refuses to copy between the two.
#[test]
fn by_way_of_the_host_elements_get_everywhere() {
    let ([to, from], driver) = pair(true);
    let x = Tensor::from_vec(&from, numbers(), [N]).unwrap();
    let mut succeeded = 0;
    for calls in (0..12).step_by(if cfg!(miri) { 4 } else { 1 }) {
        let mut y = Tensor::zeros(&to, [N]).unwrap();
        driver.refuse_after(calls, Code::NO_PEER_ACCESS);
        let copied = y.copy_from(&x);
        driver.refuse_nothing();
        if copied.is_ok() {
            succeeded += 1;
            assert_eq!(y.to_vec().unwrap(), numbers(), "{calls}");
        }
    }
    assert!(succeeded > if cfg!(miri) { 1 } else { 8 }, "{succeeded}");

    // Of two vendors.
    let second = device_of(&StandIn::of_another_vendor(1 << 20, false));
    let x = Tensor::from_vec(&Device::cpu(), numbers(), [8, 8]).unwrap();
    let there = x.copy_to(&from).unwrap();
    let further = there.copy_to(&second).unwrap();
    let mut back = Tensor::zeros(&Device::cpu(), [8, 8]).unwrap();
    back.copy_from(&further).unwrap();
    assert_eq!(back.to_vec().unwrap(), numbers());
    // A part of either side lands where it should.
    back.slice_mut((2..4, ..)).unwrap().copy_from(&there.slice((5..7, ..)).unwrap()).unwrap();
    assert_eq!(back.slice((.., 0)).unwrap().to_vec().unwrap(), [0, 8, 40, 48, 32, 40, 48, 56]);
}
