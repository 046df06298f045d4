import { api, got, type Schema } from "@/api/client";
import type { Page } from "@/api/query";
import { items, members, object, type Raw, send } from "@/api/raw-json";

/** StateKey is a key whose value is the text of the response. */
export type StateKey = Omit<Schema["StateKey"], "value"> & { value: Raw };

/** queryKey is the key of the cached list of a workflow, or with an empty id of the workspace. */
export const queryKey = (workflow: string) => ["state", workflow];

const owner = (workflow: string) => ({ workflow_id: workflow || undefined });

/** readKeys reads a page of keys. */
export async function readKeys(
	workflow: string,
	cursor: string | undefined,
	signal: AbortSignal,
): Promise<Page<StateKey>> {
	const params = { query: { ...owner(workflow), limit: 50, cursor } };
	const page = members(await got(api.GET("/v1/state", { params, signal, parseAs: "text" })));
	return {
		data: items(page.get("data") ?? "[]").map(readKey),
		next_cursor: JSON.parse(page.get("next_cursor") ?? "null"),
	};
}

function readKey(text: Raw): StateKey {
	const { value, ...rest } = JSON.parse(text) as Schema["StateKey"];
	return { ...rest, value: members(text).get("value") ?? JSON.stringify(value) };
}

export interface KeyPut {
	workflow: string;
	key: string;
	value: Raw;
	/** A duration such as "24h"; undefined for a key that does not expire. */
	expiresIn?: string;
	/** Leaves a key that exists as it is. */
	ifAbsent: boolean;
}

/** putKey stores a key and reports whether it did, which it always does without ifAbsent. */
export async function putKey({ workflow, key, value, expiresIn, ifAbsent }: KeyPut): Promise<boolean> {
	const body: [string, Raw][] = [
		["value", value],
		["if_absent", String(ifAbsent)],
	];
	if (expiresIn !== undefined) body.push(["expires_in", JSON.stringify(expiresIn)]);
	const params = { path: { key }, query: owner(workflow) };
	const { response } = await api.PUT("/v1/state/{key}", { params, ...send(object(body)) });
	return !ifAbsent || response.status === 201;
}

export async function deleteKey(workflow: string, key: string): Promise<void> {
	await api.DELETE("/v1/state/{key}", { params: { path: { key }, query: owner(workflow) } });
}
