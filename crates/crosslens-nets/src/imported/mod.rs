//! Networks that another program trained: opened through a mapping, recorded and run again, not trained.
//!
//! One family is known, attention between two GRUs of the decoder. Its equations stand in `docs/import.md`, with the mapping from the tensors
//! of a foreign file to its own.

mod between_grus;
mod error;
mod gru;
mod linear;
mod mapping;
mod model;
mod pass;
mod subject;
mod tables;
mod weights;

pub use error::ImportError;
pub use mapping::{Family, Given, InMetadata, JoinedWords, Mapping, Origin, PartOfTensor, Rows, SHIPPED, Shipped, SideMapping, Table};
pub use model::{Imported, MAPPING_FILE};
pub use subject::ImportedSubject;
pub use tables::{SideTable, UnknownWord};
