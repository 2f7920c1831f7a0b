//! Findings about words that stand together: given twice, one against the other, or believed to do
//! something else. Their texts are in `pair_findings.json`.

use super::finding::{Context, Finding, Kind, Severity};
use super::huge_pages::{self, HugeEvent};
use super::prediction::Simulation;
use super::table::{TABLE, Value, key};
use serde::Deserialize;
use std::sync::LazyLock;
use tailtrim_host::texts::{Text, read, text};
use tailtrim_host::{BootLine, Word};

/// Text of a finding, in which `{word}`, `{value}` and `{other}` stand for the word, its value and something beside it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    severity: Severity,
    kind: Kind,
    title: String,
    effect: String,
    right: Option<String>,
    #[serde(deserialize_with = "text")]
    source: Text,
    #[serde(deserialize_with = "text")]
    check: Text,
}

/// One text for each finding.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pairs {
    intel_idle_zero: Pair,
    processor_zero: Pair,
    tsc_nowatchdog: Pair,
    no_stopped_tick: Pair,
    nowatchdog: Pair,
    hugepagesz_again: Pair,
    hugepages_again: Pair,
    hugepages_no_size: Pair,
    hugepages_early: Pair,
    hugepages_none: Pair,
    mce_off: Pair,
    rcu_poll_alone: Pair,
}

static PAIRS: LazyLock<Pairs> = LazyLock::new(|| read(include_str!("pair_findings.json")));

impl Pair {
    fn about(&self, word: &Word, other: &str) -> Finding {
        let fill = |text: &String| {
            text.replace("{word}", &word.text())
                .replace("{value}", word.value.as_deref().unwrap_or_default())
                .replace("{other}", other)
        };
        let finding = Finding::new(self.severity, self.kind, word, fill(&self.title))
            .effect(fill(&self.effect))
            .source(self.source)
            .check(self.check);
        Finding { right: self.right.as_ref().map(fill), ..finding }
    }
}

/// All of them.
pub(super) fn findings(line: &BootLine, run: &Simulation, context: &Context) -> Vec<Finding> {
    let pairs = &*PAIRS;
    let mut found = duplicates(line, context);
    let mut say = |pair: &Pair, word: Option<&Word>| {
        found.extend(word.map(|word| pair.about(word, "")));
    };
    let with = |name: &'static str, value: &'static str| {
        line.all(name).filter(move |word| word.value.as_deref() == Some(value))
    };
    let shallow = matches!(line.last("idle"), Some("poll" | "halt"))
        || line.last("cpuidle.off") == Some("1")
        || matches!(line.last("processor.max_cstate"), Some("0" | "1"));
    if !shallow {
        with("intel_idle.max_cstate", "0").for_each(|word| say(&pairs.intel_idle_zero, Some(word)));
    }
    with("processor.max_cstate", "0").for_each(|word| say(&pairs.processor_zero, Some(word)));
    if with("tsc", "reliable").next().is_none() {
        say(&pairs.tsc_nowatchdog, with("tsc", "nowatchdog").next());
    }
    if line.has("nohz_full") && (!run.prediction.nohz_full.is_empty() || context.cpus.is_none()) {
        let is_off = |word: &&Word| matches!(word.value.as_deref(), Some("off" | "0" | "n"));
        let against = with("tsc", "unstable").next().or_else(|| line.all("notsc").next());
        say(&pairs.no_stopped_tick, against.or_else(|| line.all("nohz").find(is_off)));
    }
    if line.has("nowatchdog") {
        let on = |word: &&Word| word.value.as_deref().is_some_and(|value| value.ends_with('1'));
        say(&pairs.nowatchdog, line.all("nmi_watchdog").find(on));
    }
    with("mce", "off").for_each(|word| say(&pairs.mce_off, Some(word)));
    if run.prediction.rcu_offloaded.is_empty() {
        say(&pairs.rcu_poll_alone, line.all("rcu_nocb_poll").next());
    }
    found.extend(huge_pages(line, &run.huge_pages));
    found
}

fn duplicates(line: &BootLine, context: &Context) -> Vec<Finding> {
    let mut found = Vec::new();
    for (place, word) in line.words().iter().enumerate() {
        let Some(parameter) = TABLE.find(&word.name, context.kernel) else { continue };
        let earlier = line.words()[..place].iter().rev().find(|earlier| earlier.is(&word.name));
        let Some(earlier) = earlier.filter(|_| !parameter.repeats) else { continue };
        // Lists contradict each other in their own ways: the simulation tells.
        let is_list = matches!(parameter.value, Value::Cpus);
        if earlier.value == word.value {
            let title = format!("{} stands here for the second time", word.text());
            let finding = Finding::new(Severity::Note, Kind::Duplicate, word, title);
            found.push(finding.effect("Once is enough."));
        } else if !is_list || key(&word.name) == "irqaffinity" {
            let first = key(&word.name) == "default_hugepagesz";
            let (wins, loses) = if first { (earlier, word) } else { (word, earlier) };
            let title = format!("{} and {} contradict each other", earlier.text(), word.text());
            let finding = Finding::new(Severity::Warning, Kind::Contradiction, loses, title);
            let which = if first { "first" } else { "last" };
            found.push(finding.effect(format!("The {which} one counts: {}.", wins.text())));
        }
    }
    found
}

/// Words about huge pages of which nothing comes, or something else.
fn huge_pages(line: &BootLine, events: &[(usize, HugeEvent)]) -> Vec<Finding> {
    let pairs = &*PAIRS;
    let about = |&(place, event): &(usize, HugeEvent)| {
        let word = &line.words()[place];
        Some(match event {
            HugeEvent::SizeAgain => pairs.hugepagesz_again.about(word, ""),
            HugeEvent::CountAgain(stays) => pairs.hugepages_again.about(word, &stays.to_string()),
            HugeEvent::NoSize => pairs.hugepages_no_size.about(word, ""),
            HugeEvent::Early => {
                pairs.hugepages_early.about(word, &line.all("hugepagesz").next()?.text())
            }
            HugeEvent::NoCount => pairs.hugepages_none.about(word, &huge_pages::size(word)),
        })
    };
    events.iter().filter_map(about).collect()
}
