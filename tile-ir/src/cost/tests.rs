//! The model's order of instances on cases that are known, and what holds of it for all sizes.

use super::*;
use crate::abi::KernelAbi;
use crate::counts::Counts;
use crate::specialize::{Instance, specialize_for};
use crate::target::{Rates, TargetDesc};
use crate::view::{ArgumentLayout, GivenTensor};
use crate::{Binding, Variant, VerifiedKernel};
use tile_test_edit::Edit;

/// A product of 16-bit floats; the right factor lies with its depth along rows, or, transposed, across them.
const MATMUL: &str = "\
kernel @matmul<BM, BN, BK>(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x bf16>) {
  %va = partition %a [BM, BK] : partition<m x k x bf16, [BM, BK]>
  %vb = partition %b [BK, BN] : partition<k x n x bf16, [BK, BN]>
  %vc = partition %c [BM, BN] : mut partition<m x n x bf16, [BM, BN]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %0 = constant 0.0 : f32
  %zero = splat %0 : tile<BM x BN x f32>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<BM x BN x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<BM x BK x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<BK x BN x bf16>
    %next = mma %ta, %tb, %acc : tile<BM x BN x f32>
    yield %next
  }
  %rounded = cast %sum : tile<BM x BN x bf16>
  store_masked %vc, %rounded
}
";

type Tiles = [usize; 3];

fn instance([bm, bn, bk]: Tiles) -> Instance {
    Instance::parse(MATMUL, &[("BM", bm), ("BN", bn), ("BK", bk)]).unwrap()
}

/// Instances of the product, each with its plan for a target.
struct Candidates {
    machine: Machine,
    of: Vec<(Tiles, Instance, Option<Plan>)>,
}

impl Candidates {
    /// For a target, or without a name for the host.
    fn new(target: Option<&str>, tiles: &[Tiles]) -> Candidates {
        let plan = |instance: &Instance| {
            let target = TargetDesc::named(target?).unwrap();
            let aligned = Variant::Aligned.of(instance).unwrap();
            Some(Plan::of(&aligned, target))
        };
        let of = tiles.iter().map(|&tiles| {
            let instance = instance(tiles);
            let plan = plan(&instance);
            (tiles, instance, plan)
        });
        let machine = match target {
            Some(target) => Machine::Gpu(GpuMachine::new(Rates::of(target).unwrap(), None, None)),
            None => Machine::Cpu(CpuMachine::default()),
        };
        Candidates { machine, of: of.collect() }
    }

    fn predict(&self, instance: usize, [m, n, k]: [usize; 3]) -> Prediction {
        let (_, instance, plan) = &self.of[instance];
        let abi = KernelAbi::of(instance);
        let totals = Counts::of(instance).total(&abi, &abi.bind(&[&[m, k], &[k, n], &[m, n]]).unwrap());
        predict(&totals, plan.as_ref(), &self.machine).unwrap()
    }

    /// All of them, the one with the least time first.
    fn ranked(&self, sizes: [usize; 3]) -> Vec<(Tiles, Prediction)> {
        let mut all: Vec<_> = (0..self.of.len()).map(|i| (self.of[i].0, self.predict(i, sizes))).collect();
        all.sort_by(|a, b| a.1.compare(&b.1));
        all
    }

    fn best(&self, sizes: [usize; 3]) -> Tiles {
        self.ranked(sizes)[0].0
    }
}

const TILES: &[Tiles] = &[
    [16, 64, 64],
    [64, 64, 64],
    [64, 128, 64],
    [128, 128, 64],
    [64, 256, 64],
    [128, 256, 64],
    [256, 128, 64],
];

/// On an H200 the largest tile does the most with what it reads of shared memory.
#[test]
fn large_products_take_large_tiles() {
    let candidates = Candidates::new(Some("sm_90a"), TILES);
    // Both sizes fill 132 multiprocessors to 97 % with either 128×256 or 128×128, so the better tile wins.
    for size in [8192, 4096] {
        let ranked = candidates.ranked([size; 3]);
        assert_eq!(ranked[0].0, [128, 256, 64], "{ranked:?}");
        let rank = |tiles: Tiles| ranked.iter().position(|(other, _)| *other == tiles).unwrap();
        assert!(rank([128, 128, 64]) < rank([64, 128, 64]) && rank([64, 128, 64]) < rank([64, 64, 64]));
        // No faster than the datasheet's peak, and not much slower.
        let rate = 2.0 * (size as f64).powi(3) / ranked[0].1.seconds;
        assert!((0.85..1.0).contains(&(rate / 989.5e12)), "{rate:e}");
    }
}

