//! Warnings about the numbers of an analysis: limits that a reader must know before trusting them.

use super::Options;
use super::findings::Findings;
use super::lost_at_start;
use super::outcomes::TOGETHER_NS;
use crate::clock::{ClockFit, faults::faults, stamps, told, words::size};
use crate::matching::Window;
use crate::summary::{Tap, Taps, Warning, all_do, counted, counted_do, grouped, utc};
use crate::times;
use tailtrim_stats::{Probability, Ranked};
use tailtrim_wire::traffic::phases;

/// Words for one packet, and for several.
const UNSTAMPED: [&str; 2] =
    ["has no time stamp and is left out", "have no time stamp and are left out"];
const CUT_SHORT: [&str; 2] =
    ["was cut so short that it may not match", "were cut so short that they may not match"];
const TRIMMED: [&str; 2] =
    ["was lost within the trim and does not count", "were lost within the trim and do not count"];

/// With fewer samples, not even p99 is bounded from above, and readers are told so.
const FEWEST_SAMPLES: u64 = 368;

/// A rate is constant where the quartiles of its gaps are within this part of the interval, as for periodic causes.
const CONSTANT: f64 = 0.1;

/// The warnings, in the order in which they are shown.
pub(super) fn warnings(run: &Findings, options: &Options, latencies: &Ranked) -> Vec<Warning> {
    let fit = &options.clock_fit;
    let mut warnings = Warnings(Vec::new());
    if fit.corrects() {
        warnings.0.push(told::corrected(fit, latencies.count()));
    }
    warnings.add_tap("ingress", &run.taps.ingress, run.ingress.packets, run.unstamped[0]);
    warnings.add_tap("egress", &run.taps.egress, run.egress.packets, run.unstamped[1]);
    warnings.add_short(run, options);
    warnings.add_packets(run, options);
    warnings.add_in_order(run, options);
    warnings.add_without_samples(run);
    warnings.add_ends(run);
    warnings.0.extend(lost_at_start::warning(run));
    warnings.add_phases(run);
    warnings.add_rounded(run);
    // Packets that are taken for others say nothing of the clocks.
    if !warnings.0.iter().any(|warning| warning.code == "in_order" && warning.invalidates) {
        warnings.add_clocks(run, latencies);
    }
    warnings.add_stamps(run, fit, latencies);
    warnings.0
}

struct Warnings(Vec<Warning>);

impl Warnings {
    fn add(&mut self, code: &'static str, count: u64, text: String) {
        if count > 0 {
            self.0.push(Warning { code, count, text, invalidates: false });
        }
    }

    /// Warns of errors of a tap: damage, drops, missing and disordered stamps, cut frames.
    fn add_tap(&mut self, side: &str, tap: &Tap, packets: u64, unstamped: u64) {
        let packet = format!("{side} packet");
        if let Some(damage) = &tap.damage {
            self.add(
                "damaged",
                1,
                format!(
                    "{damage}; the {} before it {} used",
                    counted(packets, "packet"),
                    if packets == 1 { "was" } else { "were" }
                ),
            );
        }
        let drops = tap.tap_drops.unwrap_or(0);
        self.add(
            "tap_drops",
            drops,
            format!(
                "the {side} tap missed {}: up to that many packets may be counted as lost or unmatched that \
                 the device under test did not lose",
                counted(drops, "frame"),
            ),
        );
        self.add(
            "unstamped",
            unstamped,
            format!(
                "{}{}",
                counted_do(unstamped, &packet, UNSTAMPED),
                tap.odd_stamp.map_or(String::new(), |odd| format!(
                    "; packet {} is stamped {}",
                    grouped(odd.packet),
                    utc(odd.stamp_ns),
                )),
            ),
        );
        let unread: Vec<String> = tap.unread.iter().map(ToString::to_string).collect();
        self.add(
            "unread",
            tap.unread.iter().map(|unread| unread.packets).sum(),
            format!("not read at {side}: {}", unread.join(", ")),
        );
        self.add(
            "out_of_order",
            tap.out_of_order,
            format!(
                "{} backwards; gaps and matches take this into account",
                counted_do(tap.out_of_order, &format!("{side} time stamp"), ["goes", "go"]),
            ),
        );
        self.add(
            "misplaced",
            tap.misplaced,
            format!(
                "{} too far out of order for their gaps to be counted",
                counted_do(tap.misplaced, &packet, ["is", "are"]),
            ),
        );
    }

