//! What macros make several of: `$by` that stands twice, an operator in `$(…)*`. rustc and the IR see one line and column, and
//! each may be another thing, of a tile here and of a scalar there. So expressions at one place have a number, in an attribute
//! that they have while the kernel is lowered, and what rustc must see of each is noted by both.

use crate::rewrite::{Place, place};
use proc_macro2::{Literal, Span};
use std::collections::HashMap;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, LitInt, parse_quote_spanned};

/// The attribute with the number, which rustc never sees.
const ATTRIBUTE: &str = "tile_copy";

/// One of the expressions at a place, of which something may be noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Occurrence {
    pub(crate) place: Place,
    /// Its number, from 1 on, where there are several.
    pub(crate) copy: usize,
}

impl Occurrence {
    /// An expression by itself, or one of its operands that it starts with.
    pub(crate) fn at_start(expression: &Expr) -> Occurrence {
        match expression {
            Expr::MethodCall(call) => Occurrence::at_start(&call.receiver),
            Expr::Field(field) => Occurrence::at_start(&field.base),
            Expr::Index(index) => Occurrence::at_start(&index.expr),
            _ => Occurrence { place: place(expression.span().start()), copy: copy(expression) },
        }
    }

    /// An expression by what is noted of it, where it has a number.
    pub(crate) fn of_copy(expression: &Expr) -> Option<Occurrence> {
        let copy = copy(expression);
        (copy > 0).then_some(Occurrence { place: noted_place(expression)?, copy })
    }
}

/// Numbers the expressions of a body that stand at one place. Those in macros keep 0: attributes in tokens are another
/// expression's.
pub(crate) fn number(block: &mut Block) {
    #[derive(Default)]
    struct Count(HashMap<Place, usize>);
    impl Visit<'_> for Count {
        fn visit_expr(&mut self, expression: &Expr) {
            if let Some(place) = noted_place(expression) {
                *self.0.entry(place).or_default() += 1;
            }
            visit::visit_expr(self, expression);
        }
    }
    let mut count = Count::default();
    count.visit_block(block);
    count.0.retain(|_, count| *count > 1);
    if !count.0.is_empty() {
        Number { left: count.0 }.visit_block_mut(block);
    }
}

/// Removes the number of an expression.
pub(crate) fn take(expression: &mut Expr) -> usize {
    let copy = copy(expression);
    if let Some(attributes) = attributes_mut(expression) {
        attributes.retain(|attribute| !attribute.path().is_ident(ATTRIBUTE));
    }
    copy
}

struct Number {
    /// How many expressions at each place have no number yet.
    left: HashMap<Place, usize>,
}

impl VisitMut for Number {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        let span = expression.span();
        let left = noted_place(expression).and_then(|place| self.left.get_mut(&place));
        if let (Some(left), Some(attributes)) = (left, attributes_mut(expression)) {
            attributes.push(attribute(*left, span));
            *left -= 1;
        }
    }
}

/// The attribute, at the place where the expression begins.
fn attribute(copy: usize, span: Span) -> Attribute {
    let name = syn::Ident::new(ATTRIBUTE, span);
    let mut number = Literal::usize_unsuffixed(copy);
    number.set_span(span);
    parse_quote_spanned!(span=> #[#name(#number)])
}

fn copy(expression: &Expr) -> usize {
    let attributes = attributes(expression).unwrap_or_default();
    let numbered = attributes.iter().rfind(|attribute| attribute.path().is_ident(ATTRIBUTE));
    let number = numbered.and_then(|attribute| attribute.parse_args::<LitInt>().ok());
    number.and_then(|number| number.base10_parse().ok()).unwrap_or(0)
}

/// The place by which something is noted of an expression: that of its operator, of its method's name, or its own.
fn noted_place(expression: &Expr) -> Option<Place> {
    let span = match expression {
        Expr::Binary(binary) => binary.op.span(),
        Expr::Unary(unary) => unary.op.span(),
        Expr::MethodCall(call) => call.method.span(),
        Expr::Cast(cast) => cast.as_token.span(),
        Expr::Lit(_) | Expr::Path(_) => expression.span(),
        _ => return None,
    };
    Some(place(span.start()))
}

fn attributes(expression: &Expr) -> Option<&[Attribute]> {
    match expression {
        Expr::Binary(binary) => Some(&binary.attrs),
        Expr::Unary(unary) => Some(&unary.attrs),
        Expr::MethodCall(call) => Some(&call.attrs),
        Expr::Cast(cast) => Some(&cast.attrs),
        Expr::Lit(literal) => Some(&literal.attrs),
        Expr::Path(path) => Some(&path.attrs),
        _ => None,
    }
}

fn attributes_mut(expression: &mut Expr) -> Option<&mut Vec<Attribute>> {
    match expression {
        Expr::Binary(binary) => Some(&mut binary.attrs),
        Expr::Unary(unary) => Some(&mut unary.attrs),
        Expr::MethodCall(call) => Some(&mut call.attrs),
        Expr::Cast(cast) => Some(&mut cast.attrs),
        Expr::Lit(literal) => Some(&mut literal.attrs),
        Expr::Path(path) => Some(&mut path.attrs),
        _ => None,
    }
}
