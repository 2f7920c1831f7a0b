//! The line beside the running kernel: what was asked for, and what came of it.

use super::LintReport;
use super::finding::{Finding, Kind, Severity};
use super::huge_pages::HugePages;
use super::table::{Parsing, TABLE};
use serde::Serialize;
use tailtrim_host::{BootLine, Cpus, KernelVersion, LOG, Tree, Unread, Word};

const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const POOLS: &str = "/sys/kernel/mm/hugepages";

/// State of a running kernel that its boot line controls. A file that could not be read is `None` here and named in
/// [`Running::unread`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Running {
    /// `/proc/cmdline`.
    pub line: Option<String>,
    /// `/proc/sys/kernel/osrelease`.
    pub release: Option<String>,
    /// `/sys/devices/system/cpu/possible`.
    pub possible: Option<Cpus>,
    /// CPUs outside the scheduler's domains.
    pub isolated: Option<Cpus>,
    /// CPUs without a tick.
    pub nohz_full: Option<Cpus>,
    /// CPUs whose RCU callbacks are offloaded, from the log.
    pub rcu_offloaded: Option<Cpus>,
    /// Bytes of a huge page and pages that there are, by size.
    pub huge_pages: Option<Vec<(u64, u64)>>,
    /// Words that the log names as unknown.
    pub reported: Option<Vec<String>>,
    /// Lines of the log about isolation.
    pub told: Vec<String>,
    /// Arguments of PID 1.
    pub init: Option<Vec<String>>,
    /// Environment of PID 1.
    pub environment: Option<Vec<String>>,
    /// Files that could not be read, and why.
    pub unread: Vec<String>,
}

impl Running {
    /// Read the files of a host, and what there is of the kernel's log.
    #[must_use]
    pub fn read(tree: &dyn Tree) -> Self {
        let mut found = Self::default();
        found.line = found.keep(tree.text("/proc/cmdline"));
        found.release = found.keep(tree.text("/proc/sys/kernel/osrelease"));
        found.possible = found.cpus(tree, "/sys/devices/system/cpu/possible");
        found.isolated = found.cpus(tree, ISOLATED);
        found.nohz_full = match tree.text(NOHZ_FULL) {
            // A kernel without CONFIG_NO_HZ_FULL has no such file.
            Err(Unread::Missing { .. }) => Some(Cpus::none()),
            Ok(_) => found.cpus(tree, NOHZ_FULL),
            Err(unread) => found.keep(Err(unread)),
        };
        found.huge_pages = found.pools(tree);
        found.init =
            found.strings(tree, "/proc/1/cmdline").map(|words| words.into_iter().skip(1).collect());
        found.environment = found.strings(tree, "/proc/1/environ");
        match tree.text(LOG) {
            Ok(log) => found.log(&log),
            Err(reason) => found.unread.push(format!("kernel log: {reason}")),
        }
        found
    }

    fn keep<T>(&mut self, read: Result<T, Unread>) -> Option<T> {
        read.map_err(|unread| self.unread.push(unread.to_string())).ok()
    }

    fn cpus(&mut self, tree: &dyn Tree, path: &str) -> Option<Cpus> {
        let text = self.keep(tree.text(path))?;
        // Output of printk for no mask.
        if text == "(null)" {
            return Some(Cpus::none());
        }
        text.parse().map_err(|error| self.unread.push(format!("{path}: {error}"))).ok()
    }

    /// Pages of each size. A kernel without huge pages has no such folder.
    fn pools(&mut self, tree: &dyn Tree) -> Option<Vec<(u64, u64)>> {
        let names = match tree.list(POOLS) {
            Err(Unread::Missing { .. }) => return Some(Vec::new()),
            listed => self.keep(listed)?,
        };
        let mut pools = Vec::new();
        for name in &names {
            let kib = name.strip_prefix("hugepages-").and_then(|rest| rest.strip_suffix("kB"));
            let Some(kib) = kib.and_then(|kib| kib.parse::<u64>().ok()) else { continue };
            let path = format!("{POOLS}/{name}/nr_hugepages");
            let text = self.keep(tree.text(&path))?;
            let pages = text.parse().map_err(|_| self.unread.push(format!("{path}: {text:?}")));
            pools.push((kib << 10, pages.ok()?));
        }
        Some(pools)
    }

