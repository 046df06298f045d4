import { useWaitingCount } from "./use-approvals";

/** WaitingCount is the badge of the navigation entry; it renders nothing if no approvals are waiting. */
export function WaitingCount() {
	const count = useWaitingCount();
	if (!count) return null;
	return (
		<span className="ml-auto rounded-full bg-waiting-soft px-1.5 text-12 text-waiting tabular">
			{count}
			<span className="sr-only"> waiting</span>
		</span>
	);
}
