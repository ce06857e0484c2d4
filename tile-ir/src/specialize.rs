//! Binds the compile-time parameters of a kernel.

mod arguments;
mod binding;

pub use binding::{Binding, NoBinding};

use crate::abi::{self, Check};
use crate::condition::Condition;
use crate::dim::{Atom, Dim};
use crate::error::Error;
use crate::kernel::{FastAccumulation, Generic, GenericKind, Kernel};
use crate::loc::Loc;
use crate::ops::{Literal, Op};
use crate::passes;
use crate::types::{Elem, PartitionType, TensorType, Type};
use crate::verify::{VerifiedKernel, VerifyError, verify, verify_rewritten};
use crate::view::ArgumentLayout;
use arguments::{drop_absent, lay_out};
use std::fmt;

/// Parameter name → value, in the order of the kernel's generics.
pub type Bindings = Vec<(String, Binding)>;

/// A verified kernel without compile-time parameters: every tile extent is a number and every element
/// format is known. Only [`specialize`] and the passes make one.
#[derive(Clone, Debug)]
pub struct Instance {
    kernel: VerifiedKernel,
    bindings: Bindings,
    checks: Vec<Check>,
}

impl Instance {
    /// Reads a kernel's [text](crate::text), verifies it and binds its parameters, which are numbers. [`specialize`] binds
    /// those of other kinds, too.
    ///
    /// ```
    /// let instance = tile_ir::Instance::parse("\
    /// kernel @fill<B>(%y: mut tensor<n x f32>) {
    ///   %vy = partition %y [B] : mut partition<n x f32, [B]>
    ///   %zero = constant 0.0 : f32
    ///   %t = splat %zero : tile<B x f32>
    ///   store_masked %vy, %t
    /// }", &[("B", 64)])?;
    /// assert!(instance.to_string().contains("splat %zero : tile<64 x f32>"));
    /// # Ok::<(), tile_ir::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`VerifiedKernel::parse`] and [`specialize`].
    pub fn parse(source: &str, numbers: &[(&str, usize)]) -> Result<Instance, Error> {
        let bindings: Bindings =
            numbers.iter().map(|&(name, number)| (name.to_owned(), Binding::Const(number))).collect();
        Ok(specialize(&VerifiedKernel::parse(source)?, &bindings)?)
    }

    /// What the parameters were bound to.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// What a launch must check of the sizes, so that the loads and stores of the kernel as written stay inside, but for
    /// branches that its parameters never take. No pass adds to it: what a pass leaves may show less of why an index is inside, but an access has the same index
    /// and runs only where it ran before, unless it is inside for all sizes.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }
}

impl std::ops::Deref for Instance {
    type Target = VerifiedKernel;
    fn deref(&self) -> &VerifiedKernel {
        &self.kernel
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kernel.fmt(f)
    }
}

/// A kernel that can't be specialised to these bindings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecializeError {
    /// A parameter without a value.
    #[error("kernel `{kernel}`: parameter `{parameter}` has no value")]
    Missing {
        /// The kernel.
        kernel: String,
        /// The parameter.
        parameter: String,
    },
    /// A value for a parameter that doesn't exist, one of the wrong kind, or a second one.
    #[error("kernel `{kernel}`: `{parameter}` is {problem}")]
    Wrong {
        /// The kernel.
        kernel: String,
        /// The parameter.
        parameter: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A condition that these values break.
    #[error("kernel `{kernel}` needs `{condition}`{place}, but {values}")]
    Condition {
        /// The kernel.
        kernel: String,
        /// The condition as written.
        condition: String,
        /// Its file and line in parentheses, where they are known.
        place: String,
        /// `BK = 24, BM = 64`.
        values: String,
        /// Where the condition stands.
        loc: Loc,
    },
    /// An argument that doesn't lie as the kernel can take it.
    #[error(
        "`{argument}` of kernel `{kernel}` can't lie as it does: {problem}; pass a copy, which `.to_dense()` makes"
    )]
    Layout {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
        /// What the kernel does with it.
        problem: String,
    },
    /// The bound kernel breaks an invariant, such as an mma accumulator format that doesn't exist.
    #[error("kernel `{kernel}` can't be made with these parameters: {}", errors.first().map_or("", |e| e.message.as_str()))]
    Invalid {
        /// The kernel.
        kernel: String,
        /// Every violation.
        errors: Vec<VerifyError>,
    },
}

