import { api, base, got } from "@/api/client";
import { ApiError, errorOf } from "@/api/error";

// Resumable uploads follow the protocol tus, https://tus.io/protocols/resumable-upload.

const tus = { "Tus-Resumable": "1.0.0" } as const;

/** Server is what an upload needs of the server. */
export interface Server {
	/** create begins an upload and returns its id. */
	create(file: File, signal: AbortSignal): Promise<string>;
	/** received returns how many bytes the server has. */
	received(id: string, signal: AbortSignal): Promise<number>;
	/** append sends bytes and reports how many are under way. */
	append(id: string, offset: number, bytes: Blob, signal: AbortSignal, onSent: (sent: number) => void): Promise<void>;
	/** wait waits before another attempt. */
	wait(seconds: number, signal: AbortSignal): Promise<void>;
}

/** How much is sent in one request. Proxies limit requests, often to 100 MB. */
export const requestBytes = 64 << 20;

/** How often in a row a request is tried again. */
const maxFailures = 6;

export interface Transfer {
	file: File;
	/** The id of the upload, and later of the file; undefined if it has not begun. */
	id?: string;
	signal: AbortSignal;
	onId: (id: string) => void;
	onSent: (sent: number) => void;
}

/** transfer sends a file from where the server has it, and tries again after interruptions. */
export async function transfer({ file, id, signal, onId, onSent }: Transfer, server: Server): Promise<void> {
	let failures = 0;
	let offset: number | undefined = id === undefined ? 0 : undefined;
	for (;;) {
		try {
			if (id === undefined) {
				id = await server.create(file, signal);
				onId(id);
			}
			offset ??= await server.received(id, signal);
			onSent(offset);
			if (offset >= file.size) return;
			const at: number = offset;
			const bytes = file.slice(at, at + requestBytes);
			await server.append(id, at, bytes, signal, (sent) => onSent(at + sent));
			offset = at + bytes.size;
			failures = 0;
		} catch (thrown) {
			failures += 1;
			if (signal.aborted || failures > maxFailures || !isTemporary(thrown)) throw thrown;
			await server.wait((thrown instanceof ApiError && thrown.retryAfter) || 2 ** (failures - 1), signal);
			if (id !== undefined) offset = undefined;
		}
	}
}

/** isTemporary reports whether another attempt may succeed. */
function isTemporary(thrown: unknown): boolean {
	if (!(thrown instanceof ApiError)) return thrown instanceof TypeError;
	const { status, code } = thrown;
	return (
		status === 0 || code === "upload_conflict" || status === 423 || status === 429 || (status >= 500 && status !== 507)
	);
}

/** remoteServer sends uploads to the API. */
export const remoteServer: Server = {
	async create(file, signal) {
		const header = { ...tus, "Upload-Length": file.size, "Upload-Metadata": metadata(file) };
		const { response } = await api.POST("/v1/files/uploads", { params: { header }, signal });
		return response.headers.get("Location")?.split("/").pop() ?? "";
	},
	async received(id, signal) {
		const params = { path: { id }, header: tus };
		return (await got(api.GET("/v1/files/uploads/{id}", { params, signal }))).received;
	},
	append: appendBytes,
	wait: (seconds, signal) =>
		new Promise((resolve, reject) => {
			signal.throwIfAborted();
			const timer = setTimeout(resolve, seconds * 1_000);
			signal.addEventListener("abort", () => {
				clearTimeout(timer);
				reject(signal.reason);
			});
		}),
};

/** endUpload deletes what the server has received. */
export async function endUpload(id: string): Promise<void> {
	await api.DELETE("/v1/files/uploads/{id}", { params: { path: { id }, header: tus } });
}

/** metadata returns the name and the type of a file as the protocol encodes them. */
export function metadata({ name, type }: { name: string; type: string }): string {
	const encoded = (text: string) =>
		btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
	return `filename ${encoded(name)},filetype ${encoded(type)}`;
}

/** appendBytes uses XMLHttpRequest, because fetch does not report what was sent. */
function appendBytes(
	id: string,
	offset: number,
	bytes: Blob,
	signal: AbortSignal,
	onSent: (sent: number) => void,
): Promise<void> {
	return new Promise((resolve, reject) => {
		const request = new XMLHttpRequest();
		request.open("PATCH", `${base}/v1/files/uploads/${id}`);
		request.setRequestHeader("Content-Type", "application/offset+octet-stream");
		request.setRequestHeader("Tus-Resumable", tus["Tus-Resumable"]);
		request.setRequestHeader("Upload-Offset", String(offset));
		request.upload.onprogress = (event) => onSent(event.loaded);
		request.onload = () => (request.status < 300 ? resolve() : reject(readError(request)));
		request.onerror = () => reject(new TypeError("the connection was interrupted"));
		request.onabort = () => reject(signal.reason);
		signal.addEventListener("abort", () => request.abort());
		if (signal.aborted) reject(signal.reason);
		else request.send(bytes);
	});
}

function readError(request: XMLHttpRequest): ApiError {
	const headers = new Headers();
	const wait = request.getResponseHeader("Retry-After");
	if (wait) headers.set("Retry-After", wait);
	let body: unknown;
	try {
		body = JSON.parse(request.responseText);
	} catch {
		body = undefined;
	}
	return errorOf(new Response(null, { status: request.status, headers }), body);
}
