//! Ingress packets of one signature: identical frames, or frames that differ in bytes that are not signed.

use super::maskings::{Candidate, in_order};
use super::pairing::signatures;
use super::{Frame, Sides, by_order};
use crate::analysis::Options;
use crate::signature::{Rewrites, SIGNED_BYTES, Selection, Signature, Signer};
use crate::summary::{Summary, Warning, grouped};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Most bytes by which frames of one length are told apart, and most ranges of a signature that is offered.
const MOST_BYTES: usize = 16;
const RANGES: usize = 4;

/// Says why frames are duplicates, or may become some.
pub(super) fn warning(
    first: &[Vec<Frame>; 2],
    signer: &Signer,
    options: &Options,
    summary: &Summary,
) -> Option<Warning> {
    let entered = &first[0];
    let mut groups: HashMap<Signature, Vec<&Frame>> = HashMap::new();
    for (frame, signature) in entered.iter().zip(signatures(entered, signer)) {
        groups.entry(signature).or_default().push(frame);
    }
    // A few that repeat are an accident of the traffic, copies of a mirror port are known.
    if groups.len() * 2 > entered.len() || summary.ingress.copy > 0 || options.in_order {
        return None;
    }
    if options.selection.is_some() {
        let usual = Signer::new(Rewrites::default()).limited_to(signer.limit());
        let tells = tells_apart(first, &usual);
        return tells.then(|| {
            unsigned(summary, "the default signature tells them apart (without --signature)")
        });
    }
    if !options.rewrites.tunnel {
        let rewrites = Rewrites { tunnel: true, ..options.rewrites };
        if tells_apart(first, &Signer::new(rewrites).limited_to(signer.limit())) {
            return Some(unsigned(summary, "--mask tunnel tells them apart"));
        }
    }
    let ranges = ranges(groups.values().map(|group| differing(group)));
    if ranges.is_empty() {
        let alike = Alike { different: groups.len(), count: entered.len(), limit: signer.limit() };
        return Some(alike.warning(masked(first, signer, options, summary), summary));
    }
    let selection = Selection::of(ranges);
    let remedy = if tells_apart(first, &Signer::of_selection(selection.clone())) {
        format!("--signature {selection} tells them apart")
    } else {
        format!(
            "the bytes {selection} of ingress frames tell them apart, but egress frames do not have them at the same place, as \
             behind a VLAN tag (editcap -L -C 12:4 IN OUT takes one off) or another header"
        )
    };
    Some(unsigned(summary, &remedy))
}

/// Ranges in which the frames of each group differ, given the places: a number, or some bytes of a payload. Frames of other
/// lengths may have them elsewhere.
fn ranges(groups: impl Iterator<Item = Vec<usize>>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = groups
        .filter_map(|places| {
            let (from, to) = (*places.first()?, *places.last()?);
            Some(from..to.min(from + MOST_BYTES - 1) + 1)
        })
        .collect();
    found.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in found {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged.truncate(RANGES);
    merged
}

/// Whether nearly all frames that enter have a signature of their own, and nearly all that leave have one of these.
fn tells_apart(first: &[Vec<Frame>; 2], signer: &Signer) -> bool {
    let [entered, left] = first;
    let known: HashSet<Signature> = signatures(entered, signer).collect();
    let common = signatures(left, signer).filter(|signature| known.contains(signature)).count();
    known.len() * 100 >= entered.len() * 99 && common > 0 && common * 10 >= left.len() * 9
}

fn unsigned(summary: &Summary, remedy: &str) -> Warning {
    let duplicates = summary.ingress.duplicate;
    if duplicates == 0 {
        let text = format!(
            "frames differ from others only in bytes that are not signed, so that one that left counts as the last that \
             entered: {remedy}"
        );
        let count = summary.ingress.packets;
        return Warning { code: "unsigned", count, text, invalidates: false };
    }
    let text = format!(
        "{} ingress packets are duplicates that differ only in bytes that are not signed: {remedy}",
        grouped(duplicates),
    );
    super::warning("unsigned", duplicates as usize, text)
}

/// Frames that no bytes tell apart.
struct Alike {
    /// Different ones among the first.
    different: usize,
    count: usize,
    /// Bytes that are signed at most.
    limit: usize,
}

impl Alike {
    /// Says so. As long as each leaves before the next one enters, they are matched all the same, unless they leave `masked`.
    fn warning(&self, masked: Option<Candidate>, summary: &Summary) -> Warning {
        let remedy = masked.as_ref().map_or_else(
            || {
                "--in-order matches the n-th that leaves with the n-th that entered, which sees neither a loss nor a change of \
                 the order"
                    .to_owned()
            },
            |masked| format!("those of both sides {}: {}", masked.agreement, by_order(&masked.typed)),
        );
        let left = left(self.limit);
        let duplicates = summary.ingress.duplicate;
        if duplicates > 0 {
            let text = format!(
                "{} ingress packets are identical to others in flight{left}, so that no bytes can identify them; {remedy}",
                grouped(duplicates),
            );
            return super::warning("identical", duplicates as usize, text);
        }
        let text = format!(
            "frames are identical to others ({} among the first {} differ){left}, so that no bytes can identify them: one that \
             left counts as the last that entered; {remedy}",
            grouped(self.different as u64),
            grouped(self.count as u64),
        );
        let count = self.count as u64;
        Warning { code: "identical", count, text, invalidates: masked.is_some() }
    }
}

/// The masking without which frames that are alike on each side are not alike on both, as behind NAT.
fn masked(
    [entered, left]: &[Vec<Frame>; 2],
    signer: &Signer,
    options: &Options,
    summary: &Summary,
) -> Option<Candidate> {
    let sides = Sides { lost: entered, unmatched: left };
    let fewer = entered.len().min(left.len());
    let nearly_all = |count: usize| count > 0 && count * 10 >= fewer * 9;
    let found = in_order(sides, options).filter(|(count, _)| nearly_all(*count));
    let found = found.map(|(_, candidate)| candidate);
    found.filter(|_| summary.samples == 0 && !nearly_all(sides.common(signer)))
}

/// Says that more of the frames might tell them apart.
fn left(limit: usize) -> String {
    if limit >= SIGNED_BYTES {
        return String::new();
    }
    format!(
        " in the {limit} bytes behind the L2 header that the captures have of each (with a larger snap length, tcpdump -s 0, \
         more bytes may differ)"
    )
}

/// Places behind the L2 header at which frames of one signature differ, but for what routers rewrite.
fn differing(group: &[&Frame]) -> Vec<usize> {
    let Some(&one) = group.first() else { return Vec::new() };
    let (start, layers) = one.packet().map_or((0, None), |(start, layers)| (start, Some(layers)));
    let end = layers.map_or(usize::MAX, |layers| layers.end.saturating_add(start));
    let from = start + SIGNED_BYTES;
    (from..one.head.len().min(end))
        .filter(|&at| group.iter().any(|frame| frame.head.get(at) != one.head.get(at)))
        .collect()
}
