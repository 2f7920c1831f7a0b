"""The page of a watch that runs, as a person sees it in a browser."""

from __future__ import annotations

import json
import re
import subprocess
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from browser import Browser
from laboratory import Lab
from pairs import running

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.namespace import Namespace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.browser, pytest.mark.packages]
PAGE = "http://127.0.0.1:9464/"
#: As hostile as a name and an address may be.
NAME = "%3Cimg%20src%5D:javascript:alert[1]"
ADDRESS = "<img src=x onerror=document.title=1>"
TARGETS = f"""
defaults: {{rate: 20pps, timeout: 200ms, objectives: ['p99 < 1s', 'loss < 1%']}}
targets:
- {{name: near, address: '127.0.0.1:7007'}}
- {{name: closed, address: '127.0.0.1:9'}}
- {{name: '{NAME}', address: '{ADDRESS}', objectives: []}}
- {{name: __proto__, address: '127.0.0.1:7007'}}
"""
TOKEN = "a token would be longer".replace(" ", "-")
#: Rows whose line is drawn.
DRAWN = "[...document.querySelectorAll('td.spark svg')].length"
ROWS = "[...document.querySelectorAll('#rows tr')].map((row) => row.innerText)"
HEAD = "document.querySelector('#one h2')?.textContent"
FOCUS = "document.activeElement.textContent"


def minute(begin_s: int, *, silent: bool) -> bytes:
    """Return a minute of 60 probes as a frame of a file."""
    took: list[int | None] = [2_000_000 + 7_919 * n * n % 500_009 for n in range(60)]
    answered = 0 if silent else 60
    worst = {"begin_ns": begin_s * 10**9, "latency_ns": max(filter(None, took)), "residence_ns": 7}
    line: dict[str, Any] = {"begin_ns": begin_s * 10**9, "due": 60}
    line |= {"answered": answered, "lost": 60 - answered}
    line |= (
        {"latency_ns": [None] * 60, "worst": None}
        if silent
        else {"latency_ns": took, "worst": worst}
    )
    frame: bytes = pa.Codec("zstd").compress(json.dumps(line).encode() + b"\n", asbytes=True)
    return frame


def remembered(folder: Path) -> None:
    """Leave three hours of a target: an outage of five minutes, then ten without the watch."""
    now_s = int(time.time()) // 60 * 60
    for ago in range(180, 1, -1):
        begin_s = now_s - 60 * ago
        if 20 <= ago < 30:
            continue
        day = datetime.fromtimestamp(begin_s, UTC).date()
        with (folder / f"{day}.jsonl.zst").open("ab") as file:
            file.write(minute(begin_s, silent=30 <= ago < 35))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Namespace, Lab]]:
    """Return a host that has only itself, with a reflector."""
    folder = tmp_path_factory.mktemp("alone")
    with ExitStack() as stack:
        try:
            node = stack.enter_context(Namespace("alone", folder))
        except HostError as problem:
            pytest.skip(f"no network namespaces here: {problem}")
        node.run("ip", "link", "set", "lo", "up")
        lab = Lab(folder)
        command = [*node.prefix, lab.agent, "reflect", "--echo", "7007", "--address", "127.0.0.1"]
        stack.enter_context(running(command))
        yield node, lab


def watch(node: tuple[Namespace, Lab], folder: Path, *more: str) -> list[str]:
    """Return the command that watches the targets."""
    (folder / "targets.yml").write_text(TARGETS)
    words = ("watch", str(folder / "targets.yml"), "--out", str(folder / "minutes"))
    listen = () if "--listen" in more else ("--listen", "127.0.0.1:9464")
    return [*node[0].prefix, node[1].agent, *words, *listen, *more]


