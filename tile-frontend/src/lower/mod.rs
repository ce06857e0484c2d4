//! The body of a kernel to IR, in one walk: names, kinds, shapes and element types are checked as ops are
//! made. Formats that later code decides are placeholders until [`finish`] replaces them.
//!
//! A mistake is reported once and makes the value [`Val::Poison`]; lowering goes on with the next statement.

mod arguments;
mod atomics;
mod branches;
mod calls;
mod carried;
mod closures;
mod composite;
mod conform;
mod constants;
mod constructors;
mod contract;
mod convert;
mod exits;
mod expressions;
mod finish;
mod folds;
mod functions;
mod gather;
mod generics;
mod grid;
mod hints;
mod lines;
mod logical;
mod loops;
mod matches;
mod messages;
mod methods;
mod movement;
pub(crate) mod names;
mod numbers;
mod operators;
mod optional;
mod places;
mod ranges;
mod spanning;
mod statements;
mod tiles;
mod unknown;
mod unroll;
mod unwritten;
mod view_movement;
mod views;
mod windows;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::elements::Elements;
use crate::helpers::Helpers;
use crate::rewrite::{Place, Rewrites};
use crate::scope::{Scopes, Variable};
use crate::signature::Signature;
use crate::span::Span;
use crate::text::Text;
use crate::value::Val;
use std::collections::HashMap;
use std::rc::Rc;
use syn::{Generics, ItemFn};
use tile_ir::analysis::Facts;
use tile_ir::kernel::{GenericKind, OpData};
use tile_ir::ops::infer::display_shape;
use tile_ir::ops::{Domain, ScatterMode, TypeError, result_types_under};
use tile_ir::{DType, Dim, Elem, Kernel, Loc, Op, RegionId, Type, ValueId, VerifiedKernel};

/// A lowered body.
pub(crate) struct Body {
    pub(crate) kernel: VerifiedKernel,
    /// What of the body rustc must see as something else.
    pub(crate) rewrites: Rewrites,
}

/// A diagnostic was reported; there is no value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

pub(crate) type Lowered<T> = Result<T, Reported>;

/// Lowers a function's body into its signature's kernel.
pub(crate) fn body(signature: Signature, function: &ItemFn, helpers: &Helpers) -> Result<Body, Diagnostics> {
    let region = signature.kernel.body();
    let mut lowering = Lowering {
        facts: Facts::of(&signature.kernel),
        kernel: signature.kernel,
        generics: function.sig.generics.clone(),
        scopes: signature.scopes,
        region,
        elements: Elements::default(),
        errors: Vec::new(),
        spans: HashMap::new(),
        closure: None,
        rewrites: Rewrites::default(),
        scalar_arithmetic: Vec::new(),
        float_literals: Vec::new(),
        scalar_casts: Vec::new(),
        frames: Vec::new(),
        nesting: 0,
        operand_spans: HashMap::new(),
        messages: 0,
        text: Rc::new(Text::of_kernel(helpers)),
        calls: Vec::new(),
        called: HashMap::new(),
        bounds: Vec::new(),
    };
    if let Ok(value) = lowering.kernel_body(&function.block)
        && !matches!(value, Val::Unit | Val::Never | Val::Poison)
    {
        let last = function.block.stmts.last().map_or_else(Span::call_site, crate::span::Spanned::span);
        lowering
            .errors
            .push(Diagnostic::new(last, "a kernel returns nothing").help("end the statement with `;`"));
    }
    lowering.finish(function)
}

