import { api, got, type Schema } from "@/api/client";
import { made } from "@/pages/workflows/made";

/** startTemplate makes a workflow of a template and runs it with the template's own example. */
export async function startTemplate({ name, title }: { name: string; title: string }): Promise<Schema["Run"]> {
	const { source, payload } = await got(api.GET("/v1/templates/{name}", { params: { path: { name } } }));
	const { id } = await made(title, (id) =>
		got(api.PATCH("/v1/workflows/{id}", { params: { path: { id } }, body: { source } })),
	);
	return got(
		api.POST("/v1/workflows/{workflow_id}/runs", { params: { path: { workflow_id: id } }, body: { payload } }),
	);
}
