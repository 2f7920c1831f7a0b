//! A journal of changes to a host: torn, damaged or by another version, it is read as far as it is whole or refused, and
//! what was read is written and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tailtrim_fuzz::with_journal_sums;
use tailtrim_host::tune::{Journal, JournalError, Record};

fuzz_target!(|data: &[u8]| {
    let [how, rest @ ..] = data else { return };
    let bytes = if how & 1 == 0 { with_journal_sums(rest) } else { rest.to_vec() };
    match Journal::parse(&bytes) {
        Ok(journal) => {
            check(&journal, bytes.len());
            // A process that dies in the middle of a record: what was whole before still is.
            let cut = journal.whole - usize::from(*how).min(journal.whole);
            match Journal::parse(&bytes[..cut]) {
                Ok(before) => {
                    assert!(journal.steps.starts_with(&before.steps));
                    assert!(journal.started.starts_with(&before.started));
                    check(&before, cut);
                }
                Err(error) => assert_eq!(error, JournalError::NoJournal),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn check(journal: &Journal, bytes: usize) {
    assert_eq!(journal.whole + journal.torn, bytes);
    if let Some(step) = journal.unfinished() {
        assert!(!journal.outcomes.contains_key(&step.number));
    }
    let records = std::iter::once(Record::Begin(journal.begin.clone()))
        .chain(journal.steps.iter().cloned().map(Record::Step))
        .chain(journal.started.iter().map(|number| Record::Start { number: *number }))
        .chain(journal.outcomes.iter().map(|(number, outcome)| Record::Done {
            number: *number,
            outcome: outcome.clone(),
        }))
        .chain(journal.applied.then_some(Record::Applied))
        .chain(journal.reverted.then_some(Record::Reverted));
    let written: Vec<u8> = records.flat_map(|record| record.line().unwrap()).collect();
    let again = Journal::parse(&written).unwrap();
    assert_eq!(again, Journal { whole: written.len(), torn: 0, ..journal.clone() });
}
