import { actionIcon } from "@/shared/canvas/icons";
import { isMark } from "@/shared/mark";
import { Badge } from "@/ui/badge";

/** UseBadge shows an action or a type of triggers that a template uses, with the mark of its service. */
export function UseBadge({ use }: { use: string }) {
	const Shape = actionIcon(use);
	return (
		<Badge mono>
			{isMark(Shape) && <Shape size={14} />}
			{use}
		</Badge>
	);
}
