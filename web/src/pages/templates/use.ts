import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { api, got } from "@/api/client";
import { made } from "@/pages/workflows/made";
import type { Template } from "./data";

/** useUse makes a draft of a template and opens it. */
export function useUse() {
	const navigate = useNavigate();
	const client = useQueryClient();
	return useMutation({
		mutationFn: ({ title, source }: Pick<Template, "title" | "source">) =>
			made(title, (id) => got(api.PATCH("/v1/workflows/{id}", { params: { path: { id } }, body: { source } }))),
		onSuccess: ({ id }) => {
			void client.invalidateQueries({ queryKey: ["workflows"] });
			return navigate({ to: "/workflows/$id", params: { id } });
		},
	});
}
