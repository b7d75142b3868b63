
"use strict";
(() => {
  const tip = document.getElementById("tip");
  const hide = () => { tip.hidden = true; };
  const show = (mark, x, y) => {
    const title = mark.querySelector(":scope > title");
    if (title) { mark.dataset.tip = title.textContent; title.remove(); }
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(6, y - box.height - 12) : y + 18) + "px";
  };
  const over = (event) => {
    const mark = event.target.closest("svg [tabindex]");
    if (mark) show(mark, event.clientX, event.clientY); else hide();
  };
  addEventListener("pointermove", over);
  addEventListener("pointerdown", over);
  addEventListener("scroll", hide, { passive: true });
  const dress = () => document.querySelectorAll(".copy").forEach((button) => { button.hidden = false; });
  addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const code = button.parentNode.querySelector("code");
    try { await navigator.clipboard.writeText(code.textContent); } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  dress();
  if (!document.documentElement.dataset.live) return;
  let version = document.documentElement.dataset.live;
  const lost = (is) => { const chip = document.getElementById("lost"); if (chip) chip.hidden = !is; };
  const refresh = async () => {
    try {
      const answer = await fetch("news?since=" + encodeURIComponent(version), { cache: "no-store" });
      if (answer.status === 200) {
        const text = await answer.text();
        version = answer.headers.get("X-Version") || "";
        const chosen = [...document.querySelectorAll("input:checked")].map((input) => input.id);
        const [x, y] = [scrollX, scrollY];
        const scrolled = [...document.querySelectorAll(".scroll, pre")].map((box) => box.scrollLeft);
        const main = new DOMParser().parseFromString(text, "text/html").querySelector("main");
        document.querySelector("main").replaceWith(main);
        chosen.forEach((id) => { const input = document.getElementById(id); if (input) input.checked = true; });
        document.querySelectorAll(".scroll, pre").forEach((box, k) => { box.scrollLeft = scrolled[k] || 0; });
        scrollTo(x, y);
        hide();
        dress();
      }
      lost(answer.status >= 400);
    } catch { lost(true); }
    setTimeout(refresh, 2000);
  };
  setTimeout(refresh, 2000);
})();
