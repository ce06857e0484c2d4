//! The confusion matrix as a PNG: a cell per pair of digits, darker with its count, the count inside.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

const CELL: usize = 56;
const MARGIN: usize = 72;
const SIDE: usize = MARGIN + 10 * CELL + 16;

type Colour = [u8; 3];
const WHITE: Colour = [255, 255, 255];
const INK: Colour = [30, 30, 40];

/// Digits of five by seven dots, a byte per row.
const FONT: [[u8; 7]; 10] = [
    [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110],
    [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
    [0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111],
    [0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110],
    [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
    [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
    [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
    [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000],
    [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
    [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
];

struct Canvas {
    pixels: Vec<u8>,
}

impl Canvas {
    fn rectangle(&mut self, (x, y): (usize, usize), (width, height): (usize, usize), colour: Colour) {
        for row in y..y + height {
            for column in x..x + width {
                let at = (row * SIDE + column) * 3;
                self.pixels[at..at + 3].copy_from_slice(&colour);
            }
        }
    }

    /// A number centred on a point.
    fn number(&mut self, number: usize, (x, y): (usize, usize), dot: usize, colour: Colour) {
        let text = number.to_string();
        let width = text.len() * 6 * dot - dot;
        for (i, digit) in text.bytes().enumerate() {
            let left = x - width / 2 + i * 6 * dot;
            for (row, bits) in FONT[usize::from(digit - b'0')].iter().enumerate() {
                for column in (0..5).filter(|column| bits & (0b10000 >> column) != 0) {
                    self.rectangle((left + column * dot, y + row * dot - 7 * dot / 2), (dot, dot), colour);
                }
            }
        }
    }
}

/// Writes the picture: a row per digit, a column per prediction.
pub(crate) fn write(path: &Path, confusion: &[[usize; 10]; 10]) -> Result<(), Box<dyn std::error::Error>> {
    let mut canvas = Canvas { pixels: vec![255; SIDE * SIDE * 3] };
    for (digit, row) in confusion.iter().enumerate() {
        let total: usize = row.iter().sum();
        let across = MARGIN + digit * CELL + CELL / 2;
        canvas.number(digit, (across, MARGIN / 2), 4, INK);
        canvas.number(digit, (MARGIN / 2, across), 4, INK);
        for (predicted, &count) in row.iter().enumerate() {
            let corner = (MARGIN + predicted * CELL, MARGIN + digit * CELL);
            canvas.rectangle(corner, (CELL - 2, CELL - 2), shade(count, total, digit == predicted));
            if count > 0 {
                let text = if digit == predicted { WHITE } else { INK };
                canvas.number(count, (corner.0 + CELL / 2 - 1, corner.1 + CELL / 2 - 1), 2, text);
            }
        }
    }
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), SIDE as u32, SIDE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&canvas.pixels)?;
    Ok(())
}

/// Blue for right answers, red for wrong ones; a few wrong ones are well visible.
fn shade(count: usize, total: usize, correct: bool) -> Colour {
    let share = count as f64 / total.max(1) as f64;
    let mix =
        |from: u8, to: u8, share: f64| (f64::from(from) + (f64::from(to) - f64::from(from)) * share) as u8;
    let (target, share): (Colour, f64) = match (count, correct) {
        (0, _) => return [240, 240, 244],
        (_, true) => ([25, 80, 160], share),
        (_, false) => ([220, 60, 50], (share * 8.0).clamp(0.25, 1.0)),
    };
    [0, 1, 2].map(|channel| mix(WHITE[channel], target[channel], share))
}
