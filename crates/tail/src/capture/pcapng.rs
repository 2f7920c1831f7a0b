//! pcapng (draft-ietf-opsawg-pcapng): blocks are parsed by pcap-parser; interfaces, resolutions and
//! places of damage are ours.

use super::block::{BlockSigner, ByteOrder, Captured, NS_PER_S, Odd, decode_blocks};
use super::foreign::unread_link_type;
use super::keep::Keep;
use super::side::{InterfaceDirection, Place};
use super::{Progress, Record, StampSource};
use crate::signature::Signer;
use crate::summary::{grouped, in_bytes};
use pcap_parser::nom;
use pcap_parser::pcapng::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, InterfaceStatisticsBlock, OptionCode,
    SimplePacketBlock, parse_block_be, parse_block_le,
};
use std::collections::BTreeMap;
use tailtrim_wire::frame::Link;

const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Type of the obsolete Packet Block, which pcap-parser does not know.
const OBSOLETE_PACKET_BLOCK: u32 = 2;

/// Type of the Enhanced Packet Block.
const ENHANCED_PACKET_BLOCK: u32 = 6;

/// Bytes of both before the frame.
const PACKET_HEAD: usize = 28;

/// The option of a packet that tells its direction.
const PACKET_FLAGS: OptionCode = OptionCode(2);

/// A longer block is damage: no writer makes them, and the buffer must not grow with a garbage length.
const LONGEST_BLOCK: usize = 16 << 20;

pub(super) fn is_pcapng(window: &[u8]) -> bool {
    window.starts_with(&SECTION_HEADER)
}

#[derive(Debug, Clone)]
struct Interface {
    link: Option<Link>,
    link_type: i32,
    /// Units of a stamp per second.
    resolution: u64,
    /// Nanoseconds of a unit, if they are whole and stamps have no offset.
    unit_ns: Option<i64>,
    offset_s: i64,
    /// Frames that the capturing host says it dropped so far.
    drops: u64,
    /// Name and description.
    names: Vec<String>,
    is_read: bool,
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
    order: ByteOrder,
    interfaces: Vec<Interface>,
    /// Frames dropped in the sections before.
    drops: u64,
    /// The unit of the sections before.
    coarsest_ps: u64,
    /// Packets of interfaces whose frames are not read, by number and link type.
    pub(super) unread: BTreeMap<(u32, String), u64>,
}

impl Decoder {
    /// The coarsest unit of the interfaces whose packets were read so far.
    pub(super) fn unit_ps(&self) -> u64 {
        let read = self.interfaces.iter().filter(|of| of.is_read);
        let units = read.map(|of| 1_000_000_000_000 / of.resolution.max(1));
        units.max().unwrap_or(0).max(self.coarsest_ps)
    }

