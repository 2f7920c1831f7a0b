//! Structures of the commands of `<linux/ethtool.h>`, without the command's number in front.
#![allow(missing_docs, reason = "fields have the kernel's names")]

/// Bytes of a name.
pub(super) const NAME: usize = 32;

/// A structure as the kernel takes it: the number of the command first.
#[repr(C)]
pub(super) struct Request<B> {
    pub(super) command: u32,
    pub(super) body: B,
}

/// The answer of an interface to one command.
///
/// # Safety
///
/// The type is `repr(C)`, has no padding, takes any bits, and is as long as what the kernel writes for `GET`
/// behind the command's number.
pub unsafe trait Answer: Default {
    /// The number of the command.
    const GET: u32;
}

/// An answer that can be set, too.
///
/// # Safety
///
/// The type is also what the kernel reads for `SET`.
pub unsafe trait Settings: Answer + Copy {
    /// The number of the command that sets it.
    const SET: u32;
}

/// Interrupt coalescing: `struct ethtool_coalesce`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Coalescing {
    pub rx_usecs: u32,
    pub rx_frames: u32,
    during_receive_interrupt: [u32; 2],
    pub tx_usecs: u32,
    pub tx_frames: u32,
    during_transmit_interrupt: [u32; 2],
    statistics_usecs: u32,
    pub adaptive_rx: u32,
    pub adaptive_tx: u32,
    by_rate: [u32; 11],
}

/// Lengths of the rings: `struct ethtool_ringparam`. A ring of at most 0 is not there.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Rings {
    pub rx_max: u32,
    mini_and_jumbo_max: [u32; 2],
    pub tx_max: u32,
    pub rx: u32,
    mini_and_jumbo: [u32; 2],
    pub tx: u32,
}

/// Numbers of queues: `struct ethtool_channels`. A kind of at most 0 is not there.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Channels {
    pub rx_max: u32,
    pub tx_max: u32,
    other_max: u32,
    pub combined_max: u32,
    pub rx: u32,
    pub tx: u32,
    other: u32,
    pub combined: u32,
}

/// Flow control: `struct ethtool_pauseparam`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Pause {
    pub autoneg: u32,
    pub rx: u32,
    pub tx: u32,
}

/// Energy efficient Ethernet: `struct ethtool_eee`. Supported by no link mode, it cannot be set.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Eee {
    pub supported: u32,
    advertised: [u32; 2],
    pub active: u32,
    pub enabled: u32,
    idle: [u32; 4],
}

/// Driver and device: `struct ethtool_drvinfo`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Driver {
    driver: [u8; NAME],
    version: [u8; NAME],
    firmware: [u8; NAME],
    bus: [u8; NAME],
    rom: [u8; NAME],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// Supported stamps and their clock: `struct ethtool_ts_info`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Timestamping {
    /// Flags `SOF_TIMESTAMPING_…`.
    pub capabilities: u32,
    /// The number of the clock in `/dev/ptp…`, negative for none.
    pub clock: i32,
    transmit_types: u32,
    transmit_reserved: [u32; 3],
    /// Bits of the filters `HWTSTAMP_FILTER_…`.
    pub receive_filters: u32,
    reserved: [u32; 3],
}

/// Capabilities of stamps, `SOF_TIMESTAMPING_…` by bit.
const STAMPS: [&str; 7] = [
    "hardware-transmit",
    "software-transmit",
    "hardware-receive",
    "software-receive",
    "software-system-clock",
    "hardware-legacy-clock",
    "hardware-raw-clock",
];
/// `HWTSTAMP_TX_…` by bit.
const TRANSMIT_TYPES: [&str; 4] = ["off", "on", "onestep-sync", "onestep-p2p"];
/// `HWTSTAMP_FILTER_…` by bit.
const FILTERS: [&str; 16] = [
    "none",
    "all",
    "some",
    "ptpv1-l4-event",
    "ptpv1-l4-sync",
    "ptpv1-l4-delay-req",
    "ptpv2-l4-event",
    "ptpv2-l4-sync",
    "ptpv2-l4-delay-req",
    "ptpv2-l2-event",
    "ptpv2-l2-sync",
    "ptpv2-l2-delay-req",
    "ptpv2-event",
    "ptpv2-sync",
    "ptpv2-delay-req",
    "ntp-all",
];

