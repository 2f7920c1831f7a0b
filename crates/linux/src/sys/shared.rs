//! Memory that the kernel and this process both read and write.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// A mapping of memory that belongs to a file descriptor, such as a ring of a socket.
///
/// Parts of it change hands by words within it. Who reads or writes a part must own it at that time.
#[derive(Debug)]
pub(super) struct Shared {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and is not tied to a thread.
unsafe impl Send for Shared {}

impl Shared {
    /// Maps so many bytes from an offset of the descriptor, all of them in memory at once.
    pub(super) fn map(file: RawFd, bytes: usize, offset: libc::off_t) -> io::Result<Self> {
        // SAFETY: a new mapping; no address is asked for.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file,
                offset,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { start, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[inline]
    fn at<T>(&self, at: usize, count: usize) -> *mut T {
        assert!(at.is_multiple_of(align_of::<T>()));
        assert!(at <= self.bytes && count <= (self.bytes - at) / size_of::<T>());
        // SAFETY: it lies within the mapping.
        unsafe { self.start.as_ptr().add(at).cast() }
    }

    /// The word at a place, by which a part changes hands.
    ///
    /// # Panics
    /// It does not lie within the mapping, or is not aligned.
    #[inline]
    pub(super) fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: it lies within the mapping, which lives as long as `self`, and is aligned; the kernel
        // changes such words only atomically.
        unsafe { AtomicU32::from_ptr(self.at(at, 1)) }
    }

    /// Copies a structure out.
    ///
    /// # Safety
    /// The part belongs to this process, and any bits are a valid `T`.
    ///
    /// # Panics
    /// As [`word`](Self::word).
    #[inline]
    pub(super) unsafe fn read<T: Copy>(&self, at: usize) -> T {
        // SAFETY: it lies within the mapping and is aligned; the rest is the caller's.
        unsafe { self.at::<T>(at, 1).read() }
    }

    /// Writes a structure.
    ///
    /// # Safety
    /// The part belongs to this process, and no slice of it lives.
    ///
    /// # Panics
    /// As [`word`](Self::word).
    #[inline]
    pub(super) unsafe fn write<T: Copy>(&self, at: usize, value: T) {
        // SAFETY: as above.
        unsafe { self.at::<T>(at, 1).write(value) }
    }

    /// The bytes of a part.
    ///
    /// # Safety
    /// The part belongs to this process, and stays so while the slice lives.
    ///
    /// # Panics
    /// It does not lie within the mapping.
    #[inline]
    pub(super) unsafe fn bytes(&self, at: usize, length: usize) -> &[u8] {
        // SAFETY: it lies within the mapping; the rest is the caller's.
        unsafe { std::slice::from_raw_parts(self.at::<u8>(at, length), length) }
    }

    /// Copies bytes in.
    ///
    /// # Safety
    /// The part belongs to this process, and no slice of it lives.
    ///
    /// # Panics
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub(super) unsafe fn fill(&self, at: usize, bytes: &[u8]) {
        // SAFETY: as above; what is copied lies elsewhere, as no slice of this part lives.
        unsafe {
            self.at::<u8>(at, bytes.len()).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and slices of it borrow `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
