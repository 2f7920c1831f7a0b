//! The options for the wanted changes.

use crate::options::{microseconds, one_of};
use tailtrim_host::Cpus;
use tailtrim_tune::{Boot, HugePages, Profile, Request, Smt, Turbo, Workload};

/// Wanted state of the host.
#[derive(Debug, clap::Args)]
pub(super) struct Wanted {
    /// Set of changes
    #[arg(long, value_parser = one_of(&profiles()), default_value = "latency-poll")]
    profile: Profile,
    /// CPUs for the workload, such as 2-7 (default: chosen by cores, caches and the interfaces' node)
    #[arg(long, value_name = "CPUS", conflicts_with = "isolate_cores")]
    isolate: Option<Cpus>,
    /// CPUs for everything else (default: all others)
    #[arg(long, value_name = "CPUS")]
    housekeeping: Option<Cpus>,
    /// Number of cores to isolate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    isolate_cores: Option<u16>,
    /// Number of cores for everything else
    #[arg(long, value_name = "N", conflicts_with = "housekeeping",
          value_parser = clap::value_parser!(u16).range(1..))]
    housekeeping_cores: Option<u16>,
    /// Interface that the workload uses; repeatable
    #[arg(long = "interface", value_name = "INTERFACE", value_delimiter = ',')]
    nics: Vec<String>,
    /// Packet processing of the workload: poll, interrupt, vm (host of virtual machines) or guest (virtual machine)
    /// (default: that of the profile)
    #[arg(long)]
    workload: Option<Workload>,
    /// Huge pages to reserve, such as 2M:512 or 1G:4
    #[arg(long, value_name = "SIZE:N")]
    hugepages: Option<HugePages>,
    /// Ring size of the interfaces
    #[arg(long, value_name = "N", requires = "nics")]
    ring: Option<u32>,
    /// Queues of the interfaces
    #[arg(long, value_name = "N", requires = "nics")]
    queues: Option<u32>,
    /// Hyper-threads: the second hardware threads of cores (default: off in latency-poll)
    #[arg(long, value_parser = one_of(SMT))]
    smt: Option<Smt>,
    /// Turbo frequencies
    #[arg(long, value_parser = one_of(TURBO), default_value = "keep")]
    turbo: Turbo,
    /// Longest exit latency of idle states on the workload's CPUs, such as 2us
    #[arg(long, value_name = "TIME", default_value = "2us", value_parser = microseconds)]
    exit_latency: u32,
    /// Action for changes of the boot line and of files read at boot
    #[arg(long, value_parser = one_of(BOOT), default_value = "print")]
    boot: Boot,
    /// Stop a service that would set the same values itself, such as tuned or irqbalance; revert starts it again
    #[arg(long, value_name = "SERVICE", value_delimiter = ',')]
    take_over: Vec<String>,
    /// Leave out a change, by its name or the ID of its check
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    without: Vec<String>,
    /// Keep only these changes, by their names or the IDs of their checks
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
}

/// Names of the profiles with their help.
fn profiles() -> [(&'static str, &'static str, Profile); 5] {
    Profile::ALL.map(|profile| {
        let help = match profile {
            Profile::LatencyPoll => {
                "Polling applications: Table I of \"Ducked Tails\", by the kernel's names"
            }
            Profile::LatencyKernel => {
                "Applications that use sockets: tuned network-latency, reflection servers"
            }
            Profile::NfvHost => "Host of virtual network functions: Intel's NFV-I configuration",
            Profile::NfvGuest => "A virtual network function's own system",
            Profile::MeasureOnly => {
                "Only changes that make measurements repeatable, none on the boot line"
            }
        };
        (profile.name(), help, profile)
    })
}

const SMT: &[(&str, &str, Smt)] = &[
    ("off", "Switch them off", Smt::Off),
    ("keep", "Leave them; threads of a core stay together", Smt::Keep),
];
const TURBO: &[(&str, &str, Turbo)] = &[
    ("keep", "Leave it", Turbo::Keep),
    ("off", "Least jitter", Turbo::Off),
    ("on", "Fastest", Turbo::On),
];
const BOOT: &[(&str, &str, Boot)] = &[
    ("print", "Print them", Boot::Print),
    ("grub", "Write drop-ins of GRUB, systemd and modprobe", Boot::Grub),
];

impl Wanted {
    pub(super) fn request(&self) -> Request {
        let usual = Request::new(self.profile);
        Request {
            workload: self.workload.unwrap_or(usual.workload),
            isolate: self.isolate.clone(),
            housekeeping: self.housekeeping.clone(),
            isolate_cores: self.isolate_cores.map(usize::from),
            housekeeping_cores: self.housekeeping_cores.map(usize::from),
            nics: self.nics.clone(),
            huge_pages: self.hugepages,
            ring: self.ring,
            queues: self.queues,
            smt: self.smt.unwrap_or_default(),
            turbo: self.turbo,
            boot: self.boot,
            exit_latency_us: self.exit_latency.into(),
            take_over: self.take_over.clone(),
            without: self.without.clone(),
            only: self.only.clone(),
            ..usual
        }
    }
}
