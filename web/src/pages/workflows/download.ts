import { base } from "@/api/client";
import { errorOf } from "@/api/error";
import { saveBlob } from "@/ui/save-blob";

/** fileName returns a file name that is valid on every system. */
export function fileName(name: string): string {
	const plain = name
		.normalize("NFKD")
		.toLowerCase()
		.replace(/[^a-z0-9]+/g, "-")
		.replace(/^-+|-+$/g, "")
		.slice(0, 80);
	return `${plain || "workflow"}.yaml`;
}

/** download saves the YAML of a workflow as the API returns it. */
export async function download(id: string, name: string): Promise<void> {
	const response = await fetch(`${base}/v1/workflows/${encodeURIComponent(id)}`, {
		headers: { Accept: "application/yaml" },
		credentials: "same-origin",
	});
	if (!response.ok) throw errorOf(response, await response.json().catch(() => undefined));
	saveBlob(fileName(name), await response.blob());
}
