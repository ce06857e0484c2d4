//! Arrays, tuples and structs of values: their parts, and assignment to them. They exist only while a kernel
//! is lowered; the IR sees their parts.

use super::arguments::is_of_arguments;
use super::known::known;
use super::ops::operators::{common_shape, has_one_element};
use super::{Lowered, Lowering, Reported, kind};
use crate::assigned::member_name;
use crate::diagnostic::Diagnostic;
use crate::scope::{Changes, VariableId};
use crate::span::{Span, Spanned};
use crate::structs::Struct;
use crate::value::{Float, Int, Val};
use std::collections::BTreeMap;
use syn::{Expr, ExprField, ExprIndex, ExprRepeat, ExprStruct, Member, UnOp};
use tile_ir::ops::infer::display_shape;
use tile_ir::{DType, ValueId};

/// The longest array of repeated values.
const MAX_LENGTH: i128 = 256;

/// One step into a value: an element of an array, a field of a tuple or struct.
#[derive(Clone, Debug)]
enum Step {
    Element(usize),
    Field(String),
}

/// A variable, or a part of one, that is assigned to.
pub(super) struct Place {
    variable: VariableId,
    steps: Vec<Step>,
    /// Its text in messages.
    name: String,
}

impl Lowering {
    /// `[value; N]`.
    pub(super) fn repeat_value(&mut self, repeat: &ExprRepeat) -> Lowered<Val> {
        let value = self.expression(&repeat.expr)?;
        let length = self.expression(&repeat.len)?;
        match known(&length).and_then(|length| usize::try_from(length).ok()) {
            Some(length) if length as i128 <= MAX_LENGTH => {
                self.of_one_type(vec![value; length], repeat.span()).map(Val::List)
            }
            Some(length) => {
                let message = format!("an array of {length} values is too long: each is a value of its own");
                self.error(repeat.len.span(), message, "use one tile with another axis")
            }
            None => {
                let help = "write the number, or a `const` inside the kernel; use one tile with another axis for a const parameter";
                self.error(repeat.len.span(), "the length of an array of values must be a number", help)
            }
        }
    }

    pub(super) fn index(&mut self, index: &ExprIndex) -> Lowered<Val> {
        let base = self.expression(&index.expr)?;
        let step = self.element_step(&base, &index.index)?;
        self.part(&base, &step, index.span())
    }

    pub(super) fn field(&mut self, field: &ExprField) -> Lowered<Val> {
        let base = self.expression(&field.base)?;
        self.part(&base, &Step::Field(member_name(&field.member)), field.member.span())
    }

    fn element_step(&mut self, base: &Val, index: &Expr) -> Lowered<Step> {
        self.refuse_index(base, index.span())?;
        if let (Expr::Range(_), Val::List(_)) = (index, base) {
            let help =
                "write an iterator, `a.iter().skip(1).take(2)`, or a pattern, `let [first, rest @ ..] = a;`";
            return self.error(index.span(), "a kernel has no slices of arrays", help);
        }
        let value = self.expression(index)?;
        self.share(&value, &DType::Index.into(), "an index of an array", index.span())?;
        match known(&value).and_then(|at| usize::try_from(at).ok()) {
            Some(at) => Ok(Step::Element(at)),
            None if matches!(value, Val::Poison) => Err(Reported),
            None if is_of_arguments(base) => self.unknown_argument(index.span()),
            None => {
                let mut help = "an array of values is not in memory: index it by a literal, by the counter of a `for` with literal ends, or by what a constant holds there".to_owned();
                if self.is_table(base) {
                    help += "; a tile of places is looked up by `x.lookup(TABLE)`, one that is computed by `Tile::full([1], q as i32).lookup(TABLE).item()`, and a tensor by `table.gather([t])`";
                }
                self.error(index.span(), "the index is known only at run time", &help)
            }
        }
    }

    /// Whether a value is an array of numbers, which a tensor can hold.
    fn is_table(&self, value: &Val) -> bool {
        let is_number = |value: &Val| match value {
            Val::Int(_) | Val::Float(_) | Val::Dim(_) => true,
            Val::Data(value) => self.shape(*value).is_none(),
            _ => false,
        };
        matches!(value, Val::List(values) if values.iter().all(is_number))
    }

