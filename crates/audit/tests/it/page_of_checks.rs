//! The pages about the checks are up to date.

#[path = "../../examples/audit_page/page.rs"]
mod page;

use std::fs;
use std::path::Path;

#[test]
fn the_pages_about_the_checks_are_theirs() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let pages = page::pages();
    for (path, text) in &pages {
        let written = fs::read_to_string(docs.join(path)).unwrap_or_default();
        assert!(
            written == *text,
            "docs/{path} differs from the checks: cargo run -p tailtrim-audit --example audit_page -- docs"
        );
    }
    let files = fs::read_dir(docs.join("audit")).unwrap().count();
    assert_eq!(files + 1, pages.len(), "docs/audit has a page of no family");
}
