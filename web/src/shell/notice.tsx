import { useEffect, useState } from "react";
import { useStanding } from "@/live/hooks";
import { WarningIcon } from "@/ui/icons";
import { timeOfDay } from "@/ui/time";

/** How long a connection may be away before it is worth a word. */
const patience = 2_500;

/** Notice says when what is shown may be old. */
export function Notice() {
	const { state, since } = useStanding();
	const [late, setLate] = useState(false);
	useEffect(() => {
		setLate(false);
		if (state !== "lost") return undefined;
		const timer = setTimeout(() => setLate(true), patience);
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
