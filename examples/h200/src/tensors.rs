//! Tensors of the formats that the rows use, told apart at run time.

use crate::kernels::elements::normal;
use crate::problem::Result;
use tile::ir::DType;
use tile::prelude::*;

/// What a tensor is to a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is read.
    Input,
    /// It is written and read: what one launch leaves for the next.
    Scratch,
    /// It is what is asked for.
    Output,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Role::Input => "input",
            Role::Scratch => "scratch",
            Role::Output => "output",
        }
    }
}

/// A tensor that a problem takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// The format of its elements.
    pub dtype: DType,
    /// Extents, outermost axis first.
    pub shape: Vec<usize>,
    /// What it is for.
    pub role: Role,
}

impl Spec {
    /// A tensor that is read.
    pub fn input(name: &'static str, dtype: DType, shape: &[usize]) -> Spec {
        Spec { name, dtype, shape: shape.to_vec(), role: Role::Input }
    }

    /// A tensor between two launches, of f32.
    pub fn scratch(name: &'static str, shape: &[usize]) -> Spec {
        Spec { name, dtype: DType::F32, shape: shape.to_vec(), role: Role::Scratch }
    }

    /// A result.
    pub fn output(name: &'static str, dtype: DType, shape: &[usize]) -> Spec {
        Spec { name, dtype, shape: shape.to_vec(), role: Role::Output }
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// The number of bytes.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.bytes()
    }
}

/// An element type that a row uses.
pub trait Held: Element + Sized {
    /// The tensor, if it is of this type.
    fn of(tensor: &AnyTensor) -> Option<&Tensor<Self>>;

    /// The tensor, if it is of this type.
    fn of_mut(tensor: &mut AnyTensor) -> Option<&mut Tensor<Self>>;
}

macro_rules! formats {
    ($($variant:ident $element:ident),*) => {
        /// A tensor of one of the formats.
        #[derive(Debug)]
        #[allow(missing_docs)]
        pub enum AnyTensor {
            $($variant(Tensor<$element>),)*
        }

        $(impl Held for $element {
            fn of(tensor: &AnyTensor) -> Option<&Tensor<Self>> {
                match tensor {
                    AnyTensor::$variant(tensor) => Some(tensor),
                    _ => None,
                }
            }

            fn of_mut(tensor: &mut AnyTensor) -> Option<&mut Tensor<Self>> {
                match tensor {
                    AnyTensor::$variant(tensor) => Some(tensor),
                    _ => None,
                }
            }
        })*

        impl AnyTensor {
            /// A tensor with these numbers, rounded to its format.
            ///
            /// # Errors
            /// As [`Tensor::from_slice`], and for a format that no row uses.
            pub fn from_numbers(device: &Device, spec: &Spec, numbers: &[f64]) -> Result<AnyTensor> {
                $(if spec.dtype == <$element as tile::kernel::Element>::DTYPE {
                    let elements = numbers.iter().map(|&x| <$element as tile::kernel::Element>::from_float(x));
                    let elements: Vec<$element> = elements.collect();
                    return Ok(AnyTensor::$variant(Tensor::from_vec(device, elements, &spec.shape)?));
                })*
                Err(unused(spec))
            }

            /// A tensor of zeros.
            ///
            /// # Errors
            /// As [`Tensor::zeros`], and for a format that no row uses.
            pub fn zeros(device: &Device, spec: &Spec) -> Result<AnyTensor> {
                $(if spec.dtype == <$element as tile::kernel::Element>::DTYPE {
                    return Ok(AnyTensor::$variant(Tensor::zeros(device, &spec.shape)?));
                })*
                Err(unused(spec))
            }

            /// A tensor of random numbers from the standard normal distribution, made on the device.
            ///
            /// # Errors
            /// As [`AnyTensor::zeros`] and [`tile::Launch::launch`].
            pub fn normal(device: &Device, spec: &Spec, stream: u64) -> Result<AnyTensor> {
                let flat = Spec { shape: vec![spec.elements()], ..spec.clone() };
                Ok(match AnyTensor::zeros(device, &flat)? {
                    $(AnyTensor::$variant(mut tensor) => {
                        normal::<$element, 1024>(&mut tensor, stream).launch()?;
                        AnyTensor::$variant(tensor.into_shape(spec.shape.iter().copied())?)
                    })*
                })
            }

            /// A tensor in memory that another library has allocated.
            ///
            /// # Safety
            /// As [`Tensor::from_raw`].
            ///
            /// # Errors
            /// As [`Tensor::from_raw`], and for a format that no row uses.
            pub unsafe fn from_raw(device: &Device, spec: &Spec, address: u64) -> Result<AnyTensor> {
                $(if spec.dtype == <$element as tile::kernel::Element>::DTYPE {
                    // SAFETY: the caller vouches for the memory.
                    let tensor = unsafe { Tensor::from_raw(device, address, &spec.shape) }?;
                    return Ok(AnyTensor::$variant(tensor));
                })*
                Err(unused(spec))
            }

            /// The elements as numbers.
            ///
            /// # Errors
            /// As [`tile::TensorRef::to_vec`].
            pub fn numbers(&self) -> Result<Vec<f64>> {
                Ok(match self {
                    $(AnyTensor::$variant(tensor) => {
                        tensor.to_vec()?.into_iter().map(tile::kernel::Element::to_float).collect()
                    })*
                })
            }

            /// The device that it is on.
            pub fn device(&self) -> &Device {
                match self {
                    $(AnyTensor::$variant(tensor) => tensor.device(),)*
                }
            }
        }
    };
}

formats!(F8 f8e4m3fn, Bf16 bf16, F16 f16, F32 f32);

fn unused(spec: &Spec) -> Box<dyn std::error::Error + Send + Sync> {
    format!("`{}` is of {}, which no row uses", spec.name, spec.dtype).into()
}

impl AnyTensor {
    /// The tensor, to be read.
    ///
    /// # Errors
    /// Where it is of another type.
    pub fn get<T: Held>(&self) -> Result<&Tensor<T>> {
        T::of(self).ok_or_else(|| format!("a tensor of {} was expected", T::DTYPE).into())
    }

    /// The tensor, to be written.
    ///
    /// # Errors
    /// Where it is of another type.
    pub fn get_mut<T: Held>(&mut self) -> Result<&mut Tensor<T>> {
        T::of_mut(self).ok_or_else(|| format!("a tensor of {} was expected", T::DTYPE).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_tensors_have_the_shape_that_is_asked_for() {
        let spec = Spec::input("x", DType::F32, &[3, 700]);
        let found = AnyTensor::normal(&Device::cpu(), &spec, 1).expect("it is made");
        assert_eq!(found.get::<f32>().expect("it is of f32").shape(), [3, 700]);
        let numbers = found.numbers().expect("they are read");
        let mean = numbers.iter().sum::<f64>() / 2100.0;
        let deviation = (numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2100.0).sqrt();
        assert!(mean.abs() < 0.1 && (deviation - 1.0).abs() < 0.1, "{mean} ± {deviation}");
    }
}
