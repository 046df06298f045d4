import { useEditor } from "@/pages/builder/state";
import { Listings } from "@/shared/listed/context";
import type { JsonSchema } from "@/shared/listed/schema";
import { isObject, type Json, pointer as pointerTo, type Trigger } from "@/shared/workflow/model";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { useFormat, useServiceTrigger } from "../../../data/queries";
import { ConnectionField } from "../../connection";
import { SchemaForm } from "../../form/form";

/** ServiceForm edits a trigger of a service: its connection, its settings and, if it looks for what is new, how often. */
export function ServiceForm({ trigger, pointer }: { trigger: Trigger; pointer: string }) {
	const editor = useEditor();
	const format = useFormat();
	const found = useServiceTrigger(trigger.type);
	if (found.isError) return <ErrorState error={found.error} onRetry={() => void found.refetch()} />;
	if (found.data === null) return <p className="text-failed">There is no trigger “{trigger.type}”.</p>;
	if (!format || !found.data) return <SkeletonRows rows={3} />;
	const { connection, input_schema, summary } = found.data;
	const [service = ""] = trigger.type.split(".");
	const schema = input_schema as JsonSchema;
	const given = typeof trigger.connection === "string" ? trigger.connection : undefined;
	const settings = isObject(trigger.with) ? trigger.with : {};
	return (
		<>
			{summary && <p>{summary}</p>}
			<ConnectionField value={given} pointer={pointer} integration={connection} service={service} />
			<Listings
				of={{ trigger: trigger.type }}
				schema={schema}
				connection={given}
				input={settings}
				pointer={`${pointer}/with`}
			>
				<SchemaForm
					key={trigger.type}
					name={trigger.type}
					schema={schema}
					value={settings}
					pointer={`${pointer}/with`}
					onChange={(name, value) => editor.setField(`${pointer}/with${pointerTo(name)}`, value)}
				/>
			</Listings>
			{found.data.every === null ? (
				<p className="text-muted">The service calls when there is something new.</p>
			) : (
				<SchemaForm
					name="every"
					schema={everySchema(format, found.data.every)}
					root={format}
					value={trigger as unknown as Record<string, Json>}
					pointer={pointer}
					expressions={false}
					onChange={(name, value) => editor.setField(`${pointer}/${name}`, value)}
				/>
			)}
		</>
	);
}

/** The schema of the interval alone, with the one of the type as its default. */
function everySchema(format: JsonSchema, standard: string): JsonSchema {
	const every = format.$defs?.trigger?.properties?.every;
	return { type: "object", properties: { every: { ...(typeof every === "object" && every), default: standard } } };
}
