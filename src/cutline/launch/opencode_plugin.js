/**
 * What `cutline run opencode` adds to opencode for one run, named to it as a plugin: the way through the proxy, the
 * three tools, the mandate, and a checkpoint asked for ahead of opencode's own summary.
 *
 * Law: nothing is decided here. What is wanted stands in the run's folder, the proxy answers what the hooks ask; a
 * fault of either leaves opencode as it would be without them. What is not a function is not exported.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";

const given = JSON.parse(readFileSync(join(process.env.CUTLINE_RUN, "opencode.json"), "utf8"));
const carried = new RegExp(`(?:${given.carried})/?$`);
const OURS = Symbol.for("cutline");
const HOOK_MS = 5_000;
for (const name of given.unset) delete process.env[name];

/** Sub-agents' sessions, by id, and the session that they work for. */
const above = new Map();
/** Sessions' models, as the client knows them. */
const models = new Map();

// ------------------------------------------------------------------------------------------------ through the proxy

const direct = globalThis.fetch[OURS] ?? globalThis.fetch;

/** Where a request that carries a history goes instead; undefined for any other one. */
function instead(address) {
	const at = URL.canParse(address) ? new URL(address) : undefined;
	if (!at || !/^https?:$/.test(at.protocol) || at.username || !carried.test(at.pathname)) return undefined;
	return `${given.address}/${at.protocol.slice(0, -1)}/${at.host}${at.pathname}${at.search}`;
}

/** Name session and sub-agent, from the client's own headers; of a sub-agent's sub-agent the session is the first one. */
function named(headers) {
	const own = headers.get("x-session-id") ?? headers.get("x-opencode-session") ?? "";
	const parent = headers.get("x-parent-session-id");
	if (parent) above.set(own, above.get(parent) ?? parent);
	const session = above.get(own);
	headers.set("x-cutline-session", session ?? own);
	if (session) headers.set("x-cutline-agent", own);
	return headers;
}

/** `fetch`, with what carries a history sent through the proxy, its provider named in the path. */
async function through(input, init) {
	const asked = typeof input === "object" && "url" in input ? input : undefined;
	const method = String(init?.method ?? asked?.method ?? "GET").toUpperCase();
	const there = method === "POST" ? instead(String(asked?.url ?? input)) : undefined;
	if (!there) return direct(input, init);
	const headers = new Headers(init?.headers ?? asked?.headers);
	return direct(asked ? new Request(there, asked) : there, { ...init, headers: named(headers) });
}
through[OURS] = direct;
globalThis.fetch = Object.assign(through, { preconnect: direct.preconnect });

/** Ask one of the proxy's hooks; nothing where it does not answer. */
async function ask(name, payload) {
	try {
		const body = JSON.stringify(payload);
		const signal = AbortSignal.timeout(HOOK_MS);
		const answer = await direct(`${given.address}/cutline/hook/${name}`, { method: "POST", body, signal });
		return answer.ok ? ((await answer.json()).hookSpecificOutput ?? {}) : {};
	} catch {
		return {};
	}
}

// -------------------------------------------------------------------------------------------------------- opencode

/** The text of a result: opencode's own tools tell one, those of MCP servers a list of parts. */
const words = (result) => result.output ?? (result.content ?? []).map((part) => part.text ?? "").join("\n");

function append(result, text) {
	if (typeof result.output === "string") result.output += `\n\n${text}`;
	else result.content?.push({ type: "text", text });
}

/** Tokens at which the client sums a session up, as it reckons them; 0 where that is not known. */
function limit(session, reserved) {
	const { context = 0, input = 0, output = 0 } = models.get(session)?.limit ?? {};
	const most = Number(process.env.OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX) || 32_000;
	const answer = Math.min(output, most) || most;
	const usable = input ? input - (reserved ?? Math.min(20_000, answer)) : context - answer;
	return Math.max(0, usable);
}

/** Google's API gives calls no ids, so that none can be found in an answer. */
const unnamed = (session) => String(models.get(session)?.api?.npm ?? "").includes("google");

export const Cutline = async () => {
	const reminders = new Map();
	let config = {};

	return {
		async config(held) {
			config = held;
			held.mcp = { ...held.mcp, cutline: given.server };
			held.instructions = [...(held.instructions ?? []), given.mandate];
			const before = typeof held.permission === "string" ? { "*": held.permission } : held.permission;
			const allowed = Object.fromEntries(given.tools.map((tool) => [tool, "allow"]));
			const rest = Object.entries(before ?? {}).filter(([name]) => !(name in allowed));
			held.permission = { ...Object.fromEntries(rest), ...allowed }; // of two rules that fit, the later one counts
		},

		async "experimental.chat.system.transform"(_, told) {
			// The run's folder has another name each time; the prompt must begin alike in every run.
			for (const [at, text] of told.system.entries()) told.system[at] = text.replaceAll(given.mandate, "cutline");
		},

		async "chat.params"(asked) {
			models.set(asked.sessionID, asked.model);
		},

		async "tool.execute.before"({ tool, sessionID, callID }, { args }) {
			if (given.held === "text" || above.has(sessionID) || unnamed(sessionID)) return;
			const call = { tool_name: tool, tool_input: args, tool_use_id: callID };
			const told = await ask("before-call", { session_id: sessionID, ...call });
			if (told.permissionDecision === "deny") throw new Error(told.permissionDecisionReason);
			if (told.additionalContext) reminders.set(callID, told.additionalContext);
		},

		async "tool.execute.after"({ tool, sessionID, callID }, result) {
			if (!result || above.has(sessionID)) return;
			const reminder = reminders.get(callID);
			reminders.delete(callID);
			if (reminder) append(result, reminder);
			if (!given.compaction || result.isError) return;
			const told = await ask("after-call", {
				session_id: sessionID,
				hook_event_name: "PostToolUse",
				tool_name: tool,
				tool_response: words(result),
				limit: limit(sessionID, config.compaction?.reserved),
			});
			if (told.additionalContext) append(result, told.additionalContext);
		},
	};
};
