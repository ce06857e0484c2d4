//! What a launch is given: compile-time parameters and arguments, in the order of the kernel's signature.

use super::Launch;
use crate::element::{Element, Scalar};
use crate::stream::Access;
use crate::tensor::{TensorRef, Untyped};
use std::fmt;
use tile_ir::DType;
use tile_ir::specialize::Binding;

/// One argument of a launch. Tensors are borrowed by [`Launch`]'s lifetime.
pub(super) struct Given<'a> {
    pub(super) name: Name,
    pub(super) value: GivenValue<'a>,
}

pub(super) enum GivenValue<'a> {
    Tensor { tensor: Untyped<'a>, dtype: DType, access: Access },
    Scalar { slot: u64, dtype: DType },
}

/// What an argument is called: `x`, or `inputs[3]`, which no launch allocates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    argument: &'static str,
    /// Its place in an array of arguments.
    element: Option<usize>,
}

impl Name {
    /// That of an argument of its own.
    pub(super) fn of(argument: &'static str) -> Name {
        Name { argument, element: None }
    }

    /// That of an element of an array.
    pub(super) fn of_element(argument: &'static str, element: usize) -> Name {
        Name { argument, element: Some(element) }
    }

    /// Whether the argument is declared under this name.
    pub(super) fn is(self, declared: &str) -> bool {
        match self.element {
            None => self.argument == declared,
            Some(element) => {
                let rest = declared.strip_prefix(self.argument).and_then(|rest| rest.strip_prefix('['));
                let number = rest.and_then(|rest| rest.strip_suffix(']'));
                number.is_some_and(|number| number.parse() == Ok(element))
            }
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            None => write!(f, "{}", self.argument),
            Some(element) => write!(f, "{}[{element}]", self.argument),
        }
    }
}

impl<'a> Launch<'a> {
    /// Binds a const parameter.
    pub fn constant(mut self, name: &'static str, value: impl Into<Binding>) -> Self {
        self.bindings.push((name, value.into()));
        self
    }

    /// Binds an element type parameter.
    pub fn element<T: Element>(mut self, name: &'static str) -> Self {
        self.bindings.push((name, Binding::Elem(T::DTYPE)));
        self
    }

    /// Passes a tensor that is read.
    pub fn tensor<T: Element>(self, name: &'static str, tensor: &'a TensorRef<T>) -> Self {
        self.given_tensor(Name::of(name), tensor, Access::Read)
    }

    /// Passes a tensor that is written.
    pub fn tensor_mut<T: Element>(self, name: &'static str, tensor: &'a mut TensorRef<T>) -> Self {
        self.given_tensor(Name::of(name), tensor, Access::Write)
    }

    /// Passes a tensor that is read to an optional argument, or nothing.
    pub fn optional_tensor<T: Element>(self, name: &'static str, tensor: Option<&'a TensorRef<T>>) -> Self {
        self.optional(name, tensor, Access::Read)
    }

    /// Passes a tensor that is written to an optional argument, or nothing.
    pub fn optional_tensor_mut<T: Element>(
        self,
        name: &'static str,
        tensor: Option<&'a mut TensorRef<T>>,
    ) -> Self {
        self.optional(name, tensor.map(|tensor| &*tensor), Access::Write)
    }

    fn optional<T: Element>(
        self,
        name: &'static str,
        tensor: Option<&'a TensorRef<T>>,
        access: Access,
    ) -> Self {
        let launch = self.constant(name, tensor.is_some());
        match tensor {
            Some(tensor) => launch.given_tensor(Name::of(name), tensor, access),
            None => launch.without(),
        }
    }

    /// Passes a number to an optional argument, or nothing.
    pub fn optional_scalar<T: Scalar>(self, name: &'static str, value: Option<T>) -> Self {
        let launch = self.constant(name, value.is_some());
        match value {
            Some(value) => launch.scalar(name, value),
            None => launch.without(),
        }
    }

    /// Leaves an optional argument out.
    fn without(mut self) -> Self {
        self.absent.push(self.arguments.len() + self.absent.len());
        self
    }

    /// Passes an array of tensors that are read.
    pub fn tensor_array<T: Element, const N: usize>(
        self,
        name: &'static str,
        tensors: [&'a TensorRef<T>; N],
    ) -> Self {
        let names = (0..N).map(|element| Name::of_element(name, element));
        names
            .zip(tensors)
            .fold(self, |launch, (name, tensor)| launch.given_tensor(name, tensor, Access::Read))
    }

    /// Passes an array of tensors that are written.
    pub fn tensor_array_mut<T: Element, const N: usize>(
        self,
        name: &'static str,
        tensors: [&'a mut TensorRef<T>; N],
    ) -> Self {
        let names = (0..N).map(|element| Name::of_element(name, element));
        names
            .zip(tensors)
            .fold(self, |launch, (name, tensor)| launch.given_tensor(name, tensor, Access::Write))
    }

    fn given_tensor<T: Element>(mut self, name: Name, tensor: &'a TensorRef<T>, access: Access) -> Self {
        let value = GivenValue::Tensor { tensor: tensor.untyped(), dtype: T::DTYPE, access };
        self.arguments.push(Given { name, value });
        self
    }

    /// Passes a number.
    pub fn scalar<T: Scalar>(self, name: &'static str, value: T) -> Self {
        self.given_scalar(Name::of(name), value)
    }

    /// Passes an array of numbers.
    pub fn scalar_array<T: Scalar, const N: usize>(self, name: &'static str, values: [T; N]) -> Self {
        let names = (0..N).map(|element| Name::of_element(name, element));
        names.zip(values).fold(self, |launch, (name, value)| launch.given_scalar(name, value))
    }

    fn given_scalar<T: Scalar>(mut self, name: Name, value: T) -> Self {
        let value = GivenValue::Scalar { slot: value.to_slot(), dtype: T::FORMAT };
        self.arguments.push(Given { name, value });
        self
    }
}
