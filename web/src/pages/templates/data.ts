import { useQuery } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { Definition } from "@/builder/model/types";

export interface TemplateItem {
	name: string;
	title: string;
	description: string;
	category: string;
	first_run: boolean;
	/** The types of its triggers. */
	triggers: string[];
	/** The actions of its steps. */
	uses: string[];
}

export interface Template extends TemplateItem {
	source: string;
	definition: Definition;
	/** An example to run it with by hand. */
	payload: Record<string, unknown>;
}

type Read = <T>(path: string, init: { signal: AbortSignal }) => Promise<{ data?: T }>;
const read = api.GET as unknown as Read;

export function useTemplates() {
	return useQuery({
		queryKey: ["templates"],
		queryFn: ({ signal }) => got(read<{ data: TemplateItem[] }>("/v1/templates", { signal })),
		staleTime: Number.POSITIVE_INFINITY,
	});
}

export function useTemplate(name: string) {
	return useQuery({
		queryKey: ["templates", name],
		queryFn: ({ signal }) => got(read<Template>(`/v1/templates/${encodeURIComponent(name)}`, { signal })),
		staleTime: Number.POSITIVE_INFINITY,
	});
}
