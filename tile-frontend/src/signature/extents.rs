//! Extents of tensors.

use super::Parser;
use crate::extent::{self, OPERATIONS, of_one, operation};
use crate::lower::extent_of_constant;
use crate::span::{Span, Spanned};
use syn::{Expr, GenericArgument, Lit};
use tile_ir::kernel::{Generic, GenericKind};
use tile_ir::{DType, Dim};

/// Whether a name that is nothing else to the kernel may be that of a run-time size.
pub(super) fn is_name_of_size(name: &str) -> bool {
    !name.starts_with(char::is_uppercase) && DType::from_rust_name(name).is_none()
}

impl Parser<'_> {
    pub(super) fn extent(
        &mut self,
        generics: &[Generic],
        argument: &GenericArgument,
        name: &str,
    ) -> Option<Dim> {
        match argument {
            GenericArgument::Type(syn::Type::Infer(_)) => {
                // Rust's names have no `.`, so that no size of the author's is meant.
                let size = format!("{name}.extent_{}", self.anonymous);
                self.anonymous += 1;
                Some(Dim::size(size))
            }
            GenericArgument::Type(syn::Type::Path(path)) => match path.path.get_ident() {
                Some(ident) => self.named_extent(generics, ident),
                None => self.bad_extent(argument.span()),
            },
            GenericArgument::Const(expression) => self.extent_expression(generics, expression),
            _ => self.bad_extent(argument.span()),
        }
    }

    fn bad_extent(&mut self, span: Span) -> Option<Dim> {
        let help = format!(
            "an extent is a run-time size such as `m`, an argument `stride: usize`, a const parameter such as `BM`, a number, `_`, or `{{ expression }}` of these with {OPERATIONS}"
        );
        self.error(span, "this isn't an extent", &help);
        None
    }

    /// An upper-case name is a const parameter, a lower-case one a run-time size or an argument that is one.
    fn named_extent(&mut self, generics: &[Generic], ident: &syn::Ident) -> Option<Dim> {
        let name = ident.to_string();
        match generics.iter().find(|generic| generic.name == name) {
            Some(generic) if generic.kind == GenericKind::Const => return Some(Dim::param(name)),
            Some(other) => {
                let found = if other.kind == GenericKind::Bool { "a `bool`" } else { "an element type" };
                let help = match self.declared && other.kind == GenericKind::Bool {
                    true => format!("write `{name}` or `!{name}`, without a comparison"),
                    false => "use a const parameter that is a `usize`".to_owned(),
                };
                self.error(ident.span(), format!("`{name}` is {found}, not an extent"), &help);
                return None;
            }
            None => {}
        }
        if self.numbers.contains(&name) {
            self.given_sizes.insert(name.clone());
            return Some(Dim::size(name));
        }
        if let Some(constant) = self.helpers.constant(&name).cloned() {
            let extent = extent_of_constant(&constant, ident.span().into(), self.helpers);
            return extent.map_err(|refused| self.refuse(refused)).ok();
        }
        if self.declared && !self.sizes.contains_key(&name) {
            let help = "conditions are of const parameters, of run-time sizes that an argument declares, and of arguments that are a \
                        `usize`";
            self.error(
                ident.span(),
                format!("`{name}` is neither of the kernel's parameters nor of its sizes"),
                help,
            );
            return None;
        }
        if name.starts_with(char::is_uppercase) {
            let help = format!(
                "add `const {name}: usize` to the kernel's parameters, or use a lower-case name for a run-time size"
            );
            self.error(ident.span(), format!("`{name}` is not a const parameter of the kernel"), &help);
            return None;
        }
        if !is_name_of_size(&name) {
            return self.bad_extent(ident.span().into());
        }
        match &self.optional {
            Some(argument) => self.optional_sizes.push((name.clone(), argument.clone(), ident.span().into())),
            None => drop(self.sizes.entry(name.clone()).or_insert_with(|| ident.span().into())),
        }
        Some(Dim::size(name))
    }

    pub(super) fn extent_expression(&mut self, generics: &[Generic], expression: &Expr) -> Option<Dim> {
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(int) => match int.base10_parse::<i64>() {
                    Ok(number) => Some(Dim::from(number)),
                    Err(_) => {
                        let help = "an extent fits 63 bits";
                        self.error(expression.span(), "the number is too large", help);
                        None
                    }
                },
                _ => self.bad_extent(expression.span()),
            },
            Expr::Path(path) => match path.path.get_ident() {
                Some(ident) => self.named_extent(generics, ident),
                None => self.bad_extent(expression.span()),
            },
            Expr::Paren(inner) => self.extent_expression(generics, &inner.expr),
            Expr::Block(block) => match block.block.stmts.as_slice() {
                [syn::Stmt::Expr(inner, None)] => self.extent_expression(generics, inner),
                _ => self.bad_extent(expression.span()),
            },
            _ => {
                if let Some((operand, function)) = of_one(expression) {
                    let operand = self.extent_expression(generics, operand)?;
                    return self.readable(function(&operand), expression);
                }
                let Some((left, function, right)) = operation(expression) else {
                    return self.bad_extent(expression.span());
                };
                let left = self.extent_expression(generics, left);
                let right = self.extent_expression(generics, right);
                let Some(made) = function(&left?, &right?) else {
                    let help = match self.declared {
                        true => {
                            "leave the condition out, and name values that belong together: `instances(N = 8, LOG = 3; N = 16, LOG = 4)`"
                        }
                        false => "make the extent a const parameter of its own, `const N: usize`",
                    };
                    let message = "an extent is shifted by a literal, up to 62, and by no parameter or size";
                    self.error(expression.span(), message, help);
                    return None;
                };
                self.readable(made, expression)
            }
        }
    }

    fn readable(&mut self, extent: Dim, expression: &Expr) -> Option<Dim> {
        extent::readable(extent, expression).map_err(|diagnostic| self.errors.push(*diagnostic)).ok()
    }
}
