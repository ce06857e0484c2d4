//! Products whose blocks are pairs that copy for each other: they are right whatever copies do first, and without any
//! instruction that makes them so they are not.

use super::mutations::{needed, remove};
use crate::simt::*;
use half::bf16;
use inkwell::values::{BasicValueEnum, InstructionValue};
use tile_ir::{specialize, text, verify};

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
        let kernel =
            verify(text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"))).unwrap();
        let instance = specialize(&kernel, &[]).unwrap();
        let kernel = compile_changed(&instance, TargetDesc::named("sm_90a").unwrap(), None, change);
        let kernel = kernel.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kernel.code.geometry.cluster, 2, "blocks are pairs");
        kernel
    }

    /// Whether so many blocks give the product of matrices of small numbers, m by k and k by n.
    fn is_right(
        self,
        [m, n, k]: [usize; 3],
        (blocks, timing): (u64, Timing),
        change: &mut dyn FnMut(&Ir<'_>),
    ) -> Result<bool, Fault> {
        let kernel = self.compile(change);
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
