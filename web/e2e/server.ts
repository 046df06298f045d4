import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { inject } from "vitest";

export interface Server {
	url: string;
	/** The admin key printed on first start. */
	key: string;
	/** The link that creates the owner; empty once it has been used. */
	welcome: string;
	/** call makes a request with the key and returns the JSON of the response. */
	// biome-ignore lint/suspicious/noExplicitAny: tests know what they asked for
	call: (method: string, path: string, body?: unknown) => Promise<any>;
	stop: () => Promise<void>;
	/** start starts the server again, with the same data and address. */
	start: () => Promise<void>;
}

/** The servers that a run of the tests that is ended would leave behind. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
	for (const child of running) child.kill("SIGKILL");
});

/** startServer starts a server with its own data directory. */
export async function startServer(flags: string[] = []): Promise<Server> {
	const data = mkdtempSync(join(inject("data"), "stepmill-data-"));
	let child: ChildProcess | undefined;
	const server: Server = {
		url: "",
		key: "",
		welcome: "",
		call: (method, path, body) => call(server, method, path, body),
		start: async () => {
			const listen = server.url ? new URL(server.url).host : `127.0.0.1:${await freePort()}`;
			child = spawn(
				inject("binary"),
				[
					"serve",
					"--listen",
					listen,
					"--data-dir",
					data,
					"--egress-allow",
					"127.0.0.0/8",
					"--disk-timeout",
					"3m",
					...flags,
				],
				{
					stdio: ["ignore", "pipe", "pipe"],
				},
			);
			running.add(child);
			// The first start ends with the link for the owner.
			const text = await greeting(child, server.url ? /ready at \S+\n/ : /\/welcome#token=\S+\n/);
			server.url = /ready at (http:\S+)/.exec(text)?.[1] ?? server.url;
			server.key = /smk_\w+/.exec(text)?.[0] ?? server.key;
			server.welcome = /http:\S+\/welcome#token=\S+/.exec(text)?.[0] ?? "";
		},
		stop: async () => {
			await end(child);
			child = undefined;
		},
	};
	await server.start();
	return server;
}

/**
 * freePort returns a free port outside the ephemeral range: otherwise another process could
 * get it while the server is stopped.
 */
async function freePort(): Promise<number> {
	for (;;) {
		const port = 20_000 + Math.floor(Math.random() * 10_000);
		const probe = createServer();
		const free = await new Promise<boolean>((resolve) => {
			probe.once("error", () => resolve(false));
			probe.listen(port, "127.0.0.1", () => resolve(true));
		});
		if (!free) continue;
		await new Promise((closed) => probe.close(closed));
		return port;
	}
}

/** greeting returns what the server prints once it is ready, up to and including `last`. */
function greeting(child: ChildProcess, last: RegExp): Promise<string> {
	return new Promise((resolve, reject) => {
		let text = "";
		const late = setTimeout(() => reject(new Error(`the server did not start: ${text}`)), 120_000);
		const take = (piece: Buffer) => {
			text += piece;
			if (!last.test(text)) return;
			clearTimeout(late);
			resolve(text);
		};
		child.stdout?.on("data", take);
		child.stderr?.on("data", take);
		child.once("exit", (code) => {
			clearTimeout(late);
			reject(new Error(`the server ended with ${code}: ${text}`));
		});
	});
}

async function end(child: ChildProcess | undefined): Promise<void> {
	if (!child || child.exitCode !== null) return;
	const gone = new Promise((resolve) => child.once("exit", resolve));
	child.kill("SIGTERM");
	const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
	await gone;
	clearTimeout(late);
	running.delete(child);
}

async function call(server: Server, method: string, path: string, body?: unknown) {
	const send = async () => {
		const response = await fetch(server.url + path, {
			method,
			headers: {
				Authorization: `Bearer ${server.key}`,
				...(body === undefined ? {} : { "Content-Type": "application/json" }),
			},
			body: body === undefined ? undefined : JSON.stringify(body),
		});
		return { response, text: await response.text() };
	};
	let { response, text } = await send();
	// The store of a server on a busy machine may be busy for a moment.
	for (const end = Date.now() + 180_000; isBusy(response, text) && Date.now() < end; ) {
		await new Promise((resolve) => setTimeout(resolve, 200));
		({ response, text } = await send());
	}
	if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
	return text ? JSON.parse(text) : undefined;
}

/** isBusy reports whether a request was rejected for the moment and had no effect. */
function isBusy(response: Response, text: string): boolean {
	return response.status === 503 && text.includes('"unavailable"') && !text.includes("it is not known whether");
}