    /// Refuses what isn't an array of values, by what is written instead.
    pub(super) fn refuse_index(&mut self, base: &Val, index: Span) -> Lowered<()> {
        let help = match base {
            Val::Data(_) => {
                "`x.take(index, axis)` is a slice at an index, `x.extract([starts], [shape])` a part, `x.gather(indices, axis)` looks up, and a reduction or `.item()` gives a scalar"
            }
            Val::View(_) | Val::WindowsView(..) => "`x.load_masked([i, j])` is the tile at `[i, j]`",
            Val::Tensor(_) => {
                "make a partition view, `let x = x.partition_view([BM, BN]);`, and load a tile of it; `x.gather([rows, columns])` looks up elements at indices"
            }
            _ => return Ok(()),
        };
        self.error(index, format!("{} can't be indexed", self.kind_of(base)), help)
    }

    fn part(&mut self, base: &Val, step: &Step, span: Span) -> Lowered<Val> {
        match (base, step) {
            (Val::List(values), Step::Element(at)) => match values.get(*at) {
                Some(value) => Ok(value.clone()),
                None => {
                    let message =
                        format!("the array has {} elements, and this is element {at}", values.len());
                    self.error(span, message, "elements are numbered from 0")
                }
            },
            (Val::Arguments(values, count), Step::Element(at)) => match values.get(*at) {
                Some(value) => Ok(value.clone()),
                None => {
                    let message =
                        format!("the array has at most {} elements, and this is element {at}", values.len());
                    let help = format!("the kernel's `where` says how large `{count}` may be");
                    self.error(span, message, &help)
                }
            },
            (Val::List(values), Step::Field(name)) => {
                match name.parse::<usize>().ok().and_then(|at| values.get(at)) {
                    Some(value) => Ok(value.clone()),
                    None => self.error(span, "there is no such field", "tuples have fields `.0`, `.1`, …"),
                }
            }
            (Val::Record(..), Step::Element(at)) => self.part(base, &Step::Field(at.to_string()), span),
            (Val::Record(record, fields), Step::Field(name)) => match fields.get(name) {
                Some(value) => Ok(value.clone()),
                None => {
                    let names: Vec<String> = fields.keys().map(|field| format!("`{field}`")).collect();
                    let help = format!("it has {}", names.join(", "));
                    self.error(span, format!("`{record}` has no field `{name}`"), &help)
                }
            },
            (Val::Poison, _) => Err(Reported),
            (other, Step::Field(name)) => {
                let message = format!("{} has no field `{name}`", self.kind_of(other));
                let help = super::names::help_of_field(name);
                self.error(span, message, help)
            }
            (other, Step::Element(_)) => {
                let message = format!("{} can't be indexed", kind(other));
                self.error(span, message, "only arrays of values have elements")
            }
        }
    }

    /// `State { m, l: sum, ..old }`. rustc checks the fields.
    pub(super) fn record(&mut self, record: &ExprStruct) -> Lowered<Val> {
        let values = record.fields.iter().map(|field| self.expression(&field.expr));
        // Each is looked at, so that each mistake is reported; what they leave out comes after them, as in Rust.
        let values: Vec<Lowered<Val>> = values.collect();
        let mut fields = match &record.rest {
            None => BTreeMap::new(),
            Some(rest) => match self.expression(rest)? {
                Val::Record(_, fields) => fields,
                Val::Poison => return Err(Reported),
                other => {
                    let message = format!("`..` takes a struct, not {}", kind(&other));
                    return self.error(rest.span(), message, "write `State { m, ..old }`");
                }
            },
        };
        for (field, value) in record.fields.iter().zip(values) {
            let name = member_name(&field.member);
            let value = self.field_value(&record.path, &name, value?, field.expr.span())?;
            fields.insert(name, value);
        }
        Ok(Val::Record(Struct::named(&record.path, &self.text), fields))
    }

