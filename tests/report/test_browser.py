from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import tools

from tailtrim.publishing.report import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim import RunDirectory

pytestmark = [pytest.mark.browser, pytest.mark.packages]

# Presses, drags and reads as a person would, and leaves what it saw in the title.
ACT = """
<script>
setTimeout(async () => {
  const wait = () => new Promise((done) => setTimeout(done, 60));
  const over = document.querySelector("#worst .u-over");
  const canvas = document.querySelector("#worst canvas");
  over.scrollIntoView();
  const at = over.getBoundingClientRect();
  const mouse = (kind, x, y) => over.dispatchEvent(new MouseEvent(kind, {
    bubbles: true, view: window, movementX: 1,
    clientX: at.left + x * at.width, clientY: at.top + y * at.height,
  }));
  await wait();
  const whole = canvas.toDataURL();
  mouse("mouseenter", .3, .3); mouse("mousemove", .3, .3); mouse("mousedown", .3, .3);
  mouse("mousemove", .6, .31); mouse("mouseup", .6, .31);
  await wait();
  const zoomed = canvas.toDataURL();
  const readout = document.querySelector("#worst .readout").textContent;
  const percentiles = document.querySelector("#hdr .u-over").getBoundingClientRect();
  const read = async (x) => {
    document.querySelector("#hdr .u-over").dispatchEvent(new MouseEvent("mousemove", {
      bubbles: true, view: window, movementX: 1,
      clientX: percentiles.left + x * percentiles.width, clientY: percentiles.top + 50,
    }));
    await wait();
    return document.querySelector("#hdr .readout").textContent;
  };
  const [bounded, open] = [await read(.5), await read(.95)];
  mouse("dblclick", .5, .5);
  await wait();
  const again = canvas.toDataURL();
  document.querySelector("#legend button").click();
  await wait();
  const hidden = document.querySelector("#worst canvas").toDataURL();
  document.title = JSON.stringify({
    zooms: zoomed !== whole, resets: again === whole, hides: hidden !== whole,
    readout, bounded, open,
  });
}, 100);
</script>
"""


