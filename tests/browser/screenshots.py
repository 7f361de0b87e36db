"""Screenshots of pages at 1280 and 360 px, light and dark.

``python tests/browser/screenshots.py --site site --out shots cards/layer-norm/ notebooks/``
"""

from __future__ import annotations

import argparse
from pathlib import Path

from chromium import served, started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", type=Path, default=Path("site"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--viewport", action="store_true", help="first screen only")
    parser.add_argument("pages", nargs="+", help="paths below the site; '' is the home page")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with served(options.site) as address, started(address) as browser:
        for width in (1280, 360):
            for scheme in ("light", "dark"):
                with browser.context(width=width, scheme=scheme) as context:
                    page = context.pages[0]
                    for path in options.pages:
                        page.goto(address + path)
                        page.wait_for_load_state("networkidle")
                        name = path.strip("/").replace("/", "-") or "home"
                        target = options.out / f"{name}-{width}-{scheme}.png"
                        page.screenshot(path=target, full_page=not options.viewport)
                        print(target)


if __name__ == "__main__":
    main()
