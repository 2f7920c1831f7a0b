//! The BPF programs in `crates/ports/bpf`, compiled by `build.rs`: loaded, set and attached.

mod bound;
mod requests;

pub use bound::load as load_bound;
pub use requests::Requests;

use aya::maps::{Map, MapData};
use aya::programs::{Program, ProgramError};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use std::error::Error;
use std::io;
use std::os::fd::AsFd;
use tailtrim_sys::numbers::SharedNumbers;

/// A compiled BPF file; empty where the build had no clang.
#[derive(Debug)]
pub struct Object(&'static [u8]);

/// The reflector.
pub const REFLECT: Object =
    Object(include_bytes_aligned!(concat!(env!("OUT_DIR"), "/reflect.bpf.o")));
/// Redirects frames to AF_XDP sockets.
pub const REDIRECT: Object =
    Object(include_bytes_aligned!(concat!(env!("OUT_DIR"), "/redirect.bpf.o")));
/// A program that lets all frames pass.
pub const NOTHING: Object =
    Object(include_bytes_aligned!(concat!(env!("OUT_DIR"), "/nothing.bpf.o")));

/// Creates the maps of a file, with the settings that the loader has got.
pub fn load(loader: &mut EbpfLoader<'_>, object: &Object) -> io::Result<Ebpf> {
    if object.0.is_empty() {
        let told = "this build has no BPF programs: clang was not installed (apt install clang, and build again)";
        return Err(io::Error::new(io::ErrorKind::Unsupported, told));
    }
    loader.load(object.0).map_err(said)
}

/// A program of the file by its name.
pub fn program<'a, T>(loaded: &'a mut Ebpf, name: &str) -> io::Result<&'a mut T>
where
    &'a mut T: TryFrom<&'a mut Program, Error = ProgramError>,
{
    loaded.program_mut(name).ok_or_else(|| missing(name))?.try_into().map_err(said)
}

/// A map of the file by its name.
pub fn map<'a>(loaded: &'a mut Ebpf, name: &str) -> io::Result<&'a mut Map> {
    loaded.map_mut(name).ok_or_else(|| missing(name))
}

/// The numbers in an array with one entry.
pub fn numbers(loaded: &mut Ebpf, name: &str, count: usize) -> io::Result<SharedNumbers> {
    let Map::Array(array) = map(loaded, name)? else { return Err(missing(name)) };
    let array: &MapData = array;
    SharedNumbers::of(array.fd().as_fd(), count)
}

fn missing(name: &str) -> io::Error {
    io::Error::other(format!("the compiled file lacks {name}"))
}

/// The kernel's error; for a program that the verifier rejects also the reason.
pub fn said(error: impl Error + 'static) -> io::Error {
    let mut next: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(cause) = next {
        if let Some(ProgramError::LoadError { io_error, verifier_log }) = cause.downcast_ref()
            && matches!(io_error.raw_os_error(), Some(libc::EINVAL | libc::EACCES))
        {
            // The verifier's error, not a lack of permission. The last lines of its log are statistics.
            let log = verifier_log.to_string();
            let counts = ["processed ", "verification time", "stack depth"];
            let why =
                log.lines().rev().find(|line| !counts.iter().any(|count| line.starts_with(count)));
            let why = why.unwrap_or_default();
            return io::Error::new(io_error.kind(), format!("{io_error}: {why}"));
        }
        if let Some(code) = cause.downcast_ref().and_then(io::Error::raw_os_error) {
            return io::Error::from_raw_os_error(code);
        }
        next = cause.source();
    }
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_clang_says_so() {
        let error = load(&mut EbpfLoader::new(), &Object(&[])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("clang was not installed"), "{error}");
    }
}
