// A conversation: what was said, how it is shown, and what can be done with it.
import { element, copy_button } from "./dom.js";
import { render_markdown } from "./markdown.js";
import { stream_chat } from "./api.js";
import { request_fields, system_prompt } from "./settings.js";

const STORE = "forebay.chat";

export class Chat {
  #messages = []; // as the API has them; an assistant's may have `note` and `error` besides
  #root;
  #input;
  #send;
  #stop;
  #running = null; // the AbortController of an answer under way

  constructor(root, form) {
    this.#root = root;
    this.#input = form.querySelector("textarea");
    this.#send = form.querySelector("#send");
    this.#stop = form.querySelector("#stop");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.#input.addEventListener("input", () => this.#fit(this.#input));
    this.#input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.submit();
      } else if (event.key === "ArrowUp" && !this.#input.value && !this.#running) {
        const last = this.#messages.findLastIndex((message) => message.role === "user");
        if (last >= 0) event.preventDefault(), this.edit(last);
      }
    });
    this.#stop.addEventListener("click", () => this.stop());
    try {
      const kept = JSON.parse(localStorage.getItem(STORE));
      if (Array.isArray(kept)) this.#messages = kept.filter((message) => message && typeof message.role === "string");
    } catch {
      // nothing was kept
    }
    this.#messages.forEach((message, index) => this.#root.append(this.#show(message, index)));
    this.#scroll_down();
  }

  get running() {
    return this.#running !== null;
  }

  submit() {
    const text = this.#input.value;
    if (!text.trim() || this.#running) return;
    this.#input.value = "";
    this.#fit(this.#input);
    this.#add({ role: "user", content: text });
    this.#answer();
  }

  stop() {
    this.#running?.abort();
  }

  clear() {
    this.stop();
    this.#truncate(0);
    this.#input.focus();
  }

  /** Asks again for the answer at `index`; what came after it goes. */
  regenerate(index) {
    if (this.#running) return;
    this.#truncate(index);
    this.#answer();
  }

  /** Turns a message of the user into a field; sending it drops what came after. */
  edit(index) {
    if (this.#running) return;
    const shown = this.#root.children[index];
    const field = element("textarea", { "aria-label": "Edit the message" });
    field.value = this.#messages[index].content;
    const restore = () => shown.replaceWith(this.#show(this.#messages[index], index));
    const save = () => {
      const text = field.value;
      if (!text.trim()) return;
      this.#truncate(index);
      this.#add({ role: "user", content: text });
      this.#answer();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") event.stopPropagation(), restore();
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) event.preventDefault(), save();
    });
    shown.replaceChildren(field, element("div", { class: "actions" },
      element("button", { type: "button", class: "primary", click: save }, "Send"),
      element("button", { type: "button", click: restore }, "Leave it")));
    this.#fit(field);
    field.focus();
  }

  #add(message) {
    this.#messages.push(message);
    this.#root.append(this.#show(message, this.#messages.length - 1));
    this.#scroll_down();
    this.#keep();
  }

  #truncate(length) {
    this.#messages.length = length;
    while (this.#root.children.length > length) this.#root.lastElementChild.remove();
    this.#keep();
  }

  #keep() {
    try {
      localStorage.setItem(STORE, JSON.stringify(this.#messages));
    } catch {
      // too long, or not allowed: the page works without
    }
  }

  /** What was said before the message at `end`. */
  #request(end) {
    const messages = this.#messages.slice(0, end).filter((message) => !message.error || message.content || message.tool_calls).map(
      ({ role, content, reasoning_content, tool_calls, tool_call_id }) =>
        JSON.parse(JSON.stringify({ role, content: content ?? "", reasoning_content, tool_calls, tool_call_id })));
    if (system_prompt()) messages.unshift({ role: "system", content: system_prompt() });
    return { ...request_fields(), model: "default", messages, stream: true, stream_options: { include_usage: true } };
  }

  async #answer() {
    const message = { role: "assistant", content: "", reasoning_content: "", tool_calls: [] };
    const times = { start: performance.now(), first: 0, content: 0, usage: null };
    this.#messages.push(message);
    const index = this.#messages.length - 1;
    let shown = this.#root.appendChild(this.#show(message, index, true));
    let drawn = true;
    const draw = () => {
      drawn = true;
      const before = shown.querySelector("details.thinking");
      const follow = this.#at_end();
      const next = this.#show(message, index, this.#running !== null);
      const thinking = next.querySelector("details.thinking");
      // As the reader left it, but it folds when the thinking is over.
      const same = thinking?.firstElementChild.textContent === before?.firstElementChild.textContent;
      if (thinking && before && same) thinking.open = before.open;
      shown.replaceWith(next);
      shown = next;
      if (follow) this.#scroll_down();
    };
    const changed = () => {
      if (drawn) requestAnimationFrame(draw);
      drawn = false;
    };

    this.#set_running(new AbortController());
    try {
      await stream_chat(this.#request(index), this.#running.signal, (chunk) => {
        if (chunk.usage) times.usage = chunk.usage;
        const delta = chunk.choices?.[0]?.delta;
        if (!delta) return;
        if (!times.first && (delta.content || delta.reasoning_content || delta.tool_calls)) times.first = performance.now();
        if (delta.reasoning_content) message.reasoning_content += delta.reasoning_content;
        if (delta.content) {
          message.content += delta.content;
          times.content ||= performance.now();
        }
        for (const call of delta.tool_calls || []) {
          const own = (message.tool_calls[call.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
          if (call.id) own.id = call.id;
          if (call.function?.name) own.function.name = call.function.name;
          own.function.arguments += call.function?.arguments || "";
        }
        if (chunk.choices[0].finish_reason === "length") message.note_end = "stopped at the limit of tokens";
        changed();
      });
    } catch (error) {
      if (error.name === "AbortError") message.note_end = "stopped";
      else message.error = error.message;
    }
    if (!message.tool_calls.length) delete message.tool_calls;
    if (!message.reasoning_content) delete message.reasoning_content;
    message.note = note_of(times, message);
    this.#set_running(null);
    draw();
    this.#keep();
  }

  #set_running(controller) {
    this.#running = controller;
    this.#send.hidden = controller !== null;
    this.#stop.hidden = controller === null;
  }

  #show(message, index, live = false) {
    const shown = element("article", { class: "message " + message.role });
    if (message.role === "user") {
      shown.append(element("div", { class: "body" }, message.content), this.#actions(message, index));
      return shown;
    }
    if (message.role === "tool") {
      shown.append(details("call", ["Result"], element("pre", {}, message.content)));
      return shown;
    }
    const waiting = live && !message.content && !message.tool_calls?.length;
    if (message.reasoning_content) {
      const thinking = details("thinking", [waiting ? "Thinking" : "Thought"], element("span", {}, message.reasoning_content));
      if (waiting) thinking.lastElementChild.classList.add("cursor");
      thinking.open = waiting;
      shown.append(thinking);
    } else if (waiting) {
      shown.append(element("div", { class: "cursor" }));
    }
    if (message.content) {
      const body = render_markdown(message.content);
      if (live) (body.lastElementChild ?? body).classList.add("cursor");
      shown.append(body);
    }
    for (const call of message.tool_calls || []) shown.append(this.#show_call(call));
    if (message.error) shown.append(element("div", { class: "error", role: "alert" }, message.error));
    if (!live) shown.append(this.#actions(message, index), ...this.#results(message, index));
    return shown;
  }

  #show_call(call) {
    let text = call.function.arguments;
    try {
      text = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // not whole yet, or never JSON: shown as the model wrote it
    }
    const shown = details("call", ["Calls ", element("code", { class: "name" }, call.function.name)], element("pre", {}, text));
    shown.open = true;
    return shown;
  }

  /** Where the last message has calls, a field for each result. */
  #results(message, index) {
    if (!message.tool_calls?.length || index !== this.#messages.length - 1) return [];
    const fields = message.tool_calls.map((call) =>
      element("textarea", { rows: "2", "aria-label": "Result of " + call.function.name, placeholder: "Result of " + call.function.name }));
    const send = () => {
      message.tool_calls.forEach((call, i) => this.#add({ role: "tool", tool_call_id: call.id, content: fields[i].value }));
      this.#answer();
    };
    return [...fields, element("button", { type: "button", click: send }, "Send results")];
  }

  #actions(message, index) {
    const action = (title, run) => element("button", { type: "button", class: "plain", click: run }, title);
    const actions = element("div", { class: "actions" });
    if (message.role === "user") actions.append(action("Edit", () => this.edit(index)));
    else actions.append(action("Regenerate", () => this.regenerate(index)));
    actions.append(copy_button(() => message.content));
    const notes = [message.note, message.note_end].filter(Boolean).join(", ");
    if (notes) actions.append(element("span", { class: "quiet" }, notes));
    return actions;
  }

  #fit(field) {
    field.style.height = "auto";
    field.style.height = Math.min(field.scrollHeight + 2, window.innerHeight * 0.4) + "px";
  }
  #at_end() {
    return this.#root.scrollHeight - this.#root.scrollTop - this.#root.clientHeight < 60;
  }
  #scroll_down() {
    this.#root.scrollTop = this.#root.scrollHeight;
  }
}

function details(kind, title, ...inside) {
  return element("details", { class: kind }, element("summary", {}, ...title), element("div", { class: "inside" }, ...inside));
}

function note_of(times, message) {
  const end = performance.now();
  const parts = [];
  const usage = times.usage;
  if (usage) {
    const reused = usage.prompt_tokens_details?.cached_tokens || 0;
    parts.push(usage.prompt_tokens + " prompt tokens" + (reused ? " (" + reused + " reused)" : ""));
    const seconds = (end - times.first) / 1000;
    parts.push(usage.completion_tokens + " tokens" + (times.first && seconds > 0.05 ? " at " + (usage.completion_tokens / seconds).toFixed(1) + " tok/s" : ""));
  }
  if (times.first) parts.push("first after " + ((times.first - times.start) / 1000).toFixed(2) + " s");
  const thought = (times.content - times.first) / 1000;
  if (message.reasoning_content && thought >= 0.1) parts.push("thought for " + thought.toFixed(1) + " s");
  return parts.join(", ");
}
