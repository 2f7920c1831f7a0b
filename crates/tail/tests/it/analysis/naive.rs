//! Expected results of an analysis of a made world, by definition.

use super::LONG;
use super::worlds::World;
use crate::support::SECOND_NS;
use std::collections::BTreeMap;
use tailtrim_stats::Histogram;
use tailtrim_tail::analysis::{Options, Second};
use tailtrim_tail::summary;

/// Expected results of an analysis.
#[derive(Debug, Default)]
pub(super) struct Naive {
    pub(super) ingress: summary::Ingress,
    pub(super) egress: summary::Egress,
    pub(super) samples: Vec<(i64, i64)>,
    pub(super) ingress_gaps: Histogram,
    pub(super) egress_gaps: Histogram,
    pub(super) seconds: Vec<Second>,
    pub(super) trimmed_lost: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Never,
    Matched,
    Twice,
    Beyond,
}

/// Fates of all packets, in the order of the egress capture.
#[derive(Debug, Default)]
struct Fates {
    pairs: Vec<(i64, i64)>,
    unmatched: Vec<i64>,
    copies: Vec<i64>,
    left: BTreeMap<u32, Left>,
}

fn fates(world: &World, window_ns: i64) -> Fates {
    let Fates { mut pairs, mut unmatched, mut copies, mut left } = Fates::default();
    for &(egress_ns, id) in &world.egress {
        let entered: Vec<i64> = world.ingress.iter().filter(|p| p.1 == id).map(|p| p.0).collect();
        match entered[..] {
            [ingress_ns] if egress_ns - ingress_ns >= 2 * window_ns => unmatched.push(egress_ns),
            [ingress_ns] if egress_ns - ingress_ns >= window_ns => {
                match left.insert(id, Left::Beyond) {
                    // A copy that comes after the window.
                    Some(matched) => {
                        left.insert(id, matched);
                    }
                    None => {}
                }
                unmatched.push(egress_ns);
            }
            [ingress_ns] if left.insert(id, Left::Matched).is_none() => {
                pairs.push((ingress_ns, egress_ns));
            }
            [_] => copies.push(egress_ns),
            // The second one of two may be the first that the capture holds.
            [_, _] => unmatched.push(egress_ns),
            _ => unmatched.push(egress_ns),
        }
        if entered.len() == 2 {
            left.insert(id, Left::Twice);
        }
    }
    Fates { pairs, unmatched, copies, left }
}

pub(super) fn naive(world: &World, options: &Options) -> Naive {
    let mut naive = Naive::default();
    let fates = fates(world, options.window.window_ns);
    let first_match = fates.pairs.iter().map(|pair| pair.1).min();
    let trimmed_until_ns = match first_match {
        Some(first_ns) if options.trim_ns > 0 => first_ns + options.trim_ns,
        _ => i64::MIN,
    };
    let (ingress, egress) = (&mut naive.ingress, &mut naive.egress);
    ingress.packets = world.ingress.len() as u64;
    egress.packets = world.egress.len() as u64;
    for &(ingress_ns, egress_ns) in &fates.pairs {
        if egress_ns <= trimmed_until_ns {
            ingress.trimmed += 1;
            egress.trimmed += 1;
        } else {
            ingress.matched += 1;
            egress.matched += 1;
            naive.samples.push((ingress_ns, egress_ns));
        }
    }
    let longest_ns = fates.pairs.iter().map(|(i, e)| e - i).max().unwrap_or(0).max(0);
    let lost = count_ingress(&mut naive, world, &fates, options, (longest_ns, trimmed_until_ns));
    count_egress(&mut naive, world, &fates, (longest_ns, trimmed_until_ns));
    let gaps = |packets: &[(i64, u32)]| {
        let pairs = packets.windows(2).filter(|pair| pair[0].0 > trimmed_until_ns);
        Histogram::from_pairs(pairs.map(|pair| (pair[1].0 - pair[0].0, 1)))
    };
    naive.ingress_gaps = gaps(&world.ingress);
    naive.egress_gaps = gaps(&world.egress);
    naive.seconds = seconds(world, &lost, &naive.samples);
    naive
}