impl Timestamping {
    /// Names of the capabilities, as `ethtool -T` has them.
    pub fn capability_names(&self) -> Vec<&'static str> {
        named(self.capabilities.into(), &STAMPS)
    }

    /// Which sent packets the NIC can stamp.
    pub fn transmit_type_names(&self) -> Vec<&'static str> {
        named(self.transmit_types.into(), &TRANSMIT_TYPES)
    }

    /// Which received packets the NIC can stamp.
    pub fn filter_names(&self) -> Vec<&'static str> {
        named(self.receive_filters.into(), &FILTERS)
    }
}

/// The name of a filter for received packets, by its number.
pub fn filter_name(number: i32) -> &'static str {
    usize::try_from(number).ok().and_then(|number| FILTERS.get(number)).unwrap_or(&"unknown")
}

/// Names of the bits that are set.
pub fn named(bits: u64, names: &[&'static str]) -> Vec<&'static str> {
    let set = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    set.map(|(_, name)| *name).collect()
}

// SAFETY: u32 words only, in the number and order of struct ethtool_coalesce.
unsafe impl Answer for Coalescing {
    const GET: u32 = 0x0e;
}
// SAFETY: the same structure is read.
unsafe impl Settings for Coalescing {
    const SET: u32 = 0x0f;
}
// SAFETY: u32 words only, in the number and order of struct ethtool_ringparam.
unsafe impl Answer for Rings {
    const GET: u32 = 0x10;
}
// SAFETY: the same structure is read.
unsafe impl Settings for Rings {
    const SET: u32 = 0x11;
}
// SAFETY: u32 words only, in the number and order of struct ethtool_channels.
unsafe impl Answer for Channels {
    const GET: u32 = 0x3c;
}
// SAFETY: the same structure is read.
unsafe impl Settings for Channels {
    const SET: u32 = 0x3d;
}
// SAFETY: u32 words only, in the number and order of struct ethtool_pauseparam.
unsafe impl Answer for Pause {
    const GET: u32 = 0x12;
}
// SAFETY: the same structure is read.
unsafe impl Settings for Pause {
    const SET: u32 = 0x13;
}
// SAFETY: u32 words only, in the number and order of struct ethtool_eee.
unsafe impl Answer for Eee {
    const GET: u32 = 0x44;
}
// SAFETY: the same structure is read.
unsafe impl Settings for Eee {
    const SET: u32 = 0x45;
}
// SAFETY: bytes in fours and u32 words, in the number and order of struct ethtool_drvinfo.
unsafe impl Answer for Driver {
    const GET: u32 = 0x03;
}
// SAFETY: u32 words and an i32, in the number and order of struct ethtool_ts_info.
unsafe impl Answer for Timestamping {
    const GET: u32 = 0x41;
}

const _: () = {
    assert!(size_of::<Request<Coalescing>>() == 92);
    assert!(size_of::<Request<Rings>>() == 36);
    assert!(size_of::<Request<Channels>>() == 36);
    assert!(size_of::<Request<Pause>>() == 16);
    assert!(size_of::<Request<Eee>>() == 40);
    assert!(size_of::<Request<Driver>>() == 196);
    assert!(size_of::<Request<Timestamping>>() == 44);
};

impl Driver {
    /// The name of the driver.
    pub fn name(&self) -> String {
        text(&self.driver)
    }

    /// Its version.
    pub fn version(&self) -> String {
        text(&self.version)
    }

    /// The version of the device's firmware.
    pub fn firmware(&self) -> String {
        text(&self.firmware)
    }

    /// Whether a device on a bus is behind the interface.
    pub fn has_bus(&self) -> bool {
        self.bus[0] != 0
    }
}

/// Text up to its first zero.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}
