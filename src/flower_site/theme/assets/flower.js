// Two repairs of what the theme's script builds in the reader's browser.
(() => {
  // Boxes that scroll sideways can be reached by keyboard.
  const boxes =
    ".md-typeset__scrollwrap, .flower-notebook__output, .flower-notebook__table, .flower-diagram, .flower-math";
  const reachable = () => {
    for (const box of document.querySelectorAll(boxes)) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    }
  };
  // The copy buttons come each in a <nav> without a name: they are no places to navigate to.
  const unnamed = () => {
    for (const nav of document.querySelectorAll(".md-code__nav:not([role])")) {
      nav.setAttribute("role", "none");
    }
  };
  new MutationObserver(unnamed).observe(document.body, { childList: true, subtree: true });
  // Material publishes `document$`: it fires after each page, instant navigation included.
  document$.subscribe(() => requestAnimationFrame(() => requestAnimationFrame(reachable)));
  addEventListener("resize", reachable);
})();
