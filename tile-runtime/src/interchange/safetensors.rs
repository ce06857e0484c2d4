//! `.safetensors` files: tensors by name, as Hugging Face keeps weights.

use super::Stored;
use super::stored::{check_names, elements, refused};
use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::tensor::Tensor;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use tile_ir::DType;

/// The format's name of ours.
fn stored_dtype(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::F8E4M3FN => Dtype::F8_E4M3,
        DType::F8E5M2 => Dtype::F8_E5M2,
        DType::F8E8M0FNU => Dtype::F8_E8M0,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::Index => return None,
    })
}

/// A file's tensors, read into memory.
pub struct Archive {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Archive {
    /// Reads a file.
    ///
    /// ```
    /// use tile_runtime::interchange::safetensors::{Archive, write};
    /// use tile_runtime::{Device, Tensor};
    /// let path = std::env::temp_dir().join(format!("tile-{}.safetensors", std::process::id()));
    /// let (device, one) = (Device::cpu(), half::bf16::ONE);
    /// write(&path, &[("bias", &Tensor::full(&device, [3], one)?)])?;
    /// let file = Archive::open(&path)?;
    /// assert_eq!((file.names(), file.tensor(&device, "bias")?.to_vec()?), (vec!["bias".to_owned()], vec![one; 3]));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), tile_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::File`] where the file can't be read or isn't one of these.
    pub fn open(path: impl AsRef<Path>) -> Result<Archive> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| refused(path, error))?;
        SafeTensors::deserialize(&bytes).map_err(|error| refused(path, error.to_string()))?;
        Ok(Archive { path: path.to_owned(), bytes })
    }

    fn tensors(&self) -> Result<SafeTensors<'_>> {
        SafeTensors::deserialize(&self.bytes).map_err(|error| refused(&self.path, error.to_string()))
    }

    /// The names of the tensors, sorted.
    pub fn names(&self) -> Vec<String> {
        let tensors = self.tensors();
        let mut names: Vec<String> = tensors.iter().flat_map(SafeTensors::names).map(str::to_owned).collect();
        names.sort();
        names
    }

    /// The tensor of a name, on a device.
    ///
    /// # Errors
    /// [`crate::Error::File`] where there is none, or one of another format; as [`Tensor::zeros`] else.
    pub fn tensor<T: Element>(&self, device: &Device, name: &str) -> Result<Tensor<T>> {
        let tensors = self.tensors()?;
        let missing = |_| refused(&self.path, format!("it holds no tensor `{name}`, but {:?}", self.names()));
        let stored = tensors.tensor(name).map_err(missing)?;
        if stored_dtype(T::DTYPE) != Some(stored.dtype()) {
            let (given, wanted) = (stored.dtype(), T::DTYPE.rust_name());
            return Err(refused(&self.path, format!("`{name}` holds {given}, not {wanted}")));
        }
        let elements = elements::<T>(stored.data())
            .ok_or_else(|| refused(&self.path, format!("`{name}` holds bytes that are no elements")))?;
        Tensor::from_vec(device, elements, stored.shape())
    }
}

/// A tensor in the form that the format's library takes.
struct Held<'a> {
    dtype: Dtype,
    shape: &'a [usize],
    bytes: Vec<u8>,
}

impl safetensors::View for &Held<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// The name in a file's header of what isn't a tensor.
const METADATA: &str = "__metadata__";

/// Writes a `.safetensors` file with tensors of these names.
///
/// # Errors
/// [`crate::Error::File`] where two tensors have one name, or one has the format's own `__metadata__`, and where the file
/// can't be written; as [`Tensor::to_vec`](crate::TensorRef::to_vec) else.
pub fn write(path: impl AsRef<Path>, tensors: &[(&str, &dyn Stored)]) -> Result<()> {
    let path = path.as_ref();
    check_names(path, tensors)?;
    if tensors.iter().any(|(name, _)| *name == METADATA) {
        let problem =
            format!("a tensor is called `{METADATA}`, which means something else in such files; rename it");
        return Err(refused(path, problem));
    }
    let held = tensors.iter().map(|(name, tensor)| {
        let dtype = stored_dtype(tensor.dtype())
            .ok_or_else(|| refused(path, format!("`{name}` holds {}", tensor.dtype().rust_name())))?;
        Ok((*name, Held { dtype, shape: tensor.shape(), bytes: tensor.bytes()? }))
    });
    let held: Vec<_> = held.collect::<Result<_>>()?;
    let named = held.iter().map(|(name, held)| (*name, held));
    safetensors::serialize_to_file(named, None, path).map_err(|error| match error {
        SafeTensorError::IoError(error) => refused(path, error),
        error => refused(path, error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn the_kind_of_a_systems_error_is_kept() {
        let one = Tensor::full(&Device::cpu(), [2], 1.0f32).unwrap();
        let missing = "/nowhere/x.safetensors";
        for error in
            [Archive::open(missing).map(drop), write(missing, &[("one", &one)])].map(Result::unwrap_err)
        {
            let kind = Some(std::io::ErrorKind::NotFound);
            assert!(matches!(&error, Error::File { kind: given, .. } if *given == kind), "{error}");
        }
    }

    #[test]
    fn names_that_the_format_can_not_have_are_refused() {
        let path = std::env::temp_dir().join(format!("tile-names-{}.safetensors", std::process::id()));
        let one = Tensor::full(&Device::cpu(), [2], 1.0f32).unwrap();
        let refused = |names: [&str; 2]| {
            write(&path, &names.map(|name| (name, &one as &dyn Stored))).unwrap_err().to_string()
        };
        assert!(refused(["a", "a"]).ends_with("two tensors are called `a`; give each a name of its own"));
        assert!(refused(["a", METADATA]).ends_with("which means something else in such files; rename it"));
        assert!(!path.exists());
    }
}
