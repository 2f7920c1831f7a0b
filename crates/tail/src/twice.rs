//! Packets that captures have twice: on both sides of the device in one capture, or in two VLANs.
//!
//! A port that mirrors both ports of a device writes each packet down as it enters and as it leaves. The first one is matched,
//! whose latency is that of the mirror port. Which of them left the device shows in two things:
//!
//! * A router takes one off the TTL, and changes MAC addresses. A frame that looks as it entered has not left.
//! * The time that a mirror port takes varies little, that of the device more. So the variation lies before the first frame if
//!   this one left the device, and between both if it has not.
//!
//! VLANs that carry the same packets, such as probes of two tenants, are on both sides with the same tags.

use crate::analysis::{FEWEST_COPIES, MOST_COPIES, Options, SHARE};
use crate::clock::words::signed;
use crate::clock::{All, SampledSide, join_all};
use crate::signature::Rewrites;
use crate::summary::{Summary, Warning, grouped};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use tailtrim_wire::flow::Flow;
use tailtrim_wire::frame::{Link, layers};

/// One place varies more than another if its mean deviation is so many times larger: that of 32 values, the fewest here, is
/// known within a third where they are exponential.
const CLEARLY: i64 = 4;

/// Addresses and ports of this many frames that entered tell them from those that left.
pub const MOST_LOOKS: usize = 1 << 20;

/// Place of a VLAN tag, and no tag.
const TAGS: [usize; 2] = [14, 18];
const UNTAGGED: u16 = u16::MAX;

/// Fields of a frame that tell how far on its way it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Look {
    macs: [u8; 12],
    /// VLANs, the outermost first.
    tags: [u16; 2],
    ttl: u8,
    /// Hash of the addresses.
    addresses: u64,
}

impl Look {
    /// Mark of a frame.
    #[must_use]
    pub fn of(link: Link, frame: &[u8]) -> Self {
        let is_ethernet = link == Link::Ethernet;
        let macs = frame.first_chunk().filter(|_| is_ethernet).copied().unwrap_or_default();
        let (ethertype, start) = link.payload(frame).unwrap_or((0, frame.len()));
        let tag = |place: usize| {
            let tag = frame.get(place..place + 2).filter(|_| is_ethernet && place + 4 <= start)?;
            Some(u16::from_be_bytes([tag[0], tag[1]]) & 0x0fff)
        };
        let tags = TAGS.map(|place| tag(place).unwrap_or(UNTAGGED));
        let packet = frame.get(start..).unwrap_or_default();
        let innermost = layers(ethertype, packet);
        let ttl = innermost.and_then(|layers| packet.get(if layers.v6 { 7 } else { 8 }));
        let flow = innermost.and_then(|layers| Flow::of_packet(&layers, packet));
        let addresses = hash(flow.map(|flow| (flow.source, flow.destination)));
        Self { macs, tags, ttl: ttl.copied().unwrap_or(0), addresses }
    }

    /// The TTL alone.
    #[must_use]
    pub fn of_ttl(self) -> Self {
        Self { ttl: self.ttl, ..Self::of(Link::RawIp, &[]) }
    }

    /// Number of its tags.
    #[must_use]
    pub fn vlans(&self) -> u64 {
        hash(self.tags)
    }

    /// Hash that frames have in common which are equally far, by tags or whatever these are.
    #[must_use]
    pub fn key(&self, by_tags: bool) -> u64 {
        hash((self.macs, self.ttl, self.addresses, by_tags.then_some(self.tags)))
    }

