//! The reference evaluator: executes any [`Instance`] on dense arrays, block by block.
//!
//! Views hold no data: a moved tensor or a partition is a place in an argument. Nothing here is fast; everything follows
//! the definition of the op.

use crate::abi::{BindError, Bound, KernelAbi, REFERENCE_BLOCKS, Sharing};
use crate::array::{Array, Combine};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{OpData, RegionId, ValueId};
use crate::log::{Event, Site};
use crate::ops::{Atomic, Literal, Op};
use crate::schedule::TileOrder;
use crate::specialize::Instance;
use crate::types::{TensorType, Type};
use crate::view::{GivenTensor, Placement, Source};
use std::collections::HashMap;
use tile_layout::{linear_index, multi_index};

/// Runs every block of the grid, in order. `arguments` are the kernel's arguments (scalars have rank 0);
/// mutable tensors are updated in place.
///
/// # Errors
/// [`BindError`] where the shapes don't fit the kernel.
///
/// # Panics
/// If an argument's format isn't the declared one, or there are too few arguments.
pub fn run(instance: &Instance, arguments: &mut [Array]) -> Result<(), BindError> {
    run_logged(instance, arguments).map(drop)
}

/// [`run`], and what the kernel printed and which assertions failed, in order. A failed assertion stops nothing.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_logged(instance: &Instance, arguments: &mut [Array]) -> Result<Vec<Event>, BindError> {
    run_shared(instance, arguments, Sharing::default())
}

/// [`run_logged`], with a word on how blocks share the tiles of a persistent kernel.
///
/// # Errors
/// As [`run`], and where the word makes no sense.
///
/// # Panics
/// As [`run`].
pub fn run_shared(
    instance: &Instance,
    arguments: &mut [Array],
    sharing: Sharing,
) -> Result<Vec<Event>, BindError> {
    let shapes = tensor_shapes(instance, arguments);
    let tensors: Vec<GivenTensor<'_>> = shapes.iter().map(|shape| GivenTensor::dense(shape)).collect();
    run_tensors(instance, arguments, &tensors, sharing)
}

