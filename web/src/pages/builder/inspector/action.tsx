import { useState } from "react";
import type { Schema } from "@/api/client";
import { useEditor, useReadOnly } from "@/pages/builder/state";
import { Listings } from "@/shared/listed/context";
import type { JsonSchema } from "@/shared/listed/schema";
import {
	change,
	type Doc,
	type Edit,
	isObject,
	type JsonObject,
	pointer as pointerTo,
	type Step,
	switchAction,
} from "@/shared/workflow/model";
import { Button } from "@/ui/button";
import { TextInput } from "@/ui/field";
import { Popover } from "@/ui/popover";
import { SkeletonRows } from "@/ui/states";
import { useActions } from "../data/queries";
import { ConnectionField } from "./connection";
import { useProblem } from "./form/context";
import { SchemaForm } from "./form/form";
import { SwitchForm } from "./switch";

/** ActionForm edits the action of a step and its input. */
export function ActionForm({ step, pointer }: { step: Step; pointer: string }) {
	const editor = useEditor();
	const actions = useActions();
	const action = actions?.get(step.uses ?? "");
	const problem = useProblem(`${pointer}/uses`, true);
	return (
		<div className="flex flex-col gap-4 px-4 pb-4">
			<div data-pointer={`${pointer}/uses`} className="flex items-start gap-2 rounded-8 border bg-canvas px-3 py-2">
				<div className="min-w-0 flex-1">
					<p className="font-medium">{action?.title ?? step.uses ?? "No action yet"}</p>
					<p className="line-clamp-2 text-12 break-words text-muted" title={action?.summary}>
						{action?.summary ?? step.uses}
					</p>
				</div>
				<ChangeAction step={step} />
			</div>
			{(!actions || (action === undefined && step.uses)) && <SkeletonRows rows={3} />}
			{problem && <p className="text-12 break-words text-failed">{problem}</p>}
			{action?.integration && (
				<ConnectionField
					value={step.connection}
					pointer={pointer}
					integration={action.integration}
					service={action.name.slice(0, action.name.indexOf("."))}
				/>
			)}
			{step.uses === switchAction && <SwitchForm step={step} pointer={pointer} />}
			{action && step.uses !== switchAction && (
				<Listings
					of={{ operation: action.name }}
					schema={action.input_schema as JsonSchema}
					connection={step.connection}
					input={step.with ?? {}}
					pointer={`${pointer}/with`}
				>
					<SchemaForm
						key={action.name}
						name={action.name}
						schema={action.input_schema as JsonSchema}
						value={step.with ?? {}}
						pointer={`${pointer}/with`}
						onChange={(name, value) => editor.setField(`${pointer}/with${pointerTo(name)}`, value)}
					/>
				</Listings>
			)}
			{action && !action.integration && (action.accepts_connection || step.connection !== undefined) && (
				<ConnectionField value={step.connection} pointer={pointer} />
			)}
		</div>
	);
}

function ChangeAction({ step }: { step: Step }) {
	const editor = useEditor();
	const readOnly = useReadOnly();
	const actions = useActions();
	const [open, setOpen] = useState(false);
	const [text, setText] = useState("");
	const wanted = text.trim().toLowerCase();
	const found = [...(actions?.values() ?? [])].flatMap((action) =>
		action && `${action.name} ${action.title}`.toLowerCase().includes(wanted) ? [action] : [],
	);
	const choose = (uses: string) => {
		setOpen(false);
		editor.apply((doc) => withAction(doc, step, uses, actions?.get(uses) ?? undefined), {
			keepSelection: true,
			announce: `Changed to ${uses}.`,
		});
	};
	return (
		<Popover
			label="Change action"
			align="end"
			open={open}
			onOpenChange={setOpen}
			className="w-72 p-2"
			trigger={
				<Button small kind="quiet" disabled={readOnly}>
					Change
				</Button>
			}
		>
			<TextInput
				aria-label="Search actions"
				placeholder="Search actions"
				value={text}
				onChange={(event) => setText(event.target.value)}
				onKeyDown={(event) => event.key === "Enter" && found[0] && choose(found[0].name)}
			/>
			<ul className="mt-2 flex flex-col">
				{found.map((action) => (
					<li key={action.name}>
						<button
							type="button"
							aria-current={action.name === step.uses || undefined}
							onClick={() => choose(action.name)}
							className="flex w-full flex-col rounded-6 px-2 py-1.5 text-left hover:bg-sunken aria-[current]:bg-accent-soft"
						>
							<span className="font-medium">{action.title}</span>
							<span className="font-mono text-12 text-muted">{action.name}</span>
						</button>
					</li>
				))}
				{found.length === 0 && <li className="px-2 py-1.5 text-muted">No actions match.</li>}
			</ul>
		</Popover>
	);
}

/** Changes the action of a step. What the new action also accepts is kept. */
function withAction(doc: Doc, step: Step, uses: string, action: Schema["Action"] | undefined): Edit {
	const known = (action?.input_schema as JsonSchema | undefined)?.properties ?? {};
	const input = isObject(step.with) ? step.with : {};
	const kept: JsonObject = Object.fromEntries(Object.entries(input).filter(([name]) => name in known));
	let changed = change(doc, step.id, "/uses", uses);
	if (!action?.accepts_connection) changed = change(changed.doc, step.id, "/connection", undefined);
	return change(changed.doc, step.id, "/with", Object.keys(kept).length > 0 ? kept : undefined);
}
