//! Loops over values that are known when the macro expands: the body is lowered once for each.

use super::{Lowered, Lowering};
use crate::assigned;
use crate::span::Spanned;
use crate::value::Val;
use syn::ExprForLoop;

impl Lowering {
    pub(super) fn unroll(&mut self, for_loop: &ExprForLoop, values: Vec<Val>) -> Lowered<Val> {
        self.enter_loop("for", &for_loop.label, &for_loop.body);
        self.nesting += 1;
        let unrolled = values.into_iter().try_for_each(|value| self.unrolled(for_loop, &value));
        self.nesting -= 1;
        self.leave_loop();
        unrolled.map(|()| Val::Unit)
    }

    fn unrolled(&mut self, for_loop: &ExprForLoop, value: &Val) -> Lowered<()> {
        let span = for_loop.for_token.span();
        let mut iteration = |lowering: &mut Self| {
            lowering.revive(span);
            lowering.scopes.enter();
            let done =
                lowering.bind(&for_loop.pat, value.clone()).and_then(|()| lowering.block(&for_loop.body));
            lowering.scopes.leave();
            done.map(|_| Val::Unit)
        };
        match self.goes_on() {
            None => iteration(self)?,
            Some(again) => {
                let assigned = assigned::by_statements(&for_loop.body.stmts);
                self.choose("for", again, &assigned, span, &mut iteration, &mut |_| Ok(Val::Unit))?
            }
        };
        Ok(())
    }
}
