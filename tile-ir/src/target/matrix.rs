//! The matrix instructions of targets as data: which formats and extents each multiplies, what it is called, and how
//! its operands lie in the lanes of a warp. The tables are those of the vendors' manuals ([`nvidia`], [`amd`]).

pub(super) mod amd;
pub(super) mod nvidia;

use crate::dtype::DType;
use tile_layout::linear::{
    Dim, LinearLayout, MatrixShape, Operand, WmmaGeneration, mfma, mfma_by_sums, mfma_scale, mma_sync,
    mma_sync_scale, tensor_memory_accumulator, wgmma_accumulator, wgmma_register_operand, wmma,
};

/// Whether `wgmma` multiplies by so many columns at once, of integers or of floats (PTX ISA, "wgmma.mma_async").
///
/// ```
/// use tile_ir::target::wgmma_has_columns;
/// assert!(wgmma_has_columns(40, false) && !wgmma_has_columns(40, true));
/// assert!(wgmma_has_columns(24, true) && wgmma_has_columns(48, true));
/// ```
pub const fn wgmma_has_columns(columns: u64, of_integers: bool) -> bool {
    let is_in_steps = columns.is_multiple_of(if of_integers { 16 } else { 8 });
    columns > 0 && columns <= 256 && (is_in_steps || columns == 8 || columns == 24)
}

/// How the operands of an instruction lie in the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fragments {
    /// As NVIDIA's `mma.sync` has them.
    MmaSync,
    /// As NVIDIA's `wgmma` has them, in the four warps of a warpgroup. The right factor lies in shared memory.
    Wgmma,
    /// As a warpgroup loads the sums of NVIDIA's `tcgen05.mma` from tensor memory, to which one thread has them added. Both
    /// factors lie in shared memory.
    TensorMemory,
    /// As AMD's `V_MFMA` has them.
    Mfma,
    /// As AMD's `V_WMMA` has them, which differ between generations.
    Wmma(WmmaGeneration),
}

/// How a lane passes its elements of the factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passing {
    /// In words of 32 bits, each an operand; elements as integers.
    Words,
    /// In words of 32 bits, each an operand: pairs of f16.
    Pairs,
    /// In words of 32 bits, each an operand: f32 of which the upper 19 bits are read, a TF32 number.
    Tf32Words,
    /// In one vector of elements; a single element as it is.
    Vector,
    /// In one vector of elements, as integers of their width.
    IntegerVector,
    /// In one integer.
    Packed,
    /// In a vector of words of 32 bits.
    WordVector,
    /// In a vector of words of 32 bits, after a flag that says whether elements are signed.
    SignedWords,
}

/// What follows the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trailing {
    /// Nothing.
    Nothing,
    /// Three modifiers that are 0.
    Modifiers,
    /// A flag that says that sums don't saturate.
    NoClamp,
    /// The formats of both factors as numbers, and of each the byte of a word that is its scale, and that word; zeros where
    /// nothing is scaled.
    Formats,
    /// Of each factor the word that has its scale, the byte of it, and which lanes of a quad give it.
    Scales,
}

/// What an instruction multiplies its factors by besides: powers of two, `f8e8m0fnu`, each of a block along the depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scales {
    /// Elements along the depth that share one.
    pub block: u32,
}

/// An instruction that multiplies matrices in a warp, or in a warpgroup: `a·b + c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixInstruction {
    /// LLVM's name for it; of a warpgroup's, which has none, the formats of sums and factors in PTX.
    pub intrinsic: &'static str,
    /// The formats of the factors that it is given, which have the same width.
    pub factors: [DType; 2],
    /// The format in which it adds.
    pub sum: DType,
    /// Rows, columns and depth; of a warpgroup's, which takes any multiple of so many columns, the fewest. Of a product whose
    /// sums lie in tensor memory, the columns that a warpgroup loads.
    pub shape: MatrixShape,
    /// How operands lie in the lanes.
    pub fragments: Fragments,
    /// How a lane passes its elements.
    pub passing: Passing,
    /// What follows the operands.
    pub trailing: Trailing,
    /// The feature by which LLVM has it, where that isn't one of the target's.
    pub feature: &'static str,
    /// Whether it is given `bᵀ` as its left factor and `aᵀ` as its right one, which makes the transpose of the result:
    /// what the manual says of the accumulator's rows then holds of its columns.
    pub exchanged: bool,
    /// Whether the depth of its factors is in the order of the rows of its accumulator, rather than the manual's.
    pub by_sums: bool,
    /// Whether it keeps so few bits of what it adds that each one's products are added to the sums by other instructions.
    pub coarse: bool,
    /// The scales of its factors, where it takes such.
    pub scales: Option<Scales>,
}

