use super::*;

fn begin() -> Begin {
    Begin {
        format: FORMAT,
        id: "1".into(),
        at_unix_s: 1,
        boot_id: "b".into(),
        profile: "latency-poll".into(),
        arguments: vec!["a".into()],
    }
}

fn step(number: usize, old: &[u8]) -> JournalStep {
    JournalStep {
        number,
        change: "x".into(),
        place: Place::file("/proc/sys/vm/stat_interval"),
        form: Form::Number,
        old: Some(Value(old.to_vec())),
        new: Some("2".into()),
        optional: false,
        then: None,
    }
}

fn journal(steps: &[JournalStep], marks: &[Mark]) -> Vec<u8> {
    let mut bytes = Journal::begun(&begin(), steps).unwrap();
    bytes.extend(marks.iter().flat_map(|mark| mark.line().unwrap()));
    bytes
}

/// The same with other JSON in one line, and all checksums right.
fn rewritten(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{text}");
    let text = text.replace(from, to);
    let mut lines: Vec<String> = text.lines().map(|line| line[17..].to_owned()).collect();
    let with_sum = |json: &String| format!("{:016x} {json}\n", xxh3_64(json.as_bytes()));
    let steps: String =
        lines.iter().filter(|json| json.contains(r#""record":"step""#)).map(with_sum).collect();
    let at = lines[0].find(r#""checksum":""#).unwrap() + 12;
    lines[0].replace_range(at..at + 16, &format!("{:016x}", xxh3_64(steps.as_bytes())));
    lines.iter().map(with_sum).collect::<String>().into_bytes()
}

#[test]
fn bytes_come_back_exactly_text_or_not() {
    let bytes = journal(&[step(0, b"1\n"), step(1, b"\xff\0\t\"\n\n")], &[]);
    let journal = Journal::parse(&bytes).unwrap();
    let old: Vec<&[u8]> = journal.steps.iter().map(|s| &s.old.as_ref().unwrap().0[..]).collect();
    assert_eq!(old, [b"1\n" as &[u8], b"\xff\0\t\"\n\n"]);
}

#[test]
fn cut_among_its_marks_it_is_read_and_cut_before_it_is_refused() {
    let steps = [step(0, b"1\n"), step(1, b"2\n")];
    let marks = [
        Mark::Start { number: 0 },
        Mark::Done { number: 0, outcome: Outcome::Took },
        Mark::Applied,
    ];
    let all = journal(&steps, &marks);
    let planned = journal(&steps, &[]).len();
    let header = journal(&[], &[]).len();
    for cut in 0..=all.len() {
        match Journal::parse(&all[..cut]) {
            Ok(journal) => {
                assert!(cut >= planned);
                assert_eq!((journal.whole + journal.torn, journal.steps.len()), (cut, 2));
                assert_eq!(journal.applied, cut == all.len());
            }
            Err(JournalError::CutOff { steps: 2, .. }) => assert!((header..planned).contains(&cut)),
            Err(error) => {
                assert_eq!(error, JournalError::NoJournal { steps: 0 });
                assert!(cut < header);
            }
        }
    }
    let told = Journal::parse(&all[..planned - 1]).unwrap_err().to_string();
    assert!(told.contains("1 of 2 steps") && told.contains("2 values"), "{told}");
}

#[test]
fn a_changed_byte_is_told() {
    let marks = [Mark::Start { number: 0 }, Mark::Applied];
    let all = journal(&[step(0, b"1\n"), step(1, b"2\n")], &marks);
    for at in 0..all.len() - 1 {
        let mut bytes = all.clone();
        bytes[at] ^= 1;
        assert!(Journal::parse(&bytes).is_err(), "byte {at}");
    }
    let mut bytes = all.clone();
    bytes[20] ^= 1;
    assert_eq!(Journal::parse(&bytes), Err(JournalError::NoJournal { steps: 2 }));
    bytes = all.clone();
    bytes[all.len() - 20] ^= 1;
    assert_eq!(Journal::parse(&bytes), Err(JournalError::Damaged { line: 5, steps: 2 }));
}

#[test]
fn a_line_that_is_missing_or_twice_is_told() {
    let bytes = journal(&[step(0, b"1\n"), step(1, b"2\n")], &[Mark::Applied]);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for kept in [&[0, 2, 3][..], &[0, 2, 1, 3], &[0, 1, 3], &[0, 1, 1, 2, 3], &[0, 0, 1, 2, 3]] {
        let bytes: Vec<u8> = kept.iter().flat_map(|line| lines[*line]).copied().collect();
        assert!(matches!(Journal::parse(&bytes), Err(JournalError::Damaged { .. })), "{kept:?}");
    }
}

#[test]
fn a_journal_cannot_choose_what_is_run_or_written() {
    let mut grub = step(0, b"");
    grub.place = Place::Config { path: "/etc/default/grub.d/99-tailtrim.cfg".into() };
    grub.then = Some(Command::UpdateGrub);
    let bytes = journal(&[grub], &[]);
    assert!(Journal::parse(&bytes).is_ok());
    let told = |from: &str, to: &str| {
        Journal::parse(&rewritten(&bytes, from, to)).unwrap_err().to_string()
    };
    let run = told(r#""then":"update-grub""#, r#""then":"sh""#);
    assert!(run.starts_with("line 2: ") && run.contains("`update-grub`"), "{run}");
    let free = told(r#""then":"update-grub""#, r#""then":["sh","-c","id"]"#);
    assert!(free.starts_with("line 2: "), "{free}");
    let path = told("/etc/default/grub.d/99-tailtrim.cfg", "/etc/cron.d/x");
    assert!(path.starts_with("line 2: ") && path.contains("writes /etc/cron.d/x"), "{path}");
    let id = rewritten(&bytes, r#""id":"1""#, r#""id":"../../x""#);
    assert_eq!(Journal::parse(&id), Err(JournalError::NoJournal { steps: 1 }));
}

#[test]
fn marks_are_of_steps_that_are_there() {
    let bytes = journal(&[step(0, b"1\n")], &[Mark::Start { number: 1 }]);
    assert_eq!(Journal::parse(&bytes), Err(JournalError::Damaged { line: 3, steps: 1 }));
}

#[test]
fn another_version_is_named() {
    for (json, found) in [
        (r#"{"record":"other","format":7}"#, 7),
        (
            r#"{"record":"begin","format":1,"id":"1","at_unix_s":1,"boot_id":"b","profile":"p","arguments":[]}"#,
            1,
        ),
    ] {
        let line = format!("{:016x} {json}\n", xxh3_64(json.as_bytes()));
        assert_eq!(Journal::parse(line.as_bytes()), Err(JournalError::Format { found }));
    }
}
