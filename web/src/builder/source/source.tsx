import type { Diagnostic } from "@codemirror/lint";
import { forceLinting } from "@codemirror/lint";
import { EditorView } from "@codemirror/view";
import { useDeferredValue, useEffect, useMemo, useRef } from "react";
import { nodeAt } from "@/builder/model";
import { useEditor, useEditorState, useFixed } from "@/builder/state";
import type { Editor } from "@/builder/state/editor";
import { textOf } from "@/builder/state/text";
import { parse } from "@/builder/text/content";
import { pointerAt, rangeAt } from "@/builder/text/locate";
import { CodeEditor } from "@/ui/editor";

/**
 * Source is the document as text. While it is typed in, the text is the master:
 * what it says is the document, and while it says nothing the document waits.
 */
export default function Source() {
	const editor = useEditor();
	const mayWrite = useEditorState((state) => state.mayWrite);
	const present = useDeferredValue(useEditorState((state) => state.history.present));
	const broken = useEditorState((state) => state.broken);
	const problems = useEditorState((state) => state.problems);
	const view = useRef<EditorView>(undefined);
	const typing = useRef(false);
	const text = broken?.text ?? textOf(present);
	const lint = useMemo(() => (shown: string) => diagnosticsOf(editor, shown), [editor]);
	const extensions = useMemo(() => [selectNode(editor)], [editor]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: what the server says is marked when it comes
	useEffect(() => {
		if (view.current) forceLinting(view.current);
	}, [problems]);
	return (
		<div data-surface="text" className="flex h-full flex-col bg-surface">
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
					}}
				/>
			</div>
			<Standing />
		</div>
	);
}

/** The line below the text: where the first mistake is, or that there is none. */
function Standing() {
	const broken = useEditorState((state) => state.broken);
	const count = useEditorState((state) => state.problems.length);
	const fixed = useFixed();
	const [mistake] = broken?.errors ?? [];
	return (
		<p role="status" className="flex h-8 shrink-0 items-center gap-2 border-t px-4 text-12 text-muted">
			{mistake ? (
				<span className="truncate text-failed">
					Line {mistake.line}, column {mistake.column}: {mistake.message}. The canvas waits at what the text said
					before.
				</span>
			) : (
				<span>
					{count === 0 ? "No problems" : count === 1 ? "1 problem" : `${count} problems`}
					{fixed ? " · read only" : " · comments and order stay as you write them"}
				</span>
			)}
		</p>
	);
}

/** What is wrong in the text, at the same places as everywhere else. */
function diagnosticsOf(editor: Editor, text: string): Diagnostic[] {
	const read = parse(text);
	if ("errors" in read) {
		return read.errors.map(({ offset, message }) => {
			const from = Math.min(offset, text.length);
			return { from, to: Math.min(text.length, from + 1), severity: "error", message };
		});
	}
	return editor.get().problems.map(({ pointer, message, hint }) => {
		const { from, to } = rangeAt(read.parsed, pointer);
		return {
			from,
			to: Math.max(from, Math.min(to, endOfLine(text, from))),
			severity: "error",
			message: hint ? `${message}\n${hint}` : message,
		};
	});
}

function endOfLine(text: string, from: number): number {
	const end = text.indexOf("\n", from);
	return end < 0 ? text.length : end;
}

/** The step in which the cursor stands is the selected one. */
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