    pub(super) fn new(stamps: StampSource) -> Self {
        Self {
            stamps,
            order: ByteOrder::Little,
            interfaces: Vec::new(),
            drops: 0,
            coarsest_ps: 1_000,
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
        let mut signer = BlockSigner::new(signer);
        decode_blocks(window, records, |bytes| self.block(bytes, &mut signer, keep))
    }

    /// Reads the block at the start of `window`: its length and the packet in it. `None` when it holds only a part of the
    /// block.
    fn block(
        &mut self,
        window: &[u8],
        signer: &mut BlockSigner<'_>,
        keep: &mut impl Keep,
    ) -> Result<Option<(usize, Option<Record>)>, Odd> {
        let Some(head) = window.first_chunk::<12>() else { return Ok(None) };
        if head[..4] == SECTION_HEADER {
            self.order = match head[8..] {
                [0x1a, 0x2b, 0x3c, 0x4d] => ByteOrder::Big,
                [0x4d, 0x3c, 0x2b, 0x1a] => ByteOrder::Little,
                _ => return Err(("a section of unknown byte order".into(), "1a2b3c4d".into())),
            };
            self.check_version(window.get(12..16))?;
            // Interfaces are numbered anew in each section.
            (self.drops, self.coarsest_ps) = (self.drops(), self.unit_ps());
            self.interfaces.clear();
        }
        let (kind, length) = (self.order.word(head, 0), self.order.word(head, 4) as usize);
        if !(12..=LONGEST_BLOCK).contains(&length) || !length.is_multiple_of(4) {
            return Err((
                format!("a block of {}", in_bytes(length)),
                format!("a multiple of 4 from 12 to {}", grouped(LONGEST_BLOCK as u64)),
            ));
        }
        let Some(bytes) = window.get(..length) else { return Ok(None) };
        if bytes[4..8] != bytes[length - 4..] {
            return Err((
                format!("a block whose two lengths differ ({length} first)"),
                "the same length at both ends".into(),
            ));
        }
        let ahead = window.get(PACKET_HEAD..).unwrap_or_default();
        let packet = match kind {
            OBSOLETE_PACKET_BLOCK => Some(self.obsolete(bytes)?),
            ENHANCED_PACKET_BLOCK => self.without_options(bytes),
            _ => None,
        };
        if let Some(packet) = packet {
            return Ok(Some((length, self.stamped(&packet, ahead, signer, keep)?)));
        }
        let parsed = match self.order {
            ByteOrder::Big => parse_block_be(bytes),
            ByteOrder::Little => parse_block_le(bytes),
        };
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
                self.interfaces.push(Interface::new(&description, self.order)?);
                None
            }
            Block::EnhancedPacket(packet) => {
                self.stamped(&enhanced(&packet, self.order), ahead, signer, keep)?
            }
            Block::SimplePacket(packet) => self.simple(&packet, signer, keep)?,
            Block::InterfaceStatistics(statistics) => {
                // The counters run from the start of the capture: the last statement holds.
                if let Some(interface) = self.interfaces.get_mut(statistics.if_id as usize) {
                    interface.drops = dropped(&statistics, self.order);
                }
                None
            }
            _ => None,
        };
        Ok(Some((length, record)))
    }

    /// Checks the version of a section, if its bytes are at hand.
    fn check_version(&self, version: Option<&[u8]>) -> Result<(), Odd> {
        let Some(version) = version else { return Ok(()) };
        match (self.order.short(version, 0), self.order.short(version, 2)) {
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
    ) -> Result<Option<(&Interface, Link)>, Odd> {
        let count = self.interfaces.len();
        let interface = self.interfaces.get_mut(index as usize).ok_or_else(|| {
            (
                format!("a packet of interface {index}"),
                format!("one of the {count} interfaces described before"),
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
        interface.is_read = true;
        Ok(Some((interface, link)))
    }

    /// The record of a packet. `bytes` begin with its frame, and go on behind it.
    fn stamped(
        &mut self,
        packet: &Stamped<'_>,
        bytes: &[u8],
        signer: &mut BlockSigner<'_>,
        keep: &mut impl Keep,
    ) -> Result<Option<Record>, Odd> {
        let &Stamped { ticks, captured, length, data, .. } = packet;
        let stamps = self.stamps;
        let found = self.interface(packet.interface, packet.direction, keep)?;
        let Some((interface, link)) = found else { return Ok(None) };
        let frame = data.get(..captured as usize).ok_or_else(|| {
            (
                format!(
                    "a packet of {} in a block of {}",
                    in_bytes(captured as usize),
                    in_bytes(data.len())
                ),
                "a packet that fits its block".to_owned(),
            )
        })?;
        let stamp_ns = interface.stamp_ns(ticks).ok_or_else(|| {
            (format!("a stamp of {ticks} units"), "a time within 146 years of 1970".to_owned())
        })?;
        let captured = Captured { link, frame, length, stamp_ns: Some(stamp_ns) };
        Ok(Some(captured.record(stamps, |link, frame| signer.sign(link, frame, bytes), keep)))
    }

    /// A simple packet block has no stamp; the packet is counted as such.
    fn simple(
        &mut self,
        packet: &SimplePacketBlock<'_>,
        signer: &mut BlockSigner<'_>,
        keep: &mut impl Keep,
    ) -> Result<Option<Record>, Odd> {
        let Some((_, link)) = self.interface(0, None, keep)? else { return Ok(None) };
        let frame = &packet.data[..packet.data.len().min(packet.origlen as usize)];
        let captured = Captured { link, frame, length: packet.origlen, stamp_ns: None };
        let sign = |link, frame: &[u8]| signer.sign(link, frame, frame);
        Ok(Some(captured.record(StampSource::Header, sign, keep)))
    }

    /// The packet of an enhanced packet block, if options are missing there, as in nearly all.
    fn without_options<'a>(&self, block: &'a [u8]) -> Option<Stamped<'a>> {
        let [interface, high, low, captured, length] =
            [8, 12, 16, 20, 24].map(|at| self.order.word(block, at));
        let data = block.get(PACKET_HEAD..block.len() - 4)?;
        let padding = data.len().checked_sub(captured as usize)?;
        let ticks = u64::from(high) << 32 | u64::from(low);
        let direction = None;
        let packet = Stamped { interface, ticks, captured, length, data, direction };
        (padding < 4).then_some(packet)
    }

    /// The packet of an obsolete packet block.
    fn obsolete<'a>(&self, block: &'a [u8]) -> Result<Stamped<'a>, Odd> {
        let [high, low, captured, length] = [12, 16, 20, 24].map(|at| self.order.word(block, at));
        let Some(data) = block.get(PACKET_HEAD..block.len() - 4) else {
            return Err((
                "a packet block without room for its fields".to_owned(),
                format!("at least {} bytes", PACKET_HEAD + 4),
            ));
        };
        let interface = u32::from(self.order.short(block, 8));
        let ticks = u64::from(high) << 32 | u64::from(low);
        Ok(Stamped { interface, ticks, captured, length, data, direction: None })
    }
}

