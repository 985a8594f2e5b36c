// The page of an audit is there before any script; this adds the choice of light or dark.

document.querySelector("header").append(makeThemeButton());
