// Light or dark: as the system says, or as was chosen.

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function makeThemeButton() {
  const words = () => (isDark() ? "light page" : "dark page");
  const button = make("button", { type: "button", id: "theme" }, words());
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    button.textContent = words();
  });
  return button;
}
