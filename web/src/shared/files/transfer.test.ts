import { expect, test } from "vitest";
import { ApiError } from "@/api/error";
import { metadata, requestBytes, type Server, type Transfer, transfer } from "./transfer";

/** FakeServer fails as told, and records what it was asked. */
class FakeServer implements Server {
	calls: string[] = [];
	has = 0;
	failures: { at: string; error: unknown; kept?: number }[] = [];

	private meet(call: string): void {
		this.calls.push(call);
		const [next] = this.failures;
		if (!next || !call.startsWith(next.at)) return;
		this.failures.shift();
		this.has += next.kept ?? 0;
		throw next.error;
	}
	async create() {
		this.meet("create");
		return "file_1";
	}
	async received() {
		this.meet("received");
		return this.has;
	}
	async append(_id: string, offset: number, bytes: Blob) {
		this.meet(`append ${offset}+${bytes.size}`);
		this.has = offset + bytes.size;
	}
	async wait(seconds: number) {
		this.calls.push(`wait ${seconds}`);
	}
}

/** A file of any size that needs no memory. */
const sized = (size: number) =>
	({ name: "a", type: "", size, slice: (from: number, to: number) => ({ size: Math.min(to, size) - from }) }) as File;

function begin(server: Server, size: number, more: Partial<Transfer> = {}) {
	const sent: number[] = [];
	const given = { file: sized(size), signal: new AbortController().signal, onId: () => undefined, ...more };
	return { sent, done: transfer({ ...given, onSent: (n) => sent.push(n) }, server) };
}

const interrupted = new TypeError("the connection was interrupted");

test("a file is sent in parts", async () => {
	const server = new FakeServer();
	const { done, sent } = begin(server, requestBytes + 5);
	await done;
	expect(server.calls).toEqual(["create", `append 0+${requestBytes}`, `append ${requestBytes}+5`]);
	expect(sent).toEqual([0, requestBytes, requestBytes + 5]);
});

test("an empty file needs no bytes", async () => {
	const server = new FakeServer();
	await begin(server, 0).done;
	expect(server.calls).toEqual(["create"]);
});

test("an interrupted upload continues with what the server lacks", async () => {
	const server = new FakeServer();
	server.failures = [
		{ at: "append", error: interrupted, kept: 40 },
		{ at: "received", error: new ApiError(423, "upload_locked", "busy", [], "", 3) },
		{ at: "append", error: new ApiError(409, "upload_conflict", "another offset") },
	];
	await begin(server, 100).done;
	const failed = ["create", "append 0+100", "wait 1", "received", "wait 3", "received", "append 40+60", "wait 4"];
	expect(server.calls).toEqual([...failed, "received", "append 40+60"]);
});

test("a paused upload continues", async () => {
	const server = new FakeServer();
	server.has = 70;
	await begin(server, 100, { id: "file_1" }).done;
	expect(server.calls).toEqual(["received", "append 70+30"]);
});

test.each([
	new ApiError(413, "file_too_large", "too large"),
	new ApiError(403, "file_storage_exceeded", "full"),
	new ApiError(507, "storage_full", "full"),
])("$code ends the upload", async (error) => {
	const server = new FakeServer();
	server.failures = [{ at: "create", error }];
	await expect(begin(server, 100).done).rejects.toBe(error);
	expect(server.calls).toEqual(["create"]);
});

test("an unreachable server is not tried forever", async () => {
	const server = new FakeServer();
	server.failures = Array.from({ length: 20 }, () => ({ at: "create", error: interrupted }));
	await expect(begin(server, 100).done).rejects.toBe(interrupted);
	expect(server.calls.filter((call) => call.startsWith("wait"))).toEqual(
		[1, 2, 4, 8, 16, 32].map((seconds) => `wait ${seconds}`),
	);
});

test("an aborted upload is not tried again", async () => {
	const server = new FakeServer();
	const stop = new AbortController();
	server.failures = [{ at: "append", error: interrupted }];
	stop.abort();
	await expect(begin(server, 100, { signal: stop.signal }).done).rejects.toBe(interrupted);
	expect(server.calls).toEqual(["create", "append 0+100"]);
});

test("names and types are encoded", () => {
	expect(metadata({ name: "é.txt", type: "text/plain" })).toBe("filename w6kudHh0,filetype dGV4dC9wbGFpbg==");
	expect(metadata({ name: "a", type: "" })).toBe("filename YQ==,filetype ");
});
