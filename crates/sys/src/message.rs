//! Messages of sockets in batches, in and out, with control messages: recvmmsg(2), sendmmsg(2).
//!
//! Batches go to the kernel by system call number: musl's functions send and receive single messages instead.

use super::socket::ADDRESS_LEN;
use rustix::net::{RecvFlags, recv};
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most messages in one call.
pub const MOST: usize = 64;

/// Room for the control messages of a message.
const CONTROL_LEN: usize = 512;

/// `struct user_msghdr` of the kernel.
#[repr(C)]
struct Header {
    name: *mut c_void,
    name_len: i32,
    parts: *mut libc::iovec,
    part_count: usize,
    control: *mut c_void,
    control_len: usize,
    flags: u32,
}

/// `struct mmsghdr` of the kernel.
#[repr(C)]
struct Message {
    header: Header,
    length: u32,
}

/// A message to send.
#[derive(Debug, Clone, Copy)]
pub struct Parcel<'a> {
    /// Its payload.
    pub bytes: &'a [u8],
    /// `struct sockaddr_in` or `sockaddr_in6`.
    pub address: &'a [u8],
    /// Control messages, one behind the other.
    pub control: &'a [u8],
}

/// Room for the messages of one call.
#[derive(Debug)]
pub struct Slots {
    bytes: Vec<u8>,
    each: usize,
    addresses: Vec<[u8; ADDRESS_LEN]>,
    controls: Vec<[u8; CONTROL_LEN]>,
    filled: Vec<Filled>,
    /// Number of messages that the next call asks for. A polling loop mostly finds nothing, and then one message:
    /// preparing all slots each time takes longer than the call.
    asked: usize,
    /// The last call received all that it asked for.
    full: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Filled {
    bytes: usize,
    address: usize,
    control: usize,
    flags: u32,
}

/// A message that was received.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    /// Its payload.
    pub bytes: &'a [u8],
    /// Sender: `struct sockaddr_in` or `sockaddr_in6`.
    pub address: &'a [u8],
    /// Control messages, one behind the other.
    pub control: &'a [u8],
    /// `msg_flags`, such as `MSG_TRUNC`.
    pub flags: u32,
}

impl Slots {
    /// Room for `count` messages (at most [`MOST`]) of so many bytes each.
    pub fn new(count: usize, each: usize) -> Self {
        let count = count.clamp(1, MOST);
        Self {
            bytes: vec![0; count * each],
            each,
            addresses: vec![[0; ADDRESS_LEN]; count],
            controls: vec![[0; CONTROL_LEN]; count],
            filled: Vec::with_capacity(count),
            asked: count,
            full: false,
        }
    }

    /// Whether the last call received as many messages as it asked for: there may be more.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Number of messages that the last call received.
    pub fn filled(&self) -> usize {
        self.filled.len()
    }

    /// One of them.
    pub fn get(&self, at: usize) -> Option<Arrived<'_>> {
        let filled = self.filled.get(at)?;
        let start = at * self.each;
        Some(Arrived {
            bytes: &self.bytes[start..start + filled.bytes.min(self.each)],
            address: &self.addresses[at][..filled.address.min(ADDRESS_LEN)],
            control: &self.controls[at][..filled.control.min(CONTROL_LEN)],
            flags: filled.flags,
        })
    }
}

/// Sends messages, at most [`MOST`]. Returns the number that the kernel took; an error only where it took none.
pub fn send(file: BorrowedFd<'_>, parcels: &[Parcel<'_>]) -> io::Result<usize> {
    if let [Parcel { bytes, address, control: [] }] = parcels {
        return send_plain(file, bytes, address);
    }
    let count = parcels.len().min(MOST);
    let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; MOST];
    let mut messages = [const { MaybeUninit::<Message>::uninit() }; MOST];
    for ((parcel, part), message) in parcels.iter().zip(&mut parts).zip(&mut messages) {
        // The kernel only reads the bytes that are to be sent.
        part.write(libc::iovec {
            iov_base: parcel.bytes.as_ptr().cast_mut().cast(),
            iov_len: parcel.bytes.len(),
        });
        message.write(Message {
            header: Header {
                name: if parcel.address.is_empty() {
                    std::ptr::null_mut()
                } else {
                    parcel.address.as_ptr().cast_mut().cast()
                },
                name_len: parcel.address.len() as i32,
                parts: part.as_mut_ptr(),
                part_count: 1,
                control: if parcel.control.is_empty() {
                    std::ptr::null_mut()
                } else {
                    parcel.control.as_ptr().cast_mut().cast()
                },
                control_len: parcel.control.len(),
                flags: 0,
            },
            length: 0,
        });
    }
    // SAFETY: the first `count` messages are written; all that they point to is borrowed by the parcels or
    // lies in `parts`, and outlives the call.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendmmsg,
            file.as_raw_fd(),
            messages.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Sends one message without control messages, for which the kernel has no structure to copy: 0.2 µs less.