/// Factors of f32 that were converted from 16 bits are multiplied as these, and cost what these do, but for the conversions.
#[test]
fn products_that_a_schedule_narrows_are_done_by_matrix_instructions() {
    let target = TargetDesc::named("sm_90a").unwrap();
    let machine = Machine::Gpu(GpuMachine::new(Rates::of("sm_90a").unwrap(), None, None));
    let seconds = |text: &str| {
        let instance = Instance::parse(text, &[("BM", 128), ("BN", 128), ("BK", 64)]).unwrap();
        let plan = Plan::of(&instance, target);
        let abi = KernelAbi::of(&instance);
        let sizes = abi.bind(&[&[4096, 4096], &[4096, 4096], &[4096, 4096]]).unwrap();
        predict(&Counts::of(&instance).total(&abi, &sizes), Some(&plan), &machine).unwrap().seconds
    };
    let wide = MATMUL.edit(
        "    %next = mma %ta, %tb, %acc",
        "    %wa = cast %ta : tile<BM x BK x f32>
    %wb = cast %tb : tile<BK x BN x f32>
    %next = mma %wa, %wb, %acc",
    );
    let (as_they_are, converted) = (seconds(MATMUL), seconds(&wide));
    assert!(converted < 4.0 * as_they_are, "{converted:e} s and {as_they_are:e} s");
}

/// A product of which only the transposed is used is computed so, and is no other product for that.
#[test]
fn products_that_a_pass_turns_are_done_by_matrix_instructions() {
    let text = "\
kernel @turned(%q: tensor<m x 64 x bf16>, %k: tensor<n x 64 x bf16>, %y: mut tensor<n x 64 x f32>) {
  %vq = partition %q [64, 64] : partition<m x 64 x bf16, [64, 64]>
  %vk = partition %k [128, 64] : partition<n x 64 x bf16, [128, 64]>
  %vy = partition %y [128, 64] : mut partition<n x 64 x f32, [128, 64]>
  %j, %none = block_index %vy : index, index
  %0 = constant 0 : index
  %end = extent ceil_div(m, 64) : index
  %z = constant 0.0 : f32
  %zb = constant 0.0 : bf16
  %start = splat %z : tile<128 x 64 x f32>
  %keys = load_masked %vk[%j, %0] pad %zb : tile<128 x 64 x bf16>
  %sum = for %i = %0 to %end carry (%acc = %start) : tile<128 x 64 x f32> {
    %queries = load_masked %vq[%i, %0] pad %zb : tile<64 x 64 x bf16>
    %turned = permute %keys [1, 0] : tile<64 x 128 x bf16>
    %zeros = splat %z : tile<64 x 128 x f32>
    %scores = mma %queries, %turned, %zeros : tile<64 x 128 x f32>
    %narrow = cast %scores : tile<64 x 128 x bf16>
    %across = permute %narrow [1, 0] : tile<128 x 64 x bf16>
    %next = mma %across, %queries, %acc : tile<128 x 64 x f32>
    yield %next
  }
  store_masked %vy, %sum
}
";
    let instance = Instance::parse(text, &[]).unwrap();
    let abi = KernelAbi::of(&instance);
    let sizes = abi.bind(&[&[4096, 64], &[4096, 64], &[4096, 64]]).unwrap();
    let totals = Counts::of(&instance).total(&abi, &sizes);
    let plan = Plan::of(&instance, TargetDesc::named("sm_90a").unwrap());
    assert_eq!(
        totals.products.keys().map(|shape| [shape.m, shape.n]).collect::<Vec<_>>(),
        [[64, 128], [128, 64]]
    );
    for shape in totals.products.keys() {
        let product = plan.product(shape).unwrap_or_else(|| panic!("{shape:?} isn't planned"));
        assert!(!matches!(product.unit, Unit::Lanes), "{shape:?}: {product:?}");
    }
}

/// 144 tiles of 128×256 are two waves, the second almost empty; 288 of 128×128 are three, of half the work each.
#[test]
fn a_bad_last_wave_takes_smaller_tiles() {
    let candidates = Candidates::new(Some("sm_90a"), TILES);
    assert_eq!(candidates.best([2048, 2304, 4096]), [128, 128, 64]);
    assert_eq!(candidates.best([2048, 2048, 4096]), [128, 256, 64]);
}

