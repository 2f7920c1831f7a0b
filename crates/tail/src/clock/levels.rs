//! Levels of the time between the stamps of both sides, more apart than packets take.

use super::correction::{ClockFit, CorrectionPiece};
use super::envelope::Bin;
use super::faults::{Line, lines};
use super::sampled::{Joined, SampledSide, SetBack, join};
use super::words::{known, moment, size};
use crate::directions::Direction;
use crate::matching::Window;
use crate::summary::{Warning, grouped};

/// Levels are further apart than this: clocks that are closer can be matched.
const APART_NS: i64 = 500_000_000;

/// So many packets one after the other make a level: fewer may be other packets of the same bytes.
const LEVEL: usize = 4;

/// Packets that tell how long the fastest ones take.
const FIRST: usize = 64;

/// Stamps that are further back than this are of a clock that was set: packets of a capture are not so far out of order.
pub(crate) const BACK_NS: i64 = 500_000;

/// So many packets before and after a jump are on their side of it if a clock was set: in random order, all of them are
/// about once in a million packets.
const SET: usize = 16;

/// A clock that is set by this or more is not mistaken for packets that wait.
const SET_NS: i64 = 50_000_000;

/// Fewest packets apart that are told.
const FEWEST: u64 = 10;

/// From one packet on, in the order of the egress capture, the clocks are so far apart.
#[derive(Debug, Clone, Copy)]
struct Level {
    from: usize,
    ns: i64,
}

/// Packets with which a clock is set back, and by how much they are further apart than the one before: they entered and
/// left behind it, with an earlier stamp at one of the taps only. Stamps of a tap that writes packets in another order than
/// that in which they passed go back as well, but the packets around them have stamps on both sides of the jump.
fn set_backs(joined: &[Joined]) -> impl Iterator<Item = (usize, i64)> {
    joined.windows(2).enumerate().filter_map(|(index, pair)| {
        let [before, after] = [pair[0], pair[1]];
        let since = |of: fn(&Joined) -> i64| of(&after).saturating_sub(of(&before));
        let (entered_ns, left_ns) = (since(entered), since(left));
        let [set, other]: [fn(&Joined) -> i64; 2] =
            if left_ns < entered_ns { [left, entered] } else { [entered, left] };
        let is_set = entered_ns.min(left_ns) <= -BACK_NS && entered_ns.max(left_ns) >= 0;
        let is_behind = before.entered.0 < after.entered.0;
        let lasts = || {
            let near_ns = since(set).saturating_abs() / 2;
            let is_near = |from: i64| {
                move |one: &&Joined| other(one).saturating_sub(from).saturating_abs() < near_ns
            };
            let earlier = joined[..=index].iter().rev().take_while(is_near(other(&before)));
            let later = joined[index + 1..].iter().take_while(is_near(other(&after)));
            holds(earlier, |one| set(one) > set(&after))
                && holds(later, |one| set(one) < set(&before))
        };
        let add_ns = left_ns.saturating_sub(entered_ns);
        (is_set && is_behind && lasts()).then_some((index + 1, add_ns))
    })
}

/// Whether there are enough packets, and the first of them all are so.
fn holds<'a>(packets: impl Iterator<Item = &'a Joined>, is_so: impl Fn(&Joined) -> bool) -> bool {
    let mut count = 0;
    packets.take(SET).all(|packet| {
        count += 1;
        is_so(packet)
    }) && count == SET
}

fn entered(packet: &Joined) -> i64 {
    packet.entered.1
}

fn left(packet: &Joined) -> i64 {
    packet.left.1
}

