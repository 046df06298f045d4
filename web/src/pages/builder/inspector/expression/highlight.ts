import { type Extension, RangeSetBuilder } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { lex } from "@/shared/workflow/expression/lex";
import { bareSpan, spans } from "@/shared/workflow/expression/template";
import type { Form } from "./missing";

const marks = {
	brace: Decoration.mark({ class: "cm-brace" }),
	name: Decoration.mark({ class: "cm-name" }),
	keyword: Decoration.mark({ class: "cm-word" }),
	string: Decoration.mark({ class: "cm-text" }),
	number: Decoration.mark({ class: "cm-number" }),
	comment: Decoration.mark({ class: "cm-note" }),
};

function decorate(text: string, form: Form): DecorationSet {
	const builder = new RangeSetBuilder<Decoration>();
	for (const span of form === "bare" ? [bareSpan(text)] : spans(text)) {
		if (span.open < span.from) builder.add(span.open, span.from, marks.brace);
		for (const token of lex(text, span.from, span.to)) {
			const mark = token.kind in marks ? marks[token.kind as keyof typeof marks] : undefined;
			if (mark && token.to > token.from) builder.add(token.from, token.to, mark);
		}
		if (span.to < span.close) builder.add(span.to, span.close, marks.brace);
	}
	return builder.finish();
}

const look = EditorView.theme({
	// The brackets around an expression always match, so highlighting them adds nothing.
	"&.cm-focused .cm-matchingBracket": { backgroundColor: "transparent", fontWeight: "600" },
	".cm-completionIcon": { display: "none" },
	".cm-brace": { color: "var(--muted)" },
	".cm-name": { color: "var(--accent)" },
	".cm-word": { color: "var(--cancelled)" },
	".cm-text": { color: "var(--succeeded)" },
	".cm-number": { color: "var(--running)" },
	".cm-note": { color: "var(--muted)", fontStyle: "italic" },
});

/** highlight colors the expressions between ${{ and }}, tokenized like on the server. */
export function highlight(form: Form): Extension {
	const plugin = ViewPlugin.fromClass(
		class {
			decorations: DecorationSet;
			constructor(view: EditorView) {
				this.decorations = decorate(view.state.doc.toString(), form);
			}
			update(update: ViewUpdate) {
				if (update.docChanged) this.decorations = decorate(update.state.doc.toString(), form);
			}
		},
		{ decorations: (plugin) => plugin.decorations },
	);
	return [plugin, look];
}
