//! Findings about lists of CPUs: what the simulation saw, and which lists contradict each other.

use super::cpu_list::{ListError, Problem};
use super::finding::{Context, Finding, Kind, Severity};
use super::prediction::{BOOT_CPU, ListEvent, Simulation};
use super::table::key;
use super::word_findings::handed_on;
use tailtrim_host::{BootLine, Cpus, KernelVersion, Word};

const HOUSEKEEPING: &str = "housekeeping_setup(), kernel/sched/isolation.c";
const RCU: &str = "rcu_nocb_setup(), kernel/rcu/tree_nocb.h";

/// Findings about the events of the simulation.
pub(super) fn events(line: &BootLine, run: &Simulation, context: &Context) -> Vec<Finding> {
    let known =
        run.events.iter().filter_map(|(place, what)| Some((line.words().get(*place)?, what)));
    known.filter_map(|(word, what)| event(word, what, line, run, context)).collect()
}

fn event(
    word: &Word,
    what: &ListEvent,
    line: &BootLine,
    run: &Simulation,
    context: &Context,
) -> Option<Finding> {
    Some(match what {
        ListEvent::Broken(error) => broken(word, error, context),
        ListEvent::UnknownFlag(at, end) => flag(word, (*at, *end), run, context),
        ListEvent::IllegalFlag(at, end) => {
            let title = "isolcpus= has an invalid flag".to_owned();
            Finding::new(Severity::Error, Kind::BadValue, word, title)
                .within(word, *at, *end)
                .effect(format!(
                    "The whole word is dropped: no CPU is isolated. {}",
                    handed_on(word, context)
                ))
                .source("housekeeping_isolcpus_setup(), kernel/sched/isolation.c")
        }
        ListEvent::MustMatch(earlier) => {
            let earlier = line.words().get(*earlier)?;
            let title = format!("{} is dropped: {} has another list", word.name, earlier.text());
            let effect = "Both would set the same mask, and the first one wins. The log says \
                          \"nohz_full= must match isolcpus=\".";
            Finding::new(Severity::Error, Kind::ListsDisagree, word, title)
                .effect(format!("{effect} {}", handed_on(word, context)))
                .source(HOUSEKEEPING)
        }
        ListEvent::SameAgain(earlier) => {
            let earlier = line.words().get(*earlier)?;
            let title =
                format!("{} is dropped: {} has its list already", word.name, earlier.text());
            let effect = "The list counts once, as the first word gave it. The log says \"nohz_full= must match \
                          isolcpus=\" although it does.";
            Finding::new(Severity::Note, Kind::Duplicate, word, title)
                .effect(format!("{effect} {}", handed_on(word, context)))
                .source(HOUSEKEEPING)
        }
        ListEvent::AllTaken => {
            let title = format!("{} takes every CPU", word.name);
            Finding::new(Severity::Warning, Kind::BootCpu, word, title)
                .effect("One CPU must keep the housekeeping: the boot CPU is left out.")
                .source(HOUSEKEEPING)
        }
        ListEvent::Empty => {
            let title = format!("{} names no CPU", word.name);
            Finding::new(Severity::Error, Kind::BadValue, word, title)
                .effect(format!("Nothing is isolated. {}", handed_on(word, context)))
                .source(HOUSEKEEPING)
        }
        ListEvent::BootCpu => boot_cpu(word),
        ListEvent::NoDomain => no_domain(word, line, context),
        // Said with the word that does it.
        ListEvent::ForgetsRcu(earlier, lost) => {
            return forgotten(word, line.words().get(*earlier)?, lost);
        }
    })
}

fn broken(word: &Word, error: &ListError, context: &Context) -> Finding {
    let value = word.value.as_deref().unwrap_or_default();
    let part = value.get(error.at..error.end).unwrap_or(value);
    let (kind, problem) = match error.problem {
        Problem::OutOfRange(_) => (Kind::OutOfRange, beyond(context)),
        Problem::Backwards => (Kind::BadValue, "ends before it begins".to_owned()),
        Problem::Group => (Kind::BadValue, "takes more of a group than it has".to_owned()),
        Problem::Malformed => match later(part, context) {
            Some(since) => (Kind::OtherVersion, format!("is supported since {since} only")),
            None => (Kind::BadValue, "is not a CPU, range or group".to_owned()),
        },
    };
    let effect = match key(&word.name).as_str() {
        "rcu_nocbs" => {
            "A list that cannot be read means all: the callbacks of every CPU are offloaded."
                .to_owned()
        }
        "irqaffinity" => format!(
            "Nothing is logged. Interrupts go to the CPUs before the mistake ({}) and to the boot CPU.",
            if error.before.is_empty() { "none".to_owned() } else { error.before.to_string() }
        ),
        _ => format!(
            "The whole list is dropped, the CPUs that exist too; the log says \"incorrect CPU range\". {}",
            handed_on(word, context)
        ),
    };
    let source = if key(&word.name) == "rcu_nocbs" { RCU } else { HOUSEKEEPING };
    let title = format!("{part:?} in {}= {problem}", word.name);
    let finding = Finding::new(Severity::Error, kind, word, title);
    let finding = finding.within(word, error.at, error.end).effect(effect).source(source);
    match flags_last(word) {
        Some(right) => finding.right(right),
        None => finding,
    }
}

