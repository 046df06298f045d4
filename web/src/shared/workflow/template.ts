import { api, got, type Schema } from "@/api/client";

/** createFromTemplate creates a draft from a template, with values for its inputs. */
export function createFromTemplate(name: string, body: Schema["TemplateUse"] = {}): Promise<Schema["Workflow"]> {
	return got(api.POST("/v1/templates/{name}/workflows", { params: { path: { name } }, body }));
}