/// Counts what entered and is in no pair, and returns the stamps of lost packets.
fn count_ingress(
    naive: &mut Naive,
    world: &World,
    fates: &Fates,
    options: &Options,
    (longest_ns, trimmed_until_ns): (i64, i64),
) -> Vec<i64> {
    let ingress = &mut naive.ingress;
    let last_out = world.egress.last().map_or(i64::MIN, |packet| packet.0);
    let mut lost = Vec::new();
    for &(stamp_ns, id) in &world.ingress {
        let twice = world.ingress.iter().filter(|packet| packet.1 == id).count() == 2;
        let fate = if twice { Left::Twice } else { *fates.left.get(&id).unwrap_or(&Left::Never) };
        let trimmed = stamp_ns <= trimmed_until_ns;
        let could_have_left = last_out.saturating_sub(stamp_ns);
        // Nothing says when an empty egress capture ended: it counts as one that recorded to the end.
        let certain = options.watched_to_the_end
            || world.egress.is_empty()
            || could_have_left >= options.window.window_ns
            || could_have_left > longest_ns;
        if fate == Left::Never && certain {
            lost.push(stamp_ns);
        }
        let undelivered = fate == Left::Beyond || fate == Left::Never && certain;
        naive.trimmed_lost += u64::from(trimmed && undelivered);
        match fate {
            Left::Matched => {}
            _ if trimmed => ingress.trimmed += 1,
            Left::Twice => ingress.duplicate += 1,
            Left::Beyond => ingress.beyond_window += 1,
            Left::Never if certain => ingress.lost += 1,
            Left::Never => ingress.cut += 1,
        }
    }
    lost
}

/// Counts what left and is in no pair.
fn count_egress(
    naive: &mut Naive,
    world: &World,
    fates: &Fates,
    (longest_ns, trimmed_until_ns): (i64, i64),
) {
    let egress = &mut naive.egress;
    let first_in = world.ingress.first().map(|packet| packet.0);
    for &stamp_ns in &fates.unmatched {
        if stamp_ns <= trimmed_until_ns {
            egress.trimmed += 1;
        } else if first_in.is_none_or(|first_ns| stamp_ns - first_ns <= longest_ns) {
            egress.cut += 1;
        } else {
            egress.unmatched += 1;
        }
    }
    for &stamp_ns in &fates.copies {
        *(if stamp_ns <= trimmed_until_ns { &mut egress.trimmed } else { &mut egress.copy }) += 1;
    }
}

fn seconds(world: &World, lost: &[i64], samples: &[(i64, i64)]) -> Vec<Second> {
    let origin_ns = world.ingress.first().or(world.egress.first()).map_or(0, |packet| packet.0);
    let mut seconds: BTreeMap<i64, Second> = BTreeMap::new();
    let length = LONG as u64;
    let mut at = |stamp_ns: i64, change: &dyn Fn(&mut Second)| {
        let second = (stamp_ns - origin_ns).div_euclid(SECOND_NS);
        change(seconds.entry(second).or_insert(Second { second, ..Second::default() }));
    };
    for &(stamp_ns, _) in &world.ingress {
        at(stamp_ns, &|row| {
            row.ingress_packets += 1;
            row.ingress_bytes += length;
        });
    }
    for &(stamp_ns, _) in &world.egress {
        at(stamp_ns, &|row| {
            row.egress_packets += 1;
            row.egress_bytes += length;
        });
    }
    for &stamp_ns in lost {
        at(stamp_ns, &|row| row.lost += 1);
    }
    for &(ingress_ns, egress_ns) in samples {
        at(ingress_ns, &|row| {
            row.samples += 1;
            row.max_latency_ns = row.max_latency_ns.max(Some(egress_ns - ingress_ns));
        });
    }
    seconds.into_values().collect()
}
