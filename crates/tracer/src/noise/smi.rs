//! System management interrupts: the firmware takes all CPUs and no kernel sees it. Intel counts them.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use tailtrim_sys::perf::Counter;

/// `MSR_SMI_COUNT` (Intel's manual, volume 4).
const SMI_COUNT: u64 = 0x34;
/// The kernel's own reader of such registers (`arch/x86/events/msr.c`).
const DEVICE: &str = "/sys/bus/event_source/devices/msr";

/// Where the count is from.
#[derive(Debug)]
pub(super) enum Smi {
    /// `/dev/cpu/N/msr`.
    Register(File),
    /// The event `msr/smi/` of perf, which counts from when it was opened.
    Event(Counter),
    /// No source, with the reason.
    Unknown(String),
}

impl Smi {
    /// Finds out which there is.
    pub(super) fn open(cpu: u32) -> Self {
        let path = format!("/dev/cpu/{cpu}/msr");
        let register = File::open(&path).and_then(|file| read(&file).map(|_| file));
        let why = match register {
            Ok(file) => return Self::Register(file),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                format!("{path} is not there (modprobe msr)")
            }
            Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                format!("{path}: this processor has no count of them")
            }
            Err(error) => format!("{path}: {error}"),
        };
        match event(cpu) {
            Ok(event) => Self::Event(event),
            Err(error) => Self::Unknown(format!("{why}; {error}")),
        }
    }

    /// The count, or why there is none.
    pub(super) fn count(&self) -> Result<u64, String> {
        match self {
            Self::Register(file) => read(file).map_err(|error| error.to_string()),
            Self::Event(event) => event.count().map_err(|error| error.to_string()),
            Self::Unknown(why) => Err(why.clone()),
        }
    }
}

fn read(file: &File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, SMI_COUNT)?;
    Ok(u64::from_le_bytes(bytes))
}

fn event(cpu: u32) -> Result<Counter, String> {
    let path = format!("{DEVICE}/events/smi");
    // `event=0x04`
    let Ok(text) = fs::read_to_string(&path) else {
        return Err("perf has no msr/smi/ (Intel only, not in virtual machines)".into());
    };
    let config = text.trim().strip_prefix("event=0x").map(|digits| u64::from_str_radix(digits, 16));
    let kind = fs::read_to_string(format!("{DEVICE}/type")).ok();
    let kind = kind.and_then(|kind| kind.trim().parse().ok());
    let (Some(Ok(config)), Some(kind)) = (config, kind) else {
        return Err(format!("{path} is {text:?}, expected event=0x and a number"));
    };
    Counter::new(kind, config, cpu).map_err(|error| {
        format!(
            "perf's msr/smi/: {error} (needs root or CAP_PERFMON, or kernel.perf_event_paranoid 0)"
        )
    })
}
