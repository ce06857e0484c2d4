//! Binary operators: arithmetic on known extents, elementwise ops with broadcasting, comparisons.

use crate::copies::Occurrence;
use crate::diagnostic::Diagnostic;
use crate::lower::control::logical::Connective;
use crate::lower::{Lowered, Lowering, Reported};
use crate::rewrite::predicate;
use crate::span::{Span, Spanned};
use crate::value::{Int, Val};
use syn::{BinOp, ExprBinary};
use tile_ir::ops::infer::display_shape;
use tile_ir::ops::{BinaryOp, Literal};
use tile_ir::{DType, Dim, Elem, Op, Type, ValueId};

/// The op of an arithmetic operator, compound assignment included.
fn arithmetic(op: &BinOp) -> Option<BinaryOp> {
    Some(match op {
        BinOp::Add(_) | BinOp::AddAssign(_) => BinaryOp::Add,
        BinOp::Sub(_) | BinOp::SubAssign(_) => BinaryOp::Sub,
        BinOp::Mul(_) | BinOp::MulAssign(_) => BinaryOp::Mul,
        BinOp::Div(_) | BinOp::DivAssign(_) => BinaryOp::Div,
        BinOp::Rem(_) | BinOp::RemAssign(_) => BinaryOp::Rem,
        BinOp::BitAnd(_) | BinOp::BitAndAssign(_) => BinaryOp::And,
        BinOp::BitOr(_) | BinOp::BitOrAssign(_) => BinaryOp::Or,
        BinOp::BitXor(_) | BinOp::BitXorAssign(_) => BinaryOp::Xor,
        BinOp::Shl(_) | BinOp::ShlAssign(_) => BinaryOp::Shl,
        BinOp::Shr(_) | BinOp::ShrAssign(_) => BinaryOp::Shr,
        _ => return None,
    })
}

/// An operator or method of scalars that may be another one to rustc.
#[derive(Debug)]
pub(in crate::lower) struct OfScalars {
    pub(in crate::lower) at: Occurrence,
    pub(in crate::lower) function: &'static str,
    /// What it gives.
    pub(in crate::lower) ty: Type,
    /// Whether it is a function of `::tile::kernel::scalar` whatever the type.
    pub(in crate::lower) is_function: bool,
}

impl Lowering {
    pub(in crate::lower) fn binary_operator(&mut self, binary: &ExprBinary) -> Lowered<Val> {
        if let Some(connective) = Connective::of(&binary.op) {
            return self.logical(connective, binary);
        }
        let (left, right) = (self.expression(&binary.left), self.expression(&binary.right));
        self.operated(binary, &left?, &right?)
    }

    /// What an operator other than `&&` and `||` gives of its operands, compound assignment's included.
    pub(in crate::lower) fn operated(
        &mut self,
        binary: &ExprBinary,
        left: &Val,
        right: &Val,
    ) -> Lowered<Val> {
        let span = binary.op.span();
        let operands = [binary.left.span(), binary.right.span()];
        if let Some(op) = arithmetic(&binary.op) {
            let value = self.arithmetic(op, left, right, span, operands)?;
            if self.is_scalar(left) {
                self.note_scalar(span, op.name(), &value);
            } else if self.is_shift_by_another_type(op, left, right) && self.in_own_text() {
                self.rewrites.scalars.insert(self.occurrence(span), ("either", op.name()));
            }
            return Ok(value);
        }
        if let Some(predicate) = predicate(&binary.op) {
            let [a, b] = self.pair(left, right, &format!("`{}`", predicate.symbol()), span, operands)?;
            let result = self.emit_one(Op::Compare(predicate), &[a, b], span, &operands)?;
            if self.shape(result).is_some() && self.in_own_text() {
                self.rewrites.comparisons.insert(self.occurrence(span));
            }
            return Ok(Val::Data(result));
        }
        self.error(
            span,
            "this operator isn't supported in a kernel",
            "use arithmetic, bit or comparison operators",
        )
    }

    pub(in crate::lower) fn is_scalar(&self, value: &Val) -> bool {
        !matches!(value, Val::Data(data) if self.shape(*data).is_some())
    }

