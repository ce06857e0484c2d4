//! Products whose blocks are pairs that copy for each other: they are right whatever copies do first, and without any
//! instruction that makes them so they are not.

use super::mutations::{callee, name, needed, without};
use crate::simt::*;
use half::bf16;
use inkwell::values::{AnyValue, BasicValueEnum, CallSiteValue, InstructionValue};
use tile_ir::Instance;
use tile_test_edit::Edit;

const BOTH: [Timing; 2] = [Timing::Late, Timing::Early];

/// A product of tiles of 64 by 96, or more rows, whose blocks are pairs along an axis.
#[derive(Clone, Copy)]
struct Product {
    rows: usize,
    pairs: usize,
    /// Whether the kernel says itself how its blocks share tiles.
    persistent: bool,
    /// Whether the right factor lies with its depth along rows.
    turned: bool,
}

const PLAIN: Product = Product { rows: 64, pairs: 0, persistent: false, turned: false };

impl Product {
    fn source(self) -> String {
        let Product { rows, pairs, .. } = self;
        let (b, tile, load) = match self.turned {
            false => ("k x n", "32, 96", "%tb = load_masked %vb[%p, %j] pad %pad : tile<32 x 96 x bf16>"),
            true => (
                "n x k",
                "96, 32",
                "%tt = load_masked %vb[%j, %p] pad %pad : tile<96 x 32 x bf16>\n    \
                 %tb = permute %tt [1, 0] : tile<32 x 96 x bf16>",
            ),
        };
        let (begin, end) =
            if self.persistent { ("tiles %vc grouped(2) {\n", "  yield\n  }\n") } else { ("", "") };
        format!(
            "kernel @matmul(%a: tensor<m x k x bf16>, %b: tensor<{b} x bf16>, %c: mut tensor<m x n x f32>) where \
             \"k % 8 == 0\": rem(k, 8) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 pairs {pairs} {{
  %va = partition %a [{rows}, 32] : partition<m x k x bf16, [{rows}, 32]>
  %vb = partition %b [{tile}] : partition<{b} x bf16, [{tile}]>
  %vc = partition %c [{rows}, 96] : mut partition<m x n x f32, [{rows}, 96]>
  {begin}  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<{rows} x 96 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 32) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<{rows} x 96 x f32> {{
    %ta = load_masked %va[%i, %p] pad %pad : tile<{rows} x 32 x bf16>
    {load}
    %next = mma %ta, %tb, %acc : tile<{rows} x 96 x f32>
    yield %next
  }}
  store_masked %vc, %sum
  {end}}}
