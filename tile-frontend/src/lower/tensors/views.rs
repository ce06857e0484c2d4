//! Methods of tensors and partition views: cutting, indexing, loading, storing.

use crate::diagnostic::Diagnostic;
use crate::lower::{Lowered, Lowering, names};
use crate::span::{Span, Spanned};
use crate::value::{Int, Val, ViewTile};
use syn::{Expr, ExprMethodCall};
use tile_ir::kernel::OpId;
use tile_ir::ops::{Cut, Hints};
use tile_ir::types::{PartitionType, TensorType};
use tile_ir::{DType, Dim, Op, Type, ValueId};

/// How a block has more than its own tile.
const SEVERAL: &str =
    "a block that has several makes its view `.spanning([axis])`, and names each, `y.at([j])`";

/// How elements of an output are written that indices name.
const SCATTER: &str = "write `let y = y.atomic_view();` of the tensor, which all blocks see, and `y.store([p], v, Relaxed, DeviceScope)`, or to add \
     `y.fetch_add([p], v, Relaxed, DeviceScope)`";

impl Lowering {
    pub(in crate::lower) fn tensor_method(&mut self, tensor: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let Type::Tensor(ty) = self.kernel.ty(tensor).clone() else {
            unreachable!("tensors have tensor types")
        };
        match call.method.to_string().as_str() {
            "partition_view" | "partition_view_mut" | "strided_view" | "strided_view_mut" => {
                self.partition(tensor, &ty, call)
            }
            "extent" => self.extent_of(&ty.extents, call),
            "atomic_view" => self.atomic_view(tensor, &ty, call),
            "gather" | "gather_or" => self.gather_load(tensor, &ty, call),
            "load" | "load_masked" | "store" | "store_masked" | "prefetch" | "latency" | "bulk_copy" => {
                let help = "make a partition view first: `let x = x.partition_view([BM, BN]);`";
                self.no_method("a tensor", call, help)
            }
            "scatter" | "scatter_add" if ty.mutable => self.no_method("a tensor", call, SCATTER),
            "shape" => {
                self.no_method("a tensor", call, "name the extents in the signature, or use `.extent(axis)`")
            }
            _ => match self.movement(tensor, &ty, call)? {
                Some(moved) => Ok(moved),
                None => self.no_method("a tensor", call, &names::help_of_tensor(&call.method.to_string())),
            },
        }
    }

    fn partition(&mut self, tensor: ValueId, ty: &TensorType, call: &ExprMethodCall) -> Lowered<Val> {
        let (cut, place) = self.cut(ty.mutable, call)?;
        self.make_view(Op::Partition(cut), &[tensor], call.span(), &[place]).map(Val::View)
    }

    /// How `partition_view` and its kin cut a tensor, and where the tile's extents stand.
    pub(in crate::lower) fn cut(&mut self, mutable: bool, call: &ExprMethodCall) -> Lowered<(Cut, Span)> {
        let name = call.method.to_string();
        let span = call.span();
        let (base, written) = match name.strip_suffix("_mut") {
            Some(base) => (base, true),
            None => (name.as_str(), false),
        };
        if mutable != written {
            let diagnostic = if mutable {
                Diagnostic::new(
                    call.method.span(),
                    "the tensor is `&mut`: blocks may only see the tile that they own",
                )
                .help(format!("use `{base}_mut`; its `load_masked()` reads the block's own tile"))
            } else {
                Diagnostic::new(call.method.span(), "the tensor is `&`, so it can't be written")
                    .help(format!("declare the argument as `&mut Tensor<…>`, or use `{base}`"))
            };
            return self.report(diagnostic);
        }
        let strided = base == "strided_view";
        let usage = if strided { "([BM, BN], [SM, SN])" } else { "([BM, BN])" };
        let expected = 1 + usize::from(strided);
        let arguments = self.arguments(&name, &call.args, expected, &format!("{name}{usage}"), span)?;
        let tile = self.extents(&arguments.values[0], arguments.spans[0])?;
        let steps = match arguments.values.get(1) {
            Some(steps) => Some(self.extents(steps, arguments.spans[1])?),
            None => None,
        };
        Ok((Cut { tile, steps, spanned: Vec::new(), hints: Hints::default() }, arguments.spans[0]))
    }

    /// Emits what makes a view of a tensor, of operands that are known at the top level: it stands there, before the
    /// loops and branches around the current place, none of which changes it.
    ///
    /// The text of an unrolled loop is lowered again each turn, and an output has one view: its view is made once.
    pub(in crate::lower) fn make_view(
        &mut self,
        op: Op,
        operands: &[ValueId],
        span: Span,
        places: &[Span],
    ) -> Lowered<ValueId> {
        let is_written = matches!(self.kernel.ty(operands[0]), Type::Tensor(tensor) if tensor.mutable);
        let body = self.kernel.region(self.kernel.body()).ops.iter().map(|&made| self.kernel.op(made));
        let are_same = |made: &[ValueId]| {
            made.len() == operands.len()
                && made.iter().zip(operands).all(|(&made, &operand)| self.is_same_number(made, operand))
        };
        let twin = body.rev().find(|made| is_same_view(&made.op, &op) && are_same(&made.operands));
        match twin.filter(|_| is_written && self.nesting > 0) {
            Some(made) => Ok(made.results[0]),
            None => self.at_top_level(|lowering| lowering.emit_one(op, operands, span, places)),
        }
    }