/// The packet of an enhanced packet block.
fn enhanced<'a>(packet: &EnhancedPacketBlock<'a>, order: ByteOrder) -> Stamped<'a> {
    let flags = packet.options.iter().find(|option| option.code == PACKET_FLAGS);
    let flags = flags.and_then(|option| order.number::<4>(&option.value, 0));
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
    fn new(description: &InterfaceDescriptionBlock<'_>, order: ByteOrder) -> Result<Self, Odd> {
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
        let offset = offset.and_then(|option| order.number::<8>(&option.value, 0));
        let offset_s = offset.map_or(0, u64::cast_signed);
        let named = |code: OptionCode| {
            let option = description.options.iter().find(|option| option.code == code)?;
            let text = String::from_utf8_lossy(option.as_bytes().ok()?);
            Some(text.trim_end_matches('\0').to_owned()).filter(|text| !text.is_empty())
        };
        let names = [OptionCode::IfName, OptionCode::IfDescription].into_iter().filter_map(named);
        let names = names.collect();
        let whole = offset_s == 0 && NS_PER_S.cast_unsigned().is_multiple_of(resolution);
        let unit_ns = whole.then(|| NS_PER_S / resolution.cast_signed());
        let (drops, is_read) = (0, false);
        Ok(Self { link, link_type, resolution, unit_ns, offset_s, drops, names, is_read })
    }

    fn stamp_ns(&self, ticks: u64) -> Option<i64> {
        let ns = if let Some(unit_ns) = self.unit_ns {
            i64::try_from(ticks).ok()?.checked_mul(unit_ns)
        } else {
            let a_second = i128::from(NS_PER_S);
            let ns = i128::from(ticks) * a_second / i128::from(self.resolution)
                + i128::from(self.offset_s) * a_second;
            i64::try_from(ns).ok()
        };
        // Half of what an i64 spans, so that no difference of two stamps overflows.
        ns.filter(|ns| ns.unsigned_abs() < 1 << 62)
    }
}

/// Frames dropped by the interface and by the capturing host, as the capturing program counted them.
fn dropped(statistics: &InterfaceStatisticsBlock<'_>, order: ByteOrder) -> u64 {
    let counted = [OptionCode::IsbIfDrop, OptionCode::IsbOsDrop];
    statistics
        .options
        .iter()
        .filter(|option| counted.contains(&option.code))
        .filter_map(|option| order.number::<8>(option.as_bytes().ok()?, 0))
        .fold(0, u64::saturating_add)
}