impl MatrixInstruction {
    /// The instruction of a target's that does the same with its factors exchanged, where that is possible: where both are
    /// held alike.
    pub(crate) fn with_factors_exchanged(self, table: &[MatrixInstruction]) -> Option<MatrixInstruction> {
        let are_held_alike = matches!(self.fragments, Fragments::Mfma | Fragments::Wmma(_));
        self.given_exchanged(table).filter(|_| are_held_alike)
    }

    /// The instruction of a table that is given this one's factors the other way round, whether or not both are held alike.
    pub(super) fn given_exchanged(self, table: &[MatrixInstruction]) -> Option<MatrixInstruction> {
        let [a, b] = self.factors;
        let kind = |it: &MatrixInstruction| (it.sum, it.shape, it.fragments);
        let given = table.iter().find(|it| it.factors == [b, a] && kind(it) == kind(&self))?;
        Some(MatrixInstruction { exchanged: true, ..*given })
    }

    /// Bits of an element of the factors.
    fn bits(&self) -> u32 {
        self.factors[0].bits()
    }

    /// The format of a factor of the product that it is used for.
    ///
    /// # Panics
    /// If the operand is no factor.
    pub fn factor(&self, operand: Operand) -> DType {
        let given = match operand {
            Operand::A => usize::from(self.exchanged),
            Operand::B => usize::from(!self.exchanged),
            Operand::Accumulator => unreachable!("the accumulator is no factor"),
        };
        self.factors[given]
    }

    /// The same instruction with the depth of its factors in the order in which it has sums, where it knows that.
    pub(crate) fn with_depth_by_sums(self) -> MatrixInstruction {
        // Scales are of blocks in the manual's order.
        let is_free = self.bits() < 32 && self.scales.is_none();
        let holds = is_free && matches!(self.fragments, Fragments::Mfma);
        MatrixInstruction {
            by_sums: holds && mfma_by_sums(self.shape, self.bits(), Operand::A).is_ok(),
            ..self
        }
    }

    /// How an operand lies in the registers and lanes of a warp.
    ///
    /// ```
    /// use tile_ir::TargetDesc;
    /// use tile_layout::linear::{Dim, Operand};
    /// let instruction = TargetDesc::named("sm_80")?.matrix[0];
    /// assert_eq!(instruction.fragment(Operand::Accumulator).input_bits(Dim::Lane), 5);
    /// # Ok::<(), tile_ir::target::UnknownTarget>(())
    /// ```
    ///
    /// # Panics
    /// If the operand is a factor that a warpgroup's instruction only takes from shared memory; or if the table has an instruction whose
    /// fragments aren't known, which a test rules out.
    pub fn fragment(&self, operand: Operand) -> LinearLayout {
        if !self.exchanged {
            return self.manual_fragment(operand);
        }
        transposed(&self.manual_fragment(exchanged(operand)))
    }

    /// How the scales of a factor lie in the lanes of a warp: rows and blocks of the left one, blocks and columns of the right
    /// one.
    ///
    /// # Panics
    /// If the operand is no factor, or the instruction takes no scales.
    pub fn scale_fragment(&self, operand: Operand) -> LinearLayout {
        let of_manual = |operand| {
            let fragment = match self.fragments {
                Fragments::Mfma => mfma_scale(self.shape, operand),
                _ => mma_sync_scale(self.shape, operand),
            };
            fragment.unwrap_or_else(|error| panic!("{}: {error}", self.intrinsic))
        };
        if self.exchanged { transposed(&of_manual(exchanged(operand))) } else { of_manual(operand) }
    }

    /// The fragment of an operand as the manual numbers them.
    fn manual_fragment(&self, operand: Operand) -> LinearLayout {
        let bits = self.bits();
        let fragment = match self.fragments {
            Fragments::MmaSync => mma_sync(self.shape, bits, operand),
            Fragments::Wgmma => match operand {
                Operand::A => wgmma_register_operand(bits),
                Operand::Accumulator => wgmma_accumulator(self.shape.n),
                Operand::B => unreachable!("the right factor of a warpgroup lies in shared memory"),
            },
            Fragments::TensorMemory => match operand {
                Operand::Accumulator => tensor_memory_accumulator(self.shape.n),
                Operand::A | Operand::B => unreachable!("the factors of such a product lie in shared memory"),
            },
            Fragments::Mfma if self.by_sums => mfma_by_sums(self.shape, bits, operand),
            Fragments::Mfma => mfma(self.shape, bits, operand),
            Fragments::Wmma(generation) => wmma(generation, bits, operand),
        };
        fragment.unwrap_or_else(|error| panic!("{}: {error}", self.intrinsic))
    }
}

