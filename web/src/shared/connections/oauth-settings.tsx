import { useState } from "react";
import type { ApiError } from "@/api/error";
import { Field, NativeSelect } from "@/ui/field";
import type { CustomDraft, Grant, Param } from "./form";
import { ValueRows } from "./value-rows";

interface OAuthSettingsProps {
	draft: CustomDraft;
	set: (patch: Partial<CustomDraft>) => void;
	error?: ApiError;
}

/** OAuthSettings edits how the client talks to an OAuth 2 provider. Most providers need none of it. */
export function OAuthSettings({ draft, set, error }: OAuthSettingsProps) {
	const { discover, client_auth, token_body, params } = draft;
	const paramError = problemOfParams(error);
	const [open] = useState(
		params.length > 0 || token_body !== "form" || client_auth === "private_key_jwt" || client_auth === "tls",
	);
	return (
		<details open={open}>
			<summary className="text-muted hover:text-text">Further settings</summary>
			<div className="mt-2 flex flex-col gap-4">
				<Field label="Client authentication" error={error?.field("/definition/client_auth")}>
					<NativeSelect
						value={client_auth || (discover ? "" : "basic")}
						onChange={(event) => set({ client_auth: event.target.value as CustomDraft["client_auth"] })}
						options={discover ? [{ value: "", label: "What the issuer offers" }, ...clientAuths] : clientAuths}
					/>
				</Field>
				<Field label="Token requests" error={error?.field("/definition/token_body")}>
					<NativeSelect
						value={token_body}
						onChange={(event) => set({ token_body: event.target.value as CustomDraft["token_body"] })}
						options={bodies}
					/>
				</Field>
				<ValueRows
					legend="Further parameters"
					noun="parameter"
					places={targets(draft.grant)}
					fresh={{ where: "token", name: "", value: "" }}
					rows={params}
					onChange={(params) => set({ params })}
					error={paramError}
				>
					Such as an audience for the token. They are not secret.
				</ValueRows>
			</div>
		</details>
	);
}

/** The first problem of a parameter, with its name. */
function problemOfParams(error?: ApiError): string | undefined {
	for (const { pointer, message } of error?.fields ?? []) {
		const [, name] = /^\/definition\/(?:token_)?params\/(.*)$/.exec(pointer) ?? [];
		if (name !== undefined) return `“${name.replaceAll("~1", "/").replaceAll("~0", "~")}” ${message}`;
	}
	return undefined;
}

const clientAuths = [
	{ value: "basic", label: "Client secret, in a header" },
	{ value: "body", label: "Client secret, in the body" },
	{ value: "private_key_jwt", label: "Private key (private_key_jwt)" },
	{ value: "tls", label: "Client certificate (tls_client_auth)" },
];

const bodies = [
	{ value: "form", label: "As a form, as the standard says" },
	{ value: "json", label: "As JSON" },
];

const targets = (grant: Grant): { value: Param["where"]; label: string }[] => [
	...(grant === "client_credentials"
		? []
		: [{ value: "authorize" as const, label: grant === "device_code" ? "Device URL" : "Authorize URL" }]),
	{ value: "token", label: "Token request" },
];
