//! The page about the checks is theirs.

use tailtrim_host::audit::{self, Check};

/// The page about all checks, from their data.
fn page() -> String {
    let mut text = String::from(include_str!("../hosts/page.md"));
    let mut family = "";
    let mut checks: Vec<&Check> = audit::all().collect();
    // Families in their order, each by number.
    let mut families: Vec<&str> = Vec::new();
    for check in &checks {
        if !families.contains(&check.family()) {
            families.push(check.family());
        }
    }
    checks
        .sort_by_key(|check| (families.iter().position(|name| *name == check.family()), check.id));
    for check in checks {
        if check.family() != family {
            family = check.family();
            text += &format!("\n## {family}\n");
        }
        text += &format!("\n### {}: {}\n\n{}\n\n", check.id, check.title, check.why);
        let since = check
            .since
            .map(|(major, minor)| format!("Linux {major}.{minor} and later"))
            .unwrap_or_default();
        let read =
            check.read_from.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        for (name, value) in [
            ("importance", check.importance.word()),
            ("read from", &read),
            ("wanted", check.wanted),
            ("cost", check.cost),
            ("now", check.set_now),
            ("at boot", check.set_boot),
            ("undo", check.undo),
            ("kernels", &since),
            ("source", check.source),
        ] {
            if !value.is_empty() {
                text += &format!("* {name}: {value}\n");
            }
        }
    }
    text
}

#[test]
fn the_page_about_the_checks_is_theirs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md");
    if std::env::var_os("TAILTRIM_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/audit.md differs from the checks: TAILTRIM_WRITE_DOCS=1 cargo test -p tailtrim-host --test audit"
    );
}
