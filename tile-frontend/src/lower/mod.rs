//! The body of a kernel to IR, in one walk: names, kinds, shapes and element types are checked as ops are
//! made. Formats that later code decides are placeholders until [`finish`] replaces them.
//!
//! A mistake is reported once and makes the value [`Val::Poison`]; lowering goes on with the next statement.

mod arguments;
mod casts;
mod common_types;
mod constants;
mod control;
mod describe;
mod exact;
mod expressions;
mod fields;
mod finish;
mod formats;
mod functions;
mod grid;
mod known;
mod messages;
mod methods;
pub(crate) mod names;
mod numbers;
mod ops;
mod optional;
mod places;
mod statements;
mod tensors;
pub(crate) mod unknown;
mod unreached;

pub(crate) use constants::extent_of as extent_of_constant;
pub(crate) use control::counters::mentions;
pub(crate) use control::iterators::is_counted;
pub(crate) use control::tiles::tiles_persistent;
pub(crate) use expressions::number_of_path;
pub(crate) use fields::named_format;
pub(crate) use functions::conform::arguments_of;
pub(crate) use ops::folds::Fold;

use crate::copies::Occurrence;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::elements::Elements;
use crate::evaluate;
use crate::helpers::Helpers;
use crate::rewrite::{Place, Rewrites, place};
use crate::scope::{Scopes, VariableId};
use crate::signature::Signature;
use crate::span::Span;
use crate::text::Text;
use crate::value::Val;
use describe::{kind, rust_elem};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use syn::{Generics, ItemFn, ItemStruct};
use tile_ir::analysis::Facts;
use tile_ir::kernel::OpData;
use tile_ir::ops::{TypeError, result_types_under};
use tile_ir::{Dim, Elem, Kernel, Loc, Op, RegionId, Type, ValueId, VerifiedKernel};

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
    let mut lowering = Lowering::new(signature, function.sig.generics.clone(), helpers);
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
    closure: Option<ops::folds::Closure>,
    rewrites: Rewrites,
    /// Arithmetic operators on scalars, and the types of their results, whose formats may be decided later.
    scalar_arithmetic: Vec<ops::operators::OfScalars>,
    /// Types of loops' counters, and where their ranges stand.
    counters: Vec<(Elem, Span)>,
    /// Tiles of zeros and ones.
    of_numbers: Vec<ops::constructors::OfNumbers>,
    /// Float literals, whose formats may be decided later.
    literals: Vec<(Occurrence, Elem)>,
    /// The numbers of f32 that constants made of float literals are, should they come to be of that format.
    singles: HashMap<ValueId, f32>,
    /// The same of the numbers of tables, by what is looked up.
    table_singles: HashMap<ValueId, Vec<Option<f32>>>,
    /// Conversions of scalars with `as`: of what, where that is no literal, and to what.
    scalar_casts: Vec<(Occurrence, Option<Elem>, Elem)>,
    /// What `break`, `continue` and `return` can leave here, outermost first: the kernel, then loops.
    frames: Vec<control::exits::Frame>,
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
    bounds: Vec<functions::generics::Bound>,
    /// The types of variables that are given their value later: `let x: f32;`.
    declared: HashMap<VariableId, syn::Type>,
    /// Whether the current place is a `const` block, which rustc sees as it is.
    in_constant: bool,
    /// Whether the current place is in the value of a constant, of a `const` item or block.
    is_constant: bool,
    /// Where the first `for` stands in the constant whose value is being lowered.
    for_in_constant: Option<Span>,
    /// What was computed of integers whose type may be decided later.
    folded: Vec<ops::folding::Folded>,
    /// Closures of iterators that have an effect, by the place of `map`: mistakes unless what follows asks for every value.
    lazy: Vec<(Place, Diagnostic)>,
    /// The structs that stand in the blocks around the current place, with the texts that these are of.
    structs: Vec<(Rc<Text>, ItemStruct)>,
    /// Numbers in fields of structs that aren't seen, whose types other uses must decide.
    fields: Vec<fields::Undecided>,
    /// The constants of modules whose values are being lowered.
    constants: Vec<String>,
    /// What `const fn`s have given, by where each stands and by how it was called.
    computed: HashMap<((String, Place), String), evaluate::Value>,
    /// How deep the current place is in what isn't reached.
    unreached: usize,
    /// Outputs that are stored to in what known conditions and exits leave out.
    written_elsewhere: HashSet<ValueId>,
    /// The expressions that are being lowered of those that share their place with others, innermost last.
    copies: Vec<Occurrence>,
}

impl Lowering {
    /// The walk where it begins, at the start of a body.
    fn new(signature: Signature, generics: Generics, helpers: &Helpers) -> Lowering {
        let region = signature.kernel.body();
        let text = Text::of_kernel(helpers, &signature.kernel.generics);
        Lowering {
            facts: Facts::of(&signature.kernel),
            kernel: signature.kernel,
            generics,
            scopes: signature.scopes,
            region,
            elements: Elements::default(),
            errors: Vec::new(),
            spans: HashMap::new(),
            closure: None,
            rewrites: Rewrites::default(),
            scalar_arithmetic: Vec::new(),
            counters: Vec::new(),
            of_numbers: Vec::new(),
            literals: Vec::new(),
            singles: HashMap::new(),
            scalar_casts: Vec::new(),
            frames: Vec::new(),
            table_singles: HashMap::new(),
            nesting: 0,
            operand_spans: HashMap::new(),
            messages: 0,
            text: Rc::new(text),
            calls: Vec::new(),
            called: HashMap::new(),
            bounds: Vec::new(),
            declared: HashMap::new(),
            in_constant: false,
            is_constant: false,
            for_in_constant: None,
            folded: Vec::new(),
            lazy: Vec::new(),
            structs: Vec::new(),
            fields: Vec::new(),
            constants: Vec::new(),
            computed: HashMap::new(),
            unreached: 0,
            written_elsewhere: HashSet::new(),
            copies: Vec::new(),
        }
    }

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
        self.text.is_own && !self.in_constant
    }

    /// What is being lowered here, of the expressions at a place.
    fn occurrence(&self, span: impl Into<Span>) -> Occurrence {
        let place = place(span.into().start());
        let copy = self.copies.iter().rev().find(|copy| copy.place == place);
        copy.copied().unwrap_or(Occurrence { place, copy: 0 })
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
        let readable = |results: Vec<Type>| {
            let of_results = results.iter().flat_map(Type::dims);
            TypeError::refuse_long(op.dims().iter().chain(of_results)).map(|()| results)
        };
        match result_types_under(&op, &types, &self.facts).and_then(readable) {
            Ok(results) => Ok(self.append(op, operands, &results, Vec::new(), span)),
            Err(error) => {
                let diagnostic = self.explain(error, operands, span, operand_spans);
                self.report(diagnostic)
            }
        }
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
}
