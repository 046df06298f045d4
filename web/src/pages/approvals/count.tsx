import { useWaiting } from "./use-waiting";

/** WaitingCount is the number beside the navigation's entry; nothing when nobody waits. */
export function WaitingCount() {
	const count = useWaiting();
	if (!count) return null;
	return (
		<span className="ml-auto rounded-full bg-waiting-soft px-1.5 text-12 text-waiting tabular">
			{count}
			<span className="sr-only"> waiting</span>
		</span>
	);
}
