//! Statements and blocks: `let`, assignment, expression statements.

use super::{Lowered, Lowering, Reported, kind};
use crate::assigned::{self, is_compound_assignment};
use crate::exits;
use crate::macros::debugged;
use crate::scope::Variable;
use crate::span::{Span, Spanned};
use crate::value::{Int, Val};
use syn::{Block, Expr, ExprAssign, ExprBinary, ExprMacro, Local, Pat, Stmt};
use tile_ir::Elem;

impl Lowering {
    /// A block's statements; its value is that of a last expression without `;`.
    pub(super) fn block(&mut self, block: &Block) -> Lowered<Val> {
        self.scopes.enter();
        let value = self.statements(&block.stmts);
        self.scopes.leave();
        value
    }

    pub(super) fn statements(&mut self, statements: &[Stmt]) -> Lowered<Val> {
        let Some((statement, rest)) = statements.split_first() else { return Ok(Val::Unit) };
        let value = self.statement(statement);
        // Nothing after an exit is reached; rustc warns of it.
        if rest.is_empty() || matches!(value, Ok(Val::Never)) {
            return value;
        }
        // What was wrong is reported; the next statement is lowered all the same.
        self.rest(rest, crate::span::Spanned::span(statement))
    }

    fn statement(&mut self, statement: &Stmt) -> Lowered<Val> {
        match statement {
            Stmt::Local(local) => self.local(local),
            Stmt::Expr(expression, semicolon) => {
                self.check_exits(expression)?;
                let value = self.expression(expression)?;
                let is_value = semicolon.is_none() || matches!(value, Val::Never);
                Ok(if is_value { value } else { Val::Unit })
            }
            Stmt::Item(syn::Item::Const(item)) => self.constant(item).map(|()| Val::Unit),
            Stmt::Item(item) => self.error(
                item.span(),
                "a kernel has no items of its own but `const`",
                "move it out of the kernel",
            ),
            Stmt::Macro(statement) => {
                let called = ExprMacro { attrs: Vec::new(), mac: statement.mac.clone() };
                self.check_exits(&Expr::Macro(called))?;
                self.called_macro(&statement.mac)
            }
        }
    }

    /// `dbg!(x)` is `x`; it prints on the reference device, where the body runs as Rust.
    pub(super) fn called_macro(&mut self, called: &syn::Macro) -> Lowered<Val> {
        if let Some(value) = debugged(called) {
            return self.expression(&value);
        }
        if let Some(lowered) = self.message_macro(called) {
            return lowered;
        }
        let name = called.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let help = match name.as_str() {
            "vec" => "tiles are made by `Tile::zeros`, `Tile::full` and `Tile::iota`",
            "println" | "print" | "eprintln" | "eprint" => {
                "write `tile_println!(\"x = {}\", x)`, which prints on every device"
            }
            "dbg" => "it takes one value: `dbg!(x)`",
            "assert" | "debug_assert" | "panic" | "unreachable" | "todo" => {
                "write `tile_assert!(condition, \"x = {}\", x)`, which checks on every device"
            }
            "assert_eq" | "debug_assert_eq" => {
                "write `tile_assert!(a == b, \"{} and {}\", a, b)`, which checks on every device"
            }
            "assert_ne" | "debug_assert_ne" => {
                "write `tile_assert!(a != b, \"{} and {}\", a, b)`, which checks on every device"
            }
            _ => "write its code out",
        };
        self.error(called.path.span(), format!("`{name}!` can't be used in a kernel"), help)
    }

    fn local(&mut self, local: &Local) -> Lowered<Val> {
        let Some(init) = &local.init else {
            self.define_poison(&local.pat);
            return self.error(
                local.span(),
                "a variable of a kernel needs a value",
                "initialise it: `let x = …;`",
            );
        };
        if let Some((_, diverge)) = &init.diverge {
            self.define_poison(&local.pat);
            let help = "patterns of kernels always match, so write `let` alone; to choose by a number, write `match`";
            return self.error(diverge.span(), "`let … else` isn't supported in a kernel", help);
        }
        let value = self
            .check_exits(&init.expr)
            .and_then(|()| self.expression(&init.expr))
            .and_then(|value| self.annotated(&local.pat, value, init.expr.span()));
        match value {
            Ok(Val::Never) => Ok(Val::Never),
            Ok(value) => self.bind(&local.pat, value).map(|()| Val::Unit),
            Err(Reported) => {
                self.define_poison(&local.pat);
                Err(Reported)
            }
        }
    }

