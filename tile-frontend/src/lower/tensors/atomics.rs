//! `atomic_view` and the atomic operations of such a view.

use crate::lower::tensors::gather::Placed;
use crate::lower::{Lowered, Lowering};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Expr, ExprMethodCall};
use tile_ir::ops::{Atomic, AtomicKind, Order, Scope};
use tile_ir::types::TensorType;
use tile_ir::{DType, Dim, Elem, Op, Type, ValueId};

impl Lowering {
    pub(in crate::lower) fn atomic_view(
        &mut self,
        tensor: ValueId,
        ty: &TensorType,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        self.arguments("atomic_view", &call.args, 0, "atomic_view()", call.span())?;
        if !ty.mutable {
            let message = "the tensor is `&`, so it can't be changed";
            return self.error(call.method.span(), message, "declare the argument as `&mut Tensor<…>`");
        }
        Ok(Val::Atomic(tensor))
    }

    pub(in crate::lower) fn atomic_method(&mut self, tensor: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let Type::Tensor(ty) = self.kernel.ty(tensor).clone() else {
            unreachable!("tensors have tensor types")
        };
        let name = call.method.to_string();
        if name == "extent" {
            return self.extent_of(&ty.extents, call);
        }
        let (base, masked) = match name.strip_suffix("_masked") {
            Some(base) => (base, true),
            None => (name.as_str(), false),
        };
        match AtomicKind::from_rust_name(base) {
            Some(kind) => self.atomic(tensor, &ty, kind, masked, call),
            None => self.no_method(
                "an atomic view",
                call,
                "atomic views have `fetch_add`, `fetch_sub`, `fetch_min`, `fetch_max`, `fetch_and`, `fetch_or`, `fetch_xor`, \
                 `swap`, `compare_exchange`, `load` and `store`, each also with `_masked`, and `extent`",
            ),
        }
    }

    fn atomic(
        &mut self,
        tensor: ValueId,
        ty: &TensorType,
        kind: AtomicKind,
        masked: bool,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let (name, span) = (call.method.to_string(), call.span());
        let usage = usage(&name, kind, masked);
        let expected = usize::from(masked) + 1 + kind.values() + 2;
        if call.args.len() != expected {
            let message = format!("`{name}` takes {expected} arguments, not {}", call.args.len());
            return self.error(span, message, &format!("write `{usage}`"));
        }
        let given: Vec<&Expr> = call.args.iter().collect();
        let (operands, words) = given.split_at(expected - 2);
        let order =
            self.word(words[0], "an order", "Relaxed, Acquire, Release or AcqRel", Order::from_rust_name)?;
        let scopes = "BlockScope, DeviceScope or SystemScope";
        let scope = self.word(words[1], "a scope", scopes, Scope::from_rust_name)?;
        if !kind.accepts(order) {
            return self.wrong_order(kind, order, words[0].span());
        }
        let mut operands = operands.iter().map(|&operand| (operand, operand.span())).peekable();
        // Arguments are evaluated in the order in which they stand.
        let mask = match operands.next_if(|_| masked) {
            Some((mask, at)) => {
                let mask = self.expression(mask)?;
                let mask = self.data(&mask, &format!("the mask of `{name}`"), at)?;
                self.require_elem(mask, &DType::Bool.into(), &format!("the mask of `{name}`"), at)?;
                Some((Val::Data(mask), at))
            }
            None => None,
        };
        let (indices, _) = operands.next().expect("arguments were counted");
        let indices = self.atomic_indices(indices, &usage)?;
        let mut values = Vec::new();
        for (value, at) in operands {
            let value = self.expression(value)?;
            values.push((Val::Data(self.atomic_value(&value, &ty.elem, &name, at)?), at));
        }
        let mut all: Vec<Placed> = indices;
        all.extend(values);
        all.extend(mask);
        let atomic = Atomic { kind, order, scope, masked };
        match self.common_shape_of(&format!("`{name}` mixes tiles"), &all)? {
            Some(shape) => {
                let old = self.atomic_of_tiles(tensor, atomic, &all, &shape, call)?;
                Ok(old.map_or(Val::Unit, Val::Data))
            }
            None => self.atomic_of_one(tensor, atomic, &all, call),
        }
    }

