//! `ldmatrix` and `stmatrix`.

use super::harness::{Kernel, problem, store_result, words};
use crate::simt::Problem;

/// Fills shared memory with the words of `%a`, 16 bytes per thread, then a barrier.
const FILL: &str = "\
  %bytes = mul i32 %tid, 16
  %from = getelementptr i8, ptr addrspace(1) %a, i32 %bytes
  %row = load <4 x i32>, ptr addrspace(1) %from
  %to = getelementptr i8, ptr addrspace(3) @shared, i32 %bytes
  store <4 x i32> %row, ptr addrspace(3) %to
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
";

#[test]
fn matrices_are_loaded_by_rows() {
    let elements: Vec<u16> = (0..256).collect();
    let input: Vec<u32> =
        elements.chunks(2).map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16).collect();
    for (transposed, name) in [(false, "x4.b16"), (true, "x4.trans.b16")] {
        // Thread t has the address of row 31 - t.
        let body = format!(
            "{FILL}  %back = sub i32 496, %bytes\n  %at = getelementptr i8, ptr addrspace(3) @shared, i32 %back\n  \
             %d = call {{ i32, i32, i32, i32 }} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.{name}.p3(ptr addrspace(3) %at)\n  \
             %r = extractvalue {{ i32, i32, i32, i32 }} %d, 2\n{}",
            store_result("%r")
        );
        let mut arrays = [input.clone(), vec![0; 32]];
        Kernel::new("sm_90a", 32, &body).run(&mut arrays).unwrap_or_else(|fault| panic!("{fault}"));
        for (lane, word) in arrays[1].iter().enumerate() {
            for i in 0..2 {
                let (row, column) = (lane / 4, 2 * (lane % 4) + i);
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                // Matrix 2 has the rows of threads 16 to 23.
                let expected = elements[(31 - (16 + row)) * 8 + column];
                assert_eq!((word >> (16 * i)) as u16, expected, "{name} lane {lane}");
            }
        }
    }
}

#[test]
fn matrices_are_stored_as_they_are_loaded() {
    for name in ["x2.b16", "x2.trans.b16"] {
        let load = format!("llvm.nvvm.ldmatrix.sync.aligned.m8n8.{name}.p3");
        let store = format!("llvm.nvvm.stmatrix.sync.aligned.m8n8.{name}.p3");
        let body = format!(
            "{FILL}  %at = getelementptr i8, ptr addrspace(3) @shared, i32 %bytes\n  \
             %d = call {{ i32, i32 }} @{load}(ptr addrspace(3) %at)\n  \
             %d0 = extractvalue {{ i32, i32 }} %d, 0\n  %d1 = extractvalue {{ i32, i32 }} %d, 1\n  \
             %shifted = add i32 %bytes, 1024\n  \
             %other = getelementptr i8, ptr addrspace(3) @shared, i32 %shifted\n  \
             call void @{store}(ptr addrspace(3) %other, i32 %d0, i32 %d1)\n  \
             call void @llvm.nvvm.bar.warp.sync(i32 -1)\n  \
             %words = mul i32 %tid, 4\n  %w = add i32 %words, 1024\n  \
             %read = getelementptr i8, ptr addrspace(3) @shared, i32 %w\n  \
             %r = load i32, ptr addrspace(3) %read\n{}",
            store_result("%r")
        );
        let input = words(128, 5);
        let mut arrays = [input.clone(), vec![0; 32]];
        Kernel::new("sm_90a", 32, &body).run(&mut arrays).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(arrays[1], input[..32], "{name}");
    }
}

/// Lane l's word of matrix m has the numbers 256 m + 2 l and one more; thread t has the address of row 31 - t, of 16 bytes
/// each, and matrix m's rows are those of threads 8 m to 8 m + 7 (PTX ISA, "stmatrix").
#[test]
fn four_matrices_are_stored_by_rows() {
    for (transposed, name) in [(false, "x4.b16"), (true, "x4.trans.b16")] {
        let words: String = (0..4)
            .map(|m| format!("  %low{m} = add i32 %twice, {}\n  %high{m} = add i32 %low{m}, 1\n  %up{m} = shl i32 %high{m}, 16\n  %w{m} = or i32 %low{m}, %up{m}\n", 256 * m))
            .collect();
        let body = format!(
            "  %twice = mul i32 %tid, 2\n{words}  %bytes = mul i32 %tid, 16\n  %back = sub i32 496, %bytes\n  \
             %at = getelementptr i8, ptr addrspace(3) @shared, i32 %back\n  \
             call void @llvm.nvvm.stmatrix.sync.aligned.m8n8.{name}.p3(ptr addrspace(3) %at, i32 %w0, i32 %w1, i32 %w2, i32 %w3)\n  \
             call void @llvm.nvvm.bar.warp.sync(i32 -1)\n  \
             %own = getelementptr i8, ptr addrspace(3) @shared, i32 %bytes\n  \
             %row = load <4 x i32>, ptr addrspace(3) %own\n  \
             %to = getelementptr i8, ptr addrspace(1) %b, i32 %bytes\n  \
             store <4 x i32> %row, ptr addrspace(1) %to\n"
        );
        let mut arrays = [words_of(0), words_of(128)];
        Kernel::new("sm_90a", 32, &body).run(&mut arrays).unwrap_or_else(|fault| panic!("{fault}"));
        for thread in 0..32 {
            let (matrix, row) = (thread / 8, thread % 8);
            for column in 0..8 {
                let (i, j) = if transposed { (column, row) } else { (row, column) };
                let expected = 256 * matrix + 2 * (4 * i + j / 2) + j % 2;
                let word = arrays[1][(31 - thread) * 4 + column / 2];
                assert_eq!((word >> (16 * (column % 2))) as u16, expected as u16, "{name} row {thread}");
            }
        }
    }
}

fn words_of(count: usize) -> Vec<u32> {
    super::harness::aligned(&vec![0; count.max(4)])
}

#[test]
fn rows_must_be_aligned_written_and_ordered() {
    let load = |address: &str, fill: &str| {
        format!(
            "{fill}  %off = {address}\n  %at = getelementptr i8, ptr addrspace(3) @shared, i32 %off\n  \
             %d = call i32 @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16.p3(ptr addrspace(3) %at)\n"
        )
    };
    let aligned = problem("sm_90a", 32, &load("add i32 %bytes, 8", FILL));
    assert_eq!(aligned, Problem::Misaligned { alignment: 16, excess: 8 });
    assert!(matches!(
        problem("sm_90a", 32, &load("add i32 %bytes, 512", FILL)),
        Problem::Uninitialized { .. }
    ));
    let late = FILL.rsplit_once("  call").expect("a barrier").0;
    assert!(matches!(problem("sm_90a", 32, &load("xor i32 %bytes, 16", late)), Problem::Race { .. }));
}
