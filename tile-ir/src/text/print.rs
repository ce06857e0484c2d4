//! Prints a kernel. Never fails, also on IR that the verifier would refuse.

use crate::condition::Condition;
use crate::dtype::DType;
use crate::kernel::{FastAccumulation, GenericKind, Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{Atomic, Domain, Literal, Movement, Op, ScanMode};
use crate::types::{Elem, Shape, Spanned};
use std::collections::HashMap;
use std::fmt::Write;

/// The text of a kernel, as snapshots hold it: without source locations.
pub fn print(kernel: &Kernel) -> String {
    Printer::new(kernel, false).print()
}

/// The text with a comment beside the definition of every value that `note` says something of.
pub fn print_with_notes(kernel: &Kernel, note: &dyn Fn(ValueId) -> Option<String>) -> String {
    let mut printer = Printer::new(kernel, false);
    let noted = |value: ValueId| note(value).map(|note| (value, note));
    printer.notes = kernel.value_ids().filter_map(noted).collect();
    printer.print()
}

/// The text with source locations, as executables embed it: a `file "…"` line, and ` @line:column` after ops.
pub fn print_with_locations(kernel: &Kernel) -> String {
    Printer::new(kernel, true).print()
}

struct Printer<'k> {
    kernel: &'k Kernel,
    locations: bool,
    /// Printed name of each value; unnamed ones are numbered in order of definition.
    names: Vec<String>,
    /// What to say beside definitions.
    notes: HashMap<ValueId, String>,
    out: String,
}

impl<'k> Printer<'k> {
    fn new(kernel: &'k Kernel, locations: bool) -> Self {
        let mut printer = Printer {
            kernel,
            locations,
            names: vec![String::from("?"); kernel.value_count()],
            notes: HashMap::new(),
            out: String::new(),
        };
        let mut unnamed = 0;
        printer.number(kernel.body(), &mut unnamed);
        printer
    }

    fn number(&mut self, region: RegionId, unnamed: &mut usize) {
        let region = self.kernel.region(region);
        for &param in &region.params {
            self.number_value(param, unnamed);
        }
        for &op in &region.ops {
            let data = self.kernel.op(op);
            // Regions first: their values are defined, in the text, before the next op's results are used,
            // but results stand at the line's start, so they are numbered before.
            for &result in &data.results {
                self.number_value(result, unnamed);
            }
            for &inner in &data.regions {
                self.number(inner, unnamed);
            }
        }
    }

    fn number_value(&mut self, value: ValueId, unnamed: &mut usize) {
        self.names[value.index()] = match &self.kernel.value(value).name {
            Some(name) => format!("%{name}"),
            None => {
                *unnamed += 1;
                format!("%{}", *unnamed - 1)
            }
        };
    }

    fn print(mut self) -> String {
        if self.locations && !self.kernel.file.is_empty() {
            let _ = writeln!(self.out, "file {:?}", self.kernel.file);
        }
        let _ = write!(self.out, "kernel @{}", self.kernel.name);
        self.generics();
        let params: Vec<String> = self.kernel.params().iter().map(|&param| self.param(param)).collect();
        let _ = write!(self.out, "({})", params.join(", "));
        self.conditions();
        let grid = self.kernel.grid.as_ref().map_or(String::new(), |grid| format!(" grid {grid}"));
        let pairs = self.kernel.pairs.map_or(String::new(), |axis| format!(" pairs {axis}"));
        let fast = match &self.kernel.fast_accumulation {
            FastAccumulation::No => String::new(),
            FastAccumulation::Yes => " fast_accumulation".to_owned(),
            FastAccumulation::If(presence) => format!(" fast_accumulation if {presence}"),
        };
        let hints = &self.kernel.hints;
        let _ = writeln!(self.out, "{grid}{hints}{fast}{pairs} {{");
        self.region_ops(self.kernel.body(), 1);
        self.out.push_str("}\n");
        self.out
    }

