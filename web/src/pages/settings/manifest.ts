import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { api, gotTagged, type Schema } from "@/api/client";

// The integrations that a workspace has described itself, by their manifests.

/** A manifest with its ETag. */
export interface Stored {
	data: Schema["StoredManifest"];
	etag: string;
}

/** manifestQuery reads the manifest of an own integration. */
export const manifestQuery = (id: string) =>
	queryOptions({
		queryKey: ["integrations", id, "manifest"],
		queryFn: ({ signal }): Promise<Stored> =>
			gotTagged(api.GET("/v1/integrations/{id}/manifest", { params: { path: { id } }, signal })),
	});

/** The body of a request is the text as it was written, with its comments. */
const written = (text: string) => ({
	headers: { "Content-Type": "application/yaml" },
	body: {},
	bodySerializer: () => text,
});

/** addIntegration adds an own integration. */
export const addIntegration = (text: string) => gotTagged(api.POST("/v1/integrations", written(text)));

/** replaceManifest replaces the manifest of an own integration, unless it has another ETag. */
export const replaceManifest = (id: string, text: string, etag: string) =>
	gotTagged(
		api.PUT("/v1/integrations/{id}", { params: { path: { id }, header: { "If-Match": etag } }, ...written(text) }),
	);

/** deleteIntegration deletes an own integration that has no connections. */
export const deleteIntegration = (id: string) => api.DELETE("/v1/integrations/{id}", { params: { path: { id } } });

/** readAgain reads everything again that depends on manifests. */
export async function readAgain(client: QueryClient): Promise<void> {
	await Promise.all(
		["integrations", "actions", "connections"].map((root) => client.invalidateQueries({ queryKey: [root] })),
	);
}

/** The manifest to begin with. */
export const exampleManifest = `# What this integration is called. The id begins with x_ and cannot change later.
id: x_acme
name: Acme tickets
category: support
docs: https://docs.acme.example/api
base_url: https://api.acme.example/v1

# How people connect, and the only hosts that receive the credential.
connection:
  hosts: [api.acme.example]
  auth:
    - kind: bearer
      label: Access token
      help: Create one in your profile.
  test: {path: /me} # a request that fails with a wrong credential
  learn: {label: "\${{ test.email }}"} # the name of the account

# What steps can do.
operations:
  create_ticket:
    title: Create a ticket
    input:
      subject: {type: string, title: Subject, required: true}
      urgent: {type: boolean, title: Urgent}
    request:
      method: POST
      path: /tickets
      json:
        subject: \${{ input.subject }}
        urgent: \${{ input.urgent }}
`;
