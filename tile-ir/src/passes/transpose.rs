//! Products that are only used transposed are computed so: `mma(a, b, c)ᵀ = mma(bᵀ, aᵀ, cᵀ)`, and so is what follows of
//! them element by element.
//!
//! The derivative of attention multiplies by the transposed of what it computes of a product (`mma(p.t(), dout, …)`). To
//! transpose a tile that was computed, threads exchange its elements; a loaded factor is read in either direction, and
//! numbers that are the same along one axis are as well the same along the other. So tiles that follow from each other
//! by products and arithmetic are transposed together, a *group*, if nothing else but transpositions uses them
//! and fewer tiles must be exchanged for it. Every element is the same sum of the same products, in the same order.

use super::replace_uses;
use crate::analysis::uses::Uses;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::Op;
use crate::types::Type;
use std::collections::{HashMap, HashSet};

/// Bytes of elements that the instructions of every target take from a loaded tile in either direction.
const EITHER_WAY_BYTES: usize = 2;

/// Transposes every group where that saves exchanges.
pub(super) fn run(kernel: &mut Kernel) {
    // Without a product no group saves anything, and looking for one goes through all that is computed together.
    if !kernel.walk().into_iter().any(|op| kernel.op(op).op == Op::Mma) {
        return;
    }
    let (mut ops, mut seen) = (kernel.walk().into_iter(), HashSet::new());
    while let Some(group) = Graph::of(kernel).saving(&mut ops, &mut seen) {
        group.transpose(kernel);
    }
}

fn is_matrix(kernel: &Kernel, value: ValueId) -> bool {
    kernel.ty(value).as_tile().is_some_and(|tile| tile.shape.len() == 2)
}

fn is_transposition(kernel: &Kernel, data: &OpData) -> bool {
    matches!(&data.op, Op::Permute(order) if order == &[1, 0]) && is_matrix(kernel, data.operands[0])
}

/// Tiles of one region that are transposed together.
struct Group {
    region: RegionId,
    /// What its products and its arithmetic give.
    tiles: HashSet<ValueId>,
    /// The transpositions of these.
    exits: Vec<OpId>,
}

/// The factors of a product, and the operands that lie as an op's result: of a product that is what it adds to.
fn factors_and_terms(data: &OpData) -> (&[ValueId], &[ValueId]) {
    data.operands.split_at(if data.op == Op::Mma { 2 } else { 0 })
}

/// Who defines and who uses the values of a kernel.
struct Graph<'k> {
    kernel: &'k Kernel,
    definitions: HashMap<ValueId, OpId>,
    uses: Uses,
}

impl<'k> Graph<'k> {
    fn of(kernel: &'k Kernel) -> Graph<'k> {
        Graph { kernel, definitions: kernel.definitions(), uses: Uses::of(kernel) }
    }

    /// The next group, by the transpositions among these ops, that saves exchanges; of tiles that weren't seen in another.
    fn saving(&self, ops: &mut impl Iterator<Item = OpId>, seen: &mut HashSet<ValueId>) -> Option<Group> {
        ops.find_map(|op| {
            let data = self.kernel.op(op);
            if !is_transposition(self.kernel, data) || seen.contains(&data.operands[0]) {
                return None;
            }
            let group = self.group(op);
            seen.extend(&group.tiles);
            let saves = self.has_product(&group) && self.exchanges(&group) < group.leaving(self.kernel);
            saves.then_some(group)
        })
    }

    fn definition(&self, value: ValueId) -> Option<&'k OpData> {
        self.definitions.get(&value).map(|&op| self.kernel.op(op))
    }

    /// The largest group with what a transposition transposes.
    fn group(&self, exit: OpId) -> Group {
        let region = self.kernel.region_of(exit).expect("the op stands in a region");
        let ops = &self.kernel.region(region).ops;
        let here: HashSet<OpId> = ops.iter().copied().collect();
        let mut tiles = self.connected(self.kernel.op(exit).operands[0], &here);
        // What something else uses, or a loop or branch inside, stays as it is, and so does, then, what it is computed of.
        loop {
            let count = tiles.len();
            let before = tiles.clone();
            tiles.retain(|&tile| {
                let mut users = self.uses.of_value(tile).iter();
                users.all(|&user| here.contains(&user) && self.takes(user, tile, &before))
            });
            if tiles.len() == count {
                break;
            }
        }
        let is_exit = |op: &&OpId| {
            let data = self.kernel.op(**op);
            is_transposition(self.kernel, data) && tiles.contains(&data.operands[0])
        };
        let exits = ops.iter().filter(is_exit).copied().collect();
        Group { region, tiles, exits }
    }

