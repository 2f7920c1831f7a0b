//! Metadata in front of frames that are sent: the time at which the NIC is to send them, and the stamp of when it did.
//!
//! Format: Documentation/networking/xsk-tx-metadata.rst of the kernel, `struct xsk_tx_metadata`: flags; then, as a request,
//! words for a checksum and the launch time, or, when the frame is done, its stamp in place of the former.

use super::Socket;

/// Bytes of the metadata.
pub(super) const LEN: usize = 24;
const STAMP_AT: usize = 8;
const LAUNCH_AT: usize = 16;
const STAMP: u64 = libc::XDP_TXMD_FLAGS_TIMESTAMP as u64;
/// `XDP_TXMD_FLAGS_LAUNCH_TIME`, Linux 6.15; not in libc.
const LAUNCH: u64 = 1 << 2;
/// Bytes of a frame that come back with its stamp.
const FRONT: usize = 128;

/// Methods of a socket that was opened with room for metadata.
impl Socket {
    /// Bytes of the longest frame that [`queue_stamped`](Self::queue_stamped) takes.
    pub fn longest_stamped(&self) -> usize {
        self.chunk_bytes - LEN
    }

    /// Copies a frame into the send ring, for which a stamp is asked for; it is sent at a time of the NIC's clock, if one
    /// is given. Returns whether there was room.
    pub fn queue_stamped(&mut self, frame: &[u8], launch_ns: Option<u64>) -> bool {
        assert!(self.has_metadata && frame.len() <= self.longest_stamped());
        if !self.send.has_room(1) {
            return false;
        }
        let Some(chunk) = self.free.pop() else { return false };
        let mut metadata = [0; LEN];
        let flags = STAMP | if launch_ns.is_some() { LAUNCH } else { 0 };
        metadata[..8].copy_from_slice(&flags.to_ne_bytes());
        metadata[LAUNCH_AT..].copy_from_slice(&launch_ns.unwrap_or(0).to_ne_bytes());
        let place = self.memory.at(chunk as usize, LEN + frame.len());
        // SAFETY: within the memory, and by the assertion within the chunk, which is in none of the rings, so it is not in
        // use; metadata and frame lie elsewhere, as no slice of the memory outlives a call.
        unsafe {
            std::ptr::copy_nonoverlapping(metadata.as_ptr(), place.as_ptr(), LEN);
            std::ptr::copy_nonoverlapping(frame.as_ptr(), place.add(LEN).as_ptr(), frame.len());
        }
        let (addr, len) = (chunk + LEN as u64, frame.len() as u32);
        self.send.push(libc::xdp_desc { addr, len, options: libc::XDP_TX_METADATA });
        true
    }

    /// Takes back the chunks of frames that have been sent, and hands the first bytes of each to `take`, with its stamp.
    /// Returns their number.
    pub fn reclaim_stamped(&mut self, take: &mut dyn FnMut(&[u8], Option<u64>)) -> usize {
        assert!(self.has_metadata);
        let mut count = 0;
        while let Some(address) = self.complete.pop() {
            let chunk = address & !(self.chunk_bytes as u64 - 1);
            let start = self.memory.at(chunk as usize, LEN + FRONT);
            // SAFETY: within the memory, and within the chunk; the kernel has handed it over, and it goes into no ring
            // before the slice is gone.
            let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), LEN + FRONT) };
            let stamp = bytes[STAMP_AT..].first_chunk().map_or(0, |ns| u64::from_ne_bytes(*ns));
            take(&bytes[LEN..], (stamp != 0).then_some(stamp));
            self.free.push(chunk);
            count += 1;
        }
        if count > 0 {
            self.complete.release();
        }
        count
    }
}
