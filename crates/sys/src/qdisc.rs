//! Queueing disciplines of interfaces, by rtnetlink(7): the one that sends packets at their time, `etf`.
//!
//! Numbers are those of `<linux/pkt_sched.h>`, `<linux/rtnetlink.h>` and `<linux/gen_stats.h>`.

use super::netlink::{ask, attribute, attributes};
use std::io;

/// `struct tcmsg`: family and padding, interface, handle, parent, information.
const HEADER: usize = 20;
/// `TC_H_ROOT`.
const ROOT: u32 = u32::MAX;
/// Handle of what is added here ("tt", as `tc qdisc` shows it: `7474:`).
const OURS: u32 = 0x7474 << 16;
/// `struct tc_prio_qopt`: two bands, and the second for all packets that do not name one by their priority.
const BANDS: [u8; 20] = {
    let mut bytes = [1; 20];
    [bytes[0], bytes[1], bytes[2], bytes[3]] = 2_u32.to_ne_bytes();
    bytes
};
/// Priority of packets that are for the `etf` of [`add_etf`], if the kernel keeps the times.
pub const PRIORITY: u32 = OURS | 1;
/// `TCA_ETF_PARMS`, and its flags.
const ETF_PARAMETERS: u16 = 1;
const ETF_DEADLINE: u32 = 1;
const ETF_OFFLOAD: u32 = 1 << 1;
/// `TCA_STATS_QUEUE`: `struct gnet_stats_queue`, of which the third and the fifth word are drops and overlimits.
const STATS_QUEUE: u16 = 3;

/// A queueing discipline of an interface, or of one of its queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// Its kind, such as `fq_codel`.
    pub kind: String,
    /// Whether the kernel chose it: it comes back by itself.
    pub usual: bool,
    /// Whether it is that of the interface, not of one queue.
    pub is_root: bool,
    /// The parameters of `etf`.
    pub etf: Option<Etf>,
    /// Packets that it dropped: those that it did not take, and those whose time had passed (`etf`).
    pub dropped: u64,
}

/// Parameters of the queueing discipline `etf`: it holds each packet until its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Etf {
    /// It lets packets go so long before their time, and drops them when that has passed.
    pub delta_ns: i32,
    /// The number of the clock of these times.
    pub clock: i32,
    /// Times are deadlines: packets go sooner.
    pub deadline: bool,
    /// The NIC holds the packets until their time, not the kernel.
    pub offload: bool,
}

impl Etf {
    /// By `CLOCK_TAI`.
    pub fn new(delta_ns: i32, offload: bool) -> Self {
        Self { delta_ns, clock: libc::CLOCK_TAI, deadline: false, offload }
    }

    /// Whether the times of packets are those of `CLOCK_TAI` at which they go.
    pub fn is_of_tai(&self) -> bool {
        self.clock == libc::CLOCK_TAI && !self.deadline
    }
}

/// All queueing disciplines of an interface.
///
/// # Errors
/// The kernel's answer.
pub fn all(index: u32) -> io::Result<Vec<Qdisc>> {
    let told = ask(libc::NETLINK_ROUTE, libc::RTM_GETQDISC, libc::NLM_F_DUMP, &[0; HEADER])?;
    Ok(told.iter().filter_map(|told| read(told, index)).collect())
}

fn read(told: &[u8], index: u32) -> Option<Qdisc> {
    let (header, attached) = told.split_at_checked(HEADER)?;
    if header[4..8] != index.to_ne_bytes() {
        return None;
    }
    let find = |bytes, wanted| Some(attributes(bytes).find(|(kind, _)| *kind == wanted)?.1);
    let kind = find(attached, libc::TCA_KIND)?.split(|byte| *byte == 0).next()?;
    let options = find(attached, libc::TCA_OPTIONS);
    let etf = options.filter(|_| kind == b"etf").and_then(|options| {
        let parameters = find(options, ETF_PARAMETERS)?;
        let flags = word(parameters, 2)?;
        Some(Etf {
            delta_ns: word(parameters, 0)?.cast_signed(),
            clock: word(parameters, 1)?.cast_signed(),
            deadline: flags & ETF_DEADLINE != 0,
            offload: flags & ETF_OFFLOAD != 0,
        })
    });
    let counts = find(attached, libc::TCA_STATS2).and_then(|told| find(told, STATS_QUEUE));
    let count = |place| counts.and_then(|counts| word(counts, place)).map_or(0, u64::from);
    Some(Qdisc {
        kind: String::from_utf8_lossy(kind).into_owned(),
        usual: word(header, 2)? == 0,
        is_root: word(header, 3)? == ROOT,
        etf,
        dropped: count(2) + count(4),
    })
}