    /// What is computed with a tile, or of it, in any number of steps.
    fn connected(&self, tile: ValueId, here: &HashSet<OpId>) -> HashSet<ValueId> {
        let (mut found, mut open) = (HashSet::new(), vec![tile]);
        while let Some(tile) = open.pop() {
            let has_group = |op: &OpId| here.contains(op) && self.is_of_group(*op);
            let Some(op) = self.definitions.get(&tile).copied().filter(has_group) else { continue };
            if found.insert(tile) {
                let terms = |op: OpId| factors_and_terms(self.kernel.op(op)).1;
                open.extend(terms(op));
                let users = self.uses.of_value(tile).iter().filter(|user| has_group(user));
                let users = users.filter(|&&user| terms(user).contains(&tile));
                open.extend(users.flat_map(|&user| &self.kernel.op(user).results));
            }
        }
        found
    }

    /// Whether what an op gives is transposed if its terms are: a product or arithmetic.
    fn is_of_group(&self, op: OpId) -> bool {
        let data = self.kernel.op(op);
        let is_of_matrices = data.results.iter().all(|&result| is_matrix(self.kernel, result));
        (data.op.is_leaf() || data.op == Op::Mma) && is_of_matrices
    }

    /// Whether an op takes a tile transposed, if these tiles are.
    fn takes(&self, user: OpId, tile: ValueId, tiles: &HashSet<ValueId>) -> bool {
        let data = self.kernel.op(user);
        let is_of_group = |op: &OpId| self.kernel.op(*op).results.iter().any(|it| tiles.contains(it));
        if is_transposition(self.kernel, data) {
            // A group that needs itself transposed would need it again.
            return !self.uses.of_value(data.results[0]).iter().any(is_of_group);
        }
        !factors_and_terms(data).0.contains(&tile) && is_of_group(&user)
    }

    fn has_product(&self, group: &Group) -> bool {
        group.tiles.iter().any(|&tile| self.definition(tile).is_some_and(|data| data.op == Op::Mma))
    }

    /// How many tiles from elsewhere must be exchanged for a group.
    fn exchanges(&self, group: &Group) -> usize {
        let own = group.tiles.iter().map(|tile| self.definitions[tile]);
        let operands = own.flat_map(|op| {
            let (factors, terms) = factors_and_terms(self.kernel.op(op));
            let factors = factors.iter().map(|&factor| (factor, true));
            factors.chain(terms.iter().map(|&term| (term, false)))
        });
        let exchanged = operands.filter(|&(operand, is_factor)| {
            !group.tiles.contains(&operand) && !self.is_free(operand, is_factor)
        });
        exchanged.map(|(operand, _)| operand).collect::<HashSet<_>>().len()
    }

    /// Whether the transposed of a tile takes no exchange.
    fn is_free(&self, tile: ValueId, is_factor: bool) -> bool {
        let Some(data) = self.definition(tile) else { return false };
        let ty = self.kernel.ty(tile).as_tile().expect("a group is of tiles");
        let is_constant_along_an_axis = matches!(data.op, Op::Splat(_) | Op::Broadcast(_) | Op::Iota { .. });
        is_constant_along_an_axis
            || is_transposition(self.kernel, data)
            || ty.shape.iter().any(|extent| extent.as_const() == Some(1))
            || is_factor
                && ty.elem.known().is_some_and(|elem| elem.bytes() == EITHER_WAY_BYTES)
                && self.is_loaded(data)
    }

    /// Whether a tile is a load's, in another shape or order perhaps.
    fn is_loaded(&self, data: &OpData) -> bool {
        match data.op {
            Op::Permute(_) | Op::Reshape(_) => {
                self.definition(data.operands[0]).is_some_and(|inner| self.is_loaded(inner))
            }
            _ => data.op.is_load(),
        }
    }
}

impl Group {
    /// How many of its tiles were transposed for others.
    fn leaving(&self, kernel: &Kernel) -> usize {
        self.exits.iter().map(|&exit| kernel.op(exit).operands[0]).collect::<HashSet<_>>().len()
    }

    fn transpose(&self, kernel: &mut Kernel) {
        let exits = self.exits.iter().map(|&exit| kernel.op(exit));
        let replacement = exits.map(|data| (data.results[0], data.operands[0])).collect();
        kernel.region_mut(self.region).ops.retain(|op| !self.exits.contains(op));
        let definitions = kernel.definitions();
        let place = Inserter::new(kernel, self.region, 0);
        let mut needed = Transposed { place, definitions, known: HashMap::new() };
        while let Some(&op) = needed.place.kernel.region(self.region).ops.get(needed.place.at) {
            let data = needed.place.kernel.op(op).clone();
            if data.results.iter().any(|result| self.tiles.contains(result)) {
                self.transpose_op(&mut needed, op, data);
            }
            needed.place.at += 1;
        }
        replace_uses(kernel, &replacement);
    }

