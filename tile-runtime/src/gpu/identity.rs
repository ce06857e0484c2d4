//! What other programs call a device: its UUID and its place on the PCI bus, in one form whatever the vendor.

use std::ffi::CStr;

/// A UUID as `nvidia-smi` and `rocminfo` write it behind `GPU-`: 16 bytes in hexadecimal. AMD's runtime on Linux gives the
/// text itself, 16 digits. `None` where there is none.
pub(super) fn uuid(bytes: [u8; 16]) -> Option<String> {
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    // What AMD's runtime says of a device without one.
    if bytes == [0; 16] || text.trim_end_matches('\0') == "XX" {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_hexdigit()) && !text.is_empty() {
        return Some(text.to_owned());
    }
    let hex = |range: std::ops::Range<usize>| -> String {
        bytes[range].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    Some([0..4, 4..6, 6..8, 8..10, 10..16].map(hex).join("-"))
}

/// A place on the bus as Linux writes it. `None` where the driver wrote none.
pub(super) fn pci_bus(text: &[u8]) -> Option<String> {
    let text = CStr::from_bytes_until_nul(text).ok()?.to_str().ok()?;
    (!text.is_empty()).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_written_as_other_programs_write_them() {
        let bytes = std::array::from_fn(|i| 0x11 * i as u8);
        assert_eq!(uuid(bytes).as_deref(), Some("00112233-4455-6677-8899-aabbccddeeff"));
        assert_eq!(uuid(*b"b7da1a2c8e5f0913").as_deref(), Some("b7da1a2c8e5f0913"));
        assert_eq!((uuid([0; 16]), uuid(*b"XX\0\0\0\0\0\0\0\0\0\0\0\0\0\0")), (None, None));
        assert_eq!(pci_bus(b"0000:3B:00.0\0\0").as_deref(), Some("0000:3b:00.0"));
        assert_eq!((pci_bus(b"\0\0"), pci_bus(b"0000")), (None, None));
    }
}