    /// `%stride: index size`, `%bias: tensor<n x f32> if BIASED`, `%x[3]: tensor<n x f32> if K > 3`.
    fn param(&self, param: ValueId) -> String {
        let presence = self.kernel.optional.get(&param);
        let optional = presence.map_or(String::new(), |presence| format!(" if {presence}"));
        let size = if self.kernel.given_sizes.contains(&param) { " size" } else { "" };
        format!("{}: {}{size}{optional}", self.name(param), self.kernel.ty(param))
    }

    /// `where "m % BM == 0": rem(m, BM) eq 0, "!CAUSAL || m == n": any(CAUSAL eq 0, m eq n)`.
    fn conditions(&mut self) {
        for (i, condition) in self.kernel.conditions.iter().enumerate() {
            let Condition { formula, source, loc } = condition;
            let keyword = if i == 0 { " where" } else { "," };
            let _ = write!(self.out, "{keyword} {source:?}: {formula}");
            if self.locations && loc.is_known() {
                let _ = write!(self.out, " @{loc}");
            }
        }
    }

    fn generics(&mut self) {
        if self.kernel.generics.is_empty() {
            return;
        }
        let generics: Vec<String> = self
            .kernel
            .generics
            .iter()
            .map(|generic| match generic.kind {
                GenericKind::Const => generic.name.clone(),
                GenericKind::Bool => format!("{}: bool", generic.name),
                GenericKind::Elem(domain) => format!("{}: {}", generic.name, bound_name(domain)),
            })
            .collect();
        let _ = write!(self.out, "<{}>", generics.join(", "));
    }

    fn name(&self, value: ValueId) -> &str {
        &self.names[value.index()]
    }

    fn list(&self, values: &[ValueId]) -> String {
        values.iter().map(|&value| self.name(value)).collect::<Vec<_>>().join(", ")
    }

    fn region_ops(&mut self, region: RegionId, depth: usize) {
        for &op in &self.kernel.region(region).ops {
            if !self.is_empty_yield(op) {
                self.op(op, depth);
            }
        }
    }

    fn is_empty_yield(&self, op: OpId) -> bool {
        let data = self.kernel.op(op);
        data.op == Op::Yield && data.operands.is_empty()
    }

    fn op(&mut self, op: OpId, depth: usize) {
        let data = self.kernel.op(op);
        let indent = "  ".repeat(depth);
        self.out.push_str(&indent);
        if !data.results.is_empty() {
            let _ = write!(self.out, "{} = ", self.list(&data.results));
        }
        let head = self.head(data);
        self.out.push_str(&head);
        if !data.results.is_empty() {
            let types: Vec<String> = data.results.iter().map(|&r| self.kernel.ty(r).to_string()).collect();
            let _ = write!(self.out, " : {}", types.join(", "));
        }
        if self.locations && data.loc.is_known() {
            let _ = write!(self.out, " @{}", data.loc);
        }
        if data.regions.is_empty() {
            self.notes_of(&data.results);
        }
        self.regions(data, depth, &indent);
        self.out.push('\n');
    }

    fn notes_of(&mut self, values: &[ValueId]) {
        let notes = values
            .iter()
            .filter_map(|value| Some(format!("{} {}", self.name(*value), self.notes.get(value)?)));
        let notes: Vec<String> = notes.collect();
        if !notes.is_empty() {
            let _ = write!(self.out, "  ; {}", notes.join(", "));
        }
    }

    fn regions(&mut self, data: &'k OpData, depth: usize, indent: &str) {
        for (i, &region) in data.regions.iter().enumerate() {
            let only_empty_yield = self.kernel.region(region).ops.iter().all(|&op| self.is_empty_yield(op));
            if i == 1 && only_empty_yield {
                break;
            }
            self.out.push_str(if i == 0 { " {" } else { " else {" });
            self.notes_of(&self.kernel.region(region).params);
            self.out.push('\n');
            self.region_ops(region, depth + 1);
            let _ = write!(self.out, "{indent}}}");
        }
    }

