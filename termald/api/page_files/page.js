"use strict";

// What this page shows it asks of the API like any other client, and it keeps nothing. All that comes from Codex or
// from a person is put in as text, never as markup.

const RECONNECT_MS = [500, 1000, 2000, 5000];
const REFRESH_MS = 250;
const SILENCE_MS = 50000;
const SESSIONS_SHOWN = 200;
const ITEMS_SHOWN = 200;
const MARKS = {
  "prompt/accepted": () => "a prompt was taken",
  "prompt/cancelled": () => "a prompt was cancelled",
  "prompt/failed": (e) => `a prompt failed: ${e.error ? e.error.message : ""}`,
  "prompt/notDelivered": (e) => `a prompt was not delivered: ${e.error ? e.error.message : ""}`,
  "turn/done": (e) => `the turn ended: ${e.state}${e.message ? `, ${e.message}` : ""}`
    + (e.usage ? ` · ${e.usage.input} tokens in, ${e.usage.output} out` : ""),
  "retrying": (e) => `Codex tries again (attempt ${e.attempt})`,
  "notice": (e) => e.message,
  "request/opened": () => "Codex asks, see below",
  "request/answered": () => "answered",
  "request/resolved": () => "the request is settled",
  "request/expired": () => "the request is over, nobody answered it",
  "session/killed": () => "the session was killed",
  "session/closed": () => "the session was closed",
  "session/detached": () => "let go of its thread; the next prompt goes on",
  "session/error": (e) => `error: ${e.error ? e.error.message : ""}`,
};

const at = (id) => document.getElementById(id);
let chosen = null;
let conversation = null;

function made(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function button(text, act) {
  const element = made("button", text, { type: "button" });
  element.addEventListener("click", () => doing(act));
  return element;
}

// --- asking ---

async function ask(method, path, body, key) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key !== undefined) headers["Idempotency-Key"] = key;
  const answer = await fetch(path, {
    method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store",
  });
  const said = await answer.json();
  if (answer.status === 401) throw new Error("this browser is not let in any more: run “termald open” for a new link");
  if (!answer.ok) throw new Error(said.detail ? `${said.title}: ${said.detail}` : said.title);
  return said;
}

// What a person did: what went wrong before is over.
async function doing(act) {
  at("trouble").textContent = "";
  await trying(act);
}

async function trying(act) {
  try {
    await act();
  } catch (error) {
    at("trouble").textContent = error.message;
  }
}

function inSession(id, what = "") {
  return `/api/sessions/${encodeURIComponent(id)}${what}`;
}

// One at a time, and not for each of many events.
function lazily(act) {
  let due = false;
  let running = false;
  return function again() {
    if (due) return;
    due = true;
    setTimeout(async () => {
      due = false;
      if (running) return again();
      running = true;
      await trying(act);
      running = false;
    }, REFRESH_MS);
  };
}

// --- listening: the frames {id, event, data} of the API's WebSocket, over reconnects ---

class Feed {
  constructor(query, after, hear, told = () => {}) {
    Object.assign(this, { query, after, hear, told, attempts: 0, closed: false, socket: null, timer: null });
    this.open();
  }

