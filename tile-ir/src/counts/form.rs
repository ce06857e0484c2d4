//! Integer scalars of a kernel as forms of its sizes, of block indices and of loop counters.
//!
//! A form has the value of the scalar where arithmetic on indices doesn't wrap, which what a launch checks of indices
//! relies on, too. What comes from data has none. Each is kept once, however often others are made of it, so that there are
//! no more forms than ops.

use crate::dim::Dim;
use crate::ops::BinaryOp;
use std::collections::{BTreeSet, HashMap};

/// An integer that a launch decides, by its place among [`Forms`]. Those that are made alike are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form(usize);

/// What a form is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Made {
    /// An extent.
    Known(Dim),
    /// A variable by its number: the axes of the grid come first, then loop counters.
    Variable(usize),
    /// Two forms combined.
    Binary(BinaryOp, [Form; 2]),
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
    /// Those of which it is one plus what doesn't depend on it.
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

    /// Two forms combined; `None` where the op has no form.
    pub(super) fn combined(&mut self, op: BinaryOp, operands: [Form; 2]) -> Option<Form> {
        compute(op, 1, 1).map(|_| self.add(Made::Binary(op, operands)))
    }

    fn mentioned(&self, made: &Made) -> BTreeSet<usize> {
        match made {
            Made::Known(_) => BTreeSet::new(),
            Made::Variable(variable) => BTreeSet::from([*variable]),
            Made::Binary(_, [a, b]) => &self.node(*a).mentioned | &self.node(*b).mentioned,
        }
    }

    fn shifted(&self, made: &Made) -> BTreeSet<usize> {
        let alone = |a: Form, b: Form| &self.node(a).shifted - &self.node(b).mentioned;
        match *made {
            Made::Variable(variable) => BTreeSet::from([variable]),
            Made::Binary(BinaryOp::Add, [a, b]) => &alone(a, b) | &alone(b, a),
            Made::Binary(BinaryOp::Sub, [a, b]) => alone(a, b),
            Made::Known(_) | Made::Binary(..) => BTreeSet::new(),
        }
    }

    fn node(&self, form: Form) -> &Node {
        &self.nodes[form.0]
    }

    /// Whether a form depends on a variable.
    pub(super) fn mentions(&self, form: Form, variable: usize) -> bool {
        self.node(form).mentioned.contains(&variable)
    }

    /// Whether it is a variable plus what doesn't depend on it.
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
    known: Vec<Option<(u64, Option<i64>)>>,
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

    /// A form's value; `None` where a name or a variable has none, or the number doesn't fit.
    pub(super) fn of(&mut self, form: Form) -> Option<i64> {
        let mut open = vec![form];
        while let Some(&form) = open.last() {
            if self.known(form).is_some() {
                open.pop();
                continue;
            }
            let value = match &self.forms.node(form).made {
                Made::Known(dim) => dim.evaluate_signed(self.sizes).ok(),
                Made::Variable(variable) => self.variables[*variable],
                Made::Binary(op, operands) => match operands.map(|operand| self.known(operand)) {
                    [Some(a), Some(b)] => a.zip(b).and_then(|(a, b)| compute(*op, a, b)),
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
    fn known(&self, form: Form) -> Option<Option<i64>> {
        let (since, value) = self.known[form.0]?;
        (since == self.now || self.forms.node(form).mentioned.is_empty()).then_some(value)
    }
}

/// What an op makes of two numbers; `None` where it has no form, or the result doesn't fit.
fn compute(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::SaturatingSub => Some(a.saturating_sub(b).max(0)),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div => Some(a.checked_div(b).unwrap_or(0)),
        BinaryOp::Rem => Some(a.checked_rem(b).unwrap_or(a)),
        BinaryOp::RemEuclid => Some(a.checked_rem_euclid(b).unwrap_or(a)),
        BinaryOp::DivCeil if a >= 0 && b > 0 => Some((a - 1).div_euclid(b) + 1),
        BinaryOp::DivFloor if a >= 0 && b > 0 => Some(a / b),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::And => Some(a & b),
        BinaryOp::Or => Some(a | b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::Shl if (0..63).contains(&b) => a.checked_mul(1 << b),
        BinaryOp::Shr if (0..64).contains(&b) => Some(a >> b),
        _ => None,
    }
}
