//! Round trips for people.

use std::fmt::Write;
use std::net::SocketAddr;
use tailtrim_probes::ping::{Live, Pinged, StreamResult};
use tailtrim_roundtrip::{Counts, FollowUps, LostWays, Part, Parts, Protocol};
use tailtrim_stats::Probability;
use tailtrim_sys::placement::Placement;
use tailtrim_tail::summary::{Quantile, grouped};
use tailtrim_tail::times::{self, Times, UNSUPPORTED, UNSUPPORTED_LEGEND};

/// The line that is written again each second.
pub(super) fn live(mut live: Live) -> String {
    live.round_trips_ns.sort_unstable();
    let round_trips = live.round_trips_ns;
    let last = round_trips.len().saturating_sub(1);
    let known = [("min", 0), ("median", last / 2), ("max", last)];
    let known = known.map(|(name, at)| round_trips.get(at).map(|ns| (name, *ns)));
    let known: Vec<(&str, i64)> = known.into_iter().flatten().collect();
    format!(
        "{} s: {} sent, {} answered, {} not{}",
        live.seconds,
        grouped(live.sent),
        grouped(live.answered),
        grouped(live.unanswered),
        if known.is_empty() {
            String::new()
        } else {
            format!("; last second {}", times::listed(&known))
        },
    )
}

/// The whole result.
pub(super) fn text(pinged: &Pinged, placement: &Placement) -> String {
    let mut text = String::new();
    for stream in &pinged.streams {
        of_stream(&mut text, pinged, stream);
        let _ = writeln!(text);
    }
    let lateness = &pinged.lateness_ns;
    let p99 = lateness.quantiles.iter().find(|quantile| quantile.p == Probability::P99);
    let _ = writeln!(
        text,
        "Departure lateness: {} at p99, {} at most.",
        time(p99.and_then(|quantile| quantile.value)),
        time(lateness.max),
    );
    for refused in &placement.refused {
        let _ = writeln!(text, "Refused: {refused}.");
    }
    if pinged.clock_stepped_ns.abs() > 1_000_000 {
        let _ = writeln!(
            text,
            "The clock stepped by {} during the measurement: round trips at that moment are wrong.",
            times::text(pinged.clock_stepped_ns),
        );
    }
    text
}

fn of_stream(text: &mut String, pinged: &Pinged, stream: &StreamResult) {
    let class = stream.traffic_class.map_or_else(String::new, |c| format!(", DSCP {}", c >> 2));
    let _ = writeln!(
        text,
        "{}: {} to {} from {}, {} bytes{class}",
        stream.name,
        stream.protocol,
        address(stream, stream.target),
        address(stream, stream.local),
        stream.packet_bytes,
    );
    counts(text, &stream.counts, stream.protocol);
    quantiles(text, pinged, stream);
    parts(text, &stream.parts);
    if let Some(one_way) = &stream.one_way {
        let row = |part: &Part| format!("p50 {}, p99 {}", time(part.ns.p50), time(part.ns.p99));
        let _ = writeln!(
            text,
            "  one way: there {}; back {}; each ± {} for the clocks",
            row(&one_way.forward),
            row(&one_way.backward),
            times::text(i64::try_from(one_way.clock_bound_ns).unwrap_or(i64::MAX)),
        );
    }
    for warning in &stream.summary.warnings {
        let _ = writeln!(text, "  warning: {}", warning.text);
    }
}

/// An address of the stream; ICMP has no ports.
fn address(stream: &StreamResult, address: SocketAddr) -> String {
    let icmp = stream.protocol == Protocol::IcmpEcho.name();
    if icmp { address.ip().to_string() } else { address.to_string() }
}

fn counts(text: &mut String, counts: &Counts, protocol: &str) {
    let Counts { probes, replies, reordered, .. } = counts;
    let ended = probes.answered + probes.unanswered();
    let share = if ended == 0 { 0.0 } else { 100.0 * probes.unanswered() as f64 / ended as f64 };
    let _ = writeln!(
        text,
        "  {} sent: {} answered, {} lost, {} altered, {} late, {} undelivered, {} cut ({share:.3} % not answered in time)",
        grouped(probes.sent()),
        grouped(probes.answered),
        grouped(probes.lost),
        grouped(probes.altered),
        grouped(probes.late),
        grouped(probes.undelivered),
        grouped(probes.cut),
    );
    lost_ways(text, counts, protocol);
    if let Some(FollowUps { told, untold }) = counts.follow_up {
        let _ = writeln!(
            text,
            "  reflector reported the exact send time of its reply: {} times, {} times not",
            grouped(told),
            grouped(untold),
        );
    }
    let others = [
        ("reordered", *reordered),
        ("duplicate", replies.duplicate),
        ("stray", replies.stray),
        ("altered", replies.altered),
        ("malformed", replies.malformed),
        ("not authentic", replies.unauthentic),
        ("not sent", probes.refused),
    ];
    let told: Vec<String> = others
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {name}", grouped(*count)))
        .collect();
    if !told.is_empty() {
        let _ = writeln!(text, "  {}", told.join(", "));
    }
}

/// Directions in which probes were lost. Echoes have no numbers of the far host, so they get no line.
fn lost_ways(text: &mut String, counts: &Counts, protocol: &str) {
    let LostWays { there, back, unknown } = counts.lost_ways;
    let numbered = protocol.starts_with("stamp") || protocol.starts_with("twamp");
    if !numbered || there + back + unknown == 0 {
        return;
    }
    let _ = writeln!(
        text,
        "  lost: {} on the way there, {} on the way back, {} unknown",
        grouped(there),
        grouped(back),
        grouped(unknown),
    );
    if unknown > 0 && counts.follow_up.is_none() {
        let _ = writeln!(
            text,
            "  hint: --protocol stamp --follow-up tells on which way, if the reflector numbers its replies \
             (reflect --stateful)",
        );
    }
}

