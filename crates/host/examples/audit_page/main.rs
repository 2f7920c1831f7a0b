//! Writes the page about the checks of the audit: `cargo run -p tailtrim-host --example audit_page > docs/audit.md`.

mod page;

use std::io::{self, Write};

fn main() -> io::Result<()> {
    io::stdout().lock().write_all(page::page().as_bytes())
}
