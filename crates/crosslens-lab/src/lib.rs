//! crosslens-lab.