/// Quantiles with their intervals, as far as the samples support them and one further.
fn quantiles(text: &mut String, pinged: &Pinged, stream: &StreamResult) {
    let latency = &stream.summary.latency_ns;
    if stream.summary.samples == 0 {
        return;
    }
    let unsupported = latency.quantiles.iter().position(|quantile| !quantile.supported);
    let shown = unsupported.map_or(latency.quantiles.len(), |at| at + 1);
    let shown = &latency.quantiles[..shown.min(latency.quantiles.len())];
    let level = format!("{:?}", pinged.level).to_lowercase();
    let ends = [latency.min, latency.max, latency.iqr].map(|ns| [ns, None, None]);
    let bounded = shown.iter().map(|quantile| [quantile.value, quantile.low, quantile.high]);
    let style = Times::of(bounded.chain(ends), stream.summary.resolution_ps);
    let cell = |ns: Option<i64>| cell(style, ns);
    let mut rows = vec![
        vec![format!("  round trip, {} ({level})", style.unit), "min".to_owned()],
        vec![String::new(), cell(latency.min)],
        vec![format!("  {} % from", latency.confidence.percent_text()), String::new()],
        vec!["  to".to_owned(), String::new()],
    ];
    for Quantile { p, value, low, high, supported, .. } in shown {
        rows[0].push(format!("p{}", p.percent_text()));
        rows[1].push(cell(*value) + if *supported { "" } else { UNSUPPORTED });
        rows[2].push(style.bound(*low));
        rows[3].push(style.bound(*high));
    }
    for (row, value) in rows.iter_mut().zip(["max", "", "", ""]) {
        row.push(value.to_owned());
    }
    for (row, value) in rows.iter_mut().zip(["IQR", "", "", ""]) {
        row.push(value.to_owned());
    }
    let columns = rows[1].len();
    rows[1][columns - 2] = cell(latency.max);
    rows[1][columns - 1] = cell(latency.iqr);
    lay_out(text, &rows);
    if let Some(quantile) = shown.iter().find(|quantile| !quantile.supported) {
        let _ = writeln!(
            text,
            "  {UNSUPPORTED_LEGEND} {} independent episodes are needed beyond it, the run has {}; {} samples if all are \
             independent.",
            tailtrim_stats::episodes_needed(latency.confidence),
            quantile.episodes,
            grouped(quantile.samples_needed),
        );
    }
}

fn parts(text: &mut String, parts: &Parts) {
    let all = [
        ("application sends", &parts.app_send),
        ("queueing", &parts.queueing),
        ("network", &parts.network),
        ("far host", &parts.residence),
        ("application receives", &parts.app_receive),
        ("whole, application", &parts.application),
        ("whole, software", &parts.software),
        ("whole, hardware", &parts.hardware),
    ];
    let known: Vec<_> = all.into_iter().filter(|(_, part)| part.samples > 0).collect();
    let times = known.iter().flat_map(|(_, Part { ns, .. })| {
        [ns.p50, ns.p99, ns.p999, ns.max, ns.iqr].map(|time| [time])
    });
    let style = Times::of(times, 1_000);
    let cell = |ns: Option<i64>| cell(style, ns);
    let head = format!("  part, {}", style.unit);
    let mut rows =
        vec![[&head, "p50", "p99", "p99.9", "max", "IQR", "missing"].map(str::to_owned).to_vec()];
    for (name, part) in known {
        rows.push(vec![
            format!("  {name}"),
            cell(part.ns.p50),
            cell(part.ns.p99),
            cell(part.ns.p999),
            cell(part.ns.max),
            cell(part.ns.iqr),
            grouped(part.missing),
        ]);
    }
    if rows.len() > 1 {
        lay_out(text, &rows);
    }
}

/// The first column to the left, the others to the right.
fn lay_out(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, value) in row.iter().enumerate() {
            let width = widths[column];
            let _ = if column == 0 {
                write!(line, "{value:<width$}")
            } else {
                write!(line, "  {value:>width$}")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn cell(style: Times, ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| style.number(ns))
}

fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), times::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lost_ways: LostWays, follow_up: Option<FollowUps>, protocol: &str) -> String {
        let mut text = String::new();
        let mut counted = Counts { lost_ways, follow_up, ..Counts::default() };
        let LostWays { there, back, unknown } = lost_ways;
        counted.probes.lost = there + back + unknown;
        counts(&mut text, &counted, protocol);
        text
    }

    #[test]
    fn a_loss_on_an_unknown_way_is_told_with_what_would_tell_it() {
        let unknown = LostWays { unknown: 20, ..LostWays::default() };
        let text = told(unknown, None, "stamp");
        assert!(text.contains(", 20 unknown"), "{text}");
        assert!(text.contains("--follow-up"), "{text}");
        assert!(!told(unknown, Some(FollowUps::default()), "stamp").contains("--follow-up"));
        assert!(
            !told(LostWays { back: 20, ..LostWays::default() }, None, "stamp").contains("hint")
        );
        assert!(!told(unknown, None, "udp").contains("unknown"));
        assert!(!told(LostWays::default(), None, "stamp").contains("unknown"));
    }
}
