//! Departures at their time: what an interface has for that is negotiated before a load is sent, and held while it is.
//!
//! Settings of the interface are in the hands of a helper process, which puts them back also when this one is killed.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use tailtrim_ports::claims::Claims;
use tailtrim_ports::keeper::{Failure, Keeper, Kept, Numbers};
use tailtrim_ports::port::{
    Departing, LaunchPort, Port, PortError, PortKind, PortName, Timed, sender,
};
use tailtrim_sys::interface::{self, StampSetting};
use tailtrim_sys::qdisc::{self, Etf, Qdisc};

/// Probes are handed over so long before they are due, then none until half of that is over: two ticks of 250 Hz and more,
/// for a process that the scheduler lets wait.
const AHEAD_NS: i64 = 10_000_000;
/// Packets that the kernel could not send within this time it drops. The generator is an open loop: a probe that is late
/// departs late, and is not lost. About the most that `etf` takes.
const LATE_NS: i32 = 2_000_000_000;
/// The NIC gets a packet so long before its time: as late as the kernel may be in a valid run (`limits.lateness_p99_us`).
const TO_NIC_NS: i32 = 1_000_000;

/// Whatever keeps departures to their time, as a load asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The generator.
    Software,
    /// The kernel.
    Kernel,
    /// The NIC.
    Hardware,
}

/// A means to send packets at their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// The generator polls the clock.
    BusyWaiting,
    /// The kernel's queueing discipline `etf`.
    Etf,
    /// The same, with the NIC holding the packets.
    EtfOffload,
    /// Transmit metadata of AF_XDP.
    LaunchTime,
    /// `RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP` of DPDK.
    SendOnTimestamp,
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BusyWaiting => "busy waiting",
            Self::Etf => "queueing discipline etf",
            Self::EtfOffload => "etf offload",
            Self::LaunchTime => "launch time of AF_XDP",
            Self::SendOnTimestamp => "send on timestamp of DPDK",
        })
    }
}

/// A means that was not taken, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Declined {
    /// The means.
    pub by: Means,
    /// Part that is missing.
    pub why: String,
}

/// No means of a class.
#[derive(Debug, thiserror::Error)]
#[error("{interface}: no departures by {class}: {}", told(.declined))]
pub struct NoMeans {
    interface: String,
    class: &'static str,
    declined: Vec<Declined>,
}

fn told(declined: &[Declined]) -> String {
    let told: Vec<String> = declined.iter().map(|one| format!("{}: {}", one.by, one.why)).collect();
    told.join("; ")
}

/// Departures of an interface, as long as this lives.
#[derive(Debug)]
pub struct Departures {
    /// As asked for.
    pub class: Class,
    /// The means that was taken.
    pub by: Means,
    /// Better ones of the class.
    pub declined: Vec<Declined>,
    /// For its ports.
    pub departing: Departing,
    /// The NIC's clock, by which launch times are.
    phc: Option<String>,
    port: PortName,
    dropped_before: u64,
    _keeper: Option<Keeper>,
}

/// Settings that were made.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Made {
    nic_stamps: bool,
    /// `delta` of `etf`.
    delta_ns: i32,
    added: bool,
}

impl Departures {
    /// Negotiates with an interface. To be called before other threads are started.
    ///
    /// # Errors
    /// [`NoMeans`].
    pub fn negotiate(port: &PortName, class: Class) -> Result<Self, NoMeans> {
        let interface = &port.interface;
        // Of an interface that is not there, the port tells.
        let claims = Claims::of(interface).ok();
        let mut declined = Vec::new();
        let mut candidates: Vec<Means> = match class {
            Class::Software => vec![],
            Class::Kernel => vec![Means::Etf],
            Class::Hardware => vec![Means::LaunchTime, Means::EtfOffload, Means::SendOnTimestamp],
        };
        candidates.retain(|by| match without_trying(*by, port, claims.as_ref()) {
            None => true,
            Some(why) => {
                declined.push(Declined { by: *by, why });
                false
            }
        });
        for by in candidates {
            if by == Means::LaunchTime {
                let ahead_ns = AHEAD_NS + i64::from(TO_NIC_NS);
                let timed = Timed { early_ns: 0, ahead_ns, priority: 0 };
                let departing = Departing { timed: Some(timed), ..Departing::default() };
                let mut departures = Self::new(class, by, declined, departing, port, None);
                departures.phc = claims.and_then(|claims| claims.phc);
                return Ok(departures);
            }
            match held(interface, claims.as_ref(), Some(by == Means::EtfOffload)) {
                Ok((made, keeper)) => {
                    let timed = timed(by, made);
                    let departing = departing(claims.as_ref(), made, Some(timed));
                    return Ok(Self::new(class, by, declined, departing, port, Some(keeper)));
                }
                Err(failure) => declined.push(Declined { by, why: failure.why }),
            }
        }
        if class != Class::Software {
            let class = if class == Class::Kernel { "kernel" } else { "hardware" };
            return Err(NoMeans { interface: interface.clone(), class, declined });
        }
        // AF_XDP passes the stamps of sockets by.
        let claims = claims.filter(|_| port.kind == PortKind::Packet);
        let asked = claims.as_ref().is_some_and(|claims| wants_nic(claims).is_some());
        // Stamps are missing without the right to turn them on.
        let held = asked.then(|| held(interface, claims.as_ref(), None).ok()).flatten();
        let made = held.as_ref().map_or_else(Made::default, |(made, _)| *made);
        let stamps_already = claims.as_ref().is_some_and(nic_stamps_now);
        let made = Made { nic_stamps: made.nic_stamps || stamps_already, ..made };
        let departing = departing(claims.as_ref(), made, None);
        let keeper = held.map(|(_, keeper)| keeper);
        Ok(Self::new(class, Means::BusyWaiting, declined, departing, port, keeper))
    }

