//! Every mask of generated code is taken away in turn, and missed: what was masked is read or written outside its
//! tensor, by several threads, or comes out wrong.

use crate::simt::*;
use inkwell::values::{
    AnyValue, BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue,
};
use tile_ir::array::Elements;
use tile_ir::{Array, DType, interp, specialize, text, verify};

/// What elements that don't exist count as.
const PAD: f64 = 7.0;

/// Rows are copied, turned round; what doesn't exist counts as [`PAD`].
const TURNED: &str = "\
kernel @turned(%x: tensor<m x n x f32>, %y: mut tensor<p x q x f32>) {
  %vx = partition %x [8, 32] : partition<m x n x f32, [8, 32]>
  %vy = partition %y [32, 8] : mut partition<p x q x f32, [32, 8]>
  %i, %j = block_index %vy : index, index
  %pad = constant 7.0 : f32
  %t = load_masked %vx[%j, %i] pad %pad : tile<8 x 32 x f32>
  %r = permute %t [1, 0] : tile<32 x 8 x f32>
  store_masked %vy, %r
}
";

/// The sum of each row with its pads. All threads have it, one stores it.
const SUM: &str = "\
kernel @sum(%x: tensor<m x n x f32>, %y: mut tensor<p x 1 x f32>) {
  %vx = partition %x [2, 100] : partition<m x n x f32, [2, 100]>
  %vy = partition %y [2, 1] : mut partition<p x 1 x f32, [2, 1]>
  %i, %j = block_index %vy : index, index
  %pad = constant 7.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<2 x 100 x f32>
  %s = reduce sum %t axis 1 : tile<2 x 1 x f32>
  store_masked %vy, %s
}
";

/// Elements at indices, some of which name none.
const GATHERED: &str = "\
kernel @gathered(%x: tensor<n x f32>, %y: mut tensor<m x f32>) {
  %vy = partition %y [64] : mut partition<m x f32, [64]>
  %i = block_index %vy : index
  %pad = constant 7.0 : f32
  %o = iota 0 : tile<64 x i32>
  %three = constant 3 : i32
  %threes = splat %three : tile<64 x i32>
  %at = mul %o, %threes : tile<64 x i32>
  %t = gather_load %x[%at] pad %pad : tile<64 x f32>
  store_masked %vy, %t
}
";

/// The masks of a kernel: conditions of branches, of choices between two addresses, and of an element and a pad.
fn masks<'c>(ir: &Ir<'c>) -> Vec<InstructionValue<'c>> {
    let kernel: FunctionValue<'c> = ir.module.get_function(KERNEL).expect("the kernel");
    let instructions = kernel.get_basic_blocks().into_iter().flat_map(|block| block.get_instructions());
    let pads = |select: &InstructionValue<'c>| {
        let otherwise = select.get_operand(2).and_then(|operand| operand.value());
        otherwise == Some(ir.context.f32_type().const_float(PAD).into())
    };
    let chooses = |instruction: &InstructionValue<'c>| match instruction.get_opcode() {
        InstructionOpcode::Br => instruction.get_num_operands() == 3,
        InstructionOpcode::Select => instruction.get_type().is_pointer_type() || pads(instruction),
        _ => false,
    };
    let varies = |instruction: &InstructionValue<'c>| {
        let condition = instruction.get_operand(0).and_then(|operand| operand.value());
        condition.is_some_and(|condition| condition.as_instruction_value().is_some())
    };
    instructions.filter(chooses).filter(varies).collect()
}

/// Runs a kernel whose condition of this number always holds; gives the condition's text, and whether that is missed.
/// `None` where there is no such condition.
fn without(
    (source, target): (&str, &str),
    shapes: [&[usize]; 2],
    number: Option<usize>,
) -> Option<(String, bool)> {
    let kernel = verify(text::parse(source).unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let instance = specialize(&kernel, &[]).unwrap();
    let mut changed = None;
    let mut change = |ir: &Ir<'_>| {
        let found = number.and_then(|number| masks(ir).into_iter().nth(number));
        if let Some(choice) = found {
            changed = Some(choice.print_to_string().to_string());
            let holds: BasicValueEnum<'_> = ir.bool(true).into();
            choice.set_operand(0, holds.as_basic_value_enum());
        }
    };
    let target = TargetDesc::named(target).unwrap();
    let kernel =
        compile_changed(&instance, target, Some(64), &mut change).unwrap_or_else(|error| panic!("{error}"));
    if number.is_some() && changed.is_none() {
        return None;
    }
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    let values: Vec<f32> = (0..count(shapes[0])).map(|i| (i * 7 % 61) as f32 + 8.0).collect();
    let mut tensors = [values.clone(), vec![0.0; count(shapes[1])]];
    let array = |values: &[f32], shape: &[usize]| {
        let numbers = values.iter().map(|&value| f64::from(value)).collect();
        Array::new(DType::F32, shape.to_vec(), Elements::Float(numbers))
    };
    let mut expected = vec![array(&values, shapes[0]), array(&tensors[1], shapes[1])];
    interp::run(&instance, &mut expected).unwrap();
    let bound = KernelAbi::of(&instance).bind(&shapes).expect("shapes that fit");
    let mut slots: Vec<u64> = tensors.iter_mut().map(|tensor| tensor.as_mut_ptr() as u64).collect();
    slots.extend(&bound.sizes);
    // SAFETY: the slots are as the ABI says, and the tensors as large as their shapes.
    let result = unsafe { kernel.run(&slots, bound.blocks() as u64) };
    let is_right = (0..count(shapes[1])).all(|i| f64::from(tensors[1][i]) == expected[1].get_f64(i));
    Some((changed.unwrap_or_default(), result.is_err() || !is_right))
}

/// Every mask of the kernel is missed with tensors of some of these shapes, but as many as only choose a shorter way:
/// whether a stored tile has any elements, which it has wherever a block stores one.
fn every_one_is_missed(source: &str, shapes: &[[&[usize]; 2]], idle: usize) {
    for target in ["sm_80", "gfx942"] {
        let run = |shapes: &[&[usize]; 2], number| without((source, target), *shapes, number);
        for shapes in shapes {
            let (_, is_wrong) = run(shapes, None).expect("the kernel as it is");
            assert!(!is_wrong, "the kernel is right as it is");
        }
        let mut unmissed = Vec::new();
        let mut number = 0;
        while let Some((mask, _)) = run(&shapes[0], Some(number)) {
            if !shapes.iter().any(|shapes| run(shapes, Some(number)).is_some_and(|(_, is_missed)| is_missed))
            {
                unmissed.push(mask);
            }
            number += 1;
        }
        assert!(number > idle, "{target}: the kernel has {number} masks");
        assert_eq!(unmissed.len(), idle, "{target}: the executor doesn't miss {unmissed:#?}");
    }
}

#[test]
fn every_mask_of_a_tile_that_reaches_out_is_missed() {
    every_one_is_missed(TURNED, &[[&[9, 45], &[70, 17]]], 1);
}

#[test]
fn every_mask_of_a_row_is_missed() {
    // A tile that exists as a whole is padded itself: its last elements are the tensor's.
    every_one_is_missed(SUM, &[[&[5, 50], &[7, 1]], [&[6, 100], &[6, 1]]], 1);
}

#[test]
fn every_mask_of_a_gather_is_missed() {
    every_one_is_missed(GATHERED, &[[&[50], &[60]]], 1);
}
