//! Costs of accesses and instructions.

use super::harness::{Kernel, LOAD, store_result};

#[test]
fn conflicts_and_sectors_are_counted_per_instruction() {
    // Each lane has a row of shared memory, 128 bytes apart; `%b` is read at every second word.
    let body = format!(
        "{LOAD}  %row = shl i32 %tid, 7\n  %at = getelementptr i8, ptr addrspace(3) @shared, i32 %row\n  \
         store i32 %x, ptr addrspace(3) %at\n  %twice = shl i32 %lane, 1\n  \
         %second = getelementptr i32, ptr addrspace(1) %c, i32 %twice\n  %y = load i32, ptr addrspace(1) %second\n  \
         %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %y, i32 1, i32 31)\n{}",
        store_result("%r")
    );
    let mut arrays = [super::harness::aligned(&[0; 64]), vec![0; 64], vec![0; 64]];
    let trace = Kernel::new("sm_90a", 64, &body).run(&mut arrays).unwrap();
    let counters = trace.counters.expect("counters were asked for");
    let access = |i: usize| {
        let access = &counters.accesses[i];
        (access.name.as_str(), access.shared, access.bytes, access.warps, access.parts)
    };
    assert_eq!(access(1), ("store", true, 4, 2, 64));
    // Addresses of arrays are multiples of 16 bytes, so there may be a sector more.
    let (name, shared, bytes, warps, sectors) = access(2);
    assert_eq!((name, shared, bytes, warps), ("load", false, 4, 2));
    assert!((16..=18).contains(&sectors), "{sectors}");
    assert_eq!(counters.instructions["llvm.nvvm.shfl.sync.bfly.i32"], 64);
    assert!(counters.to_string().contains("store, shared, turns"), "{counters}");
}
