//! Methods that move a tensor: views of views. What a movement means is `tile_ir::view`'s; here its arguments
//! are read.

use crate::lower::functions::calls::Arguments;
use crate::lower::ops::operators::{as_dim, not_a_count};
use crate::lower::{Lowered, Lowering};
use crate::signature::MAX_RANK;
use crate::span::{Span, Spanned};
use crate::value::{Val, Windowed};
use syn::ExprMethodCall;
use tile_ir::types::TensorType;
use tile_ir::view::{TensorMovement, Windows};
use tile_ir::{DType, Dim, Elem, Op, Type, ValueId};

/// How a movement is written: its name, how many arguments it takes, an example.
const USAGES: [(&str, usize, &str); 15] = [
    ("permute", 1, "permute([1, 0])"),
    ("t", 0, "t()"),
    ("transpose", 2, "transpose(0, 1)"),
    ("flip", 1, "flip([0])"),
    ("shrink", 1, "shrink([(begin, end), …])"),
    ("pad", 1, "pad([(before, after), …])"),
    ("shift", 2, "shift(axis, by)"),
    ("step", 2, "step(axis, distance)"),
    ("expand", 1, "expand([m, n])"),
    ("unsqueeze", 1, "unsqueeze(axis)"),
    ("squeeze", 1, "squeeze(axis)"),
    ("unflatten", 2, "unflatten(axis, [m / 4, 4])"),
    ("flatten", 2, "flatten(first, last)"),
    ("unfold", 3, "unfold(axis, size, step)"),
    ("select", 2, "select(axis, index)"),
];

/// The names of these methods.
pub(in crate::lower) fn method_names() -> impl Iterator<Item = &'static str> {
    USAGES.iter().map(|(name, ..)| *name)
}

impl Lowering {
    /// A method that moves a tensor; `None` where it isn't one.
    pub(in crate::lower) fn movement(
        &mut self,
        tensor: ValueId,
        ty: &TensorType,
        call: &ExprMethodCall,
    ) -> Lowered<Option<Val>> {
        let Some((movement, arguments)) = self.called_movement(ty.extents.len(), call)? else {
            return Ok(None);
        };
        let mut operands = vec![tensor];
        if Windows::are_made_by(&movement, ty) {
            let windowed = Windowed { tensor, windows: Windows::of(ty), selected: Vec::new() };
            return self.moved_windows(&windowed, &movement, &arguments, call).map(Some);
        }
        if matches!(movement, TensorMovement::Select { .. }) {
            operands.push(self.selected_index(&arguments.values[1], arguments.spans[1])?);
        }
        let places = [vec![call.receiver.span()], arguments.spans].concat();
        self.make_view(Op::View(movement), &operands, call.span(), &places)
            .map(|moved| Some(Val::Tensor(moved)))
    }

