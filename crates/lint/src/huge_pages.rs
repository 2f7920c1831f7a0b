//! Simulation of a kernel that reads the huge pages of a line: `hugepages_setup()`, `hugepagesz_setup()` and
//! `default_hugepagesz_setup()` of mm/hugetlb.c since 5.8, on x86.

use super::finding::Context;
use super::table::key;
use super::value_check::{bytes, huge_page};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use tailtrim_host::{BootLine, Word};

/// The size without `default_hugepagesz=`: that of an entry of the page middle directory.
const USUAL_BYTES: u64 = 2 << 20;

/// Pages of one size that a line asks for and the kernel tries to reserve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// Bytes of a page.
    pub size_bytes: u64,
    /// Pages on all nodes.
    pub pages: u64,
    /// Nodes with pages of their own (`hugepages=0:2,1:4`), and how many.
    pub nodes: Vec<(u32, u64)>,
    /// Whether pages have this size where none is named.
    pub default: bool,
}

impl Display for HugePages {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {}", self.pages, shown(self.size_bytes))?;
        let nodes = self.nodes.iter().map(|(node, pages)| format!("node {node}: {pages}"));
        let default = self.default.then(|| "default".to_owned());
        let more: Vec<String> = default.into_iter().chain(nodes).collect();
        if more.is_empty() { Ok(()) } else { write!(out, " ({})", more.join(", ")) }
    }
}

/// Something that happens to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HugeEvent {
    /// A size for the second time, which is ignored.
    SizeAgain,
    /// A count without a size of its own since the last one: it is ignored, and so many pages stay.
    CountAgain(u64),
    /// A count behind a size that the kernel does not have: it is ignored.
    NoSize,
    /// A count before all sizes, so that it is of the default size.
    Early,
    /// A size without a count.
    NoCount,
}

/// Pages that a count is for: those of the default size, before any size was named, or of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Default,
    Size(usize),
}

/// Naming of a size.
#[derive(Debug)]
struct Named {
    /// Place of the last word that names it; `None` of a size that a kernel has by default.
    place: Option<usize>,
    /// Whether it was named as more than the default.
    asked: bool,
    counted: bool,
}

#[derive(Debug, Default)]
struct Reading {
    sizes: Vec<HugePages>,
    named: Vec<Named>,
    current: usize,
    /// The last size was none that the kernel has, or was ignored.
    refused: bool,
    default: Option<usize>,
    early: Option<(u64, Vec<(u32, u64)>)>,
    last: Option<Target>,
    events: Vec<(usize, HugeEvent)>,
}

/// Read a line: pages by size, empty where the line says nothing of huge pages, and what happens to its words.
pub(super) fn read(
    line: &BootLine,
    context: &Context,
) -> (Vec<HugePages>, Vec<(usize, HugeEvent)>) {
    let mut reading = Reading::default();
    let mut any = false;
    for (place, word) in line.words().iter().enumerate() {
        let value = word.value.as_deref().unwrap_or_default();
        match key(&word.name).as_str() {
            "hugepagesz" => reading.size(place, value),
            "default_hugepagesz" => reading.default_size(place, value),
            "hugepages" => reading.count(place, value),
            _ => continue,
        }
        any = true;
    }
    reading.finish();
    let known = any && !context.before(5, 8);
    (if known { reading.sizes } else { Vec::new() }, reading.events)
}

impl Reading {
    /// Index of a size, and whether it is new.
    fn index_of(&mut self, size_bytes: u64, place: Option<usize>) -> (usize, bool) {
        if let Some(at) = self.sizes.iter().position(|size| size.size_bytes == size_bytes) {
            self.named[at].place = place.or(self.named[at].place);
            return (at, false);
        }
        self.sizes.push(HugePages { size_bytes, pages: 0, nodes: Vec::new(), default: false });
        self.named.push(Named { place, asked: false, counted: false });
        (self.sizes.len() - 1, true)
    }

    fn set(&mut self, at: usize, (pages, nodes): (u64, Vec<(u32, u64)>)) {
        (self.sizes[at].pages, self.sizes[at].nodes) = (pages, nodes);
        self.named[at].counted = true;
    }

    fn size(&mut self, place: usize, value: &str) {
        self.refused = true;
        let Some(size_bytes) = bytes(value).filter(|_| huge_page(value)) else { return };
        let (at, is_new) = self.index_of(size_bytes, Some(place));
        self.named[at].asked = true;
        // The default size may be named again as long as it has no pages.
        if !is_new && (self.default != Some(at) || self.sizes[at].pages > 0) {
            self.events.push((place, HugeEvent::SizeAgain));
            return;
        }
        (self.current, self.refused) = (at, false);
    }

    fn default_size(&mut self, place: usize, value: &str) {
        self.refused = true;
        if self.default.is_some() {
            return;
        }
        let Some(size_bytes) = bytes(value).filter(|_| huge_page(value)) else { return };
        let (at, is_new) = self.index_of(size_bytes, Some(place));
        if is_new {
            self.current = at;
        }
        self.refused = false;
        self.default = Some(at);
        if let Some(early) = self.early.take_if(|(pages, _)| *pages > 0) {
            self.set(at, early);
        }
    }