    fn strings(&mut self, tree: &dyn Tree, path: &str) -> Option<Vec<String>> {
        let content = self.keep(tree.read(path))?;
        let strings = content.split(|byte| *byte == 0).filter(|string| !string.is_empty());
        Some(strings.map(|string| String::from_utf8_lossy(string).into_owned()).collect())
    }

    fn log(&mut self, log: &str) {
        // A log whose beginning was overwritten says nothing by what it lacks.
        if !log.contains("Linux version ") {
            self.unread.push("kernel log: its beginning is gone".to_owned());
            return;
        }
        let behind = |line: &str, sign: &str| {
            line.split_once(sign).map(|(_, rest)| rest.trim_end_matches('.').trim().to_owned())
        };
        let mut reported = Vec::new();
        self.rcu_offloaded = Some(Cpus::none());
        for line in log.lines() {
            if let Some(list) = behind(line, "Offload RCU callbacks from CPUs:") {
                self.rcu_offloaded = list.parse().ok().or(Some(Cpus::none()));
            }
            if let Some(rest) = behind(line, "Unknown kernel command line parameters \"")
                && let Some((words, _)) = rest.split_once('"')
            {
                reported.extend(words.split_whitespace().map(str::to_owned));
            }
            const SIGNS: [&str; 5] =
                ["Housekeeping: ", "isolcpus: ", "NO_HZ: ", "Offload RCU", "rcu_nocbs= bad"];
            if SIGNS.iter().any(|sign| line.contains(sign)) {
                self.told.push(line.trim().to_owned());
            }
        }
        self.reported = Some(reported);
    }
}

impl LintReport {
    /// Put the running kernel beside the line: findings that it confirms say so, and where it shows something
    /// else than the line asks for there is a finding more.
    pub fn compare(&mut self, running: Running) {
        for finding in &mut self.findings {
            finding.seen = confirmation(finding, &running);
            let taken =
                running.reported.as_ref().is_some_and(|words| !words.contains(&finding.word));
            if taken && finding.kind == Kind::UnknownWord {
                // A patched kernel has parameters of its own.
                finding.severity = Severity::Note;
                finding.effect =
                    "Mainline does not know it; this kernel does not name it as unknown."
                        .to_owned();
            }
        }
        let line = BootLine::parse(&self.line);
        let lists = [
            ("isolcpus", ISOLATED, &self.prediction.isolated, &running.isolated),
            ("nohz_full", NOHZ_FULL, &self.prediction.nohz_full, &running.nohz_full),
            ("rcu_nocbs", "kernel log", &self.prediction.rcu_offloaded, &running.rcu_offloaded),
        ];
        for (name, place, asked, shown) in lists {
            let Some(shown) = shown else { continue };
            let lacking = asked.minus(shown);
            let word = line.all(name).next_back().or_else(|| line.all("nohz_full").next_back());
            if let (false, Some(word)) = (lacking.is_empty(), word) {
                self.findings.push(ineffective(word, name, &lacking, place, shown, &running));
            }
        }
        for asked in &self.prediction.huge_pages {
            let Some(pools) = &running.huge_pages else { break };
            let pool = pools.iter().find(|(size_bytes, _)| *size_bytes == asked.size_bytes);
            let pages = pool.map_or(0, |(_, pages)| *pages);
            let word = line.all("hugepages").next_back();
            if let (true, Some(word)) = (pages < asked.pages, word) {
                self.findings.push(too_few_pages(word, asked, pages));
            }
        }
        for word in unheard(&line, &self.findings, &running, self.kernel) {
            self.findings.push(not_built_in(word));
        }
        self.findings.sort_by_key(|finding| (finding.at, std::cmp::Reverse(finding.severity)));
        self.running = Some(running);
    }
}

