// The form of a link: whether a name is free, as one types; the page's title, if one likes it; times in one's own zone.

const QUIET = 250;

async function availability(input, line) {
  const name = input.value.trim().replace(/^\//, "");
  line.dataset.state = "";
  line.textContent = "";
  if (!name) return;
  const answer = await fetch(`/api/v1/names/${encodeURIComponent(name)}`);
  if (!answer.ok || input.value.trim().replace(/^\//, "") !== name) return;
  const found = await answer.json();
  line.dataset.state = found.available ? "free" : "taken";
  line.textContent = found.available ? `/${name} is free.` : found.detail;
}

function watchNames(within) {
  for (const input of within.querySelectorAll("[data-name-check]:not([data-watched])")) {
    input.dataset.watched = "";
    const line = document.getElementById(input.dataset.nameCheck);
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => availability(input, line).catch(() => {}), QUIET);
    });
    if (input.value) availability(input, line).catch(() => {});
  }
}

// The server speaks UTC; the field shows the time of whoever looks at it, and says how far that is away.
function watchTimes(within) {
  for (const input of within.querySelectorAll("[data-local-time]:not([data-watched])")) {
    input.dataset.watched = "";
    const zone = input.form.querySelector("[data-local-zone]");
    if (input.value && zone.value === "0") {
      const at = new Date(`${input.value}Z`);
      input.value = new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
    }
    const tell = () => { zone.value = String((input.value ? new Date(input.value) : new Date()).getTimezoneOffset()); };
    tell();
    input.addEventListener("input", tell);
    const hint = document.getElementById(`${input.id}-hint`);
    if (hint) hint.textContent = "In your own time zone.";
  }
}

function watch(within) {
  watchNames(within);
  watchTimes(within);
}

// What we have found out is offered, never put in by itself.
document.addEventListener("click", (event) => {
  const offer = event.target.closest("[data-fill]");
  const field = offer && document.getElementById(offer.dataset.fill);
  if (!field) return;
  field.value = offer.dataset.fillWith;
  field.focus();
});

document.addEventListener("refract:shown", (event) => watch(event.detail.within));
watch(document);