    /// Whether a router or a translator had it after it looked so.
    fn is_forwarded(&self, before: &Self) -> bool {
        self.ttl < before.ttl || self.macs != before.macs || self.addresses != before.addresses
    }
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Explanation of packets that are there twice.
#[derive(Debug, Clone, PartialEq)]
pub enum Twice {
    /// Egress frames that look as some that entered have not left the device.
    BothSides {
        /// Whether tags tell them apart.
        by_tags: bool,
        /// Later ingress frames of the same packets come within this.
        within_ns: i64,
        /// From ingress to the first egress frame, and to the last one.
        medians_ns: [i64; 2],
    },
    /// VLANs carry the same frames.
    Vlans(Vec<u16>),
    /// Nothing tells which of them left the device.
    Unknown(String),
}

/// Whether so many packets of all may be there twice, to be looked at.
fn are_many(count: u64, of: u64) -> bool {
    count >= FEWEST_COPIES as u64 && count * SHARE as u64 >= of
}

/// Whether captures of this result may have packets twice.
#[must_use]
pub fn is_likely(summary: &Summary, options: &Options) -> bool {
    let Summary { ingress, egress, .. } = summary;
    !options.in_order && are_many(egress.copy + ingress.duplicate, ingress.matched)
}

/// Maskings by which packets of this result that did not enter may be others that did.
#[must_use]
pub fn maskings(
    summary: &Summary,
    options: &Options,
) -> Vec<(Rewrites, &'static str, &'static str)> {
    let Summary { ingress, egress, .. } = summary;
    let hidden = are_many(egress.unmatched, egress.matched) && egress.unmatched > 4 * ingress.lost;
    if !hidden || options.in_order || options.selection.is_some() {
        return Vec::new();
    }
    let now = options.rewrites;
    let all = [
        (Rewrites { nat: true, ..now }, "addresses and ports", "--mask nat"),
        (Rewrites { tos: true, ..now }, "ToS (DSCP and ECN)", "--mask tos"),
        (Rewrites { tunnel: true, ..now }, "a tunnel", "--mask tunnel"),
        (
            Rewrites { nat: true, tos: true, ..now },
            "addresses, ports and ToS",
            "--mask nat --mask tos",
        ),
    ];
    all.into_iter().filter(|(rewrites, ..)| *rewrites != now).collect()
}

/// A packet that left twice.
struct Packet {
    entered: Vec<(i64, Look)>,
    left: Vec<(i64, Look)>,
}

impl Packet {
    fn first(&self) -> (i64, Look) {
        self.entered[0]
    }

    /// The first and the last egress frame.
    fn ends(&self) -> [(i64, Look); 2] {
        [self.left[0], self.left[self.left.len() - 1]]
    }

