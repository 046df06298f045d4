import { useState } from "react";
import { useEditor, useEditorState } from "@/pages/builder/state";
import { Button } from "@/ui/button";
import { PauseIcon } from "@/ui/icons";

/** StateSwitch activates or pauses the workflow. It saves first, so that what runs is what is shown. */
export function StateSwitch() {
	const editor = useEditor();
	const state = useEditorState((now) => now.about.state);
	const mayWrite = useEditorState((now) => now.mayWrite);
	const broken = useEditorState((now) => now.broken !== null);
	const [busy, setBusy] = useState(false);
	if (!mayWrite) return null;
	const active = state === "active";
	const change = async () => {
		setBusy(true);
		try {
			if (active) await editor.saving.setState("paused");
			else if (await editor.saving.save()) await editor.saving.setState("active");
		} finally {
			setBusy(false);
		}
	};
	return (
		<Button
			icon={active ? PauseIcon : undefined}
			busy={busy}
			disabled={broken && !active}
			onClick={() => void change()}
			title={active ? "Stop triggers; runs in progress continue" : "Let triggers start runs"}
		>
			{active ? "Pause" : "Activate"}
		</Button>
	);
}
