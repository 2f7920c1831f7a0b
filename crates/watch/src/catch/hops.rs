//! Changes of the path, by the hops that are left.

/// So many replies in a row with another number of hops are a change: of a single one, only that one is known.
const IN_A_ROW: u32 = 3;

/// The hops that are left of a way, as last seen for sure.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    known: Option<u8>,
    other: Option<(u8, u32)>,
}

/// A number of hops that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Changed {
    /// Hops that were left before.
    pub(crate) from: u8,
    /// Hops that are left now.
    pub(crate) to: u8,
}

impl Way {
    fn look(&mut self, hops: Option<u8>) -> Option<Changed> {
        let to = hops?;
        let from = *self.known.get_or_insert(to);
        if to == from {
            self.other = None;
            return None;
        }
        let seen = self.other.filter(|(other, _)| *other == to).map_or(1, |(_, seen)| seen + 1);
        self.other = Some((to, seen));
        (seen >= IN_A_ROW).then(|| {
            *self = Self { known: Some(to), other: None };
            Changed { from, to }
        })
    }
}

/// Both ways of the probes from one port.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hops {
    there: Way,
    back: Way,
}

/// Changes of both ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct PathChange {
    /// Of the way there, by the far host's report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) there: Option<Changed>,
    /// Of the way back, by the replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) back: Option<Changed>,
}

impl Hops {
    /// Looks at a reply: the hops left when the probe was there, and when its reply was back.
    pub(crate) fn look(&mut self, there: Option<u8>, back: Option<u8>) -> Option<PathChange> {
        let change = PathChange { there: self.there.look(there), back: self.back.look(back) };
        (change != PathChange::default()).then_some(change)
    }

    /// Routers on the way there, if probes leave with this many hops and the far host reports what is left.
    pub(crate) fn routers(&self, sent: u8) -> Option<u8> {
        sent.checked_sub(self.there.known?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_that_stays() {
        let mut hops = Hops::default();
        for there in [60, 60, 59, 60, 59, 59, 60] {
            assert_eq!(hops.look(Some(there), Some(64)), None);
        }
        assert_eq!(hops.look(Some(59), Some(64)), None);
        assert_eq!(hops.look(Some(59), None), None);
        let change = hops.look(Some(59), Some(64)).unwrap();
        assert_eq!((change.there, change.back), (Some(Changed { from: 60, to: 59 }), None));
        assert_eq!(hops.look(Some(59), Some(64)), None);
        assert_eq!((hops.routers(64), hops.routers(50)), (Some(5), None));
    }

    #[test]
    fn without_a_number_nothing_is_known() {
        let mut hops = Hops::default();
        assert!((0..9).all(|_| hops.look(None, None).is_none()));
        assert_eq!(hops.routers(255), None);
    }
}
