"""`labkit.show_code` in JupyterLab and in a page without a kernel: links, keys, GPUs, accessibility."""

import subprocess
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe
from lab import open_notebook, run_all, write_notebook

from simt.compiler import nvdisasm

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(nvdisasm.program() is None, reason="no nvdisasm"),
]

SOURCE = """extern "C" __global__ void saxpy(float* y, const float* x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}"""
CELL = f"""import labkit, simt
kernel = simt.RawModule(code='''{SOURCE}''').get_function("saxpy")
labkit.show_code(kernel)"""
BOTH = "labkit.show_code(kernel, kernel.module.with_options(['-fmad=false']).get_function('saxpy'))"
THEMES = {1400: "JupyterLab Light", 800: "JupyterLab Dark"}


def lines(page, name):
    return page.locator(f".lkc-lines[data-name={name}]").first


def marked(page, name):
    return lines(page, name).locator(".lkc-on").all_inner_texts()


def serious(page):
    found = Axe().run(page, context=".lkc").response["violations"]
    return [
        (each["id"], [node["html"][:200] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def test_a_page_of_labkit_run_is_linked(page, tmp_path):
    write_notebook(tmp_path / "code.ipynb", CELL)
    command = [sys.executable, "-m", "labkit", "run", "code.ipynb", "--out", "out"]
    subprocess.run(command, cwd=tmp_path, check=True)
    page.context.set_offline(True)
    page.goto((tmp_path / "out" / "code.html").as_uri())
    # Pointing at an instruction marks its line of PTX and of the source.
    lines(page, "SASS").locator("span", has_text="FFMA").hover()
    assert "fma.rn.f32" in marked(page, "PTX")[0] and "a * x[i]" in marked(page, "source")[0]
    # A click on a line of the source marks all that it became.
    lines(page, "source").locator("span", has_text="a * x[i]").click()
    assert any("STG" in text for text in marked(page, "SASS")) and len(marked(page, "PTX")) > 3
    # Keys: one tab stop per column; arrows, Home and End move in it.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.name") == "PTX"
    page.keyboard.press("End")
    assert "ret;" in marked(page, "PTX")[0]
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    first = marked(page, "SASS")
    page.keyboard.press("ArrowDown")
    assert len(first) == 1 and marked(page, "SASS") != first
    active = lines(page, "SASS").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    assert serious(page) == []


@pytest.mark.parametrize("width", [1400, 800])
def test_in_jupyterlab(page, server, folder, width):
    write_notebook(folder / f"code{width}.ipynb", CELL, BOTH)
    page.set_viewport_size({"width": width, "height": 1000})
    open_notebook(page, server, f"code{width}.ipynb")
    page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: '{THEMES[width]}'}})")
    run_all(page)
    page.wait_for_function("document.querySelectorAll('.lkc').length === 2")
    one, both = page.locator(".lkc").all()
    for each in (one, both):
        assert each.evaluate("it => it.scrollWidth <= it.parentElement.clientWidth + 1")
    assert serious(page) == []
    # Keys that the notebook has commands for stay in the columns.
    lines(page, "source").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    assert one.is_visible() and marked(page, "SASS")
    # Another GPU: compiled in the kernel.
    one.get_by_label("GPU").select_option("T4")
    one.get_by_text("(sm_75)").wait_for()
    # Two kernels: the fused multiply-add has become two instructions.
    assert both.get_by_text("rows differ").is_visible()
    assert both.locator(".lkc-only, .lkc-other").count() >= 2
    page.screenshot(path=folder / f"code{width}.png")