    fn atomic_of_tiles(
        &mut self,
        tensor: ValueId,
        atomic: Atomic,
        given: &[Placed],
        shape: &[Dim],
        call: &ExprMethodCall,
    ) -> Lowered<Option<ValueId>> {
        let (mut operands, mut places) = (vec![tensor], vec![call.receiver.span()]);
        for (value, at) in given {
            operands.push(self.index_tile(value, shape, *at)?);
            places.push(*at);
        }
        Ok(self.emit(Op::Atomic(atomic), &operands, call.span(), &places)?.first().copied())
    }

    /// An operation of numbers alone is one of tiles with one element.
    fn atomic_of_one(
        &mut self,
        tensor: ValueId,
        atomic: Atomic,
        given: &[Placed],
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        if atomic.masked {
            let message = format!("`{}` of one element has a bool for its mask", call.method);
            let help = format!("write `{}` in an `if`", atomic.kind.rust_name());
            return self.error(call.method.span(), message, &help);
        }
        self.is_of_one_element(call, atomic.kind.has_result());
        match self.atomic_of_tiles(tensor, atomic, given, &[Dim::from(1)], call)? {
            Some(old) => self.emit_one(Op::Item, &[old], call.span(), &[]).map(Val::Data),
            None => Ok(Val::Unit),
        }
    }

    /// `Relaxed`, `DeviceScope`: names that stand for an attribute.
    fn word<T>(&mut self, word: &Expr, what: &str, known: &str, find: fn(&str) -> Option<T>) -> Lowered<T> {
        let name = match word {
            Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        match name.as_deref().and_then(find) {
            Some(found) => Ok(found),
            None => self.error(word.span(), format!("this isn't {what}"), &format!("write {known}")),
        }
    }

    fn wrong_order(&mut self, kind: AtomicKind, order: Order, span: Span) -> Lowered<Val> {
        let name = kind.rust_name();
        let (reason, instead) = match kind {
            AtomicKind::Load => ("writes nothing, so it can't release", "Acquire"),
            _ => ("reads nothing, so it can't acquire", "Release"),
        };
        let message = format!("an atomic `{name}` {reason}: {} isn't an order of it", order.rust_name());
        self.error(span, message, &format!("use Relaxed or {instead}"))
    }

    fn atomic_indices(&mut self, indices: &Expr, usage: &str) -> Lowered<Vec<Placed>> {
        let value = self.expression(indices)?;
        let Val::List(values) = value else {
            let help = format!("write `{usage}`, with one index per axis");
            return self.error(
                indices.span(),
                "the indices of an atomic operation are an array or a tuple",
                &help,
            );
        };
        let places = self.places_of_indices(indices, &values)?;
        Ok(values.into_iter().zip(places).collect())
    }

    /// A value of the tensor's format, as a scalar or tile.
    fn atomic_value(&mut self, value: &Val, elem: &Elem, name: &str, span: Span) -> Lowered<ValueId> {
        match value {
            Val::Data(tile) if self.shape(*tile).is_some() => {
                let found = self.elem(*tile);
                // A format that is known and wrong is the type rule's to explain.
                let _ = self.elements.unify(&found, elem);
                Ok(*tile)
            }
            value => self.number(value, elem, &format!("a value of `{name}`"), span),
        }
    }
}

fn usage(name: &str, kind: AtomicKind, masked: bool) -> String {
    let values = match kind {
        AtomicKind::Load => "",
        AtomicKind::CompareExchange => "expected, desired, ",
        _ => "values, ",
    };
    format!("{name}({}[i, j], {values}Relaxed, DeviceScope)", if masked { "mask, " } else { "" })
}
