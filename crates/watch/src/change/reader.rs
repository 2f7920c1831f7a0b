//! A thread that reads minutes from disk: a baseline of a week of 600 probes a minute takes it two seconds.

use super::asked::{Asked, Span};
use super::days::read;
use super::followed::{Change, Followed};
use super::measuring::measure;
use crate::minute::MINUTE_NS;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use tailtrim_stats::change::{Hours, Reference};
use tailtrim_sys::process;

/// A third of the share of a CPU that threads with a nice value of 0 have.
const NICE: i32 = 5;

/// Question about a target.
pub(super) enum Question {
    /// Its state once all minutes up to one were entered. Without a state, what was saved is read.
    Follow { place: usize, name: String, asked: Asked, until: i64, followed: Option<Box<Followed>> },
    /// By how much it has changed.
    Measure { place: usize, name: String, of: Box<(Change, Option<Reference>)> },
}

/// Answer to a question.
pub(super) enum Answer {
    Followed { place: usize, followed: Box<Followed>, asked: Asked },
    Measured { place: usize, change: Change },
}

/// The thread, and its answers.
pub(super) struct Reader {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
}

impl Reader {
    pub(super) fn start(folder: PathBuf) -> Self {
        let ((questions, asked), (told, answers)) = (channel(), channel());
        // It ends with the process, or when no question can come any more.
        thread::spawn(move || {
            // The thread that probes comes first; refused, this one does little harm.
            let _ = process::defer(NICE);
            for question in asked {
                if told.send(answer(&folder, question)).is_err() {
                    return;
                }
            }
        });
        Self { questions, answers }
    }

    pub(super) fn ask(&self, question: Question) {
        // A thread that has ended answers nothing: changes are then not judged.
        let _ = self.questions.send(question);
    }

    /// An answer, if there is one.
    pub(super) fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

fn answer(folder: &Path, question: Question) -> Answer {
    match question {
        Question::Follow { place, name, asked, until, followed } => {
            let folder = folder.join(name);
            let followed = followed.unwrap_or_else(|| Box::new(Followed::load(&folder, until)));
            Answer::Followed { place, followed: follow(&folder, &asked, until, followed), asked }
        }
        Question::Measure { place, name, of } => {
            let (mut change, reference) = *of;
            change.size = reference.and_then(|of| measure(&folder.join(name), &change, &of));
            Answer::Measured { place, change }
        }
    }
}

/// Enters the minutes on disk up to one, each beside the references of its time.
fn follow(folder: &Path, asked: &Asked, until: i64, mut followed: Box<Followed>) -> Box<Followed> {
    let reference = |span: Span| baseline(folder, span, asked.margin);
    // References of the time at which minutes end are taken for all of them: a restart after Sunday's midnight is rare.
    if followed.is_due(asked, until) {
        followed.refer(asked, until, reference);
    }
    let from = followed.until + 1;
    read(folder, from, until + 1, |minute| {
        followed.enter(minute.number, &minute.latencies_ns, minute.lost, minute.disturbed);
    });
    followed.until = followed.until.max(until);
    followed
}

/// The reference of a span; `None` if it has too few minutes.
fn baseline(folder: &Path, span: Span, margin: f64) -> Option<Reference> {
    let (from, until) = (span.from_ns / MINUTE_NS, span.until_ns / MINUTE_NS);
    let mut hours = Hours::default();
    read(folder, from, until, |minute| {
        if !minute.disturbed {
            for (latency_ns, count) in minute.latencies_ns {
                hours.record(minute.number, latency_ns, count);
            }
            hours.record_lost(minute.number, minute.lost);
        }
    });
    let candidates = hours.candidates(margin)?;
    let mut trials = Vec::new();
    read(folder, from, until, |minute| {
        if !minute.disturbed {
            trials.extend(candidates.trial(minute.number, &minute.latencies_ns, minute.lost));
        }
    });
    Reference::new(&candidates, &trials)
}
