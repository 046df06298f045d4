import type { ApiError } from "@/api/error";
import { Field, NativeSelect, TextArea, TextInput } from "@/ui/field";
import type { CustomDraft, Grant, Placement } from "./form";
import { hostsOf, originOf, plainHost } from "./hosts";
import { OAuthSettings } from "./oauth-settings";
import { RedirectUrl } from "./redirect-url";
import { ValueRows } from "./value-rows";

interface CustomFormProps {
	kind: string;
	draft: CustomDraft;
	onChange: (draft: CustomDraft) => void;
	error?: ApiError;
}

/** CustomForm edits how a custom connection authenticates, and to which hosts. */
export function CustomForm({ kind, draft, onChange, error }: CustomFormProps) {
	const set = (patch: Partial<CustomDraft>) => onChange({ ...draft, ...patch });
	const consents = draft.grant === "authorization_code";
	const device = draft.grant === "device_code";
	const problem = (name: string) =>
		error?.fields.find(({ pointer }) => pointer === `/definition/${name}` || pointer.startsWith(`/definition/${name}/`))
			?.message;
	const url = (name: UrlMember, label: string, hint: string, required = false) => (
		<Field label={label} hint={hint} error={problem(name)} required={required}>
			<TextInput
				type="url"
				spellCheck={false}
				value={draft[name]}
				onChange={(event) => set({ [name]: event.target.value })}
			/>
		</Field>
	);
	return (
		<>
			<Field label="Hosts" required error={problem("hosts")} hint={<HostsHint draft={draft} />}>
				<TextArea
					rows={2}
					spellCheck={false}
					className="font-mono text-12"
					value={draft.hosts}
					onChange={(event) => set({ hosts: event.target.value })}
				/>
			</Field>
			{kind === "api_key" && (
				<ValueRows
					legend="Where the key goes"
					noun="place"
					places={places}
					fresh={{ where: "header", name: "", value: "${{ secret.key }}" }}
					required
					rows={draft.placements}
					onChange={(placements) => set({ placements })}
					error={problem("apply")}
				>
					<code className="font-mono">{"${{ secret.key }}"}</code> stands for the key, which you enter below.
				</ValueRows>
			)}
			{kind === "oauth2" && (
				<>
					<Field label="Grant" error={problem("grant")}>
						<NativeSelect
							value={draft.grant}
							onChange={(event) => set({ grant: event.target.value as Grant })}
							options={grants}
						/>
					</Field>
					<Field label="Addresses of the service">
						<NativeSelect
							value={draft.discover ? "issuer" : "urls"}
							onChange={(event) => set({ discover: event.target.value === "issuer" })}
							options={sources}
						/>
					</Field>
				</>
			)}
			{kind === "oauth2" && draft.discover && url("issuer", "Issuer", issuerHint, true)}
			{kind === "oauth2" && !draft.discover && (
				<>
					{consents && url("authorize_url", "Authorize URL", "Where people consent.", true)}
					{device && url("device_url", "Device URL", "Where the service issues codes for people.", true)}
					{url("token_url", "Token URL", "Where tokens are issued.", true)}
					{url("revoke_url", "Revoke URL", "Where the token is revoked when the connection is deleted. Optional.")}
				</>
			)}
			{kind === "service_account" && url("token_url", "Token URL", "Where tokens are issued.", true)}
			{(kind === "oauth2" || kind === "service_account") && (
				<Field label="Scopes" hint="Separated by spaces." error={problem("scopes")}>
					<TextInput
						spellCheck={false}
						value={draft.scopes}
						onChange={(event) => set({ scopes: event.target.value })}
					/>
				</Field>
			)}
			{kind === "aws_sigv4" && (
				<Field
					label="Service"
					hint="The name in signatures, such as s3. By default, the first part of the host."
					error={problem("service")}
				>
					<TextInput
						spellCheck={false}
						value={draft.service}
						onChange={(event) => set({ service: event.target.value })}
					/>
				</Field>
			)}
			{kind === "oauth2" && <OAuthSettings draft={draft} set={set} error={error} />}
			{kind === "oauth2" && consents && <RedirectUrl serviceName="the service" />}
			{url("test_url", "Test URL", "A URL on one of the hosts that responds with an error if the credential is wrong.")}
		</>
	);
}

/** HostsHint says where the credential is sent, with the scheme: a host alone is one with TLS. */
function HostsHint({ draft }: { draft: CustomDraft }) {
	const hosts = hostsOf(draft.hosts);
	const plain = plainHost(hosts, draft.test_url);
	if (hosts.length === 0)
		return (
			<>
				One per line, such as api.example.com or http://10.0.0.5:3000 for a server without TLS. The credential is sent
				to these hosts only.
			</>
		);
	return (
		<>
			The credential is sent to <code className="font-mono break-all">{hosts.map(originOf).join(", ")}</code> only.
			{plain && (
				<span role="status" className="block text-waiting">
					The test URL is on http, but {plain.listed} means https. Enter {plain.plain} if the server has no TLS.
				</span>
			)}
		</>
	);
}

type UrlMember = "test_url" | "issuer" | "authorize_url" | "device_url" | "token_url" | "revoke_url";

const grants = [
	{ value: "authorization_code", label: "Authorization code: a person consents" },
	{ value: "device_code", label: "Device code: a person enters a code" },
	{ value: "client_credentials", label: "Client credentials" },
];

const sources = [
	{ value: "urls", label: "Enter them" },
	{ value: "issuer", label: "Discover them from the issuer" },
];

const issuerHint = "Such as https://id.example.com. Its OpenID or OAuth metadata has the other addresses.";

const places: { value: Placement["where"]; label: string }[] = [
	{ value: "header", label: "Header" },
	{ value: "query", label: "Query" },
];
