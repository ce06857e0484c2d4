//! Methods and functions along the axes of tiles: reductions, scans, sorting, histograms. Several axes are reduced
//! as one, their elements in row-major order; `tile::kernel` merges them in the same way.

use crate::lower::{Lowered, Lowering};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::ExprMethodCall;
use tile_ir::ops::infer::display_shape;
use tile_ir::ops::{ReduceOp, ScanMode};
use tile_ir::{Dim, Op, ValueId};

/// A tile whose axes to reduce are one.
pub(in crate::lower) struct Merged {
    pub(in crate::lower) tile: ValueId,
    /// The axis to reduce.
    pub(in crate::lower) axis: usize,
    /// Its extent: the product of those that were merged.
    pub(in crate::lower) extent: Dim,
    /// The shape of the whole reduction's result, in which every reduced axis has extent 1.
    reduced: Vec<Dim>,
}

impl Lowering {
    /// The axes that an argument names, in ascending order: one, or an array of them.
    pub(in crate::lower) fn axes(&mut self, value: &Val, rank: usize, span: Span) -> Lowered<Vec<usize>> {
        let Val::List(values) = value else { return Ok(vec![self.axis(value, rank, span)?]) };
        let axes = values.iter().map(|value| self.axis(value, rank, span));
        let mut axes = axes.collect::<Lowered<Vec<usize>>>()?;
        axes.sort_unstable();
        if axes.is_empty() {
            return self.error(span, "no axis is named", "write one axis, or an array of them: `[0, 1]`");
        }
        if let Some(pair) = axes.windows(2).find(|pair| pair[0] == pair[1]) {
            return self.error(span, format!("axis {} is named twice", pair[0]), "name each axis once");
        }
        Ok(axes)
    }

    /// Makes axes (ascending) one, in row-major order of their elements.
    pub(in crate::lower) fn merge(&mut self, tile: ValueId, axes: &[usize], span: Span) -> Lowered<Merged> {
        let shape = self.shape(tile).unwrap_or_default();
        let extent = axes.iter().fold(Dim::from(1), |extent, &axis| extent * shape[axis].clone());
        let mut reduced = shape.clone();
        axes.iter().for_each(|&axis| reduced[axis] = Dim::from(1));
        let (first, last) = (axes[0], axes[axes.len() - 1]);
        if axes.len() == 1 {
            return Ok(Merged { tile, axis: first, extent, reduced });
        }
        let adjacent = last - first + 1 == axes.len();
        let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
        let (tile, axis) = if adjacent {
            (tile, first)
        } else {
            let order = [kept.as_slice(), axes].concat();
            (self.emit_one(Op::Permute(order), &[tile], span, &[span])?, kept.len())
        };
        let mut merged: Vec<Dim> = kept.iter().map(|&axis| shape[axis].clone()).collect();
        merged.insert(axis, extent.clone());
        let tile = self.emit_one(Op::Reshape(merged), &[tile], span, &[span])?;
        Ok(Merged { tile, axis, extent, reduced })
    }

    /// The result of a reduction of [`Self::merge`]'s tile, with the axes that were merged.
    pub(in crate::lower) fn split(
        &mut self,
        result: ValueId,
        merged: &Merged,
        span: Span,
    ) -> Lowered<ValueId> {
        if self.shape(result).as_ref() == Some(&merged.reduced) {
            return Ok(result);
        }
        self.emit_one(Op::Reshape(merged.reduced.clone()), &[result], span, &[span])
    }

    /// What a reducing method's only argument names, merged.
    pub(in crate::lower) fn reduced_axes(
        &mut self,
        tile: ValueId,
        call: &ExprMethodCall,
        usage: &str,
    ) -> Lowered<Merged> {
        let name = call.method.to_string();
        let arguments = self.arguments(&name, &call.args, 1, usage, call.span())?;
        let rank = self.shape(tile).map_or(0, |shape| shape.len());
        let axes = self.axes(&arguments.values[0], rank, arguments.spans[0])?;
        self.merge(tile, &axes, call.receiver.span())
    }

    /// `x.sum(axis)` and its kin.
    pub(in crate::lower) fn reduce(
        &mut self,
        op: ReduceOp,
        tile: ValueId,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = op.method();
        let arguments = self.arguments(name, &call.args, 1, &format!("x.{name}(axis)"), call.span())?;
        let (value, place) = (&arguments.values[0], arguments.spans[0]);
        let is_axis = match value {
            Val::Int(_) | Val::Dim(_) | Val::List(_) => true,
            Val::Float(_) => false,
            _ => matches!(call.args[0], syn::Expr::Lit(_)),
        };
        if matches!(op, ReduceOp::Max | ReduceOp::Min) && !is_axis {
            let help =
                format!("`x.{name}(axis)` reduces an axis; write `{name}(a, b)` for the elementwise {name}");
            return self.error(place, format!("`{name}` as a method takes an axis"), &help);
        }
        let axes = self.axes(value, self.shape(tile).map_or(0, |shape| shape.len()), place)?;
        let receiver = call.receiver.span();
        let merged = self.merge(tile, &axes, receiver)?;
        let reduced = Op::Reduce { op, axis: merged.axis };
        let result = self.emit_one(reduced, &[merged.tile], call.span(), &[receiver])?;
        self.split(result, &merged, call.span()).map(Val::Data)
    }

