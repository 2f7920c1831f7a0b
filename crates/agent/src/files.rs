//! Files that verbs write. A capture is not replaced by another result: options are easily mixed up, and what passed
//! cannot be captured again.

use crate::exit::{Exit, Failure, OrFail};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// First bytes of pcap (microseconds, nanoseconds, Kuznetzov's), pcapng and gzip.
const KEPT: [&[u8]; 8] = [
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\xcd\x34",
    b"\x34\xcd\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
    b"\x1f\x8b",
];
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// As many bytes as tell a tar file.
const BEGIN: usize = 512;

/// Refuses to replace captures, and what is compressed, by files that are written when the work is done.
pub(crate) fn check<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    paths.into_iter().try_for_each(|path| refuse_capture(path, |_| false))
}

/// Makes a file for a result.
pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    refuse_capture(path, |_| false)?;
    File::create(path).or_unwritable(path, Exit::Usage)
}

/// Refuses to replace a capture, or what is compressed, unless its content begins as that of the verb itself.
pub(crate) fn refuse_capture(path: &Path, is_own: impl Fn(&[u8]) -> bool) -> Result<(), Failure> {
    let is_kept = match path.is_file().then(|| begin(File::open(path)?)).transpose() {
        Ok(None) => false,
        Ok(Some(bytes)) if bytes.starts_with(ZSTD) => {
            let inside = File::open(path).and_then(|file| begin(zstd::Decoder::new(file)?));
            !inside.is_ok_and(|bytes| is_own(&bytes))
        }
        Ok(Some(bytes)) => KEPT.iter().any(|magic| bytes.starts_with(magic)),
        // A file that cannot be read may be writable all the same.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => false,
        Err(error) => return Err(error).or_unwritable(path, Exit::Usage),
    };
    if is_kept {
        let told = "is a capture, or compressed, so it is not replaced: name another";
        return Err(Failure::usage(format!("{}: {told}", path.display())));
    }
    Ok(())
}

/// Whether a file is a tar file, by its first bytes.
pub(crate) fn is_tar(begin: &[u8]) -> bool {
    begin.get(257..262) == Some(b"ustar")
}

fn begin(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BEGIN);
    source.take(BEGIN as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