/// As what an operand of a product is given, where the factors are exchanged.
fn exchanged(operand: Operand) -> Operand {
    match operand {
        Operand::A => Operand::B,
        Operand::B => Operand::A,
        Operand::Accumulator => Operand::Accumulator,
    }
}

/// A fragment of the matrix whose rows are this one's columns.
fn transposed(fragment: &LinearLayout) -> LinearLayout {
    let [rows, columns] = [Dim::Axis(0), Dim::Axis(1)];
    let renamed = fragment
        .rename_output(rows, Dim::Offset)
        .and_then(|fragment| fragment.rename_output(columns, rows))
        .and_then(|fragment| fragment.rename_output(Dim::Offset, columns))
        .and_then(|fragment| fragment.transpose_outputs(&[rows, columns]));
    renamed.expect("a fragment has rows and columns")
}

const fn shape(m: u32, n: u32, k: u32) -> MatrixShape {
    MatrixShape { m, n, k }
}

/// An instruction as its manual has it.
const fn of_manual(
    intrinsic: &'static str,
    (factor, sum): (DType, DType),
    shape: MatrixShape,
    fragments: Fragments,
    passing: Passing,
) -> MatrixInstruction {
    let trailing = match (fragments, passing) {
        (Fragments::Mfma, Passing::WordVector) if factor.is_float() => Trailing::Formats,
        (Fragments::Mfma, _) => Trailing::Modifiers,
        (Fragments::Wmma(_), Passing::SignedWords) => Trailing::NoClamp,
        _ => Trailing::Nothing,
    };
    MatrixInstruction {
        intrinsic,
        factors: [factor; 2],
        sum,
        shape,
        fragments,
        passing,
        trailing,
        feature: "",
        exchanged: false,
        by_sums: false,
        coarse: false,
        scales: None,
    }
}

/// An instruction of factors in two formats.
const fn of_two(instruction: MatrixInstruction, factors: [DType; 2]) -> MatrixInstruction {
    MatrixInstruction { factors, ..instruction }
}

/// An instruction that scales blocks of 32 elements along the depth, as the microscaling formats have them.
const fn scaling(instruction: MatrixInstruction) -> MatrixInstruction {
    MatrixInstruction { scales: Some(Scales { block: 32 }), ..instruction }
}

const fn with_feature(instruction: MatrixInstruction, feature: &'static str) -> MatrixInstruction {
    MatrixInstruction { feature, ..instruction }
}

const fn coarse(instruction: MatrixInstruction) -> MatrixInstruction {
    MatrixInstruction { coarse: true, ..instruction }
}

/// Two tables as one, of `N` instructions.
const fn followed_by<const N: usize>(
    first: &[MatrixInstruction],
    then: &[MatrixInstruction],
) -> [MatrixInstruction; N] {
    assert!(N == first.len() + then.len());
    let mut all = [first[0]; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < first.len() { first[i] } else { then[i - first.len()] };
        i += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::target::TARGETS;
    use tile_layout::linear::{Dim, Operand};

    #[test]
    fn every_instruction_has_fragments_for_the_lanes_of_its_target() {
        for target in TARGETS {
            for instruction in target.matrix {
                for operand in [Operand::A, Operand::B, Operand::Accumulator] {
                    let fragment = instruction.fragment(operand);
                    assert_eq!(1 << fragment.input_bits(Dim::Lane), target.warp, "{}", instruction.intrinsic);
                }
            }
        }
    }

    /// CDNA3 ISA, "Matrix Arithmetic Instructions": of `V_MFMA_F32_32X32X8`, register `i` of lane `l` has row
    /// `i / 4 · 8 + l / 32 · 4 + i % 4` and column `l % 32` of what it is given to multiply.
    #[test]
    fn exchanged_factors_give_the_transpose() {
        let instruction = TARGETS.iter().find(|target| target.name == "gfx942").unwrap().matrix[0];
        let target = TARGETS.iter().find(|target| target.name == "gfx942").unwrap();
        let exchanged = instruction.with_factors_exchanged(target.matrix).unwrap();
        let sums = exchanged.fragment(Operand::Accumulator);
        for (register, lane) in (0..16).flat_map(|register| (0..64).map(move |lane| (register, lane))) {
            let (row, column) = (lane % 32, register / 4 * 8 + lane / 32 * 4 + register % 4);
            let found = sums.apply(&[(Dim::Register, register), (Dim::Lane, lane)]).unwrap();
            assert_eq!(found, [(Dim::Axis(0), row), (Dim::Axis(1), column)]);
        }
        for operand in [Operand::A, Operand::B] {
            assert_eq!(exchanged.fragment(operand), instruction.fragment(operand));
        }
        assert!(TARGETS[1].matrix[0].with_factors_exchanged(TARGETS[1].matrix).is_none());
    }
}
