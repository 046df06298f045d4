import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { useEditor, useSelected } from "@/pages/builder/state";
import { IconButton } from "@/ui/button";
import { CloseIcon } from "@/ui/icons";
import { toast } from "@/ui/toast";
import { InspectorScope } from "../inspector/scope";
import { RunView } from "../replay/run-view";
import { type ReplayState, useReplayState } from "../replay/store";
import { StepTestView } from "./step-test";
import { DataTree } from "./tree";

const tabs: { value: ReplayState["tab"]; label: string }[] = [
	{ value: "test", label: "Test this step" },
	{ value: "run", label: "Run the draft" },
	{ value: "data", label: "Available data" },
];

/** TestPanel tests a step or the whole document before it is saved. */
export function TestPanel() {
	const editor = useEditor();
	const [{ tab }, replay] = useReplayState();
	return (
		<Radix.Root
			value={tab}
			onValueChange={(next) => replay.set({ tab: next as ReplayState["tab"] })}
			className="flex h-full min-h-0 flex-col bg-surface"
		>
			<div className="flex shrink-0 items-center border-b pr-2 pl-4">
				<Radix.List aria-label="Test" className="flex flex-1 gap-4">
					{tabs.map(({ value, label }) => (
						<Radix.Trigger
							key={value}
							value={value}
							className="-mb-px h-9 border-b-2 border-transparent font-medium text-muted -outline-offset-2 hover:text-text data-[state=active]:border-accent data-[state=active]:text-text"
						>
							{label}
						</Radix.Trigger>
					))}
				</Radix.List>
				<IconButton small icon={CloseIcon} label="Close test panel" onClick={() => editor.test(false)} />
			</div>
			<Pane value="test">
				<StepTestView />
			</Pane>
			<Pane value="run">
				<RunView />
			</Pane>
			<Pane value="data">
				<Available />
			</Pane>
		</Radix.Root>
	);
}

function Pane({ value, children }: { value: string; children: ReactNode }) {
	return (
		<Radix.Content value={value} className="min-h-0 flex-1 -outline-offset-2">
			{children}
		</Radix.Content>
	);
}

/** Available lists the data that the selected step can use, to be dragged into its fields. */
function Available() {
	const selected = useSelected();
	if (selected.kind !== "step" && selected.kind !== "trigger") {
		return <p className="p-4 text-muted">Select a step to see what its fields can use.</p>;
	}
	const node = selected.kind === "step" ? selected.step.id : `@${selected.trigger.id}`;
	const pointer = `${selected.pointer}/${selected.kind === "step" ? "with" : "request"}`;
	return (
		<div className="h-full overflow-y-auto p-3">
			<p className="pb-2 pl-1 text-12 text-muted">Drag a value into a field, or click it to copy its expression.</p>
			<InspectorScope key={node} node={node}>
				<DataTree pointer={pointer} onPick={(path) => void copyPath(path)} />
			</InspectorScope>
		</div>
	);
}

async function copyPath(path: string): Promise<void> {
	await navigator.clipboard.writeText(`\${{ ${path} }}`);
	toast.done(`Copied ${path}`);
}
