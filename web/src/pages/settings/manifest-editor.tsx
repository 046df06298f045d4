import type { Diagnostic } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import { useDeferredValue, useMemo, useState } from "react";
import { toApiError } from "@/api/error";
import { readYaml } from "@/shared/workflow/text/yaml";
import { CodeEditor } from "@/ui/editor";
import { ProblemList } from "@/ui/editor/problem-list";
import { offsetOf, type Problem, problemsOf } from "@/ui/editor/problems";
import { ErrorNote } from "@/ui/states";
import { Card } from "@/ui/table";

interface ManifestEditorProps {
	text: string;
	onChange: (text: string) => void;
	readOnly?: boolean;
	/** Why the manifest was not saved. */
	error: unknown;
	/** The text that was not saved. */
	sent: string | undefined;
}

const none: Problem[] = [];

/** ManifestEditor edits a manifest, and shows what is wrong with it at its place. */
export function ManifestEditor({ text, onChange, readOnly, error: thrown, sent = "" }: ManifestEditorProps) {
	const [view, setView] = useState<EditorView>();
	const error = thrown ? toApiError(thrown) : undefined;
	const problems = useMemo(() => {
		const failed = thrown ? toApiError(thrown) : undefined;
		return failed?.code === "integration_invalid" && failed.fields.length > 0 ? problemsOf(failed) : none;
	}, [thrown]);
	const lint = useMemo(() => (shown: string) => diagnosticsOf(shown, sent, problems), [sent, problems]);
	return (
		<>
			<Card>
				<div className="-m-px h-[60dvh]">
					<CodeEditor
						label="Manifest"
						language="yaml"
						value={text}
						onChange={onChange}
						readOnly={readOnly}
						lint={lint}
						height="fill"
						onReady={setView}
					/>
				</div>
				<Syntax text={text} readOnly={readOnly} />
			</Card>
			{problems.length > 0 && <ProblemList subject="The manifest" problems={problems} view={view} />}
			{error && problems.length === 0 && <ErrorNote error={error} />}
		</>
	);
}

/** Syntax is the line below the text: the position of the first mistake in the YAML, if there is one. */
function Syntax({ text, readOnly }: { text: string; readOnly?: boolean }) {
	const shown = useDeferredValue(text);
	const mistake = useMemo(() => mistakeIn(shown), [shown]);
	return (
		<p role="status" className="flex min-h-8 items-center border-t px-4 py-1 text-12 text-muted">
			{mistake ? (
				<span className="min-w-0 break-words text-failed">
					Line {mistake.line}, column {mistake.column}: {mistake.message}.
				</span>
			) : readOnly ? (
				"Read only"
			) : (
				"The manifest is checked when you save it. Comments and order are preserved."
			)}
		</p>
	);
}

function mistakeIn(text: string) {
	if (text.trim() === "") return undefined;
	const read = readYaml(text);
	return "error" in read ? read.error : undefined;
}

/** Mistakes in the YAML, and otherwise what the server found in lines that have not changed since. */
export function diagnosticsOf(shown: string, sent: string, problems: readonly Problem[]): Diagnostic[] {
	const mistake = mistakeIn(shown);
	if (mistake) {
		const from = Math.min(mistake.offset, shown.length);
		return [{ from, to: Math.min(shown.length, from + 1), severity: "error", message: mistake.message }];
	}
	const [lines, before] = [shown, sent].map((text) => text.split(/\r\n|\r|\n/)) as [string[], string[]];
	return problems.flatMap(({ line, column, message }) => {
		const own = line === undefined ? undefined : lines[line - 1];
		if (line === undefined || own === undefined || own !== before[line - 1]) return [];
		const from = offsetOf(shown, line, column ?? 1);
		return [{ from, to: offsetOf(shown, line, 1) + own.length, severity: "error" as const, message }];
	});
}