fn levels(joined: &[Joined]) -> Vec<Level> {
    // A clock that was set back was set forward before, or is going to be.
    let set_ns =
        set_backs(joined).map(|(_, ns)| ns.saturating_abs()).filter(|ns| *ns >= SET_NS).max();
    let apart_ns = set_ns.map_or(APART_NS, |ns| APART_NS.min(ns / 2));
    let mut ranked: Vec<u64> = joined.iter().map(|packet| packet.entered.0).collect();
    ranked.sort_unstable();
    // A clock is set for all packets: they entered one after the other. Packets that a device holds are among others.
    let in_a_row = |next: &[Joined]| {
        let numbers = || next.iter().map(|packet| packet.entered.0);
        let rank = |number: u64| ranked.partition_point(|other| *other < number);
        let ends = numbers().min().zip(numbers().max());
        ends.is_none_or(|(first, last)| rank(last) - rank(first) <= LEVEL * LEVEL)
    };
    let mut levels: Vec<Level> = Vec::new();
    for from in 0..joined.len() {
        // A queue gets longer by and by.
        let before = from.checked_sub(1).map_or(i64::MAX, |before| joined[before].apart_ns());
        if joined[from].apart_ns().saturating_sub(before).saturating_abs() < apart_ns {
            continue;
        }
        let next = &joined[from..joined.len().min(from + LEVEL)];
        let is_off = |packet: &Joined| {
            let level = levels.last().map_or(i64::MAX, |level| level.ns);
            packet.apart_ns().saturating_sub(level).saturating_abs() >= apart_ns
        };
        let is_level = levels.is_empty() || next.len() == LEVEL && in_a_row(next);
        if is_level && next.iter().all(is_off) {
            let first = joined[from..joined.len().min(from + FIRST)].iter();
            let near = first.map(Joined::apart_ns).filter(|ns| {
                ns.saturating_sub(joined[from].apart_ns()).saturating_abs() < apart_ns
            });
            levels.push(Level { from, ns: near.min().unwrap_or(0) });
        }
    }
    levels
}

/// Warnings of packets that both captures have, but too far apart to be matched.
#[must_use]
pub fn apart(ingress: &SampledSide, egress: &SampledSide, window: Window) -> Vec<Warning> {
    let (mut joined, each) = join(ingress, egress);
    joined.retain(|packet| packet.marks == [Direction::Forward; 2]);
    let levels = levels(&joined);
    let ends = levels.iter().skip(1).map(|level| level.from).chain([joined.len()]);
    let [matched_ns, beyond_ns, _] = window.bounds_ns();
    let mut warnings = Vec::new();
    for (index, (level, end)) in levels.iter().zip(ends).enumerate() {
        let before = index.checked_sub(1).map(|index| levels[index]);
        let packets = joined[level.from..end].iter().map(Joined::apart_ns);
        let is_apart = |ns: &i64| {
            let near = ns.saturating_sub(level.ns).saturating_abs() < APART_NS;
            near && !(matched_ns..beyond_ns).contains(ns)
        };
        let apart = packets.filter(is_apart).count() as u64 * each;
        if apart < FEWEST && before.is_none() {
            continue;
        }
        let about = if each > 1 { "about " } else { "" };
        let (code, what) = match before {
            None => ("clock_offset", offset(level.ns, &joined)),
            Some(before) => {
                let step_ns = level.ns.saturating_sub(before.ns);
                ("clock_step", stepped(&joined, level.from, step_ns))
            }
        };
        let lost = if apart > 0 {
            format!(": {about}{} packets are not lost but {} apart", grouped(apart), size(level.ns))
        } else {
            String::new()
        };
        let text = format!("{what}{lost}; --clock-fit matches them");
        warnings.push(Warning { code, count: apart.max(1), text, invalidates: true });
    }
    if warnings.iter().all(|warning| warning.count < FEWEST) {
        warnings.clear();
    }
    warnings.extend(set_backs(&joined).next().map(|(at, ns)| {
        let text = format!(
            "{}: latencies before or after it are wrong by as much; --clock-fit takes it out",
            stepped(&joined, at, ns),
        );
        Warning { code: "clock_step", count: 1, text, invalidates: true }
    }));
    warnings
}

fn offset(ns: i64, joined: &[Joined]) -> String {
    let ahead = if ns > 0 { "ahead of" } else { "behind" };
    let (by, known) = (size(ns), known(ns));
    let runs = match known {
        // The same traffic in another run has the same packets.
        "" if !overlap(joined) => {
            ", or the captures, which do not overlap in time, are of two runs"
        }
        "" if ns > 0 => ", or packets take so long (--window), or the captures are of two runs",
        "" => ", or the captures are of two runs",
        _ => "",
    };
    format!("the egress clock is {by} {ahead} the ingress clock{known}{runs}")
}

