//! Atomic stores as scatters to memory, of every number format; additions of halves; hints of views.

use super::devices;
use tile::kernel::Element;
use tile::prelude::*;

/// Writes values where the indices say; those outside go nowhere.
#[tile_kernel(grid = [k.div_ceil(B)])]
fn scatter<T: Number, const B: usize>(at: &Tensor<i32, k>, x: &Tensor<T, k>, y: &mut Tensor<T, n>) {
    let at = at.partition_view([B]).load_masked_or(-1, [block_id(0)]);
    let x = x.partition_view([B]).load_masked([block_id(0)]);
    let y = y.atomic_view();
    y.store([at], x, Relaxed, DeviceScope);
}

fn scatters<T: Number + Element + PartialEq + std::fmt::Debug>() -> tile::Result<()> {
    let n = 50;
    // Each index twice, and some on either side.
    let at: Vec<i32> = (0..130).map(|i| if i % 13 == 12 { n + i } else { (i * 7) % 60 - 5 }).collect();
    let x: Vec<T> = (0..130).map(|i| T::of(f64::from(i % 31))).collect();
    for (device, label) in devices() {
        let at_tensor = Tensor::from_slice(&device, &at, [130])?;
        let x_tensor = Tensor::from_slice(&device, &x, [130])?;
        let mut y = Tensor::from_slice(&device, &vec![T::of(40.0); n as usize], [n as usize])?;
        scatter::<T, 32>(&at_tensor, &x_tensor, &mut y).launch()?;
        for (i, found) in y.to_vec()?.into_iter().enumerate() {
            let candidates: Vec<T> =
                at.iter().zip(&x).filter(|&(&at, _)| at == i as i32).map(|(_, &x)| x).collect();
            // One of the values stays; where there is none, what was there.
            let fine = if candidates.is_empty() { found == T::of(40.0) } else { candidates.contains(&found) };
            assert!(fine, "{label}: element {i} is {found:?}, not one of {candidates:?}");
        }
    }
    Ok(())
}

#[test]
fn one_of_the_values_stays_and_outside_is_nothing() {
    scatters::<i8>().unwrap();
    scatters::<u8>().unwrap();
    scatters::<i16>().unwrap();
    scatters::<u16>().unwrap();
    scatters::<i32>().unwrap();
    scatters::<u32>().unwrap();
    scatters::<i64>().unwrap();
    scatters::<u64>().unwrap();
    scatters::<f8e4m3fn>().unwrap();
    scatters::<f8e5m2>().unwrap();
    scatters::<f16>().unwrap();
    scatters::<bf16>().unwrap();
    scatters::<f32>().unwrap();
    scatters::<f64>().unwrap();
}

/// Every block adds to every element.
#[tile_kernel(grid = [BLOCKS])]
fn pile<T: Number, const BLOCKS: usize>(y: &mut Tensor<T, 7>) {
    let i = Tile::<i32, 1>::iota([8], 0);
    y.atomic_view().fetch_add([i], Tile::ones([8]), Relaxed, DeviceScope);
}

#[test]
fn no_addition_of_halves_is_lost() {
    for (device, label) in devices() {
        let mut y = Tensor::<f16>::zeros(&device, [7]).unwrap();
        pile::<f16, 200>(&mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [f16::from_f32(200.0); 7], "{label}");
        let mut y = Tensor::<bf16>::zeros(&device, [7]).unwrap();
        pile::<bf16, 200>(&mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [bf16::from_f32(200.0); 7], "{label}");
    }
}

#[test]
fn an_instance_without_the_operation_is_refused() {
    for (device, label) in devices() {
        let mut y = Tensor::<f8e5m2>::zeros(&device, [7]).unwrap();
        let error = pile::<f8e5m2, 2>(&mut y).launch().unwrap_err().to_string();
        assert!(error.contains("a tensor of f8e5m2 has no atomic `fetch_add`"), "{label}: {error}");
    }
}

/// Sums of rows, with every hint there is; the last prefetches are beyond the tensor.
#[tile_kernel]
fn hinted<const B: usize, const AHEAD: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, 1>) {
    let x = x.partition_view([1, B]).latency(AHEAD).bulk_copy(true);
    let mut y = y.partition_view_mut([1, 1]);
    let [i, _] = y.index();
    y.prefetch();
    let mut sum = Tile::zeros([1, 1]);
    for p in (0..x.tiles(1)).rev() {
        x.prefetch([i + 1, p + 1000]);
        sum += x.load_masked([i, p]).sum(1);
    }
    y.store(sum);
}

#[test]
fn hints_change_nothing() {
    let ir = hinted::ir().to_string();
    assert!(ir.contains("latency AHEAD bulk_copy true"), "{ir}");
    let (m, n) = (5, 77);
    let x: Vec<f32> = (0..m * n).map(|i| (i % 17) as f32).collect();
    let expected: Vec<f32> = x.chunks(n).map(|row| row.iter().sum()).collect();
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [m, n]).unwrap();
        let mut y = Tensor::zeros(&device, [m, 1]).unwrap();
        hinted::<16, 2>(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
        let error = hinted::<16, 65>(&x, &mut y).launch().unwrap_err().to_string();
        assert!(error.contains("a latency of 65 is too far ahead to be of use"), "{label}: {error}");
    }
}
