//! Statements and blocks: `let`, assignment, expression statements.

use super::control::counters::mentions;
use super::control::matches::LetElse;
use super::functions::conform::{type_arguments, type_text};
use super::ops::movement::with_parts;
use super::{Lowered, Lowering, Reported, kind, rust_elem};
use crate::assigned::{self, is_compound_assignment};
use crate::exits;
use crate::macros::{self, debugged};
use crate::rewrite::unwrapped;
use crate::scope::{Changes, Variable};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{
    Block, Expr, ExprAssign, ExprBinary, ExprMacro, GenericArgument, Ident, Item, Local, Pat, Stmt, Type,
    TypePath,
};
use tile_ir::ValueId;

/// What methods of a type are in kernels.
fn methods_of(owner: &str) -> String {
    format!(
        "write `#[tile_fn] impl {owner} {{ … }}` beside the kernel, in a module with `#[tile_kernels]`, with the struct"
    )
}

impl Lowering {
    /// A block's statements; its value is that of a last expression without `;`.
    pub(super) fn block(&mut self, block: &Block) -> Lowered<Val> {
        self.scopes.enter();
        let structs = self.structs.len();
        self.note_structs(&block.stmts);
        self.constants(&block.stmts);
        let value = self.statements(&block.stmts);
        self.structs.truncate(structs);
        self.scopes.leave();
        value
    }

    pub(super) fn statements(&mut self, statements: &[Stmt]) -> Lowered<Val> {
        if let Some(let_else) = LetElse::of(statements) {
            return self.let_else(&let_else);
        }
        let Some((statement, rest)) = statements.split_first() else { return Ok(Val::Unit) };
        let value = self.statement(statement);
        if rest.is_empty() {
            return value;
        }
        // Nothing after an exit is reached; rustc warns of it.
        if matches!(value, Ok(Val::Never)) {
            self.not_taken(|lowering| lowering.statements(rest));
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
            // What it is was noted where its block begins.
            Stmt::Item(Item::Const(_)) => Ok(Val::Unit),
            // rustc sees it, and values of it are known by its name.
            Stmt::Item(Item::Struct(_)) => Ok(Val::Unit),
            Stmt::Item(item) => self.refused_item(item),
            Stmt::Macro(statement) => {
                let called = ExprMacro { attrs: Vec::new(), mac: statement.mac.clone() };
                self.check_exits(&Expr::Macro(called))?;
                let value = self.called_macro(&statement.mac)?;
                let is_value = statement.semi_token.is_none() || matches!(value, Val::Never);
                Ok(if is_value { value } else { Val::Unit })
            }
        }
    }

    /// Items that a body can't have, by name.
    fn refused_item(&mut self, item: &Item) -> Lowered<Val> {
        let (what, help) = match item {
            Item::Fn(function) => {
                let name = &function.sig.ident;
                let message = "a kernel has no functions of its own".to_owned();
                let help = format!(
                    "write `#[tile_fn] fn {name}(…)` beside the kernel, in a module with `#[tile_kernels]`, or a closure: `let {name} = |x| …;`"
                );
                return self.error(function.sig.ident.span(), message, &help);
            }
            Item::Static(_) => ("a `static`", "write `const`: kernels have no memory of their own"),
            Item::Use(_) => (
                "`use`",
                "write it above the kernel; constants are named by their path, `std::f32::consts::PI`",
            ),
            Item::Type(_) => ("a type of another name", "write the type out where it is used"),
            Item::Enum(_) => (
                "an `enum`",
                "write integers that `match` looks at, or a const parameter, `const MODE: usize`, which is known when an instance is made",
            ),
            Item::Impl(item) => {
                let methods = methods_of(&type_text(&item.self_ty));
                let help = match &item.trait_ {
                    None => methods,
                    Some(_) => format!("traits have no methods in kernels: {methods}"),
                };
                return self.error(item.span(), "a kernel can't have an `impl` inside of it", &help);
            }
            Item::Trait(item) => {
                let help = methods_of("State");
                return self.error(item.span(), "a kernel can't have a trait inside of it", &help);
            }
            _ => ("this item", "move it out of the kernel"),
        };
        self.error(item.span(), format!("a kernel can't have {what} inside of it"), help)
    }

