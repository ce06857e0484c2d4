//! Storage of a kernel: arenas of values, ops and regions behind plain index handles.
//!
//! Invariants kept here: value names are unique in a kernel; every value has one definition. All other
//! rules are [`mod@crate::verify`]'s, so a [`Kernel`] on its own may be wrong.

use crate::condition::Condition;
use crate::dim::Dim;
use crate::grid::Grid;
use crate::loc::Loc;
use crate::ops::{Domain, Literal, Op};
use crate::schedule_hints::ScheduleHints;
use crate::types::{TensorType, Type};
use crate::view::{ArgumentLayout, Source};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

macro_rules! handle {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $name {
            /// The position in the kernel's arena, for side tables.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

handle!(ValueId, "A value: a kernel parameter, a region parameter or a result of an op.");
handle!(OpId, "An op in a kernel.");
handle!(RegionId, "A region: the body of a kernel, a loop or a branch.");

/// What a compile-time parameter of a kernel stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenericKind {
    /// `const BM: usize`.
    Const,
    /// `const CAUSAL: bool`, which counts 0 or 1 in extents.
    Bool,
    /// `T: Float`: an element format of the given class.
    Elem(Domain),
}

/// A compile-time parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generic {
    /// Its Rust name.
    pub name: String,
    /// What it stands for.
    pub kind: GenericKind,
}

/// Which instances have an argument, or do what is said of them: those whose parameter is larger than a number. A `bool`
/// counts 0 or 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// The parameter.
    pub parameter: String,
    /// The largest of its values without that.
    pub above: usize,
}

/// `K > 3`, or the name of a `bool`.
impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.above {
            0 => write!(f, "{}", self.parameter),
            above => write!(f, "{} > {above}", self.parameter),
        }
    }
}

/// Which instances may add up products of 8-bit floats in the bits that tensor cores keep of them, where these are fewer than
/// the format of the sums has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FastAccumulation {
    /// None.
    No,
    /// All. An instance itself has this or [`FastAccumulation::No`].
    Yes,
    /// Those of a parameter.
    If(Presence),
}

/// A value: its type, and its name in the source where it has one.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its type.
    pub ty: Type,
    /// A name that is unique in the kernel; unnamed values are numbered when printed.
    pub name: Option<String>,
}

/// An op with its operands, results and regions.
#[derive(Clone, Debug)]
pub struct OpData {
    /// Kind and attributes.
    pub op: Op,
    /// Operands, in the order that [`Op`] documents.
    pub operands: Vec<ValueId>,
    /// Results.
    pub results: Vec<ValueId>,
    /// Regions: one for `for` and `while`, two for `if`.
    pub regions: Vec<RegionId>,
    /// Place in the user's Rust.
    pub loc: Loc,
}

/// The operands of an op that reads a tile of a partition view.
#[derive(Clone, Copy, Debug)]
pub struct LoadOperands<'k> {
    /// The view.
    pub view: ValueId,
    /// What elements outside read as; `None` where there are none.
    pub pad: Option<ValueId>,
    /// The tile's index along [the axes along which one is given](crate::types::PartitionType::indexed_axes).
    pub index: &'k [ValueId],
}

impl OpData {
    /// The number that a constant is; `None` for other ops.
    pub fn constant(&self) -> Option<Literal> {
        match self.op {
            Op::Constant { value, .. } => Some(value),
            _ => None,
        }
    }

    /// The operands of a load; `None` for other ops.
    pub fn load(&self) -> Option<LoadOperands<'_>> {
        match (&self.op, self.operands.as_slice()) {
            (Op::LoadMasked, &[view, pad, ref index @ ..]) => {
                Some(LoadOperands { view, pad: Some(pad), index })
            }
            (Op::Load { .. }, &[view, ref index @ ..]) => Some(LoadOperands { view, pad: None, index }),
            _ => None,
        }
    }

    /// The index that a load, store or prefetch of a partition view gives, along
    /// [the axes along which it does](crate::types::PartitionType::indexed_axes); empty for other ops.
    pub fn tile_index(&self) -> &[ValueId] {
        let operands = self.operands.as_slice();
        let before = match self.op {
            Op::Load { .. } | Op::Prefetch => 1,
            Op::LoadMasked | Op::Store | Op::StoreMasked => 2,
            _ => operands.len(),
        };
        operands.get(before..).unwrap_or_default()
    }
}

/// A list of ops with parameters. A region of `for`, `while` or `if` ends with `yield`; a kernel's body doesn't.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// Parameters: the counter and carried values of a loop, the arguments of a kernel's body.
    pub params: Vec<ValueId>,
    /// Ops, in order of execution.
    pub ops: Vec<OpId>,
}

