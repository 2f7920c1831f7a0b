//! The boot line: words as the kernel takes them apart.

/// One word of a boot line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Name as it is written.
    pub name: String,
    /// Text after the first equals sign, without quotation marks; `None` without one.
    pub value: Option<String>,
    /// Byte where the word begins in the line.
    pub at: usize,
    /// Byte behind the word.
    pub end: usize,
}

impl Word {
    /// The word as the kernel hands it on: without quotation marks.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.clone(),
        }
    }

    /// Whether this is a parameter: to the kernel, `-` and `_` in names are the same.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        let same = |a: u8, b: u8| a == b || (matches!(a, b'-' | b'_') && matches!(b, b'-' | b'_'));
        self.name.len() == name.len()
            && self.name.bytes().zip(name.bytes()).all(|(a, b)| same(a, b))
    }
}

/// A boot line, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootLine {
    words: Vec<Word>,
    init: Vec<String>,
}

impl BootLine {
    /// Take a line apart as `parse_args()` of the kernel does: at white space outside quotation marks,
    /// up to a word `--`, behind which everything is for init.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        let mut found = Self::default();
        let mut rest = pieces(line).into_iter();
        for (at, piece) in rest.by_ref() {
            if piece == "--" {
                break;
            }
            let plain = |text: &str| text.replace('"', "");
            let (name, value) = match piece.split_once('=') {
                Some((name, value)) => (plain(name), Some(plain(value))),
                None => (plain(piece), None),
            };
            found.words.push(Word { name, value, at, end: at + piece.len() });
        }
        found.init = rest.map(|(_, piece)| piece.to_owned()).collect();
        found
    }

    /// All words for the kernel, in order.
    #[must_use]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// Words after `--`.
    #[must_use]
    pub fn init(&self) -> &[String] {
        &self.init
    }

    /// The words with a name, in order.
    pub fn all<'a>(&'a self, name: &str) -> impl DoubleEndedIterator<Item = &'a Word> {
        self.words.iter().filter(move |word| word.is(name))
    }

    /// Whether a word is there, with a value or without.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// The value of the last word with a name; `None` where there is none, or it has no value.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<&str> {
        self.words.iter().rfind(|word| word.is(name))?.value.as_deref()
    }
}

fn pieces(line: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut start, mut quoted) = (None, false);
    for (at, character) in line.char_indices() {
        if character.is_ascii_whitespace() && !quoted {
            if let Some(from) = start.take() {
                found.push((from, &line[from..at]));
            }
            continue;
        }
        quoted ^= character == '"';
        start = start.or(Some(at));
    }
    if let Some(from) = start {
        found.push((from, &line[from..]));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_as_the_kernel_sees_them() {
        let line =
            BootLine::parse(r#"quiet isolcpus=1-3 dyndbg="file a.c +p" rcu-nocbs=2 -- quiet"#);
        let names: Vec<&str> = line.words().iter().map(|word| word.name.as_str()).collect();
        assert_eq!(names, ["quiet", "isolcpus", "dyndbg", "rcu-nocbs"]);
        assert_eq!(line.last("isolcpus"), Some("1-3"));
        assert_eq!(line.last("rcu_nocbs"), Some("2"));
        assert_eq!(line.last("dyndbg"), Some("file a.c +p"));
        assert_eq!((line.words()[1].at, line.words()[1].end), (6, 18));
        assert_eq!(line.words()[2].text(), "dyndbg=file a.c +p");
        assert_eq!(line.init(), ["quiet"]);
    }
}
