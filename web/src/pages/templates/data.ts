import { useQuery } from "@tanstack/react-query";
import { enter } from "@/api/session";
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

export function useTemplates() {
	return useQuery({
		queryKey: ["templates"],
		queryFn: () => enter<{ data: TemplateItem[] }>("GET", "/ui/v1/templates"),
		staleTime: Number.POSITIVE_INFINITY,
	});
}

export function useTemplate(name: string) {
	return useQuery({
		queryKey: ["templates", name],
		queryFn: () => enter<Template>("GET", `/ui/v1/templates/${encodeURIComponent(name)}`),
		staleTime: Number.POSITIVE_INFINITY,
	});
}
