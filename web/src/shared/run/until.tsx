import { duration, fullTime, useNow } from "@/ui/time";
import { Tooltip } from "@/ui/tooltip";

/** Until shows the deadline of something that is waiting. */
export function Until({ at }: { at: string | null | undefined }) {
	const now = useNow(1_000);
	if (!at) return null;
	const left = Date.parse(at) - now;
	return (
		<Tooltip text={fullTime(at)}>
			<time dateTime={at} className="text-muted tabular">
				{left > 0 ? `${duration(left)} left` : "any moment now"}
			</time>
		</Tooltip>
	);
}
