import type { Trigger } from "@/builder/model";
import { useEditor } from "@/builder/state";
import { Checkbox, Field, FieldContext } from "@/ui/field";
import { useWorkflowNames } from "../../data/queries";
import { useProblem } from "../form/context";

/** EventForm says whose events count. */
export function EventForm({ trigger, pointer }: { trigger: Trigger; pointer: string }) {
	const editor = useEditor();
	const at = `${pointer}/workflows`;
	const problem = useProblem(at, true);
	const chosen = Array.isArray(trigger.workflows) ? trigger.workflows.map(String) : [];
	const listed = useWorkflowNames();
	const gone = chosen.filter((id) => !listed.some((workflow) => workflow.id === id));
	const flip = (id: string, on: boolean) => {
		const next = on ? [...chosen, id] : chosen.filter((one) => one !== id);
		editor.setField(at, next.length > 0 ? next : undefined);
	};
	return (
		<div data-pointer={at}>
			<Field
				label="Of which workflows"
				hint={chosen.length > 0 ? undefined : "None is chosen: the events of all others count."}
				error={problem}
			>
				<FieldContext value={null}>
					<fieldset
						aria-label="Of which workflows"
						className="flex max-h-48 flex-col gap-1 overflow-y-auto rounded-8 border p-2"
					>
						{listed.map((workflow) => (
							<Checkbox
								key={workflow.id}
								label={workflow.name}
								checked={chosen.includes(workflow.id)}
								onChange={(event) => flip(workflow.id, event.target.checked)}
							/>
						))}
						{gone.map((id) => (
							<Checkbox key={id} label={id} checked onChange={() => flip(id, false)} />
						))}
						{listed.length === 0 && gone.length === 0 && (
							<p className="text-muted">There are no other workflows yet.</p>
						)}
					</fieldset>
				</FieldContext>
			</Field>
		</div>
	);
}
