//! Which exits leave a piece of syntax: `break`, `continue` and `return` whose target is outside of it.

use syn::visit::{self, Visit};
use syn::{
    Block, Expr, ExprBlock, ExprBreak, ExprClosure, ExprContinue, ExprForLoop, ExprLoop, ExprReturn,
    ExprWhile, Label, Macro, Pat, Stmt,
};

/// An exit, by what it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// `return`.
    Return,
    /// `break`, with the label of its loop.
    Break(Option<String>),
    /// `continue`, with the label of its loop.
    Continue(Option<String>),
}

/// A label without its apostrophe.
pub(crate) fn label_name(label: &syn::Lifetime) -> String {
    label.ident.to_string()
}

/// The exits that leave a block.
pub(crate) fn of_block(block: &Block) -> Vec<Exit> {
    let mut exits = Exits::default();
    exits.visit_block(block);
    exits.found
}

/// The exits that leave an expression.
pub(crate) fn of_expression(expression: &Expr) -> Vec<Exit> {
    let mut exits = Exits::default();
    exits.visit_expr(expression);
    exits.found
}

/// The exits that leave statements.
pub(crate) fn of_statements(statements: &[Stmt]) -> Vec<Exit> {
    let mut exits = Exits::default();
    statements.iter().for_each(|statement| exits.visit_stmt(statement));
    exits.found
}

/// Whether a `break` ends a `loop`, so that what follows it is reached.
pub(crate) fn is_broken(endless: &ExprLoop) -> bool {
    let own = endless.label.as_ref().map(|label| label_name(&label.name));
    of_block(&endless.body).iter().any(|exit| match exit {
        Exit::Break(label) => label.is_none() || *label == own,
        Exit::Continue(_) | Exit::Return => false,
    })
}

/// An exit in the middle of an expression, whose other operands would have to be undone: what contains it.
pub(crate) fn in_the_middle(expression: &Expr) -> Option<&Expr> {
    let within = |inner: &Expr| !of_expression(inner).is_empty();
    match expression {
        Expr::Paren(inner) => in_the_middle(&inner.expr),
        Expr::Group(inner) => in_the_middle(&inner.expr),
        Expr::Break(exit) => exit.expr.as_deref().filter(|value| within(value)),
        Expr::Return(exit) => exit.expr.as_deref().filter(|value| within(value)),
        Expr::If(branch) if within(&branch.cond) => Some(&branch.cond),
        Expr::If(branch) => branch.else_branch.as_ref().and_then(|(_, other)| in_the_middle(other)),
        Expr::Match(choice) if within(&choice.expr) => Some(&choice.expr),
        Expr::Match(choice) => choice.arms.iter().find_map(|arm| match &arm.pat {
            Pat::Guard(guarded) if within(&guarded.guard) => Some(&*guarded.guard),
            _ => in_the_middle(&arm.body),
        }),
        Expr::While(repeated) => Some(&*repeated.cond).filter(|condition| within(condition)),
        Expr::ForLoop(counted) => Some(&*counted.expr).filter(|range| within(range)),
        Expr::Assign(assign) if within(&assign.left) => Some(&assign.left),
        Expr::Assign(assign) => in_the_middle(&assign.right),
        Expr::Block(_) | Expr::Unsafe(_) | Expr::Loop(_) | Expr::Continue(_) => None,
        other => Some(other).filter(|other| within(other)),
    }
}

/// What an exit can leave, by its label.
enum Entered {
    Loop(Option<String>),
    /// Only an exit with its label leaves it.
    Block(String),
}

#[derive(Default)]
struct Exits {
    /// The loops and labelled blocks entered.
    entered: Vec<Entered>,
    found: Vec<Exit>,
}

impl Exits {
    fn note(&mut self, label: Option<&syn::Lifetime>, exit: fn(Option<String>) -> Exit) {
        let label = label.map(label_name);
        let is_inside = self.entered.iter().any(|entered| match (entered, &label) {
            (Entered::Loop(_), None) => true,
            (Entered::Block(_), None) => false,
            (Entered::Loop(own), Some(_)) => *own == label,
            (Entered::Block(own), Some(label)) => own == label,
        });
        let exit = exit(label);
        if !is_inside && !self.found.contains(&exit) {
            self.found.push(exit);
        }
    }

