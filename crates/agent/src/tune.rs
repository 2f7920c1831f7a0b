//! `tailtrim-agent tune`: changes of this host's settings, and their reversal.

mod request;
mod show;
mod text;
#[cfg(test)]
mod text_tests;

use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::hints::{self, Hint};
use crate::options::one_of;
use crate::output::try_write;
use clap::Subcommand;
use request::Wanted;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tailtrim_host::{Cpus, Tree};
use tailtrim_localhost::tune::{
    ApplyError, Folder, Live, Locked, Problem, RevertError, StateError, Store, apply, begin,
    hold_latency, inspect, now_unix_s, revert,
};
use tailtrim_tune::export::{self, ExportedFile};
use tailtrim_tune::{Journal, Plan, plan};

const STATE: &str = "/var/lib/tailtrim/tune";

/// Plan, apply, verify and revert host tuning.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent tune plan --profile latency-poll --isolate 2-7 --interface eth1\n  \
    tailtrim-agent tune apply --profile latency-poll --isolate 2-7 --interface eth1\n  \
    tailtrim-agent tune verify\n  \
    tailtrim-agent tune revert\n  \
    tailtrim-agent tune export --format tuned --profile latency-kernel --out /etc/tuned/profiles\n\n\
    Only `apply` and `revert` change the host. All old values are stored before the first change: `revert` restores them wherever `apply` stopped, \
    also after a crash.")]
pub(crate) struct Tune {
    #[command(subcommand)]
    verb: TuneVerb,
}

#[derive(Debug, Subcommand)]
enum TuneVerb {
    /// Show the changes with reason, cost and when they take effect.
    Plan(PlanArgs),
    /// Apply a plan.
    Apply(ApplyArgs),
    /// Read back all values, and say why one differs (exit code 1 if any does).
    Verify(StateArgs),
    /// Restore every value, byte for byte, in reverse order; also after a crash.
    Revert(StateArgs),
    /// Show what is applied, since when, and what has changed since.
    Status(StateArgs),
    /// Write a plan as files of another tool.
    Export(ExportArgs),
    /// Hold the exit latency of idle CPUs: what `apply` starts.
    #[command(hide = true)]
    HoldLatency(HoldArgs),
}

#[derive(Debug, clap::Args)]
struct PlanArgs {
    #[command(flatten)]
    wanted: Wanted,
    /// Print JSON with all values
    #[arg(long)]
    json: bool,
    /// Use a folder with a host's files instead of this host
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

#[derive(Debug, clap::Args)]
struct ApplyArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// Show the plan, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Folder of the journal
    #[arg(long, value_name = "DIR", default_value = STATE)]
    state: PathBuf,
}

