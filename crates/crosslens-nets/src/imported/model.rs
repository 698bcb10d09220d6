//! From a path to a model of another program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosslens_analysis::{Description, Side, TensorFile, Token};
use crosslens_kernels::Threads;

use super::between_grus::{BetweenGrus, describe};
use super::mapping::{Mapping, SHIPPED};
use super::weights::{Weights, value};
use super::{ImportError, ImportedSubject, SideTable, UnknownWord};

/// The mapping in a folder of weights.
pub const MAPPING_FILE: &str = "import.toml";
/// Most steps that a mapping may let a decoder take.
const MAX_STEPS: usize = 1 << 16;

/// A model of another program.
#[derive(Clone, Debug)]
pub struct Imported {
    name: Arc<str>,
    /// Source, target.
    tables: Arc<[SideTable; 2]>,
    most_steps: usize,
    description: Description,
    network: Arc<BetweenGrus>,
}

impl Imported {
    /// Whether a path is one that [`Imported::open`] is for: a folder with an `import.toml`, a `.toml` file, or a `.safetensors` file that
    /// holds most of the tensors of a model known to the program.
    pub fn is_at(path: &Path) -> bool {
        if path.is_dir() {
            return path.join(MAPPING_FILE).is_file();
        }
        has_extension(path, "toml") && path.is_file() || shipped_for(path).is_some()
    }

    /// Opens a folder with an `import.toml`, such a mapping under any name, or the weights of a model known to the program.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        if let Some(mapping) = shipped_for(path) {
            return Self::read(path, &mapping);
        }
        let file = if path.is_dir() { path.join(MAPPING_FILE) } else { path.to_owned() };
        let mapping = Mapping::read(&file)?;
        let weights = file.parent().map_or_else(PathBuf::new, Path::to_owned).join(&mapping.weights);
        Self::read(&weights, &mapping)
    }

    /// Reads a file of weights by a mapping.
    pub fn read(path: &Path, mapping: &Mapping) -> Result<Self, ImportError> {
        let file = TensorFile::open(path)?;
        let weights = Weights::read(&file, mapping)?;
        let source = SideTable::read(&file, "source", &mapping.source, weights.sizes.source_words)?;
        let target = SideTable::read(&file, "target", &mapping.target, weights.sizes.target_words)?;
        let most_steps = value(&file, &mapping.most_steps)?;
        if !(1..=MAX_STEPS).contains(&most_steps) {
            let what = format!("`most_steps` of its mapping is {most_steps}, and 1 to {MAX_STEPS} make sense");
            return Err(ImportError::Mapping { path: path.to_owned(), what });
        }
        let description = describe(&weights, &mapping.name, &source, &target);
        let (name, tables) = (mapping.name.as_str().into(), Arc::new([source, target]));
        Ok(Self { name, tables, most_steps, description, network: Arc::new(BetweenGrus::new(&weights)) })
    }

    /// What the mapping calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The words of a side.
    pub fn table(&self, side: Side) -> &SideTable {
        &self.tables[usize::from(side == Side::Target)]
    }

    /// Steps after which its decoder stops.
    pub fn most_steps(&self) -> usize {
        self.most_steps
    }

    /// What it records.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// A text as the encoder reads it: start, the words, end.
    pub fn source(&self, text: &str) -> Result<Vec<Token>, UnknownWord> {
        let table = self.table(Side::Source);
        let words = table.tokens(text)?;
        Ok(std::iter::once(table.start()).chain(words).chain([table.end()]).collect())
    }

    /// A text as the decoder should write it: the words, end.
    pub fn target(&self, text: &str) -> Result<Vec<Token>, UnknownWord> {
        let table = self.table(Side::Target);
        let words = table.tokens(text)?;
        Ok(words.into_iter().chain([table.end()]).collect())
    }

    /// The model ready to be recorded, on `n_threads` threads; 0 means one per core.
    pub fn subject(&self, n_threads: usize) -> std::io::Result<ImportedSubject> {
        let threads = Threads::new(n_threads)?;
        Ok(ImportedSubject::new(self.network.clone(), self.name.clone(), self.tables.clone(), self.description.clone(), threads))
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// The shipped mapping whose tensors a file of weights has, most of them at least: what is missing is then said by name.
fn shipped_for(path: &Path) -> Option<Mapping> {
    if !has_extension(path, "safetensors") || !path.is_file() {
        return None;
    }
    let file = TensorFile::open(path).ok()?;
    SHIPPED.iter().map(|shipped| shipped.mapping()).find(|mapping| {
        let n_there = mapping.tensors.values().filter(|origin| file.shape(origin.tensor()).is_some()).count();
        2 * n_there > mapping.tensors.len()
    })
}