    /// Notes an operator whose first operand is a scalar, which rustc must not see as Rust's own if that is an
    /// integer, or if Rust has none for its type.
    pub(in crate::lower) fn note_scalar(&mut self, operator: Span, function: &'static str, value: &Val) {
        match value {
            Val::Data(value) => self.note_operator(operator, function, self.kernel.ty(*value).clone()),
            // Rust's own operators check extents in some builds only.
            Val::Dim(_) if self.in_own_text() && matches!(function, "add" | "sub" | "mul") => {
                self.rewrites.scalars.insert(self.occurrence(operator), ("extent", function));
            }
            _ => {}
        }
    }

    /// The same of one whose result is of this type.
    pub(in crate::lower) fn note_operator(&mut self, operator: Span, function: &'static str, ty: Type) {
        if self.in_own_text() {
            let at = self.occurrence(operator);
            self.scalar_arithmetic.push(OfScalars { at, function, ty, is_function: false });
        }
    }

    /// Notes a method of a scalar that is a function of it, as tiles have it: Rust's numbers don't have them all, and to the last
    /// digit others.
    pub(in crate::lower) fn note_function(&mut self, method: Span, function: &'static str, value: &Val) {
        if let (Val::Data(data), true, true) = (value, self.is_scalar(value), self.in_own_text()) {
            let (at, ty) = (self.occurrence(method), self.kernel.ty(*data).clone());
            self.scalar_arithmetic.push(OfScalars { at, function, ty, is_function: true });
        }
    }

    /// A leaf op of two operands, as an operator or a function.
    pub(in crate::lower) fn arithmetic(
        &mut self,
        op: BinaryOp,
        left: &Val,
        right: &Val,
        span: Span,
        operands: [Span; 2],
    ) -> Lowered<Val> {
        if let Some(folded) = self.fold(op, left, right, span)? {
            return Ok(folded);
        }
        let what = format!("`{}`", op.operator().unwrap_or(op.name()));
        let [a, b] = match (left, right) {
            (left, Val::Data(by)) if op.moves_bits() && self.shifts(left, *by) => {
                self.shifted_by(left, *by, &what, operands)?
            }
            (left, Val::Dim(by)) if op.moves_bits() && self.is_scalar(left) => {
                let by = self.extent(by, operands[1]);
                self.shifted_by(left, by, &what, operands)?
            }
            // One that says its type isn't given that of the distances.
            (left @ Val::Int(Int { shared: Some(_), .. }), &Val::Data(by))
                if op.moves_bits() && self.shape(by).is_some() =>
            {
                let left = Val::Data(self.data(left, &what, operands[0])?);
                self.pair(&left, right, &what, span, operands)?
            }
            // A variable, which has a type of its own.
            (left, by @ Val::Int(Int { shared: Some(_), .. })) if op.moves_bits() && self.is_scalar(left) => {
                self.pair(left, &by.alone(), &what, span, operands)?
            }
            (&Val::Data(tile), by) if self.is_shift_by_another_type(op, left, by) => {
                let by = self.distance_for(tile, by, &what, operands[1])?;
                self.pair(left, &by, &what, span, operands)?
            }
            _ => self.pair(left, right, &what, span, operands)?,
        };
        self.emit_one(Op::Binary(op), &[a, b], span, &operands).map(Val::Data)
    }

    /// Whether a tile is shifted or rotated by a number that isn't of its elements' type, or may not be.
    fn is_shift_by_another_type(&self, op: BinaryOp, left: &Val, by: &Val) -> bool {
        let Val::Data(tile) = *left else { return false };
        let of_another_type = match by {
            Val::Dim(_) | Val::Int(Int { shared: Some(_), .. }) => true,
            Val::Data(by) => self.shifts(&Val::Data(*by), *by) && self.elem(*by) != self.elem(tile),
            _ => false,
        };
        op.moves_bits() && self.shape(tile).is_some() && of_another_type
    }

    /// By how much a tile is shifted or rotated, as a number of its type: of the distance the low bits count.
    fn distance_for(&mut self, tile: ValueId, by: &Val, what: &str, place: Span) -> Lowered<Val> {
        let by = match by {
            Val::Int(_) => return Ok(by.alone()),
            Val::Dim(by) => self.extent(by, place),
            by => self.data(by, what, place)?,
        };
        self.emit_one(Op::Cast(self.elem(tile)), &[by], place, &[place]).map(Val::Data)
    }

