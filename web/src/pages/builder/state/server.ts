import { api, got, gotTagged, type Schema } from "@/api/client";
import type { Doc, Verdict } from "@/shared/workflow/model";

export interface Tagged {
	readonly data: Schema["Workflow"];
	readonly etag: string;
}

/** The API calls of the open document. */
export interface Server {
	read(id: string): Promise<Tagged>;
	patch(id: string, etag: string, patch: Schema["WorkflowPatch"]): Promise<Tagged>;
	import(body: Schema["WorkflowImport"]): Promise<Schema["Workflow"]>;
	validate(id: string, doc: Doc, signal: AbortSignal): Promise<Pick<Verdict, "problems" | "warnings">>;
}

export const server: Server = {
	read: (id) => gotTagged(api.GET("/v1/workflows/{id}", { params: { path: { id } } })) as Promise<Tagged>,
	patch: (id, etag, body) =>
		gotTagged(
			api.PATCH("/v1/workflows/{id}", { params: { path: { id }, header: { "If-Match": etag } }, body }),
		) as Promise<Tagged>,
	import: (body) => got(api.POST("/v1/workflows/import", { body })),
	validate: async (id, { triggers, steps, settings }, signal) => {
		const body = { triggers, steps, settings } as unknown as Schema["WorkflowDefinition"];
		return got(api.POST("/v1/workflows/{id}/validate", { params: { path: { id } }, body, signal }));
	},
};
