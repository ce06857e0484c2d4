//! Softmax of each row of a matrix. `cargo run -p softmax [-- DEVICE]`

use tile::prelude::*;

/// Softmax along the last axis. A block holds `ROWS` whole rows of at most `COLUMNS` elements; what lies
/// beyond the row is −∞, which adds nothing. A launch on longer rows is refused.
#[tile_kernel(where(n <= COLUMNS), instances(ROWS = 4, COLUMNS = 1024))]
fn softmax<const ROWS: usize, const COLUMNS: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([ROWS, COLUMNS]);
    let mut y = y.partition_view_mut([ROWS, COLUMNS]);
    let row = x.load_masked_or(f32::NEG_INFINITY, y.index());
    let scaled = exp(row - row.max(1));
    y.store_masked(scaled / scaled.sum(1));
}

const SHAPE: [usize; 2] = [1000, 777];

/// The result on a device, and how long the kernel took in milliseconds.
fn softmax_on(device: &Device, x: &[f32]) -> tile::Result<(Vec<f32>, f64)> {
    let x = Tensor::from_slice(device, x, SHAPE)?;
    let mut y = Tensor::zeros(device, SHAPE)?;
    let time = softmax::<4, 1024>(&x, &mut y).launch_timed()?;
    Ok((y.to_vec()?, time.as_secs_f64() * 1e3))
}

/// A plain loop in f64.
fn softmax_of_rows(x: &[f32]) -> Vec<f64> {
    let rows = x.chunks(SHAPE[1]).flat_map(|row| {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let scaled: Vec<f64> = row.iter().map(|&x| f64::from(x - largest).exp()).collect();
        let sum: f64 = scaled.iter().sum();
        scaled.into_iter().map(move |e| e / sum)
    });
    rows.collect()
}

/// The largest difference relative to the expected value.
fn largest_error(actual: &[f32], expected: &[f64]) -> f64 {
    let errors = actual.iter().zip(expected).map(|(&a, &e)| (f64::from(a) - e).abs() / e);
    errors.fold(0.0, f64::max)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = match std::env::args().nth(1) {
        Some(name) => Device::named(&name)?,
        None => Device::best()?,
    };
    let x: Vec<f32> = (0..SHAPE[0] * SHAPE[1]).map(|i| ((i * 7919) % 1013) as f32 / 100.0 - 5.0).collect();
    let (y, time) = softmax_on(&device, &x)?;
    println!("softmax of {SHAPE:?} on {device}: {time:.3} ms");

    let expected = softmax_of_rows(&x);
    let error = largest_error(&y, &expected);
    let reference_error = largest_error(&softmax_on(&Device::reference(), &x)?.0, &expected);
    println!("largest relative error {error:.1e}, of the reference device {reference_error:.1e}");
    // An exponential of 2 ulp, a sum of 777 terms and a division.
    if error > 2e-6 || reference_error > 2e-6 {
        return Err("the result differs from a plain loop in f64".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn ir() {
        insta::assert_snapshot!(super::softmax::ir());
    }
}
