// The server's API as this page uses it.

let key = "";
export function set_key(value) {
  key = value;
}

function headers() {
  return key ? { "Content-Type": "application/json", Authorization: "Bearer " + key } : { "Content-Type": "application/json" };
}

async function failure(response) {
  let text = await response.text();
  try {
    text = JSON.parse(text).error?.message ?? text;
  } catch {
    // not JSON: shown as it is
  }
  return new Error(response.status + ": " + String(text).slice(0, 1000));
}

export async function get_json(path) {
  const response = await fetch(path, { headers: headers(), cache: "no-store" });
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** The data of each server-sent event, parsed, until [DONE]. */
export async function* read_events(stream) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let held = "";
  try {
    while (true) {
      const { done, value } = await reader.read();
      held += done ? decoder.decode() + "\n" : decoder.decode(value, { stream: true });
      const lines = held.split("\n");
      held = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice(5).trim();
        if (data === "[DONE]") return;
        if (data) yield JSON.parse(data);
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Streams an answer: calls on_chunk with every chunk of the chat completion. */
export async function stream_chat(body, signal, on_chunk) {
  const response = await fetch("/v1/chat/completions", { method: "POST", headers: headers(), body: JSON.stringify(body), signal });
  if (!response.ok) throw await failure(response);
  for await (const chunk of read_events(response.body)) {
    if (chunk.error) throw new Error(chunk.error.message || "the server failed");
    on_chunk(chunk);
  }
}