#[test]
fn small_products_take_tiles_that_fill_the_machine() {
    for target in ["sm_80", "sm_90a", "gfx942"] {
        let candidates = Candidates::new(Some(target), TILES);
        let tiles = candidates.best([512; 3]);
        assert!(tiles[0] * tiles[1] <= 64 * 64, "{target}: {tiles:?}");
    }
}

/// Memory takes the same time for all; rows that don't exist are the fewest.
#[test]
fn few_rows_take_the_lowest_tiles() {
    for target in ["sm_80", "sm_90a", "gfx942"] {
        let candidates = Candidates::new(Some(target), TILES);
        for sizes in [[16, 57344, 7168], [16, 8192, 8192]] {
            let ranked = candidates.ranked(sizes);
            assert_eq!(ranked[0].0[0], 16, "{target}: {ranked:?}");
            assert_ne!(ranked[0].1.limit, Limit::Matrix);
        }
    }
    assert_eq!(Candidates::new(Some("sm_90a"), TILES).ranked([16, 57344, 7168])[0].1.limit, Limit::Memory);
}

#[test]
fn a_block_without_room_is_refused() {
    let candidates = Candidates::new(Some("gfx942"), &[[256, 256, 128]]);
    let (_, instance, plan) = &candidates.of[0];
    let abi = KernelAbi::of(instance);
    let totals =
        Counts::of(instance).total(&abi, &abi.bind(&[&[256, 128], &[128, 256], &[256, 256]]).unwrap());
    let refused = predict(&totals, plan.as_ref(), &candidates.machine).unwrap_err();
    assert_eq!(refused.to_string(), "a block needs 131072 bytes of shared memory, and gfx942 has 65536");
}

/// Repeatable numbers in a range.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn size(&mut self) -> usize {
        let most = 1 << (1 + self.below(13));
        1 + self.below(most) as usize
    }
}

#[test]
fn larger_sizes_never_take_less_time() {
    let mut random = Random(1);
    for target in [None, Some("sm_80"), Some("sm_90a"), Some("gfx942")] {
        let candidates = Candidates::new(target, &TILES[1..4]);
        for _ in 0..300 {
            let sizes: [usize; 3] = std::array::from_fn(|_| random.size());
            let mut larger = sizes;
            larger[random.below(3) as usize] += random.size();
            for instance in 0..candidates.of.len() {
                let [less, more] = [sizes, larger].map(|sizes| candidates.predict(instance, sizes).seconds);
                assert!(less <= more * (1.0 + 1e-12), "{target:?}: {sizes:?} {less}, {larger:?} {more}");
            }
        }
    }
}

#[test]
fn better_processors_never_take_more_time() {
    let mut random = Random(2);
    let faster: [fn(&mut Rates); 6] = [
        |rates| rates.multiprocessors += 7,
        |rates| rates.clock *= 1.3,
        |rates| rates.memory *= 1.3,
        |rates| rates.l2_bytes *= 1.3,
        |rates| rates.shared_bytes *= 1.3,
        |rates| rates.latency /= 1.3,
    ];
    let mut candidates = Candidates::new(Some("sm_90a"), &TILES[1..4]);
    let Machine::Gpu(machine) = candidates.machine.clone() else { unreachable!("a GPU was named") };
    let mut differ = [false; 6];
    for round in 0..300 {
        // Every tenth waits for memory.
        let sizes = if round % 10 == 0 { [16, 57344, 7168] } else { std::array::from_fn(|_| random.size()) };
        let instance = random.below(3) as usize;
        candidates.machine = Machine::Gpu(machine);
        let before = candidates.predict(instance, sizes).seconds;
        for (number, faster) in faster.iter().enumerate() {
            let mut better = machine;
            faster(&mut better.rates);
            candidates.machine = Machine::Gpu(better);
            let after = candidates.predict(instance, sizes).seconds;
            assert!(after <= before, "{number}: {sizes:?}");
            differ[number] |= after < before;
        }
    }
    assert_eq!(differ, [true; 6], "every number counts for some sizes");
}

/// Counts end at what 64 bits hold, and so do sums of them.
#[test]
fn as_many_turns_as_there_are_numbers_take_their_time() {
    let totals = |loading_turns| Totals { tiles: 1 << 14, loading_turns, ..Totals::default() };
    let machine = Machine::Cpu(CpuMachine::default());
    let [few, most] = [1, u64::MAX].map(|turns| predict(&totals(turns), None, &machine).unwrap().seconds);
    assert!(few <= most);
}