/// [`run_shared`] of tensors that lie as the instance is made for: each is given, and its argument is the memory that it
/// lies in, from [`GivenTensor::offset`] elements before its first one on, as an array of any shape.
///
/// # Errors
/// As [`run_shared`].
///
/// # Panics
/// As [`run`], or if a tensor reaches out of its memory.
pub fn run_tensors(
    instance: &Instance,
    arguments: &mut [Array],
    given: &[GivenTensor<'_>],
    sharing: Sharing,
) -> Result<Vec<Event>, BindError> {
    assert_eq!(arguments.len(), instance.params().len(), "every argument is given");
    for (argument, &param) in arguments.iter().zip(instance.params()) {
        assert_eq!(
            Some(argument.dtype()),
            instance.ty(param).elem().known(),
            "arguments have the declared formats"
        );
    }
    let abi = KernelAbi::of(instance);
    let bound = abi.share(abi.bind_tensors(given)?, sharing, REFERENCE_BLOCKS)?;
    let sizes = abi.sizes.iter().cloned().zip(bound.sizes.iter().map(|&size| size as i64)).collect();
    let (views, tensors) = (views(instance), tensors(instance));
    let mut log = Vec::new();
    for number in 0..bound.blocks() {
        let values = vec![None; instance.value_count()];
        let block = multi_index(number, &bound.grid);
        let mut evaluation = Evaluation {
            instance,
            arguments,
            sizes: &sizes,
            views: &views,
            tensors: &tensors,
            number,
            log: &mut log,
            bound: &bound,
            tile: block.clone(),
            block,
            values,
        };
        evaluation.bind_arguments();
        evaluation.region(instance.body());
    }
    Ok(log)
}

fn tensor_shapes(instance: &Instance, arguments: &[Array]) -> Vec<Vec<usize>> {
    let pairs = arguments.iter().zip(instance.params());
    pairs
        .filter(|&(_, &param)| matches!(instance.ty(param), Type::Tensor(_)))
        .map(|(argument, _)| argument.shape().to_vec())
        .collect()
}

/// The tensor that each partition view cuts.
fn views(instance: &Instance) -> HashMap<ValueId, ValueId> {
    let ops = instance.walk().into_iter().map(|op| instance.op(op));
    ops.filter(|data| matches!(data.op, Op::Partition(_)))
        .map(|data| (data.results[0], data.operands[0]))
        .collect()
}

/// Every tensor value: the argument that it shows, by position, and how.
fn tensors(instance: &Instance) -> HashMap<ValueId, (usize, Source)> {
    let tensors = instance.value_ids().filter(|&value| matches!(instance.ty(value), Type::Tensor(_)));
    let placed = tensors.filter_map(|tensor| {
        let source = Source::of(instance, tensor);
        let argument = instance.params().iter().position(|param| *param == source.argument)?;
        Some((tensor, (argument, source)))
    });
    placed.collect()
}

/// One block in progress.
struct Evaluation<'a> {
    instance: &'a Instance,
    arguments: &'a mut [Array],
    sizes: &'a HashMap<String, i64>,
    /// The tensor that each partition view cuts.
    views: &'a HashMap<ValueId, ValueId>,
    /// The argument of each tensor, and how it is seen.
    tensors: &'a HashMap<ValueId, (usize, Source)>,
    /// The block's number in the grid.
    number: usize,
    log: &'a mut Vec<Event>,
    bound: &'a Bound,
    /// The block's index in the grid.
    block: Vec<usize>,
    /// The index of the tile that the block owns; in a persistent kernel, while it owns one.
    tile: Vec<usize>,
    /// Scalars and tiles.
    values: Vec<Option<Array>>,
}

