import { api, got, type Schema } from "@/api/client";

/** made creates a draft and fills it; one that cannot be filled is not left behind. */
export async function made(
	name: string,
	fill: (id: string) => Promise<Schema["Workflow"]>,
): Promise<Schema["Workflow"]> {
	const { id } = await got(api.POST("/v1/workflows", { body: { name } }));
	try {
		return await fill(id);
	} catch (refusal) {
		await api.DELETE("/v1/workflows/{id}", { params: { path: { id } } }).catch(() => undefined);
		throw refusal;
	}
}
