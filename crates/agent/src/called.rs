//! Name of the command that the user typed, which help, examples and hints use.

use clap::Command;
use std::path::Path;

/// The name of the binary.
const ITSELF: &str = "tailtrim-agent";
/// The package's command line, which runs the agent with this name as its first argument.
const PACKAGE: &str = "tailtrim";

/// Begin of the names of the agent's threads, with the verb behind it.
pub(crate) const THREADS: &str = "tt-";

/// `tailtrim` where the package's command line called it, otherwise `tailtrim-agent`.
pub(crate) fn name() -> &'static str {
    let first = std::env::args_os().next();
    let called = first.as_deref().and_then(|first| Path::new(first).file_name());
    if called.is_some_and(|called| called == PACKAGE) { PACKAGE } else { ITSELF }
}

/// The same with the verb that the user typed.
pub(crate) fn command() -> String {
    let verb = std::env::args().nth(1).filter(|verb| !verb.starts_with('-'));
    verb.map_or(name().to_owned(), |verb| format!("{} {verb}", name()))
}

/// The command line with help and examples by this name.
pub(crate) fn named(command: Command) -> Command {
    if name() == ITSELF {
        return command;
    }
    with_examples(command.name(PACKAGE).bin_name(PACKAGE))
}

fn with_examples(command: Command) -> Command {
    let told = command.get_after_help().map(|help| help.to_string().replace(ITSELF, PACKAGE));
    let command = match told {
        Some(told) => command.after_help(told),
        None => command,
    };
    command.mut_subcommands(with_examples)
}