    fn in_loop(&mut self, label: &Option<Label>, visit: impl FnOnce(&mut Self)) {
        self.entered.push(Entered::Loop(label.as_ref().map(|label| label_name(&label.name))));
        visit(self);
        self.entered.pop();
    }
}

impl<'ast> Visit<'ast> for Exits {
    fn visit_expr_break(&mut self, exit: &'ast ExprBreak) {
        self.note(exit.label.as_ref(), Exit::Break);
        visit::visit_expr_break(self, exit);
    }

    fn visit_expr_continue(&mut self, exit: &'ast ExprContinue) {
        self.note(exit.label.as_ref(), Exit::Continue);
    }

    fn visit_expr_return(&mut self, exit: &'ast ExprReturn) {
        if !self.found.contains(&Exit::Return) {
            self.found.push(Exit::Return);
        }
        visit::visit_expr_return(self, exit);
    }

    fn visit_expr_for_loop(&mut self, inner: &'ast ExprForLoop) {
        self.visit_expr(&inner.expr);
        self.in_loop(&inner.label, |exits| exits.visit_block(&inner.body));
    }

    fn visit_expr_while(&mut self, inner: &'ast ExprWhile) {
        self.in_loop(&inner.label, |exits| {
            exits.visit_expr(&inner.cond);
            exits.visit_block(&inner.body);
        });
    }

    fn visit_expr_loop(&mut self, inner: &'ast ExprLoop) {
        self.in_loop(&inner.label, |exits| exits.visit_block(&inner.body));
    }

    fn visit_expr_block(&mut self, block: &'ast ExprBlock) {
        let Some(label) = &block.label else { return self.visit_block(&block.block) };
        self.entered.push(Entered::Block(label_name(&label.name)));
        self.visit_block(&block.block);
        self.entered.pop();
    }

    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}

    fn visit_macro(&mut self, called: &'ast Macro) {
        crate::macros::expressions(called).iter().for_each(|value| self.visit_expr(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn exits_of_inner_loops_stay_inside() {
        let block: Block = parse_quote!({
            for i in 0..n {
                if a {
                    break;
                }
                loop {
                    continue 'outer;
                }
                while b {
                    return;
                }
            }
            'inner: loop {
                loop {
                    break 'inner;
                }
            }
            if c {
                break;
            }
            'block: {
                if d {
                    break 'block 1.0;
                }
                continue;
            }
        });
        let expected =
            [Exit::Continue(Some("outer".to_owned())), Exit::Return, Exit::Break(None), Exit::Continue(None)];
        assert_eq!(of_block(&block), expected);
    }

    #[test]
    fn a_loop_is_broken_by_its_own_breaks() {
        let broken: [ExprLoop; 2] = [
            parse_quote!(loop {
                if a {
                    break;
                }
            }),
            parse_quote!('own: loop {
                for i in 0..n {
                    break 'own;
                }
            }),
        ];
        assert!(broken.iter().all(is_broken));
        let left: [ExprLoop; 2] = [
            parse_quote!(loop {
                for i in 0..n {
                    break;
                }
                return x;
            }),
            parse_quote!('own: loop {
                if a {
                    continue 'own;
                }
                break 'outer 1.0;
            }),
        ];
        assert!(!left.iter().any(is_broken));
    }

    #[test]
    fn an_exit_may_stand_where_nothing_else_is_computed() {
        let fine: [Expr; 6] = [
            parse_quote!(if a { return } else { 5 }),
            parse_quote!(return f(x)),
            parse_quote!(unsafe {
                if a {
                    return;
                }
                x.load_unchecked([i])
            }),
            parse_quote!(
                x = match i {
                    0 => break,
                    _ => 1.0,
                }
            ),
            parse_quote!(break),
            parse_quote!(loop {
                f(if a { break } else { x });
            }),
        ];
        assert!(fine.iter().all(|expression| in_the_middle(expression).is_none()));
        let wrong: [Expr; 6] = [
            parse_quote!(return if a { return 1 } else { 2 }),
            parse_quote!(dbg!(if a { return } else { x })),
            parse_quote!(tile_println!("{}", { continue })),
            parse_quote!(y.store_masked(if a { return } else { x })),
            parse_quote!(x += if a { continue } else { 1 }),
            parse_quote!(if (if a { return } else { b }) {
                c
            }),
        ];
        assert!(wrong.iter().all(|expression| in_the_middle(expression).is_some()));
    }
}
