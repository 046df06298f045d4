import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { Schema } from "@/api/client";
import { createFromTemplate } from "@/shared/workflow/template";

/** useCreate creates a draft from a template and opens it. `quiet`: the caller shows errors. */
export function useCreate(template: string, quiet: boolean) {
	const navigate = useNavigate();
	const client = useQueryClient();
	return useMutation({
		mutationFn: (body: Schema["TemplateUse"]) => createFromTemplate(template, body),
		meta: { quiet },
		onSuccess: ({ id }) => {
			void client.invalidateQueries({ queryKey: ["workflows"] });
			return navigate({ to: "/workflows/$id", params: { id } });
		},
	});
}
