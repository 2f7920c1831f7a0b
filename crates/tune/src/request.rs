//! Request of the operator.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use tailtrim_host::{Cpus, Workload};

/// A named collection of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Polling applications (DPDK, AF_XDP): Table I of "Ducked Tails", with the names that kernels know.
    LatencyPoll,
    /// Applications behind sockets: tuned's `network-latency` and the tuning of reflection servers.
    LatencyKernel,
    /// Host of virtual network functions: Intel's NFV-I host configuration.
    NfvHost,
    /// Virtual network function's own system.
    NfvGuest,
    /// Only what makes a measurement repeatable, all of it at run time.
    MeasureOnly,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 5] =
        [Self::LatencyPoll, Self::LatencyKernel, Self::NfvHost, Self::NfvGuest, Self::MeasureOnly];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LatencyPoll => "latency-poll",
            Self::LatencyKernel => "latency-kernel",
            Self::NfvHost => "nfv-host",
            Self::NfvGuest => "nfv-guest",
            Self::MeasureOnly => "measure-only",
        }
    }

    /// Whether it makes no sense without CPUs that are kept free.
    #[must_use]
    pub fn needs_isolation(self) -> bool {
        matches!(self, Self::LatencyPoll | Self::NfvHost | Self::NfvGuest)
    }
}

/// Treatment of hardware threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Smt {
    /// As the profile has it.
    #[default]
    Profile,
    /// Switch them off.
    Off,
    /// Left as it is; siblings stay together.
    Keep,
}

/// Whether the frequency may rise above the nominal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Turbo {
    /// Leave it.
    #[default]
    Keep,
    /// Least jitter.
    Off,
    /// Fastest.
    On,
}

/// Treatment of changes that take effect at the next start of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Boot {
    /// It is printed.
    #[default]
    Print,
    /// It is written to drop-ins: of GRUB, systemd and modprobe.
    Grub,
}

/// Huge pages to set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// Size of one in KiB.
    pub kib: u64,
    /// Number of pages.
    pub count: u64,
}

impl HugePages {
    /// The size as boot parameters have it: `2M`, `1G`.
    #[must_use]
    pub fn size(&self) -> String {
        match self.kib {
            kib if kib % (1 << 20) == 0 => format!("{}G", kib >> 20),
            kib if kib % (1 << 10) == 0 => format!("{}M", kib >> 10),
            kib => format!("{kib}K"),
        }
    }
}

impl FromStr for HugePages {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?}: expected size and number of huge pages such as 2M:512 or 1G:4");
        let (size, count) = text.split_once(':').ok_or_else(wrong)?;
        let unit = match size.char_indices().next_back() {
            Some((at, 'K' | 'k')) => Some((at, 0)),
            Some((at, 'M' | 'm')) => Some((at, 10)),
            Some((at, 'G' | 'g')) => Some((at, 20)),
            _ => None,
        };
        let (at, shift) = unit.ok_or_else(wrong)?;
        let size: u64 = size[..at].parse().map_err(|_| wrong())?;
        let kib = size.checked_mul(1 << shift).filter(|kib| *kib > 0).ok_or_else(wrong)?;
        let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
        Ok(Self { kib, count })
    }
}

impl fmt::Display for HugePages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.size(), self.count)
    }
}

/// Request of the operator: the division of CPUs, and the changes to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Set of changes.
    pub profile: Profile,
    /// Way in which packets come to the application.
    pub workload: Workload,
    /// CPUs for the workload; `None` chooses.
    pub isolate: Option<Cpus>,
    /// CPUs for everything else; `None` takes what is left.
    pub housekeeping: Option<Cpus>,
    /// Number of cores to isolate, where the set is to be chosen.
    pub isolate_cores: Option<usize>,
    /// Number of cores for everything else, where the set is to be chosen.
    pub housekeeping_cores: Option<usize>,
    /// Interfaces that the workload uses.
    pub nics: Vec<String>,
    /// Huge pages to set aside.
    pub huge_pages: Option<HugePages>,
    /// Ring size to set on the interfaces.
    pub ring: Option<u32>,
    /// Queues to give the interfaces.
    pub queues: Option<u32>,
    /// Treatment of hardware threads.
    pub smt: Smt,
    /// Treatment of turbo.
    pub turbo: Turbo,
    /// Treatment of the boot line.
    pub boot: Boot,
    /// C-states with a longer exit latency are not used on the workload's CPUs.
    pub exit_latency_us: u64,
    /// Managers to stop before anything is changed.
    pub take_over: Vec<String>,
    /// Changes to leave out, by their id or by a check's.
    pub without: Vec<String>,
    /// The only changes to keep, by their id or by a check's; empty keeps all.
    pub only: Vec<String>,
}

impl Request {
    /// Request of a profile with its defaults.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let workload = match profile {
            Profile::LatencyPoll => Workload::Poll,
            Profile::LatencyKernel | Profile::MeasureOnly => Workload::Interrupt,
            Profile::NfvHost => Workload::Vm,
            Profile::NfvGuest => Workload::Guest,
        };
        Self {
            profile,
            workload,
            isolate: None,
            housekeeping: None,
            isolate_cores: None,
            housekeeping_cores: None,
            nics: Vec::new(),
            huge_pages: None,
            ring: None,
            queues: None,
            smt: Smt::default(),
            turbo: Turbo::default(),
            boot: Boot::default(),
            exit_latency_us: 2,
            take_over: Vec::new(),
            without: Vec::new(),
            only: Vec::new(),
        }
    }

    /// Whether hardware threads are switched off: Table I has `nosmt`, on the host only.
    #[must_use]
    pub fn smt_off(&self) -> bool {
        match self.smt {
            Smt::Off => true,
            Smt::Keep => false,
            Smt::Profile => {
                self.profile == Profile::LatencyPoll && self.workload != Workload::Guest
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_have_a_size_and_a_number() {
        let pages: HugePages = "1G:4".parse().unwrap();
        assert_eq!((pages.kib, pages.count, pages.to_string().as_str()), (1 << 20, 4, "1G:4"));
        assert_eq!("2048K:3".parse::<HugePages>().unwrap().size(), "2M");
        for wrong in ["", "1G", "G:1", "1G:0", "0G:1", "1:2", "1T:1", "é:1", "1G:-1"] {
            assert!(wrong.parse::<HugePages>().is_err(), "{wrong}");
        }
    }
}
