"""Content of a release, data that it withholds, and experiments that it refuses."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_experiment import PLAN, small_experiment

from tailtrim._native import VERSION
from tailtrim.errors import OutputError, ReleaseError
from tailtrim.laboratory.plan import load
from tailtrim.publishing.release import CheckResult, ReleaseOptions, release, verify
from tailtrim.publishing.release.redaction import Redaction

pytestmark = pytest.mark.long

THREE_HOSTS = Path(__file__).parents[2] / "examples" / "three-hosts" / "testbed.yml"
QUICK = ("files", "grid", "numbers", "validity")
RUN = "experiment/run-001"


def wrong(root: Path, only: tuple[str, ...] = QUICK) -> list[str]:
    return [one for level in verify(root, only=only) for one in level.wrong]


def level(root: Path, name: str) -> CheckResult:
    return next(one for one in verify(root, only=[name]) if one.name == name)


def copy_of(experiment: Path, folder: Path) -> Path:
    return Path(shutil.copytree(experiment, folder / "experiment"))


def texts(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_the_same_experiment_gives_the_same_bytes(
    experiment: Path, released: Path, tmp_path: Path
) -> None:
    release(experiment, tmp_path / "again", ReleaseOptions())
    assert texts(tmp_path / "again") == texts(released)


def test_no_path_of_the_machine_is_in_it(experiment: Path, released: Path) -> None:
    places = (str(experiment.parent).encode(), str(released.parent).encode())
    found = [name for name, text in texts(released).items() if any(one in text for one in places)]
    assert found == []


def test_sha256sum_agrees(released: Path) -> None:
    ended = subprocess.run(
        ["/usr/bin/env", "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"],
        cwd=released,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "")


def test_a_missing_licence_and_citation_are_asked_for(experiment: Path, tmp_path: Path) -> None:
    bare = copy_of(experiment, tmp_path)
    (bare / "LICENSE").unlink()
    (bare / "CITATION.cff").unlink()
    with pytest.raises(ReleaseError) as error:
        release(bare, tmp_path / "out", ReleaseOptions())
    told = f"{bare / 'LICENSE'} and {bare / 'CITATION.cff'}: missing"
    assert str(error.value).startswith(told)
    license_, citation = error.value.__notes__
    assert "license" in license_
    assert "citation" in citation
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("title: T\nmessage: M\n", "lacks cff-version, authors, expected"),
        ("- 1\n", "lacks cff-version, message, title, authors"),
        ("a: [\n", "not YAML"),
        (
            "cff-version: 1.2.0\nmessage: M\ntitle: T\nauthors: [Jane]\n",
            "authors needs family-names",
        ),
    ],
)
def test_a_wrong_citation_is_told(experiment: Path, tmp_path: Path, text: str, told: str) -> None:
    place = tmp_path / "wrong.cff"
    place.write_text(text)
    with pytest.raises(ReleaseError, match=re.escape(told)):
        release(experiment, tmp_path / "out", ReleaseOptions(citation=place))


def test_a_folder_that_is_there_is_not_touched(experiment: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(OutputError, match=f"{re.escape(str(tmp_path))}: exists"):
        release(experiment, tmp_path, ReleaseOptions())
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_other_files_of_the_folder_are_left_out_and_told(experiment: Path, tmp_path: Path) -> None:
    mine = copy_of(experiment, tmp_path)
    (mine / "notes.txt").write_text("call Jane")
    assert release(mine, tmp_path / "out", ReleaseOptions()) == ["notes.txt"]
    assert json.loads((tmp_path / "out" / "release.json").read_text())["left_out"] == ["notes.txt"]


def test_a_release_that_would_not_hold_is_not_made(experiment: Path, tmp_path: Path) -> None:
    mine = copy_of(experiment, tmp_path)
    place = mine / "run-000" / "summary.json"
    lost = json.loads(place.read_text())["ingress"]["lost"]
    place.write_text(place.read_text().replace(f'"lost": {lost}', '"lost": 0'))
    record = json.loads((mine / "experiment.json").read_text())
    record["versions"]["tailtrim"] = "0.0.1"
    (mine / "experiment.json").write_text(json.dumps(record))
    with pytest.raises(ReleaseError, match="would not hold") as error:
        release(mine, tmp_path / "out", ReleaseOptions())
    for fact in ("run-000/summary.json: ingress.lost: 0 ", f" {lost} derived again"):
        assert fact in str(error.value)
    (note,) = error.value.__notes__
    for version in ("of tailtrim 0.0.1", f"this is {VERSION}"):
        assert version in note
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_without_captures_latencies_are_derived_from_samples(
    experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    left_out = release(experiment, out, ReleaseOptions(captures=False))
    assert [name for name in left_out if "run-001" in name] == [
        "run-001/egress.pcap",
        "run-001/ingress.pcap",
    ]
    assert not list(out.rglob("*.pcap"))
    found = level(out, "numbers")
    assert found.wrong == ()
    assert re.fullmatch("0 .*captures, 2 .*samples", found.told)
    for fact in ("outcomes of packets", "gaps", "seconds"):
        assert fact in found.skipped[0]
    place = out / RUN / "summary.json"
    place.write_text(place.read_text().replace('"max": 4', '"max": 5', 1))
    (told,) = level(out, "numbers").wrong
    assert told.startswith("run-001/summary.json: latency_ns.max: 5")


#: Texts that must be nowhere in a release.
SECRETS = ("lab.example.org", "operator77", "id_lab", "admin77", "BMC_SECRET", "10.9.8.7", "/home/")


def secret_testbed(folder: Path) -> None:
    """Give an experiment a testbed of hosts with addresses, users, keys and passwords."""
    testbed = yaml.safe_load(THREE_HOSTS.read_text())
    for name, node in testbed["nodes"].items():
        host = "10.9.8.7" if name == "stamp" else f"{name}.lab.example.org"
        node["ssh"] = {"host": host, "user": "operator77", "key": "/home/jane/.ssh/id_lab"}
        password = {"environment": "BMC_SECRET"}
        power = {"host": f"bmc-{name}.lab.example.org", "user": "admin77", "password": password}
        node["power"] = {"kind": "ipmi", **power}
        url = f"https://pdu-{name}.lab.example.org"
        node["meter"] = {"kind": "outlet", "model": "gude", "url": url, "outlet": 1}
        node["meter"] |= {"user": "admin77", "password": password}
    (folder / "testbed.yml").write_text(yaml.safe_dump(testbed))
    (folder / "plan.yml").write_text(f"{PLAN}testbed: testbed.yml\n")
    plan, _ = load(folder / "plan.yml")
    record = json.loads((folder / "experiment.json").read_text())
    record["plan"] = plan.model_dump(mode="json")
    record["command"] = ["/home/jane/bin/tailtrim", "run", "/home/jane/plan.yml"]
    (folder / "experiment.json").write_text(json.dumps(record))
    told = {"meter": "gude https://pdu-dut.lab.example.org outlet 1"}
    (folder / "run-000" / "energy.json").write_text(json.dumps({"nodes": {"dut": told}}))
    logs = folder / "run-000" / "logs"
    logs.mkdir()
    (logs / "dut.log").write_text("connected to dut.lab.example.org:22 from 10.9.8.7\n")


def test_a_testbed_is_released_without_secrets(experiment: Path, tmp_path: Path) -> None:
    mine = copy_of(experiment, tmp_path)
    secret_testbed(mine)
    out = tmp_path / "out"
    assert release(mine, out, ReleaseOptions()) == []
    found = [
        (name, secret)
        for name, text in texts(out).items()
        for secret in SECRETS
        if secret.encode() in text
    ]
    assert found == []
    told = yaml.safe_load((out / "experiment" / "testbed.yml").read_text())
    assert told["nodes"]["gen"]["ssh"] == {"host": "gen.invalid"}
    assert (
        "dut.invalid:22 from stamp.invalid"
        in (out / "experiment" / "run-000" / "logs" / "dut.log").read_text()
    )
    assert (out / "experiment" / "testbed.svg").is_file()
    again = {one.name: one.verdict for one in verify(out)}
    assert again["figures"] == "pass"


def key(folder: Path, name: str) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed (Debian package openssh-client)")
    place = folder / name
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(place)]
    subprocess.run(["/usr/bin/env", *words], check=True)
    return place


def test_a_signature_holds_until_something_changes(
    experiment: Path, tmp_path: Path, sealed: Any
) -> None:
    mine, other = key(tmp_path, "mine"), key(tmp_path, "other")
    out = tmp_path / "out"
    release(experiment, out, ReleaseOptions(captures=False, sign=mine))
    found = level(out, "files")
    assert found.wrong == ()
    assert re.search(r"key SHA256:\S+, of the release", found.notes[0])
    signers = tmp_path / "signers"
    for public, holds in ((mine, True), (other, False)):
        words = public.with_suffix(".pub").read_text().split()[:2]
        signers.write_text(f"jane@example.org {' '.join(words)}\n")
        (one, *_) = verify(out, signers=signers, only=["files"])
        assert (one.wrong == ()) is holds
    assert b"PRIVATE" not in b"".join(texts(out).values())
    (out / RUN / "outcome.json").write_text("{}")
    sealed(out)
    told = level(out, "files").wrong
    assert any("SHA256SUMS.sig: does not hold" in one for one in told)
    (out / "SHA256SUMS.sig").unlink()
    assert "SHA256SUMS.sig: missing" in level(out, "files").wrong


def test_a_wheel_of_another_version_is_refused(experiment: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "tailtrim-9.9.9-py3-none-any.whl"
    wheel.write_bytes(b"")
    with pytest.raises(ReleaseError, match=rf"9\.9\.9.*tailtrim {re.escape(VERSION)}"):
        release(experiment, tmp_path / "out", ReleaseOptions(wheel=wheel))


def test_a_wheel_is_what_readers_install(experiment: Path, tmp_path: Path) -> None:
    wheel = tmp_path / f"tailtrim-{VERSION}-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    release(experiment, tmp_path / "out", ReleaseOptions(captures=False, wheel=wheel))
    told = (tmp_path / "out" / "README.md").read_text()
    assert f"venv/bin/pip install 'software/{wheel.name}[pictures]'" in told
    assert (tmp_path / "out" / "software" / wheel.name).read_bytes() == b"wheel"


def test_every_link_of_the_front_page_leads_somewhere(released: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (released / "README.md").read_text("utf-8"))
    assert {"report/report.html", "report/figures", "experiment", "SHA256SUMS"} <= {*links}
    assert "claims.yml" not in links
    assert [link for link in links if not (released / link).exists()] == []


def test_the_front_page_says_of_which_runs_captures_are_there(released: Path) -> None:
    told = (released / "README.md").read_text("utf-8")
    assert "Captures: of all runs.\n" in told


def test_the_report_shows_what_came_of_each_run(tmp_path: Path) -> None:
    mine = small_experiment(tmp_path)
    record = json.loads((mine / "experiment.json").read_text())
    record["outcomes"][1] |= {"failed": "<b>it broke</b>"}
    (mine / "experiment.json").write_text(json.dumps(record))
    shutil.rmtree(mine / "run-001")
    release(mine, tmp_path / "out", ReleaseOptions())
    page = (tmp_path / "out" / "report" / "report.html").read_text()
    assert "failed: &lt;b&gt;it broke&lt;/b&gt;" in page
    assert "<b>it broke" not in page
    assert "2 runs, 1 of them with a result" in (tmp_path / "out" / "README.md").read_text()
    (note,) = level(tmp_path / "out", "grid").notes
    for fact in ("run-001 (forward rate=20000)", "failed: <b>it broke</b>"):
        assert fact in note


def test_an_experiment_with_factors_has_their_page(tmp_path: Path) -> None:
    varied = PLAN.replace("preset: forward", "preset: forward, work_ns: $work")
    mine = small_experiment(tmp_path, plan=f"{varied}factors: {{work: [0, 1000]}}\n")
    out = tmp_path / "out"
    release(mine, out, ReleaseOptions())
    assert (out / "report" / "factors.md").is_file()
    assert level(out, "figures").told == "values of 1 figures"


def test_negative_latencies_are_not_derived_from_samples(tmp_path: Path) -> None:
    mine = small_experiment(tmp_path, earlier_ns=3_100)
    out = tmp_path / "out"
    release(mine, out, ReleaseOptions(captures=False))
    found = level(out, "numbers")
    assert found.wrong == ()
    for fact in ("run-000 and 1 more", "no captures", "negative latencies"):
        assert fact in found.skipped[0]


def test_runs_without_samples_are_released(tmp_path: Path) -> None:
    mine = small_experiment(tmp_path, plan=PLAN.replace("skip_s: 0.01", "skip_s: 0.9"))
    record = json.loads((mine / "experiment.json").read_text())
    doubts = ["no packet passed the device under test"]
    for outcome in record["outcomes"]:
        outcome["invalid"] = doubts
        (mine / outcome["run"] / "outcome.json").write_text(json.dumps(outcome))
    (mine / "experiment.json").write_text(json.dumps(record))
    release(mine, tmp_path / "out", ReleaseOptions())
    release(mine, tmp_path / "samples", ReleaseOptions(captures=False))
    assert wrong(tmp_path / "samples") == []


def test_a_boot_line_that_is_not_that_of_the_plan_is_found(tmp_path: Path, sealed: Any) -> None:
    booted = PLAN.replace("preset: forward", "preset: forward, node: vm")
    booted = booted.replace("[10000, 20000]", "[10000]")
    boot = "boot: {kernel: trixie/rt, cmdline: quiet}\n"
    out = tmp_path / "out"
    release(small_experiment(tmp_path, plan=f"{booted}{boot}"), out, ReleaseOptions(captures=False))
    assert wrong(out) == []
    place = out / RUN / "nodes.json"
    place.write_text(place.read_text().replace('"quiet"', '"debug"'))
    sealed(out)
    assert any(re.match("run-001: nodes.json: .*without quiet", one) for one in wrong(out))


def test_where_the_meter_of_this_machine_is_stays_with_its_owner() -> None:
    meter = {"kind": "outlet", "model": "gude", "url": "https://pdu.lab.example.org", "outlet": 1}
    redaction = Redaction({"testbed": "local", "energy": {"meter": meter}})
    told = redaction.text("energy: {meter: {url: https://pdu.lab.example.org}}")
    assert told == "energy: {meter: {url: https://meter.invalid}}"


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("/home/me/plan.yml", "plan.yml"),
        ("--out=/home/me/results", "--out=results"),
        ("-o/home/me/results", "-oresults"),
        ("loadgen:/srv/in.pcap", "loadgen:in.pcap"),
        ("ingress=/srv/in.pcap,/srv/more.pcap", "ingress=in.pcap,more.pcap"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("results/run-000", "results/run-000"),
    ],
)
def test_a_published_command_has_no_paths_of_the_machine(word: str, kept: str) -> None:
    redaction = Redaction({"testbed": "local"})
    assert redaction.record({"command": ["tailtrim", "run", word]})["command"][2] == kept
