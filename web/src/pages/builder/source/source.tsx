import type { Diagnostic } from "@codemirror/lint";
import { forceLinting } from "@codemirror/lint";
import { EditorView } from "@codemirror/view";
import { useDeferredValue, useEffect, useMemo, useRef } from "react";
import { useEditor, useEditorState, useReadOnly, useWarnings } from "@/pages/builder/state";
import type { Editor } from "@/pages/builder/state/editor";
import { textOf } from "@/pages/builder/state/text";
import { nodeAt, type Problem } from "@/shared/workflow/model";
import { parse } from "@/shared/workflow/text/content";
import { pointerAt, rangeAt } from "@/shared/workflow/text/locate";
import { CodeEditor } from "@/ui/editor";

/** Source is the document as text. Typed text is applied to the document as long as it is valid. */
export default function Source() {
	const editor = useEditor();
	const mayWrite = useEditorState((state) => state.mayWrite);
	const present = useDeferredValue(useEditorState((state) => state.history.present));
	const broken = useEditorState((state) => state.broken);
	const problems = useEditorState((state) => state.problems);
	const warnings = useWarnings();
	const view = useRef<EditorView>(undefined);
	const typing = useRef(false);
	const text = broken?.text ?? textOf(present);
	const lint = useMemo(() => (shown: string) => diagnosticsOf(editor, shown), [editor]);
	const extensions = useMemo(() => [selectNode(editor)], [editor]);
	const spot = useEditorState((state) => state.spot);
	useEffect(() => {
		if (view.current && spot !== null) goTo(editor, view.current, spot);
	}, [editor, spot]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: lint again when the server's problems arrive
	useEffect(() => {
		if (view.current) forceLinting(view.current);
	}, [problems, warnings]);
	return (
		<div data-surface="text" tabIndex={-1} className="outline-none overflow-hidden flex h-full flex-col bg-surface">
			<div className="-m-px min-h-0 flex-1">
				<CodeEditor
					value={typing.current && view.current ? view.current.state.doc.toString() : text}
					onChange={(typed) => {
						if (typed !== editor.text()) editor.setText(typed);
					}}
					onFocusChange={(focused) => {
						typing.current = focused;
					}}
					language="yaml"
					label="The workflow as YAML"
					readOnly={!mayWrite}
					lint={lint}
					extensions={extensions}
					height="fill"
					onReady={(ready) => {
						view.current = ready;
						ready.focus();
						const asked = editor.get().spot;
						if (asked !== null) goTo(editor, ready, asked);
					}}
				/>
			</div>
			<SourceStatus />
		</div>
	);
}

/** Moves the cursor to an offset and centers its line. */
function goTo(editor: Editor, view: EditorView, offset: number): void {
	const anchor = Math.min(offset, view.state.doc.length);
	view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
	view.focus();
	editor.set({ spot: null });
}

/** The line below the text: the position of the first error, or the number of problems. */
function SourceStatus() {
	const broken = useEditorState((state) => state.broken);
	const count = useEditorState((state) => state.problems.length);
	const readOnly = useReadOnly();
	const [mistake] = broken?.errors ?? [];
	return (
		<p role="status" className="flex h-8 shrink-0 items-center gap-2 border-t px-4 text-12 text-muted">
			{mistake ? (
				<span className="truncate text-failed">
					Line {mistake.line}, column {mistake.column}: {mistake.message}. The canvas shows the last valid version.
				</span>
			) : (
				<span>
					{count === 0 ? "No problems" : count === 1 ? "1 problem" : `${count} problems`}
					{readOnly ? " · read only" : " · comments and order are preserved"}
				</span>
			)}
		</p>
	);
}

/** The errors and problems, at their positions in the text. */
function diagnosticsOf(editor: Editor, text: string): Diagnostic[] {
	const read = parse(text);
	if ("errors" in read) {
		return read.errors.map(({ offset, message }) => {
			const from = Math.min(offset, text.length);
			return { from, to: Math.min(text.length, from + 1), severity: "error", message };
		});
	}
	const { problems, warnings } = editor.get();
	const diagnose =
		(severity: Diagnostic["severity"]) =>
		({ pointer, message, hint }: Problem): Diagnostic => {
			const { from, to } = rangeAt(read.parsed, pointer);
			return {
				from,
				to: Math.max(from, Math.min(to, endOfLine(text, from))),
				severity,
				message: hint ? `${message}\n${hint}` : message,
			};
		};
	return [...problems.map(diagnose("error")), ...warnings.map(diagnose("warning"))];
}

function endOfLine(text: string, from: number): number {
	const end = text.indexOf("\n", from);
	return end < 0 ? text.length : end;
}

/** The step at the cursor is selected. */
function selectNode(editor: Editor) {
	let timer: ReturnType<typeof setTimeout> | undefined;
	return EditorView.updateListener.of((update) => {
		if (!update.selectionSet || !update.view.hasFocus) return;
		clearTimeout(timer);
		timer = setTimeout(() => {
			const read = parse(update.view.state.doc.toString());
			if ("errors" in read) return;
			const node = nodeAt(editor.doc, pointerAt(read.parsed, update.view.state.selection.main.head));
			if (node !== undefined) editor.select([node]);
		}, 150);
	});
}
