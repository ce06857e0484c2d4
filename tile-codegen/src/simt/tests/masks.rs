//! Every mask of generated code is taken away in turn, and missed: what was masked is read or written outside its
//! tensor, by several threads, or comes out wrong.

use crate::simt::*;
use inkwell::values::{
    AnyValue, BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue,
};
use tile_ir::array::Elements;
use tile_ir::ops::Literal;
use tile_ir::specialize::specialize_for;
use tile_ir::view::{ArgumentLayout, GivenTensor};
use tile_ir::{Array, DType, Instance, Variant, VerifiedKernel, interp};

// The kernels ask for a block per tile: the condition of a loop over tiles is no mask.

/// What elements that don't exist count as.
const PAD: f64 = 7.0;

/// The offset of lanes that are out of bounds; a resource of so many bytes holds all others.
const OUT_OF_BOUNDS: u64 = 1 << 31;

/// Rows are copied, turned round; what doesn't exist counts as [`PAD`].
const TURNED: &str = "\
kernel @turned(%x: tensor<m x n x f32>, %y: mut tensor<p x q x f32>) grid tiles {
  %vx = partition %x [8, 32] : partition<m x n x f32, [8, 32]>
  %vy = partition %y [32, 8] : mut partition<p x q x f32, [32, 8]>
  %i, %j = block_index %vy : index, index
  %pad = constant 7.0 : f32
  %t = load_masked %vx[%j, %i] pad %pad : tile<8 x 32 x f32>
  %r = permute %t [1, 0] : tile<32 x 8 x f32>
  store_masked %vy, %r
}
";

/// The sum of the second hundred of each row with its pads. All threads have it, one stores it.
const SUM: &str = "\
kernel @sum(%x: tensor<m x n x f32>, %y: mut tensor<p x 1 x f32>) grid tiles {
  %vx = partition %x [2, 100] : partition<m x n x f32, [2, 100]>
  %vy = partition %y [2, 1] : mut partition<p x 1 x f32, [2, 1]>
  %i, %j = block_index %vy : index, index
  %pad = constant 7.0 : f32
  %one = constant 1 : index
  %t = load_masked %vx[%i, %one] pad %pad : tile<2 x 100 x f32>
  %s = reduce sum %t axis 1 : tile<2 x 1 x f32>
  store_masked %vy, %s
}
";

/// Elements at indices, some of which name none.
const GATHERED: &str = "\
kernel @gathered(%x: tensor<n x f32>, %y: mut tensor<m x f32>) grid tiles {
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

/// The masks of a kernel: conditions of branches, of choices between two addresses, of an element and a pad, of an offset
/// and one that is out of bounds; and resources, for the numbers of their bytes.
fn masks<'c>(ir: &Ir<'c>) -> Vec<InstructionValue<'c>> {
    let kernel: FunctionValue<'c> = ir.module.get_function(KERNEL).expect("the kernel");
    let instructions = kernel.get_basic_blocks().into_iter().flat_map(|block| block.get_instructions());
    let pads = |select: &InstructionValue<'c>| {
        let otherwise = select.get_operand(2).and_then(|operand| operand.value());
        otherwise == Some(ir.context.f32_type().const_float(PAD).into())
    };
    let hides = |select: &InstructionValue<'c>| {
        let otherwise = select.get_operand(2).and_then(|operand| operand.value());
        otherwise == Some(ir.context.i32_type().const_int(OUT_OF_BOUNDS, false).into())
    };
    let chooses = |instruction: &InstructionValue<'c>| match instruction.get_opcode() {
        InstructionOpcode::Br => instruction.get_num_operands() == 3,
        InstructionOpcode::Select => {
            instruction.get_type().is_pointer_type() || pads(instruction) || hides(instruction)
        }
        _ => is_resource(instruction),
    };
    let varies = |instruction: &InstructionValue<'c>| {
        if is_resource(instruction) {
            return true;
        }
        let condition = instruction.get_operand(0).and_then(|operand| operand.value());
        condition.is_some_and(|condition| condition.as_instruction_value().is_some())
    };
    instructions.filter(chooses).filter(varies).collect()
}

/// Whether an instruction makes a buffer resource.
fn is_resource(instruction: &InstructionValue<'_>) -> bool {
    instruction.get_opcode() == InstructionOpcode::Call
        && instruction.print_to_string().to_string().contains("make.buffer.rsrc")
}

/// Makes a condition always hold, or a resource reach further than any tensor.
fn take_away<'c>(ir: &Ir<'c>, mask: InstructionValue<'c>) {
    let (operand, value): (u32, BasicValueEnum<'c>) =
        if is_resource(&mask) { (2, ir.i64(OUT_OF_BOUNDS as i64).into()) } else { (0, ir.bool(true).into()) };
    mask.set_operand(operand, value.as_basic_value_enum());
}

