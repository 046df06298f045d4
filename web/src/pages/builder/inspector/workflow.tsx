import { useEditor, useEditorState } from "@/pages/builder/state";
import { Field, TextArea, TextInput } from "@/ui/field";
import { SkeletonRows } from "@/ui/states";
import { useFormat } from "../data/queries";
import { useProblem } from "./form/context";
import { SchemaForm } from "./form/form";
import { Timeout } from "./options";
import { Section } from "./section";

/** WorkflowForm edits the settings of the workflow. It is shown while nothing is selected. */
export function WorkflowForm() {
	const editor = useEditor();
	const present = useEditorState((state) => state.history.present);
	const format = useFormat();
	const name = useProblem("/name", true);
	const description = useProblem("/description", true);
	const { settings } = present.doc;
	const concurrency = { ...settings.concurrency };
	return (
		<>
			<div className="flex flex-col gap-4 p-4">
				<h2 className="text-14 font-semibold">Workflow</h2>
				<div data-pointer="/name">
					<Field label="Name" required error={name}>
						<TextInput value={present.name} maxLength={200} onChange={(event) => editor.setName(event.target.value)} />
					</Field>
				</div>
				<div data-pointer="/description">
					<Field label="Description" hint="What the workflow is for." error={description}>
						<TextArea
							rows={3}
							maxLength={4000}
							value={present.description ?? ""}
							onChange={(event) => editor.setDescription(event.target.value || null)}
						/>
					</Field>
				</div>
			</div>
			<Section title="Time limit" summary={settings.timeout ?? "1h"} open={settings.timeout !== undefined}>
				<Timeout value={settings.timeout} pointer="/settings/timeout" standard="1h" />
			</Section>
			<Section
				title="Concurrency"
				summary={settings.concurrency ? `${settings.concurrency.limit ?? 1} at a time` : "No limit"}
				open={settings.concurrency !== undefined}
			>
				{format ? (
					<SchemaForm
						schema={{ $ref: "#/$defs/concurrency" }}
						root={format}
						value={concurrency}
						pointer="/settings/concurrency"
						expressions={{ key: true }}
						onChange={(member, value) => {
							const { [member as keyof typeof concurrency]: _, ...others } = concurrency;
							const next = value === undefined ? others : { ...concurrency, [member]: value };
							editor.setField("/settings/concurrency", Object.keys(next).length > 0 ? next : undefined);
						}}
					/>
				) : (
					<SkeletonRows rows={3} />
				)}
			</Section>
		</>
	);
}
