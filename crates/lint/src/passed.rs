//! Which words a kernel hands on to init (unknown_bootoption() and obsolete_checksetup(), init/main.c).

use super::finding::Context;
use super::predict::Simulation;
use super::table::{How, Parameter, Value, Wrong};
use super::values::{Fit, fit};
use super::words::Sort;
use tailtrim_host::{BootLine, Word};

/// Arguments for init, and variables of its environment.
///
/// Words of drivers that a kernel may have or not are left out: nothing is known about them.
pub(super) fn on(
    line: &BootLine,
    sorts: &[Sort],
    run: &Simulation,
    context: &Context,
) -> (Vec<String>, Vec<String>) {
    let (mut arguments, mut variables) = (Vec::new(), Vec::new());
    for (place, (word, sort)) in line.words().iter().zip(sorts).enumerate() {
        let mine = word.name == "BOOT_IMAGE" || word.name.starts_with("kexec");
        if mine || word.name.contains('.') {
            continue;
        }
        let goes = match sort {
            Sort::Known(parameter) => {
                run.rejected.contains(&place) || hands_back(word, parameter, context)
            }
            Sort::Swallowed(..) => false,
            _ => true,
        };
        match (goes, word.value.is_some()) {
            (true, true) => variables.push(word.text()),
            (true, false) => arguments.push(word.text()),
            (false, _) => {}
        }
    }
    arguments.extend(line.init().iter().cloned());
    (arguments, variables)
}

fn hands_back(word: &Word, parameter: &Parameter, context: &Context) -> bool {
    // The parser of the boot line does not know parameters that the kernel searches for in the whole line.
    if matches!(parameter.how, How::Scanned | How::Elsewhere) {
        return true;
    }
    if let Some(kernel) = context.kernel
        && parameter.versions.has(kernel) == Some(false)
    {
        return true;
    }
    if matches!(parameter.value, Value::Unknown) {
        return false;
    }
    match fit(word, parameter, context.kernel) {
        Fit::Wrong(..) | Fit::Later(..) | Fit::Gone(..) => parameter.wrong == Wrong::Passed,
        // Of `__setup("name=")`, the equals sign is part of the name.
        Fit::Missing => parameter.how == How::Setup,
        Fit::Fits | Fit::Ignored => false,
    }
}
