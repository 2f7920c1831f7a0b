//! A host in a tar file: the files that an audit needs, and nothing else.

use super::live::Host;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};
use tailtrim_host::paths::{
    self, AFTER, BEFORE, COUNTERS, FILES, KTHREADS, LINKS, NAMES, OBSERVED_MS,
};
use tailtrim_host::{Memory, Tree, Unread, limits};
use tailtrim_reading::source::decompressed;
use thiserror::Error;

/// In a capture: files that could not be read, a line each.
const UNREAD: &str = "/tailtrim/unread";
/// In a capture: the patterns that it was made of. A file that matches one of them and is not in the capture was
/// missing on the host.
const PATTERNS: &str = "/tailtrim/patterns";

/// A capture that cannot be written or read.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// Neither a folder nor a capture.
    #[error("{}: {source}; expected a folder with the files of a host, or a capture of one", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It holds no host.
    #[error("{}: not a capture of a host", path.display())]
    NoHost {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Write the files that an audit needs of a host into a tar file; with zstd where its name ends in `.zst`. Return the
/// number of files in it.
///
/// # Errors
///
/// The file cannot be written.
pub fn capture(tree: &dyn Tree, path: &Path) -> Result<usize, ArchiveError> {
    let wrong = |source| ArchiveError::Write { path: path.to_owned(), source };
    let file = BufWriter::new(File::create(path).map_err(wrong)?);
    let zstd = path.extension().is_some_and(|end| end == "zst");
    let write = || -> io::Result<usize> {
        if zstd {
            let mut encoder = zstd::Encoder::new(file, 0)?;
            let count = pack(tree, &mut encoder)?;
            encoder.finish()?.flush()?;
            Ok(count)
        } else {
            let mut file = file;
            let count = pack(tree, &mut file)?;
            file.flush()?;
            Ok(count)
        }
    };
    write().map_err(wrong)
}

fn pack(tree: &dyn Tree, out: &mut dyn Write) -> io::Result<usize> {
    let mut archive = tar::Builder::new(out);
    let mut unread = String::new();
    let mut count = 0;
    let mut add = |path: &str, content: &[u8]| -> io::Result<()> {
        let mut header = header(content.len() as u64);
        archive.append_data(&mut header, path.trim_start_matches('/'), content)?;
        count += 1;
        Ok(())
    };
    for (path, content) in contents(tree, &mut unread) {
        add(&path, &content)?;
    }
    let patterns: Vec<&str> = paths::patterns().collect();
    add(PATTERNS, (patterns.join("\n") + "\n").as_bytes())?;
    add(UNREAD, unread.as_bytes())?;
    for pattern in LINKS {
        for path in paths::expand(tree, pattern).0 {
            if let Ok(target) = tree.link(&path) {
                let mut header = header(0);
                header.set_entry_type(tar::EntryType::Symlink);
                archive.append_link(&mut header, path.trim_start_matches('/'), &target)?;
                count += 1;
            }
        }
    }
    archive.into_inner()?;
    Ok(count)
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header
}

/// All files that an audit may read, as far as they can be.
fn contents<'a>(tree: &'a dyn Tree, unread: &'a mut String) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut note = |why: &Unread| {
        let (kind, path, problem) = match why {
            Unread::Missing { .. } | Unread::NotCaptured { .. } => return,
            Unread::Denied { path } => ("denied", path, ""),
            Unread::Broken { path, problem } => ("broken", path, problem.as_str()),
        };
        *unread += &format!("{kind}\t{path}\t{}\n", problem.replace('\n', " "));
    };
    for (pattern, keep) in FILES {
        let (paths, failed) = paths::expand(tree, pattern);
        failed.iter().for_each(&mut note);
        for path in paths {
            match tree.read(&path) {
                Ok(content) => found.push((path, kept(content, keep))),
                Err(why) => note(&why),
            }
        }
    }
    for pattern in NAMES {
        let (paths, failed) = paths::expand(tree, pattern);
        failed.iter().for_each(&mut note);
        found.extend(paths.into_iter().map(|path| (path, Vec::new())));
    }
    let counters = COUNTERS.iter().flat_map(|pattern| paths::expand(tree, pattern).0);
    let counters: Vec<String> = counters.chain([KTHREADS.to_owned()]).collect();
    let observed = [BEFORE, AFTER]
        .iter()
        .flat_map(|place| counters.iter().map(move |path| format!("{place}{path}")));
    for path in observed.chain([OBSERVED_MS.to_owned()]) {
        match tree.read(&path) {
            Ok(content) => found.push((path, content)),
            Err(why) => note(&why),
        }
    }
    found
}

/// The lines that contain one of some texts; all where there are none.
fn kept(content: Vec<u8>, keep: &[&str]) -> Vec<u8> {
    if keep.is_empty() {
        return content;
    }
    let text = String::from_utf8_lossy(&content);
    let lines = text.lines().filter(|line| keep.iter().any(|wanted| line.contains(wanted)));
    lines.flat_map(|line| [line, "\n"]).collect::<String>().into_bytes()
}

