// The server's state, once a second while it is looked at.
import { element, svg } from "./dom.js";
import { get_json } from "./api.js";

const HISTORY = 120; // samples that a curve shows
const LONG = 5; // seconds in one pass, or waiting for a file, that are worth a word

const number = (value) => (value ?? 0).toLocaleString("en");
const percent = (value) => (100 * (value || 0)).toFixed(1) + " %";
const seconds = (value) => (value >= 10 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(3)) + " s";

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (value ||= 0; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return (unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)) + " " + units[unit];
}

export class Monitor {
  #root;
  #timer = null;
  #last = null; // { status, time }
  #rates = { decode: [], prompt: [], read: [] };

  constructor(root) {
    this.#root = root;
  }

  start() {
    if (this.#timer === null) {
      this.#timer = setInterval(() => this.#look(), 1000);
      this.#look();
    }
  }
  stop() {
    clearInterval(this.#timer);
    this.#timer = null;
    this.#last = null;
  }

  async #look() {
    if (document.hidden) return;
    try {
      const status = await get_json("/v1/status");
      const time = performance.now() / 1000;
      if (this.#last) this.#measure(this.#last.status, status, time - this.#last.time);
      this.#last = { status, time };
      this.#draw(status);
    } catch (error) {
      this.#root.replaceChildren(element("p", { class: "error", role: "alert" }, "No status: " + error.message));
    }
  }

  #measure(before, now, elapsed) {
    const rate = (tokens, time) => (time > 1e-6 ? tokens / time : 0);
    const push = (list, value) => {
      list.push(value);
      if (list.length > HISTORY) list.shift();
    };
    push(this.#rates.decode, rate(now.tokens.generated - before.tokens.generated, now.seconds.decode - before.seconds.decode));
    push(this.#rates.prompt, rate(now.tokens.prefilled - before.tokens.prefilled, now.seconds.prompt - before.seconds.prompt));
    push(this.#rates.read, rate((now.experts?.bytes_read || 0) - (before.experts?.bytes_read || 0), elapsed));
  }

  #draw(status) {
    const { tokens, answers, memory, experts, plan, windows } = status;
    const overall = (n, time) => (time > 0 ? (n / time).toFixed(1) + " tok/s overall" : "nothing yet");
    const now = (list) => (list.at(-1) ? list.at(-1).toFixed(1) + " tok/s" : "idle");
    const cards = [];
    if (windows?.now_seconds >= LONG)
      cards.push(element("p", { class: "card wide error", role: "status" }, "The engine has been at one thing for " + seconds(windows.now_seconds) + ": " + (windows.now || "a pass")));
    cards.push(
      card("Decoding", now(this.#rates.decode), overall(tokens.generated, status.seconds.decode), spark(this.#rates.decode)),
      card("Reading prompts", now(this.#rates.prompt), overall(tokens.prefilled, status.seconds.prompt), spark(this.#rates.prompt)),
      card("Reused prompt tokens", tokens.prompt ? percent(tokens.reused / tokens.prompt) : "none yet",
        number(tokens.reused) + " of " + number(tokens.prompt), meter(tokens.prompt ? tokens.reused / tokens.prompt : 0)),
      card("Queue", number(status.queue), number(answers.finished) + " answered, " + number(answers.cancelled) + " cancelled, " + number(answers.failed) + " failed"),
      card("First token", seconds(status.first_token_seconds?.p50 || 0), "median; 99 % within " + seconds(status.first_token_seconds?.p99 || 0)),
      card("Memory", bytes(memory.process_bytes), bytes(memory.reserved_bytes) + " reserved for state, buffers and experts"),
      card("Windows", windows?.count ? (windows.rows / windows.count).toFixed(1) + " rows" : "none yet", number(windows?.count) + " forward passes"));
    if (experts) {
      cards.push(
        card("Expert hits", percent(experts.hit_rate), number(experts.hits) + " hits, " + number(experts.misses) + " misses, " + number(experts.prefetch_used) + " read ahead and used", meter(experts.hit_rate)),
        card("Experts in memory", bytes(experts.resident_bytes), "of " + bytes(experts.budget_bytes) + ", " + number(experts.evictions) + " evicted", meter(experts.resident_bytes / experts.budget_bytes)),
        card("Read from disk", bytes(experts.bytes_read), bytes(this.#rates.read.at(-1) || 0) + "/s now, waited " + seconds(experts.wait_seconds || 0), spark(this.#rates.read)));
    }
    if (status.cache)
      cards.push(card("States on disk", bytes(status.cache.bytes), number(status.cache.files) + " files, " + number(tokens.loaded) + " tokens loaded, " + number(status.cache.saved) + " saved, " + number(status.cache.pruned) + " pruned"));
    if (status.drafts)
      cards.push(card("Drafts", percent(status.drafts.accepted / status.drafts.offered), number(status.drafts.accepted) + " of " + number(status.drafts.offered) + " tokens accepted"));
    cards.push(slots(status.slots || []));
    if (plan)
      cards.push(element("div", { class: "card wide" }, element("h2", {}, "Plan: " + plan.tokens_per_second.toFixed(1) + " tok/s and " + percent(plan.hit_rate) + " hits expected"),
        element("pre", {}, plan.text)));
    const m = status.model;
    cards.push(element("div", { class: "card wide" }, element("h2", {}, "Model"),
      element("div", {}, m.name + " (" + m.architecture + ")"),
      element("div", { class: "note" }, [bytes(m.file_bytes), "context " + number(m.context), "chunk " + number(m.chunk), m.threads + " threads", m.experts ? "experts " + m.experts : "dense"].join(", "))));
    const scrolled = this.#root.scrollTop;
    this.#root.replaceChildren(element("div", { class: "cards" }, ...cards));
    this.#root.scrollTop = scrolled;
  }
}

function card(title, value, note, ...more) {
  return element("div", { class: "card" }, element("h2", {}, title), element("div", { class: "value" }, value), element("div", { class: "note" }, note), ...more);
}

function meter(share) {
  const width = Math.max(0, Math.min(1, share || 0)) * 100;
  return element("div", { class: "meter" }, svg("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { width: width.toFixed(2), height: "4" })));
}

function spark(values) {
  const most = Math.max(...values, 1e-9);
  const points = values.map((value, i) => ((i + HISTORY - values.length) / (HISTORY - 1) * 100).toFixed(2) + "," + (29 - 27 * value / most).toFixed(2));
  return svg("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("polyline", { points: points.join(" ") }));
}

function slots(list) {
  const row = (slot, i) => {
    const reading = slot.phase !== "idle" && slot.prompt_done < slot.prompt_tokens;
    return element("tr", {}, ...[String(i), slot.phase, number(slot.tokens),
      reading ? number(slot.prompt_done) + " of " + number(slot.prompt_tokens) : number(slot.prompt_tokens), number(slot.generated), slot.reuse || ""].map((text) => element("td", {}, text)));
  };
  return element("div", { class: "card wide" }, element("h2", {}, "Conversations kept warm"),
    element("div", { class: "table" }, element("table", {},
      element("thead", {}, element("tr", {}, ...["", "now", "tokens", "prompt", "answer", "what was reused, and why"].map((text) => element("th", {}, text)))),
      element("tbody", {}, ...list.map(row)))));
}
