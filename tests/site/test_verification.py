"""The page 公式验证: what is checked, and everything that is not."""

import json

from flower_site.notebook_rules import Uncompared
from flower_site.verification import Row, environment, verification_json, verification_markdown

CHECKED = Row(
    slug="scaled",
    latex="y = x\n\n+ 1",
    uri="cards/a.md",
    title="甲",
    line=3,
    status="checked",
    call="f(x)",
    draws=25,
    errors={"float64 cpu": 1.5e-15, "float32 cpu": 0.0},
    notes=("· 读作内积",),
)
SIDES = Row("sides", "a = b", "cards/a.md", "甲", 5, "checked", draws=25)
UNCHECKED = Row("other", "y", "cards/b.md", "乙", 9, "unchecked", reason="概率记号")


def test_the_page_tells_what_was_compared() -> None:
    page = verification_markdown([CHECKED, UNCHECKED], {"Python": "3.11"})
    assert "共 2 个公式，已验证 1 个（50%），未验证 1 个。" in page
    assert "### scaled {#scaled}\n\n$$\ny = x\n+ 1\n$$" in page
    assert "[甲](cards/a.md#formula-scaled)" in page
    assert "<code>f(x)</code>" in page
    assert "25 次" in page
    assert "float64 cpu：1.5e-15；float32 cpu：0" in page
    assert "读法：· 读作内积" in page
    assert page.index("## 未验证") < page.index("**未验证**：概率记号")


def test_an_equation_without_code_is_said_to_be_compared_side_by_side() -> None:
    page = verification_markdown([SIDES], {})
    assert "- 等式各边互相比较" in page
    assert "<code></code>" not in page


def test_the_page_without_formulas() -> None:
    page = verification_markdown([], environment())
    assert "共 0 个公式" in page
    assert "没有未验证的公式。" in page


def test_cells_whose_outputs_nobody_compares_are_listed_with_their_reason() -> None:
    assert "## 笔记本里输出未核对的单元\n\n没有。" in verification_markdown([], {})
    cells = [("a", "speed", Uncompared("nbval-ignore-output", "耗时随机器而变"))]
    page = verification_markdown([], {}, cells)
    assert "[a](notebooks/a.ipynb)，单元 speed（`nbval-ignore-output`）：耗时随机器而变" in page
    data = json.loads(verification_json([], {}, cells))
    assert data["uncompared_cells"] == [
        {"notebook": "a", "cell": "speed", "tag": "nbval-ignore-output", "reason": "耗时随机器而变"}
    ]


def test_the_same_as_data() -> None:
    data = json.loads(verification_json([CHECKED], {"Python": "3.11"}))
    assert data["environment"] == {"Python": "3.11"}
    assert data["formulas"][0]["errors"] == {"float64 cpu": 1.5e-15, "float32 cpu": 0.0}
