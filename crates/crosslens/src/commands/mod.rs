//! One file a command.

pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod record;
pub(crate) mod train;
