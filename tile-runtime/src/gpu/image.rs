//! Code as drivers read it in place: aligned, and with a NUL byte behind it.

/// A copy of an image of code.
pub(crate) struct Image(Vec<u64>);

impl Image {
    /// A copy of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Image {
        let mut words = vec![0_u64; bytes.len() / size_of::<u64>() + 1];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        Image(words)
    }

    /// The first byte.
    pub(crate) fn first(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_ends_with_a_nul_byte() {
        for text in ["", "1234567", "12345678", "12345678901"] {
            let image = Image::of(text.as_bytes());
            // SAFETY: a NUL byte follows the text, which has none.
            let read = unsafe { std::ffi::CStr::from_ptr(image.first().cast()) };
            assert_eq!(read.to_str(), Ok(text));
            assert!(image.first().cast::<u64>().is_aligned());
        }
    }
}
