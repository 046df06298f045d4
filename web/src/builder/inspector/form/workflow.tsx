import { NativeSelect } from "@/ui/field";
import { useWorkflowNames } from "../../data/queries";
import type { FieldProps } from "./props";

/** WorkflowControl chooses another workflow by its name. */
export function WorkflowControl({ plan, value, onChange }: FieldProps) {
	const listed = useWorkflowNames();
	const chosen = typeof value === "string" ? value : "";
	const known = chosen === "" || listed.some((workflow) => workflow.id === chosen);
	return (
		<NativeSelect
			aria-label={plan.label}
			value={chosen}
			onChange={(event) => onChange(event.target.value || undefined)}
			options={[
				{ value: "", label: listed.length > 0 ? "Choose a workflow…" : "There are no other workflows yet" },
				...(known ? [] : [{ value: chosen, label: chosen }]),
				...listed.map(({ id, name }) => ({ value: id, label: name })),
			]}
		/>
	);
}
