//! What an expression of a kernel is, while it is lowered.

use crate::copies::Occurrence;
use crate::scope::Variable;
use crate::structs::Struct;
use crate::text::Text;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use syn::{ExprClosure, Type};
use tile_ir::view::Windows;
use tile_ir::{Dim, Elem, ValueId};

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    /// An integer literal whose type is still open.
    Int(Int),
    /// A float literal whose type is still open.
    Float(Float),
    /// A `usize` that is known as an expression of parameters and run-time sizes.
    Dim(Dim),
    /// A scalar or tile.
    Data(ValueId),
    /// A tensor argument.
    Tensor(ValueId),
    /// An optional argument, a tensor or a number, and whether it is given.
    Optional(ValueId, ValueId),
    /// An array of arguments whose length is a const parameter: as many as there may be, and how many there are.
    Arguments(Vec<Val>, Dim),
    /// Windows over a margin of a tensor.
    Windows(Rc<Windowed>),
    /// Windows over a margin of a tensor, cut into tiles of these extents and steps.
    WindowsView(Rc<Windowed>, Vec<Dim>, Vec<Dim>),
    /// A partition view.
    View(ValueId),
    /// A tile of a partition view, in memory.
    ViewTile(ViewTile),
    /// A tensor that blocks access atomically.
    Atomic(ValueId),
    /// A tuple or array.
    List(Vec<Val>),
    /// An iterator over values: what it gives.
    Iterator(Vec<Val>),
    /// A value of a struct: its fields, in the order of their names.
    Record(Struct, BTreeMap<String, Val>),
    /// A closure.
    Closure(Rc<Closure>),
    /// `()`.
    Unit,
    /// The value of `break` and its kin: control goes elsewhere.
    Never,
    /// What the `break`s of a `loop` give, before the first of them.
    Unset,
    /// The value of something that was reported; using it reports nothing.
    Poison,
}

/// An integer that is known, and whose type isn't.
#[derive(Clone, Debug)]
pub(crate) struct Int {
    pub(crate) value: i128,
    /// The type, where all uses of a variable decide it together.
    pub(crate) shared: Option<Elem>,
    /// Where the literals that it is made of are written in the kernel's own text, until it is noted what rustc must see there.
    pub(crate) places: Vec<Occurrence>,
}

impl Int {
    /// One of this type, that stands nowhere in the source.
    pub(crate) fn of(value: i128, shared: Elem) -> Int {
        Int { value, shared: Some(shared), places: Vec::new() }
    }
}

/// A float that is known, and whose type isn't.
#[derive(Clone, Debug)]
pub(crate) struct Float {
    pub(crate) value: f64,
    /// The number of f32 that is nearest to what is written, which isn't always the one nearest to `value`.
    pub(crate) single: f32,
    /// The type, where all uses of a variable decide it together.
    pub(crate) shared: Option<Elem>,
    /// Where it is written in the kernel's own text, until it is noted what rustc must see there.
    pub(crate) place: Option<Occurrence>,
}

/// Whether some format, or the negative of one of its numbers, is this integer. So sums of two are far from the bounds of
/// `i128`.
pub(crate) fn has_a_format(value: i128) -> bool {
    value.unsigned_abs() <= u64::MAX.into()
}

impl Val {
    /// An integer literal that stands for itself alone.
    pub(crate) fn int(value: i128) -> Val {
        Val::Int(Int { value, shared: None, places: Vec::new() })
    }

    /// A float literal that stands nowhere in the source.
    pub(crate) fn float(value: f64) -> Val {
        Val::Float(Float { value, single: value as f32, shared: None, place: None })
    }

    /// The type of a literal, where all uses of a variable decide it together.
    pub(crate) fn shared(&self) -> Option<&Elem> {
        match self {
            Val::Int(int) => int.shared.as_ref(),
            Val::Float(float) => float.shared.as_ref(),
            _ => None,
        }
    }

    /// The value as one whose type this use doesn't decide: an integer as a literal that stands for itself.
    pub(crate) fn alone(&self) -> Val {
        match self {
            Val::Int(int) => Val::int(int.value),
            value => value.clone(),
        }
    }
}

/// What is known of a value's type: the formats of its numbers and tiles, decided or not.
#[derive(Clone, Debug)]
pub(crate) enum Formats {
    /// That of a number, or of a tile's elements.
    Elements(Elem),
    /// Those of the parts of an array, a tuple or a struct.
    Parts(Vec<Formats>),
    /// None that another value could decide.
    Open,
}

impl Formats {
    /// The format of a number, or of a tile's elements.
    pub(crate) fn elements(&self) -> Option<&Elem> {
        match self {
            Formats::Elements(elem) => Some(elem),
            _ => None,
        }
    }
}

/// Windows over a margin of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Windowed {
    pub(crate) tensor: ValueId,
    pub(crate) windows: Windows,
    /// The indices at which axes were selected, the last of them first.
    pub(crate) selected: Vec<ValueId>,
}

/// A tile of a partition view, in memory.
#[derive(Clone, Debug)]
pub(crate) struct ViewTile {
    pub(crate) view: ValueId,
    /// Its index along the axes that [`tile_ir::types::PartitionType::indexed_axes`] names; empty where an access says it.
    pub(crate) index: Vec<ValueId>,
}

/// A closure, to be lowered where it is called.
#[derive(Clone, Debug)]
pub(crate) struct Closure {
    pub(crate) syntax: ExprClosure,
    /// The variables that it names, as they were where it was written.
    pub(crate) captured: Vec<Variable>,
    /// The text that it stands in.
    pub(crate) text: Rc<Text>,
    /// The types of what its calls so far were given, by the number of the parameter, and behind them of what they gave.
    pub(crate) calls: Rc<RefCell<BTreeMap<usize, Formats>>>,
    /// As what the functions that it was passed to declare it, the first of them first.
    pub(crate) declared: Vec<Declared>,
}

/// What a function says of a closure that is its argument.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) inputs: Vec<Type>,
    pub(crate) output: Option<Type>,
    /// The function's text, in which these types mean something.
    pub(crate) text: Rc<Text>,
}
