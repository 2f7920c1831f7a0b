//! Output of a verb: its result on standard output, errors on standard error.
//!
//! Names and values come from files and hosts that others made. Control characters are escaped here, for all verbs: no
//! other module prints.
#![allow(clippy::print_stderr, reason = "the agent is where output happens")]

use crate::exit::{Exit, Failure, Outcome};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};

/// Columns of a line for people.
const WIDEST: usize = 120;

/// Writes a result and ends with `exit`, also where the reader has closed the pipe (`| head`).
pub(crate) fn write(text: impl AsRef<str>, exit: Exit) -> Outcome {
    written(try_write(text.as_ref()), exit)
}

/// As [`write`], for people: longer lines are broken between words.
pub(crate) fn lines(text: &str, exit: Exit) -> Outcome {
    let fitted = text.lines().map(|line| {
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        match line.chars().count() > WIDEST {
            true => wrapped(words, WIDEST, indent, &format!("{indent}  ")),
            false => format!("{line}\n"),
        }
    });
    write(fitted.collect::<String>(), exit)
}

/// As [`write`], as JSON that people can read.
pub(crate) fn json<T: Serialize>(document: &T, exit: Exit) -> Outcome {
    match serde_json::to_string_pretty(document) {
        Ok(text) => write(text + "\n", exit),
        Err(error) => written(Err(error.into()), exit),
    }
}

/// A result as a JSON document with the name and version of its form.
#[derive(Serialize)]
pub(crate) struct Document<'a, T> {
    pub(crate) schema: &'a str,
    #[serde(flatten)]
    pub(crate) content: &'a T,
}

/// As [`write`], in colour where the page has some.
pub(crate) fn page(page: &Page, exit: Exit) -> Outcome {
    written(print(&page.text), exit)
}

/// Writes all of it now.
///
/// # Errors
///
/// The system's answer: `BrokenPipe` where the reader has closed the pipe.
pub(crate) fn try_write(text: &str) -> io::Result<()> {
    print(&escaped(text))
}

fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

fn written(result: io::Result<()>, exit: Exit) -> Outcome {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::disturbed(format!("the result cannot be written: {error}")))
        }
        _ => Ok(exit),
    }
}

/// Prints a note or a warning.
pub(crate) fn note(kind: &str, message: &str) {
    eprintln!("{kind}: {}", in_one_line(message));
}

/// Prints an error and its hint.
pub(crate) fn failed(failure: &Failure) -> Exit {
    note("error", &failure.error);
    if let Some(hint) = &failure.hint {
        note("hint", hint);
    }
    failure.exit
}

/// Prints text for people, such as usage, on standard error.
pub(crate) fn tell(text: &str) {
    eprint!("{}", escaped(text));
}

/// Text in lines of at most so many characters, broken between words, the first and the others behind these texts.
pub(crate) fn wrapped(text: &str, width: usize, first: &str, rest: &str) -> String {
    let (mut out, mut line, mut bare) = (String::new(), first.to_owned(), true);
    for word in text.split_whitespace() {
        if !bare && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(out, "{}", line.trim_end());
            rest.clone_into(&mut line);
            bare = true;
        }
        line += if bare { "" } else { " " };
        line += word;
        bare = false;
    }
    out + line.trim_end() + "\n"
}

/// Text in colour. All text that is written to it is escaped.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    colour: bool,
}

impl Page {
    /// An empty one.
    pub(crate) fn new(colour: bool) -> Self {
        Self { text: String::new(), colour }
    }

    /// Adds text in a colour, by its code.
    pub(crate) fn paint(&mut self, text: &str, code: &str) {
        let text = escaped(text);
        if self.colour {
            let _ = write!(self.text, "\x1b[{code}m{text}\x1b[0m");
        } else {
            self.text += &text;
        }
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text += &escaped(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Text, or JSON, that a terminal only shows; the JSON still says the same. Ends of lines stay.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_acted_on) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        escape(sign, is_acted_on(sign), &mut shown);
    }
    Cow::Owned(shown)
}

/// The same for a text that is one line, whatever names are in it.
fn in_one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' => shown += "\\n",
            '\t' => shown += "\\t",
            sign => escape(sign, is_acted_on(sign), &mut shown),
        }
    }
    shown
}

fn escape(sign: char, acted_on: bool, shown: &mut String) {
    let code = u32::from(sign);
    let _ = match (acted_on, sign < ' ') {
        (false, _) => shown.write_char(sign),
        // In JSON, which has no \x, control characters before a space are escaped already.
        (true, true) => write!(shown, "\\x{code:02x}"),
        (true, false) => write!(shown, "\\u{code:04x}"),
    };
}

/// Whether a terminal acts on the character, or whether it makes text look like other text: control characters, marks
/// that reverse the direction of writing, and the line separators of Unicode, at which files do not end a line.
fn is_acted_on(sign: char) -> bool {
    match sign {
        '\t' | '\n' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_only_shows_it() {
        assert_eq!(escaped("a\x1b[31m\nb\u{9b}\tc\r"), "a\\x1b[31m\nb\\u009b\tc\\x0d");
        assert_eq!(escaped("\u{202e}\u{2066}ä→ü"), "\\u202e\\u2066ä→ü");
        assert_eq!(in_one_line("a\nhint: b\x07\t\u{200f}"), "a\\nhint: b\\x07\\t\\u200f");
        assert!(matches!(escaped("nothing to do: ä"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let told = wrapped(&"a word ".repeat(30), WIDEST, "  ", "    ");
        assert!(told.lines().count() == 2 && told.lines().all(|line| line.len() <= WIDEST));
        assert!(told.starts_with("  a word") && told.contains("\n    "), "{told}");
    }

    #[test]
    fn a_page_has_no_colour_but_its_own() {
        let mut page = Page::new(true);
        page.paint("\x1b[32mok", "1;31");
        let name = "\x1b[2J";
        write!(page, " {name}").unwrap();
        assert_eq!(page.text, "\x1b[1;31m\\x1b[32mok\x1b[0m \\x1b[2J");
    }
}
