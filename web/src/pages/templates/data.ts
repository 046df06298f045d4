import { useQuery } from "@tanstack/react-query";
import { api, got, type Schema } from "@/api/client";

export type TemplateItem = Schema["TemplateItem"];
export type Template = Schema["Template"];

export function useTemplates() {
	return useQuery({
		queryKey: ["templates"],
		queryFn: ({ signal }) => got(api.GET("/v1/templates", { params: { query: { limit: 100 } }, signal })),
	});
}

export function useTemplate(name: string) {
	return useQuery({
		queryKey: ["templates", name],
		queryFn: ({ signal }) => got(api.GET("/v1/templates/{name}", { params: { path: { name } }, signal })),
	});
}
