import { useQuery } from "@tanstack/react-query";
import { api, got, type Schema } from "@/api/client";

export type Webhook = Schema["Webhook"];
export type Delivery = Schema["Delivery"];

/** Every workflow by its id, for lists to choose from and names to show. */
export function useWorkflowNames(): Map<string, string> {
	const { data } = useQuery({ queryKey: ["workflows", "names"], queryFn: ({ signal }) => readNames(signal) });
	return data ?? none;
}

const none = new Map<string, string>();

async function readNames(signal: AbortSignal): Promise<Map<string, string>> {
	const names = new Map<string, string>();
	let cursor: string | undefined;
	do {
		const page = await got(api.GET("/v1/workflows", { params: { query: { limit: 100, cursor } }, signal }));
		for (const { id, name } of page.data) names.set(id, name);
		cursor = page.next_cursor ?? undefined;
	} while (cursor);
	return names;
}

export function useWebhook(id: string) {
	return useQuery({
		queryKey: ["webhooks", id],
		queryFn: ({ signal }) => got(api.GET("/v1/webhooks/{id}", { params: { path: { id } }, signal })),
	});
}