/// Substitutes parameters by values, takes the branches that these decide, and verifies the result: nothing is asked of
/// what stands in other branches.
///
/// ```
/// use tile_ir::{Binding, VerifiedKernel, specialize};
///
/// let kernel = VerifiedKernel::parse("kernel @fill<B>(%y: mut tensor<n x f32>) {
///   %vy = partition %y [B] : mut partition<n x f32, [B]>
/// }")?;
/// let instance = specialize(&kernel, &[("B".to_owned(), Binding::Const(64))])?;
/// assert_eq!(format!("{instance}"), "kernel @fill(%y: mut tensor<n x f32>) {
///   %vy = partition %y [64] : mut partition<n x f32, [64]>
/// }
/// ");
/// # Ok::<(), tile_ir::Error>(())
/// ```
///
/// # Errors
/// [`SpecializeError`] where a binding is missing or wrong, or the result isn't valid.
pub fn specialize(
    kernel: &VerifiedKernel,
    bindings: &[(String, Binding)],
) -> Result<Instance, SpecializeError> {
    specialize_for(kernel, bindings, &[])
}

/// [`specialize`] for arguments that lie so, each a layout with its argument's number; the others are dense and aligned.
/// Optional arguments that aren't given have no number.
///
/// ```
/// use tile_ir::view::{ArgumentLayout, GivenTensor};
/// use tile_ir::{VerifiedKernel, specialize, text};
///
/// let kernel = VerifiedKernel::parse("kernel @k(%x: tensor<m x n x f32>, %y: mut tensor<n x f32>) {
///   %vy = partition %y [64] : mut partition<n x f32, [64]>
/// }")?;
/// let columns = GivenTensor { extents: &[4, 3], strides: Some(&[1, 4]), offset: 0 };
/// let layouts = [(0, ArgumentLayout::of(&columns).unwrap())];
/// let instance = specialize::specialize_for(&kernel, &[], &layouts)?;
/// assert!(text::print(&instance).contains("(%x: tensor<m x n x f32, strided [1, x.stride_1]>, "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`specialize`]; [`SpecializeError::Layout`] where an argument that lies so can't be moved as the kernel does.
pub fn specialize_for(
    kernel: &VerifiedKernel,
    bindings: &[(String, Binding)],
    layouts: &[(usize, ArgumentLayout)],
) -> Result<Instance, SpecializeError> {
    check_names(kernel, bindings)?;
    let bindings =
        kernel.generics.iter().map(|generic| bind(kernel, generic, bindings)).collect::<Result<_, _>>()?;
    let mut bound = Kernel::clone(kernel);
    bound.generics.clear();
    let substitution = Substitution { bindings: &bindings };
    bound.conditions = substitution.conditions(kernel)?;
    substitution.apply(&mut bound);
    passes::take_known_branches(&mut bound);
    drop_absent(&mut bound, &bindings)?;
    lay_out(&mut bound, layouts)?;
    let kernel =
        verify(bound).map_err(|errors| SpecializeError::Invalid { kernel: kernel.name.clone(), errors })?;
    let checks = abi::checks(&kernel);
    Ok(Instance { kernel, bindings, checks })
}

