//! Devices, tensors and launches for tile kernels.
