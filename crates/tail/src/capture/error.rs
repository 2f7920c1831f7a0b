//! Errors of captures, each with its place and the bytes expected there.

use super::foreign::FRAMES;
use crate::times;
use std::io;
use tailtrim_wire::frame::Link;

/// A capture that cannot be read to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The capture cannot be opened.
    #[error("{path}: cannot be opened: {source}")]
    Open {
        /// The capture, as the user named it.
        path: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The source failed, or a compression stream is damaged.
    #[error("{path}: reading failed after byte {offset}: {source}")]
    Io {
        /// The capture, as the user named it.
        path: String,
        /// Bytes of the (decompressed) capture read before the failure.
        offset: u64,
        /// Error of the source.
        source: io::Error,
    },
    /// The file has no bytes at all.
    #[error("{path}: the file is empty, expected a capture (pcap, pcapng, ERF or mscap)")]
    Empty {
        /// The capture, as the user named it.
        path: String,
    },
    /// The first bytes are those of no known capture format.
    #[error("{path}: byte 0: {found}, expected {expected}")]
    Format {
        /// The capture, as the user named it.
        path: String,
        /// The first bytes, in words.
        found: String,
        /// The formats that the reader understands.
        expected: String,
    },
    /// The capture is a valid one up to `offset`.
    #[error("{path}: byte {offset}: {found}, expected {expected}")]
    Damaged {
        /// The capture, as the user named it.
        path: String,
        /// Place in the (decompressed) capture at which the damaged record starts.
        offset: u64,
        /// The content at that place, in words.
        found: String,
        /// The content of a sound capture at that place.
        expected: String,
        /// Whole records read before the damage.
        records: u64,
        /// Fractions of seconds that are too large for the microseconds that the capture says they are, and not for
        /// nanoseconds.
        nanoseconds: bool,
    },
    /// The capture has packets, all of interfaces whose frames cannot be read.
    #[error(
        "{path}: no packet can be read: {unread}, expected link type {}: {FRAMES}",
        Link::EXPECTED
    )]
    Unread {
        /// The capture, as the user named it.
        path: String,
        /// Number and link type of the packets, in words.
        unread: String,
    },
    /// The packets are to be those of an interface or a direction, of which this capture does not tell.
    #[error(
        "{path}: is {found}, which does not say of which interface or direction a packet is, expected a second capture, or \
         one that says it: pcapng, ERF, tcpdump -i any"
    )]
    NoPlaces {
        /// The capture, as the user named it.
        path: String,
        /// Its format.
        found: &'static str,
    },
    /// A stamp lies so far before an earlier one that the clock must have been set back.
    #[error(
        "{path}: packet {packet}: its stamp is {} before an earlier one, expected stamps in order within 1 s",
        times::text(*back_ns)
    )]
    Disorder {
        /// The capture, as the user named it.
        path: String,
        /// Which packet, from 1.
        packet: u64,
        /// Time by which its stamp is before the largest one.
        back_ns: i64,
    },
}

/// Remedy for a capture that cannot be read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Analyse what precedes the damage.
    Salvage {
        /// The packets before it, where they are counted.
        packets: Option<u64>,
    },
    /// Read the fractions of seconds as nanoseconds, if that is what they are; or salvage.
    Nanoseconds {
        /// The packets before the first such fraction.
        packets: u64,
    },
    /// Sort the file if only it is disordered, or record it again: its clock was set back.
    Sort,
}

impl CaptureError {
    /// The remedy for this error, where there is one.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Damaged { nanoseconds: true, records, .. } => {
                Some(Remedy::Nanoseconds { packets: *records })
            }
            Self::Damaged { records, .. } if *records > 0 => {
                Some(Remedy::Salvage { packets: Some(*records) })
            }
            Self::Io { offset, .. } if *offset > 0 => Some(Remedy::Salvage { packets: None }),
            Self::Disorder { .. } => Some(Remedy::Sort),
            _ => None,
        }
    }

    /// Whether salvaging may stop here and use what was read before.
    pub(super) fn leaves_records(&self) -> bool {
        matches!(self, Self::Damaged { records: 1.., .. } | Self::Io { offset: 1.., .. })
    }
}

/// Damage as a decoder sees it: it knows neither the path nor the absolute offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    /// Bytes between the start of the window and the damaged record.
    pub(super) at: usize,
    /// The content at that place, in words.
    pub(super) found: String,
    /// The content of a sound capture at that place.
    pub(super) expected: String,
    /// See [`CaptureError::Damaged`].
    pub(super) nanoseconds: bool,
}

impl Damage {
    /// Damage at the begin of the window.
    pub(super) fn of(found: String, expected: String) -> Self {
        Self { at: 0, found, expected, nanoseconds: false }
    }
}