@pytest.fixture
def dom(tmp_path: Path) -> Callable[..., str]:
    tools.need(tools.CHROMIUM)
    chromium = tools.CHROMIUM.program

    def dump(page: Path, width: int = 390) -> str:
        done = subprocess.run(
            [
                chromium,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                f"--user-data-dir={tmp_path / 'profile'}",
                "--enable-logging=stderr",
                "--virtual-time-budget=5000",
                f"--window-size={width},900",
                "--dump-dom",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        assert not re.findall(r".*CONSOLE.*", done.stderr), "errors and refusals of the policy"
        return done.stdout

    return dump


def test_every_panel_is_drawn(
    make_run: Callable[..., RunDirectory],
    testpmd: RunDirectory,
    tmp_path: Path,
    dom: Callable[[Path], str],
) -> None:
    lossy = make_run([5_000] * 250 + [None] + [5_000] * 250, name="lossy <script>")
    html = dom(write([testpmd, lossy], tmp_path / "out")[0])
    # Percentiles, worst, histogram, cumulative, two of gaps, three of seconds.
    panels = 9
    assert html.count("<canvas") == panels + len(["testpmd", "lossy"])
    assert len(re.findall(r"data-drawn", html.partition('id="data"')[0])) == panels
    assert re.search(r'id="trouble"[^>]* hidden', html)


# Opens what is folded, and leaves in the title which tables are wider than their place.
MEASURE = """
<script>
setTimeout(() => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  const all = [...document.querySelectorAll(".wide")];
  const wide = all.filter((one) => one.scrollWidth > one.clientWidth);
  const told = wide.map((one) => one.textContent.slice(0, 60));
  document.title = `${wide.length} of ${all.length}: ${told}`;
}, 100);
</script>
"""


@pytest.mark.parametrize("width", [1280, 400])
def test_no_table_is_wider_than_the_page(
    make_run: Callable[..., RunDirectory], tmp_path: Path, dom: Callable[..., str], width: int
) -> None:
    took = [None if n % 97 == 0 else 2_001 + 7_919 * n * n % 500_009_123 for n in range(20_000)]
    run = make_run(took, name="forwarder-with-nat-in-a-virtual-machine", copied=50)
    written = write([run], tmp_path / "out")[0]
    html = re.sub(r"<meta http-equiv[^>]*>", "", written.read_text("utf-8"))
    page = tmp_path / "report.html"
    page.write_text(html.replace("</body>", MEASURE + "</body>"), "utf-8")
    (title,) = re.findall(r"<title>(.*)</title>", dom(page, width))
    assert re.fullmatch(r"0 of [1-9][0-9]*: ", title), title


def test_it_zooms_resets_reads_and_hides(
    make_run: Callable[..., RunDirectory], tmp_path: Path, dom: Callable[[Path], str]
) -> None:
    # Nothing depends on what was before.
    run = make_run([5_000 + 7_919 * n * n % 1_009 for n in range(3_000)], name="device")
    page = tmp_path / "report.html"
    written = write([run], tmp_path / "out")[0]
    html = re.sub(r"<meta http-equiv[^>]*>", "", written.read_text("utf-8"))
    page.write_text(html.replace("</body>", ACT + "</body>"), "utf-8")
    (title,) = re.findall(r"<title>(.*)</title>", dom(page))
    assert '"zooms":true,"resets":true,"hides":true' in title
    assert re.search(r'"readout":"[\d.]+&nbsp;s: device [\d.]+&nbsp;µs"', title)
    span = r"device [\d.]+&nbsp;µs \([\d.]+ to [\d.]+&nbsp;µs\)"
    assert re.search(rf'"bounded":"[\d.]+ %: {span}"', title)
    assert re.search(r'"open":"[\d.]+ %: device [\d.]+&nbsp;µs \(at least [\d.]+&nbsp;µs\)"', title)


# Drags over the packets, and presses the name of a cause.
ACT_ON_CAUSES = """
<script>
setTimeout(async () => {
  const wait = () => new Promise((done) => setTimeout(done, 60));
  const all = (chosen) => [...document.querySelectorAll(`#late-1 ${chosen}`)];
  const draw = () => all("canvas:not(.swatch)").map((one) => one.toDataURL());
  const overs = all(".u-over");
  overs[0].scrollIntoView();
  const mouse = (over, kind, x, y) => {
    const at = over.getBoundingClientRect();
    over.dispatchEvent(new MouseEvent(kind, {
      bubbles: true, view: window, movementX: 1,
      clientX: at.left + x * at.width, clientY: at.top + y * at.height,
    }));
  };
  await wait();
  const whole = draw();
  mouse(overs[1], "mousemove", .02 / .102, .3);
  await wait();
  const readout = all(".readout")[1].textContent;
  for (const kind of ["mouseenter", "mousemove", "mousedown"]) mouse(overs[0], kind, .1, .3);
  for (const kind of ["mousemove", "mouseup"]) mouse(overs[0], kind, .5, .31);
  await wait();
  const zoomed = draw();
  mouse(overs[1], "dblclick", .5, .5);
  await wait();
  const again = draw();
  const names = all(".legend button").map((one) => one.textContent);
  const other = document.querySelector("#worst canvas").toDataURL();
  all(".legend button")[1].click();
  await wait();
  const hidden = draw();
  document.title = JSON.stringify({
    zooms: zoomed.map((one, n) => one !== whole[n]),
    resets: again.map((one, n) => one === whole[n]),
    hides: hidden.map((one, n) => one !== whole[n]),
    alone: other === document.querySelector("#worst canvas").toDataURL(),
    readout, names,
  });
}, 100);
</script>
"""


def test_both_panels_of_late_packets_zoom_and_have_a_legend_of_their_own(
    explained_run: RunDirectory, tmp_path: Path, dom: Callable[[Path], str]
) -> None:
    page = write([explained_run], tmp_path / "out")[0]
    html = dom(page)
    # Percentiles, worst, histogram, cumulative, two of gaps, two of seconds; then late packets,
    # the tail without causes, three packets.
    panels = 8 + 2 + 1 + 3 * 2
    assert len(re.findall(r"data-drawn", html.partition('id="data"')[0])) == panels
    assert re.search(r'id="trouble"[^>]* hidden', html)
    html = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text("utf-8"))
    acted = tmp_path / "acted.html"
    acted.write_text(html.replace("</body>", ACT_ON_CAUSES + "</body>"), "utf-8")
    (title,) = re.findall(r"<title>(.*)</title>", dom(acted))
    assert '"zooms":[true,true],"resets":[true,true],"hides":[true,true],"alone":true' in title
    assert re.search(r'"readout":"[\d.]+&nbsp;s: thief/pid 9 340&nbsp;µs', title)
    assert '"names":["other causes","thief/pid 9","tick by stress (812)","unknown"]' in title


# Reads where the cells of the first row are, presses the choice, and says how wide the page is.
ACT_ON_AN_EXPERIMENT = """
<script>
setTimeout(async () => {
  const wait = () => new Promise((done) => setTimeout(done, 60));
  const canvas = () => document.querySelector("#hdr canvas").toDataURL();
  const cells = [...document.querySelectorAll("h2 + .wide table tbody tr:first-child td")];
  const before = canvas();
  const [measured, above] = document.querySelectorAll("#hdr .choice button");
  above.click();
  await wait();
  const changed = canvas() !== before;
  const caption = document.querySelector("#hdr figcaption:not([hidden])").textContent.trim();
  measured.click();
  await wait();
  document.title = JSON.stringify({
    changed, caption: caption.slice(0, 15), back: canvas() === before,
    fits: document.documentElement.scrollWidth <= innerWidth,
    reach: cells.every((one) => one.getBoundingClientRect().right <= innerWidth),
    whole: cells.every((one) => one.scrollWidth <= one.clientWidth),
    labels: cells.length,
  });
}, 100);
</script>
"""


def test_a_telephone_reaches_every_column_and_the_floor_can_be_taken_off(
    reported_experiment: Path, tmp_path: Path, dom: Callable[[Path], str]
) -> None:
    html = (reported_experiment / "report" / "report.html").read_text("utf-8")
    html = re.sub(r"<meta http-equiv[^>]*>", "", html)
    acted = tmp_path / "acted.html"
    acted.write_text(html.replace("</body>", ACT_ON_AN_EXPERIMENT + "</body>"), "utf-8")
    (title,) = re.findall(r"<title>(.*)</title>", dom(acted))
    assert '"changed":true,"caption":"Each percentile","back":true' in title
    assert '"fits":true,"reach":true,"whole":true' in title
    assert not title.endswith('"labels":0}')
