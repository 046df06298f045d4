import { useEditor } from "@/pages/builder/state";
import type { JsonSchema } from "@/shared/listed/schema";
import { triggerInfo } from "@/shared/triggers";
import { type Json, type Trigger, triggerNode } from "@/shared/workflow/model";
import { SkeletonRows } from "@/ui/states";
import { useFormat } from "../../data/queries";
import { SchemaForm } from "../form/form";
import { Heading } from "../heading";
import type { TriggerEditor } from "./editor";
import { triggerEditor } from "./editors";
import { TriggerStatus } from "./trigger-status";

/** TriggerForm edits a trigger, depending on its type. */
export function TriggerForm({ trigger, pointer }: { trigger: Trigger; pointer: string }) {
	const { name, lead } = triggerInfo(trigger.type);
	const parts = triggerEditor(trigger.type);
	return (
		<>
			<Heading node={triggerNode(trigger.id)} id={trigger.id} pointer={pointer}>
				<div>
					<h2 className="text-14 font-semibold">{name}</h2>
					<p className="text-muted">{lead}</p>
				</div>
			</Heading>
			<div className="flex flex-col gap-4 px-4 pb-4">
				{parts.Form && <parts.Form trigger={trigger} pointer={pointer} />}
				{!parts.neverFires && !parts.Form && <Members trigger={trigger} pointer={pointer} parts={parts} />}
			</div>
			{parts.Section && <parts.Section trigger={trigger} />}
			{!parts.neverFires && <TriggerStatus trigger={trigger} />}
		</>
	);
}

function Members({ trigger, pointer, parts }: { trigger: Trigger; pointer: string; parts: TriggerEditor }) {
	const editor = useEditor();
	const format = useFormat();
	if (!format) return <SkeletonRows rows={3} />;
	const { Before, After } = parts;
	return (
		<>
			{Before && <Before trigger={trigger} pointer={pointer} />}
			<SchemaForm
				name={trigger.type}
				schema={triggerSchema(format, parts.order)}
				root={format}
				value={trigger as unknown as Record<string, Json>}
				pointer={pointer}
				without={["id", "type", ...(parts.without ?? [])]}
				bare={parts.bare}
				expressions={parts.expressions ?? false}
				onChange={(name, value) => editor.setField(`${pointer}/${name}`, value)}
			/>
			{After && <After trigger={trigger} pointer={pointer} />}
		</>
	);
}

/** The schema of a trigger, with the fields in display order. */
function triggerSchema(format: JsonSchema, order?: readonly string[]): JsonSchema {
	const trigger = format.$defs?.trigger ?? {};
	const names = order ?? Object.keys(trigger.properties ?? {});
	const others = Object.keys(trigger.properties ?? {}).filter((name) => !names.includes(name));
	const properties = Object.fromEntries(
		[...names, ...others].map((name) => [name, trigger.properties?.[name] ?? true]),
	);
	return { ...trigger, required: [], properties };
}
