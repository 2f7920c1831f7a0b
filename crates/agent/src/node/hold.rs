//! `tailtrim-agent node hold` and `watch`.

use crate::exit::{Exit, Failure, Outcome};
use crate::options::time;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;
use tailtrim_localhost::hold;

/// Run a command for as long as another process lives.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tailtrim-agent node hold --with $PPID --pid-file pid -- sleep 60\n\n\
    Exit code: that of the command, or 128 and the number of the signal that ended it."
)]
pub(crate) struct Hold {
    /// The process: when it ends, the command is killed
    #[arg(long, value_name = "PID")]
    with: u32,
    /// Write the number of the command's process to this file
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// Program and arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// End another process when standard input is silent, or ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tailtrim-agent node watch --with $PPID --silence 10s")]
pub(crate) struct Watch {
    /// The process
    #[arg(long, value_name = "PID")]
    with: u32,
    /// End it when nothing has come for so long, such as 10s
    #[arg(long, value_name = "TIME", value_parser = time)]
    silence: i64,
}

/// Runs the command; its exit code is this one's.
pub(crate) fn hold(request: &Hold) -> Result<ExitCode, Failure> {
    let [program, arguments @ ..] = request.command.as_slice() else {
        return Err(Failure::usage("hold: no command"));
    };
    let started = |pid| request.pid_file.as_ref().map_or(Ok(()), |file| told(file, pid));
    let held = hold::while_lives(request.with, Command::new(program).args(arguments), started);
    held.map(code).map_err(|error| {
        Failure::impossible(format!("hold {}: {error}", program.to_string_lossy()))
    })
}

/// Writes the file atomically, so that a process that waits for it reads a whole number.
fn told(file: &PathBuf, pid: u32) -> io::Result<()> {
    let draft = file.with_extension("draft");
    fs::write(&draft, pid.to_string())?;
    fs::rename(draft, file)
}

fn code(status: ExitStatus) -> ExitCode {
    let by_signal = || status.signal().map_or(1, |signal| 128 + signal);
    ExitCode::from(u8::try_from(status.code().unwrap_or_else(by_signal)).unwrap_or(1))
}

/// Waits for the end.
pub(crate) fn watch(request: &Watch) -> Outcome {
    let silence = Duration::from_nanos(request.silence.cast_unsigned());
    let watched = hold::end_when_silent(request.with, io::stdin(), silence);
    watched.map_err(|error| Failure::impossible(format!("watch: {error}")))?;
    Ok(Exit::Success)
}
