//! What compilation gives.

use tile_ir::abi::Launch;
use tile_ir::tensor_map::TensorMap;

/// Compiled code of one instance for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The target's name.
    pub target: String,
    /// The entry's symbol: the kernel's name, or [`crate::Options::symbol`], in ASCII.
    pub symbol: String,
    /// The code.
    pub code: Code,
    /// What a launch needs to know.
    pub launch: Launch,
    /// What a launch makes the kernel's last parameters but that of the log of; none on a CPU.
    pub tensor_maps: Vec<TensorMap>,
}

/// Code in the form that its device loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// A relocatable ELF object of the host that exports the entry as a [`tile_ir::abi::CpuEntry`].
    Object(Vec<u8>),
    /// PTX text; the driver or `ptxas` assembles it.
    Ptx(String),
    /// A linked AMD code object.
    Hsaco(Vec<u8>),
}

impl Code {
    /// The bytes as they are stored in a file.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Code::Object(bytes) | Code::Hsaco(bytes) => bytes,
            Code::Ptx(text) => text.as_bytes(),
        }
    }

    /// The usual extension of such a file.
    pub fn extension(&self) -> &'static str {
        match self {
            Code::Object(_) => "o",
            Code::Ptx(_) => "ptx",
            Code::Hsaco(_) => "hsaco",
        }
    }
}
