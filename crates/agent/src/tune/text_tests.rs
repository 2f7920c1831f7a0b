//! Plans as people read them: golden files.
//!
//! `UPDATE_GOLDEN=1 cargo test -p tailtrim-agent tune::text` writes them anew; look at the difference.

#[allow(dead_code, reason = "the tests of plans use the rest")]
#[path = "../../../tune/tests/it/hosts.rs"]
mod hosts;

use super::text::text;
use hosts::{amd_server, guest, laptop, server};
use std::path::Path;
use tailtrim_tune::{Profile, Request, plan};

fn golden(name: &str, content: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tune").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, content).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(content, known, "{} differs", path.display());
}

#[test]
fn what_an_operator_sees() {
    let poll = Request {
        nics: vec!["eth1".into()],
        huge_pages: Some("1G:4".parse().unwrap()),
        ..Request::new(Profile::LatencyPoll)
    };
    golden("server-latency-poll.txt", &text(&plan(&server(), &poll).unwrap()));
    let kernel = Request { nics: vec!["eth1".into()], ..Request::new(Profile::LatencyKernel) };
    golden("server-latency-kernel.txt", &text(&plan(&server(), &kernel).unwrap()));
    golden(
        "guest-nfv-guest.txt",
        &text(&plan(&guest(), &Request::new(Profile::NfvGuest)).unwrap()),
    );
    golden(
        "laptop-measure-only.txt",
        &text(&plan(&laptop(), &Request::new(Profile::MeasureOnly)).unwrap()),
    );
    golden(
        "amd-nfv-host.txt",
        &text(&plan(&amd_server(), &Request::new(Profile::NfvHost)).unwrap()),
    );
}
