//! Claims of drivers about their interfaces. Nothing here is measured: `tailtrim_probes::prove` does that.

use crate::port::PortError;
use serde::Serialize;
use std::{fs, io};
use tailtrim_sys::ethtool::{
    self, Answer, Channels, Coalescing, Driver, Pause, Timestamping, filter_name, named,
};
use tailtrim_sys::interface;
use tailtrim_sys::netlink::{self, XdpFeatures};
use tailtrim_sys::qdisc;

/// `enum netdev_xdp_rx_metadata` and `enum netdev_xsk_flags` by bit.
const HINTS: [&str; 3] = ["timestamp", "hash", "vlan-tag"];
const AT_SENDING: [&str; 3] = ["tx-timestamp", "tx-checksum", "tx-launch-time-fifo"];
/// `NETDEV_XDP_ACT_XSK_ZEROCOPY`.
const ZERO_COPY: u64 = 1 << 3;

/// Claims of an interface's driver. A part that it, or the kernel, does not tell is `None`.
#[derive(Debug, Clone, Serialize)]
pub struct Claims {
    /// The network interface.
    pub interface: String,
    /// Its driver.
    pub driver: Option<String>,
    /// Numbers of queues.
    pub queues: Option<Queues>,
    /// AF_XDP; `None` before Linux 6.3.
    pub af_xdp: Option<AfXdp>,
    /// Stamps of received packets.
    pub receive_stamps: Stamps,
    /// Stamps of sent packets.
    pub transmit_stamps: Stamps,
    /// Which packets the NIC stamps now.
    pub stamping: Option<Stamping>,
    /// The queueing discipline `etf`, where the interface has it: in software, or by the NIC.
    pub etf: Option<Etf>,
    /// The NIC's clock, such as `ptp0`.
    pub phc: Option<String>,
    /// Flow control.
    pub pause: Option<Flow>,
    /// Interrupt coalescing.
    pub coalescing: Option<Coalesced>,
}

/// Numbers of queues that are in use.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Queues {
    /// Queues for receiving only.
    pub rx: u32,
    /// Queues for sending only.
    pub tx: u32,
    /// Queues for both.
    pub combined: u32,
}

/// Claims about AF_XDP.
#[derive(Debug, Clone, Serialize)]
pub struct AfXdp {
    /// The NIC reads and writes the memory of a socket.
    pub zero_copy: bool,
    /// Metadata of received packets that programs can ask for.
    pub receive_hints: Vec<&'static str>,
    /// Metadata that senders can ask for.
    pub transmit_metadata: Vec<&'static str>,
    /// The NIC sends a packet at its time.
    pub launch_time: bool,
}

/// Stamps of packets in one direction.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stamps {
    /// By the kernel.
    pub kernel: bool,
    /// By the NIC: the packets that it can stamp, as `ethtool -T` names them.
    pub nic: Vec<&'static str>,
}

/// Packets that a NIC stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stamping {
    /// Received packets.
    pub receive: &'static str,
    /// Sent packets, if a socket asks for it.
    pub transmit: bool,
}

/// Place in which packets wait for their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Etf {
    /// In the kernel.
    Software,
    /// In the NIC.
    Offload,
}

/// Flow control by PAUSE frames.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Flow {
    /// Negotiated with the other end.
    pub autoneg: bool,
    /// PAUSE frames that come are obeyed.
    pub rx: bool,
    /// PAUSE frames are sent.
    pub tx: bool,
}

/// Interrupt coalescing.
#[derive(Debug, Clone, Copy, Serialize)]
#[allow(missing_docs, reason = "ethtool's names")]
pub struct Coalesced {
    pub adaptive_rx: bool,
    pub adaptive_tx: bool,
    pub rx_usecs: u32,
    pub rx_frames: u32,
    pub tx_usecs: u32,
    pub tx_frames: u32,
}

/// The interfaces of this network namespace but its loopback.
///
/// # Errors
/// The list cannot be read.
pub fn interfaces() -> io::Result<Vec<String>> {
    // Unlike sysfs, this is about the namespace of the reader. Two lines are titles.
    let table = fs::read_to_string("/proc/self/net/dev")?;
    let names = table.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim()));
    let is_loopback = |name: &str| interface::state(name).is_ok_and(|state| state.loopback);
    Ok(names.filter(|name| !is_loopback(name)).map(str::to_owned).collect())
}

