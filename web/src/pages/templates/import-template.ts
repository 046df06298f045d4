import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { importText } from "@/shared/workflow/import";
import type { Template } from "./data";

/** useImportTemplate creates a draft from a template and opens it. */
export function useImportTemplate() {
	const navigate = useNavigate();
	const client = useQueryClient();
	return useMutation({
		mutationFn: ({ title, source }: Pick<Template, "title" | "source">) => importText(source, title),
		onSuccess: ({ id }) => {
			void client.invalidateQueries({ queryKey: ["workflows"] });
			return navigate({ to: "/workflows/$id", params: { id } });
		},
	});
}