/// Observations on the running kernel that confirm a finding.
fn confirmation(finding: &Finding, running: &Running) -> Option<String> {
    let is = |known: &&String| **known == finding.word;
    let has =
        |words: &Option<Vec<String>>| words.iter().flatten().any(|word| word == &finding.word);
    let mut seen = Vec::new();
    if running.reported.iter().flatten().find(is).is_some() {
        seen.push("the log names it as unknown".to_owned());
    }
    if has(&running.init) {
        seen.push("it is an argument of PID 1".to_owned());
    }
    if has(&running.environment) {
        seen.push("it is in the environment of PID 1".to_owned());
    }
    let lists = matches!(
        finding.kind,
        Kind::OutOfRange | Kind::ListsDisagree | Kind::BootCpu | Kind::SwallowedPrefix
    ) || finding.word.starts_with("isolcpus=");
    if lists {
        let shown =
            |cpus: &Cpus| if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() };
        let of =
            |name: &str, cpus: &Option<Cpus>| Some(format!("{name}: {}", shown(cpus.as_ref()?)));
        seen.extend(of("isolated", &running.isolated));
        seen.extend(of("nohz_full", &running.nohz_full));
        seen.extend(of("RCU offloaded", &running.rcu_offloaded));
    }
    (!seen.is_empty()).then(|| seen.join("; "))
}

fn ineffective(
    word: &Word,
    name: &str,
    lacking: &Cpus,
    place: &str,
    shown: &Cpus,
    running: &Running,
) -> Finding {
    let shown = if shown.is_empty() { "no CPU".to_owned() } else { shown.to_string() };
    let title = format!("{} asks for {} in vain", word.text(), lacking.named());
    let built = match name {
        "isolcpus" => "CONFIG_CPU_ISOLATION",
        "nohz_full" => "CONFIG_NO_HZ_FULL",
        _ => "CONFIG_RCU_NOCB_CPU",
    };
    let told = if running.told.is_empty() {
        String::new()
    } else {
        format!(" The log says: {}", running.told.join("; "))
    };
    Finding::new(Severity::Error, Kind::NotEffective, word, title)
        .effect(format!(
            "{place} shows {shown}. Nothing is wrong with the word: this kernel may be built without {built}, or \
             something changed it since.{told}"
        ))
        .source("the running kernel")
}

fn too_few_pages(word: &Word, asked: &HugePages, pages: u64) -> Finding {
    let title = format!("the line asks for {asked} pages, and there are {pages}");
    let effect = format!(
        "{POOLS}/hugepages-{}kB/nr_hugepages shows {pages}. The memory did not suffice, the CPU has no pages of this size \
         (flag pdpe1gb of 1 GiB), or something changed it since.",
        asked.size_bytes >> 10
    );
    let finding = Finding::new(Severity::Error, Kind::NotEffective, word, title);
    finding.effect(effect).source("the running kernel").check("MEM-009")
}

/// Words that nothing was said about, and that the kernel names as unknown all the same.
fn unheard<'a>(
    line: &'a BootLine,
    findings: &[Finding],
    running: &Running,
    kernel: Option<KernelVersion>,
) -> Vec<&'a Word> {
    let reported =
        |word: &&Word| running.reported.iter().flatten().any(|known| *known == word.text());
    let told =
        |word: &Word| findings.iter().any(|finding| finding.at >= word.at && finding.at < word.end);
    // A parameter that is searched for in the whole line works although it is reported.
    let known = |word: &&Word| {
        let parameter = TABLE.find(&word.name, kernel);
        parameter.is_some_and(|parameter| parameter.parsed != Parsing::Scanned)
    };
    line.words().iter().filter(reported).filter(known).filter(|word| !told(word)).collect()
}

