import { create } from "zustand";
import { type ApiError, toApiError } from "@/api/error";
import { queries } from "@/api/query";
import { filesKey } from "@/shared/files/data";
import { endUpload, remoteServer, transfer } from "@/shared/files/transfer";

/** Upload is a file on its way to the server. */
export interface Upload {
	/** Which upload of this tab it is. */
	key: number;
	file: File;
	/** The id of the upload; undefined if it has not begun. */
	id?: string;
	state: "sending" | "paused" | "failed" | "done";
	sent: number;
	error?: ApiError;
}

/** The uploads of this tab. They continue while another page is open. */
export const useUploads = create<{ uploads: readonly Upload[] }>(() => ({ uploads: [] }));

const running = new Map<number, AbortController>();
let last = 0;

const update = (key: number, change: Partial<Upload>) =>
	useUploads.setState(({ uploads }) => ({
		uploads: uploads.map((one) => (one.key === key ? { ...one, ...change } : one)),
	}));

const remove = (key: number) =>
	useUploads.setState(({ uploads }) => ({ uploads: uploads.filter((one) => one.key !== key) }));

/** addUploads begins to upload files. */
export function addUploads(files: readonly File[]): void {
	const added = files.map((file): Upload => ({ key: ++last, file, state: "sending", sent: 0 }));
	useUploads.setState(({ uploads }) => ({ uploads: [...uploads, ...added] }));
	for (const { key } of added) void resumeUpload(key);
}

/** resumeUpload begins an upload, or continues it after a pause or an error. */
export async function resumeUpload(key: number): Promise<void> {
	const upload = useUploads.getState().uploads.find((one) => one.key === key);
	if (!upload || running.has(key)) return;
	const stop = new AbortController();
	running.set(key, stop);
	update(key, { state: "sending", error: undefined });
	try {
		await transfer(
			{
				file: upload.file,
				id: upload.id,
				signal: stop.signal,
				onId: (id) => update(key, { id }),
				onSent: (sent) => update(key, { sent }),
			},
			remoteServer,
		);
		update(key, { state: "done" });
		void queries.invalidateQueries({ queryKey: filesKey });
	} catch (thrown) {
		if (!stop.signal.aborted) update(key, { state: "failed", error: toApiError(thrown) });
	} finally {
		if (running.get(key) === stop) running.delete(key);
	}
}

function stop(key: number): void {
	running.get(key)?.abort();
	running.delete(key);
}

/** pauseUpload interrupts an upload. What the server has received stays there for a day. */
export function pauseUpload(key: number): void {
	stop(key);
	update(key, { state: "paused" });
}

/** cancelUpload ends an upload, or removes one that is done from the list. */
export function cancelUpload({ key, id, state }: Upload): void {
	stop(key);
	remove(key);
	// If this fails, the server removes the upload after a day.
	if (id !== undefined && state !== "done") void endUpload(id).catch(() => undefined);
}
