//! The tables of `schema/` as Arrow record batches. Counts are signed 64-bit integers, which every engine
//! has.

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use std::net::IpAddr;
use std::sync::Arc;
use tailtrim_stats::Histogram;
use tailtrim_tail::analysis::{Analysis, Bursts, Packet, Sample, Second, WorstPacket};
use tailtrim_tail::lost::LostFrame;
use tailtrim_tail::summary::Quantile;
use tailtrim_wire::flow::Flow;

/// Columns of [`samples`].
#[must_use]
pub fn sample_schema() -> Arc<Schema> {
    let column = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(["ingress_ns", "egress_ns", "latency_ns"].map(column).to_vec()))
}

/// `sample`: one row a matched packet, in the order in which they left.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn samples(samples: &[Sample]) -> Result<RecordBatch, ArrowError> {
    let column = |value: fn(&Sample) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(samples.iter().map(value)))
    };
    RecordBatch::try_new(
        sample_schema(),
        vec![column(|s| s.ingress_ns), column(|s| s.egress_ns), column(Sample::latency_ns)],
    )
}

/// `histogram`: one row a distinct value.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn histogram(name: &str, entries: &[(i64, u64)]) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_from_iter([
        (name, integers(entries.iter().map(|(value, _)| *value))),
        ("count", counts(entries.iter().map(|(_, count)| *count))),
    ])
}

/// `worst`: one row a packet, worst first.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn worst(packets: &[WorstPacket]) -> Result<RecordBatch, ArrowError> {
    let column = |value: fn(&WorstPacket) -> i64| integers(packets.iter().map(value));
    RecordBatch::try_from_iter([
        ("latency_ns", column(|w| w.sample.latency_ns())),
        ("ingress_ns", column(|w| w.sample.ingress_ns)),
        ("egress_ns", column(|w| w.sample.egress_ns)),
        ("signature_high", column(|w| w.sample.signature.high)),
        ("signature_low", column(|w| w.sample.signature.low)),
        ("sample_index", counts(packets.iter().map(|w| w.index))),
    ])
}

/// `lost`: one row a lost packet, in the order of the capture.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn lost(frames: &[LostFrame]) -> Result<RecordBatch, ArrowError> {
    let count = |value: fn(&LostFrame) -> u64| counts(frames.iter().map(value));
    let of_flow = |value: fn(&Flow) -> Option<i64>| -> ArrayRef {
        let values = frames.iter().map(|frame| frame.flow.as_ref().and_then(value));
        Arc::new(values.collect::<Int64Array>())
    };
    let address = |value: fn(&Flow) -> IpAddr| -> ArrayRef {
        let values = frames.iter().map(|frame| frame.flow.as_ref().map(value));
        Arc::new(values.map(|address| address.map(|a| a.to_string())).collect::<StringArray>())
    };
    RecordBatch::try_from_iter_with_nullable([
        ("frame", count(|frame| frame.frame), false),
        ("cluster", count(|frame| frame.cluster), false),
        ("ingress_ns", integers(frames.iter().map(|frame| frame.ingress_ns)), false),
        ("bytes", count(|frame| frame.bytes.into()), false),
        ("source", address(|flow| flow.source), true),
        ("destination", address(|flow| flow.destination), true),
        ("protocol", of_flow(|flow| Some(flow.protocol.into())), true),
        ("source_port", of_flow(|flow| flow.ports.map(|[port, _]| port.into())), true),
        ("destination_port", of_flow(|flow| flow.ports.map(|[_, port]| port.into())), true),
    ])
}

/// `quantile`: one row a probability, ascending.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn quantiles(curve: &[Quantile]) -> Result<RecordBatch, ArrowError> {
    let bound = |value: fn(&Quantile) -> Option<i64>| -> ArrayRef {
        Arc::new(curve.iter().map(value).collect::<Int64Array>())
    };
    let p = StringArray::from_iter_values(curve.iter().map(|row| row.p.to_string()));
    RecordBatch::try_from_iter_with_nullable([
        ("p", Arc::new(p) as ArrayRef, false),
        ("value_ns", bound(|row| row.value), true),
        ("low_ns", bound(|row| row.low), true),
        ("high_ns", bound(|row| row.high), true),
        ("effective_samples", counts(curve.iter().map(|row| row.effective_samples)), false),
    ])
}

