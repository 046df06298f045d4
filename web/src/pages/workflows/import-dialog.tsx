import type { EditorView } from "@codemirror/view";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { toApiError } from "@/api/error";
import { importText, nameFor } from "@/shared/workflow/import";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { CodeEditor } from "@/ui/editor";
import { ProblemList } from "@/ui/editor/problem-list";
import { offsetOf, type Problem, problemsOf } from "@/ui/editor/problems";
import { Field } from "@/ui/field";
import { FileDrop } from "@/ui/file-drop";
import { ErrorNote } from "@/ui/states";

const maxSize = 1 << 20;
const none: Problem[] = [];

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
	const problems = importing.error instanceof InvalidWorkflow ? importing.error.problems : none;
	useMarks(problems, view);
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
			{problems.length > 0 && <ProblemList subject="The workflow" problems={problems} view={view} />}
			{error && <ErrorNote error={error} />}
		</Dialog>
	);
}

/** useMarks marks problems in an editor. */
function useMarks(problems: Problem[], view: EditorView | undefined): void {
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
}
