//! Output of a verb: its result on standard output, errors on standard error.
//!
//! Names and values come from files and hosts that others made. Control characters are escaped here, for all verbs: no
//! other module prints.
#![allow(clippy::print_stderr, reason = "the agent is where output happens")]

use crate::exit::Exit;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};

/// Writes a result and ends with `exit`, also where the reader has closed the pipe (`| head`).
pub(crate) fn write(text: impl AsRef<str>, exit: Exit) -> Exit {
    written(try_write(text.as_ref()), exit)
}

/// As [`write`], as JSON that people can read.
pub(crate) fn json<T: Serialize>(document: &T, exit: Exit) -> Exit {
    match serde_json::to_string_pretty(document) {
        Ok(text) => write(text + "\n", exit),
        Err(error) => written(Err(error.into()), exit),
    }
}

/// As [`write`], in colour where the page has some.
pub(crate) fn page(page: &Page, exit: Exit) -> Exit {
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

fn written(result: io::Result<()>, exit: Exit) -> Exit {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            failed(&format!("the result cannot be written: {error}"), Exit::Disturbed)
        }
        _ => exit,
    }
}

/// Prints a note or a warning.
pub(crate) fn note(kind: &str, message: &str) {
    eprintln!("{kind}: {}", in_one_line(message));
}

/// Prints an error.
pub(crate) fn failed(wrong: &(impl Wrong + ?Sized), exit: Exit) -> Exit {
    eprintln!("error: {}", in_one_line(wrong.error()));
    if let Some(hint) = wrong.hint() {
        eprintln!("hint: {}", in_one_line(hint));
    }
    exit
}

/// Prints text for people, such as usage, on standard error.
pub(crate) fn tell(text: &str) {
    eprint!("{}", escaped(text));
}

/// An error, and a hint for the user.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) error: String,
    pub(crate) hint: Option<String>,
}

/// An error that can be printed.
pub(crate) trait Wrong {
    /// The error.
    fn error(&self) -> &str;

    /// The hint.
    fn hint(&self) -> Option<&str> {
        None
    }
}

impl<T: AsRef<str> + ?Sized> Wrong for T {
    fn error(&self) -> &str {
        self.as_ref()
    }
}

impl Wrong for Message {
    fn error(&self) -> &str {
        &self.error
    }

    fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl<T: AsRef<str>> From<T> for Message {
    fn from(error: T) -> Self {
        Self { error: error.as_ref().to_owned(), hint: None }
    }
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
    fn a_page_has_no_colour_but_its_own() {
        let mut page = Page::new(true);
        page.paint("\x1b[32mok", "1;31");
        let name = "\x1b[2J";
        write!(page, " {name}").unwrap();
        assert_eq!(page.text, "\x1b[1;31m\\x1b[32mok\x1b[0m \\x1b[2J");
    }
}
