import { useEditor, useSelected } from "@/builder/state";
import { Field, TextInput } from "@/ui/field";

/** Inspector is the form of what is selected. */
export function Inspector() {
	const editor = useEditor();
	const selected = useSelected();
	if (selected.kind !== "step") return <p className="p-4 text-muted">Select a step to see its settings.</p>;
	return (
		<div className="flex flex-col gap-4 p-4">
			<Field label="Name">
				<TextInput
					value={selected.step.name ?? ""}
					onChange={(event) => editor.setField(`${selected.pointer}/name`, event.target.value || undefined)}
				/>
			</Field>
		</div>
	);
}