    /// `x.cumsum(axis)` and its kin.
    pub(in crate::lower) fn scan_method(
        &mut self,
        op: ReduceOp,
        mode: ScanMode,
        tile: ValueId,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let axis = self.only_axis(tile, call)?;
        let op = Op::Scan { op, axis, mode };
        self.emit_one(op, &[tile], call.span(), &[call.receiver.span()]).map(Val::Data)
    }

    /// The axis that is a method's only argument.
    fn only_axis(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<usize> {
        let name = call.method.to_string();
        let usage = format!("x.{name}(axis)");
        let arguments = self.arguments(&name, &call.args, 1, &usage, call.span())?;
        self.one_axis(&name, tile, &arguments.values[0], arguments.spans[0])
    }

    /// An axis along which order matters, so that it is one.
    pub(in crate::lower) fn one_axis(
        &mut self,
        name: &str,
        tile: ValueId,
        value: &Val,
        span: Span,
    ) -> Lowered<usize> {
        if matches!(value, Val::List(_)) {
            let help = "make the axes one with `reshape` first";
            return self.error(span, format!("`{name}` goes along one axis"), help);
        }
        self.axis(value, self.shape(tile).map_or(0, |shape| shape.len()), span)
    }

    /// Methods that sort or count; `None` where the name isn't one.
    pub(in crate::lower) fn sorting_method(
        &mut self,
        tile: ValueId,
        call: &ExprMethodCall,
    ) -> Lowered<Option<Val>> {
        let name = call.method.to_string();
        let descending = name.ends_with("_descending");
        match name.as_str() {
            "sort" | "sort_descending" => {
                self.sorted(tile, descending, call).map(|both| Some(both[0].clone()))
            }
            "argsort" | "argsort_descending" => {
                self.sorted(tile, descending, call).map(|both| Some(both[1].clone()))
            }
            "top_k" => self.top_k(tile, call).map(Some),
            "histogram" => {
                let usage = "x.histogram(BINS)";
                let arguments = self.arguments(&name, &call.args, 1, usage, call.span())?;
                let bins = self.static_dim(&arguments.values[0], "the number of bins", arguments.spans[0])?;
                let bins = self.facts.joined(&bins);
                self.known_at_compile_time(&bins, "the number of bins", arguments.spans[0])?;
                let op = Op::Histogram(bins);
                self.emit_one(op, &[tile], call.span(), &[call.receiver.span()]).map(Val::Data).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Values and positions of a whole line.
    fn sorted(&mut self, tile: ValueId, descending: bool, call: &ExprMethodCall) -> Lowered<Vec<Val>> {
        let axis = self.only_axis(tile, call)?;
        let count = self.shape(tile).unwrap_or_default()[axis].clone();
        self.sort(tile, Op::Sort { axis, descending, count }, call)
    }

    fn top_k(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let arguments = self.arguments("top_k", &call.args, 2, "x.top_k(K, axis)", call.span())?;
        let (count, place) = (&arguments.values[0], arguments.spans[0]);
        let count = self.static_dim(count, "the number of elements to take", place)?;
        let count = self.facts.joined(&count);
        self.known_at_compile_time(&count, "the number of elements to take", place)?;
        let axis = self.one_axis("top_k", tile, &arguments.values[1], arguments.spans[1])?;
        let shape = self.shape(tile).unwrap_or_default();
        if let (Some(taken), Some(extent)) = (count.as_const(), shape[axis].as_const())
            && taken > extent
        {
            let message = format!(
                "`top_k` takes {taken} elements along axis {axis} of {}, which has {extent}",
                display_shape(&shape)
            );
            return self.error(place, message, &format!("take at most {extent}"));
        }
        self.sort(tile, Op::Sort { axis, descending: true, count }, call).map(Val::List)
    }

    fn sort(&mut self, tile: ValueId, op: Op, call: &ExprMethodCall) -> Lowered<Vec<Val>> {
        let results = self.emit(op, &[tile], call.span(), &[call.receiver.span()])?;
        Ok(results.into_iter().map(Val::Data).collect())
    }

    /// Refuses a number of elements that depends on a run-time size.
    fn known_at_compile_time(&mut self, dim: &Dim, what: &str, span: Span) -> Lowered<()> {
        if dim.is_static() {
            return Ok(());
        }
        let message = format!("{what}, `{dim:#}`, is known only at run time");
        self.error(span, message, "use a literal or a const parameter: it is an extent of the result")
    }
}