"
        )
    }

    fn compile(self, change: &mut dyn FnMut(&Ir<'_>)) -> SimtKernel {
        let source = self.source();
        let instance = Instance::parse(&source, &[]).unwrap();
        let kernel = compile_changed(&instance, TargetDesc::named("sm_90a").unwrap(), None, change);
        let kernel = kernel.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kernel.code.geometry.cluster, 2, "blocks are pairs");
        kernel
    }

    /// Whether so many blocks give the product of matrices of small numbers, m by k and k by n, after a change.
    fn is_right(
        self,
        sizes: [usize; 3],
        how: (u64, Timing),
        change: &mut dyn FnMut(&Ir<'_>),
    ) -> Result<bool, RunError> {
        self.is_given(&self.compile(change), sizes, how)
    }

    /// Whether so many blocks of a kernel for it give the product.
    fn is_given(
        self,
        kernel: &SimtKernel,
        [m, n, k]: [usize; 3],
        (blocks, timing): (u64, Timing),
    ) -> Result<bool, RunError> {
        let number = |i: usize, seed: usize| ((i * 7 + i / 11 + seed) % 5) as f32 - 2.0;
        let a = |row: usize, depth: usize| number(row * k + depth, 1);
        let b = |depth: usize, column: usize| number(depth * n + column, 2);
        let factor = |count: usize, at: &dyn Fn(usize) -> f32| -> Vec<u128> {
            let bits: Vec<u8> = (0..count).flat_map(|i| bf16::from_f32(at(i)).to_le_bytes()).collect();
            let word = |chunk: &[u8]| u128::from_le_bytes(chunk.try_into().expect("rows are whole words"));
            bits.chunks(16).map(word).collect()
        };
        let right: Box<dyn Fn(usize) -> f32> =
            if self.turned { Box::new(|i| b(i % k, i / k)) } else { Box::new(|i| b(i / n, i % n)) };
        let mut tensors = [
            factor(m * k, &|i| a(i / k, i % k)),
            factor(k * n, right.as_ref()),
            vec![u128::MAX; (m * n).div_ceil(4)],
        ];
        let shapes: [&[usize]; 3] = [&[m, k], if self.turned { &[n, k] } else { &[k, n] }, &[m, n]];
        let bound = kernel.abi.bind(&shapes).expect("shapes that fit");
        let tiles: u64 = (m.div_ceil(self.rows) * n.div_ceil(96)) as u64;
        let mut slots: Vec<u64> = tensors.iter_mut().map(|tensor| tensor.as_mut_ptr() as u64).collect();
        slots.extend(&bound.sizes);
        slots.extend(self.persistent.then_some([tiles, blocks]).into_iter().flatten());
        // SAFETY: the slots are as the ABI says, and the tensors as large as their shapes.
        unsafe { kernel.run_as(&slots, blocks, Mode { timing, counted: false }) }?;
        let sums: Vec<f32> = tensors[2]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<u8>>()
            .chunks(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")))
            .collect();
        let product = |i: usize| (0..k).map(|depth| a(i / n, depth) * b(depth, i % n)).sum::<f32>();
        Ok((0..m * n).all(|i| sums[i] == product(i)))
    }
}

/// What no launch has is an error that says what one has.
#[test]
fn blocks_are_whole_clusters_of_a_grid() {
    let error = |blocks| {
        let right = PLAIN.is_right([128, 192, 64], (blocks, Timing::Late), &mut |_| {});
        right.expect_err("no launch has so many blocks").to_string()
    };
    assert_eq!(
        error(3),
        "3 blocks aren't whole clusters: 2 of the kernel's blocks run together, so run a multiple of that"
    );
    assert_eq!(
        error(1 << 32),
        "4294967296 blocks are more than a grid has, which is 2147483647; run the kernel on parts of its tensors"
    );
}

fn whole(product: Product, sizes: [usize; 3], blocks: u64) {
    for timing in BOTH {
        let right = product.is_right(sizes, (blocks, timing), &mut |_| {});
        assert!(right.unwrap_or_else(|fault| panic!("{timing:?}: {fault}")), "{timing:?} {sizes:?} {blocks}");
    }
}

/// One wave and several, the last of which not every pair takes part in; edges; no turns at all.
#[test]
fn pairs_share_what_both_read() {
    for pairs in [0, 1] {
        let product = Product { pairs, ..PLAIN };
        whole(product, [128, 192, 320], 4);
        whole(product, [256, 192, 320], 2);
        whole(product, [384, 192, 96], 4);
        whole(product, [100, 104, 72], 2);
        whole(product, [128, 192, 0], 2);
        whole(Product { turned: true, ..product }, [128, 192, 320], 2);
        whole(Product { rows: 128, ..product }, [256, 192, 160], 2);
    }
}

#[test]
fn pairs_share_the_tiles_of_a_persistent_kernel() {
    for pairs in [0, 1] {
        let product = Product { pairs, persistent: true, ..PLAIN };
        whole(product, [384, 192, 160], 4);
        whole(product, [256, 384, 64], 6);
    }
}

/// More turns than stages and places than blocks, late and early; and no turns.
const RUNS: [([usize; 3], Timing); 3] =
    [([256, 192, 320], Timing::Late), ([256, 192, 320], Timing::Early), ([256, 192, 0], Timing::Late)];

/// Whether the executor objects to a change in one of the runs, or the product is another.
fn is_missed(product: Product, change: &mut dyn FnMut(&Ir<'_>)) -> bool {
    RUNS.iter().any(|&(sizes, timing)| !matches!(product.is_right(sizes, (2, timing), change), Ok(true)))
}

#[test]
fn nothing_can_be_left_out_of_a_product_of_pairs() {
    let mut kernel = PLAIN.compile(&mut |_| {});
    let numbers = needed(&kernel);
    let names: Vec<String> = numbers.iter().map(|&number| name(&kernel, number).to_owned()).collect();
    let of_pairs = ["barrier.cluster.arrive", "barrier.cluster.wait", "arrive.scope.cta.space.cluster"];
    for part in of_pairs {
        let found = names.iter().filter(|name| name.trim_end_matches(".relaxed").ends_with(part));
        assert!(found.count() > 1, "{part} of {names:#?}");
    }
    let mut is_missed = |number| {
        without(&mut kernel, number, |kernel| {
            RUNS.iter()
                .any(|&(sizes, timing)| !matches!(PLAIN.is_given(kernel, sizes, (2, timing)), Ok(true)))
        })
    };
    let unmissed: Vec<String> =
        (0..names.len()).filter(|&i| !is_missed(numbers[i])).map(|i| format!("{i}: {}", names[i])).collect();
    assert!(unmissed.is_empty(), "of {} instructions the executor doesn't miss {unmissed:#?}", names.len());
}

/// The calls of intrinsics whose name has this part.
fn calls<'c>(ir: &Ir<'c>, part: &str) -> Vec<InstructionValue<'c>> {
    let kernel = ir.module.get_function(KERNEL).expect("the kernel");
    let instructions = kernel.get_basic_blocks().into_iter().flat_map(|block| block.get_instructions());
    instructions.filter(|instruction| callee(*instruction).is_some_and(|name| name.contains(part))).collect()
}