impl Claims {
    /// Asks the driver of an interface.
    ///
    /// # Errors
    /// [`PortError::Open`]: there is no such interface, or it cannot be asked.
    pub fn of(interface: &str) -> Result<Self, PortError> {
        Self::asked(interface).map_err(|source| {
            let missing = source.raw_os_error() == Some(libc::ENODEV);
            let (what, hint) = match missing {
                true => ("no such interface", " (`ip link` lists them)"),
                false => ("asking its driver", ""),
            };
            PortError::Open { port: interface.to_owned(), what, source, hint }
        })
    }

    fn asked(interface: &str) -> io::Result<Self> {
        let index = interface::index(interface)?;
        let stamping: Timestamping = asked(interface)?.unwrap_or_default();
        let capabilities = stamping.capability_names();
        let can = |name| capabilities.contains(&name);
        let by_nic = |direction, names: Vec<&'static str>| {
            let usable = can(direction) && can("hardware-raw-clock");
            names.into_iter().filter(|name| usable && !["none", "off"].contains(name)).collect()
        };
        Ok(Self {
            interface: interface.to_owned(),
            driver: asked::<Driver>(interface)?.map(|told| told.name()),
            queues: asked::<Channels>(interface)?.map(Queues::from),
            af_xdp: netlink::xdp_features(index).ok().map(AfXdp::from),
            receive_stamps: Stamps {
                kernel: can("software-receive"),
                nic: by_nic("hardware-receive", stamping.filter_names()),
            },
            transmit_stamps: Stamps {
                kernel: can("software-transmit"),
                nic: by_nic("hardware-transmit", stamping.transmit_type_names()),
            },
            stamping: interface::stamping(interface).ok().map(|now| Stamping {
                receive: filter_name(now.receive_filter()),
                transmit: now.sends(),
            }),
            etf: qdisc::all(index)?
                .iter()
                .find_map(|found| found.etf)
                .map(|told| if told.offload { Etf::Offload } else { Etf::Software }),
            // Nothing told is a clock of number 0, which is another's.
            phc: (stamping.clock >= 0 && !capabilities.is_empty())
                .then(|| format!("ptp{}", stamping.clock)),
            pause: asked::<Pause>(interface)?.map(Flow::from),
            coalescing: asked::<Coalescing>(interface)?.map(Coalesced::from),
        })
    }
}

/// The answer to a question that a driver may not know.
fn asked<A: Answer>(interface: &str) -> io::Result<Option<A>> {
    match ethtool::get(interface) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        other => other.map(Some),
    }
}

impl From<Channels> for Queues {
    fn from(Channels { rx, tx, combined, .. }: Channels) -> Self {
        Self { rx, tx, combined }
    }
}

impl AfXdp {
    /// Whether programs can ask for the NIC's stamp of a packet.
    #[must_use]
    pub fn hints_stamps(&self) -> bool {
        self.receive_hints.contains(&HINTS[0])
    }

    /// Whether sockets can ask for stamps of sent packets.
    #[must_use]
    pub fn stamps_sent(&self) -> bool {
        self.transmit_metadata.contains(&AT_SENDING[0])
    }
}

impl From<XdpFeatures> for AfXdp {
    fn from(told: XdpFeatures) -> Self {
        let transmit_metadata = named(told.socket, &AT_SENDING);
        Self {
            zero_copy: told.actions & ZERO_COPY != 0,
            receive_hints: named(told.hints, &HINTS),
            launch_time: transmit_metadata.contains(&AT_SENDING[2]),
            transmit_metadata,
        }
    }
}

impl From<Pause> for Flow {
    fn from(told: Pause) -> Self {
        Self { autoneg: told.autoneg != 0, rx: told.rx != 0, tx: told.tx != 0 }
    }
}

impl From<Coalescing> for Coalesced {
    fn from(told: Coalescing) -> Self {
        Self {
            adaptive_rx: told.adaptive_rx != 0,
            adaptive_tx: told.adaptive_tx != 0,
            rx_usecs: told.rx_usecs,
            rx_frames: told.rx_frames,
            tx_usecs: told.tx_usecs,
            tx_frames: told.tx_frames,
        }
    }
}