    /// From ingress to these.
    fn latencies_ns(&self) -> [i64; 2] {
        self.ends().map(|end| end.0.saturating_sub(self.first().0))
    }
}

impl Twice {
    /// Explains packets that are twice at egress; `None` where not many are, or where the first of each is the right one.
    #[must_use]
    pub fn of(
        ingress: &SampledSide<Look>,
        egress: &SampledSide<Look>,
        options: &Options,
    ) -> Option<Self> {
        let all = join_all(ingress, egress);
        let count = all.len();
        let few = |packets: &Vec<_>| packets.len() <= MOST_COPIES;
        let is_twice = |all: &All<Look>| all.iter().all(few) && all[1].len() > 1;
        let packets = all.into_iter().filter(is_twice);
        let packets = packets.map(|[entered, left]| Packet { entered, left });
        let packets: Vec<Packet> = packets
            .filter(|packet| packet.latencies_ns().iter().all(|ns| options.window.matches(*ns)))
            .collect();
        if packets.len() < FEWEST_COPIES || packets.len() * SHARE < count {
            return None;
        }
        let alike = |packet: &Packet| {
            let both = vlans_of(&packet.entered).zip(vlans_of(&packet.left));
            // Some may be lost.
            both.is_some_and(|(entered, left)| left.iter().all(|tags| entered.contains(tags)))
        };
        if !nearly_all(&packets, alike) {
            let are_most = packets.len() * 2 >= count;
            return both_sides(&packets, false, are_most);
        }
        let packets: Vec<Packet> = packets.into_iter().filter(alike).collect();
        of_vlans(&packets).or_else(|| both_sides(&packets, true, true))
    }
}

/// Whether this holds of nearly all packets.
fn nearly_all(packets: &[Packet], holds: impl Fn(&Packet) -> bool) -> bool {
    packets.iter().filter(|packet| holds(packet)).count() * 20 >= packets.len() * 19
}

fn median(packets: &[Packet], ns: impl Fn(&Packet) -> i64) -> i64 {
    let mut all: Vec<i64> = packets.iter().map(ns).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

/// Mean deviation from the median. Late packets count by how late they are.
fn deviation(packets: &[Packet], ns: impl Fn(&Packet) -> i64) -> i64 {
    let median = median(packets, &ns);
    let all = packets.iter().map(|packet| i128::from(ns(packet).abs_diff(median)));
    i64::try_from(all.sum::<i128>() / packets.len().max(1) as i128).unwrap_or(i64::MAX)
}

/// VLANs of these frames, if each has another one.
fn vlans_of(frames: &[(i64, Look)]) -> Option<Vec<[u16; 2]>> {
    let mut vlans: Vec<[u16; 2]> = frames.iter().map(|frame| frame.1.tags).collect();
    vlans.sort_unstable();
    vlans.dedup();
    let all = vlans.len() == frames.len() && vlans.iter().all(|tags| tags[0] != UNTAGGED);
    all.then_some(vlans)
}

/// VLANs at ingress that are the same at egress: several flows, or the same places on the way of one packet.
fn of_vlans(packets: &[Packet]) -> Option<Twice> {
    let tags = |frame: &(i64, Look)| frame.1.tags;
    let of_first = |packet: &Packet| {
        let left = packet.left.iter().find(|left| tags(left) == tags(&packet.first()));
        left.copied().unwrap_or(packet.left[0])
    };
    let last = |packet: &Packet| packet.entered[packet.entered.len() - 1];
    let on_the_way = |packet: &Packet| last(packet).1.is_forwarded(&packet.first().1);
    let passes =
        |packet: &Packet| packet.left.iter().all(|left| left.1.is_forwarded(&packet.first().1));
    if nearly_all(packets, on_the_way) {
        return None;
    }
    let mut first: HashMap<[u16; 2], usize> = HashMap::new();
    for packet in packets {
        *first.entry(tags(&packet.first())).or_default() += 1;
    }
    let always_first = first.values().copied().max().unwrap_or(0) * 20 >= packets.len() * 19;
    let apart_ns = deviation(packets, |packet| last(packet).0 - packet.first().0);
    let passed_ns = deviation(packets, |packet| of_first(packet).0 - packet.first().0);
    let vlans: Vec<u16> = packets[0].entered.iter().map(|frame| tags(frame)[0]).collect();
    if nearly_all(packets, passes) || !always_first || apart_ns * CLEARLY < passed_ns {
        return Some(Twice::Vlans(vlans));
    }
    if passed_ns * CLEARLY < apart_ns {
        return None;
    }
    let [one, other] = [vlans[0], vlans[vlans.len() - 1]];
    Some(Twice::Unknown(format!(
        "both captures have the same packets in the VLANs {}, which are several flows or both sides of the device: take 'vlan {one}' \
         out of ingress, and of several flows 'vlan {one}', of both sides 'vlan {other}' out of egress (tcpdump -r IN -w OUT 'vlan \
         {one}')",
        listed(&vlans),
    )))
}

fn listed(vlans: &[u16]) -> String {
    let mut vlans = vlans.to_vec();
    vlans.sort_unstable();
    let last = vlans.pop().map_or(String::new(), |last| format!(" and {last}"));
    vlans.iter().map(u16::to_string).collect::<Vec<_>>().join(", ") + &last
}

/// Egress frames from before and from behind the device.
fn both_sides(packets: &[Packet], in_vlans: bool, are_most: bool) -> Option<Twice> {
    let entered = |packet: &Packet| packet.first().1;
    let forwarded = |packet: &Packet| packet.ends().map(|end| end.1.is_forwarded(&entered(packet)));
    if nearly_all(packets, |packet| forwarded(packet)[0]) {
        return None;
    }
    let before_ns = deviation(packets, |packet| packet.latencies_ns()[0]);
    let between_ns = deviation(packets, |packet| {
        let [first_ns, last_ns] = packet.latencies_ns();
        last_ns - first_ns
    });
    let by_router = nearly_all(packets, |packet| forwarded(packet) == [false, true]);
    let unlike = nearly_all(packets, |packet| {
        let [first, last] = packet.ends().map(|end| end.1.tags == entered(packet).tags);
        first && !last
    });
    let unchanged = nearly_all(packets, |packet| forwarded(packet) == [false; 2]);
    // A tag that entered is another flow's, unless all show that they are not.
    let has_entered = |packet: &Packet| {
        let last = packet.ends()[1].1;
        packet.entered.iter().any(|entered| entered.1.tags == last.tags)
    };
    let is_new = in_vlans || nearly_all(packets, |packet| !has_entered(packet));
    let by_tags = unchanged && unlike && is_new && before_ns * CLEARLY < between_ns;
    let medians_ns = [0, 1].map(|end| median(packets, |packet| packet.latencies_ns()[end]));
    if by_tags || (by_router && before_ns <= between_ns) {
        let reach = |packet: &Packet| packet.entered.last().map(|last| last.0 - packet.first().0);
        let reach_ns = packets.iter().filter_map(reach).max().unwrap_or(0);
        return Some(Twice::BothSides { by_tags, within_ns: reach_ns, medians_ns });
    }
    // A mirror port has nearly all packets twice, a device may send some again.
    let sent_again = !are_most
        && nearly_all(packets, |packet| packet.ends().iter().all(|end| end.1 == entered(packet)));
    if unchanged && (sent_again || between_ns * CLEARLY < before_ns) {
        return None;
    }
    let [first_ns, last_ns] = medians_ns.map(signed);
    Some(Twice::Unknown(format!(
        "the egress capture has packets twice, {first_ns} and {last_ns} after they entered (medians), and it is not known which of \
         them left the device: the latency is that of the first ones; {}",
        typed(&packets[0].ends().map(|end| end.1)),
    )))
}

/// Says what to type to have the later ones only.
fn typed([first, last]: &[Look; 2]) -> String {
    let expression = if first.tags != last.tags && last.tags[0] == UNTAGGED {
        "not vlan".to_owned()
    } else if first.tags != last.tags {
        format!("vlan {}", last.tags[0])
    } else if first.macs[6..] != last.macs[6..] {
        let bytes: Vec<String> = last.macs[6..].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("ether src {}", bytes.join(":"))
    } else if first.ttl != last.ttl {
        format!("ip[8] = {}", last.ttl)
    } else {
        return "mirror one direction of one port, or record with tcpdump -Q out".to_owned();
    };
    format!("tcpdump -r OUT.pcap -w BEHIND.pcap '{expression}' takes the others")
}

impl Twice {
    /// Whether a result has them: flows, or copies at egress.
    #[must_use]
    pub fn concerns(&self, summary: &Summary) -> bool {
        self.are_flows() || summary.egress.copy > 0
    }

    /// Whether they are different packets.
    #[must_use]
    pub fn are_flows(&self) -> bool {
        matches!(self, Self::Vlans(_))
    }

    /// Adds to a summary which of them count. The egress capture has so many packets in all; [`None`] where they are not told
    /// apart.
    pub fn tell(&self, all: Option<u64>, summary: &mut Summary) {
        let left_out = all.map_or(0, |all| all.saturating_sub(summary.egress.packets));
        summary.egress.packets += left_out;
        summary.egress.copy += left_out;
        let (code, count, text) = match self {
            Self::BothSides { by_tags, medians_ns, .. } => {
                let [first_ns, last_ns] = medians_ns.map(signed);
                let by = if *by_tags { "VLAN" } else { "MAC addresses and TTL" };
                let copies = left_out.max(summary.egress.copy);
                let counts = if all.is_some() { "last" } else { "first" };
                let text = format!(
                    "{} egress packets are copies from before the device: with the {by} that they entered with, {first_ns} after \
                     ingress (median), and behind the device {last_ns} after it; the {counts} ones count",
                    grouped(copies),
                );
                ("both_sides", copies, text)
            }
            Self::Vlans(vlans) => {
                let text = format!(
                    "the VLANs {} have the same packets on both sides: they are different flows, told apart by their tags (--by vlan \
                     shows each)",
                    listed(vlans),
                );
                ("same_vlans", summary.ingress.packets, text)
            }
            Self::Unknown(text) => ("both_sides", summary.egress.copy.max(1), text.clone()),
        };
        let invalidates = all.is_none();
        summary.warnings.insert(0, Warning { code, count, text, invalidates });
    }
}

/// Says that packets that did not enter are others that did, as a device rewrites them, so that both sides of it are at egress.
#[must_use]
pub fn told_hidden(summary: &Summary, agree: &str, typed: &str) -> Warning {
    let count = summary.egress.unmatched;
    let text = format!(
        "{} egress packets that did not enter agree with others that did in all but {agree}: the egress capture has both sides of \
         the device; {typed} takes those behind it",
        grouped(count),
    );
    Warning { code: "both_sides", count, text, invalidates: true }
}
