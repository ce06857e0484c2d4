//! What rustc must see otherwise than the kernel's author wrote it.
//!
//! Comparisons of tiles are calls: `a < b` of tiles is `::tile::kernel::lt(a, b)`, because Rust's comparison
//! operators can only give one `bool`. So is arithmetic of integer scalars, `::tile::kernel::scalar::add(a, b)`,
//! because Rust's panics on overflow where a kernel's wraps, and where a divisor is 0. That of extents is
//! `::tile::kernel::extent::add(a, b)`, which panics in every build. An atomic operation of numbers
//! alone is one of tiles without axes, because the type of its result follows from theirs. `flatten` says the rank that it
//! leaves. A `const` made of the kernel's const parameters is a variable ([`constants`]), because Rust's items don't see them.
//! An optional output is lent where it is looked at, because a kernel may do so in every turn of a loop. Formats that Rust has
//! no literals of have `of(2.0)`, and those that `as` doesn't know have `::tile::kernel::scalar::cast`. What iterators come to
//! is a function's ([`totals`]).

use crate::assigned::is_compound_assignment;
use crate::constants;
use crate::copies::{self, Occurrence};
use crate::macros;
use crate::totals;
use proc_macro2::{LineColumn, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::{HashMap, HashSet};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    BinOp, Block, Expr, ExprBinary, ExprCall, ExprCast, ExprLit, ExprMethodCall, ExprUnary, ItemConst, Lit,
    Macro, UnOp, parse_quote,
};
use tile_ir::array::round_float;
use tile_ir::ops::Predicate;
use tile_ir::round::encode;
use tile_ir::{DType, Elem};

/// The place of an operator or a name: line and column of its first token.
pub(crate) type Place = (usize, usize);

/// The place of what starts here.
pub(crate) fn place(start: LineColumn) -> Place {
    (start.line, start.column)
}

/// The predicate that a Rust operator stands for.
pub(crate) fn predicate(op: &BinOp) -> Option<Predicate> {
    Some(match op {
        BinOp::Eq(_) => Predicate::Eq,
        BinOp::Ne(_) => Predicate::Ne,
        BinOp::Lt(_) => Predicate::Lt,
        BinOp::Le(_) => Predicate::Le,
        BinOp::Gt(_) => Predicate::Gt,
        BinOp::Ge(_) => Predicate::Ge,
        _ => return None,
    })
}

/// What of a body rustc must see as something else.
#[derive(Debug, Default)]
pub(crate) struct Rewrites {
    /// Comparisons of tiles.
    pub(crate) comparisons: HashSet<Occurrence>,
    /// Arithmetic of scalars that isn't Rust's, with its module of `::tile::kernel` and its function.
    pub(crate) scalars: HashMap<Occurrence, (&'static str, &'static str)>,
    /// Methods that access one element, by the place of their name, and whether they give it.
    pub(crate) single_elements: HashMap<Occurrence, bool>,
    /// Ranks of flattened tensors, by the place of the method's name: Rust infers one from what the view is cut with, and
    /// needs it before another method is looked up.
    pub(crate) ranks: HashMap<Occurrence, usize>,
    /// Constants made of the kernel's parameters, by the place of their name: Rust's items don't see those.
    pub(crate) constants: HashSet<Place>,
    /// Literals in formats that Rust has none of.
    pub(crate) literals: HashMap<Occurrence, Elem>,
    /// Optional outputs and arrays of outputs, which Rust would move: the method that lends them.
    pub(crate) lent: HashMap<Occurrence, &'static str>,
    /// Conversions that Rust doesn't have, by the place of `as`.
    pub(crate) casts: HashSet<Occurrence>,
}

/// Rewrites a body.
pub(crate) fn rewrite(block: &mut Block, rewrites: &Rewrites) {
    Rewrite { rewrites, in_constant: false, copy: 0 }.visit_block_mut(block);
}

struct Rewrite<'r> {
    rewrites: &'r Rewrites,
    /// Whether rustc computes this before the kernel runs.
    in_constant: bool,
    /// The number of the expression that is looked at.
    copy: usize,
}

