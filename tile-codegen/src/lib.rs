//! Tile IR to native CPU code, NVIDIA PTX and AMD HSACO through LLVM.
