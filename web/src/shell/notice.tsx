import { useEffect, useState } from "react";
import { useConnectionStatus } from "@/live/hooks";
import { WarningIcon } from "@/ui/icons";
import { timeOfDay } from "@/ui/time";

/** How long the connection may be lost before the notice appears. */
const noticeDelay = 2_500;

/** Notice warns that the data shown may be stale. */
export function Notice() {
	const { state, since } = useConnectionStatus();
	const [late, setLate] = useState(false);
	useEffect(() => {
		setLate(false);
		if (state !== "lost") return undefined;
		const timer = setTimeout(() => setLate(true), noticeDelay);
		return () => clearTimeout(timer);
	}, [state]);
	return (
		<div role="status">
			{late && (
				<p className="flex items-center justify-center gap-2 border-b bg-waiting-soft px-4 py-1.5 text-12 font-medium text-waiting">
					<WarningIcon size={14} />
					Live updates stopped at {timeOfDay(since)}. Reconnecting…
				</p>
			)}
		</div>
	);
}
