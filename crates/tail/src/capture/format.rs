//! Formats of captures, and sources of their stamps.

/// Source of a frame's stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StampSource {
    /// The record header of the capture file.
    #[default]
    Header,
    /// The record header, whose fractions of seconds are nanoseconds although a pcap says microseconds.
    Nanoseconds,
    /// The last eight bytes of the frame, put there by an X552 NIC (nanoseconds and seconds, little
    /// endian), as `MoonSniff` writes them.
    X552Trailer,
}

/// The file formats that [`CaptureReader`](super::CaptureReader) reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap, microseconds or nanoseconds, and the modified pcap, either byte order.
    Pcap,
    /// pcapng, any number of interfaces and sections.
    Pcapng,
    /// Records of Endace's capture cards.
    Erf,
    /// `MoonSniff`'s records of stamp and packet identifier.
    Mscap,
}
