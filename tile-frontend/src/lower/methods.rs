//! Method calls: what tiles and scalars can do. Methods of tensors and views are in [`super::tensors::views`].

use super::constants::of_known;
use super::names;
use super::ops::folding::symbolic;
use super::ops::movement::is_movement;
use super::{Lowered, Lowering, kind};
use crate::rewrite::unwrapped;
use crate::span::Spanned;
use crate::structs::{Method, Struct};
use crate::value::Val;
use std::rc::Rc;
use syn::{Expr, ExprMethodCall, parse_quote};
use tile_ir::ops::{BinaryOp, Predicate, ReduceOp};
use tile_ir::{DType, Op, ValueId};

impl Lowering {
    pub(super) fn method(&mut self, call: &ExprMethodCall) -> Lowered<Val> {
        if let Expr::Range(range) = unwrapped(&call.receiver) {
            return self.range_method(range, call);
        }
        if let Some(value) = self.certain(call)? {
            return Ok(value);
        }
        let receiver = self.expression(&call.receiver)?;
        match receiver {
            Val::Tensor(tensor) => self.tensor_method(tensor, call),
            Val::Optional(argument, given) => self.optional_method(argument, given, call),
            ref array @ (Val::List(_) | Val::Iterator(_) | Val::Arguments(..)) if call.method == "len" => {
                self.length(array, call)
            }
            Val::List(values) => self.list_method(values, false, call),
            Val::Iterator(values) => self.list_method(values, true, call),
            Val::Windows(ref windowed) => self.windows_method(windowed, call),
            Val::WindowsView(ref windowed, ref tile, ref steps) => {
                self.windows_view_method(windowed, [tile, steps], call)
            }
            Val::View(view) => self.view_method(view, call),
            Val::ViewTile(ref tile) => self.view_tile_method(tile, call),
            Val::Atomic(tensor) => self.atomic_method(tensor, call),
            Val::Data(data) if self.shape(data).is_some() => self.tile_method(data, call),
            Val::Data(_) | Val::Int(_) | Val::Float(_) | Val::Dim(_) => self.scalar_method(&receiver, call),
            Val::Poison => Err(super::Reported),
            Val::Record(ref record, _) => self.method_of_struct(&record.clone(), receiver, call),
            other => {
                let message = match &other {
                    Val::Arguments(_, count) => {
                        format!("an array of {count} arguments has no method but `len` in a kernel")
                    }
                    other => format!("{} has no methods in a kernel", kind(other)),
                };
                let help = match (&other, call.method.to_string().as_str()) {
                    (Val::Arguments(..), "iter" | "into_iter") => "write `for t in values`",
                    (Val::Arguments(..), _) => {
                        "how many there are is known when an instance is made, so a loop goes through them, `for t in values`; \
                         an array of arguments as long as a number has the methods of arrays"
                    }
                    (_, "clone") => "values of kernels are `Copy`; leave the call out",
                    _ => "use its parts",
                };
                self.error(call.method.span(), message, help)
            }
        }
    }

