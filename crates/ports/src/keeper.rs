//! A privileged helper process that undoes changes after the main process has dropped its privileges.
//!
//! It undoes the changes when the main process ends, for whatever reason: it sees the end of file on a pipe.

use rustix::thread::CapabilitySet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use tailtrim_sys::capabilities;
use tailtrim_sys::placement;
use tailtrim_sys::process;

/// Changes of the host that dropping this undoes.
pub trait Kept {
    /// Numbers that describe their present state, such as counters.
    ///
    /// # Errors
    /// The system's.
    fn look(&self) -> io::Result<Numbers> {
        Ok(Numbers::new())
    }
}

/// Numbers by name.
pub type Numbers = BTreeMap<String, u64>;

/// An operation of the helper process that failed, in a form that passes through the pipe.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Failure {
    /// The operation.
    pub what: String,
    /// The system's error text.
    pub why: String,
}

impl Failure {
    /// Makes a failure from an error of the system, which does not name the operation.
    pub fn of(what: &str) -> impl Fn(io::Error) -> Self {
        move |why| Self { what: what.to_owned(), why: why.to_string() }
    }
}

/// The helper process. Dropping this stops it and waits until everything is undone.
#[derive(Debug)]
pub struct Keeper {
    ask: Option<PipeWriter>,
    answers: BufReader<PipeReader>,
}

impl Keeper {
    /// Starts the process, which runs `set_up` and then has CAP_NET_ADMIN, but no other capability. Returns the result
    /// of `set_up`. To be called before other threads are started.
    ///
    /// # Errors
    /// The failure of `set_up`, or of starting the process.
    pub fn start<T: Serialize + DeserializeOwned, K: Kept>(
        set_up: impl FnOnce() -> Result<(T, K), Failure>,
    ) -> Result<(T, Self), Failure> {
        let starting = Failure::of("starting a process that keeps what needs privileges");
        let (answers, ask) = process::beside(|mut requests, mut answers| {
            // The end of a terminal and its Ctrl-C are for the main process, which then ends this one. So is SIGTERM, which
            // goes to every process of a service.
            let _ = process::leave_session();
            let _ = process::ignore_requests_to_end();
            placement::name_threads("tt-keeper");
            let set_up = keep_network_rights()
                .map_err(Failure::of("giving up all capabilities but CAP_NET_ADMIN"))
                .and_then(|()| set_up());
            match set_up {
                Ok((told, kept)) => {
                    let _ = tell(&mut answers, &Ok::<_, Failure>(told));
                    // Both pipes outlive what is kept: their ends say that it is undone.
                    serve(&kept, &mut requests, &mut answers);
                }
                Err(failure) => drop(tell(&mut answers, &Err::<T, _>(failure))),
            }
        })
        .map_err(starting)?;
        let mut keeper = Self { ask: Some(ask), answers: BufReader::new(answers) };
        let told = keeper.hear::<Result<T, Failure>>().map_err(Failure::of(ENDED))??;
        Ok((told, keeper))
    }

    /// Asks the helper process for the present numbers of the changes.
    ///
    /// # Errors
    /// The failure of [`Kept::look`], or the end of the process.
    pub fn look(&mut self) -> Result<Numbers, Failure> {
        let asked = self.ask.as_mut().map_or(Ok(()), |ask| ask.write_all(&[LOOK]));
        asked.map_err(Failure::of(ENDED))?;
        self.hear::<Result<Numbers, Failure>>().map_err(Failure::of(ENDED))?
    }

    fn hear<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.ask = None;
        // The helper closes its end of the pipe when it exits, which it does after everything is undone.
        let _ = self.answers.read_to_end(&mut Vec::new());
    }
}

/// The one request that there is.
const LOOK: u8 = b'?';
const ENDED: &str = "asking the process that keeps what needs privileges (was it killed?)";

/// Answers requests until the main process has ended.
fn serve(kept: &impl Kept, requests: &mut PipeReader, answers: &mut PipeWriter) {
    let mut request = [0];
    while requests.read_exact(&mut request).is_ok() {
        if tell(answers, &kept.look().map_err(Failure::of("looking"))).is_err() {
            break;
        }
    }
}

fn tell<T: Serialize>(answers: &mut PipeWriter, told: &T) -> io::Result<()> {
    answers.write_all((serde_json::to_string(told)? + "\n").as_bytes())
}

/// Drops all capabilities but CAP_NET_ADMIN, also for the programs that this process executes: they would get all of
/// root's.
fn keep_network_rights() -> io::Result<()> {
    let needed = CapabilitySet::NET_ADMIN;
    capabilities::never_gain()?;
    match capabilities::empty_bounding_set(needed) {
        // An ordinary user with file capabilities: programs that it executes have none of them.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        other => other?,
    }
    capabilities::keep(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Kept for Nothing {}

    #[test]
    fn a_process_with_several_threads_gets_no_keeper() {
        // A thread other than the one that runs the test.
        let (over, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        let refused = Keeper::start(|| Ok(((), Nothing))).unwrap_err();
        assert!(refused.to_string().ends_with("more than one thread"), "{refused}");
        drop(over);
        other.join().unwrap().unwrap_err();
    }
}
