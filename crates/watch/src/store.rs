//! Minutes on disk: a folder for each target, a file for each day (UTC), a zstd frame with one line of JSON for each
//! minute.
//!
//! Frames of zstd behind each other are one file of zstd, so `zstdcat`, DuckDB and others read all minutes of a day as
//! JSON lines. A frame that a crash has left incomplete is cut off before the next one is written.

use crate::frames::cut_incomplete;
use crate::keeping::Keep;
use crate::raw;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tailtrim_sys::{clock, files};

/// Level of compression: the default of zstd. Higher ones save a tenth and take several times as long.
const LEVEL: i32 = 3;

/// Up to so many files are synced one by one: others may write much to the same file system.
const ONE_BY_ONE: usize = 16;

/// Ending of a file of minutes.
pub(crate) const ENDING: &str = ".jsonl.zst";

/// Why minutes cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process writes into the folder.
    #[error("{folder}: another watch writes into this folder, or one that has just ended")]
    Used {
        /// The folder.
        folder: PathBuf,
    },
    /// A file.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl StoreError {
    /// Whether the disk, or a quota, is full.
    pub(crate) fn is_full(&self) -> bool {
        let Self::File { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> StoreError + '_ {
    |source| StoreError::File { path: path.to_owned(), source }
}

/// The folder of a watch.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Files whose end was looked at by this process.
    whole: BTreeSet<PathBuf>,
    /// Files with frames that may not be on disk yet.
    unsynced: BTreeMap<PathBuf, File>,
    /// Held as long as this process writes.
    lock: File,
}

