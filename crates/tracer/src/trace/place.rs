//! Mount point of tracefs: that of this host, else a mount of this process alone.

use super::TraceError;
use rustix::mount::{self, FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where tracefs is; older systems have it within debugfs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// A mount that is in no folder: other processes do not see it, and the kernel removes it at the end of this process,
/// also after a crash. The content of tracefs is the host's all the same: instances outlive the mount.
static OWN: OnceLock<OwnedFd> = OnceLock::new();

/// The folder of tracefs. As root it is there even where the host has not mounted it.
///
/// # Errors
/// It is not mounted, and this process may not mount it.
pub(super) fn tracefs() -> Result<PathBuf, TraceError> {
    let seen = PLACES.iter().map(PathBuf::from).find(|place| place.join("instances").is_dir());
    match seen {
        Some(place) => Ok(place),
        None => own().map_err(|source| refused(&source)),
    }
}

/// Where the kernel lists its events, without any instance.
///
/// # Errors
/// It cannot be seen.
pub(super) fn events() -> Result<PathBuf, TraceError> {
    let events = tracefs()?.join("events");
    fs::read(events.join("sched/sched_switch/id")).map(|_| events).map_err(|source| {
        TraceError::Impossible(format!(
            "{}/events/sched/sched_switch/id: {source}; perf knows events by their numbers there: run as root",
            PLACES[0]
        ))
    })
}

fn own() -> io::Result<PathBuf> {
    let own = match OWN.get() {
        Some(own) => own,
        None => {
            let new = mounted()?;
            OWN.get_or_init(|| new)
        }
    };
    Ok(PathBuf::from(format!("/proc/self/fd/{}", own.as_raw_fd())))
}

fn mounted() -> io::Result<OwnedFd> {
    let tracefs = mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    mount::fsconfig_create(&tracefs)?;
    let restricted = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(mount::fsmount(&tracefs, FsMountFlags::FSMOUNT_CLOEXEC, restricted)?)
}

fn refused(source: &io::Error) -> TraceError {
    let why = match source.kind() {
        ErrorKind::PermissionDenied => "needs root (CAP_SYS_ADMIN), outside of a container",
        _ if Path::new(PLACES[0]).is_dir() => {
            "mount it as root: mount -t tracefs nodev /sys/kernel/tracing"
        }
        _ => "expected a kernel with CONFIG_TRACING",
    };
    TraceError::Impossible(format!(
        "tracefs: not mounted at {}, and cannot be mounted: {source}; {why}",
        PLACES[0]
    ))
}