    /// Whether two values are one, or numbers that are written alike.
    fn is_same_number(&self, a: ValueId, b: ValueId) -> bool {
        a == b
            || self.kernel.definition(a).zip(self.kernel.definition(b)).is_some_and(|(a, b)| {
                a.op == b.op && a.operands.is_empty() && b.operands.is_empty() && a.results.len() == 1
            })
    }

    /// The op that made a partition view, to which more may be said of it.
    pub(in crate::lower) fn maker_of(&self, view: ValueId) -> OpId {
        let maker = self.kernel.op_ids().find(|&op| self.kernel.op(op).results.contains(&view));
        maker.expect("views are made by `partition`")
    }

    /// Appends what `emit` does to the kernel's body.
    pub(in crate::lower) fn at_top_level<T>(&mut self, emit: impl FnOnce(&mut Lowering) -> T) -> T {
        let region = std::mem::replace(&mut self.region, self.kernel.body());
        let emitted = emit(self);
        self.region = region;
        emitted
    }

    /// Whether a value is known before the loops and branches around the current place.
    pub(in crate::lower) fn is_at_top_level(&self, value: ValueId) -> bool {
        let body = self.kernel.region(self.kernel.body());
        body.params.contains(&value) || body.ops.iter().any(|&op| self.kernel.op(op).results.contains(&value))
    }

    pub(in crate::lower) fn extent_of(&mut self, extents: &[Dim], call: &ExprMethodCall) -> Lowered<Val> {
        let name = call.method.to_string();
        let arguments = self.arguments(&name, &call.args, 1, &format!("{name}(axis)"), call.span())?;
        let axis = self.axis(&arguments.values[0], extents.len(), arguments.spans[0])?;
        Ok(Val::Dim(extents[axis].clone()))
    }

    pub(in crate::lower) fn view_method(&mut self, view: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let ty = self.view_type(view);
        let mutable = ty.tensor.mutable;
        let tile = ViewTile { view, index: Vec::new() };
        match call.method.to_string().as_str() {
            "tiles" => self.extent_of(&ty.index_space(), call),
            "extent" => self.extent_of(&ty.tensor.extents, call),
            "index" if mutable => self.index_of(&tile, &ty, call),
            "load" | "load_masked" | "load_masked_or" | "load_unchecked" => self.load(&tile, &ty, call),
            "prefetch" => self.prefetch(&tile, &ty, call),
            "spanning" => self.spanning(view, &ty, call),
            "at" if mutable => self.at(view, &ty, call),
            "at" => self.no_method("a read-only view", call, "its `load([i, j])` reads any tile"),
            "latency" | "bulk_copy" => self.hint(view, &ty, call),
            "tiles_persistent" => {
                let message = "`tiles_persistent` is for a `for` to go through, and has no value of its own";
                self.error(
                    call.method.span(),
                    message,
                    "write `for mut tile in c.tiles_persistent(Grouped(8)) { … }`",
                )
            }
            "store" | "store_masked" if mutable => self.store(&tile, &ty, call),
            "store" | "store_masked" => self.no_method(
                "a read-only view",
                call,
                "declare the tensor as `&mut` and use `partition_view_mut`",
            ),
            "index" => self.no_method(
                "a read-only view",
                call,
                "ask the output's view: its `index()` is the block's tile",
            ),
            "scatter" | "scatter_add" if mutable => self.no_method("a view", call, SCATTER),
            name => self.no_method("a view", call, &names::help_of_view(name)),
        }
    }

