"""The page of `labkit.step` without a kernel: it shows what happened, forwards, backwards and by keys."""

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import labkit
import simt

pytestmark = pytest.mark.browser

TILED = """extern "C" __global__ void tiled(const float* A, const float* B, float* C, int K, int N)
{
    __shared__ float a[8][8];
    __shared__ float b[8][8];
    int row = blockIdx.y * 8 + threadIdx.y;
    int col = blockIdx.x * 8 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < K; t += 8) {
        a[threadIdx.y][threadIdx.x] = A[row * K + t + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(t + threadIdx.y) * N + col];
        __syncthreads();
        for (int k = 0; k < 8; ++k)
            sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        BARRIER
    }
    if (row == 3)
        sum = -sum;
    C[row * N + col] = sum;
}"""
SUM_LINE, NEGATE_LINE, BARRIER_LINE = 13, 17, 11

# What the page shows, apart from the keyboard's focus and what is scrolled.
STATE = """() => {
    const root = document.querySelector("section.lks");
    const canvases = [...root.querySelectorAll("canvas")].map(each => each.toDataURL());
    const marks = [...root.querySelectorAll("[class*=lks-c]")];
    const marked = marks.map(each => each.className + each.textContent);
    return [root.innerText, root.querySelector("input[type=range]").value, marked, canvases];
}"""
# The table of lanes: {column: [text of each lane]}.
TABLE = """() => {
    const table = document.querySelector(".lks-lanes");
    const names = [...table.tHead.rows[0].cells].map(each => each.textContent);
    const rows = [...table.tBodies[0].rows].map(row => [...row.cells].map(each => each.textContent));
    return Object.fromEntries(names.map((name, i) => [name, rows.map(row => row[i])]));
}"""
# The value of every cell of an object at time t, null where it is unknown.
CELLS = """([name, t]) => {
    const {memory} = document.querySelector("section.lks").lks.recording;
    const object = memory.objects.find(each => each.name === name), view = new DataView(new ArrayBuffer(4));
    return Array.from({length: object.count}, (_, index) => {
        const found = memory.value(object, index, t);
        view.setUint32(0, found.low);
        return found.known ? view.getFloat32(0) : null;
    });
}"""


def launched(function, barrier=True, **options):
    code = TILED.replace("BARRIER", "__syncthreads();" if barrier else "")
    kernel = simt.RawModule(code=code).get_function("tiled")
    numbers = np.random.default_rng(0)
    a, b = (numbers.random((16, 16), dtype=np.float32) for _ in range(2))
    args = (a, b, np.zeros_like(a), np.int32(16), np.int32(16))
    return function(kernel, (2, 2), (8, 8), args, at=(1, 0), **options)


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simt")


@pytest.fixture
def show(page, tmp_path):
    """Open a view as an exported page does, offline; gives the view's element."""

    def show(view):
        file = tmp_path / "step.html"
        file.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>step</title>{view.html}</html>'
        )
        page.context.set_offline(True)
        page.goto(file.as_uri())
        page.wait_for_selector("section.lks")
        return page.locator("section.lks")

    return show


def act(page, code):
    return page.evaluate(
        f"(() => {{ const {{player, recording}} = document.querySelector('section.lks').lks; {code} }})()"
    )


def said(root):
    return root.locator(".lks-said").inner_text()


def test_the_values_are_those_of_the_trace(page, show):
    show(launched(labkit.step))
    trace = launched(labkit.trace)
    sums, accesses, steps = trace.values("sum"), trace.accesses, trace.steps
    for t in np.linspace(1, len(steps), 23).astype(int).tolist():
        act(page, f"player.go({t});")
        warp = int(steps.warp[t - 1])
        before = sums[(sums.event < t) & (sums.warp == warp)].groupby("lane").value.last()
        shown = page.evaluate(TABLE)["sum"]
        if shown[0] != "–":  # it lives
            assert [float(text) for text in shown] == pytest.approx(before.tolist(), rel=1e-4)
        for name in "abAC":
            of_it = accesses[accesses.array == name]
            written = of_it[(of_it.kind == "store") & (of_it.event < t)].groupby("address").value.last()
            read = of_it[of_it.kind == "load"].groupby("address").value.first()
            expected = written.combine_first(read)
            cells = [each for each in page.evaluate(CELLS, [name, t]) if each is not None]
            if name in "AC" or t > 200:  # the first load of a shared cell is not before its first store
                assert cells == pytest.approx(
                    [float(each) for each in expected.sort_index()][: len(cells)], rel=1e-6
                )