    /// Warns of frames of which too little is there to be signed.
    fn add_short(&mut self, run: &Findings, options: &Options) {
        // Packets in a tunnel may be cut in frames that are whole.
        let or = if options.rewrites.tunnel {
            ", or let the tunnel carry more of each packet"
        } else {
            ""
        };
        for (side, tap) in [("ingress", &run.taps.ingress), ("egress", &run.taps.egress)] {
            self.add(
                "short_signature",
                tap.short_signatures,
                format!(
                    "{}; record with a longer snap length{or}",
                    counted_do(tap.short_signatures, &format!("{side} frame"), CUT_SHORT),
                ),
            );
        }
    }

    /// Warns of packets that are set aside, ambiguous, lost within the trim, or with a negative latency.
    fn add_packets(&mut self, run: &Findings, options: &Options) {
        let Options { clock_fit: fit, window: Window { window_ns, .. }, .. } = options;
        let samples = run.latencies.histogram.count();
        self.add(
            "generator_stalled",
            run.ingress.stalled,
            format!(
                "{} entered while the generator's CPU stood still in the middle of sending: their delay may be \
             the generator's, and they are set aside",
                counted(run.ingress.stalled, "packet"),
            ),
        );
        self.add(
            "duplicate",
            run.ingress.duplicate,
            format!(
                "{} the signature of another one in flight, so that which of them left, and when, is \
                 unknown: intervals hold whether all of them were the fastest, or the slowest, or lost",
                counted_do(run.ingress.duplicate, "ingress packet", ["carries", "carry"]),
            ),
        );
        self.add(
            "beyond_window",
            run.ingress.beyond_window,
            format!(
                "{} left later than the window of {} and {} as not delivered; a longer one (--window) counts \
                 their latency",
                counted(run.ingress.beyond_window, "packet"),
                size(*window_ns),
                if run.ingress.beyond_window == 1 { "counts" } else { "count" },
            ),
        );
        self.add(
            "trimmed_lost",
            run.trimmed_undelivered,
            format!(
                "{}; see them with --skip 0",
                counted_do(run.trimmed_undelivered, "packet", TRIMMED),
            ),
        );
        self.add(
            "not_positive",
            // The fastest packets may be taken to have no latency.
            if fit.corrects() { 0 } else { run.latencies.not_positive },
            format!(
                "{} of {} latencies {} negative: the taps' clocks disagree, or ingress and egress are swapped",
                grouped(run.latencies.not_positive),
                grouped(samples),
                if run.latencies.not_positive == 1 { "is" } else { "are" },
            ),
        );
    }

    /// Warns of mirror copies, and of what matching in order cannot see.
    fn add_in_order(&mut self, run: &Findings, options: &Options) {
        let (ingress, egress) = (&run.ingress, &run.egress);
        self.add(
            "mirror_copies",
            ingress.copy,
            format!(
                "{} of a mirror port, written down a second time: the first of each counts",
                counted_do(ingress.copy, "ingress packet", ["is a copy", "are copies"]),
            ),
        );
        if !options.in_order {
            return;
        }
        self.add(
            "unnumbered",
            run.unnumbered,
            format!(
                "{} not matched in their order, since there are too many different ones for --in-order",
                counted_do(run.unnumbered, "packet", ["is", "are"]),
            ),
        );
        let [no_stamp_in, no_stamp_out] = run.unstamped;
        let entered = ingress.packets - no_stamp_in - ingress.copy;
        let left = egress.packets - no_stamp_out;
        // A packet without a stamp has no place in the order: those behind it are taken for others.
        let apart = ingress.lost + ingress.beyond_window + ingress.cut + ingress.unstamped;
        let apart = apart + egress.unmatched + egress.cut + egress.unstamped;
        let shifted = entered != left || apart > 0;
        let text = if shifted {
            format!(
                "{} entered and {} left: matched in their order (--in-order), each packet behind a lost or unstamped one is \
                 taken for the next one, and its latency is wrong by the time between them",
                counted(entered, "packet"),
                grouped(left),
            )
        } else {
            "packets are matched in their order (--in-order): a change of their order is not seen, nor a loss that \
             another packet makes up for"
                .to_owned()
        };
        self.0.push(Warning { code: "in_order", count: entered, text, invalidates: shifted });
    }

