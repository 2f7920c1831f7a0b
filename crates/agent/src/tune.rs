//! `tailtrim-agent tune`: changes of this host's settings, and their reversal.

mod request;
mod show;
mod text;
#[cfg(test)]
mod text_tests;

use crate::exit::Exit;
use crate::hints::{self, Hint};
use crate::output::{Message, failed, try_write};
use clap::{Subcommand, ValueEnum};
use request::Wanted;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tailtrim_host::{Cpus, Tree};
use tailtrim_localhost::tune::{
    ApplyError, Folder, Live, Locked, Problem, RevertError, StateError, Store, apply, begin,
    hold_latency, inspect, now_unix_s, revert,
};
use tailtrim_tune::{Journal, Plan, export, plan};

const STATE: &str = "/var/lib/tailtrim/tune";

/// Plan, apply, verify and revert host tuning.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent tune plan --profile latency-poll --isolate 2-7 --nic eth1\n  \
    tailtrim-agent tune apply --profile latency-poll --isolate 2-7 --nic eth1 --yes\n  \
    tailtrim-agent tune verify\n  \
    tailtrim-agent tune revert\n  \
    tailtrim-agent tune export --format tuned --profile latency-kernel --out /etc/tuned/profiles\n\n\
    Nothing is changed without --yes. All old values are stored before the first change: `revert` restores them wherever `apply` stopped, \
    also after a crash.")]
pub(crate) struct Tune {
    #[command(subcommand)]
    verb: TuneVerb,
}

#[derive(Debug, Subcommand)]
enum TuneVerb {
    /// Show the changes with reason, cost and when they take effect.
    Plan(PlanArgs),
    /// Apply a plan; without --yes a dry run.
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
    /// Apply the changes
    #[arg(long)]
    yes: bool,
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
    #[arg(long, value_enum)]
    format: Format,
    /// Write files below this folder instead of printing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Use a folder with a host's files instead of this host
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A profile of tuned
    Tuned,
    /// A file for /etc/sysctl.d
    Sysctl,
    /// A drop-in for /etc/default/grub.d
    Grub,
    /// A unit and files of systemd
    Systemd,
}

#[derive(Debug, clap::Args)]
struct HoldArgs {
    #[arg(long)]
    state: PathBuf,
    #[arg(long)]
    us: i32,
}

/// Runs the verb.
pub(crate) fn run(request: &Tune) -> Exit {
    match &request.verb {
        TuneVerb::Plan(args) => match planned(&args.wanted, &args.root) {
            Ok((_, plan)) => show_plan(&plan, args.json),
            Err(exit) => exit,
        },
        TuneVerb::Apply(args) => run_apply(args),
        TuneVerb::Verify(args) => run_inspect(args, true),
        TuneVerb::Status(args) => run_inspect(args, false),
        TuneVerb::Revert(args) => run_revert(args),
        TuneVerb::Export(args) => run_export(args),
        TuneVerb::HoldLatency(args) => {
            match hold_latency(&args.state, args.us, || try_write("ready\n")) {
                Ok(()) => Exit::Success,
                Err(error) => failed(&error.to_string(), Exit::Impossible),
            }
        }
    }
}

fn planned(wanted: &Wanted, root: &Path) -> Result<(Live, Plan), Exit> {
    let host = Live::new(root, Path::new(STATE));
    match plan(&host, &wanted.request()) {
        Ok(plan) => Ok((host, plan)),
        Err(error) => Err(failed(&error.told(), Exit::Usage)),
    }
}

fn show_plan(plan: &Plan, json: bool) -> Exit {
    if json { show::json("tailtrim.tune-plan/1", plan) } else { show::print(&text::text(plan)) }
}

