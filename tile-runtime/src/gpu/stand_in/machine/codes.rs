//! Error codes: what CUDA and HIP number and word alike, and what each calls it. Only those that a machine gives.

/// An error of a driver's, by the number that both vendors have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($number:literal $constant:ident $words:literal, $cuda:literal, $hip:literal;)*) => {
        impl Code {
            $(pub const $constant: Code = Code($number);)*

            /// The words, CUDA's name and HIP's.
            fn texts(self) -> [&'static std::ffi::CStr; 3] {
                match self {
                    $(Code::$constant => [$words, $cuda, $hip],)*
                    _ => [c"unknown error", c"CUDA_ERROR_UNKNOWN", c"hipErrorUnknown"],
                }
            }
        }
    };
}

// Words of CUDA's `cuGetErrorString`.
codes! {
    1 INVALID_VALUE c"invalid argument", c"CUDA_ERROR_INVALID_VALUE", c"hipErrorInvalidValue";
    2 OUT_OF_MEMORY c"out of memory", c"CUDA_ERROR_OUT_OF_MEMORY", c"hipErrorOutOfMemory";
    3 NOT_INITIALIZED c"initialization error", c"CUDA_ERROR_NOT_INITIALIZED", c"hipErrorNotInitialized";
    101 INVALID_DEVICE c"invalid device ordinal", c"CUDA_ERROR_INVALID_DEVICE", c"hipErrorInvalidDevice";
    200 INVALID_IMAGE c"device kernel image is invalid", c"CUDA_ERROR_INVALID_IMAGE", c"hipErrorInvalidImage";
    201 INVALID_CONTEXT c"invalid device context", c"CUDA_ERROR_INVALID_CONTEXT", c"hipErrorInvalidContext";
    217 NO_PEER_ACCESS c"peer access is not supported between these two devices", c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"hipErrorPeerAccessUnsupported";
    218 INVALID_PTX c"a PTX JIT compilation failed", c"CUDA_ERROR_INVALID_PTX", c"hipErrorInvalidKernelFile";
    400 INVALID_HANDLE c"invalid resource handle", c"CUDA_ERROR_INVALID_HANDLE", c"hipErrorInvalidHandle";
    500 NOT_FOUND c"named symbol not found", c"CUDA_ERROR_NOT_FOUND", c"hipErrorNotFound";
    600 NOT_READY c"device not ready", c"CUDA_ERROR_NOT_READY", c"hipErrorNotReady";
    700 ILLEGAL_ADDRESS c"an illegal memory access was encountered", c"CUDA_ERROR_ILLEGAL_ADDRESS", c"hipErrorIllegalAddress";
    704 ALREADY_PEERS c"peer access is already enabled", c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"hipErrorPeerAccessAlreadyEnabled";
    719 LAUNCH_FAILED c"unspecified launch failure", c"CUDA_ERROR_LAUNCH_FAILED", c"hipErrorLaunchFailure";
    800 NOT_PERMITTED c"operation not permitted", c"CUDA_ERROR_NOT_PERMITTED", c"hipErrorUnknown";
    801 NOT_SUPPORTED c"operation not supported", c"CUDA_ERROR_NOT_SUPPORTED", c"hipErrorNotSupported";
    900 IS_CAPTURING c"operation not permitted when stream is capturing", c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"hipErrorStreamCaptureUnsupported";
    912 INVALID_CLUSTER c"invalid cluster size", c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"hipErrorUnknown";
    999 UNKNOWN c"unknown error", c"CUDA_ERROR_UNKNOWN", c"hipErrorUnknown";
}

impl Code {
    /// What the libraries give as text.
    pub fn words(self) -> &'static std::ffi::CStr {
        self.texts()[0]
    }

    pub fn cuda_name(self) -> &'static std::ffi::CStr {
        self.texts()[1]
    }

    pub fn hip_name(self) -> &'static std::ffi::CStr {
        self.texts()[2]
    }

    /// Whether every later call gives the same.
    pub fn is_sticky(self) -> bool {
        [Code::ILLEGAL_ADDRESS, Code::LAUNCH_FAILED].contains(&self)
    }
}
