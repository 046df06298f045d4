import { useBlocker } from "@tanstack/react-router";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";

/** LeaveWarning asks before somebody leaves a page with text that is not saved. */
export function LeaveWarning({ isDirty }: { isDirty: () => boolean }) {
	const { status, proceed, reset } = useBlocker({
		shouldBlockFn: ({ current, next }) => isDirty() && current.pathname !== next.pathname,
		enableBeforeUnload: isDirty,
		withResolver: true,
	});
	if (status !== "blocked") return null;
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && reset()}
			title="Leave without saving?"
			description="Your changes to the manifest will be lost."
			width="small"
			actions={
				<>
					<Button onClick={reset}>Stay</Button>
					<Button kind="danger" onClick={proceed}>
						Leave
					</Button>
				</>
			}
		/>
	);
}
