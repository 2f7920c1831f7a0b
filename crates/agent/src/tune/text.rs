//! A plan as people read it.

use crate::hints;
use crate::output::wrapped;
use std::fmt::Write;
use tailtrim_tune::{Boot, Change, Place, Plan, Step, StepState, Value, When};

const WIDTH: usize = 100;
/// Wider than the longest name of a change.
const COLUMN: usize = 32;
/// Values of a change that are shown one by one; more are counted.
const SHOWN: usize = 4;

/// Write a plan as text, readable without colour.
pub(super) fn text(plan: &Plan) -> String {
    let mut out = String::new();
    head(plan, &mut out);
    let (now, already): (Vec<&Change>, Vec<&Change>) =
        plan.changes.iter().filter(|c| c.when == When::Now).partition(|c| c.needed());
    section(&mut out, "NOW", "as soon as it is applied; gone after a restart", &now);
    let of = |when| plan.changes.iter().filter(|c| c.when == when).collect::<Vec<_>>();
    section(&mut out, "AT THE NEXT START", "boot line and drop-ins", &of(When::NextBoot));
    boot_line(plan, &mut out);
    section(&mut out, "BY HAND", "firmware and wiring: to do by hand", &of(When::ByHand));
    let (unknown, as_wanted): (Vec<&Change>, Vec<&Change>) = already
        .into_iter()
        .partition(|change| change.steps.iter().any(|s| s.state.unknown().is_some()));
    if !as_wanted.is_empty() {
        out += "\nALREADY AS WANTED\n";
        let names: Vec<&str> = as_wanted.iter().map(|change| change.id.as_str()).collect();
        out += &wrapped(&names.join(", "), WIDTH, "  ", "  ");
    }
    if !unknown.is_empty() {
        out += "\nUNKNOWN: not changed, since what cannot be read cannot be restored\n";
        for change in unknown {
            let why = change.steps.iter().find_map(|step| step.state.unknown()).unwrap_or_default();
            beside(&mut out, &change.id, why);
        }
    }
    if !plan.absent.is_empty() {
        out += "\nNOT HERE\n";
        for absent in &plan.absent {
            beside(&mut out, &absent.id, &absent.why);
        }
    }
    managers(plan, &mut out);
    out
}

fn head(plan: &Plan, out: &mut String) {
    let kernel = plan.kernel.as_deref().unwrap_or("unknown kernel");
    let _ = writeln!(out, "Profile {} for Linux {kernel}\n", plan.request.profile.name());
    let division = &plan.division;
    let mut parts = vec![format!("host {}", division.housekeeping)];
    for (name, cpus) in [
        ("virtual machine's system", &division.vm_os),
        ("application", &division.application),
        ("switched off", &division.offline),
    ] {
        if !cpus.is_empty() {
            parts.push(format!("{name} {cpus}"));
        }
    }
    let _ = writeln!(out, "CPUs    {}", parts.join(" | "));
    for why in &division.why {
        *out += &wrapped(why, WIDTH, "        - ", "          ");
    }
}

fn section(out: &mut String, title: &str, about: &str, changes: &[&Change]) {
    if changes.is_empty() {
        return;
    }
    let plural = if changes.len() == 1 { "" } else { "s" };
    let _ = writeln!(out, "\n{title}: {} change{plural} ({about})", changes.len());
    for change in changes {
        out.push('\n');
        let checks = match change.checks.as_slice() {
            [] => String::new(),
            checks => format!("  [{}]", checks.join(" ")),
        };
        let title = format!("{}{checks}", change.title);
        beside(out, &change.id, &title);
        for (name, value) in values(change) {
            *out += &wrapped(&value, WIDTH, &format!("      {name:<10}"), &" ".repeat(16));
        }
    }
}

fn values(change: &Change) -> Vec<(&'static str, String)> {
    let mut found: Vec<(&str, String)> =
        changes_of(&change.steps).into_iter().map(|line| ("set", line)).collect();
    if !change.words.is_empty() {
        found.push(("words", change.words.join(" ")));
    }
    found.push(("why", change.reason.clone()));
    found.push(("cost", change.cost.clone()));
    found.push(("source", change.source.clone()));
    found.extend(change.notes.iter().map(|note| ("mind", note.clone())));
    found
}

/// The values of steps, in as few lines as tell all: equal ones are counted.
fn changes_of(steps: &[Step]) -> Vec<String> {
    let needed: Vec<&Step> = steps
        .iter()
        .filter(|step| matches!(step.state, StepState::Needed | StepState::Printed))
        .collect();
    let mut lines = Vec::new();
    let mut groups: Vec<(String, Vec<&Step>)> = Vec::new();
    for step in &needed {
        let arrow = arrow(step);
        match groups.iter_mut().find(|(known, _)| *known == arrow) {
            Some((_, members)) => members.push(step),
            None => groups.push((arrow, vec![step])),
        }
    }
    let more = groups.len().saturating_sub(SHOWN);
    for (arrow, members) in groups.iter().take(SHOWN) {
        lines.push(match members.as_slice() {
            [one] => format!("{}: {arrow}", one.place),
            [first, .., last] => {
                format!("{} places, {} … {}: {arrow}", members.len(), first.place, last.place)
            }
            [] => continue,
        });
    }
    if more > 0 {
        lines.push(format!("and {more} more values (--json lists them all)"));
    }
    let left = steps.iter().filter(|step| step.state == StepState::Already).count();
    if left > 0 && !needed.is_empty() {
        lines.push(format!("{left} more already as wanted"));
    }
    let unknown = steps.iter().filter(|step| step.state.unknown().is_some()).count();
    if unknown > 0 && !needed.is_empty() {
        lines.push(format!("{unknown} more cannot be read and are not changed"));
    }
    lines
}

fn arrow(step: &Step) -> String {
    let told = if step.state == StepState::Printed { " (not written: --boot print)" } else { "" };
    if matches!(step.place, Place::Config { .. } | Place::Directory { .. }) {
        return format!("{}{told}", if step.old.is_some() { "written anew" } else { "made" });
    }
    let shown = |value: &Option<Value>| {
        value.as_ref().map_or_else(|| "not set".to_owned(), |value| step.form.shown(value))
    };
    format!("{} → {}{told}", shown(&step.old), shown(&step.new))
}

fn boot_line(plan: &Plan, out: &mut String) {
    let words = plan.boot_words();
    if words.is_empty() {
        return;
    }
    out.push_str("\n  all words for the boot line:\n");
    *out += &wrapped(&words.join(" "), WIDTH, "      ", "      ");
    if plan.request.boot == Boot::Print {
        let text = "--boot grub writes them to /etc/default/grub.d; for boot loader entries: grubby \
             --update-kernel=ALL --args=\"…\"";
        *out += &wrapped(text, WIDTH, "      ", "      ");
    }
}

fn managers(plan: &Plan, out: &mut String) {
    for (manager, changes) in plan.refused_by() {
        let _ =
            writeln!(out, "\nANOTHER MANAGER: {} runs (process {})", manager.service, manager.pid);
        let text = format!("it sets {}, and would undo {}", manager.owns, changes.join(", "));
        *out += &wrapped(&text, WIDTH, "  ", "  ");
        *out += &wrapped(&hints::manager(manager), WIDTH, "  ", "  ");
    }
}

/// A text beside the name of a change.
fn beside(out: &mut String, name: &str, text: &str) {
    *out += &wrapped(text, WIDTH, &format!("  {name:<COLUMN$}"), &" ".repeat(COLUMN + 2));
}
