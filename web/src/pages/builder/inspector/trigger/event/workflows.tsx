import { useEditor } from "@/pages/builder/state";
import { useWorkflowName } from "@/shared/search/use-search";
import { WorkflowSelect } from "@/shared/search/workflow-select";
import type { Trigger } from "@/shared/workflow/model";
import { IconButton } from "@/ui/button";
import { Field, FieldContext } from "@/ui/field";
import { CloseIcon } from "@/ui/icons";
import { useProblem } from "../../form/context";

/** EventWorkflows selects the workflows whose events count. */
export function EventWorkflows({ trigger, pointer }: { trigger: Trigger; pointer: string }) {
	const editor = useEditor();
	const at = `${pointer}/workflows`;
	const problem = useProblem(at, true);
	const chosen = Array.isArray(trigger.workflows) ? trigger.workflows.map(String) : [];
	const set = (next: string[]) => editor.setField(at, next.length > 0 ? next : undefined);
	return (
		<div data-pointer={at}>
			<Field
				label="Workflows"
				hint={chosen.length > 0 ? undefined : "No workflow is selected: the events of all other workflows count."}
				error={problem}
			>
				<FieldContext value={null}>
					<fieldset aria-label="Workflows" className="flex flex-col gap-2">
						{chosen.length > 0 && (
							<ul className="flex max-h-48 flex-col overflow-y-auto rounded-8 border py-1 pr-1 pl-2">
								{chosen.map((id) => (
									<Chosen key={id} id={id} onRemove={() => set(chosen.filter((one) => one !== id))} />
								))}
							</ul>
						)}
						<WorkflowSelect
							label="Add a workflow"
							none="Add a workflow…"
							required
							exclude={[editor.id, ...chosen]}
							value=""
							onChange={(id) => set([...chosen, id])}
						/>
					</fieldset>
				</FieldContext>
			</Field>
		</div>
	);
}

function Chosen({ id, onRemove }: { id: string; onRemove: () => void }) {
	const name = useWorkflowName(id) ?? id;
	return (
		<li className="flex min-w-0 items-center gap-2">
			<span className="min-w-0 flex-1 truncate" title={name}>
				{name}
			</span>
			<IconButton small icon={CloseIcon} label={`Remove ${name}`} onClick={onRemove} />
		</li>
	);
}
