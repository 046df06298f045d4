import { useEffect, useRef } from "react";
import { type Selected, useEditorState, useReadOnly, useSelected } from "@/pages/builder/state";
import type { JsonSchema } from "@/shared/listed/schema";
import { triggerInfo } from "@/shared/triggers";
import { isBlock, type Step, triggerNode } from "@/shared/workflow/model";
import { EmptyState } from "@/ui/states";
import { useActions } from "../data/queries";
import { ActionForm } from "./action";
import { useFieldFocus } from "./focus";
import { firstEmpty, planForm } from "./form/plan";
import { Heading } from "./heading";
import { LoopForm } from "./loop";
import { StepOptions } from "./options";
import { InspectorScope } from "./scope";
import { TriggerForm } from "./trigger/form";
import { WorkflowForm } from "./workflow";

/** Inspector shows the settings of the selection: a step, a trigger, or the workflow itself. */
export function Inspector() {
	const selected = useSelected();
	const readOnly = useReadOnly();
	const root = useRef<HTMLDivElement>(null);
	const node = nodeOf(selected);
	useTarget(root, selected, node);
	// Preloads the editor, so that typing the first expression does not wait for it.
	useEffect(() => void import("./expression/editor"), []);
	return (
		<div ref={root} className="h-full min-h-0 overflow-y-auto bg-surface">
			<InspectorScope key={node ?? ""} node={node}>
				<fieldset disabled={readOnly} aria-label="Settings" className="min-w-0">
					<Content selected={selected} />
				</fieldset>
			</InspectorScope>
		</div>
	);
}

function Content({ selected }: { selected: Selected }) {
	switch (selected.kind) {
		case "step":
			return <StepForm step={selected.step} pointer={selected.pointer} />;
		case "trigger":
			return <TriggerForm trigger={selected.trigger} pointer={selected.pointer} />;
		case "several":
			return (
				<EmptyState title={`${selected.nodes.length} selected`}>
					Select a single step to see its settings. Actions on the canvas apply to all of them.
				</EmptyState>
			);
		default:
			return <WorkflowForm />;
	}
}

function StepForm({ step, pointer }: { step: Step; pointer: string }) {
	const block = isBlock(step);
	return (
		<>
			<Heading node={step.id} id={step.id} pointer={pointer} named name={step.name}>
				<h2 className="text-14 font-semibold">{block ? (step.repeat ? "Repeat" : "For each") : "Step"}</h2>
			</Heading>
			{block ? <LoopForm step={step} pointer={pointer} /> : <ActionForm step={step} pointer={pointer} />}
			<StepOptions step={step} pointer={pointer} block={block} />
		</>
	);
}

function nodeOf(selected: Selected): string | null {
	if (selected.kind === "step") return selected.step.id;
	return selected.kind === "trigger" ? triggerNode(selected.trigger.id) : null;
}

/** Handles focus requests; without a field, the first empty required one gets the focus. */
function useTarget(root: React.RefObject<HTMLDivElement | null>, selected: Selected, node: string | null): void {
	const target = useEditorState((state) => state.target);
	const wanted = target && target.node === node ? target : null;
	const empty = useEmptyField(selected);
	const start = selected.kind === "step" || selected.kind === "trigger" ? selected.pointer : "";
	const field = wanted === null ? null : (wanted.field ?? empty);
	useFieldFocus(root, field === null ? null : start + field, wanted?.count ?? 0);
}

/** The first empty required field of the selection; null while unknown. */
function useEmptyField(selected: Selected): string | null {
	const step: Step | undefined = selected.kind === "step" ? selected.step : undefined;
	const action = useActions()?.get(step?.uses ?? "");
	if (selected.kind === "trigger") return triggerInfo(selected.trigger.type).first;
	if (!step) return null;
	if (step.foreach === "") return "/foreach";
	if (step.repeat?.until === "") return "/repeat/until";
	if (!action) return null;
	const schema = action.input_schema as JsonSchema;
	const { main, more } = planForm(schema, schema, step.with);
	const name = firstEmpty([...main, ...more], step.with ?? {}) ?? main[0]?.name;
	return name === undefined ? "/name" : `/with/${name}`;
}