    /// Assigns to a variable, a part of one, or the variables of a pattern such as `(a, b)`.
    pub(super) fn set(&mut self, target: &Expr, value: Lowered<Val>, span: Span) -> Lowered<Val> {
        match target {
            Expr::Paren(inner) => self.set(&inner.expr, value, span),
            Expr::Infer(_) => value.map(|_| Val::Unit),
            Expr::Tuple(tuple) => self.set_all(target, tuple.elems.iter().collect(), value, span),
            Expr::Array(array) => self.set_all(target, array.elems.iter().collect(), value, span),
            Expr::Struct(record) => {
                let fields = match value? {
                    Val::Record(_, fields) => fields,
                    other => return self.cannot_take_apart(target, &other),
                };
                for field in &record.fields {
                    let part = fields.get(&member_name(&field.member)).cloned().unwrap_or(Val::Poison);
                    self.set(&field.expr, Ok(part), span)?;
                }
                Ok(Val::Unit)
            }
            target => self.set_place(target, value, span),
        }
    }

    fn set_all(
        &mut self,
        whole: &Expr,
        targets: Vec<&Expr>,
        value: Lowered<Val>,
        span: Span,
    ) -> Lowered<Val> {
        let values = match value? {
            Val::List(values) if values.len() == targets.len() => values,
            other => return self.cannot_take_apart(whole, &other),
        };
        for (target, value) in targets.into_iter().zip(values) {
            self.set(target, Ok(value), span)?;
        }
        Ok(Val::Unit)
    }

    fn cannot_take_apart<T>(&mut self, target: &Expr, value: &Val) -> Lowered<T> {
        let message = match value {
            Val::Poison => return Err(Reported),
            Val::List(values) => format!("the value has {} parts", values.len()),
            other => format!("{} can't be taken apart", kind(other)),
        };
        self.error(target.span(), message, "the two sides of an assignment have the same parts")
    }

    fn set_place(&mut self, target: &Expr, value: Lowered<Val>, span: Span) -> Lowered<Val> {
        let place = self.place(target)?;
        self.set_at(target, &place, value, span)
    }

    /// Assigns to a place, which stands as `target` in the source.
    pub(super) fn set_at(
        &mut self,
        target: &Expr,
        Place { variable, steps, name }: &Place,
        value: Lowered<Val>,
        span: Span,
    ) -> Lowered<Val> {
        let Val::Poison = self.scopes.variables[*variable].value else {
            return self.set_part(target, *variable, steps, name, value, span);
        };
        value.and(Err(Reported))
    }

    fn set_part(
        &mut self,
        target: &Expr,
        id: VariableId,
        steps: &[Step],
        name: &str,
        value: Lowered<Val>,
        span: Span,
    ) -> Lowered<Val> {
        let variable = self.scopes.variables[id].clone();
        if let Some(closure) = self.closure.as_ref().filter(|closure| id < closure.own_variables) {
            let function = closure.function;
            let message = format!("a closure of `{function}` can't assign to `{name}`, which is outside");
            let diagnostic = Diagnostic::new(target.span(), message)
                .label(variable.span, format!("`{}` is defined here", variable.name))
                .help("give what changes as a result: fold a tuple");
            return self.report(diagnostic);
        }
        if variable.changes != Changes::Allowed {
            let whole = &variable.name;
            let message = format!("`{whole}` is assigned to, but isn't mutable");
            let help = match variable.changes {
                Changes::Never => {
                    let other = whole.to_lowercase();
                    format!("begin with a variable that is: `let mut {other} = {whole};`")
                }
                _ => format!("write `mut {whole}` where it is bound"),
            };
            let diagnostic = Diagnostic::new(target.span(), message)
                .label(variable.span, format!("`{whole}` is defined here"))
                .help(help);
            return self.report(diagnostic);
        }
        if let (Val::Arguments(..), Some(_)) = (&variable.value, steps.first()) {
            let message = format!("the elements of `{}` can't be assigned to", variable.name);
            let help = "how many there are is known only when an instance is made: give one a name, `let mut first = weights[0];`";
            return self.error(target.span(), message, help);
        }
        let Ok(value) = value else {
            self.scopes.variables[id].value = Val::Poison;
            return Err(Reported);
        };
        let value = match (&variable.value, self.declared.get(&id).cloned()) {
            (Val::Unset, Some(ty)) => self.annotated(&ty, value, span)?,
            _ => value,
        };
        let mut old = variable.value.clone();
        for step in steps {
            old = self.part(&old, step, target.span())?;
        }
        let value = self.same_type_as(&old, &format!("`{name}`"), variable.span, value, span)?;
        let value = self.named(value);
        if let Val::Data(new) = &value {
            self.kernel.name_value(*new, &variable.name);
        }
        *part_mut(&mut self.scopes.variables[id].value, steps) = value;
        Ok(Val::Unit)
    }