    /// Whether a number is shifted or rotated by an integer, which may be of another type, as in Rust.
    fn shifts(&self, value: &Val, by: ValueId) -> bool {
        let is_integer =
            |elem: Elem| elem.known().is_none_or(|dtype| dtype.is_int() || dtype == DType::Index);
        self.is_scalar(value) && self.shape(by).is_none() && is_integer(self.elem(by))
    }

    /// A number, and by how much it is shifted or rotated, as one of its type: of the distance the low bits count.
    fn shifted_by(
        &mut self,
        value: &Val,
        by: ValueId,
        what: &str,
        operands: [Span; 2],
    ) -> Lowered<[ValueId; 2]> {
        let elem = match value {
            Val::Data(value) => self.elem(*value),
            Val::Dim(_) => DType::Index.into(),
            Val::Int(Int { shared: Some(shared), .. }) => shared.clone(),
            _ => self.elements.unknown(),
        };
        let value = self.operand(value, &elem, what, operands[0])?;
        if self.elements.resolve(&self.elem(by)) == self.elements.resolve(&elem) {
            return Ok([value, by]);
        }
        let by = self.emit_one(Op::Cast(elem), &[by], operands[1], &[operands[1]])?;
        Ok([value, by])
    }

    /// Two operands as values of one type: open literals take the other's format, scalars are splat and
    /// axes of extent 1 are repeated.
    pub(in crate::lower) fn pair(
        &mut self,
        left: &Val,
        right: &Val,
        what: &str,
        span: Span,
        operands: [Span; 2],
    ) -> Lowered<[ValueId; 2]> {
        let elem = self.format_of(left, right);
        let a = self.operand(left, &elem, what, operands[0])?;
        let b = self.operand(right, &elem, what, operands[1])?;
        self.unify(a, b, what, span)?;
        self.no_tile_of_sizes([a, b], operands)?;
        self.broadcast_pair(a, b, what, span)
    }

    /// Refuses a `usize` beside a tile whose format it would say.
    fn no_tile_of_sizes(&mut self, sides: [ValueId; 2], operands: [Span; 2]) -> Lowered<()> {
        let of_size = sides.iter().position(|&side| *self.kernel.ty(side) == Type::INDEX);
        match of_size.filter(|&at| self.shape(sides[1 - at]).is_some()) {
            None => Ok(()),
            Some(at) => {
                let help = "convert the number: `(i * 4) as i32`";
                self.error(operands[at], "this number is a usize, which no tile holds", help)
            }
        }
    }

    /// The format of the first operand that has one.
    fn format_of(&mut self, left: &Val, right: &Val) -> Elem {
        for value in [left, right] {
            match value {
                Val::Data(value) => return self.elem(*value),
                Val::Dim(_) => return DType::Index.into(),
                _ => {}
            }
        }
        let shared = left.shared().or_else(|| right.shared()).cloned();
        shared.unwrap_or_else(|| self.elements.unknown())
    }

    fn operand(&mut self, value: &Val, elem: &Elem, what: &str, span: Span) -> Lowered<ValueId> {
        match value {
            Val::Int(_) | Val::Float(_) if self.elements.resolve(elem).known() == Some(DType::Bool) => {
                let message = format!("{what} of a bool and a number");
                let help = "`&`, `|` and `^` bind tighter than comparisons: write `(a == 3) | (b == 2)`";
                self.error(span, message, help)
            }
            Val::Int(_) | Val::Float(_) => {
                self.share(value, elem, what, span)?;
                self.number(value, elem, "the literal", span)
            }
            value => self.data(value, &format!("an operand of {what}"), span),
        }
    }

    pub(in crate::lower) fn broadcast_pair(
        &mut self,
        a: ValueId,
        b: ValueId,
        what: &str,
        span: Span,
    ) -> Lowered<[ValueId; 2]> {
        match (self.shape(a), self.shape(b)) {
            (Some(shape), None) => Ok([a, self.splat(b, shape, span)]),
            (None, Some(shape)) => Ok([self.splat(a, shape, span), b]),
            (Some(x), Some(y)) if x != y => {
                let Some(shape) = common_shape(&x, &y) else {
                    let message =
                        format!("{what} mixes shapes {} and {}", display_shape(&x), display_shape(&y));
                    let mut diagnostic = Diagnostic::new(span, message);
                    diagnostic = self.with_origin(diagnostic, a);
                    diagnostic = self.with_origin(diagnostic, b);
                    diagnostic = diagnostic.help(shape_help(&x, &y));
                    return self.report(diagnostic);
                };
                Ok([self.repeated(a, &shape, span), self.repeated(b, &shape, span)])
            }
            _ => Ok([a, b]),
        }
    }

