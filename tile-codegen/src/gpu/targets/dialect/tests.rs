//! The parameters of a kernel with tensor maps, in its PTX.

use super::{AtOnce, CDNA, Entry, NVPTX, RDNA, Resources};
use crate::emit::Ir;
use crate::gpu::targets::features;
use crate::llvm::Machine;
use inkwell::AddressSpace;
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context;
use inkwell::targets::FileType;
use inkwell::values::FunctionValue;
use tile_ir::Instance;
use tile_ir::abi::KernelAbi;

const KERNEL: &str = "\
kernel @k(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vy = partition %y [4, 8] : mut partition<m x n x f32, [4, 8]>
  %0 = constant 1 : i32
  print 0 \"{0}\" %0
}
";

/// Begins a copy of the box at the origin of the last map to the first bytes of shared memory. In a block without a
/// cluster, an address in its shared memory is one in the cluster's.
fn copy_box<'c>(ir: &Ir<'c>, entry: &Entry<'c>) {
    let cluster = ir.context.ptr_type(AddressSpace::from(7));
    let to = ir.builder.build_address_space_cast(entry.shared, cluster, "").unwrap();
    let barrier = ir.element(ir.context.i8_type().into(), entry.shared, ir.i64(1024));
    let map = *entry.maps.last().expect("the kernel has maps");
    let number = |bits: u32| ir.context.custom_width_int_type(bits.try_into().unwrap()).unwrap().const_zero();
    let integers = [32, 32, 16, 64, 1, 1, 32].map(|bits| number(bits).into());
    let operands = [&[to.into(), barrier.into(), map.into()], &integers[..]].concat();
    ir.intrinsic("llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d", &[], &operands);
}

/// The PTX of a kernel with two maps; `change` sees its function.
fn ptx(change: impl Fn(FunctionValue<'_>)) -> String {
    let context = Context::create();
    let machine = Machine::nvptx("sm_90a", "").unwrap();
    let ir = Ir::new(&context, "k", features::NVPTX);
    machine.prepare(&ir.module);
    let instance = Instance::parse(KERNEL, &[]).unwrap();
    let resources = Resources {
        threads: 32,
        warps: 1,
        cluster: 1,
        at_once: None,
        shared_bytes: 2048,
        shared_alignment: 1024,
    };
    let entry = NVPTX.entry(&ir, "k", &KernelAbi::of(&instance), 2, resources);
    copy_box(&ir, &entry);
    ir.store(entry.log.expect("the kernel prints"), ir.i64(7).into());
    ir.return_void();
    change(ir.module.get_function("k").unwrap());
    machine.optimize("k", &ir.module).unwrap();
    String::from_utf8(machine.emit("k", &ir.module, FileType::Assembly).unwrap()).unwrap()
}

#[test]
fn a_tensor_copy_has_the_address_of_the_parameter_itself() {
    let ptx = ptx(|_| ());
    for map in 4..=5 {
        assert!(ptx.contains(&format!(".param .align 64 .b8 k_param_{map}[128]")), "{ptx}");
    }
    let address = "mov.b64 \t%rd1, k_param_5;\n\tcvta.param.u64 \t%rd2, %rd1;";
    assert!(ptx.contains(address) && !ptx.contains(".local"), "{ptx}");
    assert!(ptx.contains("complete_tx::bytes [%rd5], [%rd2, {%r1, %r1}]"), "{ptx}");
    // The log is the last parameter, whether or not there are maps.
    assert!(ptx.contains("ld.param.b64 \t%rd7, [k_param_6];\n\tst.global.b64 \t[%rd7], 7;"), "{ptx}");
}

#[test]
fn without_the_attribute_it_has_that_of_a_copy() {
    let ptx = ptx(|kernel| {
        let map = AttributeLoc::Param(5);
        assert!(kernel.get_string_attribute(map, "nvvm.grid_constant").is_some());
        kernel.remove_string_attribute(map, "nvvm.grid_constant");
    });
    assert!(ptx.contains(".local"), "{ptx}");
}

/// AMD's processors count waves of a SIMD unit, of which a compute unit has four, or two.
#[test]
fn blocks_at_once_are_said_as_each_vendor_counts_them() {
    let said = |at_once: AtOnce| {
        [(1, 4), (2, 4), (3, 2), (2, 8)].map(|(blocks, warps)| at_once.attribute(blocks, warps).1)
    };
    assert_eq!(said(NVPTX.at_once), ["1", "2", "3", "2"]);
    assert_eq!(said(CDNA.at_once), ["1", "2", "2", "4"]);
    assert_eq!(said(RDNA.at_once), ["2", "4", "3", "8"]);
}
