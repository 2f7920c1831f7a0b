//! Names of targets become addresses, in a thread of its own: a resolver may take seconds.

use crate::plan::TargetPlan;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
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

impl Answer {
    fn of(place: usize, found: Result<SocketAddr, String>) -> Self {
        match found {
            Ok(address) => Self { place, address: Some(address), why: None },
            Err(why) => Self { place, address: None, why: Some(why) },
        }
    }
}

enum Question {
    Ask(usize, Arc<TargetPlan>),
    Forget(usize),
}

/// A name that is resolved again.
struct Name {
    plan: Arc<TargetPlan>,
    due_ns: i64,
    /// The last one.
    address: Option<SocketAddr>,
}

/// The thread, and the answers.
pub(crate) struct Resolver {
    questions: Sender<Question>,
    told: Sender<Answer>,
    answers: Receiver<Answer>,
}

impl Resolver {
    pub(crate) fn start() -> Self {
        let ((questions, asked), (told, answers)) = (channel(), channel());
        let of_names = told.clone();
        // It ends with the process: a resolver that waits cannot be woken.
        thread::spawn(move || answer(&asked, &of_names));
        Self { questions, told, answers }
    }

    /// Asks for the address of a target: of a name now and again. A literal address is answered at once.
    pub(crate) fn ask(&mut self, place: usize, plan: &Arc<TargetPlan>) {
        let text = &plan.address;
        if text.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok() {
            // Its receiver is in here, too.
            let _ = self.told.send(Answer::of(place, find(plan, None)));
            return;
        }
        // The thread has ended only if it has failed: then no new name is resolved, and its target has no probes.
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
    let mut names: BTreeMap<usize, Name> = BTreeMap::new();
    loop {
        let next = names.values().map(|name| name.due_ns).min();
        let wait_ns = next.map_or(AGAIN_NS, |due_ns| (due_ns - clock::monotonic_ns()).max(0));
        match asked.recv_timeout(Duration::from_nanos(wait_ns.cast_unsigned())) {
            Ok(Question::Ask(place, plan)) => {
                let due_ns = clock::monotonic_ns();
                names.insert(place, Name { plan, due_ns, address: None });
            }
            Ok(Question::Forget(place)) => {
                names.remove(&place);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now_ns = clock::monotonic_ns();
        for (place, name) in &mut names {
            if name.due_ns > now_ns {
                continue;
            }
            name.due_ns = now_ns + AGAIN_NS;
            let found = find(&name.plan, name.address);
            name.address = found.as_ref().ok().copied().or(name.address);
            if told.send(Answer::of(*place, found)).is_err() {
                return;
            }
        }
    }
}

/// The address of a target; `present` is the one that it has.
fn find(plan: &TargetPlan, present: Option<SocketAddr>) -> Result<SocketAddr, String> {
    let port = plan.protocol.port().unwrap_or(0);
    let addresses = resolve(&plan.address, port).map_err(|error| error.to_string())?;
    chosen(addresses, plan.source, present)
        .ok_or_else(|| format!("{}: no address of the same kind as src_ip", plan.address))
}

/// The present address if it is still one of these, or else the first one of the kind of the source address: many
/// resolvers give several in another order each time.
fn chosen(
    mut addresses: Vec<SocketAddr>,
    source: Option<IpAddr>,
    present: Option<SocketAddr>,
) -> Option<SocketAddr> {
    addresses.retain(|address| source.is_none_or(|source| source.is_ipv4() == address.is_ipv4()));
    present.filter(|present| addresses.contains(present)).or(addresses.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use std::path::Path;

    #[test]
    fn an_address_stays_while_it_is_one_of_its_name() {
        let [a, b, c] = [1_u8, 2, 3].map(|host| SocketAddr::from(([192, 0, 2, host], 862)));
        let six: SocketAddr = "[2001:db8::7]:862".parse().unwrap();
        assert_eq!(chosen(vec![a, b], None, None), Some(a));
        assert_eq!(chosen(vec![b, a], None, Some(a)), Some(a));
        assert_eq!(chosen(vec![b, c], None, Some(a)), Some(b));
        assert_eq!(chosen(vec![six, b], Some(a.ip()), Some(six)), Some(b));
        assert_eq!(chosen(vec![six], Some(a.ip()), None), None);
    }

    #[test]
    fn a_literal_address_waits_for_no_name() {
        let text = "targets: [{address: 192.0.2.7}, {address: '[2001:db8::7]:862'}]";
        let plan = Plan::parse(text, Path::new("watch.yml")).unwrap();
        let mut resolver = Resolver::start();
        for (place, target) in plan.targets.into_iter().enumerate() {
            resolver.ask(place, &Arc::new(target));
        }
        // The thread was not asked.
        let answers: Vec<Answer> = resolver.answers().collect();
        assert_eq!(answers.iter().map(|answer| answer.place).collect::<Vec<_>>(), [0, 1]);
        assert!(answers.iter().all(|answer| answer.address.is_some() && answer.why.is_none()));
    }
}