    fn new(
        class: Class,
        by: Means,
        declined: Vec<Declined>,
        departing: Departing,
        port: &PortName,
        keeper: Option<Keeper>,
    ) -> Self {
        let dropped_before = dropped(&port.interface);
        let (port, phc) = (port.clone(), None);
        Self { class, by, declined, departing, phc, port, dropped_before, _keeper: keeper }
    }

    /// Opens a port that sends so.
    ///
    /// # Errors
    /// [`PortError::Open`].
    pub fn sender(&self) -> Result<Box<dyn Port>, PortError> {
        match &self.phc {
            Some(_) => {
                Ok(Box::new(LaunchPort::open(&self.port, self.departing, self.phc.as_deref())?))
            }
            None => sender(&self.port, self.departing),
        }
    }

    /// Packets that the queueing discipline `etf` has dropped since, whoever sent them; `None` without it.
    #[must_use]
    pub fn dropped(&self) -> Option<u64> {
        let now = self.departing.timed.map(|_| dropped(&self.port.interface))?;
        Some(now.saturating_sub(self.dropped_before))
    }
}

fn dropped(interface: &str) -> u64 {
    let found = interface::index(interface).and_then(qdisc::all).unwrap_or_default();
    found.iter().filter(|one| one.etf.is_some()).map(|one| one.dropped).sum()
}

fn departing(claims: Option<&Claims>, made: Made, timed: Option<Timed>) -> Departing {
    let kernel_stamps = claims.is_some_and(|claims| claims.transmit_stamps.kernel);
    Departing { kernel_stamps, singly: timed.is_none(), nic_stamps: made.nic_stamps, timed }
}

fn timed(by: Means, made: Made) -> Timed {
    let delta_ns = i64::from(made.delta_ns);
    let priority = if made.added { qdisc::PRIORITY } else { 0 };
    match by {
        // The kernel lets packets go when they may go first.
        Means::Etf => Timed { early_ns: delta_ns, ahead_ns: AHEAD_NS, priority },
        _ => Timed { early_ns: 0, ahead_ns: AHEAD_NS + delta_ns, priority },
    }
}

