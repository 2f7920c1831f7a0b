//! pcapng (draft-ietf-opsawg-pcapng): blocks are parsed by pcap-parser; interfaces, resolutions and
//! places of damage are ours.

use super::error::Damage;
use super::foreign::unread_link_type;
use super::keep::Keep;
use super::side::{InterfaceDirection, Place};
use super::write::stands_for_none;
use super::{BATCH, Progress, Record, StampSource};
use crate::signature::Signer;
use pcap_parser::nom;
use pcap_parser::pcapng::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, InterfaceStatisticsBlock, OptionCode,
    SimplePacketBlock, parse_block_be, parse_block_le,
};
use std::collections::BTreeMap;
use tailtrim_wire::frame::Link;

const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Type of the obsolete Packet Block, which pcap-parser does not know, and its bytes before the frame.
const OBSOLETE_PACKET_BLOCK: u32 = 2;
const OBSOLETE_HEAD: usize = 28;

/// The option of a packet that tells its direction.
const PACKET_FLAGS: OptionCode = OptionCode(2);

/// A longer block is damage: no writer makes them, and the buffer must not grow with a garbage length.
const LONGEST_BLOCK: usize = 16 << 20;

const NS_PER_S: i128 = 1_000_000_000;

pub(super) fn is_pcapng(window: &[u8]) -> bool {
    window.starts_with(&SECTION_HEADER)
}

#[derive(Debug, Clone)]
struct Interface {
    link: Option<Link>,
    link_type: i32,
    /// Units of a stamp per second.
    resolution: u64,
    offset_s: i64,
    /// Frames that the capturing host says it dropped so far.
    drops: u64,
    /// Name and description.
    names: Vec<String>,
}

/// A packet in a block that has a stamp.
struct Stamped<'a> {
    interface: u32,
    ticks: u64,
    captured: u32,
    length: u32,
    data: &'a [u8],
    direction: Option<InterfaceDirection>,
}

#[derive(Debug, Clone)]
pub(super) struct Decoder {
    stamps: StampSource,
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Frames dropped in the sections before.
    drops: u64,
    /// Packets of interfaces whose frames are not read, by number and link type.
    pub(super) unread: BTreeMap<(u32, String), u64>,
}

impl Decoder {
    /// The coarsest unit of the interfaces so far.
    pub(super) fn unit_ps(&self) -> u64 {
        let units = self.interfaces.iter().map(|of| 1_000_000_000_000 / of.resolution.max(1));
        units.max().unwrap_or(0).max(1_000)
    }

    pub(super) fn new(stamps: StampSource) -> Self {
        Self {
            stamps,
            big_endian: false,
            interfaces: Vec::new(),
            drops: 0,
            unread: BTreeMap::new(),
        }
    }

    /// Frames that the capturing host says it dropped (interface statistics blocks).
    pub(super) fn drops(&self) -> u64 {
        self.interfaces
            .iter()
            .map(|interface| interface.drops)
            .fold(self.drops, u64::saturating_add)
    }

    pub(super) fn decode(
        &mut self,
        window: &[u8],
        signer: &Signer,
        records: &mut Vec<Record>,
        keep: &mut impl Keep,
    ) -> Progress {
        let mut rest = window;
        let mut damage = None;
        let end = records.len() + BATCH;
        while records.len() < end {
            let at = window.len() - rest.len();
            match self.block(rest, signer, keep) {
                Ok(Some((length, record))) => {
                    rest = &rest[length..];
                    records.extend(record);
                }
                Ok(None) => break,
                Err((found, expected)) => {
                    damage = Some(Damage { at, ..Damage::of(found, expected) });
                    break;
                }
            }
        }
        Progress { consumed: window.len() - rest.len(), damage }
    }

