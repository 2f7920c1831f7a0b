//! The same captures by the ledger, which engines use: one signature at a time instead of all at once.

use super::{Arrival, open};
use crate::support::How;
use std::collections::BTreeMap;
use tailtrim_tail::analysis::{
    Analysis, Decoding, Facts, Ledger, Load, Options, Packet, Place, Tally, TangledPacket,
};
use tailtrim_tail::matching::MEMORY;

/// The summary by the ledger. Gaps and loads are not its work: they are those of `native`.
pub(super) fn by_ledger(files: (&[u8], &[u8]), options: &Options, native: &Analysis) -> String {
    let decoding = |name, bytes| {
        let capture = open(name, bytes, How::default(), Arrival::Mapped);
        Decoding::new(Box::new(capture), options).unwrap()
    };
    let (ingress, egress) = (decoding("in", files.0), decoding("out", files.1));
    let signed = ingress.signable().min(egress.signable());
    let ((entered, packets_in), (left, packets_out)) =
        (decode(ingress.limit_to(signed)), decode(egress.limit_to(signed)));
    let mut ledger = Ledger::new(entered, left, signed, options.clone());
    let mut packets: Vec<TangledPacket> = Vec::new();
    for (index, packet) in packets_in.iter().enumerate() {
        let forgotten_ns = packets_in.get(index + MEMORY).map_or(i64::MAX, |later| later.order_ns);
        packets.push(tangled(packet, false, forgotten_ns));
    }
    let shift_ns = ledger.shift_ns();
    packets.extend(packets_out.iter().map(|packet| {
        let mut shifted = tangled(packet, true, i64::MAX);
        shifted.stamp_ns += shift_ns;
        shifted.place.order_ns += shift_ns;
        shifted
    }));
    packets.sort_by_key(|packet| (packet.signature, packet.place));
    for packet in &packets {
        ledger.tangled(packet).unwrap();
    }
    ledger.settle(&mut ()).unwrap();
    let (mut entering, mut leaving) = (BTreeMap::new(), BTreeMap::new());
    for row in &native.seconds {
        let load = |packets, bytes| Load { packets, bytes };
        entering.insert(row.second, load(row.ingress_packets, row.ingress_bytes));
        leaving.insert(row.second, load(row.egress_packets, row.egress_bytes));
    }
    let gaps = [native.ingress_gaps.clone(), native.egress_gaps.clone()];
    let analysis = ledger.finish(Tally::default(), gaps, [entering, leaving]);
    assert_eq!(analysis.seconds, native.seconds);
    serde_json::to_string(&analysis.summary).unwrap()
}

fn decode(mut decoding: Decoding) -> (Facts, Vec<Packet>) {
    let mut packets = Vec::new();
    while decoding.read(&mut packets).unwrap() {}
    (decoding.facts(), packets)
}

fn tangled(packet: &Packet, left: bool, forgotten_ns: i64) -> TangledPacket {
    TangledPacket {
        signature: packet.signature,
        place: Place { order_ns: packet.order_ns, left, index: packet.index },
        stamp_ns: packet.stamp_ns,
        position: packet.position,
        forgotten_ns,
    }
}
