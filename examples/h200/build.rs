//! Compiles the kernels of this package, and assembles them where `TILE_CUBIN_PTXAS` names a `ptxas`.

fn main() {
    println!("cargo::rerun-if-env-changed=TILE_CUBIN_PTXAS");
    let kernels = tile_codegen::build::kernels().targets(["sm_90a", "cpu"]);
    match std::env::var_os("TILE_CUBIN_PTXAS") {
        Some(ptxas) => kernels.assemble_with(ptxas).emit(),
        None => kernels.emit(),
    }
}
