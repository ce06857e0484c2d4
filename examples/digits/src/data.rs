//! The handwritten digits of the UCI Machine Learning Repository; see `data/README.md`.

use flate2::read::GzDecoder;
use std::io::Read;
use tile::prelude::bf16;

const COMPRESSED: &[u8] = include_bytes!("../data/digits.csv.gz");

/// Pixels of an image.
pub(crate) const PIXELS: usize = 64;

/// Images and what they show.
pub(crate) struct Digits {
    /// 64 pixels per image, from 0 to 16.
    pub(crate) pixels: Vec<bf16>,
    /// The digit of each image.
    pub(crate) labels: Vec<i32>,
}

/// Reads all images.
pub(crate) fn load() -> Result<Digits, Box<dyn std::error::Error>> {
    let mut text = String::new();
    GzDecoder::new(COMPRESSED).read_to_string(&mut text)?;
    let mut digits = Digits { pixels: Vec::new(), labels: Vec::new() };
    for (line, row) in text.lines().enumerate() {
        let values =
            row.split(',').map(|value| value.trim().parse::<u8>()).collect::<Result<Vec<u8>, _>>()?;
        let [pixels @ .., label] = values.as_slice() else {
            return Err(format!("row {line} is empty").into());
        };
        if pixels.len() != PIXELS || *label > 9 {
            return Err(format!("row {line} isn't an image and its digit").into());
        }
        digits.pixels.extend(pixels.iter().map(|&pixel| bf16::from(pixel)));
        digits.labels.push(i32::from(*label));
    }
    Ok(digits)
}

impl Digits {
    /// How many images there are.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Training and test images of one fold: every `folds`-th image is a test image.
    pub(crate) fn split(&self, fold: usize, folds: usize) -> (Digits, Digits) {
        let pick = |test: bool| {
            let chosen = || (0..self.len()).filter(move |i| (i % folds == fold) == test);
            Digits {
                pixels: chosen().flat_map(|i| self.pixels[i * PIXELS..(i + 1) * PIXELS].to_vec()).collect(),
                labels: chosen().map(|i| self.labels[i]).collect(),
            }
        };
        (pick(false), pick(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_share_no_image_and_leave_none_out() {
        let digits = load().unwrap();
        assert_eq!(digits.len(), 1797);
        let tests: usize = (0..5).map(|fold| digits.split(fold, 5).1.len()).sum();
        assert_eq!(tests, 1797);
        let (train, test) = digits.split(0, 5);
        assert_eq!(train.len() + test.len(), 1797);
        assert_eq!(test.pixels[..PIXELS], digits.pixels[..PIXELS]);
    }
}
