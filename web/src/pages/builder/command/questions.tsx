import { useReplay } from "@/pages/builder/replay/replay";
import { useDocument, useEditor, useEditorState } from "@/pages/builder/state";
import { connect } from "@/shared/workflow/model";
import { ConfirmDialog } from "@/ui/dialog";
import { candidates, connectable, movableInto } from "./candidates";
import { moveInside, nameOf } from "./edit";
import { Finder } from "./finder";
import { RenameDialog } from "./rename";

/** EditorDialogs renders the dialogs that operations open. */
export function EditorDialogs() {
	const editor = useEditor();
	const doc = useDocument();
	const question = useEditorState((state) => state.question);
	const close = () => editor.ask(null);
	switch (question?.kind) {
		case "rename":
			return <RenameDialog key={question.node} node={question.node} onClose={close} />;
		case "connect": {
			const { from } = question;
			return (
				<Finder
					title={`What comes after ${nameOf(doc, from)}?`}
					candidates={connectable(doc, from)}
					onPick={(to) =>
						editor.apply((now) => connect(now, from, to), { announce: `Connected to ${nameOf(doc, to)}.` })
					}
					onClose={close}
				/>
			);
		}
		case "into": {
			const { nodes } = question;
			const blocks = movableInto(doc, nodes);
			return (
				<Finder
					title="Move into…"
					description={blocks.length === 0 ? "This workflow has no other loop." : undefined}
					candidates={blocks}
					onPick={(block) => moveInside(editor, nodes, block)}
					onClose={close}
				/>
			);
		}
		case "test":
			return <TestQuestion step={question.step} onClose={close} />;
		case "find":
			return (
				<Finder title="Find a step" candidates={candidates(doc)} onPick={(id) => editor.select([id])} onClose={close} />
			);
		default:
			return null;
	}
}

/** TestQuestion asks before a key tests a step: the test has real effects. */
function TestQuestion({ step, onClose }: { step: string; onClose: () => void }) {
	const replay = useReplay();
	const doc = useDocument();
	return (
		<ConfirmDialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Test “${nameOf(doc, step)}”?`}
			verb="Test step"
			onConfirm={async () => replay.testStep(step)}
		>
			The step runs once, with real effects: requests and messages are sent.
		</ConfirmDialog>
	);
}