/// The state of the walk.
pub(crate) struct Lowering {
    kernel: Kernel,
    /// What the kernel's conditions say.
    facts: Facts,
    /// The kernel's parameters in `<…>`, as they are declared.
    generics: Generics,
    scopes: Scopes,
    /// Where ops are appended.
    region: RegionId,
    elements: Elements,
    errors: Vec<Diagnostic>,
    /// The span of each op's location, for errors that the verifier finds.
    spans: HashMap<Loc, Span>,
    /// The closure of a fold that is being lowered.
    closure: Option<folds::Closure>,
    rewrites: Rewrites,
    /// Arithmetic operators on scalars, whose formats may be decided later.
    scalar_arithmetic: Vec<(Place, &'static str, ValueId)>,
    /// Float literals, whose formats may be decided later.
    float_literals: Vec<(Place, ValueId)>,
    /// Conversions of scalars with `as`: of what, where that is no literal, and to what.
    scalar_casts: Vec<(Place, Option<ValueId>, Elem)>,
    /// What `break`, `continue` and `return` can leave here, outermost first: the kernel, then loops.
    frames: Vec<exits::Frame>,
    /// How many loops and branches of the source are around the current place.
    nesting: usize,
    /// The spans of the operands of ops that the verifier may blame one of.
    operand_spans: HashMap<Loc, Vec<Span>>,
    /// How many ops print or assert so far.
    messages: u32,
    /// What the current place is a part of.
    text: Rc<Text>,
    /// The calls of functions and closures around the current place, outermost first.
    calls: Vec<functions::Call>,
    /// The calls around each op's location, for errors that the verifier finds.
    called: HashMap<Loc, Vec<(Span, String)>>,
    /// What type parameters of functions must be.
    bounds: Vec<generics::Bound>,
}

impl Lowering {
    /// Notes a mistake once, also where its place is lowered again: a condition before and in its loop, the
    /// body of an unrolled loop.
    fn report<T>(&mut self, mut diagnostic: Diagnostic) -> Lowered<T> {
        for (span, label) in self.sites() {
            diagnostic = diagnostic.label(span, label);
        }
        if !self.errors.iter().any(|known| known.is_same(&diagnostic)) {
            self.errors.push(diagnostic);
        }
        Err(Reported)
    }

    fn error<T>(&mut self, span: impl Into<Span>, message: impl Into<String>, help: &str) -> Lowered<T> {
        self.report(Diagnostic::new(span, message).help(help))
    }

    /// Where the calls around the current place are, innermost first, as labels of a message.
    fn sites(&self) -> Vec<(Span, String)> {
        let sites = self.calls.iter().rev();
        sites.map(|call| (call.span, format!("`{}` is called here", call.name))).collect()
    }

    /// Whether the current place is of the kernel's own text, which rustc sees rewritten.
    fn in_own_text(&self) -> bool {
        self.text.is_own
    }

    fn loc(&mut self, span: Span) -> Loc {
        // A line of another file means nothing in the kernel's: the call stands for it.
        let (mut span, mut foreign) = (span, self.text.is_foreign);
        for call in self.calls.iter().rev() {
            if !foreign {
                break;
            }
            (span, foreign) = (call.span, call.is_foreign);
        }
        let start = span.start();
        let loc = Loc::new(start.line as u32, start.column as u32 + 1);
        self.spans.entry(loc).or_insert(span);
        if !self.calls.is_empty() {
            let sites = self.sites();
            self.called.entry(loc).or_insert(sites);
        }
        loc
    }

    /// A value's type with what is known of its format by now.
    fn ty(&self, value: ValueId) -> Type {
        let ty = self.kernel.ty(value);
        ty.with_elem(self.elements.resolve(ty.elem()))
    }

    fn elem(&self, value: ValueId) -> Elem {
        self.elements.resolve(self.kernel.ty(value).elem())
    }

    /// The shape of a tile; `None` for a scalar.
    fn shape(&self, value: ValueId) -> Option<Vec<Dim>> {
        self.kernel.ty(value).as_tile().map(|tile| tile.shape.clone())
    }

    /// Appends an op with the given result types.
    fn append(
        &mut self,
        op: Op,
        operands: &[ValueId],
        results: &[Type],
        regions: Vec<RegionId>,
        span: Span,
    ) -> Vec<ValueId> {
        let loc = self.loc(span);
        let results: Vec<ValueId> =
            results.iter().map(|ty| self.kernel.new_value(ty.clone(), None)).collect();
        let data = OpData { op, operands: operands.to_vec(), results: results.clone(), regions, loc };
        let id = self.kernel.new_op(data);
        self.kernel.region_mut(self.region).ops.push(id);
        results
    }

