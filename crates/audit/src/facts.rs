//! Facts about a host for checks: a tree, the intent, and a trail of everything that was read on the way.

use super::answer::Evidence;
use super::intent::{self, Intent};
use super::log::Log;
use super::tasks::{self, Task};
use std::cell::{OnceCell, RefCell};
use tailtrim_host::paths;
use tailtrim_host::{BootLine, Cpus, KernelVersion, Tree, Unread};

/// The facts about one host.
pub struct Facts<'a> {
    tree: &'a dyn Tree,
    intent: &'a Intent,
    trail: RefCell<Trail>,
    tasks: OnceCell<Result<Vec<Task>, Unread>>,
    log: OnceCell<Result<Log, Unread>>,
    info: OnceCell<Result<String, Unread>>,
}

/// Files that a check read, and those that it could not read.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    pub(crate) read: Vec<Evidence>,
    pub(crate) failed: Vec<Unread>,
}

impl<'a> Facts<'a> {
    /// Facts about the host that a tree shows.
    #[must_use]
    pub fn new(tree: &'a dyn Tree, intent: &'a Intent) -> Self {
        Self {
            tree,
            intent,
            trail: RefCell::default(),
            tasks: OnceCell::new(),
            log: OnceCell::new(),
            info: OnceCell::new(),
        }
    }