fn not_built_in(word: &Word) -> Finding {
    let title = format!("this kernel does not take {}", word.text());
    Finding::new(Severity::Error, Kind::NotEffective, word, title)
        .effect(
            "Its log names the word as unknown. It is a parameter of Linux: this kernel is built without what it \
             controls, or is another version than it says.",
        )
        .source("the running kernel")
}

#[cfg(test)]
mod tests {
    use super::super::{Context, lint};
    use super::*;
    use tailtrim_host::Memory;

    const LINES: &str = "Linux version 6.1.0-56-amd64\n\
        Unknown kernel command line parameters \"nosoftlookup hpet=x\", will be passed to user space.\n\
        rcu: \tOffload RCU callbacks from CPUs: 1-3.\n";

    fn host() -> Memory {
        Memory::new(true)
            .with("/proc/cmdline", "isolcpus=1-3 nohz_full=1-3 nosoftlookup hpet=x\n")
            .with("/proc/sys/kernel/osrelease", "6.1.0-56-amd64\n")
            .with("/sys/devices/system/cpu/possible", "0-3\n")
            .with("/sys/devices/system/cpu/isolated", "1-3\n")
            .with("/proc/1/cmdline", b"/sbin/init\0nosoftlookup\0".to_vec())
            .with(LOG, LINES)
    }

    #[test]
    fn a_kernel_without_the_option_is_told_of() {
        let running = Running::read(&host());
        assert_eq!(running.init.as_deref(), Some(&["nosoftlookup".to_owned()][..]));
        assert_eq!(running.rcu_offloaded.as_ref().unwrap().to_string(), "1-3");
        assert_eq!(running.unread, ["/proc/1/environ: not there"]);
        let context = Context {
            kernel: Some(running.release.clone().unwrap().parse().unwrap()),
            cpus: running.possible.clone(),
        };
        let mut report = lint(running.line.as_deref().unwrap(), &context);
        report.compare(running);
        let found: Vec<(Kind, &str)> =
            report.findings.iter().map(|finding| (finding.kind, finding.word.as_str())).collect();
        assert!(found.contains(&(Kind::NotEffective, "nohz_full=1-3")), "{found:?}");
        let near = report.findings.iter().find(|found| found.kind == Kind::NearMiss).unwrap();
        let seen = near.seen.as_deref().unwrap();
        assert!(seen.contains("unknown") && seen.contains("argument of PID 1"), "{seen}");
    }

    #[test]
    fn huge_pages_that_are_not_there_are_told_of() {
        let pools = "/sys/kernel/mm/hugepages";
        let host = host()
            .with(&format!("{pools}/hugepages-1048576kB/nr_hugepages"), "3\n")
            .with(&format!("{pools}/hugepages-2048kB/nr_hugepages"), "64\n");
        let line = "hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=64";
        let mut report = lint(line, &Context::default());
        report.compare(Running::read(&host));
        let found: Vec<&str> =
            report.findings.iter().map(|finding| finding.title.as_str()).collect();
        assert_eq!(found, ["the line asks for 8 of 1 GiB pages, and there are 3"]);
    }

    #[test]
    fn a_word_that_the_kernel_does_not_name_as_unknown_is_its_own() {
        let mut report = lint("frobnicate=1 quux=2", &Context::default());
        let log = LINES.replace("nosoftlookup", "frobnicate=1");
        report.compare(Running::read(&host().with(LOG, log)));
        let found: Vec<Severity> = report.findings.iter().map(|finding| finding.severity).collect();
        assert_eq!(found, [Severity::Warning, Severity::Note]);
    }

    #[test]
    fn what_cannot_be_read_is_named_and_nothing_is_said_about_it() {
        let running = Running::read(&Memory::new(false));
        assert_eq!(running.unread.len(), 9);
        let mut report = lint("isolcpus=1-3 nohz_full=1-3", &Context::default());
        report.compare(running);
        assert_eq!(report.findings, []);
    }
}
