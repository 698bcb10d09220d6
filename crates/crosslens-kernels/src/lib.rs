//! crosslens-kernels.
