//! Files: opened with their size, read within limits, written whole or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::RecordingError;

/// How the names of temporary files begin.
const TEMPORARY: &str = ".crosslens-";

/// Turns the system's complaint about a path into ours.
pub(crate) fn io(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> RecordingError {
    move |source| RecordingError::Io { action, path: path.to_owned(), source }
}

/// Opens an ordinary file; also returns how long it is. Pipes and devices are refused before they can block.
pub(crate) fn open(path: &Path) -> Result<(File, u64), RecordingError> {
    let metadata = std::fs::metadata(path).map_err(io("read", path))?;
    if !metadata.is_file() {
        return Err(RecordingError::NotARecording { path: path.to_owned(), what: "it is not a file" });
    }
    let file = File::open(path).map_err(io("read", path))?;
    let bytes = file.metadata().map_err(io("read", path))?.len();
    Ok((file, bytes))
}

/// Reads a whole file of at most so many bytes.
pub(crate) fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, RecordingError> {
    let (file, length) = open(path)?;
    let too_large = |bytes| RecordingError::TooLarge { path: path.to_owned(), what: "text".into(), bytes, most };
    if length > most {
        return Err(too_large(length));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(io("read", path))?;
    if bytes.len() as u64 > most { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

/// Lets `write` fill a temporary file beside `path`, syncs it and renames it over `path`: nobody ever sees half of it.
pub fn replace_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
    StagedFile::write(path, write)?.persist()
}

/// A file that lies on the disk, whole and synced, under a temporary name: several can be written before the first takes its place, so that a
/// full disk leaves all of those they replace. It is gone if it is dropped.
#[derive(Debug)]
pub struct StagedFile {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl StagedFile {
    /// Lets `write` fill a temporary file beside `path`.
    pub fn write(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<Self> {
        let folder = folder_of(path);
        // Asked first, since the complaint about a temporary file would name that.
        std::fs::metadata(folder)?;
        let mut file = new_file_in(folder)?;
        let mut buffer = BufWriter::new(file.as_file_mut());
        write(&mut buffer)?;
        buffer.flush()?;
        drop(buffer);
        file.as_file().sync_all()?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes its place.
    pub fn persist(self) -> std::io::Result<()> {
        self.file.persist(&self.path).map_err(|error| error.error)?;
        sync_folder_of(&self.path);
        Ok(())
    }

    /// Takes its place where no file is: of two that do so at the same moment, one fails.
    pub fn persist_new(self) -> std::io::Result<()> {
        self.file.persist_noclobber(&self.path).map_err(|error| error.error)?;
        sync_folder_of(&self.path);
        Ok(())
    }
}

/// A rename is on disk once the folder is; where folders cannot be opened, the system does without.
fn sync_folder_of(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
        folder.sync_all().ok();
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// [`replace_file`], with the path in its error.
pub(crate) fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), RecordingError> {
    replace_file(path, write).map_err(io("write", path))
}

/// Makes a folder with a temporary name, which stays until it is removed. Its path begins with that of `folder`, be it a relative one.
pub(crate) fn new_folder_in(folder: &Path) -> std::io::Result<PathBuf> {
    let made = tempfile::Builder::new().prefix(TEMPORARY).tempdir_in(folder)?.keep();
    Ok(folder.join(made.file_name().unwrap_or_default()))
}

/// Whether a file is one that a writer killed in [`replace_file`] left.
pub fn is_temporary_file(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(TEMPORARY)
}

/// A temporary file with the rights an ordinary new file would have.
fn new_file_in(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}