    pub(in crate::lower) fn load(
        &mut self,
        tile: &ViewTile,
        ty: &PartitionType,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let (span, name) = (call.span(), call.method.to_string());
        let padded = name == "load_masked_or";
        let indexed = !ty.tensor.mutable;
        let index = index_of_rank(ty.indexed_axes().len());
        let usage = match (padded, indexed) {
            (false, true) => format!("{name}({index})"),
            (true, true) => format!("{name}(pad, {index})"),
            (false, false) => format!("{name}()"),
            (true, false) => format!("{name}(pad)"),
        };
        let expected = usize::from(padded) + usize::from(indexed);
        if !indexed && call.args.len() == expected + 1 {
            let message =
                format!("`{name}` of a `&mut` tensor takes no index: a block reads the tile that it owns");
            let help = format!("write `{usage}`; {SEVERAL}");
            return self.error(call.method.span(), message, &help);
        }
        if !indexed {
            self.names_its_tile(tile, ty, call)?;
        }
        let arguments = self.arguments(&name, &call.args, expected, &usage, span)?;
        let elem = ty.tensor.elem.clone();
        let mut operands = vec![tile.view];
        let op = match name.as_str() {
            "load" => Op::Load { checked: true },
            "load_unchecked" => Op::Load { checked: false },
            _ => {
                operands.push(if padded {
                    self.number(&arguments.values[0], &elem, "the pad value", arguments.spans[0])?
                } else {
                    self.zero(&elem, span)?
                });
                Op::LoadMasked
            }
        };
        let mut places = vec![span; operands.len() + tile.index.len()];
        operands.extend(&tile.index);
        if let Some(index) = call.args.last().filter(|_| indexed) {
            let value = arguments.values.last().expect("the index was counted");
            let (indices, spans) = self.tile_index(ty, value, index)?;
            operands.extend(indices);
            places.extend(spans);
        }
        self.keep_places(span, places);
        self.emit_one(op, &operands, span, &[]).map(Val::Data)
    }

    /// The values of a tile's index `[i, j]`, and where each stands.
    pub(in crate::lower) fn tile_index(
        &mut self,
        ty: &PartitionType,
        value: &Val,
        index: &Expr,
    ) -> Lowered<(Vec<ValueId>, Vec<Span>)> {
        let place = index.span();
        let Val::List(indices) = value else {
            let help = format!("write `{}`, with one index per axis", index_of_rank(ty.indexed_axes().len()));
            return self.error(place, "the index of a tile is an array", &help);
        };
        if indices.len() != ty.indexed_axes().len() {
            let plural = if indices.len() == 1 { "index" } else { "indices" };
            let (view, help) = match ty.spanned[..] {
                [] => (format!("a view of rank {}", ty.tile.len()), "give one tile index per axis"),
                _ => (
                    format!("a view whose blocks span the axes {:?}", ty.spanned),
                    "give one tile index for each of these axes; along the others it is the block's",
                ),
            };
            return self.error(place, format!("{} tile {plural} for {view}", indices.len()), help);
        }
        let spans = match index {
            Expr::Array(array) => array.elems.iter().map(Spanned::span).collect(),
            _ => vec![place; indices.len()],
        };
        let mut values = Vec::new();
        for (index, &place) in indices.iter().zip(&spans) {
            match index {
                Val::Int(Int { value: number @ ..0, .. }) => {
                    let message = format!("tiles count from 0, and this is {number}");
                    return self.error(place, message, "the last one along an axis is `x.tiles(axis) - 1`");
                }
                Val::List(_) => {
                    let help = "take it apart: `let [i, j] = y.index();`, or give all of it: `x.load_masked(y.index())`";
                    return self.error(
                        place,
                        "a tile index is one number, and this is an array of them",
                        help,
                    );
                }
                _ => {}
            }
            self.share(index, &DType::Index.into(), "a tile index", place)?;
            values.push(self.number(index, &DType::Index.into(), "a tile index", place)?);
        }
        Ok((values, spans))
    }

    pub(in crate::lower) fn store(
        &mut self,
        into: &ViewTile,
        ty: &PartitionType,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = call.method.to_string();
        self.names_its_tile(into, ty, call)?;
        if call.args.len() == 2 {
            let message = format!("`{name}` takes a tile and no index: a block writes the tile that it owns");
            return self.error(call.method.span(), message, &format!("write `{name}(tile)`; {SEVERAL}"));
        }
        let arguments = self.arguments(&name, &call.args, 1, &format!("{name}(tile)"), call.span())?;
        let place = arguments.spans[0];
        let tile = self.tile(&arguments.values[0], "what is stored", place)?;
        let found = self.elem(tile);
        // A format that is known and wrong is the type rule's to explain.
        let _ = self.elements.unify(&found, &ty.tensor.elem);
        let op = if name == "store" { Op::Store } else { Op::StoreMasked };
        let mut places = vec![call.receiver.span(), place];
        places.extend(into.index.iter().map(|_| call.receiver.span()));
        let operands = [&[into.view, tile], &into.index[..]].concat();
        self.keep_places(call.span(), places.clone());
        self.emit(op, &operands, call.span(), &places)?;
        Ok(Val::Unit)
    }
}

/// Whether two ops make the same view of a tensor, but for what is said of it later.
fn is_same_view(made: &Op, op: &Op) -> bool {
    match (made, op) {
        (Op::Partition(made), Op::Partition(cut)) => {
            Cut { spanned: cut.spanned.clone(), ..made.clone() } == *cut
        }
        _ => made == op,
    }
}

/// How the index of a tile of so many axes is written.
fn index_of_rank(rank: usize) -> String {
    let names = ["i", "j", "k", "l", "m", "n"];
    format!("[{}]", names[..rank.min(names.len())].join(", "))
}
