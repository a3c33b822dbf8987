"""The map of a conversation in a browser."""

from __future__ import annotations

from tests.web.browsing import Watched
from tests.web.world import World


def test_the_legend_of_the_map_lies_below_it_and_hides_topics(watched: Watched, world: World) -> None:
    page = watched.page
    page.goto(f"/conversations/{world.made['conversation']}")
    name = page.locator(".legend-name").first
    name.wait_for()
    chart, legend = page.locator(".chart").bounding_box(), page.locator(".legend").bounding_box()
    assert chart is not None
    assert legend is not None
    assert legend["y"] >= chart["y"] + chart["height"]
    shown = page.locator(".scatterlayer .trace").count()
    name.click()
    assert name.get_attribute("aria-pressed") == "false"
    page.wait_for_function("count => document.querySelectorAll('.scatterlayer .trace').length === count", arg=shown - 1)


def test_a_plot_is_whole_when_the_window_gets_another_size(watched: Watched, world: World) -> None:
    page = watched.page
    page.goto(f"/conversations/{world.made['conversation']}")
    page.locator(".main-svg").first.wait_for()
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function("() => document.querySelector('.main-svg').clientWidth < 700")
    sizes = "[...document.querySelectorAll('.chart, .main-svg')].map(each => each.clientHeight)"
    assert set(page.evaluate(sizes)) == {560}


def test_nothing_moves_when_a_plot_is_drawn(watched: Watched, world: World) -> None:
    page = watched.page
    page.add_init_script("""
        window.moved = 0;
        const note = (list) => list.getEntries().forEach((entry) => (window.moved += entry.value));
        new PerformanceObserver(note).observe({ type: "layout-shift", buffered: true });
    """)
    page.goto(f"/conversations/{world.made['conversation']}")
    page.locator(".legend-name").first.wait_for()
    assert page.evaluate("window.moved") < 0.1
