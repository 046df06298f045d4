import { type Icon, svgIcon } from "@/ui/icons";

const marks = new Map<string, Icon>();

/** markOf returns the mark of an integration: its first letter. Logos belong to their owners. */
export function markOf(integration: string): Icon {
	const known = marks.get(integration);
	if (known) return known;
	const mark = svgIcon(
		<text
			x="8"
			y="12.5"
			textAnchor="middle"
			fontSize="13"
			fontWeight="700"
			fill="currentColor"
			stroke="none"
			fontFamily="inherit"
		>
			{integration.charAt(0).toUpperCase()}
		</text>,
	);
	marks.set(integration, mark);
	return mark;
}