def test_forward_and_back_is_the_same_state(page, show):
    show(launched(labkit.step))
    count = act(page, "return recording.n")
    for t in np.linspace(count // 9, count - 400, 7).astype(int).tolist():
        act(page, f"player.go(recording.endOf({t}))")
        for verb in ("stepLine", "stepInstruction"):
            before = page.evaluate(STATE)
            act(page, f"player.{verb}(1)")
            between = page.evaluate(STATE)
            act(page, f"player.{verb}(-1)")
            assert page.evaluate(STATE) == before != between


def test_keys(page, show):
    root = show(launched(labkit.step, barrier=False))
    source = root.locator(".lks-lines")
    source.focus()
    page.keyboard.press("n")
    first = said(root)
    assert first.startswith("Warp 0, line 1:")
    page.keyboard.press("ArrowRight")
    assert said(root).startswith("Warp 0, line 5:")
    page.keyboard.press("p")
    assert said(root) == first
    page.keyboard.press("b")
    assert (
        said(root)
        == f"Warp 0, line {BARRIER_LINE}: 32 lanes come to the barrier; it waits there for the other warps."
    )
    page.keyboard.press("w")
    assert said(root).startswith("Warp 1, line 1:")
    # A line is chosen with the arrow keys; Enter and l run to it.
    act(page, f"player.chooseLine({NEGATE_LINE - 1})")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert said(root) == f"Warp 0, line {NEGATE_LINE}: 8 lanes set sum."
    states = page.evaluate(TABLE)["state"]
    assert states[24:] == ["active"] * 8 and set(states[:24]) == {"other path"}
    # Shift moves by instructions, Home and End to the ends, r to both sides of the race.
    at = act(page, "return player.t")
    page.keyboard.press("Shift+ArrowLeft")
    assert act(page, "return player.t") == at - 1
    page.keyboard.press("End")
    assert "it has finished" in said(root)
    page.keyboard.press("Home")
    assert "has not begun" in said(root)
    page.keyboard.press("r")
    sides = [act(page, "return player.t - 1")]
    page.keyboard.press("r")
    sides.append(act(page, "return player.t - 1"))
    assert sides == act(page, "return recording.head.findings[0].events")
    # The cell of the race is chosen: ] and [ go to its writes.
    page.keyboard.press("Home")
    page.keyboard.press("]")
    cell = act(page, "return recording.memory.cellName(player.cell.object, player.cell.index)")
    assert "write shared memory" in said(root)
    assert root.locator(".lks-readout").first.inner_text().startswith(f"{cell} = ")
    # Space plays and stops.
    page.keyboard.press(" ")
    root.get_by_text("pause").wait_for()
    page.keyboard.press(" ")
    root.get_by_role("button", name="play").wait_for()
    # In a menu the keys are the menu's own.
    at = act(page, "return player.t")
    root.get_by_label("Speed").focus()
    page.keyboard.press("n")
    page.keyboard.press("End")
    assert act(page, "return player.t") == at


def test_where_a_value_comes_from(page, show):
    root = show(launched(labkit.step))
    act(page, f"player.toLine(1, {SUM_LINE}); player.toLine(1, {SUM_LINE});")
    root.locator(".lks-lanes tbody tr").nth(10).locator("td[data-at]").nth(2).click()
    page.keyboard.press("f")
    tree = root.locator(".lks-tree").inner_text()
    assert "sum = " in tree and f"line {SUM_LINE}" in tree
    # Lane 10 is thread (2, 1): its row of a, its column of b, brought from the row and column of the block.
    assert "a[1][1] = " in tree and "written by thread (1, 1) at line 9" in tree
    assert "b[1][2] = " in tree and "written by thread (2, 1) at line 10" in tree
    assert "A[17] = " in tree and "B[26] = " in tree and "from before the launch" in tree
    root.locator(".lks-go", has_text="a[1][1]").first.click()
    assert said(root).startswith("Warp 0, line 9:")


def test_a_warp_can_be_chosen(page, show):
    root = show(launched(labkit.step))
    act(page, "player.go(recording.n >> 1)")
    root.get_by_label("follow").select_option("warp 1")
    for _ in range(5):
        root.locator(".lks-bar").get_by_role("button", name="one line on").click()
        assert said(root).startswith("Warp 1,")
    at = act(page, "return player.t - 1")
    assert act(page, f"return recording.warp[{at}]") == 1


@pytest.mark.parametrize("width", [1400, 800])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_accessed(page, show, width, scheme):
    page.set_viewport_size({"width": width, "height": 1000})
    page.emulate_media(color_scheme=scheme)
    root = show(launched(labkit.step, barrier=False))
    act(page, f"player.toLine(1, {SUM_LINE})")
    root.locator(".lks-lanes td[data-at]").first.click()
    page.keyboard.press("f")
    root.get_by_label("PTX").check()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(page, context=".lks").response["violations"]
    serious = [(each["id"], [node["html"][:160] for node in each["nodes"]]) for each in found]
    assert serious == []


def test_optimised_code_shows_registers(page, show):
    show(launched(labkit.step, optimised=True))
    act(page, f"player.toLine(1, {SUM_LINE})")
    table = page.evaluate(TABLE)
    assert any(name.startswith("%f") for name in table)
