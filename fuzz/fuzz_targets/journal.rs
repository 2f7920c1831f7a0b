//! A journal of changes to a host: torn, damaged or by another version, it is read whole or refused, and a journal that
//! was read is written and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_fuzz::with_journal_sums;
use tailtrim_tune::{Journal, JournalError, Mark};

fuzz_target!(|data: &[u8]| {
    let [how, rest @ ..] = data else { return };
    let bytes = if how & 1 == 0 { with_journal_sums(rest) } else { rest.to_vec() };
    match Journal::parse(&bytes) {
        Ok(journal) => {
            check(&journal, bytes.len());
            // Cut anywhere: all steps are read, or none.
            let cut = journal.whole - (usize::from(*how) * 3).min(journal.whole);
            match Journal::parse(&bytes[..cut]) {
                Ok(before) => {
                    assert_eq!(journal.steps, before.steps);
                    assert!(journal.started.starts_with(&before.started));
                    check(&before, cut);
                }
                Err(JournalError::CutOff { read, steps }) => {
                    assert!(read < steps && steps == journal.steps.len());
                }
                Err(error) => assert_eq!(error, JournalError::NoJournal { steps: 0 }),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn check(journal: &Journal, bytes: usize) {
    assert_eq!(journal.whole + journal.torn, bytes);
    let marks = journal
        .started
        .iter()
        .map(|number| Mark::Start { number: *number })
        .chain(
            journal
                .outcomes
                .iter()
                .map(|(number, outcome)| Mark::Done { number: *number, outcome: outcome.clone() }),
        )
        .chain(journal.applied.then_some(Mark::Applied))
        .chain(journal.reverted.then_some(Mark::Reverted));
    let mut written = Journal::begun(&journal.begin, &journal.steps).unwrap();
    written.extend(marks.flat_map(|mark| mark.line().unwrap()));
    let again = Journal::parse(&written).unwrap();
    assert_eq!(again, Journal { whole: written.len(), torn: 0, ..journal.clone() });
}