    /// Reads the block at the start of `bytes`: its length and the packet in it. `None` when `bytes`
    /// hold only a part of it.
    #[allow(
        clippy::type_complexity,
        reason = "length and packet, or found and expected: one caller"
    )]
    fn block(
        &mut self,
        bytes: &[u8],
        signer: &Signer,
        keep: &mut impl Keep,
    ) -> Result<Option<(usize, Option<Record>)>, (String, String)> {
        let Some(head) = bytes.first_chunk::<12>() else { return Ok(None) };
        if head[..4] == SECTION_HEADER {
            self.big_endian = match head[8..] {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return Err(("a section of unknown byte order".into(), "1a2b3c4d".into())),
            };
            self.check_version(bytes.get(12..16))?;
            // Interfaces are numbered anew in each section.
            self.drops = self.drops();
            self.interfaces.clear();
        }
        let word = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let (kind, length) = (word(0), word(4) as usize);
        if !(12..=LONGEST_BLOCK).contains(&length) || !length.is_multiple_of(4) {
            return Err((
                format!("a block of {length} bytes"),
                format!("a multiple of 4 from 12 to {LONGEST_BLOCK}"),
            ));
        }
        if bytes.len() < length {
            return Ok(None);
        }
        let bytes = &bytes[..length];
        if bytes[4..8] != bytes[length - 4..] {
            return Err((
                format!("a block whose two lengths differ ({length} first)"),
                "the same length at both ends".into(),
            ));
        }
        if kind == OBSOLETE_PACKET_BLOCK {
            let packet = self.obsolete(bytes)?;
            return Ok(Some((length, self.stamped(&packet, signer, keep)?)));
        }
        let parsed = if self.big_endian { parse_block_be(bytes) } else { parse_block_le(bytes) };
        let block = match parsed {
            Ok((_, block)) => block,
            Err(nom::Err::Incomplete(_) | nom::Err::Error(_) | nom::Err::Failure(_)) => {
                return Err((
                    format!("a block of type {kind:#x} that does not parse"),
                    "a well-formed block".into(),
                ));
            }
        };
        let record = match block {
            Block::InterfaceDescription(description) => {
                self.interfaces.push(Interface::new(&description, self.big_endian)?);
                None
            }
            Block::EnhancedPacket(packet) => {
                self.stamped(&enhanced(&packet, self.big_endian), signer, keep)?
            }
            Block::SimplePacket(packet) => self.simple(&packet, signer, keep)?,
            Block::InterfaceStatistics(statistics) => {
                // The counters run from the start of the capture: the last statement holds.
                if let Some(interface) = self.interfaces.get_mut(statistics.if_id as usize) {
                    interface.drops = dropped(&statistics, self.big_endian);
                }
                None
            }
            _ => None,
        };
        Ok(Some((length, record)))
    }

    /// Checks the version of a section, if its bytes are at hand.
    fn check_version(&self, version: Option<&[u8]>) -> Result<(), (String, String)> {
        let Some(&[a, b, c, d]) = version else { return Ok(()) };
        let read = if self.big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
        match (read([a, b]), read([c, d])) {
            // 1.2 is what some writers call 1.0.
            (1, 0 | 2) => Ok(()),
            (major, minor) => Err((
                format!("a section of pcapng version {major}.{minor}"),
                "version 1.0: convert it with editcap -F nsecpcap IN OUT".to_owned(),
            )),
        }
    }

    /// The interface of a packet, and its link if the packet is to be read.
    fn interface(
        &mut self,
        index: u32,
        direction: Option<InterfaceDirection>,
        keep: &mut impl Keep,
    ) -> Result<Option<(&Interface, Link)>, (String, String)> {
        let interface = self.interfaces.get(index as usize).ok_or_else(|| {
            (
                format!("a packet of interface {index}"),
                format!("one of the {} interfaces described before", self.interfaces.len()),
            )
        })?;
        let place = Place { index: Some(index), names: &interface.names, direction };
        if !keep.takes(&place, interface.link.is_some()) {
            return Ok(None);
        }
        let Some(link) = interface.link else {
            let link_type = u32::try_from(interface.link_type).unwrap_or_default();
            *self.unread.entry((index, unread_link_type(link_type))).or_default() += 1;
            return Ok(None);
        };
        Ok(Some((interface, link)))
    }

    fn stamped(
        &mut self,
        packet: &Stamped<'_>,
        signer: &Signer,
        keep: &mut impl Keep,
    ) -> Result<Option<Record>, (String, String)> {
        let &Stamped { ticks, captured, length, data, .. } = packet;
        let stamps = self.stamps;
        let found = self.interface(packet.interface, packet.direction, keep)?;
        let Some((interface, link)) = found else { return Ok(None) };
        let frame = data.get(..captured as usize).ok_or_else(|| {
            (
                format!("a packet of {captured} bytes in a block of {}", data.len()),
                "a packet that fits its block".to_owned(),
            )
        })?;
        let stamp_ns = interface.stamp_ns(ticks).ok_or_else(|| {
            (format!("a stamp of {ticks} units"), "a time within 146 years of 1970".to_owned())
        })?;
        let cut = captured < length;
        let (stamp_ns, whole) = match stamps {
            StampSource::X552Trailer => super::pcap::take_trailer(frame, cut),
            // As in the pcap that it was copied from.
            _ => ((!stands_for_none(stamp_ns)).then_some(stamp_ns), frame),
        };
        let (signature, signable) = signer.sign(link, whole);
        if stamp_ns.is_some() {
            keep.frame(link, whole);
        }
        Ok(Some(Record {
            stamp_ns: stamp_ns.unwrap_or_default(),
            signature,
            length: length.saturating_sub((frame.len() - whole.len()) as u32),
            signable,
            cut,
            stamped: stamp_ns.is_some(),
        }))
    }

    /// A simple packet block has no stamp; the packet is counted as such.
    fn simple(
        &mut self,
        packet: &SimplePacketBlock<'_>,
        signer: &Signer,
        keep: &mut impl Keep,
    ) -> Result<Option<Record>, (String, String)> {
        let Some((_, link)) = self.interface(0, None, keep)? else { return Ok(None) };
        let frame = &packet.data[..packet.data.len().min(packet.origlen as usize)];
        let (signature, signable) = signer.sign(link, frame);
        Ok(Some(Record {
            stamp_ns: 0,
            signature,
            length: packet.origlen,
            signable,
            cut: frame.len() < packet.origlen as usize,
            stamped: false,
        }))
    }

    /// The packet of an obsolete packet block.
    fn obsolete<'a>(&self, block: &'a [u8]) -> Result<Stamped<'a>, (String, String)> {
        let word = |at: usize| {
            let bytes = block.get(at..)?.first_chunk::<4>()?;
            Some(if self.big_endian {
                u32::from_be_bytes(*bytes)
            } else {
                u32::from_le_bytes(*bytes)
            })
        };
        let words = [8, 12, 16, 20, 24].map(word);
        let data = block.get(OBSOLETE_HEAD..block.len() - 4);
        let ([Some(first), Some(high), Some(low), Some(captured), Some(length)], Some(data)) =
            (words, data)
        else {
            return Err((
                "a packet block without room for its fields".to_owned(),
                format!("at least {} bytes", OBSOLETE_HEAD + 4),
            ));
        };
        // Two numbers of 16 bits, the second of which counts drops.
        let interface = if self.big_endian { first >> 16 } else { first & 0xffff };
        let ticks = u64::from(high) << 32 | u64::from(low);
        Ok(Stamped { interface, ticks, captured, length, data, direction: None })
    }
}