@pytest.fixture(scope="module")
def watched(node: tuple[Namespace, Lab], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a watch with a past."""
    folder = tmp_path_factory.mktemp("watch")
    (folder / "minutes" / "near").mkdir(parents=True)
    remembered(folder / "minutes" / "near")
    with running(watch(node, folder)) as process:
        yield process


@pytest.fixture
def browser(node: tuple[Namespace, Lab], tmp_path: Path) -> Iterator[Browser]:
    """Return a browser on the host of the watch."""
    with Browser(node[0].prefix, tmp_path / "profile") as browser:
        browser.size(1280)
        yield browser


@pytest.fixture
def page(watched: Any, browser: Browser) -> Iterator[Browser]:
    """Return the page, which complains of nothing and asks nobody else."""
    assert watched.poll() is None
    browser.open(PAGE)
    browser.until(f"{DRAWN} === 4")
    yield browser
    assert browser.complaints == []
    assert [url for url in browser.urls if not url.startswith(PAGE)] == []


def test_rows_are_text_whatever_their_names_are(page: Browser) -> None:
    rows = page.ask(ROWS)
    assert any(NAME in row and ADDRESS in row and "no objective" in row for row in rows)
    assert any("__proto__" in row for row in rows)
    assert page.ask("document.querySelectorAll('img').length") == 0
    label = page.ask("document.querySelector('td.spark svg[aria-label*=p99]').ariaLabel")
    assert "p99 from 2.4" in label
    assert "1 outage" in label
    page.ask(f"location.hash = new URLSearchParams({{target: {json.dumps(NAME)}}})")
    assert page.until(HEAD) == NAME
    assert page.ask("document.querySelectorAll('img').length") == 0
    assert ADDRESS in page.ask("document.querySelector('#one').innerText")


@pytest.mark.usefixtures("watched")
def test_the_policy_stops_scripts_and_requests_of_others(browser: Browser) -> None:
    browser.open(PAGE)
    browser.until(f"{DRAWN} === 4")
    stopped = browser.ask(
        """new Promise((done) => {
          const stopped = [];
          addEventListener('securitypolicyviolation', (event) => {
            stopped.push(event.effectiveDirective);
            if (stopped.length === 4) done(stopped.sort().join(' '));
          });
          const add = (tag, rest) => document.body.append(
            Object.assign(document.createElement(tag), rest));
          add('script', {textContent: 'document.title = 1'});
          add('img', {src: 'http://192.0.2.1/'});
          add('style', {textContent: 'body { color: red }'});
          fetch('http://192.0.2.1/').catch(() => {});
        })"""
    )
    assert stopped == "connect-src img-src script-src-elem style-src-elem"
    assert browser.ask("document.title") != "1"


def test_a_target_over_time_is_reached_and_read_by_keys(page: Browser) -> None:
    page.ask("document.querySelector('#spans :last-child').focus()")
    page.press("Tab")
    names = [row.split("\n")[0] for row in page.ask(ROWS)]
    for _ in range(names.index("near")):
        page.press("Tab")
    assert page.ask(FOCUS) == "near"
    page.press("Enter")
    page.until(f"{HEAD} === 'near'")
    assert page.ask(FOCUS) == "← All targets"
    page.ask("document.querySelector('.legend button').focus()")
    whole = page.ask("document.querySelectorAll('.chart path[d^=M].first').length")
    page.press("Space")
    assert page.ask("document.activeElement.ariaPressed") == "false"
    assert whole > page.ask("document.querySelectorAll('.chart path[d^=M].first').length") == 0
    page.ask("document.querySelector('.chart').focus()")
    page.press("Home", "ArrowRight")
    readout = "document.querySelector('#readout').textContent"
    assert "p50 2.2" in page.ask(readout)
    assert "60 probes, all answered" in page.ask(readout)
    page.press("End", *["ArrowLeft"] * 24)
    assert "not measured" in page.ask(readout)
    page.press(*["ArrowLeft"] * 7)
    assert "60 not answered (100 %)" in page.ask(readout)
    stretches = page.ask("document.querySelector('#one table').innerText")
    assert "no answer\t5 min" in stretches
    assert "not measured\t10 min" in stretches
    page.press("Escape")
    page.ask("document.querySelector('#back').focus()")
    page.press("Enter")
    page.until(f"{FOCUS} === 'near'")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (500, "dark")])
def test_all_spans_fit_each_window(page: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    page.size(width, scheme=scheme)
    fits = "document.documentElement.scrollWidth <= innerWidth"
    ground = page.ask("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 26)")
    for span, blocks in (("hour", 45), ("day", 16), ("week", 3)):
        page.ask(f"document.querySelector('[data-span={span}]').click()")
        page.until(f"document.querySelector('#overtime').textContent.includes('last {span}')")
        assert page.ask(fits), span
        page.ask(f"location.hash = 'target=near&span={span}'")
        page.until(f"document.querySelector('#one h3')?.textContent.includes('last {span}')")
        assert page.ask(fits), span
        dots = page.ask("document.querySelectorAll('.chart .slowest').length")
        assert abs(dots - blocks) <= 5
        page.picture(tmp_path / f"{span}-{width}.png")
        page.ask("document.querySelector('#back').click()")


def test_the_title_counts_the_targets_that_are_not_met(page: Browser) -> None:
    # The first minute of this watch ends within a minute, and is written two seconds later.
    page.until("document.title === '1 not met · tailtrim watch'", patience_s=90)
    (closed, *_) = page.ask(ROWS)
    assert closed.startswith("closed")
    assert "no answer" in closed
    assert "loss < 1%: 100 % of" in closed
    assert "1 not met" in page.ask("document.querySelector('#totals').innerText").replace("\n", " ")


#: Changes and caught probes as a watch tells them.
CHANGES = [
    {"of": "p99", "direction": "worse", "against": "baseline", "since_ns": 0, "at_ns": 0}
    | {"was_ns": 2_000_000, "now_ns": 3_000_000, "low_ns": 2_900_000, "high_ns": 3_200_000},
    {"of": "loss", "direction": "worse", "against": "last week", "since_ns": 0, "ended_ns": 60}
    | {"was_share": 0, "now_share": 0.02, "low_share": 0.01, "high_share": 0.03},
]
PART = {"name": "own_host_behind", "ns": 150_000_000, "usual_ns": 41_200, "share_ppm": 980_000}
CAUSED = {"causes": [{"kind": "thread", "name": "<b>", "detail": "9"}]} | {
    "late": [{"excess_ns": 100, "causes": [[0, 93]], "queue_ns": 0, "unknown_ns": 7}]
}
CAUGHT = [
    {"name": "2026-11-29T08-01-07.123", "problem": None}
    | {
        "packet": {"latency_ns": 152_000_000, "parts": [PART], "host_part": "own_host_behind"}
        | {"host": {"verdict": CAUSED}}
    },
    {"name": "2026-11-29T08-00-07.123", "packet": None, "problem": "it counts as lost"},
]


def test_changes_and_caught_probes_are_told_in_words(page: Browser) -> None:
    told = page.ask(
        f"""(async () => {{
          const {{showTarget}} = await import('/target.js');
          const ask = async (path) => (await fetch(path)).json();
          const {{targets}} = await ask('api/targets');
          const near = targets.find((one) => one.name === 'near');
          const history = await ask('api/targets/near?span=hour');
          near.changes = {{changes: {json.dumps(CHANGES)}}};
          history.catches = {json.dumps(CAUGHT)};
          const section = document.createElement('section');
          document.querySelector('main').append(section);
          showTarget(section, near, history, 'hour');
          return section.innerText;
        }})()"""
    )
    assert "p99 worse than baseline\tfrom 2.00 ms to 3.00 ms (2.90 ms to 3.20 ms)\tgoes on" in told
    assert "loss worse than last week\tfrom 0 % to 2.00 % (1.00 % to 3.00 %)\t" in told
    assert "98.0 % this host after receiving (150 ms, usually 41.2 µs)" in told
    assert "of it by the trace of this host: 93.0 % <b>/9, 7.0 % unknown" in told
    assert "none\tit counts as lost" in told


def test_a_watch_that_ends_is_told_until_it_is_back(
    node: tuple[Namespace, Lab], browser: Browser, tmp_path: Path
) -> None:
    command = watch(node, tmp_path, "--listen", "127.0.0.1:9465")
    with running(command):
        browser.open("http://127.0.0.1:9465/")
        browser.until("document.querySelectorAll('#rows tr').length === 4")
    told = "document.querySelector('#trouble').innerText"
    assert "does not answer since" in browser.until(told)
    assert browser.ask("document.title").startswith("no answer · ")
    with running(command):
        browser.until(f"{told} === ''")
        # On a busy host, a promise may not be met, which the title says, too.
        title = browser.ask("document.title")
        assert re.fullmatch(r"(\d+ not met · )?tailtrim watch", title), title


def test_others_need_the_token(
    node: tuple[Namespace, Lab], browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    everywhere = ("--listen", "0.0.0.0:9466")
    refused = subprocess.run(
        watch(node, tmp_path, *everywhere), capture_output=True, check=False, text=True
    )
    assert refused.returncode == 2
    assert "0.0.0.0:9466: hosts other than this one could read there" in refused.stderr
    rows = "document.querySelectorAll('#rows tr').length === 4"
    with running(watch(node, tmp_path, *everywhere, "--token-file", str(tmp_path / "token"))):
        browser.open("http://127.0.0.1:9466/")
        browser.until("!document.querySelector('#login').hidden")
        for text in ("wrong", TOKEN):
            browser.ask("document.querySelector('#token').focus()")
            browser.ask("document.querySelector('#token').value = ''")
            browser.write(text)
            browser.press("Enter")
            told = "document.querySelector('#refused').textContent"
            browser.until(f"{told} === 'This is not the token.'" if text == "wrong" else rows)
        browser.open("http://127.0.0.1:9466/?again")
        browser.until(rows)
        # Scripts do not see the cookie.
        assert browser.ask("document.cookie") == ""