/// Makes a call one of another intrinsic of the same type.
pub(super) fn rename<'c>(ir: &Ir<'c>, call: InstructionValue<'c>, from: &str, to: &str) {
    let callee = CallSiteValue::try_from(call).expect("a call").get_called_fn_value().expect("a declaration");
    let name = callee.get_name().to_string_lossy().edit(from, to);
    let other = ir.module.get_function(&name);
    let other = other.unwrap_or_else(|| ir.module.add_function(&name, callee.get_type(), None));
    let place = call.get_num_operands() - 1;
    assert!(call.set_operand(place, other.as_global_value().as_pointer_value()));
}

/// Sets an operand of the calls of an intrinsic that have a number there.
fn set_operand(ir: &Ir<'_>, part: &str, operand: u32, change: &dyn Fn(u64) -> Option<u64>) {
    let mut changed = 0;
    for call in calls(ir, part) {
        let value = call.get_operand(operand).and_then(|operand| operand.value());
        let Some(BasicValueEnum::IntValue(value)) = value else { continue };
        let Some(next) = value.get_zero_extended_constant().and_then(change) else { continue };
        assert!(call.set_operand(operand, value.get_type().const_int(next, false)));
        changed += 1;
    }
    assert!(changed > 0, "no call of {part} has such an operand");
}

