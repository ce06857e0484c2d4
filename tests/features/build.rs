//! Nothing is to be done; without a build script, cargo doesn't consider `[build-dependencies]`.

fn main() {}
