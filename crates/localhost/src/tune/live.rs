//! The host that this runs on, or a tree that looks like one.

use super::host::{Host, Refused};
use super::{latency, nic, threads};
use crate::inspect;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use tailtrim_host::{Tree, Unread};
use tailtrim_tune::{Command, Place, Places, Value};

/// Files under a root; with `/` for root also services, threads, interfaces and the latency that is held.
#[derive(Debug)]
pub struct Live {
    files: inspect::Host,
    state: PathBuf,
}

impl Live {
    /// A host: its root (`/`, or a folder with a tree like it) and the folder of the journal, which also has the name
    /// of the exit latency's holder.
    #[must_use]
    pub fn new(root: &Path, state: &Path) -> Self {
        Self { files: inspect::Host::rooted(root), state: state.to_owned() }
    }

    /// Places other than files exist only on the running host.
    fn here(&self, place: &Place) -> Result<(), Unread> {
        if self.files.is_running() || place.path().is_some() {
            return Ok(());
        }
        Err(Unread::NotCaptured { path: place.to_string() })
    }
}

impl Tree for Live {
    fn read(&self, path: &str) -> Result<Vec<u8>, Unread> {
        self.files.read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        self.files.list(path)
    }

    fn link(&self, path: &str) -> Result<String, Unread> {
        self.files.link(path)
    }
}

impl Places for Live {
    fn place(&self, place: &Place) -> Result<Option<Value>, Unread> {
        self.here(place)?;
        let told = |error: io::Error| self.files.unread(&place.to_string(), &error);
        match place {
            Place::File { path } | Place::Config { path } => match self.read(path) {
                Ok(bytes) => Ok(Some(Value(bytes))),
                Err(Unread::Missing { .. }) => Ok(None),
                Err(why) => Err(why),
            },
            Place::Directory { path } => Ok(self.files.place(path)?.is_dir().then(Value::default)),
            Place::Nic { interface, group, key } => nic::read(interface, *group, key).map_err(told),
            Place::Service { name } => service(name).map_err(told),
            Place::Thread { pid, start, .. } => threads::read(*pid, *start).map_err(told),
            Place::Latency => latency::read(&self.state).map_err(told),
        }
    }
}

impl Host for Live {
    fn write(&mut self, place: &Place, value: Option<&[u8]>) -> Result<(), Refused> {
        let unread = |why: Unread| Refused(why.to_string());
        self.here(place).map_err(unread)?;
        let inside = |path: &str| self.files.place(path).map_err(unread);
        let told = |error: io::Error| Refused::from(&error);
        let text = value.map(|value| String::from_utf8_lossy(value).trim().to_owned());
        match (place, value, text) {
            (Place::File { path }, Some(value), _) => {
                // Not created. Truncated as a shell's `>` does: it means nothing to the kernel's files, and
                // a captured tree has ordinary ones.
                let file = OpenOptions::new().write(true).truncate(true).open(inside(path)?);
                file.and_then(|mut file| file.write_all(value)).map_err(told)
            }
            (Place::Config { path }, Some(value), _) => {
                write_config(&inside(path)?, value).map_err(told)
            }
            (Place::Config { path }, None, _) => remove(&inside(path)?).map_err(told),
            (Place::Directory { path }, Some(_), _) => fs::create_dir(inside(path)?).map_err(told),
            (Place::Directory { path }, None, _) => {
                if path.starts_with("/sys/fs/cgroup/") {
                    release_processes(&inside(path)?);
                }
                fs::remove_dir(inside(path)?).map_err(told)
            }
            (Place::Nic { interface, group, key }, Some(_), Some(text)) => {
                nic::write(interface, *group, key, &text).map_err(told)
            }
            (Place::Service { name }, Some(_), Some(text)) => {
                let verb = if text == "active" { "start" } else { "stop" };
                run("systemctl", &[verb, name])
            }
            (Place::Thread { pid, start, .. }, Some(_), Some(text)) => {
                threads::write(*pid, *start, &text).map_err(told)
            }
            (Place::Latency, Some(_), Some(text)) => {
                latency::start(&self.state, &text).map_err(Refused)
            }
            (Place::Latency, None, _) => latency::stop(&self.state).map_err(told),
            _ => Err(Refused(format!("{place} cannot be removed"))),
        }
    }

    fn run(&mut self, command: Command) -> Result<(), Refused> {
        if !self.files.is_running() {
            return Ok(());
        }
        run(command.program(), command.arguments())
    }

    fn keeps_bytes(&self) -> bool {
        !self.files.is_running()
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), Refused> {
    let output = process::Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Refused(format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(Refused(format!("{}: {}", output.status, errors.lines().next_back().unwrap_or_default())))
}

/// Writes in place: the journal has the old content, and a temporary copy would have to be cleaned up as well.
fn write_config(path: &Path, value: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    file.write_all(value)?;
    file.sync_all()?;
    sync_parent(path)
}

fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    sync_parent(path)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

/// Moves the processes of a cgroup that is to be removed to its parent; if some cannot be moved, the removal reports
/// the failure.
fn release_processes(folder: &Path) {
    let Some(parent) = folder.parent() else { return };
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in processes.lines() {
        // A process that has ended meanwhile need not be moved.
        let _ = fs::write(parent.join("cgroup.procs"), pid);
    }
}

fn service(name: &str) -> io::Result<Option<Value>> {
    if !Path::new("/run/systemd/system").is_dir() {
        return Err(io::Error::other("systemd does not run here"));
    }
    let mut asked = process::Command::new("systemctl");
    let output = asked.args(["is-active", name]).stdin(Stdio::null()).output()?;
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // A service that is unknown, has failed or is ending right now does not run.
    let state = if matches!(told.as_str(), "active" | "activating" | "reloading") {
        "active"
    } else {
        "inactive"
    };
    Ok(Some(state.into()))
}
