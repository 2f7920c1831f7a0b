//! Loads that `tailtrim-dpdk` sends: a process of its own, which gets each frame with its intended departure and
//! returns the actual one (docs/decisions/dpdk.md).

use crate::generate::{Load, Stop};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::env;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_stats::{DepartureLateness, LatenessSummary};
use tailtrim_sys::process;
use tailtrim_tail::capture::write::{header, record_header};
use tailtrim_tracer::clock::Unstepped;
use tailtrim_wire::traffic::Probe;

const PROGRAM: &str = "tailtrim-dpdk";
/// From the start of the clock to the first departure: the first frames have to get there.
const LEAD_NS: i64 = 20_000_000;
/// Time until a load ends that is told to end.
const LOOK: Duration = Duration::from_millis(20);
/// Frames and departures that are on their way together.
const BUFFER: usize = 1 << 18;

/// Why DPDK did not send a load.
#[derive(Debug, thiserror::Error)]
pub enum DpdkError {
    /// The program is not there.
    #[error(
        "{PROGRAM} cannot be started: {0}, expected Debian package {PROGRAM}, or `make -C dpdk` in tailtrim's source"
    )]
    Start(#[source] io::Error),
    /// The program ended with an error.
    #[error("{PROGRAM}: {told}")]
    Ended {
        /// The program's own words.
        told: String,
        /// Its exit code, as the agent's.
        code: i32,
    },
    /// The log of departures.
    #[error("the log of departures cannot be written: {0}")]
    Log(#[source] io::Error),
}

/// Result of sending a load.
#[derive(Debug, Clone, Serialize)]
pub struct Sent {
    /// From the first to the last intended departure, in ns.
    pub intended_ns: u64,
    /// From the first to the last actual departure, in ns.
    pub actual_ns: u64,
    /// Intended packets a second.
    pub intended_pps: f64,
    /// Packets a second that were sent.
    pub achieved_pps: f64,
    /// Departure lateness of the probes sent.
    pub lateness_ns: LatenessSummary,
    /// The counts of the program.
    #[serde(flatten)]
    pub counted: Value,
}

/// A device that is open.
pub struct Device {
    program: Child,
    load: UnixStream,
    events: BufReader<ChildStdout>,
    errors: ChildStderr,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Bytes without FCS of the longest frame that it sends.
    pub longest: usize,
}

#[derive(Deserialize)]
struct Ready {
    longest_frame: usize,
    ports: Vec<ReadyPort>,
}

#[derive(Deserialize)]
struct ReadyPort {
    mac: String,
}

impl Device {
    /// Opens a device, as DPDK names it, with a queue and a thread on each of these CPUs.
    ///
    /// # Errors
    /// [`DpdkError`] where the program is missing, or says why it cannot.
    pub fn open(device: &str, cpus: &[usize]) -> Result<Self, DpdkError> {
        let (load, theirs) = UnixStream::pair().map_err(DpdkError::Start)?;
        let beside = env::current_exe().ok().map(|path| path.with_file_name(PROGRAM));
        let found = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM));
        let mut command = Command::new(found);
        command.args(["generate", "--until-eof", "--interface", device]);
        if !cpus.is_empty() {
            let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
            command.args(["--queues", &cpus.len().to_string(), "--cpu", &list.join(",")]);
        }
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = command.spawn().map_err(DpdkError::Start)?;
        // It holds the other end of the socket.
        drop(command);
        let missing = || DpdkError::Start(io::ErrorKind::BrokenPipe.into());
        let events = BufReader::new(program.stdout.take().ok_or_else(missing)?);
        let errors = program.stderr.take().ok_or_else(missing)?;
        let mut device = Self { program, load, events, errors, mac: [0; 6], longest: 0 };
        let mut line = String::new();
        // A program that ended has said why.
        let _ = device.events.read_line(&mut line);
        let Ok(ready) = serde_json::from_str::<Ready>(&line) else { return Err(device.failure()) };
        device.longest = ready.longest_frame;
        let mac = ready.ports.first().map(|port| port.mac.split(':')).into_iter().flatten();
        for (to, from) in device.mac.iter_mut().zip(mac) {
            *to = u8::from_str_radix(from, 16).unwrap_or(0);
        }
        Ok(device)
    }

    /// Sends a load to its end, or until `stopped`. `log` gets what [`crate::generate::generate`] tells of each probe;
    /// with several queues only their departures are in order of time.
    ///
    /// # Errors
    /// [`DpdkError`].
    pub fn send(
        mut self,
        load: Load,
        log: Option<&mut (dyn Write + Send)>,
        stopped: &AtomicBool,
        started: impl FnOnce(),
    ) -> Result<Sent, DpdkError> {
        started();
        let start_ns = Unstepped::from_now().now_ns() + LEAD_NS;
        let told = self.load.try_clone().map_err(DpdkError::Start)?;
        let (program, load_to, events) = (&mut self.program, &self.load, &mut self.events);
        let (departures, counted) = thread::scope(|scope| {
            // An error means that the program has ended, which says why.
            scope.spawn(move || write(load, start_ns, load_to));
            let departures = scope.spawn(move || departures(told, start_ns, log));
            let counted = scope.spawn(move || result(events));
            let mut terminated = false;
            while matches!(program.try_wait(), Ok(None)) {
                if stopped.load(Ordering::Relaxed) && !terminated {
                    terminated = true;
                    // One that has just ended needs no signal.
                    let _ = process::terminate(program.id());
                }
                thread::sleep(LOOK);
            }
            (joined(departures.join()), joined(counted.join()))
        });
        let departures = departures.map_err(DpdkError::Log)?;
        counted.map_or_else(|| Err(self.failure()), |counted| Ok(departures.told(counted)))
    }

    /// The error of a program that ended, or that is ended now.
    fn failure(&mut self) -> DpdkError {
        let _ = self.load.shutdown(Shutdown::Both);
        let mut text = String::new();
        let _ = self.errors.read_to_string(&mut text);
        let code = self.program.wait().ok().and_then(|status| status.code()).unwrap_or(4);
        // Behind its error are the last lines of DPDK's own log.
        let text = text.split_once("error: ").map_or(text.as_str(), |(_, told)| told);
        let told = match text.trim() {
            "" => format!("ended with {code}"),
            text => text.lines().map(str::trim).collect::<Vec<_>>().join("; "),
        };
        DpdkError::Ended { told, code }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Writes the load as a capture whose stamps are the departures. Zeros at the end of a frame are left out.
fn write(load: Load, start_ns: i64, to: &UnixStream) -> io::Result<()> {
    let Load { schedule, sizes, builder, stop } = load;
    let mut frames: Vec<Vec<u8>> =
        sizes.distinct().into_iter().map(|bytes| builder.frame(bytes)).collect();
    let mut out = BufWriter::with_capacity(BUFFER, to);
    out.write_all(&header(builder.filled() as u32))?;
    for (number, offset_ns) in (0..).zip(schedule) {
        let is_over = match stop {
            Stop::Packets(most) => number >= most,
            Stop::After(end_ns) => offset_ns >= end_ns,
        };
        if is_over {
            break;
        }
        let intended_ns = start_ns + offset_ns as i64;
        let bytes = sizes.of(number);
        let Some(frame) = frames.iter_mut().find(|frame| frame.len() == bytes) else { break };
        let probe = Probe {
            flow: builder.flow(number),
            sequence: number,
            intended_ns: intended_ns.cast_unsigned(),
        };
        builder.stamp(frame, probe);
        let kept = &frame[..builder.filled()];
        out.write_all(&record_header(intended_ns, kept.len() as u32, bytes as u32))?;
        out.write_all(kept)?;
    }
    out.flush()?;
    drop(out);
    to.shutdown(Shutdown::Write)
}

/// Departures of all probes.
struct Departures {
    start_ns: i64,
    due: u64,
    sent: u64,
    last_intended_ns: i64,
    first_actual_ns: i64,
    last_actual_ns: i64,
    lateness: DepartureLateness,
}

/// Reads departures to the end. An error of the log ends the program, which would wait for its departures to be read.
fn departures(
    from: UnixStream,
    start_ns: i64,
    log: Option<&mut (dyn Write + Send)>,
) -> io::Result<Departures> {
    let failed = from.try_clone()?;
    let read = read(from, start_ns, log);
    if read.is_err() {
        // One that has ended has closed it.
        let _ = failed.shutdown(Shutdown::Both);
    }
    read
}

/// Reads departures to the end: pairs of intended and actual time, as little-endian i64; 0: not sent.
fn read(
    from: UnixStream,
    start_ns: i64,
    mut log: Option<&mut (dyn Write + Send)>,
) -> io::Result<Departures> {
    let mut from = BufReader::with_capacity(BUFFER, from);
    let mut seen = Departures {
        start_ns,
        due: 0,
        sent: 0,
        last_intended_ns: start_ns,
        first_actual_ns: i64::MAX,
        last_actual_ns: i64::MIN,
        lateness: DepartureLateness::default(),
    };
    let mut pair = [[0; 8]; 2];
    // A program that was killed leaves a part of a pair, or resets the socket.
    while from.read_exact(pair.as_flattened_mut()).is_ok() {
        let [intended_ns, actual_ns] = pair.map(i64::from_le_bytes);
        let number = seen.due;
        seen.due += 1;
        seen.last_intended_ns = seen.last_intended_ns.max(intended_ns);
        if actual_ns == 0 {
            continue;
        }
        seen.sent += 1;
        seen.first_actual_ns = seen.first_actual_ns.min(actual_ns);
        seen.last_actual_ns = seen.last_actual_ns.max(actual_ns);
        seen.lateness.record(actual_ns - intended_ns);
        if let Some(log) = &mut log {
            for value in [number.cast_signed(), intended_ns, actual_ns] {
                log.write_all(&value.to_le_bytes())?;
            }
        }
    }
    if let Some(log) = &mut log {
        log.flush()?;
    }
    Ok(seen)
}

/// Reads events up to the result.
fn result(events: &mut BufReader<ChildStdout>) -> Option<Value> {
    let events = events.lines().map_while(Result::ok);
    let mut events = events.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let mut result = events.find(|event| event["event"] == "result")?;
    let fields = result.as_object_mut()?;
    // Those of the agent's own event.
    fields.remove("event");
    fields.remove("schema");
    Some(result)
}

impl Departures {
    fn told(self, counted: Value) -> Sent {
        let actual_ns = self.last_actual_ns.saturating_sub(self.first_actual_ns).max(0) as u64;
        let intended_ns = (self.last_intended_ns - self.start_ns).max(0) as u64;
        let per_second = |count: u64, ns: u64| {
            if ns == 0 { 0.0 } else { count.saturating_sub(1) as f64 * 1e9 / ns as f64 }
        };
        Sent {
            intended_ns,
            actual_ns,
            intended_pps: per_second(self.due, intended_ns),
            achieved_pps: per_second(self.sent, actual_ns),
            lateness_ns: self.lateness.summary(),
            counted,
        }
    }
}
