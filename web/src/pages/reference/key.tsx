import { useMutation } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { Field, TextInput } from "@/ui/field";
import { toast } from "@/ui/toast";

/** KeyField is the input for the key used in the examples. The key never leaves this page. */
export function KeyField({ value, onChange }: { value: string; onChange: (key: string) => void }) {
	const admin = useMay("admin");
	const create = useMutation({
		mutationFn: () =>
			got(api.POST("/v1/api-keys", { body: { name: "API reference", scopes: ["read", "write", "execute"] } })),
		onSuccess: ({ key }) => {
			onChange(key);
			toast.done("Created an API key and filled it in below. Manage it under API keys.");
		},
	});
	return (
		<div className="flex flex-wrap items-end gap-2">
			<Field
				label="Your API key"
				hint="Filled in below. It stays on this page and is not sent anywhere."
				className="max-w-md min-w-0 flex-1 basis-64"
			>
				<TextInput
					type="password"
					autoComplete="off"
					spellCheck={false}
					placeholder="smk_…"
					value={value}
					onChange={(event) => onChange(event.target.value.trim())}
				/>
			</Field>
			{admin && !value && (
				<Button busy={create.isPending} onClick={() => create.mutate()} className="mb-6">
					Create a key for me
				</Button>
			)}
		</div>
	);
}
