//! Simulation of a kernel that reads the CPU lists of a line: a model of `housekeeping_setup()`
//! (kernel/sched/isolation.c), `rcu_nocb_setup()` (kernel/rcu/tree_nocb.h) and `irq_affinity_setup()`
//! (kernel/irq/irqdesc.c), for kernels that have these built in as distributions do.

use super::cpu_list::{self, ListError, Words};
use super::finding::Context;
use super::huge_pages::{self, HugeEvent, HugePages};
use super::table::{Parsing, TABLE, key};
use serde::Serialize;
use tailtrim_host::{BootLine, Cpus, Word};

/// x86 boots on it.
pub(super) const BOOT_CPU: u32 = 0;

/// As many as Debian's kernel is built for, where the machine is not known.
const MOST: u32 = 8192;

const DOMAIN: usize = 0;
const MANAGED: usize = 1;
const TICK: usize = 2;
/// Unbound work, timers, RCU, kernel threads: `nohz_full=` takes them together.
const NOISE: usize = 3;

/// State of a kernel that booted with a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Prediction {
    /// `/sys/devices/system/cpu/isolated`.
    pub isolated: Cpus,
    /// `/sys/devices/system/cpu/nohz_full`.
    pub nohz_full: Cpus,
    /// CPUs whose RCU callbacks are offloaded.
    pub rcu_offloaded: Cpus,
    /// Whether the threads that run them poll.
    pub rcu_poll: bool,
    /// `/proc/irq/default_smp_affinity`, where the line sets it.
    pub irq_affinity: Option<Cpus>,
    /// Huge pages by size; empty where the line says nothing of them, or the kernel is older than 5.8.
    pub huge_pages: Vec<HugePages>,
    /// Words that become arguments of init.
    pub to_init: Vec<String>,
    /// Words that become variables in init's environment.
    pub to_environment: Vec<String>,
}

/// Something that happens to a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListEvent {
    /// The list is none, or has a CPU that is not there.
    Broken(ListError),
    /// A flag that is not known is skipped: these bytes.
    UnknownFlag(usize, usize),
    /// A flag with a sign that none has: the word is dropped.
    IllegalFlag(usize, usize),
    /// The list is another than that of an earlier word, and dropped.
    MustMatch(usize),
    /// The list is that of an earlier word, and dropped all the same.
    SameAgain(usize),
    /// No CPU was left, so the boot CPU is put back.
    AllTaken,
    /// There is no CPU in the list.
    Empty,
    /// The boot CPU is taken out again.
    BootCpu,
    /// Flags without `domain`: the scheduler isolates nothing.
    NoDomain,
    /// This throws away the list of an earlier word: its place, what was in it.
    ForgetsRcu(usize, Cpus),
}

/// Simulation of all words of a line.
#[derive(Debug, Default)]
pub(super) struct Simulation {
    pub(super) prediction: Prediction,
    /// Events, by place of the word.
    pub(super) events: Vec<(usize, ListEvent)>,
    /// The same of words about huge pages.
    pub(super) huge_pages: Vec<(usize, HugeEvent)>,
    /// The list of each word that has one and keeps it.
    pub(super) lists: Vec<(usize, Cpus)>,
    /// Words that their functions return to the caller, who takes them for unknown.
    pub(super) rejected: Vec<usize>,
    masks: [Option<Cpus>; 4],
    owner: [usize; 4],
    rcu: Option<(usize, Cpus)>,
    possible: Cpus,
    bits: u32,
    /// Before 5.18 there was one mask for all, so that a second list had to be the same.
    one_mask: bool,
    rcu_prefix: bool,
    /// Booted on 7.2: a second list of a kind is compared with all CPUs instead of with the first one.
    second_never_fits: bool,
    words: Words,
}

/// Run a line.
pub(super) fn simulate(line: &BootLine, context: &Context) -> Simulation {
    let possible = context.cpus.clone().unwrap_or_else(|| (0..MOST).collect());
    // nr_cpus= makes the machine smaller than it is.
    let most = line.last("nr_cpus").and_then(|number| number.parse().ok()).filter(|most| *most > 0);
    let possible: Cpus =
        possible.iter().filter(|cpu| most.is_none_or(|most| *cpu < most)).collect();
    let bits = possible.iter().next_back().map_or(1, |last| last + 1);
    let mut run = Simulation {
        bits,
        possible,
        one_mask: context.before(5, 18),
        rcu_prefix: !context.before(5, 17),
        second_never_fits: context.from(7, 2),
        words: Words { last: !context.before(5, 13), all: !context.before(5, 14) },
        ..Simulation::default()
    };
    for (place, word) in line.words().iter().enumerate() {
        run.word(place, word, context);
    }
    run.finish();
    (run.prediction.huge_pages, run.huge_pages) = huge_pages::read(line, context);
    run
}

