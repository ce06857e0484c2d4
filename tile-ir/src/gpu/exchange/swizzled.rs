//! How a tile goes through shared memory from one distribution to another: where its elements lie there, how many a
//! thread writes at once, and how they are read.
//!
//! What a warp writes or reads at once should lie in different banks. `tile_layout` finds the layout of shared memory
//! for that; here it is asked about the instructions that the target has. Where it has matrix loads, a lane gets
//! elements of rows that other lanes give the addresses of: to banks that is eight lanes that read 16 bytes each.

use crate::dtype::DType;
use crate::target::{SharedBanks, TargetDesc};
use tile_layout::linear::{
    Access, BitMatrix, Dim, Distribution, Group, LinearLayout, SharedMemory, optimal_layout,
};

/// The widest access of a thread, and what a row of a matrix load takes, in bytes.
pub const WIDEST: u64 = 16;

/// Bits of a lane's number that a matrix load takes the rows of one matrix from.
const ROW_BITS: usize = 3;

/// The most matrices that an instruction loads, as bits.
const MATRIX_BITS: usize = 2;

/// A tile in shared memory between two distributions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swizzled {
    layout: LinearLayout,
    /// The source, its registers in the order in which they are written.
    written: Distribution,
    /// For each register bit of [`Self::written`], which one of the source's it is.
    order: Vec<usize>,
    /// Neighbouring slots of [`Self::written`] that are written at once.
    pub write: u64,
    /// How the target's slots are read.
    pub read: Read,
}

/// How the target's slots are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many neighbouring ones at once.
    Slots(u64),
    /// By matrix loads.
    Matrices(MatrixMove),
}

/// Where bits of a number lead, lowest first.
type Positions = Vec<Vec<u64>>;

/// A matrix load, or a matrix store: which elements each lane gives the address of, and which it gets, or gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixMove {
    /// Whether a lane's elements are of a column of the rows in memory.
    pub transposed: bool,
    /// Matrices of one instruction: 1, 2 or 4.
    pub matrices: u64,
    /// Slots in a word.
    pub word: u64,
    /// The elements that a lane gives the address of, and those that follow in memory, as a distribution.
    rows: Distribution,
}

impl MatrixMove {
    /// Those that move all of a tile in a distribution, straight and transposed.
    pub(in crate::gpu) fn all(tile: &Distribution, dtype: DType) -> Vec<MatrixMove> {
        let bytes = dtype.bytes();
        let lanes: Vec<Vec<u64>> =
            tile.thread_bits().take(tile.lane_count().ilog2() as usize).map(<[u64]>::to_vec).collect();
        let word_bits = (4 / bytes.min(4)).ilog2() as usize;
        if lanes.len() != 5 || bytes > 4 || tile.registers().len() < word_bits {
            return Vec::new();
        }
        let (word, rest) = tile.registers().split_at(word_bits);
        let straight = ([word, &lanes[..2]].concat(), lanes[2..].to_vec());
        let transposed = (lanes[2..].to_vec(), [word, &lanes[..2]].concat());
        let forms = [(false, straight), (true, transposed)].into_iter();
        // Elements of two bytes alone change places.
        let forms = forms.filter(|(is_transposed, _)| !is_transposed || bytes == 2);
        forms
            .filter_map(|(transposed, (row, rows))| Self::of(tile, transposed, (row, rows, rest), word_bits))
            .collect()
    }

    fn of(
        tile: &Distribution,
        transposed: bool,
        (row, mut lanes, rest): (Positions, Positions, &[Vec<u64>]),
        word_bits: usize,
    ) -> Option<MatrixMove> {
        let is_run = |axis: usize| {
            row.iter().enumerate().all(|(bit, position)| {
                position.iter().enumerate().all(|(i, &place)| place == if i == axis { 1 << bit } else { 0 })
            })
        };
        if lanes.len() != ROW_BITS || !(0..tile.shape().len()).any(is_run) {
            return None;
        }
        let matrix_bits = rest.len().min(MATRIX_BITS);
        let (matrices, others) = rest.split_at(matrix_bits);
        lanes.extend(matrices.to_vec());
        lanes.resize(ROW_BITS + MATRIX_BITS, vec![0; tile.shape().len()]);
        let warps = tile.thread_bits().skip(lanes.len()).map(<[u64]>::to_vec).collect();
        let registers = [row.as_slice(), others].concat();
        let rows = Distribution::new(tile.shape(), registers.clone(), lanes, warps).ok()?;
        // A register that repeats another would have been dropped.
        (rows.registers() == registers.as_slice()).then_some(MatrixMove {
            transposed,
            matrices: 1 << matrix_bits,
            word: 1 << word_bits,
            rows,
        })
    }
}

