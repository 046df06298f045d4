import { nameOf } from "@/pages/builder/command/edit";
import { useTitles } from "@/pages/builder/data/definition-error";
import { fieldSentence, fieldTitle } from "@/pages/builder/data/problem-words";
import { useDocument, useEditor, useEditorState, useProblems, useWarnings } from "@/pages/builder/state";
import type { Problem } from "@/shared/workflow/model";
import { cx } from "@/ui/class";
import { CheckIcon } from "@/ui/icons";
import { EmptyState } from "@/ui/states";
import { SideHeader } from "./side-header";

/**
 * Problems lists everything that keeps the workflow from working, and then what will not do
 * what it should, with links to the fields. `bare` omits the heading.
 */
export function Problems({ bare = false }: { bare?: boolean }) {
	const problems = useProblems();
	const warnings = useWarnings();
	const mistakes = useEditorState((state) => state.broken?.errors) ?? [];
	const editor = useEditor();
	const checking = useEditorState((state) => state.checking);
	return (
		<section aria-label="Problems" className="flex min-h-0 flex-1 flex-col">
			{!bare && <SideHeader title="Problems" lead={checking ? "Checking…" : undefined} />}
			{problems.length + warnings.length + mistakes.length === 0 ? (
				<EmptyState icon={CheckIcon} title="No problems">
					This workflow is ready to run.
				</EmptyState>
			) : (
				<ul className="min-h-0 flex-1 overflow-y-auto p-2">
					{mistakes.map((mistake) => (
						<li key={`${mistake.offset} ${mistake.message}`}>
							<Row
								where="YAML"
								field={`line ${mistake.line}, column ${mistake.column}`}
								message={mistake.message}
								hint="The other views show the last valid version."
								onClick={() => editor.revealText(mistake.offset)}
							/>
						</li>
					))}
					{problems.map((problem) => (
						<li key={`${problem.pointer} ${problem.message}`}>
							<One problem={problem} />
						</li>
					))}
					{warnings.map((warning) => (
						<li key={`${warning.pointer} ${warning.message}`}>
							<One problem={warning} warning />
						</li>
					))}
				</ul>
			)}
		</section>
	);
}

function One({ problem, warning = false }: { problem: Problem; warning?: boolean }) {
	const editor = useEditor();
	const doc = useDocument();
	const where = problem.node === undefined ? "Workflow" : nameOf(doc, problem.node);
	const title = fieldTitle(doc, useTitles(), problem.pointer);
	return (
		<Row
			where={where}
			field=""
			message={fieldSentence(title, problem.message)}
			hint={problem.hint}
			warning={warning}
			onClick={() => editor.revealProblem(problem)}
		/>
	);
}

interface RowProps {
	where: string;
	field: string;
	message: string;
	hint?: string;
	/** It does not keep the workflow from being saved. */
	warning?: boolean;
	onClick: () => void;
}

function Row({ where, field, message, hint, warning = false, onClick }: RowProps) {
	return (
		<button
			type="button"
			onClick={onClick}
			className="flex w-full flex-col rounded-6 px-2 py-2 text-left -outline-offset-2 hover:bg-sunken"
		>
			<span className="flex w-full min-w-0 items-baseline gap-2">
				<span className="min-w-0 truncate font-medium">{where}</span>
				{field && <span className="min-w-0 truncate font-mono text-12 text-muted">{field}</span>}
			</span>
			<span className={cx("break-words", warning ? "text-waiting" : "text-failed")}>
				{warning && "Warning: "}
				{message}
			</span>
			{hint && <span className="text-12 break-words text-muted">{hint}</span>}
		</button>
	);
}