  open() {
    const query = new URLSearchParams(this.query);
    if (this.after !== null) query.set("after", this.after);
    this.socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/events/ws?${query}`);
    this.socket.onmessage = (message) => this.heard(JSON.parse(message.data));
    this.socket.onclose = () => this.lost();
    this.expect();
  }

  heard(frame) {
    this.expect();
    this.attempts = 0;
    if (frame.event === "heartbeat") return;
    this.after = Number(frame.id);
    if (frame.event === "synced") this.told(true);
    this.hear(frame.event, frame.data);
  }

  // A connection that died without a word: three heartbeats have not come.
  expect() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.socket.close(), SILENCE_MS);
  }

  lost() {
    clearTimeout(this.timer);
    if (this.closed) return;
    this.told(false);
    const pause = RECONNECT_MS[Math.min(this.attempts, RECONNECT_MS.length - 1)];
    this.attempts += 1;
    this.timer = setTimeout(() => this.open(), pause);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket.close();
  }
}

// --- sessions ---

async function refreshSessions() {
  const { data } = await ask("GET", `/api/sessions?limit=${SESSIONS_SHOWN}`);
  at("sessions").replaceChildren(...data.map(sessionRow));
  const shown = data.find((session) => session.id === chosen);
  if (shown) describe(shown);
}

function sessionRow(session) {
  const row = made("li", "");
  const open = button(session.title || session.id, () => choose(session.id));
  open.setAttribute("aria-current", String(session.id === chosen));
  const waits = session.waitingOn ? ` · waits: ${session.waitingOn}` : "";
  const queued = session.queuedPrompts ? ` · ${session.queuedPrompts} queued` : "";
  open.append(made("small", `${session.status}${waits}${queued}`), made("small", session.preview || session.cwd));
  row.append(open);
  return row;
}

function describe(session) {
  at("title").textContent = session.title || session.id;
  at("about").textContent = [session.id, session.status, session.model, session.cwd].filter(Boolean).join(" · ");
}

async function choose(id) {
  at("phantoms").hidden = true;
  at("none").hidden = true;
  at("session").hidden = false;
  if (conversation) conversation.close();
  chosen = id;
  conversation = new Conversation(id);
  describe(await ask("GET", inSession(id)));
  refresh();
  await refreshRequests();
  await conversation.load();
}

// --- a conversation: items by turn and id, as `TurnAccumulator` of the client library builds them ---

class Conversation {
  constructor(id) {
    this.id = id;
    this.items = new Map();
    this.feed = null;
    this.closed = false;
    at("events").replaceChildren();
  }

  async load() {
    // The number first, the items after it: what happens in between is told again, and an item that is told twice is
    // still one. What is open is heard from its beginning, since its text so far stands in its deltas.
    const last = feed.after;
    const turns = await ask("GET", inSession(this.id, `/turns?limit=${ITEMS_SHOWN}`));
    const { data } = await ask("GET", inSession(this.id, `/items?order=desc&limit=${ITEMS_SHOWN}`));
    if (this.closed) return;
    const ends = new Map(turns.data.map((turn) => [turn.id, turn]));
    let after = last;
    for (const [index, row] of data.reverse().entries()) {
      if (index > 0 && data[index - 1].turnId !== row.turnId) this.end(ends.get(data[index - 1].turnId));
      if (row.state === "taken_back") continue;
      this.begin(row.turnId, row.id, row.item || { type: row.type });
      if (row.state === "open") after = Math.min(after, row.firstSeq - 1);
      else this.complete(row.turnId, row.id, row.item || { type: row.type });
    }
    if (data.length > 0) this.end(ends.get(data[data.length - 1].turnId));
    this.feed = new Feed({ session: this.id }, after, (kind, event) => this.hear(kind, event));
  }

  close() {
    this.closed = true;
    if (this.feed) this.feed.close();
  }

  hear(kind, event) {
    if (kind === "item/started") this.begin(event.turnId, event.itemId, event.item);
    else if (kind === "item/delta") this.more(event);
    else if (kind === "item/completed") this.complete(event.turnId, event.itemId, event.item);
    else if (kind === "block/reset") event.items.forEach((item) => this.takeBack(event.turnId, item));
    else if (kind === "reset") trying(() => choose(this.id));
    else if (MARKS[kind]) this.add(made("li", MARKS[kind](event), { class: "mark" }));
    if (kind.startsWith("request/")) refreshRequestsSoon();
  }

  begin(turn, id, item) {
    const key = `${turn} ${id}`;
    if (this.items.has(key)) return this.items.get(key);
    const element = made("li", "", { class: item.type || "" });
    const text = made("span", textOf(item));
    element.append(made("span", WHO[item.type] || item.type || "", { class: "who" }), text);
    const entry = { element, text, complete: false };
    this.items.set(key, entry);
    this.add(element);
    return entry;
  }

  more(event) {
    if (event.channel !== "text") return;
    const entry = this.begin(event.turnId, event.itemId, {});
    if (!entry.complete) entry.text.append(event.delta);
  }

  complete(turn, id, item) {
    const entry = this.begin(turn, id, item);
    entry.complete = true;
    entry.text.textContent = textOf(item);
    entry.element.hidden = entry.text.textContent === "";
  }

  takeBack(turn, id) {
    const key = `${turn} ${id}`;
    if (this.items.has(key)) this.items.get(key).element.remove();
    this.items.delete(key);
  }

  // How an earlier turn ended, where that was not well. One that runs is heard of when it ends.
  end(turn) {
    if (!turn || turn.state === null || turn.state === "normal") return;
    this.add(made("li", `the turn ended: ${turn.state}${turn.message ? `, ${turn.message}` : ""}`, { class: "mark" }));
  }

  add(element) {
    const main = document.querySelector("main");
    const atEnd = main.scrollHeight - main.scrollTop - main.clientHeight < 80;
    at("events").append(element);
    if (atEnd) main.scrollTop = main.scrollHeight;
  }
}

const WHO = { userMessage: "you", agentMessage: "Codex", reasoning: "thinks", commandExecution: "command" };

function textOf(item) {
  if (item.type === "userMessage") return (item.content || []).map((part) => part.text || `[${part.type}]`).join("\n");
  if (item.type === "commandExecution") return `$ ${item.command || ""}${item.exitCode ? `  (exit ${item.exitCode})` : ""}`;
  if (item.type === "fileChange") return (item.changes || []).map((change) => change.path).join("\n");
  if (item.type === "reasoning") return (item.summary || []).join("\n");
  return item.text || item.tool || "";
}

// --- requests: nothing is answered but by a click ---

async function refreshRequests() {
  if (chosen === null) return;
  const { data } = await ask("GET", inSession(chosen, "/requests?limit=100"));
  const known = new Map([...at("requests").children].map((card) => [card.dataset.id, card]));
  // A card that is there stays: somebody may be writing into it.
  at("requests").replaceChildren(...data.map((request) => known.get(request.id) || requestCard(request)));
}

function requestCard(request) {
  const params = request.params || {};
  const card = made("li", "", { "data-id": request.id });
  const say = (body) => async () => {
    await ask("POST", inSession(request.sessionId, `/requests/${encodeURIComponent(request.id)}`), body);
    await refreshRequests();
  };
  card.append(made("strong", `Codex asks (${request.kind})`));
  if (request.kind === "userInput") return questions(card, params.questions || [], say);
  const command = Array.isArray(params.command) ? params.command.join(" ") : params.command;
  card.append(made("code", command || params.reason || params.message || JSON.stringify(params, null, 2)));
  if (command && params.reason) card.append(made("p", params.reason));
  const [yes, no] = {
    permissions: [{ result: { permissions: params.permissions || {}, scope: "turn" } }, { result: { permissions: {} } }],
    elicitation: [{ result: { action: "accept", content: {} } }, { result: { action: "decline" } }],
  }[request.kind] || [{ decision: "accept" }, { decision: "decline" }];
  card.append(button("Allow once", say(yes)), " ", button("Deny", say(no)));
  return card;
}

function questions(card, asked, say) {
  const fields = asked.map((question) => {
    const field = made("input", "", { "aria-label": question.question || question.id, list: `options-${question.id}` });
    const options = made("datalist", "", { id: `options-${question.id}` });
    options.append(...(question.options || []).map((option) => made("option", "", { value: option.label })));
    card.append(made("p", question.question || question.id), field, options);
    return [question.id, field];
  });
  card.append(button("Answer", () => {
    const answers = fields.map(([id, field]) => [id, { answers: field.value ? [field.value] : [] }]);
    return say({ answers: Object.fromEntries(answers) })();
  }));
  return card;
}

// --- phantoms ---

async function showPhantoms() {
  at("session").hidden = true;
  at("none").hidden = true;
  at("phantoms").hidden = false;
  if (conversation) conversation.close();
  chosen = null;
  conversation = null;
  const { data } = await ask("GET", "/api/phantoms?limit=100");
  const rows = data.map(phantomRow);
  at("phantom-list").replaceChildren(...(rows.length ? rows : [made("li", "There are none.")]));
}

function phantomRow(phantom) {
  const row = made("li", "");
  const { record, codex } = phantom.evidence;
  row.append(
    made("strong", phantom.title || phantom.sessionId),
    made("p", `here ${record.messages} messages, ${record.turns} turns; in Codex: ${codex.reason}`),
    button("Kill", async () => {
      const answer = await ask("POST", "/api/phantoms/kill", { ids: [phantom.sessionId] });
      await showPhantoms();
      if (answer.spared.length) throw new Error(`spared: ${answer.spared[0].reason}`);
    }),
  );
  return row;
}

// --- what a person does ---

// A prompt whose answer was lost is sent again with the same key, and is still one prompt.
let unsent = null;

async function send() {
  const text = at("text").value;
  if (!text.trim() || chosen === null) return;
  if (unsent === null || unsent.text !== text || unsent.session !== chosen) {
    unsent = { text, session: chosen, key: `page-${crypto.randomUUID()}` };
  }
  await ask("POST", inSession(chosen, "/prompts"), { input: text }, unsent.key);
  unsent = null;
  at("text").value = "";
}

at("prompt").addEventListener("submit", (event) => {
  event.preventDefault();
  doing(send);
});
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) doing(send);
});
at("interrupt").addEventListener("click", () => doing(() => ask("POST", inSession(chosen, "/interrupt"), {})));
at("kill").addEventListener("click", () => doing(async () => {
  if (!confirm("Kill this session? Its thread stays in Codex and is never imported again.")) return;
  await ask("POST", inSession(chosen, "/kill"), {});
}));
at("show-phantoms").addEventListener("click", () => doing(showPhantoms));

const refresh = lazily(refreshSessions);
const refreshRequestsSoon = lazily(refreshRequests);
const feed = new Feed({}, null, (kind) => {
  if (kind !== "item/delta") refresh();
}, async (connected) => {
  at("health").textContent = connected ? "connected" : "not connected, trying again …";
  // A WebSocket that is refused tells a script nothing; a plain request says why.
  if (!connected) await trying(() => ask("GET", "/api/version"));
});