    /// Appends an op whose operands are known to fit but for what [`result_types_under`] checks.
    fn emit(
        &mut self,
        op: Op,
        operands: &[ValueId],
        span: Span,
        operand_spans: &[Span],
    ) -> Lowered<Vec<ValueId>> {
        self.check_in_closure(&op, operands, span)?;
        let types: Vec<Type> = operands.iter().map(|&value| self.ty(value)).collect();
        self.check_bounds(&op, &types, operand_spans.first().copied().unwrap_or(span))?;
        match result_types_under(&op, &types, &self.facts) {
            Ok(results) => Ok(self.append(op, operands, &results, Vec::new(), span)),
            Err(error) => {
                let diagnostic = self.explain(error, operands, span, operand_spans);
                self.report(diagnostic)
            }
        }
    }

    /// Refuses an op that some format within a type parameter's bound doesn't have. Signedness has no bound
    /// of its own: it is checked when the kernel is specialised.
    fn check_bounds(&mut self, op: &Op, operands: &[Type], span: Span) -> Lowered<()> {
        let needed = match op {
            Op::Unary(op) => op.domain(),
            Op::Binary(op) => op.domain(),
            Op::Compare(predicate) => predicate.domain(),
            Op::Classify(classification) => classification.domain(),
            Op::Reduce { op, .. } | Op::Scan { op, .. } => op.domain(),
            Op::Sort { .. } => Domain::Number,
            Op::Histogram(_) => Domain::Int,
            Op::Scatter { mode: ScatterMode::Add, .. } => Domain::Number,
            _ => return Ok(()),
        };
        let needed = if needed == Domain::SignedNumber { Domain::Number } else { needed };
        let Some(Elem::Param(name)) = operands.first().map(Type::elem) else { return Ok(()) };
        let Some(generic) = self.kernel.generics.iter().find(|generic| generic.name == *name) else {
            return Ok(());
        };
        let GenericKind::Elem(bound) = generic.kind else { return Ok(()) };
        let mut formats = DType::ALL.iter().filter(|dtype| dtype.is_element() && bound.accepts(**dtype));
        if formats.all(|&dtype| needed.accepts(dtype)) {
            return Ok(());
        }
        let spelling = op.spelling();
        let message =
            format!("`{spelling}` needs {}, but `{name}` may be {}", needed.describe(), bound.describe());
        if needed == Domain::Bool {
            return self.error(span, message, "reduce a tile of `bool`, as a comparison gives");
        }
        let wanted = match needed {
            Domain::Float => "Float",
            Domain::Int | Domain::IntOrBool => "Int",
            _ => "Number",
        };
        self.error(span, message, &format!("declare `{name}: {wanted}`"))
    }

    /// [`Self::emit`] of an op with one result.
    fn emit_one(
        &mut self,
        op: Op,
        operands: &[ValueId],
        span: Span,
        operand_spans: &[Span],
    ) -> Lowered<ValueId> {
        Ok(self.emit(op, operands, span, operand_spans)?[0])
    }

    /// A type error at the operand that it blames, with where each operand comes from.
    fn explain(
        &self,
        error: TypeError,
        operands: &[ValueId],
        span: Span,
        operand_spans: &[Span],
    ) -> Diagnostic {
        let place = error.operand.and_then(|i| operand_spans.get(i).copied()).unwrap_or(span);
        let mut diagnostic = Diagnostic::new(place, error.message);
        diagnostic.help = error.help;
        for &operand in operands {
            diagnostic = self.with_origin(diagnostic, operand);
        }
        diagnostic
    }

    /// Adds where a value's shape and format come from: its variable, the view it was loaded from, or the
    /// origin of the tile that it was made of.
    fn with_origin(&self, diagnostic: Diagnostic, value: ValueId) -> Diagnostic {
        let is_value = |variable: &&Variable| match variable.value {
            Val::Data(data) => data == value,
            Val::View(view) => view == value,
            _ => false,
        };
        if let Some(variable) = self.scopes.variables.iter().rev().find(is_value) {
            let label = match self.kernel.ty(value) {
                Type::Partition(view) => {
                    format!("`{}` has tiles {}", variable.name, display_shape(&view.tile))
                }
                _ => format!("`{}` is {}", variable.name, self.display_type(value)),
            };
            return diagnostic.label(variable.span, label);
        }
        let maker = self.kernel.op_ids().map(|op| self.kernel.op(op)).find(|op| op.results.contains(&value));
        match maker.and_then(|op| op.operands.first()) {
            Some(&operand) if !matches!(self.kernel.ty(operand), Type::Scalar(_)) => {
                self.with_origin(diagnostic, operand)
            }
            _ => diagnostic,
        }
    }

