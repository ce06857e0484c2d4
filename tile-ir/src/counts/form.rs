//! Integer scalars of a kernel as forms of its sizes, of block indices and of loop counters.
//!
//! A form has the value of the scalar, which wraps in its format as the evaluator's does. What comes from data has none.
//! Each is kept once, however often others are made of it, so that there are no more forms than ops.

use crate::array::wrap_int;
use crate::dim::{Dim, DimError};
use crate::dtype::DType;
use crate::ops::BinaryOp;
use std::collections::{BTreeSet, HashMap};

/// An integer that a launch decides, by its place among [`Forms`]. Those that are made alike are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form(usize);

/// What a form is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Made {
    Constant(i128),
    /// An extent, which is 0 where its form is negative or divides by 0.
    Extent(Dim),
    /// A variable by its number: the axes of the grid come first, then loop counters.
    Variable(usize),
    /// Two forms combined, the first of which has this format, as the result has.
    Binary(BinaryOp, DType, [Form; 2]),
    /// A form in a format that doesn't have all numbers of its own.
    Cast(DType, Form),
}

/// All forms of a kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Forms {
    /// Each behind those that it is made of.
    nodes: Vec<Node>,
    places: HashMap<Made, Form>,
}

#[derive(Clone, Debug)]
struct Node {
    made: Made,
    /// The variables that it depends on.
    mentioned: BTreeSet<usize>,
    /// Those of which it is one plus what doesn't depend on it, but for multiples of 2⁶⁴.
    shifted: BTreeSet<usize>,
}

impl Forms {
    /// The form that is made so.
    pub(super) fn add(&mut self, made: Made) -> Form {
        if let Some(&known) = self.places.get(&made) {
            return known;
        }
        let form = Form(self.nodes.len());
        let (mentioned, shifted) = (self.mentioned(&made), self.shifted(&made));
        self.nodes.push(Node { made: made.clone(), mentioned, shifted });
        self.places.insert(made, form);
        form
    }

    fn mentioned(&self, made: &Made) -> BTreeSet<usize> {
        match made {
            Made::Constant(_) | Made::Extent(_) => BTreeSet::new(),
            Made::Variable(variable) => BTreeSet::from([*variable]),
            Made::Binary(_, _, [a, b]) => &self.node(*a).mentioned | &self.node(*b).mentioned,
            Made::Cast(_, of) => self.node(*of).mentioned.clone(),
        }
    }

    fn shifted(&self, made: &Made) -> BTreeSet<usize> {
        let alone = |a: Form, b: Form| &self.node(a).shifted - &self.node(b).mentioned;
        match *made {
            Made::Variable(variable) => BTreeSet::from([variable]),
            Made::Binary(_, dtype, _) | Made::Cast(dtype, _) if dtype.bits() < 64 => BTreeSet::new(),
            Made::Binary(BinaryOp::Add, _, [a, b]) => &alone(a, b) | &alone(b, a),
            Made::Binary(BinaryOp::Sub, _, [a, b]) => alone(a, b),
            Made::Cast(_, of) => self.node(of).shifted.clone(),
            Made::Constant(_) | Made::Extent(_) | Made::Binary(..) => BTreeSet::new(),
        }
    }

    fn node(&self, form: Form) -> &Node {
        &self.nodes[form.0]
    }

    /// Whether a form depends on a variable.
    pub(super) fn mentions(&self, form: Form, variable: usize) -> bool {
        self.node(form).mentioned.contains(&variable)
    }

    /// Whether it is a variable plus what doesn't depend on it, but for multiples of 2⁶⁴.
    pub(super) fn shifts(&self, form: Form, variable: usize) -> bool {
        self.node(form).shifted.contains(&variable)
    }
}

/// The values of forms for sizes and variables, each computed once while variables stay as they are.
pub(super) struct Values<'f> {
    forms: &'f Forms,
    sizes: &'f dyn Fn(&str) -> Option<i64>,
    variables: Vec<Option<i64>>,
    /// How often variables have been set.
    now: u64,
    /// By form, since when it has which value.
    known: Vec<Option<(u64, Option<i128>)>>,
}

impl<'f> Values<'f> {
    /// Those of so many variables, none of which has a value yet.
    pub(super) fn new(
        forms: &'f Forms,
        sizes: &'f dyn Fn(&str) -> Option<i64>,
        variables: usize,
    ) -> Values<'f> {
        Values {
            forms,
            sizes,
            variables: vec![None; variables],
            now: 0,
            known: vec![None; forms.nodes.len()],
        }
    }

    pub(super) fn set(&mut self, variable: usize, value: Option<i64>) {
        self.variables[variable] = value;
        self.now += 1;
    }

    /// A form's value; `None` where a name or a variable has none, or an extent exceeds all numbers.
    pub(super) fn of(&mut self, form: Form) -> Option<i128> {
        let mut open = vec![form];
        while let Some(&form) = open.last() {
            if self.known(form).is_some() {
                open.pop();
                continue;
            }
            let value = match &self.forms.node(form).made {
                Made::Constant(number) => Some(*number),
                Made::Extent(dim) => match dim.evaluate(self.sizes) {
                    Ok(extent) => Some(extent as i128),
                    Err(DimError::Unbound(_) | DimError::Overflow(_)) => None,
                    Err(DimError::Negative(..) | DimError::Divisor(..) | DimError::Logarithm(..)) => Some(0),
                },
                Made::Variable(variable) => self.variables[*variable].map(i128::from),
                Made::Cast(dtype, of) => match self.known(*of) {
                    Some(number) => number.map(|number| wrap_int(*dtype, number)),
                    None => {
                        open.push(*of);
                        continue;
                    }
                },
                Made::Binary(op, dtype, operands) => match operands.map(|operand| self.known(operand)) {
                    [Some(a), Some(b)] => a.zip(b).map(|(a, b)| wrap_int(*dtype, op.int()(a, b, *dtype))),
                    [None, _] => {
                        open.push(operands[0]);
                        continue;
                    }
                    [_, None] => {
                        open.push(operands[1]);
                        continue;
                    }
                },
            };
            self.known[form.0] = Some((self.now, value));
        }
        self.known(form).expect("it was computed last")
    }

    /// What a form is known to be, unless a variable has changed that it may depend on.
    fn known(&self, form: Form) -> Option<Option<i128>> {
        let (since, value) = self.known[form.0]?;
        (since == self.now || self.forms.node(form).mentioned.is_empty()).then_some(value)
    }
}