    /// The op's name, attributes and operands.
    fn head(&self, data: &OpData) -> String {
        let name = data.op.name();
        let operands = self.list(&data.operands);
        match (&data.op, data.operands.as_slice()) {
            (Op::Constant { value, elem }, _) => format!("{name} {}", literal(value, elem)),
            (Op::Extent(dim), _) => format!("{name} {dim}"),
            (Op::Iota { axis, .. }, _) => format!("{name} {axis}"),
            (Op::BlockId { axis } | Op::BlockCount { axis }, _) => format!("{name} axis {axis}"),
            (Op::CastWith(_, rounding), _) => format!("{name} {} {operands}", rounding.name()),
            (Op::Lookup { table, elem }, _) => {
                let table: Vec<String> = table.iter().map(|number| literal(number, elem)).collect();
                format!("{name} [{}] {operands}", table.join(", "))
            }
            (Op::Permute(permutation), _) => format!("{name} {operands} {permutation:?}"),
            (Op::Reduce { op, axis }, _) => format!("{name} {} {operands} axis {axis}", op.name()),
            (Op::Movement(movement), _) => format!("{name} {operands}{}", movement_attributes(movement)),
            (Op::Gather { axis } | Op::Scatter { axis, .. }, _) => format!("{name} {operands} axis {axis}"),
            (Op::View(movement), [tensor, index @ ..]) => {
                let index = index.first().map_or(String::new(), |&index| format!(" at {}", self.name(index)));
                format!("{name} {} {movement}{index}", self.name(*tensor))
            }
            (Op::Partition(cut), _) => {
                let steps =
                    cut.steps.as_ref().map_or(String::new(), |steps| format!(" step {}", Shape(steps)));
                let spanned = Spanned(&cut.spanned);
                format!("{name} {operands} {}{steps}{spanned}{}", Shape(&cut.tile), cut.hints)
            }
            (Op::LoadMasked | Op::GatherLoad, [view, pad, indices @ ..]) => {
                format!("{name} {}{} pad {}", self.name(*view), self.indices(indices), self.name(*pad))
            }
            (Op::Atomic(atomic), [tensor, rest @ ..]) => self.atomic_head(*atomic, *tensor, rest),
            (Op::Load { .. } | Op::Prefetch, [view, indices @ ..]) => {
                format!("{name} {}{}", self.name(*view), self.indices(indices))
            }
            (Op::StoreMasked | Op::Store, [view, tile, indices @ ..]) => {
                format!("{name} {}{}, {}", self.name(*view), self.indices(indices), self.name(*tile))
            }
            (Op::ReduceWith { axis, associative }, _) => {
                self.fold_head(data, *axis, ScanMode::default(), *associative)
            }
            (Op::ScanWith { axis, mode, associative }, _) => self.fold_head(data, *axis, *mode, *associative),
            (Op::Scan { op, axis, mode }, _) => {
                format!("{name} {} {operands} axis {axis}{}", op.name(), mode_words(*mode))
            }
            (Op::Sort { axis, descending, .. }, _) => {
                format!("{name} {operands} axis {axis}{}", if *descending { " descending" } else { "" })
            }
            (Op::For, [start, end, initial @ ..]) => self.for_head(data, *start, *end, initial),
            (Op::While, [condition, initial @ ..]) => {
                let params =
                    data.regions.first().map_or(&[][..], |&region| &self.kernel.region(region).params);
                format!("{name} {}{}", self.name(*condition), self.carry(params, initial))
            }
            (Op::Tiles(order), [view, initial @ ..]) => {
                let params =
                    data.regions.first().map_or(&[][..], |&region| &self.kernel.region(region).params);
                format!("{name} {} {order}{}", self.name(*view), self.carry(params, initial))
            }
            (Op::Print { site, message } | Op::Assert { site, message }, _) => {
                let separator = if operands.is_empty() { "" } else { " " };
                format!("{name} {site} {:?}{separator}{operands}", message.to_string())
            }
            _ if operands.is_empty() => name.to_owned(),
            _ => format!("{name} {operands}"),
        }
    }

