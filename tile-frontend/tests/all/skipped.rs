//! What a kernel skips: right sides of `&&` and `||`, and guards of `match`.

use quote::ToTokens;
use syn::Item;
use tile_frontend::Helpers;

fn lowered(items: &str, body: &str) -> Result<tile_frontend::Lowered, tile_frontend::Diagnostics> {
    let items: Vec<Item> = syn::parse_str::<syn::File>(items).unwrap().items;
    let source = format!(
        "fn k(x: &Tensor<i32, 4>, a: i32, y: &mut Tensor<i32, 4>) {{
            let t = x.partition_view([4]).load([0]);
            let mut y = y.partition_view_mut([4]);
            let mut k = 0;
            {body}
            y.store(t * k);
        }}"
    );
    let function = syn::parse_str(&source).unwrap();
    tile_frontend::lower_with(Default::default(), function, &Helpers::of(&items), "src/main.rs")
}

#[test]
fn what_a_known_left_side_decides_has_no_right_one() {
    for body in [
        "for i in 0..4 { if i > 0 && 12 % i == 0 { k += [1, 2, 3, 4][i]; } }",
        "for i in 0..4 { if i == 0 || 12 / i > 3 { k += [1, 2, 3, 4][i]; } }",
        "for i in 0..4 { if a > 3 && i > 0 && 12 % i == 0 { k += [1, 2, 3, 4][i]; } }",
        "for i in 0..4 { let p = [1, 2, 3, 4][i]; k += match p { j if i > 0 && 12 % i == 0 => j, _ => 7 }; }",
        "for i in 0..4 { let p = [1, 2, 3, 4][i]; k += match (i > 0, p) { (true, j) if 12 % i == 0 => j, _ => 7 }; }",
    ] {
        if let Err(errors) = lowered("", body) {
            panic!("{body}\n{errors}");
        }
    }
    let errors = lowered("", "for i in 0..4 { if i < 3 && 12 % i == 0 { k += [1, 2, 3, 4][i]; } }").err();
    let errors = errors.map(|errors| errors.to_string()).unwrap_or_default();
    assert!(errors.contains("division by zero"), "{errors}");
    let kernel =
        lowered("", "for i in 0..4 { if i >= 0 && a > i { k += [1, 2, 3, 4][i as usize]; } }").unwrap();
    assert!(kernel.function.to_token_stream().to_string().contains("i >= 0 && a > i"));
}

#[test]
fn methods_of_a_struct_are_skipped_whatever_their_name() {
    let items = "struct State { k: i32 }
        #[tile_fn] impl State {
            fn lt(self, other: i32) -> bool { tile_println!(\"{}\", self.k); self.k < other }
            fn abs(self) -> i32 { tile_assert!(self.k > 0); self.k }
        }";
    for right in
        ["state.lt(a)", "state.abs() > 2", "(state).abs().max(3) > 2", "pair.0.lt(a)", "1 + state.abs() < 2"]
    {
        let body =
            |condition: &str| format!("let state = State {{ k: a }}; let pair = (state, 1); {condition}");
        let of_if = body(&format!("if a > 3 && {right} {{ k = 1; }}"));
        let of_guard = body(&format!("k = match a {{ 3.. if {right} => 1, _ => 2 }};"));
        let bound = body(&format!("k = match (a, state) {{ (3.., state) if {right} => 1, _ => 2 }};"));
        for body in [of_if, of_guard, bound] {
            let kernel = lowered(items, &body).unwrap_or_else(|errors| panic!("{body}\n{errors}")).kernel;
            let text = kernel.to_string();
            let effect = text.lines().find(|line| line.contains("print") || line.contains("assert")).unwrap();
            assert!(effect.starts_with("    "), "{body}\n{text}");
        }
    }
    // What only computes is an operand still.
    let kernel = lowered("", "if a > 3 && a.abs() < 7 { k = 1; }").unwrap().kernel.to_string();
    assert!(kernel.contains("and "), "{kernel}");
}
