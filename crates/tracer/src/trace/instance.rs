//! An instance of tracefs: buffers, clock and events of our own, independent of other tracers.

use super::TraceError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tailtrim_host::Cpus;

/// Names of instances begin so, then comes the process id.
const PREFIX: &str = "tailtrim-";
/// Written when recording begins and when it ends.
const ON: &[u8] = b"1";
const OFF: &[u8] = b"0";

/// Looks for instances that are still in use, and the time between them: five seconds in all.
const LOOKS: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(50);

/// One instance. It is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct Instance {
    path: PathBuf,
    /// Open all the time: the kernel refuses to remove an instance that is in use, so that no other process takes it
    /// for a leftover. Recording also begins without looking up a path.
    switch: Option<File>,
}

/// Removes instances of processes that are gone. Returns their names.
pub(super) fn remove_leftovers(tracefs: &Path) -> Vec<String> {
    let entries = fs::read_dir(tracefs.join("instances")).into_iter().flatten().flatten();
    let mut removed = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        // A process before this one may have had its number, as in a container. The instance of a process in another
        // namespace, which cannot be seen from here, is open, as this process' own: then removing it fails (busy).
        let is_gone = pid == std::process::id() || !Path::new(&format!("/proc/{pid}")).exists();
        if is_gone && fs::remove_dir(entry.path()).is_ok() {
            removed.push(name);
        }
    }
    removed
}

/// Instances that this process would leave if it were killed, for another process to remove.
#[derive(Debug)]
pub struct Leftovers {
    instances: PathBuf,
    of: String,
}

impl Leftovers {
    /// Instances of the calling process.
    ///
    /// # Errors
    /// This process may use no tracefs.
    pub fn of_this_process() -> Result<Self, TraceError> {
        let instances = super::place::tracefs()?.join("instances");
        Ok(Self { instances, of: format!("{PREFIX}{}", std::process::id()) })
    }

    /// Removes them. To be called when the process has ended: the kernel may still be closing its files, which is waited
    /// for.
    pub fn remove(&self) {
        for _ in 0..LOOKS {
            let entries = fs::read_dir(&self.instances).into_iter().flatten().flatten();
            let ours = entries.filter(|entry| {
                let name = entry.file_name();
                let rest = name.to_str().and_then(|name| name.strip_prefix(&self.of));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            });
            if ours.filter(|entry| fs::remove_dir(entry.path()).is_err()).count() == 0 {
                return;
            }
            thread::sleep(BETWEEN);
        }
    }
}

impl Instance {
    /// Creates one for this process; it does not record yet.
    pub(super) fn create(tracefs: &Path, purpose: &str) -> Result<Self, TraceError> {
        let name = format!("{PREFIX}{}{purpose}", std::process::id());
        let path = tracefs.join("instances").join(name);
        fs::create_dir(&path).map_err(|source| refused(&path, &source))?;
        let mut instance = Self { path, switch: None };
        let switch = instance.path.join("tracing_on");
        let file = OpenOptions::new().write(true).open(&switch);
        instance.switch = Some(file.map_err(|source| refused(&switch, &source))?);
        instance.stop()?;
        Ok(instance)
    }

    fn at(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// Writes a setting.
    pub(super) fn set(&self, file: &str, value: &str) -> Result<(), TraceError> {
        let path = self.at(file);
        fs::write(&path, value).map_err(|source| TraceError::Set {
            path,
            value: value.to_owned(),
            source,
        })
    }

    /// Reads a file of the instance.
    pub(super) fn get(&self, file: &str) -> Result<String, TraceError> {
        let path = self.at(file);
        fs::read_to_string(&path).map_err(|source| TraceError::Read { path, source })
    }

    /// The kernel's folder of its events.
    pub(super) fn events(&self) -> PathBuf {
        self.at("events")
    }

    /// Memory of the CPUs' buffers; those of other CPUs are left as small as they are.
    pub(super) fn size(&self, cpus: &Cpus, kilobytes: u32) -> Result<(), TraceError> {
        cpus.iter().try_for_each(|cpu| {
            self.set(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &kilobytes.to_string())
        })
    }

    /// Begins to record. It sends no interrupts, other than enabling events does.
    pub(super) fn start(&mut self) -> Result<(), TraceError> {
        self.switch(ON)
    }

    /// Ends it.
    pub(super) fn stop(&mut self) -> Result<(), TraceError> {
        self.switch(OFF)
    }

    fn switch(&mut self, value: &[u8]) -> Result<(), TraceError> {
        let path = self.at("tracing_on");
        let Some(switch) = &mut self.switch else { return Ok(()) };
        switch.write_all(value).map_err(|source| TraceError::Set {
            path,
            value: String::from_utf8_lossy(value).into_owned(),
            source,
        })
    }

    /// Takes the records of a CPU until this tick, and perhaps a little later, from the kernel: sub-buffers of `size`
    /// bytes. A CPU that still records may write as fast as it is read, so the first sub-buffer that begins later is
    /// the last one.
    pub(super) fn drain(
        &self,
        cpu: u32,
        size: usize,
        until: u64,
    ) -> Result<Vec<Vec<u8>>, TraceError> {
        let path = self.at(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let failed = |source| TraceError::Read { path: path.clone(), source };
        let mut options = OpenOptions::new();
        // It would wait for more at the end.
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut file = options.open(&path).map_err(failed)?;
        let mut pages = Vec::new();
        loop {
            let mut page = vec![0; size];
            match file.read(&mut page) {
                Ok(0) => break,
                Ok(length) => {
                    page.truncate(length);
                    let start = page.first_chunk().map_or(0, |start| u64::from_le_bytes(*start));
                    pages.push(page);
                    if start > until {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(pages)
    }

    /// A number of `per_cpu/cpuN/stats`, such as `commit overrun`.
    pub(super) fn statistic(&self, cpu: u32, label: &str) -> u64 {
        let text = self.get(&format!("per_cpu/cpu{cpu}/stats")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.stop();
        self.switch = None;
        // Its events go with it. If the removal fails, the next start removes it.
        let _ = fs::remove_dir(&self.path);
    }
}

fn refused(path: &Path, source: &io::Error) -> TraceError {
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let what = if lockdown.contains("[confidentiality]") {
        "the kernel is locked down (/sys/kernel/security/lockdown: confidentiality); boot without it"
    } else if matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) {
        "tracing needs root and a writable tracefs: run as root, outside of a container"
    } else if source.kind() == ErrorKind::AlreadyExists {
        "this process traces already: one trace at a time"
    } else {
        "expected to create a trace instance there"
    };
    TraceError::Impossible(format!("{}: {source}; {what}", path.display()))
}
