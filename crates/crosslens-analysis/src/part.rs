//! The names of what a state and a score are split into.

use std::fmt;

/// Which part of a state a term comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Depends on the step alone.
    Temporal,
    /// Depends on the token alone.
    Input,
    /// The rest.
    Residual,
}

impl Part {
    /// In the order of every table.
    pub const ALL: [Self; 3] = [Self::Temporal, Self::Input, Self::Residual];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Temporal => "temporal",
            Self::Input => "input",
            Self::Residual => "residual",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
