import { useDocument, useEditor, useGraph, useReadOnly } from "@/pages/builder/state";
import { canConnect, connect, disconnect, find, listOf, type Step, title } from "@/shared/workflow/model";
import { IconButton } from "@/ui/button";
import { NativeSelect } from "@/ui/field";
import { CloseIcon } from "@/ui/icons";
import { useProblem } from "./form/context";
import { Section } from "./section";

/** Needs edits which steps a step runs after. */
export function Needs({ step }: { step: Step }) {
	const editor = useEditor();
	const doc = useDocument();
	const readOnly = useReadOnly();
	const node = useGraph().nodes.get(step.id);
	const problem = useProblem(`${node?.pointer}/needs`, true);
	const needs = node?.needs ?? [];
	const others = (listOf(doc.steps, node?.block ?? null) ?? []).filter((other) => canConnect(doc, other.id, step.id));
	const nameOf = (id: string) => {
		const found = find(doc.steps, id)?.step;
		return found ? title(found) : id;
	};
	const summary = needs.length > 0 ? needs.map(nameOf).join(", ") : "Starts immediately";
	return (
		<Section title="Runs after" summary={summary} open={problem !== undefined}>
			<div data-pointer={`${node?.pointer}/needs`} className="flex flex-col gap-2">
				{needs.length === 0 && <p className="text-muted">It starts immediately, without waiting for other steps.</p>}
				<ul className="flex flex-col gap-1">
					{needs.map((id) => (
						<li key={id} className="flex items-center gap-2 rounded-6 border bg-canvas py-0.5 pr-1 pl-3">
							<span className="min-w-0 flex-1 truncate">{nameOf(id)}</span>
							<span className="truncate font-mono text-12 text-muted">{id}</span>
							<IconButton
								small
								icon={CloseIcon}
								disabled={readOnly}
								label={`Stop running after ${nameOf(id)}`}
								onClick={() => editor.apply((now) => disconnect(now, id, step.id), { keepSelection: true })}
							/>
						</li>
					))}
				</ul>
				{others.length > 0 && (
					<NativeSelect
						aria-label="Add a step to run after"
						value=""
						disabled={readOnly}
						onChange={(event) =>
							editor.apply((now) => connect(now, event.target.value, step.id), { keepSelection: true })
						}
						options={[
							{ value: "", label: "Add a step…" },
							...others.map((other) => ({ value: other.id, label: title(other) })),
						]}
					/>
				)}
				{problem && <p className="text-12 text-failed">{problem}</p>}
			</div>
		</Section>
	);
}
