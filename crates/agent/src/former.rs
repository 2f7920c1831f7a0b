//! Former spellings of options, read for one version with a note. Python's: `tailtrim.cli.catalogue`.

use crate::output::note;
use std::ffi::OsString;

/// Verb, former and present spelling; none where the option is not needed any more.
const FORMER: &[(&str, &str, &str)] = &[
    ("analyze", "--departures", "--lateness"),
    ("analyze", "--trim", "--skip"),
    ("audit", "--nic", "--interface"),
    ("audit", "--observe", "--duration"),
    ("audit", "--skip", "--without"),
    ("capture", "--stop-after", "--duration"),
    ("capture", "--trim", "--skip"),
    ("counters", "--every", "--interval"),
    ("counters", "--stop-after", "--duration"),
    ("disturb", "--port", "--interface"),
    ("forward", "--from", "--ingress"),
    ("forward", "--to", "--egress"),
    ("generate", "--port", "--interface"),
    ("generate", "--stop-after", "--duration"),
    ("noise", "--stop-after", "--duration"),
    ("ping", "--busy-poll", "--socket-poll"),
    ("ping", "--device", "--interface"),
    ("ping", "--level", "--stamps"),
    ("ping", "--port", "--dst-port"),
    ("ping", "--source", "--src-ip"),
    ("ping", "--source-port", "--src-port"),
    ("ping", "--stop-after", "--duration"),
    ("ping", "-n", "--duration"),
    ("reflect", "--burst", "--limit-burst"),
    ("reflect", "--rate", "--limit"),
    ("trace", "--device", "--pid"),
    ("trace", "--stop-after", "--duration"),
    ("tune", "--nic", "--interface"),
    ("tune", "--yes", ""),
];

/// The command line with present spellings; a note names each that was not one.
pub(crate) fn renamed(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.into_iter().peekable();
    let mut renamed: Vec<OsString> = words.by_ref().take(2).collect();
    let verb = renamed.get(1).and_then(|verb| verb.to_str()).unwrap_or_default().to_owned();
    while let Some(word) = words.next() {
        if word == "--" {
            renamed.push(word);
            break;
        }
        let text = word.to_str().unwrap_or_default();
        let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
        let found = FORMER.iter().find(|(of, former, _)| *of == verb && *former == name);
        let Some((.., present)) = found else {
            renamed.push(word);
            continue;
        };
        // Of senders, the option was a time, or a number of packets.
        let given = value.or_else(|| words.peek().and_then(|next| next.to_str()));
        let counts = matches!(verb.as_str(), "generate" | "ping") && *present == "--duration";
        let present = match given.map(str::parse::<u64>) {
            Some(Ok(_)) if counts => "--count",
            _ => present,
        };
        if present.is_empty() {
            note("note", &format!("{name} is not needed any more"));
            continue;
        }
        note("note", &format!("{name} is called {present} now"));
        renamed.push(value.map_or(present.to_owned(), |value| format!("{present}={value}")).into());
    }
    renamed.extend(words);
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;

    fn now(line: &str) -> String {
        let words = renamed(line.split(' ').map(OsString::from));
        words.join(" ".as_ref()).to_string_lossy().into_owned()
    }

    #[test]
    fn former_spellings_are_read() {
        for (former, present) in [
            ("a ping h --stop-after 10s", "a ping h --duration 10s"),
            ("a ping h -n 100 --port=7", "a ping h --count 100 --dst-port=7"),
            ("a generate --port e --stop-after=9", "a generate --interface e --count=9"),
            ("a noise --stop-after 2", "a noise --duration 2"),
            ("a tune apply --yes --nic e", "a tune apply --interface e"),
            ("a analyze i --trim 1s --skip 0", "a analyze i --skip 1s --skip 0"),
            ("a node hold --with 1 -- a --port", "a node hold --with 1 -- a --port"),
            ("a", "a"),
        ] {
            assert_eq!(now(former), present);
        }
    }

    #[test]
    fn former_spellings_are_none_of_today() {
        let agent = Args::command();
        for (verb, former, present) in FORMER {
            let verb = agent.find_subcommand(verb).unwrap();
            let all: Vec<_> = verb
                .get_arguments()
                .chain(verb.get_subcommands().flat_map(clap::Command::get_arguments))
                .filter_map(|option| option.get_long().map(|long| format!("--{long}")))
                .collect();
            assert!(!all.iter().any(|name| name == former), "{former}");
            assert!(present.is_empty() || all.iter().any(|name| name == present), "{present}");
        }
    }
}
