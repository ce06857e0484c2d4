//! Whether kernels compute what plain loops do, at sizes that these can take.

use crate::problem::{Problem, Result};
use crate::table::Row;
use crate::tensors::{AnyTensor, Role, Spec};
use tile::Device;
use tile::ir::DType;

/// How far an output may be off: the length of the difference by that of what is expected.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 1e-5,
        DType::F16 => 1e-3,
        // Rounding alone is up to 2⁻⁹ of an element; weights of attention are rounded once more.
        _ => 5e-3,
    }
}

/// How far an element may be off, by what is expected of it or by what elements are on average, whichever is larger.
fn element_tolerance(dtype: DType) -> f64 {
    8.0 * tolerance(dtype)
}

/// Numbers that look random, about normally distributed: sums of SplitMix64's (Steele, Lea, Flood 2014).
pub fn numbers(spec: &Spec, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..spec.elements()).map(|_| (0..12).map(|_| uniform()).sum::<f64>() - 6.0).collect()
}

/// Checks the small sizes of a row on a device; the largest error.
///
/// # Errors
/// Where an output differs from what is expected, and as [`Problem::launch`].
pub fn check(row: &Row, device: &Device) -> Result<f64> {
    let mut largest = 0f64;
    for &problem in row.small {
        let error = error_of(problem, device).map_err(|error| {
            let shapes: Vec<Vec<usize>> = problem.tensors().into_iter().map(|spec| spec.shape).collect();
            format!("{} with tensors of shapes {shapes:?}: {error}", row.name)
        })?;
        largest = largest.max(error);
    }
    Ok(largest)
}

fn error_of(problem: &dyn Problem, device: &Device) -> Result<f64> {
    let specs = problem.tensors();
    let mut tensors = Vec::new();
    let mut inputs = Vec::new();
    for (spec, seed) in specs.iter().zip(1..) {
        let is_input = spec.role == Role::Input;
        let given = if is_input { numbers(spec, seed) } else { vec![f64::NAN; spec.elements()] };
        let tensor = AnyTensor::from_numbers(device, spec, &given)?;
        if is_input {
            inputs.push(tensor.numbers()?);
        }
        tensors.push(tensor);
    }
    problem.launch(&mut tensors, None)?;
    let (Some(output), Some(spec)) = (tensors.last(), specs.last()) else { return Ok(0.0) };
    compare(&output.numbers()?, &problem.expected(&inputs), spec.dtype)
}

/// The length of the difference by that of what is expected.
fn compare(actual: &[f64], expected: &[f64], dtype: DType) -> Result<f64> {
    if actual.len() != expected.len() {
        return Err(format!("{} elements, not {}", actual.len(), expected.len()).into());
    }
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>();
    let length = squares(&mut expected.iter().copied()).sqrt();
    let average = length / (expected.len() as f64).sqrt();
    let near = |a: f64, e: f64| (a - e).abs() <= element_tolerance(dtype) * average.max(e.abs());
    if let Some(at) = (0..actual.len()).find(|&at| !near(actual[at], expected[at])) {
        return Err(format!("element {at} is {}, not {}", actual[at], expected[at]).into());
    }
    let error = squares(&mut actual.iter().zip(expected).map(|(a, e)| a - e)).sqrt() / length;
    if error > tolerance(dtype) {
        return Err(format!("the relative error is {error:.1e}, more than {:.0e}", tolerance(dtype)).into());
    }
    Ok(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ROWS;

    fn check_all(device: &Device) {
        for row in ROWS {
            let error = check(row, device).unwrap_or_else(|error| panic!("{error}"));
            println!("{} on {}: {error:.1e}", row.name, device.name());
        }
    }

    #[test]
    fn rows_are_right_on_the_cpu() {
        check_all(&Device::cpu());
    }

    #[test]
    fn rows_are_right_on_the_reference_device() {
        check_all(&Device::reference());
    }

    #[test]
    fn wrong_results_are_seen() {
        let expected = [1.0, -2.0, 3.0];
        assert_eq!(compare(&expected, &expected, DType::F32).unwrap(), 0.0);
        assert!(compare(&[1.0, -2.0, f64::NAN], &expected, DType::BF16).is_err());
        assert!(compare(&[1.0, -2.0], &expected, DType::BF16).is_err());
        assert!(compare(&[1.0, -2.0, 3.2], &expected, DType::BF16).is_err());
        // All of them a little.
        assert!(compare(&[1.01, -2.02, 3.03], &expected, DType::BF16).is_err());
        assert!(compare(&[1.002, -2.0, 3.0], &expected, DType::BF16).is_ok());
    }
}