impl Swizzled {
    /// The way of a tile; `None` where a distribution isn't linear.
    pub(in crate::gpu) fn of(
        from: &Distribution,
        to: &Distribution,
        dtype: DType,
        target: &TargetDesc,
    ) -> Option<Swizzled> {
        let loads = if target.matrix_loads { MatrixMove::all(to, dtype) } else { Vec::new() };
        let by_matrices = loads.into_iter().filter_map(|load| Self::by_matrices(from, load, dtype, target));
        // Of two ways the one whose writes are longer; of equals the first.
        let best = by_matrices.reduce(|best, other| if other.write > best.write { other } else { best });
        best.or_else(|| Self::by_slots(from, to, dtype, target))
    }

    fn by_matrices(
        from: &Distribution,
        load: MatrixMove,
        dtype: DType,
        target: &TargetDesc,
    ) -> Option<Swizzled> {
        let most = (WIDEST / dtype.bytes() as u64).ilog2();
        let write = 1 << common(from, &load.rows).min(most);
        let layout = layout_for(
            Vectors { of: from, count: write },
            Vectors { of: &load.rows, count: 1 << most },
            dtype,
            target.shared_banks,
        )?;
        let order = (0..from.registers().len()).collect();
        Some(Swizzled { layout, written: from.clone(), order, write, read: Read::Matrices(load) })
    }

    fn by_slots(
        from: &Distribution,
        to: &Distribution,
        dtype: DType,
        target: &TargetDesc,
    ) -> Option<Swizzled> {
        // Neighbours that both have may move together, if the algebra can keep them together.
        let (written, order) = led_by(from, to)?;
        let most = common(&written, to).min((WIDEST / dtype.bytes() as u64).ilog2());
        let (layout, width) = (0..=most).rev().map(|bits| 1 << bits).find_map(|width| {
            let (write, read) = (Vectors { of: &written, count: width }, Vectors { of: to, count: width });
            Some((layout_for(write, read, dtype, target.shared_banks)?, width))
        })?;
        Some(Swizzled { layout, written, order, write: width, read: Read::Slots(width) })
    }

    /// The distribution that is written, in groups of [`Self::write`] neighbours: the source's, whose registers may
    /// stand in another order.
    pub fn written(&self) -> &Distribution {
        &self.written
    }

    /// The source's slot that a slot of [`Self::written`] is.
    pub fn source_slot(&self, slot: u64) -> u64 {
        slot_in(&self.order, slot)
    }

    /// Whether slots are written in the order in which the source has them.
    pub fn keeps_order(&self) -> bool {
        self.order.is_sorted()
    }

    /// How many slots of the target one instruction reads.
    pub fn read_width(&self) -> u64 {
        match &self.read {
            &Read::Slots(width) => width,
            Read::Matrices(load) => load.width(),
        }
    }

    /// The offset of a position, in elements.
    ///
    /// # Panics
    /// If the position is outside the tile.
    pub fn offset(&self, position: &[u64]) -> u64 {
        let axes: Vec<(Dim, u64)> =
            position.iter().enumerate().map(|(axis, &place)| (Dim::Axis(axis as u8), place)).collect();
        let flat = self.layout.flat_input(&axes).expect("a position of the tile");
        self.layout.apply_flat(flat).expect("a position of the tile")
    }
}

impl MatrixMove {
    /// The elements that lanes give the addresses of, each with those that follow it.
    pub fn rows(&self) -> &Distribution {
        &self.rows
    }

    /// Slots that one instruction moves of each lane.
    pub fn width(&self) -> u64 {
        self.matrices * self.word
    }

