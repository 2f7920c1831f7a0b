//! The page about the checks is up to date.

#[path = "../../examples/audit_page/page.rs"]
mod page;

#[test]
fn the_page_about_the_checks_is_theirs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page::page(),
        "docs/audit.md differs from the checks: cargo run -p tailtrim-host --example audit_page > docs/audit.md"
    );
}
