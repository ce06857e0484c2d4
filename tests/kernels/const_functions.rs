//! Constants that `const fn`s compute: rustc for the reference device and the host, the macro for the IR.

use tile::prelude::*;

/// Functions from elsewhere, with what they see themselves.
#[tile_kernels]
pub(crate) mod elsewhere {
    use tile::prelude::*;

    const fn offset(by: usize) -> i32 {
        let mut sum = 0;
        let mut i = 0;
        while i < by {
            sum += i as i32;
            i += 1;
        }
        sum - WHOLE
    }

    const WHOLE: i32 = 2;
    const OFFSET: i32 = offset(5);

    #[tile_fn]
    pub(crate) fn moved(x: Tile<i32, 1>) -> Tile<i32, 1> {
        x + OFFSET + const { offset(3) }
    }
}

#[tile_kernels]
mod kernels {
    use super::elsewhere::moved;
    use tile::prelude::*;

    /// The table of CRC-32, by bytes.
    const fn table(polynomial: u32) -> [u32; 256] {
        let mut table = [0; 256];
        let mut i = 0;
        while i < table.len() {
            let mut sum = i as u32;
            let mut bit = 0;
            while bit < 8 {
                sum = if sum & 1 == 1 { (sum >> 1) ^ polynomial } else { sum >> 1 };
                bit += 1;
            }
            table[i] = sum;
            i += 1;
        }
        table
    }

    pub(super) const TABLE: [u32; 256] = table(0xedb8_8320);

    /// A CRC-32 of each row.
    #[tile_kernel]
    pub(crate) fn checksums<const B: usize>(x: &Tensor<u8, m, n>, y: &mut Tensor<u32, m>) {
        let x = x.partition_view([B, 1]);
        let mut y = y.partition_view_mut([B]);
        let [i] = y.index();
        let mut sum = Tile::<u32, 1>::full([B], 0xffff_ffff);
        for p in 0..n {
            let byte = x.load_masked([i, p]).reshape([B]).cast::<u32>();
            sum = ((sum ^ byte) & 255).lookup(TABLE) ^ (sum >> 8);
        }
        y.store_masked(!sum);
    }

    /// A half wave of a sine (Bhaskara's approximation), in the float format of what it is given.
    const fn wave<const N: usize>(height: f32) -> [f32; N] {
        let mut wave = [0.0; N];
        let mut i = 0;
        while i < N {
            let turn = (i as f32 + 0.5) / N as f32;
            let under = turn * (1.0 - turn);
            wave[i] = height * 16.0 * under / (5.0 - 4.0 * under);
            i += 1;
        }
        wave
    }

    const fn twice(n: usize) -> usize {
        2 * n
    }

    pub(super) const WIDTH: usize = twice(4);
    pub(super) const WAVE: [f32; WIDTH] = wave::<WIDTH>(0.1);

    /// Extents and the numbers of a tile, of the signature and the body.
    #[tile_kernel]
    pub(crate) fn windowed(x: &Tensor<f32, n, WIDTH>, y: &mut Tensor<f32, n, WIDTH>) {
        const PAIR: (u32, [bool; 2]) = pair(WIDTH as u32 + 1);
        let mut y = y.partition_view_mut([twice_as_constant(), WIDTH]);
        let x = x.partition_view([const { twice(1) }, WIDTH]).load_masked(y.index());
        let mut weights = Tile::from_array(WAVE).unsqueeze(0);
        if PAIR.1[0] {
            weights *= PAIR.0 as f32;
        }
        y.store_masked(x * weights);
    }

    #[tile_fn]
    fn twice_as_constant() -> usize {
        const { twice(1) }
    }

    const fn pair(n: u32) -> (u32, [bool; 2]) {
        assert!(n > 0);
        match n {
            0..=3 => (n, [false; 2]),
            odd if odd % 2 == 1 => (odd.count_ones(), [true, false]),
            _ => (1, [false, true]),
        }
    }

    #[tile_kernel]
    pub(crate) fn shifted(x: &Tensor<i32, n>, y: &mut Tensor<i32, n>) {
        let mut y = y.partition_view_mut([4]);
        y.store_masked(moved(x.partition_view([4]).load_masked(y.index())));
    }
}

use kernels::{TABLE, WAVE, WIDTH, checksums, shifted, windowed};

#[test]
fn a_table_is_computed() {
    let rows = [*b"123456789", *b"\0\xff\x80 tiles"];
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &rows.concat(), [2, 9]).unwrap();
        let mut y = Tensor::zeros(&device, [2]).unwrap();
        checksums::<4>(&x, &mut y).launch().unwrap();
        // The first is the check of CRC-32/ISO-HDLC in catalogues of CRCs.
        let plain = rows[1]
            .iter()
            .fold(!0u32, |sum, &byte| TABLE[((sum ^ u32::from(byte)) & 255) as usize] ^ (sum >> 8));
        assert_eq!(y.to_vec().unwrap(), [0xcbf4_3926, !plain], "{label}");
    }
}

#[test]
fn extents_and_numbers_are_computed() {
    let x: Vec<f32> = (0..3 * WIDTH).map(|i| i as f32 - 7.5).collect();
    let expected: Vec<f32> = x.iter().enumerate().map(|(at, x)| x * (WAVE[at % WIDTH] * 2.0)).collect();
    for (device, label) in super::devices() {
        let tensor = Tensor::from_slice(&device, &x, [3, WIDTH]).unwrap();
        let mut y = Tensor::zeros(&device, [3, WIDTH]).unwrap();
        windowed(&tensor, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
    }
}

#[test]
fn functions_of_other_modules_bring_theirs() {
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &[0, 1, -5], [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        shifted(&x, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [9, 10, 4], "{label}");
    }
}
