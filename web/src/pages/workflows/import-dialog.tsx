import type { EditorView } from "@codemirror/view";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type DragEvent, useEffect, useRef, useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { cx } from "@/ui/class";
import { Dialog } from "@/ui/dialog";
import { CodeEditor } from "@/ui/editor";
import { Field } from "@/ui/field";
import { UploadIcon } from "@/ui/icons";
import { sentence } from "@/ui/sentence";
import { ErrorNote } from "@/ui/states";
import { offsetOf, type Problem, problemsOf, readImport } from "./import";
import { made } from "./made";

const largest = 1 << 20;

/** Refused is a text with mistakes, as opposed to a call that failed. */
class Refused extends Error {
	constructor(readonly problems: Problem[]) {
		super("The workflow has mistakes");
	}
}

async function importText(text: string, file?: string) {
	const read = readImport(text, file);
	if ("problems" in read) throw new Refused(read.problems);
	try {
		return await made(read.name, (id) =>
			got(api.PATCH("/v1/workflows/{id}", { params: { path: { id } }, body: read.body })),
		);
	} catch (thrown) {
		const error = toApiError(thrown);
		throw error.fields.length > 0 ? new Refused(problemsOf(error, read.parsed)) : error;
	}
}

/** ImportDialog makes a draft of a file or of a text. */
export default function ImportDialog({ onOpenChange }: { onOpenChange: (open: boolean) => void }) {
	const [text, setText] = useState("");
	const [file, setFile] = useState<string>();
	const [view, setView] = useState<EditorView>(); // it comes later than the dialog
	const navigate = useNavigate();
	const client = useQueryClient();
	const bring = useMutation({
		mutationFn: () => importText(text, file),
		meta: { quiet: true },
		onSuccess: ({ id }) => {
			void client.invalidateQueries({ queryKey: ["workflows"] });
			return navigate({ to: "/workflows/$id", params: { id } });
		},
	});
	const load = useMutation({
		mutationFn: async (from: File) => {
			if (from.size > largest) throw new Error(`${from.name} is larger than 1 MiB.`);
			return { name: from.name, text: await from.text() };
		},
		meta: { quiet: true },
		onSuccess: (read) => {
			bring.reset();
			setFile(read.name);
			setText(read.text);
		},
	});
	const problems = bring.error instanceof Refused ? bring.error.problems : [];
	const error = load.error ?? (problems.length === 0 ? bring.error : null);
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title="Import a workflow"
			description="From YAML or JSON, as the API gives it. It becomes a draft."
			width="large"
			guarded
			onSubmit={() => text.trim() !== "" && bring.mutate()}
			actions={
				<>
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" busy={bring.isPending} disabled={text.trim() === ""}>
						Import
					</Button>
				</>
			}
		>
			<FileDrop name={file} onFile={(chosen) => load.mutate(chosen)} />
			<Field label="Text">
				<CodeEditor
					label="Text of the workflow"
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

function FileDrop({ name, onFile }: { name?: string; onFile: (file: File) => void }) {
	const input = useRef<HTMLInputElement>(null);
	const [over, setOver] = useState(false);
	const drop = (event: DragEvent) => {
		event.preventDefault();
		setOver(false);
		const [file] = event.dataTransfer.files;
		if (file) onFile(file);
	};
	return (
		<section
			aria-label="File"
			onDragOver={(event) => {
				event.preventDefault();
				setOver(true);
			}}
			onDragLeave={() => setOver(false)}
			onDrop={drop}
			className={cx(
				"flex flex-wrap items-center gap-3 rounded-8 border border-dashed border-control px-3 py-3",
				over && "border-accent bg-accent-soft",
			)}
		>
			<Button icon={UploadIcon} onClick={() => input.current?.click()}>
				Choose a file
			</Button>
			<span className="min-w-0 flex-1 truncate text-muted">{name ?? "or drop one here"}</span>
			<input
				ref={input}
				type="file"
				accept=".yaml,.yml,.json,application/json,application/yaml"
				hidden
				onChange={(event) => {
					const [file] = event.target.files ?? [];
					if (file) onFile(file);
					event.target.value = "";
				}}
			/>
		</section>
	);
}

/** Problems lists mistakes, marks them in the text and leads to each. */
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
				{problems.length === 1 ? "The workflow has a mistake." : `The workflow has ${problems.length} mistakes.`}
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
