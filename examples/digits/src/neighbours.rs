//! Nearest neighbours on a device: upload, two kernels, download.

use crate::data::{Digits, PIXELS};
use crate::kernels::{distances, vote};
use tile::prelude::*;

/// How many neighbours vote.
pub(crate) const K: usize = 3;

/// The predicted digits, and how long each kernel took.
pub(crate) struct Predictions {
    /// A digit per test image.
    pub(crate) labels: Vec<i32>,
    /// Times of `distances` and `vote`.
    pub(crate) milliseconds: [f64; 2],
}

/// Predicts the digits of the test images.
pub(crate) fn classify(device: &Device, train: &Digits, test: &Digits) -> tile::Result<Predictions> {
    let (m, n) = (test.len(), train.len());
    let test_pixels = Tensor::from_slice(device, &test.pixels, [m, PIXELS])?;
    let train_pixels = Tensor::from_slice(device, &train.pixels, [n, PIXELS])?;
    let labels = Tensor::from_slice(device, &train.labels, [n])?;
    let mut distance = Tensor::zeros(device, [m, n])?;
    let mut predicted = Tensor::zeros(device, [m])?;
    let first = distances::<64, 64>(&test_pixels, &train_pixels, &mut distance).launch_timed()?;
    let second = vote::<8, 2048, K>(&distance, &labels, &mut predicted).launch_timed()?;
    let milliseconds = [first, second].map(|time| time.as_secs_f64() * 1e3);
    Ok(Predictions { labels: predicted.to_vec()?, milliseconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by plain loops, ties resolved alike.
    fn expected(train: &Digits, test: &Digits) -> Vec<i32> {
        let square = |a: bf16, b: bf16| (a.to_f32() - b.to_f32()).powi(2);
        let distance = |a: &[bf16], b: &[bf16]| -> f32 { a.iter().zip(b).map(|(&a, &b)| square(a, b)).sum() };
        let predict = |image: &[bf16]| {
            let mut near: Vec<(f32, usize)> = train
                .pixels
                .chunks(PIXELS)
                .enumerate()
                .map(|(i, other)| (distance(image, other), i))
                .collect();
            near.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let mut votes = [0; 10];
            near[..K].iter().for_each(|&(_, i)| votes[train.labels[i] as usize] += 1);
            let most = votes.iter().max().unwrap();
            votes.iter().position(|count| count == most).unwrap() as i32
        };
        test.pixels.chunks(PIXELS).map(predict).collect()
    }

    #[test]
    fn predictions_are_those_of_plain_loops() {
        let (train, test) = crate::data::load().unwrap().split(0, 30);
        for device in [Device::cpu(), Device::reference()] {
            assert_eq!(classify(&device, &train, &test).unwrap().labels, expected(&train, &test), "{device}");
        }
    }
}
