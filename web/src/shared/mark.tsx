import { useState } from "react";
import { base } from "@/api/client";
import { cx } from "@/ui/class";
import { type Icon, type IconProps, svgIcon } from "@/ui/icons";
import { bareName, isOwn } from "./own";

const marks = new Map<string, Icon>();
const all = new WeakSet<Icon>();

/** markOf returns the mark of an integration: its icon, or its first letter if it has none. */
export function markOf(integration: string): Icon {
	const known = marks.get(integration);
	if (known) return known;
	const letter = letterOf(bareName(integration));
	const mark: Icon = (props) => <Mark integration={integration} letter={letter} {...props} />;
	marks.set(integration, mark);
	all.add(mark);
	return mark;
}

function letterOf(integration: string): Icon {
	return svgIcon(
		<g stroke="none" fill="currentColor">
			<rect width="16" height="16" rx="4" opacity="0.15" />
			<text x="8" y="11.5" textAnchor="middle" fontSize="10" fontWeight="700" fontFamily="inherit">
				{integration.charAt(0).toUpperCase()}
			</text>
		</g>,
	);
}

/** isMark reports whether an icon is the mark of an integration, which has a background of its own. */
export const isMark = (icon: Icon) => all.has(icon);

const id = /^[a-z][a-z0-9_]*$/;

/**
 * Mark loads the icon when it becomes visible, however many integrations there are. An image cannot execute or load
 * anything.
 */
function Mark({ integration, letter: Letter, ...props }: IconProps & { integration: string; letter: Icon }) {
	const [isMissing, setMissing] = useState(isOwn(integration) || !id.test(integration));
	if (isMissing) return <Letter {...props} />;
	const { size = 16, className, "aria-label": label = "" } = props;
	return (
		<img
			src={`${base}/v1/integrations/${integration}/icon`}
			alt={label}
			width={size}
			height={size}
			loading="lazy"
			decoding="async"
			draggable={false}
			onError={() => setMissing(true)}
			className={cx("shrink-0", className)}
		/>
	);
}

/** IconTile shows an icon in a square or a circle with the colors of a class. A mark has its own, and fills it. */
export function IconTile({ icon: Shape, round, className }: { icon: Icon; round?: boolean; className: string }) {
	const corners = round ? "rounded-full" : "rounded-6";
	if (isMark(Shape)) return <Shape size={32} className={corners} />;
	return (
		<span className={cx("flex size-8 shrink-0 items-center justify-center", corners, className)}>
			<Shape />
		</span>
	);
}