fn send_plain(file: BorrowedFd<'_>, bytes: &[u8], address: &[u8]) -> io::Result<usize> {
    let to = if address.is_empty() { std::ptr::null() } else { address.as_ptr() };
    // SAFETY: both are valid for reading and of the lengths given.
    let sent = unsafe {
        libc::sendto(
            file.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_DONTWAIT,
            to.cast(),
            address.len() as libc::socklen_t,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(1) }
}

/// Receives messages that are there, with `flags` such as `MSG_ERRQUEUE`. Returns their number; 0 where there is none.
pub fn receive(file: BorrowedFd<'_>, slots: &mut Slots, flags: libc::c_int) -> io::Result<usize> {
    slots.filled.clear();
    let count = slots.asked;
    let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; MOST];
    let mut messages = [const { MaybeUninit::<Message>::uninit() }; MOST];
    let room = slots
        .bytes
        .chunks_exact_mut(slots.each)
        .take(count)
        .zip(&mut slots.addresses)
        .zip(&mut slots.controls)
        .zip(&mut parts)
        .zip(&mut messages);
    for ((((bytes, address), control), part), message) in room {
        part.write(libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() });
        message.write(Message {
            header: Header {
                name: address.as_mut_ptr().cast(),
                name_len: ADDRESS_LEN as i32,
                parts: part.as_mut_ptr(),
                part_count: 1,
                control: control.as_mut_ptr().cast(),
                control_len: CONTROL_LEN,
                flags: 0,
            },
            length: 0,
        });
    }
    // SAFETY: the first `count` messages are written and point to buffers of the lengths given, each its own,
    // which are borrowed mutably until the call is over.
    let received = unsafe { fetch(file, &mut messages[..count], flags | libc::MSG_DONTWAIT) };
    // Twice as many after a full call, for the rest of a burst; otherwise one more than came, so that a call that receives
    // as many again tells that these were all.
    let taken = received.max(0) as usize;
    slots.full = taken == count;
    slots.asked = match taken {
        0 => 1,
        _ if slots.full => (2 * count).min(slots.addresses.len()),
        _ => taken + 1,
    };
    if received < 0 {
        return none_or(io::Error::last_os_error());
    }
    for message in &messages[..received as usize] {
        // SAFETY: all messages that were handed over are written, and the kernel received no more than those.
        let message = unsafe { message.assume_init_ref() };
        slots.filled.push(Filled {
            bytes: message.length as usize,
            address: message.header.name_len.max(0) as usize,
            control: message.header.control_len,
            flags: message.header.flags,
        });
    }
    Ok(received as usize)
}

/// Receives one message without control messages, for which the kernel has no structure to copy. Returns 1, or 0 where
/// there is none.
pub fn receive_plain(file: BorrowedFd<'_>, slots: &mut Slots) -> io::Result<usize> {
    slots.filled.clear();
    slots.full = false;
    let room = &mut slots.bytes[..slots.each];
    // The length is the message's own, however much of it there is room for.
    let length = match recv(file, room, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
        Ok((_, length)) => length,
        Err(error) => return none_or(error.into()),
    };
    let (bytes, truncated) = (length, length > slots.each);
    let flags = if truncated { libc::MSG_TRUNC as u32 } else { 0 };
    slots.filled.push(Filled { bytes, flags, ..Filled::default() });
    slots.full = true;
    Ok(1)
}

/// Treats errors that only mean that no message was there as 0 messages.
fn none_or(error: io::Error) -> io::Result<usize> {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Ok(0),
        _ => Err(error),
    }
}

/// Asks for as many messages. Returns the kernel's answer: their number, or a negative one for an error.
///
/// # Safety
/// The messages are written, and point to memory of the lengths that they say, which is this call's alone.
unsafe fn fetch(
    file: BorrowedFd<'_>,
    messages: &mut [MaybeUninit<Message>],
    flags: libc::c_int,
) -> libc::c_long {
    if let [message] = messages {
        // One message is cheaper to receive by recvmsg, which copies less: a polling loop makes this call all the time.
        // SAFETY: see above.
        unsafe {
            let message = message.assume_init_mut();
            let header = &raw mut message.header;
            let bytes = libc::syscall(libc::SYS_recvmsg, file.as_raw_fd(), header, flags);
            message.length = bytes.max(0) as u32;
            return if bytes < 0 { bytes } else { 1 };
        }
    }
    // SAFETY: see above; no time is given.
    unsafe {
        libc::syscall(
            libc::SYS_recvmmsg,
            file.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as libc::c_uint,
            flags,
            std::ptr::null_mut::<libc::timespec>(),
        )
    }
}