/// Why a means is out of the question; `None` where it has to be tried.
fn without_trying(by: Means, port: &PortName, claims: Option<&Claims>) -> Option<String> {
    let by_xdp = port.kind == PortKind::Xdp;
    let launches = claims.and_then(|claims| claims.af_xdp.as_ref()).map(|told| told.launch_time);
    let stamps = claims.map(|claims| &claims.transmit_stamps);
    let why = match by {
        Means::LaunchTime => match launches {
            None => "the kernel tells no claims of drivers about it (Linux 6.8)",
            Some(false) => "its driver claims none",
            Some(true) if !by_xdp => "possible by AF_XDP only, expected xdp:INTERFACE",
            Some(true) => match claims.and_then(|claims| claims.phc.as_ref()) {
                Some(_) => return None,
                None => "its driver tells no clock",
            },
        },
        Means::SendOnTimestamp => "what drivers claim is not proven, and not used",
        _ if by_xdp => "AF_XDP passes queueing disciplines by",
        _ if stamps.is_some_and(|told| !told.kernel && told.nic.is_empty()) => {
            "its driver stamps no sent packets, by which departures are checked"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// The setting with which a NIC stamps sent packets; `None` where it cannot or does.
fn wants_nic(claims: &Claims) -> Option<StampSetting> {
    if !claims.transmit_stamps.nic.contains(&"on") || nic_stamps_now(claims) {
        return None;
    }
    let now = interface::stamping(&claims.interface).unwrap_or_default();
    Some(StampSetting::of(now.receive_filter(), true))
}

fn nic_stamps_now(claims: &Claims) -> bool {
    !claims.transmit_stamps.nic.is_empty() && claims.stamping.is_some_and(|now| now.transmit)
}

/// Settings from before, which are put back.
#[derive(Debug, Default)]
struct Before {
    interface: String,
    stamps: Option<StampSetting>,
    /// Index of the interface to which `etf` was added.
    added: Option<u32>,
}

impl Kept for Before {
    fn look(&self) -> io::Result<Numbers> {
        Ok(Numbers::new())
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        // The interface may be gone, and then so are its settings.
        if let Some(index) = self.added {
            let _ = qdisc::remove(index);
        }
        if let Some(stamps) = &mut self.stamps {
            let _ = interface::set_stamping(&self.interface, stamps);
        }
    }
}

/// Starts the process that sets up what is missing: stamps of the NIC, and `etf`, with the offload or without.
fn held(
    interface: &str,
    claims: Option<&Claims>,
    etf: Option<bool>,
) -> Result<(Made, Keeper), Failure> {
    let mut stamps = claims.and_then(wants_nic);
    let queues = claims.and_then(|claims| claims.queues).map_or(1, |told| told.tx + told.combined);
    let already = claims.is_some_and(nic_stamps_now);
    Keeper::start(|| {
        let mut before = Before { interface: interface.to_owned(), ..Before::default() };
        let mut made = Made { nic_stamps: already, ..Made::default() };
        if let Some(wanted) = &mut stamps {
            let was = interface::stamping(interface).unwrap_or_default();
            if interface::set_stamping(interface, wanted).is_ok() {
                before.stamps = Some(was);
                made.nic_stamps = wanted.sends();
            }
        }
        if let Some(offload) = etf {
            let index = interface::index(interface).map_err(Failure::of("finding it"))?;
            let there = qdisc::all(index).map_err(Failure::of("asking for its disciplines"))?;
            let failed = |why| Failure { what: "etf".to_owned(), why };
            made.delta_ns = match usable(&there, offload).map_err(failed)? {
                Some(delta_ns) => delta_ns,
                None => {
                    let delta_ns = if offload { TO_NIC_NS } else { LATE_NS };
                    qdisc::add_etf(index, Etf::new(delta_ns, offload), queues)
                        .map_err(|error| failed(refused(offload, &error)))?;
                    (before.added, made.added) = (Some(index), true);
                    delta_ns
                }
            };
        }
        Ok((made, before))
    })
}

/// `delta` of an `etf` that is there and can be used; `None` where it can be added.
fn usable(there: &[Qdisc], offload: bool) -> Result<Option<i32>, String> {
    if let Some(etf) = there.iter().find_map(|found| found.etf) {
        return if !etf.is_of_tai() {
            Err("the etf that is there has another clock than CLOCK_TAI, or deadlines".to_owned())
        } else if etf.offload == offload {
            Ok(Some(etf.delta_ns))
        } else if etf.offload {
            Err("the etf that is there has the offload, expected departures by hardware".to_owned())
        } else {
            Err("the etf that is there has no offload, expected departures by kernel".to_owned())
        };
    }
    match there.iter().find(|found| found.is_root && !found.usual) {
        None => Ok(None),
        Some(found) => Err(format!(
            "it would replace the queueing discipline {} that somebody set (tc qdisc del dev … root)",
            found.kind
        )),
    }
}

fn refused(offload: bool, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "the kernel has none (CONFIG_NET_SCH_ETF and _PRIO)".to_owned(),
        Some(libc::EPERM) => format!("{error} (needs root or CAP_NET_ADMIN)"),
        Some(libc::EOPNOTSUPP) if offload => "its driver does not take it".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qdisc(kind: &str, usual: bool, etf: Option<Etf>) -> Qdisc {
        Qdisc { kind: kind.to_owned(), usual, is_root: true, etf, dropped: 0 }
    }

    #[test]
    fn a_queueing_discipline_that_somebody_set_is_used_or_left_alone() {
        assert_eq!(usable(&[], false), Ok(None));
        assert_eq!(usable(&[qdisc("fq_codel", true, None)], false), Ok(None));
        let why = usable(&[qdisc("fq", false, None)], false).unwrap_err();
        assert!(why.contains("discipline fq that somebody set"), "{why}");
        let etf = |etf| [qdisc("etf", false, Some(etf))];
        assert_eq!(usable(&etf(Etf::new(300, true)), true), Ok(Some(300)));
        assert_eq!(usable(&etf(Etf::new(300, false)), false), Ok(Some(300)));
        assert!(usable(&etf(Etf::new(300, false)), true).unwrap_err().contains("no offload"));
        let monotonic = Etf { clock: libc::CLOCK_MONOTONIC, ..Etf::new(300, false) };
        assert!(usable(&etf(monotonic), false).unwrap_err().contains("another clock"));
    }

    #[test]
    fn each_means_says_what_it_lacks() {
        // Loopback has no launch time and no offload.
        let port = "lo".parse().unwrap();
        let declined = Departures::negotiate(&port, Class::Hardware).unwrap_err().to_string();
        for means in [Means::LaunchTime, Means::EtfOffload, Means::SendOnTimestamp] {
            assert!(declined.contains(&format!("{means}: ")), "{declined}");
        }
        let software = Departures::negotiate(&port, Class::Software).unwrap();
        assert_eq!((software.by, software.departing.timed), (Means::BusyWaiting, None));
    }
}
