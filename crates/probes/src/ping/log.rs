//! Every round trip of a stream as a record of eighteen 64-bit integers, for writers of other formats.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tailtrim_roundtrip::RoundTrip;

/// The fields of a record, little-endian `i64` each, in this order; [`i64::MIN`] stands for a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Number of the probe among those sent, from 0.
    Number,
    /// When it was to depart.
    Intended,
    /// Right before the system call.
    AppSend,
    /// At the queueing discipline.
    Queued,
    /// At the driver.
    Sent,
    /// On the wire, the NIC's clock.
    NicSent,
    /// At the far host (T2), its clock.
    FarReceived,
    /// From the far host (T3), its clock.
    FarSent,
    /// Off the wire, the NIC's clock.
    NicReceived,
    /// From the driver.
    Received,
    /// In this process.
    AppReceive,
    /// The round-trip time at the level asked for.
    RoundTrip,
    /// Result of the probe, by `HiPerConTracer`'s numbers: 255 answered, 200 not.
    Status,
    /// Bytes of the probe's IP packet.
    Bytes,
    /// Bytes of the reply's IP packet.
    ReplyBytes,
    /// TTL or hop limit that the reply came with.
    ReplyHops,
    /// From the far host, as it reported afterwards, its clock.
    FarLeft,
    /// The number that the far host gave its reply.
    FarNumber,
}

/// Fields of a record.
pub const RECORD_FIELDS: usize = Field::FarNumber as usize + 1;

#[derive(Debug)]
pub(super) struct Log {
    file: BufWriter<File>,
    probe_bytes: i64,
}

impl Log {
    pub(super) fn create(path: &Path, probe_bytes: usize) -> io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 18, File::create(path)?);
        Ok(Self { file, probe_bytes: probe_bytes as i64 })
    }

    pub(super) fn write(&mut self, trip: &RoundTrip, round_trip_ns: Option<i64>) -> io::Result<()> {
        let stamps = &trip.stamps;
        let or_missing = |value: Option<i64>| value.unwrap_or(i64::MIN);
        let mut record = [i64::MIN; RECORD_FIELDS];
        let mut put = |field: Field, value| record[field as usize] = value;
        put(Field::Number, trip.number.cast_signed());
        put(Field::Intended, trip.intended_ns);
        put(Field::AppSend, stamps.app_send_ns);
        put(Field::Queued, or_missing(stamps.queued_ns));
        put(Field::Sent, or_missing(stamps.sent_ns));
        put(Field::NicSent, or_missing(stamps.nic_sent_ns));
        put(Field::FarReceived, or_missing(stamps.far_received_ns));
        put(Field::FarSent, or_missing(stamps.far_sent_ns));
        put(Field::NicReceived, or_missing(stamps.nic_received_ns));
        put(Field::Received, or_missing(stamps.received_ns));
        put(Field::AppReceive, or_missing(stamps.app_receive_ns));
        put(Field::RoundTrip, or_missing(round_trip_ns));
        put(Field::Status, trip.ending.status().into());
        put(Field::Bytes, self.probe_bytes);
        put(Field::ReplyBytes, or_missing(trip.reply_bytes.map(i64::from)));
        put(Field::ReplyHops, or_missing(trip.reply_hops.map(i64::from)));
        put(Field::FarLeft, or_missing(stamps.far_left_ns));
        put(Field::FarNumber, or_missing(trip.far_number.map(u64::cast_signed)));
        for value in record {
            self.file.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }

    pub(super) fn close(mut self) -> io::Result<()> {
        self.file.flush()
    }
}