impl Instance {
    /// The instance with its kernel rewritten. For passes; a pass that breaks an invariant is a bug.
    ///
    /// # Panics
    /// If the rewritten kernel doesn't verify.
    pub(crate) fn rewrite(self, pass: &str, rewrite: impl FnOnce(&mut Kernel)) -> Instance {
        let mut kernel = self.kernel.into_inner();
        rewrite(&mut kernel);
        match verify_rewritten(kernel) {
            Ok(kernel) => Instance { kernel, bindings: self.bindings, checks: self.checks },
            Err(errors) => panic!("pass `{pass}` broke an invariant: {}", errors[0]),
        }
    }
}

fn check_names(kernel: &Kernel, bindings: &[(String, Binding)]) -> Result<(), SpecializeError> {
    for (at, (name, value)) in bindings.iter().enumerate() {
        if !kernel.generics.iter().any(|generic| generic.name == *name) {
            return Err(wrong(kernel, name, "not a parameter of the kernel"));
        }
        if let Some((_, first)) = bindings[..at].iter().find(|(other, _)| other == name) {
            let problem = format!("given twice, as {first} and as {value}; name it once");
            return Err(wrong(kernel, name, problem));
        }
    }
    Ok(())
}

fn wrong(kernel: &Kernel, parameter: &str, problem: impl Into<String>) -> SpecializeError {
    SpecializeError::Wrong {
        kernel: kernel.name.clone(),
        parameter: parameter.to_owned(),
        problem: problem.into(),
    }
}

fn bind(
    kernel: &Kernel,
    generic: &Generic,
    bindings: &[(String, Binding)],
) -> Result<(String, Binding), SpecializeError> {
    let name = &generic.name;
    let Some((_, value)) = bindings.iter().find(|(bound, _)| bound == name) else {
        return Err(SpecializeError::Missing { kernel: kernel.name.clone(), parameter: name.clone() });
    };
    match (generic.kind, *value) {
        (GenericKind::Const, Binding::Const(value)) if i64::try_from(value).is_err() => {
            Err(wrong(kernel, name, format!("{value}, which doesn't fit 63 bits")))
        }
        (GenericKind::Const, Binding::Const(_)) | (GenericKind::Bool, Binding::Bool(_)) => {
            Ok((name.clone(), *value))
        }
        (GenericKind::Elem(domain), Binding::Elem(dtype)) if domain.accepts(dtype) && dtype.is_element() => {
            Ok((name.clone(), *value))
        }
        (GenericKind::Elem(domain), Binding::Elem(dtype)) => {
            Err(wrong(kernel, name, format!("{dtype}, but must be {}", domain.describe())))
        }
        (kind, value) => {
            let declared = match kind {
                GenericKind::Const => "a const parameter",
                GenericKind::Bool => "a `bool`",
                GenericKind::Elem(_) => "an element type parameter",
            };
            let given = match value {
                Binding::Const(value) => format!("the number {value}"),
                Binding::Bool(value) => format!("{value}"),
                Binding::Elem(dtype) => format!("the element type {dtype}"),
            };
            Err(wrong(kernel, name, format!("{declared}, but was given {given}")))
        }
    }
}

struct Substitution<'b> {
    bindings: &'b Bindings,
}

