// Keeps the page up to date: markup from the server replaces the sections of the page.
"use strict";

const live = document.getElementById("live");
const AWAY = "not connected: these figures may be old";

function say(words) {
  if (live.textContent !== words) live.textContent = words;
}

// Replace the content of a section if it changed; keep the focus and scroll positions.
function swap(section, markup) {
  if (section.dataset.seen === markup) return;
  section.dataset.seen = markup;
  const parsed = new DOMParser().parseFromString(markup, "text/html");
  const focused = section.contains(document.activeElement) ? way(section, document.activeElement) : null;
  const scrolled = [...section.querySelectorAll("[tabindex]")].map((each) => each.scrollTop);
  section.replaceChildren(...parsed.body.childNodes);
  [...section.querySelectorAll("[tabindex]")].forEach((each, place) => {
    each.scrollTop = scrolled[place] || 0;
  });
  if (focused !== null) follow(section, focused)?.focus({ preventScroll: true });
}

// The path from a section down to an element, as indices of children.
function way(section, element) {
  const places = [];
  for (let each = element; each !== section; each = each.parentElement) {
    places.unshift([...each.parentElement.children].indexOf(each));
  }
  return places;
}

function follow(section, places) {
  return places.reduce((element, place) => element?.children[place], section);
}

// A browser reconnects on its own unless it was refused: then the page retries.
function watch(element) {
  const source = new EventSource(element.dataset.stream);
  source.addEventListener("open", () => say("live"));
  source.addEventListener("parts", (event) => {
    for (const [name, markup] of Object.entries(JSON.parse(event.data))) {
      const section = document.getElementById(`part-${name}`);
      if (section) swap(section, markup);
    }
    say("live");
  });
  source.addEventListener("trouble", (event) => say(JSON.parse(event.data).message));
  source.addEventListener("error", () => {
    say(AWAY);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => watch(element), 5000);
  });
}

async function refresh(section) {
  try {
    const reply = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!reply.ok) throw new Error(reply.statusText);
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fresh = page.getElementById(section.id);
    if (fresh) swap(section, fresh.innerHTML);
    say("live");
  } catch {
    say(AWAY);
  }
}

for (const element of document.querySelectorAll("[data-stream]")) watch(element);
for (const section of document.querySelectorAll("[data-refresh]")) {
  section.dataset.seen = section.innerHTML;
  setInterval(() => document.hidden || refresh(section), 1000 * section.dataset.refresh);
}
