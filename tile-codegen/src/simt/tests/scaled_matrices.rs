//! Matrix products that scale blocks of their factors, against a plain triple loop: another scale for each row, column and
//! block, so that one that is taken from a wrong lane or byte is seen.

use super::harness::{Kernel, words};

/// An instruction of factors of e4m3 and e5m2, and where the manual has its operands.
struct Scaled {
    gpu: &'static str,
    lanes: usize,
    size: [usize; 3],
    /// The types of A, B and C in a lane.
    types: [&'static str; 3],
    /// The call with operands `%x` (A), `%y` (B), `%z` (C), and `%s` and `%t`, the words that have the scales.
    call: String,
    /// Row and depth of byte `i` of A, depth and column of byte `i` of B, row and column of element `i` of C.
    places: [fn(usize, usize) -> [usize; 2]; 3],
    /// The lane that has the scale of a row of A and a block, and of a column of B and a block, and in which byte.
    givers: [fn(usize, usize) -> usize; 2],
    bytes: [u32; 2],
}

/// What is multiplied: numbers by row and column, and scales by row or column and block.
struct Matrices {
    a: Vec<i32>,
    b: Vec<i32>,
    c: Vec<i32>,
    scales: [Vec<u8>; 2],
}

/// Elements along the depth that share a scale (OCP Microscaling Formats).
const BLOCK: usize = 32;

/// A small integer as an 8-bit float of so many bits of mantissa.
fn encoded(value: i32, mantissa: u32) -> u8 {
    let bias = if mantissa == 3 { 7 } else { 15 };
    let (size, sign) = (value.unsigned_abs(), if value < 0 { 0x80 } else { 0 });
    match size.checked_ilog2() {
        None => sign,
        Some(exponent) => {
            sign | (((exponent + bias) << mantissa) + ((size << mantissa >> exponent) - (1 << mantissa)))
                as u8
        }
    }
}

impl Scaled {
    fn matrices(&self) -> Matrices {
        let [m, n, k] = self.size;
        let random = words(m * k + k * n + m * n, 29);
        let number = |&word: &u32| (word % 15) as i32 - 7;
        let numbers = |range: std::ops::Range<usize>| random[range].iter().map(number).collect();
        // Powers of two from 2⁻² to 2²; their order has no period that rows, columns or blocks have.
        let scales = |count: usize, step: usize| {
            (0..count * k / BLOCK).map(|i| 125 + (i * step % 7 % 5) as u8).collect()
        };
        Matrices {
            a: numbers(0..m * k),
            b: numbers(m * k..m * k + k * n),
            c: numbers(m * k + k * n..m * k + k * n + m * n),
            scales: [scales(m, 3), scales(n, 5)],
        }
    }

    /// What each lane gets: its bytes of A and B, its elements of C, and a word for each of its scales, other bytes of
    /// which are something else.
    fn input(&self, matrices: &Matrices) -> Vec<u32> {
        let ([m, n, k], blocks) = (self.size, self.size[2] / BLOCK);
        let [a, b, c] = self.places;
        let word = |lane: usize, side: usize| {
            let count = [m, n][side];
            let own = (0..count * blocks).find(|i| self.givers[side](i / blocks, i % blocks) == lane);
            let scale = own.map_or(0x63, |i| matrices.scales[side][i]);
            let shift = 8 * self.bytes[side];
            0x5a6b_7c8d & !(0xff << shift) | u32::from(scale) << shift
        };
        let lane = |lane: usize| {
            let held = |count: usize| count / self.lanes;
            let of_a =
                (0..held(m * k)).map(move |i| a(lane, i)).map(|[row, p]| encoded(matrices.a[row * k + p], 3));
            let of_b = (0..held(k * n)).map(move |i| b(lane, i));
            let of_b = of_b.map(|[p, column]| encoded(matrices.b[p * n + column], 2));
            let bytes: Vec<u8> = of_a.chain(of_b).collect();
            let of_c = (0..held(m * n)).map(move |i| c(lane, i));
            let of_c = of_c.map(|[row, column]| (matrices.c[row * n + column] as f32).to_bits());
            let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four")));
            words.chain(of_c).chain([word(lane, 0), word(lane, 1)]).collect::<Vec<u32>>()
        };
        (0..self.lanes).flat_map(lane).collect()
    }