impl Simulation {
    fn word(&mut self, place: usize, word: &Word, context: &Context) {
        let name = key(&word.name);
        match (name.as_str(), word.value.as_deref()) {
            ("isolcpus", Some(value)) => self.isolcpus(place, value),
            ("nohz_full", Some(value)) => self.housekeeping(place, value, 0, &[TICK, NOISE]),
            ("irqaffinity", Some(value)) => self.irqaffinity(place, value),
            ("rcu_nocbs", Some(value)) => self.rcu_nocbs(place, Some(value)),
            (name, _) if name.starts_with("rcu_nocbs") && self.rcu_prefix => {
                self.rcu_nocbs(place, None)
            }
            (name, _) => {
                let poll = TABLE.find("rcu_nocb_poll", context.kernel);
                let polls = name == "rcu_nocb_poll"
                    || poll.is_some_and(|poll| poll.parsed == Parsing::Prefix)
                        && context.kernel.is_some()
                        && name.starts_with("rcu_nocb_poll");
                self.prediction.rcu_poll |= polls;
            }
        }
    }

    fn say(&mut self, place: usize, what: ListEvent) {
        self.events.push((place, what));
    }

    fn isolcpus(&mut self, place: usize, value: &str) {
        let mut flags = Vec::new();
        let mut at = 0;
        while value[at..].starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            let end = value[at..].find(',').map_or(value.len(), |comma| at + comma);
            let flag = match (&value[at..end], end < value.len()) {
                ("nohz", true) => Some(TICK),
                ("domain", true) => Some(DOMAIN),
                ("managed_irq", true) => Some(MANAGED),
                _ => None,
            };
            if let Some(flag) = flag {
                flags.push(flag);
            } else if value[at..end].chars().all(|sign| sign.is_ascii_alphabetic() || sign == '_') {
                self.say(place, ListEvent::UnknownFlag(at, end));
            } else {
                self.say(place, ListEvent::IllegalFlag(at, end));
                self.rejected.push(place);
                return;
            }
            at = (end + 1).min(value.len());
        }
        if flags.is_empty() {
            flags.push(DOMAIN);
        } else if !flags.contains(&DOMAIN) {
            self.say(place, ListEvent::NoDomain);
        }
        flags.sort_unstable();
        flags.dedup();
        self.housekeeping(place, &value[at..], at, &flags);
    }

    fn housekeeping(&mut self, place: usize, text: &str, offset: usize, flags: &[usize]) {
        let mut taken = match cpu_list::parse(text, self.bits, self.words) {
            Ok(taken) => taken,
            Err(error) => {
                let (at, end) = (error.at + offset, error.end + offset);
                self.say(place, ListEvent::Broken(ListError { at, end, ..error }));
                return self.rejected.push(place);
            }
        };
        let mut kept = self.possible.minus(&taken);
        if kept.is_empty() {
            kept = [BOOT_CPU].into_iter().collect();
            taken = taken.minus(&kept);
            self.say(place, ListEvent::AllTaken);
        }
        if taken.is_empty() {
            self.say(place, ListEvent::Empty);
            return self.rejected.push(place);
        }
        let clash = (0..self.masks.len()).find(|kind| {
            (self.one_mask || flags.contains(kind))
                && self.masks[*kind].as_ref().is_some_and(|mask| *mask != kept)
        });
        if let Some(kind) = clash {
            self.say(place, ListEvent::MustMatch(self.owner[kind]));
            return self.rejected.push(place);
        }
        let same = flags.iter().find(|kind| self.masks[**kind].is_some());
        if let (Some(kind), true) = (same, self.second_never_fits) {
            self.say(place, ListEvent::SameAgain(self.owner[*kind]));
            return self.rejected.push(place);
        }
        for kind in flags {
            if self.masks[*kind].is_none() {
                (self.masks[*kind], self.owner[*kind]) = (Some(kept.clone()), place);
            }
        }
        self.lists.push((place, taken));
    }

    fn rcu_nocbs(&mut self, place: usize, value: Option<&str>) {
        // This one knew the whole word long before the others did.
        let words = Words {
            all: self.words.all || value.is_some_and(|value| value.eq_ignore_ascii_case("all")),
            ..self.words
        };
        let list = match value.map(|value| cpu_list::parse(value, self.bits, words)) {
            Some(Ok(list)) => list,
            Some(Err(error)) => {
                self.say(place, ListEvent::Broken(error));
                self.possible.clone()
            }
            None => Cpus::none(),
        };
        if let Some((earlier, lost)) = self.rcu.take()
            && !lost.is_subset(&list)
        {
            self.say(place, ListEvent::ForgetsRcu(earlier, lost));
        }
        if value.is_some() {
            self.lists.push((place, list.clone()));
        }
        self.rcu = Some((place, list));
    }

    fn irqaffinity(&mut self, place: usize, value: &str) {
        let list = match cpu_list::parse(value, self.bits, self.words) {
            Ok(list) => list,
            Err(error) => {
                let before = error.before.clone();
                self.say(place, ListEvent::Broken(error));
                before
            }
        };
        self.lists.push((place, list.clone()));
        self.prediction.irq_affinity = Some(list.union(&[BOOT_CPU].into_iter().collect()));
    }

    fn finish(&mut self) {
        let boot: Cpus = [BOOT_CPU].into_iter().collect();
        let without = |mask: &Option<Cpus>| {
            mask.as_ref().map_or_else(Cpus::none, |mask| self.possible.minus(mask))
        };
        let isolated = without(&self.masks[DOMAIN]);
        let tickless = without(&self.masks[TICK]);
        if tickless.contains(BOOT_CPU) {
            self.events.push((self.owner[TICK], ListEvent::BootCpu));
        }
        let tickless = tickless.minus(&boot);
        let offloaded = self.rcu.as_ref().map_or_else(Cpus::none, |(_, list)| list.clone());
        // rcu_init_nohz() adds the tickless CPUs, whatever rcu_nocbs= says.
        self.prediction.rcu_offloaded = offloaded.union(&tickless).intersection(&self.possible);
        self.prediction.isolated = isolated;
        self.prediction.nohz_full = tickless;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str, kernel: &str, cpus: &str) -> Simulation {
        let context =
            Context { kernel: Some(kernel.parse().unwrap()), cpus: Some(cpus.parse().unwrap()) };
        simulate(&BootLine::parse(line), &context)
    }

    #[test]
    fn lists_that_work_and_lists_that_do_not() {
        for (line, isolated, nohz_full, offloaded) in [
            ("isolcpus=1-3 nohz_full=1-3", "1-3", "1-3", "1-3"),
            ("isolcpus=domain,managed_irq,1-3", "1-3", "", ""),
            ("isolcpus=managed_irq,1-3", "", "", ""),
            ("isolcpus=nohz,domain,1-3", "1-3", "1-3", "1-3"),
            ("isolcpus=manged_irq,domain,1-3", "1-3", "", ""),
            ("isolcpus=1-7 nohz_full=1-7", "", "", ""),
            ("isolcpus=1-3,managed_irq", "", "", ""),
            ("isolcpus=2-3 nohz_full=1-3", "2-3", "1-3", "1-3"),
            ("isolcpus=nohz,2-3 nohz_full=1-3", "", "2-3", "2-3"),
            ("isolcpus=2 isolcpus=3", "2", "", ""),
            ("nohz_full=all", "", "1-3", "1-3"),
            ("nohz_full=0-2", "", "1-2", "1-2"),
            ("isolcpus=domain,1-N", "1-3", "", ""),
            ("isolcpus=all", "", "", ""),
            ("rcu_nocbs=1-3 rcu_nocbs_poll", "", "", ""),
            ("rcu_nocbs_poll rcu_nocbs=1-3", "", "", "1-3"),
            ("rcu_nocbs=1-3 rcu_nocbs_poll nohz_full=2-3", "", "2-3", "2-3"),
            ("rcu_nocbs=9", "", "", "0-3"),
            ("nr_cpus=2 isolcpus=1-3", "", "", ""),
        ] {
            let found = run(line, "6.1", "0-3").prediction;
            let lists = [found.isolated, found.nohz_full, found.rcu_offloaded];
            assert_eq!(
                lists.map(|cpus| cpus.to_string()),
                [isolated, nohz_full, offloaded],
                "{line}"
            );
        }
    }

    #[test]
    fn older_kernels() {
        let prefix = run("rcu_nocbs=1-3 rcu_nocbs_poll", "5.10", "0-3").prediction;
        assert_eq!(prefix.rcu_offloaded.to_string(), "1-3");
        let masks = run("isolcpus=2-3 nohz_full=1-3", "5.10", "0-3");
        assert_eq!(masks.prediction.nohz_full, Cpus::none());
        assert_eq!(masks.rejected, [1]);
    }

    #[test]
    fn a_second_list_is_dropped_by_newer_kernels_even_if_it_is_the_same() {
        let line = "isolcpus=nohz,domain,2-3 nohz_full=2-3";
        let (older, newer) = (run(line, "6.12", "0-3"), run(line, "7.2", "0-3"));
        assert_eq!(older.rejected, Vec::<usize>::new());
        assert_eq!(newer.rejected, [1]);
        assert_eq!(newer.prediction.nohz_full.to_string(), "2-3");
    }

    #[test]
    fn interrupts_go_where_the_list_says_and_to_the_boot_cpu() {
        let affinity = |line| run(line, "6.1", "0-3").prediction.irq_affinity.unwrap().to_string();
        assert_eq!(affinity("irqaffinity=2"), "0,2");
        assert_eq!(affinity("irqaffinity=2,7,1"), "0,2");
    }
}
