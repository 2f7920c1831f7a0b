//! A test that cannot run on this machine says so on standard error, and in the list that `make test` shows at its end.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};

/// Names the list: a file to which each skipped test adds a line.
const LIST: &str = "TAILTRIM_SKIPPED";

/// Says that the calling test is skipped, and why.
pub(crate) fn skipped(why: impl Display) {
    // The test harness names the thread after the test.
    let thread = std::thread::current();
    let test = thread.name().unwrap();
    let why = why.to_string().replace('\n', " ");
    let line = format!("{}::{test}: {why}\n", env!("CARGO_PKG_NAME"));
    // Written to standard error itself: output of the macros is shown for failed tests only.
    io::stderr().write_all(format!("SKIPPED {line}").as_bytes()).unwrap();
    if let Some(list) = std::env::var_os(LIST) {
        let mut list = OpenOptions::new().create(true).append(true).open(list).unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
}