    fn transpose_op(
        &self,
        needed: &mut Transposed<'_>,
        op: OpId,
        OpData { mut operands, results, op: kind, .. }: OpData,
    ) {
        for operand in operands.iter_mut().filter(|operand| !self.tiles.contains(operand)) {
            *operand = needed.of(*operand);
        }
        if kind == Op::Mma {
            operands.swap(0, 1);
        }
        let kernel = &mut *needed.place.kernel;
        kernel.op_mut(op).operands = operands;
        for result in results {
            let ty = transposed(kernel.ty(result));
            kernel.set_type(result, ty);
        }
    }
}

fn transposed(ty: &Type) -> Type {
    let tile = ty.as_tile().expect("a group is of tiles");
    Type::tile(tile.shape.iter().rev().cloned(), tile.elem.clone())
}

/// The transposed of what a group needs of elsewhere, where it first needs it.
struct Transposed<'k> {
    place: Inserter<'k>,
    definitions: HashMap<ValueId, OpId>,
    known: HashMap<ValueId, ValueId>,
}

impl Transposed<'_> {
    fn of(&mut self, tile: ValueId) -> ValueId {
        if let Some(&known) = self.known.get(&tile) {
            return known;
        }
        let data = self.definitions.get(&tile).map(|&op| self.place.kernel.op(op).clone());
        let turned = |shape: &[_]| shape.iter().rev().cloned().collect();
        let made = match data {
            Some(data) if is_transposition(self.place.kernel, &data) => data.operands[0],
            Some(OpData { op: Op::Splat(shape), operands, .. }) => {
                self.emit(Op::Splat(turned(&shape)), operands, tile)
            }
            Some(OpData { op: Op::Iota { shape, axis, elem }, .. }) => {
                self.emit(Op::Iota { shape: turned(&shape), axis: 1 - axis, elem }, Vec::new(), tile)
            }
            Some(OpData { op: Op::Broadcast(shape), operands, .. }) => {
                let narrow = self.of(operands[0]);
                self.emit(Op::Broadcast(turned(&shape)), vec![narrow], tile)
            }
            _ => self.emit(Op::Permute(vec![1, 0]), vec![tile], tile),
        };
        self.known.insert(tile, made);
        made
    }

    /// Adds an op that gives the transposed of a tile.
    fn emit(&mut self, op: Op, operands: Vec<ValueId>, tile: ValueId) -> ValueId {
        let ty = transposed(self.place.kernel.ty(tile));
        self.place.emit(op, operands, ty)
    }
}

#[cfg(test)]
mod tests {
    use super::super::PIPELINE;
    use crate::array::Elements;
    use crate::{Array, DType, Instance, interp, text};
    use tile_test_edit::Edit;

