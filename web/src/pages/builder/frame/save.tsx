import { useEditor, useEditorState } from "@/pages/builder/state";
import { keyLabels } from "@/shell/keys";
import { Button } from "@/ui/button";

/** Save saves the document and shows whether it is saved. */
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
			title={`Save (${keyLabels("Mod+S").join("+")})`}
			className="min-w-20"
		>
			{dirty || saving ? "Save" : "Saved"}
		</Button>
	);
}
