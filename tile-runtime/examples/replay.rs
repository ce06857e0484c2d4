//! Launches kernels of a file on a device, and compares what they leave with what the evaluator left:
//! `replay FILE [DEVICE]`. Random kernels write such a file where `TILE_FUZZ_KEEP` names one; a machine with a GPU then needs
//! neither the tests nor an evaluator's time. A line of the file is a kernel with its arguments, as JSON.

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};
use half::{bf16, f16};
use serde_json::Value;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use tile_ir::{Array, DType, VerifiedKernel};
use tile_runtime::launch::KernelDef;
use tile_runtime::{Device, Element, Launch, Tensor, f8e4m3fn, f8e5m2};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Memory begins at a multiple of so many bytes.
const ALIGNED: usize = 256;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match replay(&words) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(wrong) => {
            println!("{wrong} kernels differ");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// How many kernels differ.
fn replay(words: &[String]) -> Result<usize> {
    let [file, rest @ ..] = words else { return Err("replay FILE [DEVICE] [EVERY FIRST]".into()) };
    let device = match rest.first() {
        Some(name) => Device::named(name)?,
        None => Device::best()?,
    };
    let (every, first) = match rest {
        [_, every, first] => (every.parse()?, first.parse()?),
        _ => (1, 0),
    };
    let place = Place::of(&device)?;
    let (mut agree, mut refused, mut differ) = (0, 0, 0);
    for (number, line) in std::fs::read_to_string(file)?.lines().enumerate().skip(first).step_by(every) {
        match run(&serde_json::from_str(line)?, &device, &place) {
            Ok(Outcome::Agrees) => agree += 1,
            Ok(Outcome::Refused(why)) => {
                refused += 1;
                println!("{number} is refused: {why}");
            }
            Err(error) => {
                differ += 1;
                println!("{number}: {error}");
            }
        }
    }
    println!("{agree} kernels agree on {}, {refused} don't fit it", device.name());
    Ok(differ)
}

enum Outcome {
    Agrees,
    Refused(String),
}

/// Where tensors lie.
enum Place {
    Host,
    Cuda(Arc<CudaStream>),
}

/// Bytes on a device.
enum Memory {
    Host(Vec<u128>, usize),
    Cuda(CudaSlice<u8>, Arc<CudaStream>),
}

impl Place {
    fn of(device: &Device) -> Result<Place> {
        Ok(match device.name().strip_prefix("cuda:") {
            Some(ordinal) => Place::Cuda(CudaContext::new(ordinal.parse()?)?.default_stream()),
            None => Place::Host,
        })
    }

    fn memory(&self, bytes: &[u8]) -> Result<Memory> {
        // No allocation is empty.
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(ALIGNED).max(ALIGNED), 0xff);
        Ok(match self {
            Place::Host => {
                let mut words = vec![0u128; (padded.len() + ALIGNED) / size_of::<u128>()];
                let first = words.as_ptr().addr().next_multiple_of(ALIGNED) - words.as_ptr().addr();
                let inside =
                    padded.chunks_exact(size_of::<u128>()).zip(&mut words[first / size_of::<u128>()..]);
                inside
                    .for_each(|(bytes, word)| *word = u128::from_ne_bytes(bytes.try_into().expect("a word")));
                Memory::Host(words, first)
            }
            Place::Cuda(stream) => {
                let memory = stream.clone_htod(&padded)?;
                stream.synchronize()?;
                Memory::Cuda(memory, stream.clone())
            }
        })
    }
}

impl Memory {
    fn address(&self) -> u64 {
        match self {
            Memory::Host(words, first) => (words.as_ptr().addr() + first) as u64,
            Memory::Cuda(memory, stream) => memory.device_ptr(stream).0,
        }
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(match self {
            Memory::Host(words, first) => {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                bytes[*first..].to_vec()
            }
            Memory::Cuda(memory, stream) => stream.clone_dtoh(memory)?,
        })
    }
}

/// A tensor of the file, in memory.
struct Placed {
    dtype: DType,
    memory: Memory,
    expected: Vec<u8>,
}