    /// What stands at a place by now.
    pub(super) fn value_at(&mut self, place: &Place, span: Span) -> Lowered<Val> {
        let variable = &self.scopes.variables[place.variable];
        let (mut value, name) = (variable.value.clone(), variable.name.clone());
        if matches!(value, Val::Unset) {
            return self.unassigned(&name, span);
        }
        for step in &place.steps {
            value = self.part(&value, step, span)?;
        }
        match value {
            Val::Poison => Err(Reported),
            value => Ok(value),
        }
    }

    /// What is assigned to, whose indices are computed here, once.
    pub(super) fn place(&mut self, target: &Expr) -> Lowered<Place> {
        match target {
            Expr::Paren(inner) => self.place(&inner.expr),
            // `*self` of a method, where `self` is the value.
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.place(&unary.expr),
            Expr::Path(path) => {
                let name = path.path.get_ident().map(ToString::to_string).unwrap_or_default();
                match self.scopes.find(&name) {
                    Some(variable) => Ok(Place { variable, steps: Vec::new(), name }),
                    None => self.unknown_name(&name, target.span()),
                }
            }
            Expr::Index(index) => {
                let mut place = self.place(&index.expr)?;
                let base = self.value_at(&place, index.expr.span())?;
                let step = self.element_step(&base, &index.index)?;
                if let Step::Element(at) = step {
                    place.name += &format!("[{at}]");
                }
                place.steps.push(step);
                Ok(place)
            }
            Expr::Field(field) => {
                let mut place = self.place(&field.base)?;
                let name = member_name(&field.member);
                place.name += &format!(".{name}");
                place.steps.push(match (&field.member, name.parse()) {
                    (Member::Unnamed(_), Ok(at)) => Step::Element(at),
                    _ => Step::Field(name),
                });
                Ok(place)
            }
            other => self.error(
                other.span(),
                "only a variable can be assigned to",
                "store a tile with `store_masked`",
            ),
        }
    }

    /// A variable keeps its type, as in Rust; a tile also keeps its shape. `name` is the variable, in quotes.
    pub(super) fn same_type_as(
        &mut self,
        old: &Val,
        name: &str,
        defined: Span,
        value: Val,
        span: Span,
    ) -> Lowered<Val> {
        let (before, after) = match (old, &value) {
            (Val::Poison, _) | (_, Val::Poison) => return Err(Reported),
            (_, Val::Never) => return Ok(old.clone()),
            (Val::Unset, _) => return Ok(value),
            (Val::Data(old), Val::Data(new)) => (*old, *new),
            (Val::Data(old), Val::Int(_) | Val::Float(_) | Val::Dim(_)) if self.shape(*old).is_none() => {
                let elem = self.elem(*old);
                return self.number(&value, &elem, &format!("the new value of {name}"), span).map(Val::Data);
            }
            (Val::Int(_) | Val::Dim(_), Val::Dim(_) | Val::Int(_)) | (Val::Float(_), Val::Float(_)) => {
                return self.known_like(old, value, name, span);
            }
            (Val::Int(_) | Val::Float(_) | Val::Dim(_), Val::Data(new)) if self.shape(*new).is_none() => {
                return self.known_like(old, value, name, span);
            }
            (Val::List(old), Val::List(new)) if old.len() == new.len() => {
                let parts = old.iter().zip(new.clone()).enumerate().map(|(i, (old, new))| {
                    self.same_type_as(old, &element_of(name, &format!("[{i}]")), defined, new, span)
                });
                return parts.collect::<Lowered<_>>().map(Val::List);
            }
            (Val::Record(_, old), Val::Record(record, new)) if old.keys().eq(new.keys()) => {
                let parts = old.iter().zip(new.clone()).map(|((field, old), (_, new))| {
                    let part =
                        self.same_type_as(old, &element_of(name, &format!(".{field}")), defined, new, span)?;
                    Ok((field.clone(), part))
                });
                return parts.collect::<Lowered<_>>().map(|fields| Val::Record(record.clone(), fields));
            }
            (old, new) => {
                let message = format!("{name} is {}, but the new value is {}", kind(old), kind(new));
                return self.error(span, message, "use another variable");
            }
        };
        self.unify(before, after, &format!("assigning to {name}"), span)?;
        if self.shape(before) != self.shape(after) {
            let (was, is) = (self.display_type(before), self.display_type(after));
            let diagnostic = Diagnostic::new(span, format!("{name} is {was}, but the new value is {is}"))
                .label(defined, format!("{} is defined here", root(name)))
                .help(self.help_of_shapes(before, after));
            return self.report(diagnostic);
        }
        Ok(value)
    }