    /// The product of the matrices, row by row, of words that a lane is given otherwise by `change`.
    fn product(&self, matrices: &Matrices, change: impl Fn(&mut Vec<u32>)) -> Vec<f32> {
        let [m, n, _] = self.size;
        let mut input = self.input(matrices);
        change(&mut input);
        let words = input.len() / self.lanes;
        let bytes = |ty: &str| {
            let (count, _) = ty.trim_matches(['<', '>', '[', ']']).split_once(" x ").expect("several words");
            4 * count.parse::<usize>().expect("a number")
        };
        let mut body = format!("  %first = mul i32 %tid, {}\n", 4 * words);
        let mut offset = 0;
        for (name, ty, bytes) in [
            ("x", self.types[0], bytes(self.types[0])),
            ("y", self.types[1], bytes(self.types[1])),
            ("z", self.types[2], bytes(self.types[2])),
            ("s", "i32", 4),
            ("t", "i32", 4),
        ] {
            body += &format!(
                "  %{name}.offset = add i32 %first, {offset}\n  %{name}.at = getelementptr i8, ptr addrspace(1) %a, i32 \
                 %{name}.offset\n  %{name} = load {ty}, ptr addrspace(1) %{name}.at, align 4\n"
            );
            offset += bytes;
        }
        body += &self.call;
        let held = m * n / self.lanes;
        body += &format!(
            "  %to.offset = mul i32 %tid, {}\n  %to = getelementptr i8, ptr addrspace(1) %b, i32 %to.offset\n",
            4 * held
        );
        body += &format!("  store {} %d, ptr addrspace(1) %to, align 4\n", self.types[2]);
        let mut arrays = [input, vec![0; m * n]];
        let kernel = Kernel::new(self.gpu, self.lanes as u32, &body);
        kernel.run(&mut arrays).unwrap_or_else(|fault| panic!("{}: {fault}", self.call));
        let mut product = vec![0.0; m * n];
        for (lane, i) in (0..self.lanes).flat_map(|lane| (0..held).map(move |i| (lane, i))) {
            let [row, column] = self.places[2](lane, i);
            product[row * n + column] = f32::from_bits(arrays[1][lane * held + i]);
        }
        product
    }

    fn expected(&self, matrices: &Matrices) -> Vec<f32> {
        let ([_, n, k], blocks) = (self.size, self.size[2] / BLOCK);
        let scale = |scales: &[u8], line: usize, p: usize| match scales[line * blocks + p / BLOCK] {
            0xff => f64::NAN,
            scale => 2f64.powi(i32::from(scale) - 127),
        };
        let element = |(at, &c): (usize, &i32)| {
            let (row, column) = (at / n, at % n);
            let term = |p: usize| {
                let scales = scale(&matrices.scales[0], row, p) * scale(&matrices.scales[1], column, p);
                f64::from(matrices.a[row * k + p] * matrices.b[p * n + column]) * scales
            };
            (f64::from(c) + (0..k).map(term).sum::<f64>()) as f32
        };
        matrices.c.iter().enumerate().map(element).collect()
    }

    fn check(&self) {
        let mut matrices = self.matrices();
        assert_eq!(self.product(&matrices, |_| ()), self.expected(&matrices), "{}", self.call);
        self.check_each_scale(&matrices);
        // Nothing is 2⁻¹²⁷ but that, and what has no number makes none of its row or column.
        let [m, n, k] = self.size;
        matrices.scales = [vec![0; m * k / BLOCK], vec![254; n * k / BLOCK]];
        assert_eq!(self.product(&matrices, |_| ()), self.expected(&matrices));
        matrices.scales[0][0] = 0xff;
        let (found, expected) = (self.product(&matrices, |_| ()), self.expected(&matrices));
        let bits = |products: &[f32]| products.iter().map(|x| x.is_nan()).collect::<Vec<_>>();
        assert_eq!(bits(&found), bits(&expected));
        assert_eq!(found.iter().filter(|x| x.is_nan()).count(), n);
    }