impl Rewrite<'_> {
    fn at(&self, span: proc_macro2::Span) -> Occurrence {
        Occurrence { place: place(span.start()), copy: self.copy }
    }

    fn scalar_function(&self, at: Occurrence, span: proc_macro2::Span) -> Option<TokenStream> {
        let (module, function) = self.rewrites.scalars.get(&at)?;
        let (module, function) = (syn::Ident::new(module, span), syn::Ident::new(function, span));
        Some(quote_spanned!(span=> ::tile::kernel::#module::#function))
    }

    fn binary(&self, binary: &ExprBinary) -> Option<Expr> {
        let span = binary.op.span();
        let (left, right, at) = (bare(&binary.left), bare(&binary.right), self.at(span));
        if let Some(predicate) = predicate(&binary.op).filter(|_| self.rewrites.comparisons.contains(&at)) {
            let function = syn::Ident::new(predicate.name(), span);
            return Some(Expr::Verbatim(quote_spanned!(span=> ::tile::kernel::#function(#left, #right))));
        }
        let function = self.scalar_function(at, span)?;
        let value = |left: &Expr, right: &Expr| quote_spanned!(span=> #function(#left, #right));
        Some(Expr::Verbatim(match is_compound_assignment(&binary.op) {
            true => assignment(left, right, span, value),
            false => value(left, right),
        }))
    }

    fn unary(&self, unary: &ExprUnary) -> Option<Expr> {
        let span = unary.op.span();
        let function = self.scalar_function(self.at(span), span)?;
        let operand = bare(&unary.expr);
        Some(Expr::Verbatim(quote_spanned!(span=> #function(#operand))))
    }

    fn literal(&self, expression: &Expr) -> Option<Expr> {
        let literal = bare(expression);
        if !is_literal(literal) {
            return None;
        }
        let span = expression.span();
        let ty = match self.rewrites.literals.get(&self.at(span))? {
            Elem::Known(dtype) => {
                let name = syn::Ident::new(dtype.rust_name(), span);
                let ty = quote_spanned!(span=> ::tile::prelude::#name);
                if let (true, Some(number)) = (self.in_constant, float_of(literal)) {
                    return Some(of_bits(*dtype, number, span));
                }
                ty
            }
            Elem::Param(name) => syn::Ident::new(name, span).to_token_stream(),
        };
        Some(Expr::Verbatim(quote_spanned!(span=> <#ty as ::tile::kernel::Number>::of(#literal))))
    }

    /// `bf16::of(0.5)` in a constant, where Rust computes no function of a trait.
    fn call(&self, call: &ExprCall) -> Option<Expr> {
        let (Expr::Path(path), Some(literal)) = (&*call.func, call.args.first()) else { return None };
        let names: Vec<&syn::Ident> = path.path.segments.iter().map(|segment| &segment.ident).collect();
        let &[.., owner, of] = names.as_slice() else { return None };
        let dtype = DType::from_rust_name(&owner.to_string()).filter(|dtype| dtype.is_float())?;
        let number = float_of(bare(literal)).filter(|_| self.in_constant && of == "of")?;
        Some(of_bits(dtype, number, call.func.span()))
    }

    fn lent(&self, expression: &Expr) -> Option<Expr> {
        let Expr::Path(path) = expression else { return None };
        let span = path.span();
        let method = syn::Ident::new(self.rewrites.lent.get(&self.at(span))?, span);
        Some(Expr::Verbatim(quote_spanned!(span=> #path.#method())))
    }

    fn cast(&self, cast: &ExprCast) -> Option<Expr> {
        self.rewrites.casts.contains(&self.at(cast.as_token.span())).then(|| call_of_cast(cast))
    }

    fn method(&self, call: &ExprMethodCall) -> Option<Expr> {
        let (at, span) = (self.at(call.method.span()), call.method.span());
        if let Some(function) = self.scalar_function(at, span) {
            let (receiver, arguments) = (&call.receiver, &call.args);
            let of_numbers = ["clamp", "div_ceil", "div_floor", "mul_add", "pow", "powi", "rem_euclid"];
            let receiver = match of_numbers.iter().any(|name| call.method == name)
                || is_literal(bare(receiver))
            {
                true => bare(receiver).to_token_stream(),
                // Of a reference Rust's method is the number's.
                false => {
                    quote_spanned!(span=> { use ::tile::kernel::scalar::ByValue as _; #receiver.by_value() })
                }
            };
            return Some(Expr::Verbatim(quote_spanned!(span=> #function(#receiver, #arguments))));
        }
        let mut call = call.clone();
        if let Some(&rank) = self.rewrites.ranks.get(&at) {
            call.turbofish = Some(parse_quote!(::<#rank>));
            return Some(Expr::MethodCall(call));
        }
        let gives = *self.rewrites.single_elements.get(&at)?;
        call.turbofish = Some(parse_quote!(::<0>));
        let item = gives.then(|| quote_spanned!(span=> .item()));
        Some(Expr::Verbatim(quote!(#call #item)))
    }
}

/// `left = value(left, right)`, in which what has an effect on the left, in an index, is computed once.
pub(crate) fn assignment(
    left: &Expr,
    right: &Expr,
    span: proc_macro2::Span,
    value: impl FnOnce(&Expr, &Expr) -> TokenStream,
) -> TokenStream {
    if is_pure(left) {
        let value = value(left, right);
        return quote_spanned!(span=> #left = #value);
    }
    let [place, other] =
        ["place", "right"].map(|name| syn::Ident::new(name, proc_macro2::Span::mixed_site()));
    // A literal takes its format from the left side where it stands.
    let (other, given) = match is_literal(bare(right)) {
        true => (right.clone(), None),
        false => (parse_quote!(#other), Some(quote_spanned!(span=> let #other = #right;))),
    };
    let value = value(&parse_quote!(*#place), &other);
    quote_spanned!(span=> { #given let #place = &mut #left; *#place = #value; })
}

/// Whether nobody sees how often a place is computed: it has names, fields and indices made of operators alone.
fn is_pure(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Paren(inner) => is_pure(&inner.expr),
        Expr::Group(inner) => is_pure(&inner.expr),
        Expr::Field(field) => is_pure(&field.base),
        Expr::Index(index) => is_pure(&index.expr) && is_pure(&index.index),
        Expr::Cast(cast) => is_pure(&cast.expr),
        Expr::Unary(unary) => is_pure(&unary.expr),
        Expr::Binary(binary) => is_pure(&binary.left) && is_pure(&binary.right),
        Expr::MethodCall(call) => call.method == "len" && is_pure(&call.receiver),
        _ => false,
    }
}

/// Whether an expression is a number that is written out.
pub(crate) fn is_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(literal) => !matches!(&literal.lit, Lit::Bool(_)),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && is_literal(bare(&unary.expr)),
        _ => false,
    }
}

/// A number by its bits, which Rust makes in a constant, too.
pub(crate) fn of_bits(dtype: DType, number: f64, span: proc_macro2::Span) -> Expr {
    let ty = syn::Ident::new(dtype.rust_name(), span);
    let bits = proc_macro2::Literal::u64_unsuffixed(encode(dtype, round_float(dtype, number)));
    Expr::Verbatim(match dtype {
        DType::F32 | DType::F64 => quote_spanned!(span=> #ty::from_bits(#bits)),
        _ => quote_spanned!(span=> ::tile::prelude::#ty::from_bits(#bits)),
    })
}

/// The number of a float literal.
pub(crate) fn float_of(literal: &Expr) -> Option<f64> {
    match literal {
        Expr::Lit(ExprLit { lit: Lit::Float(float), .. }) => float.base10_parse().ok(),
        Expr::Unary(negated) => float_of(bare(&negated.expr)).map(|number| -number),
        _ => None,
    }
}

/// `value as ty` as kernels mean it, of any number types.
pub(crate) fn call_of_cast(cast: &ExprCast) -> Expr {
    let (value, ty) = (bare(&cast.expr), &cast.ty);
    Expr::Verbatim(quote_spanned!(cast.as_token.span()=> ::tile::kernel::scalar::cast::<_, #ty>(#value)))
}

/// An argument needs no parentheses, and rustc warns of them.
pub(crate) fn bare(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => bare(&inner.expr),
        other => other,
    }
}

/// What stands in parentheses, and in the groups without a token that macros make. These stay where rustc sees an expression:
/// see [`bare`].
pub(crate) fn unwrapped(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => unwrapped(&inner.expr),
        Expr::Group(inner) => unwrapped(&inner.expr),
        other => other,
    }
}

impl VisitMut for Rewrite<'_> {
    fn visit_macro_mut(&mut self, called: &mut Macro) {
        macros::rewrite(called, self);
    }

    fn visit_item_const_mut(&mut self, item: &mut ItemConst) {
        let outer = std::mem::replace(&mut self.in_constant, true);
        visit_mut::visit_item_const_mut(self, item);
        self.in_constant = outer;
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        let is_generic =
            |item: &ItemConst| self.rewrites.constants.contains(&place(item.ident.span().start()));
        constants::as_variables(block, is_generic);
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        let copy = copies::take(expression);
        visit_mut::visit_expr_mut(self, expression);
        self.copy = copy;
        let rewritten = match expression {
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(unary) => self.unary(unary),
            Expr::MethodCall(call) => self.method(call).or_else(|| totals::as_function(call)),
            Expr::Cast(cast) => self.cast(cast),
            Expr::Call(call) => self.call(call),
            _ => None,
        };
        let rewritten = rewritten.or_else(|| self.lent(expression)).or_else(|| self.literal(expression));
        if let Some(rewritten) = rewritten {
            *expression = rewritten;
        }
    }
}
