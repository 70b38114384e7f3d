// What a request asks for besides its messages. Kept in this browser; the key only for as long as its tab is open.
import { element } from "./dom.js";
import { set_key } from "./api.js";

const STORE = "forebay.settings";
const NUMBERS = [
  ["temperature", "Temperature", { min: 0, max: 5, step: 0.05 }],
  ["top_p", "Top p", { min: 0, max: 1, step: 0.01 }],
  ["top_k", "Top k", { min: 0, max: 100000, step: 1 }],
  ["min_p", "Min p", { min: 0, max: 1, step: 0.01 }],
  ["presence_penalty", "Presence penalty", { min: -2, max: 2, step: 0.1 }],
  ["frequency_penalty", "Frequency penalty", { min: -2, max: 2, step: 0.1 }],
  ["max_tokens", "Most tokens", { min: 1, step: 1 }],
  ["seed", "Seed", { min: 0, step: 1 }],
];

function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE));
    return kept && typeof kept === "object" ? kept : {};
  } catch {
    return {};
  }
}

const values = load();

/** The fields of a request. Throws with a message where a field holds no JSON. */
export function request_fields() {
  const fields = {};
  for (const [name] of NUMBERS) if (Number.isFinite(values[name])) fields[name] = values[name];
  if (values.effort) fields.reasoning_effort = values.effort;
  const tools = parsed("tools", "Tools");
  if (tools) fields.tools = tools;
  const schema = parsed("schema", "JSON schema");
  if (schema) fields.response_format = { type: "json_schema", json_schema: { name: "answer", schema } };
  return fields;
}

export function system_prompt() {
  return values.system || "";
}

function parsed(name, title) {
  if (!values[name]?.trim()) return null;
  try {
    return JSON.parse(values[name]);
  } catch (error) {
    throw new Error(title + " in the settings: " + error.message);
  }
}

function keep(name, value) {
  if (value === "" || value === null || Number.isNaN(value)) delete values[name];
  else values[name] = value;
  try {
    localStorage.setItem(STORE, JSON.stringify(values));
  } catch {
    // private windows may refuse
  }
}

const labelled = (title, field) => element("label", {}, element("span", {}, title), field);

export function build_settings(panel) {
  const number = ([name, title, limits]) =>
    labelled(title, element("input", { type: "number", id: "set-" + name, ...limits, placeholder: "model's own", value: values[name] ?? "",
      input: (event) => keep(name, event.target.value === "" ? "" : Number(event.target.value)) }));
  const area = (name, title, rows, hint) => {
    const field = element("textarea", { rows, id: "set-" + name, placeholder: hint, spellcheck: "false", input: (event) => keep(name, event.target.value) });
    field.value = values[name] || "";
    return labelled(title, field);
  };
  const effort = element("select", { id: "set-effort", change: (event) => keep("effort", event.target.value) },
    ...[["", "model's own"], ["none", "none"], ["minimal", "minimal"], ["low", "low"], ["medium", "medium"], ["high", "high"]].map(
      ([value, title]) => element("option", { value, selected: (values.effort || "") === value }, title)));
  let saved_key = "";
  try {
    saved_key = sessionStorage.getItem("forebay.key") || "";
  } catch {
    // not kept then
  }
  set_key(saved_key);
  const key = element("input", { type: "password", id: "set-key", autocomplete: "off", value: saved_key, placeholder: "only where the server asks for one",
    input: (event) => {
      set_key(event.target.value);
      try {
        sessionStorage.setItem("forebay.key", event.target.value);
      } catch {
        // not kept then
      }
    } });
  panel.append(
    element("h2", {}, "Model"),
    labelled("Thinking effort", effort),
    area("system", "System message", 3, ""),
    element("h2", {}, "Sampling"),
    element("div", { class: "pair" }, ...NUMBERS.map(number)),
    element("h2", {}, "Tools and format"),
    area("tools", "Tools (JSON, as in the API)", 4, '[{"type": "function", "function": {"name": ...}}]'),
    area("schema", "Answer as JSON of this schema", 4, '{"type": "object", ...}'),
    element("h2", {}, "Access"),
    labelled("API key", key));
}