    /// `dbg!(x)` is `x`; it prints on the reference device, where the body runs as Rust.
    pub(super) fn called_macro(&mut self, called: &syn::Macro) -> Lowered<Val> {
        if let Some(value) = debugged(called) {
            return self.expression(&value);
        }
        if let Some(question) = macros::matched(called) {
            return self.match_expression(&question.as_match());
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
            "assert" | "debug_assert" => {
                "write `tile_assert!(condition, \"x = {}\", x)`, which checks on every device; what holds of sizes and const parameters is a condition of the kernel, `#[tile_kernel(where(BM % 4 == 0))]`"
            }
            "panic" | "unreachable" | "todo" | "unimplemented" => {
                "a block goes on to its end: write `tile_assert!(condition, \"x = {}\", x)`, which checks on every device, and a value for the arm that isn't reached"
            }
            "assert_eq" | "debug_assert_eq" => {
                "write `tile_assert!(a == b, \"{} and {}\", a, b)`, which checks on every device; what holds of sizes and const parameters is a condition of the kernel, `#[tile_kernel(where(m == n))]`"
            }
            "assert_ne" | "debug_assert_ne" => {
                "write `tile_assert!(a != b, \"{} and {}\", a, b)`, which checks on every device"
            }
            "format" | "write" | "writeln" => {
                "a kernel has no texts; `tile_println!(\"x = {x}\")` prints one on every device"
            }
            "cfg" => {
                "what rustc leaves out isn't known here: choose by a const parameter, `const FAST: bool`"
            }
            "matches" => "write `matches!(x, 1 | 2)`, of a value and a pattern",
            _ => "what a macro of yours makes isn't seen: write a function with `#[tile_fn]`, or its code",
        };
        self.error(called.path.span(), format!("`{name}!` can't be used in a kernel"), help)
    }

    fn local(&mut self, local: &Local) -> Lowered<Val> {
        let Some(init) = &local.init else { return self.declaration(local) };
        let given = with_parts(&local.pat, &init.expr);
        let ty = match &local.pat {
            Pat::Type(typed) => Some(&*typed.ty),
            _ => None,
        };
        let value = self
            .check_exits(&given)
            .and_then(|()| self.initial(&given))
            .and_then(|value| self.of_declared_type(ty, value, &init.expr));
        match value {
            Ok(Val::Never) => Ok(Val::Never),
            Ok(value) => self.bind(&local.pat, value).map(|()| Val::Unit),
            Err(Reported) => {
                self.define_poison(&local.pat);
                Err(Reported)
            }
        }
    }

    /// What a variable is given. A reference to a value that doesn't change is that value.
    fn initial(&mut self, expression: &Expr) -> Lowered<Val> {
        match unwrapped(expression) {
            Expr::Reference(reference) if reference.mutability.is_none() => {
                match self.expression(&reference.expr)? {
                    Val::View(_) | Val::Tensor(_) | Val::Closure(_) => self.expression(expression),
                    value => Ok(value),
                }
            }
            _ => self.expression(expression),
        }
    }