    /// Whether elements that follow each other do so along this axis.
    pub(in crate::gpu) fn runs_along(&self, axis: usize) -> bool {
        self.rows.registers()[0][axis] == 1
    }
}

/// A distribution whose lowest registers are those of another as far as it has them, and which of its own bits they are:
/// a thread changes the order of what it holds for free, or by instructions that permute bytes.
fn led_by(from: &Distribution, to: &Distribution) -> Option<(Distribution, Vec<usize>)> {
    let (order, _) = order_led_by(from, to.registers().iter().cloned());
    let registers: Positions = order.iter().map(|&bit| from.registers()[bit].clone()).collect();
    let mut lanes: Positions = from.thread_bits().map(<[u64]>::to_vec).collect();
    let warps = lanes.split_off(from.lane_count().ilog2() as usize);
    let written = Distribution::new(from.shape(), registers, lanes, warps).ok()?;
    Some((written, order))
}

/// The register bits of a distribution, those first that lead to these positions, as far as it has them; and how many have
/// one.
pub(in crate::gpu) fn order_led_by(
    tile: &Distribution,
    positions: impl IntoIterator<Item = Vec<u64>>,
) -> (Vec<usize>, usize) {
    let own = |position: Vec<u64>| tile.registers().iter().position(|other| *other == position);
    let mut order: Vec<usize> = positions.into_iter().map_while(own).collect();
    let leading = order.len();
    let rest: Vec<usize> = (0..tile.registers().len()).filter(|bit| !order.contains(bit)).collect();
    order.extend(rest);
    (order, leading)
}

/// The slot that a number stands for whose bits are a slot's in this order.
pub(in crate::gpu) fn slot_in(order: &[usize], number: u64) -> u64 {
    let bits = order.iter().enumerate();
    bits.fold(0, |slot, (bit, &own)| slot | (number >> bit & 1) << own)
}

/// How many bits of their registers two distributions have in common, from the lowest on.
fn common(a: &Distribution, b: &Distribution) -> u32 {
    a.registers().iter().zip(b.registers()).take_while(|(a, b)| a == b).count() as u32
}

/// An access by which every thread moves neighbouring slots of a distribution at once.
struct Vectors<'d> {
    of: &'d Distribution,
    /// How many slots.
    count: u64,
}

/// The layout of shared memory for a write and a read.
fn layout_for(
    write: Vectors<'_>,
    read: Vectors<'_>,
    dtype: DType,
    banks: SharedBanks,
) -> Option<LinearLayout> {
    let bytes = dtype.bytes() as u32;
    let shared = SharedMemory { element_bytes: bytes, banks: banks.count };
    let [width_of_write, width_of_read] = [&write, &read].map(|vectors| vectors.count as u32 * bytes);
    let with_lanes_by_turns = |vectors: &Vectors<'_>, together: Vec<u64>| {
        let layout = vectors.of.linear()?;
        served(&layout, &SharedBanks::lanes(together, layout.columns(Dim::Lane).len()))
    };
    let written = with_lanes_by_turns(&write, banks.written_together(width_of_write))?;
    let reading = with_lanes_by_turns(&read, banks.read_together(width_of_read))?;
    let write = Access { layout: &written, width: width_of_write };
    let read = Access { layout: &reading, width: width_of_read };
    optimal_layout(shared, write, read).ok().map(|chosen| chosen.layout)
}

/// The layout of an access with its lanes in such an order that those come first that are served together.
fn served(layout: &LinearLayout, lanes: &[u64]) -> Option<LinearLayout> {
    let places = layout.columns(Dim::Lane);
    let place = |number: &u64| {
        let bits = places.iter().enumerate().filter(|&(bit, _)| number >> bit & 1 == 1);
        bits.fold(0, |place, (_, column)| place ^ column)
    };
    let of_group = |group: &Group| match group.dim {
        Dim::Lane => lanes.iter().map(place).collect(),
        dim => layout.columns(dim).to_vec(),
    };
    let columns: Vec<u64> = layout.inputs().iter().flat_map(of_group).collect();
    let rows = layout.outputs().iter().map(|group| group.bits).sum();
    LinearLayout::from_matrix(layout.inputs(), layout.outputs(), BitMatrix::new(rows, &columns).ok()?).ok()
}
