//! State of a process or thread as the kernel prints it in one line: `/proc/PID/stat`.

/// Flags of field 9 (`include/linux/sched.h`).
const PF_KTHREAD: u64 = 0x0020_0000;
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// The line of a process or thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat<'a> {
    name: &'a str,
    /// Field 3 and those that follow.
    fields: Vec<&'a str>,
}

impl<'a> ProcessStat<'a> {
    /// Read the line; `None` where the line is invalid.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        // The name is in parentheses and may contain spaces and parentheses itself.
        let (start, rest) = line.rsplit_once(')')?;
        let (_, name) = start.split_once('(')?;
        Some(Self { name, fields: rest.split_whitespace().collect() })
    }

    /// The name, at most 15 characters.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// A field, by its number in proc(5); `None` where it is not a number, or the kernel lacks it.
    #[must_use]
    pub fn field(&self, number: usize) -> Option<u64> {
        self.fields.get(number.checked_sub(3)?)?.parse().ok()
    }

    /// Whether it runs, or waits for its CPU: state R.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.fields.first() == Some(&"R")
    }

    /// When it was started, in ticks since the host was. With the process number it names a process: numbers
    /// are used again.
    #[must_use]
    pub fn start_ticks(&self) -> Option<u64> {
        self.field(22)
    }

    /// Whether it has ended, and only waits for its parent to take note.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.fields.first(), Some(&("Z" | "X")))
    }

    /// Whether it is a thread of the kernel.
    #[must_use]
    pub fn is_kernel_thread(&self) -> bool {
        self.field(9).is_some_and(|flags| flags & PF_KTHREAD != 0)
    }

    /// Whether the kernel forbids to change its CPUs.
    #[must_use]
    pub fn has_fixed_cpus(&self) -> bool {
        self.field(9).is_some_and(|flags| flags & PF_NO_SETAFFINITY != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_anything() {
        let line = "2 (a (b) c) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0";
        let stat = ProcessStat::parse(line).unwrap();
        assert_eq!(stat.name(), "a (b) c");
        assert_eq!((stat.field(9), stat.start_ticks()), (Some(2_129_984), Some(5)));
        assert!(stat.is_kernel_thread() && !stat.has_fixed_cpus());
        assert!(!stat.has_ended() && !stat.is_running());
        assert!(ProcessStat::parse("3 (true) Z 1 3 1 0").unwrap().has_ended());
        assert!(ProcessStat::parse(&line.replacen(" S ", " R ", 1)).unwrap().is_running());
        assert_eq!(
            (stat.field(2), stat.field(3), stat.field(8), stat.field(41)),
            (None, None, None, None)
        );
        assert_eq!(ProcessStat::parse("2 kthreadd S"), None);
    }
}
