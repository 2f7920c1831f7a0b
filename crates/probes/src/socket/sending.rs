//! Sending datagrams, with control messages for each.

use super::{BATCH, Outgoing, Sent, Socket, SocketError, is_about_a_datagram, open_failed};
use arrayvec::ArrayVec;
use std::io;
use std::os::fd::AsFd;
use tailtrim_sys::message::{self, Parcel};
use tailtrim_sys::{address, clock, control, socket as sys};

impl Socket {
    /// Sends datagrams, at most [`BATCH`]. The kernel may take fewer: [`Sent::refused`] says why.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn send(&mut self, batch: &[Outgoing<'_>]) -> Result<Sent, SocketError> {
        let first_key = self.next_key;
        let batch = &batch[..batch.len().min(BATCH)];
        let (begun_ns, result) = if let [one] = batch {
            let (address, control) = (address::encode(one.to), self.beside(one, first_key));
            self.hand_over(&[self.parcel(one, &address, &control)])
        } else {
            // Without memory from the allocator, which may ask the kernel for a page and give it back each time.
            let addresses: ArrayVec<_, BATCH> =
                batch.iter().map(|one| address::encode(one.to)).collect();
            let controls: ArrayVec<_, BATCH> =
                (first_key..).zip(batch).map(|(k, one)| self.beside(one, k)).collect();
            let parcels: ArrayVec<Parcel<'_>, BATCH> = batch
                .iter()
                .zip(addresses.iter().zip(&controls))
                .map(|(one, (address, control))| self.parcel(one, address, control))
                .collect();
            self.hand_over(&parcels)
        };
        match result {
            Ok(taken) => {
                self.next_key = self.next_key.wrapping_add(taken as u32);
                Ok(Sent { first_key, taken, begun_ns, refused: None })
            }
            Err(error) => self.not_sent(error, batch, first_key, begun_ns),
        }
    }

    fn parcel<'a>(
        &self,
        one: &Outgoing<'a>,
        address: &'a address::Encoded,
        control: &'a control::Builder,
    ) -> Parcel<'a> {
        Parcel {
            bytes: one.bytes,
            address: if self.peer == Some(one.to) { &[] } else { address.bytes() },
            control: control.bytes(),
        }
    }

    /// Gives datagrams to the kernel. Returns also when that began.
    fn hand_over(&self, parcels: &[Parcel<'_>]) -> (i64, io::Result<usize>) {
        let begun_ns = clock::realtime_ns();
        let result = message::send(self.as_fd(), parcels);
        if result.as_ref().is_err_and(is_about_a_datagram) {
            // The error may be an ICMP message about an earlier datagram, which the kernel reports only once: send
            // again.
            return (clock::realtime_ns(), message::send(self.as_fd(), parcels));
        }
        (begun_ns, result)
    }

    /// Control messages of a datagram, where it differs from the settings of the socket: for more than one short
    /// message the kernel allocates memory first, which takes as long as copying the datagram.
    fn beside(&self, one: &Outgoing<'_>, key: u32) -> control::Builder {
        let is_v6 = self.local.is_ipv6();
        let mut control = control::Builder::default();
        if let Some(source) = one.from.filter(|source| *source != self.local.ip()) {
            control.source(source);
        }
        if let Some(class) = one.traffic_class.filter(|class| *class != self.class) {
            control.traffic_class(is_v6, class);
        }
        if let Some(hops) = one.hops.filter(|hops| Some(*hops) != self.hops) {
            control.hops(is_v6, hops);
        }
        if self.stamping.send && self.gives_keys {
            control.key(key);
        }
        control
    }

    fn not_sent(
        &mut self,
        error: io::Error,
        batch: &[Outgoing<'_>],
        first_key: u32,
        begun_ns: i64,
    ) -> Result<Sent, SocketError> {
        let errno = error.raw_os_error().unwrap_or(0);
        match errno {
            // The kernel does not know the control message with the number.
            libc::EINVAL if self.stamping.send && self.gives_keys && first_key == 0 => {
                self.gives_keys = false;
                self.send(batch)
            }
            libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::ENOMEM => {
                Err(SocketError::Broken { local: self.local, what: "sending", source: error })
            }
            _ => {
                if self.stamping.send && !self.gives_keys {
                    self.count_anew()?;
                }
                Ok(Sent { first_key, taken: 0, begun_ns, refused: Some(errno) })
            }
        }
    }

    /// A kernel that counts itself may or may not have counted the refused datagram, depending on its version. Turning
    /// stamps off and on again makes it start from 0.
    fn count_anew(&mut self) -> Result<(), SocketError> {
        sys::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, 0)
            .map_err(|source| open_failed(self.local, "asking for stamps", source))?;
        self.ask_for_stamps()?;
        self.next_key = 0;
        Ok(())
    }
}
