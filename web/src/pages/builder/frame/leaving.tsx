import { useBlocker } from "@tanstack/react-router";
import { useState } from "react";
import { useEditor } from "@/pages/builder/state";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";

/** LeaveWarning asks before the user leaves with unsaved edits. */
export function LeaveWarning() {
	const editor = useEditor();
	const [busy, setBusy] = useState(false);
	const { status, proceed, reset } = useBlocker({
		shouldBlockFn: ({ current, next }) => editor.get().dirty && current.pathname !== next.pathname,
		enableBeforeUnload: () => editor.get().dirty,
		withResolver: true,
	});
	if (status !== "blocked") return null;
	const save = async () => {
		setBusy(true);
		const saved = await editor.saving.save();
		setBusy(false);
		if (saved) proceed();
		else reset();
	};
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && reset()}
			title="Leave without saving?"
			description="Your edits stay in this browser and are restored when you open the workflow again."
			width="small"
			actions={
				<>
					<Button onClick={reset}>Stay</Button>
					<Button onClick={proceed}>Leave</Button>
					<Button kind="primary" busy={busy} onClick={() => void save()}>
						Save and leave
					</Button>
				</>
			}
		/>
	);
}
