//! What memory gives and takes at most: loops that read and write as a row's kernel does and compute next to nothing, with
//! plain and with streaming stores, on the row's own memory.

use crate::contest::{Contestant, Role, Shared};
use std::hint::black_box;
use std::ops::Range;

/// What a kernel does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads the first input.
    Read,
    /// Writes the output, of the sums of the first so many inputs.
    Write(usize),
}

/// How a loop stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Plain,
    /// Past the caches, which then needn't read what is overwritten.
    Streaming,
}

/// The loops of an access, as contestants.
pub(crate) fn of(access: Access, threads: usize) -> Vec<Contestant> {
    let limit = |name: &str, run: fn(&Shared, Range<usize>, Output)| {
        Contestant::here(Role::Limit, name, move |shared| {
            shared_by(threads, shared, run);
            Ok(())
        })
    };
    match access {
        Access::Read => vec![limit("reading", |shared, range, _| {
            black_box(read(&shared.inputs[0].of()[range]));
        })],
        Access::Write(1) => stores(limit, [write::<1>, stream::<1>]),
        Access::Write(2) => stores(limit, [write::<2>, stream::<2>]),
        Access::Write(_) => stores(limit, [write::<3>, stream::<3>]),
    }
}

/// A loop over a range of elements.
type Loop = fn(&Shared, Range<usize>, Output);

fn stores(limit: impl Fn(&str, Loop) -> Contestant, [plain, streaming]: [Loop; 2]) -> Vec<Contestant> {
    let mut limits = vec![limit("plain stores", plain)];
    if has_streaming_stores() {
        limits.push(limit("streaming stores", streaming));
    }
    limits
}

/// The output of which each thread writes a range of its own.
#[derive(Clone, Copy)]
struct Output(*mut f32);

// SAFETY: threads write ranges that don't overlap.
unsafe impl Send for Output {}

impl Output {
    /// # Safety
    /// The elements are there, and nobody else uses them.
    unsafe fn part<'a>(self, range: &Range<usize>) -> &'a mut [f32] {
        // SAFETY: the caller vouches for the elements.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

/// Runs a loop on as many threads, each with a part of the elements that begins where a line does.
fn shared_by(threads: usize, shared: &mut Shared, run: Loop) {
    let output = Output(shared.output.of_mut::<f32>().as_mut_ptr());
    let count = shared.inputs[0].of::<f32>().len();
    let shared = &*shared;
    let part = move |thread: usize| {
        let bound = |thread: usize| count * thread / threads / LANES * LANES;
        bound(thread)..if thread + 1 == threads { count } else { bound(thread + 1) }
    };
    std::thread::scope(|scope| {
        for thread in 1..threads {
            scope.spawn(move || run(shared, part(thread), output));
        }
        run(shared, part(0), output);
    });
}

/// Elements of the widest vector.
const LANES: usize = 16;

/// The bits of all elements, added up, so that all are read.
#[inline(always)]
fn combined(elements: &[f32]) -> u32 {
    let (chunks, rest) = elements.as_chunks::<LANES>();
    let mut lanes = [0u32; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(bits, element)| *bits = bits.wrapping_add(element.to_bits()));
    }
    let bits = lanes.into_iter().chain(rest.iter().map(|element| element.to_bits()));
    bits.fold(0, u32::wrapping_add)
}

/// The sums of the first inputs, one by one.
#[inline(always)]
fn summed<const N: usize>(shared: &Shared, range: Range<usize>, output: &mut [f32]) {
    let inputs: [&[f32]; N] = std::array::from_fn(|i| &shared.inputs[i].of()[range.clone()]);
    for (at, output) in output.iter_mut().enumerate() {
        *output = inputs.iter().fold(0.0, |sum, input| sum + input[at]);
    }
}

fn write<const N: usize>(shared: &Shared, range: Range<usize>, output: Output) {
    // SAFETY: a thread's range is its own.
    let output = unsafe { output.part(&range) };
    sum_into::<N>(shared, range, output, Store::Plain);
}

fn stream<const N: usize>(shared: &Shared, range: Range<usize>, output: Output) {
    // SAFETY: a thread's range is its own.
    let output = unsafe { output.part(&range) };
    sum_into::<N>(shared, range, output, Store::Streaming);
}

#[cfg(target_arch = "x86_64")]
use x86::{has_streaming_stores, read, sum_into};

#[cfg(not(target_arch = "x86_64"))]
use portable::{has_streaming_stores, read, sum_into};

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    //! Loops that the compiler vectorises as it likes; Rust has no streaming stores here.

    use super::*;

    pub(super) fn has_streaming_stores() -> bool {
        false
    }

    pub(super) fn read(elements: &[f32]) -> u32 {
        combined(elements)
    }

    pub(super) fn sum_into<const N: usize>(
        shared: &Shared,
        range: Range<usize>,
        output: &mut [f32],
        _: Store,
    ) {
        summed::<N>(shared, range, output);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Loops over the widest vectors that the processor has.

    use super::*;
    use std::arch::x86_64::*;

    pub(super) fn has_streaming_stores() -> bool {
        is_x86_feature_detected!("avx")
    }

    pub(super) fn read(elements: &[f32]) -> u32 {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions.
            unsafe { read_512(elements) }
        } else {
            combined(elements)
        }
    }

