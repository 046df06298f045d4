import { useEditor } from "@/pages/builder/state";
import { type Json, type Trigger, triggerNode } from "@/shared/workflow/model";
import { SkeletonRows } from "@/ui/states";
import { useFormat } from "../../data/queries";
import { SchemaForm } from "../form/form";
import type { JsonSchema } from "../form/schema";
import { Heading } from "../heading";
import { EventForm } from "./event";
import { ScheduleForm } from "./schedule";
import { TriggerStatus } from "./trigger-status";
import { WebhookAddress } from "./webhook";

export const triggerTitles: Readonly<Record<Trigger["type"], { title: string; lead: string }>> = {
	manual: { title: "Manual", lead: "Someone starts a run here or through the API. This works for every workflow." },
	schedule: { title: "Schedule", lead: "Runs start at set times, or at an interval." },
	webhook: { title: "Webhook", lead: "Runs start when the URL of this trigger is called." },
	event: { title: "Event", lead: "Runs start when something happens in other workflows." },
	poll: { title: "Poll", lead: "A server is polled regularly, and each new item in its response starts a run." },
};

/** TriggerForm edits a trigger, depending on its type. */
export function TriggerForm({ trigger, pointer }: { trigger: Trigger; pointer: string }) {
	const { title, lead } = triggerTitles[trigger.type];
	return (
		<>
			<Heading node={triggerNode(trigger.id)} id={trigger.id} pointer={pointer}>
				<div>
					<h2 className="text-14 font-semibold">{title}</h2>
					<p className="text-muted">{lead}</p>
				</div>
			</Heading>
			<div className="flex flex-col gap-4 px-4 pb-4">
				<Members trigger={trigger} pointer={pointer} />
			</div>
			<TriggerStatus trigger={trigger} />
		</>
	);
}

function Members({ trigger, pointer }: { trigger: Trigger; pointer: string }) {
	const editor = useEditor();
	const format = useFormat();
	if (trigger.type === "manual") return null;
	if (!format) return <SkeletonRows rows={3} />;
	const set = (name: string, value: Json | undefined) => editor.setField(`${pointer}/${name}`, value);
	const rest = (without: readonly string[]) => (
		<SchemaForm
			name={trigger.type}
			schema={triggerSchema(format, trigger.type)}
			root={format}
			value={trigger as unknown as Record<string, Json>}
			pointer={pointer}
			without={["id", "type", ...without]}
			bare={["items", "key", "cursor"]}
			expressions={{ dedupe: true, verify: "text", request: true }}
			onChange={set}
		/>
	);
	switch (trigger.type) {
		case "schedule":
			return (
				<>
					<ScheduleForm trigger={trigger} pointer={pointer} />
					{rest(["cron", "every", "timezone"])}
				</>
			);
		case "webhook":
			return (
				<>
					<WebhookAddress trigger={trigger} />
					{rest([])}
				</>
			);
		case "event":
			return (
				<>
					{rest(["workflows"])}
					<EventForm trigger={trigger} pointer={pointer} />
				</>
			);
		default:
			return rest([]);
	}
}

/** The schema of a trigger, with the fields in display order. */
function triggerSchema(format: JsonSchema, type: string): JsonSchema {
	const trigger = format.$defs?.trigger ?? {};
	const order: Readonly<Record<string, readonly string[]>> = {
		webhook: ["verify", "methods", "respond", "dedupe", "rate"],
		poll: ["request", "every", "items", "key", "cursor"],
	};
	const names = order[type] ?? Object.keys(trigger.properties ?? {});
	const others = Object.keys(trigger.properties ?? {}).filter((name) => !names.includes(name));
	const properties = Object.fromEntries(
		[...names, ...others].map((name) => [name, trigger.properties?.[name] ?? true]),
	);
	return { ...trigger, required: [], properties };
}