/// Runs a kernel whose mask of this number is taken away; gives the mask's text, and whether it is missed.
/// `None` where there is no such mask.
fn without(
    (source, target, variant): (&str, &str, Variant),
    shapes: [&[usize]; 2],
    number: Option<usize>,
) -> Option<(String, bool)> {
    let instance = Instance::parse(source, &[]).unwrap();
    let mut changed = None;
    let mut change = |ir: &Ir<'_>| {
        let found = number.and_then(|number| masks(ir).into_iter().nth(number));
        if let Some(choice) = found {
            changed = Some(choice.print_to_string().to_string());
            take_away(ir, choice);
        }
    };
    let target = TargetDesc::named(target).unwrap();
    let taken = variant.of(&instance).unwrap_or_else(|| instance.clone());
    let kernel =
        compile_changed(&taken, target, Some(64), &mut change).unwrap_or_else(|error| panic!("{error}"));
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

/// Every mask of the kernel is missed with tensors of some of these shapes, but one that only chooses a shorter way:
/// whether a stored tile has any elements, which it has wherever a block stores one. Resources of the hardware don't ask
/// that; `bounded`: AMD's general code has some for what it stores.
fn every_one_is_missed(source: &str, shapes: &[[&[usize]; 2]], bounded: bool) {
    let (general, near) = (Variant::General, Variant::Near);
    let on_amd = usize::from(!bounded);
    for (target, variant, idle) in
        [("sm_80", general, 1), ("gfx942", general, on_amd), ("gfx942", near, 0), ("gfx1100", near, 0)]
    {
        let run = |shapes: &[&[usize]; 2], number| without((source, target, variant), *shapes, number);
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
    every_one_is_missed(TURNED, &[[&[9, 45], &[70, 17]]], false);
}

#[test]
fn every_mask_of_a_row_is_missed() {
    // A tile that exists as a whole is padded itself: its last elements are the tensor's.
    every_one_is_missed(SUM, &[[&[5, 150], &[7, 1]], [&[6, 200], &[6, 1]]], true);
}

#[test]
fn every_mask_of_a_gather_is_missed() {
    // Without elements there is none to read in place of others.
    every_one_is_missed(GATHERED, &[[&[50], &[60]], [&[0], &[60]]], true);
}

/// Rows are copied.
const COPIED: &str = "\
kernel @copied(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) grid tiles {
  %vx = partition %x [4, 32] : partition<m x n x f32, [4, 32]>
  %vy = partition %y [4, 32] : mut partition<m x n x f32, [4, 32]>
  %i, %j = block_index %vy : index, index
  %pad = constant 7.0 : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<4 x 32 x f32>
  store_masked %vy, %t
}
";

/// What lies between the rows of a part of a matrix isn't the part's, though it lies between its first element and its last:
/// the executor objects to the access itself, whatever is read and written there.
#[test]
fn a_mask_that_keeps_off_what_lies_between_rows_is_missed() {
    const ROWS: usize = 4;
    const COLUMNS: usize = 20;
    const DISTANCE: usize = 40;
    let kernel = VerifiedKernel::parse(COPIED).unwrap();
    let (extents, strides) = ([ROWS, COLUMNS], [DISTANCE as i64, 1]);
    let given = [GivenTensor { extents: &extents, strides: Some(&strides), offset: 0 }; 2];
    let layouts = [0, 1].map(|number| (number, ArgumentLayout::of(&given[number]).unwrap()));
    let instance = specialize_for(&kernel, &Vec::new(), &layouts).unwrap();
    for (target, variant) in
        [("sm_80", Variant::General), ("gfx942", Variant::General), ("gfx942", Variant::Near)]
    {
        let target = TargetDesc::named(target).unwrap();
        let taken = variant.of(&instance).unwrap_or_else(|| instance.clone());
        let run = |number: Option<usize>| {
            let mut is_there = false;
            let mut change = |ir: &Ir<'_>| {
                let found = number.and_then(|number| masks(ir).into_iter().nth(number));
                is_there = found.is_some();
                found.into_iter().for_each(|mask| take_away(ir, mask));
            };
            let kernel = compile_changed(&taken, target, Some(64), &mut change).unwrap();
            let memory = Array::full(DType::F32, &[ROWS * DISTANCE], Literal::Float(1.0));
            let outcome = kernel.run_tensors(&mut [memory.clone(), memory], &given, Mode::default());
            (number.is_none() || is_there).then_some(outcome)
        };
        run(None).expect("the kernel as it is").unwrap_or_else(|error| panic!("{error} on {}", target.name));
        let outcomes = (0..).map_while(|number| run(Some(number)));
        let objected: Vec<String> = outcomes
            .filter_map(|outcome| match outcome {
                Err(Error::Run(RunError::Fault(Fault {
                    problem: Problem::BetweenElements { argument, .. },
                    ..
                }))) => Some(argument),
                _ => None,
            })
            .collect();
        assert!(
            ["x", "y"].iter().all(|name| objected.iter().any(|it| it == name)),
            "{}: {objected:?}",
            target.name
        );
    }
}
