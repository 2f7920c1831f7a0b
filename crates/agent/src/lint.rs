//! `tailtrim-agent audit --boot-line`: what a kernel really makes of its boot line.
#![allow(clippy::print_stderr, reason = "the agent is where output happens")]

use crate::exit::Exit;
use crate::lint_text;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use tailtrim_linux::kernel_log;
use tailtrim_model::host::{Cpus, Tree, Unread};
use tailtrim_model::lint::{Context, Report, Running, Severity, Version, lint};

/// Read a boot line as a kernel does: words that it does not know, takes otherwise, or drops.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 nothing worse than a note, 1 warnings or errors, 2 wrong request.\n\n\
    Examples:\n  \
    tailtrim-agent audit\n  \
    tailtrim-agent audit --boot-line 'isolcpus=1-3 rcu_nocbs=1-3 rcu_nocbs_poll' --kernel 6.1 --cpus 0-3\n  \
    tailtrim-agent audit --boot-line \"$(cat /etc/kernel/cmdline)\" --json | jq .findings"
)]
pub(crate) struct Request {
    /// The line to read, instead of the running kernel's, which is also compared with what came of it
    #[arg(long, value_name = "LINE")]
    pub(crate) boot_line: Option<String>,
    /// The kernel that will boot it: 6.1, or what uname -r says
    #[arg(long, value_name = "VERSION")]
    pub(crate) kernel: Option<Version>,
    /// The CPUs of the machine, such as 0-15
    #[arg(long, value_name = "LIST", value_parser = some_cpus)]
    pub(crate) cpus: Option<Cpus>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn some_cpus(text: &str) -> Result<Cpus, String> {
    match text.parse::<Cpus>() {
        Ok(cpus) if cpus.is_empty() => Err("a machine has at least one CPU, such as 0".to_owned()),
        Ok(cpus) => Ok(cpus),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the verb and prints its result.
pub(crate) fn run(request: &Request) -> Exit {
    match report(request) {
        Ok(report) => print(&report, request.json),
        Err(problem) => {
            eprintln!("error: {problem}");
            Exit::Impossible
        }
    }
}

fn report(request: &Request) -> Result<Report, String> {
    let context = Context { kernel: request.kernel, cpus: request.cpus.clone() };
    if let Some(line) = &request.boot_line {
        return Ok(lint(line, &context));
    }
    let log = kernel_log::read().map_err(|error| error.to_string());
    let running = Running::read(&Files, log.as_deref().map_err(Clone::clone));
    let Some(line) = running.line.clone() else {
        let hint = "hint: give the line with --boot-line";
        return Err(format!("the boot line cannot be read: {}\n{hint}", running.unread.join(", ")));
    };
    let release = running.release.as_deref().and_then(|release| release.parse().ok());
    let context = Context {
        kernel: context.kernel.or(release),
        cpus: context.cpus.or_else(|| running.possible.clone()),
    };
    let mut report = lint(&line, &context);
    report.compare(running);
    Ok(report)
}

fn print(report: &Report, json: bool) -> Exit {
    let mut output = io::stdout().lock();
    let written = if json {
        serde_json::to_writer_pretty(&mut output, report)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(output))
    } else {
        output.write_all(lint_text::text(report).as_bytes())
    };
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("error: the result cannot be written: {error}");
            Exit::Disturbed
        }
        _ if report.worst() >= Some(Severity::Warning) => Exit::Negative,
        _ => Exit::Success,
    }
}

/// The files of this host.
struct Files;

impl Tree for Files {
    fn read(&self, path: &str) -> Result<Vec<u8>, Unread> {
        fs::read(path).map_err(|error| unread(path, &error))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        let entries = fs::read_dir(path).map_err(|error| unread(path, &error))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> =
            names.map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn link(&self, path: &str) -> Result<String, Unread> {
        let target = fs::read_link(path).map_err(|error| unread(path, &error))?;
        Ok(target.to_string_lossy().into_owned())
    }
}

fn unread(path: &str, error: &io::Error) -> Unread {
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::NotFound => Unread::Missing { path },
        ErrorKind::PermissionDenied => Unread::Denied { path },
        _ => Unread::Broken { path, problem: error.to_string() },
    }
}
