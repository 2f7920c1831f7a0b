//! Which words a kernel hands on to init (unknown_bootoption() and obsolete_checksetup(), init/main.c).

use super::finding::Context;
use super::prediction::Simulation;
use super::table::{Parameter, Parsing, Value, Wrong};
use super::value_check::{ValueCheck, check_value};
use super::word_kinds::WordKind;
use tailtrim_host::{BootLine, Word};

/// Arguments for init, and variables of its environment.
///
/// Words of drivers that a kernel may have or not are left out: nothing is known about them.
pub(super) fn passed_on(
    line: &BootLine,
    kinds: &[WordKind],
    run: &Simulation,
    context: &Context,
) -> (Vec<String>, Vec<String>) {
    let (mut arguments, mut variables) = (Vec::new(), Vec::new());
    for (place, (word, kind)) in line.words().iter().zip(kinds).enumerate() {
        let mine = word.name == "BOOT_IMAGE" || word.name.starts_with("kexec");
        if mine || word.name.contains('.') {
            continue;
        }
        let goes = match kind {
            WordKind::Known(parameter) => {
                run.rejected.contains(&place) || hands_back(word, parameter, context)
            }
            WordKind::Swallowed(..) => false,
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
    if matches!(parameter.parsed, Parsing::Scanned | Parsing::Elsewhere) {
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
    match check_value(word, parameter, context.kernel) {
        ValueCheck::Wrong(..) | ValueCheck::Later(..) | ValueCheck::Gone(..) => {
            parameter.wrong == Wrong::Passed
        }
        // Of `__setup("name=")`, the equals sign is part of the name.
        ValueCheck::Missing => parameter.parsed == Parsing::Setup,
        ValueCheck::Fits | ValueCheck::Ignored => false,
    }
}
