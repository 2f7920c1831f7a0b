//! The kernel's log, as far as it is still there.

/// Lines of the kernel's log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: Vec<String>,
    whole: bool,
}

impl Log {
    /// Take a log apart.
    #[must_use]
    pub(crate) fn new(text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // The first thing that a kernel says. The ring is overwritten from its beginning.
        let whole = lines.iter().any(|line| line.contains("Linux version "));
        Self { lines, whole }
    }

    /// Number of lines.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Rest of the last line that has a text, after that text.
    #[must_use]
    pub(crate) fn after(&self, text: &str) -> Option<&str> {
        self.lines.iter().rev().find_map(|line| Some(line.split_once(text)?.1.trim()))
    }

    /// Whether the beginning is still there, so that what is not in it was not said.
    #[must_use]
    pub(crate) fn whole(&self) -> bool {
        self.whole
    }
}