/// The version that brought a word of lists which this kernel lacks.
fn later(part: &str, context: &Context) -> Option<KernelVersion> {
    let range = part.split(':').next().unwrap_or(part);
    if range.eq_ignore_ascii_case("all") {
        return context.before(5, 14).then(|| KernelVersion::new(5, 14));
    }
    let last = range.split('-').any(|number| number == "N");
    (last && context.before(5, 13)).then(|| KernelVersion::new(5, 13))
}

fn beyond(context: &Context) -> String {
    match &context.cpus {
        Some(cpus) => format!("is beyond {}, which this machine has", cpus.named()),
        None => "is beyond any machine".to_owned(),
    }
}

/// `isolcpus=1-3,managed_irq`: the flags belong before the list.
fn flags_last(word: &Word) -> Option<String> {
    let value = word.value.as_deref().filter(|_| key(&word.name) == "isolcpus")?;
    let is_flag = |part: &&str| matches!(*part, "nohz" | "domain" | "managed_irq");
    let (flags, cpus): (Vec<&str>, Vec<&str>) = value.split(',').partition(is_flag);
    let sorted = [flags, cpus].concat().join(",");
    (sorted != value).then(|| format!("isolcpus={sorted}"))
}

fn flag(word: &Word, (at, end): (usize, usize), run: &Simulation, context: &Context) -> Finding {
    let value = word.value.as_deref().unwrap_or_default();
    let wrong = value.get(at..end).unwrap_or(value);
    let flags = ["nohz", "domain", "managed_irq"];
    let meant = super::nearest::nearest(wrong, flags.into_iter());
    let title = format!("isolcpus= has the unknown flag {wrong:?}");
    let isolated = &run.prediction.isolated;
    let rest = if context.cpus.is_none() || isolated.is_empty() {
        String::new()
    } else {
        format!(" The scheduler still isolates {isolated}.")
    };
    let effect = format!(
        "It is skipped; the log says \"Skipped unknown flag {wrong}\", and the rest counts.{rest}"
    );
    let finding = Finding::new(Severity::Error, Kind::BadValue, word, title)
        .within(word, at, end)
        .effect(effect)
        .source("housekeeping_isolcpus_setup(), kernel/sched/isolation.c");
    match meant {
        Some(meant) => finding.right(format!("isolcpus={}{meant}{}", &value[..at], &value[end..])),
        None => finding,
    }
}

fn boot_cpu(word: &Word) -> Finding {
    let title = format!("{}= takes CPU {BOOT_CPU}, which boots and keeps time", word.name);
    Finding::new(Severity::Warning, Kind::BootCpu, word, title)
        .effect(
            "The kernel takes it out again (\"Clearing 0 from nohz_full range for timekeeping\"): its tick goes \
             on, and isolcpus= and nohz_full= no longer name the same CPUs.",
        )
        .source("tick_nohz_init(), kernel/time/tick-sched.c")
        .check("ISO-022")
}

fn no_domain(word: &Word, line: &BootLine, context: &Context) -> Finding {
    let value = word.value.as_deref().unwrap_or_default();
    let title =
        "isolcpus= with flags but without domain isolates nothing from the scheduler".to_owned();
    let nohz = value.split(',').any(|flag| flag == "nohz");
    let (severity, effect, check) = if nohz && context.from(7, 2) {
        (
            Severity::Error,
            "It does what nohz_full= does, but tasks stay: the scheduler isolates nothing.",
            "ISO-001",
        )
    } else if nohz {
        (
            Severity::Error,
            "It stops the tick, but tasks, unbound work and the lockup watchdog stay on these CPUs: nohz_full= \
             does all of it.",
            "ISO-005",
        )
    } else if line.has("nohz_full") || line.has("systemd.cpu_affinity") {
        (
            Severity::Note,
            "Only managed interrupts keep away: right where cpusets or affinities isolate the rest, as OpenShift \
             does. /sys/devices/system/cpu/isolated stays empty.",
            "ISO-001",
        )
    } else {
        (
            Severity::Warning,
            "Only managed interrupts keep away. /sys/devices/system/cpu/isolated stays empty, and nothing is \
             logged.",
            "ISO-001",
        )
    };
    Finding::new(severity, Kind::Misunderstood, word, title)
        .effect(effect)
        .right(format!("isolcpus=domain,{value}"))
        .source("housekeeping_isolcpus_setup(), kernel/sched/isolation.c")
        .check(check)
}