    /// A method that moves windows over a margin; `None` where it isn't one.
    pub(in crate::lower) fn movement_of_windows(
        &mut self,
        windowed: &Windowed,
        call: &ExprMethodCall,
    ) -> Lowered<Option<Val>> {
        match self.called_movement(windowed.windows.extents().len(), call)? {
            Some((movement, arguments)) => {
                self.moved_windows(windowed, &movement, &arguments, call).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The movement of a tensor of this rank that a call says, with its arguments; `None` where the method isn't one.
    fn called_movement(
        &mut self,
        rank: usize,
        call: &ExprMethodCall,
    ) -> Lowered<Option<(TensorMovement, Arguments)>> {
        let name = call.method.to_string();
        let Some(&(_, expected, usage)) = USAGES.iter().find(|(known, ..)| *known == name) else {
            return Ok(None);
        };
        let arguments = self.arguments(&name, &call.args, expected, usage, call.span())?;
        if rank >= MAX_RANK && matches!(name.as_str(), "unsqueeze" | "unflatten" | "unfold") {
            let message = format!("a tensor has 1 to {MAX_RANK} axes, and `{name}` would make {}", rank + 1);
            let help = "take an axis away before it, by `select`, `squeeze` or `flatten`";
            return self.error(call.method.span(), message, help);
        }
        let movement = self.movement_of(&name, rank, usage, &arguments, call.span())?;
        if let TensorMovement::Flatten { start, end } = movement
            && call.turbofish.is_none()
            && self.in_own_text()
        {
            let left = (rank + start).saturating_sub(end);
            self.rewrites.ranks.insert(self.occurrence(call.method.span()), left);
        }
        Ok(Some((movement, arguments)))
    }

    /// The index of a `select`, which must be known where views are made.
    fn selected_index(&mut self, index: &Val, span: Span) -> Lowered<ValueId> {
        let number =
            |lowering: &mut Lowering| lowering.number(index, &DType::Index.into(), "the index", span);
        let index = self.at_top_level(number)?;
        if self.is_at_top_level(index) {
            return Ok(index);
        }
        let (place, before) = match self.nesting {
            0 => ("after a `return`", "the `return`"),
            _ => ("in a loop or branch", "the loop or branch"),
        };
        let message = format!("the index of `select` is computed {place}, and views are made before it");
        let help = format!(
            "compute the index before {before}, or keep the axis: tiles of a view with extent 1 along it are loaded \
             at any index, and so are elements by `gather`; the counter of `for k in 0..3` is known"
        );
        self.error(span, message, &help)
    }

    fn movement_of(
        &mut self,
        name: &str,
        rank: usize,
        usage: &str,
        arguments: &Arguments,
        span: Span,
    ) -> Lowered<TensorMovement> {
        let (values, spans) = (&arguments.values, &arguments.spans);
        let axis = |lowering: &mut Self, i: usize| lowering.axis(&values[i], rank, spans[i]);
        let count = |lowering: &mut Self, i: usize| lowering.count(&values[i], spans[i]);
        Ok(match name {
            "permute" => TensorMovement::Permute(self.listed_axes(&values[0], rank, usage, spans[0])?),
            "flip" => TensorMovement::Flip(self.listed_axes(&values[0], rank, usage, spans[0])?),
            "t" if rank != 2 => {
                let message = format!("`t` exchanges the axes of a matrix, but the tensor has rank {rank}");
                return self.error(span, message, "use `transpose(first, second)` or `permute([…])`");
            }
            "t" => TensorMovement::Permute(vec![1, 0]),
            "transpose" => {
                let (first, second) = (axis(self, 0)?, axis(self, 1)?);
                let mut order: Vec<usize> = (0..rank).collect();
                order.swap(first, second);
                TensorMovement::Permute(order)
            }
            "shrink" => TensorMovement::Shrink(self.pairs(&values[0], usage, spans[0])?),
            "pad" => TensorMovement::Pad(self.pairs(&values[0], usage, spans[0])?),
            "shift" => {
                TensorMovement::Shift { axis: axis(self, 0)?, by: self.shift_distance(&values[1], spans[1])? }
            }
            "step" => TensorMovement::Step { axis: axis(self, 0)?, step: count(self, 1)? },
            "expand" => TensorMovement::Expand(self.counts(&values[0], usage, spans[0])?),
            // A new axis may stand behind the last.
            "unsqueeze" => TensorMovement::Unsqueeze(self.new_axis(&values[0], rank, spans[0])?),
            "squeeze" => TensorMovement::Squeeze(axis(self, 0)?),
            "unflatten" => {
                let (axis, extents) = (axis(self, 0)?, self.counts(&values[1], usage, spans[1])?);
                if extents.len() != 2 {
                    let message = format!("`unflatten` makes two axes of one, not {}", extents.len());
                    return self.error(spans[1], message, "call it again for more");
                }
                TensorMovement::Unflatten { axis, extents }
            }
            "flatten" => {
                let start = axis(self, 0)?;
                if as_dim(&values[1]).and_then(|end| end.as_const()) == i64::try_from(rank).ok() {
                    let message = format!("axis {rank} is out of range: the rank is {rank}");
                    let help = format!(
                        "`flatten` joins the last axis that it is given, too: write `flatten({start}, {})`",
                        rank.saturating_sub(1)
                    );
                    return self.error(spans[1], message, &help);
                }
                TensorMovement::Flatten { start, end: axis(self, 1)? }
            }
            "unfold" => {
                TensorMovement::Unfold { axis: axis(self, 0)?, size: count(self, 1)?, step: count(self, 2)? }
            }
            _ => TensorMovement::Select { axis: axis(self, 0)? },
        })
    }

    fn array<'v>(&mut self, value: &'v Val, usage: &str, span: Span) -> Lowered<&'v [Val]> {
        match value {
            Val::List(values) => Ok(values),
            Val::Poison => Err(crate::lower::Reported),
            other => {
                let message = format!("this takes an array, not {}", crate::lower::kind(other));
                self.error(span, message, &format!("write `{usage}`"))
            }
        }
    }

    fn listed_axes(&mut self, value: &Val, rank: usize, usage: &str, span: Span) -> Lowered<Vec<usize>> {
        let axes = self.array(value, usage, span)?.to_vec();
        axes.iter().map(|axis| self.axis(axis, rank, span)).collect()
    }

    fn counts(&mut self, value: &Val, usage: &str, span: Span) -> Lowered<Vec<Dim>> {
        let counts = self.array(value, usage, span)?.to_vec();
        counts.iter().map(|count| self.count(count, span)).collect()
    }

    fn pairs(&mut self, value: &Val, usage: &str, span: Span) -> Lowered<Vec<(Dim, Dim)>> {
        let pairs = self.array(value, usage, span)?.to_vec();
        let mut counts = Vec::new();
        for pair in &pairs {
            let Val::List(parts) = pair else {
                return self.error(span, "each axis takes a pair", &format!("write `{usage}`"));
            };
            let [first, second] = parts.as_slice() else {
                let message = format!("each axis takes a pair, not {} numbers", parts.len());
                return self.error(span, message, &format!("write `{usage}`"));
            };
            counts.push((self.count(first, span)?, self.count(second, span)?));
        }
        Ok(counts)
    }

    /// A number of elements: known when the kernel is launched.
    fn count(&mut self, value: &Val, span: Span) -> Lowered<Dim> {
        self.share(value, &DType::Index.into(), "a number of elements", span)?;
        match (as_dim(value), value) {
            (Some(dim), _) => Ok(dim),
            (None, Val::Poison) => Err(crate::lower::Reported),
            (None, Val::Data(data)) => {
                let message =
                    format!("how a tensor is moved is computed in the kernel ({})", self.display_type(*data));
                let help = if matches!(self.ty(*data), Type::Scalar(Elem::Known(DType::Index))) {
                    "use literals, const parameters and run-time sizes, to which arguments belong that a condition or an extent \
                     names, as in `where(by > 0)`; `select` takes any index"
                } else {
                    "use literals, const parameters and run-time sizes; `select` takes any index"
                };
                self.error(span, message, help)
            }
            (None, other) => self.error(
                span,
                not_a_count("this", other),
                "use literals, const parameters and run-time sizes",
            ),
        }
    }

    /// How far `shift` goes: the one argument that may be negative.
    fn shift_distance(&mut self, value: &Val, span: Span) -> Lowered<Dim> {
        self.share(value, &DType::I32.into(), "how far `shift` goes", span)?;
        match value {
            Val::Int(by) if i32::try_from(by.value).is_ok() => Ok(Dim::from(by.value as i64)),
            Val::Poison => Err(crate::lower::Reported),
            _ => self.error(
                span,
                "`shift` goes a literal number of elements",
                "write 1, -1, …; `pad` and `shrink` take sizes",
            ),
        }
    }
}
