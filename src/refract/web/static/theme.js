// Runs before the first paint, so that a remembered theme never flashes. Classic script on purpose: modules come too late.
(function () {
  var root = document.documentElement;
  root.classList.add("js");
  try {
    var theme = localStorage.getItem("refract-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch (blocked) {
    // Storage refused (private window, policy): the system's choice stands.
  }
})();