    /// `let x;`, which gets its value later. Rust has it assigned before it is used, and once where it isn't `mut`.
    fn declaration(&mut self, local: &Local) -> Lowered<Val> {
        let (pattern, ty) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&typed.ty)),
            pattern => (pattern, None),
        };
        if !is_of_names(pattern) {
            self.define_poison(pattern);
            return self.error(local.span(), "this pattern needs a value", "give it one: `let (a, b) = …;`");
        }
        self.declare(pattern, ty.map(|ty| &**ty));
        Ok(Val::Unit)
    }

    /// The variables of a pattern [of names](is_of_names), each of its part of the type.
    fn declare(&mut self, pattern: &Pat, ty: Option<&Type>) {
        match (pattern, ty) {
            (Pat::Ident(name), ty) => {
                self.define(&name.ident, true, Val::Unset);
                if let (Some(ty), Some(variable)) = (ty, self.scopes.find(&name.ident.to_string())) {
                    self.declared.insert(variable, ty.clone());
                }
            }
            (Pat::Paren(inner), ty) => self.declare(&inner.pat, ty),
            // Whether there are as many types, rustc checks.
            (Pat::Tuple(names), Some(Type::Tuple(types))) => {
                let parts =
                    names.elems.iter().zip(types.elems.iter().map(Some).chain(std::iter::repeat(None)));
                parts.for_each(|(name, ty)| self.declare(name, ty));
            }
            (Pat::Slice(names), ty) => {
                let ty = match ty {
                    Some(Type::Array(array)) => Some(&*array.elem),
                    _ => None,
                };
                names.elems.iter().for_each(|name| self.declare(name, ty));
            }
            (Pat::Tuple(names), _) => names.elems.iter().for_each(|name| self.declare(name, None)),
            _ => {}
        }
    }

    /// A value as one of the type that stands at what is given it, if one does.
    pub(super) fn of_declared_type(&mut self, ty: Option<&Type>, value: Val, written: &Expr) -> Lowered<Val> {
        match ty {
            Some(ty) => self.annotated_as_written(ty, value, written),
            None => Ok(value),
        }
    }

    /// A value as one of the type that a variable is given, each part of it where it is written.
    fn annotated_as_written(&mut self, ty: &Type, value: Val, written: &Expr) -> Lowered<Val> {
        let span = written.span();
        match (value, ty, unwrapped(written)) {
            (Val::List(values), Type::Array(array), Expr::Array(written))
                if values.len() == written.elems.len() =>
            {
                let parts = values.into_iter().zip(&written.elems);
                let parts = parts
                    .map(|(value, written)| self.annotated_part(&array.elem, value, Some(written), span));
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            (Val::List(values), Type::Tuple(tuple), Expr::Tuple(written))
                if values.len() == tuple.elems.len() && values.len() == written.elems.len() =>
            {
                let parts = values.into_iter().zip(&tuple.elems).zip(&written.elems);
                let parts =
                    parts.map(|((value, ty), written)| self.annotated_part(ty, value, Some(written), span));
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            (value, ty, _) => self.annotated(ty, value, span),
        }
    }

    /// A value as one of the type that a variable is given: `let x: f32 = …`.
    pub(super) fn annotated(&mut self, ty: &Type, value: Val, span: Span) -> Lowered<Val> {
        if matches!(value, Val::Never) || matches!(ty, Type::Infer(_)) {
            return Ok(value);
        }
        if let Type::Reference(reference) = ty {
            return self.annotated(&reference.elem, value, span);
        }
        if let Some(elem) = self.element(ty) {
            self.share(&value, &elem, "the type of a variable", span)?;
            if !self.is_scalar(&value) {
                let help = "leave the type out, or write `Tile<…>`";
                return self.error(ty.span(), "the value is a tile, not a scalar", help);
            }
            return self.declared_number(value, &elem, "the value", span);
        }
        match (&value, ty) {
            (Val::Data(tile), Type::Path(path)) if self.shape(*tile).is_some() && is_tile(path) => {
                self.annotated_tile(*tile, path).map(|()| value)
            }
            (Val::List(values), Type::Array(array)) => {
                let parts = values.iter().cloned();
                let parts = parts.map(|value| self.annotated_part(&array.elem, value, None, span));
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            (Val::List(values), Type::Tuple(tuple)) if values.len() == tuple.elems.len() => {
                let parts = values.iter().cloned().zip(&tuple.elems);
                let parts = parts.map(|(value, ty)| self.annotated_part(ty, value, None, span));
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            (Val::Record(record, fields), Type::Path(path)) => {
                self.of_struct(&path.path, fields, span);
                Ok(Val::Record(record.also_named(&path.path, &self.text), fields.clone()))
            }
            _ => {
                let help = "leave the type out; another name of a type, `type Row = …`, isn't seen";
                self.error(ty.span(), "this type can't be written in a kernel", help)
            }
        }
    }

    /// A part of such a value, where it is written if that is known. Of tensors and views rustc knows the types.
    fn annotated_part(&mut self, ty: &Type, value: Val, written: Option<&Expr>, whole: Span) -> Lowered<Val> {
        match value {
            Val::Int(_) | Val::Float(_) | Val::Dim(_) | Val::Data(_) | Val::List(_) => match written {
                Some(written) => self.annotated_as_written(ty, value, written),
                None => self.annotated(ty, value, whole),
            },
            value => Ok(value),
        }
    }

    /// Applies the element type and the rank of `Tile<f32, 2>`.
    fn annotated_tile(&mut self, tile: ValueId, path: &TypePath) -> Lowered<()> {
        let arguments = type_arguments(path);
        if let Some(GenericArgument::Type(ty)) = arguments.first()
            && let Some(elem) = self.element(ty)
        {
            self.require_elem(tile, &elem, "the tile's element type", path.span())?;
        }
        let rank = self.shape(tile).map_or(0, |shape| shape.len());
        let Some(declared) = arguments.get(1) else { return Ok(()) };
        if matches!(declared, GenericArgument::Type(Type::Infer(_))) {
            return Ok(());
        }
        let number = self.declared_rank(path, rank);
        if number.is_some_and(|number| i64::try_from(rank) == Ok(number)) {
            return Ok(());
        }
        let help = format!(
            "write `Tile<{}, {rank}>`, or leave the type out; the extents follow from the value",
            rust_elem(&self.elem(tile))
        );
        let message = match number {
            Some(number) => format!("the tile has rank {rank}, but is declared with rank {number}"),
            None => "the second parameter of `Tile` is its rank, not its extents".to_owned(),
        };
        self.error(declared.span(), message, &help)
    }

    pub(super) fn bind(&mut self, pattern: &Pat, value: Val) -> Lowered<()> {
        match (pattern, value) {
            (Pat::Type(typed), value) => self.bind(&typed.pat, value),
            (Pat::Paren(inner), value) => self.bind(&inner.pat, value),
            (Pat::Wild(_), _) => Ok(()),
            (Pat::Rest(_), _) => Ok(()),
            (Pat::Reference(inner), value) => self.bind(&inner.pat, value),
            (Pat::Ident(ident), value) if ident.by_ref.is_none() => {
                self.define(&ident.ident, ident.mutability.is_some(), value.clone());
                match &ident.subpat {
                    Some((_, inner)) => self.bind(inner, value),
                    None => Ok(()),
                }
            }
            (pattern, Val::Poison) => {
                self.define_poison(pattern);
                Ok(())
            }
            (pattern, value) => match self.taken_apart(pattern, &value) {
                Some(Ok(parts)) => parts.into_iter().try_for_each(|(part, value)| self.bind(part, value)),
                Some(Err(Reported)) => {
                    self.define_poison(pattern);
                    Err(Reported)
                }
                None => self.cannot_bind(pattern, &value),
            },
        }
    }

    fn cannot_bind<T>(&mut self, pattern: &Pat, value: &Val) -> Lowered<T> {
        self.define_poison(pattern);
        let span = pattern.span();
        match pattern {
            Pat::Slice(_) | Pat::Tuple(_) | Pat::Struct(_) => {
                self.error(span, format!("{} can't be taken apart", kind(value)), "bind it to a name")
            }
            Pat::Ident(_) => {
                self.error(span, "`ref` isn't supported in a kernel", "leave it out: values are copied")
            }
            _ => {
                let help = "use a name, `_`, or an array, tuple or struct of names; to choose by a number, write `match`";
                self.error(span, "this pattern isn't supported in a kernel", help)
            }
        }
    }

    pub(super) fn define(&mut self, name: &syn::Ident, mutable: bool, value: Val) {
        let value = self.named(value);
        if let Val::Data(id) | Val::View(id) = &value {
            self.kernel.name_value(*id, &name.to_string());
        }
        let (name, span) = (name.to_string(), name.span().into());
        let changes = Changes::of_binding(mutable);
        self.scopes.define(Variable { name, value, changes, constant: false, span });
    }

    /// Defines a pattern's names, so that their uses report nothing more.
    pub(super) fn define_poison(&mut self, pattern: &Pat) {
        match pattern {
            Pat::Ident(ident) => {
                self.define(&ident.ident, true, Val::Poison);
                ident.subpat.iter().for_each(|(_, inner)| self.define_poison(inner));
            }
            Pat::Type(typed) => self.define_poison(&typed.pat),
            Pat::Paren(inner) => self.define_poison(&inner.pat),
            Pat::Reference(inner) => self.define_poison(&inner.pat),
            Pat::Slice(slice) => slice.elems.iter().for_each(|pattern| self.define_poison(pattern)),
            Pat::Tuple(tuple) => tuple.elems.iter().for_each(|pattern| self.define_poison(pattern)),
            Pat::TupleStruct(tuple) => tuple.elems.iter().for_each(|pattern| self.define_poison(pattern)),
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
        self.check_right_side(binary)?;
        self.check_left_side(binary)?;
        // As in Rust, the right side comes first where numbers are changed.
        let (place, right) = if self.names_tiles(&binary.left) {
            (self.place(&binary.left), self.expression(&binary.right))
        } else {
            let right = self.expression(&binary.right);
            (self.place(&binary.left), right)
        };
        let place = place?;
        let left = self.value_at(&place, binary.left.span());
        let value = left.and_then(|left| self.operated(binary, &left, &right?));
        self.set_at(&binary.left, &place, value, binary.span())
    }

    /// Whether a place is of a variable that holds tiles.
    fn names_tiles(&self, place: &Expr) -> bool {
        fn first(value: &Val) -> Option<&Val> {
            match value {
                Val::List(parts) => parts.first().and_then(first),
                Val::Record(_, fields) => fields.values().next().and_then(first),
                value => Some(value),
            }
        }
        let names = assigned::by_target(place);
        let variables = names.iter().filter_map(|name| self.scopes.find(name));
        let mut values = variables.filter_map(|id| first(&self.scopes.variables[id].value));
        values.any(|value| !self.is_scalar(value))
    }

    /// Refuses an index of tiles that assigns, in a function: Rust computes a tile's place before the right side and a number's
    /// after it, and the function as rustc sees it, which knows neither, always after it.
    fn check_left_side(&mut self, binary: &ExprBinary) -> Lowered<()> {
        if self.text.is_own || !self.names_tiles(&binary.left) {
            return Ok(());
        }
        match assigned::by_expression(&binary.left).names.first() {
            None => Ok(()),
            Some(name) => {
                let message =
                    format!("the index assigns to `{name}`, before or after the right side is computed");
                let help = "give the index a name first: `let at = …;`";
                self.error(binary.left.span(), message, help)
            }
        }
    }

    /// Refuses a right side that assigns to what it is added to, or to an index of it: Rust reads a number on the left after
    /// it, and anything else before.
    fn check_right_side(&mut self, binary: &ExprBinary) -> Lowered<()> {
        let changed = assigned::by_expression(&binary.right).names;
        let is_read =
            |name: &&String| mentions(&binary.left, &Ident::new(name, proc_macro2::Span::call_site()));
        match changed.iter().find(is_read) {
            None => Ok(()),
            Some(name) => {
                let message = format!("the right side assigns to `{name}`, which this assignment reads");
                let help = "give the right side a name first: `let change = …;`";
                self.error(binary.right.span(), message, help)
            }
        }
    }
}

fn is_tile(path: &TypePath) -> bool {
    path.path.segments.last().is_some_and(|segment| segment.ident == "Tile")
}

/// Whether a pattern is of names alone, and of tuples and arrays of these: what Rust lets variables without a value stand in.
fn is_of_names(pattern: &Pat) -> bool {
    match pattern {
        Pat::Ident(name) => name.subpat.is_none(),
        Pat::Wild(_) => true,
        Pat::Paren(inner) => is_of_names(&inner.pat),
        Pat::Tuple(names) => names.elems.iter().all(is_of_names),
        Pat::Slice(names) => names.elems.iter().all(is_of_names),
        _ => false,
    }
}
