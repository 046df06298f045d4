import { useState } from "react";
import { isEmpty } from "@/shared/listed/field";
import type { JsonSchema } from "@/shared/listed/schema";
import { pointer as pointerTo } from "@/shared/workflow/model";
import { ChevronDownIcon, ChevronRightIcon } from "@/ui/icons";
import { SchemaField } from "./field";
import { type FieldPlan, planForm } from "./plan";
import type { SchemaFormProps } from "./props";

/** The forms whose options are expanded, until the tab is closed. */
const opened = new Set<string>();

/** SchemaForm edits an object by its JSON Schema. Required fields come first, the others are behind "More options". */
export function SchemaForm(props: SchemaFormProps) {
	const { schema, root = schema, value, without = [], name = "", all } = props;
	const plan = planForm(schema, root, value, all);
	const main = plan.main.filter((field) => !without.includes(field.name));
	const more = plan.more.filter((field) => !without.includes(field.name));
	const [open, setOpen] = useState(() => opened.has(name) || more.some((field) => !isEmpty(value[field.name])));
	const toggle = () => {
		if (open) opened.delete(name);
		else if (name) opened.add(name);
		setOpen(!open);
	};
	return (
		<div className="flex flex-col gap-4">
			<Fields {...props} fields={main} root={root} />
			{more.length > 0 && (
				<button
					type="button"
					aria-expanded={open}
					onClick={toggle}
					className="flex max-w-full min-w-0 items-center gap-1 self-start rounded-6 text-left text-muted hover:text-text"
				>
					{open ? <ChevronDownIcon /> : <ChevronRightIcon />}
					<span className="font-medium whitespace-nowrap">More options</span>
					{!open && <span className="truncate text-12">{more.map((field) => field.label).join(", ")}</span>}
				</button>
			)}
			{open && more.length > 0 && <Fields {...props} fields={more} root={root} />}
		</div>
	);
}

function Fields(props: SchemaFormProps & { fields: readonly FieldPlan[]; root: JsonSchema }) {
	const { expressions = true } = props;
	return props.fields.map((field) => (
		<SchemaField
			key={field.name}
			plan={props.bare?.includes(field.name) ? { ...field, kind: "expression" } : field}
			expressions={typeof expressions === "object" ? (expressions[field.name] ?? false) : expressions}
			value={props.value[field.name]}
			pointer={props.pointer + pointerTo(field.name)}
			root={props.root}
			onChange={(next) => props.onChange(field.name, next)}
			Form={SchemaForm}
		/>
	));
}
