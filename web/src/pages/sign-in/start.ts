import { api, got, type Schema } from "@/api/client";
import { createFromTemplate } from "@/shared/workflow/template";

/** startTemplate creates a workflow from a template and runs it with the template's sample payload. */
export async function startTemplate({ name }: { name: string }): Promise<Schema["Run"]> {
	const { payload } = await got(api.GET("/v1/templates/{name}", { params: { path: { name } } }));
	const { id } = await createFromTemplate(name);
	return got(
		api.POST("/v1/workflows/{workflow_id}/runs", { params: { path: { workflow_id: id } }, body: { payload } }),
	);
}