    /// Applies the type of `let x: f32 = …`.
    fn annotated(&mut self, pattern: &Pat, value: Val, span: Span) -> Lowered<Val> {
        let Pat::Type(typed) = pattern else { return Ok(value) };
        if matches!(value, Val::Never) {
            return Ok(value);
        }
        if let Some(elem) = self.element(&typed.ty) {
            let is_index = elem == Elem::Known(tile_ir::DType::Index);
            self.share(&value, &elem, "the type of a variable", span)?;
            return match value {
                Val::Dim(_) if is_index => Ok(value),
                Val::Int(Int { value: int, .. }) if is_index => match i64::try_from(int) {
                    Ok(int) => Ok(Val::Dim(tile_ir::Dim::from(int))),
                    Err(_) => self.error(span, format!("{int} doesn't fit usize"), "use a smaller number"),
                },
                Val::Data(tile) if self.shape(tile).is_some() => {
                    let help = "leave the type out, or write `Tile<…>`";
                    self.error(typed.ty.span(), "the value is a tile, not a scalar", help)
                }
                value => self.number(&value, &elem, "the value", span).map(Val::Data),
            };
        }
        match (&value, tile_type_element(&typed.ty)) {
            (Val::Data(tile), Some(ty)) if self.shape(*tile).is_some() => {
                if let Some(elem) = self.element(ty) {
                    self.require_elem(*tile, &elem, "the tile's element type", typed.ty.span())?;
                }
                Ok(value)
            }
            (Val::List(_), _) if matches!(*typed.ty, syn::Type::Array(_) | syn::Type::Tuple(_)) => Ok(value),
            (Val::Record(..), _) if matches!(*typed.ty, syn::Type::Path(_)) => Ok(value),
            _ => self.error(typed.ty.span(), "this type can't be written in a kernel", "leave the type out"),
        }
    }

    pub(super) fn bind(&mut self, pattern: &Pat, value: Val) -> Lowered<()> {
        match (pattern, value) {
            (Pat::Type(typed), value) => self.bind(&typed.pat, value),
            (Pat::Paren(inner), value) => self.bind(&inner.pat, value),
            (Pat::Wild(_), _) => Ok(()),
            (Pat::Ident(ident), value) if ident.by_ref.is_none() && ident.subpat.is_none() => {
                self.define(&ident.ident, ident.mutability.is_some(), value);
                Ok(())
            }
            (pattern, Val::Poison) => {
                self.define_poison(pattern);
                Ok(())
            }
            (Pat::Slice(slice), Val::List(values)) => self.bind_all(pattern, slice.elems.iter(), values),
            (Pat::Tuple(tuple), Val::List(values)) => self.bind_all(pattern, tuple.elems.iter(), values),
            (Pat::Struct(pattern), Val::Record(_, fields)) => self.bind_record(pattern, &fields),
            (pattern @ (Pat::Slice(_) | Pat::Tuple(_) | Pat::Struct(_)), value) => {
                self.define_poison(pattern);
                let message = format!("{} can't be taken apart", kind(&value));
                self.error(pattern.span(), message, "bind it to a name")
            }
            (pattern, _) => {
                self.define_poison(pattern);
                let help = "use a name, `_`, or an array, tuple or struct of names";
                self.error(pattern.span(), "this pattern isn't supported in a kernel", help)
            }
        }
    }

    fn bind_all<'p>(
        &mut self,
        whole: &Pat,
        patterns: impl ExactSizeIterator<Item = &'p Pat>,
        values: Vec<Val>,
    ) -> Lowered<()> {
        if patterns.len() != values.len() {
            let message = format!(
                "a pattern of length {} takes apart a value of length {}",
                patterns.len(),
                values.len()
            );
            self.define_poison(whole);
            return self.error(whole.span(), message, "name each value, or use `_`");
        }
        for (pattern, value) in patterns.zip(values) {
            self.bind(pattern, value)?;
        }
        Ok(())
    }

    pub(super) fn define(&mut self, name: &syn::Ident, mutable: bool, value: Val) {
        if let Val::Data(id) | Val::View(id) = &value {
            self.kernel.name_value(*id, &name.to_string());
        }
        let (name, span) = (name.to_string(), name.span().into());
        self.scopes.define(Variable { name, value, mutable, constant: false, span });
    }

    /// Defines a pattern's names, so that their uses report nothing more.
    pub(super) fn define_poison(&mut self, pattern: &Pat) {
        match pattern {
            Pat::Ident(ident) => self.define(&ident.ident, true, Val::Poison),
            Pat::Type(typed) => self.define_poison(&typed.pat),
            Pat::Paren(inner) => self.define_poison(&inner.pat),
            Pat::Slice(slice) => slice.elems.iter().for_each(|pattern| self.define_poison(pattern)),
            Pat::Tuple(tuple) => tuple.elems.iter().for_each(|pattern| self.define_poison(pattern)),
            Pat::Struct(record) => record.fields.iter().for_each(|field| self.define_poison(&field.pat)),
            _ => {}
        }
    }

    pub(super) fn assign(&mut self, assign: &ExprAssign) -> Lowered<Val> {
        let value = self.expression(&assign.right);
        let span = assign.right.span();
        if exits::of_expression(&assign.right).is_empty() {
            return self.set(&assign.left, value, span);
        }
        // Where the right side left, nothing is assigned.
        let value = match value? {
            Val::Never => return Ok(Val::Never),
            value => value,
        };
        let mut assigned = assigned::by_expression(&Expr::Assign(assign.clone()));
        assigned.exits.clear();
        self.guarded(assigned, span, &mut |lowering| lowering.set(&assign.left, Ok(value.clone()), span))
            .map(|_| Val::Unit)
    }

    pub(super) fn compound_assign(&mut self, binary: &ExprBinary) -> Lowered<Val> {
        debug_assert!(is_compound_assignment(&binary.op));
        let value = self.binary_operator(binary);
        self.set(&binary.left, value, binary.span())
    }
}

/// `f32` of `Tile<f32, 2>`.
fn tile_type_element(ty: &syn::Type) -> Option<&syn::Type> {
    let syn::Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Tile")?;
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first()? {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}
