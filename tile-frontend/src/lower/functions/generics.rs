//! Type parameters: what a function's may be, and the constants that they have.

use crate::diagnostic::Diagnostic;
use crate::lower::{Lowered, Lowering, rust_elem};
use crate::signature::domain_of_parameter;
use crate::span::Span;
use crate::value::Val;
use syn::{Generics, TypeParam};
use tile_ir::kernel::GenericKind;
use tile_ir::ops::{BinaryOp, Domain, Literal};
use tile_ir::{DType, Elem, Op, Rounding};

/// A type parameter of a function that was called. What it is may be decided by what follows the call.
pub(crate) struct Bound {
    elem: Elem,
    needed: Domain,
    /// As in `T: Float`.
    declared: String,
    function: String,
    span: Span,
    /// The calls around the call.
    sites: Vec<(Span, String)>,
}

impl Lowering {
    /// Notes the bounds of a function's type parameter, to be checked when all formats are known.
    pub(in crate::lower) fn note_bound(
        &mut self,
        parameter: &TypeParam,
        generics: &Generics,
        elem: &Elem,
        function: &str,
        span: Span,
    ) {
        let Some(needed) = domain_of_parameter(parameter, generics) else { return };
        let declared = format!("{}: {}", parameter.ident, trait_of(needed));
        let (elem, function, sites) = (elem.clone(), function.to_owned(), self.sites());
        self.bounds.push(Bound { elem, needed, declared, function, span, sites });
    }

    /// Reports calls with types that the function isn't declared for.
    pub(in crate::lower) fn check_bounds_of_functions(&mut self) {
        for Bound { elem, needed, declared, function, span, sites } in std::mem::take(&mut self.bounds) {
            let elem = self.elements.resolve(&elem);
            let Some((found, help)) = self.misfit_of_bound(&elem, needed) else { continue };
            let message = format!("`{function}` is declared for `{declared}`, but is called with {found}");
            let diagnostic = sites
                .into_iter()
                .fold(Diagnostic::new(span, message).help(help), |diagnostic, (span, label)| {
                    diagnostic.label(span, label)
                });
            if !self.errors.iter().any(|known| known.is_same(&diagnostic)) {
                self.errors.push(diagnostic);
            }
        }
    }

    /// What a format that a bound doesn't accept is, and what to do.
    fn misfit_of_bound(&self, elem: &Elem, needed: Domain) -> Option<(String, String)> {
        match elem {
            Elem::Known(dtype) if dtype.is_element() && needed.accepts(*dtype) => None,
            Elem::Known(_) => {
                let help = format!("convert the argument to {}, or widen the bound", needed.describe());
                Some((format!("`{}`", rust_elem(elem)), help))
            }
            Elem::Param(name) => {
                let generic = self.kernel.generics.iter().find(|generic| generic.name == *name)?;
                let GenericKind::Elem(bound) = generic.kind else { return None };
                let mut formats =
                    DType::ALL.iter().filter(|dtype| dtype.is_element() && bound.accepts(**dtype));
                if formats.all(|&dtype| needed.accepts(dtype)) {
                    return None;
                }
                let found = format!("`{name}`, which may be {}", bound.describe());
                Some((found, format!("declare `{name}: {}`", trait_of(needed))))
            }
        }
    }

    /// `T::ZERO` and its kin; `None` where the path names no such constant.
    pub(in crate::lower) fn constant_of_parameter(
        &mut self,
        path: &[String],
        span: Span,
    ) -> Lowered<Option<Val>> {
        let [owner, name] = path else { return Ok(None) };
        let Ok(owner) = syn::parse_str::<syn::Ident>(owner) else { return Ok(None) };
        let Some(elem) = self.element(&syn::parse_quote!(#owner)) else { return Ok(None) };
        let Some(value) = constant(name) else { return self.limit_of_parameter(name, elem, span) };
        let value = match (value, elem.known()) {
            (Literal::Float(value), Some(dtype)) if !dtype.is_float() && value.is_finite() => {
                Literal::Int(value as i128)
            }
            (value, _) => value,
        };
        self.emit_one(Op::Constant { value, elem }, &[], span, &[]).map(|value| Some(Val::Data(value)))
    }

    /// `T::MAX` and its kin, which depend on the format: numbers of f64 that are rounded to it, toward zero where they are too
    /// large for it. In an instance they are constants.
    fn limit_of_parameter(&mut self, name: &str, elem: Elem, span: Span) -> Lowered<Option<Val>> {
        let rounded = |lowering: &mut Self, value: f64, rounding: Rounding| {
            let wide = Op::Constant { value: Literal::Float(value), elem: Elem::Known(DType::F64) };
            let wide = lowering.emit_one(wide, &[], span, &[])?;
            lowering.emit_one(Op::CastWith(elem.clone(), rounding), &[wide], span, &[])
        };
        let limit = match name {
            "MAX" => rounded(self, f64::MAX, Rounding::TowardZero)?,
            "MIN" => rounded(self, f64::MIN, Rounding::TowardZero)?,
            "EPSILON" | "MIN_POSITIVE" => {
                let above = rounded(self, 1.0 + f64::EPSILON, Rounding::Up)?;
                let one = rounded(self, 1.0, Rounding::Up)?;
                let epsilon = self.emit_one(Op::Binary(BinaryOp::Sub), &[above, one], span, &[])?;
                if name == "EPSILON" {
                    epsilon
                } else {
                    // Subnormal numbers are as far apart as the smallest normal number and the next one.
                    let least = rounded(self, f64::from_bits(1), Rounding::Up)?;
                    self.emit_one(Op::Binary(BinaryOp::Div), &[least, epsilon], span, &[])?
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(Val::Data(limit)))
    }
}

/// The constants of `Number` and `Float` that are the same in every format.
fn constant(name: &str) -> Option<Literal> {
    Some(Literal::Float(match name {
        "ZERO" => 0.0,
        "ONE" => 1.0,
        "INFINITY" => f64::INFINITY,
        "NEG_INFINITY" => f64::NEG_INFINITY,
        "NAN" => f64::NAN,
        _ => return None,
    }))
}

/// The trait that accepts what a domain does.
fn trait_of(domain: Domain) -> &'static str {
    match domain {
        Domain::Float | Domain::F32 => "Float",
        Domain::Int | Domain::U64 => "Int",
        Domain::IntOrBool | Domain::Bool => "Bits",
        Domain::Number | Domain::SignedNumber => "Number",
        Domain::NumberOrScale => "AnyBits",
        Domain::Any => "Element",
    }
}