/// The packet of an enhanced packet block.
fn enhanced<'a>(packet: &EnhancedPacketBlock<'a>, big_endian: bool) -> Stamped<'a> {
    let flags = packet.options.iter().find(|option| option.code == PACKET_FLAGS);
    let flags = flags.and_then(|option| option.value.first_chunk::<4>().copied());
    let flags =
        flags.map(
            |flags| if big_endian { u32::from_be_bytes(flags) } else { u32::from_le_bytes(flags) },
        );
    Stamped {
        interface: packet.if_id,
        ticks: u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low),
        captured: packet.caplen,
        length: packet.origlen,
        data: packet.data,
        direction: match flags.map(|flags| flags & 3) {
            Some(1) => Some(InterfaceDirection::In),
            Some(2) => Some(InterfaceDirection::Out),
            _ => None,
        },
    }
}

impl Interface {
    fn new(
        description: &InterfaceDescriptionBlock<'_>,
        big_endian: bool,
    ) -> Result<Self, (String, String)> {
        // pcap-parser 0.17 refuses powers of 2 and reads each offset as little endian.
        let exponent = u32::from(description.if_tsresol & 0x7f);
        let resolution = match description.if_tsresol >> 7 {
            0 => 10_u64.checked_pow(exponent),
            _ => 1_u64.checked_shl(exponent),
        };
        let resolution = resolution.ok_or_else(|| {
            (
                format!("a stamp resolution of {:#04x}", description.if_tsresol),
                "a power of 10 or 2 that fits 64 bits".to_owned(),
            )
        })?;
        let link_type = description.linktype.0;
        let link = u32::try_from(link_type).ok().and_then(Link::from_link_type);
        let offset = description.options.iter().rfind(|o| o.code == OptionCode::IfTsoffset);
        let offset = offset.and_then(|option| option.value.first_chunk::<8>().copied());
        let offset_s = offset.map_or(0, |bytes| {
            if big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) }
        });
        let named = |code: OptionCode| {
            let option = description.options.iter().find(|option| option.code == code)?;
            let text = String::from_utf8_lossy(option.as_bytes().ok()?);
            Some(text.trim_end_matches('\0').to_owned()).filter(|text| !text.is_empty())
        };
        let names = [OptionCode::IfName, OptionCode::IfDescription].into_iter().filter_map(named);
        let names = names.collect();
        Ok(Self { link, link_type, resolution, offset_s, drops: 0, names })
    }

    fn stamp_ns(&self, ticks: u64) -> Option<i64> {
        let ns = i128::from(ticks) * NS_PER_S / i128::from(self.resolution)
            + i128::from(self.offset_s) * NS_PER_S;
        // Half of what an i64 spans, so that no difference of two stamps overflows.
        i64::try_from(ns).ok().filter(|ns| ns.unsigned_abs() < 1 << 62)
    }
}

/// Frames dropped by the interface and by the capturing host, as the capturing program counted them.
fn dropped(statistics: &InterfaceStatisticsBlock<'_>, big_endian: bool) -> u64 {
    let counted = [OptionCode::IsbIfDrop, OptionCode::IsbOsDrop];
    statistics
        .options
        .iter()
        .filter(|option| counted.contains(&option.code))
        .filter_map(|option| option.as_bytes().ok()?.first_chunk::<8>().copied())
        .map(|bytes| if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
        .fold(0, u64::saturating_add)
}