    /// A number of the type of one that is known.
    fn known_like(&mut self, old: &Val, value: Val, name: &str, span: Span) -> Lowered<Val> {
        let what = format!("the new value of {name}");
        let elem = match old {
            Val::Dim(_) => DType::Index.into(),
            old => old.shared().cloned().unwrap_or_else(|| self.elements.unknown()),
        };
        match value {
            Val::Data(new) => self.require_elem(new, &elem, &what, span).map(|()| value),
            Val::Dim(_) => self.share(old, &DType::Index.into(), &what, span).map(|()| value),
            Val::Int(_) if matches!(old, Val::Dim(_)) => self.static_dim(&value, &what, span).map(Val::Dim),
            Val::Int(int @ Int { shared: None, .. }) => {
                Ok(self.named(Val::Int(Int { shared: Some(elem), ..int })))
            }
            Val::Float(float @ Float { shared: None, .. }) => {
                Ok(self.named(Val::Float(Float { shared: Some(elem), ..float })))
            }
            value => self.share(&value, &elem, &what, span).map(|()| value),
        }
    }

    /// What to write where a variable is given a tile of another shape.
    fn help_of_shapes(&self, before: ValueId, after: ValueId) -> String {
        if let (None, Some(shape)) = (self.shape(before), self.shape(after)) {
            let item =
                if has_one_element(&shape) { "make a number of the one element, `.item()`, or " } else { "" };
            return format!(
                "a variable keeps its shape: {item}begin with a tile, `Tile::full({}, …)`",
                display_shape(&shape)
            );
        }
        let shapes = self.shape(before).zip(self.shape(after));
        let repeated = shapes.and_then(|(was, is)| Some((common_shape(&was, &is)?, was, is)));
        match repeated {
            Some((common, was, _)) if common == was => format!(
                "a variable keeps its shape: repeat the new value, `.broadcast({})`, or use another variable",
                display_shape(&common)
            ),
            Some((common, _, is)) if common == is => format!(
                "a variable keeps its shape: repeat the first value where it is defined, `.broadcast({})`, or use another variable",
                display_shape(&common)
            ),
            _ => "a variable keeps its shape; use another variable".to_owned(),
        }
    }
}

/// A part of a place, in its quotes.
fn element_of(place: &str, part: &str) -> String {
    match place.strip_suffix('`') {
        Some(place) => format!("{place}{part}`"),
        None => format!("{place}{part}"),
    }
}

/// The variable of a place, in its quotes.
fn root(place: &str) -> String {
    let end = place.strip_suffix('`').map_or("", |_| "`");
    let place = place.strip_suffix('`').unwrap_or(place);
    format!("{}{end}", place.split(['.', '[']).next().unwrap_or(place))
}

/// The part of a value that steps lead to, which was looked at before.
fn part_mut<'v>(value: &'v mut Val, steps: &[Step]) -> &'v mut Val {
    let Some((step, rest)) = steps.split_first() else { return value };
    let inner = match (value, step) {
        (Val::List(values), Step::Element(at)) => &mut values[*at],
        (Val::Record(_, fields), step) => {
            let name = match step {
                Step::Element(at) => &at.to_string(),
                Step::Field(name) => name,
            };
            fields.get_mut(name).expect("the part was read before it is written")
        }
        _ => unreachable!("the part was read before it is written"),
    };
    part_mut(inner, rest)
}