    /// Purpose of the host.
    #[must_use]
    pub fn intent(&self) -> &'a Intent {
        self.intent
    }

    /// The CPUs for the packets alone.
    #[must_use]
    pub fn iso(&self) -> &'a Cpus {
        &self.intent.isolate
    }

    /// Whether some of these CPUs are for the packets alone.
    pub(crate) fn touches(&self, cpus: &Cpus) -> bool {
        !cpus.intersection(self.iso()).is_empty()
    }

    /// Name of the CPUs for the packets alone in answers: they are called isolated only if they are, or are to be.
    pub(crate) fn isolated_cpus(&self) -> &'static str {
        match self.intent.isolate_assumed {
            true => "CPUs assumed to be isolated",
            false => "isolated CPUs",
        }
    }

    /// Begin a new trail; return the one so far.
    pub(crate) fn take_trail(&self) -> Trail {
        self.trail.take()
    }

    fn note<T>(
        &self,
        path: &str,
        result: Result<T, Unread>,
        value: impl Fn(&T) -> String,
    ) -> Result<T, Unread> {
        let mut trail = self.trail.borrow_mut();
        match &result {
            Ok(content) => trail.read.push(Evidence::new(path, &value(content))),
            Err(why) => trail.failed.push(why.clone()),
        }
        result
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Result<String, Unread> {
        // A table is not evidence to look at; who wants one line of it says so.
        self.note(path, self.tree.text(path), |text| match text.lines().count() {
            0..=3 => text.clone(),
            count => format!("{count} lines"),
        })
    }

    /// The text of a file; `None` where there is none, which must then mean something.
    pub(crate) fn optional(&self, path: &str) -> Result<Option<String>, Unread> {
        absent_is_none(self.text(path))
    }

    /// The number that a file holds.
    pub(crate) fn number(&self, path: &str) -> Result<i64, Unread> {
        let text = self.text(path)?;
        text.parse().map_err(|_| broken(path, &text, "a number"))
    }

    /// The list of CPUs that a file holds.
    pub(crate) fn cpus(&self, path: &str) -> Result<Cpus, Unread> {
        let text = self.text(path)?;
        // The kernel prints a pointer to nothing where no list was given.
        if text == "(null)" {
            return Ok(Cpus::none());
        }
        text.parse().map_err(|_| broken(path, &text, "a list of CPUs"))
    }

    /// The mask of CPUs that a file holds.
    pub(crate) fn mask(&self, path: &str) -> Result<Cpus, Unread> {
        let text = self.text(path)?;
        Cpus::from_mask(&text).map_err(|_| broken(path, &text, "a mask of CPUs"))
    }

    /// The names in a directory.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        self.note(path, self.tree.list(path), |names| format!("{} entries", names.len()))
    }

    /// The names in a directory; none where it is not there, which must then mean something.
    pub(crate) fn list_or_none(&self, path: &str) -> Result<Vec<String>, Unread> {
        Ok(absent_is_none(self.list(path))?.unwrap_or_default())
    }

    /// The last part of where a link points to; `None` where there is none.
    pub(crate) fn link_name(&self, path: &str) -> Result<Option<String>, Unread> {
        let target = absent_is_none(self.note(path, self.tree.link(path), String::clone))?;
        Ok(target.map(|target| target.rsplit('/').next().unwrap_or_default().to_owned()))
    }

    /// All files that a pattern (see [`paths`]) stands for, with their text.
    pub(crate) fn glob(&self, pattern: &str) -> Result<Vec<(String, String)>, Unread> {
        let (found, failed) = paths::expand(self.tree, pattern);
        if let Some(why) = failed.first() {
            self.trail.borrow_mut().failed.push(why.clone());
            return Err(why.clone());
        }
        let mut texts = Vec::new();
        for path in found {
            if let Some(text) = self.optional(&path)? {
                texts.push((path, text));
            }
        }
        Ok(texts)
    }

    /// The boot line of the running kernel.
    pub(crate) fn boot(&self) -> Result<BootLine, Unread> {
        Ok(BootLine::parse(&self.text("/proc/cmdline")?))
    }

    /// The version of the running kernel.
    pub(crate) fn kernel(&self) -> Result<KernelVersion, Unread> {
        const PATH: &str = "/proc/sys/kernel/osrelease";
        let text = self.text(PATH)?;
        text.parse().map_err(|_| broken(PATH, &text, "a kernel version such as 6.1.0"))
    }

    /// All threads on the host.
    pub(crate) fn tasks(&self) -> Result<&[Task], Unread> {
        let tasks = self.tasks.get_or_init(|| tasks::read(self.tree));
        self.cached("/proc/#/task/#/status", tasks, |tasks| format!("{} threads", tasks.len()))
            .map(Vec::as_slice)
    }

    /// Whether a thread of this name runs: its name is cut to 15 characters by the kernel.
    pub(crate) fn runs(&self, name: &str) -> Result<bool, Unread> {
        let cut: String = name.chars().take(15).collect();
        Ok(self.tasks()?.iter().any(|task| task.name == cut))
    }

    /// Those of some programs that run.
    pub(crate) fn running(&self, names: &[&'static str]) -> Result<Vec<&'static str>, Unread> {
        let mut found = Vec::new();
        for name in names {
            if self.runs(name)? {
                found.push(*name);
            }
        }
        Ok(found)
    }

    /// Whether the kernel is a real-time one.
    pub(crate) fn is_real_time(&self) -> Result<bool, Unread> {
        Ok(self.optional("/sys/kernel/realtime")?.as_deref() == Some("1"))
    }

    /// Those of some options, without `CONFIG_`, with which the kernel was built.
    pub(crate) fn built_with<'b>(&self, options: &[&'b str]) -> Result<Vec<&'b str>, Unread> {
        let config = self.text(paths::CONFIG)?;
        let on = |option: &&&str| config.lines().any(|line| line == format!("CONFIG_{option}=y"));
        Ok(options.iter().filter(on).copied().collect())
    }

    /// The kernel's log.
    pub(crate) fn log(&self) -> Result<&Log, Unread> {
        let log = self.log.get_or_init(|| self.tree.text(paths::LOG).map(|text| Log::new(&text)));
        self.cached(paths::LOG, log, |log| format!("{} lines", log.len()))
    }

    /// `/proc/cpuinfo`, which is asked for once: it makes every CPU tell its frequency.
    pub(crate) fn cpuinfo(&self) -> Result<&str, Unread> {
        const PATH: &str = "/proc/cpuinfo";
        let text = self.info.get_or_init(|| self.tree.text(PATH));
        self.cached(PATH, text, |text| format!("{} lines", text.lines().count()))
            .map(String::as_str)
    }

    /// Field of the first CPU in `/proc/cpuinfo`, such as `vendor_id`; `None` without one.
    pub(crate) fn cpuinfo_field(&self, name: &str) -> Result<Option<String>, Unread> {
        let lines = self.cpuinfo()?.lines();
        let mut named = lines.filter_map(|line| line.split_once(':'));
        let found = named.find(|(key, _)| key.trim() == name);
        Ok(found.map(|(_, value)| value.trim().to_owned()))
    }

    /// Whether the CPU has a feature.
    pub(crate) fn has_flag(&self, flag: &str) -> Result<bool, Unread> {
        let flags = self.cpuinfo_field("flags")?.unwrap_or_default();
        Ok(flags.split_whitespace().any(|known| known == flag))
    }

    /// Whether this host is a virtual machine.
    pub(crate) fn is_guest(&self) -> Result<bool, Unread> {
        self.has_flag("hypervisor")
    }

    /// Value of a key in a text of `key: value` lines; `None` where the key is not there.
    pub(crate) fn keyed_value(&self, path: &str, key: &str) -> Result<Option<String>, Unread> {
        let text = self.tree.text(path);
        let value = text.map(|text| {
            let mut named = text.lines().filter_map(|line| line.split_once(':'));
            named.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
        });
        let shown = |value: &Option<String>| {
            value.as_ref().map_or(format!("no {key}"), |value| format!("{key}: {value}"))
        };
        self.note(path, value, shown)
    }

    fn cached<'b, T>(
        &self,
        path: &str,
        result: &'b Result<T, Unread>,
        value: impl Fn(&T) -> String,
    ) -> Result<&'b T, Unread> {
        let result = result.as_ref().map_err(Clone::clone);
        self.note(path, result, |content| value(content))
    }
}

/// Whether the tree belongs to a guest, for what is needed before there is an intent.
#[must_use]
pub fn is_guest(tree: &dyn Tree) -> bool {
    intent::is_guest(tree).unwrap_or(false)
}

/// Nothing where a file is not there; any other reason stays one.
pub(crate) fn absent_is_none<T>(result: Result<T, Unread>) -> Result<Option<T>, Unread> {
    match result {
        Ok(content) => Ok(Some(content)),
        Err(Unread::Missing { .. }) => Ok(None),
        Err(why) => Err(why),
    }
}

/// A file that holds something else than expected.
pub(crate) fn broken(path: &str, text: &str, expected: &str) -> Unread {
    let shown = Evidence::new("", text).value;
    Unread::Broken { path: path.to_owned(), problem: format!("{shown:?} is not {expected}") }
}
