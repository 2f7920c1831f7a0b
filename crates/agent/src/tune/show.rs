//! Results, for people and for programs.

use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::output::{self, Document};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use tailtrim_localhost::tune::{Applied, Finding, PlaceNote, Reverted, Standing};
use tailtrim_tune::{Journal, Place, Plan, export::ExportedFile};

/// Prints text.
pub(super) fn print(text: &str) -> Outcome {
    output::write(text, Exit::Success)
}

pub(super) fn json<T: Serialize>(schema: &str, content: &T) -> Outcome {
    output::json(&Document { schema, content }, Exit::Success)
}

fn list(out: &mut String, title: &str, told: &[PlaceNote]) {
    const SHOWN: usize = 20;
    if told.is_empty() {
        return;
    }
    let _ = writeln!(out, "{title}: {}", told.len());
    for one in told.iter().take(SHOWN) {
        let _ = writeln!(out, "  {}: {}", one.place, one.why);
    }
    if told.len() > SHOWN {
        let _ = writeln!(out, "  and {} more (--json lists them all)", told.len() - SHOWN);
    }
}

pub(super) fn applied(applied: &Applied, plan: &Plan) -> Outcome {
    let mut out = format!("{} values set, {} already as wanted\n", applied.took, applied.already);
    list(&mut out, "set, but another value is read back", &applied.differs);
    list(&mut out, "cannot be changed here", &applied.cannot);
    if !applied.gone.is_empty() {
        let _ = writeln!(out, "no longer there: {}", applied.gone.len());
    }
    let words = plan.boot_words();
    let written = plan.changes.iter().any(|change| change.id == "boot.grub");
    if !words.is_empty() && !written {
        let _ = writeln!(out, "to add to the boot line by hand: {}", words.join(" "));
    }
    let tune = format!("{} tune", crate::called::name());
    let _ = writeln!(out, "`{tune} verify` reads them back, `{tune} revert` reverts them");
    print(&out)
}

#[derive(Serialize)]
struct Nothing {
    applied: bool,
}

pub(super) fn nothing(as_json: bool) -> Outcome {
    if as_json {
        return json("tailtrim.tune-status/1", &Nothing { applied: false });
    }
    print("nothing is applied\n")
}

pub(super) fn reverted(told: &Reverted, as_json: bool) -> Outcome {
    let mut out = format!("{} values restored, {} were as before\n", told.restored, told.as_before);
    list(&mut out, "changed by another program since, restored all the same", &told.drifted);
    list(&mut out, "ended since", &told.gone);
    list(&mut out, "could not be restored", &told.left);
    let shown = if as_json { json("tailtrim.tune-reverted/1", told) } else { print(&out) }?;
    let Some(first) = told.left.first() else { return Ok(shown) };
    Err(Failure::disturbed(format!(
        "{} values could not be restored, the first of them {}: {}; the journal is kept: correct that and revert again",
        told.left.len(),
        first.place,
        first.why
    )))
}

/// Values that the kernel does not allow to change, and threads that have ended, do not need another look.
fn is_wrong(one: &Finding) -> bool {
    match one.standing {
        Standing::InPlace | Standing::Cannot => false,
        Standing::Gone => !matches!(one.place, Place::Thread { .. }),
        Standing::Differs | Standing::NotDone | Standing::Unknown => true,
    }
}

#[derive(Serialize)]
struct Status<'a> {
    applied: bool,
    profile: &'a str,
    since_unix_s: u64,
    complete: bool,
    arguments: &'a [String],
    values: &'a [Finding],
}

pub(super) fn findings(
    journal: &Journal,
    found: &[Finding],
    now_unix_s: u64,
    verify: bool,
    as_json: bool,
) -> Outcome {
    let verdict = if verify && found.iter().any(is_wrong) { Exit::Negative } else { Exit::Success };
    let begin = &journal.begin;
    if as_json {
        let status = Status {
            applied: true,
            profile: &begin.profile,
            since_unix_s: begin.at_unix_s,
            complete: journal.applied,
            arguments: &begin.arguments,
            values: found,
        };
        json("tailtrim.tune-status/1", &status)?;
    } else {
        print(&as_text(journal, found, now_unix_s, verify))?;
    }
    Ok(verdict)
}

fn as_text(journal: &Journal, found: &[Finding], now_unix_s: u64, verify: bool) -> String {
    let begin = &journal.begin;
    let age = now_unix_s.saturating_sub(begin.at_unix_s);
    let mut out = format!("{} applied {} ago", begin.profile, duration(age));
    if !journal.applied {
        out += ", incomplete";
    }
    let of = |standing| found.iter().filter(|one| one.standing == standing).count();
    let _ = writeln!(out, ": {} of {} values in place", of(Standing::InPlace), found.len());
    for (standing, name) in [
        (Standing::Differs, "DIFFERS"),
        (Standing::NotDone, "NOT DONE"),
        (Standing::Unknown, "UNKNOWN"),
        (Standing::Cannot, "CANNOT"),
        (Standing::Gone, "GONE"),
    ] {
        let those: Vec<&Finding> = found.iter().filter(|one| one.standing == standing).collect();
        let shown = if verify || standing == Standing::Differs { those.len().min(20) } else { 0 };
        if !those.is_empty() && shown == 0 {
            let _ = writeln!(out, "{name:<9} {} (verify says why)", those.len());
        }
        for one in &those[..shown] {
            let why = one.why.as_deref().unwrap_or("");
            let _ = writeln!(
                out,
                "{name:<9} {}  wanted {}, reads {}",
                one.place, one.wanted, one.reads
            );
            let _ = writeln!(out, "          {why}  [{}]", one.change);
        }
        if shown > 0 && those.len() > shown {
            let _ =
                writeln!(out, "{name:<9} and {} more (--json lists them all)", those.len() - shown);
        }
    }
    out
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Prints files, or writes them below a folder.
pub(super) fn files(files: &[ExportedFile], out: Option<&Path>) -> Outcome {
    let Some(folder) = out else {
        let many = files.len() > 1;
        let text = files.iter().fold(String::new(), |text, file| {
            let head = if many { format!("# ==> {} <==\n", file.path) } else { String::new() };
            text + &head + &file.content
        });
        return print(&text);
    };
    for file in files {
        let path = folder.join(&file.path);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, &file.content)).or_unwritable(&path, Exit::Usage)?;
        print(&format!("{}\n", path.display()))?;
    }
    Ok(Exit::Success)
}
