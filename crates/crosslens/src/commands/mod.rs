//! One file a command.

pub(crate) mod attend;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod figure;
pub(crate) mod fit;
pub(crate) mod merge;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod train;
