// Markdown as elements. It never makes HTML text: tags in the source show as what they are, and a link goes only to http,
// https or mailto. Images show as links, since this page loads nothing from elsewhere.
import { element, copy_button } from "./dom.js";

const MAX_DEPTH = 12; // of quotes and lists

export function render_markdown(source) {
  const root = element("div", { class: "markdown" });
  render_blocks(source.replace(/\r\n?/g, "\n").split("\n"), root, 0);
  return root;
}

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const DELIMITER_ROW = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function render_blocks(lines, parent, depth) {
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      at += 1;
    } else if (FENCE.test(line)) {
      at = render_code(lines, at, parent);
    } else if (HEADING.test(line)) {
      const [, marks, text] = line.match(HEADING);
      parent.append(with_inline(element("h" + marks.length), text || ""));
      at += 1;
    } else if (RULE.test(line)) {
      parent.append(element("hr"));
      at += 1;
    } else if (QUOTE.test(line) && depth < MAX_DEPTH) {
      const inside = [];
      for (; at < lines.length && QUOTE.test(lines[at]); at += 1) inside.push(lines[at].replace(QUOTE, ""));
      const quote = element("blockquote");
      render_blocks(inside, quote, depth + 1);
      parent.append(quote);
    } else if (ITEM.test(line) && depth < MAX_DEPTH) {
      at = render_list(lines, at, parent, depth);
    } else if (line.includes("|") && at + 1 < lines.length && DELIMITER_ROW.test(lines[at + 1]) && lines[at + 1].includes("|")) {
      at = render_table(lines, at, parent);
    } else {
      at = render_paragraph(lines, at, parent, depth);
    }
  }
}

