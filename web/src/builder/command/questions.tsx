import { connect } from "@/builder/model";
import { SplitDialog } from "@/builder/picker/split";
import { useDocument, useEditor, useEditorState } from "@/builder/state";
import { candidates, connectable, enterable } from "./candidates";
import { moveInside, nameOf } from "./edit";
import { Finder } from "./finder";
import { RenameDialog } from "./rename";

/** Questions are the dialogs that operations ask in. */
export function Questions() {
	const editor = useEditor();
	const doc = useDocument();
	const question = useEditorState((state) => state.question);
	const close = () => editor.ask(null);
	switch (question?.kind) {
		case "rename":
			return <RenameDialog key={question.node} node={question.node} onClose={close} />;
		case "split":
			return <SplitDialog place={question.place} onClose={close} />;
		case "connect": {
			const { from } = question;
			return (
				<Finder
					title={`What comes after ${nameOf(doc, from)}?`}
					candidates={connectable(doc, from)}
					onPick={(to) => editor.apply((now) => connect(now, from, to), { say: `Connected to ${nameOf(doc, to)}.` })}
					onClose={close}
				/>
			);
		}
		case "into": {
			const { nodes } = question;
			const blocks = enterable(doc, nodes);
			return (
				<Finder
					title="Move into…"
					description={blocks.length === 0 ? "There is no other loop in this workflow." : undefined}
					candidates={blocks}
					onPick={(block) => moveInside(editor, nodes, block)}
					onClose={close}
				/>
			);
		}
		case "find":
			return (
				<Finder title="Find a step" candidates={candidates(doc)} onPick={(id) => editor.select([id])} onClose={close} />
			);
		default:
			return null;
	}
}
