import { useEffect, useRef, useState } from "react";
import { toApiError } from "@/api/error";
import { useConnections, useIntegrations } from "@/shared/connections/data";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import type { Template } from "./data";
import { InputField } from "./input-field";
import { useCreate } from "./use-template";
import { givenValues, type Input, initialValues, type Values } from "./values";

/** UseDialog asks for the inputs of a template, creates a draft and opens it. */
export function UseDialog({ template, onClose }: { template: Template; onClose: () => void }) {
	const { inputs } = template;
	const [entered, setEntered] = useState<Values>(() => initialValues(inputs));
	const [name, setName] = useState(template.title);
	const serviceNames = new Map(useIntegrations().data?.map((one) => [one.id, one.name]));
	const values = { ...useOnlyConnections(inputs), ...entered };
	const create = useCreate(template.name, true);
	const error = create.error && toApiError(create.error);
	const fields = useRef<HTMLDivElement>(null);
	useEffect(() => {
		if (error) fields.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
	}, [error]);
	const shown = new Set(["/name", ...inputs.map((input) => `/inputs/${input.name}`)]);
	return (
		<Dialog
			open
			guarded
			onOpenChange={(open) => !open && onClose()}
			title={template.title}
			description="Creates a draft that you can change. Nothing runs by itself until you activate it."
			onSubmit={() => create.mutate({ name: name.trim(), inputs: givenValues(inputs, values) })}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={create.isPending}>
						Create workflow
					</Button>
				</>
			}
		>
			<div ref={fields} className="flex flex-col gap-4">
				{inputs.map((input) => (
					<InputField
						key={input.name}
						input={input}
						values={values}
						error={error?.field(`/inputs/${input.name}`)}
						serviceNames={serviceNames}
						onChange={(value) => setEntered((now) => ({ ...now, [input.name]: value }))}
					/>
				))}
				<Field label="Name of the workflow" error={error?.field("/name")}>
					<TextInput value={name} maxLength={200} onChange={(event) => setName(event.target.value)} />
				</Field>
			</div>
			{error && !error.fields.some(({ pointer }) => shown.has(pointer)) && <ErrorNote error={error} />}
		</Dialog>
	);
}

/** useOnlyConnections chooses connections of which there is only one that fits. */
function useOnlyConnections(inputs: readonly Input[]): Values {
	const { data = [] } = useConnections();
	return Object.fromEntries(
		inputs.flatMap(({ name, type, integration }) => {
			const fitting = type === "connection" ? data.filter((one) => one.integration === integration) : [];
			return fitting.length === 1 ? [[name, fitting[0]?.name]] : [];
		}),
	);
}
