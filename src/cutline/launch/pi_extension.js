/**
 * What `cutline run pi` adds to pi for one run, given to it with `-e`: the way through the proxy, the three tools,
 * the mandate, and a checkpoint in the place of pi's own summary.
 *
 * Law: nothing is decided here. What is wanted stands in the run's folder, the proxy answers what the hooks ask, the
 * MCP server answers the tools; a fault of theirs leaves pi as it would be without them.
 */

import processes from "node:child_process";
import { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, join } from "node:path";
import { Text } from "@earendil-works/pi-tui";

const given = JSON.parse(readFileSync(join(process.env.CUTLINE_RUN, "pi.json"), "utf8"));
const carried = new RegExp(`(?:${given.carried})/?$`);
const PREFIX = "cutline_";
const CHECKPOINT = `${PREFIX}micro_handoff`;
const REFUSED = "checkpoint refused:";
const SESSION = "x-cutline-session";
const AGENT = "x-cutline-agent";
const OURS = Symbol.for("cutline");
const OFFERS = /"tools"\s*:\s*\[\s*\{/;
const THREAD = /"thread"\s*:\s*\{/;
const HOOK_MS = 5_000;
const STARTS_MS = 30_000;
/** The session in a process above this one, where an agent of the run started this pi; "" in the run's own. */
const above = outer(process.env.CUTLINE_ABOVE || "[]");

/** This session's id, and whether a request of it was made up that `fetch` did not see yet. */
const run = { session: "", pending: false };

function outer(told) {
	const [pid, folder, session] = JSON.parse(told);
	return folder === process.env.CUTLINE_RUN && pid !== process.pid ? session : "";
}

// ------------------------------------------------------------------------------------------------ through the proxy

const direct = globalThis.fetch[OURS] ?? globalThis.fetch;

/** Where a request that carries a history goes instead; undefined for any other one. */
function instead(address) {
	const at = URL.canParse(address) ? new URL(address) : undefined;
	if (!at || !/^(?:https?|wss?):$/.test(at.protocol) || at.username || !carried.test(at.pathname)) return undefined;
	return `${given.address}/${at.protocol.slice(0, -1)}/${at.host}${at.pathname}${at.search}`;
}

/** Whether a request goes on, or begins, where the provider holds the history: such a one can't be cut. */
const isThread = (body) => typeof body === "string" && THREAD.test(body) && JSON.parse(body).thread !== undefined;

/** What Anthropic's API answers where it takes no threads; pi sends the whole history then, for the whole session. */
function withoutThreads() {
	const details = { error_code: "thread_unsupported_request" };
	const message = "thread: not with cutline, which cuts whole histories";
	const error = { type: "invalid_request_error", message, details };
	const headers = { "content-type": "application/json" };
	return new Response(JSON.stringify({ type: "error", error }), { status: 400, headers });
}

/** `fetch`, with what carries a history sent through the proxy, its provider named in the path. */
async function through(input, init) {
	const asked = input?.url ? input : undefined;
	const method = String(init?.method ?? asked?.method ?? "GET").toUpperCase();
	const there = method === "POST" ? instead(String(asked?.url ?? input)) : undefined;
	const headers = new Headers(init?.headers ?? asked?.headers);
	if (!there) {
		if (!headers.has(SESSION)) return direct(input, init);
		for (const name of [SESSION, AGENT]) headers.delete(name); // they are the proxy's alone
		return direct(input, { ...init, headers });
	}
	if (isThread(init?.body)) return withoutThreads();
	if (!headers.has(SESSION)) {
		// Not asked for by this session's agent: another extension's question, or an agent that it runs in here.
		headers.set(SESSION, above || run.session);
		if (typeof init?.body === "string" && OFFERS.test(init.body)) headers.set(AGENT, "within");
	} else {
		run.pending = false;
	}
	return direct(asked ? new Request(there, asked) : there, { ...init, headers });
}
through[OURS] = direct;
globalThis.fetch = through;

// What goes over a web socket can't be cut; refused one, pi asks over HTTP.
const Socket = globalThis.WebSocket;
if (Socket && !Socket[OURS]) {
	globalThis.WebSocket = class extends Socket {
		static [OURS] = true;
		constructor(address, ...rest) {
			if (instead(String(address))) throw new Error("cutline: over HTTP, where the history can be cut");
			super(address, ...rest);
		}
	};
}

// A pi that an extension starts as a sub-agent goes the same way: it is told of this extension too.
const spawn = processes.spawn[OURS] ?? processes.spawn;
processes.spawn = Object.assign((command, words, ...rest) => {
	if (!Array.isArray(words)) return spawn(command, words, ...rest);
	const script = command === process.execPath && words[0] === process.argv[1];
	const at = script ? 1 : 0;
	if ((!script && basename(command) !== "pi") || given.subcommands.includes(words[at])) {
		return spawn(command, words, ...rest);
	}
	return spawn(command, [...words.slice(0, at), "--extension", given.extension, ...words.slice(at)], ...rest);
}, { [OURS]: spawn });
syncBuiltinESMExports();

/** Ask one of the proxy's hooks; nothing where it does not answer. */
async function ask(name, payload) {
	try {
		const body = JSON.stringify({ session_id: run.session, ...payload });
		const answer = await direct(`${given.address}/cutline/hook/${name}`, {
			method: "POST",
			body,
			signal: AbortSignal.timeout(HOOK_MS),
		});
		return answer.ok ? await answer.json() : {};
	} catch {
		return {};
	}
}

// -------------------------------------------------------------------------------------------------------- the tools

/** The server of the three tools, asked over its standard input and output. */
class Tools {
	ended = "";
	#process;
	#waiting = new Map();
	#last = 0;
	#said = "";

	constructor() {
		const [command, ...words] = given.server;
		this.#process = spawn(command, words, { stdio: ["pipe", "pipe", "pipe"] });
		this.#process.on("error", (error) => this.#end(error.message));
		this.#process.on("exit", (code) => this.#end(this.#said.trim() || `it ended with code ${code}`));
		this.#process.stdin.on("error", () => {});
		this.#process.stderr.on("data", (part) => {
			this.#said = (this.#said + part).slice(-500);
		});
		let open = "";
		this.#process.stdout.setEncoding("utf8").on("data", (part) => {
			// Not by readline, which takes U+2028 for a line's end.
			const lines = (open + part).split("\n");
			open = lines.pop();
			for (const line of lines) this.#hear(line);
		});
		const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "pi", version: "1" } };
		this.ready = this.#ask("initialize", hello, AbortSignal.timeout(STARTS_MS)).then(() =>
			this.#tell({ method: "notifications/initialized" }),
		);
		this.ready.catch((error) => {
			this.#end(error.message); // told to whoever calls; the next call starts another one
			this.#process.kill();
		});
	}

	async call(name, args, meta, signal) {
		await this.ready;
		return this.#ask("tools/call", { name, arguments: args, _meta: meta }, signal);
	}

	stop() {
		this.#process.stdin.end();
		this.#process.kill();
	}

	#ask(method, params, signal) {
		const id = ++this.#last;
		return new Promise((resolve, reject) => {
			if (this.ended) return reject(new Error(this.ended));
			const abort = () => this.#settle(id)?.reject(new Error(`no answer to ${method}`));
			if (signal?.aborted) return reject(new Error(`no answer to ${method}`));
			signal?.addEventListener("abort", abort, { once: true });
			const done = (what) => (value) => {
				signal?.removeEventListener("abort", abort);
				what(value);
			};
			this.#waiting.set(id, { resolve: done(resolve), reject: done(reject) });
			this.#tell({ id, method, params });
		});
	}

	#tell(message) {
		this.#process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
	}

	#hear(line) {
		let told;
		try {
			told = JSON.parse(line);
		} catch {
			return;
		}
		const one = this.#settle(told.id);
		if (told.error) one?.reject(new Error(told.error.message));
		else one?.resolve(told.result);
	}

	#settle(id) {
		const one = this.#waiting.get(id);
		this.#waiting.delete(id);
		return one;
	}

	#end(why) {
		this.ended ||= `cutline mcp: ${why}`;
		for (const id of [...this.#waiting.keys()]) this.#settle(id)?.reject(new Error(this.ended));
	}
}

