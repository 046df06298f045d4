import { useMemo } from "react";
import { useMay } from "@/api/session";
import { useEditor, useSelected } from "@/pages/builder/state";
import { type Doc, find, isBlock, type Step, title } from "@/shared/workflow/model";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { useReplay } from "../replay/replay";
import { type StepTest, useReplayState } from "../replay/store";
import { DefinitionError } from "./definition-error";
import type { Gathered } from "./gather";
import { BeakerIcon } from "./icons";
import type { Origin } from "./origin";
import { PinControls } from "./pin";
import { usedBy } from "./refs";
import { ResultView } from "./result";
import { RunSelect } from "./run-select";
import { OriginBadge } from "./tree";
import { useData } from "./use-data";
import type { Tested } from "./wire";

/** StepTestView executes the selected step on its own and shows the result. */
export function StepTestView() {
	const selected = useSelected();
	if (selected.kind !== "step") return <p className="p-4 text-muted">Select a step to test it on its own.</p>;
	if (isBlock(selected.step)) {
		return (
			<p className="p-4 text-muted">A loop cannot be tested on its own. Select a step inside it, or run the draft.</p>
		);
	}
	return <OneStep step={selected.step} />;
}

function OneStep({ step }: { step: Step }) {
	const [{ tests }] = useReplayState();
	const { testStep } = useReplay();
	const gathered = useData();
	const mayTest = useMay("execute");
	const test = tests[step.id];
	return (
		<div className="h-full min-h-0 max-md:overflow-y-auto md:grid md:grid-cols-[18rem_1fr]">
			<div className="flex min-h-0 flex-col gap-3 p-4 max-md:border-b md:overflow-y-auto md:border-r">
				<Button
					kind="primary"
					icon={BeakerIcon}
					busy={test?.state === "running"}
					disabled={!mayTest}
					onClick={() => testStep(step.id)}
				>
					<span className="truncate">Test {title(step)}</span>
				</Button>
				<RunSelect label="Use data from" />
				<Sources step={step} gathered={gathered} tested={test?.result} />
				<PinControls step={step} output={outputOf(test, gathered, step.id)} />
			</div>
			<Outcome test={test} />
		</div>
	);
}

function outputOf(test: StepTest | undefined, gathered: Gathered, id: string) {
	if (test?.result?.status === "succeeded") return test.result.output;
	return gathered.origins[`steps.${id}`] === "run" ? gathered.data.outputs?.[id] : undefined;
}

function Outcome({ test }: { test: StepTest | undefined }) {
	if (!test) {
		return (
			<div className="p-4 text-muted">
				<p>The step runs once, with real effects: requests and messages are sent.</p>
				<p>Its condition and retries are ignored, and nothing is stored.</p>
			</div>
		);
	}
	if (test.state === "running") return <p className="p-4 text-muted">Running the step…</p>;
	if (test.state === "failed" || !test.result) {
		return (
			<div className="p-4">
				<DefinitionError error={test.error} />
			</div>
		);
	}
	const { status, input, output, input_files, output_files, error, reason, logs, duration_ms } = test.result;
	return (
		<ResultView
			status={status}
			duration={duration_ms}
			input={input}
			output={output}
			inputFiles={input_files}
			outputFiles={output_files}
			error={error}
			reason={reason}
			logs={logs}
		/>
	);
}

const sourceLabels: Readonly<Record<Tested["sources"][number]["source"], string>> = {
	given: "given",
	pinned: "pinned",
	run: "run",
	none: "no data",
};

/** Sources lists where the values used by the step come from: in the last test, or in the next one. */
function Sources({ step, gathered, tested }: { step: Step; gathered: Gathered; tested: Tested | undefined }) {
	const editor = useEditor();
	const used = useMemo(() => usedBy(step), [step]);
	const rows = tested
		? tested.sources.map(({ name, source }) => ({
				name,
				badge: <Badge tone={source === "none" ? "warn" : "neutral"}>{sourceLabels[source]}</Badge>,
			}))
		: used.map((name) => ({ name, badge: <OriginBadge origin={expectedOrigin(gathered, name)} /> }));
	if (rows.length === 0) return <p className="text-12 text-muted">The step uses no data from other steps.</p>;
	return (
		<div>
			<p className="pb-1 text-12 text-muted">{tested ? "Tested with" : "Will be tested with"}</p>
			<ul className="flex flex-col gap-1">
				{rows.map(({ name, badge }) => (
					<li key={name} className="flex min-w-0 items-center gap-2">
						<span className="min-w-0 flex-1 truncate">{labelOf(editor.doc, name)}</span>
						{badge}
					</li>
				))}
			</ul>
		</div>
	);
}

/** A schema is not data, so it cannot be tested with. */
function expectedOrigin(gathered: Gathered, name: string): Origin {
	const origin = gathered.origins[name] ?? (gathered.run ? "run" : "none");
	return origin === "schema" ? "none" : origin;
}

function labelOf(doc: Doc, name: string): string {
	const step = name.startsWith("steps.") ? find(doc.steps, name.slice("steps.".length))?.step : undefined;
	return step ? title(step) : name === "trigger" ? "Trigger data" : name;
}
