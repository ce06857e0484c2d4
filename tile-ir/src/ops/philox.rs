//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as easy
//! as 1, 2, 3", SC'11): ten rounds that mix a counter of four words with a key of two. Counters that differ give
//! words that pass every test of randomness, so element `i` of a tile needs nothing but its number.

/// The multipliers of words 0 and 2.
pub const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];

/// What the key's words grow by after each round.
pub const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// The number of rounds.
pub const ROUNDS: u32 = 10;

/// The four random words of a counter and a key.
///
/// ```
/// let words = tile_ir::ops::philox::philox4x32([0; 4], [0; 2]);
/// assert_eq!(words, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
/// ```
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let ([mut a, mut b, mut c, mut d], [mut k, mut l]) = (counter, key);
    for _ in 0..ROUNDS {
        let (low, high) = halves(u64::from(a) * u64::from(MULTIPLIERS[0]));
        let (other_low, other_high) = halves(u64::from(c) * u64::from(MULTIPLIERS[1]));
        (a, b, c, d) = (other_high ^ b ^ k, other_low, high ^ d ^ l, low);
        (k, l) = (k.wrapping_add(WEYL[0]), l.wrapping_add(WEYL[1]));
    }
    [a, b, c, d]
}

/// The first two words of the counter `(position, 0, 0)` under the key `seed`, the first word in the low half: what the
/// op of this name gives.
///
/// ```
/// assert_eq!(tile_ir::ops::philox::philox(0, 0), 0xe169_c58d_6627_e8d5);
/// ```
pub fn philox(position: u64, seed: u64) -> u64 {
    let ((p, q), (k, l)) = (halves(position), halves(seed));
    let [first, second, ..] = philox4x32([p, q, 0, 0], [k, l]);
    u64::from(first) | u64::from(second) << 32
}

/// The low and the high word.
fn halves(value: u64) -> (u32, u32) {
    (value as u32, (value >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the generator's authors: `philox4x32 10` in Random123's `kat_vectors`.
    #[test]
    fn known_answers() {
        let ones = u32::MAX;
        assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32([ones; 4], [ones; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox4x32([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn a_position_is_the_low_half_of_the_counter() {
        assert_eq!(philox(0, 0), 0xe169_c58d_6627_e8d5);
        let words = philox4x32([7, 3, 0, 0], [5, 11]);
        let expected = u64::from(words[0]) | u64::from(words[1]) << 32;
        assert_eq!(philox(7 | 3 << 32, 5 | 11 << 32), expected);
    }
}