impl Substitution<'_> {
    fn apply(&self, kernel: &mut Kernel) {
        for value in kernel.value_ids() {
            let ty = self.ty(kernel.ty(value));
            kernel.set_type(value, ty);
        }
        kernel.grid = kernel.grid.as_ref().map(|grid| grid.map(&|dim| self.dim(dim)));
        kernel.hints = kernel.hints.map(|dim| self.dim(dim));
        if let FastAccumulation::If(presence) = &kernel.fast_accumulation {
            let is_fast = arguments::holds(presence, self.bindings);
            kernel.fast_accumulation = if is_fast { FastAccumulation::Yes } else { FastAccumulation::No };
        }
        for op in kernel.op_ids() {
            let data = kernel.op_mut(op);
            data.op = self.op(&data.op);
        }
    }

    /// The conditions that run-time sizes decide; the others hold.
    fn conditions(&self, kernel: &Kernel) -> Result<Vec<Condition>, SpecializeError> {
        let mut open = Vec::new();
        for condition in &kernel.conditions {
            let bound = condition.substitute(&|atom| self.atom(atom));
            match bound.formula.decide() {
                Some(true) => {}
                None if !bound.formula.is_static() => open.push(bound),
                Some(false) | None => return Err(self.broken(kernel, condition)),
            }
        }
        Ok(open)
    }

    fn broken(&self, kernel: &Kernel, condition: &Condition) -> SpecializeError {
        let values = self.bindings.iter().filter_map(|(name, value)| match value {
            Binding::Const(_) | Binding::Bool(_) if condition.names().0.contains(name) => {
                Some(format!("{name} = {value}"))
            }
            _ => None,
        });
        let values: Vec<String> = values.collect();
        SpecializeError::Condition {
            kernel: kernel.name.clone(),
            condition: condition.source.clone(),
            place: condition.place(&kernel.file),
            values: if values.is_empty() { "it is never true".to_owned() } else { values.join(", ") },
            loc: condition.loc,
        }
    }

    fn lookup(&self, name: &str) -> Option<Binding> {
        self.bindings.iter().find(|(bound, _)| bound == name).map(|&(_, value)| value)
    }

    fn dim(&self, dim: &Dim) -> Dim {
        dim.substitute(&|atom| self.atom(atom))
    }

    fn atom(&self, atom: &Atom) -> Option<Dim> {
        match atom {
            Atom::Param(name) => match self.lookup(name)? {
                Binding::Const(value) => i64::try_from(value).ok().map(Dim::from),
                Binding::Bool(value) => Some(Dim::from(i64::from(value))),
                Binding::Elem(_) => None,
            },
            _ => None,
        }
    }

    fn dims(&self, dims: &[Dim]) -> Vec<Dim> {
        dims.iter().map(|dim| self.dim(dim)).collect()
    }

    fn elem(&self, elem: &Elem) -> Elem {
        match elem {
            Elem::Param(name) => match self.lookup(name) {
                Some(Binding::Elem(dtype)) => Elem::Known(dtype),
                _ => elem.clone(),
            },
            Elem::Known(_) => elem.clone(),
        }
    }

    fn tensor(&self, tensor: &TensorType) -> TensorType {
        TensorType {
            extents: self.dims(&tensor.extents),
            elem: self.elem(&tensor.elem),
            mutable: tensor.mutable,
            layout: tensor.layout.as_ref().map(|layout| Box::new(layout.map(&|dim| self.dim(dim)))),
        }
    }

    fn ty(&self, ty: &Type) -> Type {
        match ty {
            Type::Scalar(elem) => Type::Scalar(self.elem(elem)),
            Type::Tile(tile) => Type::tile(self.dims(&tile.shape), self.elem(&tile.elem)),
            Type::Tensor(tensor) => Type::Tensor(self.tensor(tensor)),
            Type::Partition(view) => Type::Partition(PartitionType {
                tensor: self.tensor(&view.tensor),
                tile: self.dims(&view.tile),
                steps: self.dims(&view.steps),
                spanned: view.spanned.clone(),
            }),
        }
    }

    fn op(&self, op: &Op) -> Op {
        match op {
            Op::Constant { value, elem } => {
                Op::Constant { value: self.literal(*value, elem), elem: self.elem(elem) }
            }
            Op::Lookup { table, elem } => Op::Lookup {
                table: table.iter().map(|&number| self.literal(number, elem)).collect(),
                elem: self.elem(elem),
            },
            other => other.map(&|dim| self.dim(dim), &|elem| self.elem(elem)),
        }
    }

    /// A literal of a generic format becomes one of the format's class: `2.0` of `T = i32` is `2`.
    fn literal(&self, value: Literal, elem: &Elem) -> Literal {
        match (elem, self.elem(elem).known()) {
            (Elem::Param(_), Some(dtype)) => value.in_format(dtype),
            _ => value,
        }
    }
}

#[cfg(test)]
mod tests;