    pub(in crate::lower) fn splat(&mut self, scalar: ValueId, shape: Vec<Dim>, span: Span) -> ValueId {
        let ty = Type::tile(shape.iter().cloned(), self.elem(scalar));
        self.append(Op::Splat(shape), &[scalar], &[ty], Vec::new(), span)[0]
    }

    pub(in crate::lower) fn repeated(&mut self, tile: ValueId, shape: &[Dim], span: Span) -> ValueId {
        if self.shape(tile).is_some_and(|own| own == shape) {
            return tile;
        }
        let ty = Type::tile(shape.iter().cloned(), self.elem(tile));
        self.append(Op::Broadcast(shape.to_vec()), &[tile], &[ty], Vec::new(), span)[0]
    }

    /// A known extent; `None` was reported.
    pub(in crate::lower) fn static_dim(&mut self, value: &Val, what: &str, span: Span) -> Lowered<Dim> {
        let help =
            "use literals and const parameters, or the counter of a loop over an array, which is unrolled";
        self.static_dim_or(value, what, help, span)
    }

    /// The same, with the help for one that is computed at run time.
    pub(in crate::lower) fn static_dim_or(
        &mut self,
        value: &Val,
        what: &str,
        help: &str,
        span: Span,
    ) -> Lowered<Dim> {
        self.share(value, &DType::Index.into(), what, span)?;
        match (as_dim(value), value) {
            (Some(dim), _) => Ok(dim),
            (None, Val::Poison) => Err(Reported),
            (None, Val::Data(data)) => {
                let message = format!("{what} is computed at run time ({})", self.display_type(*data));
                self.error(span, message, help)
            }
            (None, other) => self.error(span, not_a_count(what, other), "use literals and const parameters"),
        }
    }

    /// A zero of a format.
    pub(in crate::lower) fn zero(&mut self, elem: &Elem, span: Span) -> Lowered<ValueId> {
        let value = match elem.known() {
            Some(dtype) if dtype.is_float() => Literal::Float(0.0),
            _ => Literal::Int(0),
        };
        self.emit_one(Op::Constant { value, elem: elem.clone() }, &[], span, &[])
    }
}

/// Why what isn't an extent is none.
pub(in crate::lower) fn not_a_count(what: &str, value: &Val) -> String {
    match value {
        Val::Int(int) if int.value < 0 => format!("{what} must be 0 or more, not {}", int.value),
        Val::Int(int) => format!("{what} is too large: {}", int.value),
        other => format!("{what} must be a usize, not {}", crate::lower::kind(other)),
    }
}

pub(in crate::lower) fn as_dim(value: &Val) -> Option<Dim> {
    match value {
        Val::Dim(dim) => Some(dim.clone()),
        Val::Int(int) => i64::try_from(int.value).ok().filter(|&value| value >= 0).map(Dim::from),
        _ => None,
    }
}

/// The shape that both broadcast to: axes equal or 1.
pub(in crate::lower) fn common_shape(a: &[Dim], b: &[Dim]) -> Option<Vec<Dim>> {
    let one = Dim::from(1);
    if a.len() != b.len() {
        return None;
    }
    a.iter()
        .zip(b)
        .map(|(x, y)| match (x, y) {
            _ if x == y => Some(x.clone()),
            _ if *x == one => Some(y.clone()),
            _ if *y == one => Some(x.clone()),
            _ => None,
        })
        .collect()
}

/// Whether a tile of this shape has a single element, as what is reduced along every axis has.
pub(in crate::lower) fn has_one_element(shape: &[Dim]) -> bool {
    shape.iter().all(|extent| extent.as_const() == Some(1))
}

pub(in crate::lower) fn shape_help(a: &[Dim], b: &[Dim]) -> &'static str {
    if a.len() != b.len() {
        "tiles of different rank don't broadcast; `unsqueeze(axis)` adds an axis of extent 1, `squeeze(axis)` drops one"
    } else {
        "axes must be equal or 1; equal means the same parameter or the same number"
    }
}
