//! The page about all checks of the audit.

use tailtrim_host::audit::{self, Check};

/// The page about all checks, from their data.
pub(crate) fn page() -> String {
    let mut text = String::from(include_str!("begin.md"));
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
        let since = check.since.map(|since| format!("Linux {since} and later")).unwrap_or_default();
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
        for reference in check.references() {
            text += &format!("* confirmed by: {reference}\n");
        }
        for what in check.unconfirmed() {
            text += &format!("* unconfirmed: {what}\n");
        }
    }
    text
}
