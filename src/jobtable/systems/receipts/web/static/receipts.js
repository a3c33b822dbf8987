// Colours the boxes of words by label or validation status, and fills the legend.

const hues = [250, 150, 20, 200, 320, 90, 50, 280, 170, 0, 220, 120];
const ofStatus = { VALID: 150, INVALID: 0, NEEDS_REVIEW: 40, PENDING: 220, NONE: 260 };

function paint(section) {
  const by = section.querySelector("[data-colour-by]").value;
  const words = [...section.querySelectorAll(".word-labelled")];
  const names = [...new Set(words.map((word) => word.dataset[by]))].sort();
  const hueOf = (name) => (by === "status" ? ofStatus[name] ?? 300 : hues[names.indexOf(name) % hues.length]);
  for (const word of words) word.style.setProperty("--hue", hueOf(word.dataset[by]));
  const legend = section.querySelector("[data-legend]");
  legend.replaceChildren(
    ...names.map((name) => {
      const entry = document.createElement("li");
      const box = document.createElement("span");
      box.className = "legend-box";
      box.style.setProperty("--hue", hueOf(name));
      entry.append(box, name.toLowerCase().replaceAll("_", " "));
      return entry;
    }),
  );
}

for (const choice of document.querySelectorAll("[data-colour-by]")) {
  const section = choice.closest("section");
  choice.addEventListener("change", () => paint(section));
  paint(section);
}
