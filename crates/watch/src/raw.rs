//! Raw data on disk, catches and paths: they go before minutes do.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folder of catches within that of a target.
pub(crate) const CATCHES: &str = "catches";

/// Ending of the files of paths.
pub(crate) const PATHS: &str = ".paths.jsonl";

/// Bytes of each folder or file of a watch, by its time and place, the oldest first.
pub(crate) fn all(folder: &Path) -> BTreeMap<(String, PathBuf), u64> {
    let mut found = BTreeMap::new();
    for target in entries(folder) {
        for entry in entries(&target) {
            let Some(name) = name(&entry) else { continue };
            if name.ends_with(PATHS) {
                found.insert((name, entry.clone()), bytes(&entry));
            }
        }
        for catch in entries(&target.join(CATCHES)) {
            let Some(name) = name(&catch).filter(|name| !name.starts_with('.')) else { continue };
            let all = entries(&catch).map(|file| bytes(&file)).sum();
            found.insert((name, catch), all);
        }
    }
    found
}

/// Removes a folder or file.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Removes the oldest one. Returns whether there was one.
pub(crate) fn remove_oldest(folder: &Path) -> bool {
    all(folder).first_key_value().is_some_and(|((_, path), _)| remove(path).is_ok())
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn name(path: &Path) -> Option<String> {
    path.file_name().and_then(|name| name.to_str()).map(str::to_owned)
}

fn bytes(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |data| data.len())
}