impl Store {
    /// Opens a folder, and makes it first if it is missing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let path = folder.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(at(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(StoreError::Used { folder: folder.to_owned() });
            }
            Err(fs::TryLockError::Error(source)) => return Err(at(&path)(source)),
        }
        Ok(Self {
            folder: folder.to_owned(),
            whole: BTreeSet::new(),
            unsynced: BTreeMap::new(),
            lock,
        })
    }

    /// Adds the line of a minute to the file of its day. It is on disk after [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`StoreError::File`]; the file is then as it was before.
    pub fn append(&mut self, target: &str, begin_ns: i64, line: &[u8]) -> Result<(), StoreError> {
        let folder = self.folder.join(target);
        let path = folder.join(clock::date(begin_ns) + ENDING);
        if !self.whole.contains(&path) {
            fs::create_dir_all(&folder).map_err(at(&folder))?;
            cut_incomplete(&path).map_err(at(&path))?;
        }
        let frame = zstd::bulk::Compressor::new(LEVEL)
            .and_then(|mut compressor| {
                compressor.include_checksum(true)?;
                compressor.compress(line)
            })
            .map_err(at(&path))?;
        self.add(path.clone(), &frame)?;
        self.whole.insert(path);
        Ok(())
    }

    /// Adds bytes to a file, whole or not at all.
    fn add(&mut self, path: PathBuf, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(at(&path))?;
        let before = file.metadata().map_err(at(&path))?.len();
        if let Err(error) = file.write_all(bytes) {
            // A disk that is full takes a part of it.
            file.set_len(before).map_err(at(&path))?;
            return Err(at(&path)(error));
        }
        self.unsynced.insert(path, file);
        Ok(())
    }

    /// Waits until all is on disk. Files that have an error are tried again with the next call.
    ///
    /// # Errors
    /// [`StoreError::File`] of the first file that has one.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        // A call for each of 1,000 files took 3 s, one for the file system 50 ms (ext4).
        if self.unsynced.len() > ONE_BY_ONE {
            files::sync_all_of(&self.lock).map_err(at(&self.folder))?;
            self.unsynced.clear();
        }
        let mut first = None;
        self.unsynced.retain(|path, file| {
            let error = file.sync_data().map_err(at(path)).err();
            let is_unsynced = error.is_some();
            first = first.take().or(error);
            is_unsynced
        });
        first.map_or(Ok(()), Err)
    }

    /// Replaces a file of the folder, whole or not at all. After a crash of the host it may be the former one.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn replace(&self, name: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(at(parent))?;
        }
        let draft = path.with_extension("draft");
        fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, &path)).map_err(at(&path))
    }

    /// Adds a line to a file of the folder. It is on disk after [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`StoreError::File`]; the file is then as it was before.
    pub fn note(&mut self, name: &str, line: &[u8]) -> Result<(), StoreError> {
        self.add(self.folder.join(name), line)
    }

    /// Removes catches, paths and then days that are beyond the limits, the oldest first; the day of `now_ns` stays. Returns
    /// how many were removed.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn retain(&mut self, keep: Keep, now_ns: i64) -> Result<usize, StoreError> {
        let days = self.days()?;
        let today = clock::date(now_ns);
        let oldest = keep.time_ns.map(|time_ns| clock::date(now_ns - time_ns));
        let mut bytes: u64 = days.values().flatten().map(|(_, bytes)| bytes).sum();
        let mut removed = 0;
        let raw = raw::all(&self.folder);
        bytes += raw.values().sum::<u64>();
        for ((name, path), size) in raw {
            let is_old = oldest.as_ref().is_some_and(|oldest| name < *oldest);
            if is_old || keep.bytes.is_some_and(|most| bytes > most) {
                raw::remove(&path).map_err(at(&path))?;
                (bytes, removed) = (bytes - size, removed + 1);
            }
        }
        for (day, files) in days {
            let is_old = oldest.as_ref().is_some_and(|oldest| day < *oldest);
            let is_much = keep.bytes.is_some_and(|most| bytes > most);
            if day >= today || !(is_old || is_much) {
                break;
            }
            removed += files.len();
            bytes -= self.remove(files)?;
        }
        Ok(removed)
    }

    /// Removes the oldest catch, or where there is none, the oldest day before that of `now_ns`. Returns how many files or
    /// catches were removed.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn remove_oldest(&mut self, now_ns: i64) -> Result<usize, StoreError> {
        if raw::remove_oldest(&self.folder) {
            return Ok(1);
        }
        let today = clock::date(now_ns);
        match self.days()?.pop_first().filter(|(day, _)| *day < today) {
            Some((_, files)) => {
                let count = files.len();
                self.remove(files)?;
                Ok(count)
            }
            None => Ok(0),
        }
    }

    fn remove(&mut self, files: Vec<(PathBuf, u64)>) -> Result<u64, StoreError> {
        let mut bytes = 0;
        for (path, size) in files {
            fs::remove_file(&path).map_err(at(&path))?;
            self.whole.remove(&path);
            bytes += size;
        }
        Ok(bytes)
    }

    /// The files of all targets with their sizes, by day.
    fn days(&self) -> Result<BTreeMap<String, Vec<(PathBuf, u64)>>, StoreError> {
        let mut days: BTreeMap<String, Vec<(PathBuf, u64)>> = BTreeMap::new();
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let folder = entry.map_err(at(&self.folder))?.path();
            if !folder.is_dir() {
                continue;
            }
            for file in fs::read_dir(&folder).map_err(at(&folder))? {
                let file = file.map_err(at(&folder))?;
                let name = file.file_name();
                let day = name.to_str().and_then(|name| name.strip_suffix(ENDING));
                if let Some(day) = day {
                    let bytes = file.metadata().map_err(at(&folder))?.len();
                    days.entry(day.to_owned()).or_default().push((file.path(), bytes));
                }
            }
        }
        Ok(days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::END_BYTES;

    const DAY_NS: i64 = 86_400_000_000_000;

    fn text(folder: &Path, target: &str, day: &str) -> String {
        let path = folder.join(target).join(day.to_owned() + ENDING);
        String::from_utf8(zstd::stream::decode_all(File::open(path).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn minutes_of_a_day_are_lines_of_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        store.append("a", 0, b"1\n").unwrap();
        store.append("a", DAY_NS - 1, b"2\n").unwrap();
        store.append("a", DAY_NS, b"3\n").unwrap();
        store.append("b:862", 0, b"4\n").unwrap();
        store.sync().unwrap();
        assert_eq!(text(folder.path(), "a", "1970-01-01"), "1\n2\n");
        assert_eq!(text(folder.path(), "a", "1970-01-02"), "3\n");
        assert_eq!(text(folder.path(), "b:862", "1970-01-01"), "4\n");
    }

    #[test]
    fn a_frame_that_a_crash_cut_is_removed_and_the_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("1970-01-01".to_owned() + ENDING);
        let mut store = Store::open(folder.path()).unwrap();
        store.append("a", 0, b"1\n").unwrap();
        let whole = fs::read(&path).unwrap();
        store.append("a", 0, b"2\n").unwrap();
        let both = fs::read(&path).unwrap();
        drop(store);
        // The end is missing, or its blocks were never written.
        for cut in whole.len() + 1..both.len() {
            for end in [&both[..cut], &[&both[..cut], &vec![0; both.len() - cut]].concat()] {
                if end == both {
                    continue;
                }
                fs::write(&path, end).unwrap();
                let mut store = Store::open(folder.path()).unwrap();
                store.append("a", 0, b"3\n").unwrap();
                assert_eq!(text(folder.path(), "a", "1970-01-01"), "1\n3\n", "{cut}");
            }
        }
    }

    #[test]
    fn of_a_long_day_the_end_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("1970-01-01".to_owned() + ENDING);
        // Lines that cannot be compressed: the end has some frames, or begins in the only one.
        for (lines, bytes) in [(100, 3_000), (1, 200_000)] {
            let mut random = 1_u64;
            let mut store = Store::open(folder.path()).unwrap();
            let mut written = Vec::new();
            for _ in 0..lines {
                let line = std::iter::repeat_with(|| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    b' ' + (random >> 58) as u8
                });
                let line: Vec<u8> = line.take(bytes).chain([b'\n']).collect();
                store.append("a", 0, &line).unwrap();
                written.extend(line);
            }
            drop(store);
            assert!(fs::metadata(&path).unwrap().len() > 2 * END_BYTES);
            let mut cut = fs::read(&path).unwrap();
            cut.extend_from_within(..1_000);
            fs::write(&path, cut).unwrap();
            Store::open(folder.path()).unwrap().append("a", 0, b"3\n").unwrap();
            written.extend(b"3\n");
            assert!(text(folder.path(), "a", "1970-01-01").as_bytes() == written);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_file_that_cannot_be_synced_is_told_each_time_and_the_others_are_synced() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        // It has nothing that could be synced.
        let path = PathBuf::from("/dev/null");
        store.unsynced.insert(path.clone(), File::open(&path).unwrap());
        store.note("events.jsonl", b"1\n").unwrap();
        for _ in 0..2 {
            assert!(store.sync().unwrap_err().to_string().starts_with("/dev/null: "));
            assert!(store.unsynced.keys().eq([&path]));
        }
    }

    #[test]
    fn a_folder_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let first = Store::open(folder.path()).unwrap();
        assert!(matches!(Store::open(folder.path()), Err(StoreError::Used { .. })));
        drop(first);
        assert!(Store::open(folder.path()).is_ok());
    }

    #[test]
    fn the_oldest_days_go_first_and_today_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        for day in 0..5 {
            store.append("a", day * DAY_NS, b"1\n").unwrap();
            store.append("b", day * DAY_NS, b"1\n").unwrap();
        }
        let now_ns = 4 * DAY_NS + 1;
        let none = Keep { time_ns: None, bytes: None };
        assert_eq!(store.retain(none, now_ns).unwrap(), 0);
        let two_days = Keep { time_ns: Some(2 * DAY_NS), ..none };
        assert_eq!(store.retain(two_days, now_ns).unwrap(), 4);
        let few = Keep { bytes: Some(1), ..none };
        assert_eq!(store.retain(few, now_ns).unwrap(), 4);
        assert_eq!(text(folder.path(), "a", "1970-01-05"), "1\n");
        assert_eq!(store.remove_oldest(now_ns).unwrap(), 0);
    }

    #[test]
    fn catches_go_before_days() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        for day in 0..3 {
            store.append("a", day * DAY_NS, b"1\n").unwrap();
            let catch = format!("{}T08-00-00.123/worst.json", clock::date(day * DAY_NS));
            store.replace(&Path::new("a/catches").join(catch), &[b'1'; 1_000]).unwrap();
        }
        let paths = Path::new("a/1970-01-02.paths.jsonl");
        store.replace(paths, &[b'1'; 1_000]).unwrap();
        let now_ns = 2 * DAY_NS + 1;
        let left = || raw::all(folder.path()).into_keys().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(store.remove_oldest(now_ns).unwrap(), 1);
        let first = "1970-01-02.paths.jsonl";
        assert_eq!(left(), [first, "1970-01-02T08-00-00.123", "1970-01-03T08-00-00.123"]);
        let much = Keep { time_ns: None, bytes: Some(2_500) };
        assert_eq!(store.retain(much, now_ns).unwrap(), 1);
        let today = Keep { time_ns: Some(1), bytes: None };
        assert_eq!(store.retain(today, now_ns).unwrap(), 3);
        assert_eq!(left(), ["1970-01-03T08-00-00.123"]);
        assert_eq!(text(folder.path(), "a", "1970-01-03"), "1\n");
    }
}
