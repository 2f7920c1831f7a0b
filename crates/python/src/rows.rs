//! Rows that an engine hands over: columns of 64-bit integers, as what the ledger takes.

use crate::errors::TailtrimError;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use tailtrim_stats::Histogram;
use tailtrim_tail::analysis::{DecidedPair, Load, Outcome, Place, Tally, TangledPacket};
use tailtrim_tail::matching::Pair;
use tailtrim_tail::signature::Signature;

/// Outcomes by their codes in the column `ingress`, from 1 on; 0 is a packet with a pair or none at all.
const INGRESS: [Outcome; 3] = [Outcome::Lost, Outcome::InFlight, Outcome::BeyondWindow];

/// The same of the column `egress`.
const EGRESS: [Outcome; 2] = [Outcome::Unmatched, Outcome::EnteredBefore];

/// Columns of 64-bit integers without nulls.
pub(crate) fn columns<'a, const N: usize>(
    batch: &'a RecordBatch,
    names: [&str; N],
) -> PyResult<[&'a [i64]; N]> {
    let mut columns = [&[][..]; N];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = batch
            .column_by_name(name)
            .and_then(|column| column.as_primitive_opt::<Int64Type>())
            .filter(|column| column.null_count() == 0)
            .ok_or_else(|| PyValueError::new_err(format!("no column {name} of int64")))?
            .values();
    }
    Ok(columns)
}

/// The packets of a batch whose signatures repeat.
pub(crate) fn tangled(batch: &RecordBatch) -> PyResult<Vec<TangledPacket>> {
    let [high, low, order_ns, side, index, stamp_ns, position, forgotten_ns] = columns(
        batch,
        [
            "signature_high",
            "signature_low",
            "order_ns",
            "side",
            "packet_index",
            "stamp_ns",
            "burst_position",
            "forgotten_ns",
        ],
    )?;
    let packets = (0..batch.num_rows()).map(|row| {
        Ok(TangledPacket {
            signature: Signature { high: high[row], low: low[row] },
            place: Place {
                order_ns: order_ns[row],
                left: flag("side", side[row])?,
                index: index[row],
            },
            stamp_ns: stamp_ns[row],
            position: tag(position[row]),
            forgotten_ns: forgotten_ns[row],
        })
    });
    packets.collect()
}

/// The pairs of a batch.
pub(crate) fn decided(batch: &RecordBatch) -> PyResult<Vec<DecidedPair>> {
    let [order_ns, side, index, ingress_ns, egress_ns, ingress_index, position] = columns(
        batch,
        [
            "decided_ns",
            "decided_side",
            "decided_index",
            "ingress_ns",
            "egress_ns",
            "ingress_index",
            "burst_position",
        ],
    )?;
    let pairs = (0..batch.num_rows()).map(|row| {
        Ok(DecidedPair {
            place: Place {
                order_ns: order_ns[row],
                left: flag("decided_side", side[row])?,
                index: index[row],
            },
            pair: Pair {
                ingress_ns: ingress_ns[row],
                egress_ns: egress_ns[row],
                signature: Signature { high: 0, low: ingress_index[row] },
                tag: tag(position[row]),
            },
        })
    });
    pairs.collect()
}

/// Gaps and how often each occurred.
pub(crate) fn histogram(batch: &RecordBatch) -> PyResult<Histogram> {
    let [values, counts] = columns(batch, ["gap_ns", "packets"])?;
    let mut histogram = Histogram::new();
    for (value, n) in values.iter().zip(counts) {
        histogram.record_n(*value, count(*n)?);
    }
    Ok(histogram)
}

/// Packets and bytes by second.
pub(crate) fn loads(batch: &RecordBatch) -> PyResult<BTreeMap<i64, Load>> {
    let [seconds, packets, bytes] = columns(batch, ["second", "packets", "bytes"])?;
    (0..batch.num_rows())
        .map(|row| {
            let load = Load { packets: count(packets[row])?, bytes: count(bytes[row])? };
            Ok((seconds[row], load))
        })
        .collect()
}

/// Tally of the outcomes of packets in no pair whose signatures do not repeat.
pub(crate) fn outcomes(batch: &RecordBatch) -> PyResult<Tally> {
    let names =
        ["ingress", "ingress_trimmed", "millisecond", "egress", "egress_trimmed", "packets"];
    let [ingress, ingress_trimmed, milliseconds, egress, egress_trimmed, packets] =
        columns(batch, names)?;
    let mut tally = Tally::default();
    for row in 0..batch.num_rows() {
        let packets = count(packets[row])?;
        for (outcome, trimmed) in [
            (
                outcome("ingress", ingress[row], &INGRESS)?,
                flag("ingress_trimmed", ingress_trimmed[row])?,
            ),
            (
                outcome("egress", egress[row], &EGRESS)?,
                flag("egress_trimmed", egress_trimmed[row])?,
            ),
        ] {
            if let Some(outcome) = outcome {
                tally.add(outcome, trimmed, milliseconds[row], packets);
            }
        }
    }
    Ok(tally)
}

fn outcome(column: &str, code: i64, outcomes: &[Outcome]) -> PyResult<Option<Outcome>> {
    if code == 0 {
        return Ok(None);
    }
    let known = usize::try_from(code - 1).ok().and_then(|index| outcomes.get(index));
    known.copied().map(Some).ok_or_else(|| unknown(column, code, outcomes.len()))
}

fn flag(column: &str, code: i64) -> PyResult<bool> {
    match code {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(unknown(column, code, 1)),
    }
}

#[cold]
fn unknown(column: &str, code: i64, last: usize) -> PyErr {
    TailtrimError::new_err(format!(
        "the engine handed over {code} in the column {column}, expected 0 to {last}"
    ))
}

fn count(value: i64) -> PyResult<u64> {
    u64::try_from(value).map_err(|_| PyValueError::new_err(format!("a count of {value}")))
}

fn tag(position: i64) -> u16 {
    u16::try_from(position).unwrap_or(u16::MAX)
}
