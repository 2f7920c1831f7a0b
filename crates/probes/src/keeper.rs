//! A process beside this one that keeps what takes privileges to undo, while this one does without them.
//!
//! It undoes that when this process ends, however it ends: what tells it is the end of a pipe.

use rustix::thread::CapabilitySet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use tailtrim_sys::capabilities;
use tailtrim_sys::placement;
use tailtrim_sys::process;

/// What is kept, and undone when it is dropped.
pub(crate) trait Kept {
    /// Numbers that tell how it is.
    fn look(&self) -> io::Result<Numbers>;
}

/// Numbers by name.
pub(crate) type Numbers = BTreeMap<String, u64>;

/// What did not work beside this process.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{what}: {why}")]
pub(crate) struct Failure {
    /// What was tried.
    pub(crate) what: String,
    /// What the system says.
    pub(crate) why: String,
}

impl Failure {
    /// What an error becomes that says nothing of what was tried.
    pub(crate) fn of(what: &str) -> impl Fn(io::Error) -> Self {
        move |why| Self { what: what.to_owned(), why: why.to_string() }
    }
}

/// The process, until this is dropped; that waits until everything is undone.
#[derive(Debug)]
pub(crate) struct Keeper {
    ask: Option<PipeWriter>,
    answers: BufReader<PipeReader>,
}

impl Keeper {
    /// Starts the process, which sets up what it is to keep and has CAP_NET_ADMIN from then on, but no other
    /// capability. Returns what the setting up told. To be called before other threads are started.
    pub(crate) fn start<T: Serialize + DeserializeOwned, K: Kept>(
        set_up: impl FnOnce() -> Result<(T, K), Failure>,
    ) -> Result<(T, Self), Failure> {
        let starting = Failure::of("starting a process that keeps what needs privileges");
        let (answers, ask) = process::beside(|requests, mut answers| {
            // A terminal's end and its Ctrl-C are for the process that is served, and so end this one. SIGTERM goes to
            // every process of a service: as it came, this one has the handler of the one that is served.
            let _ = process::leave_session();
            placement::name_threads("tt-keeper");
            let set_up = keep_network_rights()
                .map_err(Failure::of("giving up all capabilities but CAP_NET_ADMIN"))
                .and_then(|()| set_up());
            match set_up {
                Ok((told, kept)) => {
                    let _ = tell(&mut answers, &Ok::<_, Failure>(told));
                    serve(&kept, requests, answers);
                }
                Err(failure) => drop(tell(&mut answers, &Err::<T, _>(failure))),
            }
        })
        .map_err(starting)?;
        let mut keeper = Self { ask: Some(ask), answers: BufReader::new(answers) };
        let told = keeper.hear::<Result<T, Failure>>().map_err(Failure::of(ENDED))??;
        Ok((told, keeper))
    }

    /// Asks how what is kept is.
    pub(crate) fn look(&mut self) -> Result<Numbers, Failure> {
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
        // Its end of the pipe closes when it ends, which is when nothing is left to undo.
        let _ = self.answers.read_to_end(&mut Vec::new());
    }
}

/// The one request that there is.
const LOOK: u8 = b'?';
const ENDED: &str = "asking the process that keeps what needs privileges (was it killed?)";

/// Answers until the process that is served has ended.
fn serve(kept: &impl Kept, mut requests: PipeReader, mut answers: PipeWriter) {
    let mut request = [0];
    while requests.read_exact(&mut request).is_ok() {
        if tell(&mut answers, &kept.look().map_err(Failure::of("looking"))).is_err() {
            break;
        }
    }
}

fn tell<T: Serialize>(answers: &mut PipeWriter, told: &T) -> io::Result<()> {
    answers.write_all((serde_json::to_string(told)? + "\n").as_bytes())
}

/// Also of what this process executes, which would get all that root has.
fn keep_network_rights() -> io::Result<()> {
    let needed = CapabilitySet::NET_ADMIN;
    capabilities::never_gain()?;
    match capabilities::empty_bounding_set(needed) {
        // An ordinary user with a file's capabilities; what it executes has none of them.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        other => other?,
    }
    capabilities::keep(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Kept for Nothing {
        fn look(&self) -> io::Result<Numbers> {
            Ok(Numbers::new())
        }
    }

    #[test]
    fn a_process_with_several_threads_gets_no_keeper() {
        // Another thread than the one that runs the test.
        let (over, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        let refused = Keeper::start(|| Ok(((), Nothing))).unwrap_err();
        assert!(refused.to_string().ends_with("more than one thread"), "{refused}");
        drop(over);
        other.join().unwrap().unwrap_err();
    }
}
