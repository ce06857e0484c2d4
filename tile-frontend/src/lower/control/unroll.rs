//! Loops over values that are known when the macro expands: the body is lowered once for each.

use crate::assigned::{self, Assigned};
use crate::lower::{Lowered, Lowering};
use crate::span::Spanned;
use crate::value::Val;
use syn::{Expr, ExprForLoop};
use tile_ir::ValueId;

/// A turn of a loop that is unrolled.
pub(in crate::lower) struct Unrolled {
    /// What the loop's pattern is bound to.
    pub(in crate::lower) value: Val,
    /// Whether an instance has the turn, where not every one does.
    pub(in crate::lower) exists: Option<ValueId>,
}

impl Unrolled {
    /// One that every instance has.
    pub(in crate::lower) fn always(value: Val) -> Unrolled {
        Unrolled { value, exists: None }
    }
}

impl Lowering {
    pub(in crate::lower) fn unroll(&mut self, for_loop: &ExprForLoop, turns: &[Unrolled]) -> Lowered<Val> {
        self.enter_loop("for", &for_loop.label, &for_loop.body);
        self.nesting += 1;
        let unrolled = turns.iter().try_for_each(|turn| self.unrolled(for_loop, turn));
        self.nesting -= 1;
        self.leave_loop();
        unrolled.map(|()| Val::Unit)
    }

    /// A loop that is unrolled to nothing, which rustc sees all the same. The first number of a range that is empty may lie
    /// outside of what is indexed, and 0 outside of what is indexed by one less.
    pub(in crate::lower) fn without_turns(&mut self, for_loop: &ExprForLoop) {
        self.unreached(|lowering| {
            let turns = match lowering.first_of(for_loop) {
                Some(first) => [first, Val::int(0)].map(Unrolled::always),
                None => [Val::Poison, Val::Poison].map(Unrolled::always),
            };
            for turn in turns {
                let _ = lowering.unroll(for_loop, &[turn]);
            }
            Ok(Val::Unit)
        });
    }

    fn unrolled(&mut self, for_loop: &ExprForLoop, Unrolled { value, exists }: &Unrolled) -> Lowered<()> {
        let span = for_loop.for_token.span();
        // What the pattern binds is the turn's own; the exits are those of the body, which leave the turn.
        let Assigned { names, .. } = assigned::by_expression(&Expr::ForLoop(for_loop.clone()));
        let assigned = Assigned { names, ..assigned::by_statements(&for_loop.body.stmts) };
        let iteration = |lowering: &mut Self| {
            lowering.revive(span);
            lowering.scopes.enter();
            let done =
                lowering.bind(&for_loop.pat, value.clone()).and_then(|()| lowering.block(&for_loop.body));
            lowering.scopes.leave();
            done.map(|_| Val::Unit)
        };
        let mut if_it_exists = |lowering: &mut Self| match exists {
            None => iteration(lowering),
            Some(exists) => {
                lowering.choose("for", *exists, &assigned, span, &mut &iteration, &mut |_| Ok(Val::Unit))
            }
        };
        match self.goes_on() {
            None => if_it_exists(self)?,
            Some(again) => {
                self.choose("for", again, &assigned, span, &mut if_it_exists, &mut |_| Ok(Val::Unit))?
            }
        };
        Ok(())
    }
}
