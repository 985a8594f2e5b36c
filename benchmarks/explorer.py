"""Measure the explorer in a real browser: from pointer to probability, from click to drawing.

    make bench-explorer

The explorer is a process of its own on loopback, with an FCN on GunPoint; the page runs in
Chromium without a window. Times are the browser's own: from the time stamp of the pointer event to
the first frame after the one that shows the new bar. Writes benchmarks/results/explorer.md.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import contrafact as cf
from _common import accuracy, conditions, fit_fcn, make_parser, table_head, table_row, write_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: goals: milliseconds from move to probability at the median and at the 95th percentile, and from
#: click to drawing
GOALS = {"median": 50, "95 %": 150, "drawing": 200}
SINGLE_MOVES = 250
STREAMED_MOVES = 600
EXPLANATIONS = 30
#: pause between moves of a hand that goes on and on, in milliseconds
FRAME = 16

# The tag of a question is that of the newest move when it is sent; the bars carry the tag that they
# show.
CLOCK = """
window.measured = { moves: [], drawings: [] };
let lastMove = 0;
let click = 0;
const asked = new Map();
addEventListener("pointermove", (event) => { lastMove = event.timeStamp; }, true);
addEventListener("click", (event) => { click = event.timeStamp; }, true);
const send = window.fetch;
window.fetch = (path, options) => {
  if (path === "api/predict") asked.set(String(JSON.parse(options.body).tag), lastMove);
  return send(path, options);
};
addEventListener("DOMContentLoaded", () => {
  let isDrawn = false;
  new MutationObserver(() => {
    const bars = document.querySelector(".probabilities");
    const start = asked.get(bars?.dataset.tag);
    if (start !== undefined) {
      asked.delete(bars.dataset.tag);
      requestAnimationFrame((now) => measured.moves.push(now - start));
    }
    const hasGuide = document.querySelector(".editor path.guide") !== null;
    if (hasGuide && !isDrawn) requestAnimationFrame((now) => measured.drawings.push(now - click));
    isDrawn = hasGuide;
  }).observe(document.body, { subtree: true, childList: true, attributeFilter: ["data-tag"] });
});
"""


def serve() -> None:
    """Train the model and serve the page until the process is ended."""
    data = cf.load_dataset("GunPoint")
    model = fit_fcn(data)
    explorer = cf.explore(model, data)
    print(accuracy(model, data.X_test, data.y_test), explorer.url, flush=True)
    explorer.wait()


@contextmanager
def served() -> Iterator[tuple[float, str]]:
    """Run the server in another process: (test accuracy of the model, address)."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            share, url = process.stdout.readline().split()
            yield float(share), url
        finally:
            process.terminate()


def handle(page: Any) -> tuple[float, float, float]:
    """Return a place on the line to drag, and how far it may go up and down."""
    box = page.locator(".editor .chart svg").bounding_box()
    return box["x"] + box["width"] * 0.45, box["y"] + box["height"] * 0.5, box["height"] * 0.3


def measure_single_moves(page: Any) -> list[float]:
    """Move the pointer, wait for the probability, move again."""
    x, y, reach = handle(page)
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(SINGLE_MOVES):
        page.mouse.move(x, y + reach * math.sin(k / 5))
        page.wait_for_timeout(60)
    page.mouse.up()
    return collect(page, "moves")


def measure_streamed_moves(page: Any) -> list[float]:
    """Move the pointer with every frame, whatever the page has answered."""
    x, y, reach = handle(page)
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(STREAMED_MOVES):
        page.mouse.move(x, y + reach * math.sin(k / 20))
        page.wait_for_timeout(FRAME)
    page.mouse.up()
    page.wait_for_timeout(500)
    return collect(page, "moves")


def measure_drawings(page: Any) -> list[float]:
    """Ask what would change the decision about many series, one after the other."""
    for _ in range(EXPLANATIONS):
        page.get_by_role("button", name="What would change the decision?").click()
        page.wait_for_selector(".way .told")
        page.get_by_role("button", name="next").click()
        page.wait_for_selector(".answer", state="hidden")
        page.wait_for_timeout(100)
    return collect(page, "drawings")


def collect(page: Any, kind: str) -> list[float]:
    """Return what the page measured, and begin anew."""
    found: list[float] = page.evaluate(f"measured.{kind}.splice(0)")
    return found


def quantile(times: list[float], share: float) -> float:
    return float(np.quantile(times, share))


def line(words: str, times: list[float], goals: str) -> str:
    figures = [f"{quantile(times, share):.0f} ms" for share in (0.5, 0.95, 1)]
    return table_row(words, len(times), *figures, goals)


def main() -> None:
    from playwright.sync_api import sync_playwright

    found = os.environ.get("CONTRAFACT_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)))
    load = os.getloadavg()[0]
    with served() as (share, url), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.add_init_script(CLOCK)
        page.goto(url)
        page.wait_for_selector(".says strong")
        page.wait_for_timeout(3000)
        single = measure_single_moves(page)
        streamed = measure_streamed_moves(page)
        page.get_by_role("button", name="next").click()
        page.wait_for_timeout(500)
        drawings = measure_drawings(page)
        version = browser.version
        browser.close()
    moves_goal = f"≤ {GOALS['median']} ms at the median, ≤ {GOALS['95 %']} ms at 95 %"
    write_page(
        "explorer.md",
        conditions("make bench-explorer"),
        "",
        "# The explorer's page, measured in the browser",
        "",
        f"FCN on GunPoint (150 points, test accuracy {share:.2f}); the server in a process of its "
        f"own, the page in Chromium {version} without a window, both on {os.cpu_count()} cores "
        f"(load average {load:.1f} at the start). Each time is from the time stamp of the pointer "
        "event to the frame after the one that shows the answer.",
        "",
        *table_head("what", "times", "median", "95 %", "longest", "goal"),
        line("a move of the pointer → its probability, one move at a time", single, moves_goal),
        line("the same while the pointer moves with every frame", streamed, moves_goal),
        line(
            "click on “What would change the decision?” → first drawing (the guide)",
            drawings,
            f"≤ {GOALS['drawing']} ms",
        ),
        "",
        f"One question is under way at a time, and of the moves meanwhile the newest is asked "
        f"about next: the {STREAMED_MOVES} moves with every frame had {len(streamed)} answers.",
        "",
    )


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--serve", action="store_true", help="serve the page and do nothing else")
    if parser.parse_args().serve:
        serve()
    else:
        main()