#[derive(Debug, clap::Args)]
struct StateArgs {
    /// Folder of the journal
    #[arg(long, value_name = "DIR", default_value = STATE)]
    state: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Use a folder with a host's files instead of this host
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

#[derive(Debug, clap::Args)]
struct ExportArgs {
    #[command(flatten)]
    wanted: Wanted,
    /// Output format
    #[arg(long, value_parser = one_of(FORMATS))]
    format: Export,
    /// Write files below this folder instead of printing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Use a folder with a host's files instead of this host
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// Function that writes a plan as files of another tool.
type Export = fn(&Plan) -> Vec<ExportedFile>;

const FORMATS: &[(&str, &str, Export)] = &[
    ("tuned", "A profile of tuned", export::tuned),
    ("sysctl", "A file for /etc/sysctl.d", export::sysctl),
    ("grub", "A drop-in for /etc/default/grub.d", export::grub),
    ("systemd", "A unit and files of systemd", export::systemd),
];

#[derive(Debug, clap::Args)]
struct HoldArgs {
    #[arg(long)]
    state: PathBuf,
    #[arg(long)]
    us: i32,
}

/// Runs the verb.
pub(crate) fn run(request: &Tune) -> Outcome {
    match &request.verb {
        TuneVerb::Plan(args) => show_plan(&planned(&host(&args.root), &args.wanted)?, args.json),
        TuneVerb::Apply(args) => run_apply(args),
        TuneVerb::Verify(args) => run_inspect(args, true),
        TuneVerb::Status(args) => run_inspect(args, false),
        TuneVerb::Revert(args) => run_revert(args),
        TuneVerb::Export(args) => run_export(args),
        TuneVerb::HoldLatency(args) => {
            let held = hold_latency(&args.state, args.us, || try_write("ready\n"));
            held.or_fail(Exit::Impossible).map(|()| Exit::Success)
        }
    }
}

fn host(root: &Path) -> Live {
    Live::new(root, Path::new(STATE))
}

fn planned(host: &Live, wanted: &Wanted) -> Result<Plan, Failure> {
    plan(host, &wanted.request()).or_hint(Exit::Usage)
}

fn show_plan(plan: &Plan, json: bool) -> Outcome {
    if json { show::json("tailtrim.tune-plan/1", plan) } else { show::print(&text::text(plan)) }
}

fn run_apply(args: &ApplyArgs) -> Outcome {
    let mut host = Live::new(&args.plan.root, &args.state);
    let plan = planned(&host, &args.plan.wanted)?;
    if args.dry_run {
        let exit = show_plan(&plan, args.plan.json)?;
        return if args.plan.json { Ok(exit) } else { show::print("\nNothing was changed.\n") };
    }
    if let Some((manager, changes)) = plan.refused_by().first() {
        let (service, pid) = (&manager.service, manager.pid);
        let message =
            format!("{service} runs (process {pid}) and would undo {}", changes.join(", "));
        return Err(Failure::impossible(message).hint(Some(hints::manager(manager))));
    }
    if let Some(cut) = plan.cuts(&session(&host)) {
        return Err(Failure::hinted(&cut, Exit::Impossible));
    }
    let mut store = Folder::locked(&args.state)?;
    let profile = plan.request.profile.name();
    let begin = begin(boot_id(&host), profile, std::env::args().skip(1).collect());
    let applied = apply(&mut host, &mut store, &plan, begin).map_err(|error| match error {
        ApplyError::Store(error) => error.into(),
        ApplyError::Pending { .. } | ApplyError::Journal(_) => Failure::hinted(&error, Exit::Usage),
        ApplyError::Failed { .. } => Failure::hinted(&error, Exit::Disturbed),
        _ => Failure::hinted(&error, Exit::Impossible),
    })?;
    if args.plan.json {
        show::json("tailtrim.tune-applied/1", &applied)
    } else {
        show::applied(&applied, &plan)
    }
}

impl From<Locked> for Failure {
    fn from(error: Locked) -> Self {
        match error {
            Locked::Held { .. } => Self::hinted(&error, Exit::Usage),
            Locked::Unusable(error) => error.into(),
        }
    }
}

/// A journal that others may have written is refused like any other wrong input.
impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        let untrusted = matches!(error.problem, Problem::Untrusted(_));
        Self::hinted(&error, if untrusted { Exit::Usage } else { Exit::Impossible })
    }
}

/// The kernel's name for the time since it was started; a tree that is not a host has none.
fn boot_id(host: &Live) -> String {
    host.text("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// This process and its ancestors, with the CPUs that they may use.
fn session(host: &Live) -> Vec<(u32, String, Cpus)> {
    let mut found = Vec::new();
    let (mut pid, mut seen) = (std::process::id(), BTreeSet::new());
    while pid > 0 && seen.insert(pid) {
        let Ok(status) = host.text(&format!("/proc/{pid}/status")) else { break };
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|text| text.trim().to_owned())
        };
        let cpus = field("Cpus_allowed_list:").and_then(|list| list.parse().ok());
        if let Some(cpus) = cpus {
            found.push((pid, field("Name:").unwrap_or_default(), cpus));
        }
        pid = field("PPid:").and_then(|text| text.parse().ok()).unwrap_or(0);
    }
    found
}

fn run_inspect(args: &StateArgs, verify: bool) -> Outcome {
    let host = Live::new(&args.root, &args.state);
    let loaded = Folder::reading(&args.state)?.load()?;
    let journal = loaded.as_deref().map(Journal::parse).transpose();
    let journal = journal.map_err(|error| in_journal(&args.state, &error, Exit::Usage))?;
    let Some(journal) = journal.filter(|journal| !journal.reverted) else {
        return show::nothing(args.json);
    };
    let found = inspect(&host, &journal, &boot_id(&host));
    show::findings(&journal, &found, now_unix_s(), verify, args.json)
}

fn run_revert(args: &StateArgs) -> Outcome {
    let mut host = Live::new(&args.root, &args.state);
    // Where there can be no journal, the error must not look like a missing journal.
    let mut store = Folder::locked(&args.state)?;
    let boot = boot_id(&host);
    let reverted = revert(&mut host, &mut store, &boot).map_err(|error| match error {
        RevertError::Store(error) => error.into(),
        RevertError::Journal(_) => in_journal(&args.state, &error, Exit::Usage),
        RevertError::Record(_) => in_journal(&args.state, &error, Exit::Disturbed),
    })?;
    match reverted {
        None => show::nothing(args.json),
        Some(told) => show::reverted(&told, args.json),
    }
}

fn in_journal(state: &Path, error: &impl Hint, exit: Exit) -> Failure {
    let place = format!("{}: {error}", state.join("journal").display());
    Failure::new(place, exit).hint(error.hint())
}

fn run_export(args: &ExportArgs) -> Outcome {
    let plan = planned(&host(&args.root), &args.wanted)?;
    show::files(&(args.format)(&plan), args.out.as_deref())
}
