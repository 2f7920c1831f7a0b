//! Formats of captures, and sources of their stamps.

/// Where a frame's stamp is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StampSource {
    /// The record header of the capture file.
    #[default]
    Header,
    /// The last eight bytes of the frame, put there by an X552 NIC (nanoseconds and seconds, little
    /// endian), as `MoonSniff` writes them.
    X552Trailer,
}

/// The file formats that [`CaptureReader`](super::CaptureReader) reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap, microseconds or nanoseconds, either byte order.
    Pcap,
    /// pcapng, any number of interfaces and sections.
    Pcapng,
    /// `MoonSniff`'s records of stamp and packet identifier.
    Mscap,
}