/// A processor's threads, and the cache that holds a product's tiles.
#[test]
fn blocks_are_shared_by_threads() {
    let mut candidates = Candidates::new(None, &[[64, 64, 64], [512, 512, 64]]);
    candidates.machine = Machine::Cpu(CpuMachine { threads: 16, ..CpuMachine::default() });
    // One block of the larger tile leaves fifteen threads without work.
    assert_eq!(candidates.best([512; 3]), [64, 64, 64]);
    let few = candidates.predict(1, [512; 3]).seconds / candidates.predict(0, [512; 3]).seconds;
    assert!((8.0..24.0).contains(&few), "{few}");
    candidates.machine = Machine::Cpu(CpuMachine { threads: 1, ..CpuMachine::default() });
    assert_eq!(candidates.best([16, 512, 512]), [64, 64, 64], "rows that don't exist are multiplied, too");
}

/// What is kept of a left factor stays in the second cache beside the right one where tiles are low.
#[test]
fn tiles_leave_room_for_what_is_kept() {
    let mut candidates = Candidates::new(None, &[[256, 256, 256], [128, 256, 256], [32, 256, 256]]);
    let with = |l2_bytes| Machine::Cpu(CpuMachine { lanes: 16, l2_bytes, ..CpuMachine::default() });
    for l2_bytes in [1 << 20, 2 << 20] {
        candidates.machine = with(l2_bytes);
        assert_eq!([1024, 2048].map(|size| candidates.best([size; 3])), [[128, 256, 256]; 2], "{l2_bytes}");
    }
    candidates.machine = with(8 << 20);
    assert_eq!(candidates.best([2048; 3]), [256, 256, 256]);
}

/// What a multiplication wants of the second cache is to leave a quarter of it: measured on a Zen 5, whose products of 2048³
/// take 1.05 to 1.12 times as long in tiles of which 7/8 are wanted.
#[test]
fn tiles_leave_room_for_what_comes_from_memory() {
    let mut candidates = Candidates::new(None, &[[128, 256, 256], [256, 256, 128]]);
    let with = |l2_bytes| Machine::Cpu(CpuMachine { lanes: 16, l2_bytes, ..CpuMachine::default() });
    candidates.machine = with(1 << 20);
    assert_eq!(candidates.best([2048; 3]), [256, 256, 128]);
    candidates.machine = with(2 << 20);
    assert_eq!(candidates.best([2048; 3]), [128, 256, 256]);
}

/// Elements of a view that lie apart are worth their sectors and lines: a tile is chosen that goes along them.
#[test]
fn tiles_go_along_what_lies_together() {
    const DOUBLED: &str = "\
kernel @doubled<A, B>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [A, B] : partition<m x n x f32, [A, B]>
  %vy = partition %y [A, B] : mut partition<m x n x f32, [A, B]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<A x B x f32>
  %d = add %t, %t : tile<A x B x f32>
  store_masked %vy, %d
}
";
    let kernel = VerifiedKernel::parse(DOUBLED).unwrap();
    let extents = [4096, 4096];
    let predicted = |target: Option<&str>, tile: [usize; 2], strides: Option<[i64; 2]>| {
        // What repeats isn't written.
        let written = strides.filter(|strides| !strides.contains(&0));
        let given = [strides.as_ref(), written.as_ref()].map(|it| GivenTensor {
            extents: &extents,
            strides: it.map(|it| &it[..]),
            offset: 0,
        });
        let bindings =
            vec![("A".to_owned(), Binding::Const(tile[0])), ("B".to_owned(), Binding::Const(tile[1]))];
        let layout = |(number, given)| Some((number, ArgumentLayout::of(given)?));
        let layouts: Vec<_> = given.iter().enumerate().filter_map(layout).collect();
        let instance = specialize_for(&kernel, &bindings, &layouts).unwrap();
        let abi = KernelAbi::of(&instance);
        let totals = Counts::of(&instance).total(&abi, &abi.bind_tensors(&given, &|_| None).unwrap());
        let plan = target.map(|name| Plan::of(&instance, TargetDesc::named(name).unwrap()));
        let machine = match target {
            Some(name) => Machine::Gpu(GpuMachine::new(Rates::of(name).unwrap(), None, None)),
            None => Machine::Cpu(CpuMachine::default()),
        };
        predict(&totals, plan.as_ref(), &machine).unwrap()
    };
    for target in [None, Some("sm_90a"), Some("gfx942")] {
        let rank =
            |strides| predicted(target, [1, 256], strides).compare(&predicted(target, [256, 1], strides));
        assert_eq!(rank(None), Ordering::Less, "rows of a matrix: {target:?}");
        assert_eq!(rank(Some([1, 4096])), Ordering::Greater, "rows of a matrix turned: {target:?}");
        // Every eighth column: a whole sector for each element, of memory as well.
        let [dense, apart] = [None, Some([8 * 4096, 8])].map(|strides| predicted(target, [1, 1024], strides));
        assert!(apart.seconds > 6.0 * dense.seconds, "{target:?}: {apart:?} {dense:?}");
        // Elements that repeat take less than others, and no memory of their own.
        let repeated = predicted(target, [16, 256], Some([0, 1]));
        assert!(repeated.seconds <= predicted(target, [16, 256], None).seconds, "{target:?}");
    }
}

