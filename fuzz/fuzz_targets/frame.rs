//! Bytes as a frame, on every link, with every mask: where it stands in a capture must not matter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_tail::capture::{CaptureReader, Record, StampSource, Whole};
use tailtrim_tail::signature::{Rewrites, Signer};
use tailtrim_wire::frame::{Link, Walk, is_bare};

/// One of each link.
const LINK_TYPES: [u16; 12] = [1, 101, 113, 276, 1, 0, 9, 51, 104, 239, 282, 285];

fuzz_target!(|data: &[u8]| {
    let [how, limit, frame @ ..] = data else { return };
    let rewrites = Rewrites { nat: how & 1 != 0, tos: how & 2 != 0, tunnel: how & 4 != 0 };
    let signer = Signer::new(rewrites).limited_to(usize::from(*limit));
    let number = LINK_TYPES[usize::from(how >> 3) % LINK_TYPES.len()];
    let link_type = number.to_le_bytes();
    let neighbour = [0x5a; 100];
    let all = records(link_type, &[frame, &neighbour, frame], &signer);
    let first = all[0];
    assert_eq!(all[2], first);
    assert_eq!(records(link_type, &[frame], &signer), [first]);
    assert!(usize::from(first.signable) <= frame.len());
    walk(Link::from_link_type(number.into()).unwrap(), frame);
    // The addresses take no part, but in a frame too short for its tags.
    let tagged = frame.get(12).is_some_and(|byte| [0x81, 0x88, 0x91, 0x92, 0x93].contains(byte));
    if link_type == [1, 0] && frame.len() > 14 && !tagged {
        let mut rewritten = frame.to_vec();
        rewritten[..12].fill(0xa5);
        assert_eq!(records(link_type, &[&rewritten], &signer)[0].signature, first.signature);
    }
});

/// The places of a frame lie within it and within each other, and are few.
fn walk(link: Link, frame: &[u8]) {
    let (mut outer, mut places) = (0..frame.len(), 0);
    for place in Walk::new(link, frame) {
        assert!(outer.start <= place.start && place.start <= place.end && place.end <= outer.end);
        assert!(!is_bare(link, frame) || place.encapsulation.is_none());
        outer = place.start..place.end;
        places += 1;
    }
    assert!(places <= 33);
}

fn records(link_type: [u8; 2], frames: &[&[u8]], signer: &Signer) -> Vec<Record> {
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    file.extend([link_type[0], link_type[1], 0, 0]);
    for frame in frames {
        file.extend([0; 8]);
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend(*frame);
    }
    let input = Box::new(Whole::new(file));
    let mut capture = CaptureReader::open("fuzz", input, StampSource::Header, false, false).unwrap();
    capture.take_labels();
    let mut batch = Vec::new();
    assert!(capture.read(signer, &mut batch).unwrap());
    assert_eq!(batch.len(), frames.len());
    assert_eq!(capture.labels().len(), frames.len());
    batch
}
