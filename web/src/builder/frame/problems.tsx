import { nameOf } from "@/builder/command/edit";
import type { Problem } from "@/builder/model";
import { useDocument, useEditor, useEditorState, useProblems } from "@/builder/state";
import { CheckIcon } from "@/ui/icons";
import { EmptyState } from "@/ui/states";
import { SideHeader } from "./side-header";

/** Problems lists everything that would stop the workflow from working, each a link to its field. */
export function Problems() {
	const problems = useProblems();
	const checking = useEditorState((state) => state.checking);
	return (
		<section aria-label="Problems" className="flex min-h-0 flex-1 flex-col">
			<SideHeader title="Problems" lead={checking ? "Checking…" : undefined} />
			{problems.length === 0 ? (
				<EmptyState icon={CheckIcon} title="No problems">
					Nothing stops this workflow from working.
				</EmptyState>
			) : (
				<ul className="min-h-0 flex-1 overflow-y-auto p-2">
					{problems.map((problem) => (
						<li key={`${problem.pointer} ${problem.message}`}>
							<One problem={problem} />
						</li>
					))}
				</ul>
			)}
		</section>
	);
}

function One({ problem }: { problem: Problem }) {
	const editor = useEditor();
	const doc = useDocument();
	const where = problem.node === undefined ? "Workflow" : nameOf(doc, problem.node);
	const field = problem.pointer.replace(/^(?:\/(?:steps|triggers)\/\d+)+\/?/, "").replaceAll("/", " › ");
	return (
		<button
			type="button"
			onClick={() => editor.revealProblem(problem)}
			className="flex w-full flex-col rounded-6 px-2 py-2 text-left -outline-offset-2 hover:bg-sunken"
		>
			<span className="flex w-full min-w-0 items-baseline gap-2">
				<span className="min-w-0 truncate font-medium">{where}</span>
				{field && <span className="min-w-0 truncate font-mono text-12 text-muted">{field}</span>}
			</span>
			<span className="break-words text-failed">{problem.message}</span>
			{problem.hint && <span className="text-12 break-words text-muted">{problem.hint}</span>}
		</button>
	);
}
