//! Banks of shared memory, and which lanes they serve together.
//!
//! Of reads by AMD's GPUs it is what others measured on them: which pairs of lanes that read words of one bank wait for each other
//! (nod-ai/amd-shark-ai, `docs/empirical-lds/lds_summary.md`, June 2026; triton-lang/triton, pull request 11365, has the same).
//! Writes are taken to be served in order (Composable Kernel's documentation, "Understanding AMD GPU LDS and Bank Conflicts"). Of
//! NVIDIA's it is the CUDA C++ Programming Guide's "Shared Memory" with accesses of 8 and 16 bytes by halves and quarters of warps.

use tile_layout::linear::Subspace;

/// How shared memory serves the lanes of a warp: those together that move as much as all of its banks hold, a word of 4 bytes
/// each. Lanes that are served together should move words of different banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedBanks {
    /// Banks of 4 bytes.
    pub count: u32,
    /// Which lanes' reads of 16 bytes are served together with the first lane's: those whose numbers are sums without carry of
    /// some of these. Of other lanes it is those whose numbers differ by such a sum, and of other accesses as many as follow each
    /// other.
    pub wide_reads: &'static [u64],
}

impl SharedBanks {
    /// NVIDIA's, a Radeon RX 9070 XT's, and where nothing is accessed.
    pub(super) const IN_ORDER: SharedBanks = SharedBanks { count: 32, wide_reads: &[1, 2, 4] };
    /// An MI300X's. No MI200 was measured; it is taken to do as much.
    pub(super) const CDNA3: SharedBanks = SharedBanks { count: 32, wide_reads: &[1, 2, 4 ^ 16] };
    /// An MI350X's.
    pub(super) const CDNA4: SharedBanks = SharedBanks { count: 64, wide_reads: &[1, 2, 4 ^ 8, 4 ^ 16] };
    /// A Radeon Pro W7900's.
    pub(super) const RDNA3: SharedBanks = SharedBanks { count: 32, wide_reads: &[1, 2, 4 ^ 16] };

    /// The lanes whose reads of so many bytes are served together with the first lane's, as [`Self::wide_reads`] has them.
    ///
    /// ```
    /// use tile_ir::TargetDesc;
    /// let banks = TargetDesc::named("gfx942")?.shared_banks;
    /// // Lanes 0 to 3 and 20 to 23.
    /// assert_eq!(banks.read_together(16), [1, 2, 4 ^ 16]);
    /// assert_eq!(banks.read_together(4), [1, 2, 4, 8, 16]);
    /// # Ok::<(), tile_ir::target::UnknownTarget>(())
    /// ```
    pub fn read_together(&self, bytes: u32) -> Vec<u64> {
        if bytes == 16 { self.wide_reads.to_vec() } else { self.written_together(bytes) }
    }

    /// The lanes whose writes of so many bytes are served together with the first lane's: one after the other, as many as move
    /// what all banks hold.
    ///
    /// ```
    /// use tile_ir::TargetDesc;
    /// let banks = TargetDesc::named("gfx942")?.shared_banks;
    /// assert_eq!(banks.written_together(16), [1, 2, 4]);
    /// # Ok::<(), tile_ir::target::UnknownTarget>(())
    /// ```
    pub fn written_together(&self, bytes: u32) -> Vec<u64> {
        (0..(self.count * 4 / bytes.max(4)).max(1).ilog2()).map(|bit| 1 << bit).collect()
    }

    /// Numbers of lanes of which all, so many bits, are sums without carry: first those that are served together, then single
    /// ones.
    pub(crate) fn lanes(together: Vec<u64>, bits: usize) -> Vec<u64> {
        let together = together.into_iter().filter(|&number| number < 1 << bits);
        let mut spanned = Subspace::zero();
        together.chain((0..bits).map(|bit| 1 << bit)).filter(|&number| spanned.insert(number)).collect()
    }
}