impl Evaluation<'_> {
    fn bind_arguments(&mut self) {
        for (argument, &param) in self.arguments.iter().zip(self.instance.params()) {
            if matches!(self.instance.ty(param), Type::Scalar(_)) {
                self.values[param.index()] = Some(argument.clone());
            }
        }
    }

    fn get(&self, value: ValueId) -> &Array {
        self.values[value.index()].as_ref().expect("verified: a value is defined before its use")
    }

    fn index(&self, value: ValueId) -> usize {
        usize::try_from(self.get(value).get_int(0)).expect("verified: an index is a u64")
    }

    fn dim(&self, dim: &Dim) -> Literal {
        let value = dim.evaluate(&|name| self.sizes.get(name).copied());
        // A run-time extent that has no value (a division by zero, say) reads as 0 on every target.
        Literal::Int(value.map_or(0, |value| value as i128))
    }

    /// Runs a region's ops; gives what its `yield` yields.
    fn region(&mut self, region: RegionId) -> Vec<Array> {
        let instance = self.instance;
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            let operands = || data.operands.iter();
            if data.op == Op::Yield {
                return operands().map(|&value| self.get(value).clone()).collect();
            }
            let results = self.op(data);
            for (&result, value) in data.results.iter().zip(results) {
                self.values[result.index()] = value;
            }
        }
        Vec::new()
    }

    fn op(&mut self, data: &OpData) -> Vec<Option<Array>> {
        match &data.op {
            Op::For => self.for_loop(data).into_iter().map(Some).collect(),
            Op::While => self.while_loop(data).into_iter().map(Some).collect(),
            Op::Tiles(order) => self.tile_loop(data, order).into_iter().map(Some).collect(),
            Op::If => {
                let chosen = data.regions[usize::from(self.get(data.operands[0]).get_int(0) == 0)];
                self.region(chosen).into_iter().map(Some).collect()
            }
            // A view has no value of its own.
            Op::Partition(_) | Op::View(_) => vec![None],
            Op::BlockIndex => {
                let axes = self.tile.iter();
                axes.map(|&i| Some(Array::scalar(DType::Index, Literal::Int(i as i128)))).collect()
            }
            Op::ReduceWith { axis } => {
                self.fold(data, |arrays, starts, combine| Array::reduce_with(arrays, starts, *axis, combine))
            }
            Op::ScanWith { axis, mode } => self.fold(data, |arrays, starts, combine| {
                Array::scan_with(arrays, starts, *axis, *mode, combine)
            }),
            Op::Sort { axis, descending, count } => {
                let count = extents(std::slice::from_ref(count))[0];
                self.get(data.operands[0]).sort(*axis, *descending, count).map(Some).into()
            }
            Op::LoadMasked | Op::Load { .. } => vec![Some(self.load(data))],
            Op::GatherLoad => vec![Some(self.gather_load(data))],
            Op::Atomic(atomic) => self.atomic(data, *atomic),
            Op::StoreMasked | Op::Store => {
                self.store(data);
                Vec::new()
            }
            Op::Print { .. } | Op::Assert { .. } => {
                self.say(data);
                Vec::new()
            }
            Op::Prefetch => Vec::new(),
            _ => vec![Some(self.data_op(data))],
        }
    }

    /// Notes what an op prints, or that it asserts something false.
    fn say(&mut self, data: &OpData) {
        let site = Site::of(self.instance, data).expect("the op says something");
        let mut values: Vec<Array> = data.operands.iter().map(|&value| self.get(value).clone()).collect();
        let mut position = None;
        if site.condition.is_some() {
            let condition = values.remove(0);
            let Some(first) = (0..condition.len()).find(|&i| condition.get_int(i) == 0) else { return };
            position = Some(first as u64);
        }
        self.log.push(Event { site: site.number, block: self.number as u64, position, values });
    }

    /// An op with a region that joins elements: `run` is given the tiles, the starts, and the region as a function.
    fn fold(
        &mut self,
        data: &OpData,
        run: impl FnOnce(&[&Array], &[Literal], &mut Combine<'_>) -> Vec<Array>,
    ) -> Vec<Option<Array>> {
        let (tiles, starts) = data.operands.split_at(data.operands.len() / 2);
        let tiles: Vec<Array> = tiles.iter().map(|&tile| self.get(tile).clone()).collect();
        let starts: Vec<Literal> = starts.iter().map(|&start| self.get(start).get(0)).collect();
        let region = data.regions[0];
        let params = &self.instance.region(region).params;
        let mut combine = |folded: &[Literal], element: &[Literal]| {
            for (&param, &number) in params.iter().zip(folded.iter().chain(element)) {
                let dtype =
                    self.instance.ty(param).elem().known().expect("an instance has no dtype parameters");
                self.values[param.index()] = Some(Array::scalar(dtype, number));
            }
            self.region(region).iter().map(|scalar| scalar.get(0)).collect()
        };
        run(&tiles.iter().collect::<Vec<_>>(), &starts, &mut combine).into_iter().map(Some).collect()
    }

    fn for_loop(&mut self, data: &OpData) -> Vec<Array> {
        let (start, end) = (self.index(data.operands[0]), self.index(data.operands[1]));
        let mut carried: Vec<Array> =
            data.operands[2..].iter().map(|&value| self.get(value).clone()).collect();
        let instance = self.instance;
        let (&counter, params) =
            instance.region(data.regions[0]).params.split_first().expect("verified: `for` has a counter");
        for i in start..end {
            self.values[counter.index()] = Some(Array::scalar(DType::Index, Literal::Int(i as i128)));
            for (&param, value) in params.iter().zip(carried) {
                self.values[param.index()] = Some(value);
            }
            carried = self.region(data.regions[0]);
            self.forget(data.regions[0]);
        }
        carried
    }

    /// Drops what a turn of a loop made.
    fn forget(&mut self, region: RegionId) {
        let instance = self.instance;
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            data.results.iter().for_each(|result| self.values[result.index()] = None);
            data.regions.iter().for_each(|&inner| self.forget(inner));
        }
    }

    fn while_loop(&mut self, data: &OpData) -> Vec<Array> {
        let region = data.regions[0];
        let mut goes_on = self.get(data.operands[0]).clone();
        let mut carried: Vec<Array> =
            data.operands[1..].iter().map(|&value| self.get(value).clone()).collect();
        while goes_on.get_int(0) != 0 {
            for (&param, value) in self.instance.region(region).params.iter().zip(carried) {
                self.values[param.index()] = Some(value);
            }
            let mut yielded = self.region(region).into_iter();
            self.forget(region);
            goes_on = yielded.next().expect("verified: `while` yields its condition first");
            carried = yielded.collect();
        }
        carried
    }

    fn tile_loop(&mut self, data: &OpData, order: &TileOrder<Dim>) -> Vec<Array> {
        let (instance, region, bound) = (self.instance, data.regions[0], self.bound);
        let shared = bound.shared.as_ref().expect("a persistent kernel's launch says how tiles are shared");
        let order = order.map(|rows| extents(std::slice::from_ref(rows))[0]);
        let mut carried: Vec<Array> =
            data.operands[1..].iter().map(|&value| self.get(value).clone()).collect();
        for number in (self.number..shared.tiles).step_by(bound.blocks()) {
            self.tile = order.index_of(&shared.space, number);
            for (&param, value) in instance.region(region).params.iter().zip(carried) {
                self.values[param.index()] = Some(value);
            }
            carried = self.region(region);
        }
        carried
    }

    /// The argument that a tensor value shows, and where its elements lie in it.
    fn placement(&self, tensor: ValueId) -> (usize, Placement) {
        let lookup = |name: &str| self.sizes.get(name).copied();
        let place = |ty: &TensorType| Placement::of(ty, &lookup).expect("a launch has checked the sizes");
        let Type::Tensor(ty) = self.instance.ty(tensor) else { unreachable!("verified: a tensor") };
        let (argument, source) = &self.tensors[&tensor];
        let selections = source
            .selections
            .iter()
            .map(|selection| (place(&selection.from), selection.axis, self.index(selection.index) as u64));
        (*argument, place(ty).at(selections))
    }

    /// The argument of a partition view, and where the elements of one of its tiles lie.
    fn tile(&self, view: ValueId, index: &[usize]) -> (usize, impl Fn(&[usize]) -> Option<usize> + use<>) {
        let ty = self.instance.ty(view).as_partition().expect("verified: a view operand");
        let (argument, placement) = self.placement(self.views[&view]);
        let (steps, index) = (extents(&ty.steps), index.to_vec());
        let position = move |inside: &[usize]| {
            let axes = index.iter().zip(&steps).zip(inside).zip(&placement.extents);
            let element = axes.map(|(((&tile, &step), &inside), &extent)| {
                let start = i64::try_from(tile.checked_mul(step)?).ok().filter(|&start| start < extent)?;
                start.checked_add(inside as i64)
            });
            placement.position(&element.collect::<Option<Vec<i64>>>()?)
        };
        (argument, position)
    }

    fn load(&self, data: &OpData) -> Array {
        let load = data.load().expect("verified: a load");
        let view = self.instance.ty(load.view).as_partition().expect("verified: a view operand");
        let index: Vec<usize> = match load.index {
            [] => self.tile.clone(),
            indices => indices.iter().map(|&value| self.index(value)).collect(),
        };
        let (argument, position) = self.tile(load.view, &index);
        let source = &self.arguments[argument];
        // Without a mask there is nothing to pad, unless the kernel's author vouched for it and was wrong.
        let zero = if source.dtype().is_float() { Literal::Float(0.0) } else { Literal::Int(0) };
        let pad = load.pad.map_or(zero, |pad| self.get(pad).get(0));
        source.read(&extents(&view.tile), pad, position)
    }

    fn store(&mut self, data: &OpData) {
        let tile = self.get(data.operands[1]).clone();
        let (argument, position) = self.tile(data.operands[0], &self.tile);
        self.arguments[argument].write(&tile, position);
    }

    fn gather_load(&self, data: &OpData) -> Array {
        let (argument, placement) = self.placement(data.operands[0]);
        let indices: Vec<&Array> = data.operands[2..].iter().map(|&value| self.get(value)).collect();
        let shape = indices[0].shape();
        let pad = self.get(data.operands[1]).get(0);
        self.arguments[argument].read(shape, pad, |inside| {
            let at = linear_index(inside, shape);
            let element = indices.iter().map(|index| i64::try_from(index.get_int(at)).ok());
            placement.position(&element.collect::<Option<Vec<i64>>>()?)
        })
    }

    fn atomic(&mut self, data: &OpData, atomic: Atomic) -> Vec<Option<Array>> {
        let (argument, placement) = self.placement(data.operands[0]);
        let tile = |&value: &ValueId| self.get(value).clone();
        let tiles: Vec<Array> = data.operands[1..].iter().map(tile).collect();
        let (indices, values) = tiles.split_at(placement.extents.len());
        let (values, mask) = values.split_at(atomic.kind.values());
        let (shape, dtype) = (indices[0].shape().to_vec(), self.arguments[argument].dtype());
        let zero = if dtype.is_float() { Literal::Float(0.0) } else { Literal::Int(0) };
        let mut old = Array::full(dtype, &shape, zero);
        for at in 0..old.len() {
            let index = indices.iter().map(|index| i64::try_from(index.get_int(at)).ok());
            let position = index.collect::<Option<Vec<i64>>>().and_then(|index| placement.position(&index));
            let on = mask.iter().all(|mask| mask.get_int(at) != 0);
            let Some(position) = position.filter(|_| on) else { continue };
            let before = self.arguments[argument].get(position);
            let given: Vec<Literal> = values.iter().map(|value| value.get(at)).collect();
            let after = Array::full(dtype, &[1], atomic.kind.update(dtype, before, &given));
            self.arguments[argument].write(&after, |_| Some(position));
            old.write(&Array::full(dtype, &[1], before), |_| Some(at));
        }
        if atomic.kind.has_result() { vec![Some(old)] } else { Vec::new() }
    }

    fn tile_shape(&self, value: ValueId) -> Vec<usize> {
        extents(&self.instance.ty(value).as_tile().expect("verified: a tile").shape)
    }

    fn data_op(&self, data: &OpData) -> Array {
        let operand = |i: usize| self.get(data.operands[i]);
        let known = |elem: &crate::types::Elem| elem.known().expect("an instance has no dtype parameters");
        match &data.op {
            Op::Constant { value, elem } => Array::scalar(known(elem), *value),
            Op::Extent(dim) => Array::scalar(DType::Index, self.dim(dim)),
            Op::BlockId { axis } => Array::scalar(DType::Index, Literal::Int(self.block[*axis] as i128)),
            Op::BlockCount { axis } => {
                Array::scalar(DType::Index, Literal::Int(self.bound.grid[*axis] as i128))
            }
            Op::Unary(op) => operand(0).unary(*op),
            Op::Binary(op) => operand(0).binary(*op, operand(1)),
            Op::Compare(predicate) => operand(0).compare(*predicate, operand(1)),
            Op::Classify(classification) => operand(0).classify(*classification),
            Op::Select => Array::select(operand(0), operand(1), operand(2)),
            Op::Cast(elem) => operand(0).cast(known(elem)),
            Op::CastWith(elem, rounding) => operand(0).cast_with(known(elem), *rounding),
            Op::Bitcast(elem) => operand(0).bitcast(known(elem)),
            Op::MulAdd => Array::mul_add(operand(0), operand(1), operand(2)),
            Op::Splat(shape) => operand(0).splat(&extents(shape)),
            Op::Iota { shape, axis, elem } => Array::iota(known(elem), &extents(shape), *axis),
            Op::Broadcast(_) | Op::Permute(_) | Op::Movement(_) => {
                let operands: Vec<&Array> = data.operands.iter().map(|&value| self.get(value)).collect();
                Array::moved(&data.op, &operands, &self.tile_shape(data.results[0]))
            }
            Op::Reshape(shape) => operand(0).reshape(&extents(shape)),
            Op::Gather { axis } => operand(0).gather(operand(1), operand(2), *axis),
            Op::Scatter { axis, mode } => operand(0).scatter(*mode, operand(1), operand(2), *axis),
            Op::Reduce { op, axis } => operand(0).reduce(*op, *axis),
            Op::Scan { op, axis, mode } => operand(0).scan(*op, *axis, *mode),
            Op::Histogram(bins) => operand(0).histogram(extents(std::slice::from_ref(bins))[0]),
            Op::Mma => Array::mma(operand(0), operand(1), operand(2)),
            Op::Item => operand(0).reshape(&[]),
            Op::ConvertLayout => operand(0).clone(),
            Op::ReduceWith { .. }
            | Op::ScanWith { .. }
            | Op::Sort { .. }
            | Op::View(_)
            | Op::Partition(_)
            | Op::BlockIndex
            | Op::LoadMasked
            | Op::Load { .. }
            | Op::GatherLoad
            | Op::Atomic(_)
            | Op::StoreMasked
            | Op::Store
            | Op::For
            | Op::While
            | Op::If
            | Op::Yield
            | Op::Prefetch
            | Op::Tiles(_)
            | Op::Print { .. }
            | Op::Assert { .. } => unreachable!("not a data op"),
        }
    }
}

