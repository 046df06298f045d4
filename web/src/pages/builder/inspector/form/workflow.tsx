import { useEditor } from "@/pages/builder/state";
import { WorkflowSelect } from "@/shared/search/workflow-select";
import type { FieldProps } from "./props";

/** WorkflowControl selects another workflow by name. */
export function WorkflowControl({ plan, value, onChange }: FieldProps) {
	const { id } = useEditor();
	return (
		<WorkflowSelect
			label={plan.label}
			none="Choose a workflow…"
			exclude={[id]}
			value={typeof value === "string" ? value : ""}
			onChange={(next) => onChange(next || undefined)}
		/>
	);
}
