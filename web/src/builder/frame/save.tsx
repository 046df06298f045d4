import { useEditor, useEditorState } from "@/builder/state";
import { keysOf } from "@/shell/keys";
import { Button } from "@/ui/button";

/** Save writes the document, and says how it stands with it. */
export function Save() {
	const editor = useEditor();
	const dirty = useEditorState((state) => state.dirty);
	const saving = useEditorState((state) => state.saving);
	const mayWrite = useEditorState((state) => state.mayWrite);
	if (!mayWrite) return null;
	return (
		<Button
			kind="primary"
			busy={saving}
			disabled={!dirty}
			onClick={() => void editor.saving.save()}
			title={`Save (${keysOf("Mod+S").join("+")})`}
			className="min-w-20"
		>
			{dirty || saving ? "Save" : "Saved"}
		</Button>
	);
}
