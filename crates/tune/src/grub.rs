//! The drop-in that adds words to the boot line of GRUB.

use super::change::{Change, Step, When};
use super::command::Command;
use super::form::Form;
use super::place::{Place, Places};
use super::plan::{Plan, PlanError};
use tailtrim_host::{BootLine, Cpus};

/// Where GRUB reads drop-ins.
pub(super) const FOLDER: &str = "/etc/default/grub.d";
/// Ours.
pub(super) const FILE: &str = "/etc/default/grub.d/99-tailtrim.cfg";

/// A drop-in for GRUB with the words that the running line does not have.
pub(crate) fn add(host: &impl Places, plan: &mut Plan) -> Result<(), PlanError> {
    let refused = |why: &str| Err(PlanError::NoGrub(why.to_owned()));
    if host.list("/boot/loader/entries").is_ok_and(|names| !names.is_empty()) {
        return refused(
            "this host starts by boot loader entries, which drop-ins do not reach (grubby does)",
        );
    }
    if host.read("/etc/default/grub").is_err() {
        return refused("no /etc/default/grub here: another boot loader");
    }
    let programs = host.list("/usr/sbin").unwrap_or_default();
    let has = |name: &str| programs.iter().any(|known| known == name);
    let known = [Command::UpdateGrub, Command::Grub2Mkconfig, Command::GrubMkconfig];
    let Some(then) = known.into_iter().find(|command| has(command.program())) else {
        return refused("no update-grub and no grub-mkconfig in /usr/sbin");
    };
    let line = BootLine::parse(&host.text("/proc/cmdline").unwrap_or_default());
    let missing = |word: &&str| {
        let (name, value) = word.split_once('=').map_or((*word, None), |(n, v)| (n, Some(v)));
        !line.all(name).any(|known| known.value.as_deref() == value)
    };
    let words: Vec<&str> = plan.boot_words().into_iter().filter(missing).collect();
    if words.is_empty() {
        return Ok(());
    }
    let place = Place::Config { path: FILE.to_owned() };
    let old = host.place(&place).unwrap_or(None);
    let mut steps = Vec::new();
    if host.list(FOLDER).is_err() {
        let folder = Place::Directory { path: FOLDER.to_owned() };
        steps.push(Step::new(folder, Form::Bytes, None, ""));
    }
    let mut step = Step::new(place, Form::Bytes, old, super::export::grub_file(&words));
    step.then = Some(then);
    steps.push(step);
    plan.changes.push(Change {
        id: "boot.grub".to_owned(),
        checks: vec!["BOOT-005".to_owned()],
        title: "write these words to a drop-in of GRUB".to_owned(),
        reason: "they are read when the host starts".to_owned(),
        cost: "a restart; entries for recovery do not get them".to_owned(),
        source: "GRUB, /etc/default/grub.d".to_owned(),
        when: When::NextBoot,
        steps,
        words: Vec::new(),
        notes: Vec::new(),
        takes: Cpus::none(),
    });
    Ok(())
}