let tools;

/** The id that the provider gave a call: OpenAI's Responses gave its item one too, behind a bar. */
const byProvider = (id) => id.split("|")[0];
/** Words as a terminal may show them. */
const shown = (text) => new Text(String(text ?? "").replace(/[^\P{Cc}\n\t]/gu, ""), 0, 0);
const plain = (content) => content.map((part) => (part.type === "text" ? part.text : "")).join("\n");

function register(pi, tool) {
	pi.registerTool({
		name: PREFIX + tool.name,
		label: tool.name,
		description: tool.description,
		parameters: tool.inputSchema,
		annotations: { readOnlyHint: true },
		...(tool.name === "say" && { renderCall: (args) => shown(args.text), renderResult: () => shown("") }),
		exposure: "model-only", // called from within a script, a checkpoint would be no call of its own
		async execute(id, args, signal) {
			if (!tools || tools.ended) tools = new Tools();
			const meta = { callId: byProvider(id), sessionId: run.session };
			const { content, isError } = await tools.call(tool.name, args, meta, signal);
			return { content, details: undefined, isError: isError === true };
		},
	});
}

// -------------------------------------------------------------------------------------------------------------- pi

export default function (pi) {
	const reminders = new Map();

	pi.on("session_start", (_, ctx) => {
		run.session = ctx.sessionManager.getSessionId();
		if (above) return;
		process.env.CUTLINE_ABOVE = JSON.stringify([process.pid, process.env.CUTLINE_RUN, run.session]);
		tools ??= new Tools();
	});

	pi.on("session_shutdown", () => {
		tools?.stop();
		tools = undefined;
	});

	pi.on("before_provider_headers", (event, ctx) => {
		if (ctx.model?.api === "bedrock-converse-stream") return; // asks with a client of its own, past `fetch`
		event.headers[SESSION] = above || run.session;
		if (above) event.headers[AGENT] = run.session;
	});

	pi.on("before_provider_request", () => {
		run.pending = true;
	});

	pi.on("message_end", async ({ message }) => {
		if (message.role === "assistant" && run.pending) {
			run.pending = false;
			const way = `${message.provider} (${message.api})`;
			const answered = !["error", "aborted"].includes(message.stopReason);
			if (answered) await ask("uncut", { why: `${way} goes past the proxy: it is not cut` });
		}
		// pi's own errors (arguments that don't fit, a call that was stopped) are no stored checkpoint in any format.
		if (message.role === "toolResult" && message.toolName === CHECKPOINT && message.isError) {
			if (plain(message.content).startsWith(REFUSED)) return undefined;
			return { message: { ...message, content: [{ type: "text", text: REFUSED }, ...message.content] } };
		}
		return undefined;
	});

	if (above) return; // what a sub-agent's words and checkpoints are worth is its own

	for (const tool of given.tools) register(pi, tool);

	pi.on("before_agent_start", (event) => {
		event.systemPromptOptions.sections.cutline = given.mandate;
	});

	pi.on("tool_call", async (event) => {
		if (given.held === "text" || event.parentToolCallId) return undefined;
		const told = (await ask("before-call", {
			tool_name: event.toolName,
			tool_input: event.input,
			tool_use_id: byProvider(event.toolCallId),
		})).hookSpecificOutput;
		if (told?.permissionDecision === "deny") return { block: true, reason: told.permissionDecisionReason };
		if (told?.additionalContext) reminders.set(event.toolCallId, told.additionalContext);
		return undefined;
	});

	pi.on("tool_result", async (event) => {
		if (event.parentToolCallId) return undefined;
		const added = [reminders.get(event.toolCallId)];
		reminders.delete(event.toolCallId);
		if (given.compaction && !event.isError) {
			const told = await ask("after-call", {
				hook_event_name: "PostToolUse",
				tool_name: event.toolName,
				tool_response: plain(event.content),
			});
			added.push(told.hookSpecificOutput?.additionalContext);
		}
		const texts = added.filter(Boolean).map((text) => ({ type: "text", text }));
		return texts.length ? { content: [...event.content, ...texts] } : undefined;
	});

	pi.on("session_before_compact", async (event, ctx) => {
		if (!given.compaction || event.reason !== "threshold") return undefined;
		const room = (ctx.model?.contextWindow ?? 0) - event.preparation.tokensBefore;
		const told = await ask("before-compaction", { trigger: "auto", room });
		return told.decision === "block" ? { cancel: true } : undefined;
	});
}
