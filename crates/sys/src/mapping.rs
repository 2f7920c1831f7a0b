//! Memory that the kernel and this process both read and write.

use rustix::mm::{self, MapFlags, MprotectFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Memory that lives as long as this value, such as a ring of a socket.
///
/// Parts of it change hands by words within it. Code that reads or writes a part must own it at that time.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and is not tied to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    const BOTH: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// New memory, zeroed, whole pages.
    pub(super) fn anonymous(bytes: usize) -> io::Result<Self> {
        // Touched now: a page fault in mid-run is a late packet.
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a new mapping; no address is asked for, so nothing that is in use is replaced.
        let start = unsafe { mm::mmap_anonymous(null_mut(), bytes, Self::BOTH, flags) }?;
        Self::new(start, bytes)
    }

    /// Maps the memory that the kernel offers for a socket or another file at this offset.
    pub(super) fn of_file(file: BorrowedFd<'_>, bytes: usize, offset: u64) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above.
        let start = unsafe { mm::mmap(null_mut(), bytes, Self::BOTH, flags, file, offset) }?;
        Self::new(start, bytes)
    }

    fn new(start: *mut c_void, bytes: usize) -> io::Result<Self> {
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Changes the access rights of this process.
    ///
    /// # Safety
    /// Nobody does what is not allowed any more: no slice of it lives where reading is forbidden, and no word of it is
    /// written to where writing is.
    pub(super) unsafe fn allow(&self, protection: MprotectFlags) -> io::Result<()> {
        // SAFETY: the mapping was made with this length; the rest is the caller's.
        unsafe { mm::mprotect(self.start.as_ptr().cast(), self.bytes, protection) }?;
        Ok(())
    }

    /// Its number of bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Address of `length` bytes at a place.
    ///
    /// # Panics
    /// They do not lie within the mapping.
    #[inline]
    pub(super) fn at(&self, place: usize, length: usize) -> NonNull<u8> {
        let fits = place.checked_add(length).is_some_and(|end| end <= self.bytes);
        assert!(fits, "beyond the memory shared with the kernel");
        // SAFETY: within the mapping, as just checked.
        unsafe { self.start.add(place) }
    }

    /// Address of a structure at a place.
    #[inline]
    fn structure<T>(&self, place: usize) -> *mut T {
        assert!(place.is_multiple_of(align_of::<T>()), "not aligned");
        self.at(place, size_of::<T>()).as_ptr().cast()
    }

    /// The word at a place, by which a part changes hands.
    ///
    /// # Panics
    /// It does not lie within the mapping, or is not aligned.
    #[inline]
    pub(super) fn word(&self, place: usize) -> &AtomicU32 {
        // SAFETY: it lies within the mapping, which lives as long as `self`, and is aligned; the kernel
        // changes such words only atomically.
        unsafe { AtomicU32::from_ptr(self.structure(place)) }
    }

    /// The 64-bit number at a place, which both sides change only atomically.
    ///
    /// # Panics
    /// As [`word`](Self::word).
    #[inline]
    pub(super) fn double_word(&self, place: usize) -> &AtomicU64 {
        // SAFETY: it lies within the mapping, which lives as long as `self`, and is aligned; programs add to
        // such numbers only atomically.
        unsafe { AtomicU64::from_ptr(self.structure(place)) }
    }

    /// Copies a structure out.
    ///
    /// # Safety
    /// The part belongs to this process, and any bits are a valid `T`.
    ///
    /// # Panics
    /// As [`word`](Self::word).
    #[inline]
    pub(super) unsafe fn read<T: Copy>(&self, place: usize) -> T {
        // SAFETY: it lies within the mapping and is aligned; the rest is the caller's.
        unsafe { self.structure::<T>(place).read() }
    }

    /// Writes a structure.
    ///
    /// # Safety
    /// The part belongs to this process, and no slice of it lives.
    ///
    /// # Panics
    /// As [`word`](Self::word).
    #[inline]
    pub(super) unsafe fn write<T: Copy>(&self, place: usize, value: T) {
        // SAFETY: as above.
        unsafe { self.structure::<T>(place).write(value) }
    }

    /// The bytes of a part.
    ///
    /// # Safety
    /// The part belongs to this process, and stays so while the slice lives.
    ///
    /// # Panics
    /// It does not lie within the mapping.
    #[inline]
    pub(super) unsafe fn slice(&self, place: usize, length: usize) -> &[u8] {
        // SAFETY: it lies within the mapping; the rest is the caller's.
        unsafe { std::slice::from_raw_parts(self.at(place, length).as_ptr(), length) }
    }

    /// Copies bytes in.
    ///
    /// # Safety
    /// The part belongs to this process, and no slice of it lives.
    ///
    /// # Panics
    /// As [`slice`](Self::slice).
    #[inline]
    pub(super) unsafe fn fill(&self, place: usize, bytes: &[u8]) {
        // SAFETY: as above; what is copied lies elsewhere, as no slice of this part lives.
        unsafe {
            let place = self.at(place, bytes.len()).as_ptr();
            place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and slices of it borrow `self`.
        // It can only fail where the arguments are wrong.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