/// A tile kernel. See the crate documentation for what it means.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The Rust function's name.
    pub name: String,
    /// The source file of every [`Loc`] in the kernel; empty for hand-written IR.
    pub file: String,
    /// Compile-time parameters in order of declaration.
    pub generics: Vec<Generic>,
    /// The arguments that not every instance has, and which do.
    pub optional: BTreeMap<ValueId, Presence>,
    /// The arguments that are numbers and, under their names, run-time sizes.
    pub given_sizes: BTreeSet<ValueId>,
    /// What the kernel relies on, of its parameters and run-time sizes.
    pub conditions: Vec<Condition>,
    /// What the author says of the grid.
    pub grid: Option<Grid>,
    /// The axis of the grid along which neighbours are pairs, whose blocks run together: a launch has an even number of
    /// places along it. It changes nothing of what is computed ([`crate::Variant::Paired`]).
    pub pairs: Option<usize>,
    /// Whether products of 8-bit floats may be added up in fewer bits.
    pub fast_accumulation: FastAccumulation,
    /// What the author says of how GPUs schedule it.
    pub hints: ScheduleHints,
    body: RegionId,
    // A copy shares what isn't changed in it: the front end makes one wherever it looks at what isn't reached.
    values: Vec<Arc<ValueData>>,
    ops: Vec<Arc<OpData>>,
    regions: Vec<Region>,
    /// The names of values, each with the first suffix that may be free behind it.
    names: HashMap<String, u32>,
}

impl Kernel {
    /// A kernel without parameters or ops.
    pub fn new(name: impl Into<String>, generics: Vec<Generic>) -> Kernel {
        Kernel {
            name: name.into(),
            file: String::new(),
            generics,
            optional: BTreeMap::new(),
            given_sizes: BTreeSet::new(),
            conditions: Vec::new(),
            grid: None,
            pairs: None,
            fast_accumulation: FastAccumulation::No,
            hints: ScheduleHints::default(),
            body: RegionId(0),
            values: Vec::new(),
            ops: Vec::new(),
            regions: vec![Region::default()],
            names: HashMap::new(),
        }
    }

    /// The outermost region; its parameters are the kernel's arguments.
    pub fn body(&self) -> RegionId {
        self.body
    }

    /// The arguments: tensors and scalars.
    pub fn params(&self) -> &[ValueId] {
        &self.region(self.body).params
    }

    /// A value's data.
    pub fn value(&self, value: ValueId) -> &ValueData {
        &self.values[value.index()]
    }

