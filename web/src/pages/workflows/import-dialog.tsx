import type { EditorView } from "@codemirror/view";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { toApiError } from "@/api/error";
import { importText, nameFor, offsetOf, type Problem, problemsOf } from "@/shared/workflow/import";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { CodeEditor } from "@/ui/editor";
import { Field } from "@/ui/field";
import { FileDrop } from "@/ui/file-drop";
import { sentence } from "@/ui/sentence";
import { ErrorNote } from "@/ui/states";

const maxSize = 1 << 20;

/** InvalidWorkflow is thrown for a definition with problems, as opposed to a failed call. */
class InvalidWorkflow extends Error {
	constructor(readonly problems: Problem[]) {
		super("The workflow has mistakes");
	}
}

async function importFile(text: string, file?: string) {
	try {
		return await importText(text, nameFor(file));
	} catch (thrown) {
		const error = toApiError(thrown);
		throw error.fields.length > 0 ? new InvalidWorkflow(problemsOf(error)) : error;
	}
}

/** ImportDialog creates a draft from a file or text. */
export default function ImportDialog({ onOpenChange }: { onOpenChange: (open: boolean) => void }) {
	const [text, setText] = useState("");
	const [file, setFile] = useState<string>();
	const [view, setView] = useState<EditorView>(); // set after the dialog has opened
	const navigate = useNavigate();
	const client = useQueryClient();
	const importing = useMutation({
		mutationFn: () => importFile(text, file),
		meta: { quiet: true },
		onSuccess: ({ id }) => {
			void client.invalidateQueries({ queryKey: ["workflows"] });
			return navigate({ to: "/workflows/$id", params: { id } });
		},
	});
	const reading = useMutation({
		mutationFn: async (from: File) => {
			if (from.size > maxSize) throw new Error(`${from.name} is larger than 1 MiB.`);
			return { name: from.name, text: await from.text() };
		},
		meta: { quiet: true },
		onSuccess: (read) => {
			importing.reset();
			setFile(read.name);
			setText(read.text);
		},
	});
	const problems = importing.error instanceof InvalidWorkflow ? importing.error.problems : [];
	const error = reading.error ?? (problems.length === 0 ? importing.error : null);
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title="Import a workflow"
			description="From YAML or JSON. The import creates a draft."
			width="large"
			guarded
			onSubmit={() => text.trim() !== "" && importing.mutate()}
			actions={
				<>
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" busy={importing.isPending} disabled={text.trim() === ""}>
						Import
					</Button>
				</>
			}
		>
			<FileDrop
				name={file}
				accept=".yaml,.yml,.json,application/json,application/yaml"
				onFiles={([chosen]) => reading.mutate(chosen)}
			/>
			<Field label="Definition">
				<CodeEditor
					label="Workflow definition"
					language="yaml"
					value={text}
					onChange={setText}
					height={260}
					placeholder={"name: Greet a customer\nsteps:\n  - id: hello\n    uses: data.set"}
					onReady={setView}
				/>
			</Field>
			{problems.length > 0 && <Problems problems={problems} text={text} view={view} />}
			{error && <ErrorNote error={error} />}
		</Dialog>
	);
}

/** Problems lists the problems and marks them in the editor. Clicking one moves the cursor to it. */
function Problems({ problems, text, view }: { problems: Problem[]; text: string; view?: EditorView }) {
	useEffect(() => {
		if (!view) return undefined;
		let gone = false;
		void import("@codemirror/lint").then(({ setDiagnostics }) => {
			if (gone) return;
			const found = problems.flatMap(({ line, column, message }) => {
				if (line === undefined) return [];
				const from = Math.min(offsetOf(view.state.doc.toString(), line, column ?? 1), view.state.doc.length);
				return [{ from, to: view.state.doc.lineAt(from).to, severity: "error" as const, message }];
			});
			view.dispatch(setDiagnostics(view.state, found));
		});
		return () => {
			gone = true;
		};
	}, [problems, view]);
	const show = (problem: Problem) => {
		if (!view || problem.line === undefined) return;
		const at = Math.min(offsetOf(text, problem.line, problem.column ?? 1), view.state.doc.length);
		view.dispatch({ selection: { anchor: at }, scrollIntoView: true });
		view.focus();
	};
	return (
		<div role="alert" className="rounded-6 border-l-4 border-failed bg-failed-soft px-3 py-2">
			<p className="text-failed">
				{problems.length === 1 ? "The workflow has 1 problem." : `The workflow has ${problems.length} problems.`}
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