fn word(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(4 * place..)?.first_chunk()?))
}

/// Gives an interface the queueing discipline `etf`, in place of one that the kernel chose. Packets of [`PRIORITY`] go
/// through it and others past it; with `offload` all do, on each queue, and those without a time are dropped. Needs
/// CAP_NET_ADMIN.
///
/// # Errors
/// The kernel's answer: `ENOENT` where it has no `etf` or `prio`, `EOPNOTSUPP` of a driver that does not take the offload,
/// `EEXIST` where another queueing discipline was set.
pub fn add_etf(index: u32, etf: Etf, queues: u32) -> io::Result<()> {
    let flags = if etf.offload { ETF_OFFLOAD } else { 0 };
    let words = [etf.delta_ns.to_ne_bytes(), etf.clock.to_ne_bytes(), flags.to_ne_bytes()].concat();
    let options = attribute(libc::TCA_OPTIONS, &attribute(ETF_PARAMETERS, &words));
    let add = |handle: u32, parent: u32, kind: &[u8], options: &[u8]| {
        let body = [&header(index, handle, parent)[..], &attribute(libc::TCA_KIND, kind), options];
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        ask(libc::NETLINK_ROUTE, libc::RTM_NEWQDISC, flags, &body.concat()).map(drop)
    };
    if etf.offload && queues < 2 {
        return add(OURS, ROOT, b"etf\0", &options);
    }
    let (root, bands, classes): (&[u8], _, _) = match etf.offload {
        true => (b"mq\0", vec![], 1..=queues),
        false => (b"prio\0", attribute(libc::TCA_OPTIONS, &BANDS), 1..=1),
    };
    add(OURS, ROOT, root, &bands)?;
    for queue in classes {
        if let Err(error) = add(0, OURS | queue, b"etf\0", &options) {
            let _ = remove(index);
            return Err(error);
        }
    }
    Ok(())
}

/// Removes what [`add_etf`] added; the kernel's choice comes back.
///
/// # Errors
/// The kernel's answer: it is not there any more, or the interface is gone.
pub fn remove(index: u32) -> io::Result<()> {
    let body = header(index, OURS, ROOT);
    ask(libc::NETLINK_ROUTE, libc::RTM_DELQDISC, libc::NLM_F_ACK, &body).map(drop)
}

fn header(index: u32, handle: u32, parent: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    for (place, word) in [index, handle, parent].into_iter().enumerate() {
        bytes[4 * (place + 1)..][..4].copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etf_is_found_by_interface_and_name() {
        let qdisc = |index: u32, name: &[u8], flags: u32| {
            let parameters = [300_u32.to_ne_bytes(), 11_u32.to_ne_bytes(), flags.to_ne_bytes()];
            let options = attribute(ETF_PARAMETERS, &parameters.concat());
            let counts: Vec<u8> =
                [0_u32, 0, 7, 0, 5].iter().flat_map(|n| n.to_ne_bytes()).collect();
            let mut told = header(index, OURS, ROOT).to_vec();
            told.extend(attribute(libc::TCA_KIND, name));
            told.extend(attribute(libc::TCA_OPTIONS, &options));
            told.extend(attribute(libc::TCA_STATS2, &attribute(STATS_QUEUE, &counts)));
            told
        };
        let found = read(&qdisc(3, b"etf\0", ETF_OFFLOAD), 3).unwrap();
        assert_eq!(found.etf, Some(Etf::new(300, true)));
        assert_eq!((found.dropped, found.usual, found.is_root), (12, false, true));
        assert!(!read(&qdisc(3, b"etf\0", ETF_DEADLINE), 3).unwrap().etf.unwrap().is_of_tai());
        assert_eq!(read(&qdisc(3, b"etf\0", 0), 4), None);
        assert_eq!(read(&qdisc(3, b"pfifo\0", 0), 3).unwrap().etf, None);
        // Cut anywhere, what is left is read.
        let whole = qdisc(3, b"etf\0", 0);
        for end in 0..whole.len() {
            read(&whole[..end], 3);
        }
    }

    #[test]
    fn the_kernel_answers() {
        let lo = crate::interface::index("lo").unwrap();
        assert!(all(lo).unwrap().iter().all(|found| found.etf.is_none()));
        assert!(remove(lo).is_err());
    }
}