fn forgotten(word: &Word, earlier: &Word, lost: &Cpus) -> Option<Finding> {
    // Words that are no rcu_nocbs are told about as swallowed.
    (key(&word.name) == "rcu_nocbs").then(|| {
        let title = format!("the list {lost} of {} is thrown away", earlier.text());
        Finding::new(Severity::Error, Kind::Contradiction, word, title)
            .effect("Each rcu_nocbs begins with an empty list: the last one counts.")
            .source(RCU)
            .check("BOOT-002")
    })
}

/// Lists that should name the same CPUs, or none of the same.
pub(super) fn disagreements(line: &BootLine, run: &Simulation) -> Vec<Finding> {
    let list = |name: &str| {
        let of = |(place, cpus): &(usize, Cpus)| {
            let word = line.words().get(*place).filter(|word| word.is(name))?;
            Some((word.clone(), cpus.clone()))
        };
        run.lists.iter().rev().find_map(of)
    };
    let (isolated, tickless) = (list("isolcpus"), list("nohz_full"));
    let mut found = Vec::new();
    if let (Some((_, one)), Some((word, other))) = (&isolated, &tickless)
        && one != other
    {
        found.push(differ(word, "nohz_full", other, one));
    }
    let quiet = match (&isolated, &tickless) {
        (Some((_, one)), Some((_, other))) => Some(one.union(other)),
        (Some((_, one)), None) | (None, Some((_, one))) => Some(one.clone()),
        (None, None) => None,
    };
    let Some(quiet) = quiet else { return found };
    if let Some((word, list)) = list("rcu_nocbs") {
        let tickless = tickless.map_or_else(Cpus::none, |(_, cpus)| cpus);
        let whole = list.union(&tickless);
        if whole != quiet {
            found.push(differ(&word, "rcu_nocbs", &whole, &quiet).check("ISO-006"));
        }
    }
    if let Some((word, list)) = list("irqaffinity") {
        found.extend(
            overlap(&word, &list, &quiet, "interrupts go to").map(|found| found.check("IRQ-001")),
        );
    }
    for word in line.all("systemd.cpu_affinity") {
        let text = word.value.as_deref().unwrap_or_default().replace([' ', '\t'], ",");
        if let Ok(list) = text.parse::<Cpus>() {
            let overlap = overlap(word, &list, &quiet, "services start on");
            found.extend(overlap.map(|found| found.check("ISO-017")));
        }
    }
    found
}

fn differ(word: &Word, name: &str, list: &Cpus, isolated: &Cpus) -> Finding {
    let less = isolated.minus(list);
    let more = list.minus(isolated);
    let mut effect = "The kernel takes both as they are and logs nothing.".to_owned();
    if !less.is_empty() {
        effect += &match name {
            "nohz_full" => format!(" Isolated, but with its tick: {}.", less.named()),
            _ => format!(" Isolated, but with RCU callbacks: {}.", less.named()),
        };
    }
    if !more.is_empty() {
        effect += &match name {
            "nohz_full" => {
                format!(" Without a tick, but tasks are still balanced there: {}.", more.named())
            }
            _ => format!(" {} offloaded without need.", more.does("is", "are")),
        };
    }
    let title = format!("{name}= covers {list}, the isolated CPUs are {isolated}");
    Finding::new(Severity::Warning, Kind::ListsDisagree, word, title)
        .effect(effect)
        .right(format!("{name}={isolated}"))
        .source(HOUSEKEEPING)
}

fn overlap(word: &Word, list: &Cpus, isolated: &Cpus, what: &str) -> Option<Finding> {
    let both = list.intersection(isolated);
    (!both.is_empty()).then(|| {
        let title = format!("{}= names isolated CPUs: {both}", word.name);
        Finding::new(Severity::Warning, Kind::ListsDisagree, word, title)
            .effect(format!("The list is taken as it is: {what} {} too.", both.named()))
    })
}