/// The first cache doesn't hold many long rows that are read again; what all blocks read needn't be shared by rows of a tile.
#[test]
fn long_rows_that_are_read_again_are_taken_one_by_one() {
    const SCALED: &str = "\
kernel @scaled<A, B>(%x: tensor<m x n x f32>, %w: tensor<1 x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [A, B] : partition<m x n x f32, [A, B]>
  %vw = partition %w [1, B] : partition<1 x n x f32, [1, B]>
  %vy = partition %y [A, B] : mut partition<m x n x f32, [A, B]>
  %i, %j = block_index %vy : index, index
  %first = constant 0 : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<A x B x f32>
  %s = reduce sum %t axis 1 : tile<A x 1 x f32>
  %n = extent n : index
  %count = cast %n : f32
  %counts = splat %count : tile<A x 1 x f32>
  %mean = div %s, %counts : tile<A x 1 x f32>
  %sb = broadcast %mean : tile<A x B x f32>
  %u = mul %t, %sb : tile<A x B x f32>
  %v = load_masked %vw[%first, %first] pad %pad : tile<1 x B x f32>
  %vb = broadcast %v : tile<A x B x f32>
  %r = mul %u, %vb : tile<A x B x f32>
  store_masked %vy, %r
}
";
    let predicted = |rows: usize, columns: usize| {
        let instance = Instance::parse(SCALED, &[("A", rows), ("B", columns)]).unwrap();
        let abi = KernelAbi::of(&instance);
        let extents = [[4096, columns], [1, columns], [4096, columns]];
        let given = extents.each_ref().map(|extents| GivenTensor { extents, strides: None, offset: 0 });
        let totals = Counts::of(&instance).total(&abi, &abi.bind_tensors(&given, &|_| None).unwrap());
        predict(&totals, None, &Machine::Cpu(CpuMachine::default())).unwrap()
    };
    for columns in [4096, 8192] {
        assert_eq!(predicted(1, columns).compare(&predicted(16, columns)), Ordering::Less, "{columns}");
    }
    assert_eq!(predicted(1, 64).compare(&predicted(16, 64)), Ordering::Greater, "short rows");
}

/// A block that goes through its elements once needs no cache for them, and larger ones begin less often.
#[test]
fn elements_that_are_read_once_are_taken_in_large_tiles() {
    let source = |body: &str| {
        format!(
            "kernel @k<B>(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{
  %vx = partition %x [B] : partition<n x f32, [B]>
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %pad : tile<B x f32>
{body}  store_masked %vy, %r
}}
"
        )
    };
    let predicted = |body: &str, tile: usize| {
        let instance = Instance::parse(&source(body), &[("B", tile)]).unwrap();
        let abi = KernelAbi::of(&instance);
        let totals = Counts::of(&instance).total(&abi, &abi.bind(&[&[1 << 26], &[1 << 26]]).unwrap());
        predict(&totals, None, &Machine::Cpu(CpuMachine::default())).unwrap()
    };
    let compared = |body| predicted(body, 16384).compare(&predicted(body, 1024));
    assert_eq!(compared("  %r = add %t, %t : tile<B x f32>\n"), Ordering::Less);
    // A sum is what the whole tile gives, which is read again then.
    let sums = "  %s = reduce sum %t axis 0 : tile<1 x f32>
  %sb = broadcast %s : tile<B x f32>
  %r = add %t, %sb : tile<B x f32>
";
    assert_eq!(compared(sums), Ordering::Greater);
}