    /// The derivative of a row of queries' scores: `STEP` is what a turn computes of `%q` and of the block's keys.
    const KERNEL: &str = "\
kernel @k(%q: tensor<m x 16 x bf16>, %k: tensor<n x 16 x bf16>, %l: tensor<m x 1 x f32>, %y: mut tensor<n x 16 x f32>) {
  %vq = partition %q [32, 16] : partition<m x 16 x bf16, [32, 16]>
  %vk = partition %k [64, 16] : partition<n x 16 x bf16, [64, 16]>
  %vl = partition %l [32, 1] : partition<m x 1 x f32, [32, 1]>
  %vy = partition %y [64, 16] : mut partition<n x 16 x f32, [64, 16]>
  %j, %none = block_index %vy : index, index
  %0 = constant 0 : index
  %end = extent ceil_div(m, 32) : index
  %z = constant 0.0 : f32
  %zb = constant 0.0 : bf16
  %start = splat %z : tile<64 x 16 x f32>
  %keys = load_masked %vk[%j, %0] pad %zb : tile<64 x 16 x bf16>
  %sum = for %i = %0 to %end carry (%acc = %start) : tile<64 x 16 x f32> {
    %queries = load_masked %vq[%i, %0] pad %zb : tile<32 x 16 x bf16>
    %logs = load_masked %vl[%i, %0] pad %z : tile<32 x 1 x f32>
    %turned = permute %keys [1, 0] : tile<16 x 64 x bf16>
    %zeros = splat %z : tile<32 x 64 x f32>
    %scores = mma %queries, %turned, %zeros : tile<32 x 64 x f32>
    %wide = broadcast %logs : tile<32 x 64 x f32>
    %less = sub %scores, %wide : tile<32 x 64 x f32>
    %row = iota 0 : tile<32 x 64 x f32>
    %hidden = lt %row, %less : tile<32 x 64 x bool>
    %p = select %hidden, %less, %zeros : tile<32 x 64 x f32>
STEP
    yield %next
  }
  store_masked %vy, %sum
}
";

    const NARROW: &str = "    %narrow = cast %p : tile<32 x 64 x bf16>
    %across = permute %narrow [1, 0] : tile<64 x 32 x bf16>
    %next = mma %across, %queries, %acc : tile<64 x 16 x f32>";

    /// The kernel with this step after the passes up to this one, and after it too.
    fn before_and_after(step: &str) -> [String; 2] {
        let mut instance = Instance::parse(&KERNEL.edit("STEP", step), &[]).unwrap();
        let at = PIPELINE.iter().position(|pass| pass.name == "transpose").unwrap();
        for pass in &PIPELINE[..at] {
            instance = super::super::run(instance, pass);
        }
        let before = text::print(&instance);
        [before, text::print(&super::super::run(instance, &PIPELINE[at]))]
    }

    #[test]
    fn a_product_that_is_only_used_transposed_is_computed_so() {
        let [_, after] = before_and_after(NARROW);
        insta::assert_snapshot!(after);
    }

    /// The transposition in the branch would transpose once more what is transposed already.
    #[test]
    fn what_a_branch_transposes_stays() {
        let branch = "    %first = constant true : bool
    %later = eq %i, %0 : bool
    if %later {
      %inside = permute %narrow [1, 0] : tile<64 x 32 x bf16>
      print 0 \"{0}\" %inside
    }
    %across";
        let [before, after] = before_and_after(&NARROW.edit("    %across", branch));
        assert_eq!(before, after);
    }

    /// What the kernel of a text prints and stores.
    fn seen(text: &str) -> (Vec<Elements>, Elements) {
        let instance = Instance::parse(text, &[]).unwrap();
        let array = |dtype, extents: [usize; 2], axis| Array::iota(dtype, &extents, axis);
        let mut arguments = [
            array(DType::BF16, [32, 16], 1),
            array(DType::BF16, [64, 16], 0),
            array(DType::F32, [32, 1], 0),
            array(DType::F32, [64, 16], 1),
        ];
        let events = interp::run_logged(&instance, &mut arguments).unwrap();
        let printed = events.iter().flat_map(|event| &event.values).map(|value| value.elements().clone());
        (printed.collect(), arguments[3].elements().clone())
    }

    /// Before a branch and a loop, in them and behind them, a product is used as it is, transposed, or not at all.
    #[test]
    fn uses_in_any_region_see_the_same() {
        let places: [u32; 4] = [0, 1, 2, 3];
        for choice in 0..3usize.pow(4) {
            let [before, branch, inner, behind] = places.map(|place| match choice / 3usize.pow(place) % 3 {
                0 => String::new(),
                1 => format!("    print {place} \"{{0}}\" %narrow\n"),
                _ => format!(
                    "    %seen{place} = permute %narrow [1, 0] : tile<64 x 32 x bf16>
    print {place} \"{{0}}\" %seen{place}\n"
                ),
            });
            let around = format!(
                "{before}    %first = eq %i, %0 : bool\n    if %first {{\n{branch}    }}
    for %r = %0 to %end {{\n{inner}    }}\n{behind}    %across"
            );
            let [before, after] = before_and_after(&NARROW.edit("    %across", &around));
            assert_eq!(seen(&before), seen(&after), "{after}");
        }
    }

    #[test]
    fn groups_that_must_lie_both_ways_stay() {
        let stays = |step: &str| {
            let [before, after] = before_and_after(step);
            assert_eq!(before, after);
        };
        // Rows are also summed.
        stays(&format!(
            "    %most = reduce sum %p axis 1 : tile<32 x 1 x f32>\n    print 0 \"{{0}}\" %most\n{NARROW}"
        ));
        // What isn't the same along an axis would be exchanged in its place.
        let added = NARROW.edit(
            "%narrow = cast %p",
            "%more = mul %p, %other : tile<32 x 64 x f32>\n    %narrow = cast %more",
        );
        let other = "    %pieces = reshape %queries : tile<8 x 64 x bf16>
    %four = repeat %pieces [4, 1] : tile<32 x 64 x bf16>
    %other = cast %four : tile<32 x 64 x f32>
    %least = min %other, %zeros : tile<32 x 64 x f32>
    print 0 \"{0}\" %least\n";
        stays(&format!("{other}{added}"));
    }

    #[test]
    fn a_group_that_needs_its_own_transposed_stays() {
        let symmetric = "    %square = mma %queries, %own, %none2 : tile<32 x 32 x f32>
    %back = permute %square [1, 0] : tile<32 x 32 x f32>
    %both = sub %square, %back : tile<32 x 32 x f32>
    %out = permute %both [1, 0] : tile<32 x 32 x f32>
    print 0 \"{0}\" %out\n";
        let own = "    %own = permute %queries [1, 0] : tile<16 x 32 x bf16>
    %none2 = splat %z : tile<32 x 32 x f32>\n";
        let [before, after] =
            before_and_after(&format!("{own}{symmetric}    %next = add %acc, %start : tile<64 x 16 x f32>"));
        assert_eq!(before, after);
    }
}
