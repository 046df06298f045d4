import type { EditorView } from "@codemirror/view";
import { sentence } from "../sentence";
import { offsetOf, type Problem } from "./problems";

interface ProblemListProps {
	/** What has the problems, such as "The workflow". */
	subject: string;
	problems: readonly Problem[];
	/** The editor with the text. */
	view?: EditorView;
}

/** ProblemList lists the problems of a text. Clicking the position of one moves the cursor there. */
export function ProblemList({ subject, problems, view }: ProblemListProps) {
	const show = ({ line, column }: Problem) => {
		if (!view || line === undefined) return;
		const anchor = Math.min(offsetOf(view.state.doc.toString(), line, column ?? 1), view.state.doc.length);
		view.dispatch({ selection: { anchor }, scrollIntoView: true });
		view.focus();
	};
	return (
		<div role="alert" className="rounded-6 border-l-4 border-failed bg-failed-soft px-3 py-2">
			<p className="text-failed">
				{problems.length === 1 ? `${subject} has 1 problem.` : `${subject} has ${problems.length} problems.`}
			</p>
			<ul className="mt-1 flex max-h-40 flex-col gap-1 overflow-y-auto">
				{problems.map((problem) => (
					<li key={`${problem.line}:${problem.column}:${problem.pointer}:${problem.message}`} className="break-words">
						{problem.line !== undefined && (
							<button
								type="button"
								onClick={() => show(problem)}
								className="mr-2 rounded-6 text-text tabular underline underline-offset-2"
							>
								Line {problem.line}, column {problem.column}
							</button>
						)}
						{problem.pointer && <code className="mr-2 font-mono text-12 text-muted">{problem.pointer}</code>}
						{sentence(problem.message)}
					</li>
				))}
			</ul>
		</div>
	);
}
