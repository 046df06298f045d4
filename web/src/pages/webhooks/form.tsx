import type { ApiError } from "@/api/error";
import { WorkflowSelect } from "@/shared/search/workflow-select";
import { Checkbox, Field, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { type EventName, events } from "./events";

export interface Draft {
	url: string;
	events: EventName[];
	/** Empty for all workflows. */
	workflow: string;
}

export const emptyDraft: Draft = { url: "", events: ["run.succeeded", "run.failed"], workflow: "" };

export function complete(draft: Draft): boolean {
	return draft.url.trim() !== "" && draft.events.length > 0;
}

/** bodyOf returns the request body for a draft. */
export function bodyOf(draft: Draft) {
	return { url: draft.url.trim(), events: draft.events, workflow_id: draft.workflow || null };
}

export interface FormProps {
	draft: Draft;
	onChange: (draft: Draft) => void;
	error?: ApiError;
}

/** Form contains the fields of a webhook. */
export function Form({ draft, onChange, error }: FormProps) {
	const set = (patch: Partial<Draft>) => onChange({ ...draft, ...patch });
	const choose = (name: EventName, on: boolean) =>
		set({ events: on ? [...draft.events, name] : draft.events.filter((other) => other !== name) });
	const url = error?.field("/url") ?? (error?.code === "webhook_url_not_allowed" ? error.message : undefined);
	return (
		<>
			<Field
				label="URL"
				required
				error={url}
				hint="Receives a signed POST request for each event and must respond with a 2xx status."
			>
				<TextInput
					type="url"
					inputMode="url"
					spellCheck={false}
					value={draft.url}
					onChange={(event) => set({ url: event.target.value })}
					maxLength={2048}
					placeholder="https://example.com/hooks/stepmill"
				/>
			</Field>
			<fieldset className="flex flex-col gap-2">
				<legend className="mb-1 font-medium">Events</legend>
				<div className="grid gap-2 sm:grid-cols-2">
					{events.map(({ name, when }) => (
						<Checkbox
							key={name}
							label={<code className="font-mono text-12">{name}</code>}
							hint={when}
							checked={draft.events.includes(name)}
							onChange={(event) => choose(name, event.target.checked)}
						/>
					))}
				</div>
				{draft.events.length === 0 && <p className="text-12 text-failed">Select at least one event.</p>}
			</fieldset>
			<Field label="Workflow" error={error?.field("/workflow_id")}>
				<WorkflowSelect none="All workflows" value={draft.workflow} onChange={(workflow) => set({ workflow })} />
			</Field>
			{error && !url && <ErrorNote error={error} />}
		</>
	);
}