    /// As [`combined`], in vectors by name: whether closures are compiled with a function's features is up to the compiler.
    /// One vector has the sum, so that lines are read in order: where several can be joined at once the compiler reads them
    /// in another one, which the processor doesn't foresee, at two thirds of the rate.
    #[target_feature(enable = "avx512f")]
    fn read_512(elements: &[f32]) -> u32 {
        let (chunks, rest) = elements.as_chunks::<LANES>();
        let mut sum = _mm512_setzero_si512();
        for chunk in chunks {
            // SAFETY: a chunk is as long as a vector.
            sum = _mm512_add_epi32(sum, unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) });
        }
        let mut lanes = [0u32; LANES];
        // SAFETY: so many lanes are as long as a vector.
        unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), sum) };
        lanes.into_iter().fold(combined(rest), u32::wrapping_add)
    }

    pub(super) fn sum_into<const N: usize>(
        shared: &Shared,
        range: Range<usize>,
        output: &mut [f32],
        store: Store,
    ) {
        let whole = range.len() / LANES * LANES;
        let inputs: [&[f32]; N] = std::array::from_fn(|i| &shared.inputs[i].of()[range.clone()]);
        let (vectors, rest) = output.split_at_mut(whole);
        let is_aligned = (vectors.as_ptr() as usize).is_multiple_of(crate::memory::LINE);
        // SAFETY: the processor has the instructions; inputs have as many elements, and where an instruction wants
        // addresses at multiples of its size, they are.
        unsafe {
            match store {
                Store::Streaming if is_aligned && is_x86_feature_detected!("avx512f") => {
                    sum_512::<N, true>(inputs, vectors);
                }
                Store::Streaming if is_aligned && is_x86_feature_detected!("avx") => {
                    sum_256::<N, true>(inputs, vectors);
                }
                _ if is_x86_feature_detected!("avx512f") => sum_512::<N, false>(inputs, vectors),
                _ if is_x86_feature_detected!("avx") => sum_256::<N, false>(inputs, vectors),
                _ => summed::<N>(shared, range.start..range.start + whole, vectors),
            }
        }
        summed::<N>(shared, range.start + whole..range.end, rest);
    }

    macro_rules! sum {
        ($name:ident, $feature:literal, $lanes:literal, $load:ident, $add:ident, $store:ident, $stream:ident) => {
            /// # Safety
            /// Inputs have as many elements as the output, whose number is a multiple of a vector's, and whose address is
            /// a multiple of its size for streaming stores.
            #[target_feature(enable = $feature)]
            unsafe fn $name<const N: usize, const STREAMING: bool>(inputs: [&[f32]; N], output: &mut [f32]) {
                for at in (0..output.len()).step_by($lanes) {
                    // SAFETY: the caller vouches for the elements and the address.
                    unsafe {
                        let mut sum = $load(inputs[0].as_ptr().add(at));
                        for input in &inputs[1..] {
                            sum = $add(sum, $load(input.as_ptr().add(at)));
                        }
                        let target = output.as_mut_ptr().add(at);
                        if STREAMING { $stream(target, sum) } else { $store(target, sum) }
                    }
                }
                // Others see streaming stores behind a fence alone.
                _mm_sfence();
            }
        };
    }

    sum!(sum_512, "avx512f", 16, _mm512_loadu_ps, _mm512_add_ps, _mm512_storeu_ps, _mm512_stream_ps);
    sum!(sum_256, "avx", 8, _mm256_loadu_ps, _mm256_add_ps, _mm256_storeu_ps, _mm256_stream_ps);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[test]
    fn loops_touch_every_element() {
        for count in [1, 16, 17, 1000, 4096] {
            let inputs = (0..3).map(|seed| Memory::floats(count, seed)).collect();
            let mut shared = Shared { inputs, output: Memory::zeros::<f32>(count) };
            for (threads, number) in [(1, 1), (2, 2), (3, 3), (2, 1)] {
                let part = |at: usize| shared.inputs[at].of::<f32>().to_vec();
                let inputs: Vec<Vec<f32>> = (0..number).map(part).collect();
                let sum = |at: usize| inputs.iter().skip(1).fold(inputs[0][at], |sum, input| sum + input[at]);
                let expected: Vec<f32> = (0..count).map(sum).collect();
                for run in [[write::<1>, stream::<1>], [write::<2>, stream::<2>], [write::<3>, stream::<3>]]
                    [number - 1]
                {
                    shared.output.of_mut::<f32>().fill(f32::NAN);
                    shared_by(threads, &mut shared, run);
                    assert_eq!(shared.output.of::<f32>(), expected);
                }
            }
            let elements = shared.inputs[0].of::<f32>();
            assert_eq!(
                read(elements),
                elements.iter().fold(0, |bits: u32, x| bits.wrapping_add(x.to_bits()))
            );
        }
    }

    #[test]
    fn limits_are_of_the_kernels_access() {
        let names = |access| of(access, 1).into_iter().map(|limit| limit.name).collect::<Vec<_>>();
        assert_eq!(names(Access::Read), ["reading"]);
        assert_eq!(names(Access::Write(2))[0], "plain stores");
    }
}