    fn fold_head(&self, data: &OpData, axis: usize, mode: ScanMode, associative: bool) -> String {
        let (tiles, starts) = data.operands.split_at(data.operands.len() / 2);
        let params = data.regions.first().map_or(&[][..], |&region| &self.kernel.region(region).params);
        format!(
            "{} {} from {} axis {axis}{}{} with ({})",
            data.op.name(),
            self.list(tiles),
            self.list(starts),
            mode_words(mode),
            if associative { " associative" } else { "" },
            self.list(params)
        )
    }

    fn atomic_head(&self, atomic: Atomic, tensor: ValueId, rest: &[ValueId]) -> String {
        let values = atomic.kind.values() + usize::from(atomic.masked);
        let (indices, values) = rest.split_at(rest.len().saturating_sub(values));
        let (values, mask) = values.split_at(values.len().min(atomic.kind.values()));
        let words = [atomic.kind.name(), atomic.order.name(), atomic.scope.name()].join(" ");
        let values: String = values.iter().map(|&value| format!(", {}", self.name(value))).collect();
        let mask: String = mask.iter().map(|&mask| format!(" mask {}", self.name(mask))).collect();
        format!("atomic {words} {}[{}]{values}{mask}", self.name(tensor), self.list(indices))
    }

    fn indices(&self, indices: &[ValueId]) -> String {
        if indices.is_empty() { String::new() } else { format!("[{}]", self.list(indices)) }
    }

    fn for_head(&self, data: &OpData, start: ValueId, end: ValueId, initial: &[ValueId]) -> String {
        let params = data.regions.first().map_or(&[][..], |&region| &self.kernel.region(region).params);
        let Some((&counter, carried)) = params.split_first() else { return String::from("for") };
        let (counter, start, end) = (self.name(counter), self.name(start), self.name(end));
        format!("for {counter} = {start} to {end}{}", self.carry(carried, initial))
    }

    fn carry(&self, params: &[ValueId], initial: &[ValueId]) -> String {
        if params.is_empty() {
            return String::new();
        }
        let pairs = params.iter().zip(initial);
        let pairs: Vec<String> =
            pairs.map(|(&inner, &outer)| format!("{} = {}", self.name(inner), self.name(outer))).collect();
        format!(" carry ({})", pairs.join(", "))
    }
}

/// The keyword of a dtype parameter's bound.
pub(super) fn bound_name(domain: Domain) -> &'static str {
    match domain {
        Domain::Number | Domain::SignedNumber => "number",
        Domain::Float | Domain::F32 => "float",
        Domain::Int | Domain::IntOrBool | Domain::U64 => "int",
        // No bound of a parameter says `bool`: such a parameter would have one value. None says "or a scale" either.
        Domain::Any | Domain::NumberOrScale | Domain::Bool => "any",
    }
}

fn mode_words(mode: ScanMode) -> String {
    let words = [(mode.reverse, " reverse"), (mode.exclusive, " exclusive")];
    words.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect()
}

/// What stands after the operands; an extract's shape is its result's.
fn movement_attributes(movement: &Movement) -> String {
    match movement {
        Movement::Extract { starts, .. } | Movement::Insert { starts } => {
            format!(" {}", Shape(starts))
        }
        Movement::Pad { before, after } => format!(" {} {}", Shape(before), Shape(after)),
        Movement::Repeat { counts } => format!(" {}", Shape(counts)),
        Movement::Cat { axis } | Movement::Flip { axis } => format!(" axis {axis}"),
        Movement::Roll { axis, by } | Movement::Shift { axis, by } => format!(" axis {axis} by {by}"),
    }
}

fn literal(value: &Literal, elem: &Elem) -> String {
    match value {
        Literal::Int(value) if elem.known() == Some(DType::Bool) => (*value != 0).to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Float(value) if value.is_nan() => String::from("nan"),
        // `{:?}` is the shortest text that reads back to the same number, and shows that it is a float.
        Literal::Float(value) => format!("{value:?}"),
    }
}
