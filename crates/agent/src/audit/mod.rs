//! `tailtrim-agent audit`.

mod config;
mod explain;
mod formats;
mod json;
mod table;

use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::files;
use crate::lint;
use crate::options;
use crate::output::{self, Page};
use clap::ValueEnum;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;
use tailtrim_audit::{self as audit, AuditReport, Check, Intent, Selection, Wish, Workload};
use tailtrim_host::{Cpus, Tree};
use tailtrim_localhost::inspect::{self, Host};
use tailtrim_sys::clock::today;

/// Check this host's settings for low latency: what is set, what was observed, what to change.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Audit {
    /// CPUs for packet processing only, such as 2-7 (default: inferred)
    #[arg(long, value_name = "CPUS")]
    isolate: Option<Cpus>,
    /// CPUs for everything else (default: all others)
    #[arg(long, value_name = "CPUS")]
    housekeeping: Option<Cpus>,
    /// Interfaces that the packets use (default: all that are up and have a device)
    #[arg(long = "interface", value_name = "INTERFACE", value_delimiter = ',')]
    nics: Vec<String>,
    /// Packet processing of the workload: poll, interrupt, vm (host of virtual machines) or guest (virtual machine)
    #[arg(long)]
    workload: Option<Workload>,
    /// JSON file whose object `host` has these options (default: tailtrim.json of this folder)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Audit a folder with a host's files, or a capture of a host, instead of this host
    #[arg(long, value_name = "PATH")]
    root: Option<PathBuf>,
    /// Write what an audit reads of this host to a tar file (.tar, .tar.zst), and audit nothing
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    capture: Option<PathBuf>,
    /// Time for which to watch counters, such as 10s or 500ms; 0: do not watch
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    duration: Duration,
    /// Run only these checks or families (ISO-003, MEM)
    #[arg(long, value_name = "ID|FAMILY", value_delimiter = ',')]
    only: Vec<String>,
    /// Leave out these checks or families
    #[arg(long, value_name = "ID|FAMILY", value_delimiter = ',')]
    without: Vec<String>,
    /// JSON file with accepted findings: a list of id, reason and until (a date)
    #[arg(long, value_name = "FILE")]
    waivers: Option<PathBuf>,
    /// Describe a check: reason, files that it reads, how to set it and undo it
    #[arg(long, value_name = "ID")]
    explain: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// List all checks
    #[arg(long)]
    list: bool,
    /// Also show checks that are ok or not applicable in the table
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    line: lint::Request,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum Format {
    /// For the terminal
    #[default]
    Table,
    /// Complete, for programs
    Json,
    /// JUnit XML, for continuous integration
    Junit,
    /// Text exposition, for the node exporter's textfile collector
    Prometheus,
}

const HELP: &str = "Evidence: asked (boot line, configuration), set (reported by the kernel), seen (counters that \
    were watched).

Exit codes: 0 no check failed, 1 a check failed, 2 invalid arguments or input, 3 this host cannot be read.

Examples:
  tailtrim-agent audit
  tailtrim-agent audit --isolate 2-7 --housekeeping 0-1 --interface eth1 --workload poll --duration 10s
  tailtrim-agent audit --explain ISO-003
  tailtrim-agent audit --boot-line 'isolcpus=1-3 rcu_nocbs=1-3 rcu_nocbs_poll' --kernel 6.1 --cpus 0-3
  tailtrim-agent audit --boot-line        # that of the running kernel, with its effect
  tailtrim-agent audit --capture host.tar.zst; tailtrim-agent audit --root host.tar.zst
  tailtrim-agent audit --only ISO,IRQ --waivers waivers.json --format junit > audit.xml