    /// A type as a message shows it: without placeholders.
    fn display_type(&self, value: ValueId) -> String {
        let ty = self.ty(value);
        let unknown = Elements::is_unknown(ty.elem());
        match &ty {
            Type::Tile(tile) if unknown => {
                format!("a tile of shape {}", display_shape(&tile.shape))
            }
            Type::Scalar(_) if unknown => "a number".to_owned(),
            Type::Scalar(Elem::Known(dtype)) => dtype.rust_name().to_owned(),
            ty => format!("{ty:#}"),
        }
    }

    /// Makes two formats one, or reports the mismatch.
    fn unify(&mut self, a: ValueId, b: ValueId, what: &str, span: Span) -> Lowered<()> {
        let (left, right) = (self.elem(a), self.elem(b));
        if self.elements.unify(&left, &right) {
            return Ok(());
        }
        let (left, right) = (self.elem(a), self.elem(b));
        let message = format!("{what} mixes element types {} and {}", rust_elem(&left), rust_elem(&right));
        let (left, right) = (rust_elem(&left), rust_elem(&right));
        let help = match (self.shape(a), self.shape(b)) {
            (None, None) => format!("convert one side: `… as {left}` or `… as {right}`"),
            (Some(_), None) => format!("convert the scalar: `… as {left}`"),
            (None, Some(_)) => format!("convert the scalar: `… as {right}`"),
            (Some(_), Some(_)) => {
                format!("convert one side: `.cast::<{left}>()` or `.cast::<{right}>()`")
            }
        };
        let diagnostic = Diagnostic::new(span, message).help(help);
        let diagnostic = self.with_origin(diagnostic, a);
        let diagnostic = self.with_origin(diagnostic, b);
        self.report(diagnostic)
    }

    /// Requires a value's format.
    fn require_elem(&mut self, value: ValueId, elem: &Elem, what: &str, span: Span) -> Lowered<()> {
        let found = self.elem(value);
        if self.elements.unify(&found, elem) {
            return Ok(());
        }
        let (found, elem) = (self.elem(value), self.elements.resolve(elem));
        let message = format!("{what} is {}, but {} is needed", rust_elem(&found), rust_elem(&elem));
        let help = match (self.shape(value), &elem) {
            (_, Elem::Known(DType::Bool)) => "compare it, as in `x > 0.0`".to_owned(),
            (Some(_), Elem::Known(DType::Index)) => {
                "a `usize` is a number, and this is a tile; of one with a single element, `x.item() as usize` is it"
                    .to_owned()
            }
            (Some(_), elem) => format!("convert it with `.cast::<{}>()`", rust_elem(elem)),
            (None, elem) => format!("convert it with `as {}`", rust_elem(elem)),
        };
        self.error(span, message, &help)
    }
}

/// What to call a value in a message.
fn kind(value: &Val) -> &'static str {
    match value {
        Val::Int(_) | Val::Float(_) | Val::Data(_) => "a number",
        Val::Dim(_) => "a usize",
        Val::Tensor(_) => "a tensor",
        Val::Optional(..) => "an optional argument",
        Val::Windows(..) => "windows over a margin",
        Val::View(_) | Val::WindowsView(..) => "a partition view",
        Val::ViewTile(_) => "a tile of a view",
        Val::Atomic(_) => "an atomic view",
        Val::Arguments(..) => "an array of arguments",
        Val::List(_) => "an array or tuple",
        Val::Record(..) => "a struct",
        Val::Closure(_) => "a closure",
        Val::Unit => "`()`",
        Val::Never | Val::Unset => "nothing, because control leaves here",
        Val::Poison => "an error",
    }
}

/// A format by its Rust name.
fn rust_elem(elem: &Elem) -> String {
    match elem {
        Elem::Known(dtype) => dtype.rust_name().to_owned(),
        Elem::Param(_) if Elements::is_unknown(elem) => "a number".to_owned(),
        Elem::Param(name) => name.clone(),
    }
}
