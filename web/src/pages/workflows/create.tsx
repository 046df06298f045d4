import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";

/** CreateDialog asks for a name and opens the builder with an empty workflow. */
export function CreateDialog({ onOpenChange }: { onOpenChange: (open: boolean) => void }) {
	const [name, setName] = useState("");
	const navigate = useNavigate();
	const client = useQueryClient();
	const create = useMutation({
		mutationFn: () => got(api.POST("/v1/workflows", { body: { name: name.trim() } })),
		meta: { quiet: true },
		onSuccess: ({ id }) => {
			void client.invalidateQueries({ queryKey: ["workflows"] });
			return navigate({ to: "/workflows/$id", params: { id } });
		},
	});
	const error = create.error && toApiError(create.error);
	const problem = error?.field("/name");
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title="New workflow"
			description="It starts as a draft. Triggers start runs only once you activate it."
			width="small"
			onSubmit={() => name.trim() !== "" && create.mutate()}
			actions={
				<>
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" busy={create.isPending} disabled={name.trim() === ""}>
						Create workflow
					</Button>
				</>
			}
		>
			<Field label="Name" error={problem} required>
				<TextInput
					value={name}
					onChange={(event) => setName(event.target.value)}
					maxLength={200}
					placeholder="Greet a new customer"
				/>
			</Field>
			{error && !problem && <ErrorNote error={error} />}
		</Dialog>
	);
}