tailtrim.json:
  {\"host\": {\"isolate\": \"2-7\", \"housekeeping\": \"0-1\", \"nics\": [\"eth1\"], \"workload\": \"poll\"}}

waivers.json:
  [{\"id\": \"SEC-001\", \"reason\": \"other tenants run here\", \"until\": \"2027-03-31\"}]";

impl Audit {
    fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    fn json(&self) -> bool {
        self.format() == Format::Json
    }
}

/// A time such as 10s, 500ms, or seconds without a unit.
fn time(text: &str) -> Result<Duration, String> {
    options::time(text).map(|ns| Duration::from_nanos(ns.cast_unsigned()))
}

/// Runs the verb.
pub(crate) fn run(request: &Audit) -> Outcome {
    if request.line.is_asked() {
        let tree = opened(request)?;
        return lint::run(&request.line, tree.as_ref(), request.json());
    }
    let colour = io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut page = Page::new(colour && request.format() == Format::Table);
    let exit = answer(request, &mut page)?;
    output::page(&page, exit)
}

fn answer(request: &Audit, out: &mut Page) -> Outcome {
    if let Some(id) = &request.explain {
        let unknown = || Failure::usage(format!("--explain {id}: no such check; --list shows all"));
        explain::write(audit::find(id).ok_or_else(unknown)?, out).or_fail(Exit::Impossible)?;
        return Ok(Exit::Success);
    }
    let selection = Selection { only: request.only.clone(), skip: request.without.clone() };
    let checks = selection.checks().or_hint(Exit::Usage)?;
    if request.list {
        explain::list(&checks, request.json(), out).or_fail(Exit::Impossible)?;
        return Ok(Exit::Success);
    }
    let waivers = match &request.waivers {
        Some(path) => config::waivers(path)?,
        None => Vec::new(),
    };
    let wish = Wish {
        isolate: request.isolate.clone(),
        housekeeping: request.housekeeping.clone(),
        nics: (!request.nics.is_empty()).then(|| request.nics.clone()),
        workload: request.workload,
    };
    let (wish, from) = config::complete(wish, request.config.as_deref())?;
    let tree = opened(request)?;
    let watches = request.root.is_none() && !request.duration.is_zero();
    let observed = watches.then(|| inspect::observe(tree.as_ref(), request.duration));
    let tree = observed.as_ref().map_or(tree.as_ref(), |observed| observed as &dyn Tree);
    judge(request, tree, wish, from, &checks, waivers, out)
}

fn opened(request: &Audit) -> Result<Box<dyn Tree>, Failure> {
    match &request.root {
        Some(root) => inspect::open(root).or_hint(Exit::Impossible),
        None => Ok(Box::new(Host::live())),
    }
}

fn judge(
    request: &Audit,
    tree: &dyn Tree,
    wish: Wish,
    from: Option<String>,
    checks: &[&'static Check],
    waivers: Vec<audit::Waiver>,
    out: &mut Page,
) -> Outcome {
    if let Some(path) = &request.capture {
        files::refuse_capture(path, files::is_tar)?;
        let count = inspect::capture(tree, path).or_fail(Exit::Usage)?;
        writeln!(out, "{}: {count} files", path.display()).or_fail(Exit::Impossible)?;
        return Ok(Exit::Success);
    }
    let intent = Intent::complete(wish, tree).or_hint(Exit::Usage)?;
    let mut report = audit::run(tree, &intent, checks);
    if report.unreadable() {
        let place =
            request.root.as_ref().map_or("this host".to_owned(), |root| root.display().to_string());
        return Err(Failure::impossible(format!(
            "{place}: no host files found, expected proc/ and sys/ in it"
        )));
    }
    report.waive(waivers, &today());
    print(request, &report, from.as_deref(), out).or_fail(Exit::Impossible)?;
    let failed = report.results.iter().any(audit::CheckResult::fails);
    Ok(if failed { Exit::Negative } else { Exit::Success })
}

fn print(
    request: &Audit,
    report: &AuditReport,
    from: Option<&str>,
    out: &mut Page,
) -> io::Result<()> {
    match request.format() {
        Format::Table => {
            let style = table::Style { width: width(), all: request.all };
            table::write(report, from, style, out)
        }
        Format::Json => json::write(report, out),
        Format::Junit => formats::junit(report, out),
        Format::Prometheus => formats::prometheus(report, out),
    }
}

/// Columns to fill: those of the terminal within a readable width.
fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    told.or_else(tailtrim_sys::terminal::columns).unwrap_or(100).clamp(80, 120)
}
