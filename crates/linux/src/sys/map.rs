//! Files mapped into memory, to be read once from front to back.

use memmap2::{Advice, Mmap};
use std::fs::File;
use std::io;

/// Maps the whole of `file` for sequential reading.
///
/// When another process truncates the file meanwhile, reading the lost part raises SIGBUS and ends this
/// process: a capture that is still being written must be read through a pipe.
///
/// # Errors
/// What the kernel reports, for example `ENODEV` for files that cannot be mapped.
pub(crate) fn sequential(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is private and read-only, and nothing in this process writes to the file. A
    // write by another process changes bytes under a `&[u8]`; every value is copied out before it is
    // used and every length is checked against the mapping, so no memory outside it can be reached.
    let map = unsafe { Mmap::map(file)? };
    // Advice only: a kernel without it reads ahead less.
    let _ = map.advise(Advice::Sequential);
    Ok(map)
}