fn run(case: &Value, device: &Device, place: &Place) -> Result<Outcome> {
    let source: &'static str = Box::leak(text(&case["source"])?.to_owned().into_boxed_str());
    let kernel = VerifiedKernel::parse(source)?;
    let name: &'static str = Box::leak(kernel.name.clone().into_boxed_str());
    let definition: &'static KernelDef = Box::leak(Box::new(KernelDef::new(name, source, &[])));
    let mut launch = Launch::new(definition);
    let mut placed = Vec::new();
    for (argument, &parameter) in list(&case["arguments"])?.iter().zip(kernel.params()) {
        let name = kernel.value(parameter).name.clone().unwrap_or_default();
        let name: &'static str = Box::leak(name.into_boxed_str());
        let dtype = DType::from_name(text(&argument["dtype"])?).ok_or("an unknown format")?;
        let bytes = unhex(text(&argument["memory"])?)?;
        if argument["extents"].is_null() {
            let slot = Array::from_bytes(dtype, &[], &bytes);
            launch = with_scalar(launch, name, dtype, &slot)?;
            continue;
        }
        let memory = place.memory(&bytes)?;
        let first = integers(&argument["first"])?[0];
        let address = memory.address().wrapping_add_signed(first * dtype.bytes() as i64);
        let (extents, strides) = (integers(&argument["extents"])?, integers(&argument["strides"])?);
        let extents: Vec<usize> =
            extents.into_iter().map(usize::try_from).collect::<std::result::Result<_, _>>()?;
        let mutable = matches!(kernel.ty(parameter), tile_ir::Type::Tensor(tensor) if tensor.mutable);
        launch = with_tensor(launch, name, dtype, device, address, (&extents, &strides), mutable)?;
        placed.push(Placed { dtype, memory, expected: unhex(text(&argument["expected"])?)? });
    }
    match launch.launch() {
        Ok(()) => {}
        Err(error) => {
            let why = error.to_string();
            let fits = !["registers", "shared memory"].iter().any(|room| why.contains(room));
            return if fits { Err(format!("{why}\n{source}").into()) } else { Ok(Outcome::Refused(why)) };
        }
    }
    for (number, tensor) in placed.iter().enumerate() {
        compare(tensor).map_err(|what| format!("tensor {number}, {what}:\n{source}"))?;
    }
    Ok(Outcome::Agrees)
}

/// Compares every element of the memory, those between a tensor's too; a NaN is like any other.
fn compare(tensor: &Placed) -> Result<()> {
    let (found, expected) = (tensor.memory.bytes()?, &tensor.expected);
    let count = expected.len() / tensor.dtype.bytes();
    let array = |bytes: &[u8]| Array::from_bytes(tensor.dtype, &[count], &bytes[..expected.len()]);
    let (found, expected) = (array(&found), array(expected));
    let differs = |&i: &usize| {
        let (f, e) = (found.get_f64(i), expected.get_f64(i));
        match tensor.dtype.is_float() {
            true => f.to_bits() != e.to_bits() && !(f.is_nan() && e.is_nan()),
            false => found.get(i) != expected.get(i),
        }
    };
    let differing: Vec<usize> = (0..count).filter(differs).collect();
    if let Some(&i) = differing.first() {
        return Err(format!(
            "element {i} is {:?}, not {:?}, and {} in all differ, as {:?}",
            found.get(i),
            expected.get(i),
            differing.len(),
            &differing[..differing.len().min(8)]
        )
        .into());
    }
    Ok(())
}

macro_rules! of_format {
    ($dtype:expr, $element:ident => $made:expr) => {
        of_format!($dtype, $element => $made, bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3fn f8e5m2)
    };
    ($dtype:expr, $element:ident => $made:expr, $($ty:ident)*) => {
        $(if $dtype == <$ty as Element>::DTYPE {
            type $element = $ty;
            return Ok($made);
        })*
    };
}

fn with_scalar<'a>(
    launch: Launch<'a>,
    name: &'static str,
    dtype: DType,
    value: &Array,
) -> Result<Launch<'a>> {
    of_format!(dtype, T => launch.scalar(name, if dtype.is_float() {
        T::from_float(value.get_f64(0))
    } else {
        T::from_int(match value.get(0) {
            tile_ir::ops::Literal::Int(value) => value,
            other => return Err(format!("{other:?} is no integer").into()),
        })
    }));
    Err(format!("no scalar is of {dtype}").into())
}

fn with_tensor<'a>(
    launch: Launch<'a>,
    name: &'static str,
    dtype: DType,
    device: &Device,
    address: u64,
    (extents, strides): (&[usize], &[i64]),
    mutable: bool,
) -> Result<Launch<'a>> {
    of_format!(dtype, T => {
        // SAFETY: the memory has every element that the strides reach, and outlives the launch.
        let tensor = unsafe { Tensor::<T>::from_raw_strided(device, address, extents, strides) }?;
        let tensor: &'static mut Tensor<T> = Box::leak(Box::new(tensor));
        if mutable { launch.tensor_mut(name, tensor) } else { launch.tensor(name, tensor) }
    });
    Err(format!("no tensor is of {dtype}").into())
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| "a text is missing".into())
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().ok_or_else(|| "a list is missing".into())
}

fn integers(value: &Value) -> Result<Vec<i64>> {
    list(value)?.iter().map(|value| value.as_i64().ok_or_else(|| "a number is missing".into())).collect()
}

fn unhex(digits: &str) -> Result<Vec<u8>> {
    let digit = |at: usize| digits.get(at..at + 2).ok_or("half a byte");
    (0..digits.len()).step_by(2).map(|at| Ok(u8::from_str_radix(digit(at)?, 16)?)).collect()
}
