//! `c = a + b`: the smallest kernel. `cargo run -p vector_add [-- DEVICE]`

// Native code of kernels is linked in nonetheless: the author of a kernel writes no `unsafe`.
#![forbid(unsafe_code)]

use tile::prelude::*;

/// Adds two vectors of any length, a tile of `B` elements per block.
#[tile_kernel(instances(B = 1024))]
fn vector_add<const B: usize>(a: &Tensor<f32, n>, b: &Tensor<f32, n>, c: &mut Tensor<f32, n>) {
    let a = a.partition_view([B]);
    let b = b.partition_view([B]);
    let mut c = c.partition_view_mut([B]);
    let i = c.index();
    c.store_masked(a.load_masked(i) + b.load_masked(i));
}

/// The sum on a device, and how long the kernel took in milliseconds.
fn add_on(device: &Device, a: &[f32], b: &[f32]) -> tile::Result<(Vec<f32>, f64)> {
    let n = a.len();
    let (a, b) = (Tensor::from_slice(device, a, [n])?, Tensor::from_slice(device, b, [n])?);
    let mut c = Tensor::zeros(device, [n])?;
    let time = vector_add::<1024>(&a, &b, &mut c).launch_timed()?;
    Ok((c.to_vec()?, time.as_secs_f64() * 1e3))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = match std::env::args().nth(1) {
        Some(name) => Device::named(&name)?,
        None => Device::best()?,
    };
    let n = 1_000_003;
    let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let b: Vec<f32> = (0..n).map(|i| 1.0 - i as f32 * 0.25).collect();
    let (c, time) = add_on(&device, &a, &b)?;
    println!("vector_add of {n} elements on {device}: {time:.3} ms");

    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    if c != expected || add_on(&Device::reference(), &a, &b)?.0 != expected {
        return Err("the device, the reference and a plain loop disagree".into());
    }
    println!("equal to the reference device and to a plain loop, bit by bit");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn ir() {
        insta::assert_snapshot!(super::vector_add::ir());
    }
}
