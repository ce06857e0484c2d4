//! Compiles the kernels of this package for five targets.

fn main() {
    tile_codegen::build::kernels().targets(["sm_80", "sm_90a", "gfx942", "gfx1100", "cpu"]).emit();
}