/// The host of a folder or of a capture.
///
/// # Errors
///
/// There is no such folder or capture.
pub fn open(path: &Path) -> Result<Box<dyn Tree>, ArchiveError> {
    let wrong = |source| ArchiveError::Open { path: path.to_owned(), source };
    if path.is_dir() {
        let folder = Host::below(path);
        return match folder.text(PATTERNS) {
            Ok(patterns) => Ok(Box::new(Captured::new(Box::new(folder), &patterns))),
            Err(_) => Ok(Box::new(folder)),
        };
    }
    let file = File::open(path).map_err(wrong)?;
    if file.metadata().map_err(wrong)?.len() > limits::CAPTURE {
        return Err(wrong(too_much()));
    }
    let tree = decompressed(BufReader::new(file)).and_then(read_capture);
    tree.map_err(wrong)?.ok_or_else(|| ArchiveError::NoHost { path: path.to_owned() })
}

/// The host of a capture, decompressed; nothing if it is an archive of something else.
///
/// # Errors
///
/// The reader's error, or one of the archive.
pub fn read_capture(from: impl Read) -> io::Result<Option<Box<dyn Tree>>> {
    let memory = unpack(from)?;
    Ok(match memory.text(PATTERNS) {
        Ok(patterns) => Some(Box::new(Captured::new(Box::new(memory), &patterns))),
        Err(_) => None,
    })
}

/// Time and memory grow with the bytes of the archive, up to the limit of a plausible host.
fn unpack(from: impl Read) -> io::Result<Memory> {
    let refused = |why: String| Err(io::Error::other(why));
    let mut memory = Memory::new(false);
    let mut archive = tar::Archive::new(Limited { from, left: limits::CAPTURE });
    for (count, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        if count == limits::FILES {
            return refused(format!("more than {count} files, not a capture of a host"));
        }
        let Some(path) = place(&entry.path()?) else {
            let named = entry.path()?.display().to_string();
            return refused(format!("{named}: a path that goes up, not a capture of a host"));
        };
        if path.len() > limits::PATH || path.split('/').count() > limits::DEPTH {
            let start: String = path.chars().take(100).collect();
            return refused(format!(
                "{start}…: a path of {} bytes and {} names, expected at most {} and {}",
                path.len(),
                path.split('/').count(),
                limits::PATH,
                limits::DEPTH
            ));
        }
        if let Some(target) = entry.link_name()? {
            memory.insert_link(&path, &target.to_string_lossy());
        } else if entry.header().entry_type().is_file() {
            if entry.size() > limits::longest(&path) {
                let problem = limits::too_long(&path);
                memory.insert_unread(&path, Unread::Broken { path: path.clone(), problem });
                continue;
            }
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            memory.insert(&path, content);
        }
    }
    Ok(memory)
}

/// Path on the host of an archive's file: the packing program may have written `/a/b`, `./a/b` or `a//b`.
fn place(packed: &Path) -> Option<String> {
    let mut path = String::new();
    for part in packed.components() {
        match part {
            Component::Normal(name) => {
                path.push('/');
                path.push_str(&name.to_string_lossy());
            }
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// A reader that fails at a limit instead of ending there: an archive that is cut off does not describe a host.
struct Limited<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(too_much)?;
        Ok(count)
    }
}

fn too_much() -> io::Error {
    let most = limits::CAPTURE >> 20;
    io::Error::other(format!("more than {most} MiB, not a capture of a host"))
}

/// A capture: a file that is not in it was missing on the host, if the patterns include it.
struct Captured {
    files: Box<dyn Tree>,
    patterns: Vec<String>,
    unread: BTreeMap<String, Unread>,
}

impl Captured {
    fn new(files: Box<dyn Tree>, patterns: &str) -> Self {
        let text = files.text(UNREAD).unwrap_or_default();
        let unread = text.lines().filter_map(|line| {
            let mut parts = line.split('\t');
            let (kind, path) = (parts.next()?, parts.next()?.to_owned());
            let why = match kind {
                "denied" => Unread::Denied { path: path.clone() },
                _ => Unread::Broken {
                    path: path.clone(),
                    problem: parts.next().unwrap_or_default().to_owned(),
                },
            };
            Some((path, why))
        });
        let unread = unread.collect();
        Self { files, patterns: patterns.lines().map(str::to_owned).collect(), unread }
    }

    /// Reason why a file is not in the capture.
    fn why(&self, path: &str, found: Unread) -> Unread {
        if let Some(why) = self.unread.get(path) {
            return why.clone();
        }
        let path = path.to_owned();
        let looked_for = path.starts_with("/tailtrim/observation/")
            || self
                .patterns
                .iter()
                .any(|pattern| paths::matches(pattern, &path) || paths::leads_to(pattern, &path));
        match found {
            Unread::NotCaptured { .. } if looked_for => Unread::Missing { path },
            other => other,
        }
    }
}

impl Tree for Captured {
    fn read(&self, path: &str) -> Result<Vec<u8>, Unread> {
        self.files.read(path).map_err(|why| self.why(path, why))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        // A directory that was closed may have entries that were read by name.
        if let Some(why) = self.unread.get(path) {
            return Err(why.clone());
        }
        self.files.list(path).map_err(|why| self.why(path, why))
    }

    fn link(&self, path: &str) -> Result<String, Unread> {
        self.files.link(path).map_err(|why| self.why(path, why))
    }
}
