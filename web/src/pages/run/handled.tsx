import { ShieldIcon } from "@/shared/canvas/icons";
import { Badge } from "@/ui/badge";
import { handledWords } from "./model/outcome";

/** HandledBadge says how many failures a run went on in spite of. */
export function HandledBadge({ count }: { count: number }) {
	return (
		<Badge tone="warn">
			<ShieldIcon size={12} />
			{handledWords(count)}
		</Badge>
	);
}

/** HandledMark is the same where there is little space. */
export function HandledMark({ count }: { count: number }) {
	return (
		<span
			role="img"
			aria-label={handledWords(count)}
			title={handledWords(count)}
			className="inline-flex shrink-0 items-center gap-0.5 text-12 text-waiting tabular"
		>
			<ShieldIcon size={12} />
			{count}
		</span>
	);
}