    /// Warns of an egress capture that is empty, begins late or ends early: packets that it does not have are lost only if
    /// its tap recorded all the time.
    fn add_ends(&mut self, run: &Findings) {
        let Taps { ingress, egress } = &run.taps;
        if ingress.last_ns.is_none() {
            let stamped = if run.ingress.packets > 0 { " with a time stamp" } else { "" };
            let text = format!("the ingress capture has no packets{stamped}");
            self.add("ingress_empty", run.egress.packets, text);
        }
        if egress.last_ns.is_none() {
            self.add(
                "egress_empty",
                run.ingress.lost,
                format!(
                    "the egress capture has no packets{}: {} as lost, unless it ended before they entered",
                    if run.egress.packets > 0 { " with a time stamp" } else { "" },
                    all_do(run.ingress.lost, "ingress packet", ["counts", "count"]),
                ),
            );
        }
        let Some((entered_ns, left_ns)) = ingress.last_ns.zip(egress.last_ns) else { return };
        let late_ns = egress
            .first_ns
            .zip(ingress.first_ns)
            .map_or(0, |(left_ns, entered_ns)| left_ns.saturating_sub(entered_ns));
        if late_ns > TOGETHER_NS && egress.first_ns <= ingress.last_ns {
            self.add(
                "egress_began_late",
                run.ingress.cut,
                format!(
                    "the first egress packet left {:.1} s after the first ingress packet entered: packets that entered before \
                     it count as cut, but were lost if the egress tap recorded from the beginning",
                    late_ns as f64 / 1e9,
                ),
            );
        }
        let early_ns = entered_ns.saturating_sub(left_ns);
        if early_ns > TOGETHER_NS {
            let seconds = early_ns as f64 / 1e9;
            self.add(
                "egress_ended_early",
                run.ingress.cut,
                format!(
                    "the last egress packet left {seconds:.1} s before the last ingress packet entered: {} as cut, \
                     but {} lost if the egress tap recorded to the end",
                    counted_do(run.ingress.cut, "packet", ["counts", "count"]),
                    if run.ingress.cut == 1 { "was" } else { "were" },
                ),
            );
        }
    }

    /// Clocks that packets at a constant rate keep to: what happens at the other phases no interval shows.
    fn add_phases(&mut self, run: &Findings) {
        let gaps = Ranked::new(&run.ingress_gaps);
        let packets = gaps.count() + 1;
        // Not the time between the tap's ends: what is trimmed lies there, too.
        let run_ns: f64 =
            gaps.entries().iter().map(|&(gap_ns, count)| gap_ns as f64 * count as f64).sum();
        let interval_ns = run_ns / gaps.count().max(1) as f64;
        let apart_ns = gaps.iqr().unwrap_or(0) as f64;
        if run.latencies.histogram.count() < FEWEST_SAMPLES
            || interval_ns <= phases::REACH_NS as f64
            || apart_ns >= CONSTANT * interval_ns
        {
            return;
        }
        let looked_at = packets.min(phases::LOOKED_AT as u64);
        let missed: Vec<String> = phases::clocks(run_ns as u64)
            .filter_map(|hz| {
                let times = (0..looked_at).map(|n| (n as f64 * interval_ns) as u64);
                let share = phases::lacking(times, hz, phases::REACH_NS)?;
                Some(format!("{:.0} % of {hz} Hz", 100.0 * share))
            })
            .collect();
        let count = if missed.is_empty() { 0 } else { packets };
        self.add(
            "phases_not_met",
            count,
            format!(
                "packets every {} meet few phases of some clocks ({}): what the device does at the others, no \
             interval shows; send with schedule golden, or compare with another rate",
                times::text(interval_ns.round() as i64),
                missed.join(", "),
            ),
        );
    }

