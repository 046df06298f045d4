import { useEffect, useRef } from "react";
import { isBlock, type Step, type Trigger, triggerNode } from "@/builder/model";
import { type Selected, useEditorState, useFixed, useSelected } from "@/builder/state";
import { EmptyState } from "@/ui/states";
import { useActions } from "../data/queries";
import { ActionForm } from "./action";
import { useFieldFocus } from "./focus";
import { firstEmpty, planForm } from "./form/plan";
import type { JsonSchema } from "./form/schema";
import { Heading } from "./heading";
import { LoopForm } from "./loop";
import { StepOptions } from "./options";
import { InspectorScope } from "./scope";
import { TriggerForm } from "./trigger/form";
import { WorkflowForm } from "./workflow";

/** Inspector is the settings of what is selected: a step, a trigger, or the workflow itself. */
export function Inspector() {
	const selected = useSelected();
	const fixed = useFixed();
	const root = useRef<HTMLDivElement>(null);
	const node = nodeOf(selected);
	useTarget(root, selected, node);
	// The editor is there before the first expression is typed, so that no letter waits for it.
	useEffect(() => void import("./expression/editor"), []);
	return (
		<div ref={root} className="h-full min-h-0 overflow-y-auto bg-surface">
			<InspectorScope key={node ?? ""} node={node}>
				<fieldset disabled={fixed} aria-label="Settings" className="min-w-0">
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
					Choose one step to see its settings. What you do on the canvas is done to all of them.
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

/** Follows requests for the focus; without a field it is the first that is required and empty. */
function useTarget(root: React.RefObject<HTMLDivElement | null>, selected: Selected, node: string | null): void {
	const target = useEditorState((state) => state.target);
	const wanted = target && target.node === node ? target : null;
	const empty = useEmptyField(selected);
	const start = selected.kind === "step" || selected.kind === "trigger" ? selected.pointer : "";
	const field = wanted === null ? null : (wanted.field ?? empty);
	useFieldFocus(root, field === null ? null : start + field, wanted?.count ?? 0);
}

/** The first empty required field of what is selected; null while that is not known. */
function useEmptyField(selected: Selected): string | null {
	const step: Step | undefined = selected.kind === "step" ? selected.step : undefined;
	const action = useActions()?.get(step?.uses ?? "");
	if (selected.kind === "trigger") return emptyOfTrigger(selected.trigger);
	if (!step) return null;
	if (step.foreach === "") return "/foreach";
	if (step.repeat?.until === "") return "/repeat/until";
	if (!action) return null;
	const schema = action.input_schema as JsonSchema;
	const { main, more } = planForm(schema, schema, step.with);
	const name = firstEmpty([...main, ...more], step.with ?? {}) ?? main[0]?.name;
	return name === undefined ? "/name" : `/with/${name}`;
}

const firstOfTrigger: Readonly<Record<string, string>> = { schedule: "/cron", event: "/events", poll: "/request" };

function emptyOfTrigger(trigger: Trigger): string {
	return firstOfTrigger[trigger.type] ?? "/id";
}
