import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import type { Connection } from "@/shared/connections/data";
import { toast } from "@/ui/toast";

/** useTest returns the call that tests a connection and tells the result. */
export function useTest({ id, name }: Pick<Connection, "id" | "name">) {
	const client = useQueryClient();
	return useMutation({
		mutationFn: () => got(api.POST("/v1/connections/{id}/test", { params: { path: { id } } })),
		onSuccess: ({ ok, problem }) => {
			if (ok) toast.done(`The connection “${name}” works`);
			else toast.error(new Error(`The test of “${name}” failed: ${problem}`));
			return client.invalidateQueries({ queryKey: ["connections"] });
		},
	});
}
