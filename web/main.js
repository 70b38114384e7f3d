// Puts the page together: views, theme, keys.
import { Chat } from "./chat.js";
import { Monitor } from "./monitor.js";
import { build_settings } from "./settings.js";
import { get_json } from "./api.js";

const by_id = (id) => document.getElementById(id);
const settings = by_id("settings");
build_settings(settings);
const chat = new Chat(by_id("messages"), by_id("composer"));
const monitor = new Monitor(by_id("view-monitor"));

function show_view(name) {
  for (const view of ["chat", "monitor"]) {
    const tab = by_id("tab-" + view);
    tab.setAttribute("aria-selected", String(view === name));
    tab.tabIndex = view === name ? 0 : -1;
    by_id("view-" + view).hidden = view !== name;
  }
  if (name === "monitor") monitor.start();
  else monitor.stop();
  history.replaceState(null, "", name === "chat" ? "/" : "/#" + name);
}
for (const view of ["chat", "monitor"]) {
  by_id("tab-" + view).addEventListener("click", () => show_view(view));
  by_id("tab-" + view).addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = view === "chat" ? "monitor" : "chat";
    show_view(other);
    by_id("tab-" + other).focus();
  });
}

function toggle_settings(open = settings.hidden) {
  settings.hidden = !open;
  by_id("open-settings").setAttribute("aria-expanded", String(open));
  if (open) settings.querySelector("select, input, textarea").focus();
  else by_id("open-settings").focus();
}
by_id("open-settings").addEventListener("click", () => toggle_settings());
by_id("new-chat").addEventListener("click", () => (show_view("chat"), chat.clear()));

function stored(name, value) {
  try {
    return value === undefined ? localStorage.getItem(name) : localStorage.setItem(name, value);
  } catch {
    return null;
  }
}
const set_theme = (theme) => {
  if (theme) document.documentElement.dataset.theme = theme;
};
set_theme(stored("forebay.theme"));
by_id("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  set_theme(dark ? "light" : "dark");
  stored("forebay.theme", dark ? "light" : "dark");
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (chat.running) chat.stop();
    else if (!settings.hidden) toggle_settings(false);
  } else if (event.key === "," && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    toggle_settings();
  } else if (event.code === "KeyN" && event.ctrlKey && event.altKey) {
    event.preventDefault();
    show_view("chat");
    chat.clear();
  }
});

show_view(location.hash === "#monitor" ? "monitor" : "chat");
get_json("/v1/models").then((list) => (by_id("model").textContent = list.data?.[0]?.id || ""), () => {});
