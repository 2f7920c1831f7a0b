//! Frames of several queues as one stream, in the order of their stamps.

use std::os::fd::{AsFd, BorrowedFd};
use tailtrim_sys::xdp::Socket;

/// A queue of the interface, with its socket.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) socket: Socket,
    /// Place of its first frame in the order; `None` if it was empty when it was looked at.
    first: Option<Place>,
    /// Whether frames were taken since their chunks were given back.
    taken: bool,
}

/// Place of a frame in the order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its stamp, in the clock of all of them. Frames without one come at once.
    pub(super) ns: i64,
    /// Whether an earlier one of another queue may still be on its way.
    pub(super) young: bool,
}

impl Queue {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, first: None, taken: false }
    }

    fn look<const META: usize>(&mut self, place: &mut impl FnMut([u8; META]) -> Place) {
        self.first = self.socket.front().map(place);
    }

    /// Gives chunks back, or has the kernel look for frames where it sleeps.
    pub(super) fn end(&mut self, polls: bool) -> std::io::Result<()> {
        if std::mem::take(&mut self.taken) {
            self.socket.received();
        } else if polls || self.socket.receiving_sleeps() {
            self.socket.call()?;
        }
        Ok(())
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Hands at most `most` frames to `pass`, the earliest first, up to the first young one. Returns their number.
pub(super) fn receive<const META: usize>(
    queues: &mut [Queue],
    most: usize,
    mut place: impl FnMut([u8; META]) -> Place,
    pass: &mut dyn FnMut(&[u8], [u8; META]),
) -> usize {
    let mut count = 0;
    if let [queue] = queues {
        while count < most && queue.socket.receive(pass) {
            count += 1;
        }
        queue.taken |= count > 0;
        return count;
    }
    queues.iter_mut().for_each(|queue| queue.look(&mut place));
    while count < most {
        let Some((at, until_ns)) = earliest(queues) else { break };
        let queue = &mut queues[at];
        // As many of this queue as are before the first one of all others.
        while count < most
            && let Some(first) = queue.first
            && first.ns <= until_ns
        {
            if first.young {
                return count;
            }
            if queue.socket.receive(pass) {
                count += 1;
                queue.taken = true;
            }
            queue.look(&mut place);
        }
    }
    count
}

/// The queue with the earliest frame, and the stamp of the earliest one of the others.
fn earliest(queues: &[Queue]) -> Option<(usize, i64)> {
    let (mut best, mut until_ns): (Option<(usize, i64)>, i64) = (None, i64::MAX);
    for (at, queue) in queues.iter().enumerate() {
        let Some(Place { ns, .. }) = queue.first else { continue };
        match best {
            Some((_, least_ns)) if least_ns <= ns => until_ns = until_ns.min(ns),
            Some((_, least_ns)) => (best, until_ns) = (Some((at, ns)), least_ns),
            None => best = Some((at, ns)),
        }
    }
    best.map(|(at, _)| (at, until_ns))
}
