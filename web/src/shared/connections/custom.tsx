import type { ApiError } from "@/api/error";
import { Button, IconButton } from "@/ui/button";
import { Field, NativeSelect, TextArea, TextInput } from "@/ui/field";
import { PlusIcon, TrashIcon } from "@/ui/icons";
import type { CustomDraft, Grant, Placement } from "./form";
import { RedirectUrl } from "./redirect-url";

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
			<Field
				label="Hosts"
				required
				error={problem("hosts")}
				hint="One per line, such as api.example.com. The credential is sent to these hosts only."
			>
				<TextArea
					rows={2}
					spellCheck={false}
					className="font-mono text-12"
					value={draft.hosts}
					onChange={(event) => set({ hosts: event.target.value })}
				/>
			</Field>
			{kind === "api_key" && (
				<Placements
					placements={draft.placements}
					onChange={(placements) => set({ placements })}
					error={problem("apply")}
				/>
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
			{kind === "oauth2" && consents && <RedirectUrl serviceName="the service" />}
			{url("test_url", "Test URL", "A URL on one of the hosts that responds with an error if the credential is wrong.")}
		</>
	);
}

type UrlMember = "test_url" | "issuer" | "authorize_url" | "token_url" | "revoke_url";

const grants = [
	{ value: "authorization_code", label: "Authorization code: a person consents" },
	{ value: "client_credentials", label: "Client credentials" },
];

const sources = [
	{ value: "urls", label: "Enter them" },
	{ value: "issuer", label: "Discover them from the issuer" },
];

const issuerHint = "Such as https://id.example.com. Its OpenID or OAuth metadata has the other addresses.";

interface PlacementsProps {
	placements: readonly Placement[];
	onChange: (placements: Placement[]) => void;
	error?: string;
}

const places = [
	{ value: "header", label: "Header" },
	{ value: "query", label: "Query" },
];

function Placements({ placements, onChange, error }: PlacementsProps) {
	const set = (at: number, patch: Partial<Placement>) =>
		onChange(placements.map((one, i) => (i === at ? { ...one, ...patch } : one)));
	return (
		<fieldset className="flex min-w-0 flex-col gap-2">
			<legend className="mb-1 font-medium">Where the key goes</legend>
			{placements.map((one, i) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity, and are only removed by the person who edits them
				<div key={i} className="flex min-w-0 flex-wrap items-center gap-2">
					<NativeSelect
						aria-label={`Place ${i + 1}`}
						className="w-24"
						options={places}
						value={one.where}
						onChange={(event) => set(i, { where: event.target.value as Placement["where"] })}
					/>
					<TextInput
						aria-label={`Name of place ${i + 1}`}
						className="!w-36 font-mono text-12"
						value={one.name}
						onChange={(event) => set(i, { name: event.target.value })}
					/>
					<TextInput
						aria-label={`Value of place ${i + 1}`}
						className="!w-auto min-w-40 flex-1 font-mono text-12"
						value={one.value}
						onChange={(event) => set(i, { value: event.target.value })}
					/>
					{placements.length > 1 && (
						<IconButton
							small
							icon={TrashIcon}
							label={`Remove place ${i + 1}`}
							onClick={() => onChange(placements.filter((_, at) => at !== i))}
						/>
					)}
				</div>
			))}
			<Button
				small
				kind="quiet"
				icon={PlusIcon}
				className="self-start"
				onClick={() => onChange([...placements, { where: "header", name: "", value: "${{ secret.key }}" }])}
			>
				Add a place
			</Button>
			{error && <p className="text-12 break-words text-failed">{error}</p>}
			<p className="text-12 text-muted">
				<code className="font-mono">{"${{ secret.key }}"}</code> stands for the key, which you enter below.
			</p>
		</fieldset>
	);
}
