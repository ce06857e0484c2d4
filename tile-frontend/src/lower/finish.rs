//! The end of lowering: placeholders become formats, and the verifier has the last word.

use super::ops::operators::OfScalars;
use super::{Body, Lowering, rust_elem};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::elements::Elements;
use crate::span::Span;
use std::collections::HashMap;
use syn::ItemFn;
use tile_ir::kernel::{GenericKind, OpId};
use tile_ir::ops::{Domain, Literal};
use tile_ir::{DType, Dim, Elem, Loc, Op, Type, verify};

impl Lowering {
    pub(super) fn finish(mut self, function: &ItemFn) -> Result<Body, Diagnostics> {
        self.check_lazy();
        if self.errors.is_empty() {
            self.decide_accumulators();
            self.check_fields();
            self.default_literals();
            self.check_bounds_of_functions();
            self.check_folded();
            self.check_bools();
            self.check_counters();
            self.replace_placeholders();
            self.drop_casts_of_counters();
            self.note_rewrites();
        }
        if !self.errors.is_empty() {
            return Err(Diagnostics::new(self.errors));
        }
        let unwritten = self.unwritten_outputs();
        let (spans, operand_spans, called) = (self.spans, self.operand_spans, self.called);
        let verified = verify(self.kernel).map_err(|errors| {
            let diagnostics = errors.into_iter().map(|error| {
                let blamed = error.operand.and_then(|i| operand_spans.get(&error.loc)?.get(i).copied());
                let span = blamed
                    .or_else(|| spans.get(&error.loc).copied())
                    .unwrap_or_else(|| function.sig.ident.span().into());
                let sites = called.get(&error.loc).into_iter().flatten();
                let diagnostic = sites
                    .fold(Diagnostic::new(span, error.message), |diagnostic, (span, label)| {
                        diagnostic.label(*span, label)
                    });
                match error.help {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                }
            });
            Diagnostics::new(diagnostics.collect())
        });
        // What else is wrong may be why nothing is stored.
        match verified? {
            kernel if unwritten.is_empty() => Ok(Body { kernel, rewrites: self.rewrites }),
            _ => Err(Diagnostics::new(unwritten)),
        }
    }

    /// Scalars whose format nothing decides have the one that rustc gives a literal: i32 or f64. A counter of a
    /// range of literals is such a scalar.
    fn default_literals(&mut self) {
        for op in self.kernel.op_ids() {
            let data = self.kernel.op(op);
            let (elem, default) = match &data.op {
                Op::Constant { value: Literal::Int(_), elem } | Op::Cast(elem) => (elem, DType::I32),
                Op::Constant { value: Literal::Float(_), elem } => (elem, DType::F64),
                _ => continue,
            };
            let elem = self.elements.resolve(elem);
            if Elements::is_unknown(&elem) && !self.feeds_tile(op) {
                self.elements.unify(&elem, &default.into());
            }
        }
    }

    fn note_rewrites(&mut self) {
        self.note_arithmetic();
        for (at, elem) in std::mem::take(&mut self.literals) {
            let elem = self.elements.resolve(&elem);
            if self.has_no_literals(&elem) {
                self.rewrites.literals.insert(at, elem);
            }
        }
        for (at, from, to) in std::mem::take(&mut self.scalar_casts) {
            let from = from.map(|from| self.elements.resolve(&from));
            if [from, Some(self.elements.resolve(&to))]
                .iter()
                .flatten()
                .any(|elem| self.has_no_literals(elem))
            {
                self.rewrites.casts.insert(at);
            }
        }
    }

    /// Whether a format isn't one of Rust's own, but of a number.
    pub(super) fn has_no_literals(&self, elem: &Elem) -> bool {
        match elem {
            Elem::Known(dtype) => dtype.is_float() && !matches!(dtype, DType::F32 | DType::F64),
            Elem::Param(_) => {
                matches!(self.domain_of(elem), Some(Domain::Float | Domain::Int | Domain::Number))
            }
        }
    }

    /// What a type parameter may be.
    pub(super) fn domain_of(&self, elem: &Elem) -> Option<Domain> {
        let Elem::Param(name) = elem else { return None };
        let generic = self.kernel.generics.iter().find(|generic| generic.name == *name)?;
        match generic.kind {
            GenericKind::Elem(domain) => Some(domain),
            _ => None,
        }
    }

    /// Operators on integer scalars, and methods, that Rust would panic in; of `clamp` that of floats, too, and their `powi`,
    /// `max` and `min`, whose results Rust leaves open; and functions, which are those of tiles.
    fn note_arithmetic(&mut self) {
        const PARTIAL: [&str; 10] =
            ["add", "sub", "mul", "div", "rem", "shl", "shr", "neg", "div_ceil", "pow"];
        for OfScalars { at, function, ty, is_function } in std::mem::take(&mut self.scalar_arithmetic) {
            let ty = ty.with_elem(self.elements.resolve(ty.elem()));
            // A scalar of a type parameter may be an integer.
            let is_integer = ty.elem().known().is_none_or(|dtype| dtype.is_int() || dtype == DType::Index);
            let differs = match function {
                _ if is_function => true,
                "clamp" | "powi" => true,
                // Rust's own is fused, too.
                "mul_add" => !matches!(ty.elem().known(), Some(DType::F32 | DType::F64)),
                // Of a type parameter Rust has them, too, but neither with a tile on the right nor to assign with.
                "and" | "or" | "xor" => ty.elem().known().is_none(),
                "max" | "min" => ty.elem().known().is_none_or(DType::is_float),
                _ => is_integer && PARTIAL.contains(&function),
            };
            if !differs {
                continue;
            }
            match ty {
                // Rust's operators have a tile on the right of a concrete scalar only.
                Type::Tile(tile) if tile.elem.known().is_none() => {
                    self.rewrites.scalars.insert(at, ("either", function));
                }
                Type::Tile(_) => {}
                _ => drop(self.rewrites.scalars.insert(at, ("scalar", function))),
            }
        }
    }

