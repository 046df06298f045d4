import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { Button } from "@/ui/button";
import { Link } from "@/ui/link";
import { PageHeader } from "@/ui/page";
import { toast } from "@/ui/toast";
import { SettingsFrame } from "./frame";
import { LeaveWarning } from "./leave-warning";
import { addIntegration, exampleManifest, readAgain } from "./manifest";
import { ManifestEditor } from "./manifest-editor";

/** NewIntegration adds an integration, beginning with an example. */
export default function NewIntegration() {
	const [text, setText] = useState(exampleManifest);
	const added = useRef(false);
	const navigate = useNavigate();
	const client = useQueryClient();
	const add = useMutation({
		meta: { quiet: true },
		mutationFn: (manifest: string) => addIntegration(manifest),
		onSuccess: async ({ data: { id, name } }) => {
			added.current = true;
			await readAgain(client);
			toast.done(`“${name}” was added. The builder offers its operations and triggers now.`);
			await navigate({ to: "/settings/integrations/$id", params: { id }, replace: true });
		},
	});
	return (
		<SettingsFrame>
			<PageHeader
				title="Add an integration"
				lead={<Link to="/settings/integrations">Integrations</Link>}
				actions={
					<Button
						kind="primary"
						busy={add.isPending}
						disabled={text.trim() === ""}
						onClick={() => !add.isPending && add.mutate(text)}
					>
						Add integration
					</Button>
				}
			/>
			<p className="max-w-3xl text-muted">
				A manifest describes a service: how people connect to it, what steps can do there and what starts runs. Change
				the example, or write one from an OpenAPI document with{" "}
				<code className="font-mono text-12 text-text">stepmill integrations from-openapi</code> and paste it here.
			</p>
			<ManifestEditor text={text} onChange={setText} error={add.error} sent={add.variables} />
			<LeaveWarning isDirty={() => !added.current && text !== exampleManifest} />
		</SettingsFrame>
	);
}
