//! The catalogues installed on a machine: a parallel corpus that most Linux systems have.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::{Entries, Entry};
use super::mo::Mo;
use super::{BytesRead, CorpusError, Reason};

/// Most catalogues that are looked at; a desktop has some hundreds.
const MAX_CATALOGUES: usize = 10_000;

/// Where catalogues are looked for: `$TEXTDOMAINDIR`, then where systems put them.
pub(super) fn roots() -> Vec<PathBuf> {
    let own = std::env::var_os("TEXTDOMAINDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let usual = ["/usr/share/locale", "/usr/share/locale-langpack", "/usr/local/share/locale"].map(PathBuf::from);
    own.into_iter().chain(usual).collect()
}

/// All catalogues of a language, one after the other in the order of their names. Where several roots have one of the same name the first
/// counts, as it does for programs. One that cannot be read is counted and passed over.
pub(super) struct Installed {
    /// Those not yet opened, with their sizes.
    catalogues: std::vec::IntoIter<(PathBuf, u64)>,
    current: Option<Mo>,
    /// Bytes of all, and of those opened before the current one.
    n_bytes: u64,
    n_before: u64,
    /// Bytes of the current one.
    n_current: u64,
}

impl Installed {
    pub(super) fn open(language: &str, roots: &[PathBuf]) -> Result<Self, CorpusError> {
        let folders = roots.iter().map(|root| root.join(language).join("LC_MESSAGES"));
        let mut catalogues: BTreeMap<OsString, PathBuf> = BTreeMap::new();
        for path in folders.clone().flat_map(|folder| mo_files(&folder)) {
            let name = path.file_name().unwrap_or_default().to_owned();
            catalogues.entry(name).or_insert(path);
        }
        if catalogues.is_empty() {
            let looked = folders.map(|folder| format!("`{}`", folder.join("*.mo").display())).collect::<Vec<_>>().join(", ");
            return Err(CorpusError::NoCatalogue { language: language.to_owned(), looked });
        }
        let size = |path: PathBuf| {
            let n_bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            (path, n_bytes)
        };
        let catalogues: Vec<(PathBuf, u64)> = catalogues.into_values().map(size).collect();
        let n_bytes = catalogues.iter().map(|(_, n_bytes)| n_bytes).sum();
        Ok(Self { catalogues: catalogues.into_iter(), current: None, n_bytes, n_before: 0, n_current: 0 })
    }
}

/// The catalogues in a folder; none where there is no such folder.
fn mo_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|ending| ending == "mo")).take(MAX_CATALOGUES).collect();
    paths.sort();
    paths
}

impl Entries for Installed {
    fn next_entry(&mut self) -> Result<Option<Entry>, CorpusError> {
        loop {
            if let Some(entry) = self.current.as_mut().map(Mo::next_entry).transpose()?.flatten() {
                return Ok(Some(entry));
            }
            self.n_before += std::mem::take(&mut self.n_current);
            let Some((path, n_bytes)) = self.catalogues.next() else { return Ok(None) };
            self.n_current = n_bytes;
            match Mo::open(&path) {
                Ok(catalogue) => self.current = Some(catalogue),
                Err(_) => {
                    self.current = None;
                    return Ok(Some(Entry { path: Arc::from(path), line: 0, texts: Err(Reason::BadCatalogue) }));
                }
            }
        }
    }

    fn bytes_read(&self) -> BytesRead {
        let current = self.current.as_ref().map_or(0, |catalogue| catalogue.bytes_read().done);
        BytesRead { done: self.n_before + current.min(self.n_current), total: self.n_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mo::tests::catalogue;
    use super::*;

    #[test]
    fn catalogues_come_by_name_and_the_first_root_counts() {
        let roots = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        let write = |root: usize, name: &str, bytes: &[u8]| {
            let folder = roots[root].path().join("fr/LC_MESSAGES");
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join(name), bytes).expect("written");
        };
        write(0, "b.mo", &catalogue(&[("b", "first")], false));
        write(1, "b.mo", &catalogue(&[("b", "second")], false));
        write(1, "a.mo", &catalogue(&[("a", "x"), ("a more", "y")], true));
        write(1, "c.mo", b"damaged");
        write(1, "d.po", b"not compiled");

        let roots: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
        let mut installed = Installed::open("fr", &roots).expect("there are three");
        let mut all = Vec::new();
        while let Some(entry) = installed.next_entry().expect("damaged ones are counted") {
            all.push((entry.line, entry.texts));
        }
        let pair = |line: u64, source: &str, target: &str| (line, Ok((source.to_owned(), target.to_owned())));
        assert_eq!(all, [pair(1, "a", "x"), pair(2, "a more", "y"), pair(1, "b", "first"), (0, Err(Reason::BadCatalogue))]);

        let error = Installed::open("de", &roots).err().expect("there is none").to_string();
        assert!(error.contains("no gettext catalogue of `de`") && error.contains("TEXTDOMAINDIR"), "{error}");
    }
}