/// What the executor says of a change, in words, of the first run that it objects to.
fn objection(change: &mut dyn FnMut(&Ir<'_>)) -> String {
    let faults = RUNS.iter().filter_map(|&(sizes, timing)| PLAIN.is_right(sizes, (2, timing), change).err());
    let problem = |error| match error {
        RunError::Fault(fault) => fault.problem.to_string(),
        other => other.to_string(),
    };
    faults.map(problem).next().expect("the executor objects")
}

/// Operands of the copy of two dimensions: after the place, the mbarrier, the map and the coordinates.
const MASK: u32 = 5;
const HAS_MASK: u32 = 7;
const COPY: &str = "cp.async.bulk.tensor.g2s.tile.2d";

#[test]
fn masks_name_both_blocks() {
    let to = |mask: u64| move |old: u64| (old == 3).then_some(mask);
    // The other block waits for bytes that never come, and its own has them twice where nothing else is copied.
    for mask in [1, 2] {
        let said = objection(&mut |ir| set_operand(ir, COPY, MASK, &to(mask)));
        assert!(said.contains("no thread can go on") || said.contains("bytes"), "{mask}: {said}");
    }
    let said = objection(&mut |ir| set_operand(ir, COPY, MASK, &to(7)));
    assert!(said.contains("copies to the blocks of mask 0x7, of a cluster of 2"), "{said}");
    let said = objection(&mut |ir| set_operand(ir, COPY, HAS_MASK, &|old| (old == 1).then_some(0)));
    assert!(said.contains("no thread can go on"), "{said}");
}

#[test]
fn each_block_expects_the_bytes_of_the_whole_tile() {
    let halved = |ir: &Ir<'_>| set_operand(ir, "arrive.expect.tx", 1, &|bytes| Some(bytes - 3072));
    let said = objection(&mut |ir| halved(ir));
    assert!(
        said.contains("still writes")
            || said.contains("no thread can go on")
            || said.contains("nobody wrote"),
        "{said}"
    );
}

#[test]
fn both_blocks_leave_a_stage_before_one_copies_to_it() {
    // An mbarrier for the consumers of one block alone.
    let halved = |ir: &Ir<'_>| set_operand(ir, "mbarrier.init", 1, &|count| (count == 8).then_some(4));
    assert!(is_missed(PLAIN, &mut |ir| halved(ir)));
    // All lanes that speak say it to their own block.
    let mut to_own = |ir: &Ir<'_>| {
        let rank = calls(ir, "sreg.cluster.ctarank")[0];
        let rank = BasicValueEnum::try_from(rank.as_any_value_enum()).expect("a number");
        for map in calls(ir, "mapa") {
            assert!(map.set_operand(1, rank));
        }
    };
    let said = objection(&mut to_own);
    assert!(said.contains("more often") || said.contains("no order") || said.contains("still"), "{said}");
}

/// The barrier before the first copy, and that after the last.
#[test]
fn the_last_barrier_of_a_pair_orders_memory_across_both() {
    let relaxed = "barrier.cluster.arrive.relaxed";
    let mut found = [0; 2];
    PLAIN.compile(&mut |ir| found = ["barrier.cluster.arrive", relaxed].map(|part| calls(ir, part).len()));
    assert_eq!(found, [2, 1], "behind a fence of the mbarriers the first one needn't");
    let said = objection(&mut |ir| {
        rename(ir, calls(ir, "barrier.cluster.arrive")[1], "arrive", "arrive.relaxed");
    });
    assert!(said.contains("may have ended"), "{said}");
    let said = objection(&mut |ir| calls(ir, "fence.mbarrier_init")[0].erase_from_basic_block());
    assert!(said.contains("`fence.mbarrier_init`") || said.contains("no barrier between them"), "{said}");
}

/// A block that ends while the other still says that it left a stage, or copies to it, is objected to.
#[test]
fn both_blocks_are_there_to_the_end() {
    let without_last = |ir: &Ir<'_>| {
        for part in ["barrier.cluster.arrive", "barrier.cluster.wait"] {
            calls(ir, part).last().expect("there are two").erase_from_basic_block();
        }
    };
    let said = objection(&mut |ir| without_last(ir));
    assert!(said.contains("reaches shared memory of block") && said.contains("may have ended"), "{said}");
    let without_first = |ir: &Ir<'_>| {
        for part in ["barrier.cluster.arrive", "barrier.cluster.wait"] {
            calls(ir, part).first().expect("there are two").erase_from_basic_block();
        }
    };
    let said = objection(&mut |ir| without_first(ir));
    assert!(said.contains("there is no mbarrier") || said.contains("no barrier between them"), "{said}");
}
