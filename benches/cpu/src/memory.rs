//! The memory that all contestants of a row share, which is that of the library's tensors: it begins at a multiple of 64
//! bytes, as vectors and streaming stores want it, lies in huge pages where the system has such, and all of it has been
//! written once.

use half::bf16;
use tile::{Device, Tensor};

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// Numbers of which every bit pattern is one.
///
/// # Safety
/// Any initialised bytes are a valid value, and its size divides that of a line.
pub(crate) unsafe trait Plain: tile::kernel::Element {}

// SAFETY: every pattern of 32 bits is one.
unsafe impl Plain for f32 {}
// SAFETY: every pattern of 16 bits is one.
unsafe impl Plain for bf16 {}
// SAFETY: every pattern of 8 bits is one.
unsafe impl Plain for i8 {}
// SAFETY: every pattern of 32 bits is one.
unsafe impl Plain for i32 {}

/// So many numbers of one format at a time.
pub(crate) struct Memory(Tensor<u8>);

impl Memory {
    /// Zeros.
    pub(crate) fn zeros<T: Plain>(count: usize) -> Memory {
        let shape = [count * size_of::<T>()];
        let mut memory = Memory(Tensor::zeros(&Device::cpu(), shape).expect("there is memory"));
        memory.bytes().fill(0);
        memory
    }

    /// Numbers made of others that look random and lie evenly in [−1, 1): SplitMix64's (Steele, Lea, Flood 2014).
    pub(crate) fn random<T: Plain>(count: usize, seed: u64, number: impl Fn(f32) -> T) -> Memory {
        let mut memory = Memory::zeros::<T>(count);
        let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
        for element in memory.of_mut::<T>() {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let bits = ((mixed ^ mixed >> 31) >> 40) as u32;
            *element = number(bits as f32 / (1 << 23) as f32 - 1.0);
        }
        memory
    }

    /// Random numbers of f32 in [−1, 1).
    pub(crate) fn floats(count: usize, seed: u64) -> Memory {
        Memory::random(count, seed, |number| number)
    }

    /// The numbers.
    pub(crate) fn of<T: Plain>(&self) -> &[T] {
        let bytes = self.0.as_slice().expect("a dense tensor of the CPU");
        // SAFETY: the bytes are initialised, and aligned for any number.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.0.as_mut_slice().expect("a dense tensor of the CPU")
    }

    /// The numbers, to be written.
    pub(crate) fn of_mut<T: Plain>(&mut self) -> &mut [T] {
        let bytes = self.bytes();
        // SAFETY: as above, and any number leaves initialised bytes.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<T>()) }
    }

    /// The numbers as a tensor of the CPU. It is made once and not at each launch, as a program does.
    ///
    /// # Safety
    /// The tensor isn't used after this memory is dropped, nor while a slice of the memory is in use.
    pub(crate) unsafe fn tensor<T: Plain>(&mut self, shape: &[usize]) -> tile::Result<Tensor<T>> {
        let elements = self.of_mut::<T>();
        assert_eq!(elements.len(), shape.iter().product::<usize>(), "the shape is that of the memory");
        // SAFETY: the elements are there, and the caller vouches for how long and by whom they are used.
        unsafe { Tensor::from_raw(&Device::cpu(), elements.as_mut_ptr() as u64, shape) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_fill_their_range_evenly() {
        let memory = Memory::floats(10_001, 3);
        let numbers = memory.of::<f32>();
        assert_eq!((numbers.len(), numbers.as_ptr() as usize % LINE), (10_001, 0));
        let mean = numbers.iter().sum::<f32>() / 10_001.0;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!(numbers.iter().all(|number| (-1.0..1.0).contains(number)));
        assert!(numbers.iter().any(|&number| number < -0.99) && numbers.iter().any(|&number| number > 0.99));
        assert_ne!(numbers[..4], Memory::floats(4, 4).of::<f32>()[..]);
    }
}
