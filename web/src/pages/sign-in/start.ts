import { api, got, type Schema } from "@/api/client";
import { importText } from "@/shared/workflow/import";

/** startTemplate creates a workflow from a template and runs it with the template's sample payload. */
export async function startTemplate({ name, title }: { name: string; title: string }): Promise<Schema["Run"]> {
	const { source, payload } = await got(api.GET("/v1/templates/{name}", { params: { path: { name } } }));
	const { id } = await importText(source, title);
	return got(
		api.POST("/v1/workflows/{workflow_id}/runs", { params: { path: { workflow_id: id } }, body: { payload } }),
	);
}
