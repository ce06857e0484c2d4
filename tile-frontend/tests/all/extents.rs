//! Extents that are computed step by step: of each other, and longer each time.

use crate::lower;
use tile_ir::array::Elements;
use tile_ir::ops::Literal;
use tile_ir::{Array, DType, interp, specialize};

/// What a body makes of `len`, which begins as `n`, a run-time size.
fn computed(body: &str, n: usize) -> f64 {
    let source = format!(
        "fn k(n: usize, y: &mut Tensor<f64, 1>) {{
            let mut len = n;
            {body}
            y.partition_view_mut([1]).store(Tile::full([1], len as f64));
        }}"
    );
    let lowered = lower("where(n > 0)", &source).unwrap_or_else(|errors| panic!("{body}\n{errors}"));
    let instance = specialize(&lowered.kernel, &[]).unwrap();
    let of_y = Array::new(DType::F64, vec![1], Elements::Float(vec![0.0]));
    let mut arguments = [Array::scalar(DType::Index, Literal::Int(n as i128)), of_y];
    interp::run(&instance, &mut arguments).unwrap();
    arguments[1].get_f64(0)
}

/// A statement's right side, and what it is in Rust.
type Step = (&'static str, fn(usize) -> usize);

/// However many alternatives a condition has, its text reads back.
#[test]
fn conditions_of_many_alternatives_read_back() {
    let any = |count: usize| (1..=count).map(|b| format!("B == {b}")).collect::<Vec<_>>().join(" || ");
    let source = "fn k<const B: usize>(y: &mut Tensor<f32, n>) {
        y.partition_view_mut([B]).store_masked(Tile::zeros([B]));
    }";
    for count in [2, 3, 65, 200] {
        let conditions = format!("where({}, !({}))", any(count), any(count));
        let kernel = lower(&conditions, source).unwrap_or_else(|errors| panic!("{errors}")).kernel;
        let text = kernel.to_string();
        assert_eq!(tile_ir::text::parse(&text).unwrap().to_string(), text);
        assert_eq!(text.matches("any(").count() + text.matches("all(").count(), 2, "{text}");
    }
}

/// An extent that is named twice doubles with each statement.
#[test]
fn what_doubles_with_each_statement_is_computed() {
    let steps: [Step; 6] = [
        ("len - len / 2", |n| n - n / 2),
        ("len + len / 3", |n| n + n / 3),
        ("len - len % 8", |n| n - n % 8),
        ("len.max(3) - (len >> 2)", |n| n.max(3) - (n >> 2)),
        ("(len + len / 2).div_ceil(2)", |n| (n + n / 2).div_ceil(2)),
        ("(len * len).min(len + 7)", |n| (n * n).min(n + 7)),
    ];
    for (step, of_rust) in steps {
        let expected = (0..40).fold(1000, |n, _| of_rust(n));
        let statements = format!("len = {step};").repeat(40);
        assert_eq!(computed(&statements, 1000), expected as f64, "{step}");
        let unrolled = format!("for _ in [{}] {{ len = {step}; }}", ["0"; 40].join(", "));
        assert_eq!(computed(&unrolled, 1000), expected as f64, "{step}");
    }
}

/// What nests deeper with each statement reads back.
#[test]
fn what_nests_with_each_statement_is_computed() {
    let source = format!(
        "fn k(y: &mut Tensor<f32, n>) {{
            let mut len = n;
            {}
            let y = y.partition_view_mut([4]);
            y.store_masked(Tile::full([4], len as f32));
        }}",
        "len = (len + 1) / 2;".repeat(80)
    );
    let text = lower("", &source).unwrap().kernel.to_string();
    assert_eq!(tile_ir::VerifiedKernel::parse(&text).unwrap().to_string(), text);
    assert_eq!(computed(&"len = (len + 1) / 2;".repeat(80), 1 << 40), 1.0);
}

#[test]
fn extents_of_tensors_that_double_are_refused() {
    let message = "an extent has more than 256 terms and factors";
    let refused = |attribute: &str, arguments: &str, body: &str| {
        let source = format!(
            "fn k<const A: usize, const B: usize>({arguments}, y: &mut Tensor<f32, 4>) {{
                {body}
                y.partition_view_mut([4]).store(Tile::zeros([4]));
            }}"
        );
        lower(attribute, &source).err().map_or_else(|| "fine".to_owned(), |errors| errors.to_string())
    };
    let padded = "let x = x.pad([(0, x.extent(0) / 2)]);".repeat(40);
    let windows = format!(
        "let x = x.pad([(1, 1)]).unfold(0, 3, 1); {}",
        "let x = x.shrink([(x.extent(0) / 2, x.extent(0)), (0, 3)]);".repeat(40)
    );
    for (attribute, argument, body) in [
        ("", "&Tensor<f32, n>", padded.as_str()),
        ("", "&Tensor<f32, n>", windows.as_str()),
        (&format!("where({} == n)", vec!["(n + A)"; 70].join(" / ")), "&Tensor<f32, n>", ""),
        (&format!("grid = [{}]", vec!["(n + A)"; 70].join(" / ")), "&Tensor<f32, n>", ""),
        ("", &format!("&Tensor<f32, {{ {} }}>", vec!["(A + B)"; 70].join(" % ")), ""),
    ] {
        let text = refused(attribute, &format!("x: {argument}"), body);
        assert!(text.contains(message), "{attribute} {argument} {body}\n{text}");
        assert!(text.contains("help: make a part of it a size of its own"), "{text}");
    }
}
