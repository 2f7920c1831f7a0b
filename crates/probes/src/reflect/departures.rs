//! Replies that left and whose send stamps have not come yet.

use tailtrim_roundtrip::reflect::Reply;

/// Most replies that wait at once; a stamp comes within the time of a few packets or never.
const WAITING: usize = 1_024;

/// The last replies by the number under which their stamps come back.
#[derive(Debug)]
pub(super) struct Departures {
    replies: Vec<Option<(u32, Reply)>>,
}

impl Departures {
    pub(super) fn new() -> Self {
        Self { replies: vec![None; WAITING] }
    }

    pub(super) fn enter(&mut self, key: u32, reply: Reply) {
        self.replies[key as usize % WAITING] = Some((key, reply));
    }

    /// The reply of this number, unless so many came since that it made room.
    pub(super) fn find(&self, key: u32) -> Option<&Reply> {
        let (number, reply) = self.replies[key as usize % WAITING].as_ref()?;
        (*number == key).then_some(reply)
    }
}
