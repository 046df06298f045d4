import "./styles";
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, forceParsing, indentOnInput, indentUnit } from "@codemirror/language";
import { linter, lintKeymap } from "@codemirror/lint";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { useEffect, useLayoutEffect, useRef } from "react";
import { useField } from "../field";
import type { CodeEditorProps, Language } from "./props";
import { editorTheme } from "./theme";
import { replaceSelection } from "./typing";

const languages: Record<Language, () => Extension> = {
	json: () => json(),
	yaml: () => yaml(),
	javascript: () => javascript(),
	text: () => [],
};

/** Escape leaves the editor, because Tab indents. */
const leave = keymap.of([
	{
		key: "Escape",
		run: (view) => {
			view.contentDOM.blur();
			return false;
		},
	},
]);

/**
 * The indentation of a new line depends on the syntax before it. CodeMirror parses while it is idle, so in a long text
 * or on a busy machine that is not known yet, and the line would be indented like the one above.
 */
const parseBeforeNewLine = keymap.of([
	{
		key: "Enter",
		run: (view) => {
			forceParsing(view, view.state.selection.main.to, 5_000);
			return false;
		},
	},
]);

/** A scrollbar would cover the only line. */
const singleLine: Extension = [
	EditorState.transactionFilter.of((change) => (change.newDoc.lines > 1 ? [] : change)),
	EditorView.theme({ ".cm-scroller": { scrollbarWidth: "none" } }),
];

function lines(props: CodeEditorProps): Extension {
	if (props.singleLine) return singleLine;
	const tab = props.tabIndents === false ? [] : [keymap.of([indentWithTab]), leave];
	return [props.lineNumbers === false ? [] : [lineNumbers(), highlightActiveLine()], tab];
}

function settings(props: CodeEditorProps, wiring: ReturnType<typeof useField>): Extension {
	// Editable content can be focused anyway. With tabindex, axe knows that the keyboard can scroll it.
	const attributes: Record<string, string> = { "aria-label": props.label, tabindex: "0" };
	for (const [name, value] of Object.entries(wiring)) {
		if (value !== undefined && name !== "id") attributes[name] = String(value);
	}
	return [
		EditorState.readOnly.of(props.readOnly ?? false),
		EditorView.contentAttributes.of(attributes),
		languages[props.language ?? "text"](),
		props.wrap === false ? [] : EditorView.lineWrapping,
		props.placeholder ? placeholder(props.placeholder) : [],
		props.lint ? linter((view) => props.lint?.(view.state.doc.toString(), view) ?? [], { delay: 400 }) : [],
		props.extensions ?? [],
	];
}

/** CodeMirror is the actual editor; `CodeEditor` loads it on demand. */
export default function CodeMirror(props: CodeEditorProps) {
	const host = useRef<HTMLDivElement>(null);
	const view = useRef<EditorView>(undefined);
	const changing = useRef(new Compartment());
	const latest = useRef(props);
	const wiring = useField();
	const first = useRef(wiring);
	useLayoutEffect(() => {
		latest.current = props;
	});
	useEffect(() => {
		if (!host.current) return undefined;
		const start = latest.current;
		const editor = new EditorView({
			parent: host.current,
			state: EditorState.create({
				doc: start.value,
				extensions: [
					history(),
					drawSelection(),
					indentOnInput(),
					indentUnit.of("  "),
					bracketMatching(),
					closeBrackets(),
					replaceSelection,
					autocompletion(),
					changing.current.of(settings(start, first.current)),
					lines(start),
					parseBeforeNewLine,
					keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
					editorTheme,
					EditorView.updateListener.of((update) => {
						if (update.docChanged) latest.current.onChange?.(update.state.doc.toString());
						if (update.focusChanged) latest.current.onFocusChange?.(editor.hasFocus);
					}),
				],
			}),
		});
		view.current = editor;
		latest.current.onReady?.(editor);
		return () => editor.destroy();
	}, []);
	// A layout effect: it runs before another key press changes the text, which it would undo.
	useLayoutEffect(() => {
		const editor = view.current;
		if (!editor || editor.state.doc.toString() === props.value) return;
		editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.value } });
	}, [props.value]);
	const { label, language, readOnly, wrap, lint, extensions, placeholder: hint } = props;
	const described = wiring["aria-describedby"];
	const invalid = wiring["aria-invalid"];
	// biome-ignore lint/correctness/useExhaustiveDependencies: these are the inputs of the settings
	useEffect(() => {
		view.current?.dispatch({ effects: changing.current.reconfigure(settings(props, wiring)) });
	}, [label, language, readOnly, wrap, lint, extensions, hint, described, invalid]);
	return <div ref={host} className="h-full min-h-0" />;
}
