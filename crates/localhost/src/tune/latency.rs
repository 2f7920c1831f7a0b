//! A process that holds `/dev/cpu_dma_latency` open: the kernel keeps the latency limit as long as that process lives.
//!
//! It locks a file of the journal's folder and writes its name there. If the starting process is killed meanwhile, no
//! holder remains: the holder reports that it is ready, and ends when the report cannot be delivered.

use super::state::StateFolder;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tailtrim_sys::process;
use tailtrim_tune::Value;

const DEVICE: &str = "/dev/cpu_dma_latency";
/// Longest wait for a holder to write its name, and to end: 5 s in steps of 10 ms.
const PATIENCE: (u32, Duration) = (500, Duration::from_millis(10));

struct Holder {
    pid: u32,
    us: i32,
}

/// The file with the holder's name, in the journal's folder.
const NAME: &str = "latency";

/// The exit latency that is held; `None` where none is.
pub(super) fn read(state: &Path) -> io::Result<Option<Value>> {
    if !Path::new(DEVICE).exists() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(holder(state)?.map(|holder| holder.us.to_string().into()))
}

fn holder(state: &Path) -> io::Result<Option<Holder>> {
    let Some(folder) = StateFolder::open(state).map_err(io::Error::other)? else { return Ok(None) };
    for _ in 0..PATIENCE.0 {
        let file = folder.file(NAME, OFlags::RDONLY).map_err(io::Error::other)?;
        let Some(mut file) = file else { return Ok(None) };
        match file.try_lock_shared() {
            Ok(()) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let mut words = text.strip_suffix('\n').unwrap_or_default().split(' ');
        let parsed = (|| Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?)))();
        if let Some((pid, us)) = parsed {
            return Ok(Some(Holder { pid, us }));
        }
        // The file is locked, but the name is not written yet.
        thread::sleep(PATIENCE.1);
    }
    Err(io::Error::other(format!("{}: locked by an unknown process", state.join(NAME).display())))
}

/// Starts a process that holds this many µs.
pub(super) fn start(state: &Path, us: &str) -> Result<(), String> {
    let told = |error: io::Error| error.to_string();
    // The text of an earlier holder must not be taken for the new one's name.
    let folder = StateFolder::make(state).map_err(|error| error.to_string())?;
    let name = folder.file_or_new(NAME).map_err(|error| error.to_string())?;
    name.set_len(0).map_err(told)?;
    let program = std::env::current_exe().map_err(told)?;
    let mut child = Command::new(program)
        .args(["tune", "hold-latency", "--state"])
        .arg(state)
        .args(["--us", us])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(told)?;
    let mut ready = [0; 6];
    let heard = child.stdout.take().map(|mut out| out.read_exact(&mut ready));
    if matches!(heard, Some(Ok(()))) && &ready == b"ready\n" {
        return Ok(());
    }
    let mut why = String::new();
    if let Some(mut errors) = child.stderr.take() {
        let _ = errors.read_to_string(&mut why);
    }
    let _ = child.wait();
    Err(format!("the process that holds it ended: {}", why.trim()))
}

/// Ends the process that holds it.
pub(super) fn stop(state: &Path) -> io::Result<()> {
    let Some(found) = holder(state)? else { return Ok(()) };
    process::terminate(found.pid)?;
    for _ in 0..PATIENCE.0 {
        if holder(state)?.is_none() {
            let folder = StateFolder::open(state).map_err(io::Error::other)?;
            return folder.map_or(Ok(()), |folder| folder.remove(NAME)).map_err(io::Error::other);
        }
        thread::sleep(PATIENCE.1);
    }
    Err(io::Error::other(format!("process {} does not end", found.pid)))
}

/// Locks the file. A process that only looks for a holder has the lock for a moment, so this tries again.
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..PATIENCE.0 {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(PATIENCE.1),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other("another process holds it"))
}

/// Holds it until the process is ended. [`Host::write`](super::Host::write) starts the process and waits for the line
/// `ready` from it, which `ready` prints.
///
/// # Errors
///
/// The device or the file cannot be opened, another process holds it, or no process waits for this one.
pub fn hold(state: &Path, us: i32, ready: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    process::leave_session()?;
    let folder = StateFolder::make(state).map_err(io::Error::other)?;
    let mut name = folder.file_or_new(NAME).map_err(io::Error::other)?;
    lock(&name)?;
    let mut device = OpenOptions::new().write(true).open(DEVICE)?;
    device.write_all(&us.to_ne_bytes())?;
    name.write_all(format!("{} {us}\n", std::process::id()).as_bytes())?;
    name.sync_all()?;
    ready()?;
    loop {
        thread::park();
    }
}
