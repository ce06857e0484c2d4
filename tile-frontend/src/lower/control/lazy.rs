//! Closures of iterators. Rust calls one where a value is asked for: not at all of a value that nobody takes, and between what
//! else is done then. Here they are lowered where the iterator is made, so that an effect in one is a mistake but where that
//! comes to the same.

use crate::diagnostic::Diagnostic;
use crate::lower::Lowering;
use crate::rewrite::{Place, place, unwrapped};
use crate::span::Spanned;
use syn::{Expr, ExprMethodCall};
use tile_ir::Op;
use tile_ir::ops::Effect;

impl Lowering {
    /// How many ops there are by now, for [`Self::effect_since`].
    pub(in crate::lower) fn ops_so_far(&self) -> usize {
        self.kernel.op_ids().count()
    }

    /// What the first op since then does that somebody sees besides its results.
    fn effect_since(&self, so_far: usize) -> Option<&'static str> {
        let mut ops = self.kernel.op_ids().skip(so_far).map(|op| &self.kernel.op(op).op);
        ops.find_map(|op| match (op.effect(), op) {
            (Effect::Writes, _) => Some("stores a tile"),
            (Effect::ReadsAndWrites, _) => Some("has an atomic operation"),
            (Effect::Says, Op::Print { .. }) => Some("prints"),
            (Effect::Says, _) => Some("asserts"),
            (Effect::None | Effect::Reads | Effect::Hints | Effect::EndsRegion, _) => None,
        })
    }

    /// Notes that an iterator's closure has an effect, if one of these ops has. It is a mistake unless [`Self::takes_all`].
    pub(super) fn note_effect(&mut self, so_far: usize, call: &ExprMethodCall) {
        let Some(what) = self.effect_since(so_far) else { return };
        let place_of_closure = call.args.first().map_or_else(|| call.span(), Spanned::span);
        let message =
            format!("the closure {what}, and Rust's iterators call it where a value is asked for, if any is");
        let mut diagnostic = Diagnostic::new(place_of_closure, message);
        for (span, label) in self.sites() {
            diagnostic = diagnostic.label(span, label);
        }
        let help = "leave `.iter()` out, because an array's own `map` calls it at once; or call it in a `for`; or take all values \
                    as they come by what does nothing else, as `.map(|v| …).sum()` does";
        self.lazy.push((place(call.method.span().start()), diagnostic.help(help)));
    }

    /// Says that all values of an iterator are taken in their order, by what has no other effect since then: its closure is
    /// called as often, and in the order, in which it was lowered. Of two closures with effects Rust mixes the calls.
    pub(super) fn takes_all(&mut self, iterator: &Expr, so_far: usize) {
        let places = places_of_maps(iterator);
        let mut noted = (0..self.lazy.len()).filter(|&at| places.contains(&self.lazy[at].0));
        let (first, second) = (noted.next(), noted.next());
        if let (Some(only), None, None) = (first, second, self.effect_since(so_far)) {
            self.lazy.remove(only);
        }
    }

    /// Reports the closures of iterators whose effects Rust would have elsewhere, or not at all.
    pub(in crate::lower) fn check_lazy(&mut self) {
        for (_, diagnostic) in std::mem::take(&mut self.lazy) {
            if !self.errors.iter().any(|known| known.is_same(&diagnostic)) {
                self.errors.push(diagnostic);
            }
        }
    }
}

/// The places of `map` in an iterator that gives what its array has, one after the other.
fn places_of_maps(iterator: &Expr) -> Vec<Place> {
    let (mut places, mut at) = (Vec::new(), unwrapped(iterator));
    while let Expr::MethodCall(call) = at {
        match call.method.to_string().as_str() {
            "map" => places.push(place(call.method.span().start())),
            "iter" | "into_iter" | "copied" | "cloned" | "enumerate" => {}
            _ => break,
        }
        at = unwrapped(&call.receiver);
    }
    places
}
