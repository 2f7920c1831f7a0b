//! Requests as programs and browsers send them.

use super::{About, Access, Board, History, Pages};
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::serving::serve;
use crate::state::{Share, State};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const ANYWHERE: &str = "127.0.0.1:0";

struct Served {
    _folder: tempfile::TempDir,
    address: SocketAddr,
}

/// Status, head and body of an answer.
type Answer = (u16, String, String);

impl Served {
    /// Serves a target with 60 minutes of which each promise is broken.
    fn new(token: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watch.yml");
        fs::write(&path, "targets: [{name: 'a%[x]:7', address: b, objectives: [loss < 1%]}]")
            .unwrap();
        let board = Arc::new(Board::default());
        for plan in Plan::read(&path).unwrap().targets {
            let mut states: Vec<State> = plan.objectives.iter().cloned().map(State::new).collect();
            for state in &mut states {
                (0..60).for_each(|_| state.end_minute(Share { bad: 30, packets: 600 }));
            }
            board.begin(&plan.name, About::of(&plan), &states);
        }
        let file = token.map(|token| write(folder.path(), token));
        let access = Access::new(ANYWHERE.parse().unwrap(), file.as_deref()).unwrap();
        let pages = Pages::new(board, History::new(folder.path().to_owned()), Arc::default());
        let metrics = Arc::new(Metrics::new(Vec::new()));
        let address = serve(ANYWHERE.parse().unwrap(), metrics, pages, access).unwrap();
        Self { _folder: folder, address }
    }

    fn ask(&self, what: &str, host: &str, more: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let text = format!("{what} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "localhost:9464", "")
    }
}

fn write(folder: &Path, token: &str) -> std::path::PathBuf {
    let path = folder.join("token");
    fs::write(&path, format!("{token}\n")).unwrap();
    path
}

#[test]
fn answers_carry_the_rules_for_browsers() {
    let served = Served::new(None);
    for (path, kind) in [
        ("/", "text/html"),
        ("/page.js", "text/javascript"),
        ("/page.css", "text/css"),
        ("/icon.svg", "image/svg+xml"),
        ("/api/targets", "application/json"),
        ("/metrics", "text/plain"),
    ] {
        let (status, head, _) = served.get(path);
        assert_eq!(status, 200, "{path}");
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"));
        assert!(head.contains("frame-ancestors 'none'") && !head.contains("unsafe"));
        assert!(head.contains("x-content-type-options: nosniff"));
        assert!(head.contains("referrer-policy: no-referrer"));
        assert!(head.contains("cache-control: no-store"));
    }
    let (status, head, _) = served.get("/nothing");
    assert!(status == 404 && head.contains("content-security-policy"));
}

#[test]
fn targets_are_told_with_their_verdict_and_over_time() {
    let served = Served::new(None);
    let (_, _, text) = served.get("/api/targets");
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    let target = &told["targets"][0];
    assert_eq!((&target["name"], &target["verdict"]), (&"a%[x]:7".into(), &"not met".into()));
    assert_eq!(
        (&target["objectives"][0]["bad"], &target["minute"]),
        (&1_800.into(), &serde_json::Value::Null)
    );
    assert_eq!(target["objectives"][0]["promise"], "not met");
    let (status, _, text) = served.get("/api/targets/a%25%5Bx%5D%3A7?span=day");
    assert_eq!(status, 200, "{text}");
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&told["block_s"], &told["blocks"]), (&600.into(), &serde_json::json!([])));
    for (path, expected) in [
        ("/api/targets/a%25%5Bx%5D%3A7?span=year", 400),
        ("/api/targets/b", 404),
        ("/api/targets/..%2F..%2Fetc", 404),
    ] {
        assert_eq!(served.get(path).0, expected, "{path}");
    }
}

#[test]
fn a_name_that_leads_here_from_elsewhere_is_refused() {
    let served = Served::new(None);
    for host in
        ["localhost", "LOCALHOST:9464", "127.0.0.1:9464", "127.8.8.8", "[::1]:9464", "[::1]"]
    {
        assert_eq!(served.ask("GET /api/targets", host, "").0, 200, "{host}");
    }
    for host in
        ["attacker.example", "attacker.example:9464", "127.0.0.1.attacker.example", "192.0.2.7", ""]
    {
        for path in ["/", "/metrics", "/api/targets"] {
            assert_eq!(served.ask(&format!("GET {path}"), host, "").0, 421, "{host} {path}");
        }
    }
}

#[test]
fn with_a_token_others_see_the_page_and_no_data() {
    let served = Served::new(Some(TOKEN));
    let ask = |what: &str, more: &str| served.ask(what, "watch.example", more);
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(ask("GET /", "").0, 200);
    for path in ["/metrics", "/api/targets", "/api/targets/x"] {
        let get = format!("GET {path}");
        let (status, head, body) = ask(&get, "");
        assert!(status == 401 && head.contains("www-authenticate: bearer"), "{head}");
        assert!(!body.contains("a%[x]"));
        assert_ne!(ask(&get, &bearer).0, 401);
    }
    let wrong = [
        format!("Authorization: Bearer {}\r\n", &TOKEN[1..]),
        format!("Authorization: Basic {TOKEN}\r\n"),
        format!("Cookie: tailtrim-watch-0={TOKEN}\r\n"),
        "Cookie: tailtrim-watch-0=\r\n".to_owned(),
    ];
    for more in &wrong {
        assert_eq!(ask("GET /metrics", more).0, 401, "{more}");
    }
    assert_eq!(ask("POST /session", &wrong[0]).0, 401);
    let (status, head, _) = ask("POST /session", &bearer);
    assert_eq!(status, 204);
    let cookie = head.split("set-cookie: ").nth(1).unwrap().lines().next().unwrap();
    let (pair, rules) = cookie.split_once("; ").unwrap();
    assert!(!pair.contains(TOKEN) && rules == "httponly; samesite=strict; path=/", "{cookie}");
    assert_eq!(ask("GET /api/targets", &format!("Cookie: other=1; {pair}\r\n")).0, 200);
}

#[test]
fn others_are_let_in_with_a_token_alone() {
    let folder = tempfile::tempdir().unwrap();
    let of = |address: &str, token: Option<&str>| {
        let file = token.map(|token| write(folder.path(), token));
        Access::new(address.parse().unwrap(), file.as_deref()).map_err(|error| error.to_string())
    };
    for address in ["127.0.0.1:9464", "[::1]:9464"] {
        assert!(of(address, None).is_ok());
    }
    for address in ["0.0.0.0:9464", "[::]:9464", "192.0.2.7:9464"] {
        let told = of(address, None).unwrap_err();
        assert!(told.contains(address) && told.contains("--token-file"), "{told}");
        assert!(of(address, Some(TOKEN)).is_ok());
    }
    for token in ["", "short", "with a space in the middle"] {
        assert!(of(ANYWHERE, Some(token)).unwrap_err().contains("expected a token of 16"));
    }
}
