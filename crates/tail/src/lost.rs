//! Lost packets found again in the ingress capture: which frames they are.

use crate::analysis::{LostPacket, Options, signer};
use crate::capture::{CaptureError, CaptureReader};
use crate::clock::corrected;
use std::collections::HashMap;
use tailtrim_wire::flow::Flow;
use tailtrim_wire::frame::Link;

/// A frame of the ingress capture whose packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostFrame {
    /// Number of the frame in the capture, from 1.
    pub frame: u64,
    /// Which run of successive lost packets it is of, from 1.
    pub cluster: u64,
    /// When it entered, in ns of the capture's clock.
    pub ingress_ns: i64,
    /// Bytes on the wire, without FCS.
    pub bytes: u32,
    /// Its flow; `None` where it is not IP.
    pub flow: Option<Flow>,
}

/// Finds lost packets in the ingress capture, of which nothing was read. `signed` are the [bytes that took
/// part](crate::summary::SignatureSettings::bytes); frames that are not `taken` are counted in the numbers, and nothing else.
///
/// # Errors
/// The errors of [`CaptureReader::read`].
pub fn find(
    capture: &mut CaptureReader,
    lost: &[LostPacket],
    options: &Options,
    signed: usize,
    taken: impl Fn(Link, &[u8]) -> bool,
) -> Result<Vec<LostFrame>, CaptureError> {
    let signer = signer(options).limited_to(signed);
    let mut wanted: HashMap<LostPacket, u64> = HashMap::new();
    for packet in lost {
        *wanted.entry(*packet).or_default() += 1;
    }
    let (mut found, mut batch, mut flows) =
        (Vec::with_capacity(lost.len()), Vec::new(), Vec::new());
    let (mut frame, mut packet, mut cluster, mut follows) = (0, 0, 0, false);
    while found.len() < lost.len() {
        flows.clear();
        // A flow costs more than a look at the table, which needs the record: both are made for each frame.
        let show = |link, bytes: &[u8]| {
            flows.push(taken(link, bytes).then(|| Flow::of_frame(link, bytes)));
        };
        if !capture.read_frames(&signer, &mut batch, show)? {
            break;
        }
        let mut flows = flows.iter().copied();
        for record in &batch {
            frame += 1;
            if !record.stamped {
                packet += 1;
                continue;
            }
            // Of a capture without frames, all packets are taken.
            let Some(flow) = flows.next().unwrap_or(Some(None)) else { continue };
            packet += 1;
            let ingress_ns = corrected(&options.clock_fit.ingress, packet, record.stamp_ns);
            let entered = LostPacket { ingress_ns, signature: record.signature };
            let is_lost = wanted.get_mut(&entered).is_some_and(|left| {
                let is_left = *left > 0;
                *left -= u64::from(is_left);
                is_left
            });
            if is_lost {
                cluster += u64::from(!follows);
                found.push(LostFrame { frame, cluster, ingress_ns, bytes: record.length, flow });
            }
            follows = is_lost;
        }
    }
    Ok(found)
}