/// The numbers that an instance's tile extents are.
pub(crate) fn extents(dims: &[Dim]) -> Vec<usize> {
    dims.iter()
        .map(|dim| dim.as_const().and_then(|extent| usize::try_from(extent).ok()))
        .collect::<Option<_>>()
        .expect("an instance's tile extents are positive numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Elements;
    use crate::specialize::{Binding, specialize};
    use crate::text::parse;
    use crate::verify::verify;

    fn instance(text: &str, constants: &[(&str, usize)]) -> Instance {
        let bindings: Vec<_> = constants.iter().map(|&(n, v)| (n.to_owned(), Binding::Const(v))).collect();
        specialize(&verify(parse(text).unwrap()).unwrap(), &bindings).unwrap()
    }

    const MATMUL: &str = "\
kernel @matmul<BM, BN, BK>(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [BM, BK] : partition<m x k x f32, [BM, BK]>
  %vb = partition %b [BK, BN] : partition<k x n x f32, [BK, BN]>
  %vc = partition %c [BM, BN] : mut partition<m x n x f32, [BM, BN]>
  %i, %j = block_index %vc : index, index
  %0 = constant 0.0 : f32
  %zero = splat %0 : tile<BM x BN x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %acc_2 = for %p = %1 to %2 carry (%acc = %zero) : tile<BM x BN x f32> {
    %4 = load_masked %va[%i, %p] pad %0 : tile<BM x BK x f32>
    %6 = load_masked %vb[%p, %j] pad %0 : tile<BK x BN x f32>
    %7 = mma %4, %6, %acc : tile<BM x BN x f32>
    yield %7
  }
  store_masked %vc, %acc_2
}
";

    fn ramp(shape: &[usize], f: impl Fn(usize) -> f64) -> Array {
        let count = shape.iter().product();
        Array::new(DType::F32, shape.to_vec(), Elements::Float((0..count).map(f).collect()))
    }

    #[test]
    fn matmul_of_ragged_shapes() {
        let instance = instance(MATMUL, &[("BM", 4), ("BN", 8), ("BK", 2)]);
        let (m, n, k) = (5, 9, 3);
        let (a, b) = (ramp(&[m, k], |i| (i % 7) as f64 - 3.0), ramp(&[k, n], |i| (i % 5) as f64));
        let mut arguments = [a.clone(), b.clone(), ramp(&[m, n], |_| -7.0)];
        run(&instance, &mut arguments).unwrap();
        for i in 0..m {
            for j in 0..n {
                let expected: f64 = (0..k).map(|p| a.get_f64(i * k + p) * b.get_f64(p * n + j)).sum();
                assert_eq!(arguments[2].get_f64(i * n + j), expected, "({i}, {j})");
            }
        }
    }

    #[test]
    fn shapes_that_disagree_are_named() {
        let instance = instance(MATMUL, &[("BM", 4), ("BN", 8), ("BK", 2)]);
        let mut arguments = [ramp(&[4, 3], |_| 0.0), ramp(&[2, 8], |_| 0.0), ramp(&[4, 8], |_| 0.0)];
        assert_eq!(
            run(&instance, &mut arguments).unwrap_err().to_string(),
            "`k` of kernel `matmul` is 3 (axis 1 of `a`) and 2 (axis 0 of `b`); axes that share a name must have \
             equal extents"
        );
    }

    const CUT: &str = "\
kernel @cut(%x: tensor<m x n x f32>, %y: mut tensor<n x m x f32>) {
  %t = view %x permute [1, 0] : tensor<n x m x f32, strided [1, n]>
  %vx = partition %t [2, 4] : partition<n x m x f32, strided [1, n], [2, 4]>
  %vy = partition %y [2, 4] : mut partition<n x m x f32, [2, 4]>
  %i, %j = block_index %vy : index, index
  %0 = load %vx[%i, %j] : tile<2 x 4 x f32>
  store %vy, %0
}
";

    #[test]
    fn bounds_are_checked_before_anything_runs() {
        let instance = instance(CUT, &[]);
        let x = ramp(&[4, 6], |i| i as f64);
        let mut arguments = [x.clone(), ramp(&[6, 4], |_| -7.0)];
        run(&instance, &mut arguments).unwrap();
        assert_eq!(arguments[1].elements(), x.permute(&[1, 0]).elements());
        let mut arguments = [ramp(&[4, 5], |i| i as f64), ramp(&[5, 4], |_| -7.0)];
        assert_eq!(
            run(&instance, &mut arguments).unwrap_err().to_string(),
            "kernel `cut`: `load` of a view of `x`: tile 2 of axis 0 ends at element 6, but the axis has 5 elements (n)"
        );
        assert_eq!(arguments[1].elements(), ramp(&[5, 4], |_| -7.0).elements());
        let mut empty = [ramp(&[3, 0], |_| 0.0), ramp(&[0, 3], |_| 0.0)];
        run(&instance, &mut empty).unwrap();
    }

    #[test]
    fn empty_grids_and_branches() {
        let text = "\
kernel @k(%flag: bool, %y: mut tensor<n x i32>) {
  %v = partition %y [4] : mut partition<n x i32, [4]>
  %0 = constant 7 : i32
  %1 = load_masked %v pad %0 : tile<4 x i32>
  %2 = if %flag : tile<4 x i32> {
    %3 = neg %1 : tile<4 x i32>
    yield %3
  } else {
    yield %1
  }
  store_masked %v, %2
}
";
        let instance = instance(text, &[]);
        let y = Array::iota(DType::I32, &[6], 0);
        let mut arguments = [Array::scalar(DType::Bool, Literal::Int(1)), y];
        run(&instance, &mut arguments).unwrap();
        assert_eq!(arguments[1].elements(), &Elements::Int(vec![0, -1, -2, -3, -4, -5]));
        let mut none = [Array::scalar(DType::Bool, Literal::Int(1)), Array::iota(DType::I32, &[0], 0)];
        run(&instance, &mut none).unwrap();
    }
}
