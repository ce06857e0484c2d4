//! Quantities as people read them: three digits and a unit.

/// A time in seconds: `12.3 µs`.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::bench::time;
/// assert_eq!(time(12.3e-6), "12.3 µs");
/// ```
pub fn time(seconds: f64) -> String {
    scaled(seconds * 1e6, &["µs", "ms", "s"])
}

/// A number of bytes: `1.05 MB`.
pub(crate) fn bytes(bytes: f64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// A number of bytes of memory, which comes in powers of two: `140 GiB`, `32 KiB`.
pub(crate) fn memory(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let unit = (bytes.max(1).ilog2() as usize / 10).min(UNITS.len() - 1);
    let value = bytes as f64 / (1_u64 << (10 * unit)) as f64;
    let digits = usize::from(value.fract() != 0.0 && value < 99.95);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Clocks per second: `1.98 GHz`.
pub(crate) fn frequency(hertz: f64) -> String {
    scaled(hertz / 1e6, &["MHz", "GHz"])
}

/// Bytes per second: `29.0 GB/s`.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::bench::byte_rate;
/// assert_eq!(byte_rate(29e9), "29.0 GB/s");
/// ```
pub fn byte_rate(rate: f64) -> String {
    scaled(rate / 1e6, &["MB/s", "GB/s", "TB/s"])
}

/// Floating-point operations per second: `212 GFLOP/s`.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::bench::flop_rate;
/// assert_eq!(flop_rate(2.12e11), "212 GFLOP/s");
/// ```
pub fn flop_rate(rate: f64) -> String {
    scaled(rate / 1e6, &["MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"])
}

/// A value in the first of these units, each a thousand times the one before, in which it has three digits before the
/// point at most, or in the last one.
fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1e3;
        unit += 1;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits() {
        let times = [1.234e-9, 12.34e-6, 123.4e-6, 999.4e-6, 0.9996e-3, 0.1, 12.34, 12345.0];
        let texts = ["0.00 µs", "12.3 µs", "123 µs", "999 µs", "1.00 ms", "100 ms", "12.3 s", "12345 s"];
        assert_eq!(times.map(time), texts);
        assert_eq!([0.0, 999.0, 1_048_576.0].map(bytes), ["0.00 B", "999 B", "1.05 MB"]);
        let sizes = [0, 512, 48 << 10, 150_050_504_704, 25_276_502_016].map(memory);
        assert_eq!(sizes, ["0 B", "512 B", "48 KiB", "140 GiB", "23.5 GiB"]);
        assert_eq!([1.98e9, 9e8].map(frequency), ["1.98 GHz", "900 MHz"]);
        assert_eq!([29e9, 4.8e12].map(byte_rate), ["29.0 GB/s", "4.80 TB/s"]);
        assert_eq!([2.12e11, 9.89e14].map(flop_rate), ["212 GFLOP/s", "989 TFLOP/s"]);
    }
}