function render_code(lines, at, parent) {
  const [, indent, fence, info] = lines[at].match(FENCE);
  const code = [];
  for (at += 1; at < lines.length; at += 1) {
    const closing = lines[at].match(/^ {0,3}(`{3,}|~{3,})\s*$/);
    if (closing && closing[1][0] === fence[0] && closing[1].length >= fence.length) break;
    code.push(lines[at].startsWith(indent) ? lines[at].slice(indent.length) : lines[at]);
  }
  const text = code.join("\n");
  parent.append(
    element("div", { class: "codeblock" },
      element("div", { class: "bar" }, element("span", {}, info.trim().split(/\s/)[0]), copy_button(text)),
      element("pre", { tabindex: "0" }, element("code", {}, text))));
  return at + 1;
}

function render_list(lines, at, parent, depth) {
  const first = lines[at].match(ITEM);
  const ordered = /\d/.test(first[2]);
  const indent = first[1].length;
  const list = element(ordered ? "ol" : "ul");
  if (ordered && parseInt(first[2], 10) !== 1) list.setAttribute("start", parseInt(first[2], 10));
  while (at < lines.length) {
    const match = lines[at].match(ITEM);
    if (!match || match[1].length < indent || match[1].length > indent + 3 || /\d/.test(match[2]) !== ordered) break;
    const width = match[0].length;
    const inside = [lines[at].slice(width)];
    for (at += 1; at < lines.length; at += 1) {
      const blank = !lines[at].trim();
      const deeper = /^ */.exec(lines[at])[0].length;
      if (blank) {
        const next = lines.slice(at + 1).find((one) => one.trim());
        if (next === undefined || /^ */.exec(next)[0].length <= indent) break;
        inside.push("");
      } else if (deeper > indent) {
        inside.push(lines[at].slice(Math.min(deeper, width)));
      } else if (ITEM.test(lines[at]) || FENCE.test(lines[at]) || HEADING.test(lines[at]) || RULE.test(lines[at]) || !inside.at(-1).trim()) {
        break;
      } else {
        inside.push(lines[at]); // goes on without indentation
      }
    }
    const item = element("li");
    render_blocks(inside, item, depth + 1);
    // An item of one paragraph is that paragraph's text.
    if (item.firstElementChild?.tagName === "P" && item.querySelectorAll(":scope > p").length === 1)
      item.firstElementChild.replaceWith(...item.firstElementChild.childNodes);
    list.append(item);
    while (at < lines.length && !lines[at].trim() && at + 1 < lines.length && ITEM.test(lines[at + 1])) at += 1;
  }
  parent.append(list);
  return at;
}

function cells_of(line) {
  const cells = [];
  let cell = "";
  for (let i = 0, code = false; i < line.length; i += 1) {
    if (line[i] === "\\" && line[i + 1] === "|") cell += line[++i];
    else if (line[i] === "|" && !code) cells.push(cell), (cell = "");
    else {
      if (line[i] === "`") code = !code;
      cell += line[i];
    }
  }
  cells.push(cell);
  if (!cells[0].trim()) cells.shift();
  if (cells.length && !cells.at(-1).trim()) cells.pop();
  return cells.map((one) => one.trim());
}

function render_table(lines, at, parent) {
  const row = (name, line) => element("tr", {}, ...cells_of(line).map((cell) => with_inline(element(name), cell)));
  const head = element("thead", {}, row("th", lines[at]));
  const body = element("tbody");
  for (at += 2; at < lines.length && lines[at].trim() && lines[at].includes("|"); at += 1) body.append(row("td", lines[at]));
  parent.append(element("div", { class: "table" }, element("table", {}, head, body)));
  return at;
}

function render_paragraph(lines, at, parent, depth) {
  const text = [lines[at].trim()];
  for (at += 1; at < lines.length; at += 1) {
    const line = lines[at];
    if (!line.trim() || FENCE.test(line) || HEADING.test(line) || RULE.test(line)) break;
    if (depth < MAX_DEPTH && (QUOTE.test(line) || ITEM.test(line))) break;
    text.push(line.trimStart());
  }
  parent.append(with_inline(element("p"), text.join("\n").trimEnd()));
  return at;
}

// Inside a line: the first thing that begins at a place wins; what begins nothing is text.
const INLINE = [
  [/^\\([!-/:-@[-`{-~])/, (m) => m[1]],
  [/^(`+)(?!`)([\s\S]*?[^`])\1(?!`)/, (m) => element("code", {}, m[2].replace(/\n/g, " ").replace(/^ (.*\S.*) $/, "$1"))],
  [/^!?\[((?:[^\[\]\\]|\\.){0,500})\]\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/, (m, depth) => link(m[2], m[1], m[0], depth)],
  [/^<((?:https?:\/\/|mailto:)[^\s<>]+)>/, (m, depth) => link(m[1], null, m[0], depth)],
  [/^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,:;!?)\]}*_~]/, (m, depth) => link(m[0], null, m[0], depth)],
  [/^(\*\*|__)(?=\S)([\s\S]{0,2000}?\S)\1/, (m, depth) => with_inline(element("strong"), m[2], depth + 1)],
  [/^\*(?=[^\s*])((?:[^*]|\*\*[^*]+\*\*){0,2000}?[^\s*])\*(?!\*)/, (m, depth) => with_inline(element("em"), m[1], depth + 1)],
  [/^_(?=[^\s_])([^_]{0,2000}?[^\s_])_(?![A-Za-z0-9_])/, (m, depth) => with_inline(element("em"), m[1], depth + 1)],
  [/^~~(?=\S)([\s\S]{0,2000}?\S)~~/, (m, depth) => with_inline(element("s"), m[1], depth + 1)],
  [/^(?: {2,}|\\)\n/, () => element("br")],
];
const BEGINNERS = /[\\`!\[<h*_~ ]/;

function with_inline(parent, text, depth = 0) {
  let plain = "";
  const flush = () => {
    if (plain) parent.append(plain);
    plain = "";
  };
  for (let at = 0; at < text.length; ) {
    const c = text[at];
    let taken = null;
    if (depth < MAX_DEPTH && BEGINNERS.test(c) && !((c === "_" || c === "h") && /[A-Za-z0-9]/.test(text[at - 1] || ""))) {
      // A window: no expression looks further than this.
      const rest = text.slice(at, at + 4096);
      for (const [expression, make] of INLINE) {
        const match = rest.match(expression);
        if (!match) continue;
        taken = match[0];
        const made = make(match, depth);
        if (typeof made === "string") plain += made;
        else flush(), parent.append(made);
        break;
      }
    }
    if (taken === null) plain += c;
    at += taken === null ? 1 : taken.length;
  }
  flush();
  return parent;
}

/** A link, or the text as it stands where the address is of a kind that does something. */
function link(address, label, source, depth) {
  let target;
  try {
    target = new URL(address);
  } catch {
    return source;
  }
  if (!["http:", "https:", "mailto:"].includes(target.protocol)) return source;
  const made = element("a", { href: target.href, rel: "noopener noreferrer nofollow", target: "_blank" });
  return label ? with_inline(made, label, depth + 1) : (made.append(address), made);
}
