//! Decides the colours: which ones stand for offsets, threads, warps and banks. Knows nothing of cells or of
//! renderers. Invariant: every colour that a palette gives is light enough for [`INK`] to be read on it (a
//! contrast of at least 4.5, as WCAG AA asks), so that pictures look the same in light and dark surroundings.

use core::fmt;

/// A colour of the sRGB space.
///
/// ```
/// use tile_layout::picture::Rgb;
/// assert_eq!(Rgb { red: 255, green: 128, blue: 0 }.to_string(), "#ff8000");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rgb {
    /// From 0 to 255.
    pub red: u8,
    /// From 0 to 255.
    pub green: u8,
    /// From 0 to 255.
    pub blue: u8,
}

/// What a cell is painted with.
///
/// ```
/// use tile_layout::picture::{Paint, Rgb};
/// let white = Paint::Colour(Rgb { red: 255, green: 255, blue: 255 });
/// assert!(white != Paint::Blank && white != Paint::Hatched);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Paint {
    /// Nothing is there.
    Blank,
    /// There is a value, but it comes from no memory.
    Hatched,
    /// An element.
    Colour(Rgb),
}

/// The colour of text on a painted cell.
pub(super) const INK: Rgb = hex(0x1f2328);
const WHITE: Rgb = hex(0xffffff);

/// Eight hues in the order of the rainbow, so that neighbours in memory look related and both the direction of
/// a layout and its breaks are seen.
const HUES: [Rgb; 8] = [
    hex(0xf4b0ab),
    hex(0xf7cba2),
    hex(0xf5e39c),
    hex(0xb9dfa4),
    hex(0xa3dccf),
    hex(0xa6c9f2),
    hex(0xc5b9f0),
    hex(0xeab6da),
];

/// Lightness in percent and saturation in percent of banks: neighbouring hues differ in lightness too.
const BANK_SHADES: [(i64, i64); 2] = [(83, 75), (74, 62)];

const fn hex(code: u32) -> Rgb {
    Rgb { red: (code >> 16) as u8, green: (code >> 8) as u8, blue: code as u8 }
}

/// The colour of a number that counts through something, modulo 8.
pub(super) fn cycle(number: i64) -> Paint {
    Paint::Colour(HUES[number.rem_euclid(8) as usize])
}

/// The colour of a lane: its hue modulo 8, its shade by the warp modulo 4.
pub(super) fn thread(lane: u64, warp: u64) -> Paint {
    let hue = HUES[(lane % 8) as usize];
    Paint::Colour(match warp % 4 {
        0 => hue,
        1 => hue.mixed(WHITE, 50),
        2 => hue.mixed(INK, 14),
        _ => hue.mixed(hex(0xd0d4da), 60),
    })
}

/// The colour of a bank: one rotation through all hues.
pub(super) fn bank(number: u64, banks: u64) -> Paint {
    let hue = (number % banks.max(1) * 360 / banks.max(1)) as i64;
    let (lightness, saturation) = BANK_SHADES[(number % 2) as usize];
    Paint::Colour(from_hue(hue, saturation, lightness))
}

/// The same paint, paler: what is there but not meant.
pub(super) fn muted(paint: Paint) -> Paint {
    match paint {
        Paint::Colour(colour) => Paint::Colour(colour.mixed(WHITE, 72)),
        other => other,
    }
}

/// A colour from degrees and percents (HSL), in integers: `core` has no powers of reals, and the result must not
/// depend on the machine.
fn from_hue(hue: i64, saturation: i64, lightness: i64) -> Rgb {
    let chroma = (100 - (2 * lightness - 100).abs()) * saturation / 100;
    let channel = |turn: i64| {
        // A trapezoid over the circle: full for a third, falling to nothing for a third, per mille.
        let distance = ((hue + turn).rem_euclid(360) - 180).abs();
        let share = ((distance - 60) * 1000 / 60).clamp(0, 1000);
        let percent_mille = lightness * 1000 - chroma * 500 + chroma * share;
        (percent_mille * 255 / 100_000).clamp(0, 255) as u8
    };
    Rgb { red: channel(0), green: channel(240), blue: channel(120) }
}

impl Rgb {
    /// Some percent of another colour mixed in.
    fn mixed(self, other: Rgb, percent: u16) -> Rgb {
        let mix = |own: u8, other: u8| {
            ((u16::from(own) * (100 - percent) + u16::from(other) * percent) / 100).min(255) as u8
        };
        Rgb {
            red: mix(self.red, other.red),
            green: mix(self.green, other.green),
            blue: mix(self.blue, other.blue),
        }
    }

    /// The nearest colour of the 6 × 6 × 6 cube that terminals with 256 colours have.
    pub(super) fn ansi(self) -> u8 {
        const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
        let nearest = |value: u8| {
            let distances = LEVELS.iter().map(|level| level.abs_diff(value)).zip(0u8..);
            distances.min().map_or(0, |(_, level)| level)
        };
        16 + 36 * nearest(self.red) + 6 * nearest(self.green) + nearest(self.blue)
    }
}

impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2 defines it.
    fn luminance(colour: Rgb) -> f64 {
        let linear = |value: u8| {
            let share = f64::from(value) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue)
    }

    fn contrast(paint: Paint) -> f64 {
        let Paint::Colour(colour) = paint else { panic!("no colour") };
        (luminance(colour) + 0.05) / (luminance(INK) + 0.05)
    }

    #[test]
    fn ink_is_readable_on_every_colour() {
        for number in 0..64 {
            let banks = [32, 64].map(|banks| bank(number, banks));
            let threads = [0, 1, 2, 3].map(|warp| thread(number, warp));
            for paint in banks.into_iter().chain(threads).chain([cycle(number as i64)]) {
                assert!(contrast(paint) >= 4.5, "{paint:?}: {}", contrast(paint));
                assert!(contrast(muted(paint)) >= 4.5);
            }
        }
    }

    #[test]
    fn colours_that_must_differ_do() {
        let distinct = |paints: &[Paint]| {
            paints.iter().enumerate().all(|(place, paint)| !paints[..place].contains(paint))
        };
        assert!(distinct(&(0..32).map(|number| bank(number, 32)).collect::<std::vec::Vec<_>>()));
        let threads = (0..8).flat_map(|lane| (0..4).map(move |warp| thread(lane, warp)));
        assert!(distinct(&threads.collect::<std::vec::Vec<_>>()));
    }

    #[test]
    fn hues_go_round_the_circle() {
        let full = [0, 120, 240].map(|hue| from_hue(hue, 100, 50));
        assert_eq!(full, [hex(0xff0000), hex(0x00ff00), hex(0x0000ff)]);
        assert_eq!(from_hue(60, 100, 50), hex(0xffff00));
        assert_eq!(from_hue(200, 0, 100), WHITE);
    }
}
