import type { ApiError } from "@/api/error";
import { useSession } from "@/api/session";
import { Checkbox, Field, TextInput } from "@/ui/field";
import type { Integration, Way } from "./data";
import { Fields } from "./fields";
import { givenFields, isComplete } from "./form";
import { LinkedText } from "./linked-text";
import { RedirectUrl } from "./redirect-url";

/** What a person enters for an OAuth app. */
export interface AppDraft {
	readonly clientId: string;
	readonly clientSecret: string;
	/** The values of the further fields that the service asks for. */
	readonly fields: Readonly<Record<string, string>>;
	readonly shared: boolean;
}

export const emptyApp: AppDraft = { clientId: "", clientSecret: "", fields: {}, shared: false };

/** appBody returns the request that stores an OAuth app. */
export function appBody(service: Integration, way: Way, draft: AppDraft) {
	return {
		integration: service.id,
		auth: way.id,
		client_id: draft.clientId.trim(),
		client_secret: draft.clientSecret.trim(),
		fields: givenFields(way.app_fields, draft.fields),
		shared: draft.shared,
	};
}

/** isAppComplete reports whether everything that an OAuth app needs is entered. */
export function isAppComplete(way: Way, { clientId, clientSecret, fields }: AppDraft): boolean {
	return clientId.trim() !== "" && clientSecret.trim() !== "" && isComplete(way.app_fields, fields);
}

interface AppFieldsProps {
	service: Integration;
	way: Way;
	draft: AppDraft;
	onChange: (draft: AppDraft) => void;
	error?: ApiError;
}

/** AppFields asks for an OAuth app, and explains how to register it at the service. */
export function AppFields({ service, way, draft, onChange, error }: AppFieldsProps) {
	const { operator } = useSession();
	const set = (patch: Partial<AppDraft>) => onChange({ ...draft, ...patch });
	const sharedError = error?.field("/shared");
	return (
		<>
			<p className="break-words">
				{way.help && <LinkedText text={way.help} />}{" "}
				<a href={service.docs} target="_blank" rel="noreferrer" className="text-accent underline">
					Documentation of {service.name}
				</a>
			</p>
			<RedirectUrl serviceName={service.name} />
			<Field label="Client ID" required error={error?.field("/client_id")}>
				<TextInput
					spellCheck={false}
					value={draft.clientId}
					onChange={(event) => set({ clientId: event.target.value })}
				/>
			</Field>
			<Field
				label="Client secret"
				required
				error={error?.field("/client_secret")}
				hint="Encrypted, and never shown again."
			>
				<TextInput
					type="password"
					autoComplete="new-password"
					value={draft.clientSecret}
					onChange={(event) => set({ clientSecret: event.target.value })}
				/>
			</Field>
			<Fields fields={way.app_fields} values={draft.fields} onChange={(fields) => set({ fields })} error={error} />
			{(operator || draft.shared) && (
				<div>
					<Checkbox
						label="Share with all workspaces"
						hint="Workspaces without an app of their own use this one."
						checked={draft.shared}
						onChange={(event) => set({ shared: event.target.checked })}
					/>
					{sharedError && <p className="text-12 text-failed">{sharedError}</p>}
				</div>
			)}
		</>
	);
}

/** isAppErrorPlaced reports whether every problem of an error is shown at its field. */
export function isAppErrorPlaced(way: Way, error: ApiError): boolean {
	const shown = new Set([
		"/client_id",
		"/client_secret",
		"/shared",
		...way.app_fields.map(({ name }) => `/fields/${name}`),
	]);
	return error.fields.length > 0 && error.fields.every(({ pointer }) => shown.has(pointer));
}