/// `gap`: one row a tap and distinct gap.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn gaps(ingress: &Histogram, egress: &Histogram) -> Result<RecordBatch, ArrowError> {
    let (ingress, egress) = (ingress.sorted(), egress.sorted());
    let taps = std::iter::repeat_n("ingress", ingress.len())
        .chain(std::iter::repeat_n("egress", egress.len()))
        .collect::<Vec<_>>();
    let rows = || ingress.iter().chain(&egress);
    RecordBatch::try_from_iter([
        ("tap", Arc::new(StringArray::from(taps)) as ArrayRef),
        ("gap_ns", integers(rows().map(|(gap_ns, _)| *gap_ns))),
        ("count", counts(rows().map(|(_, count)| *count))),
    ])
}

/// `second`: one row a second of the run.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn seconds(seconds: &[Second]) -> Result<RecordBatch, ArrowError> {
    let column = |value: fn(&Second) -> u64| counts(seconds.iter().map(value));
    let maxima: ArrayRef =
        Arc::new(seconds.iter().map(|row| row.max_latency_ns).collect::<Int64Array>());
    RecordBatch::try_from_iter_with_nullable([
        ("second", integers(seconds.iter().map(|row| row.second)), false),
        ("ingress_packets", column(|row| row.ingress_packets), false),
        ("ingress_bytes", column(|row| row.ingress_bytes), false),
        ("egress_packets", column(|row| row.egress_packets), false),
        ("egress_bytes", column(|row| row.egress_bytes), false),
        ("lost", column(|row| row.lost), false),
        ("samples", column(|row| row.samples), false),
        ("max_latency_ns", maxima, true),
    ])
}

/// `burst`: one row a position in the burst (from 1) and distinct latency.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn bursts(bursts: Option<&Bursts>) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<(i64, i64, u64)> = bursts
        .iter()
        .flat_map(|bursts| bursts.positions.iter().zip(1..))
        .flat_map(|(histogram, position)| {
            histogram.sorted().into_iter().map(move |(ns, count)| (position, ns, count))
        })
        .collect();
    RecordBatch::try_from_iter([
        ("position", integers(rows.iter().map(|row| row.0))),
        ("latency_ns", integers(rows.iter().map(|row| row.1))),
        ("count", counts(rows.iter().map(|row| row.2))),
    ])
}

/// `packet`: one row a stamped packet of a decoded capture, in the order of the file.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn packets(packets: &[Packet]) -> Result<RecordBatch, ArrowError> {
    let column = |value: fn(&Packet) -> i64| integers(packets.iter().map(value));
    let told = |value: fn(&Packet) -> Option<i64>| -> ArrayRef {
        // Mostly all of a capture's packets say something or none does.
        match packets.iter().filter(|packet| value(packet).is_some()).count() {
            0 => Arc::new(Int64Array::new_null(packets.len())),
            some if some == packets.len() => integers(packets.iter().filter_map(value)),
            _ => Arc::new(packets.iter().map(value).collect::<Int64Array>()),
        }
    };
    RecordBatch::try_from_iter_with_nullable([
        ("packet_index", column(|packet| packet.index), false),
        ("stamp_ns", column(|packet| packet.stamp_ns), false),
        ("order_ns", column(|packet| packet.order_ns), false),
        ("gap_ns", column(|packet| packet.gap_ns), false),
        ("signature_high", column(|packet| packet.signature.high), false),
        ("signature_low", column(|packet| packet.signature.low), false),
        ("length", column(|packet| packet.length.into()), false),
        ("burst_position", column(|packet| packet.position.into()), false),
        ("misplaced", column(|packet| packet.misplaced.into()), false),
        ("flow", told(|packet| packet.label.flow()), true),
        ("sequence", told(|packet| packet.label.sequence()), true),
    ])
}

/// All tables of an analysis but the samples, by the name of their file in the run directory: that of lost packets where they
/// were asked for.
///
/// # Errors
/// Columns that do not fit together: a bug.
pub fn all(analysis: &Analysis) -> Result<Vec<(&'static str, RecordBatch)>, ArrowError> {
    let mut tables = vec![
        ("histogram", histogram("latency_ns", analysis.latencies.entries())?),
        ("quantile", quantiles(&analysis.curve)?),
        ("worst", worst(&analysis.worst)?),
        ("gap", gaps(&analysis.ingress_gaps, &analysis.egress_gaps)?),
        ("delay_variation", histogram("delay_variation_ns", &analysis.delay_variation.sorted())?),
        ("second", seconds(&analysis.seconds)?),
        ("burst", bursts(analysis.bursts.as_ref())?),
    ];
    if let Some(frames) = &analysis.lost_frames {
        tables.push(("lost", lost(frames)?));
    }
    Ok(tables)
}

fn integers(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn counts(values: impl Iterator<Item = u64>) -> ArrayRef {
    integers(values.map(|count| count.cast_signed()))
}
