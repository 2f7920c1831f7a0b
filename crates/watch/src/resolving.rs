//! Names of targets become addresses, in a thread of its own: a resolver may take seconds.

use crate::plan::TargetPlan;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use tailtrim_probes::resolve::resolve;
use tailtrim_sys::clock;

/// A name is resolved again after this time: the shortest common time to live of records that are changed by hand.
const AGAIN_NS: i64 = 60_000_000_000;

/// The address of a target, or why it has none.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) place: usize,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) why: Option<String>,
}

enum Question {
    Ask(usize, Arc<TargetPlan>),
    Forget(usize),
}

/// The thread, and its answers.
pub(crate) struct Resolver {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
}

impl Resolver {
    pub(crate) fn start() -> Self {
        let ((questions, asked), (told, answers)) = (channel(), channel());
        // It ends with the process: a resolver that waits cannot be woken.
        thread::spawn(move || answer(&asked, &told));
        Self { questions, answers }
    }

    /// Asks for the address of a target, now and again.
    pub(crate) fn ask(&mut self, place: usize, plan: &Arc<TargetPlan>) {
        // A thread that has ended answers nothing: targets then have no address, which is told.
        let _ = self.questions.send(Question::Ask(place, Arc::clone(plan)));
    }

    /// Asks no more.
    pub(crate) fn forget(&mut self, place: usize) {
        let _ = self.questions.send(Question::Forget(place));
    }

    /// The answers since the last call.
    pub(crate) fn answers(&mut self) -> impl Iterator<Item = Answer> + '_ {
        self.answers.try_iter()
    }
}

fn answer(asked: &Receiver<Question>, told: &Sender<Answer>) {
    let mut due: BTreeMap<usize, (i64, Arc<TargetPlan>)> = BTreeMap::new();
    loop {
        let next = due.values().map(|(at_ns, _)| *at_ns).min();
        let wait_ns = next.map_or(AGAIN_NS, |at_ns| (at_ns - clock::monotonic_ns()).max(0));
        match asked.recv_timeout(Duration::from_nanos(wait_ns.cast_unsigned())) {
            Ok(Question::Ask(place, plan)) => {
                due.insert(place, (clock::monotonic_ns(), plan));
            }
            Ok(Question::Forget(place)) => {
                due.remove(&place);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now_ns = clock::monotonic_ns();
        for (place, (at_ns, plan)) in &mut due {
            if *at_ns > now_ns {
                continue;
            }
            *at_ns = now_ns + AGAIN_NS;
            let (address, why) = match find(plan) {
                Ok(address) => (Some(address), None),
                Err(why) => (None, Some(why)),
            };
            if told.send(Answer { place: *place, address, why }).is_err() {
                return;
            }
        }
    }
}

/// The first address of the kind of the source address.
fn find(plan: &TargetPlan) -> Result<SocketAddr, String> {
    let port = plan.protocol.port().unwrap_or(0);
    let addresses = resolve(&plan.address, port).map_err(|error| error.to_string())?;
    let fits = |address: &&SocketAddr| {
        plan.source.is_none_or(|source| source.is_ipv4() == address.is_ipv4())
    };
    let first = addresses.iter().find(fits).copied();
    first.ok_or_else(|| format!("{}: no address of the same kind as src_ip", plan.address))
}