    /// A value's type.
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.values[value.index()].ty
    }

    /// An op's data.
    pub fn op(&self, op: OpId) -> &OpData {
        &self.ops[op.index()]
    }

    /// An op's data, to be changed by a pass.
    pub fn op_mut(&mut self, op: OpId) -> &mut OpData {
        Arc::make_mut(&mut self.ops[op.index()])
    }

    /// The op that gives a value; `None` for parameters.
    pub fn definition(&self, value: ValueId) -> Option<&OpData> {
        // What is asked about was mostly made last.
        self.ops.iter().rev().find(|data| data.results.contains(&value)).map(|data| &**data)
    }

    /// The number that a constant gives; `None` for values of other ops, and parameters.
    pub fn constant(&self, value: ValueId) -> Option<Literal> {
        self.definition(value).and_then(OpData::constant)
    }

    /// Whether all bits of a number, or of the elements of a tile, are known to be zero: it is a constant, or a splat of one.
    pub(crate) fn is_zero(&self, value: ValueId) -> bool {
        self.definition(value).is_some_and(|data| match data.op {
            Op::Splat(_) => self.is_zero(data.operands[0]),
            _ => data.constant().is_some_and(Literal::is_zero),
        })
    }

    /// The op that gives each value of the body; parameters of regions have none.
    pub(crate) fn definitions(&self) -> HashMap<ValueId, OpId> {
        let results = |op: OpId| self.op(op).results.iter().map(move |&result| (result, op));
        self.walk().into_iter().flat_map(results).collect()
    }

    /// What a message calls the tensor that a partition view or a moved tensor shows: `x`, or a view of it.
    pub fn tensor_name(&self, view: ValueId) -> String {
        let tensor = match (self.ty(view), self.definition(view)) {
            (Type::Partition(_), Some(data)) => data.operands.first().copied().unwrap_or(view),
            _ => view,
        };
        let argument = Source::of(self, tensor).argument;
        let name = self.value(argument).name.as_deref().unwrap_or("an argument");
        if argument == tensor { format!("`{name}`") } else { format!("a view of `{name}`") }
    }

    /// A region's data.
    pub fn region(&self, region: RegionId) -> &Region {
        &self.regions[region.index()]
    }

    /// A region's data, to be changed by a pass.
    pub fn region_mut(&mut self, region: RegionId) -> &mut Region {
        &mut self.regions[region.index()]
    }

    /// How many values exist: the size of a side table over [`ValueId`].
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// A new value. A taken name gets the first free suffix: `acc`, `acc_1`, `acc_2`.
    pub fn new_value(&mut self, ty: Type, name: Option<&str>) -> ValueId {
        let name = name.map(|name| self.unique_name(name));
        self.values.push(Arc::new(ValueData { ty, name }));
        ValueId(self.values.len() as u32 - 1)
    }

    fn unique_name(&mut self, name: &str) -> String {
        let mut unique = name.to_owned();
        let mut suffix = self.names.get(name).copied().unwrap_or(1);
        while self.names.contains_key(&unique) {
            unique = format!("{name}_{suffix}");
            suffix += 1;
        }
        self.names.insert(unique.clone(), 1);
        if unique != name {
            self.names.insert(name.to_owned(), suffix);
        }
        unique
    }

    /// Names a value that has no name yet.
    pub fn name_value(&mut self, value: ValueId, name: &str) {
        if self.values[value.index()].name.is_none() {
            let name = self.unique_name(name);
            Arc::make_mut(&mut self.values[value.index()]).name = Some(name);
        }
    }

    /// Changes a value's type. For passes that substitute parameters; the verifier judges the result.
    pub fn set_type(&mut self, value: ValueId, ty: Type) {
        Arc::make_mut(&mut self.values[value.index()]).ty = ty;
    }

    /// A new argument of the kernel.
    pub fn new_param(&mut self, ty: Type, name: &str) -> ValueId {
        let value = self.new_value(ty, Some(name));
        self.regions[self.body.index()].params.push(value);
        value
    }

    /// A new empty region, not yet owned by an op.
    pub fn new_region(&mut self) -> RegionId {
        self.regions.push(Region::default());
        RegionId(self.regions.len() as u32 - 1)
    }

    /// A new op, not yet in a region. [`crate::Builder`] makes checked ones.
    pub fn new_op(&mut self, data: OpData) -> OpId {
        self.ops.push(Arc::new(data));
        OpId(self.ops.len() as u32 - 1)
    }

    /// Every value.
    pub fn value_ids(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.values.len() as u32).map(ValueId)
    }

    /// Every op, detached ones included, in order of creation.
    pub fn op_ids(&self) -> impl Iterator<Item = OpId> + use<> {
        (0..self.ops.len() as u32).map(OpId)
    }

    /// Every op in order of appearance, those of nested regions after their owner.
    pub fn walk(&self) -> Vec<OpId> {
        self.walk_in(self.body)
    }

    /// Every op of a region in order of appearance, those of nested regions after their owner.
    pub fn walk_in(&self, region: RegionId) -> Vec<OpId> {
        let mut found = Vec::new();
        self.walk_region(region, &mut found);
        found
    }

    /// The region that an op stands in; `None` for an op that was taken out.
    pub fn region_of(&self, op: OpId) -> Option<RegionId> {
        let nested = self.walk().into_iter().flat_map(|op| self.op(op).regions.clone());
        std::iter::once(self.body()).chain(nested).find(|&region| self.region(region).ops.contains(&op))
    }

    /// The op that a region belongs to; `None` for the body, and for a region of an op that was taken out.
    pub fn owner_of(&self, region: RegionId) -> Option<OpId> {
        self.walk().into_iter().find(|&op| self.op(op).regions.contains(&region))
    }

    /// Whether an op stands in a region of another, or in one within that.
    pub fn stands_in(&self, op: OpId, outer: OpId) -> bool {
        self.op(outer).regions.iter().any(|&region| self.walk_in(region).contains(&op))
    }

    fn walk_region(&self, region: RegionId, found: &mut Vec<OpId>) {
        for &op in &self.region(region).ops {
            found.push(op);
            for &inner in &self.op(op).regions {
                self.walk_region(inner, found);
            }
        }
    }

    /// The arguments that are tensors, with their names.
    pub fn tensors(&self) -> impl Iterator<Item = (ValueId, &TensorType)> {
        self.params().iter().filter_map(|&param| match self.ty(param) {
            Type::Tensor(tensor) => Some((param, tensor)),
            _ => None,
        })
    }

    /// The run-time sizes that the arguments bind: extents, in order of first appearance, then [numbers](Kernel::given_sizes)
    /// that are no extent by themselves, then what says how arguments lie that aren't dense.
    pub fn sizes(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let extents = self.tensors().flat_map(|(_, tensor)| &tensor.extents);
        let numbers = self.size_arguments().map(|(_, name)| name);
        let named = extents.filter_map(Dim::as_size).chain(numbers);
        let mut sizes: Vec<String> =
            named.filter(|name| seen.insert(name.to_string())).map(str::to_owned).collect();
        for (name, layout) in self.tensors().filter_map(|(param, tensor)| self.layout_of(param, tensor)) {
            sizes.extend(layout.sizes(name).map(|(size, _)| size));
        }
        sizes
    }

    /// The [numbers among the arguments that are sizes](Kernel::given_sizes), with their positions and names.
    pub fn size_arguments(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_size = |(_, param): &(usize, &ValueId)| self.given_sizes.contains(param);
        let given = self.params().iter().enumerate().filter(is_size);
        given.filter_map(|(position, &param)| Some((position, self.value(param).name.as_deref()?)))
    }

    /// The name of a tensor argument that isn't dense and aligned, and its layout.
    pub(crate) fn layout_of(&self, param: ValueId, tensor: &TensorType) -> Option<(&str, ArgumentLayout)> {
        tensor.layout.as_ref()?;
        let name = self.value(param).name.as_deref()?;
        Some((name, ArgumentLayout::read(name, tensor)?))
    }
}
