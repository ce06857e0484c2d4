//! A checksum that finds damage and change, not malice. The build script takes it of the crate's sources.

/// FNV-1a, 64 bits.
pub(crate) fn checksum(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}