fn run_apply(args: &ApplyArgs) -> Exit {
    let root = &args.plan.root;
    let mut host = Live::new(root, &args.state);
    let plan = match plan(&host, &args.plan.wanted.request()) {
        Ok(plan) => plan,
        Err(error) => return failed(&error.told(), Exit::Usage),
    };
    if !args.yes {
        let exit = show_plan(&plan, args.plan.json);
        if !args.plan.json && exit == Exit::Success {
            return show::print("\nNothing was changed. --yes applies what stands under NOW.\n");
        }
        return exit;
    }
    if let Some((owner, changes)) = plan.refused_by().first() {
        let (service, pid) = (&owner.service, owner.pid);
        let message =
            format!("{service} runs (process {pid}) and would undo {}", changes.join(", "));
        return failed(&hints::told(&message, Some(&hints::owner(owner))), Exit::Impossible);
    }
    if let Some(cut) = plan.cuts(&session(&host)) {
        return failed(&cut.told(), Exit::Impossible);
    }
    let mut store = match Folder::locked(&args.state) {
        Ok(store) => store,
        Err(error) => return failed(&error.told(), exit_of_lock(&error)),
    };
    let profile = plan.request.profile.name();
    let begin = begin(boot_id(&host), profile, std::env::args().skip(1).collect());
    match apply(&mut host, &mut store, &plan, begin) {
        Ok(applied) if args.plan.json => show::json("tailtrim.tune-applied/1", &applied),
        Ok(applied) => show::applied(&applied, &plan),
        Err(error @ (ApplyError::Pending { .. } | ApplyError::Journal(_))) => {
            failed(&error.told(), Exit::Usage)
        }
        Err(error @ ApplyError::Failed { .. }) => failed(&error.told(), Exit::Disturbed),
        Err(ApplyError::Store(error)) => failed(&error.told(), exit_of_state(&error)),
        Err(error) => failed(&error.told(), Exit::Impossible),
    }
}

fn exit_of_lock(error: &Locked) -> Exit {
    match error {
        Locked::Held { .. } => Exit::Usage,
        Locked::Unusable(error) => exit_of_state(error),
    }
}

/// A journal that others may have written is refused like any other wrong input.
fn exit_of_state(error: &StateError) -> Exit {
    match error.problem {
        Problem::Untrusted(_) => Exit::Usage,
        Problem::System(_) => Exit::Impossible,
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

fn run_inspect(args: &StateArgs, verify: bool) -> Exit {
    let host = Live::new(&args.root, &args.state);
    let loaded = match Folder::reading(&args.state).and_then(|folder| folder.load()) {
        Ok(loaded) => loaded,
        Err(error) => return failed(&error.told(), exit_of_state(&error)),
    };
    let journal = match loaded.as_deref().map(Journal::parse).transpose() {
        Ok(journal) => journal.filter(|journal| !journal.reverted),
        Err(error) => {
            return failed(&in_journal(&args.state, &error), Exit::Usage);
        }
    };
    let Some(journal) = journal else {
        return show::nothing(args.json);
    };
    let found = inspect(&host, &journal, &boot_id(&host));
    show::findings(&journal, &found, now_unix_s(), verify, args.json)
}

fn run_revert(args: &StateArgs) -> Exit {
    let mut host = Live::new(&args.root, &args.state);
    // Where there can be no journal, the error must not look like a missing journal.
    let mut store = match Folder::locked(&args.state) {
        Ok(store) => store,
        Err(error) => return failed(&error.told(), exit_of_lock(&error)),
    };
    let boot = boot_id(&host);
    match revert(&mut host, &mut store, &boot) {
        Ok(None) => show::nothing(args.json),
        Ok(Some(told)) => show::reverted(&told, args.json),
        Err(RevertError::Store(error)) => failed(&error.told(), exit_of_state(&error)),
        Err(error @ RevertError::Journal(_)) => {
            failed(&in_journal(&args.state, &error), Exit::Usage)
        }
        Err(error) => failed(&in_journal(&args.state, &error), Exit::Disturbed),
    }
}

fn in_journal(state: &Path, error: &impl Hint) -> Message {
    let place = format!("{}: {error}", state.join("journal").display());
    hints::told(&place, error.hint().as_deref())
}

fn run_export(args: &ExportArgs) -> Exit {
    let (_, plan) = match planned(&args.wanted, &args.root) {
        Ok(planned) => planned,
        Err(exit) => return exit,
    };
    let files = match args.format {
        Format::Tuned => export::tuned(&plan),
        Format::Sysctl => export::sysctl(&plan),
        Format::Grub => export::grub(&plan),
        Format::Systemd => export::systemd(&plan),
    };
    show::files(&files, args.out.as_deref())
}