    /// A word of scales that is another changes the product in the row or column that it is of, and nobody else's.
    fn check_each_scale(&self, matrices: &Matrices) {
        let ([m, n, k], right) = (self.size, self.product(matrices, |_| ()));
        for side in 0..2 {
            for line in [1, [m, n][side] - 1] {
                for block in 0..k / BLOCK {
                    let giver = self.givers[side](line, block);
                    let doubled = |input: &mut Vec<u32>| {
                        let words = input.len() / self.lanes;
                        input[giver * words + words - 2 + side] += 1 << (8 * self.bytes[side]);
                    };
                    let changed = self.product(matrices, doubled);
                    let differ = (0..m * n).filter(|&at| changed[at] != right[at]);
                    let lines: Vec<usize> = differ.map(|at| [at / n, at % n][side]).collect();
                    assert!(!lines.is_empty() && lines.iter().all(|&other| other == line), "{}", self.call);
                }
            }
        }
    }
}

/// `V_MFMA_SCALE_*_F8F6F4` (AMD matrix instruction calculator; Composable Kernel, `scale_mapping_*.txt`, for the scales).
fn mfma(size: usize, bytes: [u32; 2]) -> Scaled {
    let (k, results) = if size == 16 { (128, "<4 x float>") } else { (64, "<16 x float>") };
    let call = format!(
        "  %d = call {results} @llvm.amdgcn.mfma.scale.f32.{size}x{size}x{k}.f8f6f4.v8i32.v8i32(<8 x i32> %x, <8 x i32> %y, \
         {results} %z, i32 0, i32 1, i32 {}, i32 %s, i32 {}, i32 %t)\n",
        bytes[0], bytes[1]
    );
    let types = ["<8 x i32>", "<8 x i32>", results];
    let of_16: [fn(usize, usize) -> [usize; 2]; 3] = [
        |lane, i| [lane % 16, i / 16 * 64 + lane / 16 * 16 + i % 16],
        |lane, i| [i / 16 * 64 + lane / 16 * 16 + i % 16, lane % 16],
        |lane, i| [lane / 16 * 4 + i, lane % 16],
    ];
    let of_32: [fn(usize, usize) -> [usize; 2]; 3] = [
        |lane, i| [lane % 32, i / 16 * 32 + lane / 32 * 16 + i % 16],
        |lane, i| [i / 16 * 32 + lane / 32 * 16 + i % 16, lane % 32],
        |lane, i| [i / 4 * 8 + lane / 32 * 4 + i % 4, lane % 32],
    ];
    let givers: [fn(usize, usize) -> usize; 2] = match size {
        16 => [|row, block| 16 * block + row; 2],
        _ => [|row, block| 32 * block + row; 2],
    };
    let places = if size == 16 { of_16 } else { of_32 };
    Scaled { gpu: "gfx950", lanes: 64, size: [size, size, k], types, call, places, givers, bytes }
}

#[test]
fn mfma_scales_blocks_by_what_lanes_give() {
    for size in [16, 32] {
        mfma(size, [0, 0]).check();
        mfma(size, [2, 3]).check();
    }
}

/// LLVM selects the instruction without scales where it knows that both are zero.
#[test]
fn scales_that_are_known_to_be_zero_are_none() {
    let scaled = mfma(16, [0, 0]);
    let unscaled = Scaled { call: scaled.call.replace("%s", "0").replace("%t", "0"), ..mfma(16, [0, 0]) };
    let mut matrices = scaled.matrices();
    matrices.scales = [127, 127].map(|one| vec![one; 64]);
    assert_eq!(unscaled.product(&matrices, |_| ()), scaled.expected(&matrices));
    // What an empty statement gives isn't known.
    let hidden = "  %s.hidden = call i32 asm \"\", \"=v,0\"(i32 0)\n";
    let hidden = Scaled {
        call: hidden.to_owned() + &scaled.call.replace("%s", "%s.hidden").replace("%t", "0"),
        ..unscaled
    };
    matrices.scales = [0, 0].map(|least| vec![least; 64]);
    assert_eq!(hidden.product(&matrices, |_| ()), scaled.expected(&matrices));
}

/// `mma.sync` with `.block_scale.scale_vec::1X` (PTX ISA, "Matrix Fragments for mma.m16n8k32" and "Block Scaling for
/// mma.sync"), whose scales these lanes of a quad give.
fn mma_sync(bytes: [u32; 2], lanes: [u32; 2]) -> Scaled {
    let parts = |vector: &str, ty: &str, count: usize| -> (String, Vec<String>) {
        let part = |i| format!("  %{vector}{i} = extractelement <{count} x {ty}> %{vector}, i32 {i}\n");
        let names = (0..count).map(|i| format!("{ty} %{vector}{i}")).collect();
        ((0..count).map(part).collect(), names)
    };
    let all = [parts("x", "i32", 4), parts("y", "i32", 2), parts("z", "float", 4)];
    let operands: Vec<String> = all.iter().flat_map(|(_, names)| names.clone()).collect();
    let mut call: String = all.iter().map(|(text, _)| text.as_str()).collect();
    call += &format!(
        "  %all = call {{ float, float, float, float }} \
         @llvm.nvvm.mma.block.scale.m16n8k32.row.col.mxf8f6f4.scale.1x.f32.e4m3.e5m2.f32.ue8m0({}, i32 %s, i16 {}, i16 {}, \
         i32 %t, i16 {}, i16 {})\n",
        operands.join(", "),
        bytes[0],
        lanes[0],
        bytes[1],
        lanes[1]
    );
    let mut sums = "zeroinitializer".to_owned();
    for i in 0..4 {
        let next = if i == 3 { "%d".to_owned() } else { format!("%sums{i}") };
        call += &format!("  %sum{i} = extractvalue {{ float, float, float, float }} %all, {i}\n");
        call += &format!("  {next} = insertelement <4 x float> {sums}, float %sum{i}, i32 {i}\n");
        sums = next;
    }
    let givers: [fn(usize, usize) -> usize; 2] = match lanes {
        [0, 0] => [|row, _| row % 8 * 4 + row / 8, |column, _| column * 4],
        [1, 2] => [|row, _| row % 8 * 4 + 2 + row / 8, |column, _| column * 4 + 2],
        other => panic!("no test has lanes {other:?}"),
    };
    let places: [fn(usize, usize) -> [usize; 2]; 3] = [
        |lane, i| [lane / 4 + i / 4 % 2 * 8, lane % 4 * 4 + i % 4 + i / 8 * 16],
        |lane, i| [lane % 4 * 4 + i % 4 + i / 4 * 16, lane / 4],
        |lane, i| [lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2],
    ];
    let types = ["<4 x i32>", "<2 x i32>", "<4 x float>"];
    Scaled { gpu: "sm_120f", lanes: 32, size: [16, 8, 32], types, call, places, givers, bytes }
}

#[test]
fn mma_scales_rows_and_columns_by_what_lanes_of_quads_give() {
    mma_sync([0, 0], [0, 0]).check();
    mma_sync([1, 3], [0, 0]).check();
    mma_sync([2, 1], [1, 2]).check();
}
