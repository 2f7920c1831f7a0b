//! Writes the pages about the checks of the audit: `cargo run -p tailtrim-audit --example audit_page -- docs`.

mod page;

use std::fs;
use std::io;
use std::path::PathBuf;

fn main() -> io::Result<()> {
    let docs = PathBuf::from(
        std::env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: audit_page DOCS"))?,
    );
    fs::create_dir_all(docs.join("audit"))?;
    for (path, text) in page::pages() {
        fs::write(docs.join(path), text)?;
    }
    Ok(())
}