    /// Counters of ranges of literals are converted to the format that their uses decide. Where that is the
    /// counter's own, there is nothing to convert.
    fn drop_casts_of_counters(&mut self) {
        let mut same = HashMap::new();
        let mut regions = vec![self.kernel.body()];
        while let Some(region) = regions.pop() {
            let mut kept = self.kernel.region(region).ops.clone();
            kept.retain(|&op| {
                let data = self.kernel.op(op);
                regions.extend(&data.regions);
                let is_same = matches!(data.op, Op::Cast(_))
                    && *self.kernel.ty(data.operands[0]) == Type::INDEX
                    && *self.kernel.ty(data.results[0]) == Type::INDEX;
                if is_same {
                    same.insert(data.results[0], data.operands[0]);
                }
                !is_same
            });
            self.kernel.region_mut(region).ops = kept;
        }
        for op in self.kernel.op_ids() {
            for operand in &mut self.kernel.op_mut(op).operands {
                while let Some(&counter) = same.get(operand) {
                    *operand = counter;
                }
            }
        }
    }

    /// Whether a constant fills a tile, whose format the user should say.
    fn feeds_tile(&self, op: OpId) -> bool {
        let result = self.kernel.op(op).results[0];
        self.kernel.op_ids().any(|user| {
            let data = self.kernel.op(user);
            matches!(data.op, Op::Splat(_)) && data.operands.contains(&result)
        })
    }

    /// Whether a call of `select` stands here, whose numbers it makes tiles of.
    fn selects(&self, loc: Loc) -> bool {
        self.kernel.op_ids().map(|op| self.kernel.op(op)).any(|op| op.loc == loc && op.op == Op::Select)
    }

    fn replace_placeholders(&mut self) {
        for op in self.kernel.op_ids() {
            let loc = self.kernel.op(op).loc;
            for result in self.kernel.op(op).results.clone() {
                let is_tile = matches!(self.kernel.ty(result), Type::Tile(_));
                let elem = self.elem(result);
                if is_tile && Elements::is_unknown(&elem) {
                    let span = self.spans.get(&loc).copied().unwrap_or_else(Span::call_site);
                    let choices: Vec<String> = self.elements.choices(&elem).iter().map(rust_elem).collect();
                    let message = match choices.as_slice() {
                        [] => "the element type of this tile can't be inferred".to_owned(),
                        choices => format!(
                            "the element type of this tile can't be inferred: it holds sums of products, \
                             which may be {}",
                            choices.join(" or ")
                        ),
                    };
                    let (message, help) = match self.selects(loc) {
                        true => (
                            "nothing says which format the two numbers of `select` have".to_owned(),
                            "write `select(condition, 1.0f32, 0.0)` or `select(condition, 1i32, 0)`: the format of one is that of both",
                        ),
                        false => (message, "say it: `Tile::<f32, 2>::zeros([M, N])`"),
                    };
                    let sites = self.called.get(&loc).into_iter().flatten();
                    let diagnostic = sites
                        .fold(Diagnostic::new(span, message), |diagnostic, (span, label)| {
                            diagnostic.label(*span, label)
                        });
                    self.errors.push(diagnostic.help(help));
                    return;
                }
            }
        }
        for value in self.kernel.value_ids() {
            let ty = self.ty(value);
            self.kernel.set_type(value, ty);
        }
        for op in self.kernel.op_ids() {
            let elem_of = |elem: &Elem| self.elements.resolve(elem);
            let replaced = match &self.kernel.op(op).op {
                Op::Constant { value, elem } => {
                    let elem = elem_of(elem);
                    let single = self.singles.get(&self.kernel.op(op).results[0]).copied();
                    Op::Constant { value: literal(*value, single, &elem), elem }
                }
                Op::Lookup { table, elem } => {
                    let elem = elem_of(elem);
                    let singles = &self.table_singles[&self.kernel.op(op).results[0]];
                    let numbers = table.iter().zip(singles);
                    let table = numbers.map(|(&number, &single)| literal(number, single, &elem)).collect();
                    Op::Lookup { table, elem }
                }
                other => other.map(&Dim::clone, &elem_of),
            };
            self.kernel.op_mut(op).op = replaced;
        }
    }
}

/// A number in its format; `single` is what it is in f32, rounded once, where it is written as a float. `Tile::zeros` and
/// `Tile::ones` are made before their format is known, with an integer.
fn literal(value: Literal, single: Option<f32>, elem: &Elem) -> Literal {
    if let (Some(single), Some(DType::F32)) = (single, elem.known()) {
        return Literal::Float(single.into());
    }
    elem.known().map_or(value, |dtype| value.in_format(dtype))
}
