//! Result of `ports --prove`, for people: tables of at most 80 columns.

use super::table::{aligned, words};
use crate::output::wrapped;
use std::fmt::Write as _;
use tailtrim_probes::prove::{AtRate, Claim, Crossed, Errors, Measured, Proven, Stamped, Verdict};
use tailtrim_tail::summary::grouped;
use tailtrim_tail::times;

const WIDEST: usize = 80;

/// A row for each claim, the gaps of its packets, and what speaks against it.
pub(super) fn text(claims: &[Proven]) -> String {
    let shown = || claims.iter().filter(|claim| claim.verdict != Verdict::Absent);
    let mut rows = vec![words(["interface", "claim", "verdict", "seen"])];
    rows.extend(shown().map(|claim| {
        let mut seen = claim.measured.as_ref().map_or_else(String::new, seen);
        seen += if claim.filter.is_some_and(|set| set != "all") { ", PTP only" } else { "" };
        vec![claim.interface.clone(), named(claim.claim).to_owned(), verdict(claim), seen]
    }));
    let mut text = aligned(&rows);
    for (title, errors) in TABLES {
        gaps(&mut text, title, shown(), errors);
    }
    if claims.iter().any(|claim| claim.why.is_some()) {
        text.push('\n');
    }
    for claim in claims {
        let Some(why) = &claim.why else { continue };
        let line = format!("{} {}: {why}", claim.interface, named(claim.claim));
        text += &wrapped(&line, WIDEST, "", "  ");
    }
    text
}

type OfRate = fn(&AtRate) -> Option<Errors>;

const TABLES: [(&str, OfRate); 2] = [
    ("gaps, p99 of the error against the schedule", |at| at.gap_error),
    ("gaps, p99 of the error against the other end", |at| at.against),
];

fn gaps<'a>(
    text: &mut String,
    title: &str,
    claims: impl Iterator<Item = &'a Proven>,
    errors: OfRate,
) {
    let stamped = claims.filter_map(|claim| match &claim.measured {
        // A hint was asked for at one rate only.
        _ if claim.claim == Claim::XdpHint => None,
        Some(Measured::Stamps(told)) if told.stamped > 0 => Some((claim, told)),
        _ => None,
    });
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (claim, Stamped { by_rate, .. }) in stamped {
        if rows.is_empty() {
            let rates = by_rate.iter().map(|at| format!("{} kpps", at.rate_pps / 1_000));
            rows.push(words(["interface", "claim"]).into_iter().chain(rates).collect());
        }
        if by_rate.iter().all(|at| errors(at).is_none()) {
            continue;
        }
        let cells = by_rate.iter().map(|at| {
            errors(at).map_or_else(|| "–".to_owned(), |errors| times::text(errors.p99_ns))
        });
        let names = [claim.interface.clone(), named(claim.claim).to_owned()];
        rows.push(names.into_iter().chain(cells).collect());
    }
    let _ = write!(text, "\n{title}\n{}", aligned(&rows));
}

fn named(claim: Claim) -> &'static str {
    match claim {
        Claim::ReceiveKernel => "receive kernel",
        Claim::ReceiveNic => "receive NIC",
        Claim::TransmitKernel => "transmit kernel",
        Claim::TransmitNic => "transmit NIC",
        Claim::TransmitToReceive => "transmit to receive",
        Claim::Phc => "PHC",
        Claim::ZeroCopy => "zero copy",
        Claim::XdpHint => "XDP hint",
        Claim::TransmitXdp => "transmit AF_XDP",
        Claim::LaunchTime => "launch time",
    }
}

/// The middle of the times, and how far they may be off.
fn crossed(told: &Crossed) -> String {
    let of = format!("{} of {}", grouped(told.stamped as u64), grouped(told.packets as u64));
    let Some([_, p50, _, slowest]) = told.times_ns else { return of };
    let off = match told.clock_error_ns {
        0 => String::new(),
        ns => format!(" ± {}", times::text(ns)),
    };
    format!("{of}, {} to {}{off}", times::text(p50), times::text(slowest))
}

fn verdict(claim: &Proven) -> String {
    match claim.verdict {
        Verdict::Proven => "proven",
        Verdict::Partial => "partial",
        Verdict::Refuted => "refuted",
        Verdict::Absent => "absent",
        Verdict::Untested => "untested",
    }
    .to_owned()
}

fn seen(measured: &Measured) -> String {
    match measured {
        Measured::Stamps(told) => {
            let (stamped, packets) = (grouped(told.stamped as u64), grouped(told.packets as u64));
            let steps = told.resolution_ns.map_or_else(String::new, |ns| format!(" in {ns} ns"));
            let reordered = match told.reordered {
                0 => String::new(),
                some => format!(", {some} reordered"),
            };
            format!("{stamped} of {packets}{steps}{reordered}")
        }
        Measured::Clock(told) => {
            format!("{:+.1} ppm, {} steps", told.drift_ppm, told.steps.len())
        }
        Measured::Crossed(told) => crossed(told),
        Measured::Xdp(told) => format!("{} of {}", told.received, told.packets),
    }
}