    /// Warns of stamps that are coarse, or taken in batches.
    fn add_stamps(&mut self, run: &Findings, fit: &ClockFit, latencies: &Ranked) {
        let Some(median_ns) = latencies.quantile(Probability::P50) else { return };
        let coarse = told::coarse(run.resolutions_ps(), median_ns, latencies.count());
        // By clocks that are apart, a packet may have any latency.
        if coarse.is_none() && !fit.corrects() && run.latencies.not_positive == 0 {
            let zero = latencies.entries().iter().find(|(ns, _)| *ns == 0);
            let count = zero.map_or(0, |(_, count)| *count);
            self.0.extend(told::without_latency(count, latencies.count()));
        }
        self.0.extend(coarse);
        let gaps = [&run.ingress_gaps, &run.egress_gaps].map(Ranked::new);
        let step_ns = (run.resolutions_ps().into_iter().max().unwrap_or(0) / 1_000).cast_signed();
        for (side, other) in [(0, 1), (1, 0)] {
            let found = stamps::batches(&gaps[side], &gaps[other], step_ns);
            self.0.extend(found.map(|found| told::batched(side, &found, latencies.count())));
        }
    }

    /// Warns of what the smallest latencies say about the clocks of the taps.
    fn add_clocks(&mut self, run: &Findings, latencies: &Ranked) {
        let Some(median_ns) = latencies.quantile(Probability::P50) else { return };
        if run.latencies.not_positive == latencies.count() {
            // The captures are swapped, or far apart: the smallest latencies are the largest ones.
            return;
        }
        let found = faults(&run.latencies.envelope, median_ns, &run.latencies.delay_variation);
        let Taps { ingress, .. } = &run.taps;
        self.0.extend(told::warnings(&found, ingress, run.ingress.packets, latencies.count()));
    }

    fn add_rounded(&mut self, run: &Findings) {
        let histograms = [
            &run.latencies.histogram,
            &run.latencies.delay_variation,
            &run.ingress_gaps,
            &run.egress_gaps,
        ];
        self.add(
            "rounded",
            histograms.into_iter().filter(|histogram| histogram.is_rounded()).count() as u64,
            "more than 4 million different values: those beyond 131 µs are rounded, within 0.0008 % of what they are"
                .to_owned(),
        );
    }

    /// Why nothing matched.
    fn add_without_samples(&mut self, run: &Findings) {
        let spanned = |tap: &Tap| tap.first_ns.zip(tap.last_ns);
        // Where nothing is stamped, there is no first and no last one.
        let (Some(entered), Some(left)) = (spanned(&run.taps.ingress), spanned(&run.taps.egress))
        else {
            return;
        };
        let overlap = entered.0 <= left.1 && left.0 <= entered.1;
        if run.latencies.histogram.is_empty() {
            let set_aside = run.latencies.trimmed + run.latencies.stalled;
            let text = if set_aside > 0 {
                "all packets that were found in the egress capture left within the trim, or while the generator stalled: measure \
                 longer, or use a shorter trim (--skip 0)"
            } else if run.ingress.beyond_window > 0 {
                "all packets that were found in the egress capture left later than the window: use a longer one (--window)"
            } else if overlap {
                "no packet of the ingress capture was found in the egress capture: does the device under test rewrite more than \
                 MAC addresses, VLAN tags, TTL and checksums (--mask), or is the signature wrong (--signature)?"
            } else {
                "the captures do not overlap in time, so nothing can match: are their clocks synchronised?"
            };
            self.add("no_samples", run.ingress.packets, text.to_owned());
        }
    }
}