    fn count(&mut self, place: usize, value: &str) {
        if std::mem::take(&mut self.refused) {
            // A size that was named twice is told of already.
            let told = self.events.last().is_some_and(|(_, event)| *event == HugeEvent::SizeAgain);
            if !told {
                self.events.push((place, HugeEvent::NoSize));
            }
            return;
        }
        let target =
            if self.sizes.is_empty() { Target::Default } else { Target::Size(self.current) };
        if self.last == Some(target) {
            let pages = match target {
                Target::Default => self.early.as_ref().map_or(0, |(pages, _)| *pages),
                Target::Size(at) => self.sizes[at].pages,
            };
            self.events.push((place, HugeEvent::CountAgain(pages)));
            return;
        }
        let Some(counts) = counts(value) else { return };
        match target {
            Target::Default => {
                self.early = Some(counts);
                self.events.push((place, HugeEvent::Early));
            }
            Target::Size(at) => self.set(at, counts),
        }
        self.last = Some(target);
    }

    fn finish(&mut self) {
        let default = match self.default {
            Some(default) => default,
            None => self.index_of(USUAL_BYTES, None).0,
        };
        self.sizes[default].default = true;
        if let Some(early) = self.early.take_if(|(pages, _)| *pages > 0) {
            self.set(default, early);
        }
        let none = self.last.is_none();
        let without = self.named.iter().filter(|size| !size.counted && (size.asked || none));
        let places = without.filter_map(|size| size.place);
        self.events.extend(places.map(|place| (place, HugeEvent::NoCount)));
    }
}

/// Read a count: `N`, or `NODE:N,…` (since 5.17). `None` where the kernel takes none of it.
fn counts(value: &str) -> Option<(u64, Vec<(u32, u64)>)> {
    let number = |text: &str| -> Option<u64> {
        let end = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().ok()
    };
    if !value.contains(':') {
        return Some((number(value)?, Vec::new()));
    }
    let by_node = |part: &str| {
        let (node, pages) = part.split_once(':')?;
        Some((node.parse().ok()?, number(pages)?))
    };
    let nodes: Vec<(u32, u64)> = value.split(',').map(by_node).collect::<Option<_>>()?;
    Some((nodes.iter().map(|(_, pages)| pages).sum(), nodes))
}

/// The size as people write it.
pub(super) fn size(word: &Word) -> String {
    let bytes = bytes(word.value.as_deref().unwrap_or_default()).unwrap_or_default();
    shown(bytes)
}

/// Bytes of a page in MiB or GiB.
fn shown(size_bytes: u64) -> String {
    match size_bytes >> 30 {
        0 => format!("{} MiB", size_bytes >> 20),
        large => format!("{large} GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Severity, lint};

    fn outcome(line: &str) -> String {
        let (sizes, _) = read(&BootLine::parse(line), &Context::default());
        sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn pages_by_size() {
        for (line, expected) in [
            ("quiet", ""),
            ("hugepages=512", "512 of 2 MiB (default)"),
            ("default_hugepagesz=1G hugepagesz=1G hugepages=8", "8 of 1 GiB (default)"),
            (
                "hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=64",
                "8 of 1 GiB, 64 of 2 MiB (default)",
            ),
            // Before all sizes: pages of the default size, whichever that will be.
            ("hugepages=4 default_hugepagesz=1G", "4 of 1 GiB (default)"),
            ("hugepages=4 hugepagesz=1G", "0 of 1 GiB, 4 of 2 MiB (default)"),
            // The count of the default size was 0, so that the size may be named again; nothing follows.
            (
                "default_hugepagesz=1G hugepages=0 hugepages=40 hugepagesz=1G hugepagesz=2M",
                "0 of 1 GiB (default), 0 of 2 MiB",
            ),
            (
                "hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=2",
                "4 of 1 GiB, 0 of 2 MiB (default)",
            ),
            ("hugepagesz=4M hugepages=2 hugepages=8", "8 of 2 MiB (default)"),
            ("hugepagesz=2M hugepages=0:2,1:6", "8 of 2 MiB (default, node 0: 2, node 1: 6)"),
            ("hugepagesz=2M hugepages=many", "0 of 2 MiB (default)"),
            // The first count is that of the default size, and replaces the other.
            ("hugepages=4 hugepagesz=2M hugepages=8", "4 of 2 MiB (default)"),
        ] {
            assert_eq!(outcome(line), expected, "{line}");
        }
    }

    /// As a public question has it: a count of 0, the wanted one ignored, and sizes without a count.
    #[test]
    fn a_line_that_reserves_no_huge_page_says_so() {
        let line = "default_hugepagesz=1G hugepages=0 hugepages=40 hugepagesz=1G hugepagesz=2M";
        let report = lint(line, &Context::default());
        let pages: Vec<String> =
            report.prediction.huge_pages.iter().map(ToString::to_string).collect();
        assert_eq!(pages, ["0 of 1 GiB (default)", "0 of 2 MiB"]);
        let found: Vec<(&str, Severity)> =
            report.findings.iter().map(|found| (found.word.as_str(), found.severity)).collect();
        assert_eq!(found, [("hugepages=40", Severity::Error), ("hugepagesz=2M", Severity::Note)]);
        assert!(report.findings[0].effect.ends_with("The count stays 0."), "{report:#?}");
    }
}