/// Whether some packets left, by the clock of their tap, while others entered.
fn overlap(joined: &[Joined]) -> bool {
    let ends = |stamps: &dyn Fn(&Joined) -> i64| {
        let stamps = || joined.iter().map(stamps);
        (stamps().min(), stamps().max())
    };
    let (entered, left) = (ends(&|packet| packet.entered.1), ends(&|packet| packet.left.1));
    entered.0 <= left.1 && left.0 <= entered.1
}

/// The clock that was set, the one whose stamps go back, or else are further apart than those of the other, and when by
/// the other.
fn stepped(joined: &[Joined], at: usize, step_ns: i64) -> String {
    let (before, after) = (joined[at - 1], joined[at]);
    let left_ns = after.left.1.saturating_sub(before.left.1);
    let entered_ns = after.entered.1.saturating_sub(before.entered.1);
    let [first, at] = [&joined[0], &after];
    let of_egress = if (left_ns < 0) == (entered_ns < 0) {
        left_ns.saturating_abs() >= entered_ns.saturating_abs()
    } else {
        left_ns < 0
    };
    let (side, packet, ns, at) = if of_egress {
        ("egress", after.left.0, step_ns, moment(at.entered.1, first.entered.1))
    } else {
        ("ingress", after.entered.0, step_ns.saturating_neg(), moment(at.left.1, first.left.1))
    };
    let forward = if ns > 0 { "forward" } else { "back" };
    let (by, packet) = (size(ns), grouped(packet));
    format!("the {side} clock is set {forward} by {by}{} at {at} (its packet {packet})", known(ns))
}