    fn method_of_struct(&mut self, record: &Struct, receiver: Val, call: &ExprMethodCall) -> Lowered<Val> {
        let name = &call.method;
        let Some(Method { helper, module, is_foreign }) = record.method(&name.to_string()) else {
            return self.no_method_of_struct(record, call);
        };
        self.check_condition(&helper)?;
        let is_here = Rc::ptr_eq(&module, &self.text.helpers);
        if !is_here && helper.is_update && !self.text.helpers.has_update(&name.to_string()) {
            let message = format!("`{name}` changes its struct, `{record}`, which is of another module");
            let help = format!(
                "call it in a `#[tile_fn]` of that module that gives the struct back: `state.{name}(…); state`"
            );
            return self.error(name.span(), message, &help);
        }
        let helper = if is_here { helper } else { helper.called_from_elsewhere(module, is_foreign) };
        let owner = syn::Ident::new(&record.to_string(), name.span());
        let mut path: syn::Path = parse_quote!(#owner::#name);
        if let (Some(written), Some(last)) = (&call.turbofish, path.segments.last_mut()) {
            last.arguments = syn::PathArguments::AngleBracketed(written.clone());
        }
        self.call_method(&helper, receiver, path, call)
    }

    fn no_method_of_struct(&mut self, record: &Struct, call: &ExprMethodCall) -> Lowered<Val> {
        let (name, known) = (&call.method, record.methods());
        let help = if !known.is_empty() {
            format!("it has {}", known.join(", "))
        } else if record.is_elsewhere() {
            format!(
                "the methods of another module's struct are known of values that a `#[tile_fn]` of that module gives: let one make it, `fn new(…) -> {record}`"
            )
        } else {
            format!(
                "write `#[tile_fn] impl {record} {{ fn {name}(self, …) -> Self {{ … }} }}` beside the kernel, in a module with `#[tile_kernels]`"
            )
        };
        self.no_method(&format!("`{record}`"), call, &help)
    }

    pub(super) fn no_method(&mut self, what: &str, call: &ExprMethodCall, help: &str) -> Lowered<Val> {
        let message = format!("{what} has no method `{}` in a kernel", call.method);
        self.error(call.method.span(), message, help)
    }

    fn tile_method(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let (name, span) = (call.method.to_string(), call.span());
        let receiver = call.receiver.span();
        if let Some(op) = ReduceOp::from_method(&name) {
            return self.reduce(op, tile, call);
        }
        if let Some(op) = ReduceOp::from_position_method(&name) {
            return self.position_of(op, tile, call);
        }
        if let Some((op, mode)) = ReduceOp::from_scan_method(&name) {
            return self.scan_method(op, mode, tile, call);
        }
        if let Some(value) = self.sorting_method(tile, call)? {
            return Ok(value);
        }
        if let Some(value) = self.leaf_method(&Val::Data(tile), call)? {
            return Ok(value);
        }
        let rank = self.shape(tile).map_or(0, |shape| shape.len());
        match name.as_str() {
            "cast" | "cast_with" | "saturating_cast" | "bitcast" => self.cast_method(tile, call),
            "pack_f4e2m1" => self.pack_f4e2m1(tile, call),
            "lookup" => self.lookup(tile, call),
            "unpack_f4e2m1" => self.unpack_f4e2m1(tile, call),
            "mean" => self.mean(tile, call),
            "clamp" => self.clamp(tile, call),
            "powi" => self.powi(tile, call),
            "reduce" | "scan" => self.no_method(
                "a tile",
                call,
                &format!("write the function: `{name}(x, axis, start, |a, b| a + b)`"),
            ),
            name if is_movement(name) => self.movement_method(tile, call),
            "broadcast" | "reshape" => {
                let arguments = self.arguments(&name, &call.args, 1, &format!("{name}([M, N])"), span)?;
                let shape = self.extents(&arguments.values[0], arguments.spans[0])?;
                let op = if name == "broadcast" { Op::Broadcast(shape) } else { Op::Reshape(shape) };
                self.emit_one(op, &[tile], span, &[receiver]).map(Val::Data)
            }
            "permute" => self.permute(tile, call),
            "t" if rank != 2 => {
                let message = format!("`t` exchanges the axes of a matrix, but the tile has rank {rank}");
                self.error(call.method.span(), message, &help_of_transposition(rank))
            }
            "t" => {
                self.arguments(&name, &call.args, 0, "t()", span)?;
                self.emit_one(Op::Permute(vec![1, 0]), &[tile], span, &[receiver]).map(Val::Data)
            }
            // The function of this name chooses element by element.
            "select" => {
                let help =
                    "`x.take(index, axis)` is a slice of a tile, and `.squeeze(axis)` leaves its axis out";
                self.no_method("a tile", call, help)
            }
            "trans" | "transpose" | "swapaxes" if rank != 2 => {
                self.no_method("a tile", call, &help_of_transposition(rank))
            }
            "item" => {
                self.arguments(&name, &call.args, 0, "x.item()", span)?;
                self.emit_one(Op::Item, &[tile], span, &[receiver]).map(Val::Data)
            }
            "load_masked" | "store_masked" | "load" | "store" => {
                self.no_method("a tile", call, "loads and stores are methods of partition views")
            }
            "prefetch" => self.no_method(
                "a tile",
                call,
                "ask for it before it is loaded: `x.prefetch([i, j])` of a view",
            ),
            _ => self.no_method("a tile", call, &names::help_of_tile(&name)),
        }
    }

    fn permute(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let arguments = self.arguments("permute", &call.args, 1, "permute([1, 0])", call.span())?;
        let (place, rank) = (arguments.spans[0], self.shape(tile).map_or(0, |shape| shape.len()));
        let Val::List(axes) = &arguments.values[0] else {
            return self.error(place, "a permutation is an array", "write `permute([1, 0])`");
        };
        let axes = axes.iter().map(|axis| self.axis(axis, rank, place)).collect::<Lowered<_>>()?;
        self.emit_one(Op::Permute(axes), &[tile], call.span(), &[call.receiver.span()]).map(Val::Data)
    }

    fn scalar_method(&mut self, receiver: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        let name = call.method.to_string();
        if let Some((count, usage)) = of_known(&name) {
            let arguments = self.arguments(&name, &call.args, count, &usage, call.span())?;
            if let Some(value) = self.known_method(receiver, &arguments, call)? {
                return Ok(value);
            }
            let ([_], "min" | "max") = (&arguments.values[..], name.as_str()) else {
                return self.no_method("a scalar", call, &names::help_of_scalar(&name));
            };
            let op = if name == "min" { BinaryOp::Min } else { BinaryOp::Max };
            let spans = [call.receiver.span(), arguments.spans[0]];
            let extreme = self.arithmetic(op, receiver, &arguments.values[0], call.span(), spans)?;
            // Of two zeros Rust's may give either.
            if self.is_scalar(&extreme) {
                self.note_scalar(call.method.span().into(), op.name(), &extreme);
            }
            return Ok(extreme);
        }
        if name == "div_ceil" {
            return self.div_ceil(receiver, call);
        }
        if let "ln" | "log" = name.as_str() {
            return self.logarithm(receiver, call);
        }
        let comparison = Predicate::from_name(&name).is_some();
        if !comparison && let Some(value) = self.leaf_method(receiver, call)? {
            return Ok(value);
        }
        match name.as_str() {
            "clamp" => self.clamp_scalar(receiver, call),
            "powi" => self.powi_scalar(receiver, call),
            "to_bits" => self.bits_of_float(receiver, call),
            _ => self.no_method("a scalar", call, &names::help_of_scalar(&name)),
        }
    }

    /// `m.div_ceil(BM)`: of extents it is one, and of a number that is computed it is a number.
    fn div_ceil(&mut self, receiver: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        let arguments = self.arguments("div_ceil", &call.args, 1, "a.div_ceil(b)", call.span())?;
        let is_extent = |value: &&Val| match value {
            Val::Data(_) => false,
            value => value.shared().is_none_or(|shared| {
                self.elements.resolve(shared).known().is_none_or(|dtype| dtype == DType::Index)
            }),
        };
        if [receiver, &arguments.values[0]].iter().all(is_extent) {
            let a = self.static_dim(receiver, "the dividend", call.receiver.span())?;
            let b = self.static_dim(&arguments.values[0], "the divisor", arguments.spans[0])?;
            if let Some(quotient) = symbolic(a.ceil_div(&b)) {
                return Ok(quotient);
            }
        }
        let spans = [call.receiver.span(), arguments.spans[0]];
        let quotient =
            self.arithmetic(BinaryOp::DivCeil, receiver, &arguments.values[0], call.span(), spans)?;
        // Rust's panics where the divisor is 0.
        if self.is_scalar(&quotient) {
            self.note_scalar(call.method.span().into(), "div_ceil", &quotient);
        }
        Ok(quotient)
    }
}

/// What is written to exchange axes of a tile that is no matrix.
fn help_of_transposition(rank: usize) -> String {
    if rank < 2 {
        return "a tile of one axis becomes a row by `.unsqueeze(0)`, a column by `.unsqueeze(1)`".to_owned();
    }
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    format!("write the order of the axes: `.permute({order:?})` exchanges the last two")
}
