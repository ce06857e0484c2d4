//! Numbers that are known when the macro expands, whichever way they are written.

use crate::lower;
use quote::ToTokens;

#[test]
fn functions_and_methods_of_known_numbers_are_known() {
    for index in [
        "i.min(2)",
        "min(i, 2)",
        "max(i, 1) - 1",
        "min(max(i, 1), 2)",
        "i.clamp(0, 2)",
        "i.clamp(1, 2)",
        "min(i as u32, 2) as usize",
        "(i as i32 - 1).clamp(0, 2) as usize",
    ] {
        let source = format!(
            "fn k(x: &Tensor<f32, 4>, y: &mut Tensor<f32, 4>) {{
                let t = x.partition_view([4]).load([0]);
                let parts = [t, t * 2.0, t * 3.0];
                let mut sum = Tile::zeros([4]);
                for i in 0..4 {{ sum = sum * 2.0 + parts[{index}] * parts[if i > 2 {{ 0 }} else {{ i }}]; }}
                y.partition_view_mut([4]).store(sum);
            }}"
        );
        if let Err(errors) = lower("", &source) {
            panic!("{index}\n{errors}");
        }
    }
}

#[test]
fn an_iterator_of_an_iterator_gives_what_that_gives() {
    for (iterator, copies) in [
        ("parts.iter().into_iter()", true),
        ("parts.iter().rev().into_iter().skip(1)", true),
        ("parts.into_iter()", false),
        ("parts.into_iter().into_iter()", false),
        ("parts.iter().copied().into_iter()", false),
    ] {
        let source = format!("fn f(parts: [f32; 3]) -> f32 {{ {iterator}.sum() }}");
        let function = syn::parse_str(&source).unwrap();
        let function = tile_frontend::function(function, &Default::default()).unwrap();
        let text = function.to_token_stream().to_string();
        assert_eq!(text.matches("copied ())").count(), usize::from(copies), "{text}");
    }
}