/// Correction of the clocks so that the fastest packets take equally long all the time, and in both directions if there
/// are two: to those that come back a clock that is ahead does the opposite.
#[must_use]
pub fn clock_fit(ingress: &SampledSide, egress: &SampledSide) -> ClockFit {
    let (mut joined, _) = join(ingress, egress);
    joined.retain(|packet| packet.marks[0] == packet.marks[1]);
    let forward = |packet: &Joined| packet.marks[0] == Direction::Forward;
    // Lines are drawn below those of which there are more.
    let fitted = joined.iter().filter(|packet| forward(packet)).count() * 2 >= joined.len();
    let sign = if fitted { 1 } else { -1 };
    let levels = levels(&joined);
    let set_back = |side: &SampledSide| side.set_back.iter().map(piece).collect::<Vec<_>>();
    let Some(first) = levels.first().copied() else {
        let (ingress, egress) = (set_back(ingress), set_back(egress));
        return ClockFit { ingress, egress, ..ClockFit::default() };
    };
    let level_at = |index: usize| {
        let begun = levels.partition_point(|level| level.from <= index);
        levels[begun - 1].ns.saturating_sub(first.ns)
    };
    // Lines are drawn in floating-point numbers, which tell no ns of years.
    let base_ns = first.ns.saturating_mul(sign);
    // Time as the egress clock has it, without what it was set by.
    let (mut last_ns, mut ahead_ns) = (i64::MIN, 0_i64);
    let bin = |(index, packet): (usize, &Joined)| {
        let apart_ns = packet.apart_ns().saturating_sub(level_at(index));
        let least_ns = apart_ns.saturating_mul(sign).saturating_sub(base_ns);
        let mut at_ns = packet.left.1.saturating_sub(level_at(index)).saturating_add(ahead_ns);
        let back_ns = last_ns.saturating_sub(at_ns);
        if last_ns != i64::MIN && back_ns >= BACK_NS {
            (ahead_ns, at_ns) = (ahead_ns + back_ns, last_ns);
        }
        last_ns = last_ns.saturating_add(1).max(at_ns);
        Bin { least_ns, at_ns: last_ns, most_ns: least_ns, count: 1 }
    };
    let bins: Vec<Bin> = joined.iter().enumerate().map(bin).collect();
    let indices: Vec<usize> =
        (0..joined.len()).filter(|&index| forward(&joined[index]) == fitted).collect();
    let (pieces, above_ns) = drawn(&bins, &indices);
    let line = |index: usize| {
        let line = pieces.iter().rev().find(|piece| piece.from <= index).unwrap_or(&pieces[0]);
        (line.at(bins[index].at_ns), line.slope)
    };
    let below = |index: usize| line(index).0.saturating_sub(bins[index].least_ns);
    let bound_ns = indices.iter().map(|&index| below(index)).fold(above_ns, i64::max);
    let others = (0..joined.len()).filter(|&index| forward(&joined[index]) != fitted);
    let both_ns = others.map(below).min();
    // Where packets of both directions can take so long, nothing tells how the clocks are apart. The level is that of the first
    // packet: the first line begins at the smallest of some latencies.
    let kept_ns = line(0).0.saturating_add(base_ns);
    let level_kept = (0..both_ns.unwrap_or(APART_NS)).contains(&kept_ns);
    let fastest_ns = both_ns.filter(|_| !level_kept).map(|ns| ns.max(0) / 2);
    let goal_ns = if level_kept { kept_ns } else { fastest_ns.unwrap_or(0) };
    let mut begins: Vec<(u64, usize)> = levels
        .iter()
        .map(|level| level.from)
        .chain(pieces.iter().map(|piece| piece.from))
        .map(|index| (if index == 0 { 1 } else { joined[index].left.0 }, index))
        .collect();
    begins.extend(
        egress.set_back.iter().map(|back| {
            (back.packet, joined.partition_point(|packet| packet.left.0 < back.packet))
        }),
    );
    begins.sort_unstable();
    begins.dedup_by_key(|begin| begin.0);
    let corrections = begins.into_iter().filter(|(_, index)| *index < joined.len());
    let corrections = corrections.map(|(packet, index)| {
        let (line_ns, slope) = line(index);
        let add_ns = egress.set_back.iter().rev().find(|back| back.packet <= packet);
        let add_ns = add_ns.map_or(0, |back| back.add_ns);
        let Joined { left, .. } = joined[index];
        CorrectionPiece {
            packet,
            from_ns: left.1.saturating_sub(add_ns),
            offset_ns: level_at(index).saturating_sub(add_ns).saturating_add(
                base_ns.saturating_add(line_ns).saturating_sub(goal_ns).saturating_mul(sign),
            ),
            rate_ppt: (slope * 1e12) as i64 * sign,
        }
    });
    let corrections = corrections.skip_while(|piece| piece.offset_ns == 0 && piece.rate_ppt == 0);
    let (ingress, egress) = (set_back(ingress), corrections.collect());
    ClockFit { ingress, egress, bound_ns, level_kept, fastest_ns }
}

/// Lines below some of the bins, each from the packet on that it is closer to than the line before.
fn drawn(bins: &[Bin], below: &[usize]) -> (Vec<Line>, i64) {
    let (mut pieces, bound_ns) = lines(&below.iter().map(|&index| bins[index]).collect::<Vec<_>>());
    let off = |piece: &Line, bin: &Bin| bin.least_ns.abs_diff(piece.at(bin.at_ns));
    let mut before: Option<Line> = None;
    for piece in &mut pieces {
        let after = *piece;
        piece.from = below[after.from];
        if let Some(before) = before.replace(after) {
            // Those of the other direction may tell that a clock was set before.
            let between = &bins[below[after.from - 1] + 1..piece.from];
            let set = between.iter().rev().take_while(|bin| off(&after, bin) < off(&before, bin));
            piece.from -= set.count();
        }
    }
    (pieces, bound_ns)
}

fn piece(back: &SetBack) -> CorrectionPiece {
    let SetBack { packet, stamp_ns: from_ns, add_ns } = *back;
    CorrectionPiece { packet, from_ns, offset_ns: add_ns.saturating_neg(), rate_ppt: 0 }
}
